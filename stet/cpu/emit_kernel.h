// Kernel -> LLVM IR: explicit vectors, masked tails, no help expected from optimisation passes.
#pragma once
#include "stet/cpu/jit.h"
#include "stet/ir/kernel.h"

namespace stet::cpu {

struct EmitOptions {
  /// Test every access against the buffer's extent: sanitizers cannot see generated code. Default in sanitizer builds.
  bool checked = false;
  /// Store around the cache; for results larger than it. Needs a map of one loop.
  bool nontemporal = false;
};

/// Process-wide default of `checked` (tests switch it).
bool checked_kernels();
void set_checked_kernels(bool checked);

/// A failed bounds test of checked mode reports this check number plus the buffer.
inline constexpr std::int64_t bounds_check_base = 1'000'000;

// What follows the kernel's numbers() in the launch's array of numbers:
//   reductions: first and one-past-last index of the outermost reduced loop
//   checked mode: the element count of every buffer, in order
struct NumberLayout {
  int count = 0;         // of Kernel::numbers()
  int reduce_begin = 0;  // position of the two bounds, if it is a reduction
  int extents = 0;       // position of the first buffer's extent, if checked
  int total = 0;
};
NumberLayout number_layout(const Kernel& kernel, bool checked);

/// What the outermost parallel loop, [begin, end) of a launch, runs over.
enum class ParallelOver {
  elements,  // positions of the last loop (no other kept loop)
  rows,      // positions of the kept loops outside the vectorised part, as one number
};
ParallelOver parallel_over(const Kernel& kernel);
/// Elements per vector.
int vector_lanes(const Kernel& kernel);

CodeRequest kernel_code(const Kernel& kernel, EmitOptions options);

}  // namespace stet::cpu
