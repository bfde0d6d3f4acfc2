#include "stet/report/event_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <system_error>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/data/record_frame.h"
#include "stet/files/file.h"
#include "stet/files/utf8.h"

namespace stet::reporting {
namespace {

/// TensorBoard takes files whose names have "tfevents" in them, and reads those of a folder in the order of their
/// names: by the second, then by process and number.
std::string file_name() {
  static std::atomic<unsigned> number{0};
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::snprintf(host, sizeof host, "localhost");
  std::replace(std::begin(host), std::end(host), '/', '_');
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  char seconds[24];
  std::snprintf(seconds, sizeof seconds, "%010lld",
                static_cast<long long>(std::chrono::duration_cast<std::chrono::seconds>(now).count()));
  return text("events.out.tfevents.", seconds, ".", host, ".", ::getpid(), ".", number.fetch_add(1), ".v2");
}

}  // namespace

EventFile::EventFile(const std::string& folder, std::string call, Where where)
    : call_(std::move(call)), path_(folder), generation_(fork_generation()) {
  if (folder.empty() || folder.find('\0') != std::string::npos)
    fail(folder.empty() ? "the path of the folder is empty" : "a zero byte is in the path", "check the path", where);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed || !std::filesystem::is_directory(folder, failed))
    fail(failed ? text("the folder cannot be made: ", failed.message()) : std::string("is no folder"),
         "give a folder that you may write to, or that can be made", where);
  do {
    path_ = text(folder, folder.back() == '/' ? "" : "/", file_name());
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0)
    fail(text("cannot be written: ", files::system_error_text(errno)), "the folder must be yours to write to", where);
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void EventFile::fail(const std::string& reason, const std::string& advice, Where where) const {
  throw UserError(error_text(text(call_, ": '", files::shown_name(path_), "': ", reason), where, advice));
}

void EventFile::require_open(Where where) const {
  if (descriptor_ < 0) fail("is closed", "write all before close(), or make another writer", where);
  if (generation_ != fork_generation())
    fail("was begun before fork(), and is the parent's to write", "make a writer in the child", where);
}

void EventFile::write(const std::string& event, Where where) {
  const data::RecordFrame frame(event);
  std::lock_guard lock(guard_);
  require_open(where);
  iovec parts[] = {{const_cast<char*>(frame.head.data()), frame.head.size()},
                   {const_cast<char*>(event.data()), event.size()},
                   {const_cast<char*>(frame.foot.data()), frame.foot.size()}};
  iovec* next = parts;
  int left = 3;
  std::uint64_t done = 0;
  while (left > 0) {
    const ssize_t put = ::writev(descriptor_, next, left);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int error = put == 0 ? EIO : errno;
      // Readers would take half an event for one that is still to come, and everything after it for damage.
      const bool whole = done == 0 || ::ftruncate(descriptor_, static_cast<off_t>(bytes_)) == 0;
      if (!whole) ::close(std::exchange(descriptor_, -1));
      fail(text("cannot be written: ", files::system_error_text(error)),
           whole ? "what was written before is there; make room, or write to another disk"
                 : "the file ends in half an event, and was closed; make room, or write to another disk",
           where);
    }
    done += static_cast<std::uint64_t>(put);
    auto taken = static_cast<std::size_t>(put);
    while (left > 0 && taken >= next->iov_len) {
      taken -= next->iov_len;
      ++next;
      --left;
    }
    if (left > 0) *next = {static_cast<char*>(next->iov_base) + taken, next->iov_len - taken};
  }
  bytes_ += done;
}

void EventFile::flush(Where where) {
  std::lock_guard lock(guard_);
  require_open(where);
  // A file system that cannot sync loses nothing by that here.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS)
    fail(text("cannot be written: ", files::system_error_text(errno)), "check the disk", where);
}

void EventFile::close(Where where) {
  std::lock_guard lock(guard_);
  if (descriptor_ < 0) return;
  if (::close(std::exchange(descriptor_, -1)) != 0)
    fail(text("cannot be written: ", files::system_error_text(errno)), "check the disk", where);
}

bool EventFile::closed() const {
  std::lock_guard lock(guard_);
  return descriptor_ < 0;
}

}  // namespace stet::reporting
