// Layers that normalise: the values, gradients and statistics that Keras's have.
#include "keras_layer_cases.h"

namespace stet {
namespace {

class KerasNormalization : public LayerTest {};

TEST_F(KerasNormalization, GivesWhatKerasGives) {
  LayerCases cases("normalization");
  for (bool training : {false, true}) {
    const std::string mode = training ? "_training" : "";
    const LayerCheck how{.training = training}, steps{.training = training, .lengths = true};
    cases.check("batch" + mode, keras::BatchNormalization(), how);
    cases.check("batch_images" + mode, keras::BatchNormalization({.momentum = 0.9, .epsilon = 1e-2}), steps);
    cases.check("batch_axis" + mode, keras::BatchNormalization({.axis = 1}), how);
    cases.check("batch_plain" + mode, keras::BatchNormalization({.center = false, .scale = false}), how);
    cases.check("batch_scale" + mode, keras::BatchNormalization({.center = false}), how);
    cases.check("batch_masked" + mode, keras::BatchNormalization(), steps);
    cases.check("batch_renorm" + mode,
                keras::BatchNormalization({.momentum = 0.9, .renorm = true, .renorm_momentum = 0.8}), how);
    cases.check("batch_clipped" + mode,
                keras::BatchNormalization(
                    {.center = false, .renorm = true, .renorm_clipping = {.rmax = 1.2, .rmin = 0.9, .dmax = 0.3}}),
                steps);
    cases.check("batch_renorm_plain" + mode,
                keras::BatchNormalization({.center = false, .scale = false, .renorm = true}), steps);
    const LayerCheck wrapper{.training = training, .any_order = true};
    cases.check("spectral" + mode, keras::SpectralNormalization(keras::Dense(3)), wrapper);
    cases.check("spectral_conv" + mode, keras::SpectralNormalization(keras::Conv1D(3, 2), {.power_iterations = 3}),
                wrapper);
  }
  cases.check("layer", keras::LayerNormalization(), any_length);
  cases.check("layer_axes", keras::LayerNormalization({.axis = {1, 2}, .epsilon = 1e-5}));
  cases.check("layer_middle", keras::LayerNormalization({.axis = 1}));
  cases.check("layer_outer", keras::LayerNormalization({.axis = {1, 3}}));
  cases.check("layer_plain", keras::LayerNormalization({.center = false, .scale = false}), any_length);
  cases.check("layer_center", keras::LayerNormalization({.scale = false}), any_length);
  cases.check("layer_masked", keras::LayerNormalization(), any_length);
  cases.check("group", keras::GroupNormalization(2), any_length);
  cases.check("group_images", keras::GroupNormalization(3, {.epsilon = 1e-5}), any_length);
  cases.check("group_instance", keras::GroupNormalization(-1), any_length);
  cases.check("group_axis", keras::GroupNormalization(2, {.axis = 1}));
  cases.check("group_plain", keras::GroupNormalization(2, {.center = false, .scale = false}), any_length);
  cases.check("unit", keras::UnitNormalization(), any_length);
  cases.check("unit_axes", keras::UnitNormalization({.axis = {1, 2}}), any_length);
  cases.check("rms", keras::RMSNormalization(), any_length);
  cases.check("rms_epsilon", keras::RMSNormalization({.epsilon = 1e-2}));
  cases.check("rms_axes", keras::RMSNormalization({.axis = {1, 2}}));
  EXPECT_EQ(cases.left(), std::vector<std::string>{});
}

TEST_F(KerasNormalization, MovingStatisticsFollowInOneTrace) {
  keras::BatchNormalization layer({.momentum = 0.5});
  keras::Sequential model{keras::Input({2}), layer, keras::Dense(1)};
  model.compile({.optimizer = keras::SGD(0.0), .loss = keras::losses::MeanSquaredError()});
  const Tensor x = random::normal({64, 2}, {.mean = 3, .stddev = 2});
  model.fit(x, zeros({64, 1}), {.batch_size = 64, .epochs = 12, .verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 1);
  ASSERT_EQ(layer.non_trainable_variables().size(), 2u);
  expect_close(layer.non_trainable_variables()[0].read(), mean(x, 0), 5e-3, "moving_mean");
  expect_close(layer.non_trainable_variables()[1].read(), var(x, 0), 5e-3, "moving_variance");
  // Inference leaves them.
  const Tensor before = layer.non_trainable_variables()[0].read();
  model.predict(x * 5);
  expect_close(layer.non_trainable_variables()[0].read(), before, 0, "moving_mean");
}

TEST_F(KerasNormalization, NarrowTypesAreSummedInWideOnes) {
  // 60000 squared is no f16.
  for (const keras::Layer& layer : {keras::Layer(keras::LayerNormalization({.dtype = "mixed_float16"})),
                                    keras::Layer(keras::RMSNormalization({.dtype = "mixed_float16"})),
                                    keras::Layer(keras::BatchNormalization({.dtype = "mixed_float16"}))}) {
    const Tensor y = layer(tensor({{60000.f, -60000.f}, {-60000.f, 60000.f}}), {.training = true});
    EXPECT_EQ(y.dtype(), f16);
    expect_close(y, tensor({{1.f, -1.f}, {-1.f, 1.f}}), 1e-3, layer.name());
  }
}

TEST_F(KerasNormalization, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::BatchNormalization({.momentum = 2}); }), "BatchNormalization: a momentum of 2");
  EXPECT_CONTAINS(error_of([] { keras::BatchNormalization({.renorm_clipping = {.rmax = 1, .rmin = 2}}); }),
                  "BatchNormalization: renorm_clipping with a factor from 2 to 1");
  EXPECT_CONTAINS(error_of([] { keras::BatchNormalization({.renorm_clipping = {.dmax = -1}}); }),
                  "BatchNormalization: renorm_clipping with a dmax of -1");
  EXPECT_CONTAINS(error_of([] {
                    keras::BatchNormalization({.axis = 3})(ones({2, 3}));
                  }),
                  "axis 3 of an input with 2 axes\n  at ");
  EXPECT_CONTAINS(error_of([] { keras::BatchNormalization()(ones({3})); }), "its input f32[3] has 1 axis");
  keras::BatchNormalization built({.name = "norm"});
  built(ones({2, 3}));
  EXPECT_CONTAINS(error_of([&] {
                    built(ones({2, 4}));
                  }),
                  "BatchNormalization 'norm': its input f32[2,4] has 4 channels; it was built for 3");
  EXPECT_CONTAINS(error_of([&] {
                    keras::BatchNormalization()(ones({2, 3, 4}), {.training = true, .mask = tensor({true, true})});
                  }),
                  "a mask bool[2] of f32[2,3,4]");
  EXPECT_CONTAINS(error_of([] {
                    keras::GroupNormalization(3)(ones({2, 4}));
                  }),
                  "4 channels do not fall into 3 groups\n  at ");
  EXPECT_CONTAINS(error_of([] { keras::GroupNormalization(0); }), "GroupNormalization: groups is 0");
  EXPECT_CONTAINS(error_of([] { keras::LayerNormalization({.axis = Axes(std::vector<int>{})}); }),
                  "LayerNormalization: no axes");
  EXPECT_CONTAINS(error_of([] { keras::RMSNormalization({.axis = Axes(std::vector<int>{})}); }),
                  "RMSNormalization: no axes");
  EXPECT_CONTAINS(error_of([] { keras::SpectralNormalization(keras::Layer()); }), "its layer is undefined");
  EXPECT_CONTAINS(error_of([] { keras::SpectralNormalization(keras::Dense(2), {.power_iterations = 0}); }),
                  "SpectralNormalization: power_iterations is 0");
  EXPECT_CONTAINS(error_of([] { keras::SpectralNormalization(keras::Flatten())(ones({2, 4})); }), "has no kernel");
}

