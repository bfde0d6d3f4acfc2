// Companions: a tensor that goes along with another one, such as the mask of a sequence. Ops do not know of it: what
// they give has none.
#pragma once
#include "stet/core/tensor.h"

namespace stet {

/// Another tensor with the same elements, which brings a companion along. Gradients pass.
Tensor with_companion(const Tensor& tensor, const Tensor& companion);
/// Undefined: it has none.
Tensor companion_of(const Tensor& tensor);

}  // namespace stet
