#include "stet/core/tape.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "stet/base/inside.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/ir/graph.h"

namespace stet {

struct TapeRecord {
  const OpDef* op;
  Attributes attributes;
  std::vector<Tensor> inputs;  // kept alive, so that a node's address names its tensor
  std::vector<Tensor> outputs;
};

struct GradientTape::State {
  bool persistent = false;
  bool recording = true;
  bool spent = false;
  std::vector<TapeRecord> records;
  std::unordered_set<const TensorNode*> tracked;  // depend on something watched
  std::vector<Tensor> watched;                    // kept alive
  /// Tensors read from Variables, in the order they were read: gradients add up in it, never in that of addresses.
  std::vector<std::pair<Tensor, std::uint64_t>> reads;

  bool tracks(const Tensor& tensor) const { return tracked.contains(tensor.node()); }
};

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

/// Gradients by tensor while walking backwards.
class Accumulator {
 public:
  void add(const Tensor& at, const Tensor& gradient) { add(gradients_[at.node()].sum, gradient); }
  /// Blocks wait until the sum is asked for: those of many slices of one tensor are put together in one go.
  void add(const Tensor& at, GradientBlock block) {
    Gradient& gradient = gradients_[at.node()];
    gradient.shape = at.shape();
    gradient.blocks.push_back(std::move(block));
  }
  Tensor take(const Tensor& at, bool keep) {
    Tensor out = find(at.node());
    if (!keep) gradients_.erase(at.node());
    return out;
  }
  Tensor find(const TensorNode* node) {
    auto found = gradients_.find(node);
    if (found == gradients_.end()) return {};
    Gradient& gradient = found->second;
    if (!gradient.blocks.empty())
      add(gradient.sum, core_ops.assembled(gradient.shape, std::exchange(gradient.blocks, {})));
    return gradient.sum;
  }

 private:
  struct Gradient {
    Tensor sum;
    Shape shape;  // of the tensor, if there are blocks
    std::vector<GradientBlock> blocks;
  };
  static void add(Tensor& sum, const Tensor& gradient) {
    sum = sum.defined() ? core_ops.add(In(sum), In(gradient)) : gradient;
  }
  std::unordered_map<const TensorNode*, Gradient> gradients_;
};

/// One record backwards.
void propagate(const GradientTape::State& tape, const TapeRecord& record, std::vector<Tensor> ds,
               Accumulator& gradients) {
  if (record.op == &alias_row) {
    bool attached = record.attributes.as<AliasAttributes>().kind == AliasAttributes::attached;
    gradients.add(record.inputs[attached ? 1 : 0], ds[0]);
    return;
  }
  if (!record.op->gradient && record.op->kind != Kind::map && record.op->kind != Kind::branch &&
      record.op->kind != Kind::loop)
    throw UserError(error_text(text("gradient: ", record.op->name, " has no gradient"), frame_where(),
                               "leave it out of what the target is computed from, or take its result as a constant"));
  std::vector<bool> wanted;
  for (const Tensor& input : record.inputs) wanted.push_back(tape.tracks(input));
  GradientCall call(*record.op, record.inputs, record.attributes.view(), record.outputs, std::move(ds),
                    std::move(wanted));
  if (record.op->gradient)
    record.op->gradient(call);
  else if (record.op->kind == Kind::branch)
    branch_gradient(call);
  else if (record.op->kind == Kind::loop)
    loop_gradient(call);
  else
    map_gradient(call);
  for (std::size_t i = 0; i < record.inputs.size(); ++i)
    if (call.results()[i].defined()) gradients.add(record.inputs[i], call.results()[i]);
  for (auto& [number, block] : call.blocks())
    gradients.add(record.inputs[static_cast<std::size_t>(number)], std::move(block));
}

}  // namespace

GradientTape::GradientTape(GradientTapeOptions options) : state_(std::make_unique<State>()) {
  state_->persistent = options.persistent;
  open_tapes().push_back(state_.get());
}

