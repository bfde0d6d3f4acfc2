// What a recording comes to, in sentences. Private to report/.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stet/report/machine_limits.h"
#include "stet/report/summary.h"

namespace stet::reporting {

/// "1 trace of 1 function, 0 retraces.", "94 % of the time in kernels.", …
std::vector<std::string> verdict_of(const Recorded& recorded, const Summary& summary);

struct Finding {
  double weight = 0;     // the share of the time that it is about, 0 to 1
  std::string text;      // what, and what to do
  std::string function;  // empty: none
};
/// The dearest first; empty where there is nothing to do. Without limits nothing is said of what the machine could do.
std::vector<Finding> findings_of(const Recorded& recorded, const Summary& summary,
                                 const std::optional<MachineLimits>& limits);

/// Retraces of one function for one reason.
struct RetraceReason {
  const FunctionSummary* function = nullptr;
  const TraceSummary* last = nullptr;  // of those that it made
  std::string cause;                   // of that, on one line, with its place
  std::string fix;                     // the one to try first; may be empty
  std::vector<std::string> other_fixes;
  int count = 0;
  double seconds = 0;
};
/// Those in the recording, the dearest first.
std::vector<RetraceReason> retrace_reasons(const Summary& summary);

}  // namespace stet::reporting
