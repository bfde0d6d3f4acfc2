// What works along one axis, as steps of a program: scans, sorts, searches.
#pragma once
#include <string>
#include <vector>

#include "stet/cpu/code_step.h"
#include "stet/cpu/scan.h"
#include "stet/ir/flops.h"
#include "stet/ir/specs.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

class ScanStep : public Step, public CodeStep {
 public:
  ScanStep(ScanSpec spec, Lines lines, int from, int to);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  Dim flops() const override { return stet::flops(lines_); }
  std::vector<CodeRequest> code_requests() const override;
  void hold_code(std::vector<Code> code) override { code_ = std::move(code); }

 private:
  ScanKernel kernel_;
  Lines lines_;
  int from_, to_;
  std::vector<Code> code_;
};

class SortStep : public Step {
 public:
  explicit SortStep(SortSpec spec);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;

 private:
  SortSpec spec_;
};

class SearchStep : public Step {
 public:
  explicit SearchStep(SearchSpec spec);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  bool may_throw() const override { return false; }

 private:
  SearchSpec spec_;
};

}  // namespace stet::cpu
