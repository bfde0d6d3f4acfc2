// How a loop becomes one node: its body is run once on parameters, as a scope that nothing leaves, and what it recorded
// is closed into a child graph. What it writes of Variables is carried from turn to turn like the loop's own state.
#include <algorithm>
#include <set>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/compiler/pipeline.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/flat_loop.h"
#include "stet/core/fork.h"
#include "stet/core/gradient.h"
#include "stet/core/host_code_run.h"
#include "stet/core/loop_errors.h"
#include "stet/core/name_scope.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"

namespace stet {

class LoopRecorder {
 public:
  LoopRecorder(Trace& trace, const FlatLoop& loop) : trace_(trace), loop_(loop) {
    for (const Tensor& tensor : loop.carried) carried_.push_back(trace.lift(tensor, loop.where));
    for (const Tensor& tensor : loop.sequences) sequences_.push_back(trace.lift(tensor, loop.where));
    if (loop.count == LoopAttributes::by_value) count_ = trace.lift(loop.count_value, loop.where);
  }

  FlatTurn record() {
    ForkScope& outer = *trace_.innermost_;
    const std::size_t before = outer.length();
    const ReadingCounts readings = trace_.readings_;
    for (bool again = false;; again = true) {
      const std::size_t made = trace_.created.size();
      body_ = enclosed([&] { return run_body(); });
      if (again && trace_.created.size() > made)
        throw TraceError(error_text(text(loop_.name, ": a turn makes a Variable, and writes one"), loop_.where,
                                    "make it once, before the loop"));
      if (!carry_written(*body_)) break;
      outer.take_back(before);  // once more: these Variables are parameters
      trace_.readings_ = readings;
    }
    if (loop_.condition) {
      condition_ = enclosed([&] { return run_condition(); });
      if (!depends_on_turns(*condition_))
        throw TraceError(error_text(text(loop_.name,
                                         ": the condition depends on nothing that changes from turn to "
                                         "turn: if it is true once, the loop never ends"),
                                    loop_.where, "let it depend on the state, or on a Variable that the body writes"));
      if (!written_inside(*condition_, condition_parameters_).empty())
        throw TraceError(error_text(text(loop_.name, ": the condition writes a Variable"), loop_.where,
                                    "write Variables in the body"));
    }
    if (may_be_at_once(*body_)) {
      trace_.note_readings(body_->readings);
      FlatTurn out = all_at_once(*body_);
      out.form = body_->form = form_;
      bury(*body_, body_parameters_);
      body_->last.results.clear();
      return out;
    }
    return finish();
  }

  /// The same on a path that is run again.
  FlatTurn follow() {
    variables_.clear();
    std::shared_ptr<const InnerScope> body = followed([&] { return run_body(); }, true);
    if (loop_.condition) followed([&] { return run_condition(); }, false);
    trace_.note_readings(body->readings);
    if (may_be_at_once(*body)) {
      FlatTurn out = all_at_once(*body);
      out.form = body->form;
      return out;
    }
    if (loop_.count == LoopAttributes::by_size && !loop_.further) {
      Child again = child_of(*body);
      hoist(again, loop_.turns);
    }
    if (loop_.further) loop_.further(body->needed_further);
    std::map<Reading, ValueId> hoisted;
    std::shared_ptr<const InnerScope> end = trace_.innermost_->next_scope(hoisted, loop_.where);
    trace_.publish(*end);
    for (ValueId id : end->tail) trace_.innermost_->dig_up(id);
    FlatTurn out = split(end->outputs);
    out.form = body->form;
    return out;
  }

