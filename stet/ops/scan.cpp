// Scans: each element combined with all before it along an axis.
#include <limits>

#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/axis.h"
#include "stet/ops/elementwise_bodies.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- scans, order and search

struct ScanOptions {
  bool exclusive = false;  // without the element itself: the first is the sum (product, …) of nothing
  bool reverse = false;    // from the last element to the first
};
/// Sums of the elements up to each one along an axis; of bool and of 8- and 16-bit integers i32.
/// Names: numpy.cumsum, array_api.cumulative_sum, tf.math.cumsum
/// Example: cumsum(tensor({1, 2, 3, 4}))
STET_API Tensor cumsum(In x, int axis = 0, ScanOptions options = {});
/// Products of the elements up to each one along an axis; of bool and of 8- and 16-bit integers i32.
/// Names: numpy.cumprod, array_api.cumulative_prod, tf.math.cumprod
/// Example: cumprod(tensor({1, 2, 3, 4}))
STET_API Tensor cumprod(In x, int axis = 0, ScanOptions options = {});
/// The largest element so far along an axis; from a NaN on NaN. Exclusive: the first is the lowest value of the type.
/// Names: numpy.maximum.accumulate, jax.lax.cummax
/// Example: cummax(tensor({2, 1, 5, 3}))
STET_API Tensor cummax(In x, int axis = 0, ScanOptions options = {});
/// The smallest element so far along an axis; from a NaN on NaN. Exclusive: the first is the highest value of the type.
/// Names: numpy.minimum.accumulate, jax.lax.cummin
/// Example: cummin(tensor({2, 1, 5, 3}))
STET_API Tensor cummin(In x, int axis = 0, ScanOptions options = {});
/// log of the sum of exp of the elements up to each one along an axis, without overflow; integers give f32.
/// Names: numpy.logaddexp.accumulate, jax.lax.cumlogsumexp, tf.math.cumulative_logsumexp
/// Example: logcumsumexp(tensor({0.0f, 0.0f, 0.0f}))
STET_API Tensor logcumsumexp(In x, int axis = 0, ScanOptions options = {});
#endif

