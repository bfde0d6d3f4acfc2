#include "stet/core/function.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/kept_where.h"
#include "stet/base/text.h"
#include "stet/core/ambient.h"
#include "stet/core/call.h"
#include "stet/core/function_entry.h"
#include "stet/core/hit.h"
#include "stet/core/host_function.h"
#include "stet/core/retrace.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/trace_cache.h"
#include "stet/core/variable_overlay.h"
#include "stet/core/verify_call.h"

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
  report(text("stet: host code kept a tensor of the trace of '", function, "'", at_line(line, ", made at "), "\n",
              explanation_line("why", "it has no value outside of the trace, and using it is an error"),
              explanation_line("fix", "return it from the function, or assign it to a Variable")));
}

}  // namespace

struct FunctionBase::State {
  const std::uint64_t id = next_function_id();
  std::string name;
  ArgumentNames arguments;
  FunctionOptions options;
  HostFunction host{name, arguments, options};
  TraceCache cache{name, options, host.where};

  void check_arguments(const Leaves& leaves, const std::vector<int>& owners, Where call_where) const;
  /// Against the promise; UserError naming argument and both types.
  void check_signature(const Leaves& leaves, const std::vector<int>& owners, Where call_where) const;
  /// Traces and compiles.
  std::shared_ptr<Entry> make_entry(const MissedCall& call);
  /// Runs the host code again, if it is time, and does what on_stale says; the trace that serves the call.
  std::shared_ptr<Entry> audited(std::shared_ptr<Entry> entry, MissedCall call);
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

}  // namespace

void FunctionBase::State::check_arguments(const Leaves& leaves, const std::vector<int>& owners,
                                          Where call_where) const {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const char* what = nullptr;
    if (leaves[i].kind == Leaf::tensor && !leaves[i].value.defined()) what = "tensor";
    if (leaves[i].kind == Leaf::variable && !leaves[i].state.defined()) what = "Variable";
    if (what)
      throw UserError(error_text(text(name, ": ", arguments.of(owners[i], leaves[i].path), " is an undefined ", what),
                                 call_where,
                                 leaves[i].value.is_no_gradient() ? advice_for_undefined(leaves[i].value)
                                                                  : "assign a value to it before the call"));
  }
}

void FunctionBase::State::check_signature(const Leaves& leaves, const std::vector<int>& owners,
                                          Where call_where) const {
  const std::vector<TensorSpec>& promised = options.signature;
  auto count = static_cast<std::size_t>(
      std::count_if(leaves.begin(), leaves.end(), [](const Leaf& leaf) { return leaf.kind == Leaf::tensor; }));
  if (promised.size() != count)
    throw UserError(error_text(text(name, ": the signature names ", promised.size(), " tensors, the call has ", count),
                               host.where, "give one {dtype, {sizes}} for every tensor among the arguments"));
  struct Named {
    Dim size;
    std::string argument;
  };
  std::map<std::string, Named> named;
  std::size_t next = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].kind != Leaf::tensor) continue;
    const Tensor& tensor = leaves[i].value;
    const TensorSpec& spec = promised[next++];
    const Shape sizes = tensor.shape();
    auto refuse = [&](const std::string& why) {
      throw UserError(error_text(text(name, ": ", arguments.of(owners[i]), " is ", tensor.dtype(), sizes,
                                      ", the signature promises ", spec, why),
                                 call_where, "change the call, or the signature"));
    };
    // Called inside of another trace, a size may be a symbol: what was promised of it is then a fact of that trace.
    const Reason reason{name.c_str(), "signature", call_where};
    if (tensor.dtype() != spec.dtype || sizes.rank() != spec.shape.rank()) refuse("");
    for (int axis = 0; axis < sizes.rank(); ++axis) {
      const DimSpec& dim = spec.shape.dims[static_cast<std::size_t>(axis)];
      if (dim.size && !require(sizes[axis], Relation::equal, *dim.size, reason)) refuse("");
      if (dim.size || dim.name.empty()) continue;
      auto [known, added] = named.try_emplace(dim.name, Named{sizes[axis], arguments.of(owners[i])});
      if (!added && !require(sizes[axis], Relation::equal, known->second.size, reason))
        refuse(text(", and ", dim.name, " is ", known->second.size, " in ", known->second.argument));
    }
  }
}