 private:
  /// Nothing that a turn does is seen by another, and no size depends on the values of a turn.
  bool may_be_at_once(const InnerScope& body) const {
    if (!loop_.at_once || !variables_.empty()) return false;
    std::vector<ValueId> nodes;
    ForkScope::flatten(body.prefix, 0, body.prefix.size(), nullptr, nodes);
    std::set<ValueId> of_turns(body_parameters_.begin(), body_parameters_.end());
    for (ValueId id : nodes) {
      const Node& node = trace_.graph.node(id);
      if (has_effect(node)) return false;
      if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) { return of_turns.contains(in); }))
        continue;
      if (finds_sizes(node)) return false;
      of_turns.insert(id);
    }
    return true;
  }

  /// It, or something inside of it, has a size that depends on values.
  bool finds_sizes(const Node& node) const {
    if (node.op->kind == Kind::late) return true;
    const std::vector<GraphPointer> inside = children(node);
    for (const ValueType& type : node.results)
      for (const Dim& size : type.shape)
        for (int symbol : size.symbols())
          if (!inside.empty() && !trace_.symbols().symbol_hint(symbol)) return true;
    return std::any_of(inside.begin(), inside.end(), [&](const GraphPointer& child) {
      return std::any_of(child->nodes.begin(), child->nodes.end(), [&](const Node& one) { return finds_sizes(one); });
    });
  }

  /// What the turns give, from ops that take all of their elements.
  FlatTurn all_at_once(const InnerScope& scope) {
    Child body = child_of(scope);
    std::vector<ValueId> captures = captured({&body}), inputs = body_parameters_;
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    const Graph child = trace_.closed(inputs, body.nodes, body.results);
    std::vector<Batched> given;
    for (ValueId id : sequences_) given.push_back({trace_.tensor_of(id), true});
    const bool asks_place = body.needed.contains(body_parameters_.back());
    given.push_back({asks_place ? core_ops.arange(loop_.turns) : Tensor(), true});
    for (ValueId id : captures) given.push_back({trace_.tensor_of(id), false});
    return {{}, replay_batched(child, std::move(given), loop_.turns)};
  }

  /// What a scope recorded is nothing that others may use.
  void bury(const InnerScope& scope, const std::vector<ValueId>& parameters) {
    std::vector<ValueId> inside;
    ForkScope::flatten(scope.prefix, 0, scope.prefix.size(), nullptr, inside);
    trace_.bury(inside);
    trace_.bury(parameters);
  }

  std::shared_ptr<InnerScope> enclosed(const std::function<Leaves()>& body) {
    std::shared_ptr<InnerScope> inner;
    {
      ForkScope scope(trace_);
      inner = scope.enclose(body, loop_.where);
    }
    trace_.innermost_->add({.kind = PathItem::scope, .inner = inner});
    if (inner->last.error) {  // what a first turn would do
      bury(*inner, parameters_);
      std::rethrow_exception(inner->last.error);
    }
    return inner;
  }

  std::shared_ptr<const InnerScope> followed(const std::function<Leaves()>& body, bool is_body) {
    std::map<Reading, ValueId> hoisted;
    std::shared_ptr<const InnerScope> inner = trace_.innermost_->next_scope(hoisted, loop_.where);
    if (!inner->enclosed) trace_.innermost_->did_something_else(loop_.where);
    if (is_body) variables_ = inner->carried_variables;
    ForkScope again(trace_);
    again.follow(*inner, std::move(hoisted), body, loop_.where);
    return inner;
  }

  Tensor parameter(const ValueType& type) {
    ParameterAttributes attributes{next_parameter_++, type.dtype, type.shape};
    ValueId id = trace_.append(parameter_row, {}, Attributes(view_of(attributes)), {});
    parameters_.push_back(id);
    Tensor made = trace_.tensor_of(id);
    note_made(made);
    return made;
  }

  ValueType element_of(ValueId sequence) const {
    ValueType type = trace_.graph.type(sequence);
    type.shape = Shape(std::vector<Dim>(type.shape.begin() + 1, type.shape.end()));
    return type;
  }

  struct Parameters {
    std::vector<Tensor> carried, elements;
    Tensor place;
  };
  Parameters make_parameters(bool for_body) {
    Parameters out;
    parameters_.clear();
    next_parameter_ = 0;
    for (ValueId id : carried_) out.carried.push_back(parameter(trace_.graph.type(id)));
    for (std::uint64_t id : variables_) {
      Tensor value = parameter(trace_.graph.type(trace_.variables_.at(id).current));
      trace_.variables_.at(id).current = value.node()->traced->id;
    }
    if (for_body) {
      for (ValueId id : sequences_) out.elements.push_back(parameter(element_of(id)));
      for (const ValueType& type : loop_.further_elements) out.elements.push_back(parameter(type));
    }
    out.place = parameter({DType::i64, Shape()});
    return out;
  }

  static Leaves leaves_of(const std::vector<Tensor>& tensors) {
    Leaves out;
    for (const Tensor& tensor : tensors) out.push_back({.kind = Leaf::tensor, .value = tensor});
    return out;
  }

  Leaves run_body() {
    Parameters given = make_parameters(true);
    body_parameters_ = parameters_;
    Leaves turn = trace_.run_scope(
        [&] {
          FlatTurn left = loop_.body(given.carried, given.elements, given.place);
          form_ = left.form;
          left.carried.insert(left.carried.end(), left.stacked.begin(), left.stacked.end());
          return leaves_of(left.carried);
        },
        loop_.where);
    for (std::size_t i = 0; i < carried_.size(); ++i) ensure_unchanged(i, given.carried[i], turn[i].value);
    for (std::uint64_t id : variables_) turn.push_back({.value = trace_.tensor_of(trace_.variables_.at(id).current)});
    return turn;
  }

  Leaves run_condition() {
    Parameters given = make_parameters(false);
    condition_parameters_ = parameters_;
    return trace_.run_scope(
        [&] {
          return leaves_of({loop_condition(loop_.name, loop_.condition(given.carried, given.place), loop_.where)});
        },
        loop_.where);
  }

  void ensure_unchanged(std::size_t number, const Tensor& before, const Tensor& after) {
    ensure_same_form(loop_, number, before, after);
    for (int axis = 0; axis < before.rank(); ++axis)
      if (!trace_.symbols().require(after.dim(axis), Relation::equal, before.dim(axis),
                                    {loop_.name, "a size of its state", loop_.where}))
        throw_state_changes(loop_, number, before, after);
  }

  /// Variables that have another value when the scope ends than when it began. `parameters`: its own.
  std::set<std::uint64_t> written_inside(const InnerScope& scope, const std::vector<ValueId>& parameters) const {
    std::set<std::uint64_t> out;
    for (const auto& [id, value] : scope.last.written) {
      auto carried = std::find(variables_.begin(), variables_.end(), id);
      const ValueId first = carried == variables_.end()
                                ? trace_.variables_.at(id).current
                                : parameters[carried_.size() + static_cast<std::size_t>(carried - variables_.begin())];
      if (value != first) out.insert(id);
    }
    return out;
  }

  /// Variables that turns write and that are no parameters yet become some: then the body is to be run again.
  bool carry_written(const InnerScope& body) {
    std::set<std::uint64_t> known(variables_.begin(), variables_.end()), now = written_inside(body, body_parameters_);
    const std::size_t before = variables_.size();
    for (std::uint64_t id : now)  // by number: whichever side of a decision was run first
      if (!known.contains(id)) variables_.push_back(id);
    return variables_.size() > before;
  }

  /// Some node of the condition is made of the state, of the turn's number or of a Variable that turns write.
  bool depends_on_turns(const InnerScope& condition) const {
    const Child child = child_of(condition);
    return std::any_of(condition_parameters_.begin(), condition_parameters_.end(),
                       [&](ValueId id) { return child.needed.contains(id); });
  }

  struct Child {
    std::vector<ValueId> nodes, results;
    std::set<ValueId> needed;
    // What it gets from outside instead of computing it: its own name of the value, and the value.
    std::vector<std::pair<ValueId, Tensor>> sequences, invariants;
  };

  // --- what the turns compute from elements of sequences, or from nothing that changes, is computed before them, for
  // all turns at once

  /// The op at every element of a batch along a new first axis, as one op; nothing if there is no such way. `operands`
  /// come with the batch's axis where `in_batch` says so.
  std::optional<Tensor> batched(ValueId id, const std::vector<Tensor>& operands, const std::vector<bool>& in_batch,
                                const Dim& turns) const {
    const Node node = trace_.graph.node(id);  // a copy: what is called here adds nodes
    if (node.op == &alias_row) return operands[0];
    if (node.op->kind == Kind::layout && !is_only_a_reshape(node)) return std::nullopt;
    std::vector<Batched> inputs;
    for (std::size_t i = 0; i < operands.size(); ++i) inputs.push_back({operands[i], in_batch[i]});
    std::optional<std::vector<Tensor>> results = batched_op(node, node.attributes, std::move(inputs), turns);
    return results ? std::optional<Tensor>((*results)[0]) : std::nullopt;
  }

  /// The same elements in the same order.
  bool is_only_a_reshape(const Node& node) const {
    if (!node.op->view || node.inputs.size() != 1) return false;
    const Shape& from = trace_.graph.type(node.inputs[0]).shape;
    std::optional<Layout> view = node.op->view({from, dense_layout(from), node.type().shape, node.attributes.view()});
    if (!view || !identical(view->offset, 0)) return false;
    std::vector<Dim> dense = dense_strides(node.type().shape);
    for (std::size_t axis = 0; axis < dense.size(); ++axis)
      if (!node.type().shape[static_cast<int>(axis)].is_constant(1) && !identical(dense[axis], view->strides[axis]))
        return false;
    return true;
  }

  /// Kinds of nodes that never fail and that batched() may know.
  bool may_hoist(const Node& node) const {
    if (node.results.size() != 1) return false;
    if (node.op == &alias_row) return node.attributes.as<AliasAttributes>().kind == AliasAttributes::identity;
    return node.op == &map_row || node.op->kind == Kind::contract || node.op->kind == Kind::layout;
  }

  /// Products of matrices are what is worth it: other ops are fused with what uses them.
  void hoist(Child& body, const Dim& turns) const {
    std::map<ValueId, bool> hoisted;  // to whether it differs from turn to turn
    std::set<ValueId> worth, inside(body.nodes.begin(), body.nodes.end());
    const auto first_element =
        body_parameters_.begin() + static_cast<std::ptrdiff_t>(carried_.size() + variables_.size());
    for (auto it = first_element; it != first_element + static_cast<std::ptrdiff_t>(sequences_.size()); ++it)
      hoisted[*it] = true;
    std::set<ValueId> parameters(body_parameters_.begin(), body_parameters_.end());
    for (ValueId id : body.nodes) {
      const Node& node = trace_.graph.node(id);
      if (parameters.contains(id) || !may_hoist(node) || trace_.checks_of_.contains(id)) continue;
      bool possible = true, changes = false, valuable = node.op->kind == Kind::contract;
      for (ValueId input : node.inputs) {
        auto known = hoisted.find(input);
        if (known == hoisted.end() && (inside.contains(input) || parameters.contains(input))) possible = false;
        changes = changes || (known != hoisted.end() && known->second);
        valuable = valuable || worth.contains(input);
      }
      if (!possible) continue;
      hoisted[id] = changes;
      if (valuable) worth.insert(id);
    }
    if (worth.empty()) return;
    // Whoever stays inside and uses what is worth it gets it from outside.
    std::vector<ValueId> wanted;
    auto want = [&](ValueId id) {
      if (worth.contains(id) && std::find(wanted.begin(), wanted.end(), id) == wanted.end()) wanted.push_back(id);
    };
    for (ValueId id : body.nodes)
      if (!worth.contains(id))
        for (ValueId input : trace_.graph.node(id).inputs) want(input);
    for (ValueId id : body.results) want(id);
    std::map<ValueId, std::optional<Tensor>> made;
    std::function<std::optional<Tensor>(ValueId)> make = [&](ValueId id) -> std::optional<Tensor> {
      if (auto known = made.find(id); known != made.end()) return known->second;
      if (auto at = std::find(first_element, body_parameters_.end(), id); at != body_parameters_.end())
        return made[id] = trace_.tensor_of(sequences_[static_cast<std::size_t>(at - first_element)]);
      if (!inside.contains(id)) return made[id] = trace_.tensor_of(id);
      std::vector<Tensor> operands;
      std::vector<bool> in_batch;
      const std::vector<ValueId> inputs = trace_.graph.node(id).inputs;
      for (ValueId input : inputs) {
        std::optional<Tensor> operand = make(input);
        if (!operand) return made[id] = std::nullopt;
        operands.push_back(*operand);
        in_batch.push_back(hoisted.contains(input) && hoisted.at(input));
      }
      if (hoisted.at(id)) return made[id] = batched(id, operands, in_batch, turns);
      return made[id] = once(id, operands);
    };
    for (ValueId id : wanted)
      if (std::optional<Tensor> value = make(id))
        (hoisted.at(id) ? body.sequences : body.invariants).emplace_back(id, *value);
    drop_hoisted(body);
  }

  /// A node whose operands do not change.
  Tensor once(ValueId id, const std::vector<Tensor>& operands) const {
    const Node node = trace_.graph.node(id);
    if (node.op == &alias_row) return operands[0];
    std::vector<In> given(operands.begin(), operands.end());
    if (node.op == &map_row) return call_map(node.attributes.as<MapAttributes>().body, given);
    return call(*node.op, given, node.attributes.view());
  }

  /// What a child keeps of these nodes: sizes are checked though nobody uses the op.
  std::set<ValueId> kept_among(const std::vector<ValueId>& nodes, std::vector<ValueId> asked) const {
    for (ValueId id : nodes)
      if (trace_.checks_of_.contains(id)) asked.push_back(id);
    return needed_among(trace_.graph, nodes, asked);
  }

  /// What only the hoisted values needed is no longer inside.
  void drop_hoisted(Child& body) const {
    std::set<ValueId> given;
    for (const auto* list : {&body.sequences, &body.invariants})
      for (const auto& [id, value] : *list) given.insert(id);
    std::vector<ValueId> inside;
    for (ValueId id : body.nodes)
      if (!given.contains(id)) inside.push_back(id);
    body.needed = kept_among(inside, body.results);
    std::erase_if(inside, [&](ValueId id) { return !body.needed.contains(id); });
    body.nodes = std::move(inside);
  }

  Child child_of(const InnerScope& scope) const {
    Child out;
    std::vector<ValueId> all;
    ForkScope::flatten(scope.prefix, 0, scope.prefix.size(), nullptr, all);
    out.results = scope.last.result_ids;
    out.needed = kept_among(all, out.results);
    for (ValueId id : all)
      if (out.needed.contains(id)) out.nodes.push_back(id);
    return out;
  }

  /// What children use from outside, in the order in which they use it.
  std::vector<ValueId> captured(const std::vector<const Child*>& children) const {
    std::set<ValueId> known(body_parameters_.begin(), body_parameters_.end());
    known.insert(condition_parameters_.begin(), condition_parameters_.end());
    for (const Child* child : children) {
      known.insert(child->nodes.begin(), child->nodes.end());
      for (const auto* list : {&child->sequences, &child->invariants})
        for (const auto& [id, value] : *list) known.insert(id);
    }
    std::vector<ValueId> out;
    auto use = [&](const std::vector<ValueId>& used) {
      for (ValueId id : used)
        if (trace_.graph.node(id).op != &constant_row && known.insert(id).second) out.push_back(id);
    };
    for (const Child* child : children) {
      for (ValueId id : child->nodes) use(trace_.graph.node(id).inputs);
      use(child->results);
    }
    return out;
  }

  FlatTurn finish() {
    const std::size_t own = carried_.size(), all_carried = own + variables_.size();
    Child body = child_of(*body_), condition;
    if (condition_) condition = child_of(*condition_);
    // As the node has them: carried values, those of Variables among them, then stacked ones.
    const std::size_t stacked = body.results.size() - all_carried;
    std::rotate(body.results.begin() + static_cast<std::ptrdiff_t>(own),
                body.results.begin() + static_cast<std::ptrdiff_t>(own + stacked), body.results.end());
    LoopAttributes attributes;
    attributes.count = loop_.count;
    attributes.turns = loop_.turns;
    attributes.carried = static_cast<int>(all_carried);
    attributes.reverse = loop_.reverse;
    attributes.recompute = loop_.recompute;

    // A loop that nobody knows the length of has no batch; and values that a gradient's own loop is handed are left to
    // it.
    trace_.note_readings(body_->readings);
    if (loop_.count == LoopAttributes::by_size && !loop_.further) hoist(body, loop_.turns);
    const std::size_t further_begin = all_carried + sequences_.size();
    std::vector<bool> needed_further;
    for (std::size_t i = 0; i < loop_.further_elements.size(); ++i)
      needed_further.push_back(body.needed.contains(body_parameters_[further_begin + i]));
    std::vector<ValueId> sequences = sequences_;
    if (loop_.further) {
      FlatLoop::Further further = loop_.further(needed_further);
      for (const Tensor& tensor : further.sequences) sequences.push_back(trace_.lift(tensor, loop_.where));
      attributes.turns = further.turns;
    }
    std::vector<ValueId> hoisted_elements, invariants, invariants_outside;
    for (const auto& [id, value] : body.sequences) {
      hoisted_elements.push_back(id);
      sequences.push_back(trace_.lift(value, loop_.where));
    }
    for (const auto& [id, value] : body.invariants) {
      invariants.push_back(id);
      invariants_outside.push_back(trace_.lift(value, loop_.where));
    }
    attributes.sequences = static_cast<int>(sequences.size());
    const bool late = loop_.count != LoopAttributes::by_size && stacked > 0;
    if (late) attributes.turns = trace_.symbols().symbol("turns", std::nullopt);

    std::vector<const Child*> children{&body};
    if (condition_) children.push_back(&condition);
    std::vector<ValueId> captures = captured(children);
    auto inputs_of = [&](const std::vector<ValueId>& parameters, bool with_elements) {
      std::vector<ValueId> out(parameters.begin(), parameters.begin() + static_cast<std::ptrdiff_t>(all_carried));
      if (with_elements)
        for (std::size_t i = all_carried; i + 1 < parameters.size(); ++i)
          if (i < further_begin || needed_further[i - further_begin]) out.push_back(parameters[i]);
      if (with_elements) out.insert(out.end(), hoisted_elements.begin(), hoisted_elements.end());
      out.push_back(parameters.back());
      out.insert(out.end(), captures.begin(), captures.end());
      out.insert(out.end(), invariants.begin(), invariants.end());
      return out;
    };
    attributes.body =
        std::make_shared<const Graph>(trace_.closed(inputs_of(body_parameters_, true), body.nodes, body.results));
    if (condition_)
      attributes.condition = std::make_shared<const Graph>(
          trace_.closed(inputs_of(condition_parameters_, false), condition.nodes, condition.results));
    attributes.origin = static_cast<int>(trace_.graph.nodes.size());

    Node node{.op = &loop_row, .label = loop_.name, .where = loop_.where, .name_scope = NameScope::current()};
    if (loop_.count == LoopAttributes::by_value) node.inputs.push_back(count_);
    node.inputs.insert(node.inputs.end(), carried_.begin(), carried_.end());
    for (std::uint64_t id : variables_) node.inputs.push_back(trace_.variables_.at(id).current);
    for (const std::vector<ValueId>* list : {&sequences, &captures, &invariants_outside})
      node.inputs.insert(node.inputs.end(), list->begin(), list->end());
    for (std::size_t i = 0; i < all_carried; ++i)
      node.results.push_back(trace_.graph.type(node.inputs[static_cast<std::size_t>(attributes.first_carried()) + i]));
    for (std::size_t r = 0; r < stacked; ++r)
      node.results.push_back(stacked_type(body.results[all_carried + r], attributes.turns));
    node.attributes = Attributes(view_of(attributes));

    bury(*body_, body_parameters_);
    if (condition_) bury(*condition_, condition_parameters_);
    body_->carried_variables = variables_;
    body_->form = form_;
    body_->needed_further = std::move(needed_further);
    // What the loop leaves stands behind all that was recorded for it.
    auto end = std::make_shared<InnerScope>();
    InnerScope& last = *end;
    last.enclosed = true;
    last.first_value = body_->first_value;
    last.readings = body_->readings;
    if (condition_) last.readings.insert(condition_->readings.begin(), condition_->readings.end());
    last.branch = trace_.graph.add(std::move(node));
    last.tail = {last.branch};
    for (ValueId part : trace_.graph.add_parts(last.branch)) {
      if (part != last.branch) last.tail.push_back(part);
      last.outputs.push_back(trace_.tensor_of(part));
    }
    for (std::size_t i = 0; i < variables_.size(); ++i)
      last.written.emplace_back(variables_[i], last.outputs[own + i].node()->traced->id);
    trace_.innermost_->add({.kind = PathItem::scope, .inner = std::move(end)});
    for (InnerScope* scope : {body_.get(), condition_.get()})
      if (scope) scope->last.results.clear();
    trace_.publish(last);
    FlatTurn out = split(last.outputs);
    out.form = form_;
    return out;
  }

  ValueType stacked_type(ValueId element, const Dim& turns) const {
    const ValueType& type = trace_.graph.type(element);
    Shape shape;
    shape.push_back(turns);
    for (const Dim& size : type.shape) {
      for (int symbol : size.symbols())
        if (static_cast<std::size_t>(symbol) >= symbols_before_ && !trace_.symbols().symbol_hint(symbol))
          throw TraceError(error_text(text(loop_.name, ": a result of the turns has a size that depends on values: ",
                                           type.str(), "; it may differ from turn to turn"),
                                      loop_.where, "give it the same size in every turn, with pad or a slice"));
      shape.push_back(size);
    }
    return {type.dtype, shape};
  }

  FlatTurn split(const std::vector<Tensor>& outputs) const {
    const std::size_t own = carried_.size(), all = own + variables_.size();
    auto at = [&](std::size_t i) { return outputs.begin() + static_cast<std::ptrdiff_t>(i); };
    return {{at(0), at(own)}, {at(all), outputs.end()}};
  }

  Trace& trace_;
  const FlatLoop& loop_;
  std::vector<ValueId> carried_, sequences_;
  ValueId count_ = -1;
  std::vector<std::uint64_t> variables_;  // carried too, behind the loop's own
  std::shared_ptr<InnerScope> body_, condition_;
  std::shared_ptr<const void> form_;
  std::vector<ValueId> parameters_, body_parameters_, condition_parameters_;
  int next_parameter_ = 0;
  std::size_t symbols_before_ = static_cast<std::size_t>(trace_.symbols().symbol_count());
};

