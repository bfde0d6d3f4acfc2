// Nodes in groups, of which a pass makes one node each.
#pragma once
#include <cstdint>
#include <vector>

#include "stet/ir/graph.h"

namespace stet {

/// Every node is at first in a group of its own. Groups are what the new graph has as nodes, so that none may depend on
/// itself through another.
class Grouping {
 public:
  explicit Grouping(const Graph& graph);

  std::size_t group(ValueId id) const { return group_[static_cast<std::size_t>(id)]; }
  /// Ascending; none of a group that went into another.
  const std::vector<ValueId>& members(std::size_t group) const { return members_[group]; }
  const std::vector<int>& users(ValueId id) const { return users_[static_cast<std::size_t>(id)]; }
  /// Somebody outside of its group uses it.
  bool is_result(ValueId id) const;
  /// What the members are made of, one after the other.
  std::vector<const char*> ops(std::size_t group) const;

  /// As one they would depend on themselves: something outside of both depends on one of them, and the other on it.
  /// True also where the search takes too long.
  bool would_circle(std::size_t a, std::size_t b) { return path_through_others(a, b) || path_through_others(b, a); }
  /// The members of `a` become members of `b`.
  void unite(std::size_t a, std::size_t b);
  /// Groups so that inputs come first; otherwise where their last member stood.
  std::vector<std::size_t> sorted() const;

 private:
  bool path_through_others(std::size_t from, std::size_t to);

  const Graph& graph_;
  std::vector<std::vector<int>> users_;
  std::vector<std::size_t> group_;             // of each node
  std::vector<std::vector<ValueId>> members_;  // of each group
  std::vector<int> seen_;                      // by group: the search that saw it last
  int search_ = 0;
};

/// How a value lies in memory.
enum class Lie : std::uint8_t {
  dense,  // from one element to the next
  rows,   // the same along the last axis, with gaps between rows: columns of a matrix
  apart   // a view that jumps from element to element
};
Lie lie_of(const Graph& graph, ValueId id);
inline bool lies_dense(const Graph& graph, ValueId id) { return lie_of(graph, id) == Lie::dense; }

}  // namespace stet
