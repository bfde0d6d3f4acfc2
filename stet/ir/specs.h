// Specs: what a program does that is no Kernel, as data. Lowering fills them in and asks a Target for the step.
//
// Buffers are numbers of the program's. Counts are in elements. What is "dense" lies row-major from the buffer's first
// element on.
#pragma once
#include <cstdint>
#include <vector>

#include "stet/ir/expr.h"
#include "stet/ir/layout.h"
#include "stet/ir/op.h"

namespace stet {

// --- products

/// A matrix, or an operand of an epilogue.
struct MatrixPlace {
  int buffer = 0;
  Dim offset = 0;
  Dim leading = 0;                 // from one row to the next
  std::vector<Dim> batch_strides;  // per batch axis; 0 where it is repeated
  Dim extent = 0;                  // of the buffer
  int element_bytes = 4;
};

/// How an operand of an epilogue is laid over the result.
enum class EpilogueOperand : std::uint8_t { per_column, per_row, full, scalar };

/// What becomes of a finished sum: operand 0 of the expression is the sum, operand i the i-th of `operands` (from 1).
/// An undefined expression stores the sum as it is.
struct Epilogue {
  Expr expression = {};
  std::vector<EpilogueOperand> operands = {};
};

/// result = epilogue(op(left) x op(right)), for every position of the batch axes.
struct ContractionSpec {
  DType dtype = DType::f32;      // of both matrices and of the sum: f32 or f64
  bool transpose_left = false;   // the left matrix is stored [k, m]
  bool transpose_right = false;  // the right matrix is stored [n, k]
  Epilogue epilogue = {};        // decides the result's dtype; without one it is `dtype`
  Dim m = 0, n = 0, k = 0;
  std::vector<Dim> batch;  // extents of the batch axes
  MatrixPlace left, right, result;
  std::vector<MatrixPlace> operands;  // of the epilogue
};

// --- windows

/// One spatial axis. Position o of the output sees positions o * stride + k * dilation - low of the input.
struct ConvolutionAxis {
  Dim input = 0, filter = 0, output = 0;
  Dim low = 0;  // padding before the input; negative cuts
  std::int64_t stride = 1, dilation = 1;
};

/// Which of the three tensors of a convolution is computed from the other two.
enum class ConvolutionResult : std::uint8_t { output, input, filter };
const char* name(ConvolutionResult);

/// Let S be the sum over all b, o…, k…, g, c, f of
///   input[b, o * stride + k * dilation - low…, g, c] * filter[k…, c, g, f] * output[b, o…, g, f],
/// with 0 for positions outside of the input. Computed is the derivative of S with respect to the tensor that `result`
/// names: the output is a convolution, the input a transposed one, and all three are each other's gradients.
struct ConvolutionSpec {
  DType dtype = DType::f32;  // f32 or f64
  ConvolutionResult result = ConvolutionResult::output;
  std::vector<ConvolutionAxis> axes;                      // one to three
  Dim batch = 0, groups = 1, channels = 0, features = 0;  // channels and features of one group
  int input = 0, filter = 0, output = 0;                  // buffers, dense
};

/// One spatial axis of a pool: element k < window of window o is at position o * stride - low + k of the input.
struct PoolAxis {
  Dim input = 0, output = 0;
  Dim low = 0;
  std::int64_t window = 1, stride = 1;
};

/// Windows of x[b, i…, c], what lies outside of x left out. The elements of a window are numbered row-major, those
/// outside too. `m` is the number of the first largest one (a NaN is larger than numbers), `n` how many there are.
enum class PoolResult : std::uint8_t {
  largest,  // to[b, o…, c] = element m; positions[b, o…, c] = m. Of an empty window the lowest value, and 0.
  picked,   // to[b, o…, c] = element positions[b, o…, c]; 0 outside of x
  placed,   // to[b, i…, c] = the sum of x[b, o…, c] over the windows whose element positions[b, o…, c] is at i…
  mean,     // to[b, o…, c] = the sum of the window's elements / n; 0 of an empty window
  spread,   // to[b, i…, c] = the sum of x[b, o…, c] / n over the windows that i… is in
};
const char* name(PoolResult);

struct PoolSpec {
  DType dtype = DType::f32;  // of x and the result. largest: any but bool, f16 and bf16; others: f32 or f64
  PoolResult result = PoolResult::largest;
  std::vector<PoolAxis> axes;  // one to three
  Dim batch = 0, channels = 0;
  int x = 0, to = 0;                 // buffers, dense
  int positions = -1;                // of largest, picked and placed, dense; of largest -1 where nobody reads them
  DType position_type = DType::i32;  // or u8, where windows have at most 256 elements
};

// --- lines: along one axis, of a dense [outer, length, inner]

struct Lines {
  Dim outer = 1, length = 0, inner = 1;
};

/// The first `kept` of each line in sorted order and the positions they had: ascending, or from the largest. Stable;
/// NaN is the largest. Results are dense [outer, kept, inner]; -1 for one that is not wanted.
struct SortSpec {
  DType dtype = DType::f32;
  bool descending = false;
  Lines lines;
  Dim kept = 0;
  int from = 0;
  int values = -1, positions = -1;  // positions are i64
};

/// Where elements [outer, count] would be inserted into sorted lines [outer, length]: before those that are equal, or
/// to the right of them. Positions are i64 [outer, count].
struct SearchSpec {
  DType dtype = DType::f32;
  bool right = false;
  Dim outer = 1, length = 0, count = 0;
  int lines = 0, elements = 0, positions = 0;
};

/// result[o, at(o, k, i), i] is combined with updates[o, k, i], in the order of k; with Combine::none it is replaced.
/// The result holds what it began with. Updates are dense [outer, count, inner].
struct ScatterSpec {
  DType dtype = DType::f32;  // of result and updates
  Combine combine = Combine::none;
  Lines lines;  // of the result
  Dim count = 0;
  DType index_type = DType::i64;
  int indices = 0;
  Layout index_layout;  // over [outer, count, inner]; stride 0 where all have the same
  Dim index_extent = 0;
  int updates = 0, result = 0;
};

// --- positions

/// Positions of elements that are not 0, in row-major order: `flags`, dense bytes of this shape, into i64[count, rank].
struct PositionsSpec {
  Shape shape;
  int flags = 0, positions = 0;
};

// --- linear algebra

/// What is computed of every matrix x of a batch, m by n, k the smaller of both. Results in order; a factor that is
/// unique only up to signs comes as ops/linalg.cpp documents it.
enum class LinalgRoutine : std::uint8_t {
  cholesky,          // l, lower, of the symmetric matrix whose lower triangle x has: x = l l'
  triangular_solve,  // y with op(x) y = b, of one triangle of x
  solve,             // y with x y = b, by LU
  lu,                // permutation (i64[m]), l [m, k], u [k, n]: row permutation[i] of x is row i of l u
  determinant,       // det, its sign, log of its magnitude
  adjugate,          // det(x) times the inverse, also where there is none
  qr,                // q [m, k], r [k, n]; full: q [m, m], r [m, n]
  svd,               // u [m, k], s [k], vh [k, n]; full: u [m, m], vh [n, n]
  eigh,              // w [n], v [n, n], of the symmetric matrix whose lower triangle x has
};
const char* name(LinalgRoutine);

/// A batch of row-major matrices, each dense.
struct LinalgOperand {
  int buffer = 0;
  std::vector<Dim> batch_strides;  // elements, per batch axis; 0 where it is repeated
};

struct LinalgSpec {
  LinalgRoutine routine = LinalgRoutine::cholesky;
  DType dtype = DType::f32;                                     // f32 or f64, of all but permutations
  std::vector<Dim> batch;                                       // extents of the batch axes
  Dim m = 0, n = 0;                                             // of x
  Dim right = 0;                                                // columns of b
  bool lower = true, transpose = false, unit_diagonal = false;  // triangular_solve: which triangle, and op
  bool full = false;                                            // qr, svd
  std::vector<LinalgOperand> operands;                          // x, then b
  std::vector<int> results;                                     // buffers, dense; -1: nobody reads it
  // Whom a matrix that cannot be factorised is a Problem of.
  const char* op = "";
  Caller caller = {};
  Where where = {};
};

/// Throws the Problem: matrix number `entry` of the batch, in row-major order, failed at 0-based row `at`.
[[noreturn]] void throw_failed_matrix(const LinalgSpec& spec, const std::vector<std::int64_t>& batch,
                                      std::int64_t entry, std::int64_t at);

}  // namespace stet
