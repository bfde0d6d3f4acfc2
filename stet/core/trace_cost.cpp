// What a run of a program does, for given sizes.
#include <set>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/core/function_state.h"

namespace stet {
namespace {

/// The number, or 0 if it depends on what is known only when the program runs.
std::int64_t known(const Dim& dim, const Bindings& bindings) {
  for (int symbol : dim.symbols())
    if (!bindings.find(symbol)) return 0;
  return dim.evaluate(bindings);
}

/// Without the arena.
TraceCost cost_of_steps(const Program& program, const Bindings& bindings) {
  TraceCost out;
  for (const std::unique_ptr<Step>& step : program.steps) {
    std::vector<Program*> children = step->children();
    if (children.empty()) {
      out.flops += known(step->flops(), bindings);
      ++out.kernels;
      std::set<int> touched(step->reads.begin(), step->reads.end());
      touched.insert(step->writes.begin(), step->writes.end());
      for (int buffer : touched) {
        const ProgramBuffer& memory = program.buffers[static_cast<std::size_t>(buffer)];
        if (memory.role != ProgramBuffer::constant)
          out.bytes += known(memory.elements, bindings) * size_of(memory.dtype);
      }
      continue;
    }
    // One of them runs: the dearer one counts, as often as it runs.
    const std::int64_t runs = known(step->child_runs(), bindings);
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
