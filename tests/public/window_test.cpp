// Convolutions, pools, patches and resizing as users call them: values of TensorFlow and Keras, a plain reference,
// gradients by central differences, one trace for all sizes, and errors.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "stet/stet.h"
#include "tests/public/expect_error.h"

namespace stet {
namespace {

using Values = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

Values values_of(const Tensor& t) { return cast(t, DType::f64).to_vector<double>(); }

/// Small numbers that repeat late, so that no two windows look alike.
Tensor numbers(const Shape& shape, int seed = 0) {
  Tensor at = cast(arange(shape.element_count()), DType::f64);
  return reshape((at * 37 + seed * 11) % 101 / 17 - 2.5, shape);
}

void expect_values(const Tensor& got, const Sizes& sizes, const Values& expected) {
  EXPECT_EQ(got.shape().sizes(), sizes);
  Values values = values_of(got);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-5 * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

/// A tensor's elements by position.
struct Grid {
  explicit Grid(const Tensor& t) : sizes(t.shape().sizes()), values(values_of(t)) {}
  double at(const Sizes& position) const {
    std::int64_t flat = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (position[i] < 0 || position[i] >= sizes[i]) return 0;
      flat = flat * sizes[i] + position[i];
    }
    return values[static_cast<std::size_t>(flat)];
  }
  Sizes sizes;
  Values values;
};

struct Window {
  std::int64_t stride, dilation, low, high;
};

/// conv2d with groups, from its definition.
Values convolved(const Tensor& image, const Tensor& weights, Window y, Window x, std::int64_t groups, Sizes& sizes) {
  Grid in(image), filter(weights);
  std::int64_t kh = filter.sizes[0], kw = filter.sizes[1], channels = filter.sizes[2], features = filter.sizes[3];
  auto count = [](std::int64_t size, std::int64_t k, const Window& w) {
    return (size + w.low + w.high - (k - 1) * w.dilation - 1) / w.stride + 1;
  };
  sizes = {in.sizes[0], count(in.sizes[1], kh, y), count(in.sizes[2], kw, x), features};
  Values out;
  for (std::int64_t b = 0; b < sizes[0]; ++b)
    for (std::int64_t i = 0; i < sizes[1]; ++i)
      for (std::int64_t j = 0; j < sizes[2]; ++j)
        for (std::int64_t f = 0; f < features; ++f) {
          double sum = 0;
          std::int64_t first = f / (features / groups) * channels;
          for (std::int64_t k = 0; k < kh; ++k)
            for (std::int64_t l = 0; l < kw; ++l)
              for (std::int64_t c = 0; c < channels; ++c)
                sum += in.at({b, i * y.stride + k * y.dilation - y.low, j * x.stride + l * x.dilation - x.low,
                              first + c}) *
                       filter.at({k, l, c, f});
          out.push_back(sum);
        }
  return out;
}

/// d sum(f(x) * weights) / dx by central differences, for every operand, of f64.
void expect_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& operands) {
  auto loss = [&](const std::vector<Tensor>& at) {
    Tensor y = f(at);
    return sum(y * numbers(y.shape(), 5));
  };
  std::vector<Tensor> gradients;
  {
    GradientTape tape;
    for (const Tensor& operand : operands) tape.watch(operand);
    Tensor y = loss(operands);
    gradients = tape.gradient(y, operands);
  }
  for (std::size_t k = 0; k < operands.size(); ++k) {
    EXPECT_EQ(gradients[k].shape().sizes(), operands[k].shape().sizes());
    Values got = values_of(gradients[k]), values = values_of(operands[k]);
    for (std::size_t i = 0; i < values.size(); i += 1 + values.size() / 23) {
      auto moved = [&](double step) {
        Values other = values;
        other[i] += step;
        std::vector<Tensor> at = operands;
        at[k] = tensor(other, operands[k].shape());
        return loss(at).item<double>();
      };
      constexpr double step = 1e-5;
      double expected = (moved(step) - moved(-step)) / (2 * step);
      EXPECT_NEAR(got[i], expected, 1e-6 * std::max(1.0, std::abs(expected))) << "operand " << k << ", element " << i;
    }
  }
}

/// The same eagerly and in one trace that serves both sizes.
void expect_one_trace(const std::function<Tensor(Tensor)>& f, const Shape& one, const Shape& other) {
  Function traced = function("traced(x)", [=](Tensor x) { return f(x); });
  for (const Shape& shape : {one, other, one}) {
    Tensor x = cast(numbers(shape), DType::f32);
    Values eager = values_of(f(x)), program = values_of(traced(x));
    ASSERT_EQ(eager.size(), program.size());
    for (std::size_t i = 0; i < eager.size(); ++i) EXPECT_NEAR(eager[i], program[i], 1e-4) << i;
  }
  EXPECT_EQ(traced.trace_count(), 1);
}

TEST(Convolution, AgreesWithItsDefinition) {
  struct Case {
    Shape x, filter;
    Window y, z;
    Conv2DOptions options;
  };
  std::vector<Case> cases{
      {{2, 6, 7, 3}, {3, 2, 3, 5}, {1, 1, 0, 0}, {1, 1, 0, 0}, {}},
      {{1, 6, 7, 4},
       {3, 3, 2, 6},
       {2, 1, 1, 0},
       {1, 2, 2, 1},
       {.strides = {2, 1}, .padding = {{1, 0}, {2, 1}}, .dilations = {1, 2}, .groups = 2}},
      // "same" of even sizes with stride 2: the odd padding comes last.
      {{1, 6, 5, 2}, {3, 4, 2, 3}, {2, 1, 0, 1}, {1, 1, 1, 2}, {.strides = {2, 1}, .padding = "same"}},
      {{2, 5, 5, 1}, {2, 2, 1, 1}, {4, 1, 0, 1}, {3, 1, 0, 0}, {.strides = {4, 3}, .same_padding = true}},
      {{0, 5, 5, 1}, {2, 2, 1, 1}, {1, 1, 0, 0}, {1, 1, 0, 0}, {}},
  };
  for (const Case& one : cases)
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      Tensor x = cast(numbers(one.x), dtype), filter = cast(numbers(one.filter, 3), dtype);
      Sizes sizes;
      Values expected = convolved(x, filter, one.y, one.z, one.options.groups, sizes);
      Tensor got = conv2d(x, filter, one.options);
      EXPECT_EQ(got.dtype(), dtype);
      EXPECT_EQ(got.shape().sizes(), sizes);
      Values values = values_of(got);
      double tolerance = dtype == DType::bf16 ? 0.02 : 1e-5;
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(values[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << dtype << " " << i;
    }
}

TEST(Convolution, OneAndThreeAxes) {
  Tensor steps = reshape(tensor({1.f, 2.f, 3.f, 4.f, 5.f}), {1, 5, 1});
  Tensor filter = reshape(tensor({1.f, 10.f}), {2, 1, 1});
  expect_values(conv1d(steps, filter), {1, 4, 1}, {21, 32, 43, 54});
  expect_values(conv1d(steps, filter, {.padding = "same"}), {1, 5, 1}, {21, 32, 43, 54, 5});
  expect_values(conv1d(steps, filter, {.strides = {2}, .padding = "same"}), {1, 3, 1}, {21, 43, 5});
  expect_values(conv1d(steps, filter, {.dilations = {3}}), {1, 2, 1}, {41, 52});
  Tensor volume = reshape(cast(arange(24), DType::f32), {1, 2, 3, 4, 1});
  // Sums of 2 x 2 x 2 neighbours: 8 times the centre.
  expect_values(conv3d(volume, ones({2, 2, 2, 1, 1})), {1, 1, 2, 3, 1}, {68, 76, 84, 100, 108, 116});
  // A filter with a third axis of one is conv2d on every slice.
  Tensor x = cast(numbers({2, 3, 5, 6, 2}), DType::f32), w = cast(numbers({1, 3, 3, 2, 4}, 1), DType::f32);
  Tensor slices = conv2d(reshape(x, {6, 5, 6, 2}), reshape(w, {3, 3, 2, 4}), {.padding = "same"});
  expect_values(conv3d(x, w, {.padding = "same"}), {2, 3, 5, 6, 4}, values_of(slices));
}

TEST(Convolution, DepthwiseFeaturesAreThoseOfTheirChannel) {
  Tensor x = cast(numbers({2, 6, 5, 3}), DType::f32), filter = cast(numbers({3, 3, 3, 2}, 4), DType::f32);
  Tensor got = depthwise_conv2d(x, filter, {.strides = {2, 2}, .padding = "same"});
  Sizes sizes;
  for (int c = 0; c < 3; ++c) {
    Tensor one = slice(x, {0, 0, 0, c}, {2, 6, 5, 1}), mine = slice(filter, {0, 0, c, 0}, {3, 3, 1, 2});
    Values expected = convolved(one, mine, {2, 1, 0, 1}, {2, 1, 1, 1}, 1, sizes);
    expect_values(slice(got, {0, 0, 0, 2 * c}, {2, 3, 3, 2}), sizes, expected);
  }
  expect_values(depthwise_conv1d(ones({1, 2, 2}), reshape(tensor({1.f, 2.f, 3.f, 4.f}), {1, 2, 2})), {1, 2, 4},
                {1, 2, 3, 4, 1, 2, 3, 4});
  Tensor pointwise = cast(numbers({1, 1, 6, 5}, 2), DType::f32);
  Tensor two_steps = conv2d(depthwise_conv2d(x, filter), pointwise);
  expect_values(separable_conv2d(x, filter, pointwise), two_steps.shape().sizes(), values_of(two_steps));
}

TEST(Convolution, TransposedAsInTensorFlow) {
  // Sizes and values of TensorFlow's own tests of conv2d_transpose.
  Tensor x = ones({2, 6, 4, 3}), filter = ones({3, 3, 2, 3});
  Tensor once = conv2d_transpose(x, filter, {.strides = {1, 1}, .padding = "same"});
  EXPECT_EQ(once.shape().sizes(), (Sizes{2, 6, 4, 2}));
  for (int h = 0; h < 6; ++h)
    for (int w = 0; w < 4; ++w) {
      bool in_height = h > 0 && h<5, in_width = w> 0 && w < 3;
      double expected = 4.0 * 3 + (in_height && in_width ? 5.0 * 3 : in_height || in_width ? 2.0 * 3 : 0.0);
      EXPECT_NEAR(once.item<float>({1, h, w, 1}), expected, 1e-5) << h << " " << w;
    }
  Tensor twice = conv2d_transpose(x, filter, {.strides = {2, 2}, .padding = "same"});
  EXPECT_EQ(twice.shape().sizes(), (Sizes{2, 12, 8, 2}));
  for (int h = 0; h < 12; ++h)
    for (int w = 0; w < 8; ++w) {
      bool in_height = h % 2 == 0 && h > 0 && h < 11, in_width = w % 2 == 0 && w > 0 && w < 7;
      double expected = 3.0 + (in_height && in_width ? 9.0 : in_height || in_width ? 3.0 : 0.0);
      EXPECT_NEAR(twice.item<float>({0, h, w, 0}), expected, 1e-5) << h << " " << w;
    }
  EXPECT_EQ(conv2d_transpose(x, filter, {.strides = {2, 2}}).shape().sizes(), (Sizes{2, 13, 9, 2}));

  Tensor steps = reshape(tensor({1.f, 2.f, 3.f}), {1, 3, 1}), taps = reshape(tensor({1.f, 10.f, 100.f}), {3, 1, 1});
  expect_values(conv1d_transpose(steps, taps), {1, 5, 1}, {1, 12, 123, 230, 300});
  expect_values(conv1d_transpose(steps, taps, {.strides = {2}}), {1, 7, 1}, {1, 10, 102, 20, 203, 30, 300});
  // A stride beyond the filter leaves zeros up to whole strides.
  expect_values(conv1d_transpose(steps, taps, {.strides = {4}}), {1, 12, 1},
                {1, 10, 100, 0, 2, 20, 200, 0, 3, 30, 300, 0});
  // Keras: (input - 1) * stride + filter - 2 * (filter / 2) + output padding.
  expect_values(conv1d_transpose(steps, taps, {.strides = {2}, .padding = "same", .output_padding = {0}}), {1, 5, 1},
                {10, 102, 20, 203, 30});
  expect_values(conv1d_transpose(steps, taps, {.strides = {2}, .padding = "same", .output_padding = {1}}), {1, 6, 1},
                {1, 10, 102, 20, 203, 30});
  expect_values(conv1d_transpose(steps, taps, {.strides = {2}, .output_padding = {1}}), {1, 8, 1},
                {1, 10, 102, 20, 203, 30, 300, 0});
  expect_values(conv3d_transpose(ones({1, 1, 1, 2, 1}), ones({1, 1, 2, 1, 1})), {1, 1, 1, 3, 1}, {1, 2, 1});
}

TEST(Convolution, GradientsAgreeWithDifferences) {
  using List = std::vector<Tensor>;
  expect_gradients(
      [](const List& t) {
        return conv2d(t[0], t[1], {.strides = {2, 1}, .padding = "same"});
      },
      {numbers({2, 5, 6, 2}), numbers({3, 2, 2, 3}, 1)});
  expect_gradients(
      [](const List& t) {
        return conv2d(t[0], t[1], {.strides = {3, 4}, .groups = 2});
      },
      {numbers({1, 7, 6, 4}), numbers({2, 2, 2, 4}, 1)});
  expect_gradients(
      [](const List& t) {
        return conv1d(t[0], t[1], {.padding = {{3, 1}}, .dilations = {2}});
      },
      {numbers({2, 5, 2}), numbers({3, 2, 3}, 1)});
  expect_gradients([](const List& t) { return conv3d(t[0], t[1], {.padding = "same"}); },
                   {numbers({1, 2, 3, 3, 2}), numbers({2, 2, 3, 2, 2}, 1)});
  expect_gradients([](const List& t) { return depthwise_conv2d(t[0], t[1], {.padding = "same"}); },
                   {numbers({2, 4, 3, 3}), numbers({3, 3, 3, 2}, 1)});
  expect_gradients(
      [](const List& t) {
        return conv2d_transpose(t[0], t[1], {.strides = {2, 3}, .padding = "same"});
      },
      {numbers({1, 3, 2, 2}), numbers({3, 3, 3, 2}, 1)});
}

TEST(Convolution, SecondDerivativesAgreeWithDifferences) {
  auto first = [](const std::vector<Tensor>& t) {
    GradientTape tape;
    tape.watch(t[0]);
    Tensor y = conv2d(t[0], t[1], {.strides = {2, 1}, .padding = "same"});
    return tape.gradient(sum(y * y * y), t[0]);
  };
  expect_gradients(first, {numbers({1, 4, 3, 2}) / 4, numbers({3, 3, 2, 2}, 1) / 4});
}

TEST(Convolution, OneTraceServesAllSizes) {
  Tensor filter = cast(numbers({3, 3, 2, 4}, 1), DType::f32), own = cast(numbers({3, 3, 2, 1}, 1), DType::f32);
  expect_one_trace(
      [=](Tensor x) {
        return conv2d(x, filter, {.strides = {2, 1}, .padding = "same"});
      },
      {2, 7, 6, 2}, {3, 8, 5, 2});
  expect_one_trace([=](Tensor x) { return depthwise_conv2d(x, own); }, {2, 7, 6, 2}, {1, 4, 9, 2});
  expect_one_trace(
      [=](Tensor x) {
        return conv2d_transpose(x, transpose(filter, {0, 1, 3, 2}), {.strides = {2, 2}, .padding = "same"});
      },
      {2, 3, 4, 2}, {1, 5, 2, 2});
  expect_one_trace(
      [=](Tensor x) {
        GradientTape tape;
        tape.watch(x);
        Tensor y = conv2d(x, filter, {.strides = {2, 2}, .padding = "same"});
        return tape.gradient(sum(y * y), x);
      },
      {2, 7, 6, 2}, {3, 8, 5, 2});
}

TEST(Convolution, Errors) {
  Tensor x = ones({1, 5, 5, 4}), filter = ones({3, 3, 4, 6});
  auto expect = [](const std::function<void()>& f, const char* part) { EXPECT_CONTAINS(error_of(f), part); };
  expect([&] { conv2d(x, ones({3, 3, 2, 6})); }, "channels of 'x' and 'filter', 4 and 2 differ");
  expect([&] { conv2d(x, filter, {.groups = 2}); }, "channels of 'x' and of the 2 groups of 'filter', 4 and 8 differ");
  expect([&] { conv2d(x, ones({3, 3, 2, 5}), {.groups = 2}); }, "features 5 do not fall into 2 groups");
  expect([&] { conv2d(x, filter, {.groups = 0}); }, "groups are 0");
  expect([&] { conv2d(x, filter, {.padding = "full"}); }, "padding \"full\" is not known");
  expect([&] { conv2d(x, filter, {.padding = {{1, 1}}}); }, "one entry for height and one for width");
  expect([&] { conv2d(x, filter, {.padding = {{1, 1}, {-1, 0}}}); }, "is negative");
  expect([&] { conv2d(x, ones({7, 3, 4, 6})); }, "a window of 7 does not fit in a padded size of 5");
  expect([&] { conv2d(cast(x, i32), cast(filter, i32)); }, "conv2d does not take i32");
  expect([&] { conv1d(x, filter); }, "'x' has rank 4, not 3");
  expect([&] { conv3d(ones({1, 2, 2, 2, 1}), filter); }, "'filter' has rank 4, not 5");
  expect([&] { conv1d(ones({1, 5, 2}), ones({2, 2, 1}), {.strides = {0}}); }, "stride");
  expect([&] { conv2d_transpose(x, filter); }, "channels of 'x' and 'filter', 4 and 6 differ");
  expect(
      [&] {
        conv2d_transpose(x, ones({3, 3, 2, 4}), {.strides = {2, 2}, .output_padding = {2, 0}});
      },
      "output padding 2 is not below the stride 2");
  expect([&] { depthwise_conv2d(x, ones({3, 3, 3, 1})); }, "depthwise_conv2d: channels of 'x' and 'filter', 4 and 3");
  expect([&] { conv2d(x, 2.f); }, "conv2d: 'filter' must be a tensor");
}

TEST(Pool, ValuesOfKeras) {
  Tensor x = reshape(tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f}), {1, 3, 3, 1});
  expect_values(max_pool(x, {2, 2}), {1, 1, 1, 1}, {5});
  expect_values(max_pool(x, {2, 2}, {.strides = {1, 1}}), {1, 2, 2, 1}, {5, 6, 8, 9});
  expect_values(max_pool(x, {2, 2}, {.padding = "same"}), {1, 2, 2, 1}, {5, 6, 8, 9});
  expect_values(average_pool(x, {2, 2}, {.strides = {1, 1}}), {1, 2, 2, 1}, {3, 4, 6, 7});
  // What is outside is not counted.
  expect_values(average_pool(x, {2, 2}, {.padding = "same"}), {1, 2, 2, 1}, {3, 4.5, 7.5, 9});
  expect_values(average_pool(x, {3, 3}, {.strides = {2, 2}, .padding = {{1, 1}, {1, 1}}}), {1, 2, 2, 1}, {3, 4, 6, 7});
  Tensor negative = reshape(tensor({-5.f, -1.f, -3.f, -2.f}), {1, 4, 1});
  expect_values(max_pool(negative, {3}, {.strides = {1}, .padding = "same"}), {1, 4, 1}, {-1, -1, -1, -2});
  expect_values(max_pool(negative, {2}), {1, 2, 1}, {-1, -2});
  Tensor volume = reshape(cast(arange(16), DType::f32), {1, 2, 2, 2, 2});
  expect_values(max_pool(volume, {2, 2, 2}), {1, 1, 1, 1, 2}, {14, 15});
  expect_values(average_pool(volume, {2, 2, 2}), {1, 1, 1, 1, 2}, {7, 8});
  expect_values(global_max_pool(volume), {1, 2}, {14, 15});
  expect_values(global_average_pool(volume, {.keepdims = true}), {1, 1, 1, 1, 2}, {7, 8});
  EXPECT_EQ(max_pool(zeros({0, 4, 4, 3}), {2, 2}).shape().sizes(), (Sizes{0, 2, 2, 3}));
  expect_values(max_pool(reshape(tensor({3, -7, 5, -9}), {1, 4, 1}), {2}), {1, 2, 1}, {3, 5});
}

