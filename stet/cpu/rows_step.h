// A RowKernel as a step of a program.
#pragma once
#include <vector>

#include "stet/cpu/code_step.h"
#include "stet/cpu/emit_rows.h"
#include "stet/ir/flops.h"
#include "stet/runtime/kernel_abi.h"
#include "stet/runtime/target.h"

namespace stet::cpu {

class RowsStep : public Step, public CodeStep {
 public:
  explicit RowsStep(RowLaunch launch);

  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override { return kernel_.str(); }
  Dim flops() const override { return stet::flops(kernel_); }
  /// Scratch is allocated.
  bool may_throw() const override { return !kernel_.scratch.empty(); }

  std::vector<CodeRequest> code_requests() const override { return {row_kernel_code(kernel_, {.checked = checked_})}; }
  void hold_code(std::vector<Code> code) override {
    code_ = std::move(code[0]);
    function_ = reinterpret_cast<KernelFunction>(code_.get());
  }

 private:
  friend class BoundRows;
  RowKernel kernel_;
  std::vector<int> buffers_;
  std::vector<Dim> buffer_extents_;  // for checked mode
  bool checked_;
  Code code_;
  KernelFunction function_ = nullptr;
};

}  // namespace stet::cpu
