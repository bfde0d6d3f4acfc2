// A place in the user's source. Taken by default arguments, so that errors name the line the user wrote.
#pragma once

namespace stet {

struct Where {
  const char* file = "";
  int line = 0;

  static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
  bool known() const { return line > 0; }
};

}  // namespace stet
