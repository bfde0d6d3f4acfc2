// The hand-written step with 128-bit vectors.
#include "bench/hand/kernels.h"

const bench::hand::Kernels& bench::hand::plain_kernels() {
  static constexpr Kernels kernels{"128-bit vectors", lanes, panel, chunks, run_chunk};
  return kernels;
}
