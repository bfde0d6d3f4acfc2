#include "stet/core/tape.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/inside.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/core/gradient_reads.h"
#include "stet/core/name_scope.h"
#include "stet/core/tape_state.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/ir/graph.h"

namespace stet {

namespace inside {

void TensorList::add(const Leaves& leaves) {
  for (const Leaf& leaf : leaves) {
    if (leaf.kind != Leaf::tensor && leaf.kind != Leaf::variable) continue;
    tensors.push_back(leaf.kind == Leaf::variable ? leaf.state.read() : leaf.value);
    places.push_back(leaf.path);
  }
}

std::vector<Source> sources_of(const Leaves& leaves) {
  std::vector<Source> out;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind == Leaf::tensor) out.emplace_back(leaf.value);
    if (leaf.kind == Leaf::variable) out.emplace_back(leaf.state);
  }
  return out;
}

Leaves with_tensors(Leaves leaves, std::vector<Tensor> tensors) {
  std::size_t next = 0;
  for (Leaf& leaf : leaves) {
    if (leaf.kind != Leaf::tensor && leaf.kind != Leaf::variable) continue;
    leaf.kind = Leaf::tensor;
    leaf.value = std::move(tensors[next++]);
    leaf.state = {};
  }
  return leaves;
}

void refuse_variables(const Leaves& leaves, Where where) {
  for (const Leaf& leaf : leaves)
    if (leaf.kind == Leaf::variable)
      throw UserError(
          error_text(text("gradient: '", leaf.path, "' of the sources is a Variable inside of an aggregate, ",
                          "where its gradient has no place"),
                     where, "give the Variables in a tuple or a vector"));
}

}  // namespace inside

namespace {

std::vector<GradientTape::State*>& open_tapes() {
  constinit thread_local std::vector<GradientTape::State*>* tapes = nullptr;
  return tapes ? *tapes : make_for_this_thread(tapes);
}

/// How many of the open tapes lie outside of the open trace.
std::size_t& hidden_tapes() {
  thread_local std::size_t count = 0;
  return count;
}
/// The tapes that see what happens now.
std::span<GradientTape::State* const> visible_tapes() {
  return std::span<GradientTape::State* const>(open_tapes()).subspan(std::min(hidden_tapes(), open_tapes().size()));
}

/// "f32[2,3]"
std::string type_of(const TensorNode& node) { return text(node.dtype, node.shape()); }

}  // namespace

GradientTape::GradientTape(GradientTapeOptions options) : state_(std::make_unique<State>()) {
  state_->persistent = options.persistent;
  state_->watches_variables = options.watch_variables;
  open_tapes().push_back(state_.get());
}

GradientTape::~GradientTape() { close_tape(*this); }

void close_tape(GradientTape& tape) {
  auto& tapes = open_tapes();
  tapes.erase(std::remove(tapes.begin(), tapes.end(), &tape.state()), tapes.end());
}

GradientTape::Stopped::Stopped(GradientTape& tape) : tape_(tape) {
  ++tape_.state_->stopped;
  // On one side of a decision it is refused, as watching is: the tape sees both sides as one op.
  if (current_trace()) tape_.state_->watched.push_back({});
}
GradientTape::Stopped::~Stopped() { --tape_.state_->stopped; }

void GradientTape::reset() {
  State fresh;
  fresh.persistent = state_->persistent;
  fresh.watches_variables = state_->watches_variables;
  fresh.stopped = state_->stopped;
  fresh.resets = state_->resets + 1;
  *state_ = std::move(fresh);
}

void GradientTape::watch(const Tensor& tensor, Where where) {
  const TensorNode& node = defined_node(tensor, "watch", where);
  if (!is_floating(node.dtype))
    throw UserError(error_text(text("watch: ", type_of(node), " has no gradient"), where,
                               "only floating tensors have one; cast it first"));
  if (Trace* trace = current_trace()) trace->note_watched(tensor, where);
  state_->tracked.insert(identity_of(node));
  state_->watched.push_back({identity_of(node), 0});
}

void GradientTape::watch(const Variable& variable, Where where) {
  if (!is_floating(variable.dtype(where)))
    throw UserError(
        error_text(text("watch: the Variable ", variable.name().empty() ? "" : text("'", variable.name(), "' "), "of ",
                        variable.dtype(), variable.shape(), " has no gradient"),
                   where, "only floating Variables have one"));
  if (state_->variables.insert(variable.id()).second) state_->watched.push_back({0, variable.id()});
}

void GradientTape::watch(std::initializer_list<Source> sources, Where where) {
  for (const Source& source : sources)
    source.variable.defined() ? watch(source.variable, where) : watch(source.tensor, where);
}

void GradientTape::watch_leaves(const Leaves& leaves, Where where) {
  for (const Leaf& leaf : leaves) {
    if (leaf.kind == Leaf::variable) watch(leaf.state, where);
    if (leaf.kind != Leaf::tensor) continue;
    if (leaf.value.defined() && !is_floating(leaf.value.dtype()) && !leaf.path.empty())
      throw UserError(error_text(text("watch: '", leaf.path, "', ", type_of(*leaf.value.node()), ", has no gradient"),
                                 where, "only floating tensors have one; watch the others one by one"));
    watch(leaf.value, where);
  }
}

