// The meaning of every primitive, in plain C++.
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <unordered_map>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/ir/expr.h"

namespace stet {

namespace {

/// A float between the neighbours of `value`, odd in its last bit where inexact: rounding it again to a shorter type
/// gives what rounding `value` once would have given.
float round_to_odd(double value) {
  float rounded = static_cast<float>(value);
  double back = rounded;
  if (back == value || std::isnan(value)) return rounded;
  auto bits = std::bit_cast<std::uint32_t>(rounded);
  if (bits & 1) return rounded;
  return std::bit_cast<float>(std::abs(back) > std::abs(value) ? bits - 1 : bits + 1);
}

double round_to(double value, DType dtype) {
  switch (dtype) {
    case DType::f16:
      return static_cast<float>(Half(round_to_odd(value)));
    case DType::bf16:
      return static_cast<float>(BFloat16(round_to_odd(value)));
    case DType::f32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

/// The integer as the type holds it.
std::int64_t wrap(std::int64_t value, DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return value & 1;
    case DType::u8:
      return static_cast<std::uint8_t>(value);
    case DType::i8:
      return static_cast<std::int8_t>(value);
    case DType::i16:
      return static_cast<std::int16_t>(value);
    case DType::i32:
      return static_cast<std::int32_t>(value);
    default:
      return value;
  }
}

std::int64_t saturate(double value, DType dtype) {
  if (std::isnan(value)) return 0;
  const DTypeRow& type = row(dtype);
  // The highest i64 is no double; what reaches 2^63 saturates.
  if (value >= static_cast<double>(type.highest)) return type.highest;
  if (value <= static_cast<double>(type.lowest)) return type.lowest;
  return static_cast<std::int64_t>(value);
}

/// Nearest even, once: not by way of a double, which would round twice.
double integer_to_real(std::int64_t value, DType dtype) {
  if (dtype == DType::f32) return static_cast<float>(value);
  if (dtype == DType::f64) return static_cast<double>(value);
  // Bits that no double holds are or-ed into one that it does, which keeps them on their side of every tie.
  constexpr std::int64_t low = 0xffff, wide = std::int64_t{1} << 48;
  if (value >= wide || value <= -wide) value = (value & ~low) | ((value & low) ? low + 1 : 0);
  return round_to(static_cast<double>(value), dtype);
}

// --- Integers. Arithmetic is unsigned, where overflow is defined; the caller wraps to the type.

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));  // the lowest integer wraps
  std::int64_t quotient = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  std::uint64_t result = 1, square = static_cast<std::uint64_t>(base);
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= square;
    square *= square;
  }
  return static_cast<std::int64_t>(result);
}

std::int64_t apply_integer(Primitive primitive, DType dtype, std::int64_t a, std::int64_t b) {
  auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  auto width = static_cast<std::uint64_t>(8 * size_of(dtype));
  std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  switch (primitive) {
    case Primitive::add:
      return static_cast<std::int64_t>(ua + ub);
    case Primitive::subtract:
      return static_cast<std::int64_t>(ua - ub);
    case Primitive::multiply:
      return static_cast<std::int64_t>(ua * ub);
    case Primitive::divide:
      return floor_divide(a, b);
    case Primitive::modulo:
      return floor_modulo(a, b);
    case Primitive::minimum:
      return b < a ? b : a;
    case Primitive::maximum:
      return b > a ? b : a;
    case Primitive::power:
      return integer_power(a, b);
    case Primitive::negate:
      return static_cast<std::int64_t>(0 - ua);
    case Primitive::absolute:
      return a < 0 ? static_cast<std::int64_t>(0 - ua) : a;
    case Primitive::logical_and:
      return a & b;
    case Primitive::logical_or:
      return a | b;
    case Primitive::logical_xor:
      return a ^ b;
    case Primitive::logical_not:
      return ~a;
    case Primitive::shift_left:
      return ub < width ? static_cast<std::int64_t>(ua << ub) : 0;
    case Primitive::shift_right:
      return ub < width ? static_cast<std::int64_t>((ua & mask) >> ub) : 0;
    default:
      throw InternalError(text("evaluate: primitive ", static_cast<int>(primitive), " of integers"));
  }
}

// --- Floating

