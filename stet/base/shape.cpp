#include "stet/base/shape.h"

#include <algorithm>
#include <ostream>

#include "stet/base/error.h"
#include "stet/base/inside.h"
#include "stet/base/text.h"

namespace stet {
namespace {

constexpr std::int64_t max_count = std::int64_t{1} << 62;

/// "3", or "s0 = 3" where the size in the call being traced is known.
std::string size_text(const Dim& dim) {
  const std::optional<std::int64_t> hint = dim.hint();
  return dim.is_constant() || !hint ? dim.str() : text(dim, " = ", *hint);
}

std::string dims_text(std::span<const Dim> dims) { return text('[', joined(dims, ","), ']'); }

[[noreturn]] void negative_size(const Dim& dim) {
  throw Problem(text("size ", dim, " is negative"), "sizes are 0 or more; only reshape takes one -1");
}

[[noreturn]] void too_many_dimensions(std::size_t rank) {
  throw Problem(text("a shape of ", rank, " dimensions is too long; at most ", max_rank, " are allowed"),
                "merge dimensions with reshape");
}

bool is_one(const Dim& dim) {
  if (dim.is_constant()) return dim.constant() == 1;
  // Facts hold for the hints, so there is nothing to prove where the hint is another.
  return dim.hint().value_or(1) == 1 && prove_equal(dim, 1) == Proof::yes;
}

/// Of two sizes that agree, the one that says more.
const Dim& better_known(const Dim& a, const Dim& b) {
  if (a.is_constant() || (!b.is_constant() && a.hint())) return a;
  return b.is_constant() || b.hint() ? b : a;
}

}  // namespace

Shape::Shape(std::initializer_list<Dim> dims) : Shape(std::span<const Dim>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const Dim> dims) {
  if (dims.size() > max_rank) too_many_dimensions(dims.size());
  for (const Dim& dim : dims) append(dim);
  check_count();
}

Shape::Shape(const std::vector<std::int64_t>& sizes) : Shape(of(sizes)) {}

Shape Shape::of(std::span<const std::int64_t> sizes) {
  if (sizes.size() > max_rank) too_many_dimensions(sizes.size());
  Shape result;
  for (const std::int64_t size : sizes) result.append(size);
  result.check_count();
  return result;
}

void Shape::out_of_range(int axis) const {
  normalize_axis(axis, rank_);
  throw InternalError(text("axis ", axis, " was refused for ", *this));
}

void Shape::append(Dim dim) {
  if (rank_ == max_rank) too_many_dimensions(rank_ + std::size_t{1});
  if (dim.is_constant() && dim.constant() < 0) negative_size(dim);
  dims_[rank_++] = std::move(dim);
}

/// Zeros are left out, as in NumPy: strides and windows of an empty tensor are computed, too.
void Shape::check_count() const {
  std::int64_t count = 1;
  for (const Dim& dim : dims()) {
    if (!dim.is_constant() || dim.constant() == 0) continue;
    if (__builtin_mul_overflow(count, dim.constant(), &count) || count > max_count)
      throw Problem(text("a tensor of shape ", *this, " is too large"), "a tensor has at most 2^62 elements");
  }
}

void Shape::push_back(Dim dim) {
  append(std::move(dim));
  check_count();
}

void Shape::set(int axis, Dim dim) {
  if (dim.is_constant() && dim.constant() < 0) negative_size(dim);
  dims_[static_cast<std::size_t>(normalize_axis(axis, rank_))] = std::move(dim);
  check_count();
}

Dim Shape::element_count() const {
  std::int64_t constants = 1;
  for (const Dim& dim : dims())
    if (dim.is_constant()) constants *= dim.constant();
  if (constants == 0 || is_constant()) return constants;
  Dim count = constants;
  for (const Dim& dim : dims())
    if (!dim.is_constant()) count = count * dim;
  return count;
}

bool Shape::is_constant() const {
  return std::all_of(begin(), end(), [](const Dim& dim) { return dim.is_constant(); });
}

std::vector<std::int64_t> Shape::sizes() const {
  std::vector<std::int64_t> result;
  result.reserve(rank_);
  for (const Dim& dim : dims()) {
    if (!dim.is_constant()) throw InternalError(text("sizes of ", *this, " are not all constant"));
    result.push_back(dim.constant());
  }
  return result;
}

Shape Shape::substitute(std::span<const Dim> replacements) const {
  Shape result;
  for (const Dim& dim : dims()) result.append(dim.substitute(replacements));
  result.check_count();
  return result;
}

std::vector<std::int64_t> Shape::evaluate(const Bindings& bindings) const {
  std::vector<std::int64_t> result;
  result.reserve(rank_);
  for (const Dim& dim : dims()) result.push_back(dim.evaluate(bindings));
  return result;
}

std::string Shape::str() const { return dims_text(dims()); }

std::size_t Shape::hash() const {
  std::size_t result = rank_;
  for (const Dim& dim : dims()) result = result * 0x9e3779b97f4a7c15ull + (dim.hash() ^ (result >> 29));
  return result;
}

bool identical(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Dim& left, const Dim& right) { return identical(left, right); });
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.str(); }