TEST(Pool, NaNAndInfinities) {
  float nan = NAN, infinity = INFINITY;
  for (std::int64_t channels : {1, 16, 19}) {
    Tensor line = reshape(tensor({1.f, nan, -infinity, -infinity, infinity, 2.f}), {1, 6, 1});
    Tensor y = max_pool(broadcast_to(line, {1, 6, channels}), {2});
    Values values = values_of(y);
    for (std::int64_t c = 0; c < channels; ++c) {
      EXPECT_TRUE(std::isnan(values[static_cast<std::size_t>(c)]));
      EXPECT_EQ(values[static_cast<std::size_t>(channels + c)], -INFINITY);
      EXPECT_EQ(values[static_cast<std::size_t>(2 * channels + c)], INFINITY);
    }
  }
}

TEST(Pool, TheGradientGoesToTheFirstOfTheLargest) {
  Tensor x = reshape(tensor({2.f, 7.f, 7.f, 1.f, -INFINITY, -INFINITY, NAN, NAN}), {1, 8, 1});
  GradientTape tape;
  tape.watch(x);
  Tensor y = max_pool(x, {4}, {.strides = {2}});
  Tensor d = tape.gradient(sum(y * reshape(tensor({1.f, 10.f, 100.f}), {1, 3, 1})), x);
  EXPECT_EQ(values_of(d), (Values{0, 1, 10, 0, 0, 0, 100, 0}));
}

