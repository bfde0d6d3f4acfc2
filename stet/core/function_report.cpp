// What a function tells of its traces, and traces that are made without a call.
#include <algorithm>
#include <map>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/function_state.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"

namespace stet {

// --- traces

TraceInfo info_of(const Entry& entry) {
  TraceInfo out;
  out.arguments = entry.types;
  for (const Fact& fact : entry.program->facts)
    out.facts.push_back(text(fact, ", for ", fact.reason.asker, at_line(fact.reason.where)));
  for (const Trace::HiddenInput& hidden : entry.hidden)
    out.captured.push_back(hidden.captured.defined()
                               ? text(hidden.captured.dtype(), hidden.captured.shape(), ", a constant")
                               : text("Variable ",
                                      hidden.variable.name().empty() ? "" : text("'", hidden.variable.name(), "' "),
                                      hidden.variable.dtype(), hidden.variable.shape()));
  out.calls = entry.calls.load(std::memory_order_relaxed);
  out.trace_milliseconds = entry.trace_milliseconds;
  out.compile_milliseconds = entry.compile_milliseconds;
  out.nodes = entry.graph.nodes.size();
  out.steps = entry.program->steps.size();
  out.bytes = entry.bytes();
  out.stale = entry.stale.load();
  return out;
}

std::vector<TraceInfo> FunctionBase::traces() const {
  std::vector<TraceInfo> out;
  for (const std::shared_ptr<Entry>& entry : state("traces")->cache.known()) out.push_back(info_of(*entry));
  return out;
}

std::string FunctionBase::explain() const {
  const std::string& name = state("explain")->name;
  std::string out = text(name, ": ", trace_count(), trace_count() == 1 ? " trace\n" : " traces\n");
  int number = 0;
  for (const std::shared_ptr<Entry>& entry : state_->cache.known()) {
    const TraceInfo info = info_of(*entry);
    out += text("  trace ", ++number, ": (", joined(info.arguments, ", "), "), ", info.nodes, " nodes, ", info.steps,
                " steps, traced in ", milliseconds_text(info.trace_milliseconds), " ms, compiled in ",
                milliseconds_text(info.compile_milliseconds), " ms, ", info.calls, " calls\n");
    for (const GradientPairFacts& pair : entry->pairs())
      out += text("    under a tape: ", pair.forward_steps, " steps forward, ", pair.backward_steps,
                  " backward, made in ", milliseconds_text(pair.milliseconds), " ms; ", pair.kept,
                  pair.kept == 1 ? " tensor" : " tensors", " kept for a gradient; ", pair.calls, " calls\n");
    for (const std::string& fact : info.facts) out += text("    fact ", fact, "\n");
    for (std::size_t i = 0; i < info.captured.size(); ++i)
      out += text(entry->hidden[i].captured.defined() ? "    captured " : "    ", info.captured[i], "\n");
  }
  return out;
}

namespace {

const Entry& numbered(const std::vector<std::shared_ptr<Entry>>& entries, int trace, const char* what,
                      const std::string& function) {
  if (trace < 0 || static_cast<std::size_t>(trace) >= entries.size())
    throw UserError(error_text(text(what, ": there is no trace ", trace, " of '", function, "'"), {},
                               text("it has ", entries.size())));
  return *entries[static_cast<std::size_t>(trace)];
}

}  // namespace

std::string FunctionBase::graph(int trace) const {
  std::vector<std::shared_ptr<Entry>> entries = state("graph")->cache.known();
  return numbered(entries, trace, "graph", state_->name).graph.str();
}

std::string FunctionBase::dot(int trace) const {
  std::vector<std::shared_ptr<Entry>> entries = state("dot")->cache.known();
  return dot_of(numbered(entries, trace, "dot", state_->name).graph, state_->name);
}

// --- arguments that are known by their types

ArgumentSpec::ArgumentSpec(DType dtype, ShapeSpec shape, Where where)
    : spec_{dtype, std::move(shape), {}}, where_(where) {}
ArgumentSpec::ArgumentSpec(const TensorSpec& spec, Where where) : spec_(spec), where_(where) {}
ArgumentSpec::ArgumentSpec(const Tensor& like, Where where) : like_(like), where_(where) {
  if (!like.defined()) return;
  const TensorNode& node = concrete_node(like, "spec", where);
  spec_.dtype = node.dtype;
  for (std::int64_t size : node.size_span()) spec_.shape.dims.emplace_back(size);
}

namespace {

/// A tensor of these sizes without elements: nobody runs on it.
Tensor placeholder(DType dtype, const std::vector<std::int64_t>& sizes) {
  Tensor one = size_tensor(1);
  auto* node = const_cast<TensorNode*>(one.node());
  node->dtype = dtype;
  node->rank = static_cast<std::uint8_t>(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    node->sizes[axis] = sizes[axis];
    node->strides[axis] = stride;
    stride *= sizes[axis];
  }
  return one;
}

constexpr std::int64_t unknown_size = 60;  // divided by much, and no size that code treats in a way of its own

}  // namespace

namespace inside {

void CallLeaves::add(const ArgumentSpec& argument) {
  owners.push_back(next_++);
  spec_leaves.push_back(leaves.size());
  if (argument.like().defined()) {
    leaves.push_back({.kind = Leaf::tensor, .value = argument.like()});
    specs.push_back(argument.spec());
    return;
  }
  const TensorSpec& spec = argument.spec();
  if (spec.shape.rank() > max_rank)
    throw UserError(error_text(text("spec: ", spec, " has more than ", max_rank, " axes"), argument.where(), {}));
  std::vector<std::int64_t> sizes;
  for (const DimSpec& dim : spec.shape.dims) {
    if (dim.size && *dim.size < 0)
      throw UserError(error_text(text("spec: ", spec, " has a size below 0"), argument.where(),
                                 "write dyn for a size that is not known"));
    if (dim.size || dim.name.empty()) {
      sizes.push_back(dim.size.value_or(unknown_size));
      continue;
    }
    auto known = std::find(names_.begin(), names_.end(), dim.name);
    // One size for one name; sizes without a name are the same as long as nobody says otherwise.
    sizes.push_back(unknown_size * (2 + (known - names_.begin())));
    if (known == names_.end()) names_.push_back(dim.name);
  }
  Shape::of(sizes);  // Problem if they are too large
  leaves.push_back({.kind = Leaf::tensor, .value = placeholder(spec.dtype, sizes)});
  specs.push_back(spec);
}

}  // namespace inside

inside::CallLeaves FunctionBase::promised(const char* what, Where where) const {
  const State& state = *this->state(what, where);
  inside::CallLeaves out;
  if (state.options.signature.size() != state.arity || state.arity == 0)
    throw UserError(error_text(text(what, ": '", state.name, "' has no signature that says what its ", state.arity,
                                    state.arity == 1 ? " argument is" : " arguments are"),
                               where, text("say it here: ", what, "({dtype, {sizes}}, …)")));
  for (const TensorSpec& spec : state.options.signature) out.add(ArgumentSpec(spec, where));
  return out;
}

namespace {

/// A trace that relies on a size which a spec leaves open would serve no other: UserError with who asked.
void check_open_sizes(const Entry& entry, const std::string& function, const inside::CallLeaves& given,
                      const LookedUp& looked_up, Where where) {
  std::vector<Tensor> others;
  bool open = false;
  for (std::size_t i = 0, next = 0; i < given.leaves.size(); ++i) {
    const Leaf& leaf = given.leaves[i];
    const bool is_input = leaf.kind == Leaf::size || (leaf.kind == Leaf::tensor && leaf.value.defined());
    if (!is_input) continue;
    others.push_back(looked_up.tensors[next++]);
    auto spec = std::find(given.spec_leaves.begin(), given.spec_leaves.end(), i);
    if (spec == given.spec_leaves.end()) continue;
    const TensorNode& node = *others.back().node();
    const std::vector<DimSpec>& dims =
        given.specs[static_cast<std::size_t>(spec - given.spec_leaves.begin())].shape.dims;
    std::vector<std::int64_t> sizes(node.sizes, node.sizes + node.rank);
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      if (!dims[axis].size) sizes[axis] = sizes[axis] * 7;  // the same change where sizes are the same
      open = open || !dims[axis].size;
    }
    others.back() = placeholder(node.dtype, sizes);
  }
  if (!open || entry.accepts(looked_up.key, others)) return;
  std::string facts;
  for (const Fact& fact : entry.broken_facts(others))
    facts += text("; ", fact.reason.asker, at_line(fact.reason.where), " needs ", fact);
  throw UserError(error_text(text("concrete: '", function, "' relies on a size that the spec leaves open", facts),
                             where,
                             text("give the size instead of dyn (dyn was taken to be ", unknown_size,
                                  " or a multiple), or keep it a Dim in host code")));
}

}  // namespace

