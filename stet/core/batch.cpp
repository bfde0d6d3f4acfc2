// Graphs for many examples at once.
#include "stet/core/batch.h"

#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/custom_gradient.h"
#include "stet/core/gradient.h"
#include "stet/core/replay.h"
#include "stet/core/scope.h"
#include "stet/core/tape.h"
#include "stet/core/trace.h"

namespace stet {

// --- one call

Shape BatchCall::shape(int number) const {
  const Shape whole = in(number).shape();
  return Shape(std::vector<Dim>(whole.begin() + (has_batch(number) ? 1 : 0), whole.end()));
}

std::vector<Dim> BatchCall::sizes_with_batch(const Shape& shape) const {
  std::vector<Dim> out{size_};
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

Tensor repeated_for(const Tensor& value, const Dim& size) {
  std::vector<Dim> sizes{size};
  const Shape shape = value.shape();
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return core_ops.broadcast_to(In(value), Shape(sizes));
}

Tensor moved_axis(const Tensor& x, int from, int to) {
  if (from == to) return x;
  std::vector<int> order;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (axis != from) order.push_back(axis);
  order.insert(order.begin() + to, from);
  return core_ops.transpose(In(x), order);
}

Tensor BatchCall::with_batch(int number) const {
  return has_batch(number) ? in(number) : repeated_for(in(number), size_);
}

Tensor BatchCall::aligned(int number, int wanted) const {
  if (!has_batch(number) || rank(number) >= wanted) return in(number);
  const Shape own = shape(number);
  std::vector<Dim> sizes{size_};
  sizes.resize(static_cast<std::size_t>(1 + wanted - own.rank()), 1);
  sizes.insert(sizes.end(), own.begin(), own.end());
  return core_ops.reshape(In(in(number)), sizes);
}

Tensor BatchCall::folded(int number) const {
  const Shape own = shape(number);
  std::vector<Dim> sizes(own.begin(), own.end());
  sizes[0] = size_ * own[0];
  return core_ops.reshape(In(with_batch(number)), sizes);
}

Tensor BatchCall::unfolded(const Tensor& result, int number) const {
  return core_ops.reshape(In(result), sizes_with_batch(result_shape(number)));
}

std::vector<int> BatchCall::shifted(std::vector<int> axes) {
  for (int& axis : axes) axis = shifted(axis);
  return axes;
}

std::vector<Tensor> BatchCall::call(const std::vector<Tensor>& operands, AttributesView attributes) const {
  std::vector<In> given;
  for (const Tensor& operand : operands) given.emplace_back(operand, where_);
  std::vector<Tensor> results(types_.size());
  call_into(op_, given, attributes, results);
  return results;
}

// --- kinds of rows

namespace {

void batch_map(BatchCall& call) {
  const int rank = call.result_shape().rank();
  Expr body = call.attributes<MapAttributes>().body;
  std::vector<int> loops;
  for (int loop = 0; loop < rank; ++loop) loops.push_back(loop + 1);
  for (Expr part : topological(body))
    if (part.is(Primitive::index)) {
      body = renumber_loops(body, loops);
      break;
    }
  std::vector<Tensor> operands;
  for (int i = 0; i < call.input_count(); ++i) operands.push_back(call.aligned(i, rank));
  call.set({call_map(body, std::vector<In>(operands.begin(), operands.end()))});
}

/// Of operands that are broadcast but for the last two axes.
void batch_matrices(BatchCall& call) {
  int rank = 0;
  for (int i = 0; i < call.input_count(); ++i) rank = std::max(rank, call.rank(i));
  std::vector<Tensor> operands;
  for (int i = 0; i < call.input_count(); ++i) operands.push_back(call.aligned(i, rank));
  call.set(call.call(operands, call.attributes_view()));
}

void batch_contract(BatchCall& call) {
  const auto& product = call.attributes<ContractAttributes>();
  const bool matrices = call.rank(0) == 2 && call.rank(1) == 2;
  if (matrices && call.has_batch(0) && !call.has_batch(1) && !product.transpose_left) {
    // All examples are rows of one product.
    call.set({call.unfolded(call.call({call.folded(0), call.in(1)}, call.attributes_view())[0])});
    return;
  }
  batch_matrices(call);
}

void batch_reduce(BatchCall& call) {
  ReduceAttributes attributes = call.attributes<ReduceAttributes>();
  attributes.axes = BatchCall::shifted(std::move(attributes.axes));
  call.set(call.call({call.in(0)}, view_of(attributes)));
}

void batch_scan(BatchCall& call) {
  ScanAttributes attributes = call.attributes<ScanAttributes>();
  attributes.axis = BatchCall::shifted(attributes.axis);
  call.set(call.call({call.in(0)}, view_of(attributes)));
}

using Rule = void (*)(BatchCall&);
Rule rule_of(const OpDef& op) {
  if (op.batch) return op.batch;
  switch (op.kind) {
    case Kind::map:
      return batch_map;
    case Kind::contract:
      return batch_contract;
    case Kind::reduce:
      return batch_reduce;
    case Kind::scan:
      return batch_scan;
    case Kind::linalg:
      return batch_matrices;
    default:
      return nullptr;
  }
}

}  // namespace

std::optional<std::vector<Tensor>> batched_op(const Node& node, const Attributes& sized, std::vector<Batched> inputs,
                                              const Dim& size) {
  Rule rule = rule_of(*node.op);
  if (!rule) return std::nullopt;
  BatchCall call(*node.op, std::move(inputs), sized.view(), node.results, size, node.where);
  std::optional<Frame> frame;
  if (node.caller.name) frame.emplace(node.caller.name, node.where, node.caller.words);
  rule(call);
  return std::move(call.results());
}

// --- graphs

namespace {

class BatchedReplay final : public Replay {
 public:
  BatchedReplay(const Graph& graph, const std::vector<Batched>& inputs, const std::vector<Dim>& sizes, const Dim& size)
      : Replay(graph, values_of(inputs), sizes, Effects::happen), size_(size), has_batch_(graph.nodes.size(), false) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      has_batch_[static_cast<std::size_t>(graph.inputs[i])] = inputs[i].has_batch;
  }

  /// All results with the examples' axis.
  std::vector<Tensor> run_all() {
    std::vector<Tensor> out = run();
    for (std::size_t r = 0; r < out.size(); ++r)
      if (!has_batch(graph().results[r])) out[r] = repeated_for(out[r], size_);
    return out;
  }
  /// Results with the axis where they differ from example to example.
  std::vector<Batched> run_some() {
    std::vector<Tensor> values = run();
    std::vector<Batched> out;
    for (std::size_t r = 0; r < values.size(); ++r) out.push_back({values[r], has_batch(graph().results[r])});
    return out;
  }

 private:
  static std::vector<Tensor> values_of(const std::vector<Batched>& inputs) {
    std::vector<Tensor> out;
    for (const Batched& input : inputs) out.push_back(input.value);
    return out;
  }
  bool has_batch(ValueId id) const { return has_batch_[static_cast<std::size_t>(id)]; }
  Batched batched(ValueId id) const { return {at(id), has_batch(id)}; }
  std::vector<Batched> batched_inputs(const Node& node, std::size_t first = 0) const {
    std::vector<Batched> out;
    for (std::size_t i = first; i < node.inputs.size(); ++i) out.push_back(batched(node.inputs[i]));
    return out;
  }
  Tensor repeated(ValueId id) const { return has_batch(id) ? at(id) : repeated_for(at(id), size_); }

  void run_node(ValueId id, const Node& node) override {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId i) { return has_batch(i); });
    if (!any) {
      Replay::run_node(id, node);
      return;
    }
    has_batch_[static_cast<std::size_t>(id)] = true;
    if (node.op == &part_row) {
      Replay::run_node(id, node);
      return;
    }
    for (const ValueType& type : node.results)
      if (type.shape.rank() == max_rank)
        throw UserError(
            error_text(text("vmap: ", op_text(node.caller, node.op->name), " gives ", type.str(),
                            " for every example: with the axis of the examples, there would be ", max_rank + 1),
                       node.where, text("a tensor has at most ", max_rank, " axes; reshape it first")));
    if (node.op == &alias_row)
      set(id, {alias_of_examples(node)});
    else if (node.op->kind == Kind::branch)
      set(id, has_batch(node.inputs[0]) ? in_turns(node) : branch(node));
    else if (node.op->kind == Kind::loop)
      set(id, loop(node));
    else if (node.op == &custom_gradient_row)
      set(id, custom_gradient(node));
    else
      set(id, op(node));
  }

