// Specs: what a program does that is no Kernel, as data. Lowering fills them in and asks a Target for the step.
//
// Buffers are numbers of the program's. Counts are in elements. What is "dense" lies row-major from the buffer's first
// element on.
#pragma once
#include <cstdint>
#include <vector>

#include "stet/ir/expr.h"
#include "stet/ir/layout.h"

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

// --- positions

/// Positions of elements that are not 0, in row-major order: `flags`, dense bytes of this shape, into i64[count, rank].
struct PositionsSpec {
  Shape shape;
  int flags = 0, positions = 0;
};

}  // namespace stet
