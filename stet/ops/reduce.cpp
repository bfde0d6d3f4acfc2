// Reductions: a row each, and their callables.
#include <algorithm>

#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/sum_to.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- reductions and statistics

/// Sums; of bool and of 8- and 16-bit integers i32. An empty sum is 0.
/// Names: numpy.sum, array_api.sum, tf.reduce_sum, torch.sum
/// Example: sum(tensor({{1, 2}, {3, 4}}), 1)
STET_API Tensor sum(In x);
STET_API Tensor sum(In x, const Axes& axes, ReduceOptions options = {});
/// Means; of integers and bool f32. An empty mean is NaN.
/// Names: numpy.mean, array_api.mean, tf.reduce_mean, torch.mean
/// Example: mean(tensor({{1.f, 2.f}, {3.f, 5.f}}), 1)
STET_API Tensor mean(In x);
STET_API Tensor mean(In x, const Axes& axes, ReduceOptions options = {});
/// Products; of bool and of 8- and 16-bit integers i32. An empty product is 1.
/// Names: numpy.prod, array_api.prod, tf.reduce_prod, torch.prod
/// Example: prod(tensor({{1, 2}, {3, 4}}), 1)
STET_API Tensor prod(In x);
STET_API Tensor prod(In x, const Axes& axes, ReduceOptions options = {});
/// The largest element; NaN if there is one. Of an empty axis a UserError.
/// Names: numpy.max, array_api.max, tf.reduce_max, torch.amax
/// Example: max(tensor({{1, 2}, {3, 4}}), 1)
STET_API Tensor max(In x);
STET_API Tensor max(In x, const Axes& axes, ReduceOptions options = {});
/// The smallest element; NaN if there is one. Of an empty axis a UserError.
/// Names: numpy.min, array_api.min, tf.reduce_min, torch.amin
/// Example: min(tensor({{1, 2}, {3, 4}}), 1)
STET_API Tensor min(In x);
STET_API Tensor min(In x, const Axes& axes, ReduceOptions options = {});
/// The position of the largest element along an axis, i64; the first among equals; of NaN if there is one. Without an
/// axis: in the flattened tensor.
/// Example: argmax(tensor({{1, 9, 3}, {7, 5, 8}}), 1)
/// Names: numpy.argmax, array_api.argmax, tf.argmax, torch.argmax
STET_API Tensor argmax(In x);
STET_API Tensor argmax(In x, int axis, ReduceOptions options = {});
/// The position of the smallest element, as argmax.
/// Example: argmin(tensor({{1, 9, 3}, {7, 5, 8}}), 1)
/// Names: numpy.argmin, array_api.argmin, tf.argmin, torch.argmin
STET_API Tensor argmin(In x);
STET_API Tensor argmin(In x, int axis, ReduceOptions options = {});
/// Whether any element is not zero, bool; NaN is not zero. Of nothing false.
/// Example: any(tensor({{0, 1}, {0, 0}}), 1)
/// Names: numpy.any, array_api.any, tf.reduce_any, torch.any
STET_API Tensor any(In x);
STET_API Tensor any(In x, const Axes& axes, ReduceOptions options = {});
/// Whether all elements are not zero, bool; NaN is not zero. Of nothing true.
/// Example: all(tensor({{2, 1}, {0, 1}}), 1)
/// Names: numpy.all, array_api.all, tf.reduce_all, torch.all
STET_API Tensor all(In x);
STET_API Tensor all(In x, const Axes& axes, ReduceOptions options = {});
#endif

