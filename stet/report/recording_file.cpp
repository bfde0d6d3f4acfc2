// Recordings that are files, and may be written while they are read.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <fstream>
#include <iterator>

#include "stet/base/text.h"
#include "stet/report/recorded.h"
#include "stet/report/recording_bytes.h"

namespace stet::reporting {
namespace {

constexpr const char* reader = "recording";

std::string bytes_of(const files::Input& file) {
  std::string out(std::min<std::uint64_t>(file.size(), recording::head_bytes), '\0');
  file.read(0, out.data(), out.size(), "head");
  recording_bytes::require_recording(out, file.reading());  // before memory is taken for all of a file that is none
  const std::size_t head = out.size();
  out.resize(static_cast<std::size_t>(file.size()));
  file.read(head, out.data() + head, out.size() - head, "chunks");
  return out;
}

/// Spans name things whose names were written before them, perhaps behind where the reader was: text is read again,
/// after the spans. Chunks of spans that were begun again meanwhile are half old and half new: they are left out.
void read_text_again(std::string& bytes, const files::Input& file, std::size_t chunk_bytes) {
  const std::size_t spans_end = bytes.size();
  for (std::size_t at = recording::head_bytes; at + sizeof(recording::ChunkHead) <= file.size(); at += chunk_bytes) {
    char head[sizeof(recording::ChunkHead)];
    file.read(at, head, sizeof head, "head of a chunk");
    const recording_bytes::Chunk now = recording_bytes::chunk_of({head, sizeof head});
    if (now.content == recording::Content::text && now.number != 0) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_bytes, file.size() - at));
      if (bytes.size() < at + count) bytes.resize(at + count);
      file.read(at, bytes.data() + at, count, "text");
    } else if (at + sizeof head <= spans_end) {
      const recording_bytes::Chunk before = recording_bytes::chunk_of(std::string_view(bytes).substr(at));
      if (now.number != before.number) std::fill_n(bytes.data() + at, sizeof head, '\0');
    }
  }
}

/// When a process began, of the steady clock in ns; at the latest, as time that the machine slept is counted by one of
/// the clocks alone. None if there is no such process, or it has ended and is only not forgotten yet.
std::optional<std::int64_t> begin_of_process(std::uint64_t process) {
  std::ifstream file(text("/proc/", process, "/stat"));
  std::string line{std::istreambuf_iterator<char>(file), {}};
  // "12 (a name) S …": the name may have anything in it.
  std::size_t at = line.rfind(')');
  if (at == std::string::npos || at + 2 >= line.size()) return std::nullopt;
  const char state = line[at + 2];
  if (state == 'Z' || state == 'X') return std::nullopt;
  constexpr int fields_between = 20;  // the state is field 3, the beginning field 22
  for (int field = 0; field < fields_between && at != std::string::npos; ++field) at = line.find(' ', at + 1);
  std::int64_t ticks = 0;
  if (at == std::string::npos ||
      std::from_chars(line.data() + at + 1, line.data() + line.size(), ticks).ec != std::errc())
    return std::nullopt;
  timespec since_boot, steady;
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  clock_gettime(CLOCK_MONOTONIC, &steady);
  constexpr std::int64_t second = 1'000'000'000;
  const std::int64_t slept = (since_boot.tv_sec - steady.tv_sec) * second + since_boot.tv_nsec - steady.tv_nsec;
  return ticks * (second / std::max(sysconf(_SC_CLK_TCK), 1L)) - slept;
}

}  // namespace

Recorded read_recording(const std::string& path, Where where) {
  std::string bytes;
  {
    const files::Input file(path, reader, where);
    bytes = bytes_of(file);
  }
  recording_bytes::Head head = recording_bytes::head_of(bytes);
  if (head.ended == 0) {
    const files::Input file(path, reader, where);
    char again[recording::head_bytes] = {};
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), sizeof again));
    file.read(0, again, count, "head");
    if (recording_bytes::head_of({again, count}).ended != 0)
      bytes = bytes_of(file);  // ended meanwhile
    else
      read_text_again(bytes, file, head.chunk_bytes);
  }
  return parse_recording(bytes, path, where);
}

bool is_being_written(const Recorded& recorded) {
  if (recorded.complete || recorded.process == 0 || recorded.began > recording::now()) return false;
  const std::optional<std::int64_t> begin = begin_of_process(recorded.process);
  if (!begin) return false;
  // Another process may have got the number since, or the machine was started anew.
  constexpr std::int64_t inexact = 1'000'000'000;
  return *begin <= static_cast<std::int64_t>(recorded.began) + inexact;
}

}  // namespace stet::reporting
