// Linear algebra made of other ops.
#include <cmath>
#include <limits>

#include "stet/core/call.h"
#include "stet/ops/linalg.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- linear algebra

namespace linalg {

/// The inverse, by solving for the identity; to solve with it, solve(a, b) is quicker and more accurate.
/// Names: numpy.linalg.inv, array_api.linalg.inv, tf.linalg.inv
/// Example: linalg::inverse(tensor({{2.f, 1.f}, {1.f, 1.f}}))
STET_API Tensor inverse(In x);

struct LstsqOptions {
  double rtol = -1;  // as pinv's
};
struct LstsqResult {
  Tensor x;                // of those that fit b best the one of least norm, [..., n, k] or [..., n]
  Tensor residuals;        // sums of squares of b - a x, [..., k] or [...]
  Tensor rank;             // of a, i64 [...]
  Tensor singular_values;  // of a, descending
};
/// Least squares: x with a x close to b. b is [..., m, k], or a vector of rank 1.
/// Names: numpy.linalg.lstsq, tf.linalg.lstsq
/// Example: linalg::lstsq(tensor({{1.f, 0.f}, {0.f, 2.f}, {0.f, 0.f}}), tensor({1.f, 4.f, 5.f})).x
STET_API LstsqResult lstsq(In a, In b, LstsqOptions options = {});

/// x times itself, n times; a negative n is that of the inverse, and 0 gives the identity.
/// Names: numpy.linalg.matrix_power, array_api.linalg.matrix_power
/// Example: linalg::matrix_power(tensor({{1.f, 1.f}, {0.f, 1.f}}), 5)
STET_API Tensor matrix_power(In x, std::int64_t n);

struct MatrixRankOptions {
  double rtol = -1;  // as pinv's
};
/// How many singular values do not count as 0, i64.
/// Names: numpy.linalg.matrix_rank, array_api.linalg.matrix_rank, tf.linalg.matrix_rank
/// Example: linalg::matrix_rank(tensor({{1.f, 2.f}, {2.f, 4.f}}))
STET_API Tensor matrix_rank(In x, MatrixRankOptions options = {});

/// Which norm of a matrix: "fro", "nuc", or 1, -1, 2, -2, infinity, -infinity.
class MatrixNormOrder {
 public:
  MatrixNormOrder(const char* name) : name(name) {}
  template <class T>
  requires std::is_arithmetic_v<T> MatrixNormOrder(T number) : number(static_cast<double>(number)) {}
  const char* name = nullptr;
  double number = 0;
};
struct MatrixNormOptions {
  MatrixNormOrder order = "fro";
  bool keepdims = false;
};
/// The norm of every matrix: the root of the sum of squares ("fro"), the sum of singular values ("nuc"), the largest
/// (smallest) of them (2, -2), the largest (smallest) sum of magnitudes of a column (1, -1) or a row (infinity).
/// Names: numpy.linalg.matrix_norm, array_api.linalg.matrix_norm
/// Example: linalg::matrix_norm(tensor({{3.f, 0.f}, {4.f, 0.f}}))
STET_API Tensor matrix_norm(In x, MatrixNormOptions options = {});

struct VectorNormOptions {
  double order = 2;
  std::vector<int> axes = {};  // none: all
  bool keepdims = false;
};
/// The norm of elements along axes: (sum of |x|^order)^(1 / order), the largest (smallest) magnitude (infinity), or how
/// many are not 0 (order 0). At 0 the gradient of order 2 is 0.
/// Names: numpy.linalg.vector_norm, array_api.linalg.vector_norm
/// Example: linalg::vector_norm(tensor({3.f, -4.f}))
STET_API Tensor vector_norm(In x, VectorNormOptions options = {});

}  // namespace linalg
#endif

namespace {

/// The operand as a tensor; UserError if it is a number or undefined.
const Tensor& tensor_of(const char* name, const In& x, int least_rank) {
  static constexpr const char* names[] = {"x"};
  bool is_tensor = x.kind() == In::Kind::tensor && x.tensor().defined();
  if (!is_tensor || x.tensor().rank() < least_rank)
    throw_user_error(name, names, {&x, 1},
                     Problem(text("'x' has rank ", is_tensor ? x.tensor().rank() : 0, ", a matrix has 2 or more")),
                     frame_name() ? frame_where() : x.where());
  return x.tensor();
}

Tensor identity_like(const Tensor& x) { return diagonal_part(ones_like(x)); }

/// sqrt of a sum of squares, whose gradient is 0 where the sum is.
Tensor root(const Tensor& squares) {
  Tensor zero = squares == 0;
  return where(zero, 0.0, sqrt(where(zero, 1.0, squares)));
}

/// Singular values up to this count as 0.
Tensor cutoff(const Tensor& x, const Tensor& s, double rtol) {
  // With a 0 appended there is a largest one even of no values.
  Tensor largest = max(concat({s, zeros_like(sum(s, -1, {.keepdims = true}))}, -1), -1, {.keepdims = true});
  if (rtol >= 0) return largest * rtol;
  Dim larger = larger_of(x.dim(-2), x.dim(-1));
  return largest * cast(larger, x.dtype()) * (x.dtype() == DType::f32 ? 0x1p-23 : 0x1p-52);
}

Tensor count_above(const Tensor& s, const Tensor& limit) { return sum(cast(s > limit, DType::i64), -1); }

}  // namespace