  std::vector<Tensor> op(const Node& given) {
    Node node = given;
    for (ValueType& type : node.results)
      for (int axis = 0; axis < type.shape.rank(); ++axis) type.shape.set(axis, type.shape[axis].substitute(sizes()));
    std::optional<std::vector<Tensor>> results = batched_op(node, sized_attributes(node), batched_inputs(node), size_);
    return results ? std::move(*results) : in_turns(given);
  }

  /// The node alone, one example after the other.
  std::vector<Tensor> in_turns(const Node& node) {
    Graph alone;
    alone.scope = graph().scope;
    Node inside = node;
    for (ValueId& input : inside.inputs) input = alone.add_input(graph().type(input));
    const ValueId only = alone.add(std::move(inside));
    alone.results = alone.add_parts(only);
    FlatLoop loop;
    loop.name = "vmap";
    loop.where = node.where;
    loop.turns = size_;
    for (ValueId input : node.inputs)
      if (has_batch(input)) loop.sequences.push_back(at(input));
    loop.body = [&](std::span<const Tensor>, std::span<const Tensor> elements, const Tensor&) {
      std::vector<Tensor> inputs;
      std::size_t next = 0;
      for (ValueId input : node.inputs) inputs.push_back(has_batch(input) ? elements[next++] : at(input));
      return FlatTurn{{}, Replay(alone, inputs, sizes(), Effects::happen).run()};
    };
    return run_flat_loop(loop).stacked;
  }

