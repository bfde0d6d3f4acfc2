// Shape: the sizes of a tensor, and the algebra that ops use to infer results.
//
// The algebra works on symbolic Dims and on integers alike: sizes that must agree are stated with require(), so a trace
// records facts and plain integers are compared. What does not fit throws Problem, to which call() adds op and line.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stet/base/dim.h"
#include "stet/base/export.h"

namespace stet {

/// More dimensions than this is a UserError.
inline constexpr int max_rank = 8;

/// Sizes are never negative, and the constant ones among them (zeros aside) never multiply to more than 2^62: otherwise
/// the constructors, push_back() and set() throw Problem.
class STET_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims, Where where = Where::here());
  explicit Shape(std::span<const Dim> dims, Where where = {});
  Shape(const std::vector<Dim>& dims, Where where = Where::here());
  template <std::integral I>
  requires(!std::same_as<I, bool>) Shape(const std::vector<I>& sizes, Where where = Where::here())
      : Shape(std::vector<Dim>(sizes.begin(), sizes.end()), where) {}
  template <std::integral I, std::size_t count>
  requires(!std::same_as<I, bool>) Shape(const std::array<I, count>& sizes, Where where = Where::here())
      : Shape(std::vector<Dim>(sizes.begin(), sizes.end()), where) {}
  static Shape of(std::span<const std::int64_t> sizes);

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  /// Negative positions count from the end; out of range throws UserError.
  const Dim& operator[](int axis) const {
    const int position = axis < 0 ? axis + rank_ : axis;
    if (position < 0 || position >= rank_) out_of_range(axis);
    return dims_[static_cast<std::size_t>(position)];
  }
  const Dim* begin() const { return dims_.data(); }
  const Dim* end() const { return dims_.data() + rank_; }
  std::span<const Dim> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }

  void push_back(Dim dim);  // Problem above max_rank
  void set(int axis, Dim dim);
  /// The product of the sizes; 1 of rank 0.
  Dim element_count() const;
  /// Sizes as integers: of symbols as Dim::value() gives them, pinned.
  std::vector<std::int64_t> sizes(Where where = Where::here()) const;
  /// "[2,3]", "[]": of symbols as Dim::str() gives them, pinned. `<<` writes them by name and pins nothing.
  std::string str(Where where = Where::here()) const;

  // --- Answers without a record, as Dim has them. They compile only with dim_inside.h.

  template <class I = Inside>
  bool is_constant() const {
    return I::is_constant(*this);
  }
  template <class I = Inside>
  Shape substitute(std::span<const Dim> replacements) const {
    return I::substitute(*this, replacements);
  }
  template <class I = Inside>
  std::vector<std::int64_t> evaluate(const Bindings& bindings) const {
    return I::evaluate(*this, bindings);
  }
  template <class I = Inside>
  std::size_t hash() const {
    return I::hash(*this);
  }

 private:
  friend struct Inside;
  [[noreturn]] void out_of_range(int axis) const;
  void check_count() const;
  void append(Dim dim);

  std::uint8_t rank_ = 0;
  std::array<Dim, max_rank> dims_{Dim(0), Dim(0), Dim(0), Dim(0), Dim(0), Dim(0), Dim(0), Dim(0)};
};

/// "[2,3]", "[s0,10]", "[]".
STET_API std::ostream& operator<<(std::ostream&, const Shape&);
STET_API void append_text(std::string& out, const Shape&);
namespace inside {
inline void append_sized(SizedText& out, std::span<const Dim> part) {
  out.text += '[';
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (i > 0) out.text += ',';
    append_sized(out, part[i]);
  }
  out.text += ']';
}
inline void append_sized(SizedText& out, const Shape& part) { append_sized(out, part.dims()); }
}  // namespace inside
/// For messages alone: the sizes of the call being traced, "[3,10]".
STET_API std::string size_text(const Shape&);

