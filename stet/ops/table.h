// All rows, for passes over the table: documentation and tests.
#pragma once
#include <span>
#include <vector>

#include "stet/ir/op.h"

namespace stet {

std::span<const OpDef> elementwise_rows();
/// One row per type to cast to, in the order of DType.
std::span<const OpDef> cast_rows();
/// Every row, elementwise and structured.
std::vector<const OpDef*> all_rows();

// Rows that gradients and other files use.
extern const OpDef sum_row, mean_row, prod_row, max_row, min_row, argmax_row, argmin_row;
extern const OpDef reshape_row, transpose_row, broadcast_to_row, slice_row, reverse_row, concat_row;
extern const OpDef gather_row, one_hot_row, scatter_add_row;
extern const OpDef matmul_row, conv2d_row;
extern const OpDef uniform_row, normal_row, randint_row;
extern const OpDef nonzero_row;

}  // namespace stet
