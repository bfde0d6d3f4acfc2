// Layers that draw: nothing happens in inference, the statistics of training, other numbers in every call.
#include "keras_layer_cases.h"

namespace stet {
namespace {

class KerasNoise : public LayerTest {};

double number(const Tensor& x) { return cast(x, f64).item<double>(); }
std::vector<double> numbers(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

std::vector<keras::Layer> all_of_them() {
  return {keras::Dropout(0.3), keras::SpatialDropout1D(0.3), keras::GaussianNoise(0.5), keras::GaussianDropout(0.3),
          keras::AlphaDropout(0.3)};
}

TEST_F(KerasNoise, NothingHappensInInference) {
  const Tensor x = random::normal({2, 3, 4});
  for (const keras::Layer& layer : all_of_them()) {
    expect_close(layer(x), x, 0, layer.name());
    EXPECT_NE(numbers(layer(x, {.training = true})), numbers(x)) << layer.name();
    const Tensor mask = ones({2, 3}) > 0;
    EXPECT_TRUE(keras::mask_of(layer(keras::with_mask(x, mask), {.training = true})).defined()) << layer.name();
  }
}

TEST_F(KerasNoise, DrawsAnewInOneTraceForAllSizes) {
  for (const keras::Layer& layer : all_of_them()) {
    Function f = function("f(x)", [&](Tensor x) { return layer(x, {.training = true}); });
    for (std::int64_t size : {40, 30, 7, 1, 50})
      EXPECT_EQ(f(ones({size, 20, 3})).shape().sizes(), (std::vector<std::int64_t>{size, 20, 3}));
    EXPECT_NE(numbers(f(ones({40, 20, 3}))), numbers(f(ones({40, 20, 3})))) << layer.name();
    EXPECT_EQ(f.trace_count(), 1) << layer.name();
  }
}

TEST_F(KerasNoise, KeepsMeansAndHasItsVariance) {
  const Tensor x = ones({400, 50, 5}) * 2;
  // Of 100,000 draws (2,000 of whole channels): within four deviations of the mean.
  const Tensor dropped = keras::Dropout(0.3)(x, {.training = true});
  EXPECT_NEAR(number(mean(dropped)), 2, 0.02);
  EXPECT_NEAR(number(mean(cast(dropped == 0, f32))), 0.3, 0.01);
  const Tensor noisy = keras::GaussianNoise(0.5)(x, {.training = true});
  EXPECT_NEAR(number(mean(noisy)), 2, 0.01);
  EXPECT_NEAR(number(stddev(noisy)), 0.5, 0.01);
  const Tensor scaled = keras::GaussianDropout(0.2)(x, {.training = true});
  EXPECT_NEAR(number(mean(scaled)), 2, 0.02);
  EXPECT_NEAR(number(stddev(scaled)), 2 * 0.5, 0.02);
  // What selu gives for normal numbers has mean 0 and variance 1, before and after.
  const Tensor normal = keras::AlphaDropout(0.2)(random::normal({400, 250}), {.training = true});
  EXPECT_NEAR(number(mean(normal)), 0, 0.02);
  EXPECT_NEAR(number(stddev(normal)), 1, 0.02);
}

TEST_F(KerasNoise, DropsWholeChannels) {
  auto whole = [](const keras::Layer& layer, const Shape& shape, const std::vector<int>& axes) {
    const Tensor y = layer(ones(shape), {.training = true});
    expect_close(max(y, axes), min(y, axes), 0, layer.name());  // one value for a channel
    EXPECT_NEAR(number(mean(cast(y == 0, f32))), 0.5, 0.08) << layer.name();
  };
  whole(keras::SpatialDropout1D(0.5), {100, 4, 8}, {1});
  whole(keras::SpatialDropout2D(0.5), {100, 3, 2, 8}, {1, 2});
  whole(keras::SpatialDropout2D(0.5, {.data_format = "channels_first"}), {100, 8, 3, 2}, {2, 3});
  whole(keras::SpatialDropout3D(0.5), {100, 2, 3, 2, 8}, {1, 2, 3});
  whole(keras::SpatialDropout3D(0.5, {.data_format = "channels_first"}), {100, 8, 2, 3, 2}, {2, 3, 4});
  whole(keras::Dropout(0.5, {.noise_shape = {dyn, 1, dyn}}), {100, 4, 8}, {1});
  const Tensor limited = keras::AlphaDropout(0.5, {.noise_shape = {dyn, 1, 8}})(ones({9, 4, 8}), {.training = true});
  expect_close(max(limited, 1), min(limited, 1), 0, "AlphaDropout");
}

TEST_F(KerasNoise, ASeedIsAGeneratorOfItsOwn) {
  const Tensor x = ones({50, 4});
  auto two_calls = [&](const keras::Layer& layer) {
    const std::vector<double> one = numbers(layer(x, {.training = true}));
    return std::pair(one, numbers(layer(x, {.training = true})));
  };
  const auto first = two_calls(keras::Dropout(0.5, {.seed = 7}));
  random::uniform({3});  // does not move it
  const auto again = two_calls(keras::Dropout(0.5, {.seed = 7}));
  EXPECT_EQ(first, again);
  EXPECT_NE(first.first, first.second);
  EXPECT_NE(first.first, two_calls(keras::Dropout(0.5, {.seed = 8})).first);
  EXPECT_EQ(two_calls(keras::GaussianNoise(1, {.seed = 7})), two_calls(keras::GaussianNoise(1, {.seed = 7})));
  // In a trace, too.
  keras::Dropout seeded(0.5, {.seed = 7});
  Function f = function("f(x)", [&](Tensor t) { return seeded(t, {.training = true}); });
  const std::vector<double> one = numbers(f(x)), two = numbers(f(x));
  EXPECT_EQ(std::pair(one, two), first);
}

TEST_F(KerasNoise, GradientsGoWhereValuesStayed) {
  const Tensor x = random::normal({30, 4});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = keras::Dropout(0.5)(x, {.training = true});
  expect_close(tape.gradient(sum(y), x), where(y == 0, 0.f, 2.f), 1e-6, "dropout");
}

TEST_F(KerasNoise, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::Dropout(1.5); }), "Dropout: a rate of 1.5");
  EXPECT_CONTAINS(error_of([] { keras::SpatialDropout2D(-0.1); }), "SpatialDropout2D: a rate of -0.1");
  EXPECT_CONTAINS(error_of([] { keras::GaussianDropout(1); }), "from 0 to less than 1");
  EXPECT_CONTAINS(error_of([] { keras::AlphaDropout(1); }), "AlphaDropout: a rate of 1");
  EXPECT_CONTAINS(error_of([] { keras::GaussianNoise(-1); }), "GaussianNoise: a stddev of -1");
  EXPECT_CONTAINS(error_of([] { keras::SpatialDropout3D(0.1, {.data_format = "no"}); }),
                  "SpatialDropout3D: data_format is \"no\"");
  EXPECT_CONTAINS(error_of([] { keras::SpatialDropout1D(0.1)(ones({2, 3})); }), "it takes [batch, steps, channels]");
  EXPECT_CONTAINS(error_of([] {
                    keras::Dropout(0.5, {.noise_shape = {dyn, 1}})(ones({2, 3, 4}), {.training = true});
                  }),
                  "Dropout: noise_shape [?,1] for an input f32[2,3,4]");
  EXPECT_CONTAINS(error_of([] {
                    keras::Dropout(0.5, {.noise_shape = {dyn, 5}})(ones({2, 3}), {.training = true});
                  }),
                  "Dropout: noise_shape [?,5] for an input f32[2,3]");
}

}  // namespace
}  // namespace stet
