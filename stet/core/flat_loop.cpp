// Loops as they run eagerly, turn by turn, and what is wrong with them.
#include "stet/core/flat_loop.h"

#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/core/loop_errors.h"
#include "stet/core/replay.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"

namespace stet {

void throw_state_changes(const FlatLoop& loop, std::size_t number, const Tensor& before, const Tensor& after) {
  const std::string name = number < loop.carried_names.size() ? loop.carried_names[number] : std::string();
  throw UserError(error_text(text(loop.name, ": the state", name.empty() ? "" : " ", name, " is ", type_text(before),
                                  " when a turn begins and ", type_text(after), " when it ends"),
                             loop.where,
                             "a turn must leave the dtype and the sizes it began with; cast or reshape it, "
                             "or begin with a state that has them"));
}

void ensure_same_form(const FlatLoop& loop, std::size_t number, const Tensor& before, const Tensor& after) {
  if (before.dtype() != after.dtype() || before.rank() != after.rank())
    throw_state_changes(loop, number, before, after);
}

Tensor loop_condition(const char* name, const Tensor& condition, Where where) {
  Tensor out = condition;
  for (int axis = 0; axis < out.rank(); ++axis)
    if (!require(out.dim(axis), Relation::equal, 1, {name, "one element to decide by", where}))
      throw UserError(error_text(text(name, ": the condition gives ", type_text(condition), ", not one element"), where,
                                 "reduce it to one element first, for example any(x) or all(x)"));
  if (out.rank() > 0) out = core_ops.sum_to(out, Shape());
  return out.dtype() == DType::bool_ ? out : core_ops.cast(In(out, where), DType::bool_);
}

namespace {

bool same_type(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.rank() != b.rank()) return false;
  for (int axis = 0; axis < a.rank(); ++axis)
    if (a.node()->sizes[axis] != b.node()->sizes[axis]) return false;
  return true;
}

/// What the results of no turn at all would be stacks of: a turn is traced for it, and thrown away.
std::vector<Tensor> empty_stacks(const FlatLoop& loop, std::shared_ptr<const void>& form) {
  std::vector<ValueType> types;
  {
    Trace trace(loop.name);
    OpenTrace open(trace);
    // Symbols: what is asked of sizes counts only when there is a turn.
    auto argument = [&](const Tensor& tensor, int skip) {
      std::vector<Dim> sizes;
      for (int axis = skip; axis < tensor.rank(); ++axis)
        sizes.push_back(trace.symbols().symbol({}, tensor.node()->sizes[axis]));
      return trace.add_argument({tensor.dtype(), Shape(sizes)});
    };
    std::vector<Tensor> carried, elements;
    for (const Tensor& tensor : loop.carried) carried.push_back(argument(tensor, 0));
    for (const Tensor& tensor : loop.sequences) elements.push_back(argument(tensor, 1));
    Tensor place = trace.add_argument({DType::i64, Shape()});
    auto look = [&] {
      FlatTurn left = loop.body(carried, elements, place);
      for (const Tensor& result : left.stacked) {
        std::vector<Dim> sizes{0};
        for (const Dim& size : result.shape()) sizes.push_back(size.hint().value_or(0));
        types.push_back({result.dtype(), Shape(sizes)});
      }
      form = left.form;
      return Leaves{};
    };
    try {
      trace.run_scope(look, loop.where);
    } catch (const UserError& error) {
      throw UserError(text(error.what(), "\n  ", loop.name,
                           " takes no turn: one was looked at for the types of what its turns give"));
    }
  }
  std::vector<Tensor> out;
  for (const ValueType& type : types) out.push_back(zeros(type.shape, type.dtype));
  return out;
}

/// 0 that is computed from a tensor, with a derivative of 0.
Tensor zero_of(const Tensor& source, DType dtype) {
  const Expr zero = constant(0, source.dtype());
  const In operand_of(source, {});
  const Tensor zeros = call_map(scalar::with_derivative(zero, operand(0, source.dtype()), zero), {&operand_of, 1});
  return core_ops.cast(core_ops.sum_to(zeros, Shape()), dtype);
}

/// A loop as a trace records it, run where there is no turn: each result is as it was, and is computed from all that a
/// turn would compute it from, with a derivative of 0.
class WithoutTurns final : public Replay {
 public:
  WithoutTurns(const Graph& graph, std::span<const Tensor> inputs)
      : Replay(graph, inputs, own_symbols(graph), Effects::have_happened) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].op->kind == Kind::loop) loop_ = static_cast<ValueId>(i);  // what came out of it stands before
  }

 protected:
  void run_node(ValueId id, const Node& node) override {
    if (id != loop_) return Replay::run_node(id, node);
    const auto& loop = node.attributes.as<LoopAttributes>();
    const std::vector<Tensor> inputs = inputs_of(node);
    std::vector<Tensor> results;
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const bool carried = r < static_cast<std::size_t>(loop.carried);
      results.push_back(connected_result(
          loop, inputs,
          carried ? inputs[static_cast<std::size_t>(loop.first_carried()) + r] : empty_stack(node.results[r]), r));
    }
    set(id, std::move(results));
  }

 private:
  Tensor connected_result(const LoopAttributes& loop, const std::vector<Tensor>& inputs, Tensor result,
                          std::size_t number) const {
    if (!is_floating(result.dtype())) return result;
    std::vector<bool> asked(loop.body->results.size(), false);
    asked[number] = true;
    const std::vector<bool> reached = inputs_reached_by_turns(loop, asked);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const int turn = loop.turn_input(), at = static_cast<int>(i);
      const bool itself = i == number && at < loop.carried;
      if (!reached[i] || itself || at == turn) continue;
      const Tensor& source = inputs[static_cast<std::size_t>(at < turn ? loop.first_carried() + at
                                                                       : loop.first_captured() + at - turn - 1)];
      if (is_floating(source.dtype()) && tapes_following(source) > 0)
        result = core_ops.subtract(result, zero_of(source, result.dtype()));  // -0 stays -0
    }
    return result;
  }
  static Tensor empty_stack(const ValueType& type) {
    std::vector<Dim> sizes{0};
    for (int axis = 1; axis < type.shape.rank(); ++axis) sizes.push_back(type.shape[axis].hint().value_or(0));
    return zeros(Shape(sizes), type.dtype);
  }

  ValueId loop_ = -1;
};