TEST(Pool, GradientsAgreeWithDifferences) {
  using List = std::vector<Tensor>;
  for (std::int64_t channels : {1, 3, 17}) {
    Tensor x = numbers({2, 5, 6, channels});
    expect_gradients([](const List& t) { return max_pool(t[0], {2, 2}); }, {x});
    expect_gradients([](const List& t) { return max_pool(t[0], {3, 2}, {.strides = {1, 2}, .padding = "same"}); }, {x});
    expect_gradients([](const List& t) { return average_pool(t[0], {2, 2}); }, {x});
    expect_gradients(
        [](const List& t) {
          return average_pool(t[0], {3, 3}, {.strides = {2, 1}, .padding = "same"});
        },
        {x});
    expect_gradients([](const List& t) { return global_average_pool(t[0]); }, {x});
    auto first = [](const List& t) {
      GradientTape tape;
      tape.watch(t[0]);
      Tensor y = max_pool(t[0], {3, 3}, {.strides = {1, 2}});
      return tape.gradient(sum(y * y * y), t[0]);
    };
    expect_gradients(first, {x / 4});
  }
}

TEST(Pool, OneTraceServesAllSizes) {
  expect_one_trace([](Tensor x) { return max_pool(x, {2, 2}, {.padding = "same"}); }, {2, 7, 6, 2}, {3, 8, 5, 19});
  expect_one_trace([](Tensor x) { return average_pool(x, {3, 2}, {.padding = "same"}); }, {2, 7, 6, 2}, {3, 8, 5, 19});
  expect_one_trace(
      [](Tensor x) {
        GradientTape tape;
        tape.watch(x);
        Tensor y = max_pool(x, {2, 2});
        return tape.gradient(sum(y * y), x);
      },
      {2, 7, 6, 2}, {3, 8, 5, 19});
}

