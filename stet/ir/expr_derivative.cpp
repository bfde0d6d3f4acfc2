// Derivatives of scalar expressions: forward through the nodes, so that the result shares what the expression shares.
#include <numbers>
#include <unordered_map>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/ir/expr.h"

namespace stet {

namespace {

/// A derivative; undefined means zero, so that terms that vanish are never built.
using Slope = Expr;

Slope sum(Slope a, Slope b) { return !a.defined() ? b : !b.defined() ? a : a + b; }
Slope difference(Slope a, Slope b) { return !b.defined() ? a : !a.defined() ? -b : a - b; }
Slope scaled(Expr factor, Slope slope) {
  if (!slope.defined() || factor.constant() == 1.0) return slope;
  return slope.constant() == 1.0 ? factor : factor * slope;
}
Slope divided(Slope slope, Expr by) { return slope.defined() ? slope / by : slope; }
Slope negated(Slope slope) { return slope.defined() ? -slope : slope; }
Slope chosen(Expr condition, Slope a, Slope b) {
  if (!a.defined() && !b.defined()) return a;
  if (!a.defined()) return scalar::select(condition, 0, b);
  if (!b.defined()) return scalar::select(condition, a, 0);
  return scalar::select(condition, a, b);
}

Slope power_slope(Expr node, Expr base, Expr exponent, Slope d_base, Slope d_exponent) {
  Slope by_base, by_exponent;
  if (d_base.defined()) {
    Expr factor;
    if (auto n = exponent.constant()) {
      factor = *n == 0   ? constant(0.0, node.dtype())
               : *n == 1 ? constant(1.0, node.dtype())
               : *n == 2 ? base * 2
                         : exponent * scalar::power(base, exponent - 1);
    } else {
      // x^0 is 1 everywhere, also where 0 * x^-1 would be 0 * infinity.
      factor = exponent * scalar::power(base, scalar::select(scalar::equal(exponent, 0), 1, exponent - 1));
    }
    by_base = scaled(factor, d_base);
  }
  if (d_exponent.defined()) {
    // 0^y is flat in y where it is finite; the logarithm there would be -infinity.
    Expr safe = scalar::select(scalar::equal(base, 0), 1, base);
    by_exponent = scaled(node * scalar::log(safe), d_exponent);
  }
  return sum(by_base, by_exponent);
}

/// 2 / sqrt(pi) * exp(-x * x)
Expr erf_slope(Expr x) { return scalar::exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi); }

/// By one of the arguments of atan2, with the other and a sign: other / (x^2 + y^2), where squares may over- and
/// underflow. 0 at the origin.
struct Atan2Slopes {
  Expr by_y, by_x;
};
Atan2Slopes atan2_slopes(Expr y, Expr x) {
  Expr larger = scalar::maximum(scalar::abs(x), scalar::abs(y));
  Expr size = scalar::select(scalar::equal(larger, 0), 1, larger);
  Expr p = x / size, q = y / size, square = p * p + q * q;
  Expr bounded = scalar::select(scalar::equal(square, 0), 1, square) * size;
  return {p / bounded, -q / bounded};
}

/// The derivative of digamma: sum over k of 1 / (x + k)^2, the first ten and then its asymptotic series; below 0 by
/// reflection.
Expr trigamma(Expr x) {
  constexpr double pi = std::numbers::pi;
  Expr below = x < 0, positive = scalar::select(below, 1 - x, x), near = positive < 10;
  Expr y = scalar::select(near, positive + 10, positive), r = 1 / y, z = r * r;
  Expr first = constant(0.0, x.dtype());
  for (int k = 0; k < 10; ++k) {
    Expr inverse = 1 / (positive + k);
    first = first + inverse * inverse;
  }
  Expr series = constant(7.0 / 6, x.dtype());
  for (double term : {-691.0 / 2730, 5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6}) series = series * z + term;
  Expr value = r + z * 0.5 + series * z * r + scalar::select(near, first, 0);
  Expr sine = scalar::sin((x - scalar::round(x)) * pi);
  return scalar::select(below, (pi * pi) / (sine * sine) - value, value);
}

/// The derivative of a node from those of its arguments.
Slope slope_of(Expr node, std::span<const Slope> d) {
  Expr a = node->arguments[0], b = node->arguments[1];
  switch (node->primitive) {
    case Primitive::add:
      return sum(d[0], d[1]);
    case Primitive::subtract:
      return difference(d[0], d[1]);
    case Primitive::multiply:
      return sum(scaled(b, d[0]), scaled(a, d[1]));
    case Primitive::divide:
      return difference(divided(d[0], b), scaled(node / b, d[1]));
    case Primitive::modulo:
      return difference(d[0], d[1].defined() ? scaled(scalar::floor(a / b), d[1]) : d[1]);
    case Primitive::minimum:
    case Primitive::maximum: {
      Expr first_wins = node.is(Primitive::minimum) ? a < b : b < a;
      Slope both = sum(d[0], d[1]);
      Slope tie = both.defined() ? both * 0.5 : both;
      return chosen(first_wins, d[0], chosen(scalar::equal(a, b), tie, d[1]));
    }
    case Primitive::power:
      return power_slope(node, a, b, d[0], d[1]);
    case Primitive::negate:
      return negated(d[0]);
    case Primitive::absolute:
      return chosen(scalar::equal(a, 0), Slope(), chosen(a < 0, negated(d[0]), d[0]));
    case Primitive::sqrt:
      return divided(d[0], node * 2);
    case Primitive::exp:
      return scaled(node, d[0]);
    case Primitive::log:
      return divided(d[0], a);
    case Primitive::sin:
      return d[0].defined() ? scaled(scalar::cos(a), d[0]) : d[0];
    case Primitive::cos:
      return d[0].defined() ? scaled(-scalar::sin(a), d[0]) : d[0];
    case Primitive::tanh:
      return d[0].defined() ? scaled(1 - node * node, d[0]) : d[0];
    case Primitive::erf:
      return d[0].defined() ? scaled(erf_slope(a), d[0]) : d[0];
    case Primitive::erfc:
      return d[0].defined() ? scaled(-erf_slope(a), d[0]) : d[0];
    case Primitive::exp2:
      return scaled(node * std::numbers::ln2, d[0]);
    case Primitive::expm1:
      return scaled(scalar::exp(a), d[0]);
    case Primitive::log2:
      return scaled(std::numbers::log2e / a, d[0]);
    case Primitive::log10:
      return scaled(std::numbers::log10e / a, d[0]);
    case Primitive::erfinv:
      return scaled(scalar::exp(node * node) * (0.5 / std::numbers::inv_sqrtpi), d[0]);
    case Primitive::log_gamma:
      return scaled(scalar::digamma(a), d[0]);
    case Primitive::digamma:
      return scaled(trigamma(a), d[0]);
    case Primitive::atan2: {
      Atan2Slopes slopes = atan2_slopes(a, b);
      return sum(scaled(slopes.by_y, d[0]), scaled(slopes.by_x, d[1]));
    }
    case Primitive::fma:
      return sum(sum(scaled(b, d[0]), scaled(a, d[1])), d[2]);
    case Primitive::select:
    case Primitive::select_rarely:
      return chosen(a, d[1], d[2]);
    case Primitive::cast:
      return d[0].defined() ? scalar::cast(d[0], node.dtype()) : d[0];
    default:
      // floor, ceil, round are flat pieces; bitcasts take a number apart, which has no useful slope.
      return Slope();
  }
}

}  // namespace

