#include "stet/base/kept_where.h"

#include <string>
#include <unordered_set>

#include "stet/base/lock.h"

namespace stet {

const char* kept(const char* name) {
  struct Names {
    Lock guard;
    std::unordered_set<std::string> known;  // as many as source files, ops and functions
  };
  static Names* const all = new Names;  // never destroyed: see thread_end.h
  std::lock_guard lock(all->guard);
  return all->known.emplace(name).first->c_str();
}

Where kept(Where where) { return {kept(where.file), where.line}; }

}  // namespace stet
