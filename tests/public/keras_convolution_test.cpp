// Layers of convolutions: the values and gradients that Keras's have.
#include "keras_layer_cases.h"

namespace stet {
namespace {

LayerCases& cases() {
  static LayerCases* const cases = new LayerCases("convolutions");
  return *cases;
}
constexpr LayerCheck lengths = any_length;
class KerasConvolution : public LayerTest {};

TEST_F(KerasConvolution, Regular) {
  cases().check("conv1d", keras::Conv1D(4, 3), lengths);
  cases().check("conv1d_same", keras::Conv1D(4, 4, {.strides = 2, .padding = "same", .activation = relu}), lengths);
  cases().check("conv1d_causal", keras::Conv1D(4, 3, {.padding = "causal", .dilation_rate = 2}), lengths);
  cases().check("conv1d_causal_strides", keras::Conv1D(4, 2, {.strides = 2, .padding = "causal", .use_bias = false}),
                lengths);
  cases().check("conv1d_groups", keras::Conv1D(6, 3, {.groups = 2}), lengths);
  cases().check("conv2d", keras::Conv2D(3, 3), lengths);
  cases().check("conv2d_same", keras::Conv2D(3, {2, 3}, {.strides = {2, 1}, .padding = "same", .activation = "tanh"}),
                lengths);
  cases().check("conv2d_dilated", keras::Conv2D(3, {2, 3}, {.padding = "same", .dilation_rate = {1, 2}}), lengths);
  cases().check("conv2d_groups", keras::Conv2D(4, 3, {.groups = 2, .use_bias = false}), lengths);
  cases().check("conv3d", keras::Conv3D(2, 2), lengths);
  cases().check("conv3d_same", keras::Conv3D(2, {1, 2, 3}, {.strides = {1, 2, 1}, .padding = "same"}), lengths);
  cases().check("conv3d_groups", keras::Conv3D(4, 2, {.dilation_rate = {1, 2, 1}, .groups = 2}), lengths);
}

TEST_F(KerasConvolution, DepthwiseAndSeparable) {
  cases().check("depthwise_conv1d", keras::DepthwiseConv1D(3), lengths);
  cases().check("depthwise_conv1d_same",
                keras::DepthwiseConv1D(3, {.strides = 2, .padding = "same", .depth_multiplier = 2}), lengths);
  cases().check("depthwise_conv2d", keras::DepthwiseConv2D({2, 3}, {.activation = relu}), lengths);
  cases().check(
      "depthwise_conv2d_same",
      keras::DepthwiseConv2D(3, {.padding = "same", .depth_multiplier = 2, .dilation_rate = 2, .use_bias = false}),
      lengths);
  cases().check("separable_conv1d", keras::SeparableConv1D(4, 3, {.depth_multiplier = 2}), lengths);
  cases().check("separable_conv1d_same", keras::SeparableConv1D(4, 3, {.strides = 2, .padding = "same"}), lengths);
  cases().check("separable_conv2d", keras::SeparableConv2D(4, {2, 3}, {.activation = relu}), lengths);
  cases().check("separable_conv2d_same",
                keras::SeparableConv2D(4, 3, {.padding = "same", .dilation_rate = 2, .use_bias = false}), lengths);
}

TEST_F(KerasConvolution, Transposed) {
  cases().check("conv1d_transpose", keras::Conv1DTranspose(4, 3, {.strides = 2}), lengths);
  cases().check("conv1d_transpose_same", keras::Conv1DTranspose(4, 3, {.strides = 2, .padding = "same"}), lengths);
  cases().check("conv1d_transpose_dilated", keras::Conv1DTranspose(4, 3, {.dilation_rate = 2}), lengths);
  cases().check("conv1d_transpose_short", keras::Conv1DTranspose(4, 2, {.strides = 3}), lengths);
  cases().check("conv1d_transpose_output", keras::Conv1DTranspose(4, 3, {.strides = 3, .output_padding = 1}), lengths);
  cases().check("conv1d_transpose_output_same",
                keras::Conv1DTranspose(4, 3, {.strides = 3, .padding = "same", .output_padding = 2}), lengths);
  cases().check("conv2d_transpose", keras::Conv2DTranspose(3, {2, 3}, {.strides = {2, 1}, .activation = tanh}),
                lengths);
  cases().check("conv2d_transpose_same",
                keras::Conv2DTranspose(3, 3, {.strides = 2, .padding = "same", .output_padding = 1, .use_bias = false}),
                lengths);
  cases().check("conv3d_transpose", keras::Conv3DTranspose(2, 2, {.strides = {1, 2, 1}}), lengths);
  cases().check("conv3d_transpose_same", keras::Conv3DTranspose(2, 3, {.strides = 2, .padding = "same"}), lengths);
}

TEST_F(KerasConvolution, ChannelsFirst) {
  cases().check("conv2d_first",
                keras::Conv2D(3, 3, {.strides = 2, .padding = "same", .data_format = "channels_first"}));
  cases().check("conv1d_first", keras::Conv1D(3, 3, {.data_format = "channels_first"}));
  cases().check("depthwise_conv2d_first", keras::DepthwiseConv2D(3, {.data_format = "channels_first"}));
  cases().check("separable_conv2d_first", keras::SeparableConv2D(3, 3, {.data_format = "channels_first"}));
  cases().check("conv2d_transpose_first",
                keras::Conv2DTranspose(3, 3, {.strides = 2, .data_format = "channels_first"}));
  EXPECT_EQ(cases().left(), std::vector<std::string>{});
}

TEST_F(KerasConvolution, NarrowTypes) {
  keras::Conv2D layer(4, 3, {.dtype = "mixed_bfloat16"});
  Tensor y = layer(ones({1, 4, 4, 2}));
  EXPECT_EQ(y.dtype(), bf16);
  EXPECT_EQ(layer.weights()[0].variable.dtype(), f32);
  EXPECT_EQ(keras::Conv1D(2, 2, {.dtype = f64})(ones({1, 4, 2})).dtype(), f64);
}

TEST_F(KerasConvolution, IsTrained) {
  keras::Sequential model{keras::Input({8, 8, 1}), keras::Conv2D(4, 3, {.activation = relu}), keras::Flatten(),
                          keras::Dense(1)};
  model.compile({.optimizer = keras::Adam(1e-2), .loss = keras::losses::MeanSquaredError()});
  Tensor x = random::normal({60, 8, 8, 1}), y = mean(x, {1, 2});
  keras::History history = model.fit(x, y, {.batch_size = 16, .epochs = 10, .verbose = 0});
  EXPECT_LT(history["loss"].back(), history["loss"].front() / 2);
  EXPECT_EQ(model.train_function().trace_count(), 1);
}

TEST_F(KerasConvolution, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::Conv2D(0, 3); }), "Conv2D: filters is 0");
  EXPECT_CONTAINS(error_of([] { keras::Conv2D(4, {3, 3, 3}); }), "Conv2D: kernel_size has 3 numbers");
  EXPECT_CONTAINS(error_of([] { keras::Conv2D(4, {3, 3, 3}); }), "give one number, or 2 in braces: one for each");
  EXPECT_CONTAINS(error_of([] { keras::Conv1D(4, 3, {.strides = 0}); }), "Conv1D: strides is 0");
  EXPECT_CONTAINS(error_of([] { keras::Conv1D(4, 3, {.padding = "full"}); }),
                  "it is \"valid\", \"same\" or \"causal\"");
  EXPECT_CONTAINS(error_of([] { keras::Conv2D(4, 3, {.padding = "causal"}); }), "it is \"valid\" or \"same\"");
  EXPECT_CONTAINS(error_of([] { keras::Conv2D(4, 3, {.data_format = "nchw"}); }), "Conv2D: data_format is \"nchw\"");
  EXPECT_CONTAINS(error_of([] { keras::Conv2D(4, 3, {.strides = 2, .dilation_rate = 2}); }),
                  "Conv2D: strides and dilation_rate are both more than 1");
  EXPECT_CONTAINS(error_of([] { keras::Conv2D(4, 3, {.groups = 3}); }), "4 filters do not fall into 3 groups");
  EXPECT_CONTAINS(error_of([] { keras::DepthwiseConv2D(3, {.depth_multiplier = 0}); }), "depth_multiplier is 0");
  EXPECT_CONTAINS(error_of([] { keras::Conv1DTranspose(4, 3, {.strides = 2, .output_padding = 2}); }),
                  "Conv1DTranspose: output_padding 2 with a stride of 2");
  EXPECT_CONTAINS(error_of([] {
                    keras::Conv2D(4, 3, {.groups = 2})(ones({1, 5, 5, 3}));
                  }),
                  "3 channels do not fall into 2 groups\n  at ");
  EXPECT_CONTAINS(error_of([] { keras::Conv2D(4, 3)(ones({5, 5, 3})); }), "its input f32[5,5,3] has 3 axes");
  EXPECT_CONTAINS(error_of([] { keras::Conv2D(4, 3)(ones({5, 5, 3})); }), "it takes [batch, height, width, channels]");
  keras::Conv2D built(4, 3, {.name = "features"});
  built(ones({1, 5, 5, 3}));
  EXPECT_CONTAINS(error_of([&] {
                    built(ones({1, 5, 5, 2}));
                  }),
                  "Conv2D 'features': its input f32[1,5,5,2] has 2 channels; it was built for 3");
  // A call that is refused builds nothing.
  keras::Conv2D later(4, 3);
  EXPECT_CONTAINS(error_of([&] { later(ones({5, 5, 3})); }), "has 3 axes");
  EXPECT_EQ(later(ones({1, 5, 5, 3})).shape().sizes(), (std::vector<std::int64_t>{1, 3, 3, 4}));
}

}  // namespace
}  // namespace stet
