#include "stet/files/file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/files/utf8.h"

namespace stet::files {

std::string system_error_text(int error) {
  char room[256];
  return strerror_r(error, room, sizeof room);
}

void Reading::fail(const std::string& reason, std::uint64_t offset, const std::string& advice) const {
  throw UserError(error_text(text(call, ": '", shown_name(path), "': ", reason, ", at byte ", offset), where, advice));
}

void Reading::fail(const std::string& reason, const std::string& advice) const {
  throw UserError(error_text(text(call, ": '", shown_name(path), "': ", reason), where, advice));
}

// --- reading

namespace {

/// The system would end the name at a zero byte, and so would the text of an error.
void check_path(const std::string& path, const std::string& call, Where where) {
  const char* wrong = path.empty() ? "the path is empty" : "a zero byte is in the path";
  if (path.empty() || path.find('\0') != std::string::npos)
    throw UserError(error_text(text(call, ": ", quoted_name(path), ": ", wrong), where, "check the path"));
}

}  // namespace

Input::Input(std::string path, std::string call, Where where) : reading_{std::move(call), std::move(path), where} {
  check_path(reading_.path, reading_.call, where);
  // Not to wait for the other end of a pipe.
  descriptor_ = ::open(reading_.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) reading_.fail(text("cannot be opened: ", system_error_text(errno)), "check the path");
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    reading_.fail(S_ISDIR(status.st_mode) ? "is a folder" : "is not a regular file", "give the path of a file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

Input::~Input() { ::close(descriptor_); }

void Input::read(std::uint64_t offset, void* to, std::size_t count, const char* what) const {
  if (offset > size_ || count > size_ - offset) reading_.fail(text("ends in its ", what), size_);
  std::size_t done = 0;
  while (done < count) {
    ssize_t got = ::pread(descriptor_, static_cast<char*>(to) + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) reading_.fail(text("cannot be read: ", system_error_text(errno)), offset + done, "check the disk");
    if (got == 0) reading_.fail("became shorter while it was read", offset + done, "read it when nobody writes to it");
    done += static_cast<std::size_t>(got);
  }
}

Bytes Input::read(std::uint64_t offset, std::size_t count, const char* what) const {
  if (offset > size_ || count > size_ - offset) reading_.fail(text("ends in its ", what), size_);
  Bytes bytes;
  try {
    bytes.resize(count);
  } catch (const std::bad_alloc&) {
    reading_.fail(text("no memory for ", count, " bytes of its ", what), offset, "read it on a larger machine");
  }
  read(offset, bytes.data(), count, what);
  return bytes;
}

void Walk::go_to(std::uint64_t position, const char* what) {
  if (position > bytes_.size()) fail(text("its ", what, " would be at byte ", base_ + position, ", behind its end"));
  at_ = static_cast<std::size_t>(position);
}

std::span<const std::byte> Walk::take(std::uint64_t count, const char* what) {
  if (count > left()) fail(text("ends in its ", what, ", of which ", count - left(), " bytes are missing"));
  std::span<const std::byte> taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
  at_ += static_cast<std::size_t>(count);
  return taken;
}

std::string_view Walk::characters(std::uint64_t count, const char* what) {
  std::span<const std::byte> taken = take(count, what);
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

void Walk::copy(void* to, std::size_t count, const char* what) {
  std::span<const std::byte> taken = take(count, what);
  std::memcpy(to, taken.data(), count);
}

// --- writing

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 18;

std::string folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Where a link leads to, also if there is nothing yet; the path itself if it is none. `error` is set for a circle.
std::string without_links(std::string path, int& error) {
  for (int links = 0;; ++links) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
    char room[PATH_MAX];
    const ssize_t length = ::readlink(path.c_str(), room, sizeof room);
    constexpr int most_links = 40;  // as the system has it
    if (length < 0 || links == most_links) {
      error = length < 0 ? errno : ELOOP;
      return path;
    }
    const std::string to(room, static_cast<std::size_t>(length));
    path = to[0] == '/' ? to : folder_of(path) + "/" + to;
  }
}

/// The name of the file until it is complete. A name that leaves no room for what is put behind it is cut.
std::string temporary_name(const std::string& target, unsigned number) {
  const std::string ending = text(".", ::getpid(), "-", number, ".part");
  const std::size_t slash = target.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
  return target.substr(0, begin + std::min(target.size() - begin, NAME_MAX - ending.size())) + ending;
}

}  // namespace

Output::Output(std::string path, std::string call, Where where)
    : path_(std::move(path)), call_(std::move(call)), where_(where), generation_(fork_generation()) {
  static std::atomic<unsigned> number{0};
  auto refuse = [&](const std::string& reason, const std::string& advice) {
    throw UserError(error_text(text(call_, ": '", shown_name(path_), "': ", reason), where_, advice));
  };
  check_path(path_, call_, where_);
  // Written to is what a link leads to: the link stays.
  int circle = 0;
  target_ = without_links(path_, circle);
  if (circle != 0) refuse(text("cannot be written: ", system_error_text(circle)), "give the path of a file");
  struct stat status {};
  const bool stands = ::stat(target_.c_str(), &status) == 0;
  // Seen now, and not when all is written: the name until then may be shorter.
  if (!stands && errno == ENAMETOOLONG)
    refuse(text("cannot be written: ", system_error_text(errno)), "take a shorter name");
  // Renaming would put a file in the place of a device.
  if (stands && !S_ISREG(status.st_mode))
    refuse(S_ISDIR(status.st_mode) ? "is a folder" : "is not a regular file", "give the path of a file");
  // A name may be taken by what a process of the same number left when it was killed.
  do {
    temporary_ = temporary_name(target_, number.fetch_add(1, std::memory_order_relaxed));
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0)
    refuse(text("cannot be written: ", system_error_text(errno)), "the folder must exist, and be yours to write to");
  // Who may read what stood there may read this, and nobody else. Some file systems have no modes.
  if (stands) (void)::fchmod(descriptor_, status.st_mode & 0777);
}

Output::~Output() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (generation_ == fork_generation()) ::unlink(temporary_.c_str());
}

void Output::require_owner() const {
  if (generation_ != fork_generation())
    throw UserError(
        error_text(text(call_, ": '", shown_name(path_), "': was begun before fork(), and is the parent's to write"),
                   where_, "begin anew in the child, with another file"));
}

void Output::fail(const std::string& reason, int error) {
  throw UserError(error_text(text(call_, ": '", shown_name(path_), "': ", reason, ": ", system_error_text(error)),
                             where_, "what stood there before is as it was; make room, or write to another disk"));
}

void Output::write_at(std::uint64_t offset, const void* from, std::size_t count) {
  require_owner();
  flush();
  std::size_t done = 0;
  while (done < count) {
    ssize_t put =
        ::pwrite(descriptor_, static_cast<const char*>(from) + done, count - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail("cannot be written", put == 0 ? EIO : errno);
    done += static_cast<std::size_t>(put);
  }
}

void Output::flush() {
  Bytes bytes = std::exchange(buffer_, {});
  if (!bytes.empty()) write_at(written_ - bytes.size(), bytes.data(), bytes.size());
  bytes.clear();
  buffer_ = std::move(bytes);  // its memory serves on
}

void Output::write(const void* from, std::size_t count) {
  require_owner();
  if (count >= buffer_bytes) {
    write_at(written_, from, count);
    written_ += count;
    return;
  }
  const auto* bytes = static_cast<const std::byte*>(from);
  buffer_.insert(buffer_.end(), bytes, bytes + count);
  written_ += count;
  if (buffer_.size() >= buffer_bytes) flush();
}

void Output::commit() {
  require_owner();
  flush();
  if (::fsync(descriptor_) != 0) fail("cannot be written", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) {
    int error = errno;
    ::unlink(temporary_.c_str());
    fail("cannot be written", error);
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    int error = errno;
    ::unlink(temporary_.c_str());
    fail("cannot be put in place", error);
  }
  // The name is on the disk when its folder is. Some file systems cannot sync folders: nothing is lost by that here.
  int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

// --- checksums

namespace {

constexpr std::uint32_t castagnoli = 0x82F63B78;

/// Eight tables: the first is of single bytes, table k of bytes that k zero bytes follow.
constexpr std::array<std::array<std::uint32_t, 256>, 8> make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (sum & 1 ? castagnoli : 0);
    tables[0][byte] = sum;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 255];
  return tables;
}
constexpr auto tables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t sum = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint32_t low, high;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + 4, 4);
    low ^= sum;
    sum = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^
          tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^ tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
  }
  for (; left > 0; ++at, --left) sum = (sum >> 8) ^ tables[0][(sum ^ std::to_integer<std::uint32_t>(*at)) & 255];
  return ~sum;
}

}  // namespace stet::files
