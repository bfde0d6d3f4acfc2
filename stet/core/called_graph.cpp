#include "stet/core/called_graph.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <unordered_map>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/compiler/pipeline.h"
#include "stet/core/function_entry.h"
#include "stet/core/gradient.h"
#include "stet/core/gradient_reads.h"
#include "stet/core/host_code_run.h"
#include "stet/core/replay.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/variable_notes.h"

namespace stet {

std::shared_ptr<const BoundProgram> RecentBindings::latest() const {
  std::lock_guard lock(guard_);
  return recent_.empty() ? nullptr : recent_.back().second;
}

std::size_t RecentBindings::count() const {
  std::lock_guard lock(guard_);
  return recent_.size();
}

/// How many are kept of a program.
static std::size_t most_of(const Program& program) {
  constexpr std::size_t all_steps = 16384;  // a few megabytes
  return std::clamp<std::size_t>(all_steps / std::max<std::size_t>(program.steps.size(), 1), 8, 64);
}

std::shared_ptr<const BoundProgram> RecentBindings::bound_to(const Program& program, const Bindings& bindings) {
  std::lock_guard lock(guard_);
  auto found = std::find_if(recent_.rbegin(), recent_.rend(), [&](const auto& one) { return one.first == bindings; });
  if (found != recent_.rend()) {
    std::rotate(recent_.rbegin(), found, found + 1);
    return recent_.back().second;
  }
  std::shared_ptr<const BoundProgram> bound = program.bind(bindings);
  if (recent_.size() >= most_of(program)) recent_.erase(recent_.begin());
  recent_.emplace_back(bindings, bound);
  return bound;
}

namespace {

std::optional<Bindings> accepted(const Program& program, const std::vector<Tensor>& inputs) {
  std::vector<ConcreteInput> concrete;
  for (const Tensor& input : inputs) concrete.push_back({input.node()->size_span(), {}});
  return program.accepts(concrete, {});
}

std::vector<Tensor> followed_by(std::vector<Tensor> first, const std::vector<Tensor>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

bool has_late_sizes(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op->kind == Kind::late) return true;
    if (children(node).empty()) continue;
    // How many turns there were is a size of the gradient.
    if (node.op->kind == Kind::loop && node.attributes.as<LoopAttributes>().count != LoopAttributes::by_size)
      return true;
    for (const ValueType& type : node.results)
      for (const Dim& dim : type.shape)
        for (int symbol : dim.symbols())
          if (!graph.scope->symbol_hint(symbol)) return true;
    for (const GraphPointer& child : children(node))
      if (has_late_sizes(*child)) return true;
  }
  return false;
}

}  // namespace

/// A graph for one choice of inputs that are followed: the forward program gives the graph's results and what is kept,
/// the backward one takes the inputs, what was kept, and the gradients of the results.
struct GradientPair {
  std::vector<bool> followed;
  std::shared_ptr<Program> forward;
  std::shared_ptr<CalledGraph> backward;
  std::vector<Tensor> captured;  // further inputs of both: constants that gradients use
  std::vector<int> gradient_of;  // by result of the backward program, the input
  /// By result of the backward program and result with a gradient: the one depends on the gradient of the other.
  std::vector<std::vector<bool>> depends;
  std::vector<bool> has_gradient;  // by result of the graph: floating
  std::size_t kept = 0;
  std::shared_ptr<const GradientReads> reads;
  double milliseconds = 0;
  std::atomic<std::uint64_t> calls{0};
  RecentBindings recent;
};

namespace {

/// The joint graph of results and gradients, cut in two.
class Cut {
 public:
  Cut(const Graph& joint, std::size_t arguments, std::size_t weights, std::size_t forward_results)
      : joint_(joint), arguments_(arguments), weights_(weights), forward_results_(forward_results) {
    find_forward();
    find_backward();
  }

