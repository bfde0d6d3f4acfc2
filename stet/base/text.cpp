#include "stet/base/text.h"

#include <charconv>

namespace stet {
namespace {

template <class F>
void append_shortest(std::string& out, F part) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, part);
  out.append(digits, end.ptr);
}

}  // namespace

void append_text(std::string& out, double part) { append_shortest(out, part); }
void append_text(std::string& out, float part) { append_shortest(out, part); }

}  // namespace stet
