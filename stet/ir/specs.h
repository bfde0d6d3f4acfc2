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

struct ConvolutionAxis {
  Dim input = 0, filter = 0, output = 0;
  Dim low = 0;  // padding before the input; negative cuts
  std::int64_t stride = 1, dilation = 1;
};

/// out[b, o…, f] = sum over k…, c of x[b, o * stride + k * dilation - low…, c] * filter[k…, c, f], with 0 for positions
/// outside of x. With groups, features [g * F, …) see channels [g * C, …) alone.
struct ConvolutionSpec {
  DType dtype = DType::f32;           // of all three; sums are computed in compute_type(dtype)
  std::vector<ConvolutionAxis> axes;  // one to three
  Dim batch = 0, channels = 0, features = 0;
  std::int64_t groups = 1;
  int input = 0;
  Layout input_layout;  // [batch, axes…, channels]
  Dim input_extent = 0;
  int filter = 0;  // dense [axes…, channels / groups, features], in the type of the sums
  int result = 0;  // dense [batch, axes…, features]
};

// --- positions

/// Positions of elements that are not 0, in row-major order: `flags`, dense bytes of this shape, into i64[count, rank].
struct PositionsSpec {
  Shape shape;
  int flags = 0, positions = 0;
};

}  // namespace stet
