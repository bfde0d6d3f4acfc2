// Recording: what a running program does and when, for a report that is made of it while it runs, when it has ended, or
// when it was killed. Not a public header; a user's door is stet/report/profile.h.
//
// Who has something to tell asks on() first: that is one load where nobody records. Telling never throws and takes no
// lock but when a chunk of 64 KiB is full. Memory is bounded: the oldest spans go first, and are counted.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/files/json.h"

namespace stet::recording {

/// What a span is. The numbers are those in files.
enum class Kind : std::uint8_t {
  call,      // of a traced function
  trace,     // its host code ran, and became a program
  pass,      // of the compiler
  compile,   // of a kernel, by LLVM
  bind,      // a program to sizes
  run,       // of an op outside of traced functions
  step,      // of a program
  region,    // a worker's part of a step
  stage,     // a dataset's user function
  wait,      // for data
  epoch,     // of fit
  batch,     // of fit
  callback,  // of fit
  audit,     // host code ran again, only to be compared
  user,      // stet::ProfileSpan
};
inline constexpr int kind_count = 15;
/// "call", "trace", …
STET_API const char* kind_name(Kind kind);

/// The number of a name, the same for ever in this process. Beyond 65,536 of them all are 0, "(others)".
using Name = std::uint32_t;
STET_API Name name_of(std::string_view name) noexcept;

STET_API extern std::atomic<bool> active;
inline bool on() { return active.load(std::memory_order_relaxed); }
/// The clock of spans, in ns.
STET_API std::uint64_t now() noexcept;

/// Something that this thread did. `bytes` and `flops`: what it moved and computed, 0 where that is not known.
STET_API void span(Kind kind, Name name, std::uint64_t begin, std::uint64_t end, double bytes = 0,
                   double flops = 0) noexcept;
/// A value that changes with time, as it is now.
STET_API void counter(Name name, double value) noexcept;
STET_API void sample_memory_now() noexcept;
/// The counter "memory of tensors", if the last one on this thread is older than 100 µs, and from time to time what is
/// watched.
inline void sample_memory() noexcept {
  if (on()) [[unlikely]]
    sample_memory_now();
}
/// What is rare and has parts: why a function was traced. An object with a member "note", its kind; gets "time", now.
STET_API void note(files::Json::Object what) noexcept;

/// A span from here to the end of the scope, also where an exception leaves it.
class Span {
 public:
  Span(Kind kind, Name name) : kind_(kind), name_(name), begin_(on() ? now() : 0) {}
  /// `make_name` is called only if somebody records.
  template <class MakeName>
  requires requires(MakeName make_name) { std::string_view(make_name()); }
  Span(Kind kind, const MakeName& make_name) : kind_(kind) {
    if (!on()) return;
    name_ = name_of(make_name());
    begin_ = now();
  }
  ~Span() {
    if (begin_ != 0) span(kind_, name_, begin_, now());
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Kind kind_;
  Name name_ = 0;
  std::uint64_t begin_ = 0;
};

/// Where a recording goes.
struct Place {
  std::string file = {};  // empty: memory
  std::size_t most_bytes = std::size_t{64} << 20;
  bool beside_others = false;  // a file that is there stays, and this one gets a number in its name
};

/// Something that is counted anyway, and only grows: `value`, called with no lock of the recorder's, says how far it is
/// now. Recordings have it as a counter that begins with them at 0. `name` is a literal. The same name again: nothing.
void watch(const char* name, std::uint64_t (*value)());
/// How far each is now, since the process began.
struct Count {
  const char* name;
  std::uint64_t value;
};
STET_API std::vector<Count> counts();

/// Begins to record, or joins the recording that runs, whose place stays. A number for end(). UserError if the file
/// cannot be written.
STET_API std::uint64_t begin(const Place& place, Where where = {});
/// The last one of those who began it ends it.
STET_API void end(std::uint64_t number);
/// Does that for the last one. For others nothing, and it is false: they may want contents() before.
bool end_if_last(std::uint64_t number);
/// What is recorded now, in the form of a file; empty if nobody records. `since`: counts() when the part of it began
/// that is of interest; empty: all of it.
STET_API std::string contents(const std::vector<Count>& since = {});
/// Whether that is the file that is being written, by whatever path.
STET_API bool writes_to(const std::string& path);
using Notes = std::vector<files::Json::Object>;
/// Adds notes about the whole of a recording, up to now. It may tell others on its own.
using AtEnd = void (*)(Notes& notes);
/// Has `told` called whenever contents are made, which have its notes as they are then, and before a recording ends.
void at_end(AtEnd told);
/// A number that is another one for each recording; 0 where there is none.
std::uint64_t session();

}  // namespace stet::recording
