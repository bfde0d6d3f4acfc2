// Regularizers, constraints, and the losses and weights of models that use them, beside Keras's:
// tests/oracle/keras/make_regularizers.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "expect_error.h"
#include "keras_values.h"
#include "stet/stet.h"

using namespace stet;
namespace regularizers = keras::regularizers;
namespace constraints = keras::constraints;

namespace {

KerasValues& values() {
  static KerasValues all("regularizers");
  return all;
}
double worst = 0;
int compared = 0;

void expect_like_keras(const Tensor& got, const Tensor& expected, double tolerance, const std::string& what) {
  Tensor difference = max(abs(cast(got, f64) - cast(expected, f64)) / maximum(abs(cast(expected, f64)), 1.));
  worst = std::max(worst, difference.item<double>());
  ++compared;
  expect_close(got, expected, tolerance, what);
}

TEST(KerasRegularizers, Penalties) {
  const std::vector<std::pair<const char*, keras::Regularizer>> all = {
      {"l1", regularizers::L1(0.2)},
      {"l1 default", "l1"},
      {"l2", regularizers::L2(0.3)},
      {"l2 default", "L2"},
      {"l1l2", regularizers::L1L2({.l1 = 0.1, .l2 = 0.2})},
      {"l1l2 only l1", regularizers::L1L2({.l1 = 0.1})},
      {"l1l2 default", "l1l2"},
      {"orthogonal rows", regularizers::OrthogonalRegularizer(0.5)},
      {"orthogonal columns", regularizers::OrthogonalRegularizer(0.5, {.mode = "columns"})},
      {"orthogonal zero row", "orthogonal_regularizer"},
  };
  for (const auto& [name, regularizer] : all) {
    const KerasCase& one = values().at(name);
    expect_like_keras(regularizer(one["x"]), one["penalty"], 2e-6, name);
    Function traced = function("penalty(x)", [regularizer = regularizer](Tensor x) { return regularizer(x); });
    expect_like_keras(traced(one["x"]), one["penalty"], 2e-6, name);
    EXPECT_EQ(regularizer(cast(one["x"], f64)).dtype(), f64);
  }
  EXPECT_EQ(regularizers::OrthogonalRegularizer()(ones({1, 4})).item<float>(), 0) << "one row has no pair";
}

TEST(KerasRegularizers, AllowedValues) {
  const std::vector<std::pair<const char*, keras::Constraint>> all = {
      {"max_norm", constraints::MaxNorm(1.5)},
      {"max_norm default", "max_norm"},
      {"max_norm axis", constraints::MaxNorm(1.5, {.axis = 1})},
      {"max_norm axes", constraints::MaxNorm(0.5, {.axis = {0, 1, 2}})},
      {"max_norm zero", constraints::MaxNorm(1.5)},
      {"non_neg", "NonNeg"},
      {"unit_norm", "unit_norm"},
      {"unit_norm axis", constraints::UnitNorm({.axis = 1})},
      {"min_max_norm", constraints::MinMaxNorm({.min_value = 0.75, .max_value = 1.25, .rate = 0.5})},
      {"min_max_norm default", "min_max_norm"},
  };
  for (const auto& [name, constraint] : all) {
    const KerasCase& one = values().at(name);
    expect_like_keras(constraint(one["weight"]), one["allowed"], 2e-6, name);
    EXPECT_EQ(constraint(cast(one["weight"], f64)).dtype(), f64);
  }
}

/// The layer that make_regularizers.py calls Adding.
struct Adding : keras::CustomLayer {
  keras::Dense inner{2};
  STET_MEMBERS(inner)
  Tensor call(const Tensor& x, const keras::Context&) override {
    Tensor y = inner(x);
    add_loss(0.25f * mean(square(y)));
    add_loss(0.125f * sum(abs(x)));
    return y;
  }
};

using MakeModel = std::function<keras::Sequential()>;

/// Losses of steps, and the weights afterwards, with every way to train.
void compare(const char* name, const MakeModel& make, const std::function<keras::Optimizer()>& optimizer) {
  const KerasCase& one = values().at(name);
  for (bool eagerly : {false, true}) {
    keras::Sequential model = make();
    model.compile({.optimizer = optimizer(), .loss = "mse", .run_eagerly = eagerly});
    model(one["x"]);  // builds it
    std::vector<keras::Weight> weights = model.weights();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i].variable.assign(one[text("weight_", i)]);
    const std::string how = text(name, eagerly ? " eagerly" : " traced");
    expect_like_keras(tensor(model.evaluate(one["x"], one["y"])["loss"]), cast(one["test"], f64), 1e-5, how);
    std::vector<double> losses = cast(one["losses"], f64).to_vector<double>();
    const int epochs = static_cast<int>(losses.size());
    // One batch of all samples is one step.
    keras::History history =
        model.fit(one["x"], one["y"], {.batch_size = 6, .epochs = epochs, .verbose = 0, .shuffle = false});
    expect_like_keras(tensor(history["loss"]), tensor(losses), 1e-5, how);
    if (!eagerly) {
      EXPECT_EQ(model.train_function().trace_count(), 1);
    }
    if (std::string(name) == "model constraint") continue;  // fit() ends with the averages: see the next test
    for (std::size_t i = 0; i < weights.size(); ++i)
      expect_like_keras(weights[i].variable, one[text("trained_", i)], 1e-5, text(how, ", weight ", i));
  }
}