namespace inside {

int normalize_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    if (rank == 0) throw Problem(text("axis ", axis, " is out of range for rank 0, which has no axes"));
    throw Problem(text("axis ", axis, " is out of range for rank ", rank, "; allowed are ", -rank, " to ", rank - 1));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> normalize_axes(std::span<const std::int64_t> axes, int rank) {
  std::vector<int> result;
  result.reserve(axes.size());
  for (const std::int64_t axis : axes) result.push_back(normalize_axis(axis, rank));
  std::sort(result.begin(), result.end());
  const auto repeated = std::adjacent_find(result.begin(), result.end());
  if (repeated != result.end())
    throw Problem(text("axis ", *repeated, " is named twice in [", joined(axes, ","), "]"), "name each axis once");
  return result;
}

namespace {

[[noreturn]] void do_not_broadcast(const Dim& a, const Dim& b, int axis_from_end) {
  throw Problem(text("sizes ", size_text(a), " and ", size_text(b), " of axis ", axis_from_end, " do not broadcast"),
                "make the sizes equal or one of them 1");
}

/// The size of two operands' axis where at least one is symbolic. What is found out is left in the scope, so that
/// is_one() afterwards sees which operand is repeated.
Dim broadcast_symbolic(const Dim& a, const Dim& b, int axis_from_end, const Reason& reason) {
  if (identical(a, b) || is_one(b)) return a;
  if (is_one(a)) return b;
  // Equality is asked first: it may be known although the hints are not.
  const Proof equal = prove_equal(a, b);
  if (equal == Proof::yes) return better_known(a, b);
  const std::optional<std::int64_t> a_hint = a.hint(), b_hint = b.hint();
  if (a_hint && b_hint && (*a_hint == 1) != (*b_hint == 1)) {
    const Dim& one = *a_hint == 1 ? a : b;
    if (!one.is_constant() && require(one, Relation::equal, 1, reason)) return *a_hint == 1 ? b : a;
  }
  if (!require(a, Relation::equal, b, reason)) do_not_broadcast(a, b, axis_from_end);
  return better_known(a, b);
}

void broadcast_into(Dim& size, const Dim& other, int axis_from_end, const Reason& reason) {
  if (!size.is_constant() || !other.is_constant()) {
    size = broadcast_symbolic(size, other, axis_from_end, reason);
  } else if (size.constant() == 1) {
    size = other;
  } else if (other.constant() != 1 && other.constant() != size.constant()) {
    do_not_broadcast(size, other, axis_from_end);
  }
}

/// The same on integers alone, as every eager call needs it.
Broadcast broadcast_constants(std::span<const Shape> operands, int rank) {
  std::array<std::int64_t, max_rank> sizes;
  sizes.fill(1);
  for (const Shape& operand : operands) {
    std::size_t position = static_cast<std::size_t>(rank - operand.rank());
    for (const Dim& dim : operand) {
      std::int64_t& size = sizes[position++];
      if (size == 1) {
        size = dim.constant();
      } else if (dim.constant() != 1 && dim.constant() != size) {
        do_not_broadcast(size, dim, static_cast<int>(position) - 1 - rank);
      }
    }
  }
  Broadcast result{Shape::of(std::span<const std::int64_t>(sizes.data(), static_cast<std::size_t>(rank))), {}};
  for (const Shape& operand : operands) {
    const int missing = rank - operand.rank();
    AxisMap map;
    map.rank = rank;
    for (int axis = 0; axis < rank; ++axis) {
      const auto position = static_cast<std::size_t>(axis);
      const bool is_repeated =
          axis < missing || (sizes[position] != 1 && operand.begin()[axis - missing].constant() == 1);
      map.axes[position] = static_cast<std::int8_t>(is_repeated ? -1 : axis - missing);
    }
    result.operands.push_back(map);
  }
  return result;
}

}  // namespace

Broadcast broadcast(std::span<const Shape> operands, const Reason& reason) {
  int rank = 0;
  bool is_constant = true;
  for (const Shape& operand : operands) {
    rank = std::max(rank, operand.rank());
    is_constant = is_constant && operand.is_constant();
  }
  if (is_constant) return broadcast_constants(operands, rank);
  std::array<Dim, max_rank> sizes{1, 1, 1, 1, 1, 1, 1, 1};
  for (const Shape& operand : operands) {
    const int missing = rank - operand.rank();
    for (int axis = 0; axis < operand.rank(); ++axis) {
      const int position = axis + missing;
      broadcast_into(sizes[static_cast<std::size_t>(position)], operand.begin()[axis], position - rank, reason);
    }
  }
  Broadcast result{Shape(std::span<const Dim>(sizes.data(), static_cast<std::size_t>(rank))), {}};
  std::array<bool, max_rank> result_is_one;
  for (int axis = 0; axis < rank; ++axis) {
    const auto position = static_cast<std::size_t>(axis);
    result_is_one[position] = is_one(sizes[position]);
  }
  for (const Shape& operand : operands) {
    const int missing = rank - operand.rank();
    AxisMap map;
    map.rank = rank;
    for (int axis = 0; axis < rank; ++axis) {
      const auto position = static_cast<std::size_t>(axis);
      const bool is_repeated = axis < missing || (!result_is_one[position] && is_one(operand.begin()[axis - missing]));
      map.axes[position] = static_cast<std::int8_t>(is_repeated ? -1 : axis - missing);
    }
    result.operands.push_back(map);
  }
  return result;
}

namespace {

std::string elements_text(const Dim& count) {
  return text(size_text(count), count.is_constant() && count.constant() == 1 ? " element" : " elements");
}

/// What stands for -1, given the number of elements and the product of the other sizes.
Dim inferred_size(const Shape& from, std::span<const Dim> target, const Dim& count, const Dim& known,
                  const Reason& reason) {
  const auto fail = [&](const std::string& why) {
    throw Problem(text("cannot reshape ", from, " with ", elements_text(count), " to ", dims_text(target), ": ", why),
                  "give sizes whose product divides the number of elements, or all of them without -1");
  };
  if (known.is_constant() && known.constant() == 0) fail("the size -1 cannot be found beside a size of 0");
  if (const auto quotient = exact_quotient(count, known)) return *quotient;
  const Dim simple_known = simplified(known);
  if (simple_known.is_constant() && simple_known.constant() == 0)
    fail("the size -1 cannot be found beside a size of 0");
  if (const auto quotient = exact_quotient(simplified(count), simple_known)) return *quotient;
  const std::string indivisible = text(size_text(count), " is not divisible by ", size_text(known));
  if (!known.is_constant() && known.hint() == 0) fail("the size -1 cannot be found beside a size of 0");
  if (count.is_constant() && known.is_constant()) fail(indivisible);
  // By a symbol the product is asked for: where it turns out to be 0, any modulo is 0, but the counts need not agree.
  const Dim quotient = count / known;
  const bool fits = known.is_constant() ? check(count % known, Relation::equal, 0, reason)
                                        : check(quotient * known, Relation::equal, count, reason);
  if (!fits) fail(indivisible);
  return quotient;
}

}  // namespace

Shape reshape(const Shape& from, std::span<const Dim> target, const Reason& reason) {
  if (target.size() > max_rank) too_many_dimensions(target.size());
  std::optional<std::size_t> open;
  // As in Shape, zeros are multiplied last, so that they hide no overflow.
  Shape known_sizes;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (!target[i].is_constant() || target[i].constant() != -1) {
      known_sizes.push_back(target[i]);
    } else {
      if (open)
        throw Problem(text("only one size of a reshape may be -1, but ", dims_text(target), " has more"),
                      "give all sizes but one");
      open = i;
    }
  }
  const Dim count = from.element_count(), known = known_sizes.element_count();
  if (!open) {
    if (!require(count, Relation::equal, known, reason))
      throw Problem(text("cannot reshape ", from, " with ", elements_text(count), " to ", known_sizes, " with ",
                         elements_text(known)),
                    "give sizes with the same product, or -1 for one of them");
    return known_sizes;
  }
  const Dim inferred = inferred_size(from, target, count, known, reason);
  Shape result;
  for (std::size_t i = 0; i < target.size(); ++i) result.push_back(i == *open ? inferred : target[i]);
  return result;
}

