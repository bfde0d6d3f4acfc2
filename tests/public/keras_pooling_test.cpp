// Layers of pools: the values and gradients that Keras's have.
#include "keras_layer_cases.h"

namespace stet {
namespace {

class KerasPooling : public LayerTest {};

/// All cases of a pool over so many axes.
template <class Pool, class Global>
void check_pool(LayerCases& cases, const std::string& name, int axes) {
  const std::vector<std::int64_t> windows{3, 2, 1}, strides{1, 2, 1};
  auto some = [&](const std::vector<std::int64_t>& numbers) {
    return keras::WindowSizes(std::vector<std::int64_t>(numbers.begin(), numbers.begin() + axes));
  };
  cases.check(name, Pool(2), any_length);
  cases.check(name + "_same", Pool(3, {.strides = 2, .padding = "same"}), any_length);
  cases.check(name + "_windows", Pool(some(windows), {.strides = some(strides)}), any_length);
  cases.check(name + "_first", Pool(2, {.data_format = "channels_first"}));
  cases.check("global_" + name, Global(), any_length);
  cases.check("global_" + name + "_kept", Global({.keepdims = true}), any_length);
  cases.check("global_" + name + "_first", Global({.data_format = "channels_first"}));
}

TEST_F(KerasPooling, GivesWhatKerasGives) {
  LayerCases cases("pooling");
  check_pool<keras::MaxPooling1D, keras::GlobalMaxPooling1D>(cases, "max1d", 1);
  check_pool<keras::MaxPooling2D, keras::GlobalMaxPooling2D>(cases, "max2d", 2);
  check_pool<keras::MaxPooling3D, keras::GlobalMaxPooling3D>(cases, "max3d", 3);
  check_pool<keras::AveragePooling1D, keras::GlobalAveragePooling1D>(cases, "average1d", 1);
  check_pool<keras::AveragePooling2D, keras::GlobalAveragePooling2D>(cases, "average2d", 2);
  check_pool<keras::AveragePooling3D, keras::GlobalAveragePooling3D>(cases, "average3d", 3);
  cases.check("global_average1d_masked", keras::GlobalAveragePooling1D(), any_length);
  cases.check("global_average1d_masked_kept", keras::GlobalAveragePooling1D({.keepdims = true}), any_length);
  EXPECT_EQ(cases.left(), std::vector<std::string>{});
}

TEST_F(KerasPooling, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] { keras::MaxPooling2D({2, 2, 2}); }), "MaxPooling2D: pool_size has 3 numbers");
  EXPECT_CONTAINS(error_of([] { keras::MaxPooling2D(0); }), "MaxPooling2D: pool_size is 0");
  EXPECT_CONTAINS(error_of([] { keras::AveragePooling1D(2, {.strides = -1}); }), "AveragePooling1D: strides is -1");
  EXPECT_CONTAINS(error_of([] { keras::MaxPooling1D(2, {.padding = "causal"}); }),
                  "MaxPooling1D: padding is \"causal\"");
  EXPECT_CONTAINS(error_of([] { keras::GlobalMaxPooling2D({.data_format = "first"}); }),
                  "GlobalMaxPooling2D: data_format is \"first\"");
  EXPECT_CONTAINS(error_of([] {
                    keras::MaxPooling2D()(ones({4, 4, 1}));
                  }),
                  "MaxPooling2D 'max_pooling2d': its input f32[4,4,1] has 3 axes");
  EXPECT_CONTAINS(error_of([] { keras::GlobalAveragePooling1D()(ones({4, 4})); }), "it takes [batch, steps, channels]");
}

}  // namespace
}  // namespace stet
