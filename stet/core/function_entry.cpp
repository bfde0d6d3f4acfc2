#include "stet/core/function_entry.h"

#include <algorithm>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"

namespace stet {

std::vector<LeafKey> keys_of(const Leaves& leaves) {
  std::vector<LeafKey> out;
  for (const Leaf& leaf : leaves) {
    LeafKey key{.kind = leaf.kind, .dtype = leaf.dtype, .bits = leaf.bits};
    if (leaf.kind == Leaf::tensor) key = {.kind = leaf.kind, .dtype = leaf.value.dtype(), .rank = leaf.value.rank()};
    if (leaf.kind == Leaf::variable) {
      key.dtype = leaf.state.dtype();
      key.sizes = leaf.state.shape().sizes();
      key.rank = static_cast<int>(key.sizes.size());
      key.trainable = leaf.state.trainable();
      // Two arguments that are one Variable: what is written through one is read through the other.
      key.bits = out.size();
      for (std::size_t i = 0; i < out.size(); ++i)
        if (leaves[i].kind == Leaf::variable && leaves[i].state.id() == leaf.state.id()) {
          key.bits = i;
          break;
        }
    }
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

std::optional<Bindings> Entry::accepts(const std::vector<LeafKey>& call, const Leaves& leaves,
                                       const std::vector<Tensor>& tensors) const {
  if (key != call) return std::nullopt;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind != Leaf::variable) continue;
    for (const Variable& variable : used)
      if (variable.id() == leaf.state.id() &&
          std::find(argument_ids.begin(), argument_ids.end(), variable.id()) == argument_ids.end())
        return std::nullopt;
  }
  std::vector<ConcreteInput> concrete;
  for (const Tensor& tensor : tensors) concrete.push_back({tensor.node()->size_span(), {}});
  for (const std::vector<std::int64_t>& sizes : hidden_sizes) concrete.push_back({sizes, {}});
  return program->accepts(concrete, {});
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

std::shared_ptr<const CallVariables> Entry::variables_of(const Leaves& leaves) const {
  bool passed = std::any_of(argument_ids.begin(), argument_ids.end(), [](std::uint64_t id) { return id != 0; });
  if (own && !passed) return own;
  auto out = std::make_shared<CallVariables>();
  auto here = [&](const Variable& variable) {
    for (std::size_t i = 0; i < argument_ids.size(); ++i)
      if (variable.defined() && argument_ids[i] == variable.id()) return leaves[i].state;
    return variable;
  };
  for (const Trace::HiddenInput& input : hidden) {
    out->inputs.push_back(here(input.variable));
    out->input_states.push_back(out->inputs.back().defined() ? &state_of(out->inputs.back()) : nullptr);
  }
  for (const Variable& variable : written) {
    out->written.push_back(here(variable));
    out->written_states.push_back(&state_of(out->written.back()));
  }
  for (const Variable& traced : used) {
    VariableState* state = &state_of(here(traced));
    out->locks.push_back({state, std::count(out->written_states.begin(), out->written_states.end(), state) > 0});
  }
  std::sort(out->locks.begin(), out->locks.end(),
            [](const auto& a, const auto& b) { return a.state->id < b.state->id; });
  return out;
}

namespace {

/// Holds the Variables of a call, in the order of their ids.
class VariableLocks {
 public:
  explicit VariableLocks(const std::vector<CallVariables::Held>& held) : held_(held) {
    for (const CallVariables::Held& one : held_)
      one.exclusive ? one.state->guard.lock() : one.state->guard.lock_shared();
  }
  ~VariableLocks() {
    for (const CallVariables::Held& one : held_)
      one.exclusive ? one.state->guard.unlock() : one.state->guard.unlock_shared();
  }
  VariableLocks(const VariableLocks&) = delete;
  VariableLocks& operator=(const VariableLocks&) = delete;

 private:
  const std::vector<CallVariables::Held>& held_;
};

/// An array on the stack where it fits.
template <class T, std::size_t Few>
class ShortArray {
 public:
  explicit ShortArray(std::size_t count) {
    if (count > Few) many_.resize(count);
  }
  T* data() { return many_.empty() ? few_ : many_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }

 private:
  T few_[Few] = {};
  std::vector<T> many_;
};

}  // namespace

namespace {

/// A program whose sizes are known when parts of it have run: it makes room for its results itself.
void run_with_late_sizes(const Program& program, const BoundProgram& bound, void* const* memory,
                         const CallVariables& variables, ResultTensors& results) {
  std::vector<Buffer> buffers(program.results.size());
  std::vector<std::vector<std::int64_t>> sizes;
  bound.run_late(memory, buffers.data(), sizes);
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < buffers.size(); ++r)
    tensors.push_back(dense_tensor(program.results[r].dtype, sizes[r], std::move(buffers[r])));
  std::size_t own = buffers.size() - variables.written_states.size();
  for (std::size_t r = 0; r < own; ++r) results.add(std::move(tensors[r]));
  // Commit: nothing below can fail.
  for (std::size_t r = own; r < tensors.size(); ++r) std::swap(variables.written_states[r - own]->value, tensors[r]);
}

}  // namespace

void run_compiled(const Entry& entry, const BoundProgram& bound, const CallVariables& variables,
                  std::span<const Tensor* const> tensors, ResultTensors& results) {
  VariableLocks locks(variables.locks);
  std::size_t count = tensors.size();
  ShortArray<void*, 8> memory(count + entry.hidden.size());
  for (std::size_t i = 0; i < count; ++i) memory[i] = tensors[i]->node()->data;
  for (std::size_t i = 0; i < entry.hidden.size(); ++i) {
    const VariableState* state = variables.input_states[i];
    memory[count + i] = (state ? state->value : entry.hidden[i].captured).node()->data;
  }
  const Program& program = *entry.program;
  if (bound.has_late_sizes()) return run_with_late_sizes(program, bound, memory.data(), variables, results);

  // All that can fail comes before the first write to a Variable's memory.
  std::size_t all = program.results.size(), own = all - variables.written_states.size();
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
    const TensorNode& old = *variables.written_states[r - own]->value.node();
    if (program.in_place[r] >= 0 && old.exclusive())
      into[r] = old.data;
    else
      next[r - own] = fresh(r);
  }
  bound.run_into(memory.data(), into.data());
  // Commit: nothing below can fail.
  for (std::size_t r = own; r < all; ++r)
    if (next[r - own].defined()) std::swap(variables.written_states[r - own]->value, next[r - own]);
}

void run_under_tape(const Entry& entry, const CallVariables& variables, const std::vector<Tensor>& tensors,
                    ResultTensors& results, Where where) {
  std::vector<Tensor> inputs = tensors;
  for (std::size_t i = 0; i < entry.hidden.size(); ++i)
    inputs.push_back(variables.inputs[i].defined() ? variables.inputs[i].read(where) : entry.hidden[i].captured);
  std::vector<Tensor> values = replay(entry.graph, inputs);
  std::size_t own = values.size() - variables.written.size();
  for (std::size_t i = 0; i < variables.written.size(); ++i) variables.written[i].assign(values[own + i], where);
  for (std::size_t i = 0; i < own; ++i) results.add(std::move(values[i]));
}

}  // namespace stet
