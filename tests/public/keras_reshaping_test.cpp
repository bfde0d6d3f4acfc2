// Layers that put elements elsewhere, those that make data ready, and Lambda.
#include "keras_layer_cases.h"

namespace stet {
namespace {

LayerCases& cases() {
  static LayerCases* const cases = new LayerCases("reshaping");
  return *cases;
}
class KerasReshaping : public LayerTest {};

TEST_F(KerasReshaping, Shapes) {
  cases().check("reshape", keras::Reshape({3, 4}));
  cases().check("reshape_open", keras::Reshape({-1, 2}), any_length);
  cases().check("permute", keras::Permute({2, 1}), any_length);
  cases().check("permute_three", keras::Permute({3, 1, 2}), any_length);
  cases().check("repeat_vector", keras::RepeatVector(3), any_length);
  cases().check("up_sampling1d", keras::UpSampling1D(3), any_length);
  cases().check("up_sampling2d", keras::UpSampling2D({2, 3}), any_length);
  cases().check("up_sampling2d_bilinear", keras::UpSampling2D(2, {.interpolation = "bilinear"}), any_length);
  cases().check("up_sampling2d_bicubic", keras::UpSampling2D(2, {.interpolation = "bicubic"}), any_length);
  cases().check("up_sampling2d_first", keras::UpSampling2D(2, {.data_format = "channels_first"}), any_length);
  cases().check("up_sampling3d", keras::UpSampling3D({2, 1, 3}), any_length);
  cases().check("up_sampling3d_first", keras::UpSampling3D(2, {.data_format = "channels_first"}), any_length);
}

TEST_F(KerasReshaping, Margins) {
  cases().check("zero_padding1d", keras::ZeroPadding1D(2), any_length);
  cases().check("zero_padding1d_sides", keras::ZeroPadding1D({1, 3}), any_length);
  cases().check("zero_padding2d", keras::ZeroPadding2D({1, 2}), any_length);
  cases().check("zero_padding2d_sides", keras::ZeroPadding2D({{1, 0}, {2, 3}}), any_length);
  cases().check("zero_padding2d_first", keras::ZeroPadding2D(1, {.data_format = "channels_first"}), any_length);
  cases().check("zero_padding3d", keras::ZeroPadding3D({1, 0, 2}), any_length);
  cases().check("zero_padding3d_sides", keras::ZeroPadding3D({{1, 0}, {0, 2}, {1, 1}}), any_length);
  cases().check("cropping1d", keras::Cropping1D(1), any_length);
  cases().check("cropping1d_sides", keras::Cropping1D({1, 2}), any_length);
  cases().check("cropping2d", keras::Cropping2D({1, 2}), any_length);
  cases().check("cropping2d_sides", keras::Cropping2D({{1, 0}, {2, 3}}), any_length);
  cases().check("cropping2d_first", keras::Cropping2D(1, {.data_format = "channels_first"}), any_length);
  cases().check("cropping3d", keras::Cropping3D({{1, 0}, {0, 2}, {1, 1}}), any_length);
}

TEST_F(KerasReshaping, Preprocessing) {
  for (const char* method : {"nearest", "bilinear", "bicubic"})
    cases().check(std::string("resizing_") + method, keras::Resizing(5, 3, {.interpolation = method}), any_length);
  cases().check("resizing_first", keras::Resizing(5, 3, {.data_format = "channels_first"}), any_length);
  cases().check("resizing_crop", keras::Resizing(4, 3, {.crop_to_aspect_ratio = true}), any_length);
  cases().check("resizing_crop_tall", keras::Resizing(3, 5, {.crop_to_aspect_ratio = true}), any_length);
  cases().check("resizing_pad", keras::Resizing(4, 3, {.pad_to_aspect_ratio = true, .fill_value = 0.5}), any_length);
  cases().check("resizing_pad_tall", keras::Resizing(3, 5, {.pad_to_aspect_ratio = true}), any_length);
  cases().check("center_crop", keras::CenterCrop(3, 2), any_length);
  cases().check("center_crop_small", keras::CenterCrop(6, 4));
  cases().check("center_crop_first", keras::CenterCrop(3, 2, {.data_format = "channels_first"}), any_length);
  cases().check("rescaling", keras::Rescaling(1 / 255.0, -0.5), any_length);
  cases().check("rescaling_integers", keras::Rescaling(1 / 127.5, -1), any_length);
  const Tensor mean = tensor({0.5f, -1.f, 2.f}), variance = tensor({1.f, 4.f, 0.25f});
  cases().check("normalization_given", keras::Normalization(-1, {.mean = mean, .variance = variance}), any_length);
  cases().check("normalization_inverted",
                keras::Normalization(-1, {.mean = mean, .variance = variance, .invert = true}), any_length);
  cases().check("normalization_middle", keras::Normalization(1, {.mean = mean, .variance = variance}));
  // One image alone.
  const Tensor images = random::normal({2, 4, 6, 3});
  expect_close(keras::Resizing(5, 3)(images[1]), keras::Resizing(5, 3)(images)[1], 0, "one image");
}

TEST_F(KerasReshaping, AdaptFindsMeanAndVariance) {
  const std::pair<const char*, Axes> kept[] = {{"adapt_last", -1}, {"adapt_two", {1, 2}}, {"adapt_all", Axes{}}};
  for (const auto& [name, axes] : kept) {
    const KerasCase& one = cases().at(name);
    keras::Normalization layer(axes);
    layer.adapt(one["data"]);
    const std::vector<keras::Weight> weights = layer.weights();
    ASSERT_EQ(weights.size(), 3u);
    EXPECT_TRUE(layer.trainable_variables().empty());
    expect_close(weights[0].variable.read(), one["mean"], 1e-5, name);
    expect_close(weights[1].variable.read(), one["variance"], 1e-5, name);
    expect_close(layer(one["data"]), one["y"], 1e-5, name);
    layer.adapt(one["data"] * 2);  // anew, not on top
    expect_close(weights[0].variable.read(), one["mean"] * 2, 1e-5, name);
  }
  EXPECT_EQ(cases().left(), std::vector<std::string>{});
}

TEST_F(KerasReshaping, LambdaIsAFunction) {
  keras::Lambda twice([](const Tensor& x) { return x * 2; });
  keras::Lambda sum_of([](const keras::Tensors& inputs) { return inputs[0] + inputs[1]; });
  keras::Lambda when([](const Tensor& x, const keras::Context& context) { return context.training ? x * 3 : x; });
  const Tensor x = tensor({{1.f, 2.f}});
  expect_close(twice(x), x * 2, 0, "twice");
  expect_close(sum_of({x, x}), x * 2, 0, "sum");
  expect_close(when(x), x, 0, "inference");
  expect_close(when(x, {.training = true}), x * 3, 0, "training");
  keras::Input a({2});
  keras::Model model(a, twice(when(a)));
  expect_close(model(x, {.training = true}), x * 6, 0, "model");
  // Masks end, unless it says what they become.
  const Tensor mask = tensor({{true, false}});
  keras::Lambda passes([](const Tensor& t) { return t; }, {.mask = [](const Tensor&, const Tensor& m) { return m; }});
  EXPECT_TRUE(keras::mask_of(passes(keras::with_mask(x, mask))).defined());
  EXPECT_FALSE(keras::mask_of(twice(keras::with_mask(x, mask))).defined());
}

TEST_F(KerasReshaping, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::Reshape({-1, -1}); }), "Reshape: a target of [-1,-1]");
  EXPECT_CONTAINS(error_of([] {
                    keras::Reshape({5})(ones({2, 3, 4}));
                  }),
                  "Reshape: f32[2,3,4] has 12 values per sample; the target [5] has 5");
  EXPECT_CONTAINS(error_of([] { keras::Reshape({-1, 5})(ones({2, 3, 4})); }), "the target [-1,5] has a multiple of 5");
  EXPECT_CONTAINS(error_of([] { keras::Permute({2, 2}); }), "Permute: dims are not a permutation");
  EXPECT_CONTAINS(error_of([] { keras::Permute({2, 1})(ones({2, 3})); }), "its input f32[2,3] has 2 axes");
  EXPECT_CONTAINS(error_of([] { keras::RepeatVector(0); }), "RepeatVector: n is 0");
  EXPECT_CONTAINS(error_of([] { keras::UpSampling2D(2, {.interpolation = "area"}); }),
                  "it is \"nearest\", \"bilinear\" or \"bicubic\"");
  EXPECT_CONTAINS(error_of([] { keras::ZeroPadding2D({1, 2, 3}); }), "ZeroPadding2D: padding for 3 axes");
  EXPECT_CONTAINS(error_of([] { keras::ZeroPadding1D({1, 2, 3}); }), "give one number, or {before, after}");
  EXPECT_CONTAINS(error_of([] { keras::ZeroPadding2D(-1); }), "ZeroPadding2D: padding is -1");
  EXPECT_CONTAINS(error_of([] {
                    keras::Cropping1D({2, 3})(ones({1, 5, 2}));
                  }),
                  "Cropping1D: 5 positions cut off an axis of size 5");
  EXPECT_CONTAINS(error_of([] {
                    function("f(x)", [](Tensor x) { return keras::Cropping1D({2, 3})(x); })(ones({1, 5, 2}));
                  }),
                  "Cropping1D: 5 positions cut off an axis of size 5");
  EXPECT_CONTAINS(error_of([] { keras::Resizing(0, 3); }), "Resizing: height is 0");
  EXPECT_CONTAINS(error_of([] { keras::Resizing(3, 3, {.interpolation = "lanczos3"}); }),
                  "Resizing: interpolation is \"lanczos3\"");
  EXPECT_CONTAINS(error_of([] { keras::Resizing(3, 3, {.crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true}); }),
                  "crop_to_aspect_ratio and pad_to_aspect_ratio");
  EXPECT_CONTAINS(error_of([] { keras::CenterCrop(3, 0); }), "CenterCrop: width is 0");
  EXPECT_CONTAINS(error_of([] { keras::Normalization(-1, {.mean = ones({3})}); }),
                  "Normalization: one of mean and variance");
  EXPECT_CONTAINS(error_of([] { keras::Normalization(0); }), "Normalization: axis 0 is the batch");
  EXPECT_CONTAINS(error_of([] { keras::Normalization(2)(ones({2, 3})); }), "axis 2 of an input with 2 axes\n  at ");
  EXPECT_CONTAINS(error_of([] {
                    keras::Normalization(-1, {.mean = ones({3}), .variance = ones({3})}).adapt(ones({2, 3}));
                  }),
                  "was given its mean and variance");
  keras::Normalization built;
  built.adapt(ones({4, 3}));
  EXPECT_CONTAINS(error_of([&] { built(ones({4, 2})); }), "has 2 values; it was built for 3");
}

}  // namespace
}  // namespace stet
