#include "stet/core/variable.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <ostream>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/core/scope.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/variable_notes.h"
#include "stet/core/variable_overlay.h"
#include "stet/core/variable_state.h"
#include "stet/core/variable_watch.h"

namespace stet {
namespace {

std::atomic<std::uint64_t> last_id{0};
thread_local VariableWatch::Told read_watch = nullptr, assigned_watch = nullptr;

VariableState& defined_state(const std::shared_ptr<VariableState>& state, const char* what, Where where) {
  if (!state)
    throw UserError(error_text(text(what, ": the Variable is undefined"), where,
                               "a default-made Variable holds nothing; make it from a tensor"));
  return *state;
}

/// `value` as the Variable's type; UserError when type or shape do not fit. With `repeats`, an axis of size 1 and a
/// missing leading one fit every size.
Tensor fitting(const VariableState& variable, const In& value, const char* what, Where where, bool repeats) {
  Tensor tensor;
  try {
    tensor = as_tensor(value, variable.dtype);
  } catch (const Problem& problem) {
    throw UserError(error_text(text(what, ": ", problem.text()), where, problem.advice()));
  }
  const TensorNode& node = defined_node(tensor, what, where);
  if (node.traced && !node.traced->life->trace) concrete_node(tensor, what, where);  // throws: it has leaked
  int missing = variable.shape.rank() - node.rank;
  bool fits = node.dtype == variable.dtype && (missing == 0 || (repeats && missing > 0));
  for (int axis = 0; fits && axis < node.rank; ++axis) {
    const Dim size = node.shape()[axis], own = variable.shape[axis + missing];
    const Reason reason{what, "size of the Variable", where};
    try {
      fits = repeats ? (inside::is_repeated(size, own, reason), true) : require(size, Relation::equal, own, reason);
    } catch (const Problem&) {
      fits = false;
    }
  }
  if (!fits)
    throw UserError(error_text(text(what, ": a Variable ", variable.name.empty() ? "" : text("'", variable.name, "' "),
                                    "of ", variable.dtype, variable.shape, " cannot hold ", type_text(tensor)),
                               where,
                               repeats ? "a Variable keeps its type and shape; cast the value, or give it a shape that "
                                         "broadcasts to the Variable's"
                                       : "a Variable keeps its type and shape; cast or reshape the value"));
  return tensor;
}

/// What this thread sees of it, outside of traces.
Tensor seen_value(VariableState& state, const char* what, Where where) {
  if (VariableOverlay* overlay = VariableOverlay::current())
    if (Tensor own = overlay->find(state.id); own.defined()) return own;
  HeldVariables::refuse(state, what, where);
  std::shared_lock lock(state.guard);
  return state.value;
}

}  // namespace

Variable::Variable(const Tensor& initial, VariableOptions options, Where where) {
  InitScope outside;  // the first value is no part of a program
  concrete_node(initial, "Variable", where);
  // A Variable made from a number has the number's type for good.
  Tensor first = core_ops.cast(In(initial, where), options.dtype.value_or(initial.dtype()));
  const TensorNode& node = *first.node();
  state_ = std::make_shared<VariableState>();
  state_->id = ++last_id;
  state_->name = std::move(options.name);
  state_->trainable = options.trainable;
  state_->dtype = node.dtype;
  state_->shape = node.shape();
  state_->value = first.contiguous(where);
  if (Trace* trace = trace_in_progress()) {
    state_->made_in_trace = true;
    trace->note_created(*this, where);
  }
}

void refuse_in_init_scope(const VariableState& variable, const char* what, Where where) {
  const Trace* trace = trace_in_progress();
  if (!trace || trace->may_create) return;
  throw TraceError(error_text(
      text(what, ": the Variable ", variable.name.empty() ? "" : text("'", variable.name, "' "),
           "is used in an InitScope", " while '", trace->function(),
           "' is traced: the value it has now would stay in the trace"),
      where,
      "use it outside of the InitScope, where it is state of the program; a first value that follows from it is made "
      "where the new Variable is, in build() or under `if (!v.defined())`"));
}

std::uint64_t latest_variable_id() { return last_id.load(std::memory_order_relaxed); }

VariableWatch::VariableWatch(Told read, Told assigned)
    : read_before_(std::exchange(read_watch, read)), assigned_before_(std::exchange(assigned_watch, assigned)) {}
VariableWatch::~VariableWatch() {
  read_watch = read_before_;
  assigned_watch = assigned_before_;
}

constinit thread_local const HeldVariables* HeldVariables::innermost = nullptr;
HeldVariables::HeldVariables(std::vector<const VariableState*> held, const std::string& function)
    : held_(std::move(held)), function_(function), outer_(innermost) {
  if (!held_.empty()) innermost = this;
}
HeldVariables::~HeldVariables() { innermost = outer_; }

void HeldVariables::refuse_held(const VariableState& state, const char* what, Where where) {
  for (const HeldVariables* one = innermost; one; one = one->outer_)
    if (std::find(one->held_.begin(), one->held_.end(), &state) != one->held_.end())
      throw UserError(
          error_text(text(what, ": the Variable ", state.name.empty() ? "" : text("'", state.name, "' "), "of ",
                          state.dtype, state.shape, " is used inside of host_call, and held by the call of '",
                          one->function_, "' that runs it"),
                     where, "pass its value to host_call as an argument, and assign what it gives back outside of it"));
}

constinit thread_local StandIns* StandIns::current = nullptr;

VariableState& state_of(const Variable& variable) { return *variable.state_; }

Tensor::Tensor(const Variable& variable) : Tensor(variable.read()) {}

Tensor Variable::read(Where where) const {
  VariableState& state = standing_in(defined_state(state_, "read", where));
  if (read_watch) read_watch(*this, where);
  if (Trace* trace = current_trace()) {
    Tensor read = trace->read(*this);
    if (tapes_open()) note_reading(read, state.id, state.trainable);
    return read;
  }
  refuse_in_init_scope(state, "read", where);
  Tensor held = seen_value(state, "read", where);
  VariableNotes::note(state.id, held);
  return tapes_open() ? reading_of(held, state.id, state.trainable) : held;
}

Tensor Variable::assign(const In& value, Where where) const {
  VariableState& state = standing_in(defined_state(state_, "assign", where));
  if (assigned_watch) assigned_watch(*this, where);
  Tensor next = fitting(state, value, "assign", where, false).contiguous(where);
  if (Trace* trace = current_trace()) return trace->write(*this, next, where);
  refuse_in_init_scope(state, "assign", where);
  VariableNotes::note(state.id, seen_value(state, "assign", where));
  if (VariableOverlay* overlay = VariableOverlay::current()) {
    overlay->write(*this, next);
    return next;
  }
  HeldVariables::refuse(state, "assign", where);
  std::lock_guard lock(state.guard);
  return state.value = next;
}

Tensor Variable::update(const In& value, Tensor (*op)(In, In), const char* what, Where where) const {
  VariableState& state = standing_in(defined_state(state_, what, where));
  if (assigned_watch) assigned_watch(*this, where);
  Tensor change = fitting(state, value, what, where, true);
  if (Trace* trace = current_trace())
    return trace->write(*this, op(In(trace->current_value(*this), where), In(change, where)), where);
  refuse_in_init_scope(state, what, where);
  VariableNotes::note(state.id, seen_value(state, what, where));
  if (VariableOverlay* overlay = VariableOverlay::current()) {
    Tensor next = op(In(seen_value(state, what, where), where), In(change, where));
    overlay->write(*this, next);
    return next;
  }
  HeldVariables::refuse(state, what, where);
  std::lock_guard lock(state.guard);
  return state.value = op(In(state.value, where), In(change, where));
}

Tensor Variable::assign_add(const In& value, Where where) const {
  return update(value, core_ops.add, "assign_add", where);
}
Tensor Variable::assign_sub(const In& value, Where where) const {
  return update(value, core_ops.subtract, "assign_sub", where);
}

Shape Variable::shape(Where where) const { return defined_state(state_, "shape", where).shape; }
DType Variable::dtype(Where where) const { return defined_state(state_, "dtype", where).dtype; }
bool Variable::trainable() const { return state_ && state_->trainable; }
const std::string& Variable::name() const {
  static const std::string* const none = new std::string;  // never destroyed: see thread_end.h
  return state_ ? state_->name : *none;
}
std::uint64_t Variable::id() const { return state_ ? state_->id : 0; }

std::ostream& operator<<(std::ostream& out, const Variable& variable) {
  if (!variable.defined()) return out << "undefined";
  return out << variable.read();
}

}  // namespace stet
