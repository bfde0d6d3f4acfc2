#include "stet/runtime/step_cost.h"

#include <set>

#include "stet/base/dim_inside.h"

namespace stet {

std::int64_t known_size(const Dim& dim, const Bindings& bindings) {
  for (int symbol : dim.symbols())
    if (!bindings.find(symbol)) return 0;
  return dim.evaluate(bindings);
}

std::int64_t touched_bytes(const Program& program, const Step& step, const Bindings& bindings) {
  std::set<int> touched(step.reads.begin(), step.reads.end());
  touched.insert(step.writes.begin(), step.writes.end());
  std::int64_t bytes = 0;
  for (int buffer : touched) {
    const ProgramBuffer& memory = program.buffers[static_cast<std::size_t>(buffer)];
    if (memory.role != ProgramBuffer::constant) bytes += known_size(memory.elements, bindings) * size_of(memory.dtype);
  }
  return bytes;
}

}  // namespace stet
