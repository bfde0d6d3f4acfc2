#include "stet/core/function_entry.h"

#include <algorithm>
#include <cstring>

#include "stet/base/error.h"
#include "stet/base/short_array.h"
#include "stet/base/text.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"

namespace stet {

std::vector<LeafKey> keys_of(const Leaves& leaves) {
  std::vector<LeafKey> out;
  for (const Leaf& leaf : leaves) {
    LeafKey key{.kind = leaf.kind, .dtype = leaf.dtype, .bits = leaf.bits};
    if (leaf.kind == Leaf::tensor) key = {.kind = leaf.kind, .dtype = leaf.value.dtype(), .rank = leaf.value.rank()};
    // By identity: host code may keep things by Variable, as optimizers keep their slots.
    if (leaf.kind == Leaf::variable)
      key = {
          .kind = leaf.kind, .dtype = leaf.state.dtype(), .rank = leaf.state.shape().rank(), .bits = leaf.state.id()};
    out.push_back(std::move(key));
  }
  return out;
}

std::string described(const Leaf& leaf) {
  switch (leaf.kind) {
    case Leaf::tensor:
      return text(leaf.value.dtype(), leaf.value.shape());
    case Leaf::variable:
      return text("Variable ", leaf.state.dtype(), leaf.state.shape());
    case Leaf::object:
      return leaf.body ? leaf.body->description() : "nothing";
    case Leaf::count:
      return text(leaf.bits, " elements");
    default:
      if (leaf.dtype == DType::bool_) return leaf.bits ? "true" : "false";
      if (leaf.dtype == DType::i64) return text(static_cast<std::int64_t>(leaf.bits));
      if (leaf.dtype == DType::f32) return text(static_cast<float>(value_of(leaf.bits, leaf.dtype).real));
      return text(value_of(leaf.bits, leaf.dtype).real);
  }
}

std::optional<Bindings> Entry::accepts(const std::vector<LeafKey>& call, const std::vector<Tensor>& tensors) const {
  if (key != call) return std::nullopt;
  std::vector<ConcreteInput> concrete;
  for (const Tensor& tensor : tensors) concrete.push_back({tensor.node()->size_span(), {}});
  for (const std::vector<std::int64_t>& sizes : hidden_sizes) concrete.push_back({sizes, {}});
  return program->accepts(concrete, {});
}

std::vector<Fact> Entry::broken_facts(const std::vector<Tensor>& tensors) const {
  Bindings bindings;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (int axis = 0; axis < program->inputs[i].shape.rank(); ++axis)
      if (auto symbol = program->inputs[i].shape[axis].as_symbol())
        bindings.bind(*symbol, tensors[i].node()->sizes[axis]);
  std::vector<Fact> out;
  for (const Fact& fact : program->facts)
    if (!fact.holds(bindings)) out.push_back(fact);
  return out;
}

std::shared_ptr<const BoundProgram> Entry::bound_to(const Bindings& bindings) {
  std::lock_guard lock(recent_guard_);
  for (const auto& [sizes, bound] : recent_)
    if (sizes == bindings) return bound;
  std::shared_ptr<const BoundProgram> bound = program->bind(bindings);
  if (recent_.size() == most_recent) recent_.erase(recent_.begin());
  recent_.emplace_back(bindings, bound);
  return bound;
}

void Entry::collect_variables() {
  for (const Trace::HiddenInput& input : hidden)
    variables.inputs.push_back(input.variable.defined() ? &state_of(input.variable) : nullptr);
  for (const Variable& variable : written) variables.written.push_back(&state_of(variable));
  for (const Variable& variable : used) {
    VariableState* state = &state_of(variable);
    variables.locks.push_back({state, std::count(variables.written.begin(), variables.written.end(), state) > 0});
  }
  std::sort(variables.locks.begin(), variables.locks.end(),
            [](const auto& a, const auto& b) { return a.state->id < b.state->id; });
}

bool same_captures(const Entry& a, const Entry& b) {
  if (a.hidden.size() != b.hidden.size()) return false;
  for (std::size_t i = 0; i < a.hidden.size(); ++i) {
    const Tensor &x = a.hidden[i].captured, &y = b.hidden[i].captured;
    if (a.hidden[i].variable.id() != b.hidden[i].variable.id() || x.defined() != y.defined()) return false;
    if (x.defined() && !same_elements(x, y)) return false;
  }
  return true;
}

namespace {

/// Holds the Variables of a call, in the order of their ids.
class VariableLocks {
 public:
  explicit VariableLocks(const std::vector<CallVariables::Held>& held) : held_(held) {
    for (const CallVariables::Held& one : held_) {
      std::shared_mutex& guard = standing_in(*one.state).guard;
      one.exclusive ? guard.lock() : guard.lock_shared();
    }
  }
  ~VariableLocks() {
    for (const CallVariables::Held& one : held_) {
      std::shared_mutex& guard = standing_in(*one.state).guard;
      one.exclusive ? guard.unlock() : guard.unlock_shared();
    }
  }
  VariableLocks(const VariableLocks&) = delete;
  VariableLocks& operator=(const VariableLocks&) = delete;

