#include "stet/core/function.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/ambient.h"
#include "stet/core/call.h"
#include "stet/core/function_entry.h"
#include "stet/core/hit.h"
#include "stet/core/retrace.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"

namespace stet {
namespace {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Host code of all functions is traced by one thread at a time: what it captured need not be safe for more. Recursive,
/// because an InitScope inside of a trace may call functions.
std::recursive_mutex& host_code_guard() {
  static std::recursive_mutex* const guard = new std::recursive_mutex;
  return *guard;
}

/// Functions called inside a trace are run in place; one that calls itself would never end.
class InlinedCall {
 public:
  InlinedCall(const std::string& function, Where where) {
    if (++depth > most) {
      --depth;
      throw TraceError(
          error_text(text("'", function, "' is called inside itself more than ", most, " deep while being traced"),
                     where, "a traced function cannot recurse on tensors; write a loop over sizes or numbers"));
    }
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

/// A trace in the making: callers with the same key wait for it.
struct InFlight {
  std::vector<LeafKey> key;
  std::thread::id thread;
};

}  // namespace

struct FunctionBase::State {
  const std::uint64_t id = next_function_id();
  std::string name;
  ArgumentNames arguments;
  HostCode body;
  FunctionOptions options;
  Where where;
  std::mutex guard;  // of all below; never held while host code runs or a program is compiled
  std::condition_variable changed;
  std::vector<std::shared_ptr<Entry>> entries;
  std::vector<InFlight> in_flight;
  std::map<std::string, std::uint64_t> causes;  // of retraces, and how often each was met
  int traces = 0;

  ~State() { forget_hits(); }

  std::vector<std::shared_ptr<Entry>> known() {
    std::lock_guard lock(guard);
    return entries;
  }

