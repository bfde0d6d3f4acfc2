// Elements chosen by what they are or by where they are: masks, distinct values, positions of several axes, choices.
#include <algorithm>

#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- choosing by position and by value

/// What of `x` a bool `mask` marks, in row-major order: the axes that the mask has, from `axis` on, become one whose
/// size is the number of marks.
/// Names: tf.boolean_mask, numpy.extract, numpy.compress
/// Example: boolean_mask(tensor({10, 20, 30}), tensor({true, false, true}))
STET_API Tensor boolean_mask(In x, In mask, int axis = 0);
/// Positions of elements that are not 0, i64[count, rank], in row-major order: another name of nonzero(), whose result
/// in NumPy is a tuple with a vector for each axis.
/// Names: numpy.argwhere, jax.numpy.argwhere, tf.where
/// Example: argwhere(tensor({0, 7, 0, 8}))
STET_API Tensor argwhere(In x);
/// Positions, i64[count], of elements that are not 0 in the tensor as a vector.
/// Names: numpy.flatnonzero, jax.numpy.flatnonzero
/// Example: flatnonzero(tensor({{0, 7}, {8, 0}}))
STET_API Tensor flatnonzero(In x);

/// The distinct elements in order; all NaN are one.
/// Names: numpy.unique, array_api.unique_values
/// Example: unique(tensor({3, 1, 3, 2}))
STET_API Tensor unique(In x);
struct UniqueOptions {
  bool index = false, inverse = false, counts = false;  // what to find besides the values
};
struct Unique {
  Tensor values;   // the distinct elements, in order
  Tensor index;    // i64: where each stands first in x as a vector
  Tensor inverse;  // i64, in x's shape: the number of its value, so that gather(values, inverse) is x
  Tensor counts;   // i64: how often each stands in x
};
/// The distinct elements and what the options ask for; the rest is undefined.
/// Names: numpy.unique, array_api.unique_all, array_api.unique_counts, array_api.unique_inverse
/// Example: unique_with(tensor({3, 1, 3, 2}), {.counts = true}).counts
STET_API Unique unique_with(In x, UniqueOptions options);

/// Of each element, the value whose condition is the first to be true; `otherwise` where none is.
/// Names: numpy.select, jax.numpy.select
/// Example: select({tensor({true, false})}, {tensor({1, 2})}, 9)
STET_API Tensor select(const std::vector<Tensor>& conditions, const std::vector<Tensor>& values, In otherwise,
                       Where where = Where::here());

/// Slices of `x` at `indices` [..., k], whose last axis holds a position in each of the first k axes: the result is
/// [..., the other axes of x]. A position outside is a UserError that names its axis.
/// Names: tf.gather_nd
/// Example: gather_nd(tensor({{1, 2}, {3, 4}}), tensor({{1, 0}, {0, 1}}))
STET_API Tensor gather_nd(In x, In indices);
/// `x` with `updates` at `indices` [..., k], as gather_nd() reads them: updates are [..., the other axes of x].
/// Names: tf.tensor_scatter_nd_update, tf.tensor_scatter_nd_add, tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_min
/// Example: scatter_nd(tensor({{1, 2}, {3, 4}}), tensor({{1, 0}}), tensor({30}))
STET_API Tensor scatter_nd(In x, In indices, In updates, PutOptions options = {});

struct IsinOptions {
  bool invert = false;  // whether it is none of them
};
/// Whether each element is one of `values`; NaN never is.
/// Names: numpy.isin, jax.numpy.isin
/// Example: isin(tensor({1, 2, 3}), tensor({3, 1}))
STET_API Tensor isin(In x, In values, IsinOptions options = {});

struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};
/// |x - y| <= atol + rtol * |y|, as bool. Infinities are close to themselves alone. Integers are compared in f64.
/// Names: numpy.isclose, jax.numpy.isclose
/// Example: isclose(tensor({1.0f, 2.0f}), tensor({1.000001f, 2.1f}))
STET_API Tensor isclose(In x, In y, CloseOptions options = {});
/// Whether all elements are close (isclose), a bool scalar.
/// Names: numpy.allclose, jax.numpy.allclose
/// Example: allclose(tensor({1.0f, 2.0f}), tensor({1.000001f, 2.0f}))
STET_API Tensor allclose(In x, In y, CloseOptions options = {});
struct EqualOptions {
  bool equal_nan = false;
};
/// Whether shapes and elements are equal, a bool scalar. Shapes are compared at once, so in a traced function the
/// answer to that is a fact about its sizes.
/// Names: numpy.array_equal, jax.numpy.array_equal
/// Example: array_equal(tensor({1, 2}), tensor({1, 2}))
STET_API Tensor array_equal(In x, In y, EqualOptions options = {});

