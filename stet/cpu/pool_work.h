// What the loops of pooling are given. No more than plain data: some of the files that include it are compiled for
// machines with more instructions, and must not leave functions behind that others use.
#pragma once
#include <cstdint>

#include "stet/ir/specs.h"

namespace stet::cpu {

/// Which positions of the input a window covers along one axis: [begin, end). Its element k is at first + k.
struct PoolSpan {
  std::int64_t first = 0, begin = 0, end = 0;
};

/// A pool of three axes; fewer are filled up with axes of one position in front.
struct PoolWork {
  std::int64_t input[3] = {1, 1, 1}, output[3] = {1, 1, 1}, window[3] = {1, 1, 1};
  const PoolSpan* spans[3] = {};  // per axis, for each position of the output
  std::int64_t channels = 0;
  bool apart = false;  // no position is in two windows
  bool tiled = false;  // every position is in exactly one

  const void* x = nullptr;
  void* to = nullptr;
  void* positions = nullptr;

  std::int64_t inputs() const { return input[0] * input[1] * input[2]; }
  std::int64_t outputs() const { return output[0] * output[1] * output[2]; }
};

/// What one call does: of image `image` the rows (positions along the first two axes of the output) [begin, end), and
/// of these channels [first, last).
struct PoolPart {
  std::int64_t image, begin, end, first, last;
};

/// Does a part of the work.
using PoolFunction = void (*)(const PoolWork&, const PoolPart&);
/// For each instruction set. f32 and f64; `narrow`: positions are u8, else i32.
PoolFunction pool_function_avx512(PoolResult result, DType dtype, bool narrow);
PoolFunction pool_function_avx2(PoolResult result, DType dtype, bool narrow);
PoolFunction pool_function_plain(PoolResult result, DType dtype, bool narrow);
/// The largest elements of integers.
PoolFunction pool_function_integers(DType dtype, bool narrow);

}  // namespace stet::cpu
