// One call of a traced function, checked against its own code run eagerly. Private to core/.
#pragma once
#include "stet/core/function_entry.h"
#include "stet/core/host_function.h"

namespace stet {

/// STET_VERIFY=1 is set: the first call of every trace and every audited call are checked.
bool verifies_all();

/// Runs the call through the trace's program and the host code eagerly, both on the state as it is now, neither
/// changing it, and compares results, state and, with `gradients`, the gradients of the results with respect to the
/// arguments and the Variables. VerifyError where they differ by more than rounding explains: a difference makes the
/// host code run three times more, on arguments and state that are moved by rounding errors, to see what it makes of
/// them.
void verify_call(Entry& entry, const HostFunction& host, const MissedCall& call, bool gradients);

}  // namespace stet
