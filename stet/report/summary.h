// What a recording says, counted once for all that shows it. Private to report/.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stet/report/recorded.h"

namespace stet::reporting {

/// Seconds from the beginning of the recording.
struct TraceSummary {
  int number = 0;                     // of its function, from 1
  double begin = 0;                   // negative where it was made before
  double seconds = 0;                 // to trace and compile it
  double compiling = 0;               // of these
  std::optional<std::int64_t> calls;  // served in its life; a program that was killed did not tell
  bool evicted = false;
  const files::Json* note = nullptr;  // of the recording that was summarized

  /// It was made while somebody recorded.
  bool within() const { return begin >= 0; }
  bool is_retrace() const { return number > 1; }
};

/// The functions of one name.
struct FunctionSummary {
  std::string name, file;
  int line = 0;
  std::int64_t calls = 0;
  double seconds = 0, self_seconds = 0;  // in its calls; without those of other functions in them
  double trace_seconds = 0;              // to trace and compile, in the recording
  double lost_seconds = 0;               // of it, by all traces of a function but its first
  int retraces = 0;                      // in the recording
  int max_traces = 0;                    // that it keeps; 0: not known
  std::string on_limit;                  // what it does with a call that needs one more: "evict", "eager", "error"
  std::vector<TraceSummary> traces;      // by begin
  std::vector<std::string> warnings;

  int traces_within() const;
};

/// Where a kernel comes from: a part of the program, "sequential/dense", and a line of its source.
struct KernelOrigin {
  std::string scope, file;
  int line = 0;
  auto operator<=>(const KernelOrigin&) const = default;
};

struct KernelSummary {
  std::string name;
  std::optional<std::size_t> function;  // of Summary::functions, whose calls ran it; none: an op outside of them
  std::int64_t count = 0;
  double seconds = 0, bytes = 0, flops = 0;  // without the steps inside of it; 0: not known
  int threads = 1;
  std::vector<std::string> made_of;
  std::string not_fused;
  std::vector<KernelOrigin> places;  // of one in a function; some of them where there are many
};

/// Where the time of the main thread went. They are no other's, and together they are the recording's time.
enum class Share {
  kernels,
  tracing,
  compiling,
  binding,
  waiting,  // for data
  stages,   // datasets' functions
  callbacks,
  audits,
  eager,      // ops outside of functions, without their kernels
  calls,      // of functions, without what they do
  host,       // code in between
  forgotten,  // spans that there was no room for
};
inline constexpr int share_count = 12;
const char* share_name(Share share);

struct EpochSummary {
  int epoch = 0, epochs = 0;
  double begin = 0, seconds = 0, waited = 0;
  std::int64_t batches = 0;
  const files::Json* values = nullptr;  // an object, or null
};
struct TrainingSummary {
  std::string name;
  std::vector<EpochSummary> epochs;
};

struct StageSummary {
  std::string name;
  int depth = 0;
  std::optional<std::int64_t> elements;
  std::optional<double> seconds;
};

struct EventSummary {
  double time = 0;
  std::string kind, text, function;  // the function's name, empty for none
};

/// How often something was found again.
struct CacheSummary {
  std::string name;
  std::int64_t found = 0, of = 0;
};

inline constexpr double short_run = 5e-6;

struct Summary {
  double seconds = 0;
  std::vector<FunctionSummary> functions;  // the most time first
  std::vector<KernelSummary> kernels;      // the most time first
  double shares[share_count] = {};
  std::optional<std::uint16_t> main_thread;
  std::vector<TrainingSummary> training;
  std::vector<StageSummary> stages;
  std::vector<EventSummary> events;  // by time
  std::vector<CacheSummary> caches;  // those that were asked
  std::int64_t waits = 0;            // for data
  std::int64_t eager_runs = 0;       // of ops outside of functions
  std::int64_t trace_spans = 0;      // which notes say more of, where they are not lost
  std::int64_t runs = 0;             // of kernels
  std::int64_t short_runs = 0;       // of them those that took less than short_run
  double short_seconds = 0;          // that these took

  double share_of(Share share) const { return shares[static_cast<int>(share)]; }
  /// Of all traces in the recording.
  int traces() const;
  int traced_functions() const;
  int retraces() const;
  double lost_seconds() const;
};

/// `recorded` must outlive it. Takes time in proportion to the spans, but for their steps, which are sorted.
Summary summarize(const Recorded& recorded);
Summary summarize(Recorded&&) = delete;

}  // namespace stet::reporting