  Tensor alias_of_examples(const Node& node) {
    const auto& alias = node.attributes.as<AliasAttributes>();
    switch (alias.kind) {
      case AliasAttributes::stop:
        return detached(at(node.inputs[0]));
      case AliasAttributes::attached:
        return attached_to(repeated(node.inputs[0]), repeated(node.inputs[1]));
      default:
        return same_value(at(node.inputs[0]));
    }
  }

  /// All examples take the same side.
  std::vector<Tensor> branch(const Node& node) {
    const auto& sides = node.attributes.as<BranchAttributes>();
    const std::vector<Batched> inputs = batched_inputs(node, 1);
    std::vector<Tensor> results = scope(
        [&] { return BatchedReplay(at(node.inputs[0]) ? *sides.yes : *sides.no, inputs, sizes(), size_).run_all(); },
        node.where);
    learn_sizes(node, results, 1);
    return results;
  }

  /// By result: it is made of an input that differs from example to example.
  static std::vector<bool> reached(const Graph& child, const std::vector<bool>& inputs) {
    std::vector<bool> values(child.nodes.size(), false), out;
    for (std::size_t i = 0; i < inputs.size(); ++i) values[static_cast<std::size_t>(child.inputs[i])] = inputs[i];
    for (std::size_t id = 0; id < child.nodes.size(); ++id)
      for (ValueId input : child.nodes[id].inputs)
        if (values[static_cast<std::size_t>(input)]) values[id] = true;
    for (ValueId id : child.results) out.push_back(values[static_cast<std::size_t>(id)]);
    return out;
  }