Shape reduce(const Shape& from, std::span<const int> axes, bool keepdims) {
  Shape result;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!is_reduced) {
      result.push_back(from[axis]);
    } else if (keepdims) {
      result.push_back(1);
    }
  }
  return result;
}

Contraction contract(const Shape& left, bool transpose_left, const Shape& right, bool transpose_right,
                     const Reason& reason) {
  if (left.rank() < 2 || right.rank() < 2)
    throw InternalError(text("contract needs matrices, not ", left, " and ", right));
  const Dim &m = left[transpose_left ? -1 : -2], &left_k = left[transpose_left ? -2 : -1];
  const Dim &n = right[transpose_right ? -2 : -1], &right_k = right[transpose_right ? -1 : -2];
  if (!require(left_k, Relation::equal, right_k, reason))
    throw Problem(text("inner sizes ", size_text(left_k), " and ", size_text(right_k), " do not agree"),
                  text("the size of axis ", transpose_left ? -2 : -1, " of the left operand must be that of axis ",
                       transpose_right ? -1 : -2, " of the right one; transpose an operand, or change its size"));
  if (left.rank() == 2 && right.rank() == 2) return {Shape{m, n}, {}, {}, {}, m, n, better_known(left_k, right_k)};
  const Shape batches[] = {Shape(left.dims().first(static_cast<std::size_t>(left.rank() - 2))),
                           Shape(right.dims().first(static_cast<std::size_t>(right.rank() - 2)))};
  Broadcast batch = [&] {
    try {
      return broadcast(batches, reason);
    } catch (const Problem& problem) {
      throw Problem(text("batch ", problem.text()), problem.advice());
    }
  }();
  Shape result = batch.result;
  result.push_back(m);
  result.push_back(n);
  return {std::move(result),
          std::move(batch.result),
          batch.operands[0],
          batch.operands[1],
          m,
          n,
          better_known(left_k, right_k)};
}

