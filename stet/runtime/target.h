// Target: what turns kernels and specs into steps of a program. One per kind of device; the compiler knows no other way
// to get a step that computes.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stet/ir/kernel.h"
#include "stet/ir/row_kernel.h"
#include "stet/ir/scan.h"
#include "stet/ir/specs.h"
#include "stet/runtime/kernel_check.h"
#include "stet/runtime/program.h"

namespace stet {

/// A kernel on buffers of a program.
struct KernelLaunch {
  Kernel kernel;
  std::vector<int> buffers;         // the program's buffer for each of the kernel's
  std::vector<Dim> buffer_extents;  // elements of each
  std::vector<KernelCheck> checks;  // numbered from 1
};

/// Rows on buffers of a program.
struct RowLaunch {
  RowKernel kernel;
  std::vector<int> buffers;         // the program's buffer for each of the kernel's but scratch
  std::vector<Dim> buffer_extents;  // elements of each
};

class Target {
 public:
  virtual ~Target() = default;

  // Steps, with reads and writes filled in.
  virtual std::unique_ptr<Step> kernel(KernelLaunch launch) const = 0;
  virtual std::unique_ptr<Step> rows(RowLaunch launch) const = 0;
  virtual std::unique_ptr<Step> contraction(ContractionSpec spec) const = 0;
  virtual std::unique_ptr<Step> convolution(ConvolutionSpec spec) const = 0;
  virtual std::unique_ptr<Step> scan(ScanSpec spec, Lines lines, int from, int to) const = 0;
  virtual std::unique_ptr<Step> sort(SortSpec spec) const = 0;
  virtual std::unique_ptr<Step> search(SearchSpec spec) const = 0;
  /// Fails `check` for an index that is not on the axis, before anything is written.
  virtual std::unique_ptr<Step> scatter(ScatterSpec spec, KernelCheck check) const = 0;
  virtual std::unique_ptr<Step> pool(PoolSpec spec) const = 0;
  virtual std::unique_ptr<Step> positions(PositionsSpec spec) const = 0;
  virtual std::unique_ptr<Step> linalg(LinalgSpec spec) const = 0;

  /// Whether contraction() multiplies matrices of this type; a product of others is a kernel.
  virtual bool contracts(DType dtype) const = 0;
  /// Fetches or compiles the code of these steps of its own, at once.
  virtual void provide_code(std::span<Step* const> steps) const = 0;
  /// What programs differ in besides their graph, while it may change: part of the keys they are found by.
  virtual std::uint64_t mode() const { return 0; }
};

}  // namespace stet