std::shared_ptr<Entry> FunctionBase::trace_for(const inside::CallLeaves& given, const char* what, Where where) const {
  std::shared_ptr<State> kept = this->state(what, where);
  State& state = *kept;
  if (current_trace())
    throw TraceError(
        error_text(text(what, ": '", state.name, "' cannot be traced by itself while a function is traced"), where,
                   text("call ", what, " outside of traced code")));
  Leaves leaves = given.leaves;
  state.prepare_arguments(leaves, given.owners, where);
  if (!state.options.signature.empty()) state.check_signature(leaves, given.owners, where);
  LookedUp looked_up(leaves, false, where);
  MissedCall call{state.name, state.arguments, leaves, given.owners, looked_up.key, looked_up.tensors, where};
  std::shared_ptr<Entry> entry = state.cache.find_or_make(call, [&](bool) { return state.make_entry(call); });
  if (!entry)
    throw UserError(error_text(
        text(what, ": no trace of '", state.name, "' fits, and as many are kept as may be: such calls run eagerly"),
        where, "raise .max_traces or .max_bytes"));
  if (std::string_view(what) == "concrete") check_open_sizes(*entry, state.name, given, looked_up, where);
  return entry;
}

std::string FunctionBase::graph_of(const inside::CallLeaves& call, bool dot, Where where) const {
  std::shared_ptr<Entry> entry = trace_for(call, dot ? "dot" : "graph", where);
  return dot ? dot_of(entry->graph, state_->name) : entry->graph.str();
}

