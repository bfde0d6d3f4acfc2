#include "stet/core/function.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>

#include "stet/base/error.h"
#include "stet/base/kept_where.h"
#include "stet/base/text.h"
#include "stet/core/function_entry.h"
#include "stet/core/hit.h"
#include "stet/core/retrace.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/trace_cache.h"

namespace stet {
namespace {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Functions called inside a trace are run in place; one that calls itself would never end.
class InlinedCall {
 public:
  InlinedCall(const std::string& function, const Leaves& arguments, Where where) {
    if (++depth <= most) return;
    --depth;
    const bool counts =
        std::any_of(arguments.begin(), arguments.end(), [](const Leaf& leaf) { return leaf.kind == Leaf::number; });
    throw TraceError(error_text(
        text("'", function, "' is called inside itself more than ", most, " deep while being traced"), where,
        counts ? text("a recursion on C++ numbers is unrolled into the trace, at most ", most,
                      " deep: check that it ends, or write it as a loop")
               : "a recursion that a tensor ends has no end while tracing, where both sides of an if (tensor) are "
                 "taken; write a loop over sizes or numbers"));
  }
  ~InlinedCall() { --depth; }

 private:
  static constexpr int most = 100;
  static thread_local int depth;
};
thread_local int InlinedCall::depth = 0;

/// A tensor that host code kept from a trace will be an error wherever it is used: said before, and with its line.
void tell_leak(const std::string& function, Where line) {
  std::cerr << text("stet: host code kept a tensor of the trace of '", function, "'", at_line(line, ", made at "), "\n",
                    explanation_line("why", "it has no value outside of the trace, and using it is an error"),
                    explanation_line("fix", "return it from the function, or assign it to a Variable"));
}

}  // namespace

struct FunctionBase::State {
  const std::uint64_t id = next_function_id();
  std::string name;
  ArgumentNames arguments;
  HostCode body;
  FunctionOptions options;
  Where where;
  TraceCache cache{name, options, where};

  void check_arguments(const Leaves& leaves, const std::vector<int>& owners, Where call_where) const;
  /// Against the promise; UserError naming argument and both types.
  void check_signature(const std::vector<Tensor>& tensors, const std::vector<int>& owners, Where call_where) const;
  /// Runs the host code into a graph. With `created`, Variables may be made, and their number is told.
  Graph trace_once(const Leaves& leaves, const std::vector<int>& owners, Entry& entry, std::size_t* created = nullptr);
  Shape argument_shape(Trace& trace, const Tensor& tensor, std::size_t number, const std::string& symbol,
                       std::map<std::string, Dim>& named) const;
  /// Traces and compiles. With `compare`, traces twice, and two different programs are a TraceError.
  std::shared_ptr<Entry> make_entry(const MissedCall& call, bool compare);
};

namespace {

std::vector<Tensor> tensors_of(const Leaves& leaves, Where where) {
  std::vector<Tensor> out;
  for (const Leaf& leaf : leaves)
    if (leaf.kind == Leaf::tensor) {
      concrete_node(leaf.value, "call", where);
      out.push_back(leaf.value.contiguous(where));
    }
  return out;
}

/// Everything of two graphs that a trace decides.
std::string fingerprint(const Graph& graph) {
  std::string out = graph.str();
  std::vector<const Graph*> open{&graph};
  while (!open.empty()) {
    const Graph& next = *open.back();
    open.pop_back();
    for (const Node& node : next.nodes) {
      if (node.op == &constant_row) out += node.attributes.as<ConstantAttributes>().bytes;
      if (node.op->kind != Kind::branch) continue;
      const auto& branch = node.attributes.as<BranchAttributes>();
      open.push_back(branch.yes.get());
      open.push_back(branch.no.get());
    }
  }
  return out;
}

/// The line of the first node that differs.
Where first_difference(const Graph& a, const Graph& b) {
  for (std::size_t i = 0; i < std::min(a.nodes.size(), b.nodes.size()); ++i) {
    Graph one, other;
    one.nodes = {a.nodes[i]};
    other.nodes = {b.nodes[i]};
    if (fingerprint(one) != fingerprint(other)) {
      // A constant has no line of its own: its first user has.
      for (std::size_t user = i; user < a.nodes.size(); ++user)
        if (a.nodes[user].where.known()) return a.nodes[user].where;
    }
  }
  return {};
}

}  // namespace

void FunctionBase::State::check_arguments(const Leaves& leaves, const std::vector<int>& owners,
                                          Where call_where) const {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const char* what = nullptr;
    if (leaves[i].kind == Leaf::tensor && !leaves[i].value.defined()) what = "tensor";
    if (leaves[i].kind == Leaf::variable && !leaves[i].state.defined()) what = "Variable";
    if (what)
      throw UserError(error_text(text(name, ": ", arguments.of(owners[i]), " is an undefined ", what), call_where,
                                 "assign a value to it before the call"));
  }
}