  /// Inputs: the arguments, then captured tensors. Results: the graph's own, then what is kept.
  Graph forward() const {
    Graph out;
    out.scope = joint_.scope;
    std::unordered_map<ValueId, ValueId> to;
    add_inputs(out, to, false);
    for (std::size_t id = 0; id < joint_.nodes.size(); ++id) {
      if (!in_forward_[id]) continue;
      if (joint_.nodes[id].op == &alias_row)
        to[static_cast<ValueId>(id)] = to.at(joint_.nodes[id].inputs[0]);
      else
        copy(out, to, static_cast<ValueId>(id));
    }
    for (std::size_t r = 0; r < forward_results_; ++r) out.results.push_back(to.at(joint_.results[r]));
    for (ValueId id : kept_) out.results.push_back(to.at(id));
    out.checks = joint_.checks;
    return out;
  }

  /// Inputs: the arguments, what is kept, the results' gradients, then captured tensors. Results: the gradients.
  Graph backward() const {
    Graph out;
    out.scope = joint_.scope;
    std::unordered_map<ValueId, ValueId> to;
    add_inputs(out, to, true);
    auto bring = [&](ValueId id) {
      if (to.contains(id)) return;
      ValueId root = root_of(id);
      if (!to.contains(root)) copy(out, to, root);  // a constant or a size
      to[id] = to.at(root);
    };
    for (std::size_t id = 0; id < joint_.nodes.size(); ++id) {
      if (!in_backward_[id]) continue;
      for (ValueId input : joint_.nodes[id].inputs) bring(input);
      copy(out, to, static_cast<ValueId>(id));
    }
    for (std::size_t r = forward_results_; r < joint_.results.size(); ++r) {
      bring(joint_.results[r]);
      out.results.push_back(to.at(joint_.results[r]));
    }
    return out;
  }

  std::size_t kept() const { return kept_.size(); }

  /// By gradient and weight: the one is computed from the other.
  std::vector<std::vector<bool>> dependencies() const {
    std::vector<std::vector<bool>> out(joint_.results.size() - forward_results_);
    for (std::size_t w = 0; w < weights_; ++w) {
      std::vector<bool> reached = computed_from(arguments_ + w, arguments_ + w + 1);
      for (std::size_t g = 0; g < out.size(); ++g)
        out[g].push_back(reached[static_cast<std::size_t>(joint_.results[forward_results_ + g])]);
    }
    return out;
  }

 private:
  const Node& node(ValueId id) const { return joint_.node(id); }
  ValueId root_of(ValueId id) const {
    while (node(id).op == &alias_row) id = node(id).inputs[0];
    return id;
  }
  /// Is made anew where it is needed.
  bool is_free(ValueId id) const { return node(id).op == &constant_row || node(id).op == &size_row; }

  /// By node: whether one of the inputs [begin, end) is in it.
  std::vector<bool> computed_from(std::size_t begin, std::size_t end) const {
    std::vector<bool> reached(joint_.nodes.size(), false);
    for (std::size_t i = begin; i < end; ++i) reached[static_cast<std::size_t>(joint_.inputs[i])] = true;
    for (std::size_t id = 0; id < joint_.nodes.size(); ++id)
      for (ValueId input : joint_.nodes[id].inputs)
        if (reached[static_cast<std::size_t>(input)]) reached[id] = true;
    return reached;
  }

  void find_forward() {
    in_forward_.assign(joint_.nodes.size(), false);
    std::vector<ValueId> open(joint_.results.begin(),
                              joint_.results.begin() + static_cast<std::ptrdiff_t>(forward_results_));
    // What may raise does so in the call, unless it happens on the way back.
    std::vector<bool> backward = computed_from(arguments_, arguments_ + weights_);
    for (std::size_t id = 0; id < joint_.nodes.size(); ++id)
      if (has_effect(joint_.nodes[id]) && !backward[id]) open.push_back(static_cast<ValueId>(id));
    while (!open.empty()) {
      ValueId id = open.back();
      open.pop_back();
      if (in_forward_[static_cast<std::size_t>(id)] || node(id).op == &input_row) continue;
      in_forward_[static_cast<std::size_t>(id)] = true;
      // Programs know no aliases: what else one refers to is the tapes' business.
      const std::vector<ValueId>& inputs = node(id).inputs;
      open.insert(open.end(), inputs.begin(), node(id).op == &alias_row ? inputs.begin() + 1 : inputs.end());
    }
    // The parts of a tuple are where the tuple is.
    for (std::size_t id = 0; id < joint_.nodes.size(); ++id)
      if (joint_.nodes[id].op == &part_row && in_forward_[static_cast<std::size_t>(joint_.nodes[id].inputs[0])])
        in_forward_[id] = true;
  }

