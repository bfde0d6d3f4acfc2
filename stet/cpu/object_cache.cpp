#include "stet/cpu/object_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "stet/base/text.h"
#include "stet/runtime/log.h"

namespace stet::cpu {
namespace {

constexpr std::uint64_t magic = 0x316a626f74657473;  // "stetobj1"
constexpr std::int64_t largest_file = 64 << 20;
constexpr std::time_t abandoned_seconds = 3600;
constexpr std::string_view unfinished_prefix = "tmp-";

struct FileHeader {
  std::uint64_t magic_number;
  std::uint64_t key_bytes;
  std::uint64_t object_bytes;
  std::uint64_t checksum;  // of the sizes, the key and the object
};

/// Every step is a bijection of the word taken in, so that no change of a single word goes unnoticed.
std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  state = (state ^ word) * 0x9e3779b97f4a7c15;
  return state ^ (state >> 32);
}

std::uint64_t hash_bytes(std::uint64_t state, std::string_view bytes) {
  while (bytes.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    state = mix(state, word);
    bytes.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  return mix(mix(state, rest), bytes.size());
}

std::uint64_t checksum(std::string_view key, std::string_view object) {
  return hash_bytes(hash_bytes(mix(mix(1, key.size()), object.size()), key), object);
}

std::string file_name(std::string_view key) {
  char name[48];
  std::snprintf(name, sizeof name, "%016llx%016llx.o", static_cast<unsigned long long>(hash_bytes(2, key)),
                static_cast<unsigned long long>(hash_bytes(0x5851f42d4c957f2d, key)));
  return name;
}

/// The system's first error, 0 if there is none. What cannot be made cannot be opened: that is looked at.
int make_folders(const std::string& folder) {
  int error = 0;
  for (std::size_t slash = folder.find('/', 1);; slash = folder.find('/', slash + 1)) {
    if (::mkdir(folder.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST && error == 0) error = errno;
    if (slash == std::string::npos) return error;
  }
}

bool read_all(int file, char* to, std::size_t bytes) {
  while (bytes > 0) {
    ssize_t got = ::read(file, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t put = ::write(file, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

/// What an open file holds. `key` and `object` are views of `bytes`.
struct Contents {
  std::vector<char> bytes;
  std::string_view key, object;
  const char* damage = nullptr;  // why nothing of it is to be believed
};

Contents damaged(const char* reason) {
  Contents out;
  out.damage = reason;
  return out;
}

Contents read_file(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return damaged("it is no regular file");
  if (status.st_uid != ::geteuid()) return damaged("it belongs to another user");
  if (status.st_size < static_cast<off_t>(sizeof(FileHeader))) return damaged("it is shorter than its head");
  if (status.st_size > largest_file) return damaged("it is larger than any that stet writes");
  Contents out;
  out.bytes.resize(static_cast<std::size_t>(status.st_size));
  if (!read_all(file, out.bytes.data(), out.bytes.size())) return damaged("it cannot be read");
  FileHeader header;
  std::memcpy(&header, out.bytes.data(), sizeof header);
  std::size_t rest = out.bytes.size() - sizeof header;
  if (header.magic_number != magic) return damaged("it does not begin as such files do");
  if (header.key_bytes > rest || header.object_bytes != rest - header.key_bytes)
    return damaged("it does not have the length that its head says");
  out.key = {out.bytes.data() + sizeof header, header.key_bytes};
  out.object = {out.key.data() + out.key.size(), header.object_bytes};
  if (checksum(out.key, out.object) != header.checksum) return damaged("its checksum is another");
  return out;
}

/// The key that a file begins with, unchecked: for people.
std::string read_key(int file) {
  constexpr std::uint64_t longest = 1 << 20;
  FileHeader header;
  if (!read_all(file, reinterpret_cast<char*>(&header), sizeof header)) return {};
  if (header.magic_number != magic || header.key_bytes > longest) return {};
  std::string key(header.key_bytes, '\0');
  return read_all(file, key.data(), key.size()) ? key : std::string();
}

/// So that what is used stays longest. Within an hour, for a use to cost no write.
void note_use(int file) {
  constexpr std::time_t exact_enough = 3600;
  struct stat status {};
  if (::fstat(file, &status) == 0 && std::time(nullptr) - status.st_mtime > exact_enough) ::futimens(file, nullptr);
}

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr int file_flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

CacheFolder judged(const std::string& folder, const struct stat& status) {
  using enum CacheFolder::State;
  if (!S_ISDIR(status.st_mode))
    return {unusable, "it is no folder", "set STET_CACHE_DIR to a folder of yours, or to nothing to do without"};
  if (status.st_uid != ::geteuid())
    return {unusable, "it belongs to another user",
            "set STET_CACHE_DIR to a folder of yours, or to nothing to do without"};
  if ((status.st_mode & 077) != 0) return {unusable, "others may enter it", "chmod 700 " + folder};
  return {usable, {}, {}};
}

/// Said once in a process, because without the cache every start compiles everything again.
void tell_unused(const std::string& folder, const CacheFolder& found) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  warn("cache",
       text("stet: the object cache ", folder, " is not used: ", found.why,
            "\n  why             code found there is run, so the folder must be yours alone\n  fix             ",
            found.fix, "\n"));
}

}  // namespace

CacheFolder look_at_cache_folder(const std::string& folder) {
  using enum CacheFolder::State;
  if (folder.empty()) return {off, {}, {}};
  const char* elsewhere = "set STET_CACHE_DIR to a folder of yours, or to nothing to do without";
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT) return {missing, {}, {}};
    return {unusable, std::string("it cannot be looked at: ") + std::strerror(errno), elsewhere};
  }
  CacheFolder found = judged(folder, status);
  if (found.state != usable) return found;
  int opened = ::open(folder.c_str(), folder_flags);
  if (opened < 0) return {unusable, std::string("it cannot be opened: ") + std::strerror(errno), "chmod 700 " + folder};
  ::close(opened);
  return found;
}

std::string why_not_writable(const std::string& folder) {
  auto because = [](const char* what, int error) { return text(what, ": ", std::strerror(error)); };
  int opened = ::open(folder.c_str(), folder_flags);
  if (opened < 0 && errno == ENOENT) {
    if (int error = make_folders(folder)) return because("it cannot be made", error);
    opened = ::open(folder.c_str(), folder_flags);
  }
  if (opened < 0) return because("it cannot be opened", errno);
  const std::string name = text(unfinished_prefix, ::getpid(), "-probe");
  const std::string contents(4096, '\0');  // a disk that is full takes empty files
  std::string out;
  int file = ::openat(opened, name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) {
    out = because("no file can be made there", errno);
  } else {
    errno = ENOSPC;  // write() may take a part and say nothing
    bool written = write_all(file, contents);
    int error = errno;
    if (::close(file) != 0 && written) {
      written = false;
      error = errno;
    }
    if (!written) out = because("nothing can be written there", error);
    ::unlinkat(opened, name.c_str(), 0);
  }
  ::close(opened);
  return out;
}

ObjectCache::ObjectCache(const std::string& folder, std::int64_t most_bytes) : most_bytes_(most_bytes) {
  if (folder.empty()) return;
  descriptor_ = ::open(folder.c_str(), folder_flags);
  if (descriptor_ < 0 && errno == ENOENT) {
    make_folders(folder);
    descriptor_ = ::open(folder.c_str(), folder_flags);
  }
  if (descriptor_ < 0) return;
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0) {
    CacheFolder found = judged(folder, status);
    if (found.state == CacheFolder::State::usable) {
      folder_ = folder;
      return;
    }
    tell_unused(folder, found);
  }
  ::close(descriptor_);
  descriptor_ = -1;
}

ObjectCache::~ObjectCache() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<std::vector<char>> ObjectCache::find(std::string_view key, bool& rejected) const {
  rejected = false;
  if (descriptor_ < 0) return std::nullopt;
  std::string name = file_name(key);
  int file = ::openat(descriptor_, name.c_str(), file_flags);
  if (file < 0) return std::nullopt;
  Contents contents = read_file(file);
  if (!contents.damage && contents.key == key) note_use(file);
  ::close(file);
  if (contents.damage) {
    rejected = true;
    ::unlinkat(descriptor_, name.c_str(), 0);
    return std::nullopt;
  }
  if (contents.key != key) return std::nullopt;
  std::vector<char>& bytes = contents.bytes;
  bytes.erase(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(contents.object.size()));
  return std::move(bytes);
}

void ObjectCache::remove(std::string_view key) const {
  if (descriptor_ >= 0) ::unlinkat(descriptor_, file_name(key).c_str(), 0);
}

void ObjectCache::store(std::string_view key, std::string_view object) const {
  if (descriptor_ < 0) return;
  static std::atomic<unsigned> counter{0};
  std::string name = file_name(key);
  std::string temporary = text(unfinished_prefix, ::getpid(), "-", counter.fetch_add(1), "-", name);
  int file = ::openat(descriptor_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  FileHeader header{magic, key.size(), object.size(), checksum(key, object)};
  bool written = write_all(file, {reinterpret_cast<const char*>(&header), sizeof header}) && write_all(file, key) &&
                 write_all(file, object);
  written = (::close(file) == 0) && written;
  if (!written || ::renameat(descriptor_, temporary.c_str(), descriptor_, name.c_str()) != 0) {
    ::unlinkat(descriptor_, temporary.c_str(), 0);
    return;
  }
  // One name in 64: looking through the folder costs milliseconds when it is full, and a bound need not be sharp.
  if (name.compare(0, 1, "0") == 0 && name[1] < '4') trim();
}

namespace {

bool is_unfinished(std::string_view name) { return name.starts_with(unfinished_prefix); }

/// Calls see(name, status) for every file of a cache in the open folder.
template <class See>
void for_each_file(int descriptor, const See& see) {
  int copy = ::openat(descriptor, ".", folder_flags);
  if (copy < 0) return;
  DIR* folder = ::fdopendir(copy);
  if (!folder) {
    ::close(copy);
    return;
  }
  while (dirent* entry = ::readdir(folder)) {
    struct stat status {};
    if (::fstatat(descriptor, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    std::string_view name = entry->d_name;
    if (is_unfinished(name) || name.ends_with(".o")) see(name, status);
  }
  ::closedir(folder);
}

/// As find() opens it.
class OpenFile {
 public:
  OpenFile(int folder, const std::string& name) : descriptor_(::openat(folder, name.c_str(), file_flags)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

void ObjectCache::trim() const {
  if (descriptor_ < 0) return;
  struct Found {
    std::time_t used;
    std::int64_t bytes;
    std::string name;
  };
  std::vector<Found> files;
  std::int64_t total = 0;
  std::time_t now = std::time(nullptr);
  for_each_file(descriptor_, [&](std::string_view name, const struct stat& status) {
    if (!is_unfinished(name)) {
      files.push_back({status.st_mtime, status.st_size, std::string(name)});
      total += status.st_size;
    } else if (now - status.st_mtime > abandoned_seconds) {
      ::unlinkat(descriptor_, std::string(name).c_str(), 0);
    }
  });
  if (total <= most_bytes_) return;
  std::sort(files.begin(), files.end(), [](const Found& a, const Found& b) { return a.used < b.used; });
  for (const Found& file : files) {
    if (total <= most_bytes_ / 4 * 3) return;
    if (::unlinkat(descriptor_, file.name.c_str(), 0) == 0) total -= file.bytes;
  }
}

std::vector<CachedFile> ObjectCache::files() const {
  std::vector<CachedFile> out;
  if (descriptor_ < 0) return out;
  for_each_file(descriptor_, [&](std::string_view name, const struct stat& status) {
    CachedFile& file = out.emplace_back();
    file.name = name;
    file.bytes = status.st_size;
    file.last_used = status.st_mtime;
    file.unfinished = is_unfinished(name);
    if (file.unfinished) return;
    OpenFile opened(descriptor_, file.name);
    if (opened.descriptor() >= 0) file.key = read_key(opened.descriptor());
  });
  std::sort(out.begin(), out.end(), [](const CachedFile& a, const CachedFile& b) {
    return a.last_used != b.last_used ? a.last_used > b.last_used : a.name < b.name;
  });
  return out;
}

VerifiedFiles ObjectCache::verify(
    const std::function<std::string(std::string_view key, std::string_view object)>& check) const {
  VerifiedFiles out;
  for (const CachedFile& file : files()) {
    if (file.unfinished) continue;
    OpenFile opened(descriptor_, file.name);
    if (opened.descriptor() < 0 && errno == ENOENT) continue;  // removed, or replaced, meanwhile
    Contents contents = opened.descriptor() < 0 ? damaged("it cannot be opened") : read_file(opened.descriptor());
    std::string reason;
    if (contents.damage)
      reason = contents.damage;
    else if (file_name(contents.key) != file.name)
      reason = "its name is not that of its key";
    else
      reason = check(contents.key, contents.object);
    ++out.files;
    if (!reason.empty()) out.damaged.push_back({file.name, reason});
  }
  return out;
}

RemovedFiles ObjectCache::remove_if(const std::function<bool(const CachedFile&)>& unwanted) const {
  RemovedFiles out;
  for (const CachedFile& file : files())
    if (unwanted(file) && ::unlinkat(descriptor_, file.name.c_str(), 0) == 0) {
      ++out.files;
      out.bytes += file.bytes;
    }
  return out;
}

std::string default_cache_folder() {
  if (const char* named = std::getenv("STET_CACHE_DIR")) return named;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/stet";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/stet";
  return {};
}

}  // namespace stet::cpu