  void check_arguments(const Leaves& leaves, const std::vector<int>& owners, Where call_where) const;
  /// Against the promise; UserError naming argument and both types.
  void check_signature(const std::vector<Tensor>& tensors, const std::vector<int>& owners, Where call_where) const;
  /// Runs the host code into a graph. With `created`, Variables may be made, and their number is told.
  Graph trace_once(const Leaves& leaves, const std::vector<int>& owners, Entry& entry, std::size_t* created = nullptr);
  Shape argument_shape(Trace& trace, const Tensor& tensor, std::size_t number, const std::string& symbol,
                       std::map<std::string, Dim>& named) const;
  /// Traces and compiles. With `compare`, traces twice, and two different programs are a TraceError.
  std::shared_ptr<Entry> make_entry(const MissedCall& call, bool compare);
  /// The entry that serves the call: known, made by another thread meanwhile, or made now.
  std::shared_ptr<Entry> find_or_make(const MissedCall& call);
  void keep(const std::shared_ptr<Entry>& made, std::string& explanation);
  [[noreturn]] void refuse_sizes(const MissedCall& call, const Entry& entry) const;
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
  {
    std::lock_guard one_at_a_time(host_code_guard());
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
        throw TraceError(
            error_text(text("tracing '", name, "' twice gave two different programs", at_line(line, "; they part at ")),
                       call.where,
                       "what host code computes (random numbers, clocks, counters) is frozen into the trace: pass "
                       "it as an argument, use stet::random, or a Variable"));
      }
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
  return entry;
}

void FunctionBase::State::refuse_sizes(const MissedCall& call, const Entry& entry) const {
  std::string facts;
  for (const Fact& fact : entry.broken_facts(call.tensors))
    facts += text("; ", fact.reason.asker, at_line(fact.reason.where), " needs ", fact);
  std::vector<std::string> types;
  for (const Tensor& tensor : call.tensors) types.push_back(text(tensor.dtype(), tensor.shape()));
  throw UserError(error_text(text(name, ": these sizes do not fit: (", joined(types, ", "), ")", facts), call.where,
                             "change the call; a function with a signature is traced once, for all sizes it allows"));
}

void FunctionBase::State::keep(const std::shared_ptr<Entry>& made, std::string& explanation) {
  if (entries.size() >= static_cast<std::size_t>(std::max(options.max_traces, 1))) {
    auto least = std::min_element(entries.begin(), entries.end(),
                                  [](const auto& a, const auto& b) { return a->calls.load() < b->calls.load(); });
    explanation += explanation_line("warning", text(entries.size(), " traces are kept at most; one that served ",
                                                    (*least)->calls.load(), " calls is forgotten"));
    entries.erase(least);
    forget_hits();
  }
  entries.push_back(made);
  ++traces;
}

std::shared_ptr<Entry> FunctionBase::State::find_or_make(const MissedCall& call) {
  std::unique_lock lock(guard);
  // A thread inside of a trace must not wait for another, which may be waiting to trace.
  bool may_wait = trace_in_progress() == nullptr;
  for (;;) {
    for (const std::shared_ptr<Entry>& entry : entries) {
      if (entry->accepts(call.key, call.tensors)) return entry;
      if (!options.signature.empty() && entry->key == call.key) refuse_sizes(call, *entry);
    }
    auto same =
        std::find_if(in_flight.begin(), in_flight.end(), [&](const InFlight& one) { return one.key == call.key; });
    if (same == in_flight.end()) break;
    if (same->thread == std::this_thread::get_id())
      throw TraceError(error_text(text("'", name, "' is called eagerly inside its own trace"), call.where,
                                  "the trace it would use is not made yet; call what it calls instead"));
    if (!may_wait) break;
    changed.wait(lock);
  }
  if (traces > 0 && retraces_forbidden()) {
    RetraceCause cause = cause_of(call, entries, traces + 1);
    std::string text = cause.headline;
    if (!cause.fix.empty()) text += explanation_line("fix", cause.fix);
    throw RetraceError(text);
  }
  std::thread::id self = std::this_thread::get_id();
  in_flight.push_back({call.key, self});
  bool compare = entries.empty();
  lock.unlock();

  std::shared_ptr<Entry> made;
  std::exception_ptr failure;
  try {
    made = make_entry(call, compare);
  } catch (...) {
    failure = std::current_exception();
  }
  std::optional<RetraceEvent> event;
  lock.lock();
  std::erase_if(in_flight, [&](const InFlight& one) { return one.thread == self && one.key == call.key; });
  changed.notify_all();
  if (failure) std::rethrow_exception(failure);
  // Threads inside of traces do not wait for each other, so another may have made the same.
  for (const std::shared_ptr<Entry>& entry : entries)
    if (entry->accepts(call.key, call.tensors)) return entry;
  bool again = traces > 0;
  RetraceCause cause;
  if (again) cause = cause_of(call, entries, traces + 1);
  std::string explanation = cause.headline;
  if (cause.nearest) explanation += cost_line(*made, *cause.nearest);
  if (!cause.fix.empty()) explanation += explanation_line("fix", cause.fix);
  keep(made, explanation);
  std::uint64_t met = again ? ++causes[cause.cause] : 0;
  // A cause that comes back is told again when it has come twice as often.
  if (met > 1) explanation += explanation_line("again", text("for the same cause ", met, " times now"));
  if (again) event = RetraceEvent{name, traces, std::move(explanation)};
  lock.unlock();
  if (event) tell_retrace(*event, (met & (met - 1)) == 0);
  return made;
}

FunctionBase::FunctionBase(std::string_view name, std::size_t arity, HostCode body, FunctionOptions options,
                           Where where)
    : state_(std::make_shared<State>()) {
  state_->body = std::move(body);
  state_->options = std::move(options);
  state_->where = where;
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

void FunctionBase::call(Leaves leaves, std::vector<int> owners, Results& results, Where where) const {
  State& state = *state_;
  state.check_arguments(leaves, owners, where);
  if (current_trace()) {
    InlinedCall guard(state.name, where);
    auto given = std::make_shared<Leaves>(current_trace()->run_scope([&] { return state.body(leaves); }, where));
    for (Leaf& leaf : *given)
      if (leaf.kind == Leaf::tensor) {
        leaf.undefined = !leaf.value.defined();
        if (!leaf.undefined) results.tensors.add(std::move(leaf.value));
      }
    results.form = given.get();
    results.owner = std::move(given);
    return;
  }
  std::vector<Tensor> tensors = tensors_of(leaves, where);
  std::vector<LeafKey> key = keys_of(leaves);
  if (ambient() != 0) key.push_back({.kind = Leaf::number, .bits = ambient()});
  if (!state.options.signature.empty()) {
    std::vector<int> tensor_owners;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].kind == Leaf::tensor) tensor_owners.push_back(owners[i]);
    state.check_signature(tensors, tensor_owners, where);
  }
  std::uint64_t epoch = hit_epoch();  // before: what is forgotten from here on is not remembered
  std::shared_ptr<Entry> entry = state.find_or_make({state.name, state.arguments, leaves, owners, key, tensors, where});
  std::optional<Bindings> bindings = entry->accepts(key, tensors);
  if (!bindings) throw InternalError(text("the trace of '", state.name, "' does not accept its own arguments"));
  entry->calls.fetch_add(1, std::memory_order_relaxed);
  for (const Variable& variable : entry->used) refuse_in_init_scope(state_of(variable), state.name.c_str(), where);
  try {
    if (tapes_open()) {
      run_under_tape(*entry, tensors, results.tensors, where);
    } else {
      std::shared_ptr<const BoundProgram> bound = entry->bound_to(*bindings);
      std::vector<const Tensor*> pointers;
      for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
      run_compiled(*entry, *bound, pointers, results.tensors);
      if (ambient() == 0) remember_hit(state.id, epoch, leaves, entry, bound);
    }
  } catch (const Problem& problem) {
    throw_run_error(state.name, problem, where);
  }
  results.form = &entry->result_form;
  results.owner = std::move(entry);
}

bool FunctionBase::hit(const LeafViews& views, Results& results, Where where) const {
  if (trace_in_progress() || ambient() != 0 || tapes_open()) return false;
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
    throw_run_error(state_->name, problem, where);
  }
  results.form = &slot->entry->result_form;
  return true;
}

int FunctionBase::trace_count() const {
  std::lock_guard lock(state_->guard);
  return state_->traces;
}

std::string FunctionBase::explain() const {
  std::string out = text(state_->name, ": ", trace_count(), trace_count() == 1 ? " trace\n" : " traces\n");
  int number = 0;
  for (const std::shared_ptr<Entry>& entry : state_->known()) {
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
  std::vector<std::shared_ptr<Entry>> entries = state_->known();
  if (trace < 0 || static_cast<std::size_t>(trace) >= entries.size())
    throw UserError(error_text(text("graph: there is no trace ", trace, " of '", state_->name, "'"), {},
                               text("it has ", entries.size())));
  return entries[static_cast<std::size_t>(trace)]->graph.str();
}

void FunctionBase::clear() const {
  std::lock_guard lock(state_->guard);
  state_->entries.clear();
  forget_hits();
}

}  // namespace stet
