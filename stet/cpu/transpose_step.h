// A copy that reads memory across and writes it along: what makes a transposed view dense. Squares of it go through a
// buffer that stays in the cache, so that every cache line is read once and written once; code that gathers reads each
// line as often as it has elements, where rows lie a power of 2 apart.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "stet/runtime/program.h"
#include "stet/runtime/target.h"

namespace stet::cpu {

class TransposeStep : public Step {
 public:
  /// Whether the launch is such a copy: one operand as it is, contiguous along another loop than the result.
  static bool is_one(const KernelLaunch& launch);
  explicit TransposeStep(KernelLaunch launch);
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  bool may_throw() const override { return false; }

 private:
  Kernel kernel_;
  int from_, to_;       // buffers
  std::size_t across_;  // the loop along which the operand is contiguous
};

}  // namespace stet::cpu
