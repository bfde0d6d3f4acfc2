// Stream: a file from its begin to its end, through a buffer, decompressed where it is compressed. For formats that may
// be larger than memory. Not a public header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "stet/files/file.h"
#include "stet/runtime/buffer.h"

namespace stet::data {

class Stream {
 public:
  /// detect: gzip by its first bytes.
  enum class Compression : std::uint8_t { none, gzip, zlib, detect };

  /// UserError as files::Input's.
  Stream(std::string path, std::string call, Where where, Compression compression = Compression::detect);
  ~Stream();

  /// What lies ahead in memory, at least one byte; empty at the end only. Good until the next call.
  std::span<const char> window() {
    if (at_ == filled_) fill();
    return {buffer_.data() + at_, filled_ - at_};
  }
  /// Goes on by `count` bytes of the window.
  void skip(std::size_t count) { at_ += count; }
  /// Up to `count` bytes; fewer at the end.
  std::size_t read(void* to, std::size_t count);
  /// UserError "ends in its <what>" if there are fewer.
  void read_all(void* to, std::size_t count, const char* what);
  bool at_end() { return window().empty(); }

  /// How many bytes came so far: of what it decompresses to, if it is compressed.
  std::uint64_t at() const { return before_ + at_; }
  bool compressed() const { return inflating_ != nullptr; }
  /// How many bytes can still come at the most. Deflate makes no more than 1032 of one.
  std::uint64_t most_left() const;
  const files::Input& input() const { return input_; }
  /// UserError; says whether `offset` counts in the file or in what it decompresses to.
  [[noreturn]] void fail(const std::string& reason, std::uint64_t offset,
                         const std::string& advice = "the file is damaged: fetch or write it again") const;

 private:
  struct Inflating;
  void fill();
  std::size_t inflate(char* to, std::size_t count);

  files::Input input_;
  std::unique_ptr<Inflating> inflating_;
  std::uint64_t file_at_ = 0;  // what was taken from the file
  std::vector<char> buffer_;
  std::size_t at_ = 0, filled_ = 0;
  std::uint64_t before_ = 0;  // how many bytes came before the buffer's first
};

/// The most that deflate makes of so many bytes.
inline std::uint64_t deflate_bound(std::uint64_t compressed) { return compressed * 1032 + 1024; }

/// f(), which keeps what is in a file; UserError where there is no memory for that.
template <class F>
decltype(auto) keeping(const files::Reading& reading, F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    reading.fail("there is no memory for what is in it", "free memory, or read it on a larger machine");
  }
}
/// Memory for a tensor of what is in a file; UserError if there is none.
Buffer memory_for_file(const files::Reading& reading, std::uint64_t bytes);

}  // namespace stet::data