TEST(Pool, TheSameBitsOnAnyNumberOfThreads) {
  Tensor x = cast(numbers({3, 31, 29, 70}), DType::f32);
  auto run = [&](int threads) {
    set_thread_count(threads);
    GradientTape tape;
    tape.watch(x);
    Tensor y =
        max_pool(x, {3, 3}, {.strides = {2, 2}, .padding = "same"}) + average_pool(x, {2, 2}, {.padding = "same"});
    Tensor d = tape.gradient(sum(y * y), x);
    return std::pair(y.to_vector<float>(), d.to_vector<float>());
  };
  int before = thread_count();
  EXPECT_EQ(run(1), run(2));
  set_thread_count(before);
}

TEST(Convolution, TheSameBitsOnAnyNumberOfThreads) {
  Tensor x = cast(numbers({11, 13, 12, 16}), DType::f32), w = cast(numbers({3, 3, 16, 24}, 1), DType::f32),
         own = cast(numbers({3, 3, 16, 1}, 1), DType::f32);
  auto run = [&](int threads) {
    set_thread_count(threads);
    GradientTape tape;
    for (const Tensor& t : {x, w, own}) tape.watch(t);
    Tensor y = conv2d(depthwise_conv2d(x, own, {.padding = "same"}), w, {.strides = {2, 1}});
    std::vector<std::vector<float>> out{y.to_vector<float>()};
    for (const Tensor& d : tape.gradient(sum(y * y), {x, w, own})) out.push_back(d.to_vector<float>());
    return out;
  };
  int before = thread_count();
  EXPECT_EQ(run(1), run(2));
  set_thread_count(before);
}

