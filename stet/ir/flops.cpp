#include "stet/ir/flops.h"

#include "stet/base/dim_inside.h"

namespace stet {

int operation_count(Expr expression) {
  if (!expression.defined()) return 0;
  int count = 0;
  for (Expr part : topological(expression)) switch (part->primitive) {
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
  return count;
}

Dim flops(const Kernel& kernel) {
  Dim all = 1, kept = 1;
  for (const Loop& loop : kernel.loops) {
    all = all * loop.extent;
    if (!loop.reduced) kept = kept * loop.extent;
  }
  int at_each = kernel.has_reduction() || kernel.accumulate ? 1 : 0;
  for (Expr body : kernel.bodies()) at_each += operation_count(body);
  return all * at_each + kept * operation_count(kernel.epilogue);
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
