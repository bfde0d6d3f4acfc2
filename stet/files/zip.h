// ZIP archives: what .keras and .npz files are. Not a public header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stet/files/file.h"
#include "stet/files/source.h"

namespace stet::files {

/// What an archive may grow to when all its entries are unpacked: `floor` bytes, or `ratio` times its own size.
struct ZipLimits {
  std::uint64_t floor = std::uint64_t{4} << 30;
  std::uint64_t ratio = 100;
};

struct ZipEntry {
  std::string name;               // UTF-8, relative, without "..", "." and empty parts; folders have no '/' at the end
  std::uint64_t size = 0;         // unpacked
  std::uint64_t offset = 0;       // of its bytes in the archive
  std::uint64_t stored_size = 0;  // there
  std::uint32_t checksum = 0;
  bool stored = true;  // as it is; otherwise deflated
  bool folder = false;
};

/// The archive is refused as a whole, with a UserError, if anything in it is not as it should be: names that are
/// absolute, lead outside or come twice, entries that overlap or lie outside of the file, sizes that their bytes cannot
/// unpack to, encryption, links, methods other than stored and deflated, a local header that says other things than the
/// directory, more than the limits allow.
class ZipReader {
 public:
  explicit ZipReader(Source source, ZipLimits limits = {});

  const Reading& reading() const { return source_.reading(); }
  /// In the order of the directory.
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Null if there is none.
  const ZipEntry* find(std::string_view name) const;

  /// Unpacked. UserError if the checksum is wrong. Memory grows as data comes.
  Bytes read(const ZipEntry& entry) const;
  /// To be read at random: a stored entry where it stands, a deflated one from memory. The checksum is compared now.
  Source open(const ZipEntry& entry) const;

 private:
  void read_directory(std::uint64_t offset, std::uint64_t size, std::uint64_t count);
  void check_local(ZipEntry& entry, std::uint64_t header, unsigned flags);
  void check_overlaps(std::uint64_t directory);
  Source source_;
  ZipLimits limits_;
  std::vector<ZipEntry> entries_;
  std::vector<std::uint64_t> headers_;  // where the local header of each entry is
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

/// Writes entries as they are (stored), which is what Keras and NumPy write. Times are 1980-01-01: the same contents
/// are the same bytes.
class ZipWriter {
 public:
  /// `output` must outlive it. The archive begins where the output stands, which is its begin.
  explicit ZipWriter(Output& output);

  /// InternalError for names that a reader would refuse.
  void add(std::string_view name, std::span<const std::byte> contents);
  void add(std::string_view name, std::string_view contents) { add(name, std::as_bytes(std::span(contents))); }
  /// An entry that comes in parts: begin(), any number of write(), end(). `size` is of all parts together.
  void begin(std::string_view name, std::uint64_t size);
  void write(std::span<const std::byte> part);
  void end();
  /// Writes the directory. The output is not committed.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t header, size;
    std::uint32_t checksum;
  };
  void begin(std::string_view name, std::uint64_t size, std::uint32_t checksum);
  Output& output_;
  std::vector<Entry> entries_;
  std::set<std::string, std::less<>> names_;
  bool open_ = false;
  std::uint32_t written_checksum_ = 0;  // of the open entry, in its header
  std::uint64_t left_ = 0;              // of the open entry
};

}  // namespace stet::files
