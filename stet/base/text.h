// text(a, b, …): the parts of a message joined. All user-facing text is made with it.
#pragma once
#include <concepts>
#include <string>
#include <string_view>

#include "stet/base/export.h"

namespace stet {

inline void append_text(std::string& out, std::string_view part) { out += part; }
// Without this overload a literal would convert to bool before it converts to string_view.
inline void append_text(std::string& out, const char* part) { out += part; }
inline void append_text(std::string& out, char part) { out += part; }
template <std::same_as<bool> B>
void append_text(std::string& out, B part) {
  out += part ? "true" : "false";
}
template <std::integral I>
requires(!std::same_as<I, bool> && !std::same_as<I, char>) void append_text(std::string& out, I part) {
  out += std::to_string(part);
}
/// The shortest decimal form that reads back as the same number.
STET_API void append_text(std::string& out, double part);
STET_API void append_text(std::string& out, float part);
/// Any type that has a member `std::string str() const`.
template <class T>
requires requires(const T& part) {
  { part.str() } -> std::convertible_to<std::string>;
}
void append_text(std::string& out, const T& part) { out += part.str(); }

template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

/// Elements of a range, each as text, between separators.
template <class Range>
std::string joined(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& element : range) {
    if (!first) out += separator;
    first = false;
    append_text(out, element);
  }
  return out;
}

}  // namespace stet