GradientTape::~GradientTape() {
  auto& tapes = open_tapes();
  tapes.erase(std::remove(tapes.begin(), tapes.end(), state_.get()), tapes.end());
}

void GradientTape::watch(const Tensor& tensor, Where where) {
  const TensorNode& node = defined_node(tensor, "watch", where);
  if (!is_floating(node.dtype))
    throw UserError(error_text(text("watch: ", node.dtype, node.shape(), " has no gradient"), where,
                               "only floating tensors have one; cast it first"));
  if (Trace* trace = current_trace()) trace->note_watched(tensor, where);
  state_->tracked.insert(&node);
  state_->watched.push_back(tensor);
}

namespace {

/// Pauses a tape while it computes gradients; for good if it is not persistent.
class Pause {
 public:
  explicit Pause(GradientTape::State& tape) : tape_(tape) { tape_.recording = false; }
  ~Pause() { tape_.recording = tape_.persistent; }

 private:
  GradientTape::State& tape_;
};

/// Walks the records backwards. The targets' own gradients are in `gradients` already.
void walk_back(const GradientTape::State& tape, const std::vector<Source>& sources, Accumulator& gradients) {
  std::unordered_set<const TensorNode*> asked;
  for (const Source& source : sources)
    if (source.tensor.defined()) asked.insert(source.tensor.node());
  for (std::size_t i = tape.records.size(); i-- > 0;) {
    const TapeRecord& record = tape.records[i];
    std::vector<Tensor> ds;
    bool any = false;
    for (const Tensor& output : record.outputs) {
      ds.push_back(gradients.take(output, asked.contains(output.node())));
      any = any || ds.back().defined();
    }
    if (any) propagate(tape, record, std::move(ds), gradients);
  }
}

std::vector<Tensor> gradients_at(const GradientTape::State& tape, const std::vector<Source>& sources,
                                 Accumulator& gradients, Where where) {
  std::unordered_map<std::uint64_t, Tensor> of_variable;
  for (const auto& [read, variable] : tape.reads)
    if (Tensor d = gradients.find(read.node()); d.defined()) {
      Tensor& sum = of_variable[variable];
      sum = sum.defined() ? core_ops.add(In(sum), In(d)) : d;
    }
  std::vector<Tensor> out;
  for (const Source& source : sources) {
    if (source.variable.defined()) {
      auto found = of_variable.find(source.variable.id());
      out.push_back(found == of_variable.end() ? Tensor() : found->second);
    } else {
      out.push_back(gradients.find(&defined_node(source.tensor, "gradient", where)));
    }
  }
  return out;
}

std::vector<Tensor> gradients_of_one(GradientTape::State& tape, const Tensor& target,
                                     const std::vector<Source>& sources, Where where) {
  const TensorNode& node = defined_node(target, "gradient", where);
  if (!is_floating(node.dtype))
    throw UserError(error_text(text("gradient: the target ", node.dtype, node.shape(), " is not floating"), where,
                               "differentiate a floating tensor, such as a loss"));
  if (tape.spent && !tape.persistent)
    throw UserError(error_text("gradient: this tape has given its gradients already", where,
                               "make it GradientTape tape({.persistent = true}), or ask for all gradients at once"));
  Frame frame("gradient", where);
  tape.spent = true;
  Pause pause(tape);
  Accumulator gradients;
  if (tape.tracks(target)) gradients.add(target, ones_like(target));
  walk_back(tape, sources, gradients);
  std::vector<Tensor> out = gradients_at(tape, sources, gradients, where);
  for (Tensor& one : out)
    if (!one.defined()) one = Tensor::no_gradient();
  return out;
}

}  // namespace

std::vector<Tensor> gradients_of(GradientTape& tape, const std::vector<Tensor>& targets,
                                 const std::vector<Tensor>& weights, const std::vector<Source>& sources) {
  GradientTape::State& state = tape.state();
  state.spent = true;
  Pause pause(state);
  Accumulator gradients;
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (weights[i].defined() && state.tracks(targets[i])) gradients.add(targets[i], weights[i]);
  walk_back(state, sources, gradients);
  return gradients_at(state, sources, gradients, {});
}

