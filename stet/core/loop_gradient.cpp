// The gradient of a loop: a loop over the same turns in the opposite order. A turn of it has the values of the forward
// turn at hand, which the forward loop stacks for it; nothing is computed twice but what costs nothing.
#include <algorithm>
#include <map>
#include <set>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/core/call.h"
#include "stet/core/flat_loop.h"
#include "stet/core/gradient.h"
#include "stet/core/host_code_run.h"
#include "stet/core/replay.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"

namespace stet {
namespace {

class LoopGradient {
 public:
  explicit LoopGradient(GradientCall& call)
      : call_(call), loop_(call.attributes<LoopAttributes>()), body_(*loop_.body), trace_(current_trace()) {
    if (!trace_) throw InternalError("the gradient of a loop outside of the trace that holds it");
  }

  void run() {
    // What the turns did outside of the program is not done again: what host code gave is kept, if not by loops inside.
    if (loop_.recompute || finds_sizes())
      for (const Node& node : body_.nodes)
        for (const GraphPointer& child : children(node)) refuse_again(*child);
    find_flow();
    find_candidates();
    FlatLoop back;
    back.name = "gradient";
    back.reverse = !loop_.reverse;
    back.recompute = loop_.recompute;
    for (int i : followed_) {
      const Tensor& d = call_.ds()[static_cast<std::size_t>(i)];
      back.carried.push_back(d.defined() ? d : zeros_like(call_.out(i)));
    }
    for (int i : captured_) back.carried.push_back(zeros_like(call_.in(i)));
    for (std::size_t r = static_cast<std::size_t>(loop_.carried); r < call_.ds().size(); ++r)
      if (call_.ds()[r].defined()) back.sequences.push_back(call_.ds()[r]);
    for (ValueId id : candidates_) back.further_elements.push_back(body_.type(id));
    back.further = [this](const std::vector<bool>& needed) { return stacks(needed); };
    back.body = [this](std::span<const Tensor> carried, std::span<const Tensor> elements, const Tensor& place) {
      return turn(carried, elements, place);
    };
    FlatTurn end = run_flat_loop(back);
    for (const Sunk& one : sunk_) {
      Tensor& d = end.carried[followed_.size() + one.captured];
      d = core_ops.add(In(d), In(product_of(one, end)));
    }
    for (std::size_t i = 0; i < followed_.size(); ++i)
      if (int input = loop_.first_carried() + followed_[i]; call_.wants(input)) call_.set(input, end.carried[i]);
    for (std::size_t i = 0; i < captured_.size(); ++i) call_.set(captured_[i], end.carried[followed_.size() + i]);
    for (std::size_t i = 0; i < sequences_.size(); ++i) call_.set(sequences_[i], end.stacked[i]);
  }

 private:
  /// An input of the body as an input of the loop.
  int outside(int input) const {
    return input < loop_.turn_input() ? loop_.first_carried() + input
                                      : loop_.first_captured() + input - loop_.turn_input() - 1;
  }

  /// Which carried values a gradient comes back by, from turn to turn, and which inputs it gets to.
  void find_flow() {
    std::vector<bool> asked;
    for (const Tensor& d : call_.ds()) asked.push_back(d.defined());
    const std::vector<bool> reached = inputs_reached_by_turns(loop_, asked);
    for (int i = 0; i < loop_.carried; ++i)
      if (asked[static_cast<std::size_t>(i)]) followed_.push_back(i);
    for (int i = loop_.carried; i < static_cast<int>(body_.inputs.size()); ++i) {
      if (i == loop_.turn_input() || !reached[static_cast<std::size_t>(i)] || !call_.wants(outside(i))) continue;
      (i < loop_.turn_input() ? sequences_ : captured_).push_back(outside(i));
    }
  }

  bool is_turn_input(ValueId id) const {
    auto found = std::find(body_.inputs.begin(), body_.inputs.end(), id);
    return found != body_.inputs.end() && found - body_.inputs.begin() <= loop_.turn_input();
  }

  /// What a turn of the gradient may ask for of the forward turn: what it began with, and what it computed at a cost.
  void find_candidates() {
    for (int i = 0; i < loop_.turn_input(); ++i) candidates_.push_back(body_.inputs[static_cast<std::size_t>(i)]);
    const bool computes_again = loop_.recompute || finds_sizes();
    std::set<ValueId> changing;  // from turn to turn
    for (ValueId id = 0; id < static_cast<ValueId>(body_.nodes.size()); ++id) {
      const Node& node = body_.node(id);
      if (is_turn_input(id) || node.op->has_effect ||
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) { return changing.contains(input); }))
        changing.insert(id);
      else
        continue;
      if (node.op == &part_row) {
        if (given_.contains(node.inputs[0])) candidates_.push_back(id);
        continue;
      }
      // What host code gave is not asked for again.
      if (computes_again && !node.op->has_effect) continue;
      if ((node.op->kind == Kind::structure && !node.op->has_effect) || node.op->kind == Kind::layout) continue;
      if (node.results.size() == 1)
        candidates_.push_back(id);
      else if (parts_of(id) < node.results.size())
        continue;
      given_.insert(id);
    }
    for (std::size_t i = 0; i < candidates_.size(); ++i) number_of_.emplace(candidates_[i], i);
  }