  void find_backward() {
    in_backward_.assign(joint_.nodes.size(), false);
    std::vector<bool> is_kept(joint_.nodes.size(), false);
    std::vector<ValueId> open(joint_.results.begin() + static_cast<std::ptrdiff_t>(forward_results_),
                              joint_.results.end());
    for (std::size_t id = 0; id < joint_.nodes.size(); ++id)
      if (has_effect(joint_.nodes[id]) && !in_forward_[id]) open.push_back(static_cast<ValueId>(id));
    while (!open.empty()) {
      ValueId id = root_if_forward(open.back());
      open.pop_back();
      auto at = static_cast<std::size_t>(id);
      if (in_backward_[at] || node(id).op == &input_row || is_free(id)) continue;
      if (in_forward_[at]) {
        is_kept[at] = true;
        continue;
      }
      in_backward_[at] = true;
      open.insert(open.end(), node(id).inputs.begin(), node(id).inputs.end());
    }
    for (std::size_t id = 0; id < is_kept.size(); ++id)
      if (is_kept[id]) kept_.push_back(static_cast<ValueId>(id));
  }
  /// An alias of what is there anyway is no value to keep.
  ValueId root_if_forward(ValueId id) const {
    return node(id).op == &alias_row && (in_forward_[static_cast<std::size_t>(id)]) ? root_of(id) : id;
  }

  void add_inputs(Graph& out, std::unordered_map<ValueId, ValueId>& to, bool backward) const {
    for (std::size_t i = 0; i < arguments_; ++i) to[joint_.inputs[i]] = out.add_input(joint_.type(joint_.inputs[i]));
    if (backward) {
      for (ValueId id : kept_) to[id] = out.add_input(joint_.type(id));
      for (std::size_t i = arguments_; i < arguments_ + weights_; ++i)
        to[joint_.inputs[i]] = out.add_input(joint_.type(joint_.inputs[i]));
    }
    for (std::size_t i = arguments_ + weights_; i < joint_.inputs.size(); ++i)
      to[joint_.inputs[i]] = out.add_input(joint_.type(joint_.inputs[i]));
  }

  void copy(Graph& out, std::unordered_map<ValueId, ValueId>& to, ValueId id) const {
    Node copied = node(id);
    for (ValueId& input : copied.inputs) input = to.at(input);
    to[id] = out.add(std::move(copied));
  }

  const Graph& joint_;
  std::size_t arguments_, weights_, forward_results_;
  std::vector<bool> in_forward_, in_backward_;
  std::vector<ValueId> kept_;
};

/// The tensors that a graph is called with, as arguments of a trace: sizes that are symbols of the graph stay the same
/// symbol wherever they stand.
std::vector<Tensor> trace_arguments(Trace& trace, const Graph& graph, const std::vector<Tensor>& inputs) {
  std::unordered_map<int, Dim> symbols;
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ValueType type = graph.type(graph.inputs[i]);
    for (int axis = 0; axis < type.shape.rank(); ++axis) {
      if (type.shape[axis].is_constant()) continue;
      std::int64_t size = inputs[i].node()->sizes[axis];
      auto make = [&] { return trace.symbols().symbol({}, size); };
      std::optional<int> symbol = type.shape[axis].as_symbol();
      if (!symbol) {
        type.shape.set(axis, make());
        continue;
      }
      auto known = symbols.find(*symbol);
      if (known == symbols.end()) known = symbols.emplace(*symbol, make()).first;
      type.shape.set(axis, known->second);
    }
    out.push_back(trace.add_argument(std::move(type)));
  }
  return out;
}

