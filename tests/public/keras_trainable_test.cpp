// Freezing layers: what is trained, what fit() does when that changes, and transfer beside Keras's:
// tests/oracle/keras/make_weight_options.py.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "expect_error.h"
#include "explanations.h"
#include "keras_values.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;
using Names = std::vector<std::string>;

class KerasTrainable : public WithExplanations {
 protected:
  void SetUp() override {
    WithExplanations::SetUp();
    keras::clear_session();
    random::seed(5);
  }
};

Floats value(const Variable& variable) { return variable.read().to_vector<float>(); }
Names names(const std::vector<Variable>& variables) {
  Names out;
  for (const Variable& variable : variables) out.push_back(variable.name());
  return out;
}
std::vector<Floats> all_values(const keras::Layer& layer) {
  std::vector<Floats> out;
  for (const keras::Weight& weight : layer.weights()) out.push_back(value(weight.variable));
  return out;
}
const Tensor& samples() {
  static const Tensor x = random::stateless_normal({40, 3}, {1, 2});
  return x;
}
const Tensor& targets() {
  static const Tensor y = random::stateless_normal({40, 2}, {3, 4});
  return y;
}
keras::Sequential two_layers() { return {keras::Input({3}), keras::Dense(4), keras::Dense(2)}; }

// --- what is listed

TEST_F(KerasTrainable, AFrozenLayerListsItsWeightsAmongThoseThatAreNotTrained) {
  keras::Sequential model{keras::Input({3}), keras::Dense(4), keras::BatchNormalization()};
  keras::Layer dense = model.get_layer(0);
  EXPECT_TRUE(dense.trainable());
  dense.set_trainable(false);
  EXPECT_FALSE(dense.trainable());
  EXPECT_TRUE(model.trainable());
  EXPECT_EQ(names(model.trainable_variables()),
            (Names{"sequential/batch_normalization/gamma", "sequential/batch_normalization/beta"}));
  EXPECT_EQ(names(model.non_trainable_variables()),
            (Names{"sequential/dense/kernel", "sequential/dense/bias", "sequential/batch_normalization/moving_mean",
                   "sequential/batch_normalization/moving_variance"}));
  EXPECT_FALSE(model.weights()[0].trainable);
  EXPECT_TRUE(model.weights()[2].trainable);
  EXPECT_EQ(dense.trainable_variables().size(), 0u);
  dense.set_trainable(true);
  EXPECT_EQ(model.trainable_variables().size(), 4u);
  EXPECT_EQ(model.non_trainable_variables().size(), 2u) << "what a layer made not to be trained never is";
}

TEST_F(KerasTrainable, AModelFreezesWhatItHoldsAndAMemberMayBeGivenAnotherValue) {
  keras::Sequential base({keras::Dense(4), keras::Dense(4)}, {.name = "base"});
  keras::Sequential model{keras::Input({3}), base, keras::Dense(2)};
  base.set_trainable(false);
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  for (const keras::Layer& layer : base.layers()) EXPECT_FALSE(layer.trainable());
  // As in Keras: the model trains it, and the base, which is frozen, says that it trains nothing.
  base.get_layer(1).set_trainable(true);
  EXPECT_EQ(model.trainable_variables().size(), 4u);
  EXPECT_EQ(base.trainable_variables().size(), 0u);
  EXPECT_EQ(base.get_layer(1).trainable_variables().size(), 2u);
  model.set_trainable(false);
  EXPECT_EQ(model.trainable_variables().size(), 0u);
  EXPECT_EQ(model.non_trainable_variables().size(), 6u);
  model.get_layer(1).set_trainable(true);
  EXPECT_EQ(model.trainable_variables().size(), 0u) << "the model that is asked is frozen";
}

TEST_F(KerasTrainable, ALayerFrozenBeforeItIsBuiltHasFrozenWeights) {
  keras::Dense dense(4);
  dense.set_trainable(false);
  keras::Sequential model{keras::Input({3}), dense, keras::Dense(2)};
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  keras::LSTM lstm(2);
  lstm.set_trainable(false);
  lstm(ones({1, 2, 3}));
  EXPECT_EQ(lstm.non_trainable_variables().size(), 3u) << "its cell is frozen with it";
  // Keras trains the layers that this one makes when it is built.
  keras::MultiHeadAttention attention(2, 3);
  attention.set_trainable(false);
  keras::Input x({dyn, 4});
  keras::Model attentive(x, keras::Dense(1)(attention(x, x)));
  EXPECT_EQ(attentive.trainable_variables().size(), 2u);
  EXPECT_EQ(attentive.non_trainable_variables().size(), 8u);
  attention.set_trainable(true);
  EXPECT_EQ(attentive.trainable_variables().size(), 10u);
}

