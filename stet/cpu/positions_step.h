#pragma once
#include <memory>
#include <string>

#include "stet/ir/specs.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

/// Writes the positions of non-zero bytes. Plain C++: it moves positions and computes nothing.
class PositionsStep : public Step {
 public:
  explicit PositionsStep(PositionsSpec spec);
  std::unique_ptr<BoundStep> bind(const Bindings& bindings) const override;
  std::string str() const override;

 private:
  PositionsSpec spec_;
};

}  // namespace stet::cpu
