// What this machine can do at most: how fast its memory is, and how fast it multiplies and adds. What steps of programs
// reach is told beside it. Not a public header.
#pragma once

namespace stet::reporting {

struct MachineLimits {
  double bytes = 0;  // a second: STREAM's triad on arrays that no cache holds, 12 bytes for every element
  double flops = 0;  // a second: fused multiply-adds of f32, two for each
};

/// With all threads of the library: measured once (some 200 ms) and kept beside the compiled code, for this processor,
/// number of threads and version. No other work should run while it measures.
MachineLimits machine_limits();
/// Measured now. Where that is more than what is kept, it is kept instead: what others take from the machine is no
/// limit.
MachineLimits measured_again();
/// Forgets what this process knows, not what is on disk. For tests.
void forget_limits();

}  // namespace stet::reporting
