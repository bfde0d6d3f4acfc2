// The step of host code: a program comes to it, runs it, and goes on.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "stet/ir/host_code.h"
#include "stet/runtime/program.h"

namespace stet {

/// Runs host code on dense buffers. Of a device other than the host, what it reads is copied out before and what it
/// writes copied in after.
class HostStep : public Step {
 public:
  struct Operand {
    int buffer = -1;
    DType dtype = DType::f32;
    Shape shape;
  };
  HostStep(Device& device, HostCodePointer code, std::vector<Operand> inputs, std::vector<Operand> results);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  bool runs_host_code() const override { return true; }

 private:
  Device& device_;
  HostCodePointer code_;
  std::vector<Operand> inputs_, results_;
};

}  // namespace stet
