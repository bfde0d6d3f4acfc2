#include "stet/ir/flops.h"

#include <span>
#include <unordered_set>
#include <vector>

#include "stet/base/dim_inside.h"

namespace stet {

namespace {

/// Of all of them, what they share once.
int operation_count(std::span<const Expr> expressions) {
  int count = 0;
  std::unordered_set<const ExprNode*> seen;
  for (const Expr& expression : expressions)
    for (Expr part : topological(expression)) {
      if (!seen.insert(&*part).second) continue;
      switch (part->primitive) {
        case Primitive::operand:
        case Primitive::index:
        case Primitive::constant:
        case Primitive::less:
        case Primitive::less_equal:
        case Primitive::equal:
        case Primitive::logical_and:
        case Primitive::logical_or:
        case Primitive::logical_xor:
        case Primitive::logical_not:
        case Primitive::shift_left:
        case Primitive::shift_right:
        case Primitive::select:
        case Primitive::select_rarely:
        case Primitive::cast:
        case Primitive::bitcast:
          break;
        case Primitive::fma:
          count += 2;
          break;
        default:
          ++count;
      }
    }
  return count;
}

}  // namespace

int operation_count(Expr expression) {
  return expression.defined() ? operation_count(std::span<const Expr>(&expression, 1)) : 0;
}

Dim flops(const Kernel& kernel) {
  Dim all = 1, kept = 1;
  for (const Loop& loop : kernel.loops) {
    all = all * loop.extent;
    if (!loop.reduced) kept = kept * loop.extent;
  }
  int at_each = kernel.has_reduction() || kernel.accumulate ? 1 : 0;
  at_each += operation_count(kernel.bodies());
  return all * at_each + kept * operation_count(kernel.epilogue);
}

Dim flops(const RowKernel& kernel) {
  Dim rows = 1;
  for (const Dim& extent : kernel.outer) rows = rows * extent;
  int once = 0, at_each = 0;
  for (const RowKernel::Stage& stage : kernel.stages) {
    for (const RowKernel::Scalar& one : stage.scalars) once += operation_count(one.value);
    std::vector<Expr> bodies;
    for (const RowKernel::Reduction& one : stage.reductions) bodies.push_back(one.body);
    for (const RowKernel::Line& one : stage.lines) bodies.push_back(one.value);
    at_each += operation_count(bodies) + static_cast<int>(stage.reductions.size());
  }
  return rows * kernel.length * at_each + rows * once;
}

Dim flops(const ContractionSpec& contraction) {
  Dim elements = contraction.m * contraction.n;
  for (const Dim& extent : contraction.batch) elements = elements * extent;
  return elements * (contraction.k * 2 + operation_count(contraction.epilogue.expression));
}

Dim flops(const ConvolutionSpec& convolution) {
  Dim products = convolution.batch * convolution.groups * convolution.channels * convolution.features;
  for (const ConvolutionAxis& axis : convolution.axes) products = products * axis.output * axis.filter;
  return products * 2;
}

Dim flops(const PoolSpec& pool) {
  Dim elements = pool.batch * pool.channels;
  for (const PoolAxis& axis : pool.axes) elements = elements * axis.output * axis.window;
  return elements;
}

Dim flops(const Lines& scanned) { return scanned.outer * scanned.length * scanned.inner; }

}  // namespace stet
