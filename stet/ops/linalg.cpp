// Linear algebra: triangles, factorisations by elimination and reflection, and what is solved with them. What comes
// from singular values and eigenvalues stands in spectral.cpp, and composites in linalg_composites.cpp.
#include "stet/ops/linalg.h"

#include "stet/core/call.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/sum_to.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- linear algebra

/// Linear algebra of the last two axes: matrices of f32 or f64, all leading axes are a batch. A matrix that cannot be
/// factorised is a UserError that names it.
namespace linalg {

/// The band of every matrix: elements at most `lower` below and `upper` above the diagonal; others are 0. Negative:
/// all.
/// Names: tf.linalg.band_part
/// Example: linalg::band_part(ones({3, 3}), 0, 1)
STET_API Tensor band_part(In x, std::int64_t lower, std::int64_t upper);

struct CholeskyOptions {
  bool upper = false;
};
/// The lower triangular l with x = l l' (or upper u with x = u' u) of symmetric positive definite matrices. Of x only
/// that triangle is read, and only its elements have gradients.
/// Names: numpy.linalg.cholesky, array_api.linalg.cholesky, tf.linalg.cholesky
/// Example: linalg::cholesky(tensor({{4.f, 2.f}, {2.f, 5.f}}))
STET_API Tensor cholesky(In x, CholeskyOptions options = {});

struct TriangularSolveOptions {
  bool lower = true;
  bool transpose = false;
  bool unit_diagonal = false;  // ones on the diagonal, whatever stands there
};
/// y with a y = b (or a' y = b), of which only one triangle of `a` is read. Batch axes broadcast; b is [..., n, k], or
/// a vector of rank 1. An element 0 on the diagonal is a UserError.
/// Names: scipy.linalg.solve_triangular, tf.linalg.triangular_solve
/// Example: linalg::triangular_solve(tensor({{2.f, 0.f}, {1.f, 4.f}}), tensor({2.f, 9.f}))
STET_API Tensor triangular_solve(In a, In b, TriangularSolveOptions options = {});

/// y with a y = b, by LU with partial pivoting. Batch axes broadcast; b is [..., n, k], or a vector of rank 1. A
/// singular matrix is a UserError.
/// Names: numpy.linalg.solve, array_api.linalg.solve, tf.linalg.solve
/// Example: linalg::solve(tensor({{3.f, 1.f}, {1.f, 2.f}}), tensor({9.f, 8.f}))
STET_API Tensor solve(In a, In b);

struct LuResult {
  Tensor permutation;  // i64 [..., m]
  Tensor l, u;         // [..., m, k] with ones on the diagonal, [..., k, n]
};
/// The factors of elimination with row exchanges: row permutation[i] of x is row i of l u; k is the smaller of m and n.
/// Names: scipy.linalg.lu, tf.linalg.lu
/// Example: linalg::lu(tensor({{1.f, 3.f}, {4.f, 4.f}})).u
STET_API LuResult lu(In x);

/// The determinant. Its gradient exists for singular matrices too; the second one only for others.
/// Names: numpy.linalg.det, array_api.linalg.det, tf.linalg.det
/// Example: linalg::det(tensor({{3.f, 1.f}, {1.f, 2.f}}))
STET_API Tensor det(In x);
struct SlogdetResult {
  Tensor sign, logabsdet;
};
/// The determinant as sign times exp(logabsdet), where it would overflow; of singular matrices 0 and -inf.
/// Names: numpy.linalg.slogdet, array_api.linalg.slogdet, tf.linalg.slogdet
/// Example: linalg::slogdet(tensor({{0.f, 2.f}, {0.5f, 0.f}})).sign
STET_API SlogdetResult slogdet(In x);
/// det(x) times the inverse of x, also where there is no inverse: the transposed cofactors.
/// Example: round(linalg::adjugate(tensor({{1.f, 2.f}, {3.f, 4.f}})))
STET_API Tensor adjugate(In x);

struct QrOptions {
  bool complete = false;  // q is square; without a gradient
};
struct QrResult {
  Tensor q, r;
};
/// x = q r: columns of q are orthonormal, r is upper triangular and its diagonal is not negative, which makes both
/// unique where x has full rank. q is [..., m, k] and r [..., k, n], k the smaller of m and n; complete: [..., m, m]
/// and [..., m, n]. Gradients need the first k columns to be independent.
/// Names: numpy.linalg.qr, array_api.linalg.qr, tf.linalg.qr
/// Example: linalg::qr(tensor({{3.f, 5.f}, {4.f, 0.f}})).r
STET_API QrResult qr(In x, QrOptions options = {});

}  // namespace linalg
#endif

