#include "reference_rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>

namespace stet::random_programs {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t count_of(const Sizes& sizes) {
  std::int64_t n = 1;
  for (std::int64_t size : sizes) n *= size;
  return n;
}
Array shaped(const Array& like, Sizes sizes) {
  Array a;
  a.real = like.real;
  a.dtype = like.dtype;
  a.values.resize(static_cast<std::size_t>(count_of(sizes)));
  a.sizes = std::move(sizes);
  return a;
}
/// Calls f(position of the element along each axis, its number).
void for_each(const Sizes& sizes, const std::function<void(const Sizes&, std::size_t)>& f) {
  Sizes at(sizes.size(), 0);
  std::int64_t n = count_of(sizes);
  for (std::int64_t i = 0; i < n; ++i) {
    f(at, static_cast<std::size_t>(i));
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      if (++at[axis] < sizes[axis]) break;
      at[axis] = 0;
    }
  }
}
/// The element at a position; axes of size 1 and missing leading ones are repeated.
std::size_t offset(const Sizes& sizes, const Sizes& at) {
  std::int64_t n = 0;
  std::size_t skipped = at.size() - sizes.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) n = n * sizes[i] + (sizes[i] == 1 ? 0 : at[skipped + i]);
  return static_cast<std::size_t>(n);
}
const Real& element(const Array& a, const Sizes& at) { return a.values[offset(a.sizes, at)]; }

Sizes broadcast(const Sizes& a, const Sizes& b) {
  Sizes out = a.size() >= b.size() ? a : b;
  const Sizes& other = a.size() >= b.size() ? b : a;
  for (std::size_t i = 0; i < other.size(); ++i) {
    std::int64_t& size = out[out.size() - other.size() + i];
    if (size == 1) size = other[i];
  }
  return out;
}

bool near(double a, double b) { return a != b && std::abs(a - b) <= 1e-3 * (1 + std::abs(a)); }
void decide(const Array& operand, double a, double b) {
  if (!operand.real) return;
  if (near(a, b)) throw TooNear{"a comparison"};
}
/// At a kink the derivative is anyone's choice.
void kink(const Array& operand, double a, double b) {
  if (near(a, b) || (a == b && operand.depends)) throw TooNear{"a kink"};
}

// --- elementwise

using One = std::function<Real(const Real&, const Array&)>;
using Two = std::function<Real(const Real&, const Real&, const Array&, bool)>;

Real step(double value) { return Real(value); }

const std::map<std::string, One>& unary_rows() {
  static const std::map<std::string, One> table{
      {"negative", [](const Real& x, const Array&) { return Real(0) - x; }},
      {"square", [](const Real& x, const Array&) { return x * x; }},
      {"sqrt", [](const Real& x, const Array&) { return root(x); }},
      {"rsqrt", [](const Real& x, const Array&) { return inverse(root(x)); }},
      {"exp", [](const Real& x, const Array&) { return exponential(x); }},
      {"log", [](const Real& x, const Array&) { return logarithm(x); }},
      {"sin", [](const Real& x, const Array&) { return sine(x, 0); }},
      {"cos", [](const Real& x, const Array&) { return sine(x, 1); }},
      {"tanh", [](const Real& x, const Array&) { return hyperbolic_tangent(x); }},
      {"erf", [](const Real& x, const Array&) { return error_function(x); }},
      {"sigmoid", [](const Real& x, const Array&) { return logistic_function(x); }},
      {"silu", [](const Real& x, const Array&) { return x * logistic_function(x); }},
      {"gelu", [](const Real& x,
                  const Array&) { return x * Real(0.5) * (Real(1) + error_function(x * Real(std::sqrt(0.5)))); }},
      {"abs",
       [](const Real& x, const Array& a) {
         kink(a, plain(x), 0);
         return plain(x) < 0 ? Real(0) - x : x;
       }},
      {"relu",
       [](const Real& x, const Array& a) {
         kink(a, plain(x), 0);
         return plain(x) > 0 ? x : Real(0) * x;
       }},
      {"floor",
       [](const Real& x, const Array& a) {
         decide(a, plain(x), std::round(plain(x)));
         return step(std::floor(plain(x)));
       }},
      {"ceil",
       [](const Real& x, const Array& a) {
         decide(a, plain(x), std::round(plain(x)));
         return step(std::ceil(plain(x)));
       }},
      {"round",
       [](const Real& x, const Array& a) {
         decide(a, plain(x), std::floor(plain(x)) + 0.5);
         return step(std::nearbyint(plain(x)));
       }},
      {"logical_not", [](const Real& x, const Array&) { return step(plain(x) == 0); }},
  };
  return table;
}

