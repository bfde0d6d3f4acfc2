// What composites, ordinary functions of ops, share: their frame, what they ask of operands before the ops they are
// made of do, and errors with the name of the function that the user called. Private to ops/.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "stet/base/inside.h"
#include "stet/core/call.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/ops/ops.h"

namespace stet {

/// One call of a composite. While it lives, errors of the ops inside name the composite and its caller's line.
class Composite {
 public:
  /// The strings outlive all traces. The line is that of the first operand, or `where`.
  Composite(const char* name, std::vector<const char*> names, std::vector<In> operands,
            const IndexWords* words = nullptr)
      : Composite(name, std::move(names), std::move(operands), Where{}, words) {}
  Composite(const char* name, std::span<const char* const> names, std::vector<In> operands,
            const IndexWords* words = nullptr)
      : Composite(name, std::vector<const char*>(names.begin(), names.end()), std::move(operands), Where{}, words) {}
  Composite(const char* name, std::vector<const char*> names, std::vector<In> operands, Where where,
            const IndexWords* words = nullptr)
      : name_(name),
        names_(std::move(names)),
        operands_(std::move(operands)),
        frame_(name, operands_.empty() || where.known() ? where : operands_[0].where(), words) {}

  [[noreturn]] void fail(const std::string& problem, const std::string& advice = {}) const {
    fail(Problem(problem, advice));
  }
  [[noreturn]] void fail(const Problem& problem) const {
    throw_user_error(name_, names_, operands_, problem, frame_where());
  }
  void require(bool holds, const std::string& problem, const std::string& advice = {}) const {
    if (!holds) fail(problem, advice);
  }
  /// Whether two sizes agree: a fact in a trace, and tested by the run where one of them depends on values.
  bool agree(const Dim& left, const Dim& right, const std::string& what) const {
    return stet::require(left, Relation::equal, right, {name_, what, frame_where()});
  }
  void require_equal(const Dim& left, const Dim& right, const std::string& what, const std::string& advice = {}) const {
    if (!agree(left, right, what))
      fail(text(what, " ", size_text(left), " and ", size_text(right), " do not agree"), advice);
  }
  /// Two operands that must have one shape.
  void require_same_shape(std::size_t a, std::size_t b, const std::string& advice = {}) const {
    const Tensor left = tensor(a), right = tensor(b);
    const std::string both = text("'", names_[a], "' and '", names_[b], "'");
    require(left.rank() == right.rank(), text(both, " have different ranks"), advice);
    for (int axis = 0; axis < left.rank(); ++axis)
      require_equal(left.dim(axis), right.dim(axis), text("sizes of axis ", axis, " of ", both), advice);
  }
  /// A size that must not be 0 (or less), in no call.
  void require_some(const Dim& size, const SizedText& problem, const std::string& advice = {}) const {
    if (!stet::check(0, Relation::less, size, {name_, "size", frame_where()}, problem, advice))
      fail(problem.now(), advice);
  }

  /// An operand as a tensor; a number as a scalar of the type that it has alone.
  Tensor tensor(std::size_t number) const {
    const In& operand = operands_[number];
    if (operand.kind() != In::Kind::tensor) return as_tensor(operand, operand.dtype());
    if (!operand.tensor().defined())
      fail(text("'", names_[number], "' is an undefined tensor"), advice_for_undefined(operand.tensor()));
    return as_tensor(operand, operand.tensor().dtype());
  }
  Tensor operator[](std::size_t number) const { return tensor(number); }
  /// The same beside another operand, whose type a number takes.
  Tensor tensor_beside(std::size_t number, const Tensor& other) const {
    const In& operand = operands_[number];
    const bool fits = operand.kind() == In::Kind::real ? is_floating(other.dtype()) : other.dtype() != DType::bool_;
    return operand.kind() != In::Kind::tensor && fits ? as_tensor(operand, other.dtype()) : tensor(number);
  }
  /// The same, which must be integers.
  Tensor integers(std::size_t number) const {
    Tensor out = tensor(number);
    require(is_integer(out.dtype()), text("'", names_[number], "' are ", out.dtype(), ", not integers"),
            text("cast(", names_[number], ", i64) first"));
    return out;
  }
  /// An axis of x, counted from 0.
  int axis(const Tensor& x, std::int64_t given) const {
    require(x.rank() > 0, "a scalar has no axes", "reshape(x, {1}) makes it a vector");
    try {
      return normalize_axis(given, x.rank());
    } catch (const Problem& problem) {
      fail(problem);
    }
  }
  /// Axes of an operand, sorted and counted from 0.
  std::vector<int> axes(std::size_t number, const Axes& asked) const {
    try {
      return normalize_axes(asked.axes, tensor(number).rank());
    } catch (const Problem& problem) {
      fail(problem);
    }
  }
  const In& in(std::size_t number) const { return operands_[number]; }
  const char* name() const { return name_; }

 private:
  const char* name_;
  std::vector<const char*> names_;
  std::vector<In> operands_;
  Frame frame_;
};

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

inline std::vector<Dim> dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// Its sizes, taken at the caller's line.
inline std::vector<Dim> sizes_of(const Tensor& x) { return dims_of(x.shape(frame_where())); }

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

/// In row-major order, as a vector.
inline Tensor flattened(const Tensor& x) { return x.rank() == 1 ? x : reshape(x, {x.size()}); }

/// The largest number that a floating type has.
inline double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

/// The same values in another type; itself if it has that type.
inline Tensor in_type(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }

/// In the type that composites compute in: integers and bool in f32, and f16 and bf16 in f32 too, so that intermediate
/// sums and squares neither overflow nor lose digits. Results go back to floating_type(x.dtype()).
inline Tensor widened(const Tensor& x) { return in_type(x, compute_type(floating_type(x.dtype()))); }

/// The largest element along an axis, for what does not depend on a shift by it: no tape sees where it came from; its
/// gradients would cancel out, at a cost.
inline Tensor unseen_largest(const In& x, int axis) {
  HiddenTapes unseen;
  return detached(max(x, axis, {.keepdims = true}));
}

/// The square root, whose derivatives at 0 are stated to be 0 instead of infinite.
inline Tensor root_flat_at_zero(const Tensor& x) {
  Tensor zero = equal(x, 0);
  return where(zero, 0, sqrt(where(zero, 1, x)));
}

}  // namespace stet
