// Audits: host code is run again from time to time, to see whether it would still trace to the same program.
//
// A trace freezes what host code captured (a number, a flag, a layer, the length of a list). An audit runs the host
// code of a function once more, under a trace and without any effect, and compares. What has changed is told once, with
// its line.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "stet/base/export.h"

namespace stet {

/// At which calls of a trace its host code is audited. By default at calls 2, 4, 8, … 1024.
class Audit {
 public:
  constexpr Audit() = default;
  static const Audit never;
  /// At every nth call; 1 is at every call but the first.
  static constexpr Audit every(std::uint64_t calls) { return Audit(calls ? calls : 1); }

  /// The first call that is audited after `call`.
  constexpr std::uint64_t after(std::uint64_t call) const {
    if (period_ == none) return UINT64_MAX;
    if (period_ > 0) return (call / period_ + 1) * period_;
    std::uint64_t next = 2;
    while (next <= call) next *= 2;
    return next <= 1024 ? next : UINT64_MAX;
  }

 private:
  static constexpr std::uint64_t none = UINT64_MAX;
  constexpr explicit Audit(std::uint64_t period) : period_(period) {}
  std::uint64_t period_ = 0;  // 0: doubling
};
inline constexpr Audit Audit::never{Audit::none};

/// What happens when an audit finds that a trace is out of date.
enum class OnStale : std::uint8_t {
  warn,     // told once, on stderr or to the listener; the old trace goes on serving
  error,    // the call, and every later one, throws StaleTraceError
  retrace,  // told as a retrace; the call is served by a new trace
};

struct StaleEvent {
  std::string function;
  std::string explanation;
};
/// Called, instead of writing the explanation to stderr, when an audit finds a trace out of date. An empty function
/// brings stderr back.
STET_API void on_stale(std::function<void(const StaleEvent&)> listener);

}  // namespace stet
