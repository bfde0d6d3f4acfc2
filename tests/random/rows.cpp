#include "rows.h"

#include <map>
#include <stdexcept>

namespace stet::random_programs {
namespace {

// --- elementwise rows, from their table

struct Domain {
  double low, high;
};
constexpr double any_number = 1e30;
constexpr Domain reals{-any_number, any_number}, without_zero{0.5, 2}, small_integers{-any_number, any_number},
    halves{-any_number, any_number};
constexpr Domain between(double low, double high) { return {std::max(low, -3.0), std::min(high, 3.0)}; }
constexpr Domain around(double, double low, double high) { return between(low, high); }

bool fits(const Builder& b, int id, double low, double high) { return b.low(id) >= low && b.high(id) <= high; }

/// An operand of a real row: a value in sight whose elements lie in the domain.
int real_operand(Builder& b, const Row& row) {
  return b.pick([&](int id) { return b.real(id) && fits(b, id, row.low, row.high); });
}

/// Where the result of an elementwise row lies, roughly; rows that are not known stay small on small operands.
void guess(Builder& b, const Row& row, const std::vector<int>& in, double& low, double& high) {
  double x = b.bound(in[0]), y = in.size() > 1 ? b.bound(in[1]) : 0;
  double most = std::max(x, y);
  if (row.name == "add" || row.name == "subtract") most = x + y;
  if (row.name == "multiply") most = x * y;
  if (row.name == "divide" || row.name == "floor_divide") most = 2 * x + 1;
  if (row.name == "square") most = x * x;
  if (row.name == "exp" || row.name == "pow") most = 30;
  if (row.name == "rsqrt" || row.name == "sinh" || row.name == "cosh") most = 12;
  if (row.name == "exp2" || row.name == "expm1") most = 30;
  if (row.name == "tan" || row.name == "digamma" || row.name == "log2") most = 7;
  if (row.name == "acos" || row.name == "atan2" || row.name == "lgamma" || row.name == "atanh") most = 3.2;
  if (row.name == "rad2deg") most = 58 * x;
  if (row.name == "shift_left") most = y < 10 ? x * std::exp2(y) : 1000;
  if (row.name == "clip") most = std::max(most, b.bound(in.back()));
  if (row.name == "where") most = std::max(b.bound(in[1]), b.bound(in[2]));
  if (row.name == "tanh" || row.name == "sin" || row.name == "cos" || row.name == "erf" || row.name == "sigmoid")
    most = 1;
  low = row.name == "relu" || row.name == "abs" || row.name == "square" || row.name == "exp" || row.name == "sigmoid"
            ? 0
            : -most - 1;
  high = most + 1;
}

bool propose_elementwise(Builder& b, Statement& s, const Row& row) {
  std::vector<int> in;
  DType result = b.program.real;
  if (row.dtypes == "logical" || row.name.rfind("logical_", 0) == 0) {
    int x = b.pick([&](int id) { return b.type(id).dtype == DType::bool_; });
    if (x < 0) return false;
    in.assign(static_cast<std::size_t>(row.arity), x);
    result = DType::bool_;
  } else if (row.dtypes == "selected") {
    int c = b.pick([&](int id) { return b.type(id).dtype == DType::bool_; });
    if (c < 0) return false;
    in = {c, b.pick_real(), b.pick_real()};
  } else if (row.dtypes == "integral" || (b.chance(0.08) && row.dtypes == "promoted")) {
    int x = b.pick([&](int id) { return b.type(id).dtype == DType::i64; });
    if (x < 0) return false;
    in.assign(static_cast<std::size_t>(row.arity), x);
    result = DType::i64;
  } else {
    for (int i = 0; i < row.arity; ++i) in.push_back(real_operand(b, row));
    if (row.dtypes == "compared") result = DType::bool_;
  }
  for (int id : in)
    if (id < 0) return false;
  // Numbers beside tensors.
  bool number = row.arity == 2 && result != DType::bool_ && b.chance(0.3);
  if (number) in.pop_back();
  std::vector<int> shape = b.type(in[0]).shape;
  for (std::size_t i = 1; i < in.size(); ++i) {
    auto both = b.broadcast(shape, b.type(in[i]).shape);
    if (!both) {  // the same operand always fits
      in[i] = b.type(in[i]).dtype == b.type(in[0]).dtype ? in[0] : -1;
      if (in[i] < 0) return false;
      both = shape;
    }
    shape = *both;
  }
  if (number)
    s.reals.push_back(result == DType::i64 ? 2 + static_cast<double>(b.below(3))
                                           : 0.5 + 0.25 * static_cast<double>(b.below(8)));
  double low = -8, high = 8;
  if (result != DType::bool_) guess(b, row, number ? std::vector<int>{in[0], in[0]} : in, low, high);
  if (high > 300) return false;
  s.inputs = in;
  s.outputs = {b.value({result, shape}, low, high)};
  return true;
}

Tensor run_elementwise(const Operands& o, const Row& row) {
  if (row.arity == 1) return row.one(o.in[0]);
  if (row.arity == 3) return row.three(o.in[0], o.in[1], o.in[2]);
  if (o.in.size() == 2) return row.two(o.in[0], o.in[1]);
  if (!is_floating(o.in[0].dtype())) return row.two(o.in[0], static_cast<int>(o.statement.reals[0]));
  return row.two(o.in[0], o.statement.reals[0]);
}

// --- structured rows

#define PROPOSE [](Builder & b, Statement & s, const Row& row) -> bool
#define RUN [](const Operands& o, [[maybe_unused]] const Row& row) -> Tensor

bool propose_reduce(Builder& b, Statement& s, const Row& row) {
  bool all_sizes = row.name == "sum" || row.name == "mean" || row.name == "prod";
  int x = b.pick([&](int id) { return b.real(id) && b.rank(id) > 0 && (row.name != "prod" || b.bound(id) < 3); });
  if (x < 0) return false;
  int axis = static_cast<int>(b.below(b.rank(x)));
  const std::vector<int> from = b.type(x).shape;
  bool all = b.chance(0.3);
  // The largest of nothing is an error: mostly along axes that cannot be empty.
  auto risky = [&](int r) { return !all_sizes && !b.is_constant(r); };
  if (all && std::any_of(from.begin(), from.end(), risky) && !b.chance(0.05)) return false;
  if (!all && risky(from[static_cast<std::size_t>(axis)]) && !b.chance(0.05)) return false;
  if (row.name == "prod" && (all || !b.is_constant(from[static_cast<std::size_t>(axis)]))) return false;
  bool keep = b.chance(0.4);
  std::vector<int> shape;
  for (int i = 0; i < b.rank(x); ++i)
    if (!all && i != axis)
      shape.push_back(from[static_cast<std::size_t>(i)]);
    else if (keep)
      shape.push_back(b.constant(1));
  s.inputs = {x};
  s.numbers = {all ? -1 : axis, keep};
  double most = row.name == "sum" ? b.bound(x) * 20 : row.name == "prod" ? 81 : b.bound(x);
  if (most > 300) return false;
  s.outputs = {b.value({b.program.real, shape}, -most - 1, most + 1)};
  return true;
}
template <Tensor (*whole)(In), Tensor (*some)(In, const Axes&, ReduceOptions)>
Tensor run_reduce(const Operands& o, const Row&) {
  if (o.number(0) < 0 && !o.number(1)) return whole(o.in[0]);
  Axes axes{0};
  axes.axes.clear();
  for (int i = 0; i < o.in[0].rank(); ++i)
    if (o.number(0) < 0 || o.number(0) == i) axes.axes.push_back(i);
  return some(o.in[0], axes, {.keepdims = o.number(1) != 0});
}

bool propose_position(Builder& b, Statement& s, const Row&) {
  int x = b.pick([&](int id) { return b.real(id) && b.rank(id) > 0 && b.is_constant(b.type(id).shape.back()); });
  if (x < 0) return false;
  s.inputs = {x};
  std::vector<int> shape = b.type(x).shape;
  std::int64_t size = b.constant_of(shape.back());
  shape.pop_back();
  s.numbers = {static_cast<std::int64_t>(shape.size())};
  s.outputs = {b.value({DType::i64, shape}, 0, static_cast<double>(size - 1))};
  return true;
}

bool propose_draw(Builder& b, Statement& s, const Row& row) {
  if (!b.features.draws) return false;
  int like = b.pick([&](int id) { return !b.has_late(b.type(id)); });
  if (like < 0) return false;
  std::vector<int> shape = b.type(like).shape;
  auto sizes = b.sizes(shape);
  if (!sizes) return false;
  s.sizes = *sizes;
  bool whole = row.name == "randint";
  s.outputs = {b.value({whole ? DType::i64 : b.program.real, shape}, whole ? 0 : -4, whole ? 2 : 4)};
  return true;
}

std::vector<Row> reduce_rows() {
  std::vector<Row> out;
  out.push_back({"sum", propose_reduce, run_reduce<stet::sum, stet::sum>});
  out.push_back({"mean", propose_reduce, run_reduce<stet::mean, stet::mean>});
  out.push_back({"prod", propose_reduce, run_reduce<stet::prod, stet::prod>});
  out.push_back({"max", propose_reduce, run_reduce<stet::max, stet::max>});
  out.push_back({"min", propose_reduce, run_reduce<stet::min, stet::min>});
  out.push_back({"argmax", propose_position, RUN { return argmax(o.in[0], static_cast<int>(o.number(0)));
}
}  // namespace
);
  out.push_back({"argmin", propose_position, RUN { return argmin(o.in[0], static_cast<int>(o.number(0)));
  }  // namespace stet::random_programs
  });

  return out;
  }

