// What stands in the middle of the order, and what lies between neighbours: quantiles, differences, interpolation.
#include <algorithm>
#include <cmath>

#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- reductions and statistics

/// The element in the middle of the order, of an even number the mean of the two there; of integers f32. NaN if there
/// is one. Of an empty axis a UserError.
/// Names: numpy.median, jax.numpy.median
/// Example: median(tensor({3.0f, 1.0f, 2.0f, 9.0f}))
STET_API Tensor median(In x);
STET_API Tensor median(In x, const Axes& axes, ReduceOptions options = {});
/// The median of the elements that are not NaN; NaN where there are none.
/// Names: numpy.nanmedian, jax.numpy.nanmedian
/// Example: nanmedian(tensor({3.0f, NAN, 2.0f}))
STET_API Tensor nanmedian(In x);
STET_API Tensor nanmedian(In x, const Axes& axes, ReduceOptions options = {});

/// What is taken where a quantile lies between two elements: a mean weighted by the distance, the lower one, the higher
/// one, the mean, or the nearer one (halfway the one at the even position).
enum class QuantileMethod : std::uint8_t { linear, lower, higher, midpoint, nearest };
struct QuantileOptions {
  QuantileMethod method = QuantileMethod::linear;
  bool keepdims = false;
};
/// What lies at the part `q` (0 to 1) of the order along axes; of integers f32. The axes of q are the first of the
/// result. NaN if there is one. Of an empty axis, and for q outside of 0 to 1, a UserError.
/// Names: numpy.quantile, jax.numpy.quantile
/// Example: quantile(tensor({3.0f, 1.0f, 2.0f, 9.0f}), 0.25)
STET_API Tensor quantile(In x, In q);
STET_API Tensor quantile(In x, In q, const Axes& axes, QuantileOptions options = {});
/// quantile() for `q` from 0 to 100.
/// Names: numpy.percentile, jax.numpy.percentile
/// Example: percentile(tensor({3.0f, 1.0f, 2.0f, 9.0f}), 25)
STET_API Tensor percentile(In x, In q);
STET_API Tensor percentile(In x, In q, const Axes& axes, QuantileOptions options = {});

/// Differences of neighbours along an axis, `n` times; of bool whether they differ.
/// Names: numpy.diff, array_api.diff
/// Example: diff(tensor({1, 4, 9, 16}))
STET_API Tensor diff(In x, int n = 1, int axis = -1);

struct InterpOptions {
  std::optional<double> left = {}, right = {};  // before the first point, after the last; not given, its value
};
/// The line through the points (xp, fp) at x: straight between neighbours, level outside. `xp` must ascend. NaN at NaN.
/// Names: numpy.interp, jax.numpy.interp
/// Example: interp(tensor({0.5f, 2.0f}), tensor({0.0f, 1.0f}), tensor({10.0f, 20.0f}))
STET_API Tensor interp(In x, In xp, In fp, InterpOptions options = {});

struct TrapezoidOptions {
  Tensor x = {};  // where the values are: a vector, or as many as values
  double dx = 1;  // without x, the distance of neighbours
};
/// The integral along an axis of the straight lines between values.
/// Names: numpy.trapezoid, jax.scipy.integrate.trapezoid, scipy.integrate.trapezoid
/// Example: trapezoid(tensor({1.0f, 2.0f, 3.0f}))
STET_API Tensor trapezoid(In y, int axis = -1, TrapezoidOptions options = {});
#endif

namespace {

constexpr const char* one_name[] = {"x"};
constexpr const char* quantile_names[] = {"x", "q"};
constexpr const char* interp_names[] = {"x", "xp", "fp"};
constexpr const char* trapezoid_names[] = {"y", "x"};
constexpr IndexWords quantile_words{"position", "of quantile", "elements", "quantiles are from 0 to 1"};

/// Elements in order along the axes that go away, which are one now: the last.
struct OrderedLines {
  OrderedLines(const Composite& call, const Axes* axes, bool keepdims) {
    Tensor x = call.tensor(0);
    result_type = floating_type(x.dtype());
    x = cast(x, compute_type(result_type));
    std::vector<int> gone;
    try {
      if (axes) gone = normalize_axes(axes->axes, x.rank());
    } catch (const Problem& problem) {
      call.fail(problem.text(), problem.advice());
    }
    std::vector<int> order;
    std::vector<Dim> sizes;
    for (int axis = 0; axis < x.rank(); ++axis) {
      const bool goes = !axes || std::find(gone.begin(), gone.end(), axis) != gone.end();
      if (goes) length = length * x.dim(axis);
      if (!goes) order.push_back(axis), sizes.push_back(x.dim(axis));
      if (!goes || keepdims) result.push_back(goes ? Dim(1) : x.dim(axis));
    }
    call.require_some(length, "an empty axis has no quantiles", "make sure the axis has at least one element");
    kept = static_cast<int>(order.size());
    for (int axis : gone) order.push_back(axis);
    sizes.push_back(length);
    const bool in_order = std::is_sorted(order.begin(), order.end());
    if (axes && !in_order) x = transpose(x, order);
    sorted = sort(x.rank() == kept + 1 ? x : reshape(x, sizes));
  }

