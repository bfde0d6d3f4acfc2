// Learning rate schedules beside Keras's: tests/oracle/keras/make_schedules.py.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numbers>

#include "expect_error.h"
#include "keras_values.h"
#include "stet/stet.h"

using namespace stet;
namespace schedules = keras::schedules;

namespace {

TEST(KerasSchedules, RatesAreThoseOfKeras) {
  KerasValues values("schedules");
  const std::vector<std::pair<const char*, schedules::Schedule>> all = {
      {"exponential", schedules::ExponentialDecay(0.3, 10, 0.6)},
      {"exponential staircase", schedules::ExponentialDecay(0.3, 10, 0.6, {.staircase = true})},
      {"piecewise", schedules::PiecewiseConstantDecay({3, 10, 30}, {1, 0.5, 0.2, 0.1})},
      {"polynomial", schedules::PolynomialDecay(0.3, 20)},
      {"polynomial power", schedules::PolynomialDecay(0.3, 20, {.end_learning_rate = 0.05, .power = 2.5})},
      {"polynomial cycle",
       schedules::PolynomialDecay(0.3, 10, {.end_learning_rate = 0.01, .power = 0.5, .cycle = true})},
      {"inverse time", schedules::InverseTimeDecay(0.3, 10, 0.7)},
      {"inverse time staircase", schedules::InverseTimeDecay(0.3, 10, 0.7, {.staircase = true})},
      {"cosine", schedules::CosineDecay(0.3, 30)},
      {"cosine alpha", schedules::CosineDecay(0.3, 30, {.alpha = 0.1})},
      {"cosine warmup", schedules::CosineDecay(0.1, 20, {.alpha = 0.05, .warmup_target = 0.5, .warmup_steps = 10})},
      {"cosine warmup from zero steps", schedules::CosineDecay(0.1, 20, {.warmup_target = 0.5})},
      {"restarts", schedules::CosineDecayRestarts(0.3, 10)},
      {"restarts options", schedules::CosineDecayRestarts(0.3, 10, {.t_mul = 1.5, .m_mul = 0.8, .alpha = 0.1})},
      {"restarts equal", schedules::CosineDecayRestarts(0.3, 10, {.t_mul = 1, .m_mul = 0.9})},
  };
  double worst = 0;
  int compared = 0;
  for (const auto& [name, schedule] : all) {
    const KerasCase& expected = values.at(name);
    std::vector<std::int64_t> steps = expected["step"].to_vector<std::int64_t>();
    std::vector<double> rates = expected["rate"].to_vector<double>();
    Function traced = function("rate(step)", [schedule = schedule](Tensor step) { return schedule(step); });
    const bool waves = std::string(name).starts_with("cosine") || std::string(name).starts_with("restarts");
    const double tolerance = waves ? 4e-8 : 1e-14;  // Keras takes cosines in f32
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double eager = schedule(steps[i]).item<double>();
      EXPECT_NEAR(eager, rates[i], tolerance) << name << " at " << steps[i];
      EXPECT_NEAR(traced(tensor(steps[i])).item<double>(), rates[i], tolerance) << name << " at " << steps[i];
      worst = std::max(worst, std::abs(eager - rates[i]));
      ++compared;
    }
    EXPECT_EQ(traced.trace_count(), 1);
  }
  EXPECT_EQ(values.left(), std::vector<std::string>());
  std::printf("%d rates compared; largest difference %.2g\n", compared, worst);
}

TEST(KerasSchedules, CosinesInDoublePrecision) {
  schedules::CosineDecay wave(0.3, 30, {.alpha = 0.1});
  for (int step : {0, 1, 7, 15, 29, 30, 31}) {
    const double part = std::min(step, 30) / 30.0;
    EXPECT_NEAR(wave(step).item<double>(), 0.3 * (0.9 * 0.5 * (1 + std::cos(std::numbers::pi * part)) + 0.1), 1e-15);
  }
}

TEST(KerasSchedules, PeriodsStartWhereTheyMust) {
  // 10, then 15, then 22.5, …: the rate is whole again at each start, whatever the logarithm rounds to.
  schedules::CosineDecayRestarts by_half(1, 8, {.t_mul = 1.5}), by_three(1, 5, {.t_mul = 3});
  for (std::int64_t start : {0, 8, 20, 38, 65}) EXPECT_DOUBLE_EQ(by_half(start).item<double>(), 1) << start;
  std::int64_t start = 0;
  for (std::int64_t length = 5; start < 5'000'000; start += length, length *= 3) {
    EXPECT_DOUBLE_EQ(by_three(start).item<double>(), 1) << start;
    if (start > 0) {
      EXPECT_LT(by_three(start - 1).item<double>(), 0.5) << start;
    }
  }
}

TEST(KerasSchedules, StepsBeyondWhatF32Counts) {
  schedules::PiecewiseConstantDecay late({(1 << 24) + 1}, {1, 0.5});
  EXPECT_EQ(late((1 << 24) + 1).item<double>(), 1);
  EXPECT_EQ(late((1 << 24) + 2).item<double>(), 0.5);
}

