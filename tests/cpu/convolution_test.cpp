// Convolutions by oneDNN against those by patches, and both on one thread and on several: sizes that make more pieces,
// parts and blocks than one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "stet/core/tape.h"
#include "stet/cpu/convolution_step.h"
#include "stet/ops/ops.h"
#include "stet/runtime/parallel.h"

namespace stet::cpu {
namespace {

struct Case {
  Shape x, filter;
  Conv2DOptions options;
  bool depthwise = false;
};

std::vector<Case> cases() {
  return {
      {{33, 14, 14, 32}, {3, 3, 32, 64}, {.padding = "same"}},
      {{17, 28, 28, 1}, {3, 3, 1, 32}, {.padding = "same"}},
      {{5, 15, 13, 3}, {5, 4, 3, 17}, {.strides = {2, 3}, .padding = "same"}},
      {{3, 20, 9, 8}, {3, 3, 8, 16}, {.padding = {{0, 2}, {1, 0}}, .dilations = {2, 1}}},
      {{4, 9, 9, 8}, {3, 3, 4, 6}, {.strides = {2, 2}, .groups = 2}},
      {{9, 7, 7, 16}, {1, 1, 16, 24}, {.strides = {2, 1}}},
      {{33, 14, 14, 64}, {3, 3, 64, 1}, {.padding = "same"}, true},
      {{6, 11, 12, 16}, {3, 5, 16, 3}, {.strides = {2, 2}, .padding = "same"}, true},
      {{2, 6, 6, 4}, {7, 7, 4, 8}, {.padding = "same"}},
      {{2, 40, 40, 64}, {9, 9, 64, 2}, {}},
  };
}

Tensor numbers(const Shape& shape, int seed) {
  Tensor at = cast(arange(shape.element_count()), DType::f64);
  return cast(reshape((at * 37 + seed * 11) % 101 / 50 - 1, shape), DType::f32);
}

/// The output and both gradients.
std::vector<std::vector<float>> computed(const Case& one) {
  Tensor x = numbers(one.x, 0), filter = numbers(one.filter, 1);
  GradientTape tape;
  tape.watch(x);
  tape.watch(filter);
  Tensor y = one.depthwise
                 ? depthwise_conv2d(x, filter, {.strides = one.options.strides, .padding = one.options.padding})
                 : conv2d(x, filter, one.options);
  std::vector<std::vector<float>> out{y.to_vector<float>()};
  for (const Tensor& d : tape.gradient(sum(y * numbers(y.shape(), 2)), {x, filter}))
    out.push_back(d.to_vector<float>());
  return out;
}

class Convolutions : public testing::Test {
 protected:
  void TearDown() override {
    set_library_convolutions(true);
    set_thread_count(threads_);
  }
  int threads_ = thread_count();
};

TEST_F(Convolutions, TheLibraryAndPatchesAgree) {
  int number = 0;
  for (const Case& one : cases()) {
    set_library_convolutions(true);
    std::vector<std::vector<float>> library = computed(one);
    set_library_convolutions(false);
    std::vector<std::vector<float>> patches = computed(one);
    for (std::size_t r = 0; r < library.size(); ++r) {
      ASSERT_EQ(library[r].size(), patches[r].size());
      double largest = 1;
      for (float value : patches[r]) largest = std::max(largest, std::abs(static_cast<double>(value)));
      for (std::size_t i = 0; i < library[r].size(); ++i)
        ASSERT_NEAR(library[r][i], patches[r][i], 1e-5 * largest) << "case " << number << ", result " << r << ", " << i;
    }
    ++number;
  }
}

TEST_F(Convolutions, TheSameBitsOnAnyNumberOfThreads) {
  int number = 0;
  for (const Case& one : cases()) {
    for (bool library : {true, false}) {
      set_library_convolutions(library);
      set_thread_count(1);
      std::vector<std::vector<float>> alone = computed(one);
      for (int threads : {2, 3}) {
        set_thread_count(threads);
        EXPECT_EQ(computed(one), alone) << "case " << number << (library ? ", oneDNN, " : ", patches, ") << threads;
      }
    }
    ++number;
  }
}

}  // namespace
}  // namespace stet::cpu
