#include "stet/ir/specs.h"

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet {

const char* name(ConvolutionResult result) {
  switch (result) {
    case ConvolutionResult::output:
      return "output";
    case ConvolutionResult::input:
      return "input";
    case ConvolutionResult::filter:
      return "filter";
  }
  return "?";
}

const char* name(PoolResult result) {
  switch (result) {
    case PoolResult::largest:
      return "largest";
    case PoolResult::picked:
      return "picked";
    case PoolResult::placed:
      return "placed";
    case PoolResult::mean:
      return "mean";
    case PoolResult::spread:
      return "spread";
  }
  return "?";
}

const char* name(LinalgRoutine routine) {
  static constexpr const char* names[] = {
      "cholesky", "triangular_solve", "solve", "lu", "determinant", "adjugate", "qr", "svd", "eigh"};
  return names[static_cast<int>(routine)];
}

void throw_failed_matrix(const LinalgSpec& spec, const std::vector<std::int64_t>& batch, std::int64_t entry,
                         std::int64_t at) {
  std::string which = "the matrix";
  if (!batch.empty()) {
    std::vector<std::int64_t> position(batch.size());
    for (std::size_t axis = batch.size(); axis-- > 0; entry /= batch[axis]) position[axis] = entry % batch[axis];
    which = "matrix [";
    for (std::size_t axis = 0; axis < position.size(); ++axis) which += text(axis > 0 ? "," : "", position[axis]);
    which += "] of the batch";
  }
  std::string what, advice;
  switch (spec.routine) {
    case LinalgRoutine::cholesky:
      what = text(which, " is not positive definite: pivot ", at, " is not a positive number");
      advice = "check that it is symmetric and finite; a multiple of the identity added to it makes it definite";
      break;
    case LinalgRoutine::triangular_solve:
      what = text(which, " is singular: element ", at, " of its diagonal is 0");
      advice = "add to its diagonal, or solve by least squares (linalg::lstsq)";
      break;
    case LinalgRoutine::solve:
      what = text(which, " is singular: pivot ", at, " is 0");
      advice = "solve by least squares (linalg::lstsq), or invert with linalg::pinv";
      break;
    default:
      what = text(which, " is not finite, or its ", name(spec.routine), " does not converge");
      advice = "look for NaN and infinities in it";
  }
  Problem problem(what, advice);
  problem.found_by(op_text(spec.caller, spec.op), spec.where);
  throw problem;
}

}  // namespace stet
