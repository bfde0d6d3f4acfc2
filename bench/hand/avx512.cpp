// The hand-written step with AVX-512.
#include "bench/hand/kernels.h"

const bench::hand::Kernels& bench::hand::avx512_kernels() {
  static constexpr Kernels kernels{"AVX-512", lanes, panel, chunks, run_chunk};
  return kernels;
}
