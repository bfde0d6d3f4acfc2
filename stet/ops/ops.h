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
inline Tensor operator&(In x, In y) { return logical_and(x, y); }
inline Tensor operator|(In x, In y) { return logical_or(x, y); }
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
inline Tensor operator~(In x) { return logical_not(x); }
Tensor operator-(const Dim&) = delete;  // of a size; In, which carries the line, would take it
Tensor operator~(const Dim&) = delete;

// --- reductions

/// One axis, several, or (not given) all of them.
class Axes {
 public:
  template <std::integral I>
  Axes(I axis) : axes{static_cast<std::int64_t>(axis)} {}
  Axes(std::initializer_list<int> several) : axes(several.begin(), several.end()) {}
  std::vector<std::int64_t> axes;
};
struct ReduceOptions {
  bool keepdims = false;  // leave the reduced axes in place, with size 1
};

/// Sums; of bool and of 8- and 16-bit integers i32. An empty sum is 0.
STET_API Tensor sum(In x);
STET_API Tensor sum(In x, const Axes& axes, ReduceOptions options = {});
/// Means; of integers and bool f32. An empty mean is NaN.
STET_API Tensor mean(In x);
STET_API Tensor mean(In x, const Axes& axes, ReduceOptions options = {});
/// Products; of bool and of 8- and 16-bit integers i32. An empty product is 1.
STET_API Tensor prod(In x);
STET_API Tensor prod(In x, const Axes& axes, ReduceOptions options = {});
/// The largest element; NaN if there is one. Of an empty axis a UserError.
STET_API Tensor max(In x);
STET_API Tensor max(In x, const Axes& axes, ReduceOptions options = {});
/// The smallest element; NaN if there is one. Of an empty axis a UserError.
STET_API Tensor min(In x);
STET_API Tensor min(In x, const Axes& axes, ReduceOptions options = {});
/// The position of the largest (smallest) element along an axis, i64; the first among equals; of NaN if there is one.
STET_API Tensor argmax(In x, int axis, ReduceOptions options = {});
STET_API Tensor argmin(In x, int axis, ReduceOptions options = {});

// --- layout: elements move, none is computed. Results are views where they can be.

/// The same elements in row-major order under another shape; one size may be -1 and follows from the others.
STET_API Tensor reshape(In x, std::initializer_list<Dim> shape);
STET_API Tensor reshape(In x, const std::vector<Dim>& shape);
/// Axes in another order; without one, reversed.
STET_API Tensor transpose(In x);
STET_API Tensor transpose(In x, const Axes& order);
/// Repeated along axes of size 1 (and new leading ones) up to `shape`, without copying.
STET_API Tensor broadcast_to(In x, const Shape& shape);
/// The block that starts at `begin` and has `size` elements along each axis, every `step`-th of them.
STET_API Tensor slice(In x, const std::vector<Dim>& begin, const std::vector<Dim>& size,
                      const std::vector<std::int64_t>& step = {});
/// Axes backwards.
STET_API Tensor reverse(In x, const Axes& axes);
/// Tensors one after the other along an axis.
STET_API Tensor concat(const std::vector<Tensor>& parts, int axis = 0, Where where = Where::here());
/// Tensors of one shape along a new axis.
STET_API Tensor stack(const std::vector<Tensor>& parts, int axis = 0, Where where = Where::here());
/// An axis of size 1 put in.
STET_API Tensor expand_dims(In x, int axis);
/// Axes of size 1 taken out: all, or the given ones.
STET_API Tensor squeeze(In x);
STET_API Tensor squeeze(In x, const Axes& axes);

// --- positions from values

/// Slices of `x` along `axis`, chosen by integer `indices`; an index outside 0 to size-1 is a UserError.
STET_API Tensor gather(In x, In indices, int axis = 0);
struct OneHotOptions {
  DType dtype = DType::f32;
};
/// A new last axis of size `depth` with 1 at the index and 0 elsewhere; an index outside gives all zeros.
STET_API Tensor one_hot(In indices, const Dim& depth, OneHotOptions options = {});
/// `x` with `updates` added at `indices` along `axis`: what gather's gradient is. Repeated indices add up, in order.
STET_API Tensor scatter_add(In x, In indices, In updates, int axis = 0);

// --- products

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};
/// Matrix product of the last two axes; leading axes broadcast. A vector on the left is a row, on the right a column.
STET_API Tensor matmul(In a, In b, MatmulOptions options = {});

struct Conv2DOptions {
  std::vector<std::int64_t> strides = {1, 1};
  /// true: as much zero padding as keeps ceil(size / stride) positions, as TensorFlow's "SAME"; false: none.
  bool same_padding = false;
  std::vector<std::int64_t> dilations = {1, 1};
};
/// Convolution of images [batch, height, width, channels] with a filter [height, width, channels, features].
STET_API Tensor conv2d(In x, In filter, const Conv2DOptions& options = {});

// --- sizes that depend on values

/// Positions of non-zero elements, i64[count, rank], in row-major order.
STET_API Tensor nonzero(In x);

// --- composites: ordinary functions of the ops above

/// exp(x) / sum(exp(x)) along an axis, without overflow.
STET_API Tensor softmax(In x, int axis);
STET_API Tensor log_softmax(In x, int axis);
/// Along the last axis; overloads of their own, so that they can be given as activations.
STET_API Tensor softmax(In x);
STET_API Tensor log_softmax(In x);
struct LayerNormOptions {
  double epsilon = 1e-3;
};
/// (x - mean) / sqrt(variance + epsilon) over the last axis, times `gamma`, plus `beta`.
STET_API Tensor layer_norm(In x, In gamma, In beta, LayerNormOptions options = {});
/// -log(softmax(logits)[label]) per sample: `labels` are integers [...], `logits` [..., classes].
STET_API Tensor sparse_cross_entropy(In labels, In logits);

// --- random numbers: Philox, counted from the seed; the same seed gives the same numbers on every number of threads

namespace random {

/// Restarts the process's generator.
STET_API void seed(std::uint64_t value);

struct UniformOptions {
  double minval = 0, maxval = 1;
  DType dtype = DType::f32;
};
struct NormalOptions {
  double mean = 0, stddev = 1;
  DType dtype = DType::f32;
};
struct RandintOptions {
  DType dtype = DType::i64;
};
/// Uniform in [minval, maxval).
STET_API Tensor uniform(const Shape& shape, UniformOptions options = {}, Where where = Where::here());
STET_API Tensor normal(const Shape& shape, NormalOptions options = {}, Where where = Where::here());
/// Uniform integers in [low, high).
STET_API Tensor randint(const Shape& shape, std::int64_t low, std::int64_t high, RandintOptions options = {},
                        Where where = Where::here());

/// The name of a stream of random numbers: the same two numbers give the same stream.
using StreamSeed = std::array<std::int64_t, 2>;
/// Functions of their arguments alone: they neither use nor move the process's generator.
STET_API Tensor stateless_uniform(const Shape& shape, StreamSeed stream, UniformOptions options = {},
                                  Where where = Where::here());
STET_API Tensor stateless_normal(const Shape& shape, StreamSeed stream, NormalOptions options = {},
                                 Where where = Where::here());
/// A stream for the first value of a Variable: (the seed, how many were handed out since it was set). Weights made in
/// the same order are the same, whatever else was drawn in between, eagerly or traced.
STET_API StreamSeed next_initial_stream();

}  // namespace random

}  // namespace stet
