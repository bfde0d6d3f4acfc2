// What layers that cut images share. Not a public header.
#pragma once
#include <cstdint>

#include "stet/core/tensor.h"

namespace stet::keras {

/// The largest part of the images [batch, height, width, channels] in their middle that has the target's shape.
Tensor cropped_to_shape(const Tensor& x, std::int64_t height, std::int64_t width);

}  // namespace stet::keras