std::shared_ptr<GradientPair> make_pair(const std::string& name, const Graph& graph,
                                        const std::vector<Variable>& variables, std::size_t differentiable,
                                        const std::vector<Tensor>& inputs, const std::vector<bool>& followed) {
  auto start = std::chrono::steady_clock::now();
  auto pair = std::make_shared<GradientPair>();
  pair->followed = followed;
  Trace trace(name);
  Graph joint;
  std::size_t weights_count = 0;
  {
    OpenTrace open(trace);
    std::vector<Tensor> arguments = trace_arguments(trace, graph, inputs);
    trace.run_scope(
        [&] {
          GradientTape tape({.watch_variables = false});
          std::vector<Source> sources;
          std::vector<Tensor> values = arguments;
          for (std::size_t i = 0; i < values.size(); ++i) {
            bool is_variable = i < variables.size() && variables[i].defined();
            if (is_variable) trace.note_variable(variables[i].id(), values[i]);
            if (!followed[i]) continue;
            is_variable ? tape.watch(variables[i]) : tape.watch(values[i]);
            sources.push_back(is_variable ? Source(variables[i]) : Source(values[i]));
            pair->gradient_of.push_back(static_cast<int>(i));
          }
          std::vector<Tensor> results = replay(graph, values);
          for (const Tensor& result : results) trace.graph.results.push_back(trace.lift(result, {}));
          std::vector<Tensor> targets, weights;
          for (std::size_t r = 0; r < results.size(); ++r) {
            pair->has_gradient.push_back(r < differentiable && is_floating(results[r].dtype()));
            if (!pair->has_gradient.back()) continue;
            targets.push_back(results[r]);
            weights.push_back(trace.add_argument({results[r].dtype(), results[r].shape()}));
          }
          weights_count = weights.size();
          std::vector<Tensor> gradients = gradients_of(tape, targets, weights, sources);
          std::vector<int> found;
          for (std::size_t i = 0; i < gradients.size(); ++i) {
            if (!gradients[i].defined()) continue;
            trace.graph.results.push_back(trace.lift(gradients[i], {}));
            found.push_back(pair->gradient_of[i]);
          }
          pair->gradient_of = std::move(found);
          return Leaves{};
        },
        {});
    for (const Trace::HiddenInput& hidden : trace.hidden) pair->captured.push_back(hidden.captured);
    // Captured tensors stand behind the arguments and the weights, whenever they were met.
    std::vector<ValueId> captured;
    std::erase_if(trace.graph.inputs, [&](ValueId id) {
      bool is_captured = !trace.tensor_of(id).node()->traced;
      if (is_captured) captured.push_back(id);
      return is_captured;
    });
    trace.graph.inputs.insert(trace.graph.inputs.end(), captured.begin(), captured.end());
    joint = merge_loops(trace.finished());
  }
  Cut cut(joint, inputs.size(), weights_count, graph.results.size());
  pair->kept = cut.kept();
  pair->depends = cut.dependencies();
  // A derivative that is 0 whatever comes back is one all the same.
  std::size_t weight = 0;
  for (std::size_t r = 0; r < graph.results.size(); ++r) {
    if (!pair->has_gradient[r]) continue;
    std::vector<bool> asked(graph.results.size(), false);
    asked[r] = true;
    const std::vector<bool> reached = inputs_reached(graph, asked);
    for (std::size_t g = 0; g < pair->depends.size(); ++g)
      if (reached[static_cast<std::size_t>(pair->gradient_of[g])]) pair->depends[g][weight] = true;
    ++weight;
  }
  pair->forward = compile_symbolic(cut.forward(), device_of(inputs));
  Graph backward = cut.backward();
  std::size_t gradients = backward.results.size();
  // Of the graph's own results the gradient needs the shapes, of what was kept all.
  GradientReads reads{used_inputs(backward), std::vector<bool>(weights_count, false)};
  reads.inputs.resize(inputs.size());
  reads.outputs.resize(weights_count + pair->kept, true);
  pair->reads = std::make_shared<const GradientReads>(std::move(reads));
  pair->backward = std::make_shared<CalledGraph>(name, std::move(backward), std::vector<Variable>{}, gradients);
  pair->milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return pair;
}

