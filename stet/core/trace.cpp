#include "stet/core/trace.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/custom_gradient.h"
#include "stet/core/flat_loop.h"
#include "stet/core/fork.h"
#include "stet/core/gradient.h"
#include "stet/core/host_code_run.h"
#include "stet/core/kept_tensors.h"
#include "stet/core/name_scope.h"
#include "stet/core/scope.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"

namespace stet {
namespace {

Trace*& open_trace() {
  thread_local Trace* trace = nullptr;
  return trace;
}
/// The same, or behind an InitScope the trace that it interrupts.
Trace*& running_trace() {
  thread_local Trace* trace = nullptr;
  return trace;
}

constexpr std::int64_t most_constant_elements = 16;  // larger captured tensors are hidden inputs

/// One element, repeated.
bool repeats_one_element(const TensorNode& node) {
  auto strides = node.stride_span();
  if (std::all_of(strides.begin(), strides.end(), [](std::int64_t stride) { return stride == 0; })) return true;
  const auto width = static_cast<std::size_t>(size_of(node.dtype));
  const auto bytes = static_cast<std::size_t>(node.element_count()) * width;
  return node.dense && std::memcmp(node.data, node.data + width, bytes - width) == 0;
}

/// 0, 1, 2, … as arange() has them.
bool counts(const TensorNode& node) {
  if (!node.dense || node.rank != 1 || node.dtype != DType::i64) return false;
  const auto* elements = reinterpret_cast<const std::int64_t*>(node.data);
  for (std::int64_t i = 0; i < node.sizes[0]; ++i)
    if (elements[i] != i) return false;
  return true;
}

/// What zeros(), full() and arange() of known sizes made is computed where it is used: a program that kept it would
/// hold its memory for as long as it lives. Undefined for anything else.
Tensor computed_again(const TensorNode& node, Where where) {
  if (!node.made_in_trace || node.device() || node.element_count() <= most_constant_elements) return {};
  const bool is_one = repeats_one_element(node);
  if (!is_one && !counts(node)) return {};
  Tensor first =
      core_ops.broadcast_to(In(creation::copied(node.dtype, node.data, 1, Shape(), where), where), node.shape());
  if (is_one) return first;
  In operands[] = {In(first, where)};
  return call_map(loop_index(0), operands);
}

Tensor packed(const Tensor& captured, Where where) {
  InitScope outside;
  return captured.contiguous(where);
}

}  // namespace

Trace* current_trace() { return open_trace(); }

Trace* trace_in_progress() { return running_trace(); }

InitScope::InitScope() : trace_(std::exchange(open_trace(), nullptr)) {}
InitScope::~InitScope() { open_trace() = static_cast<Trace*>(trace_); }

Tracing tracing() {
  const Trace* trace = running_trace();
  return trace ? Tracing{trace->function(), trace->is_audit} : Tracing{};
}

namespace branches {
bool may_fork() { return open_trace() != nullptr; }
Leaves run_scope(const std::function<Leaves()>& body, Where where) { return open_trace()->run_scope(body, where); }
bool truth(const In& condition, Where where) {
  if (condition.kind() != In::Kind::tensor) return static_cast<bool>(as_tensor(condition, DType::bool_));
  defined_node(condition.tensor(), "cond", where);
  return static_cast<bool>(condition.tensor());
}
}  // namespace branches

OpenTrace::OpenTrace(Trace& trace)
    : open_(std::exchange(open_trace(), &trace)),
      running_(std::exchange(running_trace(), &trace)),
      sizes_(std::make_unique<OpenScope>(trace.symbols())) {}
OpenTrace::~OpenTrace() {
  open_trace() = open_;
  running_trace() = running_;
}

class Trace::Carrier final : public CheckCarrier {
 public:
  explicit Carrier(Trace& trace) : trace_(trace) {}
  bool takes_checks() const override { return !trace_.applying_; }
  void carry(const SizeCheck& check) override {
    const Fact& fact = check.fact;
    NeedAttributes need{fact.left,        fact.relation, fact.right,   fact.reason.asker,
                        fact.reason.what, check.problem, check.advice, check.sizes};
    trace_.append(need_row, {}, Attributes(view_of(need)), fact.reason.where);
  }

