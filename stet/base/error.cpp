#include "stet/base/error.h"

#include "stet/base/text.h"

namespace stet {

namespace {

/// A line of the library itself, which says nothing to a user.
bool is_own(std::string_view file) {
  constexpr std::string_view own = __FILE__, path = "base/error.cpp";
  return own.ends_with(path) && file.starts_with(own.substr(0, own.size() - path.size()));
}

}  // namespace

std::string at_line(Where where, const char* before) {
  return where.known() && !is_own(where.file) ? text(before, where.file, ':', where.line) : std::string();
}

std::string error_text(const std::string& what, Where where, const std::string& advice) {
  std::string out = what + at_line(where, "\n  at ");
  if (!advice.empty()) out += text("\n  fix: ", advice);
  return out;
}

}  // namespace stet
