// What a gradient reads: which of an op's operands and results a tape has to keep. Private to core/.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "stet/core/tensor.h"
#include "stet/ir/attributes.h"
#include "stet/ir/op.h"

namespace stet {

struct GradientReads {
  std::vector<bool> inputs, outputs;  // floating ones; all others are kept
  /// A row that is linear in each floating operand that is wanted, with the others as they are: its gradient by that
  /// operand reads neither it nor a result. `together`: it is linear in all of them at once.
  bool multilinear = false, together = false;
};

/// Of a map the derivatives of its body say which operands they read; of other rows the gradient is run once on
/// symbols, and what it used is seen. `wanted`: operands whose gradients somebody needs. The answer holds for all
/// sizes.
std::shared_ptr<const GradientReads> gradient_reads(const OpDef& op, std::span<const Tensor> inputs,
                                                    const AttributesView& attributes, std::span<const Tensor> outputs,
                                                    const std::vector<bool>& wanted);

}  // namespace stet
