// The arc tangent, and functions that few programs call: where f32 asks for one of those it is computed in f64.
#include <cmath>
#include <numbers>

#include "stet/ir/math_coefficients.h"
#include "stet/ir/math_parts.h"

namespace stet::math_parts {

using namespace scalar;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 undefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace

/// atan(q) of the smaller coordinate by the larger, turned and mirrored to where the point is.
Expr arc_tangent(Expr y, Expr x) {
  Format t = format(x);
  Expr a = abs(x), b = abs(y), small = minimum(a, b), large = maximum(a, b);
  // Equal ones may be 0 / 0 or infinity / infinity.
  Expr q = select(equal(a, b), select(0 < a, t.constant(1), 0), small / large), z = q * q;
  Expr tail = t.single ? polynomial(z, coefficients::atan_f32) : polynomial(z, coefficients::atan_f64);
  Expr angle = fma(q * z, tail, q);
  double half_pi = coefficients::half_pi_f64[0], rest = coefficients::half_pi_f64[1];
  if (t.single) {
    half_pi = static_cast<float>(half_pi);
    rest = coefficients::half_pi_f64[0] - half_pi;
  }
  Expr steep = a < b;
  angle = select(steep, half_pi - (angle - rest), angle);
  Expr sign_bit = constant_bits(ScalarBits{1} << (8 * size_of(t.dtype) - 1), t.integers);
  Expr left = logical_not(equal(logical_and(bitcast(x, t.integers), sign_bit), 0));  // of -0 too
  // pi less the angle: of a steep one that is half of it and what it lacked.
  Expr mirrored = 2 * half_pi - (angle - 2 * rest);
  return copy_sign(select(left, mirrored, angle), y);
}

/// A polynomial in w = -log(1 - x^2), for f64 put right by one step of Halley's method on erf, or on erfc where erf is
/// near 1.
Expr inverse_error(Expr given) {
  Expr x = cast(given, f64), a = abs(x);
  bool single = given.dtype() == f32;
  Expr inside = (1 - a) * (1 + a);
  Expr w = -(single ? logarithm_short(inside) : logarithm_f64(inside));
  Expr near = polynomial(w - 2.5, coefficients::erfinv_near), root = sqrt(w) - 4.25;
  Expr far = single ? polynomial(root, coefficients::erfinv_far_f32) : polynomial(root, coefficients::erfinv_far);
  Expr y = a * select(w < 5, near, far);
  if (!single) {
    Expr by_erf = fma(y, polynomial(y * y, coefficients::erf_small_f64), y) - a;
    Expr error = select(a < 0.77, by_erf, (1 - a) - erfc_of_positive(y));
    Expr step = error * scaled_exponential(Expr(), y * y, Expr()) * (0.5 / std::numbers::inv_sqrtpi);
    y = y - step / fma(y, step, constant(1, f64));
  }
  Expr special = select(equal(a, 1), infinity, constant(undefined, f64));
  return cast(copy_sign(select(a < 1, y, special), x), given.dtype());
}

namespace {

/// The product that takes x, from -0.5 to 8.5, to the half unit around 2 that log(gamma) is known on.
Expr steps_to_two(Expr x, Expr nearest) {
  Expr product = constant(1, f64);
  for (int k = 1; k <= 6; ++k) product = select(nearest < k + 2, product, product * (x - k));
  return select(nearest < 1, x * (x + 1), select(nearest < 2, x, product));
}

/// x from the half unit below 0 up. From 8.5 on Stirling's series: (x - 1/2) log x - x + log(2 pi) / 2 + ...
Expr log_gamma_above(Expr x) {
  Expr nearest = round(x), large = 8.5 < x;
  Expr t = x - nearest, slope = polynomial(t, coefficients::log_gamma);
  Expr argument = select(large, minimum(x, std::numeric_limits<double>::max()), abs(steps_to_two(x, nearest)));
  Pair logarithm = logarithm_pair(argument);
  // Between 1 and 2 the two cancel in part.
  Expr middle = select(nearest < 2, fma(t, slope, -logarithm.high) - logarithm.low,
                       fma(t, slope, logarithm.high) + logarithm.low);
  middle = select(equal(x, 0), infinity, middle);

  Expr below = x - 0.5, r = 1 / x;
  constexpr double series[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                               1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  Expr small = fma(r, polynomial(r * r, series), constant(std::log(2 * std::numbers::pi) / 2, f64));
  Pair main = exact_product(below, logarithm.high);
  Expr far = (main.high - x) + (fma(below, logarithm.low, main.low) + small);
  // Of what is not far from infinity the exact product is none.
  far = select(x < 0x1p1000, far, x * (logarithm.high - 1));
  return select(large, far, middle);
}

}  // namespace

/// Below -0.5 by reflection: gamma(x) gamma(-x) = -pi / (x sin(pi x)).
Expr log_gamma(Expr given) {
  Expr x = cast(given, f64), reflected = x < -0.5, a = select(reflected, -x, x);
  Expr above = log_gamma_above(a);
  Expr fraction = x - round(x), sine_of = sine(fraction * std::numbers::pi, false, true);
  Expr area = abs(x * sine_of);
  // Of whole numbers and of huge ones, which are whole, the area is 0.
  Expr below = std::log(std::numbers::pi) - logarithm_f64(area) - above;
  Expr value = select(reflected, select(equal(fraction, 0), infinity, below), above);
  return cast(select(equal(abs(x), infinity), infinity, value), given.dtype());
}

namespace {

/// The sum of 1 / (a + k) for k from first to last, as one fraction.
Expr inverse_sum(Expr a, int first, int last) {
  Expr over = constant(1, f64), under = a + first;
  for (int k = first + 1; k <= last; ++k) {
    Expr next = a + k;
    over = fma(over, next, under);
    under = under * next;
  }
  return over / under;
}

}  // namespace

/// The asymptotic series from 10 on; below it by ten steps of 1 / x, and below 0 by reflection.
Expr digamma(Expr given) {
  Expr x = cast(given, f64), reflected = x < 0, a = select(reflected, 1 - x, x);
  Expr near = a < 10, y = select(near, a + 10, a), r = 1 / y, z = r * r;
  constexpr double series[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
  // log y - 1 / 2y - series, less the steps: with what rounding takes from the logarithm, and in small groups, as near
  // the zero all that is left is their difference.
  Pair logarithm = logarithm_pair(minimum(y, std::numeric_limits<double>::max()));
  Expr small = logarithm.low - fma(z, polynomial(z, series), r * 0.5);
  Expr steps = (logarithm.high - inverse_sum(a, 1, 2)) - (inverse_sum(a, 3, 5) + inverse_sum(a, 6, 9));
  Expr positive = select(near, steps - 1 / a + small, logarithm.high + small);
  positive = select(equal(x, infinity), infinity, positive);
  // cot(angle + lost) = cot(angle) - lost (1 + cot(angle)^2), of what rounding took from the angle.
  Expr fraction = x - round(x), pi = constant(2 * coefficients::half_pi_f64[0], f64), angle = fraction * pi;
  Expr lost = fma(fraction, pi, -angle) + fraction * (2 * coefficients::half_pi_f64[1]);
  Expr cotangent = sine(angle, true, true) / sine(angle, false, true);
  Expr corrected = cotangent - fma(lost * cotangent, cotangent, lost);
  cotangent = select(abs(cotangent) < 0x1p1000, corrected, cotangent);
  Expr below = select(equal(fraction, 0), undefined, fma(cotangent, -pi, positive));
  return cast(select(reflected, below, positive), given.dtype());
}

}  // namespace stet::math_parts
