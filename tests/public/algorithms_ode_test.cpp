// Ordinary differential equations: Dormand and Prince's pair of orders 5 and 4 with steps chosen by its error, written
// with while_loop and once more in plain C++; and a neural ODE with fixed steps, with checkpoints and without.
#include <algorithm>

#include "algorithms.h"

namespace stet {
namespace {

// Dormand and Prince, 1980.
constexpr double nodes[7] = {0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1};
constexpr double table[7][6] = {{},
                                {1. / 5},
                                {3. / 40, 9. / 40},
                                {44. / 45, -56. / 15, 32. / 9},
                                {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
                                {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
                                {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84}};
constexpr double error_weights[7] = {71. / 57600, 0, -71. / 16695, 71. / 1920, -17253. / 339200, 22. / 525., -1. / 40};

struct Integration {
  Tensor time, step, state, accepted, rejected;
  STET_FIELDS(time, step, state, accepted, rejected)
};

/// From 0 to `end`, with local errors of about `tolerance`.
template <class F>
Integration integrate(F f, Tensor start, Tensor end, double tolerance, LoopOptions options = {}) {
  return while_loop([&](Integration now) { return now.time < end; },
                    [&](Integration now) {
                      Tensor h = minimum(now.step, end - now.time);
                      std::vector<Tensor> slopes;
                      Tensor next = now.state;
                      for (int stage = 0; stage < 7; ++stage) {
                        next = now.state;
                        for (int i = 0; i < stage; ++i)
                          if (table[stage][i] != 0) next += h * table[stage][i] * slopes[i];
                        slopes.push_back(f(now.time + nodes[stage] * h, next));
                      }
                      Tensor error = zeros_like(next);
                      for (int i = 0; i < 7; ++i) error += h * error_weights[i] * slopes[i];
                      Tensor scale = tolerance * (1 + maximum(abs(now.state), abs(next)));
                      Tensor ratio = max(abs(error / scale));
                      Tensor fits = ratio <= 1;
                      Tensor factor = clip(0.9 * pow(ratio, -0.2), 0.2, 5);
                      return Integration{where(fits, now.time + h, now.time), h * factor, where(fits, next, now.state),
                                         now.accepted + cast(fits, i64), now.rejected + cast(~fits, i64)};
                    },
                    Integration{zeros({}, f64), full({}, 0.5, f64), start, zeros({}, i64), zeros({}, i64)}, options);
}

struct PlainIntegration {
  double time = 0, step = 0.5;
  Reals state;
  std::int64_t accepted = 0, rejected = 0;
};

PlainIntegration plain_integrate(const std::function<Reals(double, const Reals&)>& f, Reals start, double end,
                                 double tolerance) {
  PlainIntegration now{.state = std::move(start)};
  const std::size_t n = now.state.size();
  while (now.time < end) {
    const double h = std::min(now.step, end - now.time);
    std::vector<Reals> slopes;
    Reals next;
    for (int stage = 0; stage < 7; ++stage) {
      next = now.state;
      for (std::size_t j = 0; j < n; ++j)
        for (int i = 0; i < stage; ++i) next[j] += h * table[stage][i] * slopes[static_cast<std::size_t>(i)][j];
      slopes.push_back(f(now.time + nodes[stage] * h, next));
    }
    double ratio = 0;
    for (std::size_t j = 0; j < n; ++j) {
      double error = 0;
      for (int i = 0; i < 7; ++i) error += h * error_weights[i] * slopes[static_cast<std::size_t>(i)][j];
      ratio =
          std::max(ratio, std::abs(error / (tolerance * (1 + std::max(std::abs(now.state[j]), std::abs(next[j]))))));
    }
    now.step = h * std::clamp(0.9 * std::pow(ratio, -0.2), 0.2, 5.);
    if (ratio <= 1) {
      now.time += h;
      now.state = next;
      ++now.accepted;
    } else {
      ++now.rejected;
    }
  }
  return now;
}

/// Springs of frequency w: y'' = -w^2 y, states [2, n].
Tensor springs(const Tensor& w, const Tensor& y) { return stack({y[1], -w * w * y[0]}); }
std::function<Reals(double, const Reals&)> plain_springs(const Reals& w) {
  return [w](double, const Reals& y) {
    const std::size_t n = w.size();
    Reals out(2 * n);
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = y[n + i];
      out[n + i] = -w[i] * w[i] * y[i];
    }
    return out;
  };
}

TEST(AlgorithmsOde, DormandPrinceTakesTheStepsOfThePlainOne) {
  auto solve = [](Tensor w, Tensor start, Tensor end) {
    return integrate([&](Tensor, Tensor y) { return springs(w, y); }, start, end, 1e-7);
  };
  Function traced = function("solve(w, start, end)", solve);
  for (std::int64_t n : {1, 3, 9})
    for (double end : {3.0, 0.25, 0.0}) {
      SCOPED_TRACE(testing::Message() << n << " springs to " << end);
      Reals w, start = wave(2 * n, 1);
      for (std::int64_t i = 0; i < n; ++i) w.push_back(1.3 + static_cast<double>(i % 4));
      PlainIntegration plain = plain_integrate(plain_springs(w), start, end, 1e-7);
      Tensor y0 = shaped(start, {2, n});
      Integration got = traced(tensor(w), y0, tensor(end)), eager = solve(tensor(w), y0, tensor(end));
      expect_bits(got.state, eager.state, "state");
      expect_bits(got.time, eager.time, "time");
      EXPECT_EQ(got.time.item<double>(), end);
      EXPECT_EQ(got.accepted.item<std::int64_t>(), plain.accepted);
      EXPECT_EQ(got.rejected.item<std::int64_t>(), plain.rejected);
      expect_close(got.state, plain.state, 1e-12, "plain");
      Reals analytic(start.size());
      for (std::size_t i = 0; i < w.size(); ++i) {
        const std::size_t v = w.size() + i;
        analytic[i] = start[i] * std::cos(w[i] * end) + start[v] / w[i] * std::sin(w[i] * end);
        analytic[v] = start[v] * std::cos(w[i] * end) - start[i] * w[i] * std::sin(w[i] * end);
      }
      expect_close(got.state, analytic, 1e-5, "analytic");
      if (end == 3.0) {
        EXPECT_GT(plain.rejected, 0);
        EXPECT_GT(plain.accepted, 20);
      }
    }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

/// Van der Pol's oscillator has no solution in closed form; its steps grow and shrink a lot. The gradient goes through
/// the choice of steps as well, as differences of the plain program do.
TEST(AlgorithmsOde, GradientsGoThroughAdaptiveSteps) {
  auto end_state = [](Tensor mu, Tensor start, LoopOptions options) {
    auto slope = [&](Tensor, Tensor y) { return stack({y[1], mu * (1 - y[0] * y[0]) * y[1] - y[0]}); };
    return integrate(slope, start, tensor(4.0), 1e-6, options);
  };
  auto derivatives = [&](Tensor mu, Tensor start, LoopOptions options) {
    GradientTape tape;
    tape.watch(mu), tape.watch(start);
    Integration last = end_state(mu, start, options);
    std::vector<Tensor> d = tape.gradient(last.state[0], {mu, start});
    return std::tuple(last, d[0], d[1]);
  };
  Function traced = function("derivatives(mu, start)", [&](Tensor mu, Tensor s) { return derivatives(mu, s, {}); });
  Function saving =
      function("saving(mu, start)", [&](Tensor mu, Tensor s) { return derivatives(mu, s, {.checkpoint_every = 5}); });
  for (double mu : {0.5, 3.0}) {
    SCOPED_TRACE(mu);
    auto plain = [](const Reals& x) {
      return plain_integrate(
          [&](double, const Reals& y) {
            return Reals{y[1], x[0] * (1 - y[0] * y[0]) * y[1] - y[0]};
          },
          {x[1], x[2]}, 4.0, 1e-6);
    };
    const Reals at{mu, 2.0, 0.1};
    // The steps are as many wherever the differences look.
    for (double moved : {-4e-5, 4e-5}) {
      ASSERT_EQ(plain({mu + moved, 2.0, 0.1}).accepted, plain(at).accepted);
      ASSERT_EQ(plain({mu, 2.0 + moved, 0.1}).accepted, plain(at).accepted);
    }
    Reals expected = differences([&](const Reals& x) { return plain(x).state[0]; }, at, 2e-5);
    auto check = [&](std::tuple<Integration, Tensor, Tensor> got, const char* what) {
      EXPECT_EQ(std::get<0>(got).accepted.item<std::int64_t>(), plain(at).accepted) << what;
      EXPECT_EQ(std::get<0>(got).rejected.item<std::int64_t>(), plain(at).rejected) << what;
      expect_close(std::get<0>(got).state, plain(at).state, 1e-11, what);
      expect_close(std::get<1>(got), {expected[0]}, 1e-6, what);
      expect_close(std::get<2>(got), {expected[1], expected[2]}, 1e-6, what);
    };
    check(derivatives(tensor(mu), tensor({2.0, 0.1}), {}), "eager");
    check(traced(tensor(mu), tensor({2.0, 0.1})), "traced");
    check(saving(tensor(mu), tensor({2.0, 0.1})), "with checkpoints");
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
  EXPECT_EQ(saving.trace_count(), 1) << saving.explain();
}

/// Where a step has no error at all, the factor 0^-0.2 is infinite and cut to 5: nothing flows back through it.
TEST(AlgorithmsOde, AnErrorOfZeroLeavesNoNan) {
  auto run = [](Tensor speed, Tensor start) {
    GradientTape tape;
    tape.watch(speed), tape.watch(start);
    Integration last = integrate([&](Tensor, Tensor y) { return y * 0 + speed; }, start, tensor(8.0), 1e-6);
    std::vector<Tensor> d = tape.gradient(sum(last.state), {speed, start});
    return std::tuple(last.state, d[0], d[1]);
  };
  Function traced = function("run(speed, start)", run);
  for (bool now : {true, false}) {
    Tensor speed = tensor(0.0), start = tensor({1.0, -2.0});
    auto [state, by_speed, by_start] = now ? run(speed, start) : traced(speed, start);
    expect_close(state, {1, -2}, 1e-14);
    expect_close(by_speed, {16}, 1e-14);
    expect_close(by_start, {1, 1}, 1e-14);
  }
}

}  // namespace
}  // namespace stet
