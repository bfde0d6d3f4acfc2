// Optimizers beside Keras's, step by step: tests/oracle/keras/make_optimizers.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

#include "expect_error.h"
#include "keras_values.h"
#include "stet/stet.h"

using namespace stet;

namespace {

constexpr int variable_count = 6, step_count = 7;
const char* const names[variable_count] = {"bias", "tall", "wide", "filters", "scale", "square"};

KerasValues& values() {
  static KerasValues all("optimizers");
  return all;
}
std::string key(const char* what, int i) { return text(what, "_", i); }
std::string key(const char* what, int step, int i) { return text(what, "_", step, "_", i); }

std::vector<Variable> start(DType dtype) {
  std::vector<Variable> out;
  for (int i = 0; i < variable_count; ++i)
    out.emplace_back(values().at("data")[key("start", i)], VariableOptions{.dtype = dtype, .name = names[i]});
  return out;
}
std::vector<Tensor> gradients(int step, DType dtype) {
  std::vector<Tensor> out;
  for (int i = 0; i < variable_count; ++i) out.push_back(cast(values().at("data")[key("gradient", step, i)], dtype));
  return out;
}

struct OptimizerCase {
  const char* name;
  std::function<keras::Optimizer()> make;
  double tolerance_f32 = 4e-6;
  double tolerance_f64 = 1e-12;  // Keras takes some means and norms in f32 whatever it is given
};
keras::Optimizer excluding() { return keras::AdamW(0.125, {.weight_decay = 0.5}); }

const std::vector<OptimizerCase>& optimizer_cases() {
  using namespace keras;
  static const std::vector<OptimizerCase> all = {
      {"sgd", [] { return SGD(0.125); }},
      {"sgd momentum", [] { return SGD(0.125, {.momentum = 0.75}); }},
      {"sgd nesterov", [] { return SGD(0.125, {.momentum = 0.75, .nesterov = true}); }},
      {"rmsprop", [] { return RMSprop(0.125); }},
      {"rmsprop centered",
       [] { return RMSprop(0.125, {.rho = 0.7, .momentum = 0.6, .epsilon = 0.01, .centered = true}); }},
      {"adagrad", [] { return Adagrad(0.125); }},
      {"adagrad options", [] { return Adagrad(0.125, {.initial_accumulator_value = 0.7, .epsilon = 0.1}); }},
      {"adadelta", [] { return Adadelta(1); }},
      {"adadelta options", [] { return Adadelta(0.5, {.rho = 0.6, .epsilon = 0.01}); }},
      {"adam", [] { return Adam(0.125); }},
      {"adam options", [] { return Adam(0.125, {.beta_1 = 0.6, .beta_2 = 0.7, .epsilon = 0.01}); }},
      {"adam amsgrad", [] { return Adam(0.125, {.beta_2 = 0.5, .amsgrad = true}); }},
      {"adamw", [] { return AdamW(0.125); }},
      {"adamw options",
       [] {
         return AdamW(0.125, {.weight_decay = 0.3, .beta_1 = 0.8, .beta_2 = 0.9, .epsilon = 1e-3, .amsgrad = true});
       }},
      {"adamw excluded", excluding},
      {"adamax", [] { return Adamax(0.125); }},
      {"adamax options", [] { return Adamax(0.125, {.beta_1 = 0.5, .beta_2 = 0.6, .epsilon = 0.25}); }},
      {"nadam", [] { return Nadam(0.125); }},
      {"nadam options", [] { return Nadam(0.125, {.beta_1 = 0.5, .beta_2 = 0.7, .epsilon = 0.01}); }},
      {"lion", [] { return Lion(0.125); }},
      {"lion options", [] { return Lion(0.125, {.beta_1 = 0.4, .beta_2 = 0.3, .weight_decay = 0.25}); }},
      {"ftrl", [] { return Ftrl(0.125); }},
      {"ftrl options",
       [] {
         return Ftrl(0.125, {.learning_rate_power = -0.75,
                             .initial_accumulator_value = 0.5,
                             .l1_regularization_strength = 0.25,
                             .l2_regularization_strength = 0.125,
                             .l2_shrinkage_regularization_strength = 0.0625,
                             .beta = 0.1});
       }},
      {"lamb", [] { return Lamb(0.125); }},
      {"lamb options",
       [] { return Lamb(0.125, {.beta_1 = 0.5, .beta_2 = 0.6, .epsilon = 0.01, .weight_decay = 0.125}); }},
      {"adafactor", [] { return Adafactor(0.125); }, 4e-6, 2e-7},
      {"adafactor options",
       [] {
         return Adafactor(2, {.beta_2_decay = -0.5, .epsilon_2 = 0.25, .clip_threshold = 0.5, .relative_step = false});
       },
       4e-6, 2e-7},
      {"muon", [] { return Muon(0.125); }, 2e-5, 2e-7},
      {"muon options",
       [] {
         return Muon(0.125, {.adam_beta_1 = 0.8,
                             .adam_beta_2 = 0.7,
                             .adam_weight_decay = 0.25,
                             .epsilon = 0.01,
                             .weight_decay = 0.5,
                             .exclude_layers = {"wi"},
                             .muon_a = 3,
                             .muon_b = -4,
                             .muon_c = 2,
                             .adam_lr_ratio = 0.5,
                             .momentum = 0.75,
                             .ns_steps = 3,
                             .nesterov = false,
                             .rms_rate = {}});
       },
       2e-5, 2e-7},
      {"schedule free", [] { return ScheduleFreeAdamW(0.125); }},
      {"schedule free options",
       [] {
         return ScheduleFreeAdamW(
             0.25, {.beta_1 = 0.7, .beta_2 = 0.8, .epsilon = 0.01, .warmup_steps = 4, .weight_decay = 0.25});
       }},
      {"clipnorm", [] { return SGD(0.125, {.clipnorm = 1.5}); }},
      {"clipvalue", [] { return SGD(0.125, {.clipvalue = 0.75}); }},
      {"global clipnorm", [] { return SGD(0.125, {.global_clipnorm = 4}); }},
      {"global clipnorm not reached", [] { return SGD(0.125, {.global_clipnorm = 1000}); }},
      {"weight decay", [] { return SGD(0.125, {.momentum = 0.5, .weight_decay = 0.5}); }},
      {"ema", [] { return SGD(0.125, {.use_ema = true, .ema_momentum = 0.75}); }},
      {"ema overwrite",
       [] { return Adam(0.125, {.use_ema = true, .ema_momentum = 0.75, .ema_overwrite_frequency = 3}); }},
      {"loss scale factor", [] { return SGD(0.125, {.loss_scale_factor = 4}); }},
      {"accumulation", [] { return Adam(0.125, {.gradient_accumulation_steps = 2}); }},
      {"accumulation nadam", [] { return Nadam(0.125, {.gradient_accumulation_steps = 3}); }},
      {"accumulation of everything",
       [] {
         return SGD(0.125, {.momentum = 0.5,
                            .nesterov = true,
                            .weight_decay = 0.25,
                            .clipnorm = 1,
                            .use_ema = true,
                            .ema_momentum = 0.5,
                            .ema_overwrite_frequency = 2,
                            .loss_scale_factor = 0.5,
                            .gradient_accumulation_steps = 3});
       }},
      {"schedule",
       [] { return Adam(schedules::ExponentialDecay(0.25, 3, 0.5, {.staircase = true}), {.weight_decay = 0.25}); }},
      {"accumulation schedule",
       [] {
         return SGD(schedules::PiecewiseConstantDecay({1, 4}, {0.5, 0.25, 0.125}), {.gradient_accumulation_steps = 2});
       }},
  };
  return all;
}

double worst_f32 = 0, worst_f64 = 0;
int compared = 0;

/// Also keeps the largest difference.
void expect_like_keras(const Variable& variable, const Tensor& expected, double tolerance, const std::string& what) {
  Tensor difference = max(abs(cast(variable, f64) - expected) / maximum(abs(expected), 1.));
  double& worst = variable.dtype() == f64 ? worst_f64 : worst_f32;
  worst = std::max(worst, difference.item<double>());
  ++compared;
  expect_close(variable.read(), expected, tolerance, what);
}

using Apply = std::function<void(const std::vector<Tensor>&)>;

void run(const OptimizerCase& one, const keras::Optimizer& optimizer, const std::vector<Variable>& variables,
         const Apply& apply, const std::string& how) {
  const KerasCase& expected = values().at(one.name);
  const DType dtype = variables[0].dtype();
  const double tolerance = dtype == f64 ? one.tolerance_f64 : one.tolerance_f32;
  if (std::string(one.name) == "adamw excluded")
    optimizer.exclude_from_weight_decay({.var_list = {variables[1]}, .var_names = {"bias", "^w.de"}});
  for (int step = 0; step < step_count; ++step) {
    apply(gradients(step, dtype));
    for (int i = 0; i < variable_count; ++i)
      if (expected.has(key("after", step, i)))
        expect_like_keras(variables[static_cast<std::size_t>(i)], expected[key("after", step, i)], tolerance,
                          text(one.name, how, ", step ", step, ", '", names[i], "'"));
  }
  EXPECT_EQ(optimizer.iterations().read().item<std::int64_t>(), step_count);
  if (!expected.has("final_0")) return;
  optimizer.finalize_variable_values(variables);
  for (int i = 0; i < variable_count; ++i)
    expect_like_keras(variables[static_cast<std::size_t>(i)], expected[key("final", i)], tolerance,
                      text(one.name, how, ", at the end, '", names[i], "'"));
}

void compare(const OptimizerCase& one, DType dtype) {
  std::vector<Variable> eager = start(dtype), traced = start(dtype);
  keras::Optimizer first = one.make(), second = one.make();
  run(
      one, first, eager, [&](const std::vector<Tensor>& g) { first.apply_gradients(g, eager); },
      text(" eagerly in ", dtype));
  Function step = function("step(gradients)", [=](std::vector<Tensor> g) {
    second.apply_gradients(g, traced);
    return g[0];
  });
  run(
      one, second, traced, [&](const std::vector<Tensor>& g) { step(g); }, text(" traced in ", dtype));
  EXPECT_EQ(step.trace_count(), 1) << step.explain();
  // What it keeps is the same, too.
  std::vector<Variable> kept = first.variables(), kept_traced = second.variables();
  ASSERT_EQ(kept.size(), kept_traced.size());
  for (std::size_t i = 0; i < kept.size(); ++i)
    expect_close(kept_traced[i].read(), kept[i].read(), dtype == f64 ? 1e-12 : 2e-5, kept[i].name());
}

TEST(KerasOptimizer, StepsAreThoseOfKeras) {
  for (const OptimizerCase& one : optimizer_cases())
    for (DType dtype : {f32, f64}) compare(one, dtype);
}

struct ScaledCase {
  const char* name;
  std::function<keras::Optimizer()> inner;
  keras::LossScaleOptimizerOptions options;
  std::vector<int> broken;
};

void run_scaled(const ScaledCase& one, DType dtype, bool traced) {
  const KerasCase& expected = values().at(one.name);
  keras::Optimizer inner = one.inner();
  keras::LossScaleOptimizer optimizer(inner, one.options);
  std::vector<Variable> variables = start(dtype);
  // `breaks` is added to one gradient: 0, infinity or NaN.
  auto body = [=](std::vector<Tensor> g, Tensor breaks) {
    Tensor scale = optimizer.scale_loss(ones({}, f32));
    for (Tensor& one : g) one = one * cast(scale, one.dtype());
    g[3] = g[3] + cast(breaks, g[3].dtype());
    optimizer.apply_gradients(g, variables);
    return optimizer.scale_loss(ones({}, f32));
  };
  Function step = function("step(gradients, breaks)", body);
  const double endless = std::numeric_limits<double>::infinity();
  std::vector<double> scales = expected["scales"].to_vector<double>();
  for (int i = 0; i < step_count; ++i) {
    const bool broken = std::ranges::find(one.broken, i) != one.broken.end();
    Tensor breaks = tensor(!broken ? 0.0 : i % 2 ? endless : std::nan(""));
    Tensor scale = traced ? step(gradients(i, dtype), breaks) : body(gradients(i, dtype), breaks);
    EXPECT_EQ(scale.item<float>(), scales[static_cast<std::size_t>(i)]) << one.name << " step " << i;
    for (int v = 0; v < variable_count; ++v)
      if (expected.has(key("after", i, v)))
        expect_like_keras(variables[static_cast<std::size_t>(v)], expected[key("after", i, v)],
                          dtype == f64 ? 1e-12 : 4e-6, text(one.name, " step ", i));
  }
  if (traced) {
    EXPECT_EQ(step.trace_count(), 1) << step.explain();
  }
  const auto made = static_cast<std::int64_t>(step_count - static_cast<int>(one.broken.size()));
  EXPECT_EQ(optimizer.iterations().read().item<std::int64_t>(), made);
  EXPECT_EQ(inner.iterations().read().item<std::int64_t>(), made);
}

TEST(KerasOptimizer, LossScaleOptimizerFindsItsScale) {
  const std::vector<ScaledCase> cases = {
      {"loss scale optimizer",
       [] { return keras::Adam(0.125); },
       {.initial_scale = 64, .dynamic_growth_steps = 2},
       {3, 4}},
      {"loss scale optimizer accumulation",
       [] { return keras::SGD(0.125, {.clipnorm = 2, .gradient_accumulation_steps = 2}); },
       {.initial_scale = 1024, .dynamic_growth_steps = 3},
       {0, 5}},
  };
  for (const ScaledCase& one : cases)
    for (DType dtype : {f32, f64})
      for (bool traced : {false, true}) run_scaled(one, dtype, traced);
}

// --- beyond the values

TEST(KerasOptimizer, ByName) {
  const std::vector<std::pair<std::string, keras::Optimizer>> all = {
      {"sgd", keras::SGD()},         {"rmsprop", keras::RMSprop()},
      {"adagrad", keras::Adagrad()}, {"adadelta", keras::Adadelta()},
      {"adam", keras::Adam()},       {"adamw", keras::AdamW()},
      {"adamax", keras::Adamax()},   {"nadam", keras::Nadam()},
      {"lion", keras::Lion()},       {"ftrl", keras::Ftrl()},
      {"lamb", keras::Lamb()},       {"adafactor", keras::Adafactor()},
      {"muon", keras::Muon()},       {"schedulefreeadamw", keras::ScheduleFreeAdamW()},
  };
  for (const auto& [name, made] : all) {
    keras::Optimizer found(name);
    EXPECT_EQ(found.name(), name);
    EXPECT_EQ(made.name(), name);
    Variable a(tensor({{1.f, 2.f}, {3.f, 5.f}})), b(tensor({{1.f, 2.f}, {3.f, 5.f}}));
    for (int i = 0; i < 3; ++i) {
      found.apply_gradients({tensor({{1.f, -2.f}, {0.5f, 3.f}})}, {a});
      made.apply_gradients({tensor({{1.f, -2.f}, {0.5f, 3.f}})}, {b});
    }
    EXPECT_EQ(a.read().to_vector<float>(), b.read().to_vector<float>()) << name;
    EXPECT_NE(a.read().to_vector<float>()[0], 1.f) << name;
  }
  EXPECT_EQ(keras::Optimizer("AdamW").name(), "adamw");
  EXPECT_EQ(keras::Adam(0.1, {.name = "mine"}).name(), "mine");
  EXPECT_CONTAINS(error_of([] { keras::Optimizer("adamm"); }),
                  "one of adadelta, adafactor, adagrad, adam, adamax, adamw, ftrl, lamb, lion, muon, nadam, rmsprop, "
                  "schedulefreeadamw, sgd; or an object");
}

/// One of a user's own gets all that is shared.
struct SignDescent : keras::CustomOptimizer {
  explicit SignDescent(keras::LearningRate rate, keras::OptimizerOptions options = {})
      : CustomOptimizer("sign_descent", std::move(rate), std::move(options)) {}
  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    Variable count = slot(variable, "count", {.initializer = "ones", .shape = Shape{}});
    variable.assign_sub(rate * sign(gradient) * count);
    count.assign_add(cast(iterations() + 1, f32));
  }
};

