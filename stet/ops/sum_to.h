#pragma once
#include "stet/core/tensor.h"

namespace stet {

/// The sum of `x` over the axes along which a tensor of `shape` would be repeated to reach x's shape: the adjoint of
/// broadcasting.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace stet
