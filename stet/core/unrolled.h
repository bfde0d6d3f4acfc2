// Host loops that a trace has unrolled: how they are noticed. Private to core/.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/base/where.h"
#include "stet/ir/graph.h"

namespace stet {

/// Neighbouring lines of host code that recorded ops of one trace again and again: the body of a loop, as a rule.
struct RepeatedLines {
  Where first;
  int last = 0;             // line, of the same file
  std::int64_t times = 0;   // how often a line of them recorded, at most
  std::int64_t ops = 0;     // that they recorded in all
  std::string str() const;  // "model.cpp:12" or "model.cpp:12-14"
};
/// Those lines of a traced function that recorded ops at least `times` times, by the number of ops.
std::vector<RepeatedLines> repeated_lines(const Graph& graph, std::int64_t times);
/// Lines that recorded ops a multiple of `turns` times, if there are any: what a host loop over so many elements
/// leaves.
std::vector<RepeatedLines> lines_of_turns(const Graph& graph, std::int64_t turns);

/// Tells, once for a line, that a trace has thousands of ops from it.
void note_unrolled(const std::string& function, const Graph& graph);

}  // namespace stet