const std::map<std::string, Two>& binary_rows() {
  auto compared = [](bool (*holds)(double, double)) -> Two {
    return [holds](const Real& x, const Real& y, const Array& a, bool same) {
      if (!same) decide(a, plain(x), plain(y));
      return step(holds(plain(x), plain(y)));
    };
  };
  static const std::map<std::string, Two> table{
      {"add", [](const Real& x, const Real& y, const Array&, bool) { return x + y; }},
      {"subtract", [](const Real& x, const Real& y, const Array&, bool) { return x - y; }},
      {"multiply", [](const Real& x, const Real& y, const Array&, bool) { return x * y; }},
      {"divide", [](const Real& x, const Real& y, const Array&, bool) { return x / y; }},
      {"pow", [](const Real& x, const Real& y, const Array&, bool) { return exponential(logarithm(x) * y); }},
      {"floor_divide",
       [](const Real& x, const Real& y, const Array& a, bool same) {
         if (!a.real && plain(y) == 0) return Real(0);
         double q = plain(x) / plain(y);
         if (!same) decide(a, q, std::round(q));
         return step(std::floor(q));
       }},
      {"mod",
       [](const Real& x, const Real& y, const Array& a, bool same) {
         if (!a.real && plain(y) == 0) return Real(0);
         double q = plain(x) / plain(y);
         if (!same) decide(a, q, std::round(q));
         return x - Real(std::floor(q)) * y;
       }},
      {"maximum",
       [](const Real& x, const Real& y, const Array& a, bool) {
         kink(a, plain(x), plain(y));
         return plain(x) >= plain(y) ? x : y;
       }},
      {"minimum",
       [](const Real& x, const Real& y, const Array& a, bool) {
         kink(a, plain(x), plain(y));
         return plain(x) <= plain(y) ? x : y;
       }},
      {"equal", compared([](double x, double y) { return x == y; })},
      {"not_equal", compared([](double x, double y) { return x != y; })},
      {"less", compared([](double x, double y) { return x < y; })},
      {"less_equal", compared([](double x, double y) { return x <= y; })},
      {"greater", compared([](double x, double y) { return x > y; })},
      {"greater_equal", compared([](double x, double y) { return x >= y; })},
      {"logical_and",
       [](const Real& x, const Real& y, const Array&, bool) { return step(plain(x) != 0 && plain(y) != 0); }},
      {"logical_or",
       [](const Real& x, const Real& y, const Array&, bool) { return step(plain(x) != 0 || plain(y) != 0); }},
  };
  return table;
}

bool gives_bool(const std::string& name) {
  return name == "equal" || name == "not_equal" || name.rfind("less", 0) == 0 || name.rfind("greater", 0) == 0;
}

Array unary(const std::string& name, const One& f, const Array& x) {
  Array out = shaped(x, x.sizes);
  for (std::size_t i = 0; i < x.values.size(); ++i) out.values[i] = f(x.values[i], x);
  if (name == "floor" || name == "ceil" || name == "round") out.uncertain = x.depends;
  return out;
}
Array binary(const std::string& name, const Two& f, const Array& x, const Array& y) {
  Array out = shaped(x, broadcast(x.sizes, y.sizes));
  bool same = x.serial >= 0 && x.serial == y.serial;
  Array both = x;
  both.depends |= y.depends;
  for_each(out.sizes,
           [&](const Sizes& at, std::size_t i) { out.values[i] = f(element(x, at), element(y, at), both, same); });
  if (gives_bool(name)) out.real = false, out.dtype = DType::bool_;
  if (name == "floor_divide") out.uncertain = both.depends;
  return out;
}

