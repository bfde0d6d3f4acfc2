// What the steps of programs take, for whoever makes them quicker. Not a public header, but tools link with it.
//
// STET_STEP_TIMES=1 begins with the process, and prints the report on stderr when it ends. A step that is timed is one
// that was wrapped when its program was bound to sizes: where nobody asks, a run costs nothing more.
#pragma once
#include <memory>
#include <string>

#include "stet/base/bindings.h"
#include "stet/base/export.h"

namespace stet {

class BoundStep;
class Program;

namespace step_times {

/// From here on programs that are bound to sizes are timed, and kept.
STET_API void begin();
/// Programs that are bound later are not timed, and what was timed is let go.
STET_API void end();
/// Sets all counts to 0: what was compiled and warmed up before shall not count.
STET_API void forget();
/// A line for every step that ran, by program, in their order; steps of loops and branches below those that run them.
/// Bytes are those of all buffers that a step touches, each once: more than it moves where it reads a part of one.
STET_API std::string report();

/// The step, timed if that is asked for.
std::unique_ptr<BoundStep> timed(std::unique_ptr<BoundStep> bound, const Program& program, std::size_t number,
                                 const Bindings& bindings);

}  // namespace step_times
}  // namespace stet
