// How passes make a new graph out of an old one.
#pragma once
#include <vector>

#include "stet/ir/graph.h"

namespace stet {

/// Copies a graph node by node. A pass decides for each old node what stands for it in the new graph.
class Rebuild {
 public:
  explicit Rebuild(const Graph& old) : old_(old), to_(old.nodes.size(), -1) {
    graph.scope = old.scope;
    graph.checks = old.checks;
    graph.raises = old.raises;
    graph.raised_text = old.raised_text;
    graph.updates = old.updates;
    graph.inputs.resize(old.inputs.size(), -1);
  }
  Graph graph;

  /// What stands for an old value.
  ValueId at(ValueId id) const { return to_[static_cast<std::size_t>(id)]; }
  void set(ValueId id, ValueId to) { to_[static_cast<std::size_t>(id)] = to; }
  /// The old node with its inputs renamed; not added.
  Node renamed(ValueId id) const {
    Node node = old_.node(id);
    for (ValueId& input : node.inputs) input = at(input);
    return node;
  }
  /// Adds a node that stands for the old one. An input keeps its place among the arguments.
  void put(ValueId id, Node node) {
    bool input = node.op == &input_row;
    ValueId to = graph.add(std::move(node));
    if (input) graph.inputs[static_cast<std::size_t>(graph.node(to).attributes.as<InputAttributes>().number)] = to;
    set(id, to);
  }
  void copy(ValueId id) { put(id, renamed(id)); }
  Graph finish() {
    for (ValueId id : old_.results) graph.results.push_back(at(id));
    return std::move(graph);
  }

 private:
  const Graph& old_;
  std::vector<ValueId> to_;
};

/// By node: a result that is asked for is made of it, somebody needs a size that it finds out, or running it matters.
std::vector<bool> needed_nodes(const Graph& graph, const std::vector<bool>& asked);

/// Every loop walks its own axis of the operand: element for element.
inline bool is_identity(const AxisMap& axes) {
  for (int axis = 0; axis < axes.rank; ++axis)
    if (axes.axes[static_cast<std::size_t>(axis)] != axis) return false;
  return true;
}

/// Drops the inputs that a body does not read. The gradient of a sum, say, comes with both terms: they would be kept
/// for it, and could not be fused with what really uses them.
inline void drop_unused_inputs(Expr& body, std::vector<ValueId>& inputs, std::vector<AxisMap>& axes) {
  std::vector<bool> used(inputs.size(), false);
  std::vector<DType> types(inputs.size(), DType::f32);
  for (Expr part : topological(body))
    if (part.is(Primitive::operand)) {
      used[static_cast<std::size_t>(part->number)] = true;
      types[static_cast<std::size_t>(part->number)] = part.dtype();
    }
  std::vector<Expr> renumbered;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    renumbered.push_back(operand(static_cast<int>(kept), types[i]));
    if (!used[i]) continue;
    inputs[kept] = inputs[i];
    axes[kept++] = axes[i];
  }
  if (kept == inputs.size()) return;
  inputs.resize(kept);
  axes.resize(kept);
  body = substitute(body, renumbered);
}

}  // namespace stet