struct Scale : keras::CustomLayer {
  Variable gamma{ones({3})};
  keras::Dense inner{2};
  std::vector<bool> asked;
  STET_MEMBERS(gamma, inner)
  Tensor call(const Tensor& x, const keras::Context&) override {
    asked.push_back(trainable());
    return inner(x * gamma);
  }
};

TEST_F(KerasTrainable, CustomLayersAndVariablesThatTheyList) {
  auto layer = keras::make<Scale>();
  layer(ones({1, 3}));
  EXPECT_EQ(layer.trainable_variables().size(), 3u);
  layer->set_trainable(false);
  EXPECT_EQ(layer.trainable_variables().size(), 0u);
  layer(ones({1, 3}));
  EXPECT_EQ(layer->asked, (std::vector<bool>{true, false}));
  layer->inner.set_trainable(true);
  keras::Sequential model{layer};
  model(ones({1, 3}));
  EXPECT_EQ(model.trainable_variables().size(), 2u) << "those of the inner layer";
}

struct Tied : keras::CustomLayer {
  Variable shared;
  explicit Tied(Variable variable) : shared(std::move(variable)) {}
  STET_MEMBERS(shared)
  Tensor call(const Tensor& x, const keras::Context&) override { return x * mean(shared); }
};

TEST_F(KerasTrainable, AWeightThatTwoLayersHoldIsTrainedIfNeitherIsFrozen) {
  keras::Dense dense(3, {.use_bias = false});
  dense(ones({1, 3}));
  keras::Layer tied = Tied(dense.weights()[0].variable);
  keras::Sequential model{dense, tied};
  model(ones({1, 3}));
  EXPECT_EQ(model.trainable_variables().size(), 1u);
  tied.set_trainable(false);
  EXPECT_EQ(model.trainable_variables().size(), 0u);
  EXPECT_EQ(model.weights().size(), 1u);
}

TEST_F(KerasTrainable, AnUndefinedLayerCannotBeFrozen) {
  const std::string error = error_of([] { keras::Layer().set_trainable(false); });
  EXPECT_CONTAINS(error, "set_trainable: the layer is undefined");
  EXPECT_CONTAINS(error, "keras_trainable_test.cpp:");
  EXPECT_CONTAINS(error_of([] { keras::Layer().trainable(); }), "trainable: the layer is undefined");
}

TEST_F(KerasTrainable, TheSummaryCountsWhatIsTrained) {
  keras::Sequential model = two_layers();
  EXPECT_CONTAINS(model.summary_text(), " Trainable params: 26 (104.00 B)\n Non-trainable params: 0 (0.00 B)\n");
  model.get_layer(0).set_trainable(false);
  EXPECT_CONTAINS(model.summary_text(),
                  " Total params: 26 (104.00 B)\n Trainable params: 10 (40.00 B)\n"
                  " Non-trainable params: 16 (64.00 B)\n");
}

TEST_F(KerasTrainable, PenaltiesAreThoseOfTrainedWeightsAndOfAllOutputs) {
  keras::Dense dense(2, {.kernel_regularizer = "l2", .bias_regularizer = "l2", .activity_regularizer = "l2"});
  dense(ones({1, 3}));
  EXPECT_EQ(dense.losses().size(), 3u);
  dense.set_trainable(false);
  dense(ones({1, 3}));
  EXPECT_EQ(dense.losses().size(), 1u) << "as in Keras, what it gives is penalised still";
}

// --- what frozen layers do

TEST_F(KerasTrainable, AFrozenBatchNormalizationUsesItsStatisticsAndKeepsThem) {
  keras::BatchNormalization norm({.momentum = 0.5});
  const Tensor x = samples() * 3 + 1;
  const Tensor inference = norm(x);
  norm.set_trainable(false);
  expect_close(norm(x, {.training = true}), inference, 0, "as in inference");
  EXPECT_EQ(value(norm.weights()[2].variable), Floats(3, 0));
  Function traced = function("traced(x)", [=](Tensor given) { return norm(given, {.training = true}); });
  expect_close(traced(x), inference, 1e-6, "traced");
  norm.set_trainable(true);
  norm(x, {.training = true});
  EXPECT_NE(value(norm.weights()[2].variable), Floats(3, 0));
}

