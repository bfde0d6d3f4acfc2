// The traces of one function: which of them serves a call, who makes one that is missing, which are kept. Private to
// core/.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stet/base/lock.h"
#include "stet/core/function.h"
#include "stet/core/function_entry.h"
#include "stet/core/ledger_account.h"
#include "stet/core/retrace.h"

namespace stet {

/// Any number of threads may use one. Its lock is never held while user's code runs (host code, listeners, descriptions
/// and destructors of what was captured) or a program is compiled. One trace is in flight per key: callers with the
/// same key wait for it, unless they are inside of a trace themselves (then they make the trace too, and the one that
/// comes later is dropped). If it throws, one of those who wait tries.
///
/// At the limit (FunctionOptions) a trace goes that is cheap to make again for the room it takes and has not served for
/// long: GreedyDual. A trace is worth what it took to make, more if it served often, less if it is large; added to the
/// worth that the last forgotten trace had, at the time of its last use. So what was dear or busy once ages as others
/// go.
class TraceCache {
 public:
  /// `name`, `options` and `where`, the function's line, outlive the cache.
  TraceCache(const std::string& name, const FunctionOptions& options, const Where& where)
      : name_(name), options_(options), where_(where) {}
  TraceCache(const TraceCache&) = delete;
  TraceCache& operator=(const TraceCache&) = delete;
  ~TraceCache();

  /// Traces and compiles; called with no lock held. `first`: there is no other trace.
  using Make = std::function<std::shared_ptr<Entry>(bool first)>;
  /// The trace that serves the call: known, made by another thread meanwhile, or made now, kept and told as a retrace.
  /// Null: there are too many, and the options say that such calls run eagerly. Throws what `make` throws, having kept
  /// nothing; RetraceError under NoRetrace, and at the limit if the options say so; with a signature, UserError for
  /// sizes that the one trace does not take.
  std::shared_ptr<Entry> find_or_make(const MissedCall& call, const Make& make);
  /// Those that are kept, in the order they were made.
  std::vector<std::shared_ptr<Entry>> known() const;
  /// Made so far, forgotten ones included.
  int traces() const;
  /// Forgets one: no later call is served by it.
  void forget(const Entry& entry);
  void clear();
  /// The ledger's account of this function.
  std::shared_ptr<LedgerAccount> account();

 private:
  using Entries = std::vector<std::shared_ptr<Entry>>;
  /// A trace in the making.
  struct Flight {
    std::vector<LeafKey> key;
    std::thread::id thread = std::this_thread::get_id();
    std::uint64_t generation = fork_generation();
    std::atomic<bool> ended = false;
  };
  /// What is kept, and what is known of its use.
  struct Kept {
    std::shared_ptr<Entry> entry;
    std::uint64_t call = 0;        // the hash of the call that it was made for
    std::uint64_t calls_seen = 0;  // how many it had served when another was last missing
    double worth = 0;              // see above; of its last use
    bool in_use = true;            // it has served since another was last missing
  };
  /// What the lock guards, as explanations need it.
  struct Snapshot {
    Entries entries;
    std::vector<CallRecord> records;
    int trace = 0;  // the number of the one that is missing
  };

  /// With the lock held: the trace that accepts the call, or null.
  std::shared_ptr<Entry> accepting(const MissedCall& call) const;
  Snapshot snapshot() const;
  /// With the lock held: notes which traces have served since the last time.
  void note_use();
  bool full() const;
  std::size_t bytes() const;
  /// With the lock held: takes out what must go so that `made` can stay.
  Entries make_room(const Entry& made);
  /// With the lock held: adds a trace.
  void keep(const std::shared_ptr<Entry>& made, const MissedCall& call);
  /// Claims the making of a trace, or gives the one that another thread made meanwhile.
  std::shared_ptr<Entry> wait_or_claim(const MissedCall& call, std::shared_ptr<Flight>& flight, Snapshot& before,
                                       bool& at_limit);
  void land(const std::shared_ptr<Flight>& flight);
  void tell(const MissedCall& call, const Snapshot& before, Entry& made, const Entries& forgotten, bool returns);
  void refuse_or_warn(const MissedCall& call, const Snapshot& before, bool at_limit);
  [[noreturn]] void refuse_sizes(const MissedCall& call, const Entry& entry) const;

  const std::string& name_;
  const FunctionOptions& options_;
  const Where& where_;
  std::once_flag account_made_;
  std::shared_ptr<LedgerAccount> account_;
  mutable Lock guard_;  // of all below
  std::vector<Kept> kept_;
  std::vector<std::shared_ptr<Flight>> in_flight_;
  std::deque<CallRecord> records_;               // the latest calls that were traced
  std::deque<std::uint64_t> forgotten_;          // the calls that the latest forgotten traces were made for
  std::map<std::string, std::uint64_t> causes_;  // of retraces, and how often each was met
  double age_ = 0;                               // the worth of what was forgotten last
  int traces_ = 0;
  bool told_limit_ = false;
};

}  // namespace stet
