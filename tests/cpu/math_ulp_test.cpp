// How far the compiled transcendental functions are from the truth, in units in the last place of the result.
//
// The bounds are what this sweep measured, rounded up. The reference is the C library in the next wider type: double
// for f32, the 80-bit long double for f64, whose own error is below 0.01 of the units measured here.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <random>
#include <string_view>
#include <vector>

#include "stet/ops/table.h"
#include "tests/cpu/expr_harness.h"
#include "tests/sampling.h"
#include "tests/scale.h"

namespace stet::cpu {
namespace {

using Build = Expr (*)(Expr, Expr);
using Reference = long double (*)(long double, long double);
using NarrowReference = double (*)(double, double);

/// The body of an elementwise row.
Expr row_body(const char* name, Expr x) {
  for (const OpDef& row : elementwise_rows())
    if (std::string_view(row.name) == name) return instantiate(row, std::vector<DType>(row.arity, x.dtype())).body;
  throw std::runtime_error(name);
}
#define STET_ROW(name) [](Expr x, Expr) { return row_body(#name, x); }

enum class Sweep : std::uint8_t { one, power, pair };

struct MathRow {
  const char* name;
  Build build;
  NarrowReference narrow;
  Reference wide;
  double f32_bound, f64_bound;
  Sweep sweep = Sweep::one;
  /// Smaller results are measured in units of this: beside zeros of the function that are differences of larger terms.
  double (*floor)(double x, bool single) = nullptr;
  double underflow = 0;  // smallest normal numbers: results up to there only have to be that small, too
  bool (*applies)(long double, long double) = nullptr;
};

#define STET_REFERENCE(call) \
  [](double x, double) -> double { return call; }, [](long double x, long double) -> long double { return call; }
#define STET_REFERENCE_2(call) \
  [](double x, double y) -> double { return call; }, [](long double x, long double y) -> long double { return call; }

// What the C library has not, in the type they are given or, where that would be too short, in long double.

template <class Float>
Float log_gamma(Float x) {
  int sign = 0;
  if constexpr (sizeof(Float) == 8)
    return ::lgamma_r(x, &sign);
  else
    return ::lgammal_r(x, &sign);
}

long double digamma(long double x) {
  if (x == 0) return -std::copysign(HUGE_VALL, x);
  if (std::isinf(x)) return x > 0 ? x : NAN;
  long double pi = std::numbers::pi_v<long double>, total = 0;
  if (x < 0) {
    long double part = x - std::nearbyint(x);
    if (part == 0) return NAN;
    total = -pi / std::tan(pi * part);
    x = 1 - x;
  }
  for (; x < 40; x += 1) total -= 1 / x;
  long double z = 1 / (x * x);
  long double series =
      z * (1.0L / 12 - z * (1.0L / 120 - z * (1.0L / 252 - z * (1.0L / 240 - z * (1.0L / 132 - z * 691 / 32760)))));
  return total + std::log(x) - 1 / (2 * x) - series;
}

/// By bisection in the bits of the result, then Newton's method: slow, and sure.
long double inverse_error(long double x) {
  long double a = std::abs(x), low = 0, high = 7;
  if (!(a < 1)) return a == 1 ? std::copysign(HUGE_VALL, x) : NAN;
  if (a < 1e-300L) return x * std::sqrt(std::numbers::pi_v<long double>) / 2;
  auto above = [&](long double y) { return a < 0.5L ? std::erf(y) - a : (1 - a) - std::erfc(y); };
  long double y = a < 0.1L ? a * 0.8862269254527580137L : 0;
  if (y == 0) {
    for (int i = 0; i < 12; ++i) (above((low + high) / 2) < 0 ? low : high) = (low + high) / 2;
    y = (low + high) / 2;
  }
  for (int i = 0; i < 6; ++i) y -= above(y) * std::exp(y * y) * std::sqrt(std::numbers::pi_v<long double>) / 2;
  return std::copysign(y, x);
}

template <class Float>
Float soft_plus(Float x) {
  return std::max(x, Float(0)) + std::log1p(std::exp(-std::abs(x)));
}
template <class Float>
Float log_add_exp(Float x, Float y) {
  if (x == y) return x + std::numbers::ln2_v<Float>;
  return std::max(x, y) + std::log1p(std::exp(-std::abs(x - y)));
}
template <class Float>
Float x_log_y(Float x, Float y) {
  return x == 0 && !std::isnan(y) ? 0 : x * std::log(y);
}
template <class Float>
Float exponential_unit(Float x, Float factor, Float scale) {
  return x > 0 ? x : factor * std::expm1(x / scale);
}
template <class Float>
Float gelu_by_tanh(Float x) {
  Float u = std::sqrt(2 / std::numbers::pi_v<Float>) * (x + Float(0.044715L) * x * x * x);
  return x / (1 + std::exp(-2 * u));
}
template <class Float>
Float mish(Float x) {
  return x * std::tanh(soft_plus(x));
}

const MathRow rows[] = {
    {"exp", [](Expr x, Expr) { return scalar::exp(x); }, STET_REFERENCE(std::exp(x)), 1.1, 1.1},
    {"exp2", STET_ROW(exp2), STET_REFERENCE(std::exp2(x)), 1.2, 1.2},
    {"expm1", STET_ROW(expm1), STET_REFERENCE(std::expm1(x)), 1.6, 2},
    {"log", [](Expr x, Expr) { return scalar::log(x); }, STET_REFERENCE(std::log(x)), 1, 1},
    {"log1p", STET_ROW(log1p), STET_REFERENCE(std::log1p(x)), 1.6, 1.6},
    {"log2", STET_ROW(log2), STET_REFERENCE(std::log2(x)), 0.6, 0.6},
    {"log10", STET_ROW(log10), STET_REFERENCE(std::log10(x)), 0.6, 0.6},
    {"cbrt", STET_ROW(cbrt), STET_REFERENCE(std::cbrt(x)), 0.6, 0.6},
    {"sin", [](Expr x, Expr) { return scalar::sin(x); }, STET_REFERENCE(std::sin(x)), 1.6, 1.6},
    {"cos", [](Expr x, Expr) { return scalar::cos(x); }, STET_REFERENCE(std::cos(x)), 1.6, 1.6},
    {"tan", STET_ROW(tan), STET_REFERENCE(std::tan(x)), 3.2, 3.2},
    {"asin", STET_ROW(asin), STET_REFERENCE(std::asin(x)), 2.6, 2.7},
    {"acos", STET_ROW(acos), STET_REFERENCE(std::acos(x)), 2.3, 2.2},
    {"atan", STET_ROW(atan), STET_REFERENCE(std::atan(x)), 1.4, 1.6},
    {"atan2", STET_ROW(atan2), STET_REFERENCE_2(std::atan2(x, y)), 1.6, 1.6, Sweep::pair},
    {"sinh", STET_ROW(sinh), STET_REFERENCE(std::sinh(x)), 3.3, 3},
    {"cosh", STET_ROW(cosh), STET_REFERENCE(std::cosh(x)), 2.8, 2.7},
    {"tanh", [](Expr x, Expr) { return scalar::tanh(x); }, STET_REFERENCE(std::tanh(x)), 2.5, 2.7},
    {"asinh", STET_ROW(asinh), STET_REFERENCE(std::asinh(x)), 2.2, 2.1},
    {"acosh", STET_ROW(acosh), STET_REFERENCE(std::acosh(x)), 2.4, 2.9},
    {"atanh", STET_ROW(atanh), STET_REFERENCE(std::atanh(x)), 2.6, 2.6},
    {"erf", [](Expr x, Expr) { return scalar::erf(x); }, STET_REFERENCE(std::erf(x)), 1.5, 1.2},
    {"erfc", [](Expr x, Expr) { return scalar::erfc(x); }, STET_REFERENCE(std::erfc(x)), 3.7, 4},
    {"erfinv", STET_ROW(erfinv), STET_REFERENCE(static_cast<decltype(x)>(inverse_error(x))), 0.8, 2.2},
    {"lgamma", STET_ROW(lgamma), STET_REFERENCE(log_gamma(x)), 0.6, 3.3, Sweep::one,
     [](double x, bool single) { return single || x > 0 ? 0.0 : 4.0; }},
    {"digamma", STET_ROW(digamma), STET_REFERENCE(static_cast<decltype(x)>(digamma(x))), 0.6, 4, Sweep::one,
     [](double x, bool single) {
       if (single) return 0.0;
       return x > 0 ? 1.0 : std::max(4.0, 2 * std::log(-x));
     }},
    {"hypot", STET_ROW(hypot), STET_REFERENCE_2(std::hypot(x, y)), 2.1, 2.1, Sweep::pair},
    {"xlogy", STET_ROW(xlogy), STET_REFERENCE_2(x_log_y(x, y)), 1.8, 1.8, Sweep::pair},
    {"logaddexp", STET_ROW(logaddexp), STET_REFERENCE_2(log_add_exp(x, y)), 1.3, 1.3, Sweep::pair,
     [](double, bool) { return 1.0; }},
    {"sigmoid", [](Expr x, Expr) { return 1 / (scalar::exp(-x) + 1); }, STET_REFERENCE(1 / (1 + std::exp(-x))), 3, 3,
     Sweep::one, nullptr, 1},
    {"softplus", STET_ROW(softplus), STET_REFERENCE(soft_plus(x)), 2.1, 2.1},
    {"log_sigmoid", STET_ROW(log_sigmoid), STET_REFERENCE(-soft_plus(-x)), 2.1, 2.1},
    {"elu", STET_ROW(elu), STET_REFERENCE_2(exponential_unit(x, y, static_cast<decltype(x)>(1))), 1.9, 2.2,
     Sweep::pair},
    {"celu", STET_ROW(celu), STET_REFERENCE_2(exponential_unit(x, y, y)), 2.4, 2.5, Sweep::pair, nullptr, 0,
     [](long double x, long double y) { return y < INFINITY && (x > 0 || y > 0); }},
    {"selu", STET_ROW(selu),
     STET_REFERENCE(static_cast<decltype(x)>(1.0507009873554804934193349852946L) *
                    exponential_unit(x, static_cast<decltype(x)>(1.6732632423543772848170429916717L),
                                     static_cast<decltype(x)>(1))),
     2, 1.8},
    {"mish", STET_ROW(mish), STET_REFERENCE(mish(x)), 4, 3.5, Sweep::one, nullptr, 750},
    {"gelu_tanh", STET_ROW(gelu_tanh), STET_REFERENCE(gelu_by_tanh(x)), 2.8, 2.8, Sweep::one, nullptr, 750},
    {"power", [](Expr x, Expr y) { return scalar::power(x, y); }, STET_REFERENCE_2(std::pow(x, y)), 1.3, 1.5,
     Sweep::power},
};

template <class Float>
double ulps(Float got, long double truth, double floor) {
  if (std::isnan(truth)) return std::isnan(got) ? 0 : INFINITY;
  Float nearest = static_cast<Float>(truth);
  if (got == nearest) {
    // Signed zeros must match; otherwise the error is a fraction of one unit and measured below.
    if (got == 0) return std::signbit(got) == std::signbit(truth) || floor > 0 ? 0 : INFINITY;
    if (std::isinf(got)) return 0;
  }
  if (std::isinf(got) || std::isnan(got)) {
    // Overflow one unit early is one unit.
    Float largest = std::numeric_limits<Float>::max();
    return std::isinf(got) && std::abs(nearest) == largest && std::signbit(got) == std::signbit(nearest) ? 1 : INFINITY;
  }
  if (std::isinf(nearest)) return std::abs(got) == std::numeric_limits<Float>::max() ? 1 : INFINITY;
  Float magnitude = std::max({std::abs(nearest), std::numeric_limits<Float>::min(), static_cast<Float>(floor)});
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

/// Points of every size, beside others of every size and of nearly the same, with all signs.
template <class Float>
Points<Float> pair_sweep(int count) {
  Points<Float> points;
  std::mt19937_64 random(13);
  double top = std::numeric_limits<Float>::max_exponent;
  std::uniform_real_distribution<double> wide(-top - 20, top), near(-8, 8);
  for (int i = 0; i < count; ++i) {
    double exponent = i % 3 ? near(random) : wide(random),
           other = i % 4 ? exponent + near(random) / (i % 5 + 1) : wide(random);
    auto x = static_cast<Float>(std::exp2(exponent)), y = static_cast<Float>(std::exp2(other));
    points.add(random() & 1 ? -x : x, random() & 1 ? -y : y);
  }
  for (Float x : special_values<Float>())
    for (Float y : special_values<Float>()) points.add(x, y);
  points.pad();
  return points;
}

template <class Float>
void measure(const MathRow& row, const Points<Float>& points) {
  DType d = dtype_of<Float>;
  bool single = sizeof(Float) == 4;
  ArrayFunction function = array_function(row.build(operand(0, d), operand(1, d)), 16);
  std::vector<Float> out(points.x.size());
  const void* inputs[] = {points.x.data(), points.y.data()};
  function(inputs, out.data(), static_cast<std::int64_t>(out.size()));
  double worst = 0;
  std::size_t at = 0;
  // The bounds were measured at these points, so a run that is not full visits one in five of them, and the special
  // ones at the end.
  const std::size_t every = full_tests() ? 1 : 5, first = seeded(row.name) % every;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i % every != first && i + 4000 < out.size()) continue;
    if (row.applies && !row.applies(points.x[i], points.y[i])) continue;
    long double truth =
        single ? static_cast<long double>(row.narrow(points.x[i], points.y[i])) : row.wide(points.x[i], points.y[i]);
    Float tiny = std::numeric_limits<Float>::min() * static_cast<Float>(row.underflow);
    if (std::abs(truth) < tiny && std::abs(out[i]) <= tiny) continue;
    double error = ulps(out[i], truth, row.floor ? row.floor(points.x[i], single) : 0);
    if (!(error <= worst)) {
      worst = error;
      at = i;
    }
  }
  std::printf("%-11s %s  %.3f ULP, at %.17g (%.17g) -> %.17g\n", row.name, single ? "f32" : "f64", worst,
              static_cast<double>(points.x[at]), static_cast<double>(points.y[at]), static_cast<double>(out[at]));
  EXPECT_LE(worst, single ? row.f32_bound : row.f64_bound) << row.name << " of " << points.x[at];
}

template <class Float>
void measure_all(int per_exponent, int dense) {
  Points<Float> one = sweep<Float>(per_exponent, dense), power = power_sweep<Float>(dense / 3),
                pair = pair_sweep<Float>(dense / 3);
  for (const MathRow& row : rows)
    measure(row, row.sweep == Sweep::one ? one : row.sweep == Sweep::power ? power : pair);
}

TEST(MathUlp, F32) { measure_all<float>(1024, scaled(1'000'000)); }
TEST(MathUlp, F64) { measure_all<double>(64, scaled(600'000)); }

/// What is a whole number, or a power of one, comes out as it is.
template <class Float>
void expect_exact(Primitive primitive, Float base, int low, int high, bool inverse) {
  Points<Float> points;
  for (int n = low; n <= high; ++n) points.add(std::pow(base, static_cast<Float>(n)), static_cast<Float>(n));
  points.pad();
  Expr x = operand(0, dtype_of<Float>);
  const std::vector<Float>&from = inverse ? points.x : points.y, &to = inverse ? points.y : points.x;
  std::vector<Float> out(from.size());
  const void* inputs[] = {from.data()};
  array_function(make(primitive, std::span(&x, 1), x.dtype()), 16)(inputs, out.data(), std::ssize(out));
  for (int i = 0; i <= high - low; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], to[static_cast<std::size_t>(i)]);
}
TEST(MathUlp, WholePowersAreExact) {
  expect_exact<float>(Primitive::exp2, 2, -149, 127, false);
  expect_exact<double>(Primitive::exp2, 2, -1074, 1023, false);
  expect_exact<float>(Primitive::log2, 2, -149, 127, true);
  expect_exact<double>(Primitive::log2, 2, -1074, 1023, true);
  expect_exact<float>(Primitive::log10, 10, 0, 10, true);
  expect_exact<double>(Primitive::log10, 10, 0, 22, true);
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
