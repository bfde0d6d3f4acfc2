// How far the compiled transcendental functions are from the truth, in units in the last place of the result.
//
// The bounds are what this sweep measured, rounded up. The reference is the C library in the next wider type: double
// for f32, the 80-bit long double for f64, whose own error is below 0.01 of the units measured here.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "tests/cpu/expr_harness.h"
#include "tests/scale.h"

namespace stet::cpu {
namespace {

using Build = Expr (*)(Expr, Expr);
using Reference = long double (*)(long double, long double);
using NarrowReference = double (*)(double, double);

struct MathRow {
  const char* name;
  Build build;
  NarrowReference narrow;
  Reference wide;
  double f32_bound, f64_bound;
  double reach = INFINITY;        // |x| up to which the bounds hold; beyond it the result is within [-1, 1]
  bool underflows_early = false;  // a composition that gives 0 where an intermediate value overflows
};

#define STET_REFERENCE(call) \
  [](double x, double) -> double { return call; }, [](long double x, long double) -> long double { return call; }

const MathRow rows[] = {
    {"exp", [](Expr x, Expr) { return scalar::exp(x); }, STET_REFERENCE(std::exp(x)), 1.1, 1.1},
    {"log", [](Expr x, Expr) { return scalar::log(x); }, STET_REFERENCE(std::log(x)), 1, 1},
    {"sin", [](Expr x, Expr) { return scalar::sin(x); }, STET_REFERENCE(std::sin(x)), 1.6, 1.6, 0x1p46},
    {"cos", [](Expr x, Expr) { return scalar::cos(x); }, STET_REFERENCE(std::cos(x)), 1.6, 1.6, 0x1p46},
    {"tanh", [](Expr x, Expr) { return scalar::tanh(x); }, STET_REFERENCE(std::tanh(x)), 2.5, 2.7},
    {"erf", [](Expr x, Expr) { return scalar::erf(x); }, STET_REFERENCE(std::erf(x)), 1.5, 1.2},
    {"erfc", [](Expr x, Expr) { return scalar::erfc(x); }, STET_REFERENCE(std::erfc(x)), 3.7, 4.3},
    {"sigmoid", [](Expr x, Expr) { return 1 / (scalar::exp(-x) + 1); }, STET_REFERENCE(1 / (1 + std::exp(-x))), 3, 3,
     INFINITY, true},
    {"power", [](Expr x, Expr y) { return scalar::power(x, y); }, [](double x, double y) { return std::pow(x, y); },
     [](long double x, long double y) { return std::pow(x, y); }, 1.3, 1.5},
};

template <class Float>
double ulps(Float got, long double truth) {
  if (std::isnan(truth)) return std::isnan(got) ? 0 : INFINITY;
  Float nearest = static_cast<Float>(truth);
  if (got == nearest) {
    // Signed zeros must match; otherwise the error is a fraction of one unit and measured below.
    if (got == 0) return std::signbit(got) == std::signbit(truth) ? 0 : INFINITY;
    if (std::isinf(got)) return 0;
  }
  if (std::isinf(got) || std::isnan(got)) {
    // Overflow one unit early is one unit.
    Float largest = std::numeric_limits<Float>::max();
    return std::isinf(got) && std::abs(nearest) == largest && std::signbit(got) == std::signbit(nearest) ? 1 : INFINITY;
  }
  if (std::isinf(nearest)) return std::abs(got) == std::numeric_limits<Float>::max() ? 1 : INFINITY;
  Float magnitude = std::max(std::abs(nearest), std::numeric_limits<Float>::min());
  int exponent = std::ilogb(magnitude);
  long double unit = std::ldexp(1.0L, exponent - std::numeric_limits<Float>::digits + 1);
  return static_cast<double>(std::abs(static_cast<long double>(got) - truth) / unit);
}

template <class Float>
struct Points {
  std::vector<Float> x, y;
  void add(Float a, Float b = 0) {
    x.push_back(a);
    y.push_back(b);
  }
  void pad() {
    while (x.size() % 16) add(1, 1);
  }
};

template <class Float>
using BitsOf = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

template <class Float>
const std::vector<Float>& special_values() {
  using Limits = std::numeric_limits<Float>;
  static const std::vector<Float> values = {0,
                                            Float(-0.0),
                                            Limits::infinity(),
                                            -Limits::infinity(),
                                            Limits::quiet_NaN(),
                                            1,
                                            -1,
                                            2,
                                            -2,
                                            3,
                                            -3,
                                            Float(0.5),
                                            Float(-0.5),
                                            Float(1.5),
                                            Float(-1.5),
                                            Limits::denorm_min(),
                                            -Limits::denorm_min(),
                                            Limits::min(),
                                            -Limits::min(),
                                            Limits::max(),
                                            Limits::lowest(),
                                            1 + Limits::epsilon(),
                                            1 - Limits::epsilon() / 2,
                                            100,
                                            -100,
                                            1000,
                                            -1000};
  return values;
}

/// Every exponent with mantissas spread over it, and many more where functions are interesting.
template <class Float>
Points<Float> sweep(int per_exponent, int dense) {
  Points<Float> points;
  using Bits = BitsOf<Float>;
  constexpr int fraction = std::numeric_limits<Float>::digits - 1, bits = 8 * sizeof(Float);
  std::mt19937_64 random(7);
  for (Bits head = 0; head < (Bits{1} << (bits - fraction)); ++head)
    for (int i = 0; i < per_exponent; ++i) {
      Bits stride = (Bits{1} << fraction) / static_cast<Bits>(per_exponent);
      Bits low = static_cast<Bits>(i) * stride + static_cast<Bits>(random()) % stride;
      points.add(std::bit_cast<Float>((head << fraction) | low));
    }
  std::uniform_real_distribution<double> exponent(-8, 10);
  for (int i = 0; i < dense; ++i) {
    auto magnitude = static_cast<Float>(std::exp2(exponent(random)));
    points.add(random() & 1 ? magnitude : -magnitude);
  }
  for (Float value : special_values<Float>()) points.add(value);
  points.pad();
  return points;
}

/// Bases of every size with exponents that use the whole range of results, and all pairs of special values.
template <class Float>
Points<Float> power_sweep(int count) {
  Points<Float> points;
  std::mt19937_64 random(11);
  double top = std::numeric_limits<Float>::max_exponent;
  std::uniform_real_distribution<double> wide(-top - 20, top), near(-2, 2);
  for (int i = 0; i < count; ++i) {
    auto x = static_cast<Float>(std::exp2(i % 2 ? near(random) : wide(random)));
    double log2_x = std::log2(static_cast<double>(x));
    auto y = static_cast<Float>(wide(random) / (log2_x == 0 ? 1 : log2_x));
    if (i % 5 == 0) y = std::round(y);
    points.add(i % 7 == 0 ? -x : x, y);
  }
  for (Float x : special_values<Float>())
    for (Float y : special_values<Float>()) points.add(x, y);
  points.pad();
  return points;
}

template <class Float>
void measure(const MathRow& row, const Points<Float>& points, double bound, double reach) {
  DType d = dtype_of<Float>;
  ArrayFunction function = array_function(row.build(operand(0, d), operand(1, d)), 16);
  std::vector<Float> out(points.x.size());
  const void* inputs[] = {points.x.data(), points.y.data()};
  function(inputs, out.data(), static_cast<std::int64_t>(out.size()));
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::abs(points.x[i]) > reach && std::isfinite(points.x[i])) {
      EXPECT_LE(std::abs(out[i]), 1) << row.name << " of " << points.x[i];
      continue;
    }
    if (row.underflows_early && out[i] == 0) {
      EXPECT_LT(points.x[i], -std::log(std::numeric_limits<Float>::max())) << row.name;
      continue;
    }
    long double truth = sizeof(Float) == 4 ? static_cast<long double>(row.narrow(points.x[i], points.y[i]))
                                           : row.wide(points.x[i], points.y[i]);
    double error = ulps(out[i], truth);
    if (!(error <= worst)) {
      worst = error;
      at = i;
    }
  }
  std::printf("%-8s %s  %.3f ULP, at %.17g (%.17g) -> %.17g\n", row.name, sizeof(Float) == 4 ? "f32" : "f64", worst,
              static_cast<double>(points.x[at]), static_cast<double>(points.y[at]), static_cast<double>(out[at]));
  EXPECT_LE(worst, bound) << row.name << " of " << points.x[at];
}

