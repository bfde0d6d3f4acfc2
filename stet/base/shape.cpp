#include "stet/base/shape.h"

#include <algorithm>
#include <ostream>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/inside.h"
#include "stet/base/text.h"

namespace stet {
namespace {

constexpr std::int64_t max_count = std::int64_t{1} << 62;

std::string dims_text(std::span<const Dim> dims) { return text('[', joined(dims, ","), ']'); }

[[noreturn]] void negative_size(const Dim& dim) {
  throw Problem(text("size ", dim, " is negative"), "sizes are 0 or more; only reshape takes one -1");
}

[[noreturn]] void too_many_dimensions(std::size_t rank) {
  throw Problem(text("a shape of ", rank, " dimensions is too long; at most ", max_rank, " are allowed"),
                "merge dimensions with reshape");
}

/// Of two sizes that agree, the one that says more.
const Dim& better_known(const Dim& a, const Dim& b) {
  if (a.is_constant() || (!b.is_constant() && a.hint())) return a;
  return b.is_constant() || b.hint() ? b : a;
}

}  // namespace

Shape::Shape(std::initializer_list<Dim> dims, Where where)
    : Shape(std::span<const Dim>(dims.begin(), dims.size()), where) {}

Shape::Shape(std::span<const Dim> dims, Where where) {
  try {
    if (dims.size() > max_rank) too_many_dimensions(dims.size());
    for (const Dim& dim : dims) append(dim);
    check_count();
  } catch (const Problem& problem) {
    throw Problem(problem.text(), problem.advice(), where);
  }
}

Shape::Shape(const std::vector<Dim>& dims, Where where) : Shape(std::span<const Dim>(dims), where) {}

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

bool Inside::is_constant(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_constant(); });
}

std::vector<std::int64_t> Shape::sizes(Where where) const {
  std::vector<std::int64_t> result;
  result.reserve(rank_);
  for (const Dim& dim : dims()) result.push_back(dim.value(where));
  return result;
}

Shape Inside::substitute(const Shape& shape, std::span<const Dim> replacements) {
  Shape result;
  for (const Dim& dim : shape) result.append(dim.substitute(replacements));
  result.check_count();
  return result;
}

std::vector<std::int64_t> Inside::evaluate(const Shape& shape, const Bindings& bindings) {
  std::vector<std::int64_t> result;
  result.reserve(shape.rank_);
  for (const Dim& dim : shape) result.push_back(dim.evaluate(bindings));
  return result;
}

std::string Inside::str(const Shape& shape) { return dims_text(shape.dims()); }

std::string Shape::str(Where where) const { return text('[', joined(sizes(where), ","), ']'); }

std::size_t Inside::hash(const Shape& shape) {
  std::size_t result = shape.rank_;
  for (const Dim& dim : shape) result = result * 0x9e3779b97f4a7c15ull + (dim.hash() ^ (result >> 29));
  return result;
}

bool identical(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Dim& left, const Dim& right) { return identical(left, right); });
}

void append_text(std::string& out, const Shape& shape) { out += Inside::str(shape); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << Inside::str(shape); }

std::string size_text(const Shape& shape) { return sized_text(shape).now(); }

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
  const bool by_signature =
      !a.is_constant() || !b.is_constant()
          ? (a.is_constant() ? b : a).scope() && (a.is_constant() ? b : a).scope()->sizes_are_unknown()
          : false;
  throw Problem(text("sizes ", size_text(a), " and ", size_text(b), " of axis ", axis_from_end, " do not broadcast"),
                by_signature ? "make the sizes equal; an unknown size of a signature is not repeated: say 1 in it"
                             : "make the sizes equal or one of them 1");
}

/// What two sizes of one axis, of which at least one is symbolic, come to.
enum class Pairing : std::uint8_t { equal, first_repeated, second_repeated, misfit };

/// By form and by the sizes of this call, never by what has been proved so far: a scope that is run again, with other
/// facts known, must come to the same. What it came to is left with the scope.
Pairing pair(const Dim& a, const Dim& b, const Reason& reason) {
  if (identical(a, b)) return Pairing::equal;
  if (a.is_constant(1)) return Pairing::first_repeated;
  if (b.is_constant(1)) return Pairing::second_repeated;
  const std::optional<std::int64_t> a_hint = a.hint(), b_hint = b.hint();
  const SymbolScope* scope = (a.is_constant() ? b : a).scope();
  const bool may_repeat = !scope || !scope->sizes_are_unknown();
  // A size that is not known yet is no 1.
  const bool a_is_one = a_hint == 1, b_is_one = b_hint == 1;
  if (may_repeat && a_is_one && !b_is_one && require(a, Relation::equal, 1, reason)) return Pairing::first_repeated;
  if (may_repeat && b_is_one && !a_is_one && require(b, Relation::equal, 1, reason)) return Pairing::second_repeated;
  return require(a, Relation::equal, b, reason) ? Pairing::equal : Pairing::misfit;
}

Dim broadcast_symbolic(const Dim& a, const Dim& b, int axis_from_end, const Reason& reason) {
  switch (pair(a, b, reason)) {
    case Pairing::equal:
      return better_known(a, b);
    case Pairing::first_repeated:
      return b;
    case Pairing::second_repeated:
      return a;
    case Pairing::misfit:
      break;
  }
  do_not_broadcast(a, b, axis_from_end);
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
  for (const Shape& operand : operands) {
    const int missing = rank - operand.rank();
    AxisMap map;
    map.rank = rank;
    for (int axis = 0; axis < rank; ++axis) {
      const auto position = static_cast<std::size_t>(axis);
      const bool repeats =
          axis < missing || pair(operand.begin()[axis - missing], sizes[position], reason) == Pairing::first_repeated;
      map.axes[position] = static_cast<std::int8_t>(repeats ? -1 : axis - missing);
    }
    result.operands.push_back(map);
  }
  return result;
}