namespace {

constexpr const char* operand_names[] = {"x"};

// --- types

DType accumulated_sum(DType d) { return compute_type(sum_type(d)); }
DType accumulated_mean(DType d) { return compute_type(floating_type(d)); }
DType accumulated_extreme(DType d) { return compute_type(d); }
DType accumulated_truth(DType) { return DType::bool_; }

void infer_reduce(InferCall& call, DType result) {
  const auto& attributes = call.attributes<ReduceAttributes>();
  std::vector<std::int64_t> asked(attributes.axes.begin(), attributes.axes.end());
  std::vector<int> axes = normalize_axes(asked, call.rank(0));
  // The callables count axes from 0 and sort them; lowering and gradients rely on it.
  call.require(axes == attributes.axes, "the axes of a reduction must be sorted and counted from 0");
  call.result(result, reduce(call.shape(0), axes, attributes.keepdims));
}

/// An extreme of nothing does not exist.
void infer_extreme(InferCall& call, DType result) {
  for (int axis : call.attributes<ReduceAttributes>().axes)
    call.check(0, Relation::less, call.shape(0)[axis], "an empty axis has no largest or smallest element",
               "make sure the axis has at least one element");
  infer_reduce(call, result);
}

// --- gradients

/// The gradient as if the reduction had kept its axes, so that it broadcasts against the operand.
Tensor kept(GradientCall& call, const Tensor& reduced) {
  const auto& attributes = call.attributes<ReduceAttributes>();
  if (attributes.keepdims) return reduced;
  std::vector<Dim> sizes;
  Shape shape = call.in(0).shape();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    bool gone = std::find(attributes.axes.begin(), attributes.axes.end(), axis) != attributes.axes.end();
    sizes.push_back(gone ? Dim(1) : shape[axis]);
  }
  return reshape(reduced, sizes);
}

Dim reduced_count(GradientCall& call) {
  Dim count = 1;
  for (int axis : call.attributes<ReduceAttributes>().axes) count = count * call.in(0).dim(axis);
  return count;
}

void gradient_of_extreme(GradientCall& call) {
  if (!call.wants(0)) return;
  // Equal extremes share the gradient equally, as in JAX.
  const auto& attributes = call.attributes<ReduceAttributes>();
  Tensor chosen = cast(equal(call.in(0), kept(call, call.out())), call.in(0).dtype());
  ReduceAttributes keep{attributes.axes, true, {}, {}, {}};
  Tensor share = stet::call(sum_row, {In(chosen)}, view_of(keep));
  call.set(0, chosen * (kept(call, call.d()) / share));
}

/// A factor's gradient is the product of the others: product / factor, but the quotient would be 0 / 0 where the factor
/// is zero. So zeros are counted apart: with none beside it a factor gets the product of all that are not zero; with
/// one it gets that times the zero, which is 0 with a gradient of its own.
void gradient_of_prod(GradientCall& call) {
  if (!call.wants(0)) return;
  const Tensor& x = call.in(0);
  ReduceAttributes keep{call.attributes<ReduceAttributes>().axes, true, {}, {}, {}};
  Tensor zero = equal(x, 0), factors = where(zero, 1, x), null = where(zero, x, 0);
  Tensor zeros_in_all = stet::call(sum_row, {In(zero)}, view_of(keep));
  Tensor others = zeros_in_all - cast(zero, zeros_in_all.dtype());
  Tensor other_null = stet::call(sum_row, {In(null)}, view_of(keep)) - null;
  Tensor rest = stet::call(prod_row, {In(factors)}, view_of(keep)) / factors;
  call.set(0, kept(call, call.d()) * where(equal(others, 0), rest, where(equal(others, 1), other_null * rest, 0)));
}

// --- samples