// --- structured

Array reduced(const std::string& name, const Statement& s, const Array& x) {
  std::int64_t axis = s.numbers[0];
  bool keep = s.numbers[1];
  Sizes sizes, kept;
  for (std::size_t i = 0; i < x.sizes.size(); ++i) {
    bool gone = axis < 0 || static_cast<std::int64_t>(i) == axis;
    kept.push_back(gone ? 1 : x.sizes[i]);
    if (!gone || keep) sizes.push_back(gone ? 1 : x.sizes[i]);
  }
  Array out = shaped(x, kept);
  std::vector<bool> begun(out.values.size(), false);
  double start = name == "prod" ? 1 : 0;
  for (Real& v : out.values) v = Real(start);
  for_each(x.sizes, [&](const Sizes& at, std::size_t i) {
    std::size_t to = offset(kept, at);
    Real& total = out.values[to];
    const Real& v = x.values[i];
    if (name == "prod") {
      total = total * v;
    } else if (name == "max" || name == "min") {
      if (begun[to]) kink(x, plain(v), plain(total));
      bool better = name == "max" ? plain(v) > plain(total) : plain(v) < plain(total);
      if (!begun[to] || better) total = v;
    } else {
      total = total + v;
    }
    begun[to] = true;
  });
  if ((name == "max" || name == "min") && count_of(x.sizes) == 0) throw NotWritten{"the largest of nothing"};
  if (name == "mean") {
    std::int64_t n = axis < 0 ? count_of(x.sizes) : x.sizes[static_cast<std::size_t>(axis)];
    if (n == 0) throw NotWritten{"the mean of nothing"};
    for (Real& v : out.values) v = v * Real(1 / static_cast<double>(n));
  }
  out.sizes = sizes;
  return out;
}

Array position(const std::string& name, const Array& x) {
  Sizes sizes(x.sizes.begin(), x.sizes.end() - 1);
  Array out = shaped(x, sizes);
  out.real = false;
  out.dtype = DType::i64;
  auto n = static_cast<std::size_t>(x.sizes.back());
  for (std::size_t row = 0; row < out.values.size(); ++row) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < n; ++i) {
      double a = plain(x.values[row * n + i]), b = plain(x.values[row * n + best]);
      if (near(a, b)) throw TooNear{"two that are largest"};
      if (name == "argmax" ? a > b : a < b) best = i;
    }
    out.values[row] = Real(static_cast<double>(best));
  }
  return out;
}

Array slice(const Statement& s, const Array& x) {
  Sizes sizes = x.sizes;
  std::int64_t n = sizes.back(), way = s.numbers[0];
  std::int64_t begin = way == 2 ? 0 : way == 3 ? n - 1 : 1, by = way == 2 ? 2 : way == 3 ? -1 : 1;
  std::int64_t count = way == 0 ? 1 : way == 1 ? n - 1 : way == 2 ? (n + 1) / 2 : n;
  sizes.back() = count;
  Array out = shaped(x, sizes);
  for_each(sizes, [&](const Sizes& at, std::size_t i) {
    Sizes from = at;
    from.back() = begin + by * at.back();
    out.values[i] = element(x, from);
  });
  if (way == 0) out.sizes.pop_back();
  return out;
}

/// Copies elements from where `from` says.
Array moved(const Array& x, const Sizes& sizes, const std::function<Sizes(const Sizes&)>& from) {
  Array out = shaped(x, sizes);
  for_each(sizes, [&](const Sizes& at, std::size_t i) {
    Sizes source = from(at);
    std::int64_t n = 0;
    for (std::size_t axis = 0; axis < source.size(); ++axis) n = n * x.sizes[axis] + source[axis];
    out.values[i] = x.values[static_cast<std::size_t>(n)];
  });
  return out;
}

