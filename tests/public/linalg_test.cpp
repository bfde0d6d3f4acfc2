// Linear algebra as a user sees it: composites, large matrices against their definitions, threads, errors.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Numbers within 1 of 0, the same in every run.
Tensor drawn(const Shape& shape, DType dtype = f64, std::int64_t stream = 1) {
  Tensor wide = random::stateless_uniform(shape, {stream, 2}, {.minval = -1, .maxval = 1, .dtype = f64});
  return cast(wide, dtype);
}
Tensor swapped(const Tensor& x) {
  std::vector<int> order;
  for (int axis = 0; axis < x.rank(); ++axis) order.push_back(axis);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}
Tensor identity(std::int64_t n, DType dtype = f64) { return one_hot(arange(n), n, {.dtype = dtype}); }
/// Symmetric, eigenvalues from about 1 on.
Tensor definite(const Shape& shape, DType dtype = f64, std::int64_t stream = 1) {
  Tensor b = drawn(shape, f64, stream);
  return cast(matmul(b, b, {.transpose_b = true}) / std::sqrt(double(shape[-1].value())) + identity(shape[-1].value()),
              dtype);
}
Tensor regular(std::int64_t n, DType dtype = f64, std::int64_t stream = 1) {
  return cast(drawn({n, n}, f64, stream) + identity(n) * std::sqrt(double(n)), dtype);
}

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape().str(), b.shape().str());
  if (a.size() == 0) return 0;
  return max(abs(cast(a, f64) - cast(b, f64))).item<double>();
}
double epsilon(DType dtype) { return dtype == f32 ? 0x1p-23 : 0x1p-52; }
void expect_values(const Tensor& x, const std::vector<double>& values, double tolerance = 1e-12) {
  std::vector<double> got = cast(x, f64).to_vector<double>();
  ASSERT_EQ(got.size(), values.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], values[i], tolerance) << i << " of " << x;
}

using OneArgument = std::function<Tensor(Tensor)>;

/// Eagerly and traced, at sizes of each input with one trace.
void expect_traced(const OneArgument& f, const std::vector<Tensor>& inputs) {
  Function traced = function("f(x)", [f](Tensor x) { return f(x); });
  for (const Tensor& x : inputs) EXPECT_LT(largest_difference(f(x), traced(x)), 1e-10) << x.shape();
  EXPECT_EQ(traced.trace_count(), 1);
}

/// The gradient of sum(f(x) * weights) along a direction, against a central difference; eagerly and traced.
void expect_gradient(const OneArgument& f, const Tensor& x, double tolerance = 1e-6) {
  Tensor weights = drawn(f(x).shape(), f64, 7), direction = drawn(x.shape(), f64, 8);
  auto loss = [=](const Tensor& at) { return sum(f(at) * weights); };
  auto along = [=](Tensor at) {
    GradientTape tape;
    tape.watch(at);
    Tensor value = loss(at);
    return sum(tape.gradient(value, at) * direction);
  };
  double h = 1e-6;
  double expected = ((loss(x + h * direction) - loss(x - h * direction)) / (2 * h)).item<double>();
  double scale = std::max(1.0, std::abs(expected));
  EXPECT_NEAR(along(x).item<double>(), expected, tolerance * scale);
  Function traced = function("along(x)", [along](Tensor at) { return along(at); });
  EXPECT_NEAR(traced(x).item<double>(), expected, tolerance * scale);
}

TEST(Linalg, LargeMatricesFulfilTheirDefinitions) {
  for (DType dtype : {f32, f64})
    for (std::int64_t n : {31, 32, 33, 64, 150, 192, 256, 319, 320, 321, 517}) {
      double tolerance = 40 * std::sqrt(double(n)) * epsilon(dtype);
      Tensor a = definite({n, n}, dtype), b = drawn({n, 70}, dtype, 3), c = regular(n, dtype);
      Tensor l = linalg::cholesky(a);
      EXPECT_LT(largest_difference(matmul(l, l, {.transpose_b = true}), a), tolerance * 4) << dtype << n;
      EXPECT_EQ(max(abs(l - linalg::band_part(l, -1, 0))).item<double>(), 0) << n;
      Tensor u = linalg::cholesky(a, {.upper = true});
      EXPECT_LT(largest_difference(u, swapped(l)), tolerance * 4);
      double size = std::sqrt(double(n));
      EXPECT_LT(largest_difference(matmul(c, linalg::solve(c, b)), b), tolerance * size) << dtype << n;
      Tensor column = linalg::solve(c, b[{Range{}, 0}]);
      EXPECT_LT(largest_difference(matmul(c, column), b[{Range{}, 0}]), tolerance * size) << dtype << n;
      EXPECT_LT(largest_difference(matmul(linalg::triangular_solve(l, b, {.transpose = true}), identity(70, dtype)),
                                   linalg::solve(swapped(l), b)),
                tolerance * size);
      auto [permutation, lower, upper] = linalg::lu(c);
      EXPECT_LT(largest_difference(matmul(lower, upper), gather(c, permutation)), tolerance * size) << dtype << n;
      EXPECT_LE(max(abs(lower)).item<double>(), 1);
      Tensor pivots = sum(l * identity(n, dtype), 1);
      EXPECT_LT(largest_difference(linalg::slogdet(a).logabsdet, 2 * sum(cast(log(pivots), f64))),
                tolerance * double(n));
    }
}

