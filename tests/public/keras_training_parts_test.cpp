// Losses, metrics and optimizers against values computed here in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "custom_parts.h"
#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Doubles = std::vector<double>;

Doubles doubles(const Tensor& t) { return cast(t, f64).to_vector<double>(); }
void expect_close(const Tensor& t, const Doubles& expected, double relative) {
  Doubles got = doubles(t);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], relative * std::max(1.0, std::abs(expected[i]))) << i;
}

// --- losses

TEST(KerasLoss, SparseCategoricalCrossentropy) {
  Tensor logits = tensor({{1.f, 2.f, 3.f}, {0.f, 0.f, 1.f}}), labels = tensor({2, 0});
  auto expected = [](Doubles z, int label) {
    double total = 0;
    for (double v : z) total += std::exp(v);
    return -std::log(std::exp(z[static_cast<std::size_t>(label)]) / total);
  };
  Doubles each{expected({1, 2, 3}, 2), expected({0, 0, 1}, 0)};
  expect_close(keras::losses::sparse_categorical_crossentropy(labels, logits, {.from_logits = true}), each, 1e-6);
  keras::losses::SparseCategoricalCrossentropy of_logits({.from_logits = true}), of_probabilities;
  expect_close(of_logits(labels, logits), {(each[0] + each[1]) / 2}, 1e-6);
  expect_close(of_probabilities(labels, softmax(logits)), {(each[0] + each[1]) / 2}, 1e-6);
  expect_close(of_logits(reshape(labels, {2, 1}), logits), {(each[0] + each[1]) / 2}, 1e-6);
  // A probability of 0 is 1e-7.
  expect_close(of_probabilities(tensor({0}), tensor({{0.f, 1.f}})), {-std::log(1e-7)}, 1e-6);
  std::string error = error_of([&] { of_logits(logits, logits); });
  EXPECT_CONTAINS(error, "labels f32[2,3] do not fit predictions f32[2,3]");
  EXPECT_CONTAINS(error, "keras_training_parts_test.cpp:");
}

TEST(KerasLoss, OthersPerSample) {
  Tensor y = tensor({{0.f, 1.f}, {1.f, 1.f}}), p = tensor({{0.25f, 0.5f}, {0.5f, 0.75f}});
  expect_close(keras::losses::mean_squared_error(y, p), {(0.0625 + 0.25) / 2, (0.25 + 0.0625) / 2}, 1e-6);
  expect_close(keras::losses::mean_absolute_error(y, p), {0.375, 0.375}, 1e-6);
  double log2 = std::log(2.0);
  expect_close(keras::losses::binary_crossentropy(y, p), {(-std::log(0.75) + log2) / 2, (log2 - std::log(0.75)) / 2},
               1e-6);
  Tensor z = log(p / (1 - p));
  expect_close(keras::losses::binary_crossentropy(y, z, {.from_logits = true}),
               {(-std::log(0.75) + log2) / 2, (log2 - std::log(0.75)) / 2}, 1e-6);
  expect_close(keras::losses::categorical_crossentropy(tensor({{0.f, 1.f}}), tensor({{1.f, 3.f}})), {-std::log(0.75)},
               1e-6);
  expect_close(
      keras::losses::categorical_crossentropy(tensor({{0.f, 1.f}}), tensor({{0.f, 1.f}}), {.from_logits = true}),
      {-std::log(1 / (1 + std::exp(-1.0)))}, 1e-6);
}

TEST(KerasLoss, ObjectsTakeTheMean) {
  Tensor y = tensor({{1.f}, {2.f}, {3.f}}), p = tensor({{1.f}, {0.f}, {0.f}});
  keras::losses::MeanSquaredError mse;
  expect_close(mse(y, p), {(0.0 + 4 + 9) / 3}, 1e-6);
  // Weights multiply, and the number of samples divides.
  expect_close(mse(y, p, tensor({1.f, 0.5f, 0.f})), {2.0 / 3}, 1e-6);
  // Labels [n] beside predictions [n, 1] do not broadcast to [n, n].
  expect_close(mse(tensor({1.f, 2.f, 3.f}), p), {13.0 / 3}, 1e-6);
  expect_close(keras::Loss("mse")(y, p), {13.0 / 3}, 1e-6);
  keras::Loss largest = [](Tensor a, Tensor b) { return max(abs(a - b)); };
  expect_close(largest(y, p), {3}, 1e-6);
  struct Cubed : keras::CustomLoss {
    Tensor call(const Tensor& a, const Tensor& b) override { return mean(pow(abs(a - b), 3), -1); }
  };
  expect_close(keras::Loss(Cubed{})(y, p), {(8.0 + 27) / 3}, 1e-6);
  std::string error = error_of([&] { mse(ones({3, 2}), p); });
  EXPECT_CONTAINS(error, "mean_squared_error: labels f32[3,2] and predictions f32[3,1] differ in shape");
  EXPECT_CONTAINS(error, "keras_training_parts_test.cpp:");
  EXPECT_CONTAINS(error_of([] { keras::Loss("mze"); }), "there is no loss 'mze'");
  EXPECT_CONTAINS(error_of([&] { keras::Loss()(y, p); }), "the loss is undefined");
}

