// The sizes of one convolution as integers, and which buffers it works on.
#pragma once
#include <cstdint>
#include <vector>

#include "stet/base/bindings.h"
#include "stet/ir/specs.h"

namespace stet::cpu {

struct ConvolutionSizes {
  struct Axis {
    std::int64_t input = 0, filter = 0, output = 0, low = 0, stride = 1, dilation = 1;
    /// Padding after the input that the last window reaches into; negative where the input's end is not seen.
    std::int64_t high() const { return (output - 1) * stride + (filter - 1) * dilation + 1 - low - input; }
  };
  ConvolutionSizes(const ConvolutionSpec& spec, const Bindings& bindings);

  ConvolutionResult result;
  std::vector<Axis> axes;
  std::int64_t batch, groups, channels, features;     // channels and features of one group
  std::int64_t inputs = 1, windows = 1, outputs = 1;  // positions: products over the axes
  int input, filter, output;                          // buffers

  std::int64_t filter_elements() const { return windows * channels * groups * features; }
};

}  // namespace stet::cpu