void samples_of_reduce(SampleList& list) {
  auto attributes = [](std::vector<int> axes, bool keepdims) {
    return ReduceAttributes{std::move(axes), keepdims, {}, {}, {}};
  };
  list.add({{{3, 4}}}, attributes({0, 1}, false))
      .add({{{7, 33}}}, attributes({1}, false))
      .add({{{33, 7}}}, attributes({0}, true))
      .add({{{2, 5, 37}}}, attributes({1}, false))
      .add({{{4, 3, 2, 5}}}, attributes({0, 2}, true))
      .add({{{1, 1}}}, attributes({0}, false))
      .add({{{}}}, attributes({}, false))
      .add({{{70001}}}, attributes({0}, false))
      .add({{{9001, 3}}}, attributes({0}, false));
}
void samples_with_empty(SampleList& list) {
  samples_of_reduce(list);
  ReduceAttributes attributes{{0}, false, {}, {}, {}};
  list.add({{{0, 4}}}, attributes);
}
void samples_of_sum(SampleList& list) { samples_with_empty(list.rounded(Rounding::sums)); }
void samples_of_mean(SampleList& list) { samples_of_reduce(list.rounded(Rounding::sums)); }
void samples_of_prod(SampleList& list) {
  samples_with_empty(list.rounded(Rounding::products));
  for (Sample& sample : list.samples) sample.inputs[0].draw = Draw::factors;
}
/// Marks of long lines, so that one false (or none true) among many decides; and elements that are their own result.
void samples_of_truth(SampleList& list) {
  samples_with_empty(list);
  ReduceAttributes first{{0}, false, {}, {}, {}}, both{{0, 1}, false, {}, {}, {}};
  list.add({{{2, 17}, -1, Draw::marks}}, both)
      .add({{{3, 16}, -1, Draw::marks}}, first)
      .add({{{1, 15}, -1, Draw::marks}}, first)
      .add({{{0, 0}}}, both);
}
void samples_of_position(SampleList& list) {
  auto attributes = [](int axis, bool keepdims) { return ReduceAttributes{{axis}, keepdims, {}, {}, {}}; };
  list.add({{{3, 4}}}, attributes(1, false))
      .add({{{33, 7}}}, attributes(0, true))
      .add({{{2, 70, 5}}}, attributes(1, false))
      .add({{{300}}}, attributes(0, false));
}
void errors_of_reduce(ErrorList& list) {
  auto attributes = [](std::vector<int> axes) { return ReduceAttributes{std::move(axes), false, {}, {}, {}}; };
  list.add("axis 2 is out of range", {{DType::f32, {3, 4}}}, attributes({2}))
      .add("axis -3 is out of range", {{DType::f32, {3, 4}}}, attributes({-3}))
      .add("axis 1 is named twice", {{DType::f32, {3, 4}}}, attributes({1, 1}));
}
void errors_of_extreme(ErrorList& list) {
  errors_of_reduce(list);
  ReduceAttributes attributes{{0}, false, {}, {}, {}};
  list.add("an empty axis has no largest or smallest element", {{DType::f32, {0, 4}}}, attributes);
}

}  // namespace

constinit const OpDef sum_row{.name = "sum",
                              .kind = Kind::reduce,
                              .summary = "Sum over axes.",
                              .operands = operand_names,
                              .infer = [](InferCall& c) { infer_reduce(c, sum_type(c.dtype(0))); },
                              .gradient =
                                  [](GradientCall& g) {
                                    if (g.wants(0)) g.set(0, broadcast_to(kept(g, g.d()), g.in(0).shape()));
                                  },
                              .samples = samples_of_sum,
                              .errors = errors_of_reduce,
                              .combine = Combine::sum,
                              .accumulator = accumulated_sum};

constinit const OpDef mean_row{.name = "mean",
                               .kind = Kind::reduce,
                               .summary = "Mean over axes.",
                               .operands = operand_names,
                               .infer = [](InferCall& c) { infer_reduce(c, floating_type(c.dtype(0))); },
                               .gradient =
                                   [](GradientCall& g) {
                                     if (g.wants(0))
                                       g.set(0, broadcast_to(kept(g, g.d()) / reduced_count(g), g.in(0).shape()));
                                   },
                               .samples = samples_of_mean,
                               .errors = errors_of_reduce,
                               .combine = Combine::sum,
                               .accumulator = accumulated_mean,
                               .divides_by_count = true};

constinit const OpDef prod_row{.name = "prod",
                               .kind = Kind::reduce,
                               .summary = "Product over axes.",
                               .operands = operand_names,
                               .infer = [](InferCall& c) { infer_reduce(c, sum_type(c.dtype(0))); },
                               .gradient = gradient_of_prod,
                               .samples = samples_of_prod,
                               .errors = errors_of_reduce,
                               .combine = Combine::product,
                               .accumulator = accumulated_sum};

constinit const OpDef max_row{.name = "max",
                              .kind = Kind::reduce,
                              .summary = "Largest element over axes.",
                              .operands = operand_names,
                              .infer = [](InferCall& c) { infer_extreme(c, c.dtype(0)); },
                              .gradient = gradient_of_extreme,
                              .samples = samples_of_reduce,
                              .errors = errors_of_extreme,
                              .combine = Combine::maximum,
                              .accumulator = accumulated_extreme};

constinit const OpDef min_row{.name = "min",
                              .kind = Kind::reduce,
                              .summary = "Smallest element over axes.",
                              .operands = operand_names,
                              .infer = [](InferCall& c) { infer_extreme(c, c.dtype(0)); },
                              .gradient = gradient_of_extreme,
                              .samples = samples_of_reduce,
                              .errors = errors_of_extreme,
                              .combine = Combine::minimum,
                              .accumulator = accumulated_extreme};

