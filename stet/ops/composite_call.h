// What composites (ordinary functions of ops) share: operands as tensors, errors with the function's name, and the type
// they compute in.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "stet/base/inside.h"
#include "stet/core/call.h"
#include "stet/ops/ops.h"

namespace stet {

/// A call of a composite: opens its Frame and holds its operands as tensors. Lives as long as the call.
class CompositeCall {
 public:
  /// Errors name the line of the first operand. `names` and `words` outlive all traces.
  CompositeCall(const char* name, std::vector<const char*> names, std::initializer_list<In> operands,
                const IndexWords* words = nullptr)
      : name_(name), names_(std::move(names)), operands_(operands), frame_(name, operands.begin()->where(), words) {
    for (const In& operand : operands_) {
      // A number or a size is a scalar tensor.
      tensors_.push_back(operand.kind() == In::Kind::tensor ? operand.tensor() : cast(operand, operand.dtype()));
      require(tensors_.back().defined(), "an operand is an undefined tensor", "give it a value first");
    }
  }

  const Tensor& operator[](std::size_t number) const { return tensors_[number]; }

  [[noreturn]] void fail(const std::string& problem, const std::string& advice = {}) const {
    fail(Problem(problem, advice));
  }
  [[noreturn]] void fail(const Problem& problem) const {
    throw_user_error(name_, names_, operands_, problem, frame_where());
  }
  void require(bool condition, const std::string& problem, const std::string& advice = {}) const {
    if (!condition) fail(problem, advice);
  }
  /// Two sizes that must agree: a fact while tracing.
  void require_equal(const Dim& a, const Dim& b, const std::string& what, const std::string& advice = {}) const {
    if (!stet::require(a, Relation::equal, b, {name_, what, frame_where()}))
      fail(text(what, " ", size_text(a), " and ", size_text(b), " do not agree"), advice);
  }
  /// Two operands that must have one shape.
  void require_same_shape(std::size_t a, std::size_t b, const std::string& advice = {}) const {
    const std::string both = text("'", names_[a], "' and '", names_[b], "'");
    require(tensors_[a].rank() == tensors_[b].rank(), text(both, " have different ranks"), advice);
    for (int axis = 0; axis < tensors_[a].rank(); ++axis)
      require_equal(tensors_[a].dim(axis), tensors_[b].dim(axis), text("sizes of axis ", axis, " of ", both), advice);
  }
  /// Axes of an operand, sorted and counted from 0.
  std::vector<int> axes(std::size_t number, const Axes& asked) const {
    try {
      return normalize_axes(asked.axes, tensors_[number].rank());
    } catch (const Problem& problem) {
      fail(problem);
    }
  }

 private:
  const char* name_;
  std::vector<const char*> names_;
  std::vector<In> operands_;
  std::vector<Tensor> tensors_;
  Frame frame_;
};

/// The same values in another type; itself if it has that type.
inline Tensor in_type(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }

/// In the type that composites compute in: integers and bool in f32, and f16 and bf16 in f32 too, so that intermediate
/// sums and squares neither overflow nor lose digits. Results go back to floating_type(x.dtype()).
inline Tensor widened(const Tensor& x) { return in_type(x, compute_type(floating_type(x.dtype()))); }

/// The square root, whose derivatives at 0 are stated to be 0 instead of infinite.
inline Tensor root_flat_at_zero(const Tensor& x) {
  Tensor zero = equal(x, 0);
  return where(zero, 0, sqrt(where(zero, 1, x)));
}

}  // namespace stet