void FunctionBase::State::check_signature(const std::vector<Tensor>& tensors, const std::vector<int>& owners,
                                          Where call_where) const {
  const std::vector<TensorSpec>& promised = options.signature;
  if (promised.size() != tensors.size())
    throw UserError(
        error_text(text(name, ": the signature names ", promised.size(), " tensors, the call has ", tensors.size()),
                   where, "give one {dtype, {sizes}} for every tensor among the arguments"));
  std::map<std::string, std::pair<std::int64_t, std::string>> named;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorNode& node = *tensors[i].node();
    const ShapeSpec& shape = promised[i].shape;
    auto refuse = [&](const std::string& why) {
      throw UserError(error_text(text(name, ": ", arguments.of(owners[i]), " is ", node.dtype, node.shape(),
                                      ", the signature promises ", promised[i], why),
                                 call_where, "change the call, or the signature"));
    };
    if (node.dtype != promised[i].dtype || node.rank != shape.rank()) refuse("");
    for (int axis = 0; axis < node.rank; ++axis) {
      const DimSpec& dim = shape.dims[static_cast<std::size_t>(axis)];
      if (dim.size && *dim.size != node.sizes[axis]) refuse("");
      if (dim.size || dim.name.empty()) continue;
      auto [known, added] = named.try_emplace(dim.name, node.sizes[axis], arguments.of(owners[i]));
      if (!added && known->second.first != node.sizes[axis])
        refuse(text(", and ", dim.name, " is ", known->second.first, " in ", known->second.second));
    }
  }
}

Shape FunctionBase::State::argument_shape(Trace& trace, const Tensor& tensor, std::size_t number,
                                          const std::string& symbol, std::map<std::string, Dim>& named) const {
  Shape shape;
  const TensorNode& node = *tensor.node();
  for (int axis = 0; axis < node.rank; ++axis) {
    std::string dim_name = text(symbol, "_", axis);
    if (!options.signature.empty()) {
      const DimSpec& dim = options.signature[number].shape.dims[static_cast<std::size_t>(axis)];
      if (dim.size) {
        shape.push_back(*dim.size);
        continue;
      }
      if (!dim.name.empty()) {
        auto known = named.find(dim.name);
        if (known == named.end())
          known = named.emplace(dim.name, trace.symbols().symbol(dim.name, node.sizes[axis])).first;
        shape.push_back(known->second);
        continue;
      }
    }
    shape.push_back(trace.symbols().symbol(dim_name, node.sizes[axis]));
  }
  return shape;
}

Graph FunctionBase::State::trace_once(const Leaves& given, const std::vector<int>& owners, Entry& entry,
                                      std::size_t* created) {
  Trace trace(name);
  trace.may_create = created != nullptr;
  OpenTrace open(trace);
  Leaves traced = given;
  std::map<std::string, Dim> named;
  int tensors = 0;
  for (std::size_t i = 0; i < traced.size(); ++i)
    if (traced[i].kind == Leaf::tensor) {
      std::string symbol = arguments.in(owners[i]);
      if (std::count(owners.begin(), owners.end(), owners[i]) > 1) symbol += text("_", tensors);
      const Tensor& tensor = given[i].value;
      traced[i].value = trace.add_argument(
          {tensor.dtype(), argument_shape(trace, tensor, static_cast<std::size_t>(tensors), symbol, named)});
      ++tensors;
    }
  if (!options.signature.empty()) trace.symbols().declare_unknown();
  Leaves results = trace.run_scope([&] { return body(traced); }, where);
  if (created) *created = trace.created.size();
  for (Leaf& leaf : results)
    if (leaf.kind == Leaf::tensor) {
      leaf.undefined = !leaf.value.defined();
      if (!leaf.undefined) trace.graph.results.push_back(trace.lift(leaf.value, where));
      leaf.value = Tensor();
    }
  entry.written.clear();
  entry.used.clear();
  for (std::uint64_t id : trace.variable_order()) {
    TracedVariable& variable = trace.variable(id);
    entry.used.push_back(variable.variable);
    if (!variable.written) continue;
    auto state = std::find_if(trace.hidden.begin(), trace.hidden.end(),
                              [&](const Trace::HiddenInput& hidden) { return hidden.variable.id() == id; });
    int input = tensors + static_cast<int>(state - trace.hidden.begin());
    trace.graph.updates.push_back({input, static_cast<int>(trace.graph.results.size())});
    trace.graph.results.push_back(variable.current);
    entry.written.push_back(variable.variable);
  }
  entry.hidden = std::move(trace.hidden);
  entry.hidden_sizes.clear();
  for (const Trace::HiddenInput& hidden : entry.hidden)
    entry.hidden_sizes.push_back(
        (hidden.captured.defined() ? hidden.captured.shape() : hidden.variable.shape()).sizes());
  entry.result_form = std::move(results);
  Graph graph = trace.finished();
  traced.clear();
  entry.left_behind = trace.left_behind();
  return graph;
}

