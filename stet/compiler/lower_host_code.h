// Rows that run host code become one step each.
#pragma once
#include "stet/compiler/lower.h"

namespace stet {

/// The `lower` of every row whose attributes are HostCodeAttributes.
void lower_host_code(LowerCall& call);

}  // namespace stet
