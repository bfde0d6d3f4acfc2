#include "stet/core/trace_cache.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/hit.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/core/unrolled.h"
#include "stet/runtime/log.h"

namespace stet {
namespace {

constexpr std::size_t most_records = 32, most_forgotten = 1024;

std::uint64_t hash_of(const MissedCall& call) {
  std::uint64_t hash = 0x51ED270B0A1F39C1u;
  auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  };
  for (const LeafKey& key : call.key) {
    mix(static_cast<std::uint64_t>(key.kind) << 16 | static_cast<std::uint64_t>(key.dtype) << 8 |
        static_cast<std::uint64_t>(key.rank));
    mix(key.bits);
    mix(reinterpret_cast<std::uint64_t>(key.device));
  }
  for (const Tensor& tensor : call.tensors)
    for (std::int64_t size : tensor.node()->size_span()) mix(static_cast<std::uint64_t>(size));
  return hash;
}

/// What is lost with it, in milliseconds; of a large one counted for the room it takes of what all may take.
double worth_of(const Entry& entry, const FunctionOptions& options) {
  double room = static_cast<double>(options.max_bytes) / std::max(options.max_traces, 1);
  double share = std::min(1.0, room / static_cast<double>(std::max<std::size_t>(entry.bytes(), 1)));
  double uses = std::log2(2.0 + static_cast<double>(entry.calls.load(std::memory_order_relaxed)));
  return (entry.trace_milliseconds + entry.compile_milliseconds) * uses * share;
}

}  // namespace

TraceCache::~TraceCache() {
  clear();
  if (traces_ > 0) note_function_ended(where_);
}

std::vector<std::shared_ptr<Entry>> TraceCache::known() const {
  std::lock_guard lock(guard_);
  return snapshot().entries;
}

int TraceCache::traces() const {
  std::lock_guard lock(guard_);
  return traces_;
}

void TraceCache::forget(const Entry& entry) {
  std::vector<Kept> gone;  // ends without the lock
  {
    std::lock_guard lock(guard_);
    auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.entry.get() == &entry; });
    if (at == kept_.end()) return;
    gone.push_back(std::move(*at));
    kept_.erase(at);
  }
  forget_hits();
}

void TraceCache::clear() {
  std::vector<Kept> gone;
  std::deque<CallRecord> records;
  {
    std::lock_guard lock(guard_);
    gone.swap(kept_);
    records.swap(records_);
  }
  if (!gone.empty()) forget_hits();
}

TraceCache::Snapshot TraceCache::snapshot() const {
  Snapshot out{.entries = {}, .records = {records_.begin(), records_.end()}, .trace = traces_ + 1};
  for (const Kept& one : kept_) out.entries.push_back(one.entry);
  return out;
}

std::shared_ptr<Entry> TraceCache::accepting(const MissedCall& call) const {
  for (const Kept& one : kept_) {
    if (one.entry->accepts(call.key, call.tensors)) return one.entry;
    if (!options_.signature.empty() && one.entry->key == call.key) refuse_sizes(call, *one.entry);
  }
  return nullptr;
}

void TraceCache::refuse_sizes(const MissedCall& call, const Entry& entry) const {
  std::string facts;
  for (const Fact& fact : entry.broken_facts(call.tensors))
    facts += text("; ", fact.reason.asker, at_line(fact.reason.where), " needs ", fact);
  std::vector<std::string> types;
  for (const Tensor& tensor : call.tensors) types.push_back(text(tensor.dtype(), tensor.shape()));
  throw UserError(error_text(text(name_, ": these sizes do not fit: (", joined(types, ", "), ")", facts), call.where,
                             "change the call; a function with a signature is traced once, for all sizes it allows"));
}

// --- what is kept

std::size_t TraceCache::bytes() const {
  std::size_t sum = 0;
  for (const Kept& one : kept_) sum += one.entry->bytes();
  return sum;
}

bool TraceCache::full() const {
  return !kept_.empty() && (kept_.size() >= static_cast<std::size_t>(std::max(options_.max_traces, 1)) ||
                            bytes() >= static_cast<std::size_t>(std::max<std::int64_t>(options_.max_bytes, 0)));
}

void TraceCache::note_use() {
  for (Kept& one : kept_) {
    std::uint64_t calls = one.entry->calls.load(std::memory_order_relaxed);
    one.in_use = calls != one.calls_seen;
    if (one.in_use) one.worth = age_ + worth_of(*one.entry, options_);
    one.calls_seen = calls;
  }
}

TraceCache::Entries TraceCache::make_room(const Entry& made) {
  Entries gone;
  auto most = static_cast<std::size_t>(std::max(options_.max_traces, 1));
  auto most_bytes = static_cast<std::size_t>(std::max<std::int64_t>(options_.max_bytes, 0));
  while (!kept_.empty() && (kept_.size() + 1 > most || bytes() + made.bytes() > most_bytes)) {
    // What has just served stays while there is something else: newcomers do not push each other out in turns.
    auto least = std::min_element(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) {
      return std::pair(a.in_use, a.worth) < std::pair(b.in_use, b.worth);
    });
    age_ = std::max(age_, least->worth);
    forgotten_.push_back(least->call);
    if (forgotten_.size() > most_forgotten) forgotten_.pop_front();
    gone.push_back(std::move(least->entry));
    kept_.erase(least);
  }
  return gone;
}

std::shared_ptr<LedgerAccount> TraceCache::account() {
  std::call_once(account_made_, [&] { account_ = LedgerAccount::of(name_, where_); });
  return account_;
}