std::shared_ptr<Entry> FunctionBase::State::make_entry(const MissedCall& call, bool compare) {
  auto entry = std::make_shared<Entry>();
  auto start = Clock::now();
  Graph graph;
  std::size_t created = 0;
  graph = trace_once(call.leaves, call.owners, *entry, &created);
  // A run that made Variables was for building: the one that counts finds them made, as every later call does.
  if (created > 0) graph = trace_once(call.leaves, call.owners, *entry);
  if (compare) {
    // Host randomness, clocks and counters show as a difference between two runs of the same code.
    Entry again;
    Graph second = trace_once(call.leaves, call.owners, again);
    if (fingerprint(graph) != fingerprint(second) || !same_captures(*entry, again)) {
      Where line = first_difference(graph, second);
      throw TraceError(error_text(
          text("tracing '", name, "' twice gave two different programs", at_line(line, "; they part at ")), call.where,
          "what host code computes (random numbers, clocks, counters) is frozen into the trace: pass "
          "it as an argument, use stet::random, or a Variable"));
    }
  }
  for (Where line : entry->left_behind) tell_leak(name, line);
  entry->trace_milliseconds = milliseconds_since(start);
  start = Clock::now();
  entry->program = compile_symbolic(graph);
  entry->compile_milliseconds = milliseconds_since(start);
  entry->key = call.key;
  std::vector<Dim> sizes = solve_facts(*graph.scope);
  std::size_t tensor = 0;
  for (const Leaf& leaf : call.leaves) {
    if (leaf.kind != Leaf::tensor) {
      entry->types.push_back(described(leaf));
      continue;
    }
    const ValueType& traced = graph.type(graph.inputs[tensor++]);
    entry->types.push_back(text(traced.dtype, traced.shape.substitute(sizes)));
  }
  entry->graph = std::move(graph);
  entry->collect_variables();
  entry->measure();
  return entry;
}

FunctionBase::FunctionBase(std::string_view name, std::size_t arity, HostCode body, FunctionOptions options,
                           Where where)
    : state_(std::make_shared<State>()) {
  state_->body = std::move(body);
  state_->options = std::move(options);
  state_->where = kept(where);
  std::size_t open = name.find('(');
  state_->name = std::string(name.substr(0, open));
  if (open != std::string_view::npos) {
    std::string word;
    for (char c : name.substr(open + 1)) {
      if (c == ',' || c == ')') {
        if (!word.empty()) state_->arguments.names.push_back(std::exchange(word, {}));
      } else if (c != ' ') {
        word += c;
      }
    }
    if (state_->arguments.names.size() != arity)
      throw UserError(error_text(text("function: \"", name, "\" names ", state_->arguments.names.size(),
                                      " arguments, the callable takes ", arity),
                                 where, "list every argument once, or none"));
  }
}

const std::shared_ptr<FunctionBase::State>& FunctionBase::state(const char* what, Where where) const {
  if (!state_)
    throw UserError(error_text(text(what, ": this Function was moved from and holds nothing"), where,
                               "use the one that it was moved to, or copy it instead: copies share"));
  return state_;
}

void FunctionBase::take_results(Leaves given, Results& results) {
  auto kept = std::make_shared<Leaves>(std::move(given));
  for (Leaf& leaf : *kept)
    if (leaf.kind == Leaf::tensor) {
      leaf.undefined = !leaf.value.defined();
      if (!leaf.undefined) results.tensors.add(std::move(leaf.value));
    }
  results.form = kept.get();
  results.owner = std::move(kept);
}

