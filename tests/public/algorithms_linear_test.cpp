// Conjugate gradients until the residual is small, with a matrix and without one, and gradients through the iteration.
#include "algorithms.h"

namespace stet {
namespace {

struct Descent {
  Tensor x, residual, direction, square, turns;
  STET_FIELDS(x, residual, direction, square, turns)
};

/// `apply` is a symmetric positive linear map.
template <class Map>
Descent conjugate_gradients(Map apply, Tensor b, double tolerance, LoopOptions options = {}) {
  Tensor enough = tolerance * tolerance * sum(b * b);
  return while_loop([&](Descent now) { return now.square > enough; },
                    [&](Descent now) {
                      Tensor image = apply(now.direction);
                      Tensor step = now.square / sum(now.direction * image);
                      Tensor residual = now.residual - step * image, square = sum(residual * residual);
                      return Descent{now.x + step * now.direction, residual,
                                     residual + square / now.square * now.direction, square, now.turns + 1};
                    },
                    Descent{zeros_like(b), b, b, sum(b * b), tensor(0)}, options);
}

using Map = std::function<Reals(const Reals&)>;

double product(const Reals& a, const Reals& b) {
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) out += a[i] * b[i];
  return out;
}

std::pair<Reals, int> plain_conjugate_gradients(const Map& apply, const Reals& b, double tolerance) {
  Reals x(b.size(), 0), residual = b, direction = b;
  double square = product(b, b);
  const double enough = tolerance * tolerance * square;
  int turns = 0;
  for (; square > enough; ++turns) {
    Reals image = apply(direction);
    const double step = square / product(direction, image);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += step * direction[i], residual[i] -= step * image[i];
    const double next = product(residual, residual), factor = next / square;
    for (std::size_t i = 0; i < x.size(); ++i) direction[i] = residual[i] + factor * direction[i];
    square = next;
  }
  return {x, turns};
}

/// A symmetric matrix with eigenvalues from 1 on.
Reals positive_matrix(std::int64_t n) {
  Reals w = wave(n * n, 0.4), out;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = i == j ? 1 : 0;
      for (std::int64_t k = 0; k < n; ++k)
        sum += w[static_cast<std::size_t>(i * n + k)] * w[static_cast<std::size_t>(j * n + k)] / static_cast<double>(n);
      out.push_back(sum);
    }
  return out;
}
Map plain_matrix(const Reals& a, std::int64_t n) {
  return [=](const Reals& x) {
    Reals out;
    for (std::int64_t i = 0; i < n; ++i) out.push_back(product(Reals(a.begin() + i * n, a.begin() + (i + 1) * n), x));
    return out;
  };
}

TEST(AlgorithmsLinear, ConjugateGradientsUntilTheResidualIsSmall) {
  auto solve = [](Tensor a, Tensor b) { return conjugate_gradients([&](Tensor v) { return matmul(a, v); }, b, 1e-10); };
  Function traced = function("solve(a, b)", solve);
  for (std::int64_t n : {5, 30, 1, 17}) {
    SCOPED_TRACE(n);
    Reals a = positive_matrix(n), b = wave(n, 3);
    auto [x, turns] = plain_conjugate_gradients(plain_matrix(a, n), b, 1e-10);
    Tensor matrix = shaped(a, {n, n});
    Descent got = traced(matrix, tensor(b)), eager = solve(matrix, tensor(b));
    EXPECT_EQ(got.turns.item<int>(), turns);
    expect_close(got.x, x, 1e-9, "plain");
    expect_agree(got.x, linalg::solve(matrix, tensor(b)), 1e-9, "solve");
    EXPECT_EQ(eager.turns.item<int>(), turns);
    expect_agree(got.x, eager.x, 1e-9, "eager");
    // Nothing to do, and no 0 / 0.
    Descent none = traced(matrix, zeros({n}, f64));
    EXPECT_EQ(none.turns.item<int>(), 0);
    EXPECT_EQ(reals(none.x), Reals(static_cast<std::size_t>(n), 0));
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

/// -x'' + x on a ring of points: no matrix anywhere.
TEST(AlgorithmsLinear, TheMapMayBeAnyCode) {
  auto solve = [](Tensor b) {
    return conjugate_gradients([](Tensor v) { return 3 * v - roll(v, 1) - roll(v, -1); }, b, 1e-9);
  };
  Function traced = function("solve(b)", solve);
  for (std::int64_t n : {4, 100, 1, 33}) {
    SCOPED_TRACE(n);
    Reals b = wave(n, 1);
    auto apply = [&](const Reals& v) {
      Reals out(v.size());
      for (std::size_t i = 0; i < v.size(); ++i)
        out[i] = 3 * v[i] - v[(i + v.size() - 1) % v.size()] - v[(i + 1) % v.size()];
      return out;
    };
    auto [x, turns] = plain_conjugate_gradients(apply, b, 1e-9);
    Descent got = traced(tensor(b));
    EXPECT_EQ(got.turns.item<int>(), turns);
    expect_close(got.x, x, 1e-8);
    expect_close(tensor(apply(reals(got.x))), b, 1e-8);
    expect_agree(solve(tensor(b)).x, got.x, 1e-8);
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

/// x = b / a, so that weights · x has the gradient weights / a by b, and minus that times x by a.
TEST(AlgorithmsLinear, GradientsThroughTheIterationAreThoseOfTheSolution) {
  auto slopes = [](Tensor a, Tensor b, Tensor weights, LoopOptions options) {
    GradientTape tape;
    tape.watch(a), tape.watch(b);
    Descent last = conjugate_gradients([&](Tensor v) { return matmul(a, v); }, b, 1e-11, options);
    std::vector<Tensor> d = tape.gradient(sum(weights * last.x), {a, b});
    return std::tuple(last.x, d[0], d[1]);
  };
  Function traced =
      function("slopes(a, b, weights)", [&](Tensor a, Tensor b, Tensor weights) { return slopes(a, b, weights, {}); });
  Function saving = function("saving(a, b, weights)", [&](Tensor a, Tensor b, Tensor weights) {
    return slopes(a, b, weights, {.checkpoint_every = 3});
  });
  for (std::int64_t n : {6, 1, 12}) {
    SCOPED_TRACE(n);
    Reals matrix = positive_matrix(n), right = wave(n, 3);
    Tensor a = shaped(matrix, {n, n}), b = tensor(right), weights = tensor(wave(n, 5));
    Tensor x = linalg::solve(a, b), by_b = linalg::solve(a, weights), by_a = -outer(by_b, x);
    auto plain = [&](const Reals& r) {
      return product(plain_conjugate_gradients(plain_matrix(matrix, n), r, 1e-11).first, reals(weights));
    };
    Reals near = differences(plain, right);
    auto check = [&](std::tuple<Tensor, Tensor, Tensor> got, const char* what) {
      expect_agree(std::get<0>(got), x, 1e-9, what);
      // The iteration solves a x = b of symmetric matrices alone: it says nothing about how x changes along others.
      expect_agree(std::get<1>(got) + transpose(std::get<1>(got)), by_a + transpose(by_a), 1e-6, what);
      expect_agree(std::get<2>(got), by_b, 1e-6, what);
      expect_close(std::get<2>(got), near, 1e-6, what);
    };
    check(slopes(a, b, weights, {}), "eager");
    check(traced(a, b, weights), "traced");
    check(saving(a, b, weights), "with checkpoints");
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
  EXPECT_EQ(saving.trace_count(), 1) << saving.explain();
}

}  // namespace
}  // namespace stet
