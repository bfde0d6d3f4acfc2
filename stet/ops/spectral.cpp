// Linear algebra by singular values and eigenvalues.
//
// Vectors come with the component of largest magnitude positive (the first of equals): of the columns of u and of v.
// So factors are unique where singular values and eigenvalues differ from each other; where some are equal, any basis
// of their space may come. The gradients hold where they differ; of functions that do not depend on the choice of a
// basis (the values, their functions of matrices) terms between equal values vanish, and they are left out.
#include "stet/core/call.h"
#include "stet/ops/linalg.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- linear algebra

namespace linalg {

struct SvdOptions {
  bool full_matrices = false;  // u and vh are square; without a gradient
};
struct SvdResult {
  Tensor u, s, vh;
};
/// x = u diag(s) vh, s descending, columns of u and rows of vh orthonormal; the component of largest magnitude of every
/// column of u is positive. u is [..., m, k] and vh [..., k, n], k the smaller of m and n. Gradients of u and vh exist
/// where singular values differ; terms between equal ones are left out, which is right for all that does not depend on
/// the choice of vectors.
/// Names: numpy.linalg.svd, array_api.linalg.svd, tf.linalg.svd
/// Example: linalg::svd(tensor({{0.f, 2.f}, {3.f, 0.f}})).s
STET_API SvdResult svd(In x, SvdOptions options = {});
/// The singular values alone, descending.
/// Names: numpy.linalg.svdvals, array_api.linalg.svdvals
/// Example: linalg::svdvals(tensor({{3.f, 0.f}, {4.f, 5.f}}))
STET_API Tensor svdvals(In x);

struct EighResult {
  Tensor eigenvalues, eigenvectors;
};
/// x v = v diag(w) of symmetric matrices, eigenvalues ascending, eigenvectors in columns, the component of largest
/// magnitude positive. Of x the lower triangle is read, and only its elements have gradients; those of eigenvectors
/// exist where eigenvalues differ, as svd's.
/// Names: numpy.linalg.eigh, array_api.linalg.eigh, tf.linalg.eigh
/// Example: linalg::eigh(tensor({{1.f, 0.f}, {0.f, 3.f}})).eigenvectors
STET_API EighResult eigh(In x);
/// The eigenvalues alone, ascending.
/// Names: numpy.linalg.eigvalsh, array_api.linalg.eigvalsh, tf.linalg.eigvalsh
/// Example: linalg::eigvalsh(tensor({{2.f, 1.f}, {1.f, 2.f}}))
STET_API Tensor eigvalsh(In x);

struct PinvOptions {
  double rtol =
      -1;  // singular values up to rtol times the largest count as 0; negative: larger of m and n, times epsilon
};
/// The pseudo-inverse of Moore and Penrose, by singular values. Its gradient is that at constant rank.
/// Names: numpy.linalg.pinv, array_api.linalg.pinv, tf.linalg.pinv
/// Example: linalg::pinv(tensor({{1.f}, {2.f}, {2.f}}))
STET_API Tensor pinv(In x, PinvOptions options = {});

}  // namespace linalg
#endif