 private:
  const std::vector<CallVariables::Held>& held_;
};

/// A program whose sizes are known when parts of it have run: it makes room for its results itself.
void run_with_late_sizes(const Program& program, const BoundProgram& bound, void* const* memory,
                         const CallVariables& variables, ResultTensors& results) {
  std::vector<Buffer> buffers(program.results.size());
  std::vector<std::vector<std::int64_t>> sizes;
  bound.run_late(memory, buffers.data(), sizes);
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < buffers.size(); ++r)
    tensors.push_back(dense_tensor(program.results[r].dtype, sizes[r], std::move(buffers[r])));
  std::size_t own = buffers.size() - variables.written.size();
  for (std::size_t r = 0; r < own; ++r) results.add(std::move(tensors[r]));
  // Commit: nothing below can fail.
  for (std::size_t r = own; r < tensors.size(); ++r)
    std::swap(standing_in(*variables.written[r - own]).value, tensors[r]);
}

}  // namespace

void run_compiled(const Entry& entry, const BoundProgram& bound, std::span<const Tensor* const> tensors,
                  ResultTensors& results) {
  const CallVariables& variables = entry.variables;
  VariableLocks locks(variables.locks);
  std::size_t count = tensors.size();
  ShortArray<void*, 8> memory(count + entry.hidden.size());
  for (std::size_t i = 0; i < count; ++i) memory[i] = tensors[i]->node()->data;
  for (std::size_t i = 0; i < entry.hidden.size(); ++i) {
    VariableState* state = variables.inputs[i];
    memory[count + i] = (state ? standing_in(*state).value : entry.hidden[i].captured).node()->data;
  }
  const Program& program = *entry.program;
  if (bound.has_late_sizes()) return run_with_late_sizes(program, bound, memory.data(), variables, results);

  // All that can fail comes before the first write to a Variable's memory.
  std::size_t all = program.results.size(), own = all - variables.written.size();
  ShortArray<void*, 4> into(all);
  auto fresh = [&](std::size_t r) {
    Tensor tensor =
        dense_tensor(program.results[r].dtype, bound.result_sizes()[r], Buffer::allocate(bound.result_bytes(r)));
    into[r] = tensor.node()->data;
    return tensor;
  };
  for (std::size_t r = 0; r < own; ++r) results.add(fresh(r));
  ShortArray<Tensor, 1> next(all - own);
  for (std::size_t r = own; r < all; ++r) {
    // Whoever holds the old value keeps it: only what the Variable alone can see is overwritten.
    const TensorNode& old = *standing_in(*variables.written[r - own]).value.node();
    if (program.in_place[r] >= 0 && old.exclusive())
      into[r] = old.data;
    else
      next[r - own] = fresh(r);
  }
  bound.run_into(memory.data(), into.data());
  // Commit: nothing below can fail.
  for (std::size_t r = own; r < all; ++r)
    if (next[r - own].defined()) std::swap(standing_in(*variables.written[r - own]).value, next[r - own]);
}

void run_under_tape(const Entry& entry, const std::vector<Tensor>& tensors, ResultTensors& results, Where where) {
  VariableLocks locks(entry.variables.locks);
  std::vector<Tensor> inputs = tensors;
  for (const Trace::HiddenInput& input : entry.hidden)
    inputs.push_back(input.variable.defined() ? reading_of(standing_in(state_of(input.variable)).value,
                                                           input.variable.id(), input.variable.trainable())
                                              : input.captured);
  std::vector<Tensor> values = replay(entry.graph, inputs);
  std::size_t own = values.size() - entry.written.size();
  for (std::size_t r = own; r < values.size(); ++r) values[r] = values[r].contiguous(where);
  for (std::size_t r = 0; r < own; ++r) results.add(std::move(values[r]));
  // Commit: nothing below can fail.
  for (std::size_t r = own; r < values.size(); ++r)
    std::swap(standing_in(*entry.variables.written[r - own]).value, values[r]);
}

}  // namespace stet
