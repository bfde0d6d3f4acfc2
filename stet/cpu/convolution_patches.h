// Convolutions of any sizes by matrix products: a patch is what one window sees, as a row of a matrix. Patches are made
// in blocks that stay in cache, and never all at once.
//
//   output   patches of the input x filter
//   input    the same of the output, spread out by the strides, with windows that run backwards
//   filter   patches of the input, transposed, x output: summed over fixed parts, and these in order
#pragma once
#include <memory>

#include "stet/cpu/convolution_sizes.h"
#include "stet/cpu/gemm.h"
#include "stet/ir/kernel.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

struct PatchConvolution {
  explicit PatchConvolution(const ConvolutionSpec& spec);

  DType dtype;
  bool checked;
  /// Of one group: loops [batch, positions…, window…, channels of the group] from buffer 0 to a matrix [rows, depth] in
  /// buffer 1. Reads 0 where a window lies outside.
  Kernel patches;
  Dim read_elements = 0;  // of buffer 0
  GemmKernel product;     // patches x weights
  GemmKernel transposed;  // patches, transposed, x output
  GemmKernel added;       // … added to what is there
};

std::unique_ptr<BoundStep> bind_patch_convolution(std::shared_ptr<const PatchConvolution> convolution,
                                                  const ConvolutionSizes& sizes, const Bindings& bindings);

}  // namespace stet::cpu
