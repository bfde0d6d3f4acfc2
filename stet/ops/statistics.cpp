// Statistics and norms: functions of reductions. f16, bf16, integers and bool are computed in f32.
#include <algorithm>
#include <cmath>
#include <limits>

#include "stet/core/tape.h"
#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- reductions and statistics

/// How many elements are not zero, i64; NaN is not zero.
/// Example: count_nonzero(tensor({{0, 1}, {2, 3}}), 1)
/// Names: numpy.count_nonzero, array_api.count_nonzero, tf.math.count_nonzero, torch.count_nonzero
STET_API Tensor count_nonzero(In x);
STET_API Tensor count_nonzero(In x, const Axes& axes, ReduceOptions options = {});
/// The largest element less the smallest. Of an empty axis a UserError.
/// Example: ptp(tensor({{1, 9, 3}, {7, 5, 8}}), 1)
/// Names: numpy.ptp
STET_API Tensor ptp(In x);
STET_API Tensor ptp(In x, const Axes& axes, ReduceOptions options = {});
struct VarianceOptions {
  std::int64_t correction = 0;  // sums are divided by the number of elements less this (NumPy's ddof)
  bool keepdims = false;
};
/// The mean squared distance from the mean; of integers f32. NaN where there is nothing to divide by.
/// Example: var(tensor({1.f, 2.f, 3.f, 6.f}), 0, {.correction = 1})
/// Names: numpy.var, array_api.var, tf.math.reduce_variance, torch.var
STET_API Tensor var(In x);
STET_API Tensor var(In x, const Axes& axes, VarianceOptions options = {});
/// The square root of the variance. Where that is 0 the derivative is 0 by definition.
/// Example: stddev(tensor({2.f, 4.f, 4.f, 4.f, 5.f, 5.f, 7.f, 9.f}))
/// Names: numpy.std, array_api.std, tf.math.reduce_std, torch.std
STET_API Tensor stddev(In x);
STET_API Tensor stddev(In x, const Axes& axes, VarianceOptions options = {});
/// Mean and variance, of elements that are read once where a program computes both.
/// Example: moments(tensor({1.f, 2.f, 3.f, 6.f}), 0).second
/// Names: tf.nn.moments
STET_API std::pair<Tensor, Tensor> moments(In x, const Axes& axes, ReduceOptions options = {});
struct NormOptions {
  double ord = 2;  // positive; may be infinite
  bool keepdims = false;
};
/// Norms of vectors along axes: sum(|x|^ord)^(1/ord), with infinite `ord` max(|x|). Derivatives with respect to
/// elements that are 0 are 0, those of the zero vector too. With `ord` 2 squares must fit the type (f32 for halves);
/// with other ones nothing overflows before the result does, and an empty axis is a UserError unless `ord` is 1.
/// Example: norm(tensor({{3.f, 4.f}, {0.f, 0.f}}), 1)
/// Names: numpy.linalg.norm, array_api.linalg.vector_norm, tf.norm, torch.linalg.vector_norm
STET_API Tensor norm(In x);
STET_API Tensor norm(In x, const Axes& axes, NormOptions options = {});
/// log(sum(exp(x))) without overflow. Of -inf alone it is -inf; derivatives are 0 there, and where it is +inf. Of an
/// empty axis a UserError.
/// Example: logsumexp(tensor({1000.f, 1000.f}))
/// Names: scipy.special.logsumexp, tf.math.reduce_logsumexp, torch.logsumexp
STET_API Tensor logsumexp(In x);
STET_API Tensor logsumexp(In x, const Axes& axes, ReduceOptions options = {});
/// sum(x * weights) / sum(weights). Weights broadcast to the shape of `x`; those of one axis lie along the reduced one.
/// Example: average(tensor({{1.f, 2.f}, {3.f, 4.f}}), tensor({1.f, 3.f}), 1)
/// Names: numpy.average
STET_API Tensor average(In x, In weights);
STET_API Tensor average(In x, In weights, const Axes& axes, ReduceOptions options = {});
/// Reductions of the elements that are not NaN; derivatives with respect to NaN are 0. Of NaN alone: nansum 0, the
/// others NaN. Of an empty axis nanmax and nanmin are a UserError.
/// Example: nansum(tensor({{1.f, NAN}, {NAN, NAN}}), 1)
/// Names: numpy.nansum
STET_API Tensor nansum(In x);
STET_API Tensor nansum(In x, const Axes& axes, ReduceOptions options = {});
/// The mean of the elements that are not NaN.
/// Names: numpy.nanmean
/// Example: nanmean(tensor({{1.f, NAN, 3.f}}), 1)
STET_API Tensor nanmean(In x);
STET_API Tensor nanmean(In x, const Axes& axes, ReduceOptions options = {});
/// The largest of the elements that are not NaN.
/// Names: numpy.nanmax
/// Example: nanmax(tensor({{1.f, NAN, 3.f}}), 1)
STET_API Tensor nanmax(In x);
STET_API Tensor nanmax(In x, const Axes& axes, ReduceOptions options = {});
/// The smallest of the elements that are not NaN.
/// Names: numpy.nanmin
/// Example: nanmin(tensor({{1.f, NAN, 3.f}}), 1)
STET_API Tensor nanmin(In x);
STET_API Tensor nanmin(In x, const Axes& axes, ReduceOptions options = {});
/// The variance of the elements that are not NaN.
/// Names: numpy.nanvar
/// Example: nanvar(tensor({{1.f, NAN, 3.f}}), 1)
STET_API Tensor nanvar(In x);
STET_API Tensor nanvar(In x, const Axes& axes, VarianceOptions options = {});
/// The standard deviation of the elements that are not NaN.
/// Names: numpy.nanstd
/// Example: nanstd(tensor({{1.f, NAN, 3.f}}), 1)
STET_API Tensor nanstd(In x);
STET_API Tensor nanstd(In x, const Axes& axes, VarianceOptions options = {});
struct CovarianceOptions {
  std::int64_t correction = 1;  // sums are divided by the number of observations less this
};
/// Covariances of variables, [variables, variables], from observations [variables, observations].
/// Example: cov(tensor({{0.f, 1.f, 2.f}, {2.f, 1.f, 0.f}}))
/// Names: numpy.cov, torch.cov
STET_API Tensor cov(In x, CovarianceOptions options = {});
/// Pearson's correlation coefficients of variables; NaN where a variable does not vary.
/// Example: corrcoef(tensor({{0.f, 1.f, 2.f}, {2.f, 1.f, 0.f}}))
/// Names: numpy.corrcoef, torch.corrcoef
STET_API Tensor corrcoef(In x);
#endif

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr ReduceOptions keep{.keepdims = true};