namespace {

void at_least_one(std::int64_t value, const char* what) {
  if (value < 1) throw Problem(text(what, ' ', value, " is not allowed"), text("the ", what, " must be at least 1"));
}

}  // namespace

Dim convolve(const ConvolvedAxis& axis, const Reason& reason) {
  at_least_one(axis.stride, "stride");
  at_least_one(axis.dilation, "dilation");
  at_least_one(axis.input_dilation, "input dilation");
  if (!check(1, Relation::less_equal, axis.kernel, reason))
    throw Problem(text("kernel size ", size_text(axis.kernel), " is not allowed"),
                  "the kernel size must be at least 1");
  Dim dilated = axis.input;
  if (axis.input_dilation != 1 && !(axis.input.is_constant() && axis.input.constant() == 0)) {
    // The formula does not hold for an empty input, and a program for both is not worth having.
    if (!check(1, Relation::less_equal, axis.input, reason))
      throw Problem(text("size ", size_text(axis.input), " cannot be dilated"), "use an input that is not empty");
    dilated = (axis.input - 1) * axis.input_dilation + 1;
  }
  const Dim padded = dilated + axis.low + axis.high;
  const Dim window = (axis.kernel - 1) * axis.dilation + 1;
  const Dim result = (padded - window) / axis.stride + 1;
  if (!check(0, Relation::less_equal, result, reason))
    throw Problem(text("a window of ", size_text(window), " does not fit in a padded size of ", size_text(padded)),
                  "pad more, or use a smaller kernel or dilation");
  return result;
}

std::vector<Dim> dense_strides(const Shape& shape) {
  std::vector<Dim> strides(static_cast<std::size_t>(shape.rank()), Dim(1));
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    const auto position = static_cast<std::size_t>(axis);
    strides[position] = strides[position + 1] * shape[axis + 1];
  }
  return strides;
}

}  // namespace inside
}  // namespace stet
