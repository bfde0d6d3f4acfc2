// A convolution as a step: blocks of patches, each multiplied by the filter while it is in cache.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "stet/cpu/code_step.h"
#include "stet/cpu/gemm.h"
#include "stet/ir/kernel.h"
#include "stet/ir/specs.h"
#include "stet/runtime/kernel_abi.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

class ConvolutionStep : public Step, public CodeStep {
 public:
  explicit ConvolutionStep(ConvolutionSpec spec);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  std::vector<CodeRequest> code_requests() const override;
  void hold_code(std::vector<Code> code) override;

 private:
  friend class BoundConvolution;
  ConvolutionSpec spec_;
  DType computed_;
  /// Of one group: loops [batch, out…, kernel…, channels of the group] from buffer 0, the input, to a matrix
  /// [rows, depth] in buffer 1, scratch memory. Reads 0 where the window lies outside of the input.
  Kernel patches_;
  Dim rows_ = 0, depth_ = 0;
  bool checked_ = false;
  std::vector<Code> code_;
  KernelFunction function_ = nullptr;
  std::shared_ptr<GemmKernel> product_;
};

}  // namespace stet::cpu
