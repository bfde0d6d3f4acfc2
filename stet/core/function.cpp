#include "stet/core/function.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <mutex>
#include <optional>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/variable_state.h"

namespace stet {
namespace {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}
std::string rounded(double milliseconds) {
  char out[32];
  std::snprintf(out, sizeof out, milliseconds < 10 ? "%.1f" : "%.0f", milliseconds);
  return out;
}

/// What a trace was made for, leaf by leaf; sizes are the program's business.
struct LeafKey {
  Leaf::Kind kind;
  DType dtype = DType::f32;
  int rank = 0;
  std::uint64_t bits = 0;  // number: its value; count: elements; Variable: its identity
};

struct Entry {
  std::vector<LeafKey> key;
  std::vector<std::string> types;  // of the leaves, for people: "f32[x_0,5]"
  Graph graph;
  std::shared_ptr<Program> program;
  std::vector<Trace::HiddenInput> hidden;
  std::vector<std::vector<std::int64_t>> hidden_sizes;
  Leaves result_form;             // counts and numbers as they are; tensors to be filled in
  std::vector<Variable> written;  // in the order of the results after the function's own
  std::vector<Variable> locked;   // all Variables, by id
  double trace_milliseconds = 0, compile_milliseconds = 0;
  std::atomic<std::uint64_t> calls{0};

  /// The program bound to these sizes: binding evaluates every size and plans memory, so the last few are kept.
  std::shared_ptr<const BoundProgram> bound_to(const Bindings& bindings) {
    std::lock_guard lock(recent_guard);
    for (const auto& [sizes, bound] : recent)
      if (sizes == bindings) return bound;
    std::shared_ptr<const BoundProgram> bound = program->bind(bindings);
    if (recent.size() == most_recent) recent.erase(recent.begin());
    recent.emplace_back(bindings, bound);
    return bound;
  }

  static constexpr std::size_t most_recent = 8;
  std::mutex recent_guard;
  std::vector<std::pair<Bindings, std::shared_ptr<const BoundProgram>>> recent;  // the latest last
};

LeafKey key_of(const Leaf& leaf) {
  switch (leaf.kind) {
    case Leaf::tensor:
      return {leaf.kind, leaf.value.dtype(), leaf.value.rank()};
    case Leaf::variable:
      return {leaf.kind, leaf.state.dtype(), leaf.state.shape().rank(), leaf.state.id()};
    default:
      return {leaf.kind, leaf.dtype, 0, leaf.bits};
  }
}
std::vector<LeafKey> keys_of(const Leaves& leaves) {
  std::vector<LeafKey> out;
  for (const Leaf& leaf : leaves) out.push_back(key_of(leaf));
  return out;
}

/// A leaf as explanations name it.
std::string type_of(const Leaf& leaf) {
  if (leaf.kind == Leaf::tensor) return text(leaf.value.dtype(), leaf.value.shape());
  if (leaf.kind == Leaf::variable) return text("Variable ", leaf.state.dtype(), leaf.state.shape());
  if (leaf.kind == Leaf::object) return leaf.body ? leaf.body->description() : "nothing";
  if (leaf.dtype != DType::f64) return text(static_cast<std::int64_t>(leaf.bits));
  return text(value_of(leaf.bits, DType::f64).real);
}

bool same_key(const LeafKey& a, const LeafKey& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.rank == b.rank && a.bits == b.bits;
}

/// In how many ways they differ: what the nearest trace is nearest by.
std::size_t distance(const LeafKey& a, const LeafKey& b) {
  if (a.kind != b.kind) return 4;
  return std::size_t{a.dtype != b.dtype} + std::size_t{a.rank != b.rank} + std::size_t{a.bits != b.bits};
}

/// Why a leaf of this call does not fit a trace's; empty if it does.
std::string difference(const LeafKey& traced, const LeafKey& now) {
  if (traced.kind != now.kind) return "another kind of argument";
  switch (now.kind) {
    case Leaf::tensor:
      if (traced.dtype != now.dtype) return "dtype changed";
      return traced.rank != now.rank ? "rank changed" : "";
    case Leaf::variable:
      return traced.bits != now.bits ? "another Variable" : "";
    case Leaf::number:
      return traced.bits != now.bits ? "the value of a C++ number changed, and is part of the trace" : "";
    case Leaf::object:
      return traced.bits != now.bits ? "another object" : "";
    default:
      return traced.bits != now.bits ? "another number of elements" : "";
  }
}

thread_local int retraces_forbidden = 0;

struct Listener {
  std::mutex guard;
  std::function<void(const RetraceEvent&)> call;
};
Listener& listener() {
  static Listener* const one = new Listener;
  return *one;
}

void tell(const RetraceEvent& event) {
  std::function<void(const RetraceEvent&)> call;
  {
    std::lock_guard lock(listener().guard);
    call = listener().call;
  }
  if (call)
    call(event);
  else
    std::cerr << event.explanation;
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

}  // namespace

struct FunctionBase::State {
  std::string name;
  std::vector<std::string> argument_names;
  Body body;
  FunctionOptions options;
  Where where;
  std::mutex tracing;  // one trace at a time; hits do not take it
  std::mutex guard;    // of entries
  std::vector<std::shared_ptr<Entry>> entries;
  int traces = 0;

