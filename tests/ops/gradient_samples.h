// Operands to differentiate rows at, and directions.
#pragma once
#include <cmath>
#include <ranges>

#include "tests/ops/coverage.h"
#include "tests/ops/oracle.h"
#include "tests/sampling.h"

namespace stet::op_test {

/// Drawn from the domain with 31 bits, so that no two elements are equal and no element sits on a kink.
inline Tensor values_from(const Domain& domain, DType dtype, const Sizes& sizes, std::uint64_t stream) {
  Values out;
  for (std::int64_t i = 0; i < count_of(sizes); ++i)
    out.push_back(drawn_from(domain, drawn(static_cast<std::uint64_t>(i), stream)));
  return make_tensor(dtype, out, sizes);
}

inline Tensor direction_like(const Tensor& tensor, std::uint64_t stream) {
  return values_from({-1, 1}, tensor.dtype(), sizes_of(tensor), 1000 + stream);
}

inline double inner_product(const Tensor& a, const Tensor& b) {
  Values x = values_of(a), y = values_of(b);
  EXPECT_EQ(x.size(), y.size());
  Value total = 0;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) total += x[i] * y[i];
  return static_cast<double>(total);
}
inline double largest(const Tensor& tensor) {
  Value out = 0;
  for (Value value : values_of(tensor)) out = std::max(out, std::abs(value));
  return static_cast<double>(out);
}

/// A direction for each floating result; undefined for the others, as tapes leave it.
inline std::vector<Tensor> directions_like(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> out;
  for (std::size_t r = 0; r < outputs.size(); ++r)
    out.push_back(is_floating(outputs[r].dtype()) ? direction_like(outputs[r], 77 + r) : Tensor());
  return out;
}
inline bool any_floating(const std::vector<Tensor>& outputs) {
  return std::ranges::any_of(outputs, [](const Tensor& output) { return is_floating(output.dtype()); });
}

/// Operands in f64. `narrow`: a type that they are rounded to later; f16 has no room for the powers of others' domains.
inline std::vector<Tensor> map_operands(const OpDef& row, const std::vector<Sizes>& sizes, DType narrow = DType::f64) {
  std::vector<Tensor> out;
  Domain domain = row.domain;
  if (narrow == DType::f16) domain = {std::max(domain.low, -4.0), std::min(domain.high, 4.0), domain.without_zero};
  for (int k = 0; k < row.arity; ++k) {
    const Sizes& shape = sizes[static_cast<std::size_t>(k)];
    bool condition = row.dtypes.result == DTypeRule::selected && k == 0;
    Tensor values = values_from(domain, DType::f64, shape, static_cast<std::uint64_t>(k) + 10);
    out.push_back(condition ? values > 0.5 : values);
  }
  return out;
}

inline bool has_floating_result(const OpDef& row) {
  return row.dtypes.result != DTypeRule::compared && row.dtypes.result != DTypeRule::logical;
}

/// Operands of a sample in f64; none if it is too large for differences.
inline std::vector<Tensor> sample_operands(const Sample& sample) {
  std::int64_t elements = 0;
  for (const SampleInput& input : sample.inputs) elements += count_of(input.sizes);
  std::vector<Tensor> out;
  if (elements > 5000) return out;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    const SampleInput& input = sample.inputs[k];
    Domain domain = input.draw == Draw::factors ? Domain{0.7, 1.4} : Domain{-2, 2};
    // Matrices keep what they were drawn for.
    bool matrices = input.draw == Draw::definite || input.draw == Draw::regular;
    DType type = input.below >= 0 ? DType::i64 : DType::f64;
    out.push_back(input.below >= 0 || matrices
                      ? make_tensor(type, drawn_values(static_cast<int>(k), type, input), input.sizes)
                      : values_from(domain, DType::f64, input.sizes, k + 20));
  }
  return out;
}

/// The samples that a run visits: those not too large for differences, and one whose result has elements for certain.
inline std::vector<Sample> visited_samples(const OpDef& op, const std::string& what, std::size_t count) {
  std::vector<Sample> samples = samples_of(op), out;
  std::erase_if(samples, [](const Sample& sample) { return sample_operands(sample).empty(); });
  auto has_results = [&](std::size_t k) {
    const OracleBlock* block = Oracle::instance().find(sample_line(op, samples[k]));
    return has_elements(samples[k]) && block && count_of(block->shape()) > 0;
  };
  for (std::size_t i : chosen(text(what, " ", op.name), samples.size(), count, has_results)) out.push_back(samples[i]);
  return out;
}

}  // namespace stet::op_test