Axes every_axis(const Tensor& x) {
  std::vector<int> axes;
  for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

/// What is reduced: the operand in the type that is computed in, and its axes.
struct Lines {
  /// `asked` absent: all axes.
  Lines(const Composite& call, const Axes* asked, bool keepdims)
      : axes(call.axes(0, asked ? *asked : every_axis(call[0]))),
        x(widened(call[0])),
        dtype(floating_type(call[0].dtype())),
        kept(keepdims) {
    for (int axis : axes) count = count * x.dim(axis);
  }

  /// A result that kept its axes, as it was asked for.
  Tensor result(const Tensor& reduced) const {
    Tensor typed = in_type(reduced, dtype);
    return kept || axes.empty() ? typed : squeeze(typed, axes);
  }

  std::vector<int> axes;  // sorted, counted from 0
  Tensor x;
  DType dtype;    // of the result
  Dim count = 1;  // elements of a line
  bool kept;
};

Tensor variance_of(const Lines& lines, const Tensor& mean_of_lines, std::int64_t correction) {
  Tensor squares = square(lines.x - mean_of_lines);
  if (correction == 0) return mean(squares, lines.axes, keep);
  return sum(squares, lines.axes, keep) / larger_of(lines.count - correction, 0);
}

Tensor variance(const char* name, const In& x, const Axes* axes, VarianceOptions options, bool root) {
  Composite call(name, {"x"}, {x});
  Lines lines(call, axes, options.keepdims);
  Tensor variance = variance_of(lines, mean(lines.x, lines.axes, keep), options.correction);
  return lines.result(root ? root_flat_at_zero(variance) : variance);
}

/// max(|x|) times the norm of x / max(|x|), which no power takes out of the type. The norm does not depend on the
/// factor, so no tape sees where that came from.
Tensor general_norm(const Lines& lines, double ord) {
  Tensor magnitude = abs(lines.x);
  Tensor scale = [&] {
    HiddenTapes unseen;
    Tensor largest = detached(max(magnitude, lines.axes, keep));
    return where(logical_and(largest > 0, largest < infinity), largest, 1);
  }();
  // Powers of 0 have no derivatives of all orders: they are constants here, as is the norm of zeros.
  Tensor zero = equal(magnitude, 0);
  Tensor terms = where(zero, 0, pow(where(zero, 1, magnitude) / scale, ord));
  Tensor total = sum(terms, lines.axes, keep), nothing = equal(total, 0);
  return where(nothing, 0, scale * pow(where(nothing, 1, total), 1 / ord));
}

Tensor norm_of(const In& x, const Axes* axes, NormOptions options) {
  Composite call("norm", {"x"}, {x});
  call.require(options.ord > 0, text("'ord' is ", options.ord, ", not positive"),
               "count_nonzero(x) counts the elements that are not zero, min(abs(x)) is the smallest one");
  Lines lines(call, axes, options.keepdims);
  if (options.ord == 1) return lines.result(sum(abs(lines.x), lines.axes, keep));
  if (options.ord == 2) return lines.result(root_flat_at_zero(sum(square(lines.x), lines.axes, keep)));
  if (std::isinf(options.ord)) return lines.result(max(abs(lines.x), lines.axes, keep));
  return lines.result(general_norm(lines, options.ord));
}

Tensor logsumexp_of(const In& x, const Axes* axes, ReduceOptions options) {
  Composite call("logsumexp", {"x"}, {x});
  Lines lines(call, axes, options.keepdims);
  // The result does not depend on the shift, so no tape sees where it came from.
  Tensor largest = [&] {
    HiddenTapes unseen;
    return detached(max(lines.x, lines.axes, keep));
  }();
  // Lines with an infinite maximum are that maximum; what is computed of them besides is kept finite, so that its
  // derivatives, which do not count, are no NaN either. A maximum of NaN goes the usual way.
  Tensor finite = not_equal(abs(largest), infinity);
  Tensor shifted = where(finite, lines.x - where(finite, largest, 0), 0);
  Tensor total = log(sum(exp(shifted), lines.axes, keep)) + largest;
  return lines.result(where(finite, total, largest));
}

Tensor average_of(const In& x, const In& weights, const Axes* axes, ReduceOptions options) {
  Composite call("average", {"x", "weights"}, {x, weights});
  Lines lines(call, axes, options.keepdims);
  Tensor w = widened(call[1]);
  if (w.rank() == 1 && lines.x.rank() > 1 && lines.axes.size() == 1) {
    call.require_equal(w.dim(0), lines.x.dim(lines.axes[0]), text("sizes of 'weights' and of axis ", lines.axes[0]),
                       "weights of one axis lie along the reduced one");
    std::vector<Dim> sizes(static_cast<std::size_t>(lines.x.rank()), 1);
    sizes[static_cast<std::size_t>(lines.axes[0])] = w.dim(0);
    w = reshape(w, sizes);
  }
  w = broadcast_to(w, lines.x.shape());
  return lines.result(sum(lines.x * w, lines.axes, keep) / sum(w, lines.axes, keep));
}

/// Lines of which only the elements that are no NaN count. Quotients are guarded twice: where there is nothing to
/// divide by, the divisor is 1, so that derivatives that do not count are no NaN.
struct KnownLines : Lines {
  KnownLines(const Composite& call, const Axes* asked, bool keepdims)
      : Lines(call, asked, keepdims),
        known(equal(x, x)),
        number(sum(cast(known, DType::i64), axes, keep)),
        some(number > 0),
        filled(where(known, x, 0)) {}
  Tensor mean_of_known() const { return where(some, sum(filled, axes, keep) / divisor(number, some), nan); }
  Tensor divisor(const Tensor& count, const Tensor& valid) const { return cast(where(valid, count, 1), x.dtype()); }

  Tensor known, number, some, filled;
};

Tensor nansum_of(const In& x, const Axes* axes, ReduceOptions options) {
  Composite call("nansum", {"x"}, {x});
  if (!is_floating(call[0].dtype())) return axes ? sum(call[0], *axes, options) : sum(call[0]);
  Lines lines(call, axes, options.keepdims);
  return lines.result(sum(where(equal(lines.x, lines.x), lines.x, 0), lines.axes, keep));
}

Tensor nanmean_of(const In& x, const Axes* axes, ReduceOptions options) {
  Composite call("nanmean", {"x"}, {x});
  KnownLines lines(call, axes, options.keepdims);
  return lines.result(lines.mean_of_known());
}

Tensor known_extreme(const char* name, Tensor (*extreme)(In, const Axes&, ReduceOptions), double beyond, const In& x,
                     const Axes* asked, ReduceOptions options) {
  Composite call(name, {"x"}, {x});
  if (!is_floating(call[0].dtype())) return extreme(call[0], asked ? *asked : every_axis(call[0]), options);
  Lines lines(call, asked, options.keepdims);
  Tensor known = equal(lines.x, lines.x);
  Tensor found = extreme(where(known, lines.x, beyond), lines.axes, keep);
  return lines.result(where(any(known, lines.axes, keep), found, nan));
}

Tensor known_variance(const char* name, const In& x, const Axes* axes, VarianceOptions options, bool root) {
  Composite call(name, {"x"}, {x});
  KnownLines lines(call, axes, options.keepdims);
  Tensor centre = where(lines.some, sum(lines.filled, lines.axes, keep) / lines.divisor(lines.number, lines.some), 0);
  Tensor squares = where(lines.known, square(lines.filled - centre), 0);
  Tensor freedom = lines.number - options.correction, enough = freedom > 0;
  Tensor variance = sum(squares, lines.axes, keep) / lines.divisor(freedom, enough);
  return lines.result(where(enough, root ? root_flat_at_zero(variance) : variance, nan));
}

/// In i64, which sums of bool are not.
Tensor one_if_not_zero(const Tensor& x) {
  In operands[] = {x};
  return call_map(scalar::cast(scalar::cast(operand(0, x.dtype()), DType::bool_), DType::i64), operands);
}

/// Observations [variables, observations] less their means.
Tensor deviations(const Composite& call) {
  call.require(call[0].rank() == 2, text("'x' has rank ", call[0].rank(), ", not 2"),
               "a row of it is a variable, a column an observation of all variables");
  Tensor x = widened(call[0]);
  return x - mean(x, 1, keep);
}

}  // namespace