/// A turn that a tape has not seen: what a loop gives depends on the same whether it takes turns or not, as it does
/// where it is traced.
void connect(const FlatLoop& loop, FlatTurn& left) {
  Trace trace(loop.name);
  Graph graph;
  std::vector<Tensor> inputs = loop.carried;
  inputs.insert(inputs.end(), loop.sequences.begin(), loop.sequences.end());
  {
    OpenTrace open(trace);
    FlatLoop recorded = loop;
    auto argument = [&](Tensor& tensor) { tensor = trace.add_argument({tensor.dtype(), tensor.shape()}); };
    std::for_each(recorded.carried.begin(), recorded.carried.end(), argument);
    std::for_each(recorded.sequences.begin(), recorded.sequences.end(), argument);
    if (loop.count_value.defined()) {
      argument(recorded.count_value);
      inputs.push_back(loop.count_value);
    }
    trace.run_scope(
        [&] {
          GradientTape outside;  // for which Variables are read before the loop
          const FlatTurn turn = run_flat_loop(recorded);
          for (const std::vector<Tensor>* results : {&turn.carried, &turn.stacked})
            for (const Tensor& result : *results) trace.graph.results.push_back(trace.lift(result, loop.where));
          return Leaves{};
        },
        loop.where);
    graph = trace.finished();
  }
  for (const Trace::HiddenInput& hidden : trace.hidden) {
    HiddenTapes unseen;  // what tapes follow of a Variable is what the graph reads of it
    inputs.push_back(hidden.variable.defined() ? hidden.variable.read(loop.where) : hidden.as_met);
  }
  const std::vector<Tensor> results = WithoutTurns(graph, inputs).run();
  std::copy_n(results.begin(), left.carried.size(), left.carried.begin());
  left.stacked.assign(results.begin() + static_cast<std::ptrdiff_t>(left.carried.size()), results.end());
}

