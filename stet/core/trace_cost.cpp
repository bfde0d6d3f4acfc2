// What a run of a program does, for given sizes.
#include <utility>

#include "stet/core/function_state.h"
#include "stet/runtime/step_cost.h"

namespace stet {
namespace {

/// Without the arena.
TraceCost cost_of_steps(const Program& program, const Bindings& bindings) {
  TraceCost out;
  for (const std::unique_ptr<Step>& step : program.steps) {
    std::vector<Program*> children = step->children();
    if (children.empty()) {
      out.flops += known_size(step->flops(), bindings);
      out.bytes += touched_bytes(program, *step, bindings);
      ++out.kernels;
      continue;
    }
    // One of them runs: the dearer one counts, as often as it runs.
    const std::int64_t runs = known_size(step->child_runs(), bindings);
    TraceCost dearest;
    for (const Program* child : children) {
      TraceCost one = cost_of_steps(*child, bindings);
      if (std::pair(one.flops, one.bytes) > std::pair(dearest.flops, dearest.bytes)) dearest = one;
    }
    out.flops += runs * dearest.flops;
    out.bytes += runs * dearest.bytes;
    out.kernels += runs * dearest.kernels;
  }
  return out;
}

}  // namespace

TraceCost cost_of(Entry& entry, const Bindings& bindings) {
  TraceCost out = cost_of_steps(*entry.program, bindings);
  out.arena_bytes = static_cast<std::int64_t>(entry.bound_to(bindings)->arena_bytes());
  return out;
}

}  // namespace stet