  std::vector<Row> layout_rows() {
    std::vector<Row> out;
  out.push_back({"reshape",
                 PROPOSE {
                   int x = b.pick([&](int id) {
    return b.rank(id) >= 2 && !b.has_late(b.type(id)); });
                   if (x < 0 || row.name.empty()) return false;
                   std::vector<int> shape = b.type(x).shape;
                   int last = shape.back();
                   shape.pop_back();
                   shape.back() = b.product(shape.back(), last);
                   s.inputs = {x};
                   auto sizes = b.sizes(shape);
                   if (!sizes && !b.features.inferred) return false;
                   s.numbers = {b.features.inferred && (!sizes || b.chance(0.5))};  // -1 for the joined axis
                   shape.pop_back();
                   auto others = b.sizes(shape);
                   if (!others) return false;
                   s.sizes = s.numbers[0] ? *others : *sizes;
                   if (s.numbers[0]) b.program.facts = true;  // of a division, where sizes are from different tensors
                   shape.push_back(b.product(b.type(x).shape[b.type(x).shape.size() - 2], last));
                   s.outputs = {b.value({b.type(x).dtype, shape}, b.low(x), b.high(x))};
                   return true;
  }
  , RUN {
    std::vector<Dim> shape = o.shape();
    if (o.number(0)) shape.push_back(Dim(-1));
    return reshape(o.in[0], shape);
  }
  });
  out.push_back({"transpose",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return b.rank(id) >= 2; });
                   if (x < 0 || row.name.empty()) return false;
                   std::vector<int> shape = b.type(x).shape;
                   std::reverse(shape.begin(), shape.end());
                   s.inputs = {x};
                   s.outputs = {b.value({b.type(x).dtype, shape}, b.low(x), b.high(x))};
                   return true;
  }
  , RUN { return transpose(o.in[0]); }
  });
  out.push_back({"broadcast_to",
                 PROPOSE {
                   int x = b.pick_real();
                   int like = b.pick([&](int id) {
  return b.rank(id) > 0 && !b.has_late(b.type(id)); });
                   if (x < 0 || like < 0 || row.name.empty()) return false;
                   auto shape = b.broadcast(b.type(x).shape, b.type(like).shape);
                   if (!shape) return false;
                   auto sizes = b.sizes(*shape);
                   if (!sizes) return false;
                   s.inputs = {x};
                   s.sizes = *sizes;
                   s.outputs = {b.value({b.type(x).dtype, *shape}, b.low(x), b.high(x))};
                   return true;
  }
  , RUN { return broadcast_to(o.in[0], Shape(o.shape())); }
  });
  return out;
  }

  std::vector<Row> slice_rows() {
    std::vector<Row> out;
  out.push_back({"slice",
                 PROPOSE {
                   // Along a constant axis: part of it, one position, every second, backwards.
                   int x = b.pick([&](int id) {
    return b.rank(id) > 0 && b.is_constant(b.type(id).shape.back()) && b.constant_of(b.type(id).shape.back()) >= 3;
                   });
                   if (x < 0 || row.name.empty()) return false;
                   std::vector<int> shape = b.type(x).shape;
                   std::int64_t size = b.constant_of(shape.back()), way = b.below(4);
                   s.inputs = {x};
                   s.numbers = {way};
                   if (way == 0) shape.pop_back();
                   if (way == 1) shape.back() = b.constant(size - 1);
                   if (way == 2) shape.back() = b.constant((size + 1) / 2);
                   s.outputs = {b.value({b.type(x).dtype, shape}, b.low(x), b.high(x))};
                   return true;
  }
  , RUN {
    if (o.number(0) == 0) return o.in[0][{ellipsis, 1}];
    if (o.number(0) == 1) return o.in[0][{ellipsis, Range{.begin = 1}}];
    if (o.number(0) == 2) return o.in[0][{ellipsis, Range{.step = 2}}];
    return o.in[0][{ellipsis, Range{.step = -1}}];
  }
  });
  out.push_back({"reverse",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return b.rank(id) > 0; });
                   if (x < 0 || row.name.empty()) return false;
                   s.inputs = {x};
                   s.numbers = {b.below(b.rank(x))};
                   s.outputs = {b.value(b.type(x), b.low(x), b.high(x))};
                   return true;
  }
  , RUN { return reverse(o.in[0], static_cast<int>(o.number(0))); }
  });
  out.push_back({"concat",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return b.rank(id) > 0 && !b.has_late(b.type(id)); });
                   if (x < 0 || row.name.empty()) return false;
                   auto axis = static_cast<std::size_t>(b.below(b.rank(x)));
                   int y = b.pick([&](int id) {
  if (b.type(id).dtype != b.type(x).dtype || b.rank(id) != b.rank(x) || b.has_late(b.type(id))) return false;
  for (std::size_t i = 0; i < b.type(x).shape.size(); ++i)
    if (i != axis && b.type(id).shape[i] != b.type(x).shape[i]) return false;
  return true;
                   });
                   std::vector<int> shape = b.type(x).shape;
                   shape[axis] = b.sum(shape[axis], b.type(y).shape[axis]);
                   s.inputs = {x, y};
                   s.numbers = {static_cast<std::int64_t>(axis)};
                   s.outputs = {b.value({b.type(x).dtype, shape}, std::min(b.low(x), b.low(y)),
                                        std::max(b.high(x), b.high(y)))};
                   return true;
  }
  , RUN { return concat({o.in[0], o.in[1]}, static_cast<int>(o.number(0))); }
  });
  return out;
  }

  std::vector<Row> index_rows() {
    std::vector<Row> out;
  out.push_back({"gather",
                 PROPOSE {
                   int indices = b.pick([&](int id) {
    return b.type(id).dtype == DType::i64 && b.low(id) >= 0; });
                   if (indices < 0 || row.name.empty()) return false;
                   int x = b.pick([&](int id) {
    return b.rank(id) > 0 && b.rank(id) + b.rank(indices) < 5 && b.is_constant(b.type(id).shape[0]) &&
           static_cast<double>(b.constant_of(b.type(id).shape[0])) > b.high(indices);
                   });
                   if (x < 0) return false;
                   std::vector<int> shape = b.type(indices).shape;
                   shape.insert(shape.end(), b.type(x).shape.begin() + 1, b.type(x).shape.end());
                   s.inputs = {x, indices};
                   s.outputs = {b.value({b.type(x).dtype, shape}, b.low(x), b.high(x))};
                   return true;
  }
  , RUN { return gather(o.in[0], o.in[1]); }
  });
  out.push_back({"one_hot",
                 PROPOSE {
                   int indices = b.pick([&](int id) {
  return b.type(id).dtype == DType::i64 && b.rank(id) < 3; });
                   if (indices < 0) return false;
                   std::vector<int> shape = b.type(indices).shape;
                   shape.push_back(b.constant(row.name.empty() ? 4 : 3));
                   s.inputs = {indices};
                   s.outputs = {b.value({b.program.real, shape}, 0, 1)};
                   return true;
  }
  , RUN { return one_hot(o.in[0], 3, {.dtype = o.real}); }
  });
  out.push_back({"scatter_add",
                 PROPOSE {
                   // Rows of x get others' rows added: updates are a gather of x, so that the shapes fit.
                   int indices = b.pick([&](int id) {
  return b.type(id).dtype == DType::i64 && b.rank(id) == 1 && b.low(id) >= 0; });
                   if (indices < 0 || row.name.empty()) return false;
                   int x = b.pick([&](int id) {
  return b.real(id) && b.rank(id) > 0 && b.rank(id) < 4 && b.is_constant(b.type(id).shape[0]) &&
         static_cast<double>(b.constant_of(b.type(id).shape[0])) > b.high(indices) && b.bound(id) < 10;
                   });
                   if (x < 0) return false;
                   s.inputs = {x, indices};
                   s.outputs = {b.value(b.type(x), -200, 200)};
                   return true;
  }
  , RUN { return scatter_add(o.in[0], o.in[1], gather(o.in[0], o.in[1]) * 0.5); }
  });
  return out;
  }

  std::vector<Row> product_rows() {
    std::vector<Row> out;
  out.push_back({"matmul",
                 PROPOSE {
                   int x = b.pick([&](int id) {
    return b.real(id) && b.rank(id) >= 2 && b.rank(id) <= 3 && b.bound(id) < 12; });
                   if (x < 0 || row.name.empty()) return false;
                   int inner = b.type(x).shape.back();
                   int y = b.pick([&](int id) {
    return b.real(id) && b.bound(id) < 12 && b.rank(id) == 2 &&
           (b.type(id).shape[0] == inner || b.type(id).shape[1] == inner);
                   });
                   if (y < 0) return false;
                   bool turned = b.type(y).shape[0] != inner;
                   std::vector<int> shape = b.type(x).shape;
                   shape.back() = b.type(y).shape[turned ? 0 : 1];
                   s.inputs = {x, y};
                   s.numbers = {turned};
                   s.outputs = {b.value({b.program.real, shape}, -100, 100)};
                   return true;
  }
  , RUN { return matmul(o.in[0], o.in[1], {.transpose_b = o.number(0) != 0}) * 0.125; }
  });
  out.push_back({"conv",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return b.real(id) && b.rank(id) == 3 && b.bound(id) < 12; });
                   int filter = b.pick([&](int id) {
  return b.real(id) && b.bound(id) < 12 && b.type(id).shape == std::vector<int>{b.constant(3), b.constant(4)};
                   });
                   if (x < 0 || filter < 0 || row.name.empty()) return false;
                   s.inputs = {x, filter};
                   std::vector<int> shape = b.type(x).shape;
                   shape.push_back(b.constant(2));
                   s.outputs = {b.value({b.program.real, shape}, -100, 100)};
                   return true;
  }
  , RUN { return conv2d(expand_dims(o.in[0], 3), reshape(o.in[1], {2, 3, 1, 2}), {.same_padding = true}) * 0.125; }
  });
  return out;
  }

  std::vector<Row> late_and_random_rows() {
    std::vector<Row> out;
  out.push_back({"uniform", propose_draw, RUN { return random::uniform(Shape(o.shape()), {.minval = -1, .dtype = o.real});
  }
  });
  out.push_back({"normal", propose_draw, RUN { return random::normal(Shape(o.shape()), {.dtype = o.real});
  }
  });
  out.push_back({"randint", propose_draw, RUN { return random::randint(Shape(o.shape()), 0, 3);
  }
  });
  out.push_back({"nonzero",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return b.real(id) && b.rank(id) > 0 && b.rank(id) < 3; });
                   if (x < 0 || !b.features.late || row.name.empty()) return false;
                   s.inputs = {x};
                   s.outputs = {b.value({b.program.real, {b.role({Role::late})}}, 0, 40)};
                   return true;
  }
  , RUN { return cast(nonzero(o.in[0] > 0.25), o.real)[{ellipsis, 0}]; }
  });
  return out;
  }

  // --- composites, creation and what has no row of its own

  std::vector<Row> composite_rows() {
    std::vector<Row> out;
    // Brings elements into the domain of another row.
  out.push_back({"fit",
                 PROPOSE {
                   int x = b.pick_real();
                   if (x < 0 || row.name.empty()) return false;
                   s.inputs = {x};
                   static const double ranges[][2] = {{0.5, 2}, {-3, 3}, {0.25, 3}, {-1, 1}};
                   const double* range = ranges[b.below(4)];
                   s.reals = {range[1] - range[0], range[0]};
                   s.outputs = {b.value(b.type(x), range[0], range[1])};
                   return true;
  }
  , RUN { return sigmoid(o.in[0]) * o.statement.reals[0] + o.statement.reals[1]; }
  });
  out.push_back({"softmax",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return b.real(id) && b.rank(id) > 0; });
                   if (x < 0 || row.name.empty()) return false;
                   s.inputs = {x};
                   s.numbers = {b.below(2)};
                   s.outputs = {b.value(b.type(x), s.numbers[0] ? -100 : 0, s.numbers[0] ? 1 : 1)};
                   return true;
  }
  , RUN { return o.number(0) ? log_softmax(o.in[0] * 0.25) : softmax(o.in[0]); }
  });
  out.push_back({"layer_norm",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return b.real(id) && b.rank(id) > 1 && b.is_constant(b.type(id).shape.back()); });
                   if (x < 0 || row.name.empty()) return false;
                   int gamma = b.pick([&](int id) {
  return b.real(id) && b.rank(id) == 1 && b.type(id).shape[0] == b.type(x).shape.back();
                   });
                   if (gamma < 0) return false;
                   s.inputs = {x, gamma};
                   s.outputs = {b.value(b.type(x), -20, 20)};
                   return true;
  }
  , RUN { return layer_norm(o.in[0], o.in[1], o.in[1], {.epsilon = 0.1}); }
  });
  out.push_back({"sparse_cross_entropy",
                 PROPOSE {
                   int labels = b.pick([&](int id) {
  return b.type(id).dtype == DType::i64 && b.low(id) >= 0; });
                   if (labels < 0 || row.name.empty()) return false;
                   int x = b.pick([&](int id) {
  if (!b.real(id) || b.rank(id) != b.rank(labels) + 1 || !b.is_constant(b.type(id).shape.back())) return false;
  if (static_cast<double>(b.constant_of(b.type(id).shape.back())) <= b.high(labels)) return false;
  return std::equal(b.type(labels).shape.begin(), b.type(labels).shape.end(), b.type(id).shape.begin());
                   });
                   if (x < 0) return false;
                   s.inputs = {labels, x};
                   s.outputs = {b.value({b.program.real, b.type(labels).shape}, 0, 100)};
                   return true;
  }
  , RUN { return sparse_cross_entropy(o.in[0], o.in[1]); }
  });
  return out;
  }

  std::vector<Row> shape_rows() {
    std::vector<Row> out;
  out.push_back({"stack",
                 PROPOSE {
                   int x = b.pick([&](int id) {
    return b.rank(id) < 3; });
                   int y = b.pick([&](int id) {
    return x >= 0 && b.type(id) == b.type(x); });
                   if (x < 0 || row.name.empty()) return false;
                   s.inputs = {x, y, x};
                   std::vector<int> shape = b.type(x).shape;
                   s.numbers = {b.chance(0.5) ? 0 : static_cast<std::int64_t>(shape.size())};
                   shape.insert(shape.begin() + s.numbers[0], b.constant(3));
                   s.outputs = {b.value({b.type(x).dtype, shape}, std::min(b.low(x), b.low(y)),
                                        std::max(b.high(x), b.high(y)))};
                   return true;
  }
  , RUN { return stack(o.in, static_cast<int>(o.number(0))); }
  });
  out.push_back({"expand_dims",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return b.rank(id) < 3; });
                   if (x < 0 || row.name.empty()) return false;
                   s.inputs = {x};
                   std::vector<int> shape = b.type(x).shape;
                   s.numbers = {b.below(static_cast<std::int64_t>(shape.size()) + 1)};
                   shape.insert(shape.begin() + s.numbers[0], b.constant(1));
                   s.outputs = {b.value({b.type(x).dtype, shape}, b.low(x), b.high(x))};
                   return true;
  }
  , RUN { return expand_dims(o.in[0], static_cast<int>(o.number(0))); }
  });
  out.push_back({"squeeze",
                 PROPOSE {
                   int one = b.constant(1);
                   int x = b.pick([&](int id) {
  return b.rank(id) > 0 && b.type(id).shape.back() == one; });
                   if (x < 0 || row.name.empty()) return false;
                   s.inputs = {x};
                   std::vector<int> shape = b.type(x).shape;
                   shape.pop_back();
                   s.outputs = {b.value({b.type(x).dtype, shape}, b.low(x), b.high(x))};
                   return true;
  }
  , RUN { return squeeze(o.in[0], -1); }
  });
  out.push_back({"cast",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return !b.real(id); });
                   if (x < 0 || row.name.empty()) return false;
                   s.inputs = {x};
                   double low = b.type(x).dtype == DType::bool_ ? 0 : b.low(x), high = b.type(x).dtype == DType::bool_ ? 1 : b.high(x);
                   s.outputs = {b.value({b.program.real, b.type(x).shape}, low, high)};
                   return true;
  }
  , RUN { return cast(o.in[0], o.real); }
  });
  return out;
  }

  std::vector<Row> creation_rows() {
    std::vector<Row> out;
  out.push_back({"fill",
                 PROPOSE {
                   int like = b.pick([&](int id) {
    return !b.has_late(b.type(id)); });
                   if (like < 0 || row.name.empty()) return false;
                   std::vector<int> shape = b.type(like).shape;
                   if (b.chance(0.4)) shape = {b.constant(20)};  // more than a constant of the graph may have
                   auto sizes = b.sizes(shape);
                   if (!sizes) return false;
                   s.sizes = *sizes;
                   s.reals = {0.25 * static_cast<double>(b.below(9)) - 1};
                   s.outputs = {b.value({b.program.real, shape}, -1, 1)};
                   return true;
  }
  , RUN { return full(Shape(o.shape()), o.statement.reals[0], o.real); }
  });
  out.push_back({"arange",
                 PROPOSE {
                   int like = b.pick([&](int id) {
  return b.rank(id) > 0 && !b.has_late(b.type(id)); });
                   if (like < 0 || row.name.empty()) return false;
                   std::vector<int> shape{b.type(like).shape[0]};
                   auto sizes = b.sizes(shape);
                   if (!sizes) return false;
                   s.sizes = *sizes;
                   s.outputs = {b.value({b.program.real, shape}, 0, 3)};
                   return true;
  }
  , RUN { return cast(arange(o.size(0)), o.real) * 0.125; }
  });
  return out;
  }

  std::vector<Row> host_rows() {
    std::vector<Row> out;
  out.push_back({"divide_by_size",
                 PROPOSE {
                   int x = b.pick([&](int id) {
    return b.real(id) && b.rank(id) > 0; });
                   if (x < 0 || row.name.empty()) return false;
                   s.inputs = {x};
                   s.outputs = {b.value(b.type(x), -b.bound(x), b.bound(x))};
                   return true;
  }
  , RUN { return o.in[0] / (o.in[0].dim(0) + 1); }
  });
  out.push_back({"decide_by_size",
                 PROPOSE {
                   int x = b.pick([&](int id) {
  return b.real(id) && b.rank(id) > 0 && !b.has_late(b.type(id)); });
                   if (x < 0 || !b.features.facts || row.name.empty() || !b.chance(0.2)) return false;
                   b.program.facts = true;
                   s.inputs = {x};
                   s.outputs = {b.value(b.type(x), -b.bound(x) - 1, b.bound(x) + 1)};
                   return true;
  }
  , RUN { return o.in[0].dim(0) > 3 ? o.in[0] * 0.5 : o.in[0] + 1; }
  });
  out.push_back({"sum_greater",  // what decisions are made by
                 PROPOSE {
                   int x = b.pick_real();
                   if (x < 0 || row.name.empty()) return false;
                   s.inputs = {x};
                   s.reals = {0.53 * static_cast<double>(b.below(5)) - 1.01};
                   s.outputs = {b.value({DType::bool_, {}}, 0, 1)};
                   return true;
  }
  , RUN { return sum(o.in[0]) > o.statement.reals[0]; }
  });
  out.push_back({"cast_to",
                 PROPOSE {
                   (void)b, (void)s, (void)row;
                   return false;  // written by the generator where a type is needed
  }
  , RUN { return cast(o.in[0], static_cast<DType>(o.number(0))); }
  });
  out.push_back({"fill_with",  // any shape from one number
                 PROPOSE {
                   (void)b, (void)s, (void)row;
                   return false;  // written by the generator where a type is needed
  }
  , RUN { return mean(o.in[0]) * 0.25 + zeros(Shape(o.shape()), o.real); }
  });
  return out;
  }

  std::vector<Row> all() {
    std::vector<Row> out;
    auto elementwise = [&](const char* name, int arity, const char* dtypes, Domain domain) -> Row& {
      out.push_back({name, propose_elementwise, run_elementwise, arity, dtypes, domain.low, domain.high});
      return out.back();
    };
#define STET_UNARY(name, dtypes, domain, ...) elementwise(#name, 1, #dtypes, domain).one = stet::name;
#define STET_BINARY(name, dtypes, domain, ...) elementwise(#name, 2, #dtypes, domain).two = stet::name;
#define STET_TERNARY(name, dtypes, domain, ...) elementwise(#name, 3, #dtypes, domain).three = stet::name;
#include "stet/ops/elementwise.def"
    for (auto kind : {reduce_rows, layout_rows, slice_rows, index_rows, product_rows, late_and_random_rows,
                      composite_rows, shape_rows, creation_rows, host_rows})
      for (Row& row : kind()) out.push_back(row);
    return out;
  }

  }  // namespace

  const std::vector<Row>& rows() {
    static const std::vector<Row> table = all();
    return table;
  }

  const Row& row(const std::string& name) {
    static const std::map<std::string, const Row*> by_name = [] {
      std::map<std::string, const Row*> out;
      for (const Row& r : rows()) out[r.name] = &r;
      return out;
    }();
    auto found = by_name.find(name);
    if (found == by_name.end()) throw std::logic_error("no row " + name);
    return *found->second;
  }

  }  // namespace stet::random_programs
