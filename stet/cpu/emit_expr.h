// The values of an Expr as LLVM vectors.
#pragma once
#include <functional>
#include <span>
#include <unordered_map>

#include "stet/cpu/llvm_builder.h"
#include "stet/ir/expr.h"

namespace stet::cpu {

/// Emits `expr` at the insertion point, `lanes` at once (1: scalar). `operand(number)` gives an operand's value in its
/// computed type (LlvmBuilder::computed: bool lanes are i1), `loop_index(number)` an i64 (vector). Transcendental
/// primitives are expanded first (ir/expand_math.h). Equal subexpressions are emitted once. No basic blocks are made.
/// Meaning: exactly stet::evaluate's rounding of every node, whatever `lanes` is.
Value emit_expr(LlvmBuilder& b, Expr expr, int lanes, const std::function<Value(int)>& operand,
                const std::function<Value(int)>& loop_index);

/// Several expressions with shared subexpressions.
std::vector<Value> emit_exprs(LlvmBuilder& b, std::span<const Expr> exprs, int lanes,
                              const std::function<Value(int)>& operand, const std::function<Value(int)>& loop_index);

/// Element <-> computed value: i8 in memory is i1 in registers for bool, everything else the same.
Value from_storage(LlvmBuilder& b, DType dtype, Value stored);
Value to_storage(LlvmBuilder& b, DType dtype, Value computed);

}  // namespace stet::cpu