void FunctionBase::call(Leaves leaves, std::vector<int> owners, Results& results, Where where) const {
  std::shared_ptr<State> kept = this->state("call", where);  // host code may destroy this Function
  State& state = *kept;
  state.check_arguments(leaves, owners, where);
  if (current_trace()) {
    InlinedCall guard(state.name, leaves, where);
    return take_results(current_trace()->run_scope([&] { return state.body(leaves); }, where), results);
  }
  std::vector<Tensor> tensors = tensors_of(leaves, where);
  std::vector<LeafKey> key = keys_of(leaves);
  if (!state.options.signature.empty()) {
    std::vector<int> tensor_owners;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].kind == Leaf::tensor) tensor_owners.push_back(owners[i]);
    state.check_signature(tensors, tensor_owners, where);
  }
  std::uint64_t epoch = hit_epoch();  // before: what is forgotten from here on is not remembered
  MissedCall missed{state.name, state.arguments, leaves, owners, key, tensors, where};
  std::shared_ptr<Entry> entry =
      state.cache.find_or_make(missed, [&](bool first) { return state.make_entry(missed, first); });
  if (!entry) return take_results(state.body(leaves), results);  // too many traces: OnLimit::eager
  std::optional<Bindings> bindings = entry->accepts(key, tensors);
  if (!bindings) throw InternalError(text("the trace of '", state.name, "' does not accept its own arguments"));
  entry->calls.fetch_add(1, std::memory_order_relaxed);
  try {
    if (tapes_open()) {
      run_under_tape(*entry, tensors, results.tensors, where);
    } else {
      std::shared_ptr<const BoundProgram> bound = entry->bound_to(*bindings);
      std::vector<const Tensor*> pointers;
      for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
      run_compiled(*entry, *bound, pointers, results.tensors);
      remember_hit(state.id, epoch, leaves, entry, bound);
    }
  } catch (const Problem& problem) {
    throw UserError(error_text(text(state.name, ": ", problem.text()), where, problem.advice()));
  }
  results.form = &entry->result_form;
  results.owner = std::move(entry);
}

bool FunctionBase::hit(const LeafViews& views, Results& results, Where where) const {
  if (!state_ || current_trace() || tapes_open()) return false;
  HitSlot* slot = find_hit(state_->id, views);
  if (!slot) return false;
  slot->entry->calls.fetch_add(1, std::memory_order_relaxed);
  std::array<const Tensor*, LeafViews::most> tensors;
  std::size_t count = 0;
  for (std::size_t i = 0; i < views.size(); ++i)
    if (views[i].tensor) tensors[count++] = views[i].tensor;
  try {
    run_compiled(*slot->entry, *slot->bound, {tensors.data(), count}, results.tensors);
  } catch (const Problem& problem) {
    throw UserError(error_text(text(state_->name, ": ", problem.text()), where, problem.advice()));
  }
  results.form = &slot->entry->result_form;
  return true;
}

int FunctionBase::trace_count() const { return state_->cache.traces(); }

std::string FunctionBase::explain() const {
  std::string out = text(state("explain")->name, ": ", trace_count(), trace_count() == 1 ? " trace\n" : " traces\n");
  int number = 0;
  for (const std::shared_ptr<Entry>& entry : state_->cache.known()) {
    out += text("  trace ", ++number, ": (");
    out += text(joined(entry->types, ", "), "), ", entry->graph.nodes.size(), " nodes, ", entry->program->steps.size(),
                " steps, traced in ", milliseconds_text(entry->trace_milliseconds), " ms, compiled in ",
                milliseconds_text(entry->compile_milliseconds), " ms, ", entry->calls.load(), " calls\n");
    for (const Fact& fact : entry->program->facts)
      out += text("    fact ", fact, ", for ", fact.reason.asker, at_line(fact.reason.where), "\n");
    for (const Trace::HiddenInput& hidden : entry->hidden)
      out += hidden.captured.defined()
                 ? text("    captured ", hidden.captured.dtype(), hidden.captured.shape(), ", a constant\n")
                 : text("    Variable ", hidden.variable.name().empty() ? "" : text("'", hidden.variable.name(), "' "),
                        hidden.variable.dtype(), hidden.variable.shape(), "\n");
  }
  return out;
}

std::string FunctionBase::graph(int trace) const {
  std::vector<std::shared_ptr<Entry>> entries = state("graph")->cache.known();
  if (trace < 0 || static_cast<std::size_t>(trace) >= entries.size())
    throw UserError(error_text(text("graph: there is no trace ", trace, " of '", state_->name, "'"), {},
                               text("it has ", entries.size())));
  return entries[static_cast<std::size_t>(trace)]->graph.str();
}

void FunctionBase::clear() const { state_->cache.clear(); }

}  // namespace stet
