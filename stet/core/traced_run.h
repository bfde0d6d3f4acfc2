// What one run of host code under a trace gave, and how two runs of the same code are compared. Private to core/.
//
// A trace may rely on nothing but its arguments and its facts. So whatever must not matter is changed from one run to
// the next (sizes that the facts leave free, which side of a decision is run first), and the runs must agree: in the
// program, in what it captured, and in the host values among the results.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stet/core/structure.h"
#include "stet/core/trace.h"
#include "stet/core/variable.h"
#include "stet/ir/graph.h"

namespace stet {

struct TracedRun {
  Graph graph;                // with its aliases: what tapes tell apart
  std::size_t arguments = 0;  // the graph's first inputs; the others are hidden
  int argument_symbols = 0;   // the scope's first symbols: sizes of arguments
  std::vector<Trace::HiddenInput> hidden;
  Leaves result_form;                   // counts and numbers as they are; tensors to be filled in
  std::vector<Variable> written, used;  // in the order of the program
  std::vector<Where> left_behind;       // where tensors were made that host code kept
  std::vector<Fact> apart;              // sizes of sides that differ in this run
};

/// Where two runs part.
struct RunDifference {
  std::string first, second;  // what stands there: "multiply by 0.5"
  Where where = {};
};
/// Nothing if the two runs made the same program, up to the numbering of its values, of late sizes and of what it
/// captured.
std::optional<RunDifference> difference_between(const TracedRun& first, const TracedRun& second);

/// Sizes for the symbols of a run's arguments, other ones wherever its facts and checks leave a choice, and obeying all
/// of them. Never 0 or 1, and never equal where they were not: those are sizes that code may treat in another way.
std::vector<std::int64_t> other_sizes(const TracedRun& run);

}  // namespace stet