struct NanToNumOptions {
  double nan = 0;
  std::optional<double> posinf = {}, neginf = {};  // not given, the largest and the lowest number of the type
};
/// NaN and infinities replaced by numbers; integers as they are.
/// Names: numpy.nan_to_num, jax.numpy.nan_to_num
/// Example: nan_to_num(tensor({1.0f, 2.0f}) / tensor({0.0f, 1.0f}), {.posinf = 9})
STET_API Tensor nan_to_num(In x, NanToNumOptions options = {});
#endif

namespace {

constexpr const char* mask_names[] = {"x", "mask"};
constexpr const char* one_name[] = {"x"};
constexpr const char* pair_names[] = {"x", "y"};
constexpr const char* isin_names[] = {"x", "values"};
constexpr const char* nd_names[] = {"x", "indices", "updates"};
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Of a vector; i64[count].
Tensor positions_in(const Tensor& vector) {
  Tensor found = nonzero(vector);
  return reshape(found, {found.dim(0)});
}

/// Axes `first` to `first + count - 1` as one.
Tensor with_merged(const Tensor& x, int first, int count) {
  if (count == 1) return x;
  std::vector<Dim> sizes = dims_of(x.shape());
  Dim merged = 1;
  for (int axis = first; axis < first + count; ++axis) merged = merged * sizes[static_cast<std::size_t>(axis)];
  sizes.erase(sizes.begin() + first, sizes.begin() + first + count);
  sizes.insert(sizes.begin() + first, merged);
  return reshape(x, sizes);
}

// --- indices of several axes

constexpr const char* about_components = "the last axis of indices holds a position in each of the first axes of x";
#define STET_COMPONENT(k) \
  { "component " #k " of the indices,", "at flat position", "positions of axis " #k " of x", about_components }
constexpr IndexWords component_words[max_rank] = {STET_COMPONENT(0), STET_COMPONENT(1), STET_COMPONENT(2),
                                                  STET_COMPONENT(3), STET_COMPONENT(4), STET_COMPONENT(5),
                                                  STET_COMPONENT(6), STET_COMPONENT(7)};
#undef STET_COMPONENT

/// `x` with its indexed axes as one, and positions in that one, each component checked against its own axis.
struct FlatIndices {
  FlatIndices(const Composite& call) : x(call.tensor(0)), positions(call.integers(1)) {
    const Tensor indices = positions;
    call.require(indices.rank() > 0, "'indices' have no axis",
                 "the last axis holds the positions: reshape(indices, {1}) for one axis");
    // How many axes are indexed decides the rank of the result, so a trace serves this number alone.
    depth = static_cast<int>(std::min<std::int64_t>(indices.dim(-1).value(frame_where()), max_rank + 1));
    call.require(depth <= x.rank(),
                 text("'indices' have ", depth, " components, more than the ", x.rank(), " axes of 'x'"),
                 "the last axis of indices is no longer than x has axes");
    const Shape shape = x.shape();
    lead = dims_of(indices.shape());
    lead.pop_back();
    positions = Tensor();
    for (int axis = 0; axis < depth; ++axis) {
      Tensor one = checked(call.name(), component(indices, axis), shape[axis], axis);
      positions = axis == 0 ? one : positions * shape[axis] + one;
    }
    if (depth == 0) positions = zeros(lead, DType::i64);
    if (depth == 0) x = expand_dims(x, 0);
    if (depth > 1) x = with_merged(x, 0, depth);
  }

  Tensor x, positions;
  int depth = 0;
  std::vector<Dim> lead;  // the sizes of indices without the last

 private:
  Tensor component(const Tensor& indices, int number) const {
    std::vector<Dim> begin(lead.size() + 1, Dim(0)), size = lead;
    begin.back() = number;
    size.push_back(1);
    return reshape(slice(indices, begin, size), lead);
  }
  /// The same, as i64; a gather from all positions refuses what is none.
  static Tensor checked(const char* name, const Tensor& component, const Dim& extent, int axis) {
    Frame words(name, frame_where(), &component_words[axis]);
    return gather(arange(extent), component);
  }
};

}  // namespace

Tensor boolean_mask(In x, In mask, int axis) {
  Composite call("boolean_mask", mask_names, {x, mask});
  Tensor from = call.tensor(0), marks = call.tensor(1);
  call.require(marks.dtype() == DType::bool_, text("'mask' is ", marks.dtype(), ", not bool"), "compare with 0 first");
  call.require(marks.rank() > 0, "'mask' is a scalar", "a mask has one axis at least");
  const int first = call.axis(from, axis), count = marks.rank();
  call.require(first + count <= from.rank(),
               text("'mask' has ", count, " axes, 'x' has ", from.rank() - first, " from axis ", first, " on"));
  for (int k = 0; k < count; ++k)
    call.require_equal(from.dim(first + k), marks.dim(k),
                       text("sizes of axis ", first + k, " of 'x' and axis ", k, " of 'mask',"));
  return gather(with_merged(from, first, count), positions_in(flattened(marks)), first);
}

Tensor argwhere(In x) {
  Frame frame("argwhere", x.where());
  return nonzero(x);
}

Tensor flatnonzero(In x) {
  Composite call("flatnonzero", one_name, {x});
  return positions_in(flattened(call.tensor(0)));
}

Tensor unique(In x) {
  Frame frame("unique", x.where());
  return unique_with(x, {}).values;
}

Unique unique_with(In given, UniqueOptions options) {
  Composite call("unique", one_name, {given});
  const Tensor x = call.tensor(0);
  const Dim size = x.size();
  Sorted sorted = sort_with_positions(flattened(x));
  // A value begins where an element differs from the one before it. The first has none: it is compared with itself.
  const Tensor number = arange(size), &value = sorted.values;
  Tensor before = gather(value, maximum(number - 1, 0));
  Tensor begins = not_equal(value, before);
  if (is_floating(x.dtype())) begins = logical_and(begins, logical_or(equal(value, value), equal(before, before)));
  begins = logical_or(begins, equal(number, 0));
  Tensor starts = positions_in(begins);
  const Dim count = starts.dim(0);
  Unique out;
  out.values = gather(value, starts);
  if (options.index) out.index = gather(sorted.positions, starts);
  if (options.inverse) {
    Tensor group = cumsum(cast(begins, DType::i64)) - 1;
    out.inverse = reshape(scatter_update(zeros_like(group), sorted.positions, group), x.shape());
  }
  if (options.counts) {
    Tensor ends = concat({starts, reshape(tensor(size), {1})});
    out.counts = slice(ends, {1}, {count}) - starts;
  }
  return out;
}

Tensor select(const std::vector<Tensor>& conditions, const std::vector<Tensor>& values, In otherwise, Where line) {
  std::vector<In> operands;
  for (const Tensor& condition : conditions) operands.emplace_back(condition, line);
  for (const Tensor& value : values) operands.emplace_back(value, line);
  Composite call("select", {}, operands, line);
  call.require(conditions.size() == values.size(),
               text(conditions.size(), " conditions for ", values.size(), " values"), "give as many of both");
  call.require(!conditions.empty(), "there are no conditions", "give at least one");
  for (std::size_t i = 0; i < conditions.size(); ++i)
    call.require(conditions[i].defined() && conditions[i].dtype() == DType::bool_,
                 text("condition ", i, " is ", type_text(conditions[i]), ", not bool"), "compare with 0 first");
  Tensor out = where(In(conditions.back(), line), In(values.back(), line), otherwise);
  for (std::size_t i = conditions.size() - 1; i-- > 0;) out = where(conditions[i], values[i], out);
  return out;
}

Tensor gather_nd(In x, In indices) {
  Composite call("gather_nd", nd_names, {x, indices});
  FlatIndices at(call);
  return gather(at.x, at.positions);
}

Tensor scatter_nd(In given, In indices, In given_updates, PutOptions options) {
  Composite call("scatter_nd", nd_names, {given, indices, given_updates});
  const Tensor x = call.tensor(0), updates = call.tensor(2);
  FlatIndices at(call);
  std::vector<Dim> expected = at.lead;
  for (int axis = at.depth; axis < x.rank(); ++axis) expected.push_back(x.dim(axis));
  call.require(updates.rank() == static_cast<int>(expected.size()),
               text("'updates' have rank ", updates.rank(), ", not ", expected.size()),
               "updates have the axes of indices but the last, then those of x that are not indexed");
  for (int axis = 0; axis < updates.rank(); ++axis)
    call.require_equal(updates.dim(axis), expected[static_cast<std::size_t>(axis)],
                       text("sizes of axis ", axis, " of 'updates' and what is indexed,"));
  static constexpr Tensor (*scatter[])(In, In, In, int) = {scatter_update, scatter_add, scatter_multiply, scatter_min,
                                                           scatter_max};
  Tensor out = scatter[static_cast<int>(options.combine)](at.x, at.positions, updates, 0);
  return at.depth == 1 ? out : reshape(out, x.shape());
}

Tensor isin(In x, In values, IsinOptions options) {
  Composite call("isin", isin_names, {x, values});
  Tensor among = call.tensor(1), element = call.tensor_beside(0, among);
  const DType type = promote(element.dtype(), among.dtype());
  element = cast(element, type);
  among = sort(flattened(cast(among, type)));
  // A value is there if its place before and its place after equal ones are two.
  Tensor found = less(searchsorted(among, element), searchsorted(among, element, {.right = true}));
  if (is_floating(type)) found = logical_and(found, equal(element, element));
  return options.invert ? logical_not(found) : found;
}

// --- comparisons of all elements

namespace {

Tensor all_true(const Tensor& marks) { return equal(sum(cast(logical_not(marks), DType::i64)), 0); }

}  // namespace

Tensor isclose(In given_x, In given_y, CloseOptions options) {
  Composite call("isclose", pair_names, {given_x, given_y});
  const bool first_is_number = given_x.kind() != In::Kind::tensor;
  Tensor x = first_is_number ? Tensor() : call.tensor(0), y = first_is_number ? call.tensor(1) : Tensor();
  if (first_is_number) x = call.tensor_beside(0, y);
  if (!first_is_number) y = call.tensor_beside(1, x);
  // Integers have no tolerance of their own, and differences that wrap.
  const DType promoted = promote(x.dtype(), y.dtype()), type = is_floating(promoted) ? promoted : DType::f64;
  x = cast(x, compute_type(type));
  y = cast(y, compute_type(type));
  Tensor finite = less(abs(y), infinity);
  Tensor within = less_equal(abs(x - y), options.atol + options.rtol * abs(y));
  Tensor close = logical_or(equal(x, y), logical_and(finite, within));
  if (!options.equal_nan) return close;
  return logical_or(close, logical_and(not_equal(x, x), not_equal(y, y)));
}

Tensor allclose(In x, In y, CloseOptions options) {
  Frame frame("allclose", x.where());
  return all_true(isclose(x, y, options));
}

Tensor array_equal(In given_x, In given_y, EqualOptions options) {
  Composite call("array_equal", pair_names, {given_x, given_y});
  const Tensor x = call.tensor(0), y = call.tensor(1);
  if (x.rank() != y.rank()) return tensor(false);
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!decide(x.dim(axis), Relation::equal, y.dim(axis), {"array_equal", "equal shapes", frame_where()}))
      return tensor(false);
  Tensor same = equal(x, y);
  if (options.equal_nan) same = logical_or(same, logical_and(not_equal(x, x), not_equal(y, y)));
  return all_true(same);
}

Tensor nan_to_num(In given, NanToNumOptions options) {
  Composite call("nan_to_num", one_name, {given});
  const Tensor x = call.tensor(0);
  if (!is_floating(x.dtype())) return x;
  const double largest = largest_finite(x.dtype());
  Tensor above = where(equal(x, infinity), options.posinf.value_or(largest), x);
  Tensor between = where(equal(x, -infinity), options.neginf.value_or(-largest), above);
  return where(not_equal(x, x), options.nan, between);
}

}  // namespace stet