double real_modulo(double x, double y) {
  double rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(0.0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

/// log |gamma(x)|. Not std::lgamma, which writes the sign into a variable that all threads share.
double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

/// By its asymptotic series, from where that is good to all digits of a long double.
double digamma(double x) {
  if (x == 0) return -std::copysign(HUGE_VAL, x);
  if (std::isinf(x) && x < 0) return std::nan("");
  long double pi = std::numbers::pi_v<long double>, y = x, total = 0;
  if (x < 0) {
    long double part = y - std::nearbyint(y);
    if (part == 0) return std::nan("");
    total = -pi / std::tan(pi * part);
    y = 1 - y;
  }
  for (; y < 25; y += 1) total -= 1 / y;
  long double z = 1 / (y * y), series = 0;
  constexpr long double terms[] = {1.0L / 12,       -1.0L / 120, 1.0L / 252,      -1.0L / 240,      1.0L / 132,
                                   -691.0L / 32760, 1.0L / 12,   -3617.0L / 8160, 43867.0L / 14364, -174611.0L / 6600};
  for (std::size_t i = std::size(terms); i-- > 0;) series = series * z + terms[i];
  return static_cast<double>(total + std::log(y) - 1 / (2 * y) - series * z);
}

/// By Newton's method on erf, or erfc where that says more.
double inverse_error_function(double x) {
  double a = std::abs(x);
  if (!(a < 1)) return a == 1 ? std::copysign(HUGE_VAL, x) : std::nan("");
  if (a < 1e-100) return x * (std::sqrt(std::numbers::pi) / 2);
  long double w = -std::log1p(-static_cast<long double>(a) * a);
  // Winitzki's formula is good to two digits.
  long double k = 2 / (std::numbers::pi_v<long double> * 0.147L) - w / 2;
  long double y = std::sqrt(std::sqrt(k * k + w / 0.147L) - k);
  for (int i = 0; i < 7; ++i) {
    long double error = a < 0.5 ? std::erf(y) - a : (1 - static_cast<long double>(a)) - std::erfc(y);
    long double step = error * std::exp(y * y) * std::sqrt(std::numbers::pi_v<long double>) / 2;
    y -= step / (1 + y * step);
  }
  return std::copysign(static_cast<double>(y), x);
}

template <class Float>
Float apply_real(Primitive primitive, Float a, Float b, Float c) {
  switch (primitive) {
    case Primitive::add:
      return a + b;
    case Primitive::subtract:
      return a - b;
    case Primitive::multiply:
      return a * b;
    case Primitive::divide:
      return a / b;
    case Primitive::modulo:
      return static_cast<Float>(real_modulo(a, b));
    case Primitive::minimum:
      return std::isnan(b) ? b : b < a ? b : a;
    case Primitive::maximum:
      return std::isnan(b) ? b : b > a ? b : a;
    case Primitive::negate:
      return -a;
    case Primitive::absolute:
      return std::abs(a);
    case Primitive::floor:
      return std::floor(a);
    case Primitive::ceil:
      return std::ceil(a);
    case Primitive::round:
      return std::nearbyint(a);
    case Primitive::sqrt:
      return std::sqrt(a);
    case Primitive::fma:
      return std::fma(a, b, c);
    default:
      break;
  }
  double x = a;  // of what follows the nearest value of the type is wanted, so f32 is computed in double
  switch (primitive) {
    case Primitive::power:
      return static_cast<Float>(std::pow(x, static_cast<double>(b)));
    case Primitive::exp:
      return static_cast<Float>(std::exp(x));
    case Primitive::log:
      return static_cast<Float>(std::log(x));
    case Primitive::sin:
      return static_cast<Float>(std::sin(x));
    case Primitive::cos:
      return static_cast<Float>(std::cos(x));
    case Primitive::tanh:
      return static_cast<Float>(std::tanh(x));
    case Primitive::erf:
      return static_cast<Float>(std::erf(x));
    case Primitive::erfc:
      return static_cast<Float>(std::erfc(x));
    case Primitive::exp2:
      return static_cast<Float>(std::exp2(x));
    case Primitive::expm1:
      return static_cast<Float>(std::expm1(x));
    case Primitive::log2:
      return static_cast<Float>(std::log2(x));
    case Primitive::log10:
      return static_cast<Float>(std::log10(x));
    case Primitive::erfinv:
      return static_cast<Float>(inverse_error_function(x));
    case Primitive::log_gamma:
      return static_cast<Float>(log_gamma(x));
    case Primitive::digamma:
      return static_cast<Float>(digamma(x));
    case Primitive::atan2:
      return static_cast<Float>(std::atan2(x, static_cast<double>(b)));
    default:
      throw InternalError(text("evaluate: primitive ", static_cast<int>(primitive), " of floating values"));
  }
}

std::int64_t compared(const ExprNode& node, const ScalarValue& a, const ScalarValue& b) {
  bool floating = is_floating(node.arguments[0].dtype());
  switch (node.primitive) {
    case Primitive::less:
      return floating ? a.real < b.real : a.integer < b.integer;
    case Primitive::less_equal:
      return floating ? a.real <= b.real : a.integer <= b.integer;
    default:
      return floating ? a.real == b.real : a.integer == b.integer;
  }
}

ScalarValue apply_cast(const ExprNode& node, ScalarValue a, bool round_each) {
  DType from = node.arguments[0].dtype(), to = node.dtype;
  if (round_each || !is_floating(to)) return convert(a, from, to);
  return {.real = is_floating(from) ? a.real : static_cast<double>(a.integer)};
}

}  // namespace

ScalarValue convert(ScalarValue value, DType from, DType to) {
  if (is_floating(from)) {
    if (is_floating(to)) return {.real = round_to(value.real, to)};
    if (to == DType::bool_) return {.integer = value.real != 0};
    return {.integer = saturate(value.real, to)};
  }
  if (is_floating(to)) return {.real = integer_to_real(value.integer, to)};
  if (to == DType::bool_) return {.integer = value.integer != 0};
  return {.integer = wrap(value.integer, to)};
}

ScalarValue value_of(ScalarBits bits, DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16: {
      auto half = static_cast<std::uint16_t>(bits);
      if (dtype == DType::bf16) return {.real = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16)};
      Half value;
      value.bits = half;
      return {.real = static_cast<float>(value)};
    }
    case DType::f32:
      return {.real = std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
    case DType::f64:
      return {.real = std::bit_cast<double>(bits)};
    default:
      return {.integer = wrap(static_cast<std::int64_t>(bits), dtype)};
  }
}

