#pragma GCC target("avx2")
#include "stet/cpu/pool_loops.h"

namespace stet::cpu {

PoolFunction pool_function_avx2(PoolResult result, DType dtype, bool narrow) {
  return floating_pool_function<32>(result, dtype, narrow);
}

}  // namespace stet::cpu