  /// Results of a tuple that have a value of their own.
  std::size_t parts_of(ValueId tuple) const {
    std::set<int> parts;
    for (const Node& node : body_.nodes)
      if (node.op == &part_row && node.inputs[0] == tuple) parts.insert(node.attributes.as<PartAttributes>().number);
    return parts.size();
  }

  /// Some size in the body depends on values: such values have no place in a stack.
  bool finds_sizes() const {
    for (const Node& node : body_.nodes) {
      if (node.op->kind == Kind::late) return true;
      if (children(node).empty()) continue;
      for (const ValueType& type : node.results)
        for (const Dim& size : type.shape)
          for (int symbol : size.symbols())
            if (!body_.scope->symbol_hint(symbol)) return true;
    }
    return false;
  }

  FlatTurn turn(std::span<const Tensor> carried, std::span<const Tensor> elements, const Tensor& place) {
    const std::size_t stacked = elements.size() - candidates_.size();
    std::span<const Tensor> values = elements.subspan(stacked);
    TurnOfGradient inside(*trace_);
    GradientTape tape;
    std::vector<Tensor> inputs(values.begin(), values.begin() + loop_.turn_input());
    inputs.push_back(place);
    for (int i = loop_.turn_input() + 1; i < static_cast<int>(body_.inputs.size()); ++i)
      inputs.push_back(same_value(call_.in(outside(i))));
    auto input_at = [&](int number) -> Tensor& {
      return inputs[static_cast<std::size_t>(number < loop_.first_captured()
                                                 ? number - loop_.first_carried()
                                                 : number - loop_.first_captured() + loop_.turn_input() + 1)];
    };
    std::vector<inside::Source> sources;
    auto follow = [&](const Tensor& tensor) {
      tape.watch(tensor);
      sources.push_back(tensor);
    };
    for (int i : followed_) follow(inputs[static_cast<std::size_t>(i)]);
    for (int i : captured_) follow(input_at(i));
    for (int i : sequences_) follow(input_at(i));
    std::vector<Tensor> results = replay_with(body_, inputs, [&](ValueId id) { return given_values(id, values); });

    std::vector<Tensor> weights(results.size());
    for (std::size_t i = 0; i < followed_.size(); ++i) weights[static_cast<std::size_t>(followed_[i])] = carried[i];
    std::size_t next = 0;
    for (std::size_t r = static_cast<std::size_t>(loop_.carried); r < results.size(); ++r)
      if (call_.ds()[r].defined()) weights[r] = elements[next++];
    std::vector<Tensor> gradients = gradients_of(tape, results, weights, sources);

    FlatTurn left;
    sunk_.clear();
    for (std::size_t i = followed_.size() + captured_.size(); i < gradients.size(); ++i)
      left.stacked.push_back(gradients[i].defined() ? gradients[i] : zeros_like(sources[i].tensor));
    for (std::size_t i = 0; i < followed_.size(); ++i)
      left.carried.push_back(gradients[i].defined() ? gradients[i] : zeros_like(carried[i]));
    for (std::size_t i = followed_.size(); i < followed_.size() + captured_.size(); ++i) {
      bool unchanged = !gradients[i].defined() || sink(i - followed_.size(), gradients[i], values, left.stacked);
      left.carried.push_back(unchanged ? carried[i] : core_ops.add(In(carried[i]), In(gradients[i])));
    }
    return left;
  }

  /// What is the same turn by turn, added up: a product of two values of a turn, summed over the turns, is one product
  /// of all that they were.
  struct Sunk {
    std::size_t captured;  // whose gradient it is a part of
    const OpDef* op;
    Attributes attributes;
    struct Factor {
      std::optional<std::size_t> candidate;  // it is stacked already, or
      std::size_t stacked = 0;               // by this loop
    };
    Factor left, right;
  };

