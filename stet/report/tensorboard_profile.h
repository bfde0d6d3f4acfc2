// The file of TensorBoard's profile tab, in the folder where the tab looks for it. Private to report/ and tools/.
#pragma once
#include <cstdint>
#include <string>

#include "stet/base/where.h"
#include "stet/report/recorded.h"

namespace stet::reporting {

/// Writes <log_dir>/plugins/profile/<when the recording began>/<this host>.xplane.pb, whose path it gives; folders are
/// made. Another recording of the same second gets a folder of its own. `call` is named in errors; UserError if it
/// cannot be written.
std::string write_tensorboard_profile(const std::string& log_dir, const Recorded& recorded, std::int64_t first_step,
                                      const std::string& call, Where where = {});

}  // namespace stet::reporting
