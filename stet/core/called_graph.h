// CalledGraph: a graph as eager code calls it. Without tapes it is a compiled program; a tape sees it as one op, with a
// second program for its gradient. Private to core/.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/lock.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/ir/graph.h"
#include "stet/runtime/program.h"

namespace stet {

/// The last sizes that a program was bound to: binding evaluates every size and plans memory. Of small programs there
/// are more, as a training on batches of many lengths comes back to each of them.
class RecentBindings {
 public:
  std::shared_ptr<const BoundProgram> bound_to(const Program& program, const Bindings& bindings);
  /// The one that was asked for last; null: none was.
  std::shared_ptr<const BoundProgram> latest() const;
  std::size_t count() const;

 private:
  mutable Lock guard_;
  std::vector<std::pair<Bindings, std::shared_ptr<const BoundProgram>>> recent_;  // the latest last
};

/// What the two programs of a graph under a tape cost and keep, for explain().
struct GradientPairFacts {
  std::size_t forward_steps = 0, backward_steps = 0, kept = 0;
  double milliseconds = 0;  // to make both
  std::uint64_t calls = 0;
};

/// Problem if the sizes of the first inputs break a check of the graph. Ops that no result needs are in no program, but
/// what they ask of sizes counts as it does eagerly.
void test_sizes(const Graph& graph, std::span<const Tensor> inputs);

/// By input of a graph: a node or a result is it.
std::vector<bool> used_inputs(const Graph& graph);

/// Of a called graph's record on a tape, what its gradient reads; null of any other op.
std::shared_ptr<const struct GradientReads> reads_of_called_graph(const OpDef& op, const AttributesView& attributes);

class CalledGraph : public std::enable_shared_from_this<CalledGraph> {
 public:
  /// `variables`: by input, the Variable whose value comes in there, or an undefined one. The first `differentiable`
  /// results have gradients; what follows are next values of state, which tapes do not see.
  CalledGraph(std::string name, Graph graph, std::vector<Variable> variables, std::size_t differentiable)
      : name_(std::move(name)),
        graph_(std::move(graph)),
        variables_(std::move(variables)),
        differentiable_(differentiable),
        used_(used_inputs(graph_)) {}

  /// Runs it on tensors as tapes know them (of a Variable, what it holds), and tells the tapes. Gives all results, in
  /// fresh memory. With one tape that follows an input, a forward and a backward program are made once for all sizes,
  /// and only what the backward one needs is kept; several tapes (higher derivatives), and graphs whose sizes depend on
  /// values, see the ops one by one.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);

  std::vector<GradientPairFacts> pairs() const;

 private:
  friend struct GradientPair;
  bool is_variable(std::size_t input) const { return input < variables_.size() && variables_[input].defined(); }
  std::vector<Tensor> run_plain(const std::vector<Tensor>& inputs);
  std::shared_ptr<struct GradientPair> pair_for(const std::vector<Tensor>& inputs, const std::vector<bool>& followed);

  const std::string name_;
  const Graph graph_;
  const std::vector<Variable> variables_;
  const std::size_t differentiable_;
  const std::vector<bool> used_;  // by input: what nobody uses need not be there
  mutable Lock guard_;            // of what follows; no host code runs under it
  std::shared_ptr<Program> program_;
  std::vector<std::shared_ptr<struct GradientPair>> pairs_;
  RecentBindings recent_;
  std::atomic<bool> op_by_op_ = false;  // under tapes: it has no gradient as a whole
};

}  // namespace stet
