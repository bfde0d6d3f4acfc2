// What would have spared a trace, tried on the calls that were recorded. Private to core/.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "stet/core/retrace.h"

namespace stet {

/// A change of all calls.
struct Fix {
  std::string text;                         // what a user would do
  std::function<void(CallRecord&)> change;  // what calls look like then; empty: it cannot be tried
  bool certain = true;                      // false: that host code allows it is a guess
};

/// What might be done about leaf `number`, which differs from the nearest trace's.
Fix fix_of_leaf(const MissedCall& call, const Entry& nearest, std::size_t number, std::span<const CallRecord> earlier);
/// What might be done about facts that this call's sizes do not obey.
std::vector<Fix> fixes_of_sizes(const MissedCall& call, const Entry& nearest, const std::vector<Fact>& broken,
                                std::span<const CallRecord> earlier);

/// The texts, the one to try first first, with the numbers of traces that the calls need without and with it:
/// "cast(x, f32) before the call (12 traces -> 1)". One fix where one does as much as all together; all of them as one
/// where it takes all; those that do not help or cannot be tried begin with "perhaps".
std::vector<std::string> tried(const std::vector<Fix>& fixes, const MissedCall& call,
                               std::span<const CallRecord> earlier);

}  // namespace stet