std::shared_ptr<Entry> FunctionBase::State::make_entry(const MissedCall& call) {
  auto start = Clock::now();
  auto entry = std::make_shared<Entry>(host.traced(call.leaves, call.owners, call.where));
  for (Where line : entry->left_behind) tell_leak(name, line);
  entry->trace_milliseconds = milliseconds_since(start);
  start = Clock::now();
  Device& device = device_of(call.tensors);
  entry->move_hidden(device, name);
  entry->program = compile_symbolic(entry->graph, device);
  entry->compile_milliseconds = milliseconds_since(start);
  entry->key = call.key;
  std::vector<Dim> sizes = solve_facts(*entry->graph.scope);
  std::size_t tensor = 0;
  for (const Leaf& leaf : call.leaves) {
    if (leaf.kind != Leaf::tensor) {
      entry->types.push_back(described(leaf));
      continue;
    }
    const ValueType& traced = entry->graph.type(entry->graph.inputs[tensor++]);
    entry->types.push_back(text(traced.dtype, traced.shape.substitute(sizes)));
  }
  entry->collect_hidden();
  entry->measure();
  entry->next_audit = options.audit.after(1);
  return entry;
}

std::shared_ptr<Entry> FunctionBase::State::audited(std::shared_ptr<Entry> entry, MissedCall call) {
  std::uint64_t number = entry->calls.load(std::memory_order_relaxed) + 1;
  std::uint64_t due = entry->next_audit.load(std::memory_order_relaxed);
  if (number < due) return entry;
  // Whoever moves the mark audits; other threads go on meanwhile.
  if (!entry->next_audit.compare_exchange_strong(due, options.audit.after(number))) return entry;
  bool turned = (number & (number - 1)) == 0 && __builtin_ctzll(number) % 2 == 1;
  std::optional<RunDifference> found = host.changed_since(*entry, call.leaves, call.owners, turned);
  if (!found) return entry;
  std::string explanation = stale_explanation(call, *found, number);
  switch (options.on_stale) {
    case OnStale::error:
      entry->next_audit = number;  // until host code does the same again, or clear()
      throw StaleTraceError(explanation);
    case OnStale::retrace:
      cache.forget(*entry);
      call.stale = &*found;
      return cache.find_or_make(call, [&](bool) { return make_entry(call); });
    default:
      entry->next_audit = UINT64_MAX;
      entry->stale = true;
      tell_stale({name, std::move(explanation)});
      return entry;
  }
}

