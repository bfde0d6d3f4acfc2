// A scatter as a step of a program.
#pragma once
#include <string>

#include "stet/ir/specs.h"
#include "stet/runtime/kernel_check.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

/// Every place receives its updates in the order of the indices, whichever thread does it: threads share the lines or
/// the columns where there are several, and otherwise the places, each looking through all indices.
class ScatterStep : public Step {
 public:
  ScatterStep(ScatterSpec spec, KernelCheck check);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;

 private:
  friend class BoundScatter;
  ScatterSpec spec_;
  KernelCheck check_;
};

}  // namespace stet::cpu
