// The file that a recording is (runtime/recording.h), as it lies on the disk, in memory, and in a program that was
// killed.
//
// A head of head_bytes, then chunks of chunk_bytes. A chunk is all spans or all text. Chunks of spans are written in
// any order, and when there are no more, the oldest is written again: its number tells which is newer. Text is one
// stream, cut into chunks: put together in the order of their numbers they are entries, TextHead and so many bytes
// each. An entry may lie across chunks. Whoever reads believes nothing: a file may be cut, and be written while it is
// read.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace stet::recording {

inline constexpr char magic[8] = {'s', 't', 'e', 't', 'r', 'e', 'c', '\n'};
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::size_t head_bytes = 4096, chunk_bytes = 64 * 1024;

struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t chunk_bytes;
  std::uint64_t began;     // of the steady clock that spans have, in ns
  std::uint64_t began_at;  // the same moment since 1970, in ns
  std::uint64_t process;
  std::atomic<std::uint64_t> ended;       // of the steady clock; 0 while it is written, and for ever if that was killed
  std::atomic<std::uint64_t> lost;        // spans that there was no room for
  std::atomic<std::uint64_t> lost_text;   // names and notes likewise
  std::atomic<std::uint64_t> chunks;      // that were begun
  std::atomic<std::uint64_t> lost_until;  // of the steady clock: none of those that are lost ended later
};
static_assert(sizeof(Head) <= head_bytes);

enum class Content : std::uint32_t { spans = 1, text = 2 };

struct ChunkHead {
  std::atomic<std::uint64_t> number;  // from 1; 0: none, or it is being begun again
  Content content;
  std::atomic<std::uint32_t> used;  // bytes behind this head
};
static_assert(sizeof(ChunkHead) == 16);

struct SpanRecord {
  enum Type : std::uint8_t { span = 1, counter = 2 };
  std::uint8_t type;
  std::uint8_t kind;
  std::uint16_t thread;
  std::uint32_t name;
  std::uint64_t begin;
  std::uint64_t duration;  // of a counter the bits of its value, a double
  double bytes, flops;     // 0: not known
};
static_assert(sizeof(SpanRecord) == 40);
inline constexpr std::size_t spans_in_chunk = (chunk_bytes - sizeof(ChunkHead)) / sizeof(SpanRecord);

struct TextHead {
  enum Kind : std::uint32_t { name = 1, note = 2 };
  std::uint32_t kind;
  std::uint32_t length;  // of what follows; of a name: its number (4 bytes) and its characters; of a note: JSON
};

}  // namespace stet::recording
