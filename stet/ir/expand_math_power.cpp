// Powers: exp(y log|x|) with more digits in the logarithm than the result has, since the exponent multiplies its error.
#include <cmath>

#include "stet/ir/math_coefficients.h"
#include "stet/ir/math_parts.h"

namespace stet::math_parts {

using namespace scalar;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Expr logarithm_short(Expr x) {
  MantissaExponent parts = mantissa_exponent(x, false);
  Expr f = parts.mantissa - 1, s = f / (f + 2), z = s * s;
  Expr log_mantissa = fma(s * z, polynomial(z, coefficients::log_short), s * 2);
  return fma(parts.exponent, constant(std::log(2.0), f64), log_mantissa);
}

Pair logarithm_pair(Expr x) {
  MantissaExponent parts = mantissa_exponent(x, true);
  Expr f = parts.mantissa - 1;  // exact
  Pair below = quick_sum(constant(2.0, f64), f);
  // s = f / (2 + f) with the rest of the division.
  Expr s_high = f / below.high;
  Expr s_low = fma(-s_high, below.low, fma(-s_high, below.high, f)) / below.high;
  Pair s{s_high, s_low};
  Pair z = product(s, s);
  Pair cube = product(s, z);
  // 2 s + 2/3 s^3 + s^5 R(z): the first two in pairs, the rest is below 2^-12 of the whole.
  double third = 2.0 / 3.0;
  Pair second = product(cube, {constant(third, f64), constant(0x1p-54 * third, f64)});
  Expr rest = cube.high * z.high * polynomial(z.high, coefficients::log_tail_f64);
  Pair sum = quick_sum(s.high * 2, second.high);
  Expr small = fma(s.low, constant(2.0, f64), second.low) + rest + sum.low;
  // The exponent's part: its first product is exact, and larger than the rest unless it is 0.
  Expr whole = parts.exponent * coefficients::ln2_f64[0];
  Pair total = quick_sum(whole, sum.high);
  Expr lower = fma(parts.exponent, constant(coefficients::ln2_f64[1], f64), small) + total.low;
  return quick_sum(total.high, lower);
}

namespace {

/// What C's pow says of zeros, infinities, NaN and negative bases, around the power of |x|. Small exponents that have a
/// formula of their own use it whether they are known when compiling or not, so that both give the same bits.
Expr with_specials(Expr x, Expr y, Expr magnitude) {
  Expr whole = equal(floor(y), y), half = y * 0.5;
  Expr odd = logical_and(whole, logical_not(equal(floor(half), half)));
  Expr unit = logical_and(equal(abs(x), 1), equal(y, y));
  Expr positive = select(unit, 1, magnitude);
  Format t = format(x);
  Expr sign_bit = constant_bits(ScalarBits{1} << (8 * size_of(t.dtype) - 1), t.integers);
  Expr zero = constant(0, t.integers);
  Expr sign = select(odd, logical_and(bitcast(x, t.integers), sign_bit), zero);
  Expr value = bitcast(logical_xor(bitcast(positive, t.integers), sign), t.dtype);
  Expr undefined = logical_and(logical_and(x < 0, -infinity < x), logical_not(whole));
  value = select(undefined, std::numeric_limits<double>::quiet_NaN(), value);
  value = select(logical_or(equal(y, 0), equal(x, 1)), 1, value);

  Expr square = x * x;
  value = select(equal(y, 0.5), select(equal(x, -infinity), infinity, sqrt(x + 0)), value);
  value = select(equal(y, -1), 1 / x, value);
  value = select(equal(y, 1), x, value);
  value = select(equal(y, 3), square * x, value);
  return select(equal(y, 2), square, value);
}

}  // namespace

Expr power_f32(Expr x, Expr y) {
  // In f64 with as many digits as f32's result needs; no f32 is subnormal there.
  Expr base = cast(abs(x), f64);
  Expr logarithm = logarithm_short(base);
  logarithm = select(equal(base, 0), -infinity, select(base < infinity, logarithm, base));
  Expr product = maximum(minimum(cast(y, f64) * logarithm, 200), -200);  // overflow and underflow happen in the cast
  Format t = format(product);
  Expr shifted = fma(product, t.constant(coefficients::log2_e), t.constant(t.magic + t.bias));
  Expr r = fma(shifted - (t.magic + t.bias), t.constant(-std::log(2.0)), product);
  Expr p = fma(polynomial(r, coefficients::exp_short), r * r, r) + 1;
  return with_specials(x, y, cast(p * power_of_two(shifted), f32));
}

Expr power_f64(Expr x, Expr y) {
  Expr base = abs(x);
  Pair logarithm = logarithm_pair(base);
  Expr special = select(equal(base, 0), -infinity, base);
  Expr usual = logical_and(0 < base, base < infinity);
  Pair exact = exact_product(y, logarithm.high);
  Expr low = fma(y, logarithm.low, exact.low);
  // Where the result over- or underflows the correction may be NaN, and does not matter.
  Expr in_range = logical_and(usual, abs(exact.high) < 800);
  Expr high = select(usual, exact.high, y * special);
  Expr bounded = maximum(minimum(high, 800), -800);
  Expr correction = select(in_range, low, 0);
  return with_specials(x, y, scaled_exponential(Expr(), bounded, correction));
}

Expr logarithm_to_base(Expr x, double base) {
  bool two = base == 2;
  // 1 / log(base) and what its rounding took away.
  double inverse = two ? coefficients::log2_e : coefficients::log10_e[0];
  double rest = two ? coefficients::log2_e_rest : coefficients::log10_e[1];
  if (x.dtype() == f32) {
    // The digits that f64 has more make powers of the base exact, where logarithm_short alone would not.
    Expr wide = cast(x, f64);
    return cast(logarithm_specials(wide, logarithm_short(wide) * inverse), f32);
  }
  Pair scaled = product(logarithm_pair(x), {constant(inverse, f64), constant(rest, f64)});
  return logarithm_specials(x, scaled.high + scaled.low);
}

}  // namespace stet::math_parts
