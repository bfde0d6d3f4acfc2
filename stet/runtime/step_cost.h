// What a step does by its sizes: bytes and arithmetic.
#pragma once
#include <cstdint>

#include "stet/runtime/program.h"

namespace stet {

/// The number, or 0 if it depends on what is known only when the program runs.
std::int64_t known_size(const Dim& dim, const Bindings& bindings);

/// The bytes of all buffers that a step reads or writes, each once; constants do not count.
std::int64_t touched_bytes(const Program& program, const Step& step, const Bindings& bindings);

}  // namespace stet
