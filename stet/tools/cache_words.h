// What is said of the object cache, by `stet cache` and by `stet doctor`.
#pragma once
#include <string>

#include "stet/cpu/object_cache.h"

namespace stet::tools {

/// What a file is to this build of the library.
enum class FileKind { code, other_code, figures, unfinished, unreadable };
inline constexpr FileKind file_kinds[] = {FileKind::code, FileKind::other_code, FileKind::figures, FileKind::unfinished,
                                          FileKind::unreadable};
FileKind kind_of(const cpu::CachedFile& file);
const char* kind_name(FileKind kind);   // "other_code", for lists
const char* kind_words(FileKind kind);  // "code of other builds"

/// "usable", "missing", …
const char* state_name(cpu::CacheFolder::State state);
struct StateWords {
  std::string what, fix;  // no fix where nothing is wrong
};
/// Of a folder that is not usable.
StateWords state_words(const std::string& folder, const cpu::CacheFolder& found);

}  // namespace stet::tools
