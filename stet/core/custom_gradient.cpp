#include "stet/core/custom_gradient.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/inside.h"
#include "stet/base/text.h"
#include "stet/core/ambient.h"
#include "stet/core/call.h"
#include "stet/core/differentiate.h"
#include "stet/core/gradient.h"
#include "stet/core/replay.h"
#include "stet/core/tape_state.h"
#include "stet/core/trace.h"
#include "stet/core/variable_notes.h"
#include "stet/core/variable_overlay.h"

namespace stet {

using inside::Backward;

namespace {

// --- attributes

/// Of a record: what to call on the way back.
struct CalledAttributes {
  std::shared_ptr<const Backward> backward;
};
constexpr AttributeType called_attributes = {
    .hash =
        [](const void* p) { return std::hash<const void*>()(static_cast<const CalledAttributes*>(p)->backward.get()); },
    .equal =
        [](const void* p, const void* q) {
          return static_cast<const CalledAttributes*>(p)->backward == static_cast<const CalledAttributes*>(q)->backward;
        },
    .str = [](const void*) { return std::string("a function"); },
    .copy = [](const void* p) -> std::shared_ptr<const void> {
      return std::make_shared<const CalledAttributes>(*static_cast<const CalledAttributes*>(p));
    },
    .is_symbolic = [](const void*) { return false; },
    .map_dims = [](const void* p, const std::function<Dim(const Dim&)>&) -> std::shared_ptr<const void> {
      return std::make_shared<const CalledAttributes>(*static_cast<const CalledAttributes*>(p));
    },
};

/// The same nodes under the same numbers: host code that is run again makes its child anew.
bool same_graph(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size() || a.inputs != b.inputs || a.results != b.results) return false;
  for (std::size_t id = 0; id < a.nodes.size(); ++id) {
    const Node &x = a.nodes[id], &y = b.nodes[id];
    if (x.op != y.op || x.inputs != y.inputs || x.results.size() != y.results.size()) return false;
    for (std::size_t r = 0; r < x.results.size(); ++r)
      if (!identical(x.results[r], y.results[r])) return false;
    std::vector<GraphPointer> p = children(x), q = children(y);
    if (p.size() != q.size()) return false;
    for (std::size_t i = 0; i < p.size(); ++i)
      if (!same_graph(*p[i], *q[i])) return false;
    if (p.empty() && !(x.attributes == y.attributes)) return false;
  }
  return true;
}

constexpr AttributeType custom_attributes = {
    .hash = [](const void* p) { return static_cast<const CustomGradientNode*>(p)->backward->nodes.size(); },
    .equal =
        [](const void* p, const void* q) {
          const auto &a = *static_cast<const CustomGradientNode*>(p), &b = *static_cast<const CustomGradientNode*>(q);
          return a.values == b.values && a.arguments == b.arguments && a.gradient_of == b.gradient_of &&
                 same_graph(*a.backward, *b.backward);
        },
    .str = [](const void* p) { return attribute::str(static_cast<const CustomGradientNode*>(p)->backward); },
    .copy = [](const void* p) -> std::shared_ptr<const void> {
      return std::make_shared<const CustomGradientNode>(*static_cast<const CustomGradientNode*>(p));
    },
    .is_symbolic = [](const void*) { return true; },
    .map_dims = [](const void* p, const std::function<Dim(const Dim&)>& f) -> std::shared_ptr<const void> {
      auto out = std::make_shared<CustomGradientNode>(*static_cast<const CustomGradientNode*>(p));
      attribute::map_dims(out->backward, f);
      return out;
    },
};

struct PlaceholderAttributes {
  DType dtype = DType::f32;
  Shape shape;
  int number = 0;
  STET_ATTRIBUTES(dtype, shape, number)
};

// --- gradients

std::vector<Tensor> weights_of(const GradientCall& call) {
  std::vector<Tensor> out;
  for (std::size_t r = 0; r < call.outputs().size(); ++r) out.push_back(call.d_of(static_cast<int>(r)));
  return out;
}

void gradient_of_called(GradientCall& call) {
  std::vector<Tensor> gradients = (*call.attributes<CalledAttributes>().backward)(weights_of(call));
  for (int i = 0; i < call.input_count(); ++i)
    if (call.wants(i)) call.set(i, std::move(gradients[static_cast<std::size_t>(i)]));
}

void gradient_of_custom(GradientCall& call) {
  const auto& a = call.attributes<CustomGradientNode>();
  std::vector<Tensor> inputs = weights_of(call);
  for (int i = static_cast<int>(a.values + a.arguments); i < call.input_count(); ++i) inputs.push_back(call.in(i));
  std::vector<Tensor> gradients = replay(*a.backward, inputs);
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    int input = static_cast<int>(a.values) + a.gradient_of[g];
    if (call.wants(input)) call.set(input, gradients[g]);
  }
}

