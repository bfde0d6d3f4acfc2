#include "stet/cpu/emit_combine.h"

#include <limits>

#include "stet/base/error.h"

namespace stet::cpu {
namespace {

Value greater(LlvmBuilder& b, DType dtype, Value left, Value right) {
  if (is_floating(dtype)) return b.fcompare(LLVMRealOGT, left, right);
  bool is_unsigned = dtype == DType::u8 || dtype == DType::bool_;
  return b.compare(is_unsigned ? LLVMIntUGT : LLVMIntSGT, left, right);
}

Value is_nan(LlvmBuilder& b, Value value) { return b.fcompare(LLVMRealUNO, value, value); }

}  // namespace

Value combine_values(LlvmBuilder& b, Combine combine, DType dtype, Value left, Value right) {
  bool real = is_floating(dtype);
  switch (combine) {
    case Combine::sum:
      return real ? b.fadd(left, right) : b.add(left, right);
    case Combine::product:
      return real ? b.fmultiply(left, right) : b.multiply(left, right);
    case Combine::maximum:
    case Combine::minimum: {
      Value takes = combine == Combine::maximum ? greater(b, dtype, right, left) : greater(b, dtype, left, right);
      if (real) takes = b.bit_or(takes, is_nan(b, right));
      return b.select(takes, right, left);
    }
    default:
      throw InternalError("argmax and argmin combine positions, not values");
  }
}

Reducer::Reducer(LlvmBuilder& builder, Combine combine, DType dtype, int lanes)
    : b(builder), combine_(combine), dtype_(dtype), lanes_(lanes) {}

Value Reducer::identity(Type type) {
  bool real = is_floating(dtype_);
  switch (combine_) {
    case Combine::sum:
      return b.zero(type);
    case Combine::product:
      return real ? b.real(type, 1) : b.constant(type, 1);
    case Combine::maximum:
    case Combine::argmax:
      return real ? b.real(type, -std::numeric_limits<double>::infinity()) : b.constant(type, row(dtype_).lowest);
    default:
      return real ? b.real(type, std::numeric_limits<double>::infinity()) : b.constant(type, row(dtype_).highest);
  }
}

std::vector<Value> Reducer::initial(Value positions) {
  Value values = identity(b.vector(b.computed(dtype_), lanes_));
  return is_position() ? std::vector<Value>{values, positions} : std::vector<Value>{values};
}

Value Reducer::better(Value candidate, Value best) {
  Value takes = combine_ == Combine::argmax ? greater(b, dtype_, candidate, best) : greater(b, dtype_, best, candidate);
  if (is_floating(dtype_)) takes = b.bit_or(takes, b.bit_and(is_nan(b, candidate), b.bit_not(is_nan(b, best))));
  return takes;
}

std::vector<Value> Reducer::step(std::span<const Value> state, Value value, Value positions, Value mask) {
  if (is_position()) {
    Value takes = better(value, state[0]);
    if (mask) takes = b.bit_and(takes, mask);
    return {b.select(takes, value, state[0]), b.select(takes, positions, state[1])};
  }
  if (mask) value = b.select(mask, value, identity(b.type_of(value)));
  return {combine_values(b, combine_, dtype_, state[0], value)};
}

std::vector<Value> Reducer::join(std::span<const Value> left, std::span<const Value> right) {
  if (!is_position()) return {combine_values(b, combine_, dtype_, left[0], right[0])};
  Value takes = better(right[0], left[0]);
  Value loses = better(left[0], right[0]);
  Value earlier = b.compare(LLVMIntSLT, right[1], left[1]);
  takes = b.bit_or(takes, b.bit_and(b.bit_not(loses), earlier));
  return {b.select(takes, right[0], left[0]), b.select(takes, right[1], left[1])};
}

Value Reducer::finish(std::span<const Value> states) {
  std::vector<std::vector<Value>> parts;
  auto count = static_cast<std::size_t>(width());
  for (std::size_t i = 0; i < states.size(); i += count)
    parts.emplace_back(states.begin() + static_cast<std::ptrdiff_t>(i),
                       states.begin() + static_cast<std::ptrdiff_t>(i + count));
  for (std::size_t half = parts.size() / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) parts[i] = join(parts[i], parts[i + half]);
  std::vector<Value> state = parts[0];
  for (int half = lanes_ / 2; half > 0; half /= 2) {
    std::vector<int> low, high;
    for (int lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(lane + half);
    }
    std::vector<Value> left, right;
    for (Value v : state) {
      left.push_back(b.shuffle(v, b.poison(b.type_of(v)), low));
      right.push_back(b.shuffle(v, b.poison(b.type_of(v)), high));
    }
    state = join(left, right);
  }
  return b.extract(column_result(state), 0);
}

}  // namespace stet::cpu