namespace linalg {

Tensor inverse(In x) {
  Frame frame("inverse", x.where());
  const Tensor& matrices = tensor_of("inverse", x, 2);
  return solve(matrices, identity_like(matrices));
}

LstsqResult lstsq(In a, In b, LstsqOptions options) {
  Frame frame("lstsq", a.where());
  const Tensor& matrices = tensor_of("lstsq", a, 2);
  Tensor right = b.rank() == 1 ? expand_dims(b, -1) : tensor_of("lstsq", b, 2);
  LstsqResult out;
  out.x = matmul(pinv(matrices, {.rtol = options.rtol}), right);
  out.residuals = sum(square(right - matmul(matrices, out.x)), -2);
  out.singular_values = svdvals(matrices);
  out.rank = count_above(out.singular_values, cutoff(matrices, out.singular_values, options.rtol));
  if (b.rank() == 1) {
    out.x = squeeze(out.x, -1);
    out.residuals = squeeze(out.residuals, -1);
  }
  return out;
}

Tensor matrix_power(In x, std::int64_t n) {
  Frame frame("matrix_power", x.where());
  const Tensor& matrices = tensor_of("matrix_power", x, 2);
  if (n == 0) return matmul(identity_like(matrices), identity_like(matrices));  // which wants them square
  Tensor square_of = n < 0 ? inverse(matrices) : matrices, out;
  for (std::uint64_t rest = n < 0 ? -static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n); rest > 0;) {
    if (rest & 1) out = out.defined() ? matmul(out, square_of) : square_of;
    rest >>= 1;
    if (rest > 0) square_of = matmul(square_of, square_of);
  }
  return out;
}

Tensor matrix_rank(In x, MatrixRankOptions options) {
  Frame frame("matrix_rank", x.where());
  const Tensor& matrices = tensor_of("matrix_rank", x, 2);
  Tensor s = svdvals(matrices);
  return count_above(s, cutoff(matrices, s, options.rtol));
}

Tensor matrix_norm(In x, MatrixNormOptions options) {
  Frame frame("matrix_norm", x.where());
  const Tensor& matrices = tensor_of("matrix_norm", x, 2);
  const char* name = options.order.name;
  double order = options.order.number;
  auto kept = [&](const Tensor& norm) { return options.keepdims ? per_matrix(norm) : norm; };
  if (name && std::string(name) == "fro") return root(sum(square(matrices), {-2, -1}, {.keepdims = options.keepdims}));
  if (name && std::string(name) == "nuc") return kept(sum(svdvals(matrices), -1));
  if (!name && std::abs(order) == 2) {
    Tensor s = svdvals(matrices);
    return kept(order > 0 ? max(s, -1) : min(s, -1));
  }
  if (!name && (std::abs(order) == 1 || std::isinf(order))) {
    Tensor sums = sum(abs(matrices), std::abs(order) == 1 ? -2 : -1);
    return kept(order > 0 ? max(sums, -1) : min(sums, -1));
  }
  static constexpr const char* names[] = {"x"};
  throw_user_error("matrix_norm", names, {&x, 1},
                   Problem(text("there is no norm of order ", name ? std::string(name) : text(order)),
                           "choose \"fro\", \"nuc\", 1, -1, 2, -2, INFINITY or -INFINITY"),
                   frame_where());
}

Tensor vector_norm(In x, VectorNormOptions options) {
  Frame frame("vector_norm", x.where());
  const Tensor& elements = tensor_of("vector_norm", x, 0);
  std::vector<int> axes = options.axes;
  if (axes.empty())
    for (int axis = 0; axis < elements.rank(); ++axis) axes.push_back(axis);
  ReduceOptions kept{.keepdims = options.keepdims};
  double order = options.order;
  if (order == 2) return root(sum(square(elements), axes, kept));
  if (order == std::numeric_limits<double>::infinity()) return max(abs(elements), axes, kept);
  if (order == -std::numeric_limits<double>::infinity()) return min(abs(elements), axes, kept);
  if (order == 0) return sum(cast(elements != 0, elements.dtype()), axes, kept);
  if (order == 1) return sum(abs(elements), axes, kept);
  return pow(sum(pow(abs(elements), order), axes, kept), 1 / order);
}

}  // namespace linalg
}  // namespace stet
