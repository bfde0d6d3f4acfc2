// Replay: the nodes of a graph run through the door, in order. How a traced function is run under a tape, inside of
// another trace, and for many examples at once. Private to core/.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "stet/core/flat_loop.h"
#include "stet/core/host_code_run.h"
#include "stet/core/tensor.h"
#include "stet/ir/graph.h"

namespace stet {

/// By node: its results, where they are known without running it.
using GivenResults = std::function<std::optional<std::vector<Tensor>>(ValueId)>;

class Replay {
 public:
  /// `sizes` stand for the symbols of the graph's scope.
  Replay(const Graph& graph, std::span<const Tensor> inputs, std::vector<Dim> sizes, Effects effects,
         GivenResults given = {});
  virtual ~Replay() = default;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// The graph's results.
  std::vector<Tensor> run();

 protected:
  virtual void run_node(ValueId id, const Node& node);
  /// The results of a side of a branch, of a turn of a loop, of a condition.
  virtual std::vector<Tensor> run_child(const Graph& child, std::span<const Tensor> inputs);

  const Graph& graph() const { return graph_; }
  const std::vector<Dim>& sizes() const { return sizes_; }
  Effects effects() const { return effects_; }
  const Tensor& at(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  std::vector<Tensor> inputs_of(const Node& node, std::size_t first = 0) const;
  /// What a node gives: its value, or the values of a tuple.
  void set(ValueId id, std::vector<Tensor> results);
  /// Sizes that depend on values are known now. Results may have `further` axes in front.
  void learn_sizes(const Node& node, const std::vector<Tensor>& results, int further = 0);
  Attributes sized_attributes(const Node& node) const;
  /// States the checks of sizes that are known by now (some depend on values): before ops ask for the same, in words of
  /// their own.
  void state_known_checks();

 private:
  bool is_known(const SizeCheck& check) const;
  void state(const SizeCheck& check) const;
  bool take(ValueId id, const Node& node);
  Tensor alias_of(const Node& node) const;
  Tensor value_of(const Node& node) const;
  void call_node(const Node& node, const Attributes& attributes, std::span<Tensor> results) const;
  bool left_out(ValueId id, const Node& node);
  std::vector<Tensor> run_branch(const Node& node);
  std::vector<Tensor> run_loop(const Node& node);

  const Graph& graph_;
  std::vector<Dim> sizes_;
  const Effects effects_;
  std::set<ValueId> left_out_;
  const GivenResults given_;
  std::vector<Tensor> values_;
  std::vector<bool> void_;
  std::unordered_map<ValueId, std::vector<Tensor>> tuples_;
  std::vector<bool> stated_;  // by check
  bool learned_ = true;       // sizes, since checks were looked at
};

/// The symbols of the graph's scope, each standing for itself.
std::vector<Dim> own_symbols(const Graph& graph);
/// A loop node as it is run: its counts and flags, without operands and children.
FlatLoop loop_of(const Node& node, const std::vector<Dim>& sizes);

/// Runs a graph. `inputs` are the graph's; sizes follow from theirs.
std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs);
/// The same where the graph's effects may have happened before.
std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs, Effects effects);
/// The same in the trace that the graph is from, but `given` may have the results of a node: it is not run then, and
/// tapes are told that it was.
std::vector<Tensor> replay_with(const Graph& graph, std::span<const Tensor> inputs, const GivenResults& given);

}  // namespace stet