TEST(KerasOptimizer, CustomOnes) {
  keras::Optimizer optimizer = SignDescent(0.5, {.weight_decay = 0.5, .gradient_accumulation_steps = 2});
  Variable v(tensor({4.f, -8.f}), {.name = "v"});
  Function step = function("step(g)", [=](Tensor g) {
    optimizer.apply_gradients({g}, {v});
    return v.read();
  });
  EXPECT_EQ(step(tensor({1.f, 1.f})).to_vector<float>(), (std::vector<float>{4, -8}));
  EXPECT_EQ(step(tensor({1.f, -2.f})).to_vector<float>(), (std::vector<float>{2.5, -5.5}));
  EXPECT_EQ(step(tensor({-9.f, 1.f})).to_vector<float>(), (std::vector<float>{2.5, -5.5}));
  EXPECT_EQ(step(tensor({1.f, 1.f})).to_vector<float>(), (std::vector<float>{2.875, -5.125}));
  EXPECT_EQ(step.trace_count(), 1);
  std::vector<std::string> kept;
  for (const Variable& variable : optimizer.variables()) kept.push_back(variable.name());
  EXPECT_EQ(kept, (std::vector<std::string>{"sign_descent/iterations", "sign_descent/learning_rate",
                                            "sign_descent/v/gradient_accumulator", "sign_descent/v/count"}));
}

