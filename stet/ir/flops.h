// How much arithmetic a part of a program does.
#pragma once
#include "stet/ir/row_kernel.h"
#include "stet/ir/specs.h"

namespace stet {

/// Operations of an expression at one position: additions, products, functions such as exp are one each, fma two.
/// Comparisons, selections, casts and work on bits are none.
int operation_count(Expr expression);

Dim flops(const Kernel& kernel);
Dim flops(const RowKernel& kernel);
Dim flops(const ContractionSpec& contraction);
Dim flops(const ConvolutionSpec& convolution);
Dim flops(const PoolSpec& pool);
Dim flops(const Lines& scanned);

}  // namespace stet
