#include "stet/core/replay.h"

#include <algorithm>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/kept_where.h"
#include "stet/core/call.h"
#include "stet/core/custom_gradient.h"
#include "stet/core/scope.h"
#include "stet/core/tape.h"
#include "stet/core/trace.h"

namespace stet {

Replay::Replay(const Graph& graph, std::span<const Tensor> inputs, std::vector<Dim> sizes, Effects effects,
               GivenResults given)
    : graph_(graph),
      sizes_(std::move(sizes)),
      effects_(effects),
      given_(std::move(given)),
      values_(graph.nodes.size()),
      stated_(graph.checks.size(), false) {
  for (std::size_t i = 0; i < inputs.size(); ++i) values_[static_cast<std::size_t>(graph.inputs[i])] = inputs[i];
}

std::vector<Tensor> Replay::run() {
  const bool has_effects =
      effects_ == Effects::happen && std::any_of(graph_.nodes.begin(), graph_.nodes.end(), has_effect);
  if (graph_.raises && !has_effects) std::rethrow_exception(graph_.raises);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    const auto id = static_cast<ValueId>(i);
    void_.push_back(is_void(node, void_));
    if (node.op == &input_row || node.op == &need_row || void_.back()) continue;
    if (given_ && take(id, node)) continue;
    if (!left_out(id, node)) run_node(id, node);
  }
  // Ops check the sizes that they are called with; these are of ops that nobody needs, and of none.
  for (std::size_t i = 0; !given_ && i < stated_.size(); ++i)
    if (!stated_[i]) state(graph_.checks[i]);
  if (graph_.raises) std::rethrow_exception(graph_.raises);
  std::vector<Tensor> out;
  for (ValueId id : graph_.results) out.push_back(at(id));
  return out;
}

void Replay::run_node(ValueId id, const Node& node) {
  if (node.op == &part_row) {
    set(id, {tuples_.at(node.inputs[0])[static_cast<std::size_t>(node.attributes.as<PartAttributes>().number)]});
  } else if (node.op->has_effect) {
    const Attributes attributes = sized_attributes(node);
    set(id, do_on_host(*node.op, attributes.as<HostCodeAttributes>(), inputs_of(node), node.where));
  } else if (node.op == &alias_row) {
    set(id, {alias_of(node)});
  } else if (node.op->kind == Kind::branch) {
    set(id, run_branch(node));
  } else if (node.op->kind == Kind::loop) {
    set(id, run_loop(node));
  } else if (node.op == &custom_gradient_row) {
    set(id, replayed_custom_gradient(node, sized_attributes(node), inputs_of(node)));
  } else if (node.results.size() > 1) {
    std::vector<Tensor> results(node.results.size());
    call_node(node, sized_attributes(node), results);
    if (node.op->kind == Kind::late) learn_sizes(node, results);
    set(id, std::move(results));
  } else {
    Tensor value = value_of(node);
    if (node.op->kind == Kind::late) learn_sizes(node, {value});
    set(id, {std::move(value)});
  }
}

std::vector<Tensor> Replay::inputs_of(const Node& node, std::size_t first) const {
  std::vector<Tensor> out;
  for (std::size_t i = first; i < node.inputs.size(); ++i) out.push_back(at(node.inputs[i]));
  return out;
}

void Replay::set(ValueId id, std::vector<Tensor> results) {
  if (results.size() == 1) values_[static_cast<std::size_t>(id)] = results[0];
  if (graph_.node(id).results.size() > 1 || results.size() > 1) tuples_[id] = std::move(results);
}

void Replay::state(const SizeCheck& check) const {
  Bindings known;
  for (std::size_t i = 0; i < sizes_.size(); ++i)
    if (sizes_[i].is_constant()) known.bind(static_cast<int>(i), sizes_[i].constant());
  if (test_if_known(check, known)) return;
  SizeCheck here = check;
  here.fact.left = check.fact.left.substitute(sizes_);
  here.fact.right = check.fact.right.substitute(sizes_);
  for (Dim& size : here.sizes) size = size.substitute(sizes_);
  Trace* trace = current_trace();
  if (trace && !trace->symbols().has_check(here.fact) &&
      prove_by_form(here.fact.left, here.fact.relation, here.fact.right) != Proof::yes)
    trace->symbols().state(here);
}

bool Replay::is_known(const SizeCheck& check) const {
  for (const Dim* side : {&check.fact.left, &check.fact.right})
    for (int symbol : side->symbols())
      if (!graph_.scope->symbol_hint(symbol) &&
          identical(sizes_[static_cast<std::size_t>(symbol)], graph_.scope->symbol_at(symbol)))
        return false;
  return true;
}

void Replay::state_known_checks() {
  if (!std::exchange(learned_, false)) return;
  for (std::size_t i = 0; i < stated_.size(); ++i) {
    if (stated_[i] || !is_known(graph_.checks[i])) continue;
    stated_[i] = true;
    SizeCheck check = graph_.checks[i];
    if (!check.op.empty()) check.fact.reason.asker = kept(check.op.c_str());
    if (check.where.known()) check.fact.reason.where = check.where;
    state(check);
  }
}

/// The node's results are given: tapes see it, and nothing runs.
bool Replay::take(ValueId id, const Node& node) {
  std::optional<std::vector<Tensor>> results = given_(id);
  if (!results) return false;
  Attributes attributes = node.attributes;
  if (node.op == &map_row) {
    MapAttributes map{node.attributes.as<MapAttributes>().body, {}};
    attributes = Attributes(view_of(map));
  }
  tell_tapes(*node.op, inputs_of(node), attributes.view(), *results);
  set(id, std::move(*results));
  return true;
}