  std::string argument(int number) const {
    auto at = static_cast<std::size_t>(number);
    return at < argument_names.size() ? text("argument ", number, " '", argument_names[at], "'")
                                      : text("argument ", number);
  }
  std::string symbol_name(int number) const {
    auto at = static_cast<std::size_t>(number);
    return at < argument_names.size() ? argument_names[at] : text("a", number);
  }
  std::vector<std::shared_ptr<Entry>> known() {
    std::lock_guard lock(guard);
    return entries;
  }

  std::shared_ptr<Entry> make_entry(const Leaves& arguments, const std::vector<int>& owners, Where where);
  /// Runs the host code into a graph. With `created`, Variables may be made, and their number is told.
  Graph trace_once(const Leaves& arguments, const std::vector<int>& owners, Entry& entry,
                   std::size_t* created = nullptr);
  std::string explain_retrace(const Leaves& arguments, const std::vector<int>& owners, const Entry& made, Where where);
};

namespace {

std::vector<Tensor> tensor_arguments(const Leaves& arguments, Where where) {
  std::vector<Tensor> out;
  for (const Leaf& leaf : arguments)
    if (leaf.kind == Leaf::tensor) {
      concrete_node(leaf.value, "call", where);
      out.push_back(leaf.value.contiguous(where));
    }
  return out;
}

/// The program's arguments fit: same leaves, and sizes that obey the facts.
std::optional<Bindings> accepts(const Entry& entry, const std::vector<LeafKey>& key,
                                const std::vector<Tensor>& inputs) {
  if (entry.key.size() != key.size()) return std::nullopt;
  for (std::size_t i = 0; i < key.size(); ++i)
    if (!same_key(entry.key[i], key[i])) return std::nullopt;
  std::vector<ConcreteInput> concrete;
  for (const Tensor& tensor : inputs) concrete.push_back({tensor.node()->size_span(), {}});
  for (const std::vector<std::int64_t>& sizes : entry.hidden_sizes) concrete.push_back({sizes, {}});
  return entry.program->accepts(concrete, {});
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

Graph FunctionBase::State::trace_once(const Leaves& arguments, const std::vector<int>& owners, Entry& entry,
                                      std::size_t* created) {
  Trace trace(name);
  trace.may_create = created != nullptr;
  OpenTrace open(trace);
  Leaves traced = arguments;
  int tensors = 0;
  for (std::size_t i = 0; i < traced.size(); ++i)
    if (traced[i].kind == Leaf::tensor) {
      std::string symbol = symbol_name(owners[i]);
      if (std::count(owners.begin(), owners.end(), owners[i]) > 1) symbol += text("_", tensors);
      ++tensors;
      traced[i].value = trace.add_argument(arguments[i].value.dtype(), arguments[i].value.node()->size_span(), symbol);
    }
  Leaves results = trace.run_scope([&] { return body(traced); }, where);
  if (created) *created = trace.created.size();
  for (Leaf& leaf : results)
    if (leaf.kind == Leaf::tensor) {
      trace.graph.results.push_back(trace.lift(leaf.value, where));
      leaf.value = Tensor();
    }
  entry.written.clear();
  entry.locked.clear();
  for (std::uint64_t id : trace.variable_order()) {
    TracedVariable& variable = trace.variable(id);
    entry.locked.push_back(variable.variable);
    if (!variable.written) continue;
    auto state = std::find_if(trace.hidden.begin(), trace.hidden.end(),
                              [&](const Trace::HiddenInput& hidden) { return hidden.variable.id() == id; });
    int input = tensors + static_cast<int>(state - trace.hidden.begin());
    trace.graph.updates.push_back({input, static_cast<int>(trace.graph.results.size())});
    trace.graph.results.push_back(trace.lift(variable.current, where));
    entry.written.push_back(variable.variable);
  }
  std::sort(entry.locked.begin(), entry.locked.end(),
            [](const Variable& a, const Variable& b) { return a.id() < b.id(); });
  entry.hidden = std::move(trace.hidden);
  entry.hidden_sizes.clear();
  for (const Trace::HiddenInput& hidden : entry.hidden)
    entry.hidden_sizes.push_back(
        (hidden.captured.defined() ? hidden.captured.shape() : hidden.variable.shape()).sizes());
  entry.result_form = std::move(results);
  return trace.finished();
}

std::shared_ptr<Entry> FunctionBase::State::make_entry(const Leaves& arguments, const std::vector<int>& owners,
                                                       Where call_where) {
  auto entry = std::make_shared<Entry>();
  auto start = Clock::now();
  std::size_t created = 0;
  Graph graph = trace_once(arguments, owners, *entry, &created);
  // A run that made Variables was for building: the one that counts finds them made, as every later call does.
  if (created > 0) graph = trace_once(arguments, owners, *entry);
  if (traces == 0) {
    // Host randomness, clocks and counters show as a difference between two runs of the same code.
    Entry again;
    Graph second = trace_once(arguments, owners, again);
    if (fingerprint(graph) != fingerprint(second)) {
      Where line = first_difference(graph, second);
      throw TraceError(
          error_text(text("tracing '", name, "' twice gave two different programs",
                          line.known() ? text("; they part at ", line.file, ":", line.line) : std::string()),
                     call_where,
                     "what host code computes (random numbers, clocks, counters) is frozen into the trace: pass "
                     "it as an argument, use stet::random, or a Variable"));
    }
  }
  entry->trace_milliseconds = milliseconds_since(start);
  start = Clock::now();
  entry->program = compile_symbolic(graph);
  entry->compile_milliseconds = milliseconds_since(start);
  entry->key = keys_of(arguments);
  std::vector<Dim> sizes = solve_facts(*graph.scope);
  std::size_t tensor = 0;
  for (const Leaf& leaf : arguments) {
    if (leaf.kind != Leaf::tensor) {
      entry->types.push_back(type_of(leaf));
      continue;
    }
    const ValueType& traced = graph.type(graph.inputs[tensor++]);
    entry->types.push_back(text(traced.dtype, traced.shape.substitute(sizes)));
  }
  entry->graph = std::move(graph);
  return entry;
}

std::string FunctionBase::State::explain_retrace(const Leaves& arguments, const std::vector<int>& owners,
                                                 const Entry& made, Where call_where) {
  // The nearest trace: the fewest differences; the latest among equals.
  std::shared_ptr<Entry> nearest;
  std::size_t fewest = SIZE_MAX;
  std::vector<LeafKey> key = keys_of(arguments);
  for (const std::shared_ptr<Entry>& entry : known()) {
    std::size_t different = entry->key.size() == key.size() ? 0 : 100;
    for (std::size_t i = 0; i < std::min(key.size(), entry->key.size()); ++i)
      different += distance(entry->key[i], key[i]);
    if (different <= fewest) {
      fewest = different;
      nearest = entry;
    }
  }
  std::string out =
      text("stet: tracing '", name, "' again (trace ", traces + 1, ")",
           call_where.known() ? text(", called at ", call_where.file, ":", call_where.line) : std::string(), "\n");
  std::string fix;
  auto line = [&](const std::string& label, const std::string& what) {
    out += text("  ", label, std::string(label.size() < 16 ? 16 - label.size() : 1, ' '), what, "\n");
  };
  for (std::size_t i = 0; i < std::min(key.size(), nearest->key.size()); ++i) {
    std::string why = difference(nearest->key[i], key[i]);
    if (why.empty()) continue;
    line(argument(owners[i]), text(nearest->types[i], " -> ", type_of(arguments[i]), "   ", why));
    if (key[i].kind == Leaf::tensor && nearest->key[i].dtype != key[i].dtype)
      fix = text("cast(", symbol_name(owners[i]), ", ", nearest->key[i].dtype, ") before the call");
    if (key[i].kind == Leaf::number)
      fix = "take a Tensor instead of a C++ number, then its value is an input of the program";
  }
  if (fewest == 0 && !nearest->program->facts.empty()) {
    // The leaves agree: a fact about sizes does not hold.
    std::vector<Tensor> inputs = tensor_arguments(arguments, call_where);
    Bindings bindings;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (int axis = 0; axis < nearest->program->inputs[i].shape.rank(); ++axis)
        if (auto symbol = nearest->program->inputs[i].shape[axis].as_symbol())
          bindings.bind(*symbol, inputs[i].node()->sizes[axis]);
    for (const Fact& fact : nearest->program->facts)
      if (!fact.holds(bindings))
        line("size", text(fact, " does not hold any more; ", fact.reason.asker, " asked for it",
                          fact.reason.where.known() ? text(" at ", fact.reason.where.file, ":", fact.reason.where.line)
                                                    : std::string()));
  }
  line("cost", text(rounded(made.trace_milliseconds + made.compile_milliseconds),
                    " ms to trace and compile; the nearest trace took ",
                    rounded(nearest->trace_milliseconds + nearest->compile_milliseconds), " ms and has served ",
                    nearest->calls.load(), nearest->calls.load() == 1 ? " call" : " calls"));
  if (!fix.empty()) line("fix", fix);
  return out;
}

FunctionBase::FunctionBase(std::string_view name, std::size_t arity, Body body, FunctionOptions options, Where where)
    : state_(std::make_shared<State>()) {
  state_->body = std::move(body);
  state_->options = options;
  state_->where = where;
  std::size_t open = name.find('(');
  state_->name = std::string(name.substr(0, open));
  if (open != std::string_view::npos) {
    std::string word;
    for (char c : name.substr(open + 1)) {
      if (c == ',' || c == ')') {
        if (!word.empty()) state_->argument_names.push_back(std::exchange(word, {}));
      } else if (c != ' ') {
        word += c;
      }
    }
    if (state_->argument_names.size() != arity)
      throw UserError(error_text(text("function: \"", name, "\" names ", state_->argument_names.size(),
                                      " arguments, the callable takes ", arity),
                                 where, "list every argument once, or none"));
  }
}

namespace {

/// Holds the Variables of a call from launch to commit, in the order of their ids.
class VariableLocks {
 public:
  explicit VariableLocks(const Entry& entry) {
    for (const Variable& variable : entry.locked) {
      bool writes = std::any_of(entry.written.begin(), entry.written.end(),
                                [&](const Variable& w) { return w.id() == variable.id(); });
      if (writes)
        exclusive_.emplace_back(state_of(variable).guard);
      else
        shared_.emplace_back(state_of(variable).guard);
    }
  }

 private:
  std::vector<std::unique_lock<std::shared_mutex>> exclusive_;
  std::vector<std::shared_lock<std::shared_mutex>> shared_;
};

Leaves filled(const Leaves& form, std::vector<Tensor> tensors) {
  Leaves out = form;
  std::size_t next = 0;
  for (Leaf& leaf : out)
    if (leaf.kind == Leaf::tensor) leaf.value = std::move(tensors[next++]);
  return out;
}

/// Under a tape the trace's graph goes through the door op by op, so that the tape sees what it needs.
Leaves run_under_tape(const Entry& entry, std::vector<Tensor> inputs, Where where) {
  for (const Trace::HiddenInput& hidden : entry.hidden)
    inputs.push_back(hidden.captured.defined() ? hidden.captured : hidden.variable.read(where));
  std::vector<Tensor> results = replay(entry.graph, inputs);
  std::size_t own = results.size() - entry.written.size();
  for (std::size_t i = 0; i < entry.written.size(); ++i) entry.written[i].assign(results[own + i], where);
  results.resize(own);
  return filled(entry.result_form, std::move(results));
}

Leaves run_compiled(Entry& entry, const Bindings& bindings, const std::vector<Tensor>& inputs) {
  VariableLocks locks(entry);
  std::vector<void*> memory;
  for (const Tensor& input : inputs) memory.push_back(input.node()->data);
  for (const Trace::HiddenInput& hidden : entry.hidden)
    memory.push_back((hidden.captured.defined() ? hidden.captured : state_of(hidden.variable).value).node()->data);
  std::shared_ptr<const BoundProgram> bound = entry.bound_to(bindings);
  std::vector<Buffer> buffers(entry.program->results.size());
  std::size_t own = buffers.size() - entry.written.size();
  std::vector<bool> in_place(entry.written.size(), false);
  for (std::size_t i = 0; i < entry.written.size(); ++i) {
    // Whoever holds the old value keeps it: only what the Variable alone can see is overwritten.
    const TensorNode& old = *state_of(entry.written[i]).value.node();
    in_place[i] = entry.program->in_place[own + i] >= 0 && old.exclusive();
    if (in_place[i]) buffers[own + i] = old.buffer;
  }
  std::vector<std::vector<std::int64_t>> sizes;
  if (bound->has_late_sizes())
    bound->run_late(memory.data(), buffers.data(), sizes);
  else
    bound->run(memory.data(), buffers.data());
  if (sizes.empty()) sizes = bound->result_sizes();
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    results.push_back(i >= own && in_place[i - own]
                          ? Tensor()
                          : dense_tensor(entry.program->results[i].dtype, sizes[i], std::move(buffers[i])));
  // Commit: nothing below can fail.
  for (std::size_t i = 0; i < entry.written.size(); ++i)
    if (!in_place[i]) state_of(entry.written[i]).value = results[own + i];
  results.resize(own);
  return filled(entry.result_form, std::move(results));
}

}  // namespace

Leaves FunctionBase::call(Leaves arguments, std::vector<int> owners, Where where) const {
  State& state = *state_;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].kind == Leaf::tensor && !arguments[i].value.defined())
      throw UserError(error_text(text(state.name, ": ", state.argument(owners[i]), " is an undefined tensor"), where,
                                 "assign a value to it before the call"));
  if (current_trace()) {
    InlinedCall guard(state.name, where);
    return current_trace()->run_scope([&] { return state.body(arguments); }, where);
  }

