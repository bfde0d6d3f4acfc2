// A graph's meaning, element by element: the oracle of the random-graph test. It shares the rows' inference and views
// and the reference evaluation of expressions with the compiler, and nothing of passes, lowering, kernels or runtime.
#pragma once
#include <map>
#include <sstream>

#include "stet/base/dim_inside.h"
#include "stet/ir/expand_math.h"
#include "tests/compiler/graph_harness.h"

namespace stet {

/// The numbers of an attribute, from the attributes' text: those of rows are private to them.
inline std::vector<std::int64_t> numbers_of(const Node& node, const std::string& name) {
  std::string all = ", " + node.attributes.str();
  std::size_t at = all.find(", " + name + "=");
  if (at == std::string::npos) throw std::runtime_error(text("no ", name, " in ", all));
  at += name.size() + 3;
  bool list = all[at] == '[';
  std::size_t end = all.find(list ? ']' : ',', at);
  std::istringstream part(all.substr(at + list, end == std::string::npos ? end : end - at - list));
  std::vector<std::int64_t> out;
  for (std::string number; std::getline(part, number, ',');) out.push_back(std::stoll(number));
  return out;
}

/// Evaluates a graph of maps, reductions, views, concat, gather, scatter, convolution, nonzero, branches, loops and
/// plain matmul with exact sums.
class ReferenceRun {
 public:
  ReferenceRun(const Graph& graph, Bindings bindings) : graph_(graph), bindings_(std::move(bindings)) {}

