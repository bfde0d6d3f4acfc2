// Convolutions by oneDNN, f32.
//
// A batch is cut into pieces by sizes alone; each piece is one primitive on one thread, so results do not depend on the
// number of threads. The sum over the batch, of a filter's gradient, is made of the pieces' sums in order.
#pragma once
#include <memory>

#include "stet/cpu/convolution_sizes.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

/// Null where the library has no fast code for the sizes.
std::unique_ptr<BoundStep> bind_library_convolution(const ConvolutionSizes& sizes);

}  // namespace stet::cpu
