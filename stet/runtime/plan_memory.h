// How much work planning memory is, for tests that it grows with the number of blocks and no faster.
#pragma once
#include "stet/runtime/program.h"

namespace stet {

/// plan_memory() of program.h, which also adds to `probes` how often it looked at occupied memory.
std::size_t plan_memory(std::span<PlannedBlock> blocks, std::size_t& probes);

}  // namespace stet
