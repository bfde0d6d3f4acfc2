// Pieces that the expansions of several functions are made of. Private to ir/expand_math*.cpp.
#pragma once
#include <limits>
#include <span>

#include "stet/ir/expr.h"

namespace stet::math_parts {

/// What the tricks with bits need to know of f32 or f64.
struct Format {
  DType dtype, integers;
  bool single;
  double magic;  // 1.5 * 2^(digits of the fraction)
  double bias;   // of the exponent
  int fraction_bits;

  Expr constant(double value) const { return stet::constant(value, dtype); }
};

inline Format format(Expr x) {
  if (x.dtype() == f32) return {f32, i32, true, 0x1.8p23, 127, 23};
  return {f64, i64, false, 0x1.8p52, 1023, 52};
}

/// Horner's scheme, lowest degree first.
inline Expr polynomial(Expr x, std::span<const double> coefficients) {
  Expr value = constant(coefficients.back(), x.dtype());
  for (std::size_t i = coefficients.size() - 1; i-- > 0;)
    value = scalar::fma(value, x, constant(coefficients[i], x.dtype()));
  return value;
}

/// 2^n of `shifted` = magic + bias + n, for n that gives a normal number.
inline Expr power_of_two(Expr shifted) {
  Format t = format(shifted);
  return scalar::bitcast(scalar::shift_left(scalar::bitcast(shifted, t.integers), t.fraction_bits), t.dtype);
}

/// The magnitude of one, which is not negative, with the sign of the other.
inline Expr copy_sign(Expr magnitude, Expr sign) {
  Format t = format(sign);
  Expr mask = constant_bits(ScalarBits{1} << (8 * size_of(t.dtype) - 1), t.integers);
  Expr bit = scalar::logical_and(scalar::bitcast(sign, t.integers), mask);
  return scalar::bitcast(scalar::logical_or(scalar::bitcast(magnitude, t.integers), bit), t.dtype);
}

/// `usual` for positive finite x; -infinity at 0, NaN below, infinity and NaN as they are.
inline Expr logarithm_specials(Expr x, Expr usual) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Expr of_negative = scalar::select(x < 0, std::numeric_limits<double>::quiet_NaN(), x);
  Expr special = scalar::select(scalar::equal(x, 0), -infinity, of_negative);
  return scalar::select(scalar::logical_and(0 < x, x < infinity), usual, special);
}

struct MantissaExponent {
  Expr mantissa;  // from sqrt(1/2) to sqrt(2)
  Expr exponent;  // a floating integer
};

/// x = mantissa * 2^exponent of a positive f64; of subnormal ones only where asked for.
inline MantissaExponent mantissa_exponent(Expr x, bool subnormal) {
  Expr tiny = x < std::numeric_limits<double>::min();
  Expr bits = scalar::bitcast(subnormal ? scalar::select(tiny, x * 0x1p54, x) : x, i64);
  constexpr std::int64_t one = 0x3ff0000000000000, root_of_half = 0x3fe6a09e667f3bcd;
  Expr biased = scalar::shift_right(bits + (one - root_of_half), 52);
  Expr mantissa = scalar::bitcast(bits - scalar::shift_left(biased, 52) + one, f64);
  // A small integer or-ed into 2^52 is a floating number: no conversion, for which AVX2 has no instruction.
  Expr shifted = scalar::bitcast(scalar::logical_or(biased, constant(std::int64_t{0x4330000000000000}, i64)), f64);
  Expr exponent = shifted - (0x1p52 + 1023);
  if (subnormal) exponent = scalar::select(tiny, exponent - 54, exponent);
  return {mantissa, exponent};
}

/// factor * exp(x + correction) for a correction below 2^-20 or so, with overflow to infinity and gradual underflow.
/// The factor is near 1 (2^-10 to 2); an undefined factor is 1, an undefined correction 0.
Expr scaled_exponential(Expr factor, Expr x, Expr correction);

/// An unevaluated sum with about twice the digits of a double.
struct Pair {
  Expr high, low;
};

/// Exact, for |a| >= |b| or a = 0.
inline Pair quick_sum(Expr a, Expr b) {
  Expr sum = a + b;
  return {sum, b - (sum - a)};
}

inline Pair exact_product(Expr a, Expr b) {
  Expr product = a * b;
  return {product, scalar::fma(a, b, -product)};
}

inline Pair product(Pair a, Pair b) {
  Pair p = exact_product(a.high, b.high);
  return {p.high, scalar::fma(a.high, b.low, scalar::fma(a.low, b.high, p.low))};
}

/// expand_math.cpp
Expr logarithm_f64(Expr x);
Expr erfc_of_positive(Expr a);

/// expand_math_angle.cpp. `turned`: sin(x + pi/2). `near`: |x| is known to be below 2^46.
Expr sine(Expr x, bool turned, bool near = false);

/// expand_math_power.cpp. logarithm_short is that of a positive, finite, normal f64 to about 2^-37 of its value,
/// logarithm_pair of every positive finite one to 2^-66.
Expr logarithm_short(Expr x);
Pair logarithm_pair(Expr x);
Expr power_f32(Expr x, Expr y);
Expr power_f64(Expr x, Expr y);
Expr logarithm_to_base(Expr x, double base);  // 2 and 10

/// expand_math_special.cpp
Expr arc_tangent(Expr y, Expr x);
Expr inverse_error(Expr x);
Expr log_gamma(Expr x);
Expr digamma(Expr x);

}  // namespace stet::math_parts
