#include "stet/core/gradient.h"

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/thread_end.h"
#include "stet/core/call.h"
#include "stet/ir/expr.h"
#include "stet/ir/graph.h"

namespace stet {

bool GradientCall::same_size(const Dim& a, const Dim& b) { return identical(a, b); }

namespace {

/// Expressions with the result instead of the body, in stated derivatives too.
class WithResult {
 public:
  WithResult(Expr body, Expr result) {
    // To all but derivatives, a stated derivative does nothing: either stands for the value.
    for (known_.emplace(&*body, result); body->custom_derivative; known_.emplace(&*body, result))
      body = body->arguments[0];
  }
  Expr operator()(Expr e) {
    if (!e.defined()) return e;
    if (auto found = known_.find(&*e); found != known_.end()) return found->second;
    Expr out = e;
    if (e->custom_derivative) {
      out = scalar::with_derivative((*this)(e->arguments[0]), (*this)(e->arguments[1]), (*this)(e->derivative));
    } else if (e->argument_count > 0) {
      Expr arguments[3];
      for (int i = 0; i < e->argument_count; ++i) arguments[i] = (*this)(e->arguments[i]);
      out = make(e->primitive, std::span<const Expr>(arguments, e->argument_count), e.dtype());
    }
    return known_.emplace(&*e, out).first->second;
  }

