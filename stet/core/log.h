// STET_LOG: how much the library says on stderr, and about what. Private to core/.
//
// STET_LOG=level,category,… in the environment: the level is off, warning (unless told) or info; without categories it
// is about all of them: trace (a function is traced for the first time; info), retrace (warning; info tells each one,
// also of a cause that was told before), audit (a trace that is out of date; warning).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stet {

enum class LogLevel : std::uint8_t { off, warning, info };

struct LogSettings {
  LogLevel level = LogLevel::warning;
  std::vector<std::string> categories = {};  // empty: all
  std::vector<std::string> unknown = {};     // words that mean nothing

  bool wants(LogLevel asked, std::string_view category) const;
};
LogSettings parse_log_settings(std::string_view words);

/// By the environment, which is read once; words that mean nothing are told on stderr then.
bool log_wants(LogLevel level, std::string_view category);

}  // namespace stet
