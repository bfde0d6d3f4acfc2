#include "stet/tools/recordings.h"

#include <algorithm>

#include "stet/base/text.h"
#include "stet/report/machine.h"
#include "stet/runtime/parallel.h"
#include "stet/tools/output.h"

namespace stet::tools {

std::string recording_path(const Words& words) {
  words.at_most(1);
  if (words.plain().empty())
    throw UsageError(text("stet ", words.command().name, ": of which recording? stet ", words.command().name,
                          " run.stet-profile, for one; a program writes it where STET_PROFILE or Profile says"));
  return words.plain()[0];
}

std::optional<reporting::MachineLimits> limits_for(const reporting::Recorded& recorded) {
  if (recorded.cpu.empty() || recorded.cpu != reporting::look_at_machine().cpu ||
      recorded.thread_count != thread_count() || is_being_written(recorded))
    return std::nullopt;
  return reporting::machine_limits();
}

reporting::SummaryTextOptions text_options() {
  return {.width = static_cast<std::size_t>(std::max(terminal_width(), 0)), .color = colored()};
}

}  // namespace stet::tools
