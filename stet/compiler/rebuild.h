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

}  // namespace stet