TEST(Pool, Errors) {
  Tensor x = ones({1, 4, 4, 2});
  auto expect = [](const std::function<void()>& f, const char* part) { EXPECT_CONTAINS(error_of(f), part); };
  expect([&] { max_pool(x, {2}); }, "windows have one entry for height and one for width, not 1 entry");
  expect([&] { max_pool(x, {2, 2}, {.strides = {2}}); }, "strides have one entry for height and one for width");
  expect(
      [&] {
        max_pool(x, {6, 2}, {.strides = {1, 1}});
      },
      "max_pool: a window of 6 does not fit in a padded size of 4");
  expect([&] { max_pool(x, {2, 0}); }, "window 0 is less than 1");
  expect([&] { max_pool(x, {2, 2}, {.strides = {0, 1}}); }, "stride");
  expect([&] { max_pool(ones({4, 4}), {2, 2}); }, "'x' has rank 2, not 3, 4 or 5");
  expect([&] { average_pool(cast(x, i32), {2, 2}); }, "average_pool does not take i32");
  expect([&] { average_pool(x, {2, 2}, {.padding = {{2, 0}, {0, 0}}}); }, "without an element");
  expect([&] { global_max_pool(ones({4, 4})); }, "'x' has rank 2, not 3 or more");
  expect([&] { max_pool(1.f, {2}); }, "max_pool: 'x' must be a tensor");
}

