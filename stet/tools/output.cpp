#include "stet/tools/output.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "stet/base/terminal.h"
#include "stet/base/text.h"

namespace stet::tools {

std::string in_color(Color color, std::string_view words) {
  if (!colored()) return std::string(words);
  static constexpr const char* codes[] = {"1", "31", "33", "32"};
  return text("\033[", codes[static_cast<int>(color)], "m", words, "\033[0m");
}

std::size_t columns_of(std::string_view words) {
  return static_cast<std::size_t>(
      std::count_if(words.begin(), words.end(), [](unsigned char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string padded(std::string_view words, std::size_t columns) {
  std::size_t taken = columns_of(words);
  return std::string(words) + std::string(columns > taken ? columns - taken : 0, ' ');
}

std::size_t help_width() {
  constexpr int usual = 80, widest = 100, narrowest = 40;
  int width = asked_width().value_or(terminal_width());
  return static_cast<std::size_t>(width == 0 ? usual : std::clamp(width, narrowest, widest));
}

std::string wrapped(std::string_view words, std::size_t width, std::size_t indent) {
  const std::string before(indent, ' ');
  std::string out, line;
  auto end_line = [&] {
    if (!line.empty()) out += before + line + "\n";
    line.clear();
  };
  while (!words.empty()) {
    std::size_t end = std::min(words.find('\n'), words.size());
    std::string_view given = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (given.empty() || given.starts_with("  ")) {
      end_line();
      out += given.empty() ? "\n" : text(before, given, "\n");
      continue;
    }
    while (!given.empty()) {
      std::size_t blank = std::min(given.find(' '), given.size());
      std::string_view word = given.substr(0, blank);
      given.remove_prefix(std::min(blank + 1, given.size()));
      if (word.empty()) continue;
      if (!line.empty() && indent + columns_of(line) + 1 + columns_of(word) > width) end_line();
      line += (line.empty() ? "" : " ") + std::string(word);
    }
  }
  end_line();
  return out;
}

std::string Table::str(std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  const auto most = static_cast<std::size_t>(terminal_width());
  std::string out;
  for (const std::vector<std::string>& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 < row.size() ? padded(row[i], widths[i] + 2) : std::string(row[i]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (most > 0 && columns_of(line) > most) {
      while (columns_of(line) > most - 1) line.pop_back();
      line += "…";
    }
    out += line + "\n";
  }
  return out;
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return text(bytes, " B");
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1023.95 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  char out[32];
  std::snprintf(out, sizeof out, "%.1f %s", value, units[unit]);
  return out;
}

std::string prefixed(double value) {
  static constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  int prefix = 0;
  while (value >= 999.5 && prefix < 5) {
    value /= 1000;
    ++prefix;
  }
  char out[32];
  std::snprintf(out, sizeof out, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, prefixes[prefix]);
  return out;
}

std::string ago_text(std::int64_t seconds) {
  constexpr std::int64_t minute = 60, hour = 60 * minute, day = 24 * hour;
  if (seconds < minute) return "just now";
  if (seconds < hour) return counted(seconds / minute, "minute") + " ago";
  if (seconds < 2 * day) return counted(seconds / hour, "hour") + " ago";
  return counted(seconds / day, "day") + " ago";
}

std::string counted(std::int64_t count, std::string_view thing) {
  return text(count, " ", thing, count == 1 ? "" : "s");
}

void print_json(const files::Json& value) { std::cout << files::to_text(value, true) << "\n"; }

}  // namespace stet::tools