constinit const OpDef argmax_row{.name = "argmax",
                                 .kind = Kind::reduce,
                                 .summary = "Position of the largest element along an axis.",
                                 .operands = operand_names,
                                 .infer = [](InferCall& c) { infer_extreme(c, DType::i64); },
                                 .samples = samples_of_position,
                                 .errors = errors_of_extreme,
                                 .combine = Combine::argmax,
                                 .accumulator = accumulated_extreme};

constinit const OpDef argmin_row{.name = "argmin",
                                 .kind = Kind::reduce,
                                 .summary = "Position of the smallest element along an axis.",
                                 .operands = operand_names,
                                 .infer = [](InferCall& c) { infer_extreme(c, DType::i64); },
                                 .samples = samples_of_position,
                                 .errors = errors_of_extreme,
                                 .combine = Combine::argmin,
                                 .accumulator = accumulated_extreme};

constinit const OpDef any_row{.name = "any",
                              .kind = Kind::reduce,
                              .summary = "Whether any element over axes is not zero.",
                              .operands = operand_names,
                              .infer = [](InferCall& c) { infer_reduce(c, DType::bool_); },
                              .samples = samples_of_truth,
                              .errors = errors_of_reduce,
                              .combine = Combine::maximum,
                              .accumulator = accumulated_truth};

constinit const OpDef all_row{.name = "all",
                              .kind = Kind::reduce,
                              .summary = "Whether all elements over axes are not zero.",
                              .operands = operand_names,
                              .infer = [](InferCall& c) { infer_reduce(c, DType::bool_); },
                              .samples = samples_of_truth,
                              .errors = errors_of_reduce,
                              .combine = Combine::minimum,
                              .accumulator = accumulated_truth};

namespace {

/// `axes` absent: all of them.
Tensor reduced(const OpDef& row, const In& x, const Axes* axes, ReduceOptions options) {
  ReduceAttributes attributes;
  attributes.keepdims = options.keepdims;
  int rank = x.rank();
  bool undefined = x.kind() == In::Kind::tensor && !x.tensor().defined();
  if (!axes || undefined) {
    for (int axis = 0; axis < rank; ++axis) attributes.axes.push_back(axis);
  } else {
    try {
      attributes.axes = normalize_axes(axes->axes, rank);
    } catch (const Problem& problem) {
      throw_user_error(row.name, row.operands, {&x, 1}, problem, frame_name() ? frame_where() : x.where());
    }
  }
  return call(row, {x}, view_of(attributes));
}

}  // namespace

#define STET_REDUCTION(name)                                        \
  Tensor name(In x) { return reduced(name##_row, x, nullptr, {}); } \
  Tensor name(In x, const Axes& axes, ReduceOptions options) { return reduced(name##_row, x, &axes, options); }
STET_REDUCTION(sum)
STET_REDUCTION(mean)
STET_REDUCTION(prod)
STET_REDUCTION(max)
STET_REDUCTION(min)
STET_REDUCTION(any)
STET_REDUCTION(all)
#undef STET_REDUCTION

static Tensor flat(In x) { return x.rank() == 0 ? reshape(x, {1}) : reshape(x, {-1}); }

Tensor argmax(In x) {
  Frame frame("argmax", x.where());
  return argmax(flat(x), 0);
}
Tensor argmin(In x) {
  Frame frame("argmin", x.where());
  return argmin(flat(x), 0);
}
Tensor argmax(In x, int axis, ReduceOptions options) {
  Axes one(axis);
  return reduced(argmax_row, x, &one, options);
}
Tensor argmin(In x, int axis, ReduceOptions options) {
  Axes one(axis);
  return reduced(argmin_row, x, &one, options);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  Shape from = x.shape();
  int extra = from.rank() - shape.rank();
  ReduceAttributes attributes;
  attributes.keepdims = true;
  for (int axis = 0; axis < from.rank(); ++axis)
    if (axis < extra || is_repeated(shape[axis - extra], from[axis], {"gradient", "broadcast", {}}))
      attributes.axes.push_back(axis);
  Tensor summed = attributes.axes.empty() ? x : call(sum_row, {In(x)}, view_of(attributes));
  return extra > 0 ? reshape(summed, std::vector<Dim>(shape.begin(), shape.end())) : summed;
}

}  // namespace stet
