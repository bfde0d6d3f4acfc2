// What structured rows must give: the stored values of a sample, and how far a result may be off.
//
// Bounds, by the sample's Rounding. Integers and data that only moves: exact. Sums of n terms in
// floating types:  |error| <= (4 + sqrt(n)) u S + v |result|,  where S is the sum of the terms' magnitudes, u the unit
// roundoff of the type accumulated in (f32 for f16 and bf16) and v that of the result. Sums are blocked, so n u S is
// far from reached; the square root is what independent roundings give. Products of n factors: |error| <= n u |result|
// + v |result|.
#pragma once
#include "tests/ops/oracle.h"

namespace stet::op_test {

/// The line of a sample's block with values for the type; "" if the row does not take it. Signed integers draw the same
/// numbers and share a line.
inline std::string line_for(const OracleBlock& block, DType dtype, std::size_t result = 0) {
  std::string which = result_prefix(result);
  for (std::string name : {std::string("source"), std::string("any"), text(dtype)})
    if (block.has(which + name)) return which + name;
  bool is_signed = row(dtype).category == DTypeClass::signed_integer;
  return is_signed && block.has(which + "i64") ? which + "i64" : "";
}

/// The elements a result must have. "source": positions counted through all operands that hold data.
inline Values expected_values(const OracleBlock& block, const std::string& line, const Sample& sample, DType dtype,
                              DType result) {
  Values out = block.values(line);
  if (line.ends_with("source")) {
    Values all;
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      if (sample.inputs[k].below >= 0) continue;
      Values one = drawn_values(static_cast<int>(k), dtype, sample.inputs[k]);
      all.insert(all.end(), one.begin(), one.end());
    }
    for (Value& value : out) value = all[static_cast<std::size_t>(value)];
  }
  if (!is_floating(result))
    for (Value& value : out) value = rounded_to(result, value);  // wrapped
  return out;
}

inline Tensor magnitude(const Tensor& tensor) { return abs(cast(tensor, DType::f64)); }

/// The most a result may be off, per element.
inline Values allowed_errors(const OpDef& op, const Sample& sample, const std::vector<Tensor>& inputs,
                             const Values& expected, std::size_t number, DType result) {
  Values out(expected.size(), 0);
  if (!is_floating(result)) return out;
  DType accumulator = compute_type(result);
  Value u = unit_roundoff(accumulator), v = unit_roundoff(result);
  if (sample.rounding == Rounding::sums) {
    std::vector<Tensor> magnitudes;
    Values terms;
    std::int64_t most = 1;  // terms of a result; an upper bound is the largest operand, or the filter's size
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      bool indices = sample.inputs[k].below >= 0;
      magnitudes.push_back(indices ? inputs[k] : magnitude(inputs[k]));
      if (!indices) most = std::max(most, count_of(sizes_of(inputs[k])));
    }
    if (op.kind == Kind::contract)
      most = sizes_of(inputs[0]).back() + sizes_of(inputs[0])[sizes_of(inputs[0]).size() - 2];
    if (op.kind == Kind::window && inputs.size() > 1) most = count_of(sizes_of(inputs[1]));
    terms = values_of(eager_all(op, magnitudes, sample.attributes)[number]);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = (4 + std::sqrt(static_cast<Value>(most))) * u * terms[i] + v * std::abs(expected[i]);
  } else if (sample.rounding == Rounding::products) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = (static_cast<Value>(count_of(sizes_of(inputs[0]))) * u + v) * std::abs(expected[i]);
  } else if (sample.rounding == Rounding::functions) {
    // Box and Muller with angles up to 2 pi, in f32: radius times the angle's rounding error.
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = 64 * u * std::max<Value>(std::abs(expected[i]), 1) + v * std::abs(expected[i]);
  } else if (sample.rounding == Rounding::factorisation) {
    // Backward stable, of matrices whose condition is below 100: some hundred roundings of the largest element.
    Value largest = 1;
    for (Value one : expected) largest = std::max(largest, std::abs(one));
    for (Value& one : out) one = 400 * u * largest;
  }
  return out;
}

}  // namespace stet::op_test