namespace inside {

/// Axis -rank..rank-1 as 0..rank-1, else Problem("axis 2 is out of range for rank 2; allowed are -2 to 1").
int normalize_axis(std::int64_t axis, int rank);
/// Every axis normalized, sorted; a repeated one is a Problem.
std::vector<int> normalize_axes(std::span<const std::int64_t> axes, int rank);

/// For each axis of a result, the operand's axis that feeds it, or -1 where the operand is repeated.
struct AxisMap {
  std::array<std::int8_t, max_rank> axes{};
  int rank = 0;
  bool operator==(const AxisMap& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (axes[static_cast<std::size_t>(i)] != other.axes[static_cast<std::size_t>(i)]) return false;
    return true;
  }
};

/// One AxisMap per operand; the first few without an allocation, because every eager call makes one.
class AxisMaps {
 public:
  void push_back(const AxisMap& map) {
    if (size_ < few) {
      first_[size_] = map;
    } else {
      if (size_ == few) all_.assign(first_.begin(), first_.end());
      all_.push_back(map);
    }
    ++size_;
  }
  std::size_t size() const { return size_; }
  const AxisMap* begin() const { return size_ <= few ? first_.data() : all_.data(); }
  const AxisMap* end() const { return begin() + size_; }
  const AxisMap& operator[](std::size_t operand) const { return begin()[operand]; }

 private:
  static constexpr std::size_t few = 3;
  std::size_t size_ = 0;
  std::array<AxisMap, few> first_{};
  std::vector<AxisMap> all_;
};

struct Broadcast {
  Shape result;
  AxisMaps operands;  // one per operand
};
/// NumPy's rule, right-aligned. A constant 1 is repeated without a fact; two sizes that are equal in this call are
/// tied; of two of which exactly one is 1 the fact is `s == 1`; otherwise Problem("sizes 3 and 4 of axis -1 do not
/// broadcast"). A size that depends on values is compared when it is known, and not repeated. Where a signature
/// declares sizes unknown, only a constant 1 is repeated: what is accepted does not depend on the first call.
Broadcast broadcast(std::span<const Shape> operands, const Reason&);
/// Whether an axis of size `from` is repeated to reach `to`, by the same rule and with the same facts. Problem if it
/// cannot: "only axes of size 1 can be repeated".
bool is_repeated(const Dim& from, const Dim& to, const Reason&);

/// The shape `target` for as many elements as `from` has; one entry may be -1. Requires equal counts (and checks that
/// they divide for -1); "reshape" Problem otherwise, naming both counts.
Shape reshape(const Shape& from, std::span<const Dim> target, const Reason&);
/// Without the axes (sorted), or with size 1 in their place.
Shape reduce(const Shape& from, std::span<const int> axes, bool keepdims);

/// [..., m, k] x [..., k, n] with batch axes broadcast; transposed operands swap their last two axes. Rank 1 operands
/// are a caller's matter: both have rank >= 2 here.
struct Contraction {
  Shape result;  // batch..., m, n
  Shape batch;
  AxisMap left_batch, right_batch;  // batch axes to operands' leading axes
  Dim m, n, k;
};
Contraction contract(const Shape& left, bool transpose_left, const Shape& right, bool transpose_right, const Reason&);
/// The same of operands that were found to fit: `result` is known, and nothing is asked.
Contraction contraction_of(const Shape& left, bool transpose_left, const Shape& right, bool transpose_right,
                           const Shape& result);

/// (size - 1) * dilation + 1, the size with zeros between its elements; an empty one stays empty.
Dim dilated_size(const Dim& size, std::int64_t dilation);
/// One spatial axis of a convolution: the dilated input + low + high - the dilated kernel, floor-divided by stride,
/// plus 1; Problem for a stride or dilation < 1, an empty kernel (unless it may be: the gradient of an empty result has
/// one), or a negative result.
struct ConvolvedAxis {
  Dim input, kernel, low, high;
  std::int64_t stride = 1, dilation = 1, input_dilation = 1;
  bool kernel_may_be_empty = false;
};
Dim convolve(const ConvolvedAxis&, const Reason&);

/// Row-major strides in elements.
std::vector<Dim> dense_strides(const Shape&);

}  // namespace inside
}  // namespace stet
