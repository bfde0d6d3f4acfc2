// RowKernel -> LLVM IR.
#pragma once
#include "stet/cpu/emit_kernel.h"
#include "stet/ir/row_kernel.h"

namespace stet::cpu {

struct RowOptions {
  /// As EmitOptions::checked.
  bool checked = false;
  /// For rows that are much more than the cache holds: lines that nobody reads again are stored around it, and the next
  /// row is fetched while one is worked on. Needs rows that begin at whole vectors.
  bool streaming = false;
};

/// A launch's [begin, end) are rows: positions of the outer loops as one number. Its numbers are the kernel's, then, in
/// checked mode, the element count of every buffer.
CodeRequest row_kernel_code(const RowKernel& kernel, RowOptions options);
int row_words(const RowKernel& kernel, bool checked);
/// Elements per vector.
int row_lanes(const RowKernel& kernel);

}  // namespace stet::cpu