FlatTurn run_turns(const FlatLoop& loop) {
  std::int64_t turns = -1;  // by a condition
  if (loop.count == LoopAttributes::by_size) turns = loop.turns.value(loop.where);
  if (loop.count == LoopAttributes::by_value) turns = loop.count_value.item<std::int64_t>();
  turns = loop.condition ? turns : std::max<std::int64_t>(turns, 0);
  FlatTurn out{loop.carried, {}};
  std::vector<std::vector<Tensor>> stacks;
  std::int64_t turn = 0;
  for (;; ++turn) {
    const std::int64_t at = loop.reverse && !loop.condition ? turns - 1 - turn : turn;
    Tensor place = creation::copied(DType::i64, &at, 1, Shape(), loop.where);
    if (loop.condition ? !static_cast<bool>(loop_condition(loop.name, loop.condition(out.carried, place), loop.where))
                       : turn == turns)
      break;
    std::vector<Tensor> elements;
    for (const Tensor& sequence : loop.sequences) elements.push_back(core_ops.element(sequence, at));
    FlatTurn left = loop.body(out.carried, elements, place);
    out.form = left.form;
    for (std::size_t i = 0; i < out.carried.size(); ++i)
      if (!same_type(out.carried[i], left.carried[i])) throw_state_changes(loop, i, out.carried[i], left.carried[i]);
    out.carried = std::move(left.carried);
    stacks.resize(left.stacked.size());
    for (std::size_t r = 0; r < stacks.size(); ++r) {
      if (!stacks[r].empty() && !same_type(stacks[r][0], left.stacked[r]))
        throw UserError(error_text(text(loop.name, ": a result of a turn is ", type_text(left.stacked[r]), ", and was ",
                                        type_text(stacks[r][0]), " in the first turn"),
                                   loop.where, "give it the same dtype and sizes in every turn"));
      stacks[r].push_back(std::move(left.stacked[r]));
    }
  }
  if (turn == 0 && loop.stacks) out.stacked = empty_stacks(loop, out.form);
  if (turn == 0 && tapes_open()) {
    try {
      connect(loop, out);
    } catch (const InternalError&) {
      throw;
    } catch (...) {  // a turn that cannot be traced, or cannot be at all, or throws what is the user's: there is none
    }
  }
  for (std::vector<Tensor>& stack : stacks) {
    if (loop.reverse) std::reverse(stack.begin(), stack.end());
    out.stacked.push_back(core_ops.stack(stack));
  }
  return out;
}

/// Eagerly too a turn is recorded once; then the ops that take all turns run one after the other.
FlatTurn run_at_once(const FlatLoop& loop) {
  Trace trace(loop.name);
  Graph graph;
  std::vector<Variable> written;
  {
    OpenTrace open(trace);
    FlatLoop recorded = loop;
    for (Tensor& sequence : recorded.sequences) sequence = trace.add_argument({sequence.dtype(), sequence.shape()});
    trace.run_scope(
        [&] {
          for (const Tensor& result : run_flat_loop(recorded).stacked)
            trace.graph.results.push_back(trace.lift(result, loop.where));
          return Leaves{};
        },
        loop.where);
    for (std::uint64_t id : trace.variable_order()) {
      const TracedVariable& variable = trace.variable(id);
      if (!variable.written) continue;
      written.push_back(variable.variable);
      trace.graph.results.push_back(variable.current);
    }
    graph = trace.finished();
  }
  std::vector<Tensor> inputs = loop.sequences;
  for (const Trace::HiddenInput& hidden : trace.hidden) {
    HiddenTapes unseen;  // what tapes follow of a Variable is what the graph reads of it
    inputs.push_back(hidden.variable.defined() ? hidden.variable.read(loop.where) : hidden.as_met);
  }
  std::vector<Tensor> results = replay(graph, inputs);
  for (std::size_t i = 0; i < written.size(); ++i)
    written[i].assign(results[results.size() - written.size() + i], loop.where);
  results.resize(results.size() - written.size());
  return {{}, std::move(results)};
}

}  // namespace

FlatTurn run_flat_loop(const FlatLoop& loop) {
  if (Trace* trace = current_trace()) return trace->run_loop(loop);
  return loop.at_once ? run_at_once(loop) : run_turns(loop);
}

}  // namespace stet
