// Tensors that one piece of library code keeps for another on the same thread: as long as the trace runs that made
// them; outside of traces until they are kept anew. Private to the library: layers keep the losses that they add.
#pragma once
#include <cstdint>
#include <vector>

#include "stet/core/tensor.h"

namespace stet {

struct KeptTensor {
  std::uint64_t owner = 0;  // what was kept for the same one before is forgotten
  std::uint64_t tag = 0;
  Tensor tensor = {};
};

/// Instead of what was kept for the owner.
void keep_tensors(std::uint64_t owner, const std::vector<KeptTensor>& tensors);
/// Those of the trace that runs now, or of none, in the order of keeping.
std::vector<KeptTensor> kept_tensors();

class Trace;
/// The one for whose length tensors are kept now; null: none runs.
const Trace* keeping_trace();
/// The trace's host code has ended.
void forget_kept_of(const Trace& trace);

}  // namespace stet