Expr derivative(Expr root, int number) {
  if (!is_floating(root.dtype())) throw InternalError(text("derivative of a ", name(root.dtype()), " expression"));
  // Operands of with_derivative nodes need slopes too, and may not occur in the value.
  std::unordered_map<const ExprNode*, Slope> slopes;
  std::vector<Expr> pending{root};
  while (!pending.empty()) {
    Expr top = pending.back();
    if (slopes.contains(&*top)) {
      pending.pop_back();
      continue;
    }
    const ExprNode& node = *top;
    std::vector<Expr> needed;
    if (node.custom_derivative)
      needed = {node.arguments[1]};
    else
      needed.assign(node.arguments, node.arguments + node.argument_count);
    bool ready = true;
    for (Expr argument : needed)
      if (is_floating(argument.dtype()) && !slopes.contains(&*argument)) {
        pending.push_back(argument);
        ready = false;
      }
    if (!ready) continue;
    pending.pop_back();
    Slope d[3];
    for (std::size_t i = 0; i < needed.size(); ++i)
      if (is_floating(needed[i].dtype())) d[i] = slopes.at(&*needed[i]);
    Slope& slope = slopes[&node];
    if (node.primitive == Primitive::operand)
      slope = node.number == number ? constant(1.0, node.dtype) : Slope();
    else if (node.custom_derivative)
      slope = scaled(node.derivative, d[0]);
    else if (node.argument_count > 0 && (d[0].defined() || d[1].defined() || d[2].defined()))
      slope = slope_of(top, d);
  }
  Slope result = slopes.at(&*root);
  return result.defined() ? result : constant(0.0, root.dtype());
}

}  // namespace stet