HiddenTapes::HiddenTapes() : hidden_before_(std::exchange(hidden_tapes(), open_tapes().size())) {}
HiddenTapes::~HiddenTapes() { hidden_tapes() = hidden_before_; }

ReadingNotes::ReadingNotes()
    : outer_([] {
        std::vector<const GradientTape::State*> out;
        for (const GradientTape::State* tape : visible_tapes())
          if (tape->recording()) out.push_back(tape);
        return out;
      }()),
      variables_([] {
        std::unordered_set<std::uint64_t> out;
        for (const GradientTape::State* tape : visible_tapes())
          if (tape->recording()) out.insert(tape->variables.begin(), tape->variables.end());
        return out;
      }()),
      // A trace may be called under any tape.
      watches_variables_(current_trace() || std::ranges::any_of(visible_tapes(),
                                                                [](const GradientTape::State* tape) {
                                                                  return tape->recording() && tape->watches_variables;
                                                                })),
      tape_({.watch_variables = watches_variables_}) {
  tape_.state().notes_readings_only = true;
  tape_.state().variables = std::move(variables_);
  tape_.state().outer = std::move(outer_);
}

namespace {

/// Constants of a trace: nobody can ask for their gradients.
bool is_constant(const Tensor& tensor) {
  const TensorNode& node = *tensor.node();
  const Trace* trace = current_trace();
  if (!trace) return false;
  return node.traced ? trace->graph.node(node.traced->id).op == &constant_row : node.made_in_trace;
}

void note_use_of(GradientTape::State& tape, const Tensor& tensor) {
  if (!tensor.defined() || !is_floating(tensor.dtype()) || is_constant(tensor)) return;
  const bool followed =
      current_trace() || std::ranges::any_of(tape.outer, [&](const auto* outer) { return outer->tracks(tensor); });
  if (!followed || !tape.known_uses.insert(identity_of(*tensor.node())).second) return;
  const std::uint64_t identity = identity_of(*tensor.node());
  if (std::ranges::any_of(tape.reads, [&](const auto& reading) { return reading.tensor == identity; })) return;
  tape.uses.push_back(tensor);
}

}  // namespace

void note_made(const Tensor& tensor) {
  for (GradientTape::State* tape : visible_tapes())
    if (tape->notes_readings_only) tape->known_uses.insert(identity_of(*tensor.node()));
}

void ReadingNotes::note_use(const Tensor& tensor) { note_use_of(tape_.state(), tensor); }

bool tapes_open() {
  for (const GradientTape::State* tape : visible_tapes())
    if (tape->recording()) return true;
  return false;
}

std::size_t recording_tapes() {
  std::size_t count = 0;
  for (const GradientTape::State* tape : visible_tapes()) count += tape->recording();
  return count;
}

std::size_t tapes_following(const Tensor& tensor) {
  std::size_t count = 0;
  for (const GradientTape::State* tape : visible_tapes()) count += tape->recording() && tape->tracks(tensor);
  return count;
}

bool tapes_follow_variable(std::uint64_t variable, bool trainable) {
  for (const GradientTape::State* tape : visible_tapes())
    if (tape->recording() && tape->follows(variable, trainable)) return true;
  return false;
}

namespace {

/// One element of each type, NaN: the memory of all stand-ins of a thread.
struct StandIns {
  Tensor of[dtype_count];
};
constinit thread_local StandIns* this_thread_stand_ins = nullptr;

/// Something of the type and shape of a tensor, without its memory.
Tensor stand_in(const TensorNode& node) {
  StandIns& all = this_thread_stand_ins ? *this_thread_stand_ins : make_for_this_thread(this_thread_stand_ins);
  Tensor& one = all.of[static_cast<std::size_t>(node.dtype)];
  if (!one.defined()) {
    double nan = std::numeric_limits<double>::quiet_NaN();
    std::uint64_t bits = 0;
    convert_element(DType::f64, &nan, node.dtype, &bits);
    one = creation::copied(node.dtype, &bits, 1, Shape(), {});
  }
  static constexpr std::int64_t no_strides[max_rank] = {};
  return view_tensor(*one.node(), node.size_span(), {no_strides, node.rank}, 0);
}

TapeValue kept_value(const Tensor& tensor, bool read) {
  const TensorNode& node = *tensor.node();
  return {identity_of(node),
          read || !is_floating(node.dtype) || node.traced || node.device() ? tensor : stand_in(node)};
}

void add_record(GradientTape::State& tape, const OpDef& op, const std::vector<Tensor>& inputs,
                const AttributesView& attributes, const std::vector<Tensor>& outputs) {
  TapeRecord record{&op, Attributes(attributes), {}, {}, {}, NameScope::current()};
  for (const Tensor& input : inputs) record.followed.push_back(tape.tracks(input));
  std::shared_ptr<const GradientReads> reads;
  if (!current_trace()) reads = gradient_reads(op, inputs, attributes, outputs, record.followed);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    record.inputs.push_back(kept_value(inputs[i], !reads || reads->inputs[i]));
  for (std::size_t r = 0; r < outputs.size(); ++r) {
    record.outputs.push_back(kept_value(outputs[r], !reads || reads->outputs[r]));
    if (is_floating(outputs[r].dtype())) tape.tracked.insert(record.outputs.back().identity);
  }
  tape.records.push_back(std::move(record));
}

}  // namespace