TEST_F(KerasTrainable, FitLeavesFrozenWeightsAsTheyAre) {
  keras::Sequential model{keras::Input({3}),
                          keras::Dense(4, {.kernel_regularizer = "l2", .kernel_constraint = "unit_norm"}),
                          keras::BatchNormalization(), keras::Dense(2)};
  model.get_layer(0).set_trainable(false);
  model.get_layer(1).set_trainable(false);
  model.compile({.optimizer = keras::AdamW(0.1, {.weight_decay = 0.1}), .loss = "mse"});
  const std::vector<Floats> before = all_values(model);
  model.fit(samples(), targets(), {.verbose = 0});
  const std::vector<Floats> after = all_values(model);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(after[i], before[i]) << i;
  EXPECT_NE(after[6], before[6]);
  EXPECT_EQ(model.optimizer().variables().size(), 2u + 2u * 2u) << "it keeps nothing of what is not trained";
}

TEST_F(KerasTrainable, AModelThatIsAllFrozenSaysSo) {
  keras::Sequential model = two_layers();
  model.compile({.optimizer = keras::SGD(0.1), .loss = "mse"});
  model.set_trainable(false);
  const std::vector<Floats> before = all_values(model);
  ::testing::internal::CaptureStderr();
  model.fit(samples(), targets(), {.verbose = 0});
  const std::string told_of_it = ::testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(told_of_it, "stet: Sequential 'sequential' has no weights to train: all of them are frozen, at ");
  EXPECT_CONTAINS(told_of_it, "fix: set_trainable(true) on the layers that are to learn");
  EXPECT_EQ(all_values(model), before);
}

// --- what fit() does when it changes

TEST_F(KerasTrainable, EverySetOfFrozenLayersHasOneTrace) {
  keras::Sequential model = two_layers();
  model.compile({.optimizer = keras::Adam(0.01), .loss = "mse"});
  auto fit = [&] { model.fit(samples(), targets(), {.batch_size = 16, .verbose = 0}); };
  fit();
  model.get_layer(0).set_trainable(false);
  fit();
  EXPECT_EQ(model.train_function().trace_count(), 2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_CONTAINS(told(), "stet: tracing 'train_step' again (trace 2), called at " + std::string(__FILE__));
  EXPECT_CONTAINS(told(),
                  "argument 2 'model' Sequential 'sequential' of dense, dense_1 -> "
                  "Sequential 'sequential' of dense, dense_1; frozen: dense   it was changed");
  model.get_layer(0).set_trainable(true);
  fit();
  EXPECT_EQ(model.train_function().trace_count(), 2) << "that of the first fit";
  EXPECT_EQ(events.size(), 1u);
  model.get_layer(0).set_trainable(false);
  fit();
  EXPECT_EQ(model.train_function().trace_count(), 2) << "that of the second";
  model.get_layer(1).set_trainable(false);
  model.get_layer(0).set_trainable(true);
  fit();
  EXPECT_EQ(model.train_function().trace_count(), 3);
  EXPECT_CONTAINS(told(), "frozen: dense_1; no longer frozen: dense   it was changed");
  model.set_trainable(false);
  model.evaluate(samples(), targets());
  model.predict(samples());
  EXPECT_EQ(model.test_function().trace_count(), 1);
  EXPECT_EQ(model.predict_function().trace_count(), 1);
  ::testing::internal::CaptureStderr();
  fit();
  ::testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(told(), "of dense, dense_1; frozen: all of it; no longer frozen: dense_1   it was changed");
}

TEST_F(KerasTrainable, NestedLayersAreNamedByTheirPaths) {
  keras::Sequential base({keras::Dense(4, {.name = "a"}), keras::Dense(4, {.name = "b"})}, {.name = "base"});
  keras::Sequential model{keras::Input({3}), base, keras::Dense(2)};
  model.compile({.optimizer = keras::SGD(0.01), .loss = "mse"});
  model.fit(samples(), targets(), {.verbose = 0});
  base.get_layer("a").set_trainable(false);
  model.fit(samples(), targets(), {.verbose = 0});
  EXPECT_CONTAINS(told(), "of base, dense; frozen: base/a   it was changed");
  base.set_trainable(false);
  model.fit(samples(), targets(), {.verbose = 0});
  EXPECT_CONTAINS(told(), "of base, dense; frozen: base; no longer frozen: base/a   it was changed");
}

/// The same training, op by op and traced, gives the same weights: no step is stale.
TEST_F(KerasTrainable, StepsAreNeverStale) {
  auto trained = [&](bool eagerly) {
    keras::clear_session();
    random::seed(9);
    keras::Sequential model{keras::Input({3}), keras::Dense(4, {.activation = tanh, .kernel_regularizer = "l2"}),
                            keras::BatchNormalization(), keras::Dense(2)};
    model.compile({.optimizer = keras::Adam(0.05), .loss = "mse", .run_eagerly = eagerly});
    std::vector<double> losses;
    auto fit = [&] {
      const keras::History history = model.fit(samples(), targets(), {.epochs = 2, .verbose = 0, .shuffle = false});
      for (double loss : history["loss"]) losses.push_back(loss);
      losses.push_back(model.evaluate(samples(), targets())["loss"]);
    };
    fit();
    model.get_layer(0).set_trainable(false);
    fit();
    model.get_layer(1).set_trainable(false);
    fit();
    model.set_trainable(true);
    fit();
    for (const Variable& slot : model.optimizer().variables())
      losses.push_back(sum(abs(cast(slot.read(), f64))).item<double>());
    EXPECT_EQ(eagerly ? 3 : model.train_function().trace_count(), 3);
    return losses;
  };
  const std::vector<double> traced = trained(false), eager = trained(true);
  ASSERT_EQ(traced.size(), eager.size());
  for (std::size_t i = 0; i < traced.size(); ++i)
    EXPECT_NEAR(traced[i], eager[i], 2e-5 * (1 + std::abs(eager[i]))) << i;
}

TEST_F(KerasTrainable, TheOptimizerKeepsWhatItKnowsOfFrozenWeights) {
  keras::Sequential model = two_layers();
  model.compile({.optimizer = keras::SGD(0.01, {.momentum = 0.9}), .loss = "mse"});
  model.fit(samples(), targets(), {.verbose = 0});
  const std::vector<Variable> kept = model.optimizer().variables();
  ASSERT_EQ(kept.size(), 2u + 4u);
  const Floats momentum = value(kept[2]), other = value(kept[4]);
  model.get_layer(0).set_trainable(false);
  model.fit(samples(), targets(), {.verbose = 0});
  EXPECT_EQ(value(kept[2]), momentum);
  EXPECT_NE(value(kept[4]), other);
  model.get_layer(0).set_trainable(true);
  model.fit(samples(), targets(), {.verbose = 0});
  EXPECT_NE(value(kept[2]), momentum);
  EXPECT_EQ(model.optimizer().variables().size(), kept.size());
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 3 * 2);
}

