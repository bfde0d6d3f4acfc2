// Files as the library reads and writes them: whole or not at all. Not a public header.
//
// Input reads a file that somebody else made, and is believed in nothing: every read is checked against the file's
// size, and every error names the file, the byte and the reason. Output writes a file that is complete or does not
// exist: what is there under the name stays until commit() puts the new one in its place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/where.h"

namespace stet::files {

using Bytes = std::vector<std::byte>;

/// What a file is read for: "load_model: 'm.keras': …". Given to readers of formats, so that all of them say it alike.
struct Reading {
  std::string call;  // the function that the user called
  std::string path;  // of the file, perhaps with a part of it: "m.keras/model.weights.h5"
  Where where;

  /// UserError "<call>: '<path>': <reason>, at byte <offset>".
  [[noreturn]] void fail(const std::string& reason, std::uint64_t offset,
                         const std::string& advice = "the file is damaged: fetch or write it again") const;
  /// The same without a place.
  [[noreturn]] void fail(const std::string& reason, const std::string& advice) const;
  /// For a file inside of this one.
  Reading inside(std::string_view name) const { return {call, path + "/" + std::string(name), where}; }
};

/// A file on disk, open for reading. Any number of threads may read.
class Input {
 public:
  /// UserError if there is none, it cannot be read, or is not a regular file (folders, pipes, devices).
  Input(std::string path, std::string call, Where where);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const Reading& reading() const { return reading_; }
  /// When it was opened. A file that is cut off meanwhile is a UserError of read().
  std::uint64_t size() const { return size_; }
  /// UserError if that is not all inside of the file; `what` is to be read: "header".
  void read(std::uint64_t offset, void* to, std::size_t count, const char* what) const;
  /// Memory is taken after the size was checked.
  Bytes read(std::uint64_t offset, std::size_t count, const char* what) const;
  Bytes read_all() const { return read(0, static_cast<std::size_t>(size_), "contents"); }

 private:
  Reading reading_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// Walks over bytes in memory, checked.
class Walk {
 public:
  /// `base`: where the bytes begin in the file, for errors. Both must outlive it.
  Walk(std::span<const std::byte> bytes, const Reading& reading, std::uint64_t base = 0)
      : bytes_(bytes), reading_(reading), base_(base) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  bool at_end() const { return left() == 0; }
  /// UserError if it is outside.
  void go_to(std::uint64_t position, const char* what);
  std::span<const std::byte> take(std::uint64_t count, const char* what);
  std::string_view characters(std::uint64_t count, const char* what);
  /// An integer or a floating number, the lowest byte first.
  template <class T>
  T number(const char* what) {
    T value;
    copy(&value, sizeof value, what);
    return value;
  }
  template <class T>
  T number_highest_first(const char* what) {
    std::byte reversed[sizeof(T)];
    std::span<const std::byte> from = take(sizeof(T), what);
    for (std::size_t i = 0; i < sizeof(T); ++i) reversed[i] = from[sizeof(T) - 1 - i];
    T value;
    __builtin_memcpy(&value, reversed, sizeof value);
    return value;
  }
  /// UserError at the place where it stands.
  [[noreturn]] void fail(const std::string& reason,
                         const std::string& advice = "the file is damaged: fetch or write it again") const {
    reading_.fail(reason, base_ + at_, advice);
  }
  const Reading& reading() const { return reading_; }

 private:
  void copy(void* to, std::size_t count, const char* what);
  std::span<const std::byte> bytes_;
  const Reading& reading_;
  std::uint64_t base_;
  std::size_t at_ = 0;
};

/// A file that is being written, under another name in the same folder until it is complete.
class Output {
 public:
  /// UserError if the folder does not exist or cannot be written to, or something stands there that is no regular
  /// file. A link stays, and what it leads to is written; a new file has the mode of the one that stood there.
  Output(std::string path, std::string call, Where where);
  /// Takes away what was not committed, but not in a child of fork() that has copied this: the file is the parent's.
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// UserError if the disk is full, or fails.
  void write(const void* from, std::size_t count);
  void write(std::span<const std::byte> bytes) { write(bytes.data(), bytes.size()); }
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Over what was written: for heads whose contents are known last. `offset + count` is at most written().
  void write_at(std::uint64_t offset, const void* from, std::size_t count);
  std::uint64_t written() const { return written_; }
  /// What was written stands on the disk under its own name, at once and completely; whatever stood there is gone.
  void commit();

 private:
  [[noreturn]] void fail(const std::string& reason, int error);
  /// UserError in such a child.
  void require_owner() const;
  void flush();
  std::string path_, target_, temporary_, call_;
  Where where_;
  std::uint64_t generation_;  // of the process that writes
  int descriptor_ = -1;
  std::uint64_t written_ = 0;
  Bytes buffer_;  // what was not given to the system yet
};

/// CRC-32C, as TFRecord and our checkpoints have it; goes on from `before`.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
/// The name of an error of the system: "No space left on device".
std::string system_error_text(int error);

}  // namespace stet::files
