// The hand-written step with AVX2.
#include "bench/hand/kernels.h"

const bench::hand::Kernels& bench::hand::avx2_kernels() {
  static constexpr Kernels kernels{"AVX2", lanes, panel, chunks, run_chunk};
  return kernels;
}