// --- what is shared

void require_matrices(InferCall& call, int number) {
  const char* names[] = {"x", "b"};
  call.require(call.rank(number) >= 2,
               text("operand ", number, " has rank ", call.rank(number), ", a matrix has 2 or more"));
  DType dtype = call.dtype(number);
  call.require(dtype == DType::f32 || dtype == DType::f64, text("matrices of ", dtype, " are not factorised"),
               text("cast(", names[number], ", f32) or cast(", names[number], ", f64) first"));
}

void require_square_matrices(InferCall& call, int number) {
  require_matrices(call, number);
  call.require_equal(call.shape(number)[-2], call.shape(number)[-1], "rows and columns of a square matrix,");
}

Shape batch_of(const Shape& x) {
  Shape out;
  for (int axis = 0; axis + 2 < x.rank(); ++axis) out.push_back(x[axis]);
  return out;
}

Shape batch_and(const Shape& x, std::initializer_list<Dim> sizes) {
  Shape out = batch_of(x);
  for (const Dim& size : sizes) out.push_back(size);
  return out;
}

LinalgSpec linalg_spec(LowerCall& call, LinalgRoutine routine) {
  const Shape& x = call.in(0).shape;
  LinalgSpec spec;
  spec.routine = routine;
  spec.dtype = call.in(0).dtype;
  spec.m = x[-2];
  spec.n = x[-1];
  spec.op = call.node().op->name;
  spec.caller = call.node().caller;
  spec.where = call.node().where;
  for (const Dim& extent : batch_of(x)) spec.batch.push_back(extent);
  std::vector<Dim> strides = dense_strides(x);
  strides.resize(spec.batch.size(), Dim(0));
  spec.operands.push_back({call.dense(0).buffer, strides});
  return spec;
}

LinalgSpec linalg_spec_of_results(LowerCall& call, LinalgRoutine routine) {
  LinalgSpec spec = linalg_spec(call, routine);
  for (const Place& place : call.results()) spec.results.push_back(place.buffer);
  return spec;
}