void infer_custom(InferCall& call) {
  for (std::size_t v = 0; v < call.attributes<CustomGradientNode>().values; ++v)
    call.result(call.dtype(static_cast<int>(v)), call.shape(static_cast<int>(v)));
}

void infer_placeholder(InferCall& call) {
  const auto& a = call.attributes<PlaceholderAttributes>();
  call.result(a.dtype, a.shape);
}

}  // namespace

constinit const OpDef called_gradient_row{.name = "custom_gradient",
                                          .kind = Kind::structure,
                                          .summary = "A call of a function with a gradient of its own.",
                                          .gradient = gradient_of_called};
constinit const OpDef custom_gradient_row{.name = "custom_gradient",
                                          .kind = Kind::structure,
                                          .summary = "What the values of such a function are attached to.",
                                          .infer = infer_custom,
                                          .gradient = gradient_of_custom};
constinit const OpDef gradient_placeholder_row{.name = "gradient_placeholder",
                                               .kind = Kind::structure,
                                               .summary = "Stands for a gradient while a way back is recorded.",
                                               .infer = infer_placeholder};

Attributes attributes_of(const CustomGradientNode& node) { return Attributes({&custom_attributes, &node}); }

bool is_void(const Node& node, const std::vector<bool>& is_void_value) {
  if (node.op == &gradient_placeholder_row) return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return is_void_value[static_cast<std::size_t>(id)]; });
}

namespace {

bool has_custom_gradients(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op == &custom_gradient_row || node.op == &gradient_placeholder_row) return true;
    for (const GraphPointer& child : children(node))
      if (has_custom_gradients(*child)) return true;
  }
  return false;
}

}  // namespace

Graph without_custom_gradients(const Graph& given) {
  if (!has_custom_gradients(given)) return given;
  Graph out = given;
  out.nodes.clear();
  std::vector<ValueId> to;
  std::vector<bool> gone;  // ways back, and what their values were attached to: nobody else uses either
  for (const Node& old : given.nodes) {
    gone.push_back(is_void(old, gone) || old.op == &custom_gradient_row);
    to.push_back(-1);
    if (gone.back()) continue;
    Node node = old;
    for (ValueId& input : node.inputs) input = to[static_cast<std::size_t>(input)];
    to.back() = out.add(with_children(std::move(node), without_custom_gradients));
  }
  for (ValueId& id : out.inputs) id = to[static_cast<std::size_t>(id)];
  for (ValueId& id : out.results) id = to[static_cast<std::size_t>(id)];
  return out;
}

namespace {

/// The node in a trace, with its results.
std::vector<Tensor> recorded_custom(Trace& trace, const CustomGradientNode& attributes, std::vector<Tensor> inputs,
                                    Where where) {
  AttributesView view{&custom_attributes, &attributes};
  std::vector<Tensor> results(attributes.values);
  trace.record(custom_gradient_row, inputs, view, where, results);
  if (tapes_open()) tell_tapes(custom_gradient_row, std::move(inputs), view, results);
  return results;
}

}  // namespace

std::vector<Tensor> replayed_custom_gradient(const Node& node, const Attributes& sized,
                                             std::span<const Tensor> inputs) {
  CustomGradientNode attributes = sized.as<CustomGradientNode>();
  // The child speaks of the sizes of this place now.
  auto child = std::make_shared<Graph>(*attributes.backward);
  Trace* trace = current_trace();
  child->scope = trace ? trace->graph.scope : nullptr;
  attributes.backward = child;
  if (trace) return recorded_custom(*trace, attributes, {inputs.begin(), inputs.end()}, node.where);
  std::vector<Tensor> results;
  for (std::size_t v = 0; v < attributes.values; ++v) results.push_back(detached(inputs[v]));
  if (tapes_open())
    tell_tapes(custom_gradient_row, {inputs.begin(), inputs.end()}, {&custom_attributes, &attributes}, results);
  return results;
}