TEST_F(KerasNormalization, RegularizesAndConstrainsItsWeights) {
  for (const keras::Layer& layer :
       {keras::Layer(keras::BatchNormalization({.beta_regularizer = keras::regularizers::L1(0.5),
       .gamma_regularizer = keras::regularizers::L2(0.1),
       .gamma_constraint = keras::constraints::NonNeg()})),
        keras::Layer(keras::LayerNormalization({.beta_regularizer = keras::regularizers::L1(0.5),
        .gamma_regularizer = keras::regularizers::L2(0.1),
        .gamma_constraint = keras::constraints::NonNeg()})),
        keras::Layer(keras::GroupNormalization(1, {.beta_regularizer = keras::regularizers::L1(0.5),
                                                  .gamma_regularizer = keras::regularizers::L2(0.1),
                                                  .gamma_constraint = keras::constraints::NonNeg()}))}) {
    layer(ones({2, 3}));
    const std::vector<Variable> weights = layer.trainable_variables();
    weights[0].assign(tensor({1.f, 2.f, 3.f}));
    weights[1].assign(tensor({1.f, -1.f, 2.f}));
    float total = 0;
    for (const Tensor& loss : layer.losses()) total += loss.item<float>();
    EXPECT_NEAR(total, 1.4f + 2.f, 1e-5) << layer.name();
    keras::SGD(1.0).apply_gradients({tensor({2.f, 2.f, 2.f}), tensor({2.f, 2.f, 2.f})}, weights);
    EXPECT_EQ(weights[0].read().to_vector<float>(), (std::vector<float>{0, 0, 1})) << layer.name();
    EXPECT_EQ(weights[1].read().to_vector<float>(), (std::vector<float>{-1, -3, 0})) << layer.name();
  }
}

}  // namespace
}  // namespace stet