  /// The turns of all examples together. In turns themselves where examples may do different numbers of them.
  std::vector<Tensor> loop(const Node& node) {
    const auto& attributes = node.attributes.as<LoopAttributes>();
    auto input = [&](int number) { return node.inputs[static_cast<std::size_t>(number)]; };
    if (attributes.count == LoopAttributes::by_value && has_batch(input(0))) return in_turns(node);
    // Which carried values differ from example to example, in the end.
    std::vector<bool> differs;
    for (int i = attributes.first_carried(); i < attributes.first_captured(); ++i)
      differs.push_back(has_batch(input(i)));
    differs.push_back(false);  // the place
    for (int i = attributes.first_captured(); i < static_cast<int>(node.inputs.size()); ++i)
      differs.push_back(has_batch(input(i)));
    for (bool more = true; more;) {
      more = false;
      std::vector<bool> results = reached(*attributes.body, differs);
      for (std::size_t i = 0; i < static_cast<std::size_t>(attributes.carried); ++i)
        if (results[i] && !differs[i]) differs[i] = more = true;
    }
    const auto first_element = static_cast<std::size_t>(attributes.carried);
    auto for_condition = differs;
    for_condition.erase(for_condition.begin() + attributes.carried,
                        for_condition.begin() + attributes.carried + attributes.sequences);
    if (attributes.condition && reached(*attributes.condition, for_condition)[0]) return in_turns(node);

    FlatLoop together = loop_of(node, sizes());
    if (together.count == LoopAttributes::by_value) together.count_value = at(input(0));
    for (int i = 0; i < attributes.carried; ++i) {
      ValueId id = input(attributes.first_carried() + i);
      together.carried.push_back(differs[static_cast<std::size_t>(i)] ? repeated(id) : at(id));
    }
    for (int i = attributes.first_sequence(); i < attributes.first_captured(); ++i)
      together.sequences.push_back(has_batch(input(i)) ? moved_axis(at(input(i)), 1, 0) : at(input(i)));
    auto inputs_of_turn = [&](std::span<const Tensor> carried, std::span<const Tensor> elements, const Tensor& place) {
      std::vector<Batched> out;
      for (std::size_t i = 0; i < carried.size(); ++i) out.push_back({carried[i], differs[i]});
      for (std::size_t i = 0; i < elements.size(); ++i) out.push_back({elements[i], differs[first_element + i]});
      out.push_back({place, false});
      for (int i = attributes.first_captured(); i < static_cast<int>(node.inputs.size()); ++i)
        out.push_back(batched(input(i)));
      return out;
    };
    std::vector<bool> stacked_differs;
    together.body = [&](std::span<const Tensor> carried, std::span<const Tensor> elements, const Tensor& place) {
      BatchedReplay turn(*attributes.body, inputs_of_turn(carried, elements, place), sizes(), size_);
      FlatTurn left;
      stacked_differs.clear();
      for (Batched& result : turn.run_some()) {
        const std::size_t number = left.carried.size();
        if (number == static_cast<std::size_t>(attributes.carried)) {
          stacked_differs.push_back(result.has_batch);
          left.stacked.push_back(result.value);
        } else {
          left.carried.push_back(differs[number] && !result.has_batch ? repeated_for(result.value, size_)
                                                                      : result.value);
        }
      }
      return left;
    };
    if (attributes.condition)
      together.condition = [&](std::span<const Tensor> carried, const Tensor& place) {
        return BatchedReplay(*attributes.condition, inputs_of_turn(carried, {}, place), sizes(), size_).run()[0];
      };
    FlatTurn end = run_flat_loop(together);
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < end.carried.size(); ++i)
      out.push_back(differs[i] ? end.carried[i] : repeated_for(end.carried[i], size_));
    for (std::size_t r = 0; r < end.stacked.size(); ++r)
      out.push_back(stacked_differs[r] ? moved_axis(end.stacked[r], 1, 0) : repeated_for(end.stacked[r], size_));
    learn_sizes(node, out, 1);
    return out;
  }

  /// The way back of all examples is the way back of one, for all of them; what they share gets the sum.
  std::vector<Tensor> custom_gradient(const Node& node) {
    const Attributes sized = sized_attributes(node);
    const auto& own = sized.as<CustomGradientNode>();
    std::vector<Tensor> values, arguments;
    std::vector<bool> shared;
    for (std::size_t i = 0; i < own.values; ++i) values.push_back(repeated(node.inputs[i]));
    for (std::size_t i = own.values; i < own.values + own.arguments; ++i) {
      arguments.push_back(at(node.inputs[i]));
      shared.push_back(!has_batch(node.inputs[i]));
    }
    const std::vector<Batched> residuals = batched_inputs(node, own.values + own.arguments);
    inside::Backward backward = [&](const std::vector<Tensor>& ds) {
      std::vector<Batched> inputs;
      for (const Tensor& d : ds) inputs.push_back({d, true});
      inputs.insert(inputs.end(), residuals.begin(), residuals.end());
      std::vector<Tensor> found = BatchedReplay(*own.backward, inputs, sizes(), size_).run_all();
      std::vector<Tensor> out(own.arguments);
      for (std::size_t g = 0; g < found.size(); ++g) {
        auto to = static_cast<std::size_t>(own.gradient_of[g]);
        out[to] = shared[to] ? core_ops.sum_to(found[g], arguments[to].shape()) : found[g];
      }
      return out;
    };
    return record_custom_gradient(*current_trace(), values, arguments, backward, node.where);
  }

  const Dim size_;
  std::vector<bool> has_batch_;
};

}  // namespace

std::vector<Tensor> replay_batched(const Graph& graph, std::vector<Batched> inputs, const Dim& size) {
  return BatchedReplay(graph, inputs, own_symbols(graph), size).run_all();
}

}  // namespace stet
