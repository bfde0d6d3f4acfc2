#pragma once
#include <vector>

#include "stet/core/gradient.h"

namespace stet {

/// The sum of blocks in zeros of this shape. Blocks that follow each other along one axis, as those of many slices of a
/// tensor do, become one concatenation: the work is that of the result, not that of the result for every block.
Tensor assembled(const Shape& shape, std::vector<GradientBlock> blocks);

}  // namespace stet