 private:
  std::unordered_map<const ExprNode*, Expr> known_;
};

/// What is known of the values of an expression whose operands are finite. Sums and products count as finite, though
/// they may overflow.
struct Range {
  bool finite = false, not_negative = false, not_positive = false, at_least_one = false;
};

Range range_of_product(const Range& a, const Range& b, bool same) {
  return {.finite = a.finite && b.finite,
          .not_negative = same || (a.not_negative && b.not_negative) || (a.not_positive && b.not_positive),
          .not_positive = (a.not_negative && b.not_positive) || (a.not_positive && b.not_negative),
          .at_least_one = a.at_least_one && b.at_least_one};
}

/// Of a node, from those of its arguments.
Range range_of(Expr e, const Range* of) {
  const Range &a = of[0], &b = of[1];
  switch (e->primitive) {
    case Primitive::constant: {
      double value = e.constant().value_or(0);
      return {std::isfinite(value), value >= 0, value <= 0, value >= 1};
    }
    case Primitive::operand:
    case Primitive::floor:
    case Primitive::ceil:
    case Primitive::round:
      return {.finite = e.is(Primitive::operand) || a.finite};
    case Primitive::cast:
      return a;
    case Primitive::negate:
      return {a.finite, a.not_positive, a.not_negative, false};
    case Primitive::add:
      return {a.finite && b.finite, a.not_negative && b.not_negative, a.not_positive && b.not_positive,
              (a.at_least_one && b.not_negative) || (b.at_least_one && a.not_negative)};
    case Primitive::subtract:
      return {a.finite && b.finite, a.not_negative && b.not_positive, a.not_positive && b.not_negative, false};
    case Primitive::multiply:
      return range_of_product(a, b, e->arguments[0] == e->arguments[1]);
    case Primitive::divide: {
      Range out = range_of_product(a, b, false);
      out.finite = a.finite && b.at_least_one;
      out.at_least_one = false;
      return out;
    }
    case Primitive::fma:
      return {.finite = a.finite && b.finite && of[2].finite};
    case Primitive::power: {
      std::optional<double> exponent = e->arguments[1].constant();
      return {.finite =
                  a.finite && exponent && *exponent >= 0 && (a.not_negative || *exponent == std::floor(*exponent))};
    }
    case Primitive::absolute:
      return {a.finite, true, false, a.at_least_one};
    case Primitive::sqrt:
      return {a.finite && a.not_negative, true, false, a.at_least_one};
    case Primitive::exp:
    case Primitive::exp2:
      return {a.not_positive, true, false, a.not_negative};
    case Primitive::expm1:
      return {a.not_positive, a.not_negative, a.not_positive, false};
    case Primitive::log:
    case Primitive::log2:
    case Primitive::log10:
      return {a.finite && a.at_least_one, a.at_least_one, false, false};
    case Primitive::sin:
    case Primitive::cos:
    case Primitive::tanh:
    case Primitive::erf:
    case Primitive::erfc:
      return {.finite = true, .not_negative = e.is(Primitive::erfc)};
    case Primitive::maximum:
      return {a.finite && b.finite, a.not_negative || b.not_negative, a.not_positive && b.not_positive,
              a.at_least_one || b.at_least_one};
    case Primitive::minimum:
      return {a.finite && b.finite, a.not_negative && b.not_negative, a.not_positive || b.not_positive,
              a.at_least_one && b.at_least_one};
    case Primitive::select:
    case Primitive::select_rarely:
      return {b.finite && of[2].finite, b.not_negative && of[2].not_negative, b.not_positive && of[2].not_positive,
              b.at_least_one && of[2].at_least_one};
    default:
      return {};
  }
}

/// Infinite or not a number somewhere, of finite operands; not of sigmoid's or gelu's slopes.
bool may_be_infinite(Expr root) {
  std::unordered_map<const ExprNode*, Range> known;
  for (Expr e : topological(root)) {
    Range of[3];
    for (int i = 0; i < e->argument_count; ++i) of[i] = known.at(&*e->arguments[i]);
    known[&*e] = range_of(e, of);
  }
  return !known.at(&*root).finite;
}

/// The operands that occur, by number, in stated derivatives too: those are needed when it is differentiated again.
std::vector<Expr> operands_in(Expr root, std::size_t count) {
  std::vector<Expr> out(count), open{root};
  std::unordered_set<const ExprNode*> seen;
  while (!open.empty()) {
    Expr e = open.back();
    open.pop_back();
    if (!e.defined() || !seen.insert(&*e).second) continue;
    if (e.is(Primitive::operand)) out[static_cast<std::size_t>(e->number)] = e;
    for (const Expr& argument : e->arguments) open.push_back(argument);
    open.push_back(e->derivative);
  }
  return out;
}
std::vector<bool> operands_of(Expr root, std::size_t count) {
  std::vector<bool> out;
  for (const Expr& one : operands_in(root, count)) out.push_back(one.defined());
  return out;
}

/// The expression over those of `count` operands that it has, and their numbers.
std::pair<Expr, std::vector<int>> over_used_operands(Expr body, std::size_t count) {
  std::vector<Expr> renumbered = operands_in(body, count);
  std::vector<int> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    if (!renumbered[i].defined()) continue;
    renumbered[i] = operand(static_cast<int>(numbers.size()), renumbered[i].dtype());
    numbers.push_back(static_cast<int>(i));
  }
  return {substitute(body, renumbered), std::move(numbers)};
}

MapDerivatives::Slope slope_by_result(const MapDerivatives::Slope& plain, Expr body, int operands) {
  Expr out = WithResult(body, operand(operands, body.dtype()))(plain.value);
  std::vector<bool> reads = operands_of(out, static_cast<std::size_t>(operands) + 1);
  bool drops = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i) drops = drops || (plain.reads[i] && !reads[i]);
  return drops ? MapDerivatives::Slope{out, plain.may_be_infinite, std::move(reads)} : plain;
}

/// With the gradient by an operand of this type, of a body of that one.
MapDerivatives::Slope with_gradient(MapDerivatives::Slope slope, DType type, DType body, int operands) {
  const DType computed = compute_type(body);
  Expr d = scalar::cast(operand(operands + 1, body), computed);
  Expr product = weighted_slope(d, scalar::cast(slope.value, computed), slope.may_be_infinite);
  std::tie(slope.gradient, slope.gradient_of) =
      over_used_operands(scalar::cast(product, type), static_cast<std::size_t>(operands) + 2);
  return slope;
}

MapDerivatives derivatives_of(Expr body, std::span<const DType> types) {
  MapDerivatives out{body, {}};
  const int count = static_cast<int>(types.size());
  for (int i = 0; i < count; ++i) {
    MapDerivatives::Slope plain;
    if (is_floating(body.dtype()) && is_floating(types[static_cast<std::size_t>(i)])) {
      plain.value = derivative(body, i);
      if (simplify(plain.value).constant() == 0.0) plain.value = constant(0.0, plain.value.dtype());
      plain.reads = operands_of(plain.value, static_cast<std::size_t>(count) + 1);
      plain.may_be_infinite = may_be_infinite(plain.value);
    }
    const DType type = types[static_cast<std::size_t>(i)];
    out.slopes.push_back(
        plain.value.defined() ? with_gradient(slope_by_result(plain, body, count), type, body.dtype(), count) : plain);
  }
  return out;
}