TEST(Patches, ValuesOfTensorFlow) {
  Tensor x = reshape(arange(100) + 1, {1, 10, 10, 1});
  expect_values(extract_patches(x, {3, 3}, {.strides = {5, 5}}), {1, 2, 2, 9},
                {1,  2,  3,  11, 12, 13, 21, 22, 23, 6,  7,  8,  16, 17, 18, 26, 27, 28,
                 51, 52, 53, 61, 62, 63, 71, 72, 73, 56, 57, 58, 66, 67, 68, 76, 77, 78});
  expect_values(extract_patches(x, {3, 3}, {.strides = {5, 5}, .rates = {2, 2}}), {1, 2, 2, 9},
                {1,  3,  5,  21, 23, 25, 41, 43, 45, 6,  8,  10, 26, 28, 30, 46, 48, 50,
                 51, 53, 55, 71, 73, 75, 91, 93, 95, 56, 58, 60, 76, 78, 80, 96, 98, 100});
  Tensor two = reshape(arange(8), {1, 2, 2, 2});
  expect_values(extract_patches(two, {2, 2}, {.strides = {1, 1}, .padding = "same"}), {1, 2, 2, 8},
                {0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 0, 0, 6, 7, 0, 0, 4, 5, 6, 7, 0, 0, 0, 0, 6, 7, 0, 0, 0, 0, 0, 0});
  expect_gradients(
      [](const std::vector<Tensor>& t) {
        return extract_patches(t[0], {3, 2}, {.strides = {2, 1}, .padding = "same"});
      },
      {numbers({2, 5, 4, 3})});
  expect_one_trace(
      [](Tensor x) {
        return extract_patches(x, {2, 3}, {.padding = "same"});
      },
      {2, 7, 6, 2}, {3, 8, 5, 3});
}