TEST(KerasOptimizer, SlotsOfEveryFloatingType) {
  for (DType dtype : {f16, bf16, f32, f64})
    for (const char* name : {"adam", "nadam", "lamb", "ftrl", "muon", "adafactor", "rmsprop"}) {
      keras::Optimizer optimizer(name);
      Variable v(ones({3, 2}), {.dtype = dtype});
      optimizer.apply_gradients({full({3, 2}, 0.5, f32)}, {v});  // the gradient is cast
      EXPECT_EQ(v.read().dtype(), dtype) << name;
      EXPECT_TRUE(all(isfinite(v.read())).item<bool>()) << name << dtype;
    }
  // A variable without elements.
  for (const char* name : {"adam", "sgd", "lion", "muon"}) {
    keras::Optimizer optimizer(name);
    Variable v(zeros({0, 2}));
    optimizer.apply_gradients({zeros({0, 2})}, {v});
    EXPECT_EQ(optimizer.iterations().read().item<std::int64_t>(), 1);
  }
}

TEST(KerasOptimizer, ClippingOfWhatIsNotFinite) {
  const float endless = std::numeric_limits<float>::infinity();
  keras::SGD global(1, {.global_clipnorm = 1}), value(1, {.clipvalue = 1}), norm(1, {.clipnorm = 1});
  Variable a(zeros({2})), b(zeros({1}));
  global.apply_gradients({tensor({endless, 1.f}), tensor({1.f})}, {a, b});
  EXPECT_TRUE(all(isnan(a.read())).item<bool>());
  EXPECT_TRUE(all(isnan(b.read())).item<bool>()) << "as in Keras, the norm of all of them is no number";
  Variable c(zeros({3}));
  value.apply_gradients({tensor({endless, -endless, 0.5f})}, {c});
  EXPECT_EQ(c.read().to_vector<float>(), (std::vector<float>{-1, 1, -0.5}));
  Variable d(zeros({2}));
  norm.apply_gradients({zeros({2})}, {d});
  EXPECT_EQ(d.read().to_vector<float>(), (std::vector<float>{0, 0})) << "a norm of 0 divides nothing";
}

