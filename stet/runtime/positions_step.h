#pragma once
#include <memory>
#include <string>

#include "stet/base/shape.h"
#include "stet/runtime/program.h"

namespace stet {

/// Writes the positions of non-zero bytes. Plain C++: it moves positions and computes nothing.
class PositionsStep : public Step {
 public:
  PositionsStep(int flags, int positions, Shape shape);
  std::unique_ptr<BoundStep> bind(const Bindings& bindings) const override;
  std::string str() const override;

 private:
  Shape shape_;
};

}  // namespace stet