namespace {

// --- a way back as a child graph

/// Records what `backward` does on placeholders and cuts it out: what depends on them is the child, the rest is used by
/// it from outside.
class RecordedBackward {
 public:
  RecordedBackward(Trace& trace, const std::vector<Tensor>& values, const Backward& backward, Where where)
      : trace_(trace) {
    for (std::size_t v = 0; v < values.size(); ++v) {
      PlaceholderAttributes attributes{values[v].dtype(), values[v].shape(), static_cast<int>(v)};
      placeholders_.push_back(trace.record(gradient_placeholder_row, {}, view_of(attributes), where));
      note_made(placeholders_.back());
    }
    const std::map<std::uint64_t, ValueId> held = variables_held();
    first_ = trace.graph.nodes.size();
    Leaves given = trace.run_scope(
        [&] {
          Leaves out;
          structure::Of<std::vector<Tensor>>::write(backward(placeholders_), out);
          return out;
        },
        where);
    inside::LeafReader reader(given);
    gradients_ = structure::Of<std::vector<Tensor>>::read(reader);
    if (variables_held() != held)
      throw TraceError(
          error_text(text("tracing '", trace.function(),
                          "': the backward function of a custom_gradient writes a Variable, or draws random "
                          "numbers, but a trace may go back never or more than once"),
                     where, "write and draw in the function itself, and use what it gave"));
    cut();
  }
  GraphPointer child() const { return child_; }
  const std::vector<Tensor>& residuals() const { return residuals_; }
  /// By argument; undefined where there is none.
  const std::vector<Tensor>& gradients() const { return gradients_; }

 private:
  std::map<std::uint64_t, ValueId> variables_held() const {
    std::map<std::uint64_t, ValueId> out;
    for (std::uint64_t id : trace_.variable_order())
      if (trace_.variable(id).current != trace_.variable(id).initial) out[id] = trace_.variable(id).current;
    return out;
  }

  void cut() {
    const Graph& graph = trace_.graph;
    child_ = std::make_shared<Graph>();
    child_->scope = graph.scope;
    for (const Tensor& placeholder : placeholders_) {
      ValueId id = trace_.lift(placeholder, {});
      to_[id] = child_->add_input(graph.type(id));
    }
    // By these placeholders alone: a way back may be recorded inside of another.
    inside_.assign(graph.nodes.size(), false);
    for (const auto& [id, input] : to_) inside_[static_cast<std::size_t>(id)] = true;
    for (std::size_t id = 0; id < graph.nodes.size(); ++id)
      for (ValueId input : graph.nodes[id].inputs)
        if (inside_[static_cast<std::size_t>(input)]) inside_[id] = true;
    std::vector<ValueId> results;
    for (const Tensor& gradient : gradients_)
      if (gradient.defined()) results.push_back(trace_.lift(gradient, {}));
    for (std::size_t id = first_; id < inside_.size(); ++id)
      if (graph.nodes[id].op->has_effect)
        throw TraceError(error_text(text("tracing '", trace_.function(), "': ", graph.nodes[id].op->name,
                                         " in the backward function of a custom_gradient, but a trace may go back "
                                         "never or more than once"),
                                    graph.nodes[id].where, "call it in the function itself"));
    for (ValueId id : needed(results)) copy(id);
    for (ValueId id : results) child_->results.push_back(in_child(id));
  }

