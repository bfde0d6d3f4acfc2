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
  Expr tail = t.single ? polynomial(r, coefficients::exp_f32) : polynomial(r, coefficients::exp_f64);
  Expr grown = fma(tail, r * r, r);  // exp(r) - 1
  Expr p = factor.defined() ? fma(grown, factor, factor) : grown + 1;
  // 2^n in two halves, each a normal number, so that the product overflows and underflows as it should.
  Expr bits = bitcast(shifted, t.integers), half = shift_right(bits, 1);
  Expr first = bitcast(shift_left(half, t.fraction_bits), t.dtype);
  Expr second = bitcast(shift_left(bits - half, t.fraction_bits), t.dtype);
  return p * first * second;
}

namespace {

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

Expr logarithm_f64(Expr x) {
  MantissaExponent parts = mantissa_exponent(x, true);
  // log(1 + f) = 2 atanh(s), written around f, which is exact, so that only small terms carry rounding errors.
  Expr f = parts.mantissa - 1, s = f / (f + 2), z = s * s;
  Expr half_square = f * f * 0.5;
  Expr r = z * polynomial(z, coefficients::log_f64);
  Expr small = fma(s, half_square + r, parts.exponent * coefficients::ln2_f64[1]);
  Expr low = f - (half_square - small);
  return logarithm_specials(x, fma(parts.exponent, constant(coefficients::ln2_f64[0], f64), low));
}

/// sinh / cosh as e / (e + 2) with e = exp(2|x|) - 1, which is accurate down to 0 since e is.
Expr hyperbolic_tangent(Expr x) {
  Format t = format(x);
  Expr doubled = minimum(abs(x), t.single ? 9.2 : 19.2) * 2;  // 1 from there on
  Expr shifted = fma(doubled, t.constant(coefficients::log2_e), t.constant(t.magic + t.bias));
  Expr n = shifted - (t.magic + t.bias);
  const double* ln2 = t.single ? coefficients::ln2_f32 : coefficients::ln2_f64;
  Expr r = fma(n, t.constant(-ln2[1]), fma(n, t.constant(-ln2[0]), doubled));
  Expr tail = t.single ? polynomial(r, coefficients::expm1_f32) : polynomial(r, coefficients::expm1_f64);
  Expr grown = fma(tail, r * r, r);  // exp(r) - 1
  Expr scale = power_of_two(shifted);
  Expr e = fma(scale, grown, scale - 1);
  return copy_sign(e / (e + 2), x);
}

struct ReducedAngle {
  Expr rest;      // within pi/4
  Expr quadrant;  // i32 or i64, the low two bits count
};

/// x = quadrant * pi/2 + rest. In f64 also for f32: exact enough for |x| < 2^46; beyond it the rest is only a number
/// within its range, so that results stay between -1 and 1.
ReducedAngle reduce_angle(Expr x) {
  Expr wide = cast(x, f64);
  Format t = format(wide);
  Expr shifted = fma(wide, t.constant(coefficients::two_over_pi), t.constant(t.magic));
  Expr n = shifted - t.magic;
  int parts = x.dtype() == f32 ? 2 : 3;
  for (int i = 0; i < parts; ++i) wide = fma(n, t.constant(-coefficients::half_pi_f64[i]), wide);
  Expr rest = maximum(minimum(wide, 0.8), -0.8);
  Expr quadrant = bitcast(shifted, i64);
  if (x.dtype() == f64) return {rest, quadrant};
  return {cast(rest, f32), cast(quadrant, i32)};
}

/// sin(x), or sin(x + pi/2) where `turned`.
Expr sine(Expr x, bool turned) {
  Format t = format(x);
  ReducedAngle angle = reduce_angle(x);
  Expr r = angle.rest, z = r * r;
  Expr s = t.single ? polynomial(z, coefficients::sin_f32) : polynomial(z, coefficients::sin_f64);
  Expr c = t.single ? polynomial(z, coefficients::cos_f32) : polynomial(z, coefficients::cos_f64);
  Expr of_sine = fma(r * z, s, r);
  Expr of_cosine = fma(z, fma(z, c, t.constant(-0.5)), t.constant(1));
  Expr quadrant = turned ? angle.quadrant + 1 : angle.quadrant;
  Expr odd = equal(logical_and(quadrant, constant(1, quadrant.dtype())), 1);
  Expr sign = shift_left(logical_and(quadrant, constant(2, quadrant.dtype())), t.single ? 30 : 62);
  Expr value = bitcast(logical_xor(bitcast(select(odd, of_cosine, of_sine), t.integers), sign), t.dtype);
  return turned ? value : select(equal(x, 0), x, value);  // -0 stays
}

/// erfc of a >= 0: exp(-a^2) P(q) / (a + k), where the quotient is smooth from 0 to infinity.
Expr erfc_of_positive(Expr a) {
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