TEST(Linalg, SpectraOfLargerMatrices) {
  for (DType dtype : {f32, f64})
    for (auto [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{40, 40}, {70, 33}, {33, 70}, {130, 5}}) {
      double tolerance = 100 * double(std::max(m, n)) * epsilon(dtype);
      Tensor x = drawn({m, n}, dtype);
      for (bool full : {false, true}) {
        auto [u, s, vh] = linalg::svd(x, {.full_matrices = full});
        std::int64_t k = std::min(m, n);
        Tensor left = u[{Range{}, Range{0, k}}], right = vh[Range{0, k}];
        EXPECT_LT(largest_difference(matmul(left * s, right), x), tolerance);
        EXPECT_LT(largest_difference(matmul(u, u, {.transpose_a = true}), identity(full ? m : k, dtype)), tolerance);
        EXPECT_LT(largest_difference(matmul(vh, vh, {.transpose_b = true}), identity(full ? n : k, dtype)), tolerance);
        EXPECT_LT(largest_difference(s, linalg::svdvals(x)), tolerance);
        auto [q, r] = linalg::qr(x, {.complete = full});
        EXPECT_LT(largest_difference(matmul(q, r), x), tolerance);
        EXPECT_LT(largest_difference(matmul(q, q, {.transpose_a = true}), identity(full ? m : k, dtype)), tolerance);
        EXPECT_EQ(max(abs(r - linalg::band_part(r, 0, -1))).item<double>(), 0);
      }
      Tensor a = definite({n, n}, dtype);
      auto [w, v] = linalg::eigh(a);
      EXPECT_LT(largest_difference(matmul(a, v), v * w), tolerance * 10);
      EXPECT_LT(largest_difference(matmul(v, v, {.transpose_a = true}), identity(n, dtype)), tolerance);
      EXPECT_LT(largest_difference(w, linalg::eigvalsh(a)), tolerance * 10);
      Tensor p = linalg::pinv(x);
      EXPECT_LT(largest_difference(matmul(matmul(x, p), x), x), tolerance * 10);
    }
}

TEST(Linalg, OneAndManyThreadsGiveTheSameBits) {
  int before = thread_count();
  for (DType dtype : {f32, f64}) {
    Tensor a = definite({260, 260}, dtype), b = drawn({260, 150}, dtype, 3), many = definite({500, 9, 9}, dtype);
    std::vector<std::vector<Tensor>> runs;
    for (int threads : {1, 2, 3}) {
      set_thread_count(threads);
      runs.push_back({linalg::cholesky(a), linalg::solve(a, b), linalg::lu(a).u, linalg::qr(a).r, linalg::svd(b).u,
                      linalg::eigh(a).eigenvectors, linalg::cholesky(many), linalg::inverse(many), linalg::det(many),
                      linalg::eigvalsh(many), linalg::svdvals(many)});
    }
    for (std::size_t run : {1, 2})
      for (std::size_t i = 0; i < runs[0].size(); ++i)
        EXPECT_EQ(largest_difference(runs[0][i], runs[run][i]), 0) << i << " with " << run + 1 << " threads";
  }
  set_thread_count(before);
}

