#include "stet/core/function_entry.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/short_array.h"
#include "stet/base/text.h"
#include "stet/core/ledger_account.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/variable_overlay.h"

namespace stet {

std::vector<LeafKey> keys_of(const Leaves& leaves) {
  std::vector<LeafKey> out;
  for (const Leaf& leaf : leaves) {
    LeafKey key{.kind = leaf.kind, .dtype = leaf.dtype, .bits = leaf.bits};
    if (leaf.kind == Leaf::tensor && !leaf.value.defined())
      key = {.kind = leaf.kind, .rank = no_tensor_rank, .bits = leaf.value.is_no_gradient()};
    else if (leaf.kind == Leaf::tensor)
      key = {.kind = leaf.kind,
             .dtype = leaf.value.dtype(),
             .rank = leaf.value.rank(),
             .bits = leaf.value.node()->weak,
             .device = leaf.value.node()->device()};
    // By identity: host code may keep things by Variable, as optimizers keep their slots.
    if (leaf.kind == Leaf::variable)
      key = {
          .kind = leaf.kind, .dtype = leaf.state.dtype(), .rank = leaf.state.shape().rank(), .bits = leaf.state.id()};
    out.push_back(std::move(key));
  }
  return out;
}

Tensor size_tensor(std::int64_t size) {
  static std::byte nothing[64];
  TensorNode* node = new_node();
  node->dtype = DType::bool_;
  node->rank = 1;
  node->dense = true;
  node->sizes[0] = size;
  node->strides[0] = 1;
  node->data = nothing;
  return Tensor(node);
}

std::vector<Tensor> inputs_of(const Leaves& leaves, bool dense, Where where) {
  std::vector<Tensor> out;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind == Leaf::size) out.push_back(size_tensor(leaf.length.constant()));
    if (leaf.kind != Leaf::tensor || !leaf.value.defined()) continue;
    concrete_node(leaf.value, "call", where);
    out.push_back(dense ? leaf.value.contiguous(where) : leaf.value);
  }
  return out;
}

std::string described(const Leaf& leaf) {
  switch (leaf.kind) {
    case Leaf::tensor:
      return leaf.value.defined() ? text(leaf.value.dtype(), leaf.value.shape()) : "none";
    case Leaf::size:
      return text("size ", leaf.length);
    case Leaf::variable:
      return text("Variable ", leaf.state.dtype(), leaf.state.shape());
    case Leaf::object:
      return leaf.body ? leaf.body->description() : "nothing";
    case Leaf::text:
      return text('"', leaf.label, '"');
    case Leaf::count:
      return text(leaf.bits, leaf.bits == 1 ? " element" : " elements");
    default:
      if (!leaf.label.empty()) return leaf.label;
      if (leaf.dtype == DType::bool_) return leaf.bits ? "true" : "false";
      if (leaf.dtype == DType::i64) return text(static_cast<std::int64_t>(leaf.bits));
      if (leaf.dtype == DType::f32) return text(static_cast<float>(value_of(leaf.bits, leaf.dtype).real));
      return text(value_of(leaf.bits, leaf.dtype).real);
  }
}

Entry::Entry(TracedRun run) : TracedRun(std::move(run)) {}
Entry::~Entry() {
  record_trace_end(*this);
  if (account) account->settle(calls.load(std::memory_order_relaxed));
}

std::optional<Bindings> Entry::accepts(const std::vector<LeafKey>& call, const std::vector<Tensor>& tensors) const {
  if (key != call) return std::nullopt;
  std::vector<ConcreteInput> concrete;
  for (const Tensor& tensor : tensors) concrete.push_back({tensor.node()->size_span(), {}});
  for (const std::vector<std::int64_t>& sizes : hidden_sizes) concrete.push_back({sizes, {}});
  return program->accepts(concrete, {});
}

void Entry::move_hidden(Device& device, const std::string& function) {
  for (Trace::HiddenInput& input : hidden) {
    if (!input.variable.defined()) {
      input.captured = on_device(input.captured, device);
      continue;
    }
    Device& at = device_of(input.variable.read().node()->buffer);
    if (&at != &device)
      throw UserError(text(function, ": its arguments lie on ", device.name(), " and the Variable ",
                           input.variable.dtype(), input.variable.shape(), " on ", at.name(),
                           "; move them to one device first"));
  }
}

bool Entry::fits(const std::vector<std::vector<std::int64_t>>& sizes) const {
  std::vector<ConcreteInput> concrete;
  for (const std::vector<std::int64_t>& one : sizes) concrete.push_back({one, {}});
  for (const std::vector<std::int64_t>& one : hidden_sizes) concrete.push_back({one, {}});
  if (concrete.size() != program->inputs.size()) return false;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i].size() != static_cast<std::size_t>(program->inputs[i].shape.rank())) return false;
  return program->accepts(concrete, {}).has_value();
}

