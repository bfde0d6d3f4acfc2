// The whole interface between generated code and the rest: one function type. Plain C layout.
#pragma once
#include <cstdint>

namespace stet {

/// What a failed run-time check leaves behind. Written by generated code before anything is accessed out of range.
struct KernelStatus {
  std::int64_t check = 0;     // 0: none; else the number of the check in the kernel, from 1
  std::int64_t value = 0;     // the offending value (an index)
  std::int64_t position = 0;  // where it was: flat position in the operand that held it
};

/// Runs iterations [begin, end) of the kernel's outermost parallel loop. `buffers` are the operands' and results' first
/// bytes, `numbers` the kernel's sizes, strides, offsets and scalar operands as 64-bit words, in the order the kernel
/// lists them. Returns 0, or the number of a failed check after filling in `status`. Never throws, never unwinds.
using KernelFunction = std::int64_t (*)(void* const* buffers, const std::int64_t* numbers, std::int64_t begin,
                                        std::int64_t end, KernelStatus* status);

}  // namespace stet