TEST(KerasSchedules, OptimizersFollowThem) {
  keras::SGD optimizer(schedules::PiecewiseConstantDecay({0, 2}, {1, 0.5, 0.25}));
  Variable v(zeros({}));
  Function step = function("step(g)", [=](Tensor g) {
    optimizer.apply_gradients({g}, {v});
    return v.read();
  });
  EXPECT_EQ(optimizer.learning_rate().read().item<float>(), 1);
  std::vector<float> seen;
  for (int i = 0; i < 5; ++i) seen.push_back(step(1.f).item<float>());
  EXPECT_EQ(seen, (std::vector<float>{-1, -1.5, -2, -2.25, -2.5}));
  EXPECT_EQ(step.trace_count(), 1);
  Tensor rate = optimizer.learning_rate();
  EXPECT_EQ(rate.dtype(), f32);
  EXPECT_EQ(rate.item<float>(), 0.25f);
  std::string error = error_of([&] { optimizer.learning_rate().assign(0.1f); });
  EXPECT_CONTAINS(error, "learning_rate: optimizer 'sgd' follows a schedule");
  EXPECT_CONTAINS(error, "keras_schedules_test.cpp:");
  ASSERT_EQ(optimizer.variables().size(), 1u) << "the step count; no rate to assign to";
}

TEST(KerasSchedules, ACallableOfYourOwn) {
  keras::SGD optimizer([](Tensor step) { return 1 / cast(step + 1, f32); });
  Variable v(zeros({}), {.dtype = f64});
  Function step = function("step(g)", [=](Tensor g) {
    optimizer.apply_gradients({g}, {v});
    return v.read();
  });
  for (int i = 0; i < 3; ++i) step(-1.0);
  EXPECT_NEAR(v.read().item<double>(), 1 + 1 / 2. + 1 / 3., 1e-7);
  EXPECT_EQ(step.trace_count(), 1);
  // It may have state.
  Variable plateau(tensor(0.5f), {.trainable = false});
  keras::SGD with_state([=](Tensor) { return plateau.read(); });
  Variable w(zeros({}));
  with_state.apply_gradients({tensor(1.f)}, {w});
  plateau.assign(0.25f);
  with_state.apply_gradients({tensor(1.f)}, {w});
  EXPECT_EQ(w.read().item<float>(), -0.75f);
  keras::SGD wrong([](Tensor step) { return ones({2}) * cast(step, f32); });
  std::string error = error_of([&] { wrong.apply_gradients({tensor(1.f)}, {w}); });
  EXPECT_CONTAINS(error, "the schedule of optimizer 'sgd' gave f32[2]");
  EXPECT_CONTAINS(error, "keras_schedules_test.cpp:");
}

TEST(KerasSchedules, InFit) {
  random::seed(3);
  Tensor x = random::normal({40, 3}), y = matmul(x, ones({3, 1}));
  keras::Sequential model{keras::Input({3}), keras::Dense(1)};
  model.compile({.optimizer = keras::Adam(schedules::CosineDecay(0.1, 20)), .loss = "mse"});
  keras::History history = model.fit(x, y, {.batch_size = 8, .epochs = 4, .verbose = 0});
  EXPECT_LT(history["loss"].back(), history["loss"].front());
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_NEAR(model.optimizer().learning_rate().read().item<float>(), 0, 1e-9) << "20 steps were made";
}

TEST(KerasSchedules, WrongUses) {
  auto expect = [](auto make, const std::string& part) {
    const std::string error = error_of(make);
    EXPECT_CONTAINS(error, part);
    EXPECT_CONTAINS(error, "keras_schedules_test.cpp:");
  };
  expect([] { schedules::ExponentialDecay(0.1, 0, 0.5); }, "ExponentialDecay: decay_steps = 0");
  expect([] { schedules::PolynomialDecay(0.1, -1); }, "PolynomialDecay: decay_steps = -1");
  expect([] { schedules::InverseTimeDecay(0.1, 0, 0.5); }, "InverseTimeDecay: decay_steps = 0");
  expect([] { schedules::CosineDecay(0.1, 0); }, "CosineDecay: decay_steps = 0");
  expect([] { schedules::CosineDecay(0.1, 10, {.warmup_steps = 5}); },
         "CosineDecay: warmup_steps = 5 without a warmup_target");
  expect([] { schedules::CosineDecay(0.1, 10, {.warmup_target = 1, .warmup_steps = -5}); },
         "CosineDecay: warmup_steps = -5");
  expect([] { schedules::CosineDecayRestarts(0.1, 0); }, "CosineDecayRestarts: first_decay_steps = 0");
  expect([] { schedules::CosineDecayRestarts(0.1, 5, {.t_mul = 0.5}); }, "CosineDecayRestarts: t_mul = 0.5");
  expect(
      [] {
        schedules::PiecewiseConstantDecay({1, 2}, {1, 2});
      },
      "PiecewiseConstantDecay: 2 boundaries and 2 values");
  expect([] { schedules::PiecewiseConstantDecay({3, 2}, {1, 2, 3}); }, "PiecewiseConstantDecay: boundary 2 after 3");
}

}  // namespace
