// Compiled objects on disk.
//
// Code found here is run, so the folder must belong to the user alone (mode 0700, own uid) or the cache is off; a file
// is believed only if its checksum and its full key agree. Nothing here throws because of a disk: a cache that cannot
// be read or written is a cache that misses.
#pragma once
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stet::cpu {

/// What a folder is to a cache that would be opened there: nothing is made, and nothing said.
struct CacheFolder {
  enum class State { off, missing, usable, unusable };
  State state = State::off;
  std::string why, fix;  // of one that is unusable
};
CacheFolder look_at_cache_folder(const std::string& folder);
/// Tries it: makes the folder where it is missing, and in it a file, which is taken away again. Why that fails; empty
/// if it does not.
std::string why_not_writable(const std::string& folder);

/// A file of a cache, for people.
struct CachedFile {
  std::string name;  // in the folder
  std::int64_t bytes = 0;
  std::time_t last_used = 0;  // within an hour
  std::string key;            // empty where the file has none that can be read
  bool unfinished = false;    // a process is writing it, or was killed while it did
};
struct DamagedFile {
  std::string name, reason;
};
struct VerifiedFiles {
  std::int64_t files = 0;  // that were looked at
  std::vector<DamagedFile> damaged;
};
struct RemovedFiles {
  std::int64_t files = 0, bytes = 0;
};

/// Keys that begin so have no code behind them, but what was found out about the machine.
inline constexpr std::string_view figures_key = "figures ";

class ObjectCache {
 public:
  static constexpr std::int64_t usual_bound = 256 << 20;
  /// Opens (and where missing creates, mode 0700, with its parents) the folder; an empty name, and a folder that is not
  /// ours alone, switch the cache off.
  /// When the files come to more than `most_bytes`, those that were not used for longest are removed; looked at once in
  /// a while.
  explicit ObjectCache(const std::string& folder, std::int64_t most_bytes = usual_bound);
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
  /// Removes files, those first that were not used for longest, until three quarters of the bound are left, and what an
  /// interrupted process left behind.
  void trim() const;

  // For people who look after it. Other processes may use the folder meanwhile: a file that is gone is passed over.

  /// Every file of the cache, the latest used first.
  std::vector<CachedFile> files() const;
  /// Reads and checks every finished file as find() does, and deletes none. `check` is asked about what is whole: why
  /// the object is of no use, or nothing.
  VerifiedFiles verify(const std::function<std::string(std::string_view key, std::string_view object)>& check) const;
  /// Removes the files that are wanted gone.
  RemovedFiles remove_if(const std::function<bool(const CachedFile&)>& unwanted) const;

 private:
  std::string folder_;
  std::int64_t most_bytes_;
  int descriptor_ = -1;
};

/// $STET_CACHE_DIR, else $XDG_CACHE_HOME/stet, else $HOME/.cache/stet; empty where none is set or the first is "".
std::string default_cache_folder();

}  // namespace stet::cpu