// --- metrics

TEST(KerasMetric, MeansOverBatches) {
  keras::metrics::Mean mean("m");
  EXPECT_EQ(mean.result().item<float>(), 0);
  mean.update_state(tensor({1.f, 3.f}));
  mean.update_state(tensor(8.f));
  expect_close(mean.result(), {4}, 1e-6);
  mean.update_state(tensor(10.f), tensor(3.f));
  expect_close(mean.result(), {(1.0 + 3 + 8 + 30) / 6}, 1e-6);
  mean.reset_state();
  mean.update_state(tensor({2.f, 4.f}), tensor({3.f, 1.f}));
  expect_close(mean.result(), {10.0 / 4}, 1e-6);
}

TEST(KerasMetric, Accuracies) {
  Tensor predictions = tensor({{0.1f, 0.9f}, {0.8f, 0.2f}, {0.3f, 0.7f}});
  keras::metrics::SparseCategoricalAccuracy sparse;
  sparse.update_state(tensor({1, 0, 0}), predictions);
  expect_close(sparse.result(), {2.0 / 3}, 1e-6);
  sparse.update_state(tensor({{1}, {1}, {1}}), predictions);
  expect_close(sparse.result(), {4.0 / 6}, 1e-6);
  EXPECT_EQ(sparse.name(), "sparse_categorical_accuracy");
  // "accuracy" follows the shapes.
  keras::Metric by_number("accuracy"), by_one_hot("accuracy"), by_threshold("accuracy");
  by_number.update_state(tensor({1, 0, 0}), predictions);
  by_one_hot.update_state(one_hot(tensor({1, 1, 1}), 2), predictions);
  by_threshold.update_state(tensor({1, 0, 1}), tensor({{0.9f}, {0.9f}, {0.6f}}));
  for (const keras::Metric& metric : {by_number, by_one_hot, by_threshold}) {
    expect_close(metric.result(), {2.0 / 3}, 1e-6);
    EXPECT_EQ(metric.name(), "accuracy");
  }
  keras::metrics::MeanSquaredError mse;
  mse.update_state(tensor({{1.f, 2.f}}), tensor({{2.f, 4.f}}));
  expect_close(mse.result(), {2.5}, 1e-6);
  std::string error = error_of([] { keras::Metric("acuracy"); });
  EXPECT_CONTAINS(error, "there is no metric 'acuracy'");
  EXPECT_CONTAINS(error, "one of accuracy (acc), ");
}

TEST(KerasMetric, CustomOnesKeepVariables) {
  keras::Metric f1 = F1{};
  Function update = function("update(y, p)", [=](Tensor y, Tensor p) {
    f1.update_state(y, p);
    return f1.result();
  });
  update(tensor({1, 1, 0, 0}), tensor({0.9f, 0.1f, 0.8f, 0.2f}));
  expect_close(update(tensor({1}), tensor({0.9f})), {2.0 * 2 / (2 * 2 + 1 + 1)}, 1e-6);
  EXPECT_EQ(update.trace_count(), 1);
  EXPECT_EQ(f1.variables().size(), 3u);
  f1.reset_state();
  expect_close(update(tensor({1}), tensor({0.9f})), {1}, 1e-6);
}

// --- optimizers

