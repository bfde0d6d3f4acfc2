// Which span lies in which: spans nest by time on their thread. Private to report/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stet/report/recorded.h"

namespace stet::reporting {

/// Of a recording's spans, by their place. Made in one pass.
class SpanTree {
 public:
  static constexpr std::size_t none = SIZE_MAX;

  explicit SpanTree(const Recorded& recorded);

  std::size_t parent(std::size_t span) const { return place(facts_[span].parent); }
  /// The nearest call, or step, that a span lies in; not itself.
  std::size_t call_around(std::size_t span) const { return place(facts_[span].call); }
  std::size_t step_around(std::size_t span) const { return place(facts_[span].step); }
  /// Of a call: it lies in one of the same name.
  bool is_in_call_of_its_name(std::size_t span) const { return facts_[span].in_call_of_its_name; }

  /// What the outermost of these is that a span lies in.
  enum class Around : std::uint8_t { nothing, wait, trace, audit };
  Around around(std::size_t span) const { return facts_[span].around; }

  /// The first span of a thread and the one behind its last.
  std::pair<std::size_t, std::size_t> of_thread(std::uint16_t thread) const { return threads_[thread]; }

 private:
  static constexpr std::uint32_t nowhere = UINT32_MAX;
  static std::size_t place(std::uint32_t at) { return at == nowhere ? none : at; }

  struct Facts {
    std::uint32_t parent = nowhere, call = nowhere, step = nowhere;
    Around around = Around::nothing;
    bool in_call_of_its_name = false;
  };
  std::vector<Facts> facts_;
  std::vector<std::pair<std::size_t, std::size_t>> threads_;
};

}  // namespace stet::reporting
