// Layout: how a tensor's elements lie in its buffer.
#pragma once
#include <vector>

#include "stet/base/inside.h"
#include "stet/base/shape.h"

namespace stet {

/// Element (i, j, …) lies at offset + i * strides[0] + j * strides[1] + … elements from the buffer's start.
struct Layout {
  Dim offset = 0;
  std::vector<Dim> strides;
};
inline Layout dense_layout(const Shape& shape) { return {0, dense_strides(shape)}; }

}  // namespace stet
