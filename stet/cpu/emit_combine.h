// Accumulators of reductions, as LLVM vectors.
#pragma once
#include <span>
#include <vector>

#include "stet/cpu/llvm_builder.h"
#include "stet/ir/op.h"

namespace stet::cpu {

/// a combined with b (sum, product, maximum, minimum); NaN wins in maximum and minimum; integers wrap.
Value combine_values(LlvmBuilder& b, Combine combine, DType dtype, Value left, Value right);

/// One accumulator: `width()` vectors that a reduction carries. argmax and argmin carry values and positions; among
/// equal values the first position wins, and NaN beats every number, as in NumPy.
class Reducer {
 public:
  Reducer(LlvmBuilder& builder, Combine combine, DType dtype, int lanes);
  int width() const { return is_position() ? 2 : 1; }
  /// `positions`: for argmax and argmin, the first position of each lane.
  std::vector<Value> initial(Value positions);
  /// Takes in a vector of values at `positions` (i64 lanes); lanes outside `mask` (null: none) are ignored.
  std::vector<Value> step(std::span<const Value> state, Value value, Value positions, Value mask);
  /// Several accumulators, one after the other in `states`, and all their lanes, into one scalar: the value, or the
  /// position (i64). The order of combination is fixed.
  Value finish(std::span<const Value> states);
  /// One accumulator's lanes as they are: values, or positions.
  Value column_result(std::span<const Value> state) { return state[is_position() ? 1 : 0]; }

 private:
  bool is_position() const { return combine_ == Combine::argmax || combine_ == Combine::argmin; }
  Value identity(Type type);
  Value better(Value candidate, Value best);  // strictly, NaN first
  std::vector<Value> join(std::span<const Value> left, std::span<const Value> right);

  LlvmBuilder& b;
  Combine combine_;
  DType dtype_;
  int lanes_;
};

}  // namespace stet::cpu
