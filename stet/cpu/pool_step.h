// Pooling as a step: plain loops over windows, vectors along the channels.
#pragma once
#include <memory>
#include <string>

#include "stet/ir/flops.h"
#include "stet/ir/specs.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

class PoolStep : public Step {
 public:
  explicit PoolStep(PoolSpec spec);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  Dim flops() const override { return stet::flops(spec_); }
  bool may_throw() const override { return false; }

 private:
  PoolSpec spec_;
};

}  // namespace stet::cpu