/// Steps of an optimizer on a quadratic, beside the formulas in double precision.
struct Reference {
  Doubles value{1, -2, 3}, m = Doubles(3, 0), s = Doubles(3, 0);
  int t = 0;
  Doubles gradient() const {
    Doubles g;
    for (std::size_t i = 0; i < 3; ++i) g.push_back(2 * (value[i] - 0.5 * static_cast<double>(i)) * (1 + double(i)));
    return g;
  }
};
Tensor gradient_of(const Variable& v) {
  Tensor i = cast(arange(3), f32);
  return 2 * (v - 0.5f * i) * (1 + i);
}
template <class Update>
void compare(const keras::Optimizer& optimizer, Update update, double tolerance) {
  for (bool traced : {false, true}) {
    Variable v(tensor({1.f, -2.f, 3.f}), {.name = "v"});
    Reference reference;
    Function step = function("step(unused)", [=](Tensor unused) {
      optimizer.apply_gradients({gradient_of(v)}, {v});
      return unused;
    });
    std::int64_t before = optimizer.iterations().read().item<std::int64_t>();
    reference.t = static_cast<int>(before);
    for (int i = 0; i < 20; ++i) {
      if (traced)
        step(0.f);
      else
        optimizer.apply_gradients({gradient_of(v)}, {v});
      ++reference.t;
      update(reference);
      expect_close(v, reference.value, tolerance);
    }
    EXPECT_EQ(optimizer.iterations().read().item<std::int64_t>(), before + 20);
    EXPECT_EQ(step.trace_count(), traced ? 1 : 0);
  }
}

TEST(KerasOptimizer, SGD) {
  compare(
      keras::SGD(0.05),
      [](Reference& r) {
        Doubles g = r.gradient();
        for (std::size_t i = 0; i < 3; ++i) r.value[i] -= 0.05 * g[i];
      },
      1e-5);
}
TEST(KerasOptimizer, SGDWithMomentum) {
  for (bool nesterov : {false, true})
    compare(
        keras::SGD(0.02, {.momentum = 0.9, .nesterov = nesterov}),
        [=](Reference& r) {
          Doubles g = r.gradient();
          for (std::size_t i = 0; i < 3; ++i) {
            r.m[i] = 0.9 * r.m[i] - 0.02 * g[i];
            r.value[i] += nesterov ? 0.9 * r.m[i] - 0.02 * g[i] : r.m[i];
          }
        },
        2e-5);
}
TEST(KerasOptimizer, Adam) {
  compare(
      keras::Adam(0.1),
      [](Reference& r) {
        Doubles g = r.gradient();
        double alpha = 0.1 * std::sqrt(1 - std::pow(0.999, r.t)) / (1 - std::pow(0.9, r.t));
        for (std::size_t i = 0; i < 3; ++i) {
          r.m[i] += (g[i] - r.m[i]) * 0.1;
          r.s[i] += (g[i] * g[i] - r.s[i]) * 0.001;
          r.value[i] -= alpha * r.m[i] / (std::sqrt(r.s[i]) + 1e-7);
        }
      },
      1e-5);
}

TEST(KerasOptimizer, TheLearningRateIsAVariable) {
  keras::SGD sgd(0.5);
  Variable v(tensor(1.f));
  Function step = function("step(g)", [=](Tensor g) {
    sgd.apply_gradients({g}, {v});
    return v.read();
  });
  EXPECT_EQ(step(1.f).item<float>(), 0.5f);
  sgd.learning_rate().assign(0.25f);
  EXPECT_EQ(step(1.f).item<float>(), 0.25f);
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(KerasOptimizer, WhatHasNoGradientStays) {
  keras::Adam adam;
  Variable used(tensor(1.f), {.name = "used"}), unused(tensor(1.f), {.name = "unused"});
  auto step = [&] {
    GradientTape tape;
    Tensor loss = used * used;
    adam.apply_gradients(tape.gradient(loss, std::vector{used, unused}), {used, unused});
  };
  testing::internal::CaptureStderr();
  step();
  step();
  std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(warning,
                  "stet: apply_gradients: there is no gradient for 'unused', on which the loss does not depend");
  EXPECT_EQ(warning.find("no gradient", warning.find("no gradient") + 1), std::string::npos) << "once";
  EXPECT_EQ(unused.read().item<float>(), 1);
  EXPECT_NE(used.read().item<float>(), 1);
  EXPECT_CONTAINS(error_of([&] { adam.apply_gradients({Tensor()}, {used}); }), "none of the variables has a gradient");
  EXPECT_CONTAINS(error_of([&] { adam.apply_gradients({}, {}); }), "there are no variables to train");
  EXPECT_CONTAINS(error_of([&] {
                    adam.apply_gradients({tensor(1.f)}, {used, unused});
                  }),
                  "1 gradients for 2 variables");
  EXPECT_CONTAINS(error_of([] { keras::Adam(-1); }), "Adam: a learning rate of -1");
  EXPECT_CONTAINS(error_of([] { keras::Optimizer("adamm"); }), "there is no optimizer 'adamm'");
}

}  // namespace