Array concat(const Statement& s, const Array& x, const Array& y) {
  auto axis = static_cast<std::size_t>(s.numbers[0]);
  Sizes sizes = x.sizes;
  sizes[axis] += y.sizes[axis];
  Array out = shaped(x, sizes);
  for_each(sizes, [&](const Sizes& at, std::size_t i) {
    Sizes from = at;
    bool second = at[axis] >= x.sizes[axis];
    if (second) from[axis] -= x.sizes[axis];
    const Array& a = second ? y : x;
    std::int64_t n = 0;
    for (std::size_t k = 0; k < from.size(); ++k) n = n * a.sizes[k] + from[k];
    out.values[i] = a.values[static_cast<std::size_t>(n)];
  });
  return out;
}

void ensure_in_range(const Array& indices, std::int64_t size) {
  for (const Real& index : indices.values)
    if (plain(index) < 0 || plain(index) >= static_cast<double>(size)) throw std::domain_error("index out of range");
}
Array gather(const Array& x, const Array& indices) {
  ensure_in_range(indices, x.sizes[0]);
  Sizes sizes = indices.sizes;
  sizes.insert(sizes.end(), x.sizes.begin() + 1, x.sizes.end());
  return moved(x, sizes, [&](const Sizes& at) {
    Sizes first(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(indices.sizes.size()));
    std::int64_t n = 0;
    for (std::size_t k = 0; k < first.size(); ++k) n = n * indices.sizes[k] + first[k];
    Sizes from{static_cast<std::int64_t>(plain(indices.values[static_cast<std::size_t>(n)]))};
    from.insert(from.end(), at.begin() + static_cast<std::ptrdiff_t>(indices.sizes.size()), at.end());
    return from;
  });
}

Array matmul(const Statement& s, const Array& x, const Array& y) {
  bool turned = s.numbers[0];
  Sizes sizes = x.sizes;
  std::int64_t inner = sizes.back();
  sizes.back() = y.sizes[turned ? 0 : 1];
  Array out = shaped(x, sizes);
  for_each(sizes, [&](const Sizes& at, std::size_t i) {
    Real total(0);
    Sizes left = at;
    for (std::int64_t k = 0; k < inner; ++k) {
      left.back() = k;
      std::int64_t n = 0;
      for (std::size_t axis = 0; axis < left.size(); ++axis) n = n * x.sizes[axis] + left[axis];
      std::int64_t m = turned ? at.back() * y.sizes[1] + k : k * y.sizes[1] + at.back();
      total = total + x.values[static_cast<std::size_t>(n)] * y.values[static_cast<std::size_t>(m)];
    }
    out.values[i] = total * Real(0.125);
  });
  return out;
}

/// [b,h,w] with a filter of 12 numbers as [2,3,1,2], same padding.
Array conv2d(const Array& x, const Array& filter) {
  Sizes sizes = x.sizes;
  sizes.push_back(2);
  Array out = shaped(x, sizes);
  for_each(sizes, [&](const Sizes& at, std::size_t i) {
    Real total(0);
    for (std::int64_t r = 0; r < 2; ++r)
      for (std::int64_t c = 0; c < 3; ++c) {
        // Padding (kernel - 1) in all, the smaller half before.
        std::int64_t row = at[1] + r, column = at[2] + c - 1;
        if (row < 0 || row >= x.sizes[1] || column < 0 || column >= x.sizes[2]) continue;
        std::int64_t n = (at[0] * x.sizes[1] + row) * x.sizes[2] + column;
        total = total + x.values[static_cast<std::size_t>(n)] *
                            filter.values[static_cast<std::size_t>((r * 3 + c) * 2 + at[3])];
      }
    out.values[i] = total * Real(0.125);
  });
  return out;
}

Array softmax(const Array& given, bool logarithmic) {
  Array x = given;
  if (logarithmic)
    for (Real& v : x.values) v = v * Real(0.25);
  Array out = shaped(x, x.sizes);
  auto n = static_cast<std::size_t>(x.sizes.back());
  if (n == 0) throw NotWritten{"the largest of nothing"};
  for (std::size_t begin = 0; begin < x.values.size(); begin += n) {
    Real total(0);
    for (std::size_t i = begin; i < begin + n; ++i) total = total + exponential(x.values[i]);
    for (std::size_t i = begin; i < begin + n; ++i)
      out.values[i] = logarithmic ? x.values[i] - logarithm(total) : exponential(x.values[i]) / total;
  }
  return out;
}

