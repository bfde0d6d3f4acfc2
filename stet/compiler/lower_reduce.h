#pragma once
#include "stet/compiler/lower.h"

namespace stet {

/// A reduction of a map: one kernel.
void lower_reduce(LowerCall& call);

}  // namespace stet