  /// The nodes inside that the results need, in order.
  std::set<ValueId> needed(const std::vector<ValueId>& results) const {
    std::set<ValueId> out;
    std::vector<ValueId> open = results;
    while (!open.empty()) {
      ValueId id = open.back();
      open.pop_back();
      if (!inside_[static_cast<std::size_t>(id)] || to_.contains(id) || !out.insert(id).second) continue;
      const std::vector<ValueId>& inputs = trace_.graph.node(id).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return out;
  }

  void copy(ValueId id) {
    Node node = trace_.graph.node(id);
    if (node.op->kind == Kind::late)
      throw TraceError(
          error_text(text("tracing '", trace_.function(), "': ", node.op->name,
                          " in the backward function of a custom_gradient has a size that depends on values"),
                     node.where, "compute it in the function itself, and use it in the backward one"));
    for (ValueId& input : node.inputs) input = in_child(input);
    to_[id] = child_->add(std::move(node));
  }

  ValueId in_child(ValueId id) {
    if (auto found = to_.find(id); found != to_.end()) return found->second;
    const Node& node = trace_.graph.node(id);
    if (node.op == &constant_row || node.op == &size_row) return to_[id] = child_->add(node);
    residuals_.push_back(trace_.tensor_of(id));
    return to_[id] = child_->add_input(node.type());
  }

  Trace& trace_;
  std::size_t first_ = 0;  // node that the way back recorded
  std::vector<Tensor> placeholders_, gradients_, residuals_;
  std::shared_ptr<Graph> child_;
  std::vector<bool> inside_;
  std::unordered_map<ValueId, ValueId> to_;
};

}  // namespace

std::vector<Tensor> record_custom_gradient(Trace& trace, const std::vector<Tensor>& values,
                                           const std::vector<Tensor>& arguments, const Backward& backward,
                                           Where where) {
  RecordedBackward recorded(trace, values, backward, where);
  CustomGradientNode attributes{values.size(), arguments.size(), {}, recorded.child()};
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (recorded.gradients()[i].defined()) attributes.gradient_of.push_back(static_cast<int>(i));
  std::vector<Tensor> inputs = values;
  inputs.insert(inputs.end(), arguments.begin(), arguments.end());
  inputs.insert(inputs.end(), recorded.residuals().begin(), recorded.residuals().end());
  return recorded_custom(trace, attributes, std::move(inputs), where);
}

namespace {

/// The values, which depend on the arguments by `backward` alone.
std::vector<Tensor> attached_values(const std::vector<Tensor>& values, const std::vector<Tensor>& arguments,
                                    const Backward& backward, Where where) {
  if (values.empty()) return {};
  std::vector<Tensor> out;
  if (Trace* trace = current_trace()) {
    std::vector<Tensor> carriers = record_custom_gradient(*trace, values, arguments, backward, where);
    for (std::size_t v = 0; v < values.size(); ++v) out.push_back(attached_to(values[v], carriers[v]));
    return out;
  }
  for (const Tensor& value : values) out.push_back(detached(value));
  CalledAttributes attributes{std::make_shared<const Backward>(backward)};
  if (tapes_open()) tell_tapes(called_gradient_row, arguments, {&called_attributes, &attributes}, out);
  return out;
}

// --- leaves

bool is_differentiable(const Leaf& leaf) {
  return leaf.kind == Leaf::tensor && leaf.value.defined() && is_floating(leaf.value.dtype());
}
/// The floating tensors among a function's results.
std::vector<Tensor> floating_of(const Leaves& leaves) {
  std::vector<Tensor> out;
  for (const Leaf& leaf : leaves)
    if (is_differentiable(leaf)) out.push_back(leaf.value);
  return out;
}
Leaves with_floating(Leaves leaves, const std::vector<Tensor>& values) {
  std::size_t next = 0;
  for (Leaf& leaf : leaves)
    if (is_differentiable(leaf)) leaf.value = values[next++];
  return leaves;
}
/// Tensors and what Variables hold, in order; undefined ones left out by whoever asks.
std::vector<Tensor> argument_tensors(const Leaves& leaves) {
  std::vector<Tensor> out;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind == Leaf::tensor) out.push_back(leaf.value);
    if (leaf.kind == Leaf::variable) out.push_back(leaf.state.read());
  }
  return out;
}