namespace {

/// As measured on training steps of some hundred nodes.
constexpr std::size_t bytes_per_node = 700, bytes_per_step = 5000, bytes_per_bound_step = 300;

std::size_t bytes_of(const Graph& whole) {
  std::size_t bytes = 0;
  std::vector<const Graph*> open{&whole};
  while (!open.empty()) {
    const Graph& graph = *open.back();
    open.pop_back();
    bytes += graph.nodes.size() * bytes_per_node;
    for (const Node& node : graph.nodes) {
      if (node.op == &constant_row) bytes += node.attributes.as<ConstantAttributes>().bytes.size();
      for (const GraphPointer& child : children(node)) open.push_back(child.get());
    }
  }
  return bytes;
}

}  // namespace

void Entry::measure() {
  bytes_but_for_plans_ = sizeof(Entry) + bytes_of(graph) + program->steps.size() * bytes_per_step;
  for (const Trace::HiddenInput& input : hidden)
    if (input.captured.defined())
      bytes_but_for_plans_ +=
          static_cast<std::size_t>(input.captured.node()->element_count() * size_of(input.captured.dtype()));
}

std::size_t Entry::bytes() const {
  return bytes_but_for_plans_ + recent_.count() * program->steps.size() * bytes_per_bound_step;
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

std::shared_ptr<CalledGraph> Entry::under_tapes(const std::string& function) {
  std::lock_guard lock(under_tapes_guard_);
  if (!under_tapes_) {
    std::vector<Variable> variables_by_input(arguments);
    for (const Trace::HiddenInput& input : hidden) variables_by_input.push_back(input.variable);
    under_tapes_ = std::make_shared<CalledGraph>(function, graph, std::move(variables_by_input),
                                                 graph.results.size() - written.size());
  }
  return under_tapes_;
}

std::vector<GradientPairFacts> Entry::pairs() const {
  std::lock_guard lock(under_tapes_guard_);
  return under_tapes_ ? under_tapes_->pairs() : std::vector<GradientPairFacts>{};
}

std::vector<const VariableState*> Entry::held() const {
  std::vector<const VariableState*> out;
  if (runs_host_code && !VariableOverlay::current())
    for (const CallVariables::Held& one : variables.locks) out.push_back(&standing_in(*one.state));
  return out;
}

void Entry::collect_hidden() {
  runs_host_code = std::any_of(program->steps.begin(), program->steps.end(),
                               [](const std::unique_ptr<Step>& step) { return has_effect(*step); });
  for (const Trace::HiddenInput& input : hidden)
    hidden_sizes.push_back((input.captured.defined() ? input.captured.shape() : input.variable.shape()).sizes());
  for (const Trace::HiddenInput& input : hidden)
    variables.inputs.push_back(input.variable.defined() ? &state_of(input.variable) : nullptr);
  for (const Variable& variable : written) variables.written.push_back(&state_of(variable));
  const std::unordered_set<const VariableState*> changed(variables.written.begin(), variables.written.end());
  for (const Variable& variable : used) {
    VariableState* state = &state_of(variable);
    variables.locks.push_back({state, changed.contains(state)});
  }
  std::sort(variables.locks.begin(), variables.locks.end(),
            [](const auto& a, const auto& b) { return a.state->id < b.state->id; });
}

namespace {

/// Holds the Variables of a call, in the order of their ids.
class VariableLocks {
 public:
  explicit VariableLocks(const std::vector<CallVariables::Held>& held) : held_(held) {
    for (const CallVariables::Held& one : held_) {
      SharedLock& guard = standing_in(*one.state).guard;
      one.exclusive ? guard.lock() : guard.lock_shared();
    }
  }
  ~VariableLocks() {
    for (const CallVariables::Held& one : held_) {
      SharedLock& guard = standing_in(*one.state).guard;
      one.exclusive ? guard.unlock() : guard.unlock_shared();
    }
  }
  VariableLocks(const VariableLocks&) = delete;
  VariableLocks& operator=(const VariableLocks&) = delete;

 private:
  const std::vector<CallVariables::Held>& held_;
};

/// A program whose sizes are known when parts of it have run makes room for its results itself.
std::vector<Tensor> run_late(const Program& program, const BoundProgram& bound, void* const* memory) {
  std::vector<Buffer> buffers(program.results.size());
  std::vector<std::vector<std::int64_t>> sizes;
  bound.run_late(memory, buffers.data(), sizes);
  std::vector<Tensor> tensors;
  for (std::size_t r = 0; r < buffers.size(); ++r)
    tensors.push_back(dense_tensor(program.results[r].dtype, sizes[r], std::move(buffers[r])));
  return tensors;
}

void run_with_late_sizes(const Program& program, const BoundProgram& bound, void* const* memory,
                         const CallVariables& variables, ResultTensors& results) {
  std::vector<Tensor> tensors = run_late(program, bound, memory);
  std::size_t own = tensors.size() - variables.written.size();
  for (std::size_t r = 0; r < own; ++r) results.add(std::move(tensors[r]));
  // Commit: nothing below can fail.
  for (std::size_t r = own; r < tensors.size(); ++r)
    std::swap(standing_in(*variables.written[r - own]).value, tensors[r]);
}

/// Under an overlay: on the values that it shows, and the next ones go there.
void run_apart(const Entry& entry, const BoundProgram& bound, std::span<const Tensor* const> tensors,
               ResultTensors& results, VariableOverlay& overlay) {
  std::vector<Tensor> inputs;
  for (const Tensor* tensor : tensors) inputs.push_back(*tensor);
  for (const Trace::HiddenInput& hidden : entry.hidden)
    inputs.push_back(hidden.variable.defined() ? hidden.variable.read().contiguous() : hidden.captured);
  std::vector<Tensor> values = run_fresh(*entry.program, bound, inputs);
  std::size_t own = values.size() - entry.written.size();
  for (std::size_t r = 0; r < own; ++r) results.add(std::move(values[r]));
  for (std::size_t r = own; r < values.size(); ++r) overlay.write(entry.written[r - own], std::move(values[r]));
}

}  // namespace

std::vector<Tensor> run_fresh(const Program& program, const BoundProgram& bound, std::span<const Tensor> inputs) {
  std::vector<void*> memory;
  for (const Tensor& input : inputs) memory.push_back(input.node()->data);
  if (bound.has_late_sizes()) return run_late(program, bound, memory.data());
  std::vector<Tensor> out;
  std::vector<void*> into;
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    out.push_back(dense_tensor(program.results[r].dtype, bound.result_sizes()[r],
                               program.device->allocate(bound.result_bytes(r))));
    into.push_back(out.back().node()->data);
  }
  bound.run_into(memory.data(), into.data());
  return out;
}