namespace {

constexpr const char* operand_names[] = {"x"};

void infer_scan(InferCall& call, DType result) {
  const auto& attributes = call.attributes<ScanAttributes>();
  call.require(call.rank(0) >= 1, "a scalar has no axis to go along", "reshape(x, {1}) makes it a vector");
  // The callables count axes from 0; lowering relies on it.
  call.require(attributes.axis >= 0 && attributes.axis < call.rank(0),
               text("axis ", attributes.axis, " is out of range for rank ", call.rank(0)));
  call.result(result, call.shape(0));
}

Tensor scanned(const OpDef& row, const In& x, int axis, bool exclusive, bool reverse) {
  return call(row, {x}, view_of(ScanAttributes{axis, exclusive, reverse}));
}

DType accumulated_sum(DType d) { return compute_type(sum_type(d)); }
DType accumulated_element(DType d) { return compute_type(d); }
DType accumulated_real(DType d) { return compute_type(floating_type(d)); }

Expr lowest(DType d) {
  return is_floating(d) ? constant(-std::numeric_limits<double>::infinity(), d) : constant(row(d).lowest, d);
}
Expr highest(DType d) {
  return is_floating(d) ? constant(std::numeric_limits<double>::infinity(), d) : constant(row(d).highest, d);
}

// --- gradients

void gradient_of_cumsum(GradientCall& g) {
  const auto& a = g.attributes<ScanAttributes>();
  if (g.wants(0)) g.set(0, scanned(g.op(), g.d(), a.axis, a.exclusive, !a.reverse));
}

/// A product's gradient by a factor is the product of the others: product / factor where the factor is not zero. Where
/// it is, only products in which it is the one zero count, and those with one zero more are 0 with a gradient of their
/// own. What belongs to the products that an element is part of is summed by the scan in the other direction.
void gradient_of_cumprod(GradientCall& g) {
  if (!g.wants(0)) return;
  const auto& a = g.attributes<ScanAttributes>();
  const Tensor &x = g.in(0), &d = g.d();
  auto along = [&](const OpDef& row, const Tensor& t) { return scanned(row, t, a.axis, a.exclusive, a.reverse); };
  auto back = [&](const Tensor& t) { return scanned(cumsum_row, t, a.axis, a.exclusive, !a.reverse); };
  Tensor zero = equal(x, 0), factors = where(zero, 1, x), null = where(zero, x, 0);
  Tensor zeros_in = along(cumsum_row, cast(zero, DType::i32));
  Tensor weighted = d * along(cumprod_row, factors);
  Tensor beside_none = back(where(equal(zeros_in, 1), weighted, 0));
  Tensor with_another = where(equal(zeros_in, 2), weighted, 0);
  Tensor beside_one = back(with_another * along(cumsum_row, null)) - null * back(with_another);
  g.set(0, where(zero, beside_none + beside_one, back(d * g.out()) / factors));
}

/// To the element that each result is: the first that is as large (small). An element that is not what the scan before
/// it had come to begins a run, and a result belongs to the latest beginning.
void gradient_of_extreme(GradientCall& g) {
  if (!g.wants(0)) return;
  const auto& a = g.attributes<ScanAttributes>();
  const Tensor& x = g.in(0);
  Dim length = x.dim(a.axis);
  std::vector<Dim> along(static_cast<std::size_t>(x.rank()), Dim(1));
  along[static_cast<std::size_t>(a.axis)] = length;
  Tensor index = broadcast_to(reshape(arange(length), along), x.shape());
  Tensor all = scanned(g.op(), x, a.axis, false, a.reverse), before = scanned(g.op(), x, a.axis, true, a.reverse);
  Tensor is_nan = not_equal(x, x), was_nan = not_equal(before, before);
  Tensor first = equal(index, a.reverse ? length - 1 : Dim(0));  // even if it is what a scan of nothing is
  Tensor begins = logical_or(first, where(is_nan, logical_not(was_nan), not_equal(all, before)));
  Tensor at = a.reverse ? scanned(cummin_row, where(begins, index, length), a.axis, a.exclusive, true)
                        : scanned(cummax_row, where(begins, index, -1), a.axis, a.exclusive, false);
  // The first result of an exclusive scan is no element.
  Tensor is_element = a.reverse ? less(at, length) : greater_equal(at, 0);
  g.set(0, put_along_axis(zeros_like(x), where(is_element, at, 0), where(is_element, g.d(), 0), a.axis,
                          {.combine = ScatterCombine::add}));
}

/// exp(x_i - y_k) of every result k that an element is part of, weighted: as a scan of logarithms in the other
/// direction, positive and negative weights apart, so that nothing overflows on the way.
void gradient_of_logcumsumexp(GradientCall& g) {
  if (!g.wants(0)) return;
  const auto& a = g.attributes<ScanAttributes>();
  const Tensor &x = g.in(0), &d = g.d(), &y = g.out();
  constexpr double none = -std::numeric_limits<double>::infinity();
  auto part = [&](const Tensor& weight) {
    Tensor positive = greater(weight, 0);
    Tensor logs = where(logical_and(positive, greater(y, none)), log(where(positive, weight, 1)) - y, none);
    return exp(scanned(g.op(), logs, a.axis, a.exclusive, !a.reverse) + x);
  };
  g.set(0, part(d) - part(-d));
}

// --- samples

void samples_of_scan(SampleList& list) {
  list.add({{{4}}}, ScanAttributes{0, false, false})
      .add({{{3, 5}}}, ScanAttributes{1, false, false})
      .add({{{17, 3}}}, ScanAttributes{0, false, true})
      .add({{{2, 33, 4}}}, ScanAttributes{1, true, false})
      .add({{{2, 3, 70}}}, ScanAttributes{2, true, true})
      .add({{{1}}}, ScanAttributes{0, true, false})
      .add({{{3, 0}}}, ScanAttributes{1, false, false})
      .add({{{0, 3}}}, ScanAttributes{1, false, false});
}
void samples_of_cumsum(SampleList& list) {
  samples_of_scan(list.rounded(Rounding::sums));
  list.add({{{700}}}, ScanAttributes{0, false, false});
}
void samples_of_cumprod(SampleList& list) {
  samples_of_scan(list.rounded(Rounding::products));
  for (Sample& sample : list.samples) sample.inputs[0].draw = Draw::factors;
}
void samples_of_functions(SampleList& list) { samples_of_scan(list.rounded(Rounding::functions)); }

void errors_of_scan(ErrorList& list) {
  list.add("axis 2 is out of range", {{DType::f32, {3, 4}}}, ScanAttributes{2, false, false})
      .add("a scalar has no axis", {{DType::f32, {}}}, ScanAttributes{0, false, false});
}

}  // namespace

