// The ops, as functions. Every one takes tensors, sizes and C++ numbers alike, and throws UserError with your line for
// operands that do not fit. Axes count from 0, or from the end when negative.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "stet/base/export.h"
#include "stet/core/dim_host.h"  // else x.dim(0) == 1 would be a comparison of tensors
#include "stet/core/in.h"
#include "stet/core/tensor.h"

namespace stet {

// --- elementwise; operands broadcast as in NumPy. One row each in elementwise.def.

#define STET_UNARY(name, dtypes, domain, summary, ...) STET_API Tensor name(In x);
#define STET_BINARY(name, dtypes, domain, summary, ...) STET_API Tensor name(In x, In y);
#define STET_TERNARY(name, dtypes, domain, summary, ...) STET_API Tensor name(In x, In y, In z);
#include "stet/ops/elementwise.def"

/// The same values in another type. Floating to integer saturates and NaN gives 0; integers wrap; to bool is `!= 0`.
/// Names: numpy.ndarray.astype, array_api.astype, tf.cast, torch.Tensor.to
/// Example: cast(tensor({-1.5f, 2.5f, 300.f}), u8)
STET_API Tensor cast(In x, DType dtype);

inline Tensor operator+(In x, In y) { return add(x, y); }
inline Tensor operator-(In x, In y) { return subtract(x, y); }
inline Tensor operator*(In x, In y) { return multiply(x, y); }
inline Tensor operator/(In x, In y) { return divide(x, y); }
inline Tensor operator%(In x, In y) { return mod(x, y); }
inline Tensor operator==(In x, In y) { return equal(x, y); }
inline Tensor operator!=(In x, In y) { return not_equal(x, y); }
inline Tensor operator<(In x, In y) { return less(x, y); }
inline Tensor operator<=(In x, In y) { return less_equal(x, y); }
inline Tensor operator>(In x, In y) { return greater(x, y); }
inline Tensor operator>=(In x, In y) { return greater_equal(x, y); }
inline Tensor operator&(In x, In y) { return bitwise_and(x, y); }
inline Tensor operator|(In x, In y) { return bitwise_or(x, y); }
inline Tensor operator^(In x, In y) { return bitwise_xor(x, y); }
/// x += y is x = x + y: the name gets a new tensor, others that were equal to the old one keep it.
inline Tensor& operator+=(Tensor& x, In y) { return x = add(In(x, y.where()), y); }
inline Tensor& operator-=(Tensor& x, In y) { return x = subtract(In(x, y.where()), y); }
inline Tensor& operator*=(Tensor& x, In y) { return x = multiply(In(x, y.where()), y); }
inline Tensor& operator/=(Tensor& x, In y) { return x = divide(In(x, y.where()), y); }
// `x[0] += 1`: a result is not a place.
template <std::same_as<Tensor> T>
Tensor& operator+=(T&& result, In y) = delete;
template <std::same_as<Tensor> T>
Tensor& operator-=(T&& result, In y) = delete;
template <std::same_as<Tensor> T>
Tensor& operator*=(T&& result, In y) = delete;
template <std::same_as<Tensor> T>
Tensor& operator/=(T&& result, In y) = delete;
/// v.assign_add(y) and v.assign_sub(y).
inline const Variable& operator+=(const Variable& v, In y) { return v.assign_add(y, y.where()), v; }
inline const Variable& operator-=(const Variable& v, In y) { return v.assign_sub(y, y.where()), v; }
inline Tensor operator-(In x) { return negative(x); }
inline Tensor operator~(In x) { return bitwise_not(x); }
Tensor operator-(const Dim&) = delete;  // of a size; In, which carries the line, would take it
Tensor operator~(const Dim&) = delete;

// --- what structured ops take

/// One axis, several, or (not given) all of them.
class Axes {
 public:
  template <std::integral I>
  Axes(I axis) : axes{static_cast<std::int64_t>(axis)} {}
  Axes(std::initializer_list<int> several) : axes(several.begin(), several.end()) {}
  template <std::integral I>
  Axes(const std::vector<I>& several) : axes(several.begin(), several.end()) {}
  template <std::integral I, std::size_t count>
  Axes(const std::array<I, count>& several) : axes(several.begin(), several.end()) {}
  std::vector<std::int64_t> axes;
};
struct ReduceOptions {
  bool keepdims = false;  // leave the reduced axes in place, with size 1
};

}  // namespace stet

#include "stet/ops/declarations.h"  // made from the files beside this one: what each op is
