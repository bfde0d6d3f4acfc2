// Random changes of images: what they may become, how often, and that nothing happens in inference.
#include "keras_layer_cases.h"

namespace stet {
namespace {

class KerasAugmentation : public LayerTest {};

double number(const Tensor& x) { return cast(x, f64).item<double>(); }

TEST_F(KerasAugmentation, FlipsEveryOtherImage) {
  const Tensor x = random::uniform({400, 3, 4, 2});
  const std::pair<const char*, std::vector<int>> modes[] = {
      {"horizontal", {2}}, {"vertical", {1}}, {"horizontal_and_vertical", {1, 2}}};
  for (const auto& [mode, axes] : modes) {
    keras::RandomFlip layer(mode);
    expect_close(layer(x), x, 0, mode);
    const Tensor y = layer(x, {.training = true});
    const Tensor kept = all(y == x, {1, 2, 3}), turned = all(y == flip(x, axes), {1, 2, 3});
    EXPECT_TRUE(all(logical_or(kept, turned)).item<bool>()) << mode;
    EXPECT_NEAR(number(mean(cast(turned, f32))), 0.5, 0.1) << mode;
  }
  const Tensor first = moveaxis(x, -1, 1);
  keras::RandomFlip turns("horizontal", {.seed = 5, .data_format = "channels_first"}), same("horizontal", {.seed = 5});
  expect_close(moveaxis(turns(first, {.training = true}), 1, -1), same(x, {.training = true}), 0, "channels_first");
  EXPECT_EQ(keras::RandomFlip()(x[0], {.training = true}).shape().sizes(), (std::vector<std::int64_t>{3, 4, 2}));
}

TEST_F(KerasAugmentation, ContrastAndBrightness) {
  const Tensor x = random::uniform({300, 5, 5, 3}, {.minval = 100, .maxval = 150});
  const Tensor centre = mean(x, {1, 2}, {.keepdims = true});
  keras::RandomContrast contrast(0.4);
  expect_close(contrast(x), x, 0, "inference");
  const Tensor times = stddev(contrast(x, {.training = true}) - centre, {1, 2, 3}) / stddev(x - centre, {1, 2, 3});
  EXPECT_NEAR(number(mean(times)), 1, 0.06);
  EXPECT_NEAR(number(min(times)), 0.6, 0.02);
  EXPECT_NEAR(number(max(times)), 1.4, 0.02);
  const Tensor more = keras::RandomBrightness(keras::RandomFactor(0, 0.2))(x, {.training = true}) - x;
  expect_close(min(more, {1, 2, 3}), max(more, {1, 2, 3}), 1e-5, "one for an image");
  EXPECT_NEAR(number(min(more)), 0, 1.5);
  EXPECT_NEAR(number(max(more)), 51, 1.5);
  const Tensor cut = keras::RandomBrightness(1, {.value_range = {0, 150}})(x, {.training = true});
  EXPECT_EQ(number(min(cut)), 0);
  EXPECT_EQ(number(max(cut)), 150);
}

TEST_F(KerasAugmentation, OneTraceForAllSizes) {
  for (const keras::Layer& layer : {keras::Layer(keras::RandomFlip()), keras::Layer(keras::RandomContrast(0.2)),
                                    keras::Layer(keras::RandomBrightness(0.2))}) {
    Function f = function("f(x)", [&](Tensor x) { return layer(x, {.training = true}); });
    for (std::int64_t size : {4, 2, 7, 1, 3})
      EXPECT_EQ(f(ones({size, size + 1, 3, 2})).shape().sizes(), (std::vector<std::int64_t>{size, size + 1, 3, 2}));
    EXPECT_EQ(f.trace_count(), 1) << layer.name();
  }
}

TEST_F(KerasAugmentation, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::RandomFlip("up"); }), "RandomFlip: mode is \"up\"");
  EXPECT_CONTAINS(error_of([] { keras::RandomContrast(1.5); }), "RandomContrast: a factor of 1.5 to 1.5");
  EXPECT_CONTAINS(error_of([] { keras::RandomBrightness(2); }), "RandomBrightness: a factor from -2 to 2");
  EXPECT_CONTAINS(error_of([] {
                    keras::RandomBrightness(0.5, {.value_range = {1, 0}});
                  }),
                  "RandomBrightness: a value_range from 1 to 0");
  EXPECT_CONTAINS(error_of([] { keras::RandomFlip()(ones({2, 3})); }), "it takes [batch, height, width, channels]");
}

}  // namespace
}  // namespace stet
