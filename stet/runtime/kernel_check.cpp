#include "stet/runtime/kernel_check.h"

#include "stet/base/error.h"

namespace stet {

void throw_failed_check(const KernelCheck& check, const KernelStatus& status, std::int64_t extent) {
  IndexProblem problem(check.operand, status.value, status.position, extent);
  if (check.caller.words) {
    problem = problem.in(*check.caller.words);
    problem.found_by(check.caller.name, check.where);
  } else {
    problem.found_by(op_text(check.caller, check.op), check.where);
  }
  throw problem;
}

}  // namespace stet