  /// What stands at one position of every line, [kept..., 1].
  Tensor at(const Dim& position) const {
    std::vector<Dim> begin(static_cast<std::size_t>(kept), Dim(0)), size = dims_of(sorted.shape());
    begin.push_back(position);
    size.back() = 1;
    return slice(sorted, begin, size);
  }
  /// NaN, which is last in the order, wherever it stands: `value` is [kept..., any].
  Tensor nan_if_any(const Tensor& value) const {
    Tensor last = at(length - 1);
    return where(not_equal(last, last), last, value);
  }

  Tensor sorted;
  Dim length = 1;
  int kept = 0;
  std::vector<Dim> result;
  DType result_type;
};

Tensor median_of(const In& x, const Axes* axes, ReduceOptions options) {
  Composite call("median", one_name, {x});
  OrderedLines lines(call, axes, options.keepdims);
  Tensor low = lines.at((lines.length - 1) / 2), high = lines.at(lines.length / 2);
  // The one in the middle of an odd number is not added to itself: that may overflow.
  Tensor odd = equal(tensor(lines.length % 2), 1);
  Tensor middle = lines.nan_if_any(where(odd, low, (low + high) * 0.5));
  return cast(reshape(middle, lines.result), lines.result_type);
}

Tensor nanmedian_of(const In& x, const Axes* axes, ReduceOptions options) {
  Composite call("nanmedian", one_name, {x});
  OrderedLines lines(call, axes, options.keepdims);
  Tensor number = equal(lines.sorted, lines.sorted);
  Tensor count = sum(cast(number, DType::i64), -1, {.keepdims = true});
  Tensor low = take_along_axis(lines.sorted, floor_divide(maximum(count - 1, 0), 2));
  Tensor high = take_along_axis(lines.sorted, minimum(floor_divide(count, 2), maximum(count - 1, 0)));
  Tensor middle = where(equal(mod(count, 2), 1), low, (low + high) * 0.5);
  return cast(reshape(middle, lines.result), lines.result_type);
}

/// `share`: what q is divided by.
Tensor quantile_of(const char* name, const In& x, const In& q, double share, const Axes* axes,
                   QuantileOptions options) {
  Composite call(name, quantile_names, {x, q}, &quantile_words);
  if (q.is_number()) {
    const double number = q.kind() == In::Kind::real ? q.real() : static_cast<double>(q.integer());
    call.require(number >= 0 && number <= share, text("the quantile ", number, " is not from 0 to ", share));
  }
  const Tensor parts = cast(call.tensor(1), DType::f64);
  OrderedLines lines(call, axes, options.keepdims);
  const DType type = lines.sorted.dtype();
  Tensor place = flattened(parts) / share * (lines.length - 1);
  if (options.method == QuantileMethod::nearest) place = round(place);
  Tensor below = floor(place), above = ceil(place);
  Tensor low = gather(lines.sorted, cast(below, DType::i64), -1);
  Tensor high = gather(lines.sorted, cast(above, DType::i64), -1);
  Tensor weight = cast(place - below, type), value = low;
  if (options.method == QuantileMethod::higher) value = high;
  if (options.method == QuantileMethod::midpoint) value = where(equal(below, above), low, (low + high) * 0.5);
  if (options.method == QuantileMethod::linear) {
    // From the nearer end, so that both ends are met.
    Tensor between = high - low;
    Tensor mixed = where(less(weight, 0.5), low + between * weight, high - between * (1 - weight));
    value = where(equal(below, above), low, mixed);
  }
  value = lines.nan_if_any(value);
  // [kept..., quantiles] to [quantiles, kept...], then the shapes of both.
  std::vector<int> order{lines.kept};
  for (int axis = 0; axis < lines.kept; ++axis) order.push_back(axis);
  std::vector<Dim> sizes = dims_of(parts.shape());
  sizes.insert(sizes.end(), lines.result.begin(), lines.result.end());
  return cast(reshape(lines.kept > 0 ? transpose(value, order) : value, sizes), lines.result_type);
}

/// All but the first, or all but the last, along an axis.
Tensor without_end(const Tensor& x, int axis, bool first) {
  std::vector<Dim> begin(static_cast<std::size_t>(x.rank()), Dim(0)), size = dims_of(x.shape());
  const Dim extent = x.dim(axis);
  begin[static_cast<std::size_t>(axis)] = first ? smaller_of(1, extent) : Dim(0);
  size[static_cast<std::size_t>(axis)] = larger_of(extent - 1, 0);
  return slice(x, begin, size);
}

}  // namespace

