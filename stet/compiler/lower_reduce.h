#pragma once
#include "stet/compiler/lower.h"

namespace stet {

/// A reduction of a map: one kernel, with the loop that memory is contiguous along innermost.
void lower_reduce(LowerCall& call);

}  // namespace stet