TEST(KerasRegularizers, ModelsLikeKeras) {
  using namespace keras;
  auto sgd = [] { return SGD(0.125); };
  compare(
      "model kernel",
      [] {
        return Sequential{Input({3}), Dense(2, {.kernel_regularizer = regularizers::L2(0.1),
                                                .bias_regularizer = regularizers::L1(0.05)})};
      },
      sgd);
  compare(
      "model activity",
      [] {
        return Sequential{Input({3}), Dense(4, {.activation = "tanh", .activity_regularizer = regularizers::L2(0.2)}),
                          Dense(2, {.kernel_regularizer = "l2", .activity_regularizer = "l1"})};
      },
      sgd);
  auto decayed = [] { return Sequential{Input({3}), Dense(2, {.kernel_regularizer = regularizers::L2(0.1)})}; };
  compare("model loss scale", decayed, [] { return SGD(0.125, {.loss_scale_factor = 8}); });
  compare("model dynamic loss scale", decayed,
          [] { return LossScaleOptimizer(SGD(0.125), {.initial_scale = 16, .dynamic_growth_steps = 2}); });
  compare(
      "model add_loss",
      [] {
        return Sequential{Input({3}), Adding{}};
      },
      sgd);
  compare(
      "model constraint",
      [] {
        return Sequential{Input({3}),
                          Dense(4, {.kernel_constraint = constraints::MaxNorm(0.5), .bias_constraint = "non_neg"}),
                          Dense(2, {.kernel_constraint = constraints::UnitNorm({.axis = 1})})};
      },
      [] { return SGD(0.25, {.use_ema = true, .ema_momentum = 0.5}); });
}

TEST(KerasRegularizers, OptimizersApplyThem) {
  const KerasCase& one = values().at("model constraint");
  for (bool traced : {false, true}) {
    keras::Sequential model{
        keras::Input({3}),
        keras::Dense(4, {.kernel_constraint = constraints::MaxNorm(0.5), .bias_constraint = "non_neg"}),
        keras::Dense(2, {.kernel_constraint = constraints::UnitNorm({.axis = 1})})};
    std::vector<keras::Weight> weights = model.weights();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i].variable.assign(one[text("weight_", i)]);
    EXPECT_TRUE(weights[0].constraint.defined());
    EXPECT_TRUE(keras::constraint_of(weights[1].variable).defined());
    EXPECT_FALSE(weights[3].constraint.defined());
    EXPECT_FALSE(keras::constraint_of(weights[3].variable).defined());
    keras::SGD optimizer(0.25);
    auto step = [=](Tensor x, Tensor y) {
      GradientTape tape;
      Tensor loss = mean(square(model(x, {.training = true}) - y));
      optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()), model.trainable_variables());
      return loss;
    };
    Function traced_step = function("step(x, y)", step);
    for (int i = 0; i < 3; ++i) traced ? traced_step(one["x"], one["y"]) : step(one["x"], one["y"]);
    for (std::size_t i = 0; i < weights.size(); ++i)
      expect_like_keras(weights[i].variable, one[text("trained_", i)], 1e-5, text("weight ", i));
    EXPECT_LE(max(norm(weights[0].variable, 0)).item<float>(), 0.5f);
    EXPECT_GE(min(weights[1].variable).item<float>(), 0);
  }
}