void run_compiled(const Entry& entry, const BoundProgram& bound, std::span<const Tensor* const> tensors,
                  ResultTensors& results) {
  const CallVariables& variables = entry.variables;
  if (VariableOverlay* overlay = VariableOverlay::current()) return run_apart(entry, bound, tensors, results, *overlay);
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
    Tensor tensor = dense_tensor(program.results[r].dtype, bound.result_sizes()[r],
                                 program.device->allocate(bound.result_bytes(r)));
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

std::vector<Tensor> Entry::variable_values() const {
  for (const CallVariables::Held& one : variables.locks) HeldVariables::refuse(standing_in(*one.state), "verify", {});
  VariableLocks locks(variables.locks);
  VariableOverlay* overlay = VariableOverlay::current();
  std::vector<Tensor> out;
  for (const Variable& variable : used) {
    Tensor own = overlay ? overlay->find(variable.id()) : Tensor();
    out.push_back(own.defined() ? own : standing_in(state_of(variable)).value);
  }
  return out;
}

void run_under_tape(Entry& entry, const std::string& function, const std::vector<Tensor>& given, ResultTensors& results,
                    Where where) {
  std::shared_ptr<CalledGraph> called = entry.under_tapes(function);
  VariableOverlay* overlay = VariableOverlay::current();
  std::optional<VariableLocks> locks;
  if (!overlay) locks.emplace(entry.variables.locks);
  std::vector<Tensor> inputs = given;
  for (const Trace::HiddenInput& input : entry.hidden) {
    if (!input.variable.defined()) {
      inputs.push_back(input.as_met);
      continue;
    }
    Tensor held = overlay ? overlay->find(input.variable.id()) : Tensor();
    inputs.push_back(held.defined() ? held : standing_in(state_of(input.variable)).value);
  }
  std::vector<Tensor> values = called->run(inputs);
  std::size_t own = values.size() - entry.written.size();
  for (std::size_t r = own; r < values.size(); ++r) values[r] = values[r].contiguous(where);
  for (std::size_t r = 0; r < own; ++r) results.add(std::move(values[r]));
  // Commit: nothing below can fail.
  for (std::size_t r = own; r < values.size(); ++r) {
    if (overlay)
      overlay->write(entry.written[r - own], std::move(values[r]));
    else
      std::swap(standing_in(*entry.variables.written[r - own]).value, values[r]);
  }
}

}  // namespace stet
