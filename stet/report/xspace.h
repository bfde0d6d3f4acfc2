// A recording in the form that TensorBoard's profile plugin reads. Private to report/.
#pragma once
#include <cstdint>
#include <string>

#include "stet/report/recorded.h"

namespace stet::reporting {

struct XSpaceOptions {
  std::string host = "localhost";
  std::int64_t first_step = 1;  // the number of the first batch of fit() that was recorded
};

/// An XSpace as protocol buffer: a line for each thread with all spans, a span around each batch of fit() and the wait
/// for it, which the plugin takes for steps, counters, and retraces, warnings and the like as instants. What a report
/// would say that there is to do stands among its warnings.
std::string xspace_of(const Recorded& recorded, const XSpaceOptions& options);

}  // namespace stet::reporting
