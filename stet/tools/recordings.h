// What stet report and stet top share.
#pragma once
#include <optional>
#include <string>

#include "stet/report/machine_limits.h"
#include "stet/report/recorded.h"
#include "stet/report/summary_text.h"
#include "stet/tools/words.h"

namespace stet::tools {

/// The file that stands behind the command. UsageError if there is none, or more.
std::string recording_path(const Words& words);

/// This machine's limits where the recording is of this machine, and of as many threads as this process has. None while
/// its program runs: what is measured beside it is no limit, and it would be slower.
std::optional<reporting::MachineLimits> limits_for(const reporting::Recorded& recorded);

/// To the terminal's width, or as wide as it is where there is none.
reporting::SummaryTextOptions text_options();

}  // namespace stet::tools