bool is_repeated(const Dim& from, const Dim& to, const Reason& reason) {
  const Pairing pairing = from.is_constant() && to.is_constant() ? (from.constant() == to.constant() ? Pairing::equal
                                                                    : from.constant() == 1 ? Pairing::first_repeated
                                                                                           : Pairing::misfit)
                                                                 : pair(from, to, reason);
  // To 1 nothing is repeated, and only 1 fits.
  if (pairing == Pairing::second_repeated && require(from, Relation::equal, 1, reason)) return false;
  if (pairing == Pairing::misfit || pairing == Pairing::second_repeated)
    throw Problem(text("sizes ", size_text(from), " and ", size_text(to), " differ"),
                  "only axes of size 1 can be repeated");
  return pairing == Pairing::first_repeated;
}

namespace {

SizedText elements_text(const Dim& count) { return sized_text(count, count.is_constant(1) ? " element" : " elements"); }

void append_sized(SizedText& out, const SizedText& part) {
  out.text += part.text;
  out.sizes.insert(out.sizes.end(), part.sizes.begin(), part.sizes.end());
}

/// What stands for -1, given the number of elements and the product of the other sizes.
Dim inferred_size(const Shape& from, std::span<const Dim> target, const Dim& count, const Dim& known,
                  const Reason& reason) {
  const char* advice = "give sizes whose product divides the number of elements, or all of them without -1";
  const auto problem = [&](const SizedText& why) {
    SizedText whole = sized_text("cannot reshape ", from, " with ");
    append_sized(whole, elements_text(count));
    append_sized(whole, sized_text(" to ", target, ": "));
    append_sized(whole, why);
    return whole;
  };
  const auto beside_zero = [&] { return problem("the size -1 cannot be found beside a size of 0"); };
  const auto indivisible = [&] { return problem(sized_text(count, " is not divisible by ", known)); };
  if (known.is_constant(0)) throw Problem(beside_zero().now(), advice);
  if (!known.is_constant() && !check(known, Relation::not_equal, 0, reason, beside_zero(), advice))
    throw Problem(beside_zero().now(), advice);
  if (const auto quotient = exact_quotient(count, known)) return *quotient;
  if (count.is_constant() && known.is_constant()) throw Problem(indivisible().now(), advice);
  // By a symbol the product is asked for: it says that the counts agree.
  const Dim quotient = count / known;
  const bool fits = known.is_constant()
                        ? check(count % known, Relation::equal, 0, reason, indivisible(), advice)
                        : check(quotient * known, Relation::equal, count, reason, indivisible(), advice);
  if (!fits) throw Problem(indivisible().now(), advice);
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
      throw Problem(text("cannot reshape ", size_text(from), " with ", elements_text(count).now(), " to ",
                         size_text(known_sizes), " with ", elements_text(known).now()),
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

/// Leading axes of an operand of a product, as its batch repeats them.
AxisMap batch_axes(const Shape& operand, const Shape& result) {
  AxisMap map;
  map.rank = result.rank() - 2;
  const int missing = result.rank() - operand.rank();
  for (int axis = 0; axis < map.rank; ++axis) {
    bool repeats = axis < missing;
    if (!repeats && prove_equal(operand[axis - missing], result[axis]) != Proof::yes)
      repeats = prove(operand[axis - missing], Relation::equal, 1) == Proof::yes;
    map.axes[static_cast<std::size_t>(axis)] = static_cast<std::int8_t>(repeats ? -1 : axis - missing);
  }
  return map;
}

}  // namespace

Contraction contraction_of(const Shape& left, bool transpose_left, const Shape& right, bool transpose_right,
                           const Shape& result) {
  const Dim &left_k = left[transpose_left ? -2 : -1], &right_k = right[transpose_right ? -1 : -2];
  return {result,
          Shape(result.dims().first(static_cast<std::size_t>(result.rank() - 2))),
          batch_axes(left, result),
          batch_axes(right, result),
          result[-2],
          result[-1],
          better_known(left_k, right_k)};
}

namespace {

void at_least_one(std::int64_t value, const char* what) {
  if (value < 1) throw Problem(text(what, ' ', value, " is not allowed"), text("the ", what, " must be at least 1"));
}

}  // namespace

Dim dilated_size(const Dim& size, std::int64_t dilation) {
  return dilation == 1 ? size : larger_of((size - 1) * dilation + 1, 0);
}

Dim convolve(const ConvolvedAxis& axis, const Reason& reason) {
  at_least_one(axis.stride, "stride");
  at_least_one(axis.dilation, "dilation");
  at_least_one(axis.input_dilation, "input dilation");
  const auto ensure = [&](const Dim& left, const Dim& right, const SizedText& problem, const char* advice) {
    if (!check(left, Relation::less_equal, right, reason, problem, advice)) throw Problem(problem.now(), advice);
  };
  if (!axis.kernel_may_be_empty)
    ensure(1, axis.kernel, sized_text("kernel size ", axis.kernel, " is not allowed"),
           "the kernel size must be at least 1");
  const Dim padded = dilated_size(axis.input, axis.input_dilation) + axis.low + axis.high;
  const Dim window =
      axis.kernel_may_be_empty ? dilated_size(axis.kernel, axis.dilation) : (axis.kernel - 1) * axis.dilation + 1;
  const Dim result = (padded - window) / axis.stride + 1;
  ensure(0, result, sized_text("a window of ", window, " does not fit in a padded size of ", padded),
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
