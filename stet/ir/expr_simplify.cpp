// Rewriting that changes no bit of any result. Each rule says why it may; rules that hold for numbers but not for -0,
// infinities or NaN are left out on purpose.
#include <cmath>
#include <unordered_map>

#include "stet/ir/expr.h"

namespace stet {

namespace {

bool is_integral(Expr e) { return is_integer(e.dtype()); }
bool is_value(Expr e, double value) { return e.constant() == value && !(value == 0 && is_floating(e.dtype())); }
bool is_zero(Expr e, bool negative) {
  auto value = e.constant();
  return value == 0.0 && std::signbit(*value) == negative;
}

/// Every value of `from` is a value of `to`.
bool lossless(DType from, DType to) {
  if (from == to || from == DType::bool_) return true;
  if (to == DType::bool_) return false;
  if (is_floating(from)) return is_floating(to) && size_of(from) < size_of(to);
  if (!is_floating(to)) return row(to).lowest <= row(from).lowest && row(to).highest >= row(from).highest;
  int digits = to == DType::f64 ? 53 : to == DType::f32 ? 24 : to == DType::f16 ? 11 : 8;
  return 8 * size_of(from) <= digits;  // u8 and i8 fit even bf16's 8 digits
}

/// Whether cast(cast(x, middle), to) is cast(x, to).
bool passes_through(DType from, DType middle, DType to) {
  if (!lossless(from, middle)) return false;
  // Integers wrap to integers but floating values saturate: the way through a floating type is another function.
  bool to_integer = !is_floating(to) && to != DType::bool_;
  return from == DType::bool_ || !(is_integer(from) && is_floating(middle) && to_integer);
}

/// A reciprocal that multiplies exactly as the divisor divides: of powers of two, where both are normal numbers.
Expr exact_reciprocal(Expr divisor) {
  auto value = divisor.constant();
  if (!value || !is_floating(divisor.dtype()) || *value == 0 || !std::isfinite(*value)) return Expr();
  int exponent = 0;
  if (std::abs(std::frexp(*value, &exponent)) != 0.5) return Expr();
  int range = divisor.dtype() == DType::f64 ? 1000 : divisor.dtype() == DType::f16 ? 13 : 120;
  return std::abs(exponent) < range ? constant(1 / *value, divisor.dtype()) : Expr();
}

Expr fold_constants(Expr e) {
  if (e->argument_count == 0 || is_transcendental(e->primitive))
    return e;  // those are computed otherwise when compiled
  ScalarValue values[3];
  for (int i = 0; i < e->argument_count; ++i) {
    Expr argument = e->arguments[i];
    if (!argument.is(Primitive::constant)) return e;
    values[i] = value_of(argument->bits, argument.dtype());
  }
  ScalarValue value = apply(*e, std::span(values, e->argument_count), true);
  return constant_bits(bits_of(value, e.dtype()), e.dtype());
}

Expr simplify_sum(Expr e, Expr a, Expr b) {
  if (e.is(Primitive::add)) {
    if (is_integral(e) && is_value(a, 0)) return b;
    if (is_integral(e) && is_value(b, 0)) return a;
    if (is_floating(e.dtype()) && is_zero(b, true)) return a;  // x + -0 is x, of -0 too
    if (is_floating(e.dtype()) && is_zero(a, true)) return b;
    if (b.is(Primitive::negate)) return a - b->arguments[0];
    return e;
  }
  if (is_integral(e) && is_value(b, 0)) return a;
  if (is_integral(e) && a == b) return constant(0, e.dtype());
  if (is_floating(e.dtype()) && is_zero(b, false)) return a;
  if (b.is(Primitive::negate)) return a + b->arguments[0];
  return e;
}

Expr simplify_product(Expr e, Expr a, Expr b) {
  if (e.is(Primitive::multiply)) {
    if (is_value(b, 1)) return a;
    if (is_value(a, 1)) return b;
    if (is_integral(e) && (is_value(a, 0) || is_value(b, 0))) return constant(0, e.dtype());
    if (a.is(Primitive::negate) && b.is(Primitive::negate)) return a->arguments[0] * b->arguments[0];
    return e;
  }
  if (is_value(b, 1)) return a;
  if (Expr reciprocal = exact_reciprocal(b); reciprocal.defined()) return a * reciprocal;
  return e;
}

Expr simplify_select(Expr e, Expr condition, Expr a, Expr b) {
  if (a == b) return a;
  if (auto known = condition.constant()) return *known != 0 ? a : b;
  if (condition.is(Primitive::logical_not)) return scalar::select(condition->arguments[0], b, a);
  if (e.dtype() == DType::bool_ && is_value(a, 1) && is_value(b, 0)) return condition;
  if (e.dtype() == DType::bool_ && is_value(a, 0) && is_value(b, 1)) return scalar::logical_not(condition);
  return e;
}

Expr simplify_logic(Expr e, Expr a, Expr b) {
  double all = e.dtype() == DType::bool_ ? 1 : e.dtype() == DType::u8 ? 255 : -1;
  bool conjunction = e.is(Primitive::logical_and);
  if (e.is(Primitive::logical_xor)) return is_value(b, 0) ? a : is_value(a, 0) ? b : e;
  if (a == b) return a;
  double neutral = conjunction ? all : 0, absorbing = conjunction ? 0 : all;
  if (is_value(a, neutral) || is_value(b, absorbing)) return b;
  if (is_value(b, neutral) || is_value(a, absorbing)) return a;
  return e;
}

Expr simplify_not(Expr e, Expr a) {
  if (a.is(Primitive::logical_not)) return a->arguments[0];
  // Of floating values "not less" is not "greater or equal": NaN is neither.
  if (a.is(Primitive::less) && !is_floating(a->arguments[0].dtype())) return a->arguments[1] <= a->arguments[0];
  if (a.is(Primitive::less_equal) && !is_floating(a->arguments[0].dtype())) return a->arguments[1] < a->arguments[0];
  return e;
}

Expr simplify_comparison(Expr e, Expr a, Expr b) {
  if (a == b && !is_floating(a.dtype())) return constant(e.is(Primitive::less) ? 0 : 1, DType::bool_);
  return e;
}

Expr simplify_cast(Expr e, Expr a) {
  if (a.dtype() == e.dtype()) return a;
  if (a.is(Primitive::cast) && passes_through(a->arguments[0].dtype(), a.dtype(), e.dtype()))
    return scalar::cast(a->arguments[0], e.dtype());
  return e;
}

/// One step at the root; the expression itself if no rule applies.
Expr simplify_root(Expr e) {
  Expr a = e->arguments[0], b = e->arguments[1];
  switch (e->primitive) {
    case Primitive::add:
    case Primitive::subtract:
      return simplify_sum(e, a, b);
    case Primitive::multiply:
    case Primitive::divide:
      return simplify_product(e, a, b);
    case Primitive::minimum:
    case Primitive::maximum:
      return a == b ? a : e;
    case Primitive::negate:
      return a.is(Primitive::negate) ? a->arguments[0] : e;
    case Primitive::absolute:
      if (a.is(Primitive::absolute)) return a;
      if (e.dtype() == DType::u8) return a;  // never negative; -x wraps to another value
      return a.is(Primitive::negate) ? scalar::abs(a->arguments[0]) : e;
    case Primitive::floor:
    case Primitive::ceil:
    case Primitive::round:
      return a.is(Primitive::floor) || a.is(Primitive::ceil) || a.is(Primitive::round) ? a : e;
    case Primitive::less:
    case Primitive::less_equal:
    case Primitive::equal:
      return simplify_comparison(e, a, b);
    case Primitive::logical_and:
    case Primitive::logical_or:
    case Primitive::logical_xor:
      return simplify_logic(e, a, b);
    case Primitive::logical_not:
      return simplify_not(e, a);
    case Primitive::shift_left:
    case Primitive::shift_right:
      return is_value(b, 0) ? a : e;
    case Primitive::select:
      return simplify_select(e, a, b, e->arguments[2]);
    case Primitive::select_rarely:
      if (auto known = a.constant()) return *known != 0 ? b : e->arguments[2];
      return e;
    case Primitive::cast:
      return simplify_cast(e, a);
    case Primitive::bitcast:
      return a.is(Primitive::bitcast) ? scalar::bitcast(a->arguments[0], e.dtype()) : e;
    default:
      return e;
  }
}

}  // namespace

Expr simplify(Expr root) {
  std::unordered_map<const ExprNode*, Expr> simplified;
  for (Expr e : topological(root)) {
    if (e->argument_count == 0) {
      simplified[&*e] = e;
      continue;
    }
    if (e->custom_derivative) {
      simplified[&*e] = simplified.at(&*e->arguments[0]);
      continue;
    }
    Expr arguments[3];
    for (int i = 0; i < e->argument_count; ++i) arguments[i] = simplified.at(&*e->arguments[i]);
    Expr current = make(e->primitive, std::span(arguments, e->argument_count), e.dtype());
    for (Expr next;; current = next) {
      next = fold_constants(simplify_root(current));
      if (next == current) break;
    }
    simplified[&*e] = current;
  }
  return simplified.at(&*root);
}

}  // namespace stet
