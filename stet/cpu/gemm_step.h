// A matrix product as a step of a program.
#pragma once
#include <string>
#include <vector>

#include "stet/cpu/code_step.h"
#include "stet/cpu/gemm.h"
#include "stet/ir/flops.h"
#include "stet/ir/specs.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

class GemmStep : public Step, public CodeStep {
 public:
  explicit GemmStep(ContractionSpec spec);

  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  std::string title() const override;
  Dim flops() const override { return stet::flops(spec_); }
  const ContractionSpec& spec() const { return spec_; }
  std::vector<CodeRequest> code_requests() const override;
  void hold_code(std::vector<Code> code) override { code_ = std::move(code); }

 private:
  friend class BoundGemm;
  ContractionSpec spec_;
  std::shared_ptr<GemmKernel> kernel_;
  std::vector<Code> code_;
};

}  // namespace stet::cpu
