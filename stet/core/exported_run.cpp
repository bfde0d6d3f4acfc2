#include "stet/core/exported_run.h"

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/custom_gradient.h"
#include "stet/core/tape.h"
#include "stet/core/trace.h"

namespace stet {
namespace {

/// A replay that believes no type of its graph.
class CheckedReplay final : public Replay {
 public:
  CheckedReplay(const std::string& function, const Graph& graph, std::span<const Tensor> inputs, std::vector<Dim> sizes,
                Effects effects, bool with_sizes)
      : Replay(graph, inputs, std::move(sizes), effects), function_(function), with_sizes_(with_sizes) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueType& said = graph.type(graph.inputs[i]);
      if (inputs[i].dtype() != said.dtype || inputs[i].rank() != said.shape.rank())
        refuse(graph.node(graph.inputs[i]), text("takes ", inputs[i].dtype(), inputs[i].shape(), ", not ", said.str()));
    }
  }

 protected:
  void run_node(ValueId id, const Node& node) override {
    state_known_checks();
    Replay::run_node(id, node);
    if (node.op->has_effect || node.results.size() > 1) return;  // of a tuple, its parts are looked at
    const Tensor& given = at(id);
    const ValueType& said = node.type();
    if (given.dtype() != said.dtype || given.rank() != said.shape.rank()) differs(node, given, said);
    const Shape shape = given.shape();
    for (int axis = 0; with_sizes_ && axis < shape.rank(); ++axis) {
      const Dim expected = said.shape[axis].substitute(sizes());
      if (identical(shape[axis], expected) || prove_equal(shape[axis], expected) == Proof::yes) continue;
      // Sizes that depend on values inside of a side or a turn have no name outside of it.
      if (is_late(said.shape[axis])) continue;
      differs(node, given, said);
    }
  }

  std::vector<Tensor> run_child(const Graph& child, std::span<const Tensor> inputs) override {
    return CheckedReplay(function_, child, inputs, sizes(), effects(), with_sizes_).run();
  }

 private:
  bool is_late(const Dim& dim) const {
    for (int symbol : dim.symbols())
      if (!graph().scope->symbol_hint(symbol)) return true;
    return false;
  }
  [[noreturn]] void differs(const Node& node, const Tensor& given, const ValueType& said) const {
    refuse(node, text("gives ", given.dtype(), given.shape(), ", not ", said.str()));
  }
  [[noreturn]] void refuse(const Node& node, const std::string& what) const {
    throw UserError(text("'", node.op->name, "' of '", function_, "' ", what, ", as the file says"));
  }

  const std::string& function_;
  const bool with_sizes_;
};

bool same_kind(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && a.shape.rank() == b.shape.rank();
}

/// Runs a way back on tensors of the types that it says, in a trace that is thrown away.
void check_way_back(const std::string& function, const Graph& graph, const Node& node) {
  const auto& custom = node.attributes.as<CustomGradientNode>();
  const Graph& child = *custom.backward;
  auto ensure = [&](bool condition, const char* rule) {
    if (!condition) throw UserError(text("a way back of '", function, "' breaks the rule: ", rule));
  };
  for (std::size_t i = 0; i < child.inputs.size(); ++i) {
    const std::size_t input = i < custom.values ? i : i + custom.arguments;
    ensure(same_kind(child.type(child.inputs[i]), graph.type(node.inputs[input])), "it takes what it is given");
  }
  for (std::size_t g = 0; g < custom.gradient_of.size(); ++g) {
    const std::size_t argument = custom.values + static_cast<std::size_t>(custom.gradient_of[g]);
    ensure(same_kind(child.type(child.results[g]), graph.type(node.inputs[argument])),
           "a gradient is of its argument's type");
  }
  Trace trace(function);
  OpenTrace open(trace);
  std::vector<Dim> sizes;
  for (int i = 0; i < child.scope->symbol_count(); ++i)
    sizes.push_back(trace.symbols().symbol(child.scope->symbol_name(i), child.scope->symbol_hint(i).value_or(2)));
  std::vector<Tensor> inputs;
  for (ValueId id : child.inputs)
    inputs.push_back(trace.add_argument({child.type(id).dtype, child.type(id).shape.substitute(sizes)}));
  trace.run_scope(
      [&] {
        // Which sizes are equal follows from the whole function, which is not here.
        CheckedReplay(function, child, inputs, sizes, Effects::happen, false).run();
        return inside::Leaves{};
      },
      node.where);
}

void check_ways_back(const std::string& function, const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op == &custom_gradient_row) {
      check_way_back(function, graph, node);
      check_ways_back(function, *node.attributes.as<CustomGradientNode>().backward);
    }
    for (const GraphPointer& child : children(node)) check_ways_back(function, *child);
  }
}

}  // namespace

void PortableFunction::check_ways_back() const { stet::check_ways_back(name, graph); }

inside::Leaves PortableFunction::run(const inside::Leaves& arguments) const {
  std::vector<Tensor> values;
  std::vector<Dim> sizes = own_symbols(graph);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Shape& shape = graph.type(graph.inputs[i]).shape;
    const Tensor& given = arguments[i].value;
    values.push_back(given);
    for (int axis = 0; axis < std::min(shape.rank(), given.rank()); ++axis)
      if (std::optional<int> symbol = shape[axis].as_symbol())
        sizes[static_cast<std::size_t>(*symbol)] = given.dim(axis);
  }
  for (const SizeCheck& fact : facts) {
    const Dim left = fact.fact.left.substitute(sizes), right = fact.fact.right.substitute(sizes);
    if (!require(left, fact.fact.relation, right, fact.fact.reason))
      throw Problem(text("the function relies on ", fact.fact.str(), ", which does not hold for these sizes"));
  }
  for (const PortableInput& input : hidden) {
    if (!input.variable.defined()) {
      values.push_back(input.constant);
    } else if (Trace* trace = current_trace()) {
      values.push_back(trace->current_value(input.variable));
    } else {
      HiddenTapes unseen;  // what tapes follow of a Variable is what the graph reads of it
      values.push_back(input.variable.read());
    }
  }
  const std::vector<Tensor> results = CheckedReplay(name, graph, values, std::move(sizes), Effects::happen, true).run();
  for (const Update& update : graph.updates)
    hidden[static_cast<std::size_t>(update.input) - arguments.size()].variable.assign(
        results[static_cast<std::size_t>(update.result)]);
  inside::Leaves out;
  for (const PortableOutput& output : gives)
    out.push_back({.kind = inside::Leaf::tensor,
                   .value = output.result < 0 ? output.number : results[static_cast<std::size_t>(output.result)]});
  return out;
}

}  // namespace stet