ScalarBits bits_of(ScalarValue value, DType dtype) {
  switch (dtype) {
    case DType::f16:
      return Half(round_to_odd(value.real)).bits;
    case DType::bf16:
      return BFloat16(round_to_odd(value.real)).bits;
    case DType::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value.real));
    case DType::f64:
      return std::bit_cast<std::uint64_t>(value.real);
    default: {
      auto bits = static_cast<ScalarBits>(wrap(value.integer, dtype));
      return size_of(dtype) == 8 ? bits : bits & ((ScalarBits{1} << (8 * size_of(dtype))) - 1);
    }
  }
}

bool is_transcendental(Primitive primitive) {
  return primitive == Primitive::power || (primitive >= Primitive::exp && primitive <= Primitive::atan2);
}

ScalarValue apply(const ExprNode& node, std::span<const ScalarValue> arguments, bool round_each) {
  const ScalarValue &a = arguments[0], none, &b = arguments.size() > 1 ? arguments[1] : none,
                    &c = arguments.size() > 2 ? arguments[2] : none;
  switch (node.primitive) {
    case Primitive::less:
    case Primitive::less_equal:
    case Primitive::equal:
      return {.integer = compared(node, a, b)};
    case Primitive::select:
    case Primitive::select_rarely:
      return a.integer ? b : c;
    case Primitive::cast:
      return node.custom_derivative ? a : apply_cast(node, a, round_each);
    case Primitive::bitcast:
      return value_of(bits_of(a, node.arguments[0].dtype()), node.dtype);
    default:
      break;
  }
  if (!is_floating(node.dtype))
    return {.integer = wrap(apply_integer(node.primitive, node.dtype, a.integer, b.integer), node.dtype)};
  if (!round_each || node.dtype == DType::f64) return {.real = apply_real(node.primitive, a.real, b.real, c.real)};
  float result =
      apply_real(node.primitive, static_cast<float>(a.real), static_cast<float>(b.real), static_cast<float>(c.real));
  return {.real = round_to(result, node.dtype)};
}

ScalarValue evaluate(Expr root, std::span<const ScalarValue> operands, std::span<const std::int64_t> indices,
                     bool round_each) {
  std::unordered_map<const ExprNode*, ScalarValue> values;
  for (Expr e : topological(root)) {
    const ExprNode& node = *e;
    auto number = static_cast<std::size_t>(node.number);
    ScalarValue& value = values[&node];
    if (node.primitive == Primitive::constant) {
      value = value_of(node.bits, node.dtype);
    } else if (node.primitive == Primitive::operand || node.primitive == Primitive::index) {
      bool is_operand = node.primitive == Primitive::operand;
      if (number >= (is_operand ? operands.size() : indices.size()))
        throw InternalError(text("evaluate: no value for ", is_operand ? "x" : "i", number));
      value = is_operand ? operands[number] : ScalarValue{.integer = indices[number]};
    } else {
      ScalarValue arguments[3];
      for (int i = 0; i < node.argument_count; ++i) arguments[i] = values.at(&*node.arguments[i]);
      value = apply(node, std::span(arguments, node.argument_count), round_each);
    }
  }
  return values.at(&*root);
}

}  // namespace stet