Tensor median(In x) { return median_of(x, nullptr, {}); }
Tensor median(In x, const Axes& axes, ReduceOptions options) { return median_of(x, &axes, options); }
Tensor nanmedian(In x) { return nanmedian_of(x, nullptr, {}); }
Tensor nanmedian(In x, const Axes& axes, ReduceOptions options) { return nanmedian_of(x, &axes, options); }

Tensor quantile(In x, In q) { return quantile_of("quantile", x, q, 1, nullptr, {}); }
Tensor quantile(In x, In q, const Axes& axes, QuantileOptions options) {
  return quantile_of("quantile", x, q, 1, &axes, options);
}
Tensor percentile(In x, In q) { return quantile_of("percentile", x, q, 100, nullptr, {}); }
Tensor percentile(In x, In q, const Axes& axes, QuantileOptions options) {
  return quantile_of("percentile", x, q, 100, &axes, options);
}

Tensor diff(In x, int n, int axis) {
  Composite call("diff", one_name, {x});
  Tensor out = call.tensor(0);
  const int along = call.axis(out, axis);
  call.require(n >= 0, text("differences taken ", n, " times"), "n is 0 or more");
  for (int time = 0; time < n; ++time) {
    Tensor later = without_end(out, along, true), earlier = without_end(out, along, false);
    out = out.dtype() == DType::bool_ ? not_equal(later, earlier) : later - earlier;
  }
  return out;
}

Tensor interp(In given, In points, In values, InterpOptions options) {
  Composite call("interp", interp_names, {given, points, values});
  Tensor xp = call.tensor(1), fp = call.tensor(2), x = call.tensor_beside(0, xp);
  call.require(xp.rank() == 1 && fp.rank() == 1,
               text("'xp' has rank ", xp.rank(), " and 'fp' rank ", fp.rank(), ", not 1"));
  call.require_equal(xp.dim(0), fp.dim(0), "sizes of 'xp' and 'fp',", "give one value for each point");
  const Dim count = xp.dim(0);
  call.require_some(count, "there are no points to go through", "give at least one");
  const DType place_type = floating_type(promote(x.dtype(), xp.dtype()));
  const DType type = promote(place_type, floating_type(fp.dtype()));
  x = cast(x, type), xp = cast(xp, type), fp = cast(fp, type);
  // The points on both sides; outside, and beyond the last one, they are the same.
  Tensor after = searchsorted(xp, x, {.right = true});
  Tensor left = maximum(after - 1, 0), right = minimum(after, count - 1);
  Tensor x_left = gather(xp, left), f_left = gather(fp, left);
  Tensor width = gather(xp, right) - x_left, level = equal(width, 0);
  Tensor slope = (gather(fp, right) - f_left) / where(level, 1, width);
  Tensor out = where(level, f_left, f_left + slope * (x - x_left));
  if (options.left) out = where(less(x, slice(xp, {0}, {1})), *options.left, out);
  if (options.right) out = where(greater(x, slice(xp, {count - 1}, {1})), *options.right, out);
  return where(not_equal(x, x), x, out);
}

Tensor trapezoid(In given, int axis, TrapezoidOptions options) {
  std::vector<In> operands{given};
  if (options.x.defined()) operands.emplace_back(options.x, given.where());
  Composite call("trapezoid", trapezoid_names, operands);
  Tensor y = call.tensor(0);
  y = cast(y, floating_type(y.dtype()));
  const int along = call.axis(y, axis);
  Tensor heights = without_end(y, along, true) + without_end(y, along, false);
  if (!options.x.defined()) return sum(heights, along) * (0.5 * options.dx);
  Tensor x = call.tensor(1);
  call.require(x.rank() == 1 || x.rank() == y.rank(),
               text("'x' has rank ", x.rank(), ", neither 1 nor ", y.rank(), " as 'y'"));
  const int x_axis = x.rank() == 1 ? 0 : along;
  call.require_equal(x.dim(x_axis), y.dim(along), "numbers of values and of places,", "give one place for each value");
  Tensor widths = without_end(x, x_axis, true) - without_end(x, x_axis, false);
  if (x.rank() == 1) {
    std::vector<Dim> sizes(static_cast<std::size_t>(y.rank()), Dim(1));
    sizes[static_cast<std::size_t>(along)] = widths.dim(0);
    widths = reshape(widths, sizes);
  }
  return sum(heights * widths, along) * 0.5;
}

}  // namespace stet
