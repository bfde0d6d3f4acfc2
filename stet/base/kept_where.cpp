#include "stet/base/kept_where.h"

#include <string>
#include <unordered_set>

#include "stet/base/lock.h"

namespace stet {

Where kept(Where where) {
  struct Names {
    Lock guard;
    std::unordered_set<std::string> known;  // as many as source files
  };
  static Names* const all = new Names;  // never destroyed: see thread_end.h
  std::lock_guard lock(all->guard);
  return {all->known.emplace(where.file).first->c_str(), where.line};
}

}  // namespace stet