#define STET_STATISTIC(name, Options, ...)                \
  Tensor name(In x) {                                     \
    const Axes* axes = nullptr;                           \
    Options options;                                      \
    return __VA_ARGS__;                                   \
  }                                                       \
  Tensor name(In x, const Axes& asked, Options options) { \
    const Axes* axes = &asked;                            \
    return __VA_ARGS__;                                   \
  }
STET_STATISTIC(var, VarianceOptions, variance("var", x, axes, options, false))
STET_STATISTIC(stddev, VarianceOptions, variance("stddev", x, axes, options, true))
STET_STATISTIC(norm, NormOptions, norm_of(x, axes, options))
STET_STATISTIC(logsumexp, ReduceOptions, logsumexp_of(x, axes, options))
STET_STATISTIC(nansum, ReduceOptions, nansum_of(x, axes, options))
STET_STATISTIC(nanmean, ReduceOptions, nanmean_of(x, axes, options))
STET_STATISTIC(nanmax, ReduceOptions, known_extreme("nanmax", max, -infinity, x, axes, options))
STET_STATISTIC(nanmin, ReduceOptions, known_extreme("nanmin", min, infinity, x, axes, options))
STET_STATISTIC(nanvar, VarianceOptions, known_variance("nanvar", x, axes, options, false))
STET_STATISTIC(nanstd, VarianceOptions, known_variance("nanstd", x, axes, options, true))
#undef STET_STATISTIC

