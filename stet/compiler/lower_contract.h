#pragma once
#include "stet/compiler/lower.h"

namespace stet {

/// A matrix product: generated GEMM for f32 and f64 (f16 and bf16 through f32), a reduction kernel for integers.
void lower_contract(LowerCall& call);

}  // namespace stet