TEST(KerasOptimizer, WrongOptions) {
  using namespace keras;
  auto expect = [](auto make, const std::string& part) {
    const std::string error = error_of(make);
    EXPECT_CONTAINS(error, part);
    EXPECT_CONTAINS(error, "keras_optimizers_test.cpp:");
  };
  expect([] { SGD(-0.5); }, "SGD: a learning rate of -0.5");
  expect([] { SGD(0.1, {.momentum = 1.5}); }, "SGD: momentum = 1.5");
  expect([] { RMSprop(0.1, {.rho = 1}); }, "RMSprop: rho = 1");
  expect([] { Adagrad(0.1, {.initial_accumulator_value = -1}); }, "Adagrad: initial_accumulator_value = -1");
  expect([] { Adadelta(0.1, {.rho = -1}); }, "Adadelta: rho = -1");
  expect([] { Adam(0.1, {.beta_1 = 1}); }, "Adam: beta_1 = 1");
  expect([] { AdamW(0.1, {.weight_decay = -1}); }, "AdamW: weight_decay = -1");
  expect([] { Adamax(0.1, {.beta_2 = 2}); }, "Adamax: beta_2 = 2");
  expect([] { Nadam(0.1, {.beta_2 = 2}); }, "Nadam: beta_2 = 2");
  expect([] { Lion(0.1, {.beta_1 = 0}); }, "Lion: beta_1 = 0");
  expect([] { Ftrl(0.1, {.learning_rate_power = 0.5}); }, "Ftrl: learning_rate_power = 0.5");
  expect([] { Ftrl(0.1, {.l1_regularization_strength = -2}); }, "Ftrl: l1_regularization_strength = -2");
  expect([] { Lamb(0.1, {.beta_1 = -1}); }, "Lamb: beta_1 = -1");
  expect([] { Adafactor(0.1, {.clip_threshold = 0}); }, "Adafactor: clip_threshold = 0");
  expect([] { Muon(0.1, {.exclude_layers = {"("}}); }, "Muon: exclude_layers: '(' is no regular expression");
  expect([] { ScheduleFreeAdamW(0.1, {.beta_1 = 0}); }, "ScheduleFreeAdamW: beta_1 = 0");
  expect([] { SGD(0.1, {.clipnorm = 1, .clipvalue = 1}); }, "SGD: gradients are clipped in more than one way");
  expect([] { SGD(0.1, {.clipnorm = 0}); }, "SGD: clipnorm = 0");
  expect([] { SGD(0.1, {.use_ema = true, .ema_momentum = 2}); }, "SGD: ema_momentum = 2");
  expect([] { SGD(0.1, {.ema_overwrite_frequency = 0}); }, "SGD: ema_overwrite_frequency = 0");
  expect([] { SGD(0.1, {.gradient_accumulation_steps = 1}); }, "SGD: gradient_accumulation_steps = 1");
  expect([] { SGD(0.1, {.loss_scale_factor = 0}); }, "SGD: loss_scale_factor = 0");
  expect([] { LossScaleOptimizer(SGD(0.1, {.loss_scale_factor = 2})); },
         "LossScaleOptimizer: optimizer 'sgd' has a loss_scale_factor of its own");
  expect([] { LossScaleOptimizer{Optimizer()}; }, "LossScaleOptimizer: the optimizer is undefined");
  expect([] { LossScaleOptimizer(SGD(), {.dynamic_growth_steps = 0}); }, "dynamic_growth_steps = 0");
}