Tensor average(In x, In weights) { return average_of(x, weights, nullptr, {}); }
Tensor average(In x, In weights, const Axes& axes, ReduceOptions options) {
  return average_of(x, weights, &axes, options);
}

Tensor count_nonzero(In x) {
  Composite call("count_nonzero", {"x"}, {x});
  return sum(one_if_not_zero(call[0]));
}
Tensor count_nonzero(In x, const Axes& axes, ReduceOptions options) {
  Composite call("count_nonzero", {"x"}, {x});
  return sum(one_if_not_zero(call[0]), axes, options);
}

Tensor ptp(In x) {
  Frame frame("ptp", x.where());
  return max(x) - min(x);
}
Tensor ptp(In x, const Axes& axes, ReduceOptions options) {
  Frame frame("ptp", x.where());
  return max(x, axes, options) - min(x, axes, options);
}

std::pair<Tensor, Tensor> moments(In x, const Axes& axes, ReduceOptions options) {
  Composite call("moments", {"x"}, {x});
  Lines lines(call, &axes, options.keepdims);
  Tensor means = mean(lines.x, lines.axes, keep);
  return {lines.result(means), lines.result(variance_of(lines, means, 0))};
}

Tensor cov(In x, CovarianceOptions options) {
  Composite call("cov", {"x"}, {x});
  Tensor from_mean = deviations(call);
  Tensor products = matmul(from_mean, from_mean, {.transpose_b = true});
  return in_type(products / larger_of(from_mean.dim(1) - options.correction, 0), floating_type(call[0].dtype()));
}

Tensor corrcoef(In x) {
  Composite call("corrcoef", {"x"}, {x});
  Tensor from_mean = deviations(call);
  Tensor length = sqrt(sum(square(from_mean), 1, keep));
  Tensor coefficients = matmul(from_mean, from_mean, {.transpose_b = true}) / (length * transpose(length));
  return in_type(minimum(maximum(coefficients, -1), 1), floating_type(call[0].dtype()));
}

}  // namespace stet
