// Matrix products with an epilogue: C = epilogue(op(A) · op(B)), for one pair of matrices or a batch of them.
//
// Products run on generated kernels, except large f32 ones with a transposed left matrix: these on dnnl_sgemm, called
// single-threaded on panels. Which, and how the work is cut, depends on layout and sizes only (docs/gemm.md has the
// measurements behind it): the same sizes give the same bits on any number of threads.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/cpu/emit_gemm.h"
#include "stet/cpu/jit.h"
#include "stet/ir/expr.h"

namespace stet::cpu {

/// What the code depends on; sizes are not part of it.
struct GemmSpec {
  DType dtype = f32;             // of both matrices and of the sum: f32 or f64
  bool transpose_left = false;   // the left matrix is stored [k, m]
  bool transpose_right = false;  // the right matrix is stored [n, k]
  Epilogue epilogue = {};        // decides the result's dtype; without one it is `dtype`
};

/// A matrix in memory, row-major. Counts are in elements. `extent` is how many elements from `data` on are its
/// buffer's: nothing beyond is touched, and a call whose sizes reach beyond is an InternalError.
struct GemmMatrix {
  const void* data = nullptr;
  std::int64_t leading = 0;       // from one row to the next, at least the row's length
  std::int64_t batch_stride = 0;  // from one matrix of the batch to the next; 0: the same for all
  std::int64_t extent = 0;
  std::int64_t outer_stride = 0;  // from one batch to the next, if there are several
};

/// `leading` is used by a full operand only; vectors are dense, a scalar is one element.
using GemmOperand = GemmMatrix;

struct GemmArguments {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmMatrix left = {}, right = {};
  /// Written, every element of [m, n] once and nothing else; its data must not overlap left or right. A full operand
  /// may be the result itself (same data and strides).
  GemmMatrix result = {};
  std::span<const GemmOperand> operands = {};  // as in spec.epilogue.operands
  std::int64_t outer = 1;                      // so many batches, in one parallel region
};

/// A product ready to be called: keep it, calls cost a few dozen nanoseconds besides the arithmetic. Copies share.
class GemmKernel {
 public:
  /// Checks the spec (InternalError). Compiles nothing yet.
  explicit GemmKernel(GemmSpec spec);
  ~GemmKernel();
  GemmKernel(const GemmKernel&);
  GemmKernel(GemmKernel&&) noexcept;
  GemmKernel& operator=(const GemmKernel&);
  GemmKernel& operator=(GemmKernel&&) noexcept;

  const GemmSpec& spec() const;
  DType result_dtype() const;
  /// The code that run() uses for these sizes, to be loaded together with other code beforehand. There are at most
  /// eight pieces for all sizes; what was not loaded is loaded when needed.
  std::vector<CodeRequest> code_requests(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Thread-safe. Sizes of 0 are fine: with k = 0 the sum is 0. UserError when there is no memory for panels.
  void run(const GemmArguments& arguments) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// How run() will do it, for tests and documentation.
enum class GemmMethod : std::uint8_t {
  tile,            // the tile kernel on the matrices as they are
  packed_tile,     // … on panels of the right matrix, copied or transposed
  dot,             // the dot kernel
  library_panels,  // dnnl_sgemm
  epilogue_only    // k is 0
};
GemmMethod gemm_method(const GemmSpec& spec, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace stet::cpu
