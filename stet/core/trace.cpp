#include "stet/core/trace.h"

#include <algorithm>
#include <set>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/custom_gradient.h"
#include "stet/core/flat_loop.h"
#include "stet/core/fork.h"
#include "stet/core/host_code_run.h"
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
      throw TraceError(error_text(text("tracing '", function(), "': a tensor made on one side of an if (tensor)",
                                       at_line(graph.node(id).where), " is used outside of it"),
                                  where, "return it from the function, layer or stet::scope that holds the if"));
    return id;
  }
  if (auto watched = watched_.find(&node); watched != watched_.end()) return watched->second;
  return capture(tensor, where);
}

ValueId Trace::capture(const Tensor& tensor, Where where) {
  const TensorNode& node = *tensor.node();
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
  return tensor_of(append(map_row, {id}, Attributes(view_of(cast)), {}));
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

namespace {

using GivenResults = std::function<std::optional<std::vector<Tensor>>(ValueId)>;

/// Runs nodes through the door. `sizes` stands for the symbols.
class Replay {
 public:
  Replay(const Graph& graph, std::span<const Tensor> inputs, const std::vector<Dim>& sizes, Effects effects,
         const GivenResults& given = {})
      : graph_(graph), sizes_(sizes), effects_(effects), given_(given), values_(graph.nodes.size()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) values_[static_cast<std::size_t>(graph.inputs[i])] = inputs[i];
  }

  std::vector<Tensor> run() {
    const bool has_effects =
        effects_ == Effects::happen && std::any_of(graph_.nodes.begin(), graph_.nodes.end(), has_effect);
    if (graph_.raises && !has_effects) std::rethrow_exception(graph_.raises);
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      void_.push_back(is_void(node, void_));
      if (node.op == &input_row || node.op == &need_row || void_.back()) continue;
      if (given_ && take(static_cast<ValueId>(id), node)) continue;
      if (left_out(static_cast<ValueId>(id), node)) continue;
      if (node.op->has_effect) {
        run_host_code(static_cast<ValueId>(id), node);
        continue;
      }
      if (node.op == &alias_row)
        values_[id] = alias_of(node);
      else if (node.op == &part_row)
        values_[id] = tuples_.at(node.inputs[0])[static_cast<std::size_t>(node.attributes.as<PartAttributes>().number)];
      else if (node.op->kind == Kind::branch)
        run_branch(static_cast<ValueId>(id), node);
      else if (node.op->kind == Kind::loop)
        run_loop(static_cast<ValueId>(id), node);
      else if (node.op == &custom_gradient_row)
        run_custom_gradient(static_cast<ValueId>(id), node);
      else if (node.results.size() > 1)
        run_tuple(static_cast<ValueId>(id), node);
      else
        values_[id] = value_of(node);
      if (node.op->kind == Kind::late && node.results.size() == 1) learn_sizes(node.type(), values_[id]);
    }
    if (!given_) state_checks();
    if (graph_.raises) std::rethrow_exception(graph_.raises);
    std::vector<Tensor> out;
    for (ValueId id : graph_.results) out.push_back(at(id));
    return out;
  }

 private:
  /// Ops check the sizes that they are called with; these are of ops that nobody needs, and of none.
  void state_checks() const {
    Bindings known;
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (sizes_[i].is_constant()) known.bind(static_cast<int>(i), sizes_[i].constant());
    for (const SizeCheck& check : graph_.checks) {
      if (test_if_known(check, known)) continue;
      SizeCheck here = check;
      here.fact.left = check.fact.left.substitute(sizes_);
      here.fact.right = check.fact.right.substitute(sizes_);
      for (Dim& size : here.sizes) size = size.substitute(sizes_);
      Trace* trace = current_trace();
      if (trace && !trace->symbols().has_check(here.fact) &&
          prove_by_form(here.fact.left, here.fact.relation, here.fact.right) != Proof::yes)
        trace->symbols().state(here);
    }
  }

  /// The node's results are given: tapes see it, and nothing runs.
  bool take(ValueId id, const Node& node) {
    std::optional<std::vector<Tensor>> results = given_(id);
    if (!results) return false;
    std::vector<Tensor> inputs;
    for (ValueId input : node.inputs) inputs.push_back(at(input));
    Attributes attributes = node.attributes;
    if (node.op == &map_row) {
      MapAttributes map{node.attributes.as<MapAttributes>().body, {}};
      attributes = Attributes(view_of(map));
    }
    tell_tapes(*node.op, std::move(inputs), attributes.view(), *results);
    if (node.results.size() == 1) values_[static_cast<std::size_t>(id)] = (*results)[0];
    tuples_[id] = std::move(*results);
    return true;
  }

  const Tensor& at(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }

  /// A size that depends on values is known now.
  void learn_sizes(const ValueType& type, const Tensor& value) {
    for (int axis = 0; axis < value.rank(); ++axis)
      if (std::optional<int> symbol = type.shape[axis].as_symbol())
        sizes_[static_cast<std::size_t>(*symbol)] = value.dim(axis);
  }

  Tensor alias_of(const Node& node) const {
    const auto& alias = node.attributes.as<AliasAttributes>();
    const Tensor& of = at(node.inputs[0]);
    switch (alias.kind) {
      case AliasAttributes::stop:
        return detached(of);
      case AliasAttributes::read:
        return reading_of(of, alias.variable, alias.trainable);
      case AliasAttributes::attached:
        return attached_to(of, at(node.inputs[1]));
      default:
        return same_value(of);
    }
  }

  Tensor value_of(const Node& node) const {
    if (node.op == &constant_row) {
      const std::string& bytes = node.attributes.as<ConstantAttributes>().bytes;
      auto count = static_cast<std::size_t>(node.type().shape.element_count().constant());
      return creation::copied(node.type().dtype, bytes.data(), count, node.type().shape, node.where);
    }
    Attributes attributes = sized_attributes(node);
    if (node.op == &size_row) return tensor(attributes.as<SizeAttributes>().size, node.where);
    if (node.op == &map_row) {
      MapAttributes map{node.attributes.as<MapAttributes>().body, {}};
      attributes = Attributes(view_of(map));
    }
    Tensor out;
    call_node(node, attributes, {&out, 1});
    return out;
  }

  Attributes sized_attributes(const Node& node) const {
    return node.attributes.map_dims([&](const Dim& dim) { return dim.substitute(sizes_); });
  }

  void call_node(const Node& node, const Attributes& attributes, std::span<Tensor> results) const {
    std::vector<In> operands;
    for (ValueId input : node.inputs) operands.emplace_back(at(input), node.where);
    std::optional<Frame> frame;
    if (node.caller.name) frame.emplace(node.caller.name, node.where, node.caller.words);
    call_into(*node.op, operands, attributes.view(), results);
  }

  void run_tuple(ValueId id, const Node& node) {
    std::vector<Tensor> results(node.results.size());
    call_node(node, sized_attributes(node), results);
    if (node.op->kind == Kind::late)
      for (std::size_t r = 0; r < results.size(); ++r) learn_sizes(node.results[r], results[r]);
    tuples_[id] = std::move(results);
  }

  void run_custom_gradient(ValueId id, const Node& node) {
    std::vector<Tensor> inputs;
    for (ValueId input : node.inputs) inputs.push_back(at(input));
    std::vector<Tensor> results = replayed_custom_gradient(node, sized_attributes(node), inputs);
    if (results.size() == 1) values_[static_cast<std::size_t>(id)] = results[0];
    tuples_[id] = std::move(results);
  }

  /// Effects that have happened, and what is computed from them: no result needs it (refuse_again).
  bool left_out(ValueId id, const Node& node) {
    if (effects_ == Effects::happen) return false;
    const bool out = node.op->has_effect || std::any_of(node.inputs.begin(), node.inputs.end(),
                                                        [&](ValueId input) { return left_out_.contains(input); });
    if (out) left_out_.insert(id);
    return out;
  }

  void run_host_code(ValueId id, const Node& node) {
    std::vector<Tensor> inputs;
    for (ValueId input : node.inputs) inputs.push_back(at(input));
    const Attributes attributes = sized_attributes(node);
    std::vector<Tensor> results = do_on_host(*node.op, attributes.as<HostCodeAttributes>(), inputs, node.where);
    if (results.size() == 1) values_[static_cast<std::size_t>(id)] = results[0];
    tuples_[id] = std::move(results);
  }

  void run_branch(ValueId id, const Node& node) {
    std::vector<Tensor> inputs;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(at(node.inputs[i]));
    const auto& branch = node.attributes.as<BranchAttributes>();
    std::vector<Tensor> results =
        scope([&] { return Replay(at(node.inputs[0]) ? *branch.yes : *branch.no, inputs, sizes_, effects_).run(); },
              node.where);
    for (std::size_t r = 0; r < results.size(); ++r) learn_sizes(node.results[r], results[r]);
    if (node.results.size() == 1) values_[static_cast<std::size_t>(id)] = results[0];
    tuples_[id] = std::move(results);
  }

  void run_loop(ValueId id, const Node& node) {
    const auto& attributes = node.attributes.as<LoopAttributes>();
    FlatLoop loop;
    loop.name = node.label;
    loop.where = node.where;
    loop.count = attributes.count;
    loop.reverse = attributes.reverse;
    loop.recompute = attributes.recompute;
    if (loop.count == LoopAttributes::by_size) loop.turns = attributes.turns.substitute(sizes_);
    if (loop.count == LoopAttributes::by_value) loop.count_value = at(node.inputs[0]);
    auto inputs = [&](int begin, int end) {
      std::vector<Tensor> out;
      for (int i = begin; i < end; ++i) out.push_back(at(node.inputs[static_cast<std::size_t>(i)]));
      return out;
    };
    loop.carried = inputs(attributes.first_carried(), attributes.first_sequence());
    loop.sequences = inputs(attributes.first_sequence(), attributes.first_captured());
    const std::vector<Tensor> captured = inputs(attributes.first_captured(), static_cast<int>(node.inputs.size()));
    auto run_child = [&](const Graph& child, std::span<const Tensor> carried, std::span<const Tensor> elements,
                         const Tensor& place) {
      std::vector<Tensor> given(carried.begin(), carried.end());
      given.insert(given.end(), elements.begin(), elements.end());
      given.push_back(place);
      given.insert(given.end(), captured.begin(), captured.end());
      return Replay(child, given, sizes_, effects_).run();
    };
    loop.body = [&](std::span<const Tensor> carried, std::span<const Tensor> elements, const Tensor& place) {
      std::vector<Tensor> results = run_child(*attributes.body, carried, elements, place);
      auto stacked = results.begin() + attributes.carried;
      return FlatTurn{{results.begin(), stacked}, {stacked, results.end()}};
    };
    if (attributes.condition)
      loop.condition = [&](std::span<const Tensor> carried, const Tensor& place) {
        return run_child(*attributes.condition, carried, {}, place)[0];
      };
    FlatTurn end = run_flat_loop(loop);
    std::vector<Tensor> results = std::move(end.carried);
    results.insert(results.end(), end.stacked.begin(), end.stacked.end());
    for (std::size_t r = 0; r < results.size(); ++r) learn_sizes(node.results[r], results[r]);
    if (node.results.size() == 1) values_[static_cast<std::size_t>(id)] = results[0];
    tuples_[id] = std::move(results);
  }

  const Graph& graph_;
  std::vector<Dim> sizes_;
  const Effects effects_;
  std::set<ValueId> left_out_;
  const GivenResults given_;
  std::vector<Tensor> values_;
  std::vector<bool> void_;
  std::unordered_map<ValueId, std::vector<Tensor>> tuples_;
};

}  // namespace

std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs) {
  return replay(graph, inputs, Effects::happen);
}

std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs, Effects effects) {
  // Sizes inside attributes follow from the sizes of these inputs.
  std::vector<Dim> sizes;
  for (int i = 0; graph.scope && i < graph.scope->symbol_count(); ++i) sizes.push_back(graph.scope->symbol_at(i));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = graph.type(graph.inputs[i]).shape;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (std::optional<int> symbol = shape[axis].as_symbol())
        sizes[static_cast<std::size_t>(*symbol)] = inputs[i].dim(axis);
  }
  return Replay(graph, inputs, sizes, effects).run();
}

std::vector<Tensor> replay_with(const Graph& graph, std::span<const Tensor> inputs, const GivenResults& given) {
  std::vector<Dim> sizes;
  for (int i = 0; graph.scope && i < graph.scope->symbol_count(); ++i) sizes.push_back(graph.scope->symbol_at(i));
  return Replay(
             graph, inputs, sizes, Effects::have_happened, given ? given : [](ValueId) { return std::nullopt; })
      .run();
}

}  // namespace stet
