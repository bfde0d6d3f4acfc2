// Newton's method for systems: the Jacobian by hand, by jacobian() and by a column at a time, and the gradient of the
// root by what the equations depend on, which the implicit function theorem knows without any iteration.
#include "algorithms.h"

namespace stet {
namespace {

/// Steps x - J(x) \ f(x) until they are short, at most 50.
template <class F, class J>
std::tuple<Tensor, Tensor> newton(F f, J jacobian_at, Tensor x, LoopOptions options = {}) {
  auto [root, step, turns] =
      while_loop([](Tensor, Tensor step, Tensor turns) { return max(abs(step)) > 1e-12 && turns < 50; },
                 [&](Tensor x, Tensor, Tensor turns) {
                   Tensor step = linalg::solve(jacobian_at(x), f(x));
                   return std::tuple(x - step, step, turns + 1);
                 },
                 std::tuple(x, ones_like(x), tensor(0)), options);
  return {root, turns};
}

// x'' = -c exp(x) between two points where x is 0, at n points between them: n equations.
Tensor bratu(const Tensor& x, const Tensor& c) {
  Tensor h = 1.0 / (x.dim(0) + 1);
  Tensor wide = pad(x, {{1, 1}});
  return wide[range(2, x.dim(0) + 2)] - 2 * x + wide[range(0, x.dim(0))] + c * h * h * exp(x);
}
Tensor bratu_jacobian(const Tensor& x, const Tensor& c) {
  Tensor h = 1.0 / (x.dim(0) + 1);
  return eye(x.dim(0), {.k = 1, .dtype = f64}) + eye(x.dim(0), {.k = -1, .dtype = f64}) + diag(c * h * h * exp(x) - 2);
}

struct PlainRoot {
  Reals x;
  int turns = 0;
};
/// The same iteration; the matrices are tridiagonal, and are solved so.
PlainRoot plain_bratu(std::size_t n, double c) {
  PlainRoot root{Reals(n, 0)};
  const double h = 1.0 / (static_cast<double>(n) + 1);
  double longest = 1;
  for (; longest > 1e-12 && root.turns < 50; ++root.turns) {
    Reals diagonal(n), right(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double e = c * h * h * std::exp(root.x[i]);
      diagonal[i] = e - 2;
      right[i] = (i + 1 < n ? root.x[i + 1] : 0) - 2 * root.x[i] + (i > 0 ? root.x[i - 1] : 0) + e;
    }
    for (std::size_t i = 1; i < n; ++i) {
      const double factor = 1 / diagonal[i - 1];
      diagonal[i] -= factor;
      right[i] -= factor * right[i - 1];
    }
    longest = 0;
    double step = 0;
    for (std::size_t i = n; i-- > 0;) {
      step = (right[i] - (i + 1 < n ? step : 0)) / diagonal[i];
      root.x[i] -= step;
      longest = std::max(longest, std::abs(step));
    }
  }
  return root;
}

TEST(AlgorithmsNewton, ASystemOfAnySizeInOneTrace) {
  auto by_hand = [](Tensor start, Tensor c) {
    return newton([&](Tensor x) { return bratu(x, c); }, [&](Tensor x) { return bratu_jacobian(x, c); }, start);
  };
  // A column of the Jacobian for every row of the identity: as many as there are equations, in one trace.
  auto by_columns = [](Tensor start, Tensor c) {
    auto f = [&](Tensor x) { return bratu(x, c); };
    auto jacobian_at = [&](Tensor x) {
      return transpose(map_fn([&](Tensor unit) { return jvp(f, x, unit).second; }, eye(x.dim(0), {.dtype = f64})));
    };
    return newton(f, jacobian_at, start);
  };
  Function first = function("by_hand(start, c)", by_hand), second = function("by_columns(start, c)", by_columns);
  for (std::int64_t n : {4, 1, 25})
    for (double c : {1.0, 2.5}) {
      SCOPED_TRACE(testing::Message() << n << " equations, c = " << c);
      PlainRoot plain = plain_bratu(static_cast<std::size_t>(n), c);
      EXPECT_GE(plain.turns, 4);
      for (auto& [x, turns] : {first(zeros({n}, f64), tensor(c)), second(zeros({n}, f64), tensor(c)),
                               by_hand(zeros({n}, f64), tensor(c)), by_columns(zeros({n}, f64), tensor(c))}) {
        expect_close(x, plain.x, 1e-11);
        EXPECT_EQ(turns.item<int>(), plain.turns);
      }
    }
  EXPECT_EQ(first.trace_count(), 1) << first.explain();
  EXPECT_EQ(second.trace_count(), 1) << second.explain();
}

/// f(x, p) = 0 moves its root by dx/dp = -(df/dx) \ (df/dp); the last step of the iteration knows it.
TEST(AlgorithmsNewton, TheGradientOfARootIsThatOfTheImplicitFunction) {
  auto slope = [](Tensor start, Tensor c, Tensor weights, LoopOptions options) {
    GradientTape tape;
    tape.watch(c);
    Tensor x = std::get<0>(
        newton([&](Tensor x) { return bratu(x, c); }, [&](Tensor x) { return bratu_jacobian(x, c); }, start, options));
    return std::pair(x, tape.gradient(sum(weights * x), c));
  };
  Function traced = function("slope(start, c, weights)",
                             [&](Tensor start, Tensor c, Tensor weights) { return slope(start, c, weights, {}); });
  Function saving = function("saving(start, c, weights)", [&](Tensor start, Tensor c, Tensor weights) {
    return slope(start, c, weights, {.checkpoint_every = 2});
  });
  for (std::int64_t n : {5, 1, 16}) {
    SCOPED_TRACE(n);
    Tensor start = zeros({n}, f64), c = tensor(2.0), weights = tensor(wave(n, 1));
    auto check = [&](std::pair<Tensor, Tensor> got, const char* what) {
      const Tensor& x = got.first;
      Tensor by_c = exp(x) / square(tensor(1.0) * (n + 1));
      Tensor expected = -sum(weights * linalg::solve(bratu_jacobian(x, c), by_c));
      expect_agree(got.second, expected, 1e-9, what);
      auto plain = [&](const Reals& at) {
        Reals x = plain_bratu(static_cast<std::size_t>(n), at[0]).x;
        double out = 0;
        for (std::size_t i = 0; i < x.size(); ++i) out += reals(weights)[i] * x[i];
        return out;
      };
      expect_close(got.second, differences(plain, {2.0}), 1e-8, what);
    };
    check(slope(start, c, weights, {}), "eager");
    check(traced(start, c, weights), "traced");
    check(saving(start, c, weights), "with checkpoints");
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
  EXPECT_EQ(saving.trace_count(), 1) << saving.explain();
}

/// Where a circle of radius r meets a hyperbola x y = p, with jacobian() in the body of the loop: the way a user writes
/// a small system. Second derivatives go through the Jacobian and the solver.
TEST(AlgorithmsNewton, JacobiansInABodyMayBeDifferentiated) {
  auto root = [](Tensor p) {
    auto f = [&](Tensor v) { return stack({v[0] * v[0] + v[1] * v[1] - p[0] * p[0], v[0] * v[1] - p[1]}); };
    return std::get<0>(newton(
        f, [&](Tensor x) { return jacobian(f)(x); }, tensor({2.0, 0.5})));
  };
  auto slope = [&](Tensor p) {
    GradientTape outer;
    outer.watch(p);
    GradientTape inner;
    inner.watch(p);
    Tensor x = root(p);
    Tensor first = inner.gradient(x[0], p);
    return std::tuple(x, first, outer.gradient(first[1], p));
  };
  Function traced = function("slope(p)", slope);
  auto exact = [](const Reals& p) {
    // (x + y)^2 = r^2 + 2 p, (x - y)^2 = r^2 - 2 p
    const double sum = std::sqrt(p[0] * p[0] + 2 * p[1]), difference = std::sqrt(p[0] * p[0] - 2 * p[1]);
    return Reals{(sum + difference) / 2, (sum - difference) / 2};
  };
  for (Reals p : {Reals{2, 1}, Reals{3, 0.7}}) {
    auto by_p = [&](const Reals& at) {
      return 0.5 / std::sqrt(at[0] * at[0] + 2 * at[1]) - 0.5 / std::sqrt(at[0] * at[0] - 2 * at[1]);
    };
    auto first = differences([&](const Reals& at) { return exact(at)[0]; }, p);
    auto second = differences(by_p, p);
    for (auto& [x, d, dd] : {slope(tensor(p)), traced(tensor(p))}) {
      expect_close(x, exact(p), 1e-12);
      expect_close(d, first, 1e-9);
      expect_close(dd, second, 1e-8);
    }
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

}  // namespace
}  // namespace stet