/// Freezes a layer after some batch.
struct FreezeAt : keras::CustomCallback {
  keras::Layer layer;
  std::int64_t batch;
  Floats then;
  FreezeAt(keras::Layer layer, std::int64_t batch) : layer(std::move(layer)), batch(batch) {}
  void on_train_batch_end(std::int64_t number, const keras::BatchLogs&) override {
    if (number != batch || !layer.trainable()) return;
    layer.set_trainable(false);
    then = value(layer.weights()[0].variable);
  }
};

TEST_F(KerasTrainable, ACallbackFreezesFromTheNextBatchOn) {
  for (bool eagerly : {false, true}) {
    keras::Sequential model{keras::Dense(4), keras::Dense(2)};  // built by the first batch
    model.compile({.optimizer = keras::SGD(0.1), .loss = "mse", .run_eagerly = eagerly});
    auto freeze = std::make_shared<FreezeAt>(model.get_layer(0), 1);
    model.fit(samples(), targets(),
              {.batch_size = 8, .epochs = 2, .verbose = 0, .callbacks = {keras::Callback(freeze)}});
    ASSERT_EQ(freeze->then.size(), 12u);
    EXPECT_EQ(value(model.weights()[0].variable), freeze->then);
    EXPECT_EQ(eagerly ? 2 : model.train_function().trace_count(), 2);
    model.get_layer(0).set_trainable(true);
    model.fit(samples(), targets(), {.verbose = 0});
    EXPECT_NE(value(model.weights()[0].variable), freeze->then);
  }
}

struct OwnStep : keras::CustomModel {
  keras::Dense first{4}, second{2};
  STET_MEMBERS(first, second)
  Tensor call(const Tensor& x, const keras::Context&) override { return second(first(x)); }
  keras::Logs train_step(const keras::Batch& batch) override {
    GradientTape tape;
    const Tensor loss = mean(square(predict_on(batch.x, {.training = true}) - batch.y));
    optimizer().apply_gradients(tape.gradient(loss, trainable_variables()), trainable_variables());
    return {{"loss", loss}};
  }
};

TEST_F(KerasTrainable, AStepOfOnesOwnTrainsWhatIsNotFrozen) {
  auto model = keras::make<OwnStep>();
  model.compile({.optimizer = keras::SGD(0.1)});
  model.fit(samples(), targets(), {.verbose = 0});
  model->first.set_trainable(false);
  const std::vector<Floats> before = all_values(model);
  model.fit(samples(), targets(), {.verbose = 0});
  const std::vector<Floats> after = all_values(model);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_NE(after[2], before[2]);
  EXPECT_CONTAINS(told(), "OwnStep 'own_step' of dense, dense_1; frozen: first   it was changed");
}