void check_gradients(const std::vector<Tensor>& gradients, const std::vector<std::optional<ValueType>>& arguments,
                     Where where) {
  if (gradients.size() != arguments.size())
    throw UserError(error_text(text("custom_gradient: the backward function gives ", gradients.size(),
                                    gradients.size() == 1 ? " gradient" : " gradients", " for ", arguments.size(),
                                    arguments.size() == 1 ? " argument" : " arguments"),
                               where, "return one for every tensor and Variable of the arguments, undefined for none"));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& d = gradients[i];
    if (!d.defined()) continue;
    const std::optional<ValueType>& x = arguments[i];
    bool fits = x && d.dtype() == x->dtype && d.rank() == x->shape.rank();
    for (int axis = 0; fits && axis < d.rank(); ++axis) try {
        fits = require(d.dim(axis), Relation::equal, x->shape[axis], {"custom_gradient", "size of a gradient", where});
      } catch (const Problem&) {
        fits = false;
      }
    if (!fits)
      throw UserError(error_text(text("custom_gradient: the backward function gives ", type_text(d), " for argument ",
                                      i, " of ", x ? x->str() : std::string("undefined")),
                                 where, "a gradient has the dtype and the shape of what it belongs to"));
  }
}

/// UserError if a tape has seen the function use something that is no argument: nobody would say its gradient.
void refuse_captured(const std::vector<TapeMark>& before, const Leaves& leaves, const std::vector<Tensor>& arguments,
                     Where where) {
  std::set<std::uint64_t> known, variables;
  for (const Tensor& argument : arguments)
    if (argument.defined()) known.insert(identity_of(*argument.node()));
  for (const Leaf& leaf : leaves)
    if (leaf.kind == Leaf::variable) variables.insert(leaf.state.id());
  for (const TapeMark& mark : before) {
    const GradientTape::State& tape = *mark.tape;
    std::set<std::uint64_t> inside = known;
    for (std::size_t i = mark.reads; i < tape.reads.size(); ++i) {
      inside.insert(tape.reads[i].tensor);
      if (!variables.contains(tape.reads[i].variable))
        throw UserError(
            error_text("custom_gradient: the function reads a Variable that is no argument of it, and that "
                       "gradients would not reach",
                       where, "pass the Variable to it, or read it outside and pass the tensor"));
    }
    for (std::size_t i = mark.records; i < tape.records.size(); ++i) {
      for (const TapeValue& input : tape.records[i].inputs)
        if (tape.tracks(input) && !inside.contains(input.identity))
          throw UserError(error_text(text("custom_gradient: the function uses a tensor, ", type_text(input.tensor),
                                          ", that is no argument of it, and that gradients would not reach"),
                                     where, "pass the tensor to it, or stop_gradient(x) outside of it"));
      for (const TapeValue& output : tape.records[i].outputs) inside.insert(output.identity);
    }
  }
}

}  // namespace

Leaves inside::run_with_gradient(const Leaves& leaves, const CustomFunction& f, Where where) {
  Trace* trace = current_trace();
  if (!trace && !tapes_open()) return f(leaves).value;
  std::vector<Tensor> arguments = argument_tensors(leaves);
  // Tapes see what the function does: the backward function may use it, and be differentiated itself.
  std::vector<TapeMark> before = mark_tapes();
  std::shared_ptr<const Backward> backward;
  auto body = [&] {
    ValueAndBackward both = f(leaves);
    backward = std::make_shared<const Backward>(std::move(both.backward));
    return std::move(both.value);
  };
  Leaves value = body();
  refuse_captured(before, leaves, arguments, where);
  // The one tape that records does not see its own way back.
  if (!trace && recording_tapes() == 1) return_tapes_to(before);
  std::vector<std::optional<ValueType>> types;
  for (const Tensor& argument : arguments)
    types.push_back(argument.defined() ? std::optional(ValueType{argument.dtype(), argument.shape()}) : std::nullopt);
  std::vector<Tensor> defined = std::move(arguments);
  std::erase_if(defined, [](const Tensor& t) { return !t.defined(); });
  auto checked = [backward, types, where](const std::vector<Tensor>& ds) {
    std::vector<Tensor> gradients = (*backward)(ds), out;
    check_gradients(gradients, types, where);
    for (std::size_t i = 0; i < types.size(); ++i)
      if (types[i]) out.push_back(gradients[i]);
    return out;
  };
  return with_floating(value, attached_values(floating_of(value), defined, checked, where));
}