namespace {

constexpr const char* x_name[] = {"x"};
constexpr const char* svd_results[] = {"u", "s", "vh"};
constexpr const char* eigh_results[] = {"eigenvalues", "eigenvectors"};

struct PinvAttributes {
  double rtol = -1;
  STET_ATTRIBUTES(rtol)
};

// --- singular values

void infer_svd(InferCall& call, bool full) {
  require_matrices(call, 0);
  const Shape& x = call.shape(0);
  Dim m = x[-2], n = x[-1], k = smaller_of(m, n);
  call.result(call.dtype(0), batch_and(x, {m, full ? m : k}));
  call.result(call.dtype(0), batch_and(x, {k}));
  call.result(call.dtype(0), batch_and(x, {full ? n : k, n}));
}

void lower_svd(LowerCall& call, bool full) {
  LinalgSpec spec = linalg_spec_of_results(call, LinalgRoutine::svd);
  spec.full = full;
  call.step(call.target().linalg(std::move(spec)));
}

/// 1 / (b - a) for every a (rows) and b (columns) of a list; 0 where they are equal.
Tensor inverse_differences(const Tensor& values) {
  Tensor rows = expand_dims(values, -1), columns = expand_dims(values, -2);
  Tensor differences = columns - rows;
  Tensor equal_ones = differences == 0;
  return where(equal_ones, 0.0, 1 / where(equal_ones, 1.0, differences));
}

Tensor safe_reciprocal(const Tensor& x) {
  Tensor zero = x == 0;
  return where(zero, 0.0, 1 / where(zero, 1.0, x));
}

/// The diagonal of each matrix with these elements.
Tensor as_diagonal(const Tensor& elements, const Tensor& like) {
  return columns_times(diagonal_part(ones_like(like)), elements);
}

/// Within the spaces of u and v the change turns vectors into each other, by the differences of squares of singular
/// values; what leaves the spaces is divided by the singular value.
void gradient_of_svd(GradientCall& g) {
  if (!g.wants(0)) return;
  const Tensor &u = g.out(0), &s = g.out(1), &vh = g.out(2);
  Tensor du = g.d_of(0), ds = g.d_of(1), dvh = g.d_of(2);
  Tensor factors = inverse_differences(s * s), reciprocal = safe_reciprocal(s);
  Tensor left = product_tn(u, du), right = product_nt(vh, dvh);
  Tensor turned_left = factors * (left - matrix_transposed(left));
  Tensor turned_right = factors * (right - matrix_transposed(right));
  Tensor inside = columns_times(turned_left, s) + rows_times(s, turned_right) + as_diagonal(ds, turned_left);
  Tensor outside_left = columns_times(du - product(u, left), reciprocal);
  Tensor outside_right = rows_times(reciprocal, dvh - product_tn(right, vh));
  g.set(0, product(product(u, inside) + outside_left, vh) + product(u, outside_right));
}

void samples_of_svd(SampleList& s) {
  s.rounded(Rounding::factorisation)
      .add({{{3, 3}}})
      .add({{{5, 3}}})
      .add({{{3, 5}}})
      .add({{{2, 2, 4, 3}}})
      .add({{{1, 1}}})
      .add({{{4, 1}}})
      .add({{{0, 0}}})
      .add({{{3, 0}}})
      .add({{{0, 3, 2}}});
}

// --- eigenvalues

void infer_eigh(InferCall& call, bool vectors) {
  require_square_matrices(call, 0);
  const Shape& x = call.shape(0);
  call.result(call.dtype(0), batch_and(x, {x[-1]}));
  if (vectors) call.result(call.dtype(0), x);
}

void gradient_of_eigh(GradientCall& g) {
  if (!g.wants(0)) return;
  const Tensor &w = g.out(0), &v = g.out(1);
  Tensor turned = inverse_differences(w) * product_tn(v, g.d_of(1));
  Tensor inside = turned + as_diagonal(g.d_of(0), turned);
  g.set(0, to_lower_triangle(product_nt(product(v, inside), v)));
}

void samples_of_eigh(SampleList& s) {
  s.rounded(Rounding::factorisation)
      .add({{{3, 3}}})
      .add({{{5, 5}}})
      .add({{{2, 2, 4, 4}}})
      .add({{{1, 1}}})
      .add({{{0, 0}}})
      .add({{{0, 3, 3}}});
}

// --- pseudo-inverse

/// The rows of vh over their singular values, and 0 where these count as 0.
Place scaled_rows(LowerCall& call, const Place& vh, const Place& s, const Shape& shape) {
  const Shape& x = call.in(0).shape;
  DType dtype = call.in(0).dtype;
  double rtol = call.attributes<PinvAttributes>().rtol;
  Kernel kernel;
  kernel.name = "reciprocals";
  for (const Dim& extent : shape) kernel.loops.push_back({extent, false});
  auto rank = static_cast<std::size_t>(shape.rank());
  std::vector<int> all, rows, batch;
  for (int axis = 0; axis < shape.rank(); ++axis) all.push_back(axis);
  rows.assign(all.begin(), all.end() - 1);
  batch.assign(all.begin(), all.end() - 1);
  batch.back() = -1;  // the first, largest one
  Access larger;
  larger.source = Access::number;
  larger.dtype = dtype;
  larger.address.offset = larger_of(x[-2], x[-1]);
  kernel.operands = {LowerCall::access(vh, dtype, all, rank), LowerCall::access(s, dtype, rows, rank),
                     LowerCall::access(s, dtype, batch, rank), larger};
  double epsilon = dtype == DType::f32 ? 0x1p-23 : 0x1p-52;
  Expr cutoff = operand(2, dtype) * (rtol < 0 ? operand(3, dtype) * constant(epsilon, dtype) : constant(rtol, dtype));
  kernel.body = scalar::select(cutoff < operand(1, dtype), operand(0, dtype) / operand(1, dtype), constant(0.0, dtype));
  Place out = call.temporary(dtype, shape);
  kernel.result = LowerCall::access(out, dtype, all, rank);
  call.kernel(std::move(kernel));
  return out;
}

/// vh' diag(1 / s) u'
void lower_pinv(LowerCall& call) {
  const Shape& x = call.in(0).shape;
  DType dtype = call.in(0).dtype;
  Dim m = x[-2], n = x[-1], k = smaller_of(m, n);
  Shape rows = batch_and(x, {k, n});
  Place u = call.temporary(dtype, batch_and(x, {m, k})), s = call.temporary(dtype, batch_and(x, {k}));
  Place vh = call.temporary(dtype, rows);
  LinalgSpec spec = linalg_spec(call, LinalgRoutine::svd);
  spec.results = {u.buffer, s.buffer, vh.buffer};
  call.step(call.target().linalg(std::move(spec)));
  Place scaled = scaled_rows(call, vh, s, rows);

  ContractionSpec product;
  product.dtype = dtype;
  product.transpose_left = product.transpose_right = true;
  product.m = n;
  product.n = m;
  product.k = k;
  for (const Dim& extent : batch_of(x)) product.batch.push_back(extent);
  auto matrix = [&](const Place& place, const Dim& columns) {
    MatrixPlace out;
    out.buffer = place.buffer;
    out.leading = columns;
    out.extent = call.elements(place);
    out.batch_strides.assign(place.layout.strides.begin(), place.layout.strides.end() - 2);
    out.element_bytes = size_of(dtype);
    return out;
  };
  product.left = matrix(scaled, n);
  product.right = matrix(u, k);
  product.result = matrix(call.result(), m);
  call.step(call.target().contraction(std::move(product)));
}

/// dp = -p dx p + p p' dx' (1 - x p) + (1 - p x) dx' p' p
void gradient_of_pinv(GradientCall& g) {
  if (!g.wants(0)) return;
  const Tensor &x = g.in(0), &p = g.out(), &d = g.d();
  Tensor first = product_nt(product_tn(p, d), p);
  Tensor left = product(matrix_transposed(d), product_nt(p, p));  // d' p p'
  Tensor right = product_nt(product_tn(p, p), d);                 // p' p d'
  Tensor second = left - product(x, product(p, left));
  Tensor third = right - product(product(right, p), x);
  g.set(0, second + third - first);
}

void errors_of_matrices(ErrorList& e) {
  e.add("has rank 1, a matrix has 2 or more", {{DType::f32, {3}}})
      .add("matrices of i32 are not factorised", {{DType::i32, {3, 3}}});
}
void errors_of_square(ErrorList& e) {
  errors_of_matrices(e);
  e.add("rows and columns of a square matrix, 3 and 4 differ", {{DType::f32, {2, 3, 4}}});
}

}  // namespace

