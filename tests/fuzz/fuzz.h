// stet_fuzz_files: readers of files against files that were changed at random. A format is one .cpp in this folder:
//
//   const FuzzFormat format({.name = "zip",
//                            .seeds = [] { return std::vector<std::string>{…whole good files…}; },
//                            .load = [](const FuzzFile& file) { …read file.path() or file.bytes()… }});
//
// load() reads all that there is to read. It must return, or throw UserError with the name of the file in it; in time,
// and without more memory than the file justifies. Anything else fails, and is printed with what repeats it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stet::fuzz {

/// The same numbers for the same seed on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// 0 to count - 1.
  std::size_t below(std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(next() % count); }
  bool one_in(std::size_t count) { return below(count) == 0; }

 private:
  std::uint64_t state_;
};

/// A changed file: in memory, and on the disk for those who ask for its path.
class FuzzFile {
 public:
  FuzzFile(std::string bytes, std::string path) : bytes_(std::move(bytes)), path_(std::move(path)) {}
  ~FuzzFile();
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;

  const std::string& bytes() const { return bytes_; }
  /// The name that must stand in errors.
  const std::string& name() const { return path_; }
  /// The same, and there is such a file.
  const std::string& path() const;

 private:
  std::string bytes_, path_;
  mutable bool written_ = false;
};

struct FuzzOptions {
  std::string name;         // --format
  std::string ending = {};  // of the path, where readers look at it: ".png"
  std::function<std::vector<std::string>()> seeds;
  std::function<void(const FuzzFile&)> load;
  /// Makes what was changed agree again (checksums, lengths), so that readers look behind it. Tried on three files of
  /// four.
  std::function<void(std::string& bytes, Random& random)> mend = {};
  /// What a load may have in memory at once: so many bytes, and so many for every byte of the file.
  std::size_t memory = std::size_t{4} << 20, memory_per_byte = 64;
  double seconds = 10;  // of the processor
};

/// Made once, at the start of the program, by every format.
class FuzzFormat {
 public:
  explicit FuzzFormat(FuzzOptions options);
};

/// A file that is stored with the tests; the program runs in the root of the sources.
std::string stored_file(const std::string& path);

}  // namespace stet::fuzz
