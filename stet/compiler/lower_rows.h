#pragma once
#include "stet/compiler/lower.h"

namespace stet {

/// Maps and reductions over the rows of one space: one step, which goes row by row where that is worth it for the sizes
/// that it is bound to, and otherwise runs the child's own steps.
void lower_rows(LowerCall& call, const std::vector<Place>& results);

}  // namespace stet
