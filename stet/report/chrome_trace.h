// A recording for Perfetto and chrome://tracing. Private to report/.
#pragma once
#include <ostream>

#include "stet/report/recorded.h"

namespace stet::reporting {

/// JSON in the Trace Event Format: spans as complete events with bytes and flops, counters, and retraces, warnings and
/// the like as instants. Written as it is made: there may be millions. The stream says whether it could be written.
void write_chrome_trace(std::ostream& out, const Recorded& recorded);

}  // namespace stet::reporting