TraceCost FunctionBase::cost_of(const inside::CallLeaves& given, Where where) const {
  for (const TensorSpec& spec : given.specs)
    for (const DimSpec& dim : spec.shape.dims)
      if (!dim.size)
        throw UserError(error_text(text("cost: ", spec, " has a size that is not given"), where,
                                   "what a call costs depends on all sizes: give numbers, or a tensor"));
  std::shared_ptr<Entry> entry = trace_for(given, "cost", where);
  Leaves leaves = given.leaves;
  state_->prepare_arguments(leaves, given.owners, where);
  LookedUp looked_up(leaves, false, where);
  std::optional<Bindings> bindings = entry->accepts(looked_up.key, looked_up.tensors);
  if (!bindings) throw InternalError(text("the trace of '", state_->name, "' does not accept its own arguments"));
  try {
    return stet::cost_of(*entry, *bindings);
  } catch (const Problem& problem) {
    throw_run_error(state_->name, problem, where);
  }
}

std::vector<TensorSpec> FunctionBase::result_types(const inside::CallLeaves& call, Where where) const {
  const State& state = *this->state("eval_shape", where);
  if (call.specs.size() != state.arity)
    throw UserError(
        error_text(text("eval_shape: the function takes ", state.arity, state.arity == 1 ? " tensor, " : " tensors, ",
                        call.specs.size(), call.specs.size() == 1 ? " spec is given" : " specs are given"),
                   where, "give {dtype, {sizes}} for each argument"));
  FunctionOptions options;
  options.signature = call.specs;
  HostFunction host(state.name, state.arguments, options);
  host.body = state.host.body;
  host.where = state.host.where;
  TracedRun run = host.looked_at(call.leaves, call.owners);
  std::vector<Dim> sizes = solve_facts(*run.graph.scope);
  std::vector<TensorSpec> out;
  for (std::size_t r = 0; r + run.written.size() < run.graph.results.size(); ++r) {
    const ValueType& type = run.graph.type(run.graph.results[r]);
    TensorSpec spec{type.dtype, {}, {}};
    for (const Dim& dim : type.shape.substitute(sizes)) {
      DimSpec one(dyn);
      if (dim.is_constant())
        one.size = dim.constant();
      else
        one.name = text(dim);
      spec.shape.dims.push_back(std::move(one));
    }
    out.push_back(std::move(spec));
  }
  return out;
}

// --- ConcreteBase

TraceInfo ConcreteBase::info() const { return info_of(*trace_); }
std::string ConcreteBase::graph() const { return trace_->graph.str(); }
std::string ConcreteBase::dot() const { return dot_of(trace_->graph, function_->name); }

void ConcreteBase::call(inside::CallLeaves given, inside::CallResults& results, Where where) const {
  std::shared_ptr<FunctionBase::State> kept = function_;
  FunctionBase::State& state = *kept;
  if (current_trace())
    throw TraceError(error_text(text("a trace of '", state.name, "' is called by itself while a function is traced"),
                                where, text("call '", state.name, "': inside of a trace it becomes part of it")));
  Leaves leaves = std::move(given.leaves);
  state.prepare_arguments(leaves, given.owners, where);
  if (!state.options.signature.empty()) state.check_signature(leaves, given.owners, where);
  RecordedCall recorded(state);
  LookedUp looked_up(leaves, true, where);
  MissedCall call{state.name, state.arguments, leaves, given.owners, looked_up.key, looked_up.tensors, where};
  std::shared_ptr<Entry> entry = trace_;
  if (!entry->accepts(looked_up.key, looked_up.tensors)) {
    std::string why = cause_of(call, {&entry, 1}, {}, 1).headline;
    why = why.substr(std::min(why.find('\n'), why.size() - 1));
    while (!why.empty() && why.back() == '\n') why.pop_back();
    throw UserError(error_text(
        text(state.name, ": the arguments do not fit this trace, which is for (", joined(entry->types, ", "), ")", why),
        where, text("call '", state.name, "' itself, which makes another trace")));
  }
  state.serve(entry, call, 0, results);
}

}  // namespace stet
