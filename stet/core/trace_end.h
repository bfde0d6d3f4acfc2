// What the library itself keeps of a trace while it runs. Private to the library.
#pragma once

namespace stet {

class Trace;

/// Called on the trace's thread when its host code has ended, before one looks for tensors that host code kept: lets go
/// of what was kept for the length of the trace. Layers are the one user.
void set_trace_end(void (*let_go)(const Trace& ended));

}  // namespace stet
