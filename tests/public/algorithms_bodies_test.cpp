// Bodies that attract each other: a thousand leapfrog steps in one loop, and the gradient of energies at the end by
// where and how fast the bodies began, with checkpoints and without.
#include "algorithms.h"

namespace stet {
namespace {

constexpr double dt = 2e-3;

struct Bodies {
  Tensor position, velocity;  // [bodies, 3]
  STET_FIELDS(position, velocity)
};

/// Bodies do not attract themselves: there the distance is 0, and the side of where() that is not taken is infinite.
Tensor acceleration(const Tensor& mass, const Tensor& position) {
  Tensor apart = position - expand_dims(position, 1);
  Tensor square_distance = sum(apart * apart, 2, {.keepdims = true});
  Tensor pull = where(square_distance > 0, apart / (square_distance * sqrt(square_distance)), 0);
  return sum(reshape(mass, {-1, 1}) * pull, 1);
}

Tensor potential(const Tensor& mass, const Tensor& position) {
  Tensor apart = position - expand_dims(position, 1);
  Tensor square_distance = sum(apart * apart, 2);
  return -sum(where(square_distance > 0, outer(mass, mass) / sqrt(square_distance), 0)) / 2;
}
Tensor energy(const Tensor& mass, const Bodies& b) {
  return sum(reshape(mass, {-1, 1}) * square(b.velocity)) / 2 + potential(mass, b.position);
}

Bodies move(const Tensor& mass, Bodies b) {
  Tensor halfway = b.velocity + dt / 2 * acceleration(mass, b.position);
  Tensor position = b.position + dt * halfway;
  return {position, halfway + dt / 2 * acceleration(mass, position)};
}

Bodies simulate(Tensor mass, Bodies start, Dim steps, LoopOptions options = {}) {
  return for_loop(
      steps, [&](Bodies b) { return move(mass, b); }, start, options);
}

struct PlainBodies {
  Reals position, velocity;
};
Reals plain_acceleration(const Reals& mass, const Reals& x) {
  Reals out(x.size(), 0);
  for (std::size_t i = 0; i < mass.size(); ++i)
    for (std::size_t j = 0; j < mass.size(); ++j) {
      if (i == j) continue;
      double square = 0;
      for (std::size_t k = 0; k < 3; ++k) square += std::pow(x[3 * j + k] - x[3 * i + k], 2);
      for (std::size_t k = 0; k < 3; ++k)
        out[3 * i + k] += mass[j] * (x[3 * j + k] - x[3 * i + k]) / (square * std::sqrt(square));
    }
  return out;
}
PlainBodies plain_simulate(const Reals& mass, PlainBodies b, int steps) {
  for (int s = 0; s < steps; ++s)
    for (int half = 0; half < 2; ++half) {
      Reals a = plain_acceleration(mass, b.position);
      for (std::size_t i = 0; i < a.size(); ++i) b.velocity[i] += dt / 2 * a[i];
      for (std::size_t i = 0; half == 0 && i < a.size(); ++i) b.position[i] += dt * b.velocity[i];
    }
  return b;
}
double plain_potential(const Reals& mass, const Reals& x) {
  double out = 0;
  for (std::size_t i = 0; i < mass.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      out -=
          mass[i] * mass[j] / std::hypot(x[3 * i] - x[3 * j], x[3 * i + 1] - x[3 * j + 1], x[3 * i + 2] - x[3 * j + 2]);
  return out;
}

/// A heavy body and light ones round it, further and further out.
struct Problem {
  Reals mass;
  PlainBodies start;
  explicit Problem(std::int64_t bodies) {
    for (std::int64_t i = 0; i < bodies; ++i) {
      const double radius = static_cast<double>(i), angle = 2.1 * radius, speed = i == 0 ? 0 : 1 / std::sqrt(radius);
      mass.push_back(i == 0 ? 1 : 0.02 * radius);
      for (double v : {radius * std::cos(angle), radius * std::sin(angle), 0.1 * std::sin(3 * radius)})
        start.position.push_back(v);
      for (double v : {-speed * std::sin(angle), speed * std::cos(angle), 0.05 * std::cos(radius)})
        start.velocity.push_back(v);
    }
  }
  Bodies tensors() const {
    const auto bodies = static_cast<std::int64_t>(mass.size());
    return {shaped(start.position, {bodies, 3}), shaped(start.velocity, {bodies, 3})};
  }
};

TEST(AlgorithmsBodies, AThousandStepsAreThoseOfThePlainOne) {
  Function traced = function("simulate(mass, start, steps)",
                             [](Tensor mass, Bodies start, Dim steps) { return simulate(mass, start, steps); });
  for (std::int64_t bodies : {3, 2, 5, 1}) {
    SCOPED_TRACE(bodies);
    Problem problem(bodies);
    Tensor mass = tensor(problem.mass);
    for (int steps : {1000, 1, 0}) {
      PlainBodies plain = plain_simulate(problem.mass, problem.start, steps);
      Bodies got = traced(mass, problem.tensors(), steps);
      expect_close(got.position, plain.position, 1e-11, "position");
      expect_close(got.velocity, plain.velocity, 1e-11, "velocity");
      EXPECT_NEAR(energy(mass, got).item<double>(), energy(mass, problem.tensors()).item<double>(), 1e-6);
    }
    Bodies few = traced(mass, problem.tensors(), 50), eager = simulate(mass, problem.tensors(), 50);
    expect_agree(few.position, eager.position, 1e-14, "eager position");
    expect_agree(few.velocity, eager.velocity, 1e-14, "eager velocity");
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

using Slopes = std::tuple<Tensor, Bodies, Bodies>;
/// The potential at the end with its gradient, and that of the whole energy.
Slopes slopes(Tensor mass, Bodies start, Dim steps, LoopOptions options) {
  GradientTape tape({.persistent = true});
  tape.watch(start);
  Bodies last = simulate(mass, start, steps, options);
  Tensor at_end = potential(mass, last.position), whole = energy(mass, last);
  return {at_end, tape.gradient(at_end, start), tape.gradient(whole, start)};
}

TEST(AlgorithmsBodies, GradientsOfEnergiesGoThroughAThousandSteps) {
  Function traced = function("slopes(mass, start, steps)",
                             [](Tensor mass, Bodies start, Dim steps) { return slopes(mass, start, steps, {}); });
  Function saving = function("saving(mass, start, steps)", [](Tensor mass, Bodies start, Dim steps) {
    return slopes(mass, start, steps, {.checkpoint_every = 32});
  });
  for (std::int64_t bodies : {3, 2}) {
    SCOPED_TRACE(bodies);
    Problem problem(bodies);
    const std::size_t count = problem.mass.size() * 3;
    Reals at = problem.start.position;
    at.insert(at.end(), problem.start.velocity.begin(), problem.start.velocity.end());
    Reals expected = differences(
        [&](const Reals& x) {
          PlainBodies b{Reals(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count)),
                        Reals(x.begin() + static_cast<std::ptrdiff_t>(count), x.end())};
          return plain_potential(problem.mass, plain_simulate(problem.mass, b, 1000).position);
        },
        at);
    auto check = [&](const Slopes& got, const char* what) {
      const auto& [at_end, by_start, whole] = got;
      expect_close(at_end, {plain_potential(problem.mass, plain_simulate(problem.mass, problem.start, 1000).position)},
                   1e-11, what);
      expect_close(concat({ravel(by_start.position), ravel(by_start.velocity)}), expected, 1e-8, what);
      // The energy at the end is that at the beginning, but for what steps of this length lose.
      GradientTape tape;
      Bodies start = problem.tensors();
      tape.watch(start);
      Bodies before = tape.gradient(energy(tensor(problem.mass), start), start);
      expect_agree(whole.position, before.position, 1e-5, what);
      expect_agree(whole.velocity, before.velocity, 1e-5, what);
    };
    Slopes all = traced(tensor(problem.mass), problem.tensors(), 1000),
           some = saving(tensor(problem.mass), problem.tensors(), 1000);
    check(all, "traced");
    check(some, "with checkpoints");
    // Turns that are run again do what they did: the same bits.
    expect_bits(std::get<1>(all).position, std::get<1>(some).position, "checkpoints, position");
    expect_bits(std::get<1>(all).velocity, std::get<1>(some).velocity, "checkpoints, velocity");
    if (bodies == 3) check(slopes(tensor(problem.mass), problem.tensors(), 1000, {}), "eager");
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
  EXPECT_EQ(saving.trace_count(), 1) << saving.explain();
}

}  // namespace
}  // namespace stet