Array layer_norm(const Array& x, const Array& gamma) {
  Array out = shaped(x, x.sizes);
  auto n = static_cast<std::size_t>(x.sizes.back());
  Real part(1 / static_cast<double>(n));
  for (std::size_t begin = 0; begin < x.values.size(); begin += n) {
    Real mean(0), variance(0);
    for (std::size_t i = 0; i < n; ++i) mean = mean + x.values[begin + i] * part;
    for (std::size_t i = 0; i < n; ++i) {
      Real d = x.values[begin + i] - mean;
      variance = variance + d * d * part;
    }
    Real scale = inverse(root(variance + Real(0.1)));
    for (std::size_t i = 0; i < n; ++i)
      out.values[begin + i] = (x.values[begin + i] - mean) * scale * gamma.values[i] + gamma.values[i];
  }
  return out;
}

Array sum_greater(const Statement& s, const Array& x) {
  double total = 0, magnitude = 1;
  for (const Real& v : x.values) total += plain(v), magnitude += std::abs(plain(v));
  if (std::isnan(total)) throw NotWritten{"numbers that are not finite"};
  if (std::abs(total - s.reals[0]) < 1e-3 * magnitude) throw TooNear{"a decision"};
  Array out = Array::scalar(total > s.reals[0]);
  out.real = false;
  out.dtype = DType::bool_;
  return out;
}

Array constant(const Sizes& sizes, double value) {
  Array out = shaped(Array{}, sizes);
  for (Real& v : out.values) v = Real(value);
  return out;
}

using Evaluate = std::function<Array(const Statement&, const std::vector<Array>&, const Sizes&)>;

