#include "stet/cpu/pool_loops.h"

namespace stet::cpu {

PoolFunction pool_function_plain(PoolResult result, DType dtype, bool narrow) {
  return floating_pool_function<16>(result, dtype, narrow);
}

PoolFunction pool_function_integers(DType dtype, bool narrow) {
  switch (dtype) {
    case DType::u8:
      return with_positions<PoolResult::largest, std::uint8_t, 1>(narrow);
    case DType::i8:
      return with_positions<PoolResult::largest, std::int8_t, 1>(narrow);
    case DType::i16:
      return with_positions<PoolResult::largest, std::int16_t, 1>(narrow);
    case DType::i32:
      return with_positions<PoolResult::largest, std::int32_t, 1>(narrow);
    case DType::i64:
      return with_positions<PoolResult::largest, std::int64_t, 1>(narrow);
    default:
      return nullptr;
  }
}

}  // namespace stet::cpu
