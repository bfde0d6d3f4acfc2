// A generated kernel as a step of a program: which machine code, how it is cut into chunks, which checks it can fail.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "stet/cpu/code_step.h"
#include "stet/cpu/emit_kernel.h"
#include "stet/ir/flops.h"
#include "stet/ir/kernel.h"
#include "stet/runtime/kernel_abi.h"
#include "stet/runtime/target.h"

namespace stet::cpu {

class KernelStep : public Step, public CodeStep {
 public:
  explicit KernelStep(KernelLaunch launch);

  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override { return kernel_.str(); }
  std::string title() const override;
  Dim flops() const override { return stet::flops(kernel_); }
  /// Long reductions allocate.
  bool may_throw() const override { return !checks_.empty() || kernel_.has_reduction(); }
  bool pointwise(int from, int to) const override;
  const Kernel& kernel() const { return kernel_; }

  /// For ordinary sizes; variants for huge ones are fetched when first bound.
  std::vector<CodeRequest> code_requests() const override { return {kernel_code(kernel_, {.checked = checked_})}; }
  void hold_code(std::vector<Code> code) override {
    code_ = std::move(code[0]);
    function_ = reinterpret_cast<KernelFunction>(code_.get());
  }

 private:
  friend class BoundKernel;
  Kernel kernel_;
  std::vector<int> buffers_;
  std::vector<Dim> buffer_extents_;  // for checked mode
  std::vector<KernelCheck> checks_;
  std::vector<Dim> numbers_;
  bool checked_;
  Code code_;
  KernelFunction function_ = nullptr;
};

/// The two halves of a long reduction: blocks of the outermost reduced loop into a scratch buffer [blocks, kept…],
/// which are then combined. Cut by sizes only, so that results do not depend on threads.
struct SplitReduction {
  Kernel partial, combine;
};
SplitReduction split_reduction(const Kernel& kernel);

}  // namespace stet::cpu
