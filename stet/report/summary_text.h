// A recording as a table in a terminal: what Profile, `stet top` and `stet report` print. Private to report/.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "stet/report/machine_limits.h"
#include "stet/report/summary.h"

namespace stet::reporting {

struct SummaryTextOptions {
  std::size_t width = 0;  // columns that there are; 0: lines are as long as they are
  bool color = false;
  std::size_t functions = 10, kernels = 15, findings = 5;  // at most so many, the dearest
};

/// The verdict, where the time went, functions, kernels by time, and what to do. With no character that a terminal
/// obeys but those of colours. Ends with a line break.
std::string summary_text(const Recorded& recorded, const Summary& summary, const std::optional<MachineLimits>& limits,
                         const SummaryTextOptions& options = {});

}  // namespace stet::reporting
