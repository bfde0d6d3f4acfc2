#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#include "stet/cpu/pool_loops.h"

namespace stet::cpu {

PoolFunction pool_function_avx512(PoolResult result, DType dtype, bool narrow) {
  return floating_pool_function<64>(result, dtype, narrow);
}

}  // namespace stet::cpu
