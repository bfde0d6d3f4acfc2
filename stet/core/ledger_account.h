// What the ledger knows of the functions of one name and line. Private to core/.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stet/base/lock.h"
#include "stet/core/ledger.h"

namespace stet {

struct Entry;

class LedgerAccount {
 public:
  /// The one for functions of this name that were made there.
  static std::shared_ptr<LedgerAccount> of(const std::string& function, Where where);

  static std::vector<std::shared_ptr<LedgerAccount>> all();

  /// A trace was made and kept; `first` of its function.
  void add(const std::shared_ptr<Entry>& trace, bool first);
  /// Why a trace was made that is not the first.
  void add_cause(const std::string& cause, double milliseconds);
  /// A trace has ended, having served so many calls.
  void settle(std::uint64_t calls);

  LedgerLine line() const;
  /// Without what was traced before this process was forked.
  LedgerLine line_of_this_process() const;
  const std::string& function() const { return function_; }
  /// Where its functions were made.
  Where where() const { return where_; }
  /// What recordings call its functions: their name, with the line where another one has it too.
  const std::string& recorded_as() const { return recorded_as_; }
  std::vector<std::shared_ptr<Entry>> live() const;
  /// Traces as the file names them, and how often each was made.
  std::map<std::string, int> traces() const;

 private:
  LedgerAccount(std::string function, Where where, std::string made_at, std::string recorded_as)
      : function_(std::move(function)),
        made_at_(std::move(made_at)),
        recorded_as_(std::move(recorded_as)),
        where_(where) {}
  const std::string function_, made_at_, recorded_as_;
  const Where where_;
  mutable Lock guard_;  // of what follows
  LedgerLine sums_;
  LedgerLine at_fork_;            // sums_ when the process was forked that traced last
  std::uint64_t generation_ = 0;  // of that process
  std::vector<std::weak_ptr<Entry>> live_;
  std::map<std::string, int> traces_;
  std::map<std::string, double> causes_;  // milliseconds lost
};

}  // namespace stet
