// A recording as the report page, and whoever else reads JSON, gets it. Private to report/.
#pragma once
#include <optional>

#include "stet/files/json.h"
#include "stet/report/machine_limits.h"
#include "stet/report/summary.h"

namespace stet::reporting {

/// Of everything that `recorded` has; its format is told in docs/command.md. No number in it is NaN or infinite.
files::Json report_data(const Recorded& recorded, const Summary& summary, const std::optional<MachineLimits>& limits);

}  // namespace stet::reporting
