#include "stet/runtime/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/runtime/recording.h"

namespace stet {
namespace {

constexpr std::array<const char*, 3> levels = {"off", "warning", "info"};
constexpr std::array<const char*, 6> categories = {"trace", "retrace", "audit", "cache", "keras", "profile"};

constinit std::atomic<bool> line_open{false};

constexpr std::size_t most_warnings = 1000;  // that are told apart; others are said each time

/// How often each was given.
struct Warnings {
  Lock guard;
  std::map<std::string, std::int64_t, std::less<>> counts;
  std::vector<const std::string*> in_order;
  std::uint64_t generation = 0;  // of the process that counts

  /// A child of fork() has heard what its parent said, and counts for itself.
  void own() {
    if (std::exchange(generation, fork_generation()) == fork_generation()) return;
    for (auto& [text, count] : counts) count = std::min<std::int64_t>(count, 1);
  }
};
Warnings& warnings() {
  static auto* const one = new Warnings;  // never destroyed: see thread_end.h
  return *one;
}

bool is_news(const std::string& text) {
  std::lock_guard lock(warnings().guard);
  warnings().own();
  auto known = warnings().counts.find(text);
  if (known == warnings().counts.end()) {
    if (warnings().counts.size() >= most_warnings) return true;
    known = warnings().counts.emplace(text, 0).first;
    warnings().in_order.push_back(&known->first);
  }
  return ++known->second == 1;
}

/// Without "stet: ", and in one line.
std::string headline(std::string_view text) {
  constexpr std::string_view prefix = "stet: ";
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return std::string(text.substr(0, text.find('\n')));
}

/// After all destructors of the program's own.
[[gnu::destructor]] void end_of_process() {
  if (const std::string told = repeated_warnings(); !told.empty()) report(told);
}

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

void warn(std::string_view category, const std::string& text) noexcept try {
  if (recording::on())
    recording::note({{"note", "event"}, {"kind", "warning"}, {"function", std::string()}, {"text", text}});
  if (log_wants(LogLevel::warning, category) && is_news(text)) report(text);
} catch (const std::exception&) {  // no memory
  report(text);
}

void inform(std::string_view category, const std::string& text) noexcept try {
  if (log_wants(LogLevel::warning, category)) report(text);
} catch (const std::exception&) {
  report(text);
}

void report(const std::string& text) noexcept {
  if (text.empty()) return;
  if (line_open.exchange(false) && ::isatty(STDERR_FILENO)) std::fputc('\n', stderr);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void set_line_open(bool open) noexcept { line_open.store(open); }

std::string repeated_warnings() {
  std::lock_guard lock(warnings().guard);
  warnings().own();
  std::string out;
  for (const std::string* warning : warnings().in_order)
    if (const std::int64_t count = warnings().counts.find(*warning)->second; count > 1)
      out += text("  ", count, " x  ", headline(*warning), "\n");
  return out.empty() ? out : text("stet: warnings that were said once, and came again:\n", out);
}

}  // namespace stet
