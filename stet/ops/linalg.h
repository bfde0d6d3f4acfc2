// What the files of linear algebra share.
#pragma once
#include "stet/compiler/lower.h"
#include "stet/core/gradient.h"
#include "stet/core/tensor.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"

namespace stet {

/// Operand `number` is a batch of matrices of f32 or f64; Problem if not.
void require_matrices(InferCall& call, int number);
/// … of square ones.
void require_square_matrices(InferCall& call, int number);
/// The shape of x without its last two axes.
Shape batch_of(const Shape& x);
/// The same followed by these sizes.
Shape batch_and(const Shape& x, std::initializer_list<Dim> sizes);

/// The spec of a row whose operand 0 is the matrices: all but its results and flags.
LinalgSpec linalg_spec(LowerCall& call, LinalgRoutine routine);
/// The same with the row's results filled in.
LinalgSpec linalg_spec_of_results(LowerCall& call, LinalgRoutine routine);

// --- in gradients

/// The last two axes exchanged.
Tensor matrix_transposed(const Tensor& x);
/// a b, with operands transposed first.
Tensor product(const Tensor& a, const Tensor& b);
Tensor product_tn(const Tensor& a, const Tensor& b);
Tensor product_nt(const Tensor& a, const Tensor& b);
/// x with zeros above (below) its diagonal; `strictly`: and on it.
Tensor lower_part(const Tensor& x, bool strictly = false);
Tensor upper_part(const Tensor& x, bool strictly = false);
Tensor diagonal_part(const Tensor& x);
/// Rows (columns) times numbers: diag(s) x and x diag(s).
Tensor rows_times(const Tensor& s, const Tensor& x);
Tensor columns_times(const Tensor& x, const Tensor& s);
/// A number for each matrix, as it multiplies them.
Tensor per_matrix(const Tensor& x);
/// The gradient with respect to the lower triangle that a row reads, from that with respect to the whole matrix.
Tensor to_lower_triangle(const Tensor& whole);
/// x y' with y triangular: what right division by it is. r [n, n] upper: x with x r' = y.
Tensor divided_by_upper_transposed(const Tensor& y, const Tensor& r);

}  // namespace stet