void TraceCache::keep(const std::shared_ptr<Entry>& made, const MissedCall& call) {
  ++traces_;
  made->account = account();
  made->account->add(made, traces_ == 1);
  kept_.push_back({.entry = made, .call = hash_of(call), .worth = age_ + worth_of(*made, options_)});
  records_.push_back(record_of(call, made));
  if (records_.size() > most_records) records_.pop_front();
}

// --- a call

std::shared_ptr<Entry> TraceCache::wait_or_claim(const MissedCall& call, std::shared_ptr<Flight>& flight,
                                                 Snapshot& before, bool& at_limit) {
  // A thread inside of a trace must not wait for another, which may be waiting to trace.
  const bool may_wait = trace_in_progress() == nullptr;
  for (;;) {
    std::shared_ptr<Flight> other;
    {
      std::lock_guard lock(guard_);
      if (std::shared_ptr<Entry> entry = accepting(call)) return entry;
      for (const std::shared_ptr<Flight>& one : in_flight_) {
        // A thread that a fork() left behind does not finish.
        if (one->generation != fork_generation() || one->key != call.key) continue;
        if (one->thread == std::this_thread::get_id())
          throw TraceError(error_text(text("'", name_, "' is called eagerly inside its own trace"), call.where,
                                      "the trace it would use is not made yet; call what it calls instead"));
        other = one;
      }
      if (!other || !may_wait) {
        before = snapshot();
        at_limit = options_.on_limit != OnLimit::evict && full();
        if (at_limit || (traces_ > 0 && retraces_forbidden())) return nullptr;
        flight = std::make_shared<Flight>();
        flight->key = call.key;
        in_flight_.push_back(flight);
        return nullptr;
      }
    }
    other->ended.wait(false);
  }
}

void TraceCache::land(const std::shared_ptr<Flight>& flight) {
  std::erase(in_flight_, flight);
  flight->ended.store(true);
  flight->ended.notify_all();
}

void TraceCache::refuse_or_warn(const MissedCall& call, const Snapshot& before, bool at_limit) {
  const bool warns = at_limit && options_.on_limit == OnLimit::eager;
  if (warns) {
    std::lock_guard lock(guard_);
    if (std::exchange(told_limit_, true)) return;
  }
  RetraceCause cause = cause_of(call, before.entries, before.records, before.trace);
  if (at_limit)
    cause.headline += explanation_line(
        "limit", text(before.entries.size(), " traces are kept, as many as .max_traces or .max_bytes allow",
                      warns ? ": this call, and others that no trace fits, run eagerly" : ""));
  std::string text = cause.headline + cause.fix_lines();
  if (!warns) throw RetraceError(text);
  tell_retrace({name_, 0, std::move(text)}, true);
}

void TraceCache::tell(const MissedCall& call, const Snapshot& before, Entry& made, const Entries& forgotten,
                      bool returns) {
  if (where_.known()) note_unrolled(name_, made.graph);  // what came from a file has no host code here
  if (before.trace == 1) {
    record_trace(made, 1, nullptr, options_);
    if (log_wants(LogLevel::info, "trace"))
      report(text("stet: traced '", name_, "' for (", joined(made.types, ", "), ") in ",
                  milliseconds_text(made.trace_milliseconds), " ms, compiled in ",
                  milliseconds_text(made.compile_milliseconds), " ms", at_line(call.where, ", called at "), "\n"));
    return note_function_traced(name_, where_);
  }
  RetraceCause cause = cause_of(call, before.entries, before.records, before.trace);
  record_trace(made, before.trace, &cause, options_);
  std::uint64_t met = 0;
  {
    std::lock_guard lock(guard_);
    met = ++causes_[cause.cause];
  }
  made.account->add_cause(cause.reasons().front(), made.trace_milliseconds + made.compile_milliseconds);
  std::string text = cause.headline;
  if (cause.nearest) text += cost_line(made, *cause.nearest);
  if (returns)
    text += explanation_line("again",
                             "a trace for this very call was made before, and forgotten: raise .max_traces "
                             "or .max_bytes");
  text += cause.fix_lines();
  for (const std::shared_ptr<Entry>& gone : forgotten) {
    record_eviction(*gone, name_);
    text += explanation_line("warning", stet::text(before.entries.size(), " traces are kept at most; one that served ",
                                                   gone->calls.load(), " calls is forgotten"));
  }
  if (met > 1) text += explanation_line("again", stet::text("for the same cause ", met, " times now"));
  // A cause that comes back is told again when it has come twice as often.
  tell_retrace({name_, before.trace, std::move(text)}, (met & (met - 1)) == 0);
}

std::shared_ptr<Entry> TraceCache::find_or_make(const MissedCall& call, const Make& make) {
  std::shared_ptr<Flight> flight;
  Snapshot before;
  bool at_limit = false;
  if (std::shared_ptr<Entry> entry = wait_or_claim(call, flight, before, at_limit)) return entry;
  if (!flight) {
    refuse_or_warn(call, before, at_limit);
    return nullptr;
  }
  std::shared_ptr<Entry> made;
  try {
    made = make(before.entries.empty());
  } catch (...) {
    std::lock_guard lock(guard_);
    land(flight);
    throw;
  }
  Entries forgotten;
  bool returns = false;
  {
    std::lock_guard lock(guard_);
    land(flight);
    // Threads inside of traces do not wait for each other, so another may have made the same.
    if (std::shared_ptr<Entry> entry = accepting(call)) return entry;
    note_use();
    returns = std::find(forgotten_.begin(), forgotten_.end(), hash_of(call)) != forgotten_.end();
    before = snapshot();
    forgotten = make_room(*made);
    keep(made, call);
  }
  if (!forgotten.empty()) forget_hits();
  tell(call, before, *made, forgotten, returns);
  return made;
}

}  // namespace stet