  std::vector<Array> run(std::span<const Array> inputs) {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.nodes.size()); ++id) values_.push_back(value(id, inputs));
    std::vector<Array> out;
    for (ValueId id : graph_.results) out.push_back(values_[static_cast<std::size_t>(id)]);
    return out;
  }

 private:
  const Array& in(const Node& node, std::size_t k) const { return values_[static_cast<std::size_t>(node.inputs[k])]; }

  static std::vector<std::int64_t> position(std::int64_t flat, const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> out(sizes.size());
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      out[axis] = flat % sizes[axis];
      flat /= sizes[axis];
    }
    return out;
  }
  static std::int64_t flat(const std::vector<std::int64_t>& at, const std::vector<std::int64_t>& sizes) {
    std::int64_t out = 0;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) out = out * sizes[axis] + at[axis];
    return out;
  }

  Array value(ValueId id, std::span<const Array> inputs) {
    const Node& node = graph_.node(id);
    if (node.op == &input_row) return inputs[static_cast<std::size_t>(node.attributes.as<InputAttributes>().number)];
    if (node.op == &nonzero_row) return nonzero(node);
    if (node.op == &cond_row) return branch(id, node);
    if (node.op == &loop_row) return loop(id, node);
    if (node.op == &part_row)
      return tuples_.at(node.inputs[0])[static_cast<std::size_t>(node.attributes.as<PartAttributes>().number)];
    Array out = Array::zeros(node.type().dtype, node.type().shape.evaluate(bindings_));
    if (node.op == &constant_row) {
      const std::string& bytes = node.attributes.as<ConstantAttributes>().bytes;
      out.bytes.assign(bytes.begin(), bytes.end());
    } else if (node.op == &map_row) {
      map(node, out);
    } else if (node.op->kind == Kind::reduce) {
      reduce(node, out);
    } else if (node.op->kind == Kind::contract) {
      contract(node, out);
    } else if (node.op->view) {
      view(node, out);
    } else if (node.op == &concat_row) {
      concat(node, out, axis_of(node, out));
    } else if (node.op == &gather_row) {
      gather(node, out, axis_of(node, out));
    } else if (node.op == &scatter_add_row) {
      scatter_add(node, out, axis_of(node, out));
    } else if (node.op == &conv_row) {
      convolve(node, out);
    } else {
      throw std::runtime_error(text("the reference does not know ", node.op->name));
    }
    return out;
  }

  void map(const Node& node, Array& out) {
    const auto& map = node.attributes.as<MapAttributes>();
    Expr body = expand_math(map.body);
    for (std::int64_t i = 0; i < out.count(); ++i) {
      std::vector<std::int64_t> at = position(i, out.sizes);
      std::vector<ScalarValue> operands;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        std::vector<std::int64_t> from(in(node, k).sizes.size(), 0);
        for (std::size_t axis = 0; axis < at.size(); ++axis)
          if (int source = map.axes[k].axes[axis]; source >= 0) from[static_cast<std::size_t>(source)] = at[axis];
        operands.push_back(in(node, k).value(flat(from, in(node, k).sizes)));
      }
      out.set(i, evaluate(body, operands, at, true));
    }
  }

  /// One element more for an accumulator; of argmax and argmin, `best` is the value found so far.
  static void take(Combine combine, DType type, ScalarValue& sum, ScalarValue& best, ScalarValue v, std::int64_t at) {
    bool real = is_floating(type);
    auto above = [&](ScalarValue a, ScalarValue b) {
      return real ? a.real > b.real || (a.real != a.real && b.real == b.real) : a.integer > b.integer;
    };
    auto below = [&](ScalarValue a, ScalarValue b) {
      return real ? a.real < b.real || (a.real != a.real && b.real == b.real) : a.integer < b.integer;
    };
    bool first = at == 0;
    auto wrapped = [](std::int64_t a, std::int64_t b, bool multiply) {
      auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
      return static_cast<std::int64_t>(multiply ? x * y : x + y);
    };
    switch (combine) {
      case Combine::sum:
        sum = {sum.real + v.real, wrapped(sum.integer, v.integer, false)};
        break;
      case Combine::product:
        sum = first ? v : ScalarValue{sum.real * v.real, wrapped(sum.integer, v.integer, true)};
        break;
      case Combine::maximum:
        if (first || above(v, sum)) sum = v;
        break;
      case Combine::minimum:
        if (first || below(v, sum)) sum = v;
        break;
      default:
        if (first || (combine == Combine::argmax ? above(v, best) : below(v, best))) {
          best = v;
          sum.integer = at;
        }
    }
  }

  void reduce(const Node& node, Array& out) {
    const auto& attributes = node.attributes.as<ReduceAttributes>();
    const Array& x = in(node, 0);
    DType accumulator = node.op->accumulator(x.dtype);
    std::vector<ScalarValue> sums(static_cast<std::size_t>(out.count())), best(sums.size());
    std::vector<std::int64_t> taken(sums.size(), 0);
    bool product = node.op->combine == Combine::product;
    if (product) std::fill(sums.begin(), sums.end(), ScalarValue{1, 1});
    for (std::int64_t i = 0; i < x.count(); ++i) {
      std::vector<std::int64_t> at = position(i, x.sizes), to;
      for (std::size_t axis = 0; axis < at.size(); ++axis) {
        bool gone =
            std::find(attributes.axes.begin(), attributes.axes.end(), static_cast<int>(axis)) != attributes.axes.end();
        if (!gone) to.push_back(at[axis]);
        if (gone && attributes.keepdims) to.push_back(0);
      }
      auto place = static_cast<std::size_t>(flat(to, out.sizes));
      ScalarValue v = convert(x.value(i), x.dtype, accumulator);
      take(node.op->combine, accumulator, sums[place], best[place], v, taken[place]++);
    }
    bool position = node.op->combine == Combine::argmax || node.op->combine == Combine::argmin;
    for (std::int64_t i = 0; i < out.count(); ++i) {
      ScalarValue sum = sums[static_cast<std::size_t>(i)];
      if (position) {
        out.set(i, sum);
        continue;
      }
      sum = value_of(bits_of(sum, accumulator), accumulator);
      if (node.op->divides_by_count) {
        ScalarValue count =
            convert({.integer = x.count() / std::max<std::int64_t>(out.count(), 1)}, DType::i64, accumulator);
        sum = value_of(bits_of({.real = sum.real / count.real}, accumulator), accumulator);
      }
      out.set(i, convert(sum, accumulator, out.dtype));
    }
  }

  void contract(const Node& node, Array& out) {
    const auto& attributes = node.attributes.as<ContractAttributes>();
    const Array &a = in(node, 0), &b = in(node, 1);
    std::int64_t k_size = a.sizes[attributes.transpose_left ? 0 : 1];
    for (std::int64_t i = 0; i < out.count(); ++i) {
      std::int64_t m = i / out.sizes[1], n = i % out.sizes[1];
      ScalarValue sum;
      for (std::int64_t k = 0; k < k_size; ++k) {
        ScalarValue x = a.value(attributes.transpose_left ? k * a.sizes[1] + m : m * a.sizes[1] + k);
        ScalarValue y = b.value(attributes.transpose_right ? n * b.sizes[1] + k : k * b.sizes[1] + n);
        sum.real += x.real * y.real;
        sum.integer += x.integer * y.integer;
      }
      out.set(i, sum);
    }
  }

  void view(const Node& node, Array& out) {
    const Array& x = in(node, 0);
    const Shape& shape = graph_.type(node.inputs[0]).shape;
    std::optional<Layout> layout =
        node.op->view({shape, dense_layout(shape), node.type().shape, node.attributes.view()});
    for (std::int64_t i = 0; i < out.count(); ++i) {
      std::vector<std::int64_t> at = position(i, out.sizes);
      std::int64_t from = layout->offset.evaluate(bindings_);
      for (std::size_t axis = 0; axis < at.size(); ++axis) from += at[axis] * layout->strides[axis].evaluate(bindings_);
      out.set(i, x.value(from));
    }
  }

  void concat(const Node& node, Array& out, int axis) {
    std::int64_t start = 0;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Array& part = in(node, k);
      for (std::int64_t i = 0; i < part.count(); ++i) {
        std::vector<std::int64_t> at = position(i, part.sizes);
        at[static_cast<std::size_t>(axis)] += start;
        out.set(flat(at, out.sizes), part.value(i));
      }
      start += part.sizes[static_cast<std::size_t>(axis)];
    }
  }

  void gather(const Node& node, Array& out, int axis) {
    const Array &x = in(node, 0), &indices = in(node, 1);
    for (std::int64_t i = 0; i < out.count(); ++i) {
      std::vector<std::int64_t> at = position(i, out.sizes), from = at;
      auto moved = static_cast<std::size_t>(axis);
      from[moved] = indices.value(at[moved]).integer;
      out.set(i, x.value(flat(from, x.sizes)));
    }
  }

  static int axis_of(const Node& node, const Array& out) {
    auto axis = static_cast<int>(numbers_of(node, "axis")[0]);
    return axis < 0 ? axis + static_cast<int>(out.sizes.size()) : axis;
  }

  void scatter_add(const Node& node, Array& out, int axis) {
    const Array &x = in(node, 0), &indices = in(node, 1), &updates = in(node, 2);
    out = x;
    for (std::int64_t i = 0; i < updates.count(); ++i) {
      std::vector<std::int64_t> at = position(i, updates.sizes);
      auto moved = static_cast<std::size_t>(axis);
      at[moved] = indices.value(at[moved]).integer;
      std::int64_t to = flat(at, out.sizes);
      ScalarValue a = out.value(to), b = updates.value(i);
      out.set(to, {a.real + b.real, a.integer + b.integer});
    }
  }

  void convolve(const Node& node, Array& out) {
    const Array &x = in(node, 0), &filter = in(node, 1);
    std::vector<std::int64_t> strides = numbers_of(node, "strides"), low = numbers_of(node, "low"),
                              dilations = numbers_of(node, "dilations");
    for (std::int64_t i = 0; i < out.count(); ++i) {
      std::vector<std::int64_t> at = position(i, out.sizes);
      double sum = 0;
      for (std::int64_t row = 0; row < filter.sizes[0]; ++row)
        for (std::int64_t column = 0; column < filter.sizes[1]; ++column) {
          std::int64_t y = at[1] * strides[0] + row * dilations[0] - low[0];
          std::int64_t z = at[2] * strides[1] + column * dilations[1] - low[1];
          if (y < 0 || y >= x.sizes[1] || z < 0 || z >= x.sizes[2]) continue;
          for (std::int64_t c = 0; c < x.sizes[3]; ++c)
            sum +=
                x.real(flat({at[0], y, z, c}, x.sizes)) * filter.real(flat({row, column, c, 0, at[3]}, filter.sizes));
        }
      out.set(i, {.real = sum});
    }
  }

  /// Its size becomes known here.
  Array nonzero(const Node& node) {
    const Array& x = in(node, 0);
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < x.count(); ++i)
      if (x.real(i) != 0)
        for (std::int64_t at : position(i, x.sizes)) found.push_back(at);
    auto rank = static_cast<std::int64_t>(x.sizes.size());
    std::int64_t count = rank > 0 ? static_cast<std::int64_t>(found.size()) / rank : x.real(0) != 0;
    bindings_.bind(*node.type().shape[0].as_symbol(), count);
    return Array::filled(DType::i64, {count, rank}, [&](std::int64_t i) { return found[static_cast<std::size_t>(i)]; });
  }

  Array branch(ValueId id, const Node& node) {
    const auto& sides = node.attributes.as<BranchAttributes>();
    std::vector<Array> captured;
    for (std::size_t k = 1; k < node.inputs.size(); ++k) captured.push_back(in(node, k));
    const Graph& side = in(node, 0).value(0).integer ? *sides.yes : *sides.no;
    std::vector<Array> results = ReferenceRun(side, bindings_).run(captured);
    tuples_[id] = results;
    return results[0];
  }

  static Array element(const Array& sequence, std::int64_t place) {
    Array out = Array::zeros(sequence.dtype, {sequence.sizes.begin() + 1, sequence.sizes.end()});
    for (std::int64_t i = 0; i < out.count(); ++i) out.set(i, sequence.value(place * out.count() + i));
    return out;
  }

  Array loop(ValueId id, const Node& node) {
    const auto& loop = node.attributes.as<LoopAttributes>();
    std::optional<std::int64_t> known;
    if (loop.count == LoopAttributes::by_size) known = loop.turns.evaluate(bindings_);
    if (loop.count == LoopAttributes::by_value) known = in(node, 0).value(0).integer;
    if (known) known = std::max<std::int64_t>(*known, 0);
    std::vector<Array> results;
    for (int i = loop.first_carried(); i < loop.first_sequence(); ++i)
      results.push_back(in(node, static_cast<std::size_t>(i)));
    std::vector<std::map<std::int64_t, Array>> stacks(node.results.size() - results.size());  // by place
    std::int64_t turn = 0;
    for (; !known || turn < *known; ++turn) {
      const std::int64_t place = known && loop.reverse ? *known - 1 - turn : turn;
      std::vector<Array> given(results.begin(), results.begin() + loop.carried);
      for (int i = loop.first_sequence(); i < loop.first_captured(); ++i)
        given.push_back(element(in(node, static_cast<std::size_t>(i)), place));
      given.push_back(Array::filled(DType::i64, {}, [&](std::int64_t) { return place; }));
      for (std::size_t i = static_cast<std::size_t>(loop.first_captured()); i < node.inputs.size(); ++i)
        given.push_back(in(node, i));
      if (loop.condition && !ReferenceRun(*loop.condition, bindings_).run(given)[0].value(0).integer) break;
      std::vector<Array> left = ReferenceRun(*loop.body, bindings_).run(given);
      for (std::size_t r = 0; r < left.size(); ++r)
        (r < results.size() ? results[r] : stacks[r - results.size()][place]) = left[r];
    }
    if (loop.count != LoopAttributes::by_size && !stacks.empty()) bindings_.bind(*loop.turns.as_symbol(), turn);
    for (const auto& stack : stacks) {
      const ValueType& type = node.results[results.size()];
      Array all = Array::zeros(type.dtype, type.shape.evaluate(bindings_));
      for (const auto& [place, one] : stack)
        for (std::int64_t i = 0; i < one.count(); ++i) all.set(place * one.count() + i, one.value(i));
      results.push_back(std::move(all));
    }
    tuples_[id] = results;
    return results[0];
  }

  const Graph& graph_;
  Bindings bindings_;
  std::vector<Array> values_;
  std::map<ValueId, std::vector<Array>> tuples_;
};

}  // namespace stet
