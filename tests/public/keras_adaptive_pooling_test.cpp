// Pools to a size that is given: the values and gradients that Keras's have.
#include <cmath>

#include "keras_layer_cases.h"

namespace stet {
namespace {

class KerasAdaptivePooling : public LayerTest {};

template <class Pool>
void check_pool(LayerCases& cases, const std::string& name, int axes) {
  const std::vector<std::int64_t> sizes{4, 2, 3};
  cases.check(name, Pool(3), any_length);
  cases.check(name + "_sizes", Pool(std::vector<std::int64_t>(sizes.begin(), sizes.begin() + axes)), any_length);
  cases.check(name + "_more", Pool(9), any_length);
  cases.check(name + "_first", Pool(2, {.data_format = "channels_first"}));
}

TEST_F(KerasAdaptivePooling, GivesWhatKerasGives) {
  LayerCases cases("adaptive_pooling");
  check_pool<keras::AdaptiveAveragePooling1D>(cases, "average1d", 1);
  check_pool<keras::AdaptiveAveragePooling2D>(cases, "average2d", 2);
  check_pool<keras::AdaptiveAveragePooling3D>(cases, "average3d", 3);
  check_pool<keras::AdaptiveMaxPooling1D>(cases, "max1d", 1);
  check_pool<keras::AdaptiveMaxPooling2D>(cases, "max2d", 2);
  check_pool<keras::AdaptiveMaxPooling3D>(cases, "max3d", 3);
  EXPECT_EQ(cases.left(), std::vector<std::string>());
}

TEST_F(KerasAdaptivePooling, WindowsKeepToThemselves) {
  const Tensor x = reshape(tensor({1.f, NAN, 3.f, 4.f, INFINITY, 6.f}), {1, 6, 1});
  const std::vector<float> mean = keras::AdaptiveAveragePooling1D(3)(x).to_vector<float>();
  EXPECT_TRUE(std::isnan(mean[0]));
  EXPECT_EQ(mean[1], 3.5f);
  EXPECT_EQ(mean[2], INFINITY);
  const Tensor lowest = full({1, 2, 1}, -INFINITY);
  EXPECT_EQ(keras::AdaptiveMaxPooling1D(1)(lowest).item<float>({0, 0, 0}), -INFINITY);
  for (DType dtype : {f16, bf16, f64}) {
    keras::AdaptiveAveragePooling1D layer(2, {.dtype = dtype});
    EXPECT_EQ(layer(ones({1, 5, 2}, dtype)).dtype(), dtype);
  }
}

TEST_F(KerasAdaptivePooling, SaysWhatIsWrong) {
  EXPECT_CONTAINS(error_of([] {
                    keras::AdaptiveMaxPooling2D({1, 2, 3});
                  }),
                  "AdaptiveMaxPooling2D: output_size has 3 numbers");
  EXPECT_CONTAINS(error_of([] { keras::AdaptiveAveragePooling1D(0); }), "AdaptiveAveragePooling1D: output_size is 0");
  EXPECT_CONTAINS(error_of([] {
                    keras::AdaptiveAveragePooling2D(2)(ones({2, 3, 4}));
                  }),
                  "it takes [batch, height, width, channels]");
}

}  // namespace
}  // namespace stet
