// The traces of one function: which of them serves a call, who makes one that is missing, which are kept. Private to
// core/.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stet/core/function.h"
#include "stet/core/function_entry.h"
#include "stet/core/retrace.h"

namespace stet {

/// Any number of threads may use one. Its lock is never held while host code runs, a program is compiled or a listener
/// is told; but one trace is in flight per key: callers with the same key wait for it, unless they are inside of a
/// trace themselves (then they make the trace too, and the one that comes later is dropped). If it throws, one of those
/// who wait tries.
class TraceCache {
 public:
  /// `name` and `options` outlive the cache.
  TraceCache(const std::string& name, const FunctionOptions& options) : name_(name), options_(options) {}
  TraceCache(const TraceCache&) = delete;
  TraceCache& operator=(const TraceCache&) = delete;
  ~TraceCache() { clear(); }

  /// Traces and compiles; called with no lock held. `first`: there is no other trace.
  using Make = std::function<std::shared_ptr<Entry>(bool first)>;
  /// The trace that serves the call: known, made by another thread meanwhile, or made now, kept and told as a retrace.
  /// Throws what `make` throws, having kept nothing; RetraceError under NoRetrace; with a signature, UserError for
  /// sizes that the one trace does not take.
  std::shared_ptr<Entry> find_or_make(const MissedCall& call, const Make& make);
  /// Those that are kept, in the order they were made.
  std::vector<std::shared_ptr<Entry>> known() const;
  /// Made so far, forgotten ones included.
  int traces() const;
  /// Forgets one: no later call is served by it.
  void forget(const Entry& entry);
  void clear();

 private:
  /// A trace in the making.
  struct InFlight {
    std::vector<LeafKey> key;
    std::thread::id thread;
  };
  /// With the lock held: the trace that accepts the call, or null.
  std::shared_ptr<Entry> accepting(const MissedCall& call) const;
  /// With the lock held: adds a trace; if there are too many, drops one and says so.
  void keep(const std::shared_ptr<Entry>& made, std::string& explanation);
  [[noreturn]] void refuse_sizes(const MissedCall& call, const Entry& entry) const;
  [[noreturn]] void refuse_retrace(const MissedCall& call) const;

  const std::string& name_;
  const FunctionOptions& options_;
  mutable std::mutex guard_;  // of all below
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Entry>> entries_;
  std::vector<InFlight> in_flight_;
  std::map<std::string, std::uint64_t> causes_;  // of retraces, and how often each was met
  int traces_ = 0;
};

}  // namespace stet
