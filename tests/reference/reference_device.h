// A second device, slow and plain: it interprets kernels and specs word by word, in double precision. Its memory has
// addresses that no code can read by mistake: whoever follows one on the host faults at once. So it shows that the
// layers above ask the device for everything, and its results are an oracle for those of the CPU.
#pragma once
#include "stet/runtime/device.h"

namespace stet {

Device& reference_device();

}  // namespace stet
