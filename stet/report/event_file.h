// EventFile: the file that TensorBoard reads while it grows. Not a public header.
#pragma once
#include <cstdint>
#include <string>

#include "stet/base/lock.h"
#include "stet/base/where.h"

namespace stet::reporting {

/// Every event goes to the system at once and as a whole: what was written is there for readers, and stays there when
/// the process is killed. Several threads may write.
class EventFile {
 public:
  /// In a folder that is made if it does not exist. `call` is named in errors; UserError if it cannot be written.
  EventFile(const std::string& folder, std::string call, Where where);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// Appends an event, as bytes. UserError if the disk is full, or the file is closed: the file ends with the last
  /// event that was written before.
  void write(const std::string& event, Where where);
  /// What was written stands on the disk.
  void flush(Where where);
  void close(Where where);
  bool closed() const;
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const std::string& reason, const std::string& advice, Where where) const;
  void require_open(Where where) const;

  const std::string call_;
  std::string path_;
  const std::uint64_t generation_;  // of the process that writes
  mutable Lock guard_;              // of what follows
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;  // of the file so far
};

}  // namespace stet::reporting