 private:
  Trace& trace_;
};

Trace::Trace(std::string function, bool yes_first)
    : life_(std::make_shared<TraceLife>()),
      symbols_(std::make_shared<RecordingScope>(function)),
      carrier_(std::make_unique<Carrier>(*this)),
      yes_first_(yes_first) {
  life_->trace = this;
  life_->function = std::move(function);
  graph.scope = symbols_;
  symbols_->set_carrier(carrier_.get());
}

Trace::~Trace() {
  symbols_->set_carrier(nullptr);
  life_->trace = nullptr;
}

void Trace::note_created(const Variable& variable, Where where) {
  if (!may_create)
    throw TraceError(error_text(
        text("'", function(), "' makes a Variable", variable.name().empty() ? "" : text(" '", variable.name(), "'"),
             " every time it is run, so its value would never outlive a call"),
        where,
        "make the Variable once: outside of the traced function, in a layer's build, or under "
        "`if (!v.defined())`; for a value of one call use a Tensor"));
  created.push_back(variable);
}

Tensor Trace::tensor_of(ValueId id) {
  auto at = static_cast<std::size_t>(id);
  if (at >= tensors_.size()) tensors_.resize(graph.nodes.size());
  if (tensors_[at].defined()) return tensors_[at];
  const ValueType& type = graph.type(id);
  TensorNode* node = new_node();
  node->dtype = type.dtype;
  node->rank = static_cast<std::uint8_t>(type.shape.rank());
  node->dense = true;
  node->data = nullptr;
  node->traced = std::make_unique<TracedValue>(life_, id, type.shape);
  return tensors_[at] = Tensor(node);
}

void Trace::know_as(ValueId id, const Tensor& tensor) {
  if (static_cast<std::size_t>(id) >= tensors_.size()) tensors_.resize(graph.nodes.size());
  tensors_[static_cast<std::size_t>(id)] = tensor;
}

ValueId Trace::lift(const Tensor& tensor, Where where) {
  const TensorNode& node = defined_node(tensor, "tracing", where);
  if (node.traced) {
    if (node.traced->life->trace != this) concrete_node(tensor, "tracing", where);  // throws: it has leaked
    ValueId id = node.traced->id;
    if (static_cast<std::size_t>(id) < buried_.size() && buried_[static_cast<std::size_t>(id)])
      throw TraceError(error_text(
          text("tracing '", function(), "': a tensor made on one side of an if (tensor), or in a turn of a loop,",
               at_line(graph.node(id).where), " is used outside of it"),
          where,
          "return it from the function, layer or stet::scope that holds the if, or "
          "from the body of the loop"));
    return id;
  }
  if (auto watched = watched_.find(&node); watched != watched_.end()) return watched->second;
  return capture(tensor, where);
}

ValueId Trace::capture(const Tensor& tensor, Where where) {
  const TensorNode& node = *tensor.node();
  if (Tensor again = computed_again(node, where); again.defined()) return again.node()->traced->id;
  auto found = captured_.find(&node);
  ValueId id = found == captured_.end() ? -1 : found->second;
  Tensor dense;
  if (id < 0) {
    dense = packed(tensor, where);
    if (node.made_in_trace) id = constant_like(dense);
  }
  if (id < 0 || !met_.contains(id)) {
    if (innermost_ && innermost_->must_follow()) {
      id = innermost_->captured_again(id, dense, where);
    } else {
      if (!dense.defined()) dense = packed(tensor, where);
      if (id < 0) {
        id = add_captured(tensor, dense);
        // A constant stands for all that have its elements: a tape that watches one of them does not watch the others.
        if (node.made_in_trace)
          constant_like(dense) = id;
        else
          know_as(id, tensor);
      }
      if (innermost_) innermost_->add({.kind = PathItem::capture, .id = id, .captured = dense});
    }
    met_.insert(id);
  }
  if (found == captured_.end()) {
    captured_.emplace(&node, id);
    alive_.push_back(tensor);
  }
  return id;
}

ValueId& Trace::constant_like(const Tensor& dense) {
  const Tensor readable = on_host(dense);
  const TensorNode& node = *readable.node();
  auto bytes = static_cast<std::size_t>(node.element_count() * size_of(node.dtype));
  std::size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char*>(node.data), bytes});
  auto [begin, end] = made_constants_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (same_elements(it->second.elements, dense)) return it->second.id;
  return made_constants_.emplace(hash, MadeConstant{-1, dense})->second.id;
}