TEST(KerasRegularizers, LossesOfALayer) {
  keras::Sequential model{
      keras::Input({2}),
      keras::Dense(2, {.kernel_initializer = "ones",
                       .kernel_regularizer = regularizers::L2(0.5),
                       .activity_regularizer = regularizers::L1(1)}),
      keras::Dense(1, {.use_bias = false, .kernel_initializer = "ones", .kernel_regularizer = "l1"})};
  EXPECT_EQ(model.losses().size(), 2u) << "before the first call, those of weights";
  model(ones({3, 2}));
  auto numbers = [](const std::vector<Tensor>& losses) {
    std::vector<float> out;
    for (const Tensor& loss : losses) out.push_back(loss.item<float>());
    return out;
  };
  EXPECT_EQ(numbers(model.losses()), (std::vector<float>{4, 2, 0.02f})) << "what was added comes first";
  EXPECT_EQ(numbers(model.layers()[0].losses()), (std::vector<float>{4, 2}));
  EXPECT_EQ(numbers(model.layers()[1].losses()), (std::vector<float>{0.02f}));
  model(zeros({3, 2}));
  model(ones({1, 2}) * 2);
  EXPECT_EQ(numbers(model.losses()), (std::vector<float>{8, 2, 0.02f})) << "of the last call";
  model.weights()[0].variable.assign(zeros({2, 2}));
  EXPECT_EQ(numbers(model.losses()), (std::vector<float>{8, 0, 0.02f})) << "penalties are those of now";
  // A trace has its own.
  Function sums = function("sums(x)", [=](Tensor x) {
    std::size_t before = model.losses().size();
    model(x);
    Tensor total = zeros({});
    for (const Tensor& loss : model.losses()) total = total + loss;
    return std::tuple{total, static_cast<std::int64_t>(before)};
  });
  auto [total, before] = sums(ones({3, 2}));
  EXPECT_NEAR(total.item<float>(), 0.02f, 1e-6);
  EXPECT_EQ(before, 2) << "an earlier call outside is not the trace's";
  if (!verifying()) {
    EXPECT_EQ(model.losses().size(), 2u) << "and the trace's values have no place outside";
  }
  // Threads do not see each other's.
  model(ones({3, 2}));
  std::size_t seen = 0;
  std::thread([&] { seen = model.losses().size(); }).join();
  EXPECT_EQ(seen, 2u);
  EXPECT_EQ(model.losses().size(), 3u);
  // What is not trained is not penalised.
  struct Fixed : keras::CustomLayer {
    Variable w;
    void build(const Shape&) override {
      w = add_weight("w", {2}, {.initializer = "ones", .trainable = false, .regularizer = "l2"});
    }
    Tensor call(const Tensor& x, const keras::Context&) override { return x * w; }
  };
  keras::Layer fixed = Fixed{};
  fixed(ones({1, 2}));
  EXPECT_TRUE(fixed.weights()[0].regularizer.defined());
  EXPECT_EQ(fixed.losses().size(), 0u);
}

TEST(KerasRegularizers, ModelsWhoseLayersMakeTheLoss) {
  struct Reconstructing : keras::CustomLayer {
    keras::Dense code{1}, back{3};
    STET_MEMBERS(code, back)
    Tensor call(const Tensor& x, const keras::Context&) override {
      Tensor y = back(code(x));
      add_loss(mean(square(y - x)));
      return y;
    }
  };
  for (bool eagerly : {false, true}) {
    random::seed(1);
    Tensor x = random::normal({32, 1}) * tensor({{1.f, -2.f, 0.5f}});
    keras::Sequential model{keras::Input({3}), Reconstructing{}};
    model.compile({.optimizer = keras::Adam(0.05), .run_eagerly = eagerly});
    keras::History history = model.fit(x, {.batch_size = 8, .epochs = 15, .verbose = 0});
    EXPECT_LT(history["loss"].back(), history["loss"].front() / 3);
    // The last epoch's alone: the first ones were far larger.
    EXPECT_NEAR(history["loss"].back(), model.evaluate(x)["loss"], history["loss"].back());
    keras::Sequential without{keras::Input({3}), keras::Dense(3)};
    without.compile({.run_eagerly = eagerly});
    EXPECT_CONTAINS(error_of([&] { without.fit(x, {.verbose = 0}); }), "was compiled without a loss");
  }
}

