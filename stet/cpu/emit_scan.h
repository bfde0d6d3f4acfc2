// ScanSpec -> LLVM IR: running combinations of one block of lines, as requests for code. What calls them, in which
// blocks and on which threads, is stet/cpu/scan.cpp.
//
// Lines are cut into blocks. A block is scanned as if it stood alone, and what came before it, its carry, is combined
// in front of every value: y = carry . (x[first] . … . x[i]). The total of a block is bracketed alike whether it is a
// by-product of the scan or computed ahead of it, so that both ways to carry on give the same bits.
//
// The shapes. Where the axis is contiguous (inner == 1) lanes run along it: a group of vectors is combined in pairs of
// neighbours until one vector is left, which is scanned in log2(lanes) steps of shifting and combining; then the way
// back fills in the elements between. That is two combinations per vector, and one per group in the chain that the next
// group waits for. Otherwise lanes run across lines, which are walked a few rows at a time; the state is a row in
// memory that stays in the first cache. Where a combination takes longer than gathers and scatters, lanes are filled
// that way too: along lines of a narrow matrix, across short contiguous lines.
#pragma once
#include <cstdint>

#include "stet/cpu/jit.h"
#include "stet/ir/scan.h"

namespace stet::cpu {

enum class ScanShape : std::uint8_t {
  lines,    // inner == 1; lines that fit one vector are scanned several at a time
  strided,  // any inner, with gathers and scatters; lines are those of the outer axis times inner
  columns,  // any inner
  across    // inner == 1, with gathers and scatters; lines are the columns of the launch
};

struct ScanOptions {
  /// Test every access against the buffer's extent (see EmitOptions).
  bool checked = false;
  /// Store around the cache; `lines` only, and needs lines that start at a whole vector of the result (64 bytes).
  bool nontemporal = false;
};

/// The buffers of a launch; the last two are rows of accumulators, one per column (one element where lanes run
/// along the axis).
enum ScanBuffer : int {
  scan_operand,
  scan_result,
  scan_carry,  // what came before the block; used where `chained`
  scan_total,  // see below
  scan_buffer_count
};

/// The numbers of a launch, as 64-bit words.
struct ScanNumbers {
  std::int64_t length, inner;  // of the whole operand, at least 1
  std::int64_t first, last;    // the block: elements [first, last) of the axis, counted in the order of the scan
  std::int64_t column_begin, column_end;
  std::int64_t chained;                     // scan: whether there is a carry; total: see there
  std::int64_t extents[scan_buffer_count];  // element counts of the buffers, for checked mode
};

/// Elements per vector.
int scan_lanes(const ScanSpec& spec);
/// Whether one combination takes longer than moving the elements around.
bool scan_is_long(const ScanSpec& spec);
/// Blocks that something follows are a multiple of so many elements long (lanes run along the axis; across it: any
/// number).
int scan_group(const ScanSpec& spec);

/// A KernelFunction (runtime/kernel_abi.h) that scans the block of lines [begin, end): positions of the outer axis,
/// times inner where `strided`; [0, 1) where `across`. Where `chained`, scan_carry is combined in front. scan_total
/// becomes the carry of the next block, if there is one and end is begin + 1: the total with the carry in front.
CodeRequest scan_code(const ScanSpec& spec, ScanShape shape, ScanOptions options);

/// A KernelFunction of the same arguments for one line. `chained` is 0: scan_total = total of the block, nothing else
/// is written. `chained` is 1: scan_total = scan_carry . scan_total. Both together are what the scan leaves there.
CodeRequest scan_total_code(const ScanSpec& spec, ScanShape shape, ScanOptions options);

}  // namespace stet::cpu