FunctionBase::FunctionBase(std::string_view name, std::size_t arity, HostCode body, FunctionOptions options,
                           Where where)
    : state_(std::make_shared<State>()) {
  state_->host.body = std::move(body);
  state_->options = std::move(options);
  state_->host.where = kept(where);
  std::string made_up;  // without a name, where it was made is what tells it from others
  if (name.empty()) name = made_up = text("function", at_line(where));
  std::size_t open = made_up.empty() ? name.find('(') : std::string_view::npos;
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
  if (!state.options.signature.empty()) state.check_signature(leaves, owners, where);
  if (current_trace()) {
    InlinedCall guard(state.name, leaves, where);
    return take_results(current_trace()->run_scope([&] { return state.host.body(leaves); }, where), results);
  }
  if (VariableOverlay* overlay = VariableOverlay::current(); overlay && overlay->runs_functions_eagerly()) {
    InlinedCall guard(state.name, leaves, where);
    return take_results(state.host.body(leaves), results);
  }
  std::vector<Tensor> tensors = tensors_of(leaves, where);
  std::vector<LeafKey> key = keys_of(leaves);
  if (ambient() != 0) key.push_back({.kind = Leaf::number, .bits = ambient()});
  std::uint64_t epoch = hit_epoch();  // before: what is forgotten from here on is not remembered
  MissedCall missed{state.name, state.arguments, leaves, owners, key, tensors, where};
  std::shared_ptr<Entry> entry = state.cache.find_or_make(missed, [&](bool) { return state.make_entry(missed); });
  if (!entry) return take_results(state.host.body(leaves), results);  // too many traces: OnLimit::eager
  bool first = entry->calls.load(std::memory_order_relaxed) == 0;
  bool check = verifies_all() && (first || entry->audit_is_due());
  entry = state.audited(std::move(entry), missed);
  if (!entry) return take_results(state.host.body(leaves), results);
  if (check && !entry->stale) verify_call(*entry, state.host, missed, first);
  std::optional<Bindings> bindings = entry->accepts(key, tensors);
  if (!bindings) throw InternalError(text("the trace of '", state.name, "' does not accept its own arguments"));
  entry->calls.fetch_add(1, std::memory_order_relaxed);
  for (const Variable& variable : entry->used) refuse_in_init_scope(state_of(variable), state.name.c_str(), where);
  try {
    if (tapes_open()) {
      std::vector<Tensor> given;
      for (const Leaf& leaf : leaves)
        if (leaf.kind == Leaf::tensor) given.push_back(leaf.value);
      run_under_tape(*entry, state.name, given, results.tensors, where);
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

void FunctionBase::check(Leaves leaves, std::vector<int> owners, Where where) const {
  std::shared_ptr<State> kept = this->state("verify", where);
  State& state = *kept;
  if (current_trace())
    throw TraceError(error_text(text("verify: '", state.name, "' cannot be verified while a function is traced"), where,
                                "call verify outside of traced code"));
  state.check_arguments(leaves, owners, where);
  if (!state.options.signature.empty()) state.check_signature(leaves, owners, where);
  std::vector<Tensor> tensors = tensors_of(leaves, where);
  std::vector<LeafKey> key = keys_of(leaves);
  if (ambient() != 0) key.push_back({.kind = Leaf::number, .bits = ambient()});
  MissedCall call{state.name, state.arguments, leaves, owners, key, tensors, where};
  std::shared_ptr<Entry> entry = state.cache.find_or_make(call, [&](bool) { return state.make_entry(call); });
  if (!entry) return;  // such calls run eagerly
  verify_call(*entry, state.host, call, true);
}

bool FunctionBase::hit(const LeafViews& views, Results& results, Where where) const {
  if (!state_ || trace_in_progress() || ambient() != 0 || tapes_open() || VariableOverlay::current()) return false;
  HitSlot* slot = find_hit(state_->id, views);
  if (!slot) return false;
  if (slot->entry->calls.load(std::memory_order_relaxed) + 1 >= slot->entry->next_audit.load(std::memory_order_relaxed))
    return false;
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

int FunctionBase::trace_count() const { return state("trace_count")->cache.traces(); }

std::string FunctionBase::explain() const {
  const std::string& name = state("explain")->name;
  std::string out = text(name, ": ", trace_count(), trace_count() == 1 ? " trace\n" : " traces\n");
  int number = 0;
  for (const std::shared_ptr<Entry>& entry : state_->cache.known()) {
    out += text("  trace ", ++number, ": (");
    out += text(joined(entry->types, ", "), "), ", entry->graph.nodes.size(), " nodes, ", entry->program->steps.size(),
                " steps, traced in ", milliseconds_text(entry->trace_milliseconds), " ms, compiled in ",
                milliseconds_text(entry->compile_milliseconds), " ms, ", entry->calls.load(), " calls\n");
    for (const GradientPairFacts& pair : entry->pairs())
      out += text("    under a tape: ", pair.forward_steps, " steps forward, ", pair.backward_steps,
                  " backward, made in ", milliseconds_text(pair.milliseconds), " ms; ", pair.kept,
                  pair.kept == 1 ? " tensor" : " tensors", " kept for a gradient; ", pair.calls, " calls\n");
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

void FunctionBase::clear() const { state("clear")->cache.clear(); }

}  // namespace stet