struct MapKey {
  const OpDef* op;
  const ExprNode* body;  // of a map without a row
  std::string types;
  bool operator==(const MapKey&) const = default;
};
struct MapKeyHash {
  std::size_t operator()(const MapKey& key) const {
    return attribute::mix(
        attribute::mix(reinterpret_cast<std::size_t>(key.op), reinterpret_cast<std::size_t>(key.body)),
        std::hash<std::string>()(key.types));
  }
};
struct KnownMaps {
  std::unordered_map<MapKey, std::shared_ptr<const MapDerivatives>, MapKeyHash> known;
};
constexpr std::size_t most_known_maps = 4096;
constinit thread_local KnownMaps* this_thread_maps = nullptr;

}  // namespace

std::shared_ptr<const MapDerivatives> map_derivatives(const OpDef& op, std::span<const Tensor> inputs,
                                                      AttributesView attributes) {
  KnownMaps& maps = this_thread_maps ? *this_thread_maps : make_for_this_thread(this_thread_maps);
  const auto* given = op.body ? nullptr : static_cast<const MapAttributes*>(attributes.data);
  MapKey key{&op, given ? &*given->body : nullptr, {}};
  for (const Tensor& input : inputs) key.types += static_cast<char>(input.dtype());
  if (auto found = maps.known.find(key); found != maps.known.end()) return found->second;
  std::vector<DType> types;
  for (const Tensor& input : inputs) types.push_back(input.dtype());
  if (maps.known.size() >= most_known_maps) maps.known.clear();
  auto made =
      std::make_shared<const MapDerivatives>(derivatives_of(given ? given->body : instantiate(op, types).body, types));
  return maps.known.emplace(std::move(key), std::move(made)).first->second;
}

Expr weighted_slope(Expr d, Expr slope, bool may_be_infinite) {
  if (slope.constant() == 1.0) return d;
  if (slope.constant() == 0.0) return slope;
  const bool choice = slope.is(Primitive::select) && !slope->custom_derivative;
  if (choice)  // what is not chosen is 0, also beside an infinite d
    return scalar::select(slope->arguments[0], weighted_slope(d, slope->arguments[1], may_be_infinite),
                          weighted_slope(d, slope->arguments[2], may_be_infinite));
  if (!may_be_infinite || slope.constant()) return d * slope;
  Expr finite = scalar::abs(slope) < std::numeric_limits<double>::infinity();
  return scalar::select(scalar::logical_and(scalar::equal(d, 0), scalar::logical_not(finite)), 0, d * slope);
}

namespace {

Tensor called_with(Expr body, const std::vector<int>& numbers, std::span<const Tensor> operands) {
  std::vector<In> given;
  for (int number : numbers) given.emplace_back(operands[static_cast<std::size_t>(number)], Where{});
  return call_map(body, given);
}

}  // namespace

Tensor call_map_of(Expr body, std::span<const Tensor> operands) {
  auto [used, numbers] = over_used_operands(body, operands.size());
  return called_with(used, numbers, operands);
}

void map_gradient(GradientCall& call) {
  std::vector<Tensor> operands;
  for (int i = 0; i < call.input_count(); ++i) operands.push_back(call.in(i));
  const std::shared_ptr<const MapDerivatives> known = map_derivatives(call.op(), operands, call.attributes_view());
  if (!is_floating(known->body.dtype())) return;
  operands.push_back(call.out());
  operands.push_back(call.d());
  for (int i = 0; i < call.input_count(); ++i) {
    if (!call.wants(i)) continue;
    const MapDerivatives::Slope& slope = known->slopes[static_cast<std::size_t>(i)];
    if (slope.value.constant() == 0.0) {
      call.set(i, zeros_like(call.in(i)));
      continue;
    }
    call.set(i, core_ops.sum_to(called_with(slope.gradient, slope.gradient_of, operands), call.in(i).shape()));
  }
}

}  // namespace stet
