#include "stet/report/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "stet/base/text.h"

namespace stet::reporting {
namespace {

std::string with_digits(double value, int behind_point) {
  char out[64];
  std::snprintf(out, sizeof out, "%.*f", behind_point, value);
  return out;
}

}  // namespace

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 0) return "-" + seconds_text(-seconds);
  if (seconds == 0) return "0 s";
  constexpr double minute = 60, hour = 60 * minute;
  if (seconds >= 119.5) {
    if (seconds >= 1e15) return with_digits(seconds, 0) + " s";
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    const std::int64_t hours = whole / static_cast<std::int64_t>(hour), minutes = whole / 60 % 60;
    return hours > 0 ? text(hours, " h ", minutes, " min") : text(minutes, " min ", whole % 60, " s");
  }
  constexpr const char* units[] = {"s", "ms", "µs", "ns"};
  int unit = 0;
  while (seconds < 0.9995 && unit < 3) {
    seconds *= 1000;
    ++unit;
  }
  return text(with_digits(seconds, seconds < 9.95 && unit < 3 ? 1 : 0), " ", units[unit]);
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  if (!std::isfinite(percent)) return "?";
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  if (percent < 9.95 && percent != 0) return with_digits(percent, 1) + " %";
  if (percent >= 99.5 && percent < 100) return with_digits(std::min(percent, 99.9), 1) + " %";
  return with_digits(percent, 0) + " %";
}

std::string count_text(std::int64_t count) {
  std::string out = std::to_string(count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > first; at -= 3)
    out.insert(static_cast<std::size_t>(at), 1, ',');
  return out;
}

std::string counted(std::int64_t count, std::string_view thing) {
  return text(count_text(count), " ", thing, count == 1 ? "" : "s");
}

std::string prefixed(double value) {
  if (!std::isfinite(value)) return "? ";
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  int prefix = 0;
  while (value >= 999.5 && prefix < 5) {
    value /= 1000;
    ++prefix;
  }
  return text(with_digits(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0), " ", prefixes[prefix]);
}

std::string bytes_text(double bytes) {
  if (!std::isfinite(bytes)) return "?";
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1023.95 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return text(with_digits(bytes, unit == 0 ? 0 : 1), " ", units[unit]);
}

std::string place_text(std::string_view file, int line) {
  if (file.empty()) return {};
  std::string out(file.substr(file.rfind('/') + 1));
  return line > 0 ? text(out, ":", line) : out;
}

}  // namespace stet::reporting