/// The attributes of a call on a tape.
struct PairAttributes {
  std::shared_ptr<GradientPair> pair;
};
constexpr AttributeType pair_attributes = {
    .hash = [](const void* p) { return std::hash<const void*>()(static_cast<const PairAttributes*>(p)->pair.get()); },
    .equal =
        [](const void* p, const void* q) {
          return static_cast<const PairAttributes*>(p)->pair == static_cast<const PairAttributes*>(q)->pair;
        },
    .str = [](const void*) { return std::string("a traced function"); },
    .copy = [](const void* p) -> std::shared_ptr<const void> {
      return std::make_shared<const PairAttributes>(*static_cast<const PairAttributes*>(p));
    },
    .is_symbolic = [](const void*) { return false; },
    .map_dims = [](const void* p, const std::function<Dim(const Dim&)>&) -> std::shared_ptr<const void> {
      return std::make_shared<const PairAttributes>(*static_cast<const PairAttributes*>(p));
    },
};

/// The call's outputs on a tape: results that have gradients, then what was kept.
void call_gradient(GradientCall& call) {
  const GradientPair& pair = *call.attributes<PairAttributes>().pair;
  std::vector<Tensor> inputs, weights;
  for (int i = 0; i < call.input_count(); ++i) inputs.push_back(call.in(i));
  std::size_t results = call.outputs().size() - pair.kept;
  for (std::size_t r = 0; r < call.outputs().size(); ++r) {
    if (r >= results)
      inputs.push_back(call.outputs()[r]);
    else
      weights.push_back(call.ds()[r].defined() ? call.ds()[r].contiguous() : zeros_like(call.outputs()[r]));
  }
  inputs = followed_by(followed_by(std::move(inputs), weights), pair.captured);
  std::vector<Tensor> gradients = pair.backward->run(inputs);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    bool asked = false;
    for (std::size_t r = 0; r < results; ++r) asked = asked || (pair.depends[i][r] && call.ds()[r].defined());
    if (asked) call.set(pair.gradient_of[i], gradients[i]);
  }
}

constinit const OpDef called_graph_row{.name = "function",
                                       .kind = Kind::structure,
                                       .summary = "A traced function, called under a tape.",
                                       .gradient = call_gradient};

}  // namespace

std::vector<bool> used_inputs(const Graph& graph) {
  std::vector<std::vector<int>> users_of = users(graph);
  std::vector<bool> out;
  for (ValueId id : graph.inputs) out.push_back(!users_of[static_cast<std::size_t>(id)].empty());
  return out;
}

std::shared_ptr<const GradientReads> reads_of_called_graph(const OpDef& op, const AttributesView& attributes) {
  return &op == &called_graph_row ? static_cast<const PairAttributes*>(attributes.data)->pair->reads : nullptr;
}

std::vector<Tensor> CalledGraph::run_plain(const std::vector<Tensor>& inputs) {
  {
    std::lock_guard lock(guard_);
    if (!program_) program_ = compile_symbolic(graph_, device_of(inputs));
  }
  std::optional<Bindings> bindings = accepted(*program_, inputs);
  if (!bindings) throw InternalError(text("a program of '", name_, "' does not accept its own arguments"));
  return run_fresh(*program_, *recent_.bound_to(*program_, *bindings), inputs);
}