const std::map<std::string, Evaluate>& layout_rows() {
  using In = const std::vector<Array>&;
  static const std::map<std::string, Evaluate> table{
      {"argmax", [](const Statement& s, In in, const Sizes&) { return position(s.name, in[0]); }},
      {"argmin", [](const Statement& s, In in, const Sizes&) { return position(s.name, in[0]); }},
      {"reshape",
       [](const Statement& s, In in, const Sizes& sizes) {
         bool inferred = s.numbers[0] != 0;
         if (inferred && std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
           throw std::domain_error("-1 beside a size of 0");
         Array out = in[0];
         std::int64_t last = out.sizes.back();
         out.sizes.pop_back();
         out.sizes.back() *= last;
         return out;
       }},
      {"transpose",
       [](const Statement&, In in, const Sizes&) {
         Sizes sizes(in[0].sizes.rbegin(), in[0].sizes.rend());
         return moved(in[0], sizes, [](const Sizes& at) { return Sizes(at.rbegin(), at.rend()); });
       }},
      {"broadcast_to",
       [](const Statement&, In in, const Sizes& sizes) {
         Array out = shaped(in[0], sizes);
         for_each(sizes, [&](const Sizes& at, std::size_t i) { out.values[i] = element(in[0], at); });
         return out;
       }},
      {"slice", [](const Statement& s, In in, const Sizes&) { return slice(s, in[0]); }},
      {"reverse",
       [](const Statement& s, In in, const Sizes&) {
         auto axis = static_cast<std::size_t>(s.numbers[0]);
         return moved(in[0], in[0].sizes, [&](const Sizes& at) {
           Sizes from = at;
           from[axis] = in[0].sizes[axis] - 1 - at[axis];
           return from;
         });
       }},
      {"concat", [](const Statement& s, In in, const Sizes&) { return concat(s, in[0], in[1]); }},
  };
  return table;
}

const std::map<std::string, Evaluate>& index_and_product_rows() {
  using In = const std::vector<Array>&;
  static const std::map<std::string, Evaluate> table{
      {"gather", [](const Statement&, In in, const Sizes&) { return gather(in[0], in[1]); }},
      {"one_hot",
       [](const Statement&, In in, const Sizes&) {
         Sizes sizes = in[0].sizes;
         sizes.push_back(3);
         Array out = shaped(Array{}, sizes);
         for_each(sizes, [&](const Sizes& at, std::size_t i) {
           out.values[i] = Real(plain(in[0].values[i / 3]) == static_cast<double>(at.back()));
         });
         return out;
       }},
      {"scatter_add",
       [](const Statement&, In in, const Sizes&) {
         Array updates = gather(in[0], in[1]), out = in[0];
         std::size_t width = in[0].sizes[0] ? in[0].values.size() / static_cast<std::size_t>(in[0].sizes[0]) : 0;
         for (std::size_t i = 0; i < in[1].values.size(); ++i)
           for (std::size_t k = 0; k < width; ++k) {
             Real& to = out.values[static_cast<std::size_t>(plain(in[1].values[i])) * width + k];
             to = to + updates.values[i * width + k] * Real(0.5);
           }
         return out;
       }},
      {"matmul", [](const Statement& s, In in, const Sizes&) { return matmul(s, in[0], in[1]); }},
      {"conv", [](const Statement&, In in, const Sizes&) { return conv2d(in[0], in[1]); }},
      {"nonzero",
       [](const Statement&, In in, const Sizes&) {
         Array out = shaped(Array{}, {0});
         for_each(in[0].sizes, [&](const Sizes& at, std::size_t i) {
           double v = plain(in[0].values[i]);
           if (near(v, 0.25)) throw TooNear{"a comparison"};
           if (v > 0.25) out.values.emplace_back(static_cast<double>(at[0]));
         });
         out.sizes = {static_cast<std::int64_t>(out.values.size())};
         return out;
       }},
  };
  return table;
}

const std::map<std::string, Evaluate>& composite_rows() {
  using In = const std::vector<Array>&;
  static const std::map<std::string, Evaluate> table{
      {"fit",
       [](const Statement& s, In in, const Sizes&) {
         Array out = in[0];
         for (Real& v : out.values) v = logistic_function(v) * Real(s.reals[0]) + Real(s.reals[1]);
         return out;
       }},
      {"softmax", [](const Statement& s, In in, const Sizes&) { return softmax(in[0], s.numbers[0] != 0); }},
      {"layer_norm", [](const Statement&, In in, const Sizes&) { return layer_norm(in[0], in[1]); }},
      {"sparse_cross_entropy",
       [](const Statement&, In in, const Sizes&) {
         Array x = in[1];
         for (Real& v : x.values) v = v * Real(4);  // softmax() takes a quarter
         Array all = softmax(x, true), out = shaped(Array{}, in[0].sizes);
         auto n = static_cast<std::size_t>(in[1].sizes.back());
         ensure_in_range(in[0], in[1].sizes.back());
         for (std::size_t i = 0; i < out.values.size(); ++i)
           out.values[i] = Real(0) - all.values[i * n + static_cast<std::size_t>(plain(in[0].values[i]))];
         return out;
       }},
      {"stack",
       [](const Statement& s, In in, const Sizes&) {
         auto axis = static_cast<std::size_t>(s.numbers[0]);
         Sizes sizes = in[0].sizes;
         sizes.insert(sizes.begin() + s.numbers[0], static_cast<std::int64_t>(in.size()));
         Array out = shaped(in[0], sizes);
         for_each(sizes, [&](const Sizes& at, std::size_t i) {
           Sizes from = at;
           from.erase(from.begin() + static_cast<std::ptrdiff_t>(axis));
           out.values[i] = element(in[static_cast<std::size_t>(at[axis])], from);
         });
         return out;
       }},
  };
  return table;
}

const std::map<std::string, Evaluate>& other_rows() {
  using In = const std::vector<Array>&;
  static const std::map<std::string, Evaluate> table{
      {"expand_dims",
       [](const Statement& s, In in, const Sizes&) {
         Array out = in[0];
         out.sizes.insert(out.sizes.begin() + s.numbers[0], 1);
         return out;
       }},
      {"squeeze",
       [](const Statement&, In in, const Sizes&) {
         Array out = in[0];
         out.sizes.pop_back();
         return out;
       }},
      {"cast",
       [](const Statement&, In in, const Sizes&) {
         Array out = in[0];
         out.real = true;
         return out;
       }},
      {"cast_to",
       [](const Statement& s, In in, const Sizes&) {
         Array out = in[0];
         out.dtype = static_cast<DType>(s.numbers[0]);
         out.real = is_floating(out.dtype);
         for (Real& v : out.values) {
           if (near(plain(v), std::round(plain(v)))) throw TooNear{"a conversion"};
           v = Real(out.dtype == DType::bool_ ? plain(v) != 0 : std::trunc(plain(v)));
         }
         return out;
       }},
      {"fill", [](const Statement& s, In, const Sizes& sizes) { return constant(sizes, s.reals[0]); }},
      {"arange",
       [](const Statement&, In, const Sizes& sizes) {
         Array out = constant(sizes, 0);
         for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = Real(0.125 * static_cast<double>(i));
         return out;
       }},
      {"divide_by_size",
       [](const Statement&, In in, const Sizes&) {
         Array out = in[0];
         for (Real& v : out.values) v = v * Real(1 / static_cast<double>(in[0].sizes[0] + 1));
         return out;
       }},
      {"decide_by_size",
       [](const Statement&, In in, const Sizes&) {
         Array out = in[0];
         for (Real& v : out.values) v = in[0].sizes[0] > 3 ? v * Real(0.5) : v + Real(1);
         return out;
       }},
      {"sum_greater", [](const Statement& s, In in, const Sizes&) { return sum_greater(s, in[0]); }},
      {"fill_with",
       [](const Statement&, In in, const Sizes& sizes) {
         if (in[0].values.empty()) throw NotWritten{"the mean of nothing"};
         Real total(0);
         for (const Real& v : in[0].values) total = total + v;
         Array out = shaped(Array{}, sizes);
         for (Real& v : out.values) v = total * Real(0.25 / static_cast<double>(in[0].values.size()));
         return out;
       }},
  };
  return table;
}

}  // namespace

