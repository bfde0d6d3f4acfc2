#include "stet/core/function.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/kept_where.h"
#include "stet/base/text.h"
#include "stet/base/thread_end.h"
#include "stet/core/ambient.h"
#include "stet/core/call.h"
#include "stet/core/function_state.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/variable_overlay.h"
#include "stet/core/verify_call.h"
#include "stet/runtime/log.h"

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
    auto depth = std::count_if(open().begin(), open().end(), [&](const std::string* one) { return one == &function; });
    if (depth >= most) refuse(function, arguments, where);
    open().push_back(&function);
  }
  ~InlinedCall() { open().pop_back(); }
  InlinedCall(const InlinedCall&) = delete;
  InlinedCall& operator=(const InlinedCall&) = delete;

 private:
  static constexpr int most = 100;
  /// The names of the functions that are run in place, from the outermost to the innermost; each function has its own.
  static std::vector<const std::string*>& open() {
    constinit thread_local std::vector<const std::string*>* names = nullptr;
    return names ? *names : make_for_this_thread(names);
  }
  /// "f -> g -> f": from the last call of the function to this one. Empty where it calls itself.
  static std::string circle(const std::string& function) {
    std::string out = function;
    for (std::size_t i = open().size(); i-- > 0;) {
      out = text(*open()[i], " -> ", out);
      if (open()[i] == &function) return i + 1 == open().size() ? "" : text(": ", out);
    }
    return "";
  }
  [[noreturn]] static void refuse(const std::string& function, const Leaves& arguments, Where where) {
    const bool counts =
        std::any_of(arguments.begin(), arguments.end(), [](const Leaf& leaf) { return leaf.kind == Leaf::number; });
    throw TraceError(error_text(
        text("'", function, "' is called inside itself more than ", most, " deep while being traced", circle(function)),
        where,
        counts ? text("a recursion on C++ numbers is unrolled into the trace, at most ", most,
                      " deep: check that it ends, or write it as a loop")
               : "a recursion that a tensor ends has no end while tracing, where both sides of an if (tensor) are "
                 "taken; write a loop over sizes or numbers"));
  }
};

/// A tensor that host code kept from a trace will be an error wherever it is used: said before, and with its line.
void tell_leak(const std::string& function, Where line) {
  warn("trace", text("stet: host code kept a tensor of the trace of '", function, "'", at_line(line, ", made at "),
                     "\n", explanation_line("why", "it has no value outside of the trace, and using it is an error"),
                     explanation_line("fix", "return it from the function, or assign it to a Variable")));
}

}  // namespace

LookedUp::LookedUp(const Leaves& leaves, bool dense, Where where)
    : tensors(inputs_of(leaves, dense, where)), key(keys_of(leaves)) {
  if (ambient() != 0) key.push_back({.kind = Leaf::number, .bits = ambient()});
}

recording::Name FunctionBase::State::recorded_name() {
  recording::Name known = recorded_.load(std::memory_order_relaxed);
  if (known == 0)
    recorded_.store(known = recording::name_of(cache.account()->recorded_as()), std::memory_order_relaxed);
  return known;
}

