// A recording as it was read (runtime/recording_format.h has the bytes). Not a public header.
//
// Files are believed in nothing: they may be cut, damaged, of another version, written while they are read, and of a
// program that was killed. What can be read is read, and what cannot is counted.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/where.h"
#include "stet/files/json.h"
#include "stet/runtime/recording.h"

namespace stet::reporting {

/// Times are ns from the beginning of the recording.
struct RecordedSpan {
  std::int64_t begin;
  std::int64_t duration;
  double bytes, flops;  // 0: not known
  std::uint32_t name;   // of Recorded::names
  std::uint16_t thread;
  std::uint8_t kind;  // of Recorded::kinds

  std::int64_t end() const { return begin + duration; }
};

struct RecordedCounter {
  std::int64_t time;
  double value;
  std::uint32_t name;
};

struct Recorded {
  std::string path;  // or what else errors call it
  std::uint32_t version = 0;
  std::uint64_t process = 0;
  std::uint64_t began = 0;    // of the steady clock
  std::int64_t began_at = 0;  // the same moment, ns since 1970
  std::int64_t length = 0;    // ns: to the end, or to the last that is known of
  bool complete = false;      // it was ended; the others are still written, or of a program that was killed
  std::uint64_t lost_spans = 0, lost_text = 0;
  std::size_t damaged = 0;  // records that say nothing that could be

  std::string program, stet, cpu;
  int thread_count = 0;  // of the library's pool
  std::vector<std::string> kinds, names, threads;
  /// By the number of a kind: none for kinds that this version does not know.
  std::array<std::optional<recording::Kind>, 256> meanings = {};

  /// By (thread, begin, -duration). What begins inside of another span of its thread ends inside of it.
  std::vector<RecordedSpan> spans;
  std::vector<RecordedCounter> counters;  // by (name, time)
  /// Objects, in the order in which they were told. Files of this process's folder are named from there.
  std::vector<files::Json> notes;

  std::optional<recording::Kind> kind_of(const RecordedSpan& span) const { return meanings[span.kind]; }
  double seconds() const { return static_cast<double>(length) * 1e-9; }
  /// Of a time that a note has, in seconds from the beginning; negative before it.
  double seconds_at(std::int64_t steady) const {
    return static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(steady) - began)) * 1e-9;
  }
};

/// UserError if these bytes are no recording at all; `name` is what they are called there.
Recorded parse_recording(std::string_view bytes, const std::string& name, Where where = {});
/// The same of a file, which its program may go on writing meanwhile. UserError also if there is no such file.
Recorded read_recording(const std::string& path, Where where = {});

/// Whether the program that writes it goes on: it has not ended the recording, and its process is there, on this
/// machine.
bool is_being_written(const Recorded& recorded);

}  // namespace stet::reporting
