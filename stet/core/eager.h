// The eager path: an op's one-node program, compiled once for symbolic sizes, found again in nanoseconds.
#pragma once
#include <cstdint>
#include <span>

#include "stet/core/tensor_node.h"
#include "stet/ir/op.h"

namespace stet {

/// An operand as it goes into a program: a tensor, or a number already in its type.
struct Operand {
  const TensorNode* tensor = nullptr;
  DType dtype = DType::f32;
  std::uint64_t bits = 0;  // of a number: its element

  DType type() const { return tensor ? tensor->dtype : dtype; }
  ValueType value_type() const {
    return tensor ? ValueType{tensor->dtype, tensor->shape()} : ValueType{dtype, Shape()};
  }
};

/// Runs the op on a device that all tensors lie on; `results` as many as the row has. Throws Problem.
void run_eager(const OpDef& op, std::span<const Operand> operands, AttributesView attributes, Where where,
               std::span<Tensor> results, Device& device);

struct EagerStatistics {
  std::uint64_t programs = 0;  // compiled one-node programs
  std::uint64_t bindings = 0;  // (program, sizes) pairs bound
};
EagerStatistics eager_statistics();
/// Forgets all eager programs: for tests and benches.
void clear_eager_programs();

}  // namespace stet
