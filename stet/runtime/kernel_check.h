// Run-time checks of kernels: an index that must lie within an axis.
#pragma once
#include <cstdint>
#include <string>

#include "stet/base/inside.h"
#include "stet/base/where.h"
#include "stet/ir/op.h"
#include "stet/runtime/kernel_abi.h"

namespace stet {

/// What a failed check means: "index 7 at position 3 of 'indices' is out of range; allowed are 0 to 4".
struct KernelCheck {
  std::string operand;  // whose value it was
  Dim extent = 0;       // allowed are 0 to extent - 1
  const char* op = "";  // that the kernel is of, who called it, and the user's line
  Caller caller = {};
  Where where = {};
};

/// Throws the IndexProblem of a check that failed, in the words of whoever the user called.
[[noreturn]] void throw_failed_check(const KernelCheck& check, const KernelStatus& status, std::int64_t extent);

}  // namespace stet