// --- rows

constinit const AttributeCodec pinv_codec = attribute_codec<PinvAttributes>;

constinit const OpDef svd_row{.name = "svd",
                              .kind = Kind::linalg,
                              .summary = "Singular value decomposition.",
                              .operands = x_name,
                              .results = svd_results,
                              .infer = [](InferCall& call) { infer_svd(call, false); },
                              .lower = [](LowerCall& call) { lower_svd(call, false); },
                              .gradient = gradient_of_svd,
                              .samples = samples_of_svd,
                              .errors = errors_of_matrices};

constinit const OpDef svd_full_row{.name = "svd_full",
                                   .kind = Kind::linalg,
                                   .summary = "Singular value decomposition with square factors.",
                                   .operands = x_name,
                                   .results = svd_results,
                                   .infer = [](InferCall& call) { infer_svd(call, true); },
                                   .lower = [](LowerCall& call) { lower_svd(call, true); },
                                   // Beyond the singular values a basis is unique only if it is one vector.
                                   .samples =
                                       [](SampleList& s) {
                                         s.rounded(Rounding::factorisation)
                                             .add({{{3, 3}}})
                                             .add({{{2, 2, 1}}})
                                             .add({{{1, 1}}})
                                             .add({{{3, 0}}})
                                             .add({{{0, 3, 2}}});
                                       },
                                   .errors = errors_of_matrices};