Tensor matrix_transposed(const Tensor& x) {
  std::vector<int> order;
  for (int axis = 0; axis < x.rank(); ++axis) order.push_back(axis);
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

Tensor product(const Tensor& a, const Tensor& b) { return matmul(a, b); }
Tensor product_tn(const Tensor& a, const Tensor& b) { return matmul(a, b, {.transpose_a = true}); }
Tensor product_nt(const Tensor& a, const Tensor& b) { return matmul(a, b, {.transpose_b = true}); }
Tensor diagonal_part(const Tensor& x) { return linalg::band_part(x, 0, 0); }
Tensor lower_part(const Tensor& x, bool strictly) {
  Tensor part = linalg::band_part(x, -1, 0);
  return strictly ? part - diagonal_part(x) : part;
}
Tensor upper_part(const Tensor& x, bool strictly) {
  Tensor part = linalg::band_part(x, 0, -1);
  return strictly ? part - diagonal_part(x) : part;
}
Tensor rows_times(const Tensor& s, const Tensor& x) { return expand_dims(s, -1) * x; }
Tensor columns_times(const Tensor& x, const Tensor& s) { return x * expand_dims(s, -2); }
Tensor per_matrix(const Tensor& x) {
  Tensor row = expand_dims(x, -1);
  return expand_dims(row, -1);
}
Tensor to_lower_triangle(const Tensor& whole) {
  return lower_part(whole + matrix_transposed(whole)) - diagonal_part(whole);
}
Tensor divided_by_upper_transposed(const Tensor& y, const Tensor& r) {
  return matrix_transposed(linalg::triangular_solve(r, matrix_transposed(y), {.lower = false}));
}

namespace {

constexpr const char* x_name[] = {"x"};
constexpr const char* solve_names[] = {"a", "b"};
constexpr const char* lu_results[] = {"permutation", "l", "u"};
constexpr const char* slogdet_results[] = {"sign", "logabsdet"};
constexpr const char* qr_results[] = {"q", "r"};

struct BandAttributes {
  std::int64_t lower = -1, upper = -1;
  STET_ATTRIBUTES(lower, upper)
};
struct TriangularAttributes {
  bool lower = true, transpose = false, unit_diagonal = false;
  STET_ATTRIBUTES(lower, transpose, unit_diagonal)
};

// --- band_part

void lower_band_part(LowerCall& call) {
  const auto& band = call.attributes<BandAttributes>();
  const ValueType& x = call.in(0);
  int rank = x.shape.rank();
  Expr row = loop_index(rank - 2), column = loop_index(rank - 1), value = operand(0, x.dtype);
  Expr zero = constant(std::int64_t{0}, x.dtype);
  if (is_floating(x.dtype)) zero = constant(0.0, x.dtype);
  if (band.lower >= 0) value = scalar::select(row - column <= constant(band.lower, DType::i64), value, zero);
  if (band.upper >= 0) value = scalar::select(column - row <= constant(band.upper, DType::i64), value, zero);
  Place from[] = {call.place(0)};
  DType dtypes[] = {x.dtype};
  AxisMap same[] = {identity_axes(rank)};
  call.map(x.shape, from, dtypes, same, value, call.result(), "band_part");
}

// --- cholesky

/// With l' dl = phi + phi' for a symmetric change: the gradient is l'^-1 phi(l' d) l^-1, phi the lower triangle with
/// half of the diagonal.
void gradient_of_cholesky(GradientCall& g) {
  if (!g.wants(0)) return;
  const Tensor& l = g.out();
  Tensor changes = product_tn(l, g.d());
  Tensor phi = lower_part(changes) - 0.5 * diagonal_part(changes);
  Tensor half = linalg::triangular_solve(l, phi, {.transpose = true});
  Tensor whole = linalg::triangular_solve(l, matrix_transposed(half), {.transpose = true});
  g.set(0, to_lower_triangle(whole));
}

// --- solves

void infer_solve(InferCall& call) {
  require_square_matrices(call, 0);
  require_matrices(call, 1);
  call.require(call.dtype(0) == call.dtype(1), text("'a' is ", call.dtype(0), " and 'b' is ", call.dtype(1)),
               "cast one of them first");
  call.require_equal(call.shape(0)[-1], call.shape(1)[-2], "rows of 'a' and 'b',");
  call.result(call.dtype(0), contract(call.shape(0), false, call.shape(1), false, call.reason("batch axes")).result);
}

LinalgSpec solve_spec(LowerCall& call, LinalgRoutine routine) {
  LinalgSpec spec = linalg_spec(call, routine);
  const Shape &a = call.in(0).shape, &b = call.in(1).shape;
  Contraction shape = contraction_of(a, false, b, false, call.out().shape);
  spec.right = shape.n;
  spec.batch.assign(shape.batch.begin(), shape.batch.end());
  auto operand = [&](int number, const AxisMap& axes) {
    std::vector<Dim> strides = dense_strides(call.in(number).shape), batch;
    for (int axis = 0; axis < axes.rank; ++axis) {
      int from = axes.axes[static_cast<std::size_t>(axis)];
      batch.push_back(from < 0 ? Dim(0) : strides[static_cast<std::size_t>(from)]);
    }
    return batch;
  };
  spec.operands[0].batch_strides = operand(0, shape.left_batch);
  spec.operands.push_back({call.dense(1).buffer, operand(1, shape.right_batch)});
  spec.results = {call.result().buffer};
  return spec;
}

void lower_triangular_solve(LowerCall& call) {
  const auto& form = call.attributes<TriangularAttributes>();
  LinalgSpec spec = solve_spec(call, LinalgRoutine::triangular_solve);
  spec.lower = form.lower;
  spec.transpose = form.transpose;
  spec.unit_diagonal = form.unit_diagonal;
  call.step(call.target().linalg(std::move(spec)));
}

Tensor solve_triangle(const Tensor& a, const Tensor& b, const TriangularAttributes& form) {
  return call(triangular_solve_row, {In(a), In(b)}, view_of(form));
}

void gradient_of_triangular_solve(GradientCall& g) {
  const auto& form = g.attributes<TriangularAttributes>();
  TriangularAttributes back = form;
  back.transpose = !form.transpose;
  Tensor db = solve_triangle(g.in(0), g.d(), back);
  if (g.wants(0)) {
    Tensor whole = form.transpose ? product_nt(g.out(), db) : product_nt(db, g.out());
    Tensor part = form.lower ? lower_part(whole, form.unit_diagonal) : upper_part(whole, form.unit_diagonal);
    g.set(0, sum_to(-part, g.in(0).shape()));
  }
  if (g.wants(1)) g.set(1, sum_to(db, g.in(1).shape()));
}

void gradient_of_solve(GradientCall& g) {
  Tensor db = linalg::solve(matrix_transposed(g.in(0)), g.d());
  if (g.wants(0)) g.set(0, sum_to(-product_nt(db, g.out()), g.in(0).shape()));
  if (g.wants(1)) g.set(1, sum_to(db, g.in(1).shape()));
}

void samples_of_solves(SampleList& s) {
  for (std::vector<SampleInput> inputs :
       std::vector<std::vector<SampleInput>>{{{{3, 3}, -1, Draw::regular}, {{3, 2}}},
                                             {{{17, 17}, -1, Draw::regular}, {{17, 1}}},
                                             {{{33, 33}, -1, Draw::regular}, {{33, 5}}},
                                             {{{2, 4, 4}, -1, Draw::regular}, {{2, 4, 3}}},
                                             {{{4, 4}, -1, Draw::regular}, {{3, 4, 2}}},
                                             {{{2, 1, 3, 3}, -1, Draw::regular}, {{5, 3, 1}}},
                                             {{{1, 1}, -1, Draw::regular}, {{1, 1}}},
                                             {{{0, 0}, -1, Draw::regular}, {{0, 3}}},
                                             {{{0, 3, 3}, -1, Draw::regular}, {{0, 3, 2}}},
                                             {{{3, 3}, -1, Draw::regular}, {{3, 0}}}})
    s.add(inputs);
}

// --- lu

void infer_lu(InferCall& call) {
  require_matrices(call, 0);
  const Shape& x = call.shape(0);
  Dim m = x[-2], n = x[-1], k = smaller_of(m, n);
  call.result(DType::i64, batch_and(x, {m}));
  call.result(call.dtype(0), batch_and(x, {m, k}));
  call.result(call.dtype(0), batch_and(x, {k, n}));
}

/// Rows [from, from + rows) and columns of every matrix.
Tensor block_of(const Tensor& x, const Dim& row, const Dim& rows, const Dim& column, const Dim& columns) {
  std::vector<Dim> begin(static_cast<std::size_t>(x.rank() - 2), Dim(0)), size;
  for (int axis = 0; axis + 2 < x.rank(); ++axis) size.push_back(x.dim(axis));
  begin.insert(begin.end(), {row, column});
  size.insert(size.end(), {rows, columns});
  return slice(x, begin, size);
}

/// l = [l1; l2] and u = [u1 u2] with square l1 and u1: one of l2 and u2 is empty. With x permuted, x11 = l1 u1, so
/// l1^-1 dx11 u1^-1 = l1^-1 dl1 + du1 u1^-1 falls into triangles; x12 = l1 u2 and x21 = l2 u1 give the rest.
void gradient_of_lu(GradientCall& g) {
  if (!g.wants(0)) return;
  const Tensor &x = g.in(0), &l = g.out(1), &u = g.out(2);
  Tensor dl = g.d_of(1), du = g.d_of(2);
  Dim m = x.dim(-2), n = x.dim(-1), k = smaller_of(m, n);
  Tensor l1 = block_of(l, 0, k, 0, k), l2 = block_of(l, k, m - k, 0, k), u1 = block_of(u, 0, k, 0, k);
  Tensor u2 = block_of(u, 0, k, k, n - k), dl1 = block_of(dl, 0, k, 0, k), dl2 = block_of(dl, k, m - k, 0, k);
  Tensor du1 = block_of(du, 0, k, 0, k), du2 = block_of(du, 0, k, k, n - k);
  Tensor below = lower_part(product_tn(l1, dl1) - product_nt(du2, u2), true);
  Tensor above = upper_part(product_nt(du1, u1) - product_tn(l2, dl2));
  auto after_l = [&](const Tensor& y) {
    return linalg::triangular_solve(l1, y, {.transpose = true, .unit_diagonal = true});
  };
  Tensor d11 = divided_by_upper_transposed(after_l(below + above), u1), d12 = after_l(du2);
  Tensor d21 = divided_by_upper_transposed(dl2, u1), d22 = block_of(x, k, m - k, k, n - k);
  Tensor permuted = concat({concat({d11, d12}, -1), concat({d21, d22}, -1)}, -2);
  g.set(0, product_tn(one_hot(g.out(0), m, {.dtype = x.dtype()}), permuted));
}

void samples_of_lu(SampleList& s) {
  s.rounded(Rounding::factorisation)
      .add({{{3, 3}}})
      .add({{{5, 3}}})
      .add({{{3, 5}}})
      .add({{{2, 2, 4, 4}}})
      .add({{{33, 33}, -1, Draw::regular}})
      .add({{{40, 2}}})
      .add({{{1, 1}}})
      .add({{{0, 0}}})
      .add({{{3, 0}}})
      .add({{{0, 3, 3}}});
}

// --- determinants

void infer_per_matrix(InferCall& call, int results) {
  require_square_matrices(call, 0);
  for (int r = 0; r < results; ++r) call.result(call.dtype(0), batch_of(call.shape(0)));
}

void infer_square(InferCall& call) {
  require_square_matrices(call, 0);
  call.result(call.dtype(0), call.shape(0));
}

/// adj = det x^-1, so d adj = tr(x^-1 dx) adj - adj dx x^-1, and x^-1 is adj / det.
void gradient_of_adjugate(GradientCall& g) {
  if (!g.wants(0)) return;
  Tensor transposed = matrix_transposed(g.out());
  Tensor inner = sum(g.d() * g.out(), {-2, -1}, {.keepdims = true});
  Tensor twice = product(product(transposed, g.d()), transposed);
  g.set(0, (inner * transposed - twice) / per_matrix(linalg::det(g.in(0))));
}

void samples_of_determinants(SampleList& s) {
  s.rounded(Rounding::factorisation)
      .add({{{2, 2}, -1, Draw::regular}})
      .add({{{3, 3}}})
      .add({{{2, 3, 4, 4}, -1, Draw::regular}})
      .add({{{9, 9}}})
      .add({{{1, 1}}})
      .add({{{0, 0}}})
      .add({{{0, 3, 3}}});
}
/// … one that LAPACK factorises; its determinant is beyond f32.
void samples_of_slogdet(SampleList& s) {
  samples_of_determinants(s);
  s.add({{{35, 35}, -1, Draw::regular}});
}

// --- qr

void infer_qr(InferCall& call, bool complete) {
  require_matrices(call, 0);
  const Shape& x = call.shape(0);
  Dim m = x[-2], n = x[-1], k = complete ? m : smaller_of(m, n);
  call.result(call.dtype(0), batch_and(x, {m, k}));
  call.result(call.dtype(0), batch_and(x, {k, n}));
}

void lower_qr(LowerCall& call, bool complete) {
  LinalgSpec spec = linalg_spec_of_results(call, LinalgRoutine::qr);
  spec.full = complete;
  call.step(call.target().linalg(std::move(spec)));
}

/// x = [x1 x2], r = [r1 r2] with square r1: x2 = q r2 makes d q larger by x2 d r2', and the rest is that of x1 = q r1.
void gradient_of_qr(GradientCall& g) {
  if (!g.wants(0)) return;
  const Tensor &x = g.in(0), &q = g.out(0), &r = g.out(1);
  Tensor dq = g.d_of(0), dr = g.d_of(1);
  Dim m = x.dim(-2), n = x.dim(-1), k = smaller_of(m, n);
  Tensor x2 = block_of(x, 0, m, k, n - k), r1 = block_of(r, 0, k, 0, k);
  Tensor dr1 = block_of(dr, 0, k, 0, k), dr2 = block_of(dr, 0, k, k, n - k);
  Tensor all = dq + product_nt(x2, dr2);
  Tensor mixed = product_nt(r1, dr1) - product_tn(all, q);
  Tensor symmetric = lower_part(mixed) + matrix_transposed(lower_part(mixed, true));
  Tensor d1 = divided_by_upper_transposed(all + product(q, symmetric), r1);
  g.set(0, concat({d1, product(q, dr2)}, -1));
}

void samples_of_qr(SampleList& s) {
  s.rounded(Rounding::factorisation)
      .add({{{3, 3}, -1, Draw::regular}})
      .add({{{5, 3}}})
      .add({{{3, 5}, -1, Draw::regular}})
      .add({{{2, 2, 4, 3}}})
      .add({{{34, 33}, -1, Draw::regular}})
      .add({{{1, 1}}})
      .add({{{4, 1}}})
      .add({{{0, 0}}})
      .add({{{3, 0}}})
      .add({{{0, 3, 3}}});
}

void errors_of_matrices(ErrorList& e) {
  e.add("has rank 1, a matrix has 2 or more", {{DType::f32, {3}}})
      .add("matrices of i32 are not factorised", {{DType::i32, {3, 3}}})
      .add("matrices of f16 are not factorised", {{DType::f16, {3, 3}}});
}
void errors_of_square(ErrorList& e) {
  errors_of_matrices(e);
  e.add("rows and columns of a square matrix, 3 and 4 differ", {{DType::f32, {2, 3, 4}}});
}
void errors_of_solves(ErrorList& e) {
  e.add("'a' is f32 and 'b' is f64", {{DType::f32, {3, 3}}, {DType::f64, {3, 3}}})
      .add("rows and columns of a square matrix, 3 and 4 differ", {{DType::f32, {3, 4}}, {DType::f32, {3, 1}}})
      .add("rows of 'a' and 'b'", {{DType::f32, {3, 3}}, {DType::f32, {4, 1}}})
      .add("2 and 3", {{DType::f32, {2, 3, 3}}, {DType::f32, {3, 3, 1}}})
      .add("has rank 1", {{DType::f32, {3, 3}}, {DType::f32, {3}}})
      .add("matrices of i64 are not factorised", {{DType::i64, {3, 3}}, {DType::i64, {3, 1}}});
}

}  // namespace

// --- rows

constinit const AttributeCodec band_codec = attribute_codec<BandAttributes>;
constinit const AttributeCodec triangular_codec = attribute_codec<TriangularAttributes>;

constinit const OpDef band_part_row{.name = "band_part",
                                    .kind = Kind::linalg,
                                    .summary = "A band around the diagonal, zeros elsewhere.",
                                    .operands = x_name,
                                    .infer =
                                        [](InferCall& call) {
                                          call.require(call.rank(0) >= 2,
                                                       text("'x' has rank ", call.rank(0), ", a matrix has 2 or more"));
                                          call.result(call.dtype(0), call.shape(0));
                                        },
                                    .lower = lower_band_part,
                                    .gradient =
                                        [](GradientCall& g) {
                                          const auto& band = g.attributes<BandAttributes>();
                                          if (g.wants(0)) g.set(0, linalg::band_part(g.d(), band.lower, band.upper));
                                        },
                                    .samples =
                                        [](SampleList& s) {
                                          s.add({{{3, 4}}}, BandAttributes{0, 0})
                                              .add({{{4, 3}}}, BandAttributes{-1, 0})
                                              .add({{{2, 17, 16}}}, BandAttributes{1, 2})
                                              .add({{{2, 2, 5, 5}}}, BandAttributes{0, -1})
                                              .add({{{3, 3}}}, BandAttributes{-1, -1})
                                              .add({{{1, 1}}}, BandAttributes{0, 0})
                                              .add({{{0, 3}}}, BandAttributes{0, 0});
                                        },
                                    .errors =
                                        [](ErrorList& e) {
                                          e.add("'x' has rank 1", {{DType::f32, {3}}}, BandAttributes{0, 0});
                                        }};

constinit const OpDef cholesky_row{
    .name = "cholesky",
    .kind = Kind::linalg,
    .summary = "Lower triangular factor of positive definite matrices.",
    .operands = x_name,
    .infer = infer_square,
    .lower =
        [](LowerCall& call) { call.step(call.target().linalg(linalg_spec_of_results(call, LinalgRoutine::cholesky))); },
    .gradient = gradient_of_cholesky,
    .samples =
        [](SampleList& s) {
          s.rounded(Rounding::factorisation)
              .add({{{3, 3}, -1, Draw::definite}})
              .add({{{17, 17}, -1, Draw::definite}})
              .add({{{33, 33}, -1, Draw::definite}})
              .add({{{2, 3, 4, 4}, -1, Draw::definite}})
              .add({{{1, 1}, -1, Draw::definite}})
              .add({{{0, 0}, -1, Draw::definite}})
              .add({{{0, 3, 3}, -1, Draw::definite}});
        },
    .errors = errors_of_square};

constinit const OpDef triangular_solve_row{
    .name = "triangular_solve",
    .kind = Kind::linalg,
    .summary = "Solution with a triangular matrix.",
    .operands = solve_names,
    .infer = infer_solve,
    .lower = lower_triangular_solve,
    .gradient = gradient_of_triangular_solve,
    .samples =
        [](SampleList& s) {
          s.rounded(Rounding::factorisation)
              .add({{{3, 3}, -1, Draw::regular}, {{3, 2}}}, TriangularAttributes{true, false, false})
              .add({{{17, 17}, -1, Draw::regular}, {{17, 1}}}, TriangularAttributes{true, true, false})
              .add({{{33, 33}, -1, Draw::regular}, {{33, 5}}}, TriangularAttributes{false, false, false})
              .add({{{35, 35}, -1, Draw::regular}, {{35, 1}}}, TriangularAttributes{false, true, false})
              .add({{{2, 4, 4}, -1, Draw::regular}, {{2, 4, 3}}}, TriangularAttributes{false, true, false})
              .add({{{4, 4}, -1, Draw::regular}, {{3, 4, 2}}}, TriangularAttributes{true, false, true})
              .add({{{2, 1, 3, 3}, -1, Draw::regular}, {{5, 3, 1}}}, TriangularAttributes{false, false, true})
              .add({{{1, 1}, -1, Draw::regular}, {{1, 1}}}, TriangularAttributes{})
              .add({{{0, 0}, -1, Draw::regular}, {{0, 3}}}, TriangularAttributes{})
              .add({{{0, 3, 3}, -1, Draw::regular}, {{0, 3, 2}}}, TriangularAttributes{});
        },
    .errors =
        [](ErrorList& e) {
          e.add("'a' is f32 and 'b' is f64", {{DType::f32, {3, 3}}, {DType::f64, {3, 3}}}, TriangularAttributes{})
              .add("rows of 'a' and 'b'", {{DType::f32, {3, 3}}, {DType::f32, {4, 1}}}, TriangularAttributes{});
        }};

constinit const OpDef solve_row{
    .name = "solve",
    .kind = Kind::linalg,
    .summary = "Solution of linear equations.",
    .operands = solve_names,
    .infer = infer_solve,
    .lower = [](LowerCall& call) { call.step(call.target().linalg(solve_spec(call, LinalgRoutine::solve))); },
    .gradient = gradient_of_solve,
    .samples = [](SampleList& s) { samples_of_solves(s.rounded(Rounding::factorisation)); },
    .errors = errors_of_solves};

constinit const OpDef lu_row{
    .name = "lu",
    .kind = Kind::linalg,
    .summary = "Permuted rows as a lower times an upper triangle.",
    .operands = x_name,
    .results = lu_results,
    .infer = infer_lu,
    .lower = [](LowerCall& call) { call.step(call.target().linalg(linalg_spec_of_results(call, LinalgRoutine::lu))); },
    .gradient = gradient_of_lu,
    .samples = samples_of_lu,
    .errors = errors_of_matrices};

constinit const OpDef det_row{.name = "det",
                              .kind = Kind::linalg,
                              .summary = "Determinant.",
                              .operands = x_name,
                              .infer = [](InferCall& call) { infer_per_matrix(call, 1); },
                              .lower =
                                  [](LowerCall& call) {
                                    LinalgSpec spec = linalg_spec(call, LinalgRoutine::determinant);
                                    spec.results = {call.result().buffer, -1, -1};
                                    call.step(call.target().linalg(std::move(spec)));
                                  },
                              .gradient =
                                  [](GradientCall& g) {
                                    if (g.wants(0))
                                      g.set(0, per_matrix(g.d()) * matrix_transposed(linalg::adjugate(g.in(0))));
                                  },
                              .samples = samples_of_determinants,
                              .errors = errors_of_square};

constinit const OpDef slogdet_row{.name = "slogdet",
                                  .kind = Kind::linalg,
                                  .summary = "Sign and logarithm of the determinant.",
                                  .operands = x_name,
                                  .results = slogdet_results,
                                  .infer = [](InferCall& call) { infer_per_matrix(call, 2); },
                                  .lower =
                                      [](LowerCall& call) {
                                        LinalgSpec spec = linalg_spec_of_results(call, LinalgRoutine::determinant);
                                        spec.results.insert(spec.results.begin(), -1);
                                        call.step(call.target().linalg(std::move(spec)));
                                      },
                                  .gradient =
                                      [](GradientCall& g) {
                                        if (g.wants(0))
                                          g.set(0, per_matrix(g.d_of(1)) * matrix_transposed(linalg::inverse(g.in(0))));
                                      },
                                  .samples = samples_of_slogdet,
                                  .errors = errors_of_square};

constinit const OpDef adjugate_row{
    .name = "adjugate",
    .kind = Kind::linalg,
    .summary = "Determinant times inverse.",
    .operands = x_name,
    .infer = infer_square,
    .lower =
        [](LowerCall& call) { call.step(call.target().linalg(linalg_spec_of_results(call, LinalgRoutine::adjugate))); },
    .gradient = gradient_of_adjugate,
    .samples = samples_of_determinants,
    .errors = errors_of_square};

constinit const OpDef qr_row{.name = "qr",
                             .kind = Kind::linalg,
                             .summary = "Orthonormal columns times an upper triangle.",
                             .operands = x_name,
                             .results = qr_results,
                             .infer = [](InferCall& call) { infer_qr(call, false); },
                             .lower = [](LowerCall& call) { lower_qr(call, false); },
                             .gradient = gradient_of_qr,
                             .samples = samples_of_qr,
                             .errors = errors_of_matrices};

constinit const OpDef qr_complete_row{.name = "qr_complete",
                                      .kind = Kind::linalg,
                                      .summary = "An orthogonal matrix times an upper triangle.",
                                      .operands = x_name,
                                      .results = qr_results,
                                      .infer = [](InferCall& call) { infer_qr(call, true); },
                                      .lower = [](LowerCall& call) { lower_qr(call, true); },
                                      .samples = samples_of_qr,
                                      .errors = errors_of_matrices};

// --- callables

namespace {

/// b as a column where it is a vector; what it gives is one then too.
template <class Solve>
Tensor with_columns(const char* name, In a, In b, const Solve& solve) {
  if (b.rank() != 1 || a.rank() < 2) return solve(a, b);
  Frame frame(name, a.where());
  Tensor column = expand_dims(b, -1);
  return squeeze(solve(a, In(column)), -1);
}

}  // namespace

namespace linalg {

Tensor band_part(In x, std::int64_t lower, std::int64_t upper) {
  return call(band_part_row, {x}, view_of(BandAttributes{lower, upper}));
}

Tensor cholesky(In x, CholeskyOptions options) {
  if (!options.upper || x.rank() < 2) return call(cholesky_row, {x});
  Frame frame("cholesky", x.where());
  Tensor transposed = matrix_transposed(x.tensor());
  return matrix_transposed(call(cholesky_row, {In(transposed)}));
}

Tensor triangular_solve(In a, In b, TriangularSolveOptions options) {
  TriangularAttributes form{options.lower, options.transpose, options.unit_diagonal};
  return with_columns("triangular_solve", a, b, [&](In m, In right) {
    return call(triangular_solve_row, {m, right}, view_of(form));
  });
}

Tensor solve(In a, In b) {
  return with_columns("solve", a, b, [](In m, In right) { return call(solve_row, {m, right}); });
}

LuResult lu(In x) {
  std::vector<Tensor> out = call_all(lu_row, {x});
  return {out[0], out[1], out[2]};
}

Tensor det(In x) { return call(det_row, {x}); }

SlogdetResult slogdet(In x) {
  std::vector<Tensor> out = call_all(slogdet_row, {x});
  return {out[0], out[1]};
}

Tensor adjugate(In x) { return call(adjugate_row, {x}); }

QrResult qr(In x, QrOptions options) {
  std::vector<Tensor> out = call_all(options.complete ? qr_complete_row : qr_row, {x});
  return {out[0], out[1]};
}

}  // namespace linalg
}  // namespace stet