ValueId Trace::add_captured(const Tensor& tensor, const Tensor& dense) {
  const TensorNode& node = *tensor.node();
  ValueType type{node.dtype, node.shape()};
  // What was made outside may be watched by a tape outside: it stays an input, whatever its size.
  bool could_be_watched = is_floating(node.dtype) && !node.made_in_trace;
  if (node.element_count() <= most_constant_elements && !could_be_watched) {
    auto count = static_cast<std::size_t>(node.element_count() * size_of(node.dtype));
    const Tensor readable = on_host(dense);
    return graph.add_constant(std::move(type),
                              std::string(reinterpret_cast<const char*>(readable.node()->data), count));
  }
  hidden.push_back({{}, dense, tensor});
  return graph.add_input(std::move(type));
}

void Trace::note_watched(const Tensor& tensor, Where where) {
  const TensorNode& node = defined_node(tensor, "watch", where);
  if (node.traced || watched_.contains(&node)) return;
  ValueId id = append(alias_row, {capture(tensor, where)}, Attributes(view_of(AliasAttributes{})), where);
  know_as(id, tensor);
  watched_.emplace(&node, id);
}

Tensor Trace::record(const OpDef& op, std::span<const Tensor> operands, AttributesView attributes, Where where) {
  Tensor out;
  record(op, operands, attributes, where, {&out, 1});
  return out;
}

