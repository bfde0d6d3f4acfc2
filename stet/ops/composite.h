// What composites share: operands as tensors, and Problems as errors of the function that the user called.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "stet/base/inside.h"
#include "stet/core/call.h"
#include "stet/core/tensor_node.h"
#include "stet/ops/ops.h"

namespace stet {

inline void require_defined(const In& x) {
  if (x.kind() == In::Kind::tensor && !x.tensor().defined())
    throw Problem("an operand is an undefined tensor", advice_for_undefined(x.tensor()));
}

/// The operand as a tensor, a number in its own type. Problem for an undefined one.
inline Tensor tensor_of(const In& x) {
  require_defined(x);
  if (x.kind() == In::Kind::size) return tensor(x.size(), x.where());
  return x.kind() == In::Kind::tensor ? x.tensor() : as_tensor(x, x.dtype());
}

/// Its sizes, taken at the caller's line.
inline std::vector<Dim> sizes_of(const Tensor& x) {
  const Shape shape = x.shape(frame_where());
  return {shape.begin(), shape.end()};
}

/// f(), with its Problems as errors of the function whose Frame is open.
template <class F>
auto reporting(std::span<const char* const> names, std::span<const In> operands, F f) {
  try {
    return f();
  } catch (const Problem& problem) {
    throw_user_error(frame_name(), names, operands, problem, frame_where());
  }
}
template <class F>
auto reporting(const In& x, F f) {
  static constexpr const char* names[] = {"x"};
  return reporting(names, {&x, 1}, f);
}
template <class F>
auto reporting(const In& a, const In& b, F f) {
  static constexpr const char* names[] = {"a", "b"};
  const In operands[] = {a, b};
  return reporting(names, operands, f);
}
/// The same of a function without operands.
template <class F>
auto reporting(F f) {
  return reporting(std::span<const char* const>(), std::span<const In>(), f);
}

/// Problem for sizes below 0. Of symbols the op that uses them finds out, in every call.
inline void refuse_negative(const std::vector<Dim>& sizes) {
  for (const Dim& size : sizes) Shape one(std::vector<Dim>{size}, Where{});
}

/// x where the mask holds, elsewhere 0 of its own type.
inline Tensor zeros_unless(const Tensor& mask, const Tensor& x) {
  return x.dtype() == DType::bool_ ? logical_and(mask, x) : where(mask, x, 0);
}

/// A diagonal as near as makes no difference: positions and diagonals add up without overflow.
inline std::int64_t near_diagonal(std::int64_t k) {
  constexpr std::int64_t farthest = std::int64_t{1} << 61;
  return std::clamp(k, -farthest, farthest);
}

/// Whether an element of a matrix lies on its diagonal k (above it for k > 0), bool[rows, columns]; with `below`, on it
/// or below.
Tensor diagonal_mask(const Dim& rows, const Dim& columns, std::int64_t k, bool below);

}  // namespace stet
