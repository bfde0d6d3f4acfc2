// Initializers: bounds, means, variances and shapes of what they draw; exact values where nothing is random.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;
namespace initializers = keras::initializers;

namespace {

struct Moments {
  double mean, variance, low, high;
};
Moments moments_of(const Tensor& t) {
  Tensor x = cast(t, f64);
  return {mean(x).item<double>(), var(x).item<double>(), min(x).item<double>(), max(x).item<double>()};
}
std::vector<double> doubles(const Tensor& t) { return cast(t, f64).to_vector<double>(); }

constexpr std::int64_t inputs = 300, outputs = 200;

/// The mean of n numbers of a variance is within five of its deviations, and so is their variance (for these
/// distributions the variance of a square is at most twice the variance squared).
void expect_moments(const Tensor& drawn, double mean, double variance, const std::string& what) {
  const auto count = static_cast<double>(drawn.size());
  Moments got = moments_of(drawn);
  EXPECT_NEAR(got.mean, mean, 5 * std::sqrt(variance / count)) << what;
  EXPECT_NEAR(got.variance, variance, 5 * variance * std::sqrt(2 / count)) << what;
}

TEST(KerasInitializers, VariancesOfFans) {
  random::seed(1);
  struct Case {
    const char* name;
    keras::Initializer initializer;
    double variance;
    double bound;  // in standard deviations of the distribution that is cut, or of the uniform one
  };
  const double average = (inputs + outputs) / 2.0, uniform = std::sqrt(3.0), cut = 2 / 0.87962566103423978;
  const Case cases[] = {
      {"glorot_uniform", initializers::GlorotUniform(), 1 / average, uniform},
      {"glorot_normal", initializers::GlorotNormal(), 1 / average, cut},
      {"he_uniform", initializers::HeUniform(), 2.0 / inputs, uniform},
      {"he_normal", initializers::HeNormal(), 2.0 / inputs, cut},
      {"lecun_uniform", initializers::LecunUniform(), 1.0 / inputs, uniform},
      {"lecun_normal", initializers::LecunNormal(), 1.0 / inputs, cut},
      {"variance_scaling", initializers::VarianceScaling(), 1.0 / inputs, cut},
  };
  for (const Case& one : cases)
    for (const keras::Initializer& initializer : {one.initializer, keras::Initializer(one.name)}) {
      Tensor drawn = initializer({inputs, outputs}, f32);
      expect_moments(drawn, 0, one.variance, one.name);
      const double bound = one.bound * std::sqrt(one.variance);
      Moments got = moments_of(drawn);
      EXPECT_LE(got.high, bound * (1 + 1e-6)) << one.name;
      EXPECT_GE(got.low, -bound * (1 + 1e-6)) << one.name;
      EXPECT_GT(got.high, bound * 0.98) << one.name << ": 60000 draws come near the bound";
    }
}

TEST(KerasInitializers, VarianceScalingOfEveryKind) {
  random::seed(2);
  auto drawn = [](keras::initializers::VarianceScalingOptions options, const Shape& shape) {
    return initializers::VarianceScaling(std::move(options))(shape, f32);
  };
  expect_moments(drawn({.scale = 3, .mode = "fan_out"}, {inputs, outputs}), 0, 3.0 / outputs, "fan_out");
  expect_moments(drawn({.scale = 3, .mode = "fan_avg", .distribution = "uniform"}, {inputs, outputs}), 0,
                 3.0 / ((inputs + outputs) / 2.0), "fan_avg");
  Tensor wide = drawn({.distribution = "untruncated_normal"}, {inputs, outputs});
  expect_moments(wide, 0, 1.0 / inputs, "untruncated");
  EXPECT_GT(moments_of(wide).high, 3 * std::sqrt(1.0 / inputs)) << "not cut";
  expect_moments(drawn({.distribution = "normal"}, {inputs, outputs}), 0, 1.0 / inputs, "normal");
  // A receptive field of 3 x 5 counts in both; one axis is both; none is 1.
  expect_moments(drawn({}, {3, 5, 20, 40}), 0, 1.0 / (3 * 5 * 20), "convolution");
  expect_moments(drawn({.mode = "fan_out"}, {3, 5, 20, 40}), 0, 1.0 / (3 * 5 * 40), "convolution");
  expect_moments(drawn({}, {5000}), 0, 1.0 / 5000, "vector");
  expect_moments(drawn({.input_axes = {0, 1}, .output_axes = {2}}, {10, 20, 30}), 0, 1.0 / 200, "axes");
  expect_moments(drawn({.mode = "fan_out", .input_axes = {0, 1}, .output_axes = {-1}}, {10, 20, 30}), 0, 1.0 / 30,
                 "axes");
  EXPECT_EQ(drawn({}, {}).rank(), 0);
  EXPECT_EQ(drawn({}, {0, 4}).size(), 0);
}

TEST(KerasInitializers, Distributions) {
  random::seed(3);
  Tensor normal = initializers::RandomNormal({.mean = 2, .stddev = 0.5})({200, 300}, f32);
  expect_moments(normal, 2, 0.25, "random_normal");
  EXPECT_GT(moments_of(normal).high, 2 + 3 * 0.5);
  Tensor uniform = initializers::RandomUniform({.minval = -1, .maxval = 3})({200, 300}, f32);
  expect_moments(uniform, 1, 16.0 / 12, "random_uniform");
  EXPECT_GE(moments_of(uniform).low, -1);
  EXPECT_LT(moments_of(uniform).high, 3);
  Tensor cut = initializers::TruncatedNormal({.mean = 1, .stddev = 0.5})({200, 300}, f32);
  expect_moments(cut, 1, std::pow(0.5 * 0.87962566103423978, 2), "truncated_normal");
  EXPECT_GE(moments_of(cut).low, 0);
  EXPECT_LE(moments_of(cut).high, 2);
  for (const char* name : {"random_normal", "normal", "RandomNormal"})
    expect_moments(keras::Initializer(name)({200, 300}, f32), 0, 0.0025, name);
  for (const char* name : {"random_uniform", "uniform"})
    expect_moments(keras::Initializer(name)({200, 300}, f32), 0, 0.01 / 12, name);
  expect_moments(keras::Initializer("truncated_normal")({200, 300}, f32), 0, std::pow(0.05 * 0.87962566103423978, 2),
                 "truncated_normal");
  for (DType dtype : {f16, bf16, f32, f64}) {
    Tensor drawn = initializers::HeNormal()({64, 64}, dtype);
    EXPECT_EQ(drawn.dtype(), dtype);
    expect_moments(drawn, 0, 2.0 / 64, text("he_normal in ", dtype));
  }
}

TEST(KerasInitializers, SeedsAndStreams) {
  keras::Initializer seeded = initializers::HeNormal({.seed = 1}), other = initializers::HeNormal({.seed = 2});
  keras::Initializer unseeded = initializers::HeNormal();
  const Shape shape{3, 4};
  random::seed(5);
  std::vector<double> first = doubles(seeded(shape, f32)), free = doubles(unseeded(shape, f32));
  EXPECT_EQ(doubles(seeded(shape, f32)), first) << "a seed gives the same numbers";
  EXPECT_NE(doubles(other(shape, f32)), first);
  EXPECT_NE(doubles(unseeded(shape, f32)), free) << "each weight has its own";
  random::seed(6);
  EXPECT_EQ(doubles(initializers::HeNormal({.seed = 1})(shape, f32)), first) << "whatever random::seed says";
  random::seed(5);
  EXPECT_EQ(doubles(unseeded(shape, f32)), free) << "a seeded one takes no stream from others";
  // Every random one takes a seed.
  const std::vector<keras::Initializer> all = {
      initializers::RandomNormal({.seed = 7}),    initializers::RandomUniform({.seed = 7}),
      initializers::TruncatedNormal({.seed = 7}), initializers::VarianceScaling({.seed = 7}),
      initializers::GlorotNormal({.seed = 7}),    initializers::GlorotUniform({.seed = 7}),
      initializers::HeUniform({.seed = 7}),       initializers::LecunNormal({.seed = 7}),
      initializers::LecunUniform({.seed = 7}),    initializers::Orthogonal({.seed = 7})};
  for (const keras::Initializer& one : all) EXPECT_EQ(doubles(one(shape, f32)), doubles(one(shape, f32)));
}

TEST(KerasInitializers, EagerAndTracedWeightsAgree) {
  for (const char* name : {"orthogonal", "truncated_normal", "he_uniform"}) {
    random::seed(9);
    keras::Dense eager(5, {.kernel_initializer = name}), traced(5, {.kernel_initializer = name});
    eager(ones({2, 4}));
    random::seed(9);
    Function call = function("call(x)", [=](Tensor x) { return traced(x); });
    call(ones({2, 4}));
    EXPECT_EQ(doubles(eager.weights()[0].variable), doubles(traced.weights()[0].variable)) << name;
  }
}

TEST(KerasInitializers, Constants) {
  EXPECT_EQ(doubles(initializers::Zeros()({2}, f32)), (std::vector<double>{0, 0}));
  EXPECT_EQ(doubles(initializers::Ones()({2}, i32)), (std::vector<double>{1, 1}));
  EXPECT_EQ(doubles(initializers::Constant(2.5)({1, 2}, f64)), (std::vector<double>{2.5, 2.5}));
  EXPECT_EQ(doubles(initializers::Constant(tensor({1, 2}))({2, 2}, f32)), (std::vector<double>{1, 2, 1, 2}));
  EXPECT_EQ(doubles(keras::Initializer("constant")({1}, f32)), (std::vector<double>{0}));
  EXPECT_EQ(doubles(initializers::Identity({.gain = 3})({2, 3}, f32)), (std::vector<double>{3, 0, 0, 0, 3, 0}));
  EXPECT_EQ(doubles(keras::Initializer("identity")({2, 2}, f64)), (std::vector<double>{1, 0, 0, 1}));
  for (const char* name : {"zero", "zeros", "Zeros"}) EXPECT_EQ(doubles(keras::Initializer(name)({}, f32))[0], 0);
  for (const char* name : {"one", "ones", "Ones"}) EXPECT_EQ(doubles(keras::Initializer(name)({}, f32))[0], 1);
}

TEST(KerasInitializers, OrthogonalMatrices) {
  random::seed(4);
  struct Case {
    Shape shape;
    std::int64_t rows, columns;
  };
  for (const Case& one : {Case{{5, 5}, 5, 5}, Case{{7, 3}, 7, 3}, Case{{3, 7}, 3, 7}, Case{{2, 3, 2, 4}, 12, 4},
                          Case{{1, 1}, 1, 1}, Case{{1, 6}, 1, 6}})
    for (DType dtype : {f32, f64}) {
      Tensor drawn = initializers::Orthogonal({.gain = 2})(one.shape, dtype);
      ASSERT_EQ(drawn.shape().sizes(), one.shape.sizes());
      Tensor q = reshape(drawn, {one.rows, one.columns}) / 2;
      Tensor product =
          one.rows >= one.columns ? matmul(q, q, {.transpose_a = true}) : matmul(q, q, {.transpose_b = true});
      Tensor error = max(abs(product - eye(product.dim(0), {.dtype = dtype})));
      EXPECT_LT(error.item<double>(), dtype == f64 ? 1e-14 : 2e-6) << one.shape.str();
    }
  // Each sign as often: the factorisation alone would give one.
  int positive = 0;
  for (int i = 0; i < 200; ++i) positive += initializers::Orthogonal()({1, 1}, f32).item<float>() > 0;
  EXPECT_GT(positive, 60);
  EXPECT_LT(positive, 140);
  EXPECT_EQ(initializers::Orthogonal()({0, 3}, f32).size(), 0);
}

TEST(KerasInitializers, STFTKernels) {
  const std::int64_t frame = 8, bins = 5;
  const double pi = std::numbers::pi;
  for (const char* side : {"real", "imag"})
    for (bool periodic : {false, true}) {
      Tensor kernel = initializers::STFT({.side = side, .periodic = periodic})({frame, 1, bins}, f64);
      std::vector<double> window, got = doubles(kernel);
      double squares = 0;
      for (std::int64_t i = 0; i < frame; ++i) {
        const double angle = 2 * pi * static_cast<double>(i) / static_cast<double>(periodic ? frame : frame - 1);
        window.push_back(std::pow(std::sin(angle / 2), 2));
        squares += window.back() * window.back();
      }
      for (std::int64_t i = 0; i < frame; ++i)
        for (std::int64_t bin = 0; bin < bins; ++bin) {
          const double angle = -2 * pi * static_cast<double>(i * bin) / 8;
          const double wave = std::string(side) == "real" ? std::cos(angle) : std::sin(angle);
          EXPECT_NEAR(got[static_cast<std::size_t>(i * bins + bin)],
                      wave * window[static_cast<std::size_t>(i)] / std::sqrt(squares), 1e-14);
        }
    }
  Tensor plain = initializers::STFT({.window = "", .scaling = {}})({4, 2, 3}, f32);
  EXPECT_EQ(plain.shape().sizes(), (std::vector<std::int64_t>{4, 2, 3}));
  EXPECT_NEAR(sum(plain).item<double>(), 8, 1e-5) << "bin 0 is all ones, the others sum to 0";
  Tensor sum_of_window = sum(initializers::STFT({.window = "hamming", .scaling = "spectrum"})({6, 1, 4}, f64), 0);
  EXPECT_NEAR(sum_of_window.item<double>({0, 0}), 1, 1e-14);
}

TEST(KerasInitializers, WrongUses) {
  auto expect = [](auto make, const std::string& part) {
    const std::string error = error_of(make);
    EXPECT_CONTAINS(error, part);
    EXPECT_CONTAINS(error, "keras_initializers_test.cpp:");
  };
  expect([] { keras::Initializer("he_norm"); }, "there is no initializer 'he_norm'");
  expect([] { initializers::Orthogonal()({3}, f32); }, "Orthogonal: a weight of [3] is no matrix");
  expect([] { initializers::Identity()({3}, f32); }, "Identity: a weight of [3] is no matrix");
  expect([] { initializers::VarianceScaling({.scale = 0}); }, "VarianceScaling: scale = 0");
  expect([] { initializers::VarianceScaling({.mode = "fan"}); }, "VarianceScaling: there is no mode 'fan'");
  expect([] { initializers::VarianceScaling({.distribution = "beta"}); }, "there is no distribution 'beta'");
  expect(
      [] {
        initializers::HeNormal({.input_axes = {3}, .output_axes = {0}})({2, 2}, f32);
      },
      "there is no axis 3 in a weight of [2,2]");
  expect([] { initializers::RandomNormal({.stddev = -1}); }, "RandomNormal: stddev = -1");
  expect([] { initializers::TruncatedNormal({.stddev = -1}); }, "TruncatedNormal: stddev = -1");
  expect([] { initializers::RandomUniform({.minval = 2, .maxval = 1}); }, "RandomUniform: from 2 to 1");
  expect([] { initializers::STFT({.side = "left"}); }, "STFT: there is no side 'left'");
  expect([] { initializers::STFT({.window = "square"}); }, "STFT: there is no window 'square'");
  expect([] { initializers::STFT({.scaling = "none"}); }, "STFT: there is no scaling 'none'");
  expect([] { initializers::STFT()({3, 3}, f32); }, "STFT: a weight of [3,3]");
}

}  // namespace