  /// If the gradient is such a product, notes it, has its factors stacked and says so.
  bool sink(std::size_t captured, const Tensor& gradient, std::span<const Tensor> candidates,
            std::vector<Tensor>& stacked) {
    const TensorNode& tensor = *gradient.node();
    if (!tensor.traced) return false;
    const Node& node = trace_->graph.node(tensor.traced->id);
    if (node.op->kind != Kind::contract || node.inputs.size() != 2) return false;
    const auto& product = node.attributes.as<ContractAttributes>();
    if (!product.transpose_left || product.transpose_right) return false;
    for (ValueId id : node.inputs)
      if (trace_->graph.type(id).shape.rank() != 2) return false;
    auto factor = [&](ValueId id) {
      for (std::size_t k = 0; k < candidates.size(); ++k)
        if (candidates[k].node()->traced->id == id) return Sunk::Factor{k};
      // A value has two places in gates: left of one product and right of the next.
      for (std::size_t k = 0; k < stacked.size(); ++k)
        if (const auto& traced = stacked[k].node()->traced; traced && traced->id == id)
          return Sunk::Factor{std::nullopt, k};
      stacked.push_back(trace_->tensor_of(id));
      return Sunk::Factor{std::nullopt, stacked.size() - 1};
    };
    Sunk one{captured, node.op, node.attributes, {}, {}};
    const std::vector<ValueId> inputs = node.inputs;
    one.left = factor(inputs[0]);
    one.right = factor(inputs[1]);
    sunk_.push_back(std::move(one));
    return true;
  }

  Tensor product_of(const Sunk& sunk, const FlatTurn& end) const {
    auto all = [&](const Sunk::Factor& factor) {
      const Tensor stack = factor.candidate ? stack_of_.at(*factor.candidate) : end.stacked[factor.stacked];
      return core_ops.reshape(stack, {stack.dim(0) * stack.dim(1), stack.dim(2)});
    };
    Tensor left = all(sunk.left), right = all(sunk.right), out;
    In operands[] = {In(left), In(right)};
    call_into(*sunk.op, operands, sunk.attributes.view(), {&out, 1});
    return out;
  }

  std::optional<std::vector<Tensor>> given_values(ValueId id, std::span<const Tensor> values) const {
    if (!given_.contains(id)) return std::nullopt;
    if (body_.node(id).results.size() == 1) return std::vector<Tensor>{values[number_of_.at(id)]};
    std::vector<Tensor> out(body_.node(id).results.size());
    for (const auto& [candidate, number] : number_of_) {
      const Node& node = body_.node(candidate);
      if (node.op == &part_row && node.inputs[0] == id)
        out[static_cast<std::size_t>(node.attributes.as<PartAttributes>().number)] = values[number];
    }
    return out;
  }

  FlatLoop::Further stacks(const std::vector<bool>& needed) {
    std::vector<Tensor> inputs;
    for (int i = 0; i < call_.input_count(); ++i) inputs.push_back(call_.in(i));
    std::set<std::size_t> factors;
    for (const Sunk& one : sunk_)
      for (const Sunk::Factor* factor : {&one.left, &one.right})
        if (factor->candidate) factors.insert(*factor->candidate);
    auto is_element = [&](std::size_t i) {
      return i >= static_cast<std::size_t>(loop_.carried) && i < static_cast<std::size_t>(loop_.turn_input());
    };
    auto is_asked = [&](std::size_t i) { return needed[i] || factors.contains(i); };
    std::vector<ValueId> values;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (is_asked(i) && !is_element(i)) values.push_back(candidates_[i]);
    const bool counted =
        loop_.count == LoopAttributes::by_size || static_cast<int>(call_.outputs().size()) > loop_.carried;
    FlatLoop::Further out{{}, loop_.turns};
    // How many turns there were is known when something was stacked.
    if (values.empty() && !counted) {
      trace_->stack_also(loop_, inputs, {body_.inputs[static_cast<std::size_t>(loop_.turn_input())]}, out.turns);
      return out;
    }
    std::vector<Tensor> stacked;
    if (!values.empty()) stacked = trace_->stack_also(loop_, inputs, values, out.turns);
    std::size_t next = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!is_asked(i)) continue;
      stack_of_[i] = is_element(i) ? call_.in(outside(static_cast<int>(i))) : stacked[next++];
      if (needed[i]) out.sequences.push_back(stack_of_[i]);
    }
    return out;
  }

  GradientCall& call_;
  const LoopAttributes& loop_;
  const Graph& body_;
  Trace* trace_;
  std::vector<int> followed_;              // carried values that have a gradient
  std::vector<int> sequences_, captured_;  // inputs of the loop whose gradients are wanted
  std::vector<ValueId> candidates_;        // carried values and elements first
  std::map<ValueId, std::size_t> number_of_;
  std::set<ValueId> given_;  // nodes that are not run again
  std::vector<Sunk> sunk_;
  std::map<std::size_t, Tensor> stack_of_;  // by candidate
};

}  // namespace

std::vector<bool> inputs_reached_by_turns(const LoopAttributes& loop, std::vector<bool>& asked) {
  for (;;) {
    std::vector<bool> reached = inputs_reached(*loop.body, asked);
    bool more = false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(loop.carried); ++i) {
      if (!reached[i] || asked[i] || !is_floating(loop.body->type(loop.body->inputs[i]).dtype)) continue;
      asked[i] = more = true;
    }
    if (!more) return reached;
  }
}

void loop_gradient(GradientCall& call) { LoopGradient(call).run(); }

}  // namespace stet
