// What a recording is told of traced functions (runtime/recording.h). Private to core/.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/lock.h"
#include "stet/base/where.h"
#include "stet/compiler/pipeline.h"
#include "stet/runtime/recording.h"

namespace stet {

struct Entry;
struct FunctionOptions;
struct RetraceCause;

/// How a trace came about. It is kept with every trace, for a recording that begins later.
struct TraceStory {
  std::uint64_t id = 0;     // of all traces of this process
  std::uint64_t begun = 0;  // recording::now()
  Where called = {};
  std::string arguments = {};  // of the call: "f32[32,57], 0.5"
  CompileReport compiled = {};

  Lock guard = {};           // of what follows
  int number = 0;            // of its function's; 0: it is in the making
  int nearest = 0;           // the number of the trace that the cause compares it with; 0: none
  int most = 0;              // traces that the function keeps
  const char* at_most = "";  // what it does with a call that would need one more
  std::string cause = {};    // lines; empty for the first
  std::vector<std::string> fixes = {};
  std::uint64_t recording = 0;  // that knows of it
};

/// Numbers that are never used again.
std::uint64_t next_trace_id();
/// The trace is kept, as number `number` of its function, which has these options. `cause`: null for the first.
void record_trace(Entry& trace, int number, const RetraceCause* cause, const FunctionOptions& options);
/// It serves no more calls: others took its place.
void record_eviction(const Entry& trace, const std::string& function);
void record_trace_end(Entry& trace);
/// "retrace", "warning", "audit", "eviction": what people are told.
void record_event(const char* kind, const std::string& function, const std::string& text);
/// Has the traces that live at the end of a recording told, too, and how many calls looked for theirs.
void record_traces_at_end();
/// A call that was not served at once, as one that looks the same as one before.
void count_look_up();

/// A call, from here to the end of the scope.
class RecordedCall {
 public:
  template <class Function>
  explicit RecordedCall(Function& function) {
    if (!recording::on()) [[likely]]
      return;
    name_ = function.recorded_name();
    begin_ = recording::now();
  }
  ~RecordedCall() {
    if (begin_ == 0) [[likely]]
      return;
    recording::span(recording::Kind::call, name_, begin_, recording::now());
    recording::sample_memory();
  }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

 private:
  recording::Name name_ = 0;
  std::uint64_t begin_ = 0;
};

}  // namespace stet