std::shared_ptr<GradientPair> CalledGraph::pair_for(const std::vector<Tensor>& inputs,
                                                    const std::vector<bool>& followed) {
  std::lock_guard lock(guard_);
  for (const std::shared_ptr<GradientPair>& pair : pairs_)
    if (pair->followed == followed && accepted(*pair->forward, followed_by(inputs, pair->captured))) return pair;
  pairs_.push_back(make_pair(name_, graph_, variables_, differentiable_, inputs, followed));
  return pairs_.back();
}

void test_sizes(const Graph& graph, std::span<const Tensor> inputs) {
  Bindings bindings;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = graph.type(graph.inputs[i]).shape;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (std::optional<int> symbol = shape[axis].as_symbol()) bindings.bind(*symbol, inputs[i].node()->sizes[axis]);
  }
  for (const SizeCheck& check : graph.checks) test_if_known(check, bindings);
}

std::vector<Tensor> CalledGraph::run(const std::vector<Tensor>& given) {
  if (current_trace()) return replay(graph_, given);  // a way back, over a tape from outside of the trace
  const std::size_t tapes = recording_tapes();
  for (std::size_t i = 0; i < given.size(); ++i)
    if (is_variable(i)) VariableNotes::note(variables_[i].id(), given[i]);
  // What is followed of a Variable is what the graph reads of it, not the memory that comes in.
  std::vector<bool> followed;
  for (std::size_t i = 0; i < given.size(); ++i)
    followed.push_back(tapes > 0 &&
                       (is_variable(i) ? is_floating(given[i].dtype()) &&
                                             tapes_follow_variable(variables_[i].id(), variables_[i].trainable())
                                       : tapes_following(given[i]) > 0));
  test_sizes(graph_, given);
  const bool seen = std::find(followed.begin(), followed.end(), true) != followed.end();
  if (seen && (tapes > 1 || op_by_op_ || has_late_sizes(graph_))) return replay(graph_, given);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < given.size(); ++i) inputs.push_back(used_[i] ? given[i].contiguous() : given[i]);
  if (!seen) return run_plain(inputs);
  std::shared_ptr<GradientPair> pair;
  try {
    pair = pair_for(inputs, followed);
  } catch (const NoGradient&) {
    // Nobody has asked for that gradient yet: op by op, it is an error when somebody does.
    op_by_op_ = true;
    return replay(graph_, given);
  }
  pair->calls.fetch_add(1, std::memory_order_relaxed);
  std::vector<Tensor> all = followed_by(inputs, pair->captured);
  std::optional<Bindings> bindings = accepted(*pair->forward, all);
  if (!bindings) throw InternalError(text("a program of '", name_, "' does not accept its own arguments"));
  std::vector<Tensor> results = run_fresh(*pair->forward, *pair->recent.bound_to(*pair->forward, *bindings), all);
  std::vector<Tensor> outputs;
  for (std::size_t r = 0; r < pair->has_gradient.size(); ++r)
    if (pair->has_gradient[r]) outputs.push_back(results[r]);
  outputs.insert(outputs.end(), results.begin() + static_cast<std::ptrdiff_t>(pair->has_gradient.size()),
                 results.end());
  results.resize(pair->has_gradient.size());
  PairAttributes attributes{pair};
  std::vector<Tensor> known = given;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (followed[i] && is_variable(i)) known[i] = reading_of(known[i], variables_[i].id(), variables_[i].trainable());
  tell_tapes(called_graph_row, std::move(known), AttributesView{&pair_attributes, &attributes}, std::move(outputs));
  return results;
}

std::vector<GradientPairFacts> CalledGraph::pairs() const {
  std::lock_guard lock(guard_);
  std::vector<GradientPairFacts> out;
  for (const std::shared_ptr<GradientPair>& pair : pairs_) {
    std::lock_guard inner(pair->backward->guard_);
    out.push_back({pair->forward->steps.size(), pair->backward->program_ ? pair->backward->program_->steps.size() : 0,
                   pair->kept, pair->milliseconds, pair->calls.load()});
  }
  return out;
}

}  // namespace stet
