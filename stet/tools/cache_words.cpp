#include "stet/tools/cache_words.h"

#include <cstdlib>

#include "stet/base/text.h"
#include "stet/cpu/jit.h"
#include "stet/files/utf8.h"

namespace stet::tools {

FileKind kind_of(const cpu::CachedFile& file) {
  if (file.unfinished) return FileKind::unfinished;
  if (file.key.starts_with(cpu::figures_key)) return FileKind::figures;
  const std::string_view build = cpu::build_of_key(file.key);
  if (build.empty()) return FileKind::unreadable;
  return build == cpu::code_build() ? FileKind::code : FileKind::other_code;
}

const char* kind_name(FileKind kind) {
  static constexpr const char* names[] = {"code", "other_code", "figures", "unfinished", "unreadable"};
  return names[static_cast<int>(kind)];
}

const char* kind_words(FileKind kind) {
  static constexpr const char* words[] = {"code", "code of other builds", "measured figures", "being written",
                                          "unreadable"};
  return words[static_cast<int>(kind)];
}

const char* state_name(cpu::CacheFolder::State state) {
  static constexpr const char* names[] = {"off", "missing", "usable", "unusable"};
  return names[static_cast<int>(state)];
}

StateWords state_words(const std::string& folder, const cpu::CacheFolder& found) {
  using enum cpu::CacheFolder::State;
  switch (found.state) {
    case off:
      if (std::getenv("STET_CACHE_DIR"))
        return {"the object cache is off: STET_CACHE_DIR is set to nothing",
                "unset STET_CACHE_DIR; without the cache every start compiles everything again"};
      return {"the object cache is off: none of STET_CACHE_DIR, XDG_CACHE_HOME and HOME is set",
              "set STET_CACHE_DIR to a folder; without the cache every start compiles everything again"};
    case missing:
      return {text("the object cache ", files::shown_name(folder), " is not there yet: nothing was compiled"), {}};
    case usable:
      return {text("the object cache ", files::shown_name(folder), " is in use"), {}};
    case unusable:
      break;
  }
  return {text("the object cache ", files::shown_name(folder), " is not used: ", found.why),
          files::shown_name(found.fix)};
}

}  // namespace stet::tools