constinit const OpDef cumsum_row{.name = "cumsum",
                                 .kind = Kind::scan,
                                 .summary = "Sums of the elements up to each one.",
                                 .operands = operand_names,
                                 .infer = [](InferCall& c) { infer_scan(c, sum_type(c.dtype(0))); },
                                 .gradient = gradient_of_cumsum,
                                 .samples = samples_of_cumsum,
                                 .errors = errors_of_scan,
                                 .accumulator = accumulated_sum,
                                 .combine_scanned = [](Expr x, Expr y) { return x + y; },
                                 .identity = [](DType d) { return constant(0, d); }};

constinit const OpDef cumprod_row{.name = "cumprod",
                                  .kind = Kind::scan,
                                  .summary = "Products of the elements up to each one.",
                                  .operands = operand_names,
                                  .infer = [](InferCall& c) { infer_scan(c, sum_type(c.dtype(0))); },
                                  .gradient = gradient_of_cumprod,
                                  .samples = samples_of_cumprod,
                                  .errors = errors_of_scan,
                                  .accumulator = accumulated_sum,
                                  .combine_scanned = [](Expr x, Expr y) { return x * y; },
                                  .identity = [](DType d) { return constant(1, d); }};

constinit const OpDef cummax_row{.name = "cummax",
                                 .kind = Kind::scan,
                                 .summary = "The largest element so far.",
                                 .operands = operand_names,
                                 .infer = [](InferCall& c) { infer_scan(c, c.dtype(0)); },
                                 .gradient = gradient_of_extreme,
                                 .samples = samples_of_scan,
                                 .errors = errors_of_scan,
                                 .accumulator = accumulated_element,
                                 .combine_scanned = [](Expr x, Expr y) { return scalar::maximum(x, y); },
                                 .identity = lowest};

constinit const OpDef cummin_row{.name = "cummin",
                                 .kind = Kind::scan,
                                 .summary = "The smallest element so far.",
                                 .operands = operand_names,
                                 .infer = [](InferCall& c) { infer_scan(c, c.dtype(0)); },
                                 .gradient = gradient_of_extreme,
                                 .samples = samples_of_scan,
                                 .errors = errors_of_scan,
                                 .accumulator = accumulated_element,
                                 .combine_scanned = [](Expr x, Expr y) { return scalar::minimum(x, y); },
                                 .identity = highest};

constinit const OpDef logcumsumexp_row{.name = "logcumsumexp",
                                       .kind = Kind::scan,
                                       .summary = "log of the sum of exp of the elements up to each one.",
                                       .operands = operand_names,
                                       .infer = [](InferCall& c) { infer_scan(c, floating_type(c.dtype(0))); },
                                       .gradient = gradient_of_logcumsumexp,
                                       .samples = samples_of_functions,
                                       .errors = errors_of_scan,
                                       .accumulator = accumulated_real,
                                       .combine_scanned = body::log_add_exp,
                                       .identity = lowest};

#define STET_SCAN(name)                                                                                   \
  Tensor name(In x, int axis, ScanOptions options) {                                                      \
    return scanned(name##_row, x, counted_axis(name##_row, x, axis), options.exclusive, options.reverse); \
  }
STET_SCAN(cumsum)
STET_SCAN(cumprod)
STET_SCAN(cummax)
STET_SCAN(cummin)
STET_SCAN(logcumsumexp)
#undef STET_SCAN

}  // namespace stet