TEST(Resize, ValuesOfTensorFlow) {
  Tensor x = reshape(tensor({1.f, 2.f, 3.f, 4.f}), {1, 2, 2, 1});
  expect_values(resize(x, 4, 4), {1, 4, 4, 1},
                {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4});
  expect_values(resize(x, 3, 4, {.method = "nearest"}), {1, 3, 4, 1}, {1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
  Tensor line = reshape(tensor({1.f, 2.f, 3.f, 4.f}), {1, 1, 4, 1});
  // Half of the size: without antialias only the two neighbours of a centre count.
  expect_values(resize(line, 1, 2), {1, 1, 2, 1}, {1.5, 3.5});
  // Keys' weights at a quarter and three quarters, what is outside left out.
  double far_out = -0.0703125, near_out = -0.0234375, near_in = 0.8671875, far_in = 0.2265625;
  double inner = 1 - far_out, outer = 1 - near_out;
  expect_values(
      resize(line, 1, 8, {.method = "bicubic"}), {1, 1, 8, 1},
      {(near_in * 1 + far_out * 2) / (near_in + far_out), (near_in * 1 + far_in * 2 + near_out * 3) / inner,
       (far_in * 1 + near_in * 2 + far_out * 3) / outer, far_out * 1 + near_in * 2 + far_in * 3 + near_out * 4,
       near_out * 1 + far_in * 2 + near_in * 3 + far_out * 4, (far_out * 2 + near_in * 3 + far_in * 4) / outer,
       (near_out * 2 + far_in * 3 + near_in * 4) / inner, (far_out * 3 + near_in * 4) / (near_in + far_out)});
  EXPECT_EQ(resize(cast(x, DType::u8), 3, 3).dtype(), DType::f32);
  EXPECT_EQ(resize(cast(x, DType::u8), 3, 3, {.method = "nearest"}).dtype(), DType::u8);
  EXPECT_EQ(resize(cast(x, DType::bf16), 3, 3, {.method = "bicubic"}).dtype(), DType::bf16);
  expect_values(up_sampling(x, {2, 1}), {1, 4, 2, 1}, {1, 2, 1, 2, 3, 4, 3, 4});
  expect_values(up_sampling(reshape(line, {1, 4, 1}), {2}), {1, 8, 1}, {1, 1, 2, 2, 3, 3, 4, 4});
  expect_values(up_sampling(x, {2, 3}), {1, 4, 6, 1}, values_of(resize(x, 4, 6, {.method = "nearest"})));
}

TEST(Resize, GradientsTracesAndErrors) {
  for (const char* method : {"nearest", "bilinear", "bicubic"}) {
    expect_gradients([=](const std::vector<Tensor>& t) { return resize(t[0], 5, 3, {.method = method}); },
                     {numbers({2, 3, 4, 2})});
    expect_one_trace([=](Tensor x) { return resize(x, x.dim(1) * 2, 5, {.method = method}); }, {2, 3, 6, 2},
                     {3, 4, 7, 1});
  }
  expect_gradients([](const std::vector<Tensor>& t) { return up_sampling(t[0], {2, 3}); }, {numbers({2, 3, 2, 2})});
  Tensor x = ones({1, 2, 2, 1});
  EXPECT_CONTAINS(error_of([&] { resize(x, 2, 2, {.method = "area"}); }), "method \"area\" is not known");
  EXPECT_CONTAINS(error_of([&] { resize(x, -1, 2); }), "size -1 is negative");
  EXPECT_CONTAINS(error_of([&] { resize(ones({2, 2}), 2, 2); }), "'x' has rank 2, not 4");
  EXPECT_CONTAINS(error_of([&] { up_sampling(x, {2}); }), "factors have one entry for height and one for width");
  EXPECT_CONTAINS(error_of([&] { up_sampling(x, {2, 0}); }), "factor 0 is less than 1");
}

}  // namespace
}  // namespace stet
