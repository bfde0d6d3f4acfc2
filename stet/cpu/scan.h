// Running combinations along an axis (ir/scan.h), run by generated code on all threads.
//
// Lines are cut into blocks whose size depends on nothing but the axis' length, and every line is bracketed the same
// way whatever the rest of the call is like (cpu/emit_scan.h): the same line gives the same bits in any batch, on any
// number of threads. Where there are many lines, threads take whole lines. Where there are few long ones they take
// blocks in order: the total of a block is computed while the one before is still busy, its carry handed on at once,
// and the block's values are made from what the first pass left in the cache.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "stet/cpu/emit_kernel.h"
#include "stet/cpu/emit_scan.h"

namespace stet::cpu {

/// Dense [outer, length, inner]. Extents are how many elements from the pointers on are their buffers': nothing beyond
/// is touched, and a call whose sizes reach beyond is an InternalError.
struct ScanArguments {
  std::int64_t outer = 1, length = 0, inner = 1;
  const void* from = nullptr;
  void* to = nullptr;  // may be `from` itself where both elements have the same size; no other overlap
  std::int64_t from_extent = 0, to_extent = 0;
};

/// A scan ready to be called. Copies share.
class ScanKernel {
 public:
  /// Checks the spec (InternalError). Compiles nothing yet.
  explicit ScanKernel(ScanSpec spec, bool checked = checked_kernels());
  ~ScanKernel();
  ScanKernel(const ScanKernel&);
  ScanKernel(ScanKernel&&) noexcept;
  ScanKernel& operator=(const ScanKernel&);
  ScanKernel& operator=(ScanKernel&&) noexcept;

  const ScanSpec& spec() const;
  /// The code that run() uses for these sizes, to be loaded together with other code beforehand; what was not loaded is
  /// loaded when needed.
  std::vector<CodeRequest> code_requests(std::int64_t outer, std::int64_t length, std::int64_t inner) const;
  /// Thread-safe. Sizes of 0 are fine. Problem when there is no memory for carries.
  void run(const ScanArguments& arguments) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// How run() shares the work, for tests and documentation.
enum class ScanMethod : std::uint8_t {
  alone,   // too little to share
  lines,   // each line (or strip of columns) by one thread
  blocks,  // the blocks of few long lines
};
ScanMethod scan_method(const ScanSpec& spec, std::int64_t outer, std::int64_t length, std::int64_t inner);

}  // namespace stet::cpu
