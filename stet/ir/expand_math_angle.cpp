// Sine and cosine: the angle less a multiple of pi/2, of every finite number.
//
// Up to 2^46 the multiple is subtracted in three parts of pi/2. Beyond it, which is rare and so kept out of the way of
// the others, the bits of 2/pi that matter are multiplied with the mantissa as integers (Payne and Hanek): bits that
// only add multiples of four turns are skipped, and those below the last digit.
#include "stet/ir/math_coefficients.h"
#include "stet/ir/math_parts.h"

namespace stet::math_parts {

using namespace scalar;

namespace {

struct ReducedAngle {
  Expr rest;      // f64, within pi/4
  Expr quadrant;  // i64, the low two bits count
};

constexpr std::int64_t low_half = 0xffffffff;
Expr word(std::uint64_t bits) { return constant_bits(bits, i64); }
Expr low_bits(Expr x) { return logical_and(x, word(low_half)); }
Expr high_bits(Expr x) { return shift_right(x, 32); }

/// The upper 64 bits of the product of two words without sign, the first below 2^53.
Expr high_product(Expr m, Expr w) {
  Expr m0 = low_bits(m), m1 = high_bits(m), w0 = low_bits(w), w1 = high_bits(w);
  Expr a = m0 * w1, b = m1 * w0;
  Expr middle = high_bits(m0 * w0) + low_bits(a) + low_bits(b);
  return m1 * w1 + high_bits(a) + high_bits(b) + high_bits(middle);
}

/// An integer below 2^32 as f64: or-ed into 2^52 it is one, with no conversion.
Expr small_integer(Expr x) { return bitcast(logical_or(x, word(0x4330000000000000)), f64) - 0x1p52; }

/// Four words of 2/pi from bit `position` on.
struct Window {
  Expr words[4];
};
Window window_of_two_over_pi(Expr position, bool single) {
  // A shifter: each bit of the number of the first word moves all words on by its value. f32 ends at 2^128.
  std::vector<Expr> words;
  for (int i = 0; i < (single ? 5 : 19); ++i) words.push_back(word(coefficients::two_over_pi_bits[i]));
  Expr first = shift_right(position, 6);
  for (int step = single ? 1 : 8; step > 0; step /= 2) {
    Expr moves = logical_not(equal(logical_and(first, word(static_cast<std::uint64_t>(step))), 0));
    std::size_t by = static_cast<std::size_t>(step), count = words.size() - by;
    for (std::size_t i = 0; i < count; ++i) words[i] = select(moves, words[i + by], words[i]);
    words.resize(count);
  }
  return {{words[0], words[1], words[2], words[3]}};
}

/// Of |x| from 2^46 up to the largest number; NaN of infinity.
ReducedAngle reduce_far_angle(Expr x, bool single) {
  Expr bits = bitcast(abs(x), i64), exponent = shift_right(bits, 52);
  constexpr std::int64_t fraction = (std::int64_t{1} << 52) - 1;
  Expr m = logical_or(logical_and(bits, word(fraction)), word(fraction + 1));
  // x = m 2^(exponent - 1075). The first exponent - 1077 bits of 2/pi, from 2^46 on eight less than none, add fours.
  Expr position = exponent - 1069;
  Window window = window_of_two_over_pi(position, single);
  Expr by = logical_and(position, word(63)), other = 64 - by, w[3];
  for (int i = 0; i < 3; ++i)
    w[i] = logical_or(shift_left(window.words[i], by), shift_right(window.words[i + 1], other));
  // m w modulo 2^192, but for its lowest word: two bits of turns, then their fraction.
  Expr middle = m * w[1], p1 = middle + high_product(m, w[2]);
  Expr sign_bit = word(std::uint64_t{1} << 63);
  Expr carry = logical_xor(p1, sign_bit) < logical_xor(middle, sign_bit);
  Expr p0 = m * w[0] + high_product(m, w[1]) + cast(carry, i64);
  // The fraction of a turn, from -1/2 to 1/2 as an integer with a sign.
  Expr f = logical_or(shift_left(p0, 2), shift_right(p1, 62)), g = shift_left(p1, 2), negative = f < 0;
  Expr quadrant = shift_right(p0, 62) + cast(negative, i64);
  Expr whole = small_integer(high_bits(f)) - select(negative, constant(0x1p32, f64), 0);
  Pair turn = quick_sum(whole, small_integer(low_bits(f)) * 0x1p-32);
  Expr below = small_integer(high_bits(g)) * 0x1p-64 + small_integer(low_bits(g)) * 0x1p-96;
  turn = quick_sum(turn.high, turn.low + below);
  const double* half_pi = coefficients::half_pi_f64;
  Pair scaled = product(turn, {constant(half_pi[0] * 0x1p-32, f64), constant(half_pi[1] * 0x1p-32, f64)});
  Expr rest = scaled.high + scaled.low;
  rest = select(exponent < 2047, rest, std::numeric_limits<double>::quiet_NaN());
  Expr mirrored = x < 0;
  return {select(mirrored, -rest, rest), select(mirrored, -quadrant, quadrant)};
}

/// x = quadrant * pi/2 + rest. In f64 also for f32.
ReducedAngle reduce_angle(Expr x, bool near) {
  Expr wide = cast(x, f64);
  bool single = x.dtype() == f32;
  Format t = format(wide);
  Expr shifted = fma(wide, t.constant(coefficients::two_over_pi), t.constant(t.magic));
  Expr n = shifted - t.magic, rest = wide;
  for (int i = 0; i < (single ? 2 : 3); ++i) rest = fma(n, t.constant(-coefficients::half_pi_f64[i]), rest);
  if (near) return {rest, bitcast(shifted, i64)};
  ReducedAngle far = reduce_far_angle(wide, single);
  Expr is_far = 0x1p46 <= abs(x);
  return {select_rarely(is_far, far.rest, rest), select_rarely(is_far, far.quadrant, bitcast(shifted, i64))};
}

}  // namespace

Expr sine(Expr x, bool turned, bool near) {
  Format t = format(x);
  ReducedAngle angle = reduce_angle(x, near);
  Expr r = cast(angle.rest, t.dtype), z = r * r, quadrant = cast(angle.quadrant, t.integers);
  Expr s = t.single ? polynomial(z, coefficients::sin_f32) : polynomial(z, coefficients::sin_f64);
  Expr c = t.single ? polynomial(z, coefficients::cos_f32) : polynomial(z, coefficients::cos_f64);
  Expr of_sine = fma(r * z, s, r);
  Expr of_cosine = fma(z, fma(z, c, t.constant(-0.5)), t.constant(1));
  if (turned) quadrant = quadrant + 1;
  Expr odd = equal(logical_and(quadrant, constant(1, quadrant.dtype())), 1);
  Expr sign = shift_left(logical_and(quadrant, constant(2, quadrant.dtype())), t.single ? 30 : 62);
  Expr value = bitcast(logical_xor(bitcast(select(odd, of_cosine, of_sine), t.integers), sign), t.dtype);
  return turned ? value : select(equal(x, 0), x, value);  // -0 stays
}

}  // namespace stet::math_parts