void Replay::learn_sizes(const Node& node, const std::vector<Tensor>& results, int further) {
  for (std::size_t r = 0; r < results.size(); ++r)
    for (int axis = 0; axis < node.results[r].shape.rank(); ++axis)
      if (std::optional<int> symbol = node.results[r].shape[axis].as_symbol())
        sizes_[static_cast<std::size_t>(*symbol)] = results[r].dim(axis + further);
  learned_ = true;
}

Tensor Replay::alias_of(const Node& node) const {
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

Tensor Replay::value_of(const Node& node) const {
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

Attributes Replay::sized_attributes(const Node& node) const {
  return node.attributes.map_dims([&](const Dim& dim) { return dim.substitute(sizes_); });
}

void Replay::call_node(const Node& node, const Attributes& attributes, std::span<Tensor> results) const {
  std::vector<In> operands;
  for (ValueId input : node.inputs) operands.emplace_back(at(input), node.where);
  std::optional<Frame> frame;
  if (node.caller.name) frame.emplace(node.caller.name, node.where, node.caller.words);
  call_into(*node.op, operands, attributes.view(), results);
}

/// Effects that have happened, and what is computed from them: no result needs it (refuse_again).
bool Replay::left_out(ValueId id, const Node& node) {
  if (effects_ == Effects::happen) return false;
  const bool out = node.op->has_effect || std::any_of(node.inputs.begin(), node.inputs.end(),
                                                      [&](ValueId input) { return left_out_.contains(input); });
  if (out) left_out_.insert(id);
  return out;
}

std::vector<Tensor> Replay::run_child(const Graph& child, std::span<const Tensor> inputs) {
  return Replay(child, inputs, sizes_, effects_).run();
}

std::vector<Tensor> Replay::run_branch(const Node& node) {
  const auto& branch = node.attributes.as<BranchAttributes>();
  const std::vector<Tensor> inputs = inputs_of(node, 1);
  std::vector<Tensor> results =
      scope([&] { return run_child(at(node.inputs[0]) ? *branch.yes : *branch.no, inputs); }, node.where);
  learn_sizes(node, results);
  return results;
}

FlatLoop loop_of(const Node& node, const std::vector<Dim>& sizes) {
  const auto& attributes = node.attributes.as<LoopAttributes>();
  FlatLoop loop;
  loop.name = node.label;
  loop.where = node.where;
  loop.count = attributes.count;
  loop.reverse = attributes.reverse;
  loop.recompute = attributes.recompute;
  if (loop.count == LoopAttributes::by_size) loop.turns = attributes.turns.substitute(sizes);
  loop.stacks = node.results.size() > static_cast<std::size_t>(attributes.carried);
  return loop;
}

std::vector<Tensor> Replay::run_loop(const Node& node) {
  const auto& attributes = node.attributes.as<LoopAttributes>();
  FlatLoop loop = loop_of(node, sizes_);
  if (loop.count == LoopAttributes::by_value) loop.count_value = at(node.inputs[0]);
  auto inputs = [&](int begin, int end) {
    std::vector<Tensor> out;
    for (int i = begin; i < end; ++i) out.push_back(at(node.inputs[static_cast<std::size_t>(i)]));
    return out;
  };
  loop.carried = inputs(attributes.first_carried(), attributes.first_sequence());
  loop.sequences = inputs(attributes.first_sequence(), attributes.first_captured());
  const std::vector<Tensor> captured = inputs(attributes.first_captured(), static_cast<int>(node.inputs.size()));
  auto run_turn = [&](const Graph& child, std::span<const Tensor> carried, std::span<const Tensor> elements,
                      const Tensor& place) {
    std::vector<Tensor> given(carried.begin(), carried.end());
    given.insert(given.end(), elements.begin(), elements.end());
    given.push_back(place);
    given.insert(given.end(), captured.begin(), captured.end());
    return run_child(child, given);
  };
  loop.body = [&](std::span<const Tensor> carried, std::span<const Tensor> elements, const Tensor& place) {
    std::vector<Tensor> results = run_turn(*attributes.body, carried, elements, place);
    auto stacked = results.begin() + attributes.carried;
    return FlatTurn{{results.begin(), stacked}, {stacked, results.end()}};
  };
  if (attributes.condition)
    loop.condition = [&](std::span<const Tensor> carried, const Tensor& place) {
      return run_turn(*attributes.condition, carried, {}, place)[0];
    };
  FlatTurn end = run_flat_loop(loop);
  std::vector<Tensor> results = std::move(end.carried);
  results.insert(results.end(), end.stacked.begin(), end.stacked.end());
  learn_sizes(node, results);
  return results;
}

std::vector<Dim> own_symbols(const Graph& graph) {
  std::vector<Dim> out;
  for (int i = 0; graph.scope && i < graph.scope->symbol_count(); ++i) out.push_back(graph.scope->symbol_at(i));
  return out;
}

std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs) {
  return replay(graph, inputs, Effects::happen);
}

std::vector<Tensor> replay(const Graph& graph, std::span<const Tensor> inputs, Effects effects) {
  // Sizes inside attributes follow from the sizes of these inputs.
  std::vector<Dim> sizes = own_symbols(graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = graph.type(graph.inputs[i]).shape;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (std::optional<int> symbol = shape[axis].as_symbol())
        sizes[static_cast<std::size_t>(*symbol)] = inputs[i].dim(axis);
  }
  return Replay(graph, inputs, std::move(sizes), effects).run();
}

std::vector<Tensor> replay_with(const Graph& graph, std::span<const Tensor> inputs, const GivenResults& given) {
  return Replay(
             graph, inputs, own_symbols(graph), Effects::have_happened,
             given ? given : [](ValueId) { return std::nullopt; })
      .run();
}

}  // namespace stet