TEST(KerasOptimizer, WrongUses) {
  keras::AdamW optimizer;
  Variable v(zeros({2}), {.name = "v"});
  optimizer.apply_gradients({ones({2})}, {v});
  EXPECT_CONTAINS(error_of([&] { optimizer.exclude_from_weight_decay({.var_list = {v}}); }),
                  "exclude_from_weight_decay: optimizer 'adamw' has made steps");
  EXPECT_CONTAINS(error_of([&] { keras::AdamW().exclude_from_weight_decay({.var_names = {"["}}); }),
                  "'[' is no regular expression");
  EXPECT_CONTAINS(error_of([&] { optimizer.apply_gradients({ones({2, 1})}, {v}); }), "does not fit 'v' of f32[2]");
  std::string error = error_of([&] { optimizer.apply_gradients({ones({3})}, {v}); });
  EXPECT_CONTAINS(error, "apply_gradients");
  EXPECT_CONTAINS(error, "keras_optimizers_test.cpp:");
  EXPECT_CONTAINS(error_of([] { keras::Optimizer().scale_loss(ones({})); }), "scale_loss: the optimizer is undefined");
}

// Last: what the tests above have compared.
TEST(KerasOptimizer, EveryCaseWasUsed) {
  if (compared == 0) GTEST_SKIP() << "the other tests did not run";
  EXPECT_EQ(values().left(), std::vector<std::string>());
  RecordProperty("compared", compared);
  std::printf("%d tensors compared; largest difference %.2g in f32, %.2g in f64\n", compared, worst_f32, worst_f64);
}

}  // namespace