// --- recompute

namespace {

/// What a function that is run again has to find: Variables as they were, and `training`.
struct Beginning {
  std::unordered_map<std::uint64_t, Tensor> variables;
  std::uint64_t ambient_number;
};

/// What a function uses that is no argument, and that gradients may be asked for.
struct UsedFromOutside {
  std::vector<std::uint64_t> variables;
  std::vector<Tensor> captured;
};

/// The gradients by the leaves' tensors and then by what is used from outside, the function run again under a tape.
std::vector<Tensor> gradients_again(const Leaves& leaves, const UsedFromOutside& used, const inside::HostBody& f,
                                    const std::vector<Tensor>& ds) {
  GradientTape tape({.watch_variables = false});
  Leaves again = leaves;
  std::vector<TapeSource> sources;
  for (Leaf& leaf : again) {
    if (leaf.kind == Leaf::variable) {
      tape.watch(leaf.state);
      sources.push_back({0, leaf.state.id()});
    }
    if (leaf.kind != Leaf::tensor || !leaf.value.defined()) continue;
    leaf.value = same_value(leaf.value);
    if (is_floating(leaf.value.dtype())) tape.watch(leaf.value);
    sources.push_back({identity_of(*leaf.value.node()), 0});
  }
  for (std::uint64_t variable : used.variables) {
    tape.state().variables.insert(variable);
    sources.push_back({0, variable});
  }
  for (const Tensor& captured : used.captured) {
    tape.watch(captured);
    sources.push_back({identity_of(*captured.node()), 0});
  }
  std::vector<Tensor> values = floating_of(f(again));
  GradientTape::State& state = tape.state();
  state.spent = true;
  PausedTape paused(state);
  Accumulator gradients;
  for (std::size_t v = 0; v < values.size(); ++v)
    if (state.tracks(values[v])) gradients.add(identity_of(*values[v].node()), ds[v]);
  std::vector<Tensor> out = walk_back(state, sources, gradients, !trace_in_progress());
  // Used, if not on this side of a decision.
  if (current_trace())
    for (std::size_t i = 0; i < used.captured.size(); ++i)
      if (Tensor& d = out[out.size() - used.captured.size() + i]; !d.defined()) d = zeros_like(used.captured[i]);
  return out;
}

/// What the function used beside its arguments.
UsedFromOutside used_from_outside(ReadingNotes& notes, const Leaves& value, const Leaves& leaves,
                                  const std::vector<Tensor>& arguments) {
  for (const Leaf& leaf : value)
    if (leaf.kind == Leaf::tensor) notes.note_use(leaf.value);
  std::set<std::uint64_t> known;
  for (const Leaf& leaf : leaves)
    if (leaf.kind == Leaf::variable) known.insert(leaf.state.id());
  UsedFromOutside out;
  for (const GradientTape::State::Reading& reading : notes.readings())
    if (known.insert(reading.variable).second) out.variables.push_back(reading.variable);
  std::set<std::uint64_t> own;
  for (const Tensor& argument : arguments) own.insert(identity_of(*argument.node()));
  for (const Tensor& tensor : notes.uses())
    if (own.insert(identity_of(*tensor.node())).second) out.captured.push_back(tensor);
  // Whichever side of a decision was run first.
  std::stable_sort(out.captured.begin(), out.captured.end(), [](const Tensor& a, const Tensor& b) {
    const auto &x = a.node()->traced, &y = b.node()->traced;
    return x && (!y || x->id < y->id);
  });
  return out;
}

/// Readings of the Variables, which the tapes see, and the captured tensors, as further arguments.
void add_arguments(const UsedFromOutside& used, const std::vector<GradientTape::State::Reading>& readings,
                   std::vector<Tensor>& arguments) {
  for (std::uint64_t variable : used.variables)
    for (const GradientTape::State::Reading& reading : readings)
      if (reading.variable == variable) {
        arguments.push_back(reading_of(reading.value, reading.variable, reading.trainable));
        break;
      }
  arguments.insert(arguments.end(), used.captured.begin(), used.captured.end());
}

Leaves recomputed_eagerly(const Leaves& leaves, const inside::HostBody& f, Where where) {
  auto beginning = std::make_shared<Beginning>();
  beginning->ambient_number = ambient();
  std::vector<Tensor> arguments = argument_tensors(leaves);
  std::erase_if(arguments, [](const Tensor& t) { return !t.defined(); });
  UsedFromOutside used;
  std::vector<GradientTape::State::Reading> readings;
  Leaves value = [&] {
    ReadingNotes reads;
    VariableNotes notes;
    Leaves out = f(leaves);
    beginning->variables = notes.first();
    used = used_from_outside(reads, out, leaves, arguments);
    readings = reads.readings();
    return out;
  }();
  add_arguments(used, readings, arguments);
  readings.clear();
  auto backward = [=](const std::vector<Tensor>& ds) {
    AmbientScope as_then(beginning->ambient_number);
    VariableOverlay apart;
    for (const auto& [variable, held] : beginning->variables) apart.show(variable, held);
    return gradients_again(leaves, used, f, ds);
  };
  return with_floating(value, attached_values(floating_of(value), arguments, backward, where));
}

/// The Variables of a trace as they were at some point of it, and the way back there.
class TracedState {
 public:
  explicit TracedState(Trace& trace) : trace_(trace) {
    for (std::uint64_t id : trace.variable_order())
      held_[id] = {trace.variable(id).current, trace.variable(id).written};
  }
  /// Variables that were met later are what they were at the beginning.
  void restore() const {
    for (std::uint64_t id : trace_.variable_order()) {
      TracedVariable& variable = trace_.variable(id);
      auto found = held_.find(id);
      variable.current = found == held_.end() ? variable.initial : found->second.first;
      variable.written = found != held_.end() && found->second.second;
    }
  }

