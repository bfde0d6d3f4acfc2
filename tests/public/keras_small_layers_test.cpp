// Identity, ActivityRegularization, and SwapEMAWeights as Keras does it (make_swap_ema.py).
#include "keras_layer_cases.h"

namespace stet {
namespace {

class KerasSmallLayers : public LayerTest {};

TEST_F(KerasSmallLayers, IdentityGivesWhatItGets) {
  const Tensor x = random::uniform({2, 3}), mask = tensor({{true, false, true}, {true, true, true}});
  keras::Identity layer;
  EXPECT_TRUE(array_equal(layer(x), x).item<bool>());
  EXPECT_TRUE(array_equal(keras::mask_of(layer(keras::with_mask(x, mask))), mask).item<bool>());
  EXPECT_EQ(layer(tensor({1, 2})).dtype(), i32);
  EXPECT_EQ(layer.weights().size(), 0U);
  keras::Sequential model{keras::Input({3}), layer, keras::Dense(1)};
  EXPECT_EQ(model(x).shape().sizes(), (std::vector<std::int64_t>{2, 1}));
}

TEST_F(KerasSmallLayers, ActivityRegularizationAddsToTheLoss) {
  keras::ActivityRegularization layer({.l1 = 0.1, .l2 = 0.01});
  const Tensor x = tensor({{1.f, -2.f}, {3.f, 0.f}});
  EXPECT_TRUE(array_equal(layer(x), x).item<bool>());
  ASSERT_EQ(layer.losses().size(), 1U);
  EXPECT_NEAR(layer.losses()[0].item<float>(), (0.1 * 6 + 0.01 * 14) / 2, 1e-6);  // of two samples
  layer(zeros({0, 2}));
  EXPECT_EQ(layer.losses()[0].item<float>(), 0);
  // It is a part of what a model is trained by: outputs shrink, although every one is right.
  keras::Sequential model{keras::Input({2}), keras::Dense(1, {.use_bias = false, .kernel_initializer = "ones"}),
                          keras::ActivityRegularization({.l2 = 0.5})};
  model.compile({.optimizer = keras::SGD(0.01), .loss = "mean_squared_error"});
  const Tensor y = sum(x, -1, {.keepdims = true});
  keras::History history = model.fit(x, y, {.batch_size = 2, .epochs = 1, .verbose = 0});
  EXPECT_NEAR(history["loss"][0], 0.5 * (1 + 9) / 2, 1e-5);
  EXPECT_LT(model(x).item<float>({1, 0}), 3.f);
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_CONTAINS(error_of([] { keras::ActivityRegularization({.l1 = NAN}); }), "l1");
}

TEST_F(KerasSmallLayers, SwapEMAWeights) {
  KerasValues values("swap_ema");
  const KerasCase& data = values.at("data");
  for (const std::string name : {"none", "swap", "swap_on_epoch"})
    for (const bool wrapped : {false, true}) {
      SCOPED_TRACE(name);
      const KerasCase& expected = values.at(name);
      keras::Sequential model{keras::Input({3}), keras::Dense(1, {.use_bias = false})};
      model.set_weights({data["kernel"]});
      keras::Optimizer optimizer = keras::SGD(0.1, {.use_ema = true, .ema_momentum = 0.7});
      if (wrapped) optimizer = keras::LossScaleOptimizer(optimizer, {.initial_scale = 2});
      model.compile({.optimizer = optimizer, .loss = "mean_squared_error"});
      std::vector<Tensor> seen;
      std::vector<keras::Callback> callbacks;
      if (name != "none") callbacks.push_back(keras::SwapEMAWeights({.swap_on_epoch = name == "swap_on_epoch"}));
      callbacks.push_back(keras::LambdaCallback(
          {.on_epoch_end = [&](int, keras::EpochLogs&) { seen.push_back(model.get_weights()[0]); }}));
      keras::History history = model.fit(data["x"], data["y"],
                                         {.batch_size = 2,
                                          .epochs = 4,
                                          .verbose = 0,
                                          .callbacks = callbacks,
                                          .validation_data = keras::Data(data["x"], data["y"]),
                                          .shuffle = false});
      expect_close(tensor(history["loss"]), expected["loss"], 1e-5, "loss");
      expect_close(tensor(history["val_loss"]), expected["val_loss"], 1e-5, "val_loss");
      expect_close(stack(seen), expected["seen"], 1e-5, "after epochs");
      expect_close(model.get_weights()[0], expected["kernel"], 1e-5, "after fit");
    }
}

TEST_F(KerasSmallLayers, SwapEMAWeightsBringsWeightsBack) {
  KerasValues values("swap_ema");
  const KerasCase& data = values.at("data");
  keras::Sequential model{keras::Input({3}), keras::Dense(1, {.use_bias = false})};
  model.compile({.optimizer = keras::SGD(0.1, {.use_ema = true}), .loss = "mean_squared_error"});
  model.fit(data["x"], data["y"], {.batch_size = 2, .epochs = 2, .verbose = 0});
  const Variable kernel = model.trainable_variables()[0];
  const Tensor average = kernel.read();  // as fit() left it
  kernel.assign(average * 2);
  keras::SwapEMAWeights swap;
  const Tensor predicted = model.predict(data["x"], {.verbose = 0, .callbacks = {swap}});
  expect_close(predicted, matmul(data["x"], average), 1e-5, "predicts with the averages");
  expect_close(kernel.read(), average * 2, 0, "and brings the weights back");
  model.evaluate(data["x"], data["y"], {.verbose = 0, .callbacks = {swap}});
  expect_close(kernel.read(), average * 2, 0, "after evaluate too");
  model.compile({.optimizer = keras::SGD(0.1), .loss = "mean_squared_error"});
  EXPECT_CONTAINS(error_of([&] { model.evaluate(data["x"], data["y"], {.verbose = 0, .callbacks = {swap}}); }),
                  "SwapEMAWeights: the optimizer 'sgd' keeps no averages\n  at ");
}

}  // namespace
}  // namespace stet
