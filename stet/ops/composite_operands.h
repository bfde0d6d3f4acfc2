// What composites share: their frame, and what they ask of operands before the ops they are made of do. Private to
// ops/.
#pragma once
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "stet/base/inside.h"
#include "stet/core/call.h"
#include "stet/core/scope.h"
#include "stet/ops/ops.h"
#include "stet/ops/slice.h"

namespace stet {

/// One call of a composite. While it lives, errors of the ops inside name the composite and its caller's line.
class Composite {
 public:
  /// The strings outlive all traces. The line is that of the first operand, or `where`.
  Composite(const char* name, std::span<const char* const> names, std::vector<In> operands,
            const IndexWords* words = nullptr)
      : Composite(name, names, std::move(operands), Where{}, words) {}
  Composite(const char* name, std::span<const char* const> names, std::vector<In> operands, Where where,
            const IndexWords* words = nullptr)
      : name_(name),
        names_(names),
        operands_(std::move(operands)),
        frame_(name, operands_.empty() || where.known() ? where : operands_[0].where(), words) {}

  [[noreturn]] void fail(const std::string& problem, const std::string& advice = {}) const {
    throw_user_error(name_, names_, operands_, Problem(problem, advice), frame_where());
  }
  void require(bool holds, const std::string& problem, const std::string& advice = {}) const {
    if (!holds) fail(problem, advice);
  }
  /// Whether two sizes agree; in a trace that is a fact. Sizes that depend on values are compared by a row, because
  /// only what rows ask of them is tested when they are known: the row's result is not used, so nothing is computed.
  bool agree(const Dim& left, const Dim& right, const std::string& what) const {
    if (tracing()) try {
        const Tensor mark = cast(0, DType::bool_);
        concat({broadcast_to(mark, {left, 1}), broadcast_to(mark, {right, 1})}, 1, frame_where());
      } catch (const UserError&) {
        return false;
      }
    return stet::require(left, Relation::equal, right, {name_, what, frame_where()});
  }
  void require_equal(const Dim& left, const Dim& right, const std::string& what, const std::string& advice = {}) const {
    if (!agree(left, right, what)) fail(text(what, " ", size_text(left), " and ", size_text(right), " differ"), advice);
  }
  /// A size that must not be 0 (or less), in no call: slicing one element off is what tests it in every one.
  void require_some(const Dim& size, const std::string& problem, const std::string& advice = {}) const {
    try {
      indexed_slice(broadcast_to(cast(0, DType::bool_), {size}), {0}, {1}, {1}, {"0"});
    } catch (const UserError&) {
      fail(problem, advice);
    }
  }

  /// An operand as a tensor; a number as a scalar of the type that it has alone.
  Tensor tensor(std::size_t number) const {
    const In& operand = operands_[number];
    if (operand.kind() != In::Kind::tensor) return as_tensor(operand, operand.dtype());
    require(operand.tensor().defined(), text("'", names_[number], "' is an undefined tensor"));
    return as_tensor(operand, operand.tensor().dtype());
  }
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
      fail(problem.text(), problem.advice());
    }
  }
  const In& in(std::size_t number) const { return operands_[number]; }
  const char* name() const { return name_; }

 private:
  const char* name_;
  std::span<const char* const> names_;
  std::vector<In> operands_;
  Frame frame_;
};

inline std::vector<Dim> dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

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

}  // namespace stet