TEST_F(KerasTrainable, AFunctionThatTakesTheModelSeesThatItIsFrozen) {
  keras::Sequential model = two_layers();
  Function count = function("count(m, x)", [](keras::Sequential m, Tensor x) {
    return sum(x) * 0 + static_cast<double>(m.trainable_variables().size());
  });
  EXPECT_EQ(count(model, ones({1})).item<float>(), 4);
  model.set_trainable(false);
  EXPECT_EQ(count(model, ones({1})).item<float>(), 0);
  EXPECT_CONTAINS(told(), "argument 0 'm'  Sequential 'sequential' -> Sequential 'sequential'   it was changed");
}

TEST_F(KerasTrainable, AFunctionThatTakesTheModelSeesThatALayerInsideIsFrozen) {
  keras::Sequential base{keras::Dense(4), keras::Dense(4)};
  keras::Sequential model{keras::Input({3}), base, keras::Dense(2)};
  Function count = function("count(m, x)", [](keras::Sequential m, Tensor x) {
    return sum(x) * 0 + static_cast<double>(m.trainable_variables().size());
  });
  EXPECT_EQ(count(model, ones({1})).item<float>(), 6);
  base.get_layer(1).set_trainable(false);
  EXPECT_EQ(count(model, ones({1})).item<float>(), 4);
  EXPECT_CONTAINS(told(), "argument 0 'm'  Sequential 'sequential_1' -> Sequential 'sequential_1'   it was changed");
  base.get_layer(1).set_trainable(false);
  EXPECT_EQ(count(model, ones({1})).item<float>(), 4);
  EXPECT_EQ(count.trace_count(), 2) << "what was frozen already is no change";
}

TEST_F(KerasTrainable, ALayerOutlivesTheModelsThatHeldIt) {
  keras::Dense dense(2);
  for (int i = 0; i < 3; ++i) {
    keras::Sequential model{keras::Input({3}), dense};
    EXPECT_EQ(model.weights().size(), 2u);
  }
  dense.set_trainable(false);
  EXPECT_EQ(dense.trainable_variables().size(), 0u);
}

// --- beside Keras

void check_transfer(const std::string& name, const std::function<keras::Optimizer()>& optimizer) {
  KerasValues values("weight_options");
  const KerasCase& one = values.at(name);
  keras::Sequential base(
      {keras::Dense(4, {.activation = "tanh",
                        .kernel_regularizer = keras::regularizers::L2(0.05),
                        .activity_regularizer = keras::regularizers::L2(0.02),
                        .name = "a"}),
       keras::BatchNormalization({.momentum = 0.5, .name = "b"}),
       keras::Dense(3, {.activation = "tanh", .kernel_constraint = keras::constraints::MaxNorm(0.5), .name = "c"})},
      {.name = "base"});
  keras::Sequential model{keras::Input({3}), base,
                          keras::Dense(2, {.kernel_regularizer = keras::regularizers::L1(0.01), .name = "head"})};
  const std::vector<keras::Weight> weights = model.weights();
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i].variable.assign(one["weight_" + std::to_string(i)]);
  std::vector<double> losses, tests;
  KerasComparison compared;
  for (bool trainable : {false, true}) {
    base.set_trainable(trainable);
    model.compile({.optimizer = optimizer(), .loss = "mse"});
    const keras::History history = model.fit(one["x"], one["y"], {.batch_size = 8, .epochs = 2, .verbose = 0});
    for (double loss : history["loss"]) losses.push_back(loss);
    EXPECT_EQ(model.train_function().trace_count(), 1);
    tests.push_back(model.evaluate(one["x"], one["y"])["loss"]);
    for (std::size_t i = 0; i < weights.size(); ++i)
      compared.close(weights[i].variable.read(), one[(trainable ? "tuned_" : "frozen_") + std::to_string(i)], 2e-5,
                     weights[i].path);
  }
  compared.close(tensor(losses), one["losses"], 2e-5, "losses of steps");
  compared.close(tensor(tests), one["tests"], 2e-5, "losses of tests");
  std::printf("%s: %d tensors compared; largest difference %.2g\n", name.c_str(), compared.tensors(),
              compared.largest());
}

TEST_F(KerasTrainable, TransferAsInKeras) {
  check_transfer("transfer sgd", [] { return keras::SGD(0.125, {.weight_decay = 0.02}); });
  check_transfer("transfer adam", [] { return keras::Adam(0.05, {.weight_decay = 0.02}); });
}

}  // namespace
