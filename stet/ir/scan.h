// ScanSpec: what a running combination along an axis computes (cumsum, cumprod, cummax, cummin, logcumsumexp).
#pragma once
#include "stet/ir/expr.h"

namespace stet {

/// Along the middle axis of a dense [outer, length, inner]: y[i] = x[0] . x[1] . … . x[i], with `combine` for the dot.
///
/// Elements are cast to the accumulator's type, combine.dtype(), when they are read, and to `result` when they are
/// written. The dot is taken to be associative, no more: elements stay in their order, where brackets stand is the code
/// generator's choice. So floating sums and products may round otherwise than from left to right, and may overflow in
/// between where that order does not, or the other way round.
struct ScanSpec {
  DType stored = f32;  // of the operand's elements
  DType result = f32;  // of the result's elements: a cumsum of bool or narrow integers is wider
  /// Of operand(0), what came before, and operand(1), what comes next, both of the accumulator's type.
  Expr combine = {};
  /// A constant of the accumulator's type: combined with x, from either side, it gives x (in bits but for the sign of
  /// zero and which NaN it is).
  Expr identity = {};
  bool reverse = false;    // from the last element to the first: y[i] = x[length - 1] . … . x[i]
  bool exclusive = false;  // without the element itself: the first one in order is the identity
};

}  // namespace stet
