// A convolution as a step: blocks of patches, each multiplied by the filter while it is in cache.
#pragma once
#include <memory>
#include <string>

#include "stet/cpu/gemm.h"
#include "stet/cpu/kernel_step.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

class ConvolutionStep : public Step {
 public:
  /// Loops [batch, out height, out width, kernel height, kernel width, channels]; operand 0 reads `input`. The result
  /// is set here: a matrix [rows, depth] in scratch memory.
  Kernel patches;
  Dim rows = 0, depth = 0, features = 0;
  DType computed = DType::f32, stored = DType::f32;
  int input = 0, weights = 0, result = 0;  // program buffers; weights are [depth, features]
  Dim input_extent = 0;

  /// Call when all fields are set: fetches the code.
  void finish();
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;

 private:
  friend class BoundConvolution;
  bool checked_ = false;
  Code code_;
  KernelFunction function_ = nullptr;
  std::shared_ptr<GemmKernel> product_;
};

}  // namespace stet::cpu