constinit const OpDef svdvals_row{.name = "svdvals",
                                  .kind = Kind::linalg,
                                  .summary = "Singular values.",
                                  .operands = x_name,
                                  .infer =
                                      [](InferCall& call) {
                                        require_matrices(call, 0);
                                        const Shape& x = call.shape(0);
                                        call.result(call.dtype(0), batch_and(x, {smaller_of(x[-2], x[-1])}));
                                      },
                                  .lower =
                                      [](LowerCall& call) {
                                        LinalgSpec spec = linalg_spec(call, LinalgRoutine::svd);
                                        spec.results = {-1, call.result().buffer, -1};
                                        call.step(call.target().linalg(std::move(spec)));
                                      },
                                  .gradient =
                                      [](GradientCall& g) {
                                        if (!g.wants(0)) return;
                                        linalg::SvdResult parts = linalg::svd(g.in(0));
                                        g.set(0, product(columns_times(parts.u, g.d()), parts.vh));
                                      },
                                  .samples =
                                      [](SampleList& s) {
                                        samples_of_svd(s);
                                        s.add({{{33, 40}}});
                                      },
                                  .errors = errors_of_matrices};

constinit const OpDef eigh_row{
    .name = "eigh",
    .kind = Kind::linalg,
    .summary = "Eigenvalues and eigenvectors of symmetric matrices.",
    .operands = x_name,
    .results = eigh_results,
    .infer = [](InferCall& call) { infer_eigh(call, true); },
    .lower =
        [](LowerCall& call) { call.step(call.target().linalg(linalg_spec_of_results(call, LinalgRoutine::eigh))); },
    .gradient = gradient_of_eigh,
    .samples = samples_of_eigh,
    .errors = errors_of_square};

constinit const OpDef eigvalsh_row{.name = "eigvalsh",
                                   .kind = Kind::linalg,
                                   .summary = "Eigenvalues of symmetric matrices.",
                                   .operands = x_name,
                                   .infer = [](InferCall& call) { infer_eigh(call, false); },
                                   .lower =
                                       [](LowerCall& call) {
                                         LinalgSpec spec = linalg_spec(call, LinalgRoutine::eigh);
                                         spec.results = {call.result().buffer, -1};
                                         call.step(call.target().linalg(std::move(spec)));
                                       },
                                   .gradient =
                                       [](GradientCall& g) {
                                         if (!g.wants(0)) return;
                                         Tensor v = linalg::eigh(g.in(0)).eigenvectors;
                                         g.set(0, to_lower_triangle(product_nt(columns_times(v, g.d()), v)));
                                       },
                                   .samples =
                                       [](SampleList& s) {
                                         samples_of_eigh(s);
                                         s.add({{{33, 33}}});
                                       },
                                   .errors = errors_of_square};

constinit const OpDef pinv_row{.name = "pinv",
                               .kind = Kind::linalg,
                               .summary = "Pseudo-inverse.",
                               .operands = x_name,
                               .infer =
                                   [](InferCall& call) {
                                     require_matrices(call, 0);
                                     const Shape& x = call.shape(0);
                                     call.result(call.dtype(0), batch_and(x, {x[-1], x[-2]}));
                                   },
                               .lower = lower_pinv,
                               .gradient = gradient_of_pinv,
                               .samples =
                                   [](SampleList& s) {
                                     s.rounded(Rounding::factorisation)
                                         .add({{{3, 3}, -1, Draw::regular}}, PinvAttributes{})
                                         .add({{{5, 3}}}, PinvAttributes{})
                                         .add({{{3, 5}}}, PinvAttributes{1e-3})
                                         .add({{{2, 2, 4, 3}}}, PinvAttributes{})
                                         .add({{{4, 1}}}, PinvAttributes{})
                                         .add({{{1, 1}}}, PinvAttributes{})
                                         .add({{{0, 0}}}, PinvAttributes{})
                                         .add({{{3, 0}}}, PinvAttributes{})
                                         .add({{{0, 3, 2}}}, PinvAttributes{});
                                   },
                               .errors =
                                   [](ErrorList& e) {
                                     e.add("has rank 1", {{DType::f32, {3}}}, PinvAttributes{});
                                   }};

// --- callables

namespace linalg {

SvdResult svd(In x, SvdOptions options) {
  std::vector<Tensor> out = call_all(options.full_matrices ? svd_full_row : svd_row, {x});
  return {out[0], out[1], out[2]};
}

Tensor svdvals(In x) { return call(svdvals_row, {x}); }

EighResult eigh(In x) {
  std::vector<Tensor> out = call_all(eigh_row, {x});
  return {out[0], out[1]};
}

Tensor eigvalsh(In x) { return call(eigvalsh_row, {x}); }

Tensor pinv(In x, PinvOptions options) { return call(pinv_row, {x}, view_of(PinvAttributes{options.rtol})); }

}  // namespace linalg
}  // namespace stet
