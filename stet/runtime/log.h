// What the library says on stderr of its own accord, and STET_LOG, which says how much of it. Not a public header.
//
// STET_LOG=level,category,… in the environment: the level is off, warning (unless told) or info; without categories it
// is about all of them: trace (functions that are traced for the first time; info), retrace (warning; info tells each
// one, also of a cause that was told before), audit (a trace that is out of date), cache (the object cache), keras
// (layers and training), profile (recordings).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/export.h"

namespace stet {

enum class LogLevel : std::uint8_t { off, warning, info };

struct LogSettings {
  LogLevel level = LogLevel::warning;
  std::vector<std::string> categories = {};  // empty: all
  std::vector<std::string> unknown = {};     // words that mean nothing

  bool wants(LogLevel asked, std::string_view category) const;
};
STET_API LogSettings parse_log_settings(std::string_view words);

/// By the environment, which is read once; words that mean nothing are told on stderr then.
STET_API bool log_wants(LogLevel level, std::string_view category);

/// Something that people should change. It is said once: when the same text comes again it is counted, and the counts
/// are said when the process ends. A recording has each, as an event of the kind "warning".
STET_API void warn(std::string_view category, const std::string& text) noexcept;
/// What is no warning, and of interest all the same: it is said each time.
STET_API void inform(std::string_view category, const std::string& text) noexcept;
/// To stderr, whole, whatever STET_LOG says: what was asked for, and the last way out of errors that nobody can catch.
/// Not through std::cerr, which is tied to std::cout and, once a program has called sync_with_stdio(false), must not be
/// used by two threads.
STET_API void report(const std::string& text) noexcept;

/// Whether the last line that stdout got on a terminal waits to be drawn over (fit's bar): what is said on that
/// terminal begins a line of its own.
STET_API void set_line_open(bool open) noexcept;

/// What the end of the process says of warnings that came again: empty where none did.
STET_API std::string repeated_warnings();

}  // namespace stet