 private:
  Trace& trace_;
  std::map<std::uint64_t, std::pair<ValueId, bool>> held_;
};

/// `x`, to a compiler the result of something that waits for `token`: what is computed from it is not what was computed
/// from x before, and happens when it is needed.
Tensor behind(const Tensor& x, const Tensor& token) {
  Expr t = operand(1, token.dtype());
  Expr never = t < t;
  const Tensor operands[] = {x, token};
  return call_map_of(scalar::select(never, constant(0, x.dtype()), operand(0, x.dtype())), operands);
}

Leaves recomputed_in_trace(Trace& trace, const Leaves& leaves, const inside::HostBody& f, Where where) {
  std::vector<Tensor> arguments = argument_tensors(leaves);
  std::erase_if(arguments, [](const Tensor& t) { return !t.defined(); });
  TracedState before(trace);
  UsedFromOutside used;
  std::vector<GradientTape::State::Reading> readings;
  Leaves value = [&] {
    ReadingNotes reads;
    Leaves out = trace.run_scope([&] { return f(leaves); }, where);
    used = used_from_outside(reads, out, leaves, arguments);
    readings = reads.readings();
    return out;
  }();
  add_arguments(used, readings, arguments);
  TracedState after(trace);
  auto backward = [&](const std::vector<Tensor>& ds) {
    before.restore();
    Tensor token = core_ops.sum_to(ds[0], Shape());
    Leaves waiting = leaves;
    for (Leaf& leaf : waiting)
      if (is_differentiable(leaf)) leaf.value = behind(leaf.value, token);
    // Counters of random numbers too: what is drawn is drawn again, not kept.
    for (std::uint64_t id : trace.variable_order()) {
      TracedVariable& variable = trace.variable(id);
      if (!is_floating(variable.variable.dtype()))
        variable.current = trace.lift(behind(trace.tensor_of(variable.current), token), where);
    }
    std::vector<Tensor> out = gradients_again(waiting, used, f, ds);
    after.restore();
    return out;
  };
  return with_floating(value, attached_values(floating_of(value), arguments, backward, where));
}

}  // namespace

Leaves inside::run_recomputed(const Leaves& leaves, const HostBody& f, Where where) {
  if (Trace* trace = current_trace()) return recomputed_in_trace(*trace, leaves, f, where);
  return tapes_open() ? recomputed_eagerly(leaves, f, where) : f(leaves);
}

}  // namespace stet