void FunctionBase::State::prepare_arguments(Leaves& leaves, const std::vector<int>& owners, Where call_where) const {
  std::size_t tensor = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    Leaf& leaf = leaves[i];
    if (leaf.kind == Leaf::variable && !leaf.state.defined())
      throw UserError(error_text(text(name, ": ", arguments.of(owners[i], leaf.path), " is an undefined Variable"),
                                 call_where, "assign a value to it before the call"));
    // Eagerly sizes are numbers: those of a trace that this interrupts (InitScope) are read, and pinned by that.
    if (leaf.kind == Leaf::size && !current_trace()) {
      std::string path = std::move(leaf.path);
      leaf = structure::leaf_of_size(leaf.length.value(call_where));
      leaf.path = std::move(path);
    }
    if (leaf.kind != Leaf::tensor) continue;
    const std::size_t number = tensor++;
    if (number >= options.signature.size() || !leaf.value.defined() || !leaf.value.node()->weak) continue;
    const TensorSpec& spec = options.signature[number];
    if (spec.shape.rank() != 0) continue;
    // A number takes the type of what it meets: here the promise.
    try {
      leaf.value = as_tensor(In(leaf.value, call_where), spec.dtype);
    } catch (const Problem& problem) {
      throw UserError(error_text(text(name, ": ", arguments.of(owners[i], leaf.path), ": ", problem.text()), call_where,
                                 problem.advice()));
    }
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
    auto refuse = [&](const std::string& why) {
      throw UserError(error_text(text(name, ": ", arguments.of(owners[i]), " is ", tensor.dtype(), tensor.shape(),
                                      ", the signature promises ", spec, why),
                                 call_where, "change the call, or the signature"));
    };
    // Called inside of another trace, a size may be a symbol: what was promised of it is then a fact of that trace.
    const Reason reason{name.c_str(), "signature", call_where};
    if (!tensor.defined())
      throw UserError(error_text(
          text(name, ": ", arguments.of(owners[i], leaves[i].path), " is undefined, the signature promises ", spec),
          call_where, "assign a tensor to it before the call"));
    const Shape sizes = tensor.shape();
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

namespace {

constexpr std::size_t most_told = 400;

/// "f32[32,57], 0.5".
std::string joined_call(const Leaves& leaves) {
  std::string out;
  for (const Leaf& leaf : leaves) {
    out += text(out.empty() ? "" : ", ", described(leaf));
    if (out.size() > most_told) return text(out.substr(0, most_told), "…");
  }
  return out;
}

}  // namespace

std::shared_ptr<Entry> FunctionBase::State::make_entry(const MissedCall& call) {
  recording::Span span(recording::Kind::trace, [&] { return cache.account()->recorded_as(); });
  auto start = Clock::now();
  const std::uint64_t begun = recording::now();
  auto entry = std::make_shared<Entry>(host.traced(call.leaves, call.owners, call.where));
  for (Where line : entry->left_behind) tell_leak(name, line);
  entry->trace_milliseconds = milliseconds_since(start);
  start = Clock::now();
  Device& device = device_of(call.tensors);
  entry->move_hidden(device, name);
  entry->program = compile_symbolic(entry->graph, device, &entry->story.compiled);
  entry->compile_milliseconds = milliseconds_since(start);
  entry->key = call.key;
  std::vector<Dim> sizes = solve_facts(*entry->graph.scope);
  std::size_t tensor = 0;
  for (const Leaf& leaf : call.leaves) {
    const bool is_input = leaf.kind == Leaf::size || (leaf.kind == Leaf::tensor && leaf.value.defined());
    if (!is_input) {
      entry->types.push_back(described(leaf));
      continue;
    }
    const ValueType& traced = entry->graph.type(entry->graph.inputs[tensor++]);
    const Shape shape = traced.shape.substitute(sizes);
    entry->types.push_back(leaf.kind == Leaf::size ? text("size ", shape[0]) : text(traced.dtype, shape));
  }
  entry->story.id = next_trace_id();
  entry->story.begun = begun;
  entry->story.called = kept(call.where);
  entry->story.arguments = joined_call(call.leaves);
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
  recording::Span span(recording::Kind::audit, [&] { return cache.account()->recorded_as(); });
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
  state_->arity = arity;
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

namespace {

/// Stands for every size among the inputs of a program: nobody reads an element.
const Tensor& any_size() {
  static const Tensor* const one = new Tensor(size_tensor(0));  // never destroyed: see thread_end.h
  return *one;
}

}  // namespace

std::shared_ptr<inside::Body> FunctionBase::body() const { return state_; }

void FunctionBase::take_body(std::shared_ptr<inside::Body> body) {
  state_ = std::static_pointer_cast<State>(std::move(body));
}

void FunctionBase::take_results(Leaves given, Results& results) {
  auto kept = std::make_shared<Leaves>(std::move(given));
  for (Leaf& leaf : *kept) {
    if (leaf.kind == Leaf::size) leaf.undefined = true;  // it is itself
    if (leaf.kind != Leaf::tensor) continue;
    leaf.undefined = !leaf.value.defined();
    if (!leaf.undefined) results.tensors.add(std::move(leaf.value));
  }
  results.form = kept.get();
  results.owner = std::move(kept);
}

void FunctionBase::State::serve(const std::shared_ptr<Entry>& entry, const MissedCall& call, std::uint64_t epoch,
                                inside::CallResults& results) {
  std::optional<Bindings> bindings = entry->accepts(call.key, call.tensors);
  if (!bindings) throw InternalError(text("the trace of '", name, "' does not accept its own arguments"));
  entry->calls.fetch_add(1, std::memory_order_relaxed);
  for (const Variable& variable : entry->used) {
    refuse_in_init_scope(state_of(variable), name.c_str(), call.where);
    if (!VariableOverlay::current()) HeldVariables::refuse(standing_in(state_of(variable)), name.c_str(), call.where);
  }
  HeldVariables held(entry->held(), name);
  try {
    if (tapes_open()) {
      run_under_tape(*entry, name, inputs_of(call.leaves, false, call.where), results.tensors, call.where);
    } else {
      std::shared_ptr<const BoundProgram> bound = entry->bound_to(*bindings);
      std::vector<const Tensor*> pointers;
      for (const Tensor& tensor : call.tensors) pointers.push_back(&tensor);
      run_compiled(*entry, *bound, pointers, results.tensors);
      if (ambient() == 0 && epoch != 0) remember_hit(id, epoch, call.leaves, entry, bound);
    }
  } catch (const Problem& problem) {
    throw_run_error(name, problem, call.where);
  }
  results.form = &entry->result_form;
  results.owner = entry;
}

void FunctionBase::call(Leaves leaves, std::vector<int> owners, Results& results, Where where) const {
  std::shared_ptr<State> kept = this->state("call", where);  // host code may destroy this Function
  State& state = *kept;
  state.prepare_arguments(leaves, owners, where);
  if (!state.options.signature.empty()) state.check_signature(leaves, owners, where);
  if (current_trace()) {
    InlinedCall guard(state.name, leaves, where);
    return take_results(current_trace()->run_scope([&] { return state.host.body(leaves); }, where), results);
  }
  if (VariableOverlay* overlay = VariableOverlay::current(); overlay && overlay->runs_functions_eagerly()) {
    InlinedCall guard(state.name, leaves, where);
    return take_results(state.host.body(leaves), results);
  }
  RecordedCall recorded(state);
  count_look_up();
  LookedUp looked_up(leaves, true, where);
  std::uint64_t epoch = hit_epoch();  // before: what is forgotten from here on is not remembered
  MissedCall missed{state.name, state.arguments, leaves, owners, looked_up.key, looked_up.tensors, where};
  std::shared_ptr<Entry> entry = state.cache.find_or_make(missed, [&](bool) { return state.make_entry(missed); });
  if (!entry) return take_results(state.host.body(leaves), results);  // too many traces: OnLimit::eager
  bool first = entry->calls.load(std::memory_order_relaxed) == 0;
  bool check = verifies_all() && (first || entry->audit_is_due());
  entry = state.audited(std::move(entry), missed);
  if (!entry) return take_results(state.host.body(leaves), results);
  if (check && !entry->stale) verify_call(*entry, state.host, missed, first);
  state.serve(entry, missed, epoch, results);
}

void FunctionBase::check(Leaves leaves, std::vector<int> owners, Where where) const {
  std::shared_ptr<State> kept = this->state("verify", where);
  State& state = *kept;
  if (current_trace())
    throw TraceError(error_text(text("verify: '", state.name, "' cannot be verified while a function is traced"), where,
                                "call verify outside of traced code"));
  state.prepare_arguments(leaves, owners, where);
  if (!state.options.signature.empty()) state.check_signature(leaves, owners, where);
  LookedUp looked_up(leaves, true, where);
  MissedCall call{state.name, state.arguments, leaves, owners, looked_up.key, looked_up.tensors, where};
  std::shared_ptr<Entry> entry = state.cache.find_or_make(call, [&](bool) { return state.make_entry(call); });
  if (!entry) return;  // such calls run eagerly
  verify_call(*entry, state.host, call, true);
}

namespace {

/// Host code that a program runs may call functions, which may use the slot for another call, and may destroy this one.
void run_kept(std::shared_ptr<FunctionBase::State> state, HitSlot slot, std::span<const Tensor* const> tensors,
              inside::CallResults& results, Where where) {
  HeldVariables held(slot.entry->held(), state->name);
  try {
    run_compiled(*slot.entry, *slot.bound, tensors, results.tensors);
  } catch (const Problem& problem) {
    throw_run_error(state->name, problem, where);
  }
  results.form = &slot.entry->result_form;
  results.owner = std::move(slot.entry);
}

}  // namespace

bool FunctionBase::hit(const LeafViews& views, Results& results, Where where) const {
  if (!state_ || trace_in_progress() || ambient() != 0 || tapes_open() || VariableOverlay::current()) return false;
  if (HeldVariables::any()) return false;  // inside of host code that a call runs: its Variables are looked for
  HitSlot* slot = find_hit(state_->id, views);
  if (!slot) return false;
  if (slot->entry->calls.load(std::memory_order_relaxed) + 1 >= slot->entry->next_audit.load(std::memory_order_relaxed))
    return false;
  RecordedCall recorded(*state_);
  slot->entry->calls.fetch_add(1, std::memory_order_relaxed);
  std::array<const Tensor*, LeafViews::most> tensors;
  std::size_t count = 0;
  for (std::size_t i = 0; i < views.size(); ++i)
    if (slot->inputs >> i & 1) tensors[count++] = views[i].tensor ? views[i].tensor : &any_size();
  if (slot->entry->runs_host_code) {
    run_kept(state_, *slot, {tensors.data(), count}, results, where);
    return true;
  }
  try {
    run_compiled(*slot->entry, *slot->bound, {tensors.data(), count}, results.tensors);
  } catch (const Problem& problem) {
    throw_run_error(state_->name, problem, where);
  }
  results.form = &slot->entry->result_form;
  return true;
}

int FunctionBase::trace_count() const { return state("trace_count")->cache.traces(); }

void FunctionBase::clear() const { state("clear")->cache.clear(); }

}  // namespace stet
