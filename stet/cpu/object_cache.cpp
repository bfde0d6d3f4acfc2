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

namespace stet::cpu {
namespace {

constexpr std::uint64_t magic = 0x316a626f74657473;  // "stetobj1"
constexpr std::int64_t largest_file = 64 << 20;
constexpr std::time_t abandoned_seconds = 3600;

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

void make_folders(const std::string& folder) {
  for (std::size_t slash = folder.find('/', 1);; slash = folder.find('/', slash + 1)) {
    ::mkdir(folder.substr(0, slash).c_str(), 0700);  // what cannot be made cannot be opened: that is looked at
    if (slash == std::string::npos) return;
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

enum class Content { usable, other_key, damaged };

/// Reads and checks an open file; on `usable` only the object is left in `bytes`.
Content read_file(int file, std::string_view key, std::vector<char>& bytes) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return Content::damaged;
  if (status.st_size < static_cast<off_t>(sizeof(FileHeader)) || status.st_size > largest_file) return Content::damaged;
  bytes.resize(static_cast<std::size_t>(status.st_size));
  if (!read_all(file, bytes.data(), bytes.size())) return Content::damaged;
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::size_t rest = bytes.size() - sizeof header;
  if (header.magic_number != magic || header.key_bytes > rest || header.object_bytes != rest - header.key_bytes)
    return Content::damaged;
  std::string_view stored_key(bytes.data() + sizeof header, header.key_bytes);
  std::string_view object(stored_key.data() + stored_key.size(), header.object_bytes);
  if (checksum(stored_key, object) != header.checksum) return Content::damaged;
  if (stored_key != key) return Content::other_key;
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() - object.size()));
  return Content::usable;
}

/// Said once in a process, because without the cache every start compiles everything again.
void tell_unused(const std::string& folder, const struct stat& status) {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  bool ours = status.st_uid == ::geteuid();
  std::fprintf(
      stderr,
      "stet: the object cache %s is not used: %s\n"
      "  why             code found there is run, so the folder must be yours alone\n"
      "  fix             %s\n",
      folder.c_str(), ours ? "others may enter it" : "it belongs to another user",
      ours ? ("chmod 700 " + folder).c_str() : "set STET_CACHE_DIR to a folder of yours, or to nothing to do without");
}

}  // namespace

ObjectCache::ObjectCache(const std::string& folder, std::int64_t most_bytes) : most_bytes_(most_bytes) {
  if (folder.empty()) return;
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  descriptor_ = ::open(folder.c_str(), flags);
  if (descriptor_ < 0 && errno == ENOENT) {
    make_folders(folder);
    descriptor_ = ::open(folder.c_str(), flags);
  }
  if (descriptor_ < 0) return;
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0) {
    folder_ = folder;
    return;
  }
  tell_unused(folder, status);
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
  int file = ::openat(descriptor_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::vector<char> bytes;
  Content content = read_file(file, key, bytes);
  ::close(file);
  if (content == Content::usable) return bytes;
  if (content == Content::damaged) {
    rejected = true;
    ::unlinkat(descriptor_, name.c_str(), 0);
  }
  return std::nullopt;
}

void ObjectCache::remove(std::string_view key) const {
  if (descriptor_ >= 0) ::unlinkat(descriptor_, file_name(key).c_str(), 0);
}

void ObjectCache::store(std::string_view key, std::string_view object) const {
  if (descriptor_ < 0) return;
  static std::atomic<unsigned> counter{0};
  std::string name = file_name(key);
  std::string temporary = "tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1)) + "-" + name;
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

void ObjectCache::trim() const {
  int copy = ::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  DIR* folder = ::fdopendir(copy);
  if (!folder) {
    ::close(copy);
    return;
  }
  struct Found {
    std::time_t changed;
    std::int64_t bytes;
    std::string name;
  };
  std::vector<Found> files;
  std::int64_t total = 0;
  std::time_t now = std::time(nullptr);
  while (dirent* entry = ::readdir(folder)) {
    struct stat status {};
    if (::fstatat(descriptor_, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    std::string_view name = entry->d_name;
    if (name.starts_with("tmp-")) {
      if (now - status.st_mtime > abandoned_seconds) ::unlinkat(descriptor_, entry->d_name, 0);
    } else if (name.ends_with(".o")) {
      files.push_back({status.st_mtime, status.st_size, std::string(name)});
      total += status.st_size;
    }
  }
  ::closedir(folder);
  if (total <= most_bytes_) return;
  std::sort(files.begin(), files.end(), [](const Found& a, const Found& b) { return a.changed < b.changed; });
  for (const Found& file : files) {
    if (total <= most_bytes_ / 4 * 3) return;
    if (::unlinkat(descriptor_, file.name.c_str(), 0) == 0) total -= file.bytes;
  }
}

std::string default_cache_folder() {
  if (const char* named = std::getenv("STET_CACHE_DIR")) return named;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/stet";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/stet";
  return {};
}

}  // namespace stet::cpu
