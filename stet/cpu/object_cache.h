// Compiled objects on disk.
//
// Code found here is run, so the folder must belong to the user alone (mode 0700, own uid) or the cache is off; a file
// is believed only if its checksum and its full key agree. Nothing here throws because of a disk: a cache that cannot
// be read or written is a cache that misses.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stet::cpu {

class ObjectCache {
 public:
  /// Opens (and where missing creates, mode 0700, with its parents) the folder; an empty name, and a folder that is not
  /// ours alone, switch the cache off.
  /// When the files come to more than `most_bytes`, the oldest are removed; looked at once in a while.
  explicit ObjectCache(const std::string& folder, std::int64_t most_bytes = 256 << 20);
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  /// The folder in use; empty when the cache is off.
  const std::string& folder() const { return folder_; }
  /// The object stored under this key. A file that is damaged is deleted, and `rejected` set.
  std::optional<std::vector<char>> find(std::string_view key, bool& rejected) const;
  /// Removes a file whose object turned out to be unusable.
  void remove(std::string_view key) const;
  /// Written to a temporary file and renamed, so that readers see a whole file or none.
  void store(std::string_view key, std::string_view object) const;
  /// Removes the oldest files until three quarters of the bound are left, and what an interrupted process left behind.
  void trim() const;

 private:
  std::string folder_;
  std::int64_t most_bytes_;
  int descriptor_ = -1;
};

/// $STET_CACHE_DIR, else $XDG_CACHE_HOME/stet, else $HOME/.cache/stet; empty where none is set or the first is "".
std::string default_cache_folder();

}  // namespace stet::cpu
