// A matrix product as a step of a program.
#pragma once
#include <string>
#include <vector>

#include "stet/cpu/gemm.h"
#include "stet/runtime/program.h"

namespace stet::cpu {

/// A matrix or an epilogue operand in a program's buffer; counts in elements.
struct GemmPlace {
  int buffer = 0;
  Dim offset = 0;
  Dim leading = 0;
  std::vector<Dim> batch_strides;  // per batch axis; 0 where it is repeated
  Dim extent = 0;                  // of the buffer
  int element_bytes = 4;
};

class GemmStep : public Step {
 public:
  GemmSpec spec;
  Dim m = 0, n = 0, k = 0;
  std::vector<Dim> batch;  // extents of the batch axes
  GemmPlace left, right, result;
  std::vector<GemmPlace> operands;

  /// Call when all fields are set.
  void finish();
  std::unique_ptr<BoundStep> bind(const Bindings&) const override;
  std::string str() const override;
  /// The pieces of code that sizes like the hinted ones need.
  std::vector<CodeRequest> code() const;
  /// What code() asked for: held, so that it is there when it is needed.
  void hold_code(std::vector<Code> code) { code_ = std::move(code); }

 private:
  friend class BoundGemm;
  std::shared_ptr<GemmKernel> kernel_;
  std::vector<Code> code_;
};

}  // namespace stet::cpu
