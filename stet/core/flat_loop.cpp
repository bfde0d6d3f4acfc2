// Loops as they run eagerly, turn by turn, and what is wrong with them.
#include "stet/core/flat_loop.h"

#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
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
