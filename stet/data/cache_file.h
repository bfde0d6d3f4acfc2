// The file of Dataset::cache(file). Private to the library.
//
// "stet cache 1\n", the pipeline's fingerprint and description, then one record for each element, then a table of where
// they are, then the number of elements and where the table is. Everything has a checksum. It is written under another
// name beside, and gets its name when it is whole and on the disk: a file that has the name is complete.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stet/base/where.h"
#include "stet/data/element.h"
#include "stet/files/file.h"

namespace stet::data {

/// Whose elements a file holds.
struct CacheIdentity {
  std::uint64_t fingerprint;
  std::string description;
};

class CacheReader {
 public:
  /// Null: there is no such file. UserError, with the file, the offset and what is wrong there, for one that is damaged
  /// or foreign, or holds the elements of another pipeline.
  static std::shared_ptr<const CacheReader> open(const std::string& path, const CacheIdentity& identity, Where where);
  ~CacheReader();
  CacheReader(const CacheReader&) = delete;
  CacheReader& operator=(const CacheReader&) = delete;

  std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  /// Any thread may read.
  void read(std::int64_t number, Tensors& out) const;

 private:
  CacheReader(std::string path, int file, Where where) : path_(std::move(path)), file_(file), where_(where) {}
  void read_bytes(std::uint64_t offset, void* to, std::size_t bytes) const;
  [[noreturn]] void damaged(std::uint64_t offset, const std::string& what) const;

  std::string path_;
  int file_;
  Where where_;
  std::vector<std::uint64_t> offsets_;  // of the records, and of what comes after the last
};

class CacheWriter {
 public:
  /// UserError if the file cannot be made. Without finish(), nothing is left of it.
  CacheWriter(std::string path, const CacheIdentity& identity, Where where);

  void add(const Tensors& element);
  /// The file has its name from here on.
  void finish();

 private:
  files::Output output_;
  Where where_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace stet::data