bool is_power(const MathRow& row) { return std::string_view(row.name) == "power"; }

TEST(MathUlp, F32) {
  Points<float> points = sweep<float>(4096, scaled(3'000'000)), powers = power_sweep<float>(scaled(1'000'000));
  for (const MathRow& row : rows) measure(row, is_power(row) ? powers : points, row.f32_bound, row.reach);
}

TEST(MathUlp, F64) {
  Points<double> points = sweep<double>(64, scaled(1'000'000)), powers = power_sweep<double>(scaled(400'000));
  for (const MathRow& row : rows) measure(row, is_power(row) ? powers : points, row.f64_bound, row.reach);
}

/// Sixteen lanes, one lane and f16 by way of f32: the same arithmetic, so the same bits.
TEST(MathUlp, LanesAgree) {
  Points<float> points = power_sweep<float>(4096);
  const void* inputs[] = {points.x.data(), points.y.data()};
  std::vector<float> vector_out(points.x.size()), scalar_out(points.x.size());
  for (const MathRow& row : rows) {
    Expr expr = row.build(operand(0, f32), operand(1, f32));
    array_function(expr, 16)(inputs, vector_out.data(), static_cast<std::int64_t>(points.x.size()));
    array_function(expr, 1)(inputs, scalar_out.data(), static_cast<std::int64_t>(points.x.size()));
    for (std::size_t i = 0; i < points.x.size(); ++i)
      ASSERT_TRUE(std::bit_cast<std::uint32_t>(vector_out[i]) == std::bit_cast<std::uint32_t>(scalar_out[i]) ||
                  (std::isnan(vector_out[i]) && std::isnan(scalar_out[i])))
          << row.name << " of " << points.x[i] << ", " << points.y[i] << ": " << vector_out[i] << ", " << scalar_out[i];
  }
}

}  // namespace
}  // namespace stet::cpu
