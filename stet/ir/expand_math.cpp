// How a polynomial serves all values: the argument is reduced with a few exact steps to where one polynomial is good,
// and the result is put together again. Everything is straight-line: special values come out of the arithmetic where
// they can, and of a select where they cannot.
//
// Recurring tools
// - Rounding by a magic number: x + 1.5 * 2^23 (2^52 for f64) has no bits below 1, so it is x rounded to an integer
//   (nearest even), and its low bits are that integer. One addition rounds and converts.
// - 2^n as bits: (n + bias) << 23.
// - Constants in two parts, where the product of the first with an integer is exact.
#include "stet/ir/expand_math.h"

#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "stet/ir/math_coefficients.h"
#include "stet/ir/math_parts.h"

namespace stet {

using namespace scalar;
using namespace math_parts;

namespace {

/// factor * exp(r) * 2^n, |r| <= log(2) / 2, of `shifted` = magic + 2 * bias + n; an undefined factor is 1.
Expr exponential_of_parts(Expr r, Expr shifted, Expr factor) {
  Format t = format(r);
  Expr tail = t.single ? polynomial(r, coefficients::exp_f32) : polynomial(r, coefficients::exp_f64);
  Expr grown = fma(tail, r * r, r);  // exp(r) - 1
  Expr p = factor.defined() ? fma(grown, factor, factor) : grown + 1;
  // 2^n in two halves, each a normal number, so that the product overflows and underflows as it should.
  Expr bits = bitcast(shifted, t.integers), half = shift_right(bits, 1);
  Expr first = bitcast(shift_left(half, t.fraction_bits), t.dtype);
  Expr second = bitcast(shift_left(bits - half, t.fraction_bits), t.dtype);
  return p * first * second;
}

}  // namespace

Expr math_parts::scaled_exponential(Expr factor, Expr x, Expr correction) {
  Format t = format(x);
  // Beyond these the result is infinity and 0 anyway; the clamps keep the integer small. NaN passes.
  Expr bounded = maximum(minimum(x, t.single ? 89.0 : 710.0), t.single ? -104.0 : -746.0);
  double offset = t.magic + 2 * t.bias;
  Expr shifted = fma(bounded, t.constant(coefficients::log2_e), t.constant(offset));
  Expr n = shifted - offset;
  const double* ln2 = t.single ? coefficients::ln2_f32 : coefficients::ln2_f64;
  Expr exact = fma(n, t.constant(-ln2[0]), bounded);
  Expr low = t.constant(-ln2[1]);
  Expr r = correction.defined() ? exact + fma(n, low, correction) : fma(n, low, exact);
  return exponential_of_parts(r, shifted, factor);
}

namespace {

/// 2^x: the integer part goes into the exponent as it is, so that powers of two are exact.
Expr power_of_two_function(Expr x) {
  Format t = format(x);
  Expr bounded = maximum(minimum(x, t.single ? 129.0 : 1025.0), t.single ? -151.0 : -1076.0);
  double offset = t.magic + 2 * t.bias;
  Expr shifted = bounded + offset;
  return exponential_of_parts((bounded - (shifted - offset)) * std::log(2.0), shifted, Expr());
}

/// exp(x) - 1 = 2^n (exp(r) - 1) + 2^n - 1, of a bounded x.
struct ExponentialLessOne {
  Expr grown;    // exp(r) - 1
  Expr shifted;  // magic + bias + n
};
ExponentialLessOne exponential_less_one_parts(Expr bounded) {
  Format t = format(bounded);
  Expr shifted = fma(bounded, t.constant(coefficients::log2_e), t.constant(t.magic + t.bias));
  Expr n = shifted - (t.magic + t.bias);
  const double* ln2 = t.single ? coefficients::ln2_f32 : coefficients::ln2_f64;
  Expr r = fma(n, t.constant(-ln2[1]), fma(n, t.constant(-ln2[0]), bounded));
  Expr tail = t.single ? polynomial(r, coefficients::expm1_f32) : polynomial(r, coefficients::expm1_f64);
  return {fma(tail, r * r, r), shifted};
}

Expr exponential_less_one(Expr x) {
  Format t = format(x);
  // -1 and infinity beyond these. Half of 2^n, as all of it may not be a number.
  Expr bounded = maximum(minimum(x, t.single ? 89.0 : 710.0), t.single ? -18.0 : -38.0);
  ExponentialLessOne parts = exponential_less_one_parts(bounded);
  Expr half = power_of_two(parts.shifted - 1);
  Expr value = fma(half, parts.grown, half - 0.5) * 2;
  return select(abs(x) < 0x1p-60, x, value);  // -0 stays, and half of a subnormal number is none
}

/// log of f32: log(1 + f) = f + f^2 Q(f) around 1, plus the exponent's part.
Expr logarithm_f32(Expr x) {
  Expr tiny = x < std::numeric_limits<float>::min();  // subnormal numbers have no leading bit to rely on
  Expr bits = bitcast(select(tiny, x * 0x1p24, x), i32);
  // Mantissas from 2/3 to 4/3: numbers just below 1 keep exponent 0, or log would cancel there.
  constexpr std::int64_t one = 0x3f800000, two_thirds = 0x3f2aaaab;
  Expr biased = shift_right(bits + (one - two_thirds), 23);
  Expr f = bitcast(bits - shift_left(biased, 23) + one, f32) - 1;
  Expr exponent = cast(biased, f32) - select(tiny, constant(127.0 + 24, f32), constant(127.0, f32));
  Expr q = polynomial(f, coefficients::log_f32);
  Expr low = fma(f * f, q, exponent * coefficients::ln2_f32[1]) + f;
  return logarithm_specials(x, fma(exponent, constant(coefficients::ln2_f32[0], f32), low));
}

}  // namespace

Expr math_parts::logarithm_f64(Expr x) {
  MantissaExponent parts = mantissa_exponent(x, true);
  // log(1 + f) = 2 atanh(s), written around f, which is exact, so that only small terms carry rounding errors.
  Expr f = parts.mantissa - 1, s = f / (f + 2), z = s * s;
  Expr half_square = f * f * 0.5;
  Expr r = z * polynomial(z, coefficients::log_f64);
  Expr small = fma(s, half_square + r, parts.exponent * coefficients::ln2_f64[1]);
  Expr low = f - (half_square - small);
  return logarithm_specials(x, fma(parts.exponent, constant(coefficients::ln2_f64[0], f64), low));
}

namespace {

/// sinh / cosh as e / (e + 2) with e = exp(2|x|) - 1, which is accurate down to 0 since e is.
Expr hyperbolic_tangent(Expr x) {
  Format t = format(x);
  Expr doubled = minimum(abs(x), t.single ? 9.2 : 19.2) * 2;  // 1 from there on
  ExponentialLessOne parts = exponential_less_one_parts(doubled);
  Expr scale = power_of_two(parts.shifted);
  Expr e = fma(scale, parts.grown, scale - 1);
  return copy_sign(e / (e + 2), x);
}

}  // namespace

/// erfc of a >= 0: exp(-a^2) P(q) / (a + k), where the quotient is smooth from 0 to infinity.
Expr math_parts::erfc_of_positive(Expr a) {
  Format t = format(a);
  Expr bounded = minimum(a, t.single ? 10.2 : 27.3);  // 0 from there on
  // The square's rounding error would be multiplied by exp's slope, so it is carried along.
  Expr square = bounded * bounded, rest = fma(bounded, bounded, -square);
  double k = t.single ? 2 : 3;
  Expr below = bounded + k, inverse = 1 / below;
  // What the sum and the division rounded off, as a change of the inverse: it counts twice and more in the result.
  Expr lost = bounded - (below - k);
  Expr change = inverse * fma(-inverse, lost, fma(-inverse, below, t.constant(1)));
  Expr q = fma(change, t.constant(-2 * k), fma(inverse, t.constant(-2 * k), t.constant(1)));
  Expr p = t.single ? polynomial(q, coefficients::erfc_f32) : polynomial(q, coefficients::erfc_f64);
  return scaled_exponential(fma(p, inverse, p * change), -square, -rest);
}

namespace {

Expr complementary_error(Expr x) {
  Expr positive = erfc_of_positive(abs(x));
  return select(x < 0, 2 - positive, positive);
}

Expr error_function_f32(Expr x) {
  Format t = format(x);
  Expr a = abs(x), z = x * x;
  Expr small = fma(x, polynomial(z, coefficients::erf_small_f32), x);
  // 1 - exp(P(a)): what is subtracted is at most 0.2, so a rough exponential is exact enough.
  Expr g = polynomial(minimum(a, 4), coefficients::erf_large_f32);
  Expr shifted = fma(g, t.constant(coefficients::log2_e), t.constant(t.magic + t.bias));
  Expr r = fma(shifted - (t.magic + t.bias), t.constant(-std::log(2.0)), g);
  Expr p = fma(polynomial(r, coefficients::exp_rough), r * r, r) + 1;
  Expr large = fma(-p, power_of_two(shifted), t.constant(1));
  return select(a < 0.925, small, copy_sign(large, x));
}

Expr error_function_f64(Expr x) {
  Expr a = abs(x);
  Expr small = fma(x, polynomial(x * x, coefficients::erf_small_f64), x);
  return select(a < 0.85, small, copy_sign(1 - erfc_of_positive(a), x));
}

Expr integer_power(Expr base, Expr exponent) {
  DType d = base.dtype();
  int bits = 8 * size_of(d) - (d == u8 ? 0 : 1);
  Expr one = constant(1, d), result = one, square = base;
  for (int i = 0; i < bits; ++i) {
    Expr bit = equal(logical_and(i ? shift_right(exponent, i) : exponent, one), one);
    result = select(bit, result * square, result);
    if (i + 1 < bits) square = square * square;
  }
  if (d == u8) return result;
  Expr minus_one = constant(-1, d);
  Expr odd = equal(logical_and(exponent, one), one);
  Expr of_minus_one = select(logical_and(equal(base, minus_one), odd), minus_one, one);
  Expr unit = logical_or(equal(base, one), equal(base, minus_one));
  return select(exponent < 0, select(unit, of_minus_one, constant(0, d)), result);
}

/// One node of f32 or f64 (any type: integer power) whose arguments are expanded already.
Expr expand_node(Primitive primitive, Expr a, Expr b) {
  bool single = a.dtype() == f32;
  switch (primitive) {
    case Primitive::exp:
      return scaled_exponential(Expr(), a, Expr());
    case Primitive::log:
      return single ? logarithm_f32(a) : logarithm_f64(a);
    case Primitive::sin:
      return sine(a, false);
    case Primitive::cos:
      return sine(a, true);
    case Primitive::tanh:
      return hyperbolic_tangent(a);
    case Primitive::erf:
      return single ? error_function_f32(a) : error_function_f64(a);
    case Primitive::erfc:
      return complementary_error(a);
    case Primitive::exp2:
      return power_of_two_function(a);
    case Primitive::expm1:
      return exponential_less_one(a);
    case Primitive::log2:
      return logarithm_to_base(a, 2);
    case Primitive::log10:
      return logarithm_to_base(a, 10);
    case Primitive::erfinv:
      return inverse_error(a);
    case Primitive::log_gamma:
      return math_parts::log_gamma(a);
    case Primitive::digamma:
      return math_parts::digamma(a);
    case Primitive::atan2:
      return arc_tangent(a, b);
    default:
      return single ? power_f32(a, b) : power_f64(a, b);
  }
}

Expr expanded(const ExprNode& node, Expr a, Expr b) {
  if (!is_floating(node.dtype)) return integer_power(a, b);
  DType computed = compute_type(node.dtype);
  Expr wide_b = b.defined() ? cast(b, computed) : b;
  return cast(expand_node(node.primitive, cast(a, computed), wide_b), node.dtype);
}

}  // namespace

Expr expand_math(Expr root) {
  std::unordered_map<const ExprNode*, Expr> replaced;
  for (Expr e : topological(root)) {
    Expr& now = replaced[&*e];
    now = e;
    if (e->argument_count == 0) continue;
    Expr arguments[3];
    for (int i = 0; i < e->argument_count; ++i) arguments[i] = replaced.at(&*e->arguments[i]);
    if (e->custom_derivative)
      now = arguments[0];
    else if (is_transcendental(e->primitive))
      now = expanded(*e, arguments[0], arguments[1]);
    else
      now = make(e->primitive, std::span(arguments, e->argument_count), e.dtype());
  }
  return replaced.at(&*root);
}

}  // namespace stet
