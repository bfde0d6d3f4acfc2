// Checkpoints as files: one file each, complete or not there, every byte of it under a checksum; and the folder that
// holds the last ones. Not a public header.
//
//   8 bytes   "stetckpt"
//   4         version, 1                                          (numbers: the lowest byte first)
//   4         CRC-32C of the 12 bytes before, and of all from byte 16 to the end of the head
//   8         bytes of the head
//   …         the head, JSON: {"parts": [{"name", "dtype", "shape", "at", "bytes", "crc32c"}, …], "state": …}
//   …         the parts in their order, each at the next multiple of 64; between them zeros. The last one ends the file
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/core/tensor.h"
#include "stet/files/file.h"
#include "stet/files/json.h"

namespace stet::keras {

/// What a checkpoint holds: a value of JSON, and tensors that it speaks of by their numbers.
struct CheckpointContents {
  struct Part {
    std::string name;
    Tensor value;
  };
  files::Json state;
  std::vector<Part> parts;

  /// Its number.
  std::int64_t add(std::string name, Tensor value) {
    parts.push_back({std::move(name), std::move(value)});
    return static_cast<std::int64_t>(parts.size()) - 1;
  }
};

/// Reads values out of a head, each of the kind that it must be: another one is a UserError of the file.
class HeadReader {
 public:
  /// It must outlive this.
  explicit HeadReader(const files::Reading& reading) : reading_(reading) {}

  const files::Json& member(const files::Json& object, std::string_view name) const;
  const files::Json::List& list(const files::Json& value) const;
  const files::Json::Object& object(const files::Json& value) const;
  const std::string& string(const files::Json& value) const;
  bool boolean(const files::Json& value) const;
  std::uint64_t count(const files::Json& value) const;
  double real(const files::Json& value) const;
  DType dtype(const files::Json& value) const;
  /// The part that a value is the number of.
  const CheckpointContents::Part& part(const files::Json& value, const CheckpointContents& contents) const;
  [[noreturn]] void fail(const std::string& reason) const;
  const files::Reading& reading() const { return reading_; }

 private:
  const files::Reading& reading_;
};

/// UserError where it cannot be written; then what stood there is as it was.
void write_checkpoint(const std::string& path, const CheckpointContents& contents, const std::string& call,
                      Where where);
/// UserError with the byte for whatever is not such a file, to the last bit.
CheckpointContents read_checkpoint(const std::string& path, const std::string& call, Where where);

/// The checkpoints of a folder: "ckpt-1", "ckpt-2", …
class CheckpointFolder {
 public:
  /// `call` is what errors begin with: "BackupAndRestore".
  CheckpointFolder(std::string path, std::string call) : path_(std::move(path)), call_(std::move(call)) {}

  const std::string& path() const { return path_; }
  std::string file(std::uint64_t number) const;
  /// Those that are there, in order. None if there is no such folder; UserError if it cannot be read.
  std::vector<std::uint64_t> numbers(Where where) const;

  struct Found {
    std::uint64_t number = 0;
    std::string path;
    CheckpointContents contents;
  };
  /// The newest one that is whole; what is skipped is told on stderr, with the reason. Nothing if there are none;
  /// UserError if there are some, and none of them is whole.
  std::optional<Found> newest(Where where);
  /// Writes the next one, then takes away all but the last `keep`. Gives its path. Makes the folder.
  std::string write(const CheckpointContents& contents, std::size_t keep, Where where);
  /// Takes away all of them, and the folder if nothing else is in it.
  void clear(Where where);

 private:
  void make_folder(Where where) const;
  /// What processes that were killed while they wrote have left.
  void remove_leftovers() const;

  std::string path_, call_;
  std::set<std::uint64_t> damaged_;  // that newest() has skipped
  bool tidied_ = false;
};

}  // namespace stet::keras