/// Adds on both sides of a branch, or on one.
struct Branching : keras::CustomLayer {
  bool both = true;
  explicit Branching(bool adds_on_both) : both(adds_on_both) {}
  Tensor call(const Tensor& x, const keras::Context&) override {
    if (sum(x) > 0.f) {
      add_loss(sum(x) * 2);
      return x;
    }
    if (both) add_loss(sum(x) * -1);
    return x * 3;
  }
};

TEST(KerasRegularizers, LossesFromBranches) {
  keras::Layer layer = Branching(true);
  Function f = function("f(x)", [=](Tensor x) {
    layer(x);
    return layer.losses().at(0);
  });
  for (float v : {1.f, -1.f, 2.f}) EXPECT_EQ(f(full({2}, v)).item<float>(), v > 0 ? 4 * v : -2 * v);
  EXPECT_EQ(f.trace_count(), 1);
  keras::Layer one_sided = Branching(false);
  Function g = function("g(x)", [=](Tensor x) { return one_sided(x); });
  EXPECT_NE(error_of([&] { g(full({2}, 1.f)); }), "no error");
}

TEST(KerasRegularizers, CallablesOfYourOwn) {
  keras::Dense dense(1, {.use_bias = false,
                         .kernel_initializer = "ones",
                         .kernel_regularizer = [](const Tensor& w) { return sum(pow(w, 4)); },
                         .kernel_constraint = [](const Tensor& w) { return minimum(w, 0.5f); }});
  dense(ones({1, 3}));
  EXPECT_EQ(dense.losses().at(0).item<float>(), 3);
  keras::SGD optimizer(0.25);
  optimizer.apply_gradients({tensor({{0.f}, {4.f}, {1.f}})}, dense.trainable_variables());
  EXPECT_EQ(dense.weights()[0].variable.read().to_vector<float>(), (std::vector<float>{0.5, 0, 0.5}));
}

TEST(KerasRegularizers, WrongUses) {
  auto expect = [](auto make, const std::string& part) {
    const std::string error = error_of(make);
    EXPECT_CONTAINS(error, part);
    EXPECT_CONTAINS(error, "keras_regularizers_test.cpp:");
  };
  expect([] { keras::Regularizer("l3"); }, "there is no regularizer 'l3'");
  expect([] { keras::Constraint("positive"); }, "there is no constraint 'positive'");
  expect([] { regularizers::L1(-1); }, "L1: l1 = -1");
  expect([] { regularizers::L2(1 / 0.0); }, "L2: l2 = inf");
  expect([] { regularizers::L1L2({.l2 = -1}); }, "L1L2: l2 = -1");
  expect([] { regularizers::OrthogonalRegularizer(0.1, {.mode = "row"}); }, "there is no mode 'row'");
  expect([] { regularizers::OrthogonalRegularizer()(ones({2})); }, "OrthogonalRegularizer: f32[2] is no matrix");
  expect([] { constraints::MaxNorm(-1); }, "MaxNorm: max_value = -1");
  expect([] { constraints::MinMaxNorm({.min_value = 2}); }, "MinMaxNorm: norms from 2 to 1");
  expect([] { constraints::MinMaxNorm({.rate = 2}); }, "MinMaxNorm: rate = 2");
  expect([] { constraints::MaxNorm(1, {.axis = 3})(ones({2})); }, "MaxNorm");
  expect([] { keras::Regularizer([](const Tensor& x) { return x; })(ones({2})); }, "the regularizer gave f32[2]");
  expect([] { keras::Constraint([](const Tensor& x) { return sum(x); })(ones({2})); }, "the constraint gave f32[]");
  struct Wrong : keras::CustomLayer {
    Tensor call(const Tensor& x, const keras::Context&) override {
      add_loss(x);
      return x;
    }
    void outside() { add_loss(ones({})); }
  };
  expect([] { keras::Layer(Wrong{})(ones({2})); }, "add_loss: Wrong 'wrong' adds f32[2]");
  expect([] { keras::make<Wrong>()->outside(); }, "is not being called");
}

TEST(KerasRegularizers, EveryCaseWasUsed) {
  if (compared == 0) GTEST_SKIP() << "the other tests did not run";
  EXPECT_EQ(values().left(), std::vector<std::string>());
  std::printf("%d tensors compared; largest difference %.2g\n", compared, worst);
}

}  // namespace