Sizes broadcast_sizes(const Sizes& a, const Sizes& b) { return broadcast(a, b); }
std::vector<Real> broadcast_elements(const Array& a, const Sizes& sizes) {
  std::vector<Real> out(static_cast<std::size_t>(count_of(sizes)));
  for_each(sizes, [&](const Sizes& at, std::size_t i) { out[i] = element(a, at); });
  return out;
}

Array evaluate_row(const std::string& name, const Statement& s, const std::vector<Array>& in,
                   const std::vector<std::int64_t>& sizes) {
  if (auto f = unary_rows().find(name); f != unary_rows().end()) return unary(name, f->second, in[0]);
  if (auto f = binary_rows().find(name); f != binary_rows().end()) {
    if (in.size() == 2) return binary(name, f->second, in[0], in[1]);
    Array number = Array::scalar(in[0].real ? s.reals[0] : std::trunc(s.reals[0]));
    number.real = in[0].real;
    return binary(name, f->second, in[0], number);
  }
  if (name == "where") {
    Array out = shaped(in[1], broadcast(broadcast(in[0].sizes, in[1].sizes), in[2].sizes));
    for_each(out.sizes, [&](const Sizes& at, std::size_t i) {
      out.values[i] = plain(element(in[0], at)) != 0 ? element(in[1], at) : element(in[2], at);
    });
    return out;
  }
  if (name == "sum" || name == "mean" || name == "prod" || name == "max" || name == "min")
    return reduced(name, s, in[0]);
  for (const auto* table : {&layout_rows(), &index_and_product_rows(), &composite_rows(), &other_rows()})
    if (auto f = table->find(name); f != table->end()) return f->second(s, in, sizes);
  return evaluate_elementwise(name, s, in);
}

}  // namespace stet::random_programs
