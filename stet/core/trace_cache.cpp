#include "stet/core/trace_cache.h"

#include <algorithm>
#include <optional>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/hit.h"
#include "stet/core/trace.h"

namespace stet {
namespace {

/// Host code of all functions is traced by one thread at a time: what it captured need not be safe for more. Recursive,
/// because an InitScope inside of a trace may call functions.
std::recursive_mutex& host_code_guard() {
  static std::recursive_mutex* const guard = new std::recursive_mutex;
  return *guard;
}

}  // namespace

std::vector<std::shared_ptr<Entry>> TraceCache::known() const {
  std::lock_guard lock(guard_);
  return entries_;
}

int TraceCache::traces() const {
  std::lock_guard lock(guard_);
  return traces_;
}

void TraceCache::forget(const Entry& entry) {
  std::lock_guard lock(guard_);
  std::erase_if(entries_, [&](const std::shared_ptr<Entry>& one) { return one.get() == &entry; });
  forget_hits();
}

void TraceCache::clear() {
  std::lock_guard lock(guard_);
  entries_.clear();
  forget_hits();
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

void TraceCache::refuse_retrace(const MissedCall& call) const {
  RetraceCause cause = cause_of(call, entries_, traces_ + 1);
  std::string text = cause.headline;
  if (!cause.fix.empty()) text += explanation_line("fix", cause.fix);
  throw RetraceError(text);
}

void TraceCache::keep(const std::shared_ptr<Entry>& made, std::string& explanation) {
  if (entries_.size() >= static_cast<std::size_t>(std::max(options_.max_traces, 1))) {
    auto least = std::min_element(entries_.begin(), entries_.end(),
                                  [](const auto& a, const auto& b) { return a->calls.load() < b->calls.load(); });
    explanation += explanation_line("warning", text(entries_.size(), " traces are kept at most; one that served ",
                                                    (*least)->calls.load(), " calls is forgotten"));
    entries_.erase(least);
    forget_hits();
  }
  entries_.push_back(made);
  ++traces_;
}

std::shared_ptr<Entry> TraceCache::accepting(const MissedCall& call) const {
  for (const std::shared_ptr<Entry>& entry : entries_) {
    if (entry->accepts(call.key, call.tensors)) return entry;
    if (!options_.signature.empty() && entry->key == call.key) refuse_sizes(call, *entry);
  }
  return nullptr;
}

std::shared_ptr<Entry> TraceCache::find_or_make(const MissedCall& call, const Make& make) {
  std::unique_lock lock(guard_);
  std::thread::id self = std::this_thread::get_id();
  // A thread inside of a trace must not wait for another, which may be waiting to trace.
  bool may_wait = trace_in_progress() == nullptr;
  for (;;) {
    if (std::shared_ptr<Entry> entry = accepting(call)) return entry;
    auto same =
        std::find_if(in_flight_.begin(), in_flight_.end(), [&](const InFlight& one) { return one.key == call.key; });
    if (same == in_flight_.end()) break;
    if (same->thread == self)
      throw TraceError(error_text(text("'", name_, "' is called eagerly inside its own trace"), call.where,
                                  "the trace it would use is not made yet; call what it calls instead"));
    if (!may_wait) break;
    changed_.wait(lock);
  }
  if (traces_ > 0 && retraces_forbidden()) refuse_retrace(call);
  in_flight_.push_back({call.key, self});
  bool first = entries_.empty();
  lock.unlock();

  std::shared_ptr<Entry> made;
  std::exception_ptr failure;
  try {
    std::lock_guard one_at_a_time(host_code_guard());
    made = make(first);
  } catch (...) {
    failure = std::current_exception();
  }
  std::optional<RetraceEvent> event;
  lock.lock();
  std::erase_if(in_flight_, [&](const InFlight& one) { return one.thread == self && one.key == call.key; });
  changed_.notify_all();
  if (failure) std::rethrow_exception(failure);
  // Threads inside of traces do not wait for each other, so another may have made the same.
  if (std::shared_ptr<Entry> entry = accepting(call)) return entry;
  bool again = traces_ > 0;
  RetraceCause cause;
  if (again) cause = cause_of(call, entries_, traces_ + 1);
  std::string explanation = cause.headline;
  if (cause.nearest) explanation += cost_line(*made, *cause.nearest);
  if (!cause.fix.empty()) explanation += explanation_line("fix", cause.fix);
  keep(made, explanation);
  std::uint64_t met = again ? ++causes_[cause.cause] : 0;
  // A cause that comes back is told again when it has come twice as often.
  if (met > 1) explanation += explanation_line("again", text("for the same cause ", met, " times now"));
  if (again) event = RetraceEvent{name_, traces_, std::move(explanation)};
  lock.unlock();
  if (event) tell_retrace(*event, (met & (met - 1)) == 0);
  return made;
}

}  // namespace stet
