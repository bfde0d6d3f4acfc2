#include "stet/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace stet {

std::optional<int> asked_width() {
  constexpr int most = 10'000;
  const char* columns = std::getenv("COLUMNS");
  if (!columns) return std::nullopt;
  const char* end = columns + std::strlen(columns);
  int out = 0;
  auto [read, error] = std::from_chars(columns, end, out);
  return error == std::errc() && read == end && out > 0 ? std::optional(std::min(out, most)) : std::nullopt;
}

int terminal_width() {
  constexpr int usual = 80;
  if (!::isatty(STDOUT_FILENO)) return 0;
  if (std::optional<int> asked = asked_width()) return *asked;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

bool colored() {
  static const bool wanted = [] {
    const char *no_color = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
    if (no_color && *no_color) return false;
    return ::isatty(STDOUT_FILENO) && terminal && *terminal && std::string_view(terminal) != "dumb";
  }();
  return wanted;
}

}  // namespace stet
