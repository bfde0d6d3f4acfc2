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

// sum_row, mean_row, …
#define STET_STRUCTURED(name) extern const OpDef name##_row;
#include "stet/ops/structured.def"

}  // namespace stet
