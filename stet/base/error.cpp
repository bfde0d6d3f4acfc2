#include "stet/base/error.h"

#include "stet/base/text.h"

namespace stet {

std::string at_line(Where where, const char* before) {
  return where.known() ? text(before, where.file, ':', where.line) : std::string();
}

std::string error_text(const std::string& what, Where where, const std::string& advice) {
  std::string out = what + at_line(where, "\n  at ");
  if (!advice.empty()) out += text("\n  fix: ", advice);
  return out;
}

}  // namespace stet
