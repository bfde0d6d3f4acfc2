// ConvLSTM1D, ConvLSTM2D and ConvLSTM3D, compared with Keras's.
#include <gtest/gtest.h>

#include "keras_sequence_cases.h"
#include "stet/stet.h"

namespace stet {
namespace {

TEST(KerasConvLSTM, IsKerass) {
  keras::clear_session();
  SequenceCases cases("conv_lstm");
  // Any number of steps, and any size of signals and images.
  const SequenceCheck signals{.steps = {{1, 2}}, .model = true}, images{.steps = {{1, 2, 3}}, .model = true};
  cases.check("conv_lstm1d", keras::ConvLSTM1D(2, 3), signals);
  cases.check(
      "conv_lstm1d_same",
      keras::ConvLSTM1D(
          2, 3, {.strides = {2}, .padding = "same", .use_bias = false, .return_sequences = true, .return_state = true}),
      signals);
  cases.check("conv_lstm1d_dilated", keras::ConvLSTM1D(2, 2, {.dilation_rate = {2}, .go_backwards = true}), signals);
  cases.check("conv_lstm2d", keras::ConvLSTM2D(2, {2, 3}, {.return_sequences = true}), images);
  cases.check("conv_lstm2d_same",
              keras::ConvLSTM2D(2, 3, {.padding = "same", .activation = relu, .return_state = true}), images);
  const SequenceCheck volumes{.steps = {{1, 2, 3, 4}}, .model = true};
  cases.check("conv_lstm3d", keras::ConvLSTM3D(2, {2, 3, 2}, {.return_sequences = true}), volumes);
  cases.check("conv_lstm3d_same", keras::ConvLSTM3D(2, 2, {.strides = {1, 2, 1}, .padding = "same"}), volumes);
  EXPECT_EQ(cases.left(), std::vector<std::string>());
  cases.report();
}

TEST(KerasConvLSTM, DropsAndMasks) {
  random::seed(3);
  keras::ConvLSTM2D layer(2, 3, {.padding = "same", .dropout = 0.5, .recurrent_dropout = 0.5});
  Tensor x = random::normal({2, 3, 4, 4, 1});
  auto numbers = [](const Tensor& t) { return t.to_vector<float>(); };
  EXPECT_EQ(numbers(layer(x)), numbers(layer(x)));
  EXPECT_NE(numbers(layer(x, {.training = true})), numbers(layer(x, {.training = true})));
  // Steps that are masked might as well not be there.
  Tensor mask = tensor({{true, true, false}, {true, true, false}});
  expect_close(layer(x, {.mask = mask}), layer(x[{Range{}, Range{0, 2}}]), 1e-6, "masked");
}

TEST(KerasConvLSTM, SaysWhatIsWrong) {
  keras::clear_session();
  EXPECT_CONTAINS(error_of([] { keras::ConvLSTM1D(0, 3); }), "ConvLSTM1D: 0 filters");
  EXPECT_CONTAINS(error_of([] {
                    keras::ConvLSTM2D(1, {2, 3, 4});
                  }),
                  "ConvLSTM2D: kernel_size, strides and dilation_rate are positive");
  EXPECT_CONTAINS(error_of([] { keras::ConvLSTM2D(1, 2, {.padding = "causal"}); }),
                  "ConvLSTM2D: there is no padding 'causal'");
  EXPECT_CONTAINS(error_of([] { keras::ConvLSTM2D(1, 2, {.dropout = 2}); }), "ConvLSTM2D: a dropout of 2");
  EXPECT_CONTAINS(error_of([] {
                    keras::ConvLSTM2D(1, 2)(zeros({1, 2, 3, 4}));
                  }),
                  "ConvLSTM2D 'conv_lstm2d': its input f32[1,2,3,4] has 4 axes");
}

}  // namespace
}  // namespace stet