void Trace::record(const OpDef& op, std::span<const Tensor> operands, AttributesView attributes, Where where,
                   std::span<Tensor> results) {
  std::vector<ValueId> inputs;
  for (const Tensor& operand : operands) inputs.push_back(lift(operand, where));
  ValueId id = append(op, std::move(inputs), Attributes(attributes), where);
  if (results.size() == 1) {
    results[0] = tensor_of(id);
    return;
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = tensor_of(append(part_row, {id}, Attributes(view_of(PartAttributes{static_cast<int>(i)})), where));
}

Tensor Trace::alias(std::span<const Tensor> operands, AliasAttributes attributes) {
  return record(alias_row, operands, view_of(attributes), {});
}

Tensor Trace::number_value(DType dtype, const void* element) {
  ValueType type{dtype, Shape()};
  std::string bytes(static_cast<const char*>(element), static_cast<std::size_t>(size_of(dtype)));
  // One node for equal numbers: a path that is run again makes them anew.
  auto [place, added] = constants_.emplace(text(type.str(), " ", bytes), -1);
  if (added) place->second = graph.add_constant(std::move(type), std::move(bytes));
  return tensor_of(place->second);
}

std::vector<Where> Trace::left_behind() {
  tensors_.clear();
  forget_kept_of(*this);
  std::lock_guard lock(life_->guard);
  std::vector<Where> lines;
  for (const auto& [id, count] : life_->alive) {
    Where line = graph.node(id).where;
    bool told = std::any_of(lines.begin(), lines.end(),
                            [&](Where other) { return other.file == line.file && other.line == line.line; });
    if (!told) lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end(), [](Where a, Where b) { return a.line < b.line; });
  return lines;
}

ValueId Trace::append(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, Where where) {
  if (innermost_)
    if (ValueId again = innermost_->replayed(op, inputs, attributes, where); again >= 0) {
      // What follows is told of its checks as it was the last time.
      if (auto range = checks_of_.find(again); range != checks_of_.end())
        for (std::size_t i = range->second.known; i < range->second.end; ++i) symbols_->know_check(graph.checks[i]);
      return again;
    }
  std::size_t before = graph.checks.size(), known = symbols_->checks().size();
  struct Applying {
    explicit Applying(bool& flag) : flag(flag) { flag = true; }
    ~Applying() { flag = false; }
    bool& flag;
  };
  ValueId id = [&] {
    Applying applying(applying_);
    return graph.add_call(op, std::move(inputs), std::move(attributes), where);
  }();
  known = graph.checks.size() - (symbols_->checks().size() - known);
  if (graph.checks.size() > before) checks_of_[id] = {before, known, graph.checks.size()};
  // When a check fails, a whole program has run so far: the message says which op it was.
  graph.nodes[static_cast<std::size_t>(id)].caller = frame_caller();
  graph.nodes[static_cast<std::size_t>(id)].name_scope = NameScope::current();
  for (std::size_t i = before; i < graph.checks.size(); ++i) {
    graph.checks[i].op = &op == &need_row ? graph.checks[i].fact.reason.asker : op_text(frame_caller(), op.name);
    graph.checks[i].where = where;
  }
  if (innermost_) innermost_->add({.kind = PathItem::node, .id = id});
  return id;
}

Tensor Trace::size_value(const Dim& size, DType dtype, Where where) {
  SizeAttributes attributes{size, dtype};
  ValueId id = append(size_row, {}, Attributes(view_of(attributes)), where);
  if (dtype == DType::i64) return tensor_of(id);
  MapAttributes cast{scalar::cast(operand(0, DType::i64), dtype), {}};
  Tensor made = tensor_of(append(map_row, {id}, Attributes(view_of(cast)), {}));
  note_made(made);
  return made;
}

TracedVariable& Trace::state_of_variable(const Variable& variable) {
  auto found = variables_.find(variable.id());
  if (found != variables_.end()) return found->second;
  ValueId id = graph.add_input({variable.dtype(), variable.shape()});
  hidden.push_back({variable, {}, {}});
  variable_order_.push_back(variable.id());
  first_value_.emplace(variable.id(), id);
  return variables_.emplace(variable.id(), TracedVariable{variable, id, id}).first->second;
}

void Trace::note_variable(std::uint64_t variable, const Tensor& value) {
  first_value_.emplace(variable, lift(value, {}));
}

Tensor Trace::current_value(const Variable& variable) { return tensor_of(state_of_variable(variable).current); }

Tensor Trace::read(const Variable& variable) {
  return read_value(state_of_variable(variable).current, variable.id(),
                    variable.trainable() || tapes_follow_variable(variable.id(), false));
}

Tensor Trace::read_value(ValueId value, std::uint64_t variable, bool trainable) {
  AliasAttributes attributes{AliasAttributes::read, variable, trainable};
  // Tapes outside of a scope see a scope that forked as one branch, and a reading inside of it not at all. So the
  // reading stands before the outermost scope that tapes look at from outside; a value that was made inside such a
  // scope cannot stand there, but the Variable's gradient can be sent to a reading that does.
  ForkScope* across = nullptr;
  bool made_inside = false;
  for (ForkScope* scope = innermost_; scope; scope = scope->outer()) {
    if (!scope->seen_by_tapes()) continue;
    across = scope;
    made_inside = made_inside || !scope->was_there(value);
  }
  auto first = first_value_.find(variable);
  if (!across || (made_inside && (!trainable || first == first_value_.end())))
    return tensor_of(plain_reading(value, variable, Attributes(view_of(attributes))));
  ValueId outside = made_inside ? first->second : value;
  Reading reading{variable, outside, readings_[{variable, outside}]++};
  Tensor read = tensor_of(
      across->hoisted(reading, [&] { return graph.add_call(alias_row, {outside}, Attributes(view_of(attributes))); }));
  for (ForkScope* scope = innermost_; scope; scope = scope->outer())
    scope->note_reading_inside(read.node()->traced->id);
  if (!made_inside) return read;
  note_reading(read, variable);
  return attached_to(tensor_of(value), read);
}

ValueId Trace::plain_reading(ValueId value, std::uint64_t variable, Attributes attributes) {
  if (tapes_open()) return append(alias_row, {value}, std::move(attributes), {});
  // Without a tape, a Variable that is read twice gives one tensor, which a tape may watch later.
  if (auto known = plain_readings_.find({variable, value}); known != plain_readings_.end()) return known->second;
  ValueId id = append(alias_row, {value}, std::move(attributes), {});
  return plain_readings_[{variable, value}] = id;
}

Tensor Trace::write(const Variable& variable, const Tensor& value, Where where) {
  TracedVariable& state = state_of_variable(variable);  // so that it is an input, and locked by calls
  state.current = lift(value, where);
  state.written = true;
  return tensor_of(state.current);
}

}  // namespace stet
