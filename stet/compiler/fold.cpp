#include <cstring>
#include <optional>

#include "stet/base/dim_inside.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rebuild.h"
#include "stet/ir/expand_math.h"

namespace stet {
namespace {

constexpr std::int64_t most_elements = 16;  // larger constants are inputs, so a fold may not make them

ScalarValue read_element(DType dtype, const char* at) {
  ScalarBits bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(size_of(dtype)));
  return value_of(bits, dtype);
}

void append_element(std::string& bytes, DType dtype, const ScalarValue& value) {
  ScalarBits bits = bits_of(value, dtype);
  bytes.append(reinterpret_cast<const char*>(&bits), static_cast<std::size_t>(size_of(dtype)));
}

bool foldable(const Graph& graph, const Node& node) {
  if (node.op != &map_row || !node.type().shape.is_constant()) return false;
  if (node.type().shape.element_count().constant() > most_elements) return false;
  for (ValueId id : node.inputs)
    if (graph.node(id).op != &constant_row) return false;
  return true;
}

std::string folded(const Graph& graph, const Node& node) {
  const auto& map = node.attributes.as<MapAttributes>();
  // The polynomials that generated code uses, rounded as it rounds: folding must not change a bit.
  Expr body = expand_math(map.body);
  std::vector<std::int64_t> sizes = node.type().shape.sizes();
  std::int64_t count = node.type().shape.element_count().constant();
  std::string bytes;
  std::vector<std::int64_t> index(sizes.size(), 0);
  for (std::int64_t flat = 0; flat < count; ++flat) {
    std::int64_t rest = flat;
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      index[axis] = rest % sizes[axis];
      rest /= sizes[axis];
    }
    std::vector<ScalarValue> operands;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueType& type = graph.type(node.inputs[k]);
      std::vector<Dim> strides = dense_strides(type.shape);
      std::int64_t at = 0;
      for (std::size_t axis = 0; axis < sizes.size(); ++axis)
        if (int from = map.axes[k].axes[axis]; from >= 0)
          at += index[axis] * strides[static_cast<std::size_t>(from)].constant();
      const std::string& data = graph.node(node.inputs[k]).attributes.as<ConstantAttributes>().bytes;
      operands.push_back(read_element(type.dtype, data.data() + at * size_of(type.dtype)));
    }
    append_element(bytes, node.type().dtype, evaluate(body, operands, index, true));
  }
  return bytes;
}

/// The one element that a value consists of, however often it shows it; nothing if it is not known now.
std::optional<Expr> one_number(const Graph& graph, ValueId id) {
  while (graph.node(id).op->kind == Kind::layout && graph.node(id).op->view && graph.node(id).inputs.size() == 1)
    id = graph.node(id).inputs[0];
  const Node& node = graph.node(id);
  if (node.op != &constant_row || node.type().shape.element_count().constant() != 1) return std::nullopt;
  ScalarBits bits = 0;
  const std::string& bytes = node.attributes.as<ConstantAttributes>().bytes;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return constant_bits(bits, node.type().dtype);
}

/// Numbers that a map reads from memory become part of its body: a kernel has only so many buffers, and reading them is
/// not free.
void take_numbers(const Graph& graph, Node& node) {
  MapAttributes map = node.attributes.as<MapAttributes>();
  std::vector<Expr> operands;
  bool any = false;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    std::optional<Expr> number = one_number(graph, node.inputs[k]);
    any |= number.has_value();
    operands.push_back(number ? *number : operand(static_cast<int>(k), graph.type(node.inputs[k]).dtype));
  }
  if (!any) return;
  map.body = simplify(substitute(map.body, operands));
  drop_unused_inputs(map.body, node.inputs, map.axes);
  node.attributes = Attributes(view_of(map));
}

}  // namespace

Graph fold_constants(const Graph& old) {
  Rebuild to(old);
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    Node node = to.renamed(id);
    if (foldable(to.graph, node)) {
      to.set(id, to.graph.add_constant(node.type(), folded(to.graph, node)));
      continue;
    }
    if (node.op == &map_row) take_numbers(to.graph, node);
    to.put(id, std::move(node));
  }
  return to.finish();
}

}  // namespace stet