  std::vector<Tensor> inputs = tensor_arguments(arguments, where);
  std::vector<LeafKey> key = keys_of(arguments);
  auto serve = [&](const std::shared_ptr<Entry>& entry) -> std::optional<Leaves> {
    std::optional<Bindings> bindings = accepts(*entry, key, inputs);
    if (!bindings) return std::nullopt;
    entry->calls.fetch_add(1, std::memory_order_relaxed);
    try {
      return tapes_open() ? run_under_tape(*entry, inputs, where) : run_compiled(*entry, *bindings, inputs);
    } catch (const Problem& problem) {
      throw UserError(error_text(text(state.name, ": ", problem.text()), where, problem.advice()));
    }
  };
  for (const std::shared_ptr<Entry>& entry : state.known())
    if (std::optional<Leaves> results = serve(entry)) return std::move(*results);

  std::shared_ptr<Entry> made;
  std::optional<RetraceEvent> event;
  {
    std::lock_guard lock(state.tracing);
    for (const std::shared_ptr<Entry>& entry : state.known())  // another thread may have traced it meanwhile
      if (accepts(*entry, key, inputs)) made = entry;
    if (!made) {
      bool again = state.traces > 0;
      made = state.make_entry(arguments, owners, where);
      std::string explanation = again ? state.explain_retrace(arguments, owners, *made, where) : std::string();
      if (again && retraces_forbidden > 0) throw RetraceError(explanation);
      {
        std::lock_guard entries(state.guard);
        if (state.entries.size() >= static_cast<std::size_t>(std::max(state.options.max_traces, 1))) {
          auto least = std::min_element(state.entries.begin(), state.entries.end(),
                                        [](const auto& a, const auto& b) { return a->calls.load() < b->calls.load(); });
          explanation += text("  warning         ", state.entries.size(), " traces are kept at most; one that served ",
                              (*least)->calls.load(), " calls is forgotten\n");
          state.entries.erase(least);
        }
        state.entries.push_back(made);
        ++state.traces;
      }
      if (again) event = RetraceEvent{state.name, state.traces, std::move(explanation)};
    }
  }
  if (event) tell(*event);  // with no lock held: a listener may call functions
  std::optional<Leaves> results = serve(made);
  if (!results) throw InternalError(text("the trace of '", state.name, "' does not accept its own arguments"));
  return std::move(*results);
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
                " steps, traced in ", rounded(entry->trace_milliseconds), " ms, compiled in ",
                rounded(entry->compile_milliseconds), " ms, ", entry->calls.load(), " calls\n");
    for (const Fact& fact : entry->program->facts)
      out += text(
          "    fact ", fact, ", for ", fact.reason.asker,
          fact.reason.where.known() ? text(" at ", fact.reason.where.file, ":", fact.reason.where.line) : std::string(),
          "\n");
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
}

NoRetrace::NoRetrace() { ++retraces_forbidden; }
NoRetrace::~NoRetrace() { --retraces_forbidden; }

void on_retrace(std::function<void(const RetraceEvent&)> call) {
  std::lock_guard lock(listener().guard);
  listener().call = std::move(call);
}

}  // namespace stet
