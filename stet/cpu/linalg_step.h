// Linear algebra as a step of a program.
#pragma once
#include <memory>
#include <string>

#include "stet/ir/specs.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

class LinalgStep : public Step {
 public:
  explicit LinalgStep(LinalgSpec spec);
  std::unique_ptr<BoundStep> bind(const Bindings& bindings) const override;
  std::string str() const override;

 private:
  LinalgSpec spec_;
};

}  // namespace stet::cpu