void tell_tapes(const OpDef& op, std::vector<Tensor> inputs, const AttributesView& attributes,
                std::vector<Tensor> outputs) {
  bool floating = std::any_of(outputs.begin(), outputs.end(), [](const Tensor& t) { return is_floating(t.dtype()); });
  if (!floating) return;
  // By number: what a gradient reads is found by code that has tapes of its own.
  for (std::size_t i = 0; i < visible_tapes().size(); ++i) {
    GradientTape::State& tape = *visible_tapes()[i];
    if (tape.notes_readings_only) {
      for (const Tensor& input : inputs) note_use_of(tape, input);
      for (const Tensor& output : outputs) tape.known_uses.insert(identity_of(*output.node()));
    }
    if (!tape.recording() || tape.notes_readings_only) continue;
    if ((op.kind == Kind::branch || op.kind == Kind::loop) && tape.was_stopped) continue;
    if (std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return tape.tracks(t); }))
      add_record(tape, op, inputs, attributes, outputs);
  }
}

std::vector<TapeMark> mark_tapes() {
  std::vector<TapeMark> out;
  for (GradientTape::State* tape : visible_tapes())
    out.push_back({tape, tape->records.size(), tape->watched.size(), tape->reads.size(), tape->recording(), tape->spent,
                   tape->resets, tape->asked});
  return out;
}

void return_tapes_to(const std::vector<TapeMark>& marks) {
  for (const TapeMark& mark : marks) {
    GradientTape::State& tape = *mark.tape;
    if (tape.resets != mark.resets)
      throw TraceError(
          error_text("tracing: a tape that was made before an if (tensor) is reset in the scope that holds it", {},
                     "make the tape there, or reset it outside of the function, layer or stet::scope"));
    for (std::size_t i = mark.records; i < tape.records.size(); ++i)
      for (const TapeValue& output : tape.records[i].outputs) tape.tracked.erase(output.identity);
    for (std::size_t i = mark.watched; i < tape.watched.size(); ++i) {
      tape.tracked.erase(tape.watched[i].tensor);
      tape.variables.erase(tape.watched[i].variable);
    }
    for (std::size_t i = mark.reads; i < tape.reads.size(); ++i) tape.tracked.erase(tape.reads[i].tensor);
    tape.records.erase(tape.records.begin() + static_cast<std::ptrdiff_t>(mark.records), tape.records.end());
    tape.watched.resize(mark.watched);
    tape.reads.erase(tape.reads.begin() + static_cast<std::ptrdiff_t>(mark.reads), tape.reads.end());
    tape.spent = mark.spent;
    tape.was_stopped = !mark.recording;
  }
}

namespace {

Tensor new_view(const Tensor& tensor) {
  const TensorNode& node = *tensor.node();
  return view_tensor(node, node.size_span(), node.stride_span(), 0);
}

Tensor alias_of(std::initializer_list<Tensor> operands, AliasAttributes::Kind kind) {
  Tensor out;
  if (Trace* trace = current_trace())
    out = trace->alias(std::vector<Tensor>(operands), {.kind = kind});
  else
    out = new_view(*operands.begin());
  AliasAttributes attributes{kind};
  if (kind != AliasAttributes::stop && tapes_open()) tell_tapes(alias_row, operands, view_of(attributes), {out});
  return out;
}

}  // namespace

Tensor same_value(const Tensor& tensor) { return alias_of({tensor}, AliasAttributes::identity); }
Tensor detached(const Tensor& tensor) { return alias_of({tensor}, AliasAttributes::stop); }
Tensor attached_to(const Tensor& value, const Tensor& reading) {
  return alias_of({value, reading}, AliasAttributes::attached);
}

Tensor reading_of(const Tensor& held, std::uint64_t variable, bool trainable) {
  Trace* trace = current_trace();
  const bool followed = trainable || tapes_follow_variable(variable, false);
  Tensor own = trace ? trace->read_value(trace->lift(held, {}), variable, followed) : new_view(held);
  note_reading(own, variable, trainable);
  return own;
}

void note_reading(const Tensor& reading, std::uint64_t variable, bool trainable) {
  if (!is_floating(reading.dtype())) return;
  for (GradientTape::State* tape : visible_tapes()) {
    if (!tape->recording() || !tape->follows(variable, trainable)) continue;
    const std::uint64_t identity = identity_of(*reading.node());
    if (!tape->tracked.insert(identity).second) continue;
    tape->reads.push_back({identity, variable, tape->notes_readings_only ? reading : Tensor(), trainable});
  }
}

}  // namespace stet
