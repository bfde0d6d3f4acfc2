#include "stet/core/log.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "stet/base/text.h"
#include "stet/core/retrace.h"

namespace stet {
namespace {

constexpr std::array<const char*, 3> levels = {"off", "warning", "info"};
constexpr std::array<const char*, 3> categories = {"trace", "retrace", "audit"};

}  // namespace

bool LogSettings::wants(LogLevel asked, std::string_view category) const {
  const bool about =
      categories.empty() || std::find(categories.begin(), categories.end(), category) != categories.end();
  // What is not asked for in particular is told as if nothing had been said.
  return asked <= (about ? level : std::min(level, LogLevel::warning));
}

LogSettings parse_log_settings(std::string_view words) {
  LogSettings out;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    const auto level = std::find(levels.begin(), levels.end(), word);
    if (level != levels.end())
      out.level = static_cast<LogLevel>(level - levels.begin());
    else if (std::find(categories.begin(), categories.end(), word) != categories.end())
      out.categories.emplace_back(word);
    else if (!word.empty())
      out.unknown.emplace_back(word);
  }
  return out;
}

bool log_wants(LogLevel level, std::string_view category) {
  static const LogSettings* const settings = [] {
    const char* words = std::getenv("STET_LOG");
    auto* made = new LogSettings(parse_log_settings(words ? words : ""));  // never destroyed: see thread_end.h
    for (const std::string& word : made->unknown)
      report(text("stet: STET_LOG: '", word, "' means nothing; levels are ", joined(levels, ", "), ", categories ",
                  joined(categories, ", "), "\n"));
    return made;
  }();
  return settings->wants(level, category);
}

}  // namespace stet