Tensor GradientTape::gradient(const Tensor& target, const Source& source, Where where) {
  return gradients_of_one(*state_, target, {source}, where)[0];
}
std::vector<Tensor> GradientTape::gradient(const Tensor& target, std::initializer_list<Source> sources, Where where) {
  return gradients_of_one(*state_, target, sources, where);
}
std::vector<Tensor> GradientTape::gradient(const Tensor& target, const std::vector<Source>& sources, Where where) {
  return gradients_of_one(*state_, target, sources, where);
}
std::vector<Tensor> GradientTape::gradient(const Tensor& target, const std::vector<Variable>& sources, Where where) {
  return gradients_of_one(*state_, target, {sources.begin(), sources.end()}, where);
}
std::vector<Tensor> GradientTape::gradient(const Tensor& target, const std::vector<Tensor>& sources, Where where) {
  return gradients_of_one(*state_, target, {sources.begin(), sources.end()}, where);
}

HiddenTapes::HiddenTapes() : hidden_before_(std::exchange(hidden_tapes(), open_tapes().size())) {}
HiddenTapes::~HiddenTapes() { hidden_tapes() = hidden_before_; }

bool tapes_open() {
  for (const GradientTape::State* tape : visible_tapes())
    if (tape->recording) return true;
  return false;
}

std::size_t recording_tapes() {
  std::size_t count = 0;
  for (const GradientTape::State* tape : visible_tapes()) count += tape->recording;
  return count;
}

std::size_t tapes_following(const Tensor& tensor) {
  std::size_t count = 0;
  for (const GradientTape::State* tape : visible_tapes()) count += tape->recording && tape->tracks(tensor);
  return count;
}

void tell_tapes(const OpDef& op, std::vector<Tensor> inputs, const AttributesView& attributes,
                std::vector<Tensor> outputs) {
  bool floating = std::any_of(outputs.begin(), outputs.end(), [](const Tensor& t) { return is_floating(t.dtype()); });
  if (!floating) return;
  for (GradientTape::State* tape : visible_tapes()) {
    if (!tape->recording) continue;
    bool depends = std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return tape->tracks(t); });
    if (!depends) continue;
    for (const Tensor& output : outputs)
      if (is_floating(output.dtype())) tape->tracked.insert(output.node());
    tape->records.push_back({&op, Attributes(attributes), inputs, outputs});
  }
}

std::vector<TapeMark> mark_tapes() {
  std::vector<TapeMark> out;
  for (GradientTape::State* tape : visible_tapes())
    out.push_back({tape, tape->records.size(), tape->watched.size(), tape->reads.size(), tape->recording, tape->spent});
  return out;
}

void return_tapes_to(const std::vector<TapeMark>& marks) {
  for (const TapeMark& mark : marks) {
    GradientTape::State& tape = *mark.tape;
    for (std::size_t i = mark.records; i < tape.records.size(); ++i)
      for (const Tensor& output : tape.records[i].outputs) tape.tracked.erase(output.node());
    for (std::size_t i = mark.watched; i < tape.watched.size(); ++i) tape.tracked.erase(tape.watched[i].node());
    for (std::size_t i = mark.reads; i < tape.reads.size(); ++i) tape.tracked.erase(tape.reads[i].first.node());
    tape.records.resize(mark.records);
    tape.watched.resize(mark.watched);
    tape.reads.resize(mark.reads);
    tape.recording = mark.recording;
    tape.spent = mark.spent;
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
  Tensor own = trace ? trace->read_value(trace->lift(held, {}), variable, trainable) : new_view(held);
  if (trainable) note_reading(own, variable);
  return own;
}

void note_reading(const Tensor& reading, std::uint64_t variable) {
  if (!is_floating(reading.dtype())) return;
  for (GradientTape::State* tape : visible_tapes()) {
    if (!tape->recording || !tape->tracked.insert(reading.node()).second) continue;
    tape->reads.emplace_back(reading, variable);
  }
}

}  // namespace stet