/// Threads of the user's own, all inside LAPACK at once.
TEST(Linalg, CallsFromSeveralThreads) {
  Tensor a = definite({150, 150}), expected = linalg::eigh(a).eigenvectors, inverse = linalg::inverse(a);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        wrong += largest_difference(linalg::eigh(a).eigenvectors, expected) != 0;
        wrong += largest_difference(linalg::inverse(a), inverse) != 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Linalg, ValuesFromNumPy) {
  Tensor a = tensor({{4.0, 2.0, 0.6}, {2.0, 5.0, 1.0}, {0.6, 1.0, 3.0}});
  expect_values(linalg::cholesky(a), {2, 0, 0, 1, 2, 0, 0.3, 0.35, 1.6695807857064});
  expect_values(linalg::det(a), {44.6});
  expect_values(linalg::inverse(a), {0.31390134529147984, -0.1210762331838565, -0.022421524663677132,
                                     -0.1210762331838565, 0.2609865470852018, -0.06278026905829595,
                                     -0.02242152466367713, -0.06278026905829595, 0.35874439461883406});
  expect_values(linalg::matrix_power(tensor({{1.0, 1.0}, {1.0, 0.0}}), 10), {89, 55, 55, 34});
  expect_values(linalg::matrix_power(tensor({{2.0, 1.0}, {1.0, 1.0}}), -2), {2, -3, -3, 5});
  expect_values(linalg::matrix_power(a, 0), {1, 0, 0, 0, 1, 0, 0, 0, 1});
  EXPECT_EQ(linalg::matrix_rank(tensor({{1.0, 2.0}, {2.0, 4.0}})).item<std::int64_t>(), 1);
  EXPECT_EQ(linalg::matrix_rank(zeros({3, 0, 4}, f64)).to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 0, 0}));
  Tensor x = tensor({{1.0, -2.0, 3.0}, {-4.0, 5.0, 6.0}});
  expect_values(linalg::matrix_norm(x), {std::sqrt(91.0)});
  expect_values(linalg::matrix_norm(x, {.order = "nuc"}), {12.49706697378234});
  expect_values(linalg::matrix_norm(x, {.order = 1}), {9});
  expect_values(linalg::matrix_norm(x, {.order = -1}), {5});
  expect_values(linalg::matrix_norm(x, {.order = infinity}), {15});
  expect_values(linalg::matrix_norm(x, {.order = -infinity}), {6});
  Tensor s = linalg::svdvals(x);
  expect_values(linalg::matrix_norm(x, {.order = 2}), {s.item<double>({0})});
  expect_values(linalg::matrix_norm(x, {.order = -2}), {s.item<double>({1})});
  EXPECT_EQ(linalg::matrix_norm(x, {.order = 2, .keepdims = true}).shape().str(), "[1,1]");
  expect_values(linalg::vector_norm(x), {std::sqrt(91.0)});
  expect_values(linalg::vector_norm(x, {.order = 1, .axes = {0}}), {5, 7, 9});
  expect_values(linalg::vector_norm(x, {.order = 3, .axes = {1}}), {std::cbrt(36.0), std::cbrt(405.0)});
  expect_values(linalg::vector_norm(x, {.order = infinity}), {6});
  expect_values(linalg::vector_norm(x, {.order = -infinity}), {1});
  expect_values(linalg::vector_norm(tensor({0.0, 3.0, 0.0}), {.order = 0}), {1});
}

TEST(Linalg, LeastSquares) {
  Tensor a = tensor({{0.0, 1.0}, {1.0, 1.0}, {2.0, 1.0}, {3.0, 1.0}}), b = tensor({-1.0, 0.2, 0.9, 2.1});
  linalg::LstsqResult line = linalg::lstsq(a, b);
  expect_values(line.x, {1, -0.95});
  expect_values(line.residuals, {0.05});
  expect_values(line.singular_values, {4.10003045, 1.09075677}, 1e-7);
  EXPECT_EQ(line.rank.item<std::int64_t>(), 2);
  // Of rank 1: the solution of least norm.
  Tensor flat = tensor({{1.0, 1.0}, {1.0, 1.0}});
  linalg::LstsqResult least = linalg::lstsq(flat, tensor({2.0, 4.0}));
  expect_values(least.x, {1.5, 1.5});
  EXPECT_EQ(least.rank.item<std::int64_t>(), 1);
  expect_traced([](Tensor x) { return linalg::lstsq(x, sum(x, -1, {.keepdims = true}) + 1).x; },
                {drawn({5, 3}), drawn({8, 2}), drawn({3, 5})});
  expect_gradient([&](Tensor x) { return linalg::lstsq(x, tensor({1.0, 2.0, -1.0, 0.5})).x; }, drawn({4, 2}));
}