FlatTurn Trace::run_loop(const FlatLoop& loop) {
  LoopRecorder recorder(*this, loop);
  if (!innermost_) throw InternalError("a loop outside of any scope");
  return innermost_->must_follow() ? recorder.follow() : recorder.record();
}

std::vector<Tensor> Trace::stack_also(const LoopAttributes& loop, std::span<const Tensor> inputs,
                                      const std::vector<ValueId>& values, Dim& turns) {
  LoopAttributes more = loop;
  Graph body = *loop.body;
  const std::size_t before = body.results.size();
  body.results.insert(body.results.end(), values.begin(), values.end());
  // In a turn of a gradient the loop is run once more, for what it computes; elsewhere it becomes one with the first.
  if (turns_of_gradients > 0) {
    body = without_effects(body);
    if (more.condition) more.condition = std::make_shared<const Graph>(without_effects(*more.condition));
  }
  const bool has_turns = loop.count == LoopAttributes::by_size || static_cast<int>(before) > loop.carried;
  Node node{.op = &loop_row, .label = "loop", .name_scope = NameScope::current()};
  for (const Tensor& input : inputs) node.inputs.push_back(lift(input, {}));
  ValueId id = innermost_->replayed(loop_row, node.inputs, {}, {});
  if (!has_turns && id < 0) more.turns = symbols_->symbol("turns", std::nullopt);
  more.body = std::make_shared<const Graph>(std::move(body));
  for (std::size_t r = 0; r < more.body->results.size(); ++r) {
    ValueType type = more.body->type(more.body->results[r]);
    if (static_cast<int>(r) < loop.carried) {
      type = graph.type(node.inputs[static_cast<std::size_t>(loop.first_carried()) + r]);
    } else {
      Shape shape;
      shape.push_back(more.turns);
      for (const Dim& size : type.shape) shape.push_back(size);
      type.shape = shape;
    }
    node.results.push_back(std::move(type));
  }
  node.attributes = Attributes(view_of(more));
  if (id < 0) {
    id = graph.add(std::move(node));
    innermost_->add({.kind = PathItem::node, .id = id});
  }
  std::vector<Tensor> outputs;
  for (std::size_t r = 0; r < before + values.size(); ++r) {
    PartAttributes part{static_cast<int>(r)};
    outputs.push_back(
        tensor_of(before + values.size() == 1 ? id : append(part_row, {id}, Attributes(view_of(part)), {})));
  }
  const Node& made = graph.node(id);
  turns = made.attributes.as<LoopAttributes>().turns;
  if (tapes_open()) tell_tapes(loop_row, {inputs.begin(), inputs.end()}, made.attributes.view(), outputs);
  outputs.erase(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(before));
  return outputs;
}

}  // namespace stet
