// Images turned, moved, zoomed and cut: the transform as Keras does it, and what chance decides.
#include <cmath>

#include "keras_layer_cases.h"

namespace stet {
namespace {

class KerasRandomImages : public LayerTest {
 protected:
  static KerasValues& values() {
    static KerasValues all("random_images");
    return all;
  }
};

const keras::CallOptions train{.training = true};
double number(const Tensor& x) { return cast(x, f64).item<double>(); }
keras::RandomFactor exactly(double factor) { return {factor, factor}; }

TEST_F(KerasRandomImages, TransformsAsKeras) {
  const Tensor images = values().at("images")["x"], one = values().at("images")["one"];
  for (const std::string row : {"same", "moved", "far", "zoomed", "turned", "sheared"})
    for (const std::string fill : {"constant", "nearest", "wrap", "reflect"})
      for (const std::string interpolation : {"bilinear", "nearest"}) {
        const std::string name = row + "_" + fill + "_" + interpolation;
        const KerasCase& from = values().at(name);
        const Tensor got = keras::affine_transform(
            images, from["transform"],
            {.interpolation = interpolation, .fill_mode = fill, .fill_value = fill == "constant" ? 0.5 : 0.0});
        ASSERT_NO_FATAL_FAILURE(expect_close(got, from["y"], 2e-5, name));
        if (row == "same") {
          EXPECT_TRUE(array_equal(got, images).item<bool>()) << name;
        }
      }
  const KerasCase& each = values().at("each");
  expect_close(keras::affine_transform(images, each["transform"], {.fill_mode = "reflect"}), each["y"], 2e-5, "each");
  const KerasCase& single = values().at("one");
  expect_close(keras::affine_transform(one, single["transform"], {.fill_mode = "wrap"}), single["y"], 2e-5, "one");
  const KerasCase& first = values().at("channels_first");
  expect_close(keras::affine_transform(moveaxis(images, -1, 1), first["transform"],
                                       {.fill_mode = "nearest", .data_format = "channels_first"}),
               first["y"], 2e-5, "channels_first");
}

TEST_F(KerasRandomImages, TypesOfImages) {
  const Tensor x = reshape(arange(12), {1, 3, 4, 1}), right = tensor({1.f, 0.f, -1.f, 0.f, 1.f, 0.f});
  for (DType dtype : {u8, i32, i64, f16, bf16, f32, f64}) {
    const Tensor moved = keras::affine_transform(cast(x, dtype), right);
    EXPECT_EQ(moved.dtype(), is_floating(dtype) ? dtype : f32);
    EXPECT_EQ(cast(moved, i64).to_vector<std::int64_t>(),
              (std::vector<std::int64_t>{0, 0, 1, 2, 0, 4, 5, 6, 0, 8, 9, 10}));
  }
  // A coordinate that is no number is outside.
  const Tensor nowhere = keras::affine_transform(cast(x, f32), tensor({1.f, 0.f, INFINITY, 0.f, 1.f, 0.f}),
                                                 {.interpolation = "nearest", .fill_value = 7});
  EXPECT_TRUE(all(nowhere == 7).item<bool>());
}

TEST_F(KerasRandomImages, GradientsReachThePixels) {
  const Tensor x = random::uniform({1, 3, 3, 1}), turn = tensor({0.9f, -0.2f, 0.3f, 0.2f, 0.9f, 0.1f});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = sum(keras::affine_transform(x, turn, {.fill_mode = "reflect"}));
  const Tensor d = tape.gradient(y, x);
  // The transform is linear in the pixels.
  EXPECT_NEAR(number(sum(d * x)), number(y), 1e-5);
  EXPECT_NEAR(number(sum(d)), 9, 1e-5);
}

TEST_F(KerasRandomImages, LayersAsKerasWhereNothingIsLeftToChance) {
  const Tensor images = values().at("images")["x"], one = values().at("images")["one"];
  auto check = [&](const std::string& name, const keras::Layer& layer) {
    const KerasCase& from = values().at("layer_" + name);
    expect_close(layer(images, train), from["y"], 2e-5, name);
    expect_close(layer(one, train), from["one"], 2e-5, name + " of one");
    expect_close(layer(images), images, 0, name + " in inference");
  };
  check("rotation", keras::RandomRotation(exactly(0.1)));
  check("rotation_back", keras::RandomRotation(exactly(-0.3), {.fill_mode = "constant", .fill_value = 0.25}));
  check("translation", keras::RandomTranslation(exactly(0.3), exactly(-0.2), {.fill_mode = "wrap"}));
  check("translation_nearest", keras::RandomTranslation(exactly(-0.4), exactly(0.3), {.interpolation = "nearest"}));
  check("zoom", keras::RandomZoom(exactly(0.4), exactly(-0.3)));
  check("zoom_both", keras::RandomZoom(exactly(-0.5), {.fill_mode = "nearest"}));
  const Tensor square = random::uniform({2, 5, 5, 1});
  expect_close(keras::RandomRotation(exactly(0.25))(square, train), rot90(square, 1, {1, 2}), 1e-5,
               "counter-clockwise");
  expect_close(keras::RandomTranslation(exactly(0.2), exactly(-0.4), {.fill_mode = "wrap"})(square, train),
               roll(square, {1, -2}, {1, 2}), 1e-5, "down and to the left");
}

/// How far every image of `moved` was moved along the columns of a ramp, which is as high as its column.
Tensor shifts(const Tensor& moved, int column) { return column - moved[{Range{}, 0, column, 0}]; }

TEST_F(KerasRandomImages, DrawsFromTheWholeRange) {
  const std::int64_t count = 600;
  const Tensor ramp = broadcast_to(reshape(cast(arange(40), f32), {1, 1, 40, 1}), {count, 3, 40, 1});
  struct {
    keras::RandomFactor factor;
    double lower, upper;
  } const all[] = {{0.2, -8, 8}, {{0.1, 0.3}, 4, 12}, {{0.3, 0.1}, 4, 12}, {-0.2, -8, 8}};
  for (const auto& [factor, lower, upper] : all) {
    const Tensor moved = shifts(keras::RandomTranslation(0, factor)(ramp, train), 20);
    EXPECT_NEAR(number(min(moved)), lower, 0.4);
    EXPECT_NEAR(number(max(moved)), upper, 0.4);
    EXPECT_NEAR(number(mean(moved)), (lower + upper) / 2, 0.8);
    EXPECT_NEAR(number(stddev(moved)), (upper - lower) / std::sqrt(12.0), 0.5);
  }
  // The slope of a zoomed ramp is the zoom.
  const Tensor wide = keras::RandomZoom(0, keras::RandomFactor(-0.4, 0.2))(ramp, train);
  const Tensor slope = wide[{Range{}, 0, 20, 0}] - wide[{Range{}, 0, 19, 0}];
  EXPECT_NEAR(number(min(slope)), 0.6, 0.02);
  EXPECT_NEAR(number(max(slope)), 1.2, 0.02);
  EXPECT_NEAR(number(mean(slope)), 0.9, 0.03);
  // Without a factor of its own, the width is zoomed as the height is.
  const Tensor tall = broadcast_to(reshape(cast(arange(9), f32), {1, 9, 1, 1}), {50, 9, 9, 1});
  const Tensor both = concat({tall, swapaxes(tall, 1, 2)}, -1);
  const Tensor zoomed = keras::RandomZoom(0.3)(both, train)[{Range{}, range(3, 6), range(3, 6)}];
  expect_close(zoomed[{Range{}, Range{}, Range{}, 0}], swapaxes(zoomed[{Range{}, Range{}, Range{}, 1}], 1, 2), 1e-5,
               "as much");
  EXPECT_GT(number(stddev(zoomed[{Range{}, 0, 0, 0}])), 0.05);
  // A turn of less than an eighth: the middle row's end moves by the sine.
  const Tensor rows = broadcast_to(reshape(cast(arange(21), f32), {1, 21, 1, 1}), {count, 21, 21, 1});
  const Tensor turned = keras::RandomRotation(0.1)(rows, train)[{Range{}, 10, 18, 0}] - 10;
  EXPECT_NEAR(number(max(turned)), 8 * std::sin(0.2 * M_PI), 0.2);
  EXPECT_NEAR(number(min(turned)), -8 * std::sin(0.2 * M_PI), 0.2);
  EXPECT_NEAR(number(mean(turned)), 0, 0.4);
}

TEST_F(KerasRandomImages, SeedsAndLayouts) {
  const Tensor x = random::uniform({6, 5, 7, 3}), first = moveaxis(x, -1, 1);
  auto make = [](const char* format) {
    const keras::RandomTransformOptions options{.seed = 9, .data_format = format};
    return std::vector<keras::Layer>{keras::RandomRotation(0.3, options), keras::RandomTranslation(0.3, 0.2, options),
                                     keras::RandomZoom(0.4, 0.3, options),
                                     keras::RandomCrop(3, 4, {.seed = 9, .data_format = format})};
  };
  const auto last = make("channels_last"), same = make("channels_last"), other = make("channels_first");
  for (std::size_t i = 0; i < last.size(); ++i) {
    const Tensor y = last[i](x, train);
    EXPECT_TRUE(array_equal(y, same[i](x, train)).item<bool>()) << i;
    expect_close(moveaxis(other[i](first, train), 1, -1), y, 0, "channels_first");
    EXPECT_FALSE(array_equal(last[i](x, train), y).item<bool>() && i < 3) << "another draw, " << i;
    EXPECT_EQ(last[i](cast(x * 9, u8), train).dtype(), f32);
  }
}

TEST_F(KerasRandomImages, Crops) {
  const Tensor x = broadcast_to(reshape(arange(9 * 11), {1, 9, 11, 1}), {3, 9, 11, 1});
  keras::RandomCrop crop(4, 6);
  std::vector<int> seen(6 * 6);
  for (int i = 0; i < 400; ++i) {
    const Tensor y = cast(crop(x, train), i64);
    ASSERT_EQ(y.shape().sizes(), (std::vector<std::int64_t>{3, 4, 6, 1}));
    const auto at = y.item<std::int64_t>({0, 0, 0, 0});
    const Dim row = at / 11, column = at % 11;
    ASSERT_TRUE(array_equal(y, slice(x, {0, row, column, 0}, {3, 4, 6, 1})).item<bool>()) << at;
    ++seen[static_cast<std::size_t>(at / 11 * 6 + at % 11)];
  }
  for (int times : seen) EXPECT_GT(times, 0);
  // The middle: the largest part of the target's shape, at its size.
  const Tensor floating = cast(x, f32);
  expect_close(crop(floating), resize(slice(floating, {0, 1, 0, 0}, {3, 7, 11, 1}), 4, 6), 1e-5, "inference");
  expect_close(keras::RandomCrop(9, 5)(floating, train), slice(floating, {0, 0, 3, 0}, {3, 9, 5, 1}), 1e-5,
               "as high as the images");
  expect_close(keras::RandomCrop(18, 22)(floating, train), keras::RandomCrop(18, 22)(floating), 0, "larger");
  EXPECT_EQ(crop(floating[0], train).shape().sizes(), (std::vector<std::int64_t>{4, 6, 1}));
}

TEST_F(KerasRandomImages, OneTraceForAllSizes) {
  for (const keras::Layer& layer :
       {keras::Layer(keras::RandomRotation(0.2)), keras::Layer(keras::RandomTranslation(0.2, 0.3)),
        keras::Layer(keras::RandomZoom(0.2)), keras::Layer(keras::RandomCrop(3, 2))}) {
    Function f = function("f(x)", [&](Tensor x) { return layer(x, train); });
    const bool crops = layer.name().starts_with("random_crop");
    for (std::int64_t size : {4, 2, 7, 1, 3})
      EXPECT_EQ(f(ones({size, size + 4, 5, 2})).shape().sizes(),
                (std::vector<std::int64_t>{size, crops ? 3 : size + 4, crops ? 2 : 5, 2}));
    EXPECT_EQ(f.trace_count(), 1) << layer.name();
  }
  Function f = function("f(x, t)", [](Tensor x, Tensor t) { return keras::affine_transform(x, t); });
  for (std::int64_t size : {3, 2, 5}) {
    const Tensor x = random::uniform({size, size + 2, 4, 1}), t = random::uniform({size, 6});
    expect_close(f(x, t), keras::affine_transform(x, t), 1e-5, "traced");
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(KerasRandomImages, AugmentsInModels) {
  keras::Sequential model{keras::Input({8, 8, 1}), keras::RandomRotation(0.1), keras::RandomTranslation(0.1, 0.1),
                          keras::RandomZoom(0.1),  keras::RandomCrop(6, 6),    keras::Flatten(),
                          keras::Dense(1)};
  model.compile({.optimizer = keras::SGD(1e-3), .loss = "mean_squared_error"});
  model.fit(random::uniform({20, 8, 8, 1}), ones({20, 1}), {.batch_size = 8, .epochs = 2, .verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 1);
}

TEST_F(KerasRandomImages, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::RandomRotation(1.5); }), "RandomRotation: a factor of 1.5\n  at ");
  EXPECT_CONTAINS(error_of([] { keras::RandomRotation(keras::RandomFactor(-2, 0)); }),
                  "RandomRotation: a factor from -2 to 0");
  EXPECT_CONTAINS(error_of([] { keras::RandomTranslation(0.1, NAN); }), "RandomTranslation: a width_factor of");
  EXPECT_CONTAINS(error_of([] { keras::RandomZoom(keras::RandomFactor(-1, 0)); }),
                  "RandomZoom: a height_factor from -1 to 0");
  EXPECT_CONTAINS(error_of([] { keras::RandomZoom(1); }), "RandomZoom: a height_factor of 1");
  EXPECT_CONTAINS(error_of([] { keras::RandomZoom(0.1, {.fill_mode = "mirror"}); }),
                  "RandomZoom: fill_mode is \"mirror\"");
  EXPECT_CONTAINS(error_of([] { keras::RandomRotation(0.1, {.interpolation = "cubic"}); }),
                  "RandomRotation: interpolation is \"cubic\"");
  EXPECT_CONTAINS(error_of([] { keras::RandomCrop(0, 3); }), "RandomCrop: height is 0");
  EXPECT_CONTAINS(error_of([] { keras::RandomCrop(2, 3, {.data_format = "last"}); }), "RandomCrop: data_format");
  EXPECT_CONTAINS(error_of([] {
                    keras::RandomRotation(0.1)(ones({2, 3}));
                  }),
                  "it takes [batch, height, width, channels]");
  EXPECT_CONTAINS(error_of([] {
                    keras::affine_transform(ones({3, 3}), ones({6}));
                  }),
                  "affine_transform: images f32[3,3]");
  EXPECT_CONTAINS(error_of([] {
                    keras::affine_transform(ones({2, 3, 3, 1}), ones({3, 6}));
                  }),
                  "affine_transform: a transform f32[3,6] for images f32[2,3,3,1]");
  EXPECT_CONTAINS(error_of([] {
                    keras::affine_transform(ones({2, 3, 3, 1}), ones({7}));
                  }),
                  "affine_transform: a transform f32[7] for images f32[2,3,3,1]");
}

TEST_F(KerasRandomImages, NoCaseIsLeft) {
  if (::testing::UnitTest::GetInstance()->test_to_run_count() < 11) GTEST_SKIP() << "some tests were left out";
  EXPECT_EQ(values().left(), std::vector<std::string>{});
}

}  // namespace
}  // namespace stet
