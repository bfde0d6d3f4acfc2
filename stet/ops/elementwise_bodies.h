// Bodies of elementwise rows that are more than a line, or whose derivative is better stated than derived.
//
// A stated derivative is an expression like any other: it is derived again for second derivatives. So it is made of
// what derives well, not of the careful value beside it.
#pragma once
#include <cmath>
#include <limits>
#include <numbers>

#include "stet/ir/expr.h"

namespace stet::body {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline Expr one_like(Expr x) { return constant(1, x.dtype()); }

/// The derivative of a row that takes integers too, which have none.
inline Expr stated(Expr value, Expr x, Expr derivative) {
  return is_floating(value.dtype()) ? scalar::with_derivative(value, x, derivative) : value;
}
inline Expr stated(Expr value, Expr x, Expr by_x, Expr y, Expr by_y) {
  const scalar::Partial partials[] = {{x, by_x}, {y, by_y}};
  return is_floating(value.dtype()) ? scalar::with_derivatives(value, partials) : value;
}

// --- Bits

/// Whether x is not 0; of NaN too.
inline Expr truth_of(Expr x) { return x.dtype() == DType::bool_ ? x : scalar::logical_not(scalar::equal(x, 0)); }

/// The integers that hold the bits of a floating type.
inline DType bits_type(DType d) { return size_of(d) == 2 ? DType::i16 : size_of(d) == 4 ? DType::i32 : DType::i64; }
inline Expr bits_of_number(Expr x) { return scalar::bitcast(x, bits_type(x.dtype())); }
inline Expr sign_mask(Expr x) {
  return constant_bits(ScalarBits{1} << (8 * size_of(x.dtype()) - 1), bits_type(x.dtype()));
}
/// Of NaN too, whose sign the C library also keeps.
inline Expr sign_is_set(Expr x) {
  if (!is_floating(x.dtype())) return x < constant(0, x.dtype());
  return scalar::logical_not(scalar::equal(scalar::logical_and(bits_of_number(x), sign_mask(x)), 0));
}
inline Expr with_sign_of(Expr magnitude, Expr sign) {
  Expr mask = sign_mask(sign), bit = scalar::logical_and(bits_of_number(sign), mask);
  Expr rest = scalar::logical_and(bits_of_number(magnitude), scalar::logical_not(mask));
  return scalar::bitcast(scalar::logical_or(rest, bit), magnitude.dtype());
}
inline Expr is_not_a_number(Expr x) {
  return is_floating(x.dtype()) ? scalar::logical_not(scalar::equal(x, x)) : constant(0, DType::bool_);
}

/// |x| with the sign of y; the derivative by x is 1 or -1 as the signs agree, at 0 too.
inline Expr sign_copied(Expr x, Expr y) {
  Expr opposite = scalar::logical_xor(sign_is_set(x), sign_is_set(y));
  return stated(with_sign_of(x, y), x, scalar::select(opposite, -1, one_like(x)));
}

/// In the type of x itself, whose bits are counted one up or down.
inline Expr neighbour(Expr x, Expr y) {
  Expr bits = bits_of_number(x), one = constant(1, bits.dtype());
  Expr inwards = scalar::logical_xor(x < y, 0 < x);
  Expr moved = scalar::bitcast(scalar::select(inwards, bits - 1, bits + 1), x.dtype());
  Expr smallest =
      scalar::bitcast(scalar::logical_or(scalar::logical_and(bits_of_number(y), sign_mask(y)), one), x.dtype());
  Expr value = scalar::select(scalar::equal(x, y), y, scalar::select(scalar::equal(x, 0), smallest, moved));
  value = scalar::select(scalar::logical_or(is_not_a_number(x), is_not_a_number(y)), x + y, value);
  return scalar::with_derivative(value, x, one_like(x));
}

/// The sign comes in from the left, also where the count takes all bits away.
inline Expr shifted_right(Expr x, Expr count) {
  Expr shifted = scalar::shift_right(x, count);
  if (x.dtype() == DType::u8) return shifted;
  Expr of_negative = scalar::logical_not(scalar::shift_right(scalar::logical_not(x), count));
  return scalar::select(x < 0, of_negative, shifted);
}

// --- Arithmetic and choice

/// Zeros and NaN are their own sign.
inline Expr sign_of(Expr x) {
  Expr value = scalar::select(0 < x, 1, scalar::select(x < 0, -1, x));
  return stated(value, x, constant(0, x.dtype()));
}

inline Expr truncated(Expr x) {
  return is_floating(x.dtype()) ? scalar::select(x < 0, scalar::ceil(x), scalar::floor(x)) : x;
}

/// What is left of x, with its sign. Exact: of integers from the remainder that has the sign of y, of floating numbers
/// from that of the magnitudes, as the other is rounded.
inline Expr truncated_modulo(Expr x, Expr y) {
  if (!is_floating(x.dtype())) {
    Expr rest = scalar::modulo(x, y);
    Expr opposite = scalar::logical_xor(rest < 0, x < 0), some = scalar::logical_not(scalar::equal(rest, 0));
    return scalar::select(scalar::logical_and(some, opposite), rest - y, rest);
  }
  Expr value = with_sign_of(scalar::modulo(scalar::abs(x), scalar::abs(y)), x);
  return stated(value, x, one_like(x), y, -truncated(x / y));
}

/// m sqrt(1 + (n / m)^2) of the larger and the smaller magnitude. Infinite beside NaN too; derivatives are 0 at 0.
inline Expr hypotenuse(Expr x, Expr y) {
  Expr a = scalar::abs(x), b = scalar::abs(y), m = scalar::maximum(a, b), n = scalar::minimum(a, b);
  Expr usual = scalar::logical_and(0 < m, m < infinity);
  Expr ratio = scalar::select(usual, n / m, m * 0);  // of infinities replaced below, of NaN still NaN
  Expr value = m * scalar::sqrt(1 + ratio * ratio);
  value = scalar::select(scalar::equal(m, 0), 0, value);
  value = scalar::select(scalar::logical_or(scalar::equal(a, infinity), scalar::equal(b, infinity)), infinity, value);
  auto by = [](Expr along, Expr length) { return along / scalar::select(scalar::equal(length, 0), 1, length); };
  Expr once = stated(value, x, by(x, value), y, by(y, value));
  return stated(value, x, by(x, once), y, by(y, once));
}

/// 1 inside and on the bounds; a bound has the derivative where it is the result.
inline Expr clipped(Expr x, Expr low, Expr high) {
  Expr raised = scalar::maximum(x, low), value = scalar::minimum(raised, high);
  if (!is_floating(x.dtype())) return value;
  Expr one = one_like(x), inside = scalar::logical_and(low <= x, x <= high);
  Expr at_low = scalar::logical_and(x < low, low <= high);
  const scalar::Partial partials[] = {{x, scalar::select(inside, one, 0)},
                                      {low, scalar::select(at_low, one, 0)},
                                      {high, scalar::select(high < raised, one, 0)}};
  return scalar::with_derivatives(value, partials);
}

/// The one that is a number.
inline Expr number_of_two(Expr x, Expr y, Expr both) {
  if (!is_floating(x.dtype())) return both;
  return scalar::select(is_not_a_number(x), y, scalar::select(is_not_a_number(y), x, both));
}

/// max(x, 0), with derivative 0 at 0 as in every other framework; maximum alone would say one half. The derivative is
/// stated by the result, which a model keeps anyway, so that x need not be kept.
inline Expr rectified(Expr x) {
  Expr result = scalar::maximum(x, 0);
  return stated(result, x, scalar::select(0 < result, one_like(x), 0));
}
inline Expr rectified_up_to_six(Expr x) {
  Expr result = scalar::minimum(scalar::maximum(x, 0), 6);
  return stated(result, x, scalar::select(scalar::logical_and(0 < result, result < 6), one_like(x), 0));
}
inline Expr straight_sigmoid(Expr x) {
  Expr value = scalar::minimum(scalar::maximum(x + 3, 0), 6) / 6;
  Expr inside = scalar::logical_and(-3 < x, x < 3);
  return scalar::with_derivative(value, x, scalar::select(inside, constant(1.0 / 6, x.dtype()), 0));
}

/// x / (1 + |x|); the derived quotient would cancel far from zero.
inline Expr soft_sign(Expr x) {
  Expr below = 1 + scalar::abs(x);
  return scalar::with_derivative(x / below, x, 1 / (below * below));
}

// --- Roots, exponentials and logarithms

/// exp(log(a) / 3), and one step of Newton's method with an exact residue.
inline Expr cube_root(Expr x) {
  bool single = x.dtype() == DType::f32;
  Expr a = scalar::abs(x), tiny = a < (single ? 0x1p-60 : 0x1p-700);  // whose residue would be subnormal
  Expr s = scalar::select(tiny, a * (single ? 0x1p90 : 0x1p270), a);
  Expr y = scalar::exp(scalar::log(s) * (1.0 / 3)), square = y * y, lost = scalar::fma(y, y, -square);
  Expr residue = scalar::fma(square, y, -s) + lost * y;
  Expr root = y - residue / (square * 3);
  root = scalar::select(tiny, root * (single ? 0x1p-30 : 0x1p-90), root);
  Expr value = scalar::select(scalar::logical_and(0 < a, a < infinity), with_sign_of(root, x), x);
  Expr once = scalar::with_derivative(value, x, scalar::exp(scalar::log(a) * (-2.0 / 3)) / 3);
  return scalar::with_derivative(value, x, 1 / (once * once * 3));
}

/// log(1 + x) for x from 0 up, finite: the logarithm of the rounded sum, and what the rounding took away.
inline Expr logarithm_of_sum(Expr x) {
  Expr u = 1 + x;
  return scalar::log(u) + (x - (u - 1)) / u;
}
inline Expr log_of_one_plus(Expr x) {
  Expr usual = scalar::logical_and(-1 < x, x < infinity);
  Expr value = scalar::select(usual, logarithm_of_sum(x), scalar::log(1 + x));
  value = scalar::select(scalar::equal(x, 0), x, value);  // -0 stays
  return scalar::with_derivative(value, x, 1 / (1 + x));
}

/// log(1 + x) for x from 0 up, or log(2 of the other) where x is too large to be computed.
inline Expr logarithm_of_sum_or_double(Expr x, Expr large, Expr other) {
  Expr u = 1 + x, lost = (x - (u - 1)) / u;
  return scalar::log(scalar::select(large, other, u)) + scalar::select(large, std::numbers::ln2, lost);
}
/// log(a + sqrt(1 + a^2)) with the sign of x, around 1.
inline Expr inverse_sinh(Expr x) {
  Expr a = scalar::abs(x), large = 0x1p28 < a, b = scalar::minimum(a, 0x1p29);
  Expr sum = b + b * (b / (1 + scalar::sqrt(1 + b * b)));
  Expr value = with_sign_of(logarithm_of_sum_or_double(sum, large, a), x);
  return scalar::with_derivative(value, x, 1 / hypotenuse(x, one_like(x)));
}
inline Expr inverse_cosh(Expr x) {
  Expr large = 0x1p28 < x, t = scalar::minimum(x, 0x1p29) - 1;
  Expr value = logarithm_of_sum_or_double(t + scalar::sqrt(t * (t + 2)), large, x);
  value = scalar::select(x < 1, std::numeric_limits<double>::quiet_NaN(), value);
  return scalar::with_derivative(value, x, 1 / (scalar::sqrt(x - 1) * scalar::sqrt(x + 1)));
}
inline Expr inverse_tanh(Expr x) {
  Expr a = scalar::abs(x), value = with_sign_of(log_of_one_plus(a * 2 / (1 - a)) * 0.5, x);
  return scalar::with_derivative(value, x, 1 / ((1 - x) * (1 + x)));
}

/// Half of exp(|x|), which is finite as far as sinh and cosh are.
inline Expr half_exponential(Expr x) { return scalar::exp(scalar::abs(x) - 1) * (std::numbers::e / 2); }
inline Expr sinh_value(Expr x) {
  Expr a = scalar::abs(x), h = half_exponential(x), grown = scalar::expm1(a);
  Expr small = (grown + grown / (grown + 1)) * 0.5;
  return with_sign_of(scalar::select(a < 1, small, h - 0.25 / h), x);
}
inline Expr cosh_value(Expr x) {
  Expr h = half_exponential(x);
  return h + 0.25 / h;
}
/// Each is the other's derivative; three times is as far as gradients are asked for, and the last is derived.
inline Expr hyperbolic(Expr x, bool sine) {
  Expr s = sinh_value(x), c = cosh_value(x);
  Expr last = sine ? c : s, before = scalar::with_derivative(sine ? s : c, x, last);
  return scalar::with_derivative(sine ? s : c, x, scalar::with_derivative(last, x, before));
}

/// 1 / (1 + exp(-x)), with the derivative s * (1 - s): deriving the quotient would give inf / inf far below zero.
inline Expr logistic(Expr x) {
  Expr s = 1 / (1 + scalar::exp(-x));
  return scalar::with_derivative(s, x, s * (1 - s));
}

/// log(1 + exp(x)) without overflow.
inline Expr soft_plus(Expr x) {
  Expr value = scalar::maximum(x, 0) + logarithm_of_sum(scalar::exp(-scalar::abs(x)));
  return scalar::with_derivative(value, x, logistic(x));
}
inline Expr logarithm_of_logistic(Expr x) { return -soft_plus(-x); }

/// log(exp(x) + exp(y)). Two equal infinities have a difference of 0.
inline Expr log_add_exp(Expr x, Expr y) {
  Expr same = scalar::logical_and(scalar::equal(x, y), scalar::equal(scalar::abs(x), infinity));
  Expr difference = scalar::select(same, 0, x - y);
  Expr value = scalar::maximum(x, y) + logarithm_of_sum(scalar::exp(-scalar::abs(difference)));
  return stated(value, x, logistic(difference), y, logistic(-difference));
}

/// x log(y), and 0 where x is 0 and y a number. There the derivative by y is 0, and by x log(y) unless y is 0 too.
inline Expr x_log_y(Expr x, Expr y) {
  Expr zero = scalar::equal(x, 0), logarithm = scalar::log(y);
  Expr value = scalar::select(scalar::logical_and(zero, scalar::equal(y, y)), 0, x * logarithm);
  Expr by_x = scalar::select(scalar::logical_and(zero, scalar::equal(y, 0)), 0, logarithm);
  return stated(value, x, by_x, y, scalar::select(zero, 0, x / y));
}

/// x where it is positive, else y (exp(x / y) - 1).
inline Expr continuous_exponential_unit(Expr x, Expr y) {
  Expr positive = 0 < x, z = x / y, e = scalar::exp(z), grown = scalar::expm1(z);
  Expr by_y = grown - scalar::select(z < -1000, 0, z * e);
  // A quotient that is nearly 0, or underflows, gives x itself.
  Expr value = scalar::select(scalar::logical_or(positive, scalar::abs(z) < 0x1p-60), x, y * grown);
  return stated(value, x, scalar::select(positive, 1, e), y, scalar::select(positive, 0, by_y));
}

/// tanh(log(1 + exp(x))) is n / (n + 2) with n = exp(x) (exp(x) + 2), and 1 for large x.
inline Expr mish_value(Expr x) {
  Expr e = scalar::exp(scalar::minimum(x, 40)), n = scalar::fma(e, e, e * 2), t = n / (n + 2);
  // Beyond the bounds both products below are 0, which times infinity is not.
  Expr bounded = scalar::maximum(scalar::minimum(x, 100), -1000);
  return scalar::with_derivative(x * t, x, t + bounded * (1 - t * t) * logistic(x));
}

// --- Angles and the normal distribution

inline Expr tangent(Expr x) {
  Expr t = scalar::sin(x) / scalar::cos(x);
  return scalar::with_derivative(t, x, 1 + t * t);
}
inline Expr arc_sine(Expr x) {
  Expr other = scalar::sqrt((1 - x) * (1 + x));
  return scalar::with_derivative(scalar::atan2(x, other), x, 1 / other);
}
inline Expr arc_cosine(Expr x) {
  Expr other = scalar::sqrt((1 - x) * (1 + x));
  return scalar::with_derivative(scalar::atan2(other, x), x, -1 / other);
}
inline Expr arc_tangent(Expr x) { return scalar::with_derivative(scalar::atan2(x, one_like(x)), x, 1 / (1 + x * x)); }

/// A constant as the type holds it, and what its rounding took away.
struct ConstantPair {
  Expr high, low;
};
inline ConstantPair constant_pair(double value, double rest, DType d) {
  if (d == DType::f64) return {constant(value, d), constant(rest, d)};
  double rounded = static_cast<float>(value);
  return {constant(rounded, d), constant(value - rounded, d)};
}

/// The normal distribution at x, 0.5 * erfc(-x / sqrt(2)). Far below zero erfc magnifies the error of its argument z by
/// 2 z^2, so what rounding took from z is put back: to first order erfc(z + e) = erfc(z) * (1 - 2 z e) there.
inline Expr normal_distribution(Expr x) {
  ConstantPair slope = constant_pair(-0.70710678118654752440, 4.83364665672645672553e-17, x.dtype());
  Expr z = x * slope.high, tail = scalar::erfc(z);
  Expr error = scalar::fma(x, slope.high, -z) + x * slope.low;
  // Beyond 30 the tail is 0, and the error of a huge argument not a number.
  Expr corrected = scalar::select(scalar::logical_and(1 < z, z < 30), tail - tail * (z * error * 2), tail);
  Expr density = scalar::exp(x * x * -0.5) * 0.39894228040143267794;
  return scalar::with_derivative(corrected * 0.5, x, density);
}

/// x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), as x / (1 + exp(-2 u)): far below zero the sum would
/// cancel. exp magnifies the error of 2 u by 2 u, so that is computed with what roundings took away.
inline Expr gelu_by_tanh(Expr x) {
  constexpr double factor = 1.5957691216057308, cubic = 0.07135481627260025;  // 2 sqrt(2 / pi), and 0.044715 of it
  ConstantPair a = constant_pair(factor, -9.969308809110920e-17, x.dtype());
  ConstantPair b = constant_pair(cubic, -6.175149918155315e-19, x.dtype());
  Expr square = x * x, lost = scalar::fma(x, x, -square);
  Expr p = b.high * square;
  Expr p_low = scalar::fma(b.high, square, -p) + (b.high * lost + b.low * square);
  Expr sum = a.high + p, from = sum - a.high;
  Expr sum_low = (a.high - (sum - from)) + (p - from) + (a.low + p_low);
  Expr u = x * sum, u_low = scalar::fma(x, sum, -u) + x * sum_low;
  // Far out the result is x or 0, and what is lost of a huge number not a number.
  Expr safe = scalar::select(scalar::abs(x) < 100, u_low, 0);
  Expr e = scalar::exp(-u);
  Expr value = x / (1 + scalar::select(e < infinity, e - e * safe, e));
  Expr g = logistic(u), bounded = scalar::maximum(scalar::minimum(x, 100), -100);
  Expr slope = bounded * bounded * (3 * cubic) + factor;
  return scalar::with_derivative(value, x, g + bounded * g * (1 - g) * slope);
}

}  // namespace stet::body