TEST(Linalg, CompositesTracedAndDerived) {
  Tensor three = regular(3), five = regular(5);
  std::vector<Tensor> square{three, five};
  std::vector<Tensor> wide{drawn({2, 3, 4}), drawn({5, 2, 6})};
  struct Case {
    OneArgument f;
    bool wide;
  };
  std::vector<Case> cases{
      {[](Tensor x) { return linalg::inverse(x); }, false},
      {[](Tensor x) { return linalg::matrix_power(x, 3); }, false},
      {[](Tensor x) { return linalg::matrix_power(x, -2); }, false},
      {[](Tensor x) { return linalg::cholesky(matmul(x, x, {.transpose_b = true}), {.upper = true}); }, false},
      {[](Tensor x) { return linalg::solve(x, x[0]); }, false},
      {[](Tensor x) { return linalg::triangular_solve(x, x[0], {.lower = false}); }, false},
      {[](Tensor x) { return linalg::matrix_norm(x); }, true},
      {[](Tensor x) { return linalg::matrix_norm(x, {.order = "nuc", .keepdims = true}); }, true},
      {[](Tensor x) { return linalg::matrix_norm(x, {.order = 2}); }, true},
      {[](Tensor x) { return linalg::matrix_norm(x, {.order = -2}); }, true},
      {[](Tensor x) { return linalg::matrix_norm(x, {.order = 1}); }, true},
      {[](Tensor x) {
         return linalg::vector_norm(x, {.axes = {0, -1}});
       },
       true},
      {[](Tensor x) { return linalg::vector_norm(x, {.order = 3, .axes = {1}, .keepdims = true}); }, true},
      {[](Tensor x) { return linalg::slogdet(x).logabsdet; }, false},
      {[](Tensor x) { return linalg::pinv(x); }, true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<Tensor>& inputs = cases[i].wide ? wide : square;
    expect_traced(cases[i].f, inputs);
    expect_gradient(cases[i].f, inputs[0]);
  }
  expect_traced([](Tensor x) { return linalg::matrix_rank(x); }, wide);
}

TEST(Linalg, GradientsWhereOthersGiveNaN) {
  auto gradient = [](const OneArgument& f, const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(f(x), x);
  };
  // det of singular matrices: cofactors.
  expect_values(gradient([](Tensor x) { return linalg::det(x); }, tensor({{1.0, 2.0}, {2.0, 4.0}})), {4, -2, -2, 1},
                1e-14);
  expect_values(gradient([](Tensor x) { return linalg::det(x); }, zeros({2, 2}, f64)), {0, 0, 0, 0});
  expect_values(gradient([](Tensor x) { return linalg::vector_norm(x); }, zeros({3}, f64)), {0, 0, 0});
  // Equal singular values and eigenvalues, and what does not depend on the choice of vectors.
  expect_values(gradient([](Tensor x) { return sum(linalg::svd(x).s); }, identity(2)), {1, 0, 0, 1});
  Tensor d = gradient(
      [](Tensor x) {
        auto [w, v] = linalg::eigh(x);
        return sum(matmul(v * square(w), v, {.transpose_b = true}));
      },
      identity(2) * 3);
  EXPECT_TRUE(std::isfinite(sum(d).item<double>()));
}

TEST(Linalg, OperandsThatAreViews) {
  Tensor block = definite({12, 12}), part = block[{Range{3, 8}, Range{3, 8}}],
         stepped = block[{Range{0, 12, 3}, Range{0, 12, 3}}];
  EXPECT_EQ(largest_difference(linalg::cholesky(part), linalg::cholesky(part.contiguous())), 0);
  EXPECT_EQ(largest_difference(linalg::cholesky(stepped), linalg::cholesky(stepped.contiguous())), 0);
  Tensor b = transpose(drawn({3, 5}));
  EXPECT_EQ(largest_difference(linalg::solve(part, b), linalg::solve(part.contiguous(), b.contiguous())), 0);
  Tensor repeated = broadcast_to(part, {4, 5, 5});
  EXPECT_EQ(largest_difference(linalg::inverse(repeated)[2], linalg::inverse(part)), 0);
}

TEST(Linalg, MatricesThatFailAreNamed) {
  Tensor good = identity(3), bad = good * tensor({1.0, -1.0, 1.0}), flat = good * tensor({1.0, 1.0, 0.0});
  Tensor batch = reshape(stack({good, good, good, bad}), {2, 2, 3, 3});
  std::string what = "cholesky: matrix [1,1] of the batch is not positive definite: pivot 1 is not a positive number";
  std::string eager = error_of([&] { linalg::cholesky(batch); });
  EXPECT_CONTAINS(eager, what);
  EXPECT_CONTAINS(eager, std::string(__FILE__) + ":" + std::to_string(__LINE__ - 2));
  const int line = __LINE__ + 1;
  Function f = function("f(x)", [](Tensor x) { return linalg::cholesky(x) * 2; });
  EXPECT_EQ(f(stack({good, good})).shape().str(), "[2,3,3]");
  std::string traced = error_of([&] { f(stack({good, bad})); });
  EXPECT_CONTAINS(traced, "cholesky: matrix [1] of the batch is not positive definite");
  EXPECT_CONTAINS(traced, std::string(__FILE__) + ":" + std::to_string(line));
  EXPECT_CONTAINS(traced, "in 'f' called at");
  EXPECT_CONTAINS(error_of([&] { linalg::cholesky(bad); }), "cholesky: the matrix is not positive definite");
  EXPECT_CONTAINS(error_of([&] { linalg::cholesky(good * NAN); }), "pivot 0 is not a positive number");
  EXPECT_CONTAINS(error_of([&] { linalg::solve(flat, ones({3}, f64)); }),
                  "solve: the matrix is singular: pivot 2 is 0");
  EXPECT_CONTAINS(error_of([&] { linalg::inverse(stack({good, flat})); }), "matrix [1] of the batch is singular");
  EXPECT_CONTAINS(error_of([&] { linalg::inverse(flat); }), "inverse");
  EXPECT_CONTAINS(error_of([&] { linalg::triangular_solve(flat, ones({3}, f64)); }), "element 2 of its diagonal is 0");
  for (double wrong : {double(NAN), infinity}) {
    Tensor x = good * tensor({1.0, wrong, 1.0});
    EXPECT_CONTAINS(error_of([&] { linalg::svd(x); }), "is not finite, or its svd does not converge");
    EXPECT_CONTAINS(error_of([&] { linalg::eigvalsh(x); }), "is not finite, or its eigh does not converge");
  }
  for (std::int64_t n : {40, 250}) {
    Tensor large = identity(n) * (cast(arange(n), f64) - double(n - 5));
    EXPECT_CONTAINS(error_of([&] { linalg::solve(large, ones({n}, f64)); }),
                    "is singular: pivot " + std::to_string(n - 5));
    EXPECT_CONTAINS(error_of([&] { linalg::cholesky(0.0 - large); }), "pivot " + std::to_string(n - 5));
  }
}

TEST(Linalg, WrongCalls) {
  EXPECT_CONTAINS(error_of([] { linalg::inverse(ones({3}, f64)); }), "inverse: 'x' has rank 1, a matrix has 2 or more");
  EXPECT_CONTAINS(error_of([] { linalg::inverse(ones({3, 4}, f64)); }), "3 and 4 differ");
  EXPECT_CONTAINS(error_of([] { linalg::inverse(ones({3, 3}, i32)); }), "cast(x, f32)");
  EXPECT_CONTAINS(error_of([] { linalg::matrix_norm(ones({3, 3}), {.order = 3}); }), "there is no norm of order 3");
  EXPECT_CONTAINS(error_of([] {
                    linalg::matrix_norm(ones({3, 3}), {.order = "max"});
                  }),
                  "there is no norm of order max");
  EXPECT_CONTAINS(error_of([] {
                    Tensor x = ones({3, 2});
                    GradientTape tape;
                    tape.watch(x);
                    tape.gradient(sum(linalg::qr(x, {.complete = true}).q), x);
                  }),
                  "qr_complete has no gradient");
}

TEST(Linalg, EmptyMatrices) {
  Tensor none = zeros({0, 0}, f64);
  EXPECT_EQ(linalg::cholesky(none).shape().str(), "[0,0]");
  expect_values(linalg::det(none), {1});
  expect_values(linalg::det(zeros({2, 0, 0}, f64)), {1, 1});
  EXPECT_EQ(linalg::inverse(zeros({2, 0, 0}, f64)).shape().str(), "[2,0,0]");
  EXPECT_EQ(linalg::svd(zeros({3, 0}, f64), {.full_matrices = true}).u.shape().str(), "[3,3]");
  EXPECT_EQ(largest_difference(linalg::qr(zeros({3, 0}, f64), {.complete = true}).q, identity(3)), 0);
  EXPECT_EQ(linalg::pinv(zeros({3, 0}, f64)).shape().str(), "[0,3]");
  EXPECT_EQ(linalg::eigh(zeros({0, 4, 4}, f64)).eigenvectors.shape().str(), "[0,4,4]");
}

}  // namespace
