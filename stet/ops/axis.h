// Axes as users give them. Private to ops/.
#pragma once
#include "stet/core/call.h"
#include "stet/ops/ops.h"

namespace stet {

/// A Problem that a callable finds before it calls the row, as the row's error.
[[noreturn]] inline void fail(const OpDef& row, std::span<const In> operands, const Problem& problem) {
  throw_user_error(row.name, row.operands, operands, problem, frame_name() ? frame_where() : operands[0].where());
}

/// Counted from 0; UserError naming the row if x has no such axis. Of an undefined tensor 0: the row says what is
/// wrong.
inline int counted_axis(const OpDef& row, const In& x, std::int64_t axis) {
  if (x.kind() == In::Kind::tensor && !x.tensor().defined()) return 0;
  try {
    if (x.rank() == 0) throw Problem("a scalar has no axes", "reshape(x, {1}) makes it a vector");
    return normalize_axis(axis, x.rank());
  } catch (const Problem& problem) {
    fail(row, {&x, 1}, problem);
  }
}

}  // namespace stet
