// Scatters: values that go to places chosen by indices, combined with what is there.
#include <algorithm>

#include "stet/compiler/lower.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- putting and counting by position

/// What becomes of what was there: replaced, added to, multiplied, or the smaller or larger of both.
enum class ScatterCombine : std::uint8_t { update, add, multiply, min, max };

/// `x` with slices of `updates` at `indices` along `axis` instead of what was there; of repeated indices the last wins.
/// An index outside 0 to size-1 is a UserError.
/// Names: tf.tensor_scatter_nd_update, torch.index_copy
/// Example: scatter_update(tensor({1, 2, 3}), tensor({2, 0}), tensor({30, 10}))
STET_API Tensor scatter_update(In x, In indices, In updates, int axis = 0);
/// `x` with `updates` added at `indices` along `axis`: what gather's gradient is. Repeated indices add up, in order.
/// Names: numpy.add.at, tf.tensor_scatter_nd_add, torch.index_add
/// Example: scatter_add(tensor({1, 2, 3}), tensor({2, 2}), tensor({30, 10}))
STET_API Tensor scatter_add(In x, In indices, In updates, int axis = 0);
/// `x` multiplied by `updates` at `indices` along `axis`.
/// Names: numpy.multiply.at
/// Example: scatter_multiply(tensor({1, 2, 3}), tensor({2, 2}), tensor({3, 10}))
STET_API Tensor scatter_multiply(In x, In indices, In updates, int axis = 0);
/// The smaller of `x` and `updates` at `indices` along `axis`; NaN if one is.
/// Names: numpy.minimum.at, tf.tensor_scatter_nd_min
/// Example: scatter_min(tensor({1, 2, 3}), tensor({2, 2}), tensor({7, 0}))
STET_API Tensor scatter_min(In x, In indices, In updates, int axis = 0);
/// The larger of `x` and `updates` at `indices` along `axis`; NaN if one is.
/// Names: numpy.maximum.at, tf.tensor_scatter_nd_max
/// Example: scatter_max(tensor({1, 2, 3}), tensor({2, 2}), tensor({7, 0}))
STET_API Tensor scatter_max(In x, In indices, In updates, int axis = 0);

struct PutOptions {
  ScatterCombine combine = ScatterCombine::update;
};
/// `x` with `values` at `indices` along an axis, element by element: result[indices[i, j], j] = values[i, j] for axis
/// 0. `indices` and `values` have x's sizes, but for the axis.
/// Names: numpy.put_along_axis, torch.scatter
/// Example: put_along_axis(tensor({{1, 2}, {3, 4}}), tensor({{1, 0}}), tensor({{30, 20}}), 0)
STET_API Tensor put_along_axis(In x, In indices, In values, int axis = -1, PutOptions options = {});
#endif

namespace {

constexpr const char* scatter_names[] = {"x", "indices", "updates"};
constexpr const char* put_names[] = {"x", "indices", "values"};

struct ScatterAttributes {
  int axis = 0;
  Combine combine = Combine::none;
  STET_ATTRIBUTES(axis, combine)
};

Combine combine_of(ScatterCombine combine) {
  static constexpr Combine table[] = {Combine::none, Combine::sum, Combine::product, Combine::minimum,
                                      Combine::maximum};
  return table[static_cast<int>(combine)];
}
// --- inference

void infer_values(InferCall& call, const char* values, const Shape& expected) {
  const auto& attributes = call.attributes<ScatterAttributes>();
  call.require(is_integer(call.dtype(1)), text("'indices' are ", call.dtype(1), ", not integers"),
               "cast(indices, i64) first");
  call.require(call.dtype(0) != DType::bool_ || attributes.combine == Combine::none,
               text("bool cannot be combined by ", name(attributes.combine)), "cast(x, i32) first");
  call.require(call.dtype(0) == call.dtype(2),
               text("'x' is ", call.dtype(0), " and '", values, "' are ", call.dtype(2)), "cast one of them first");
  call.require(call.rank(2) == expected.rank(),
               text("'", values, "' have rank ", call.rank(2), ", not ", expected.rank(), " as ", expected));
  for (int k = 0; k < expected.rank(); ++k)
    call.require_equal(call.shape(2)[k], expected[k],
                       text("sizes of axis ", k, " of '", values, "' and what is indexed,"));
  call.result(call.dtype(0), call.shape(0));
}

void infer_scatter(InferCall& call) {
  call.require(call.rank(0) >= 1, "a scalar has no axis to scatter into");
  int axis = normalize_axis(call.attributes<ScatterAttributes>().axis, call.rank(0));
  Shape expected;
  for (int k = 0; k < axis; ++k) expected.push_back(call.shape(0)[k]);
  for (const Dim& size : call.shape(1)) expected.push_back(size);
  for (int k = axis + 1; k < call.rank(0); ++k) expected.push_back(call.shape(0)[k]);
  infer_values(call, "updates", expected);
}

void infer_put(InferCall& call) {
  call.require(call.rank(0) >= 1, "a scalar has no axis to put into");
  call.require(call.rank(1) == call.rank(0),
               text("'indices' have rank ", call.rank(1), ", not ", call.rank(0), " as 'x'"),
               "scatter_update() puts whole slices by indices of any rank");
  int axis = normalize_axis(call.attributes<ScatterAttributes>().axis, call.rank(0));
  for (int k = 0; k < call.rank(0); ++k)
    if (k != axis)
      call.require_equal(call.shape(0)[k], call.shape(1)[k], text("sizes of axis ", k, " of 'x' and 'indices',"));
  infer_values(call, "values", call.shape(1));
}

// --- lowering

/// `strides`: of the dense indices over [outer, count, inner]. f16 and bf16 are combined in f32 and rounded once, so
/// they have a buffer of their own.
void lower_to_scatter(LowerCall& call, int axis, const Dim& count, std::vector<Dim> strides) {
  const ValueType& x = call.in(0);
  ScatterSpec spec;
  spec.combine = call.attributes<ScatterAttributes>().combine;
  spec.dtype = spec.combine == Combine::none ? x.dtype : compute_type(x.dtype);
  auto converted = [&](const Place& from, DType type, const Shape& shape, const Place& to, DType to_type) {
    AxisMap same[] = {identity_axes(shape.rank())};
    Place operands[] = {from};
    DType dtypes[] = {type};
    call.map(shape, operands, dtypes, same, scalar::cast(operand(0, type), to_type), to, call.node().op->name);
  };
  bool wide = spec.dtype != x.dtype;
  Place to = wide ? call.temporary(spec.dtype, x.shape) : call.result();
  converted(call.place(0), x.dtype, x.shape, to, spec.dtype);
  Place updates = wide ? call.temporary(spec.dtype, call.in(2).shape) : call.dense(2);
  if (wide) converted(call.place(2), x.dtype, call.in(2).shape, updates, spec.dtype);
  Place indices = call.dense(1);
  spec.lines = lines_of(x.shape, axis);
  spec.count = count;
  spec.index_type = call.in(1).dtype;
  spec.indices = indices.buffer;
  spec.index_layout = {0, std::move(strides)};
  spec.index_extent = call.elements(indices);
  spec.updates = updates.buffer;
  spec.result = to.buffer;
  DType computed = spec.dtype;
  call.step(call.target().scatter(std::move(spec), call.check("indices", x.shape[axis])));
  if (wide) converted(to, computed, x.shape, call.result(), x.dtype);
}

void lower_scatter(LowerCall& call) {
  int axis = normalize_axis(call.attributes<ScatterAttributes>().axis, call.in(0).shape.rank());
  lower_to_scatter(call, axis, call.in(1).shape.element_count(), {0, 1, 0});
}

void lower_put(LowerCall& call) {
  int axis = normalize_axis(call.attributes<ScatterAttributes>().axis, call.in(0).shape.rank());
  Lines lines = lines_of(call.in(1).shape, axis);
  lower_to_scatter(call, axis, lines.length, {lines.length * lines.inner, lines.inner, 1});
}

// --- gradients

/// How to gather from, and scatter into, what a row scatters into.
struct Indexing {
  const GradientCall& g;
  bool along = false;  // put_along_axis
  int axis = g.attributes<ScatterAttributes>().axis;

  Tensor gathered(const Tensor& from) const {
    return along ? take_along_axis(from, g.in(1), axis) : gather(from, g.in(1), axis);
  }
  Tensor scattered(const Tensor& into, const Tensor& updates, ScatterCombine combine) const {
    if (along) return put_along_axis(into, g.in(1), updates, axis, {.combine = combine});
    switch (combine) {
      case ScatterCombine::add:
        return scatter_add(into, g.in(1), updates, axis);
      case ScatterCombine::multiply:
        return scatter_multiply(into, g.in(1), updates, axis);
      default:
        return scatter_update(into, g.in(1), updates, axis);
    }
  }
};

/// What was replaced has no gradient, and of updates to one place the last alone.
void gradient_of_update(GradientCall& g, const Indexing& by) {
  const Tensor &x = g.in(0), &updates = g.in(2);
  if (g.wants(0)) g.set(0, by.scattered(g.d(), zeros_like(updates), ScatterCombine::update));
  if (!g.wants(2)) return;
  Tensor number = reshape(arange(updates.size()), updates.shape());
  Tensor last = by.gathered(by.scattered(cast(zeros_like(x), DType::i64) - 1, number, ScatterCombine::update));
  g.set(2, where(equal(last, number), by.gathered(g.d()), 0));
}

/// The product of the others, as in prod: zeros are counted apart.
void gradient_of_multiply(GradientCall& g, const Indexing& by) {
  const Tensor &x = g.in(0), &updates = g.in(2);
  Tensor ones = ones_like(x);
  if (g.wants(0)) g.set(0, g.d() * by.scattered(ones, updates, ScatterCombine::multiply));
  if (!g.wants(2)) return;
  Tensor zero = equal(updates, 0), factors = where(zero, 1, updates), null = where(zero, updates, 0);
  Tensor product = by.scattered(ones, factors, ScatterCombine::multiply);
  Tensor zeros_there = by.scattered(cast(zeros_like(x), DType::i32), cast(zero, DType::i32), ScatterCombine::add);
  Tensor others = by.gathered(zeros_there) - cast(zero, DType::i32);
  Tensor other_null = by.gathered(by.scattered(zeros_like(x), null, ScatterCombine::add)) - null;
  Tensor rest = by.gathered(g.d() * x * product) / factors;
  g.set(2, where(equal(others, 0), rest, where(equal(others, 1), other_null * rest, 0)));
}

/// Equal extremes share the gradient equally, as in max.
void gradient_of_extreme(GradientCall& g, const Indexing& by) {
  const Tensor &x = g.in(0), &updates = g.in(2);
  Tensor kept = cast(equal(x, g.out()), x.dtype()), taken = cast(equal(updates, by.gathered(g.out())), x.dtype());
  Tensor share = g.d() / by.scattered(kept, taken, ScatterCombine::add);
  if (g.wants(0)) g.set(0, kept * share);
  if (g.wants(2)) g.set(2, taken * by.gathered(share));
}

void gradient_by(GradientCall& g, const Indexing& by) {
  switch (g.attributes<ScatterAttributes>().combine) {
    case Combine::sum:
      if (g.wants(0)) g.set(0, g.d());
      if (g.wants(2)) g.set(2, by.gathered(g.d()));
      break;
    case Combine::product:
      gradient_of_multiply(g, by);
      break;
    case Combine::none:
      gradient_of_update(g, by);
      break;
    default:
      gradient_of_extreme(g, by);
  }
}
void gradient_of_scatter(GradientCall& g) { gradient_by(g, {g, false}); }
void gradient_of_put(GradientCall& g) { gradient_by(g, {g, true}); }

// --- samples

template <Combine combine>
void samples_of_scatter(SampleList& list) {
  Draw draw = combine == Combine::product ? Draw::factors : Draw::plain;
  list.rounded(combine == Combine::sum       ? Rounding::sums
               : combine == Combine::product ? Rounding::products
                                             : Rounding::exact)
      .add({{{5, 3}, -1, draw}, {{4}, 5}, {{4, 3}, -1, draw}}, ScatterAttributes{0, combine})
      .add({{{5, 40}, -1, draw}, {{2, 3}, 5}, {{2, 3, 40}, -1, draw}}, ScatterAttributes{0, combine})
      .add({{{7}, -1, draw}, {{50}, 7}, {{50}, -1, draw}}, ScatterAttributes{0, combine})
      .add({{{2, 5, 3}, -1, draw}, {{6}, 5}, {{2, 6, 3}, -1, draw}}, ScatterAttributes{1, combine})
      .add({{{2, 5}, -1, draw}, {{}, 5}, {{2}, -1, draw}}, ScatterAttributes{-1, combine})
      .add({{{5, 3}, -1, draw}, {{0}, 5}, {{0, 3}, -1, draw}}, ScatterAttributes{0, combine});
}

template <Combine combine>
void errors_of_scatter(ErrorList& list) {
  ScatterAttributes first{0, combine};
  list.add("'indices' are bool, not integers", {{DType::f32, {3}}, {DType::bool_, {2}}, {DType::f32, {2}}}, first)
      .add("'updates' have rank 2, not 1", {{DType::f32, {3}}, {DType::i64, {2}}, {DType::f32, {2, 2}}}, first)
      .add("2 and 4 differ", {{DType::f32, {3, 4}}, {DType::i64, {2}}, {DType::f32, {2, 2}}}, first)
      .add("'x' is f32 and 'updates' are f64", {{DType::f32, {3}}, {DType::i64, {2}}, {DType::f64, {2}}}, first)
      .add("the axis it goes into is empty", {{DType::f32, {0}}, {DType::i64, {2}}, {DType::f32, {2}}}, first)
      .add("axis 1 is out of range", {{DType::f32, {3}}, {DType::i64, {2}}, {DType::f32, {2}}},
           ScatterAttributes{1, combine});
}

void samples_of_put(SampleList& list) {
  for (Combine combine : {Combine::none, Combine::sum, Combine::product, Combine::maximum, Combine::minimum}) {
    Draw draw = combine == Combine::product ? Draw::factors : Draw::plain;
    list.rounded(combine == Combine::sum       ? Rounding::sums
                 : combine == Combine::product ? Rounding::products
                                               : Rounding::exact)
        .add({{{5, 3}, -1, draw}, {{4, 3}, 5}, {{4, 3}, -1, draw}}, ScatterAttributes{0, combine})
        .add({{{2, 7}, -1, draw}, {{2, 40}, 7}, {{2, 40}, -1, draw}}, ScatterAttributes{-1, combine})
        .add({{{2, 5, 18}, -1, draw}, {{2, 3, 18}, 5}, {{2, 3, 18}, -1, draw}}, ScatterAttributes{1, combine});
  }
  list.add({{{5, 3}}, {{0, 3}, 5}, {{0, 3}}}, ScatterAttributes{0, Combine::none});
}

void batch_scatter(BatchCall& call) {
  if (call.has_batch(1)) return;
  ScatterAttributes attributes = call.attributes<ScatterAttributes>();
  attributes.axis = BatchCall::shifted(attributes.axis);
  call.set(call.call({call.with_batch(0), call.in(1), call.with_batch(2)}, view_of(attributes)));
}
void batch_put(BatchCall& call) {
  ScatterAttributes attributes = call.attributes<ScatterAttributes>();
  attributes.axis = BatchCall::shifted(attributes.axis);
  call.set(call.call({call.with_batch(0), call.with_batch(1), call.with_batch(2)}, view_of(attributes)));
}

}  // namespace

// clang-format off
#define STET_SCATTER(name_, combine_, summary_)                                                        \
  .name = #name_, .kind = Kind::index, .summary = summary_, .operands = scatter_names,                 \
  .infer = infer_scatter, .lower = lower_scatter, .gradient = gradient_of_scatter,                     \
  .samples = samples_of_scatter<combine_>, .errors = errors_of_scatter<combine_>,     \
  .batch = batch_scatter
constinit const AttributeCodec scatter_codec = attribute_codec<ScatterAttributes>;

constinit const OpDef scatter_update_row{STET_SCATTER(scatter_update, Combine::none, "Slices put at indices.")};
constinit const OpDef scatter_add_row{STET_SCATTER(scatter_add, Combine::sum, "Slices added at indices.")};
constinit const OpDef scatter_multiply_row{STET_SCATTER(scatter_multiply, Combine::product, "Slices multiplied at indices.")};
constinit const OpDef scatter_min_row{STET_SCATTER(scatter_min, Combine::minimum, "The smaller of slices at indices.")};
constinit const OpDef scatter_max_row{STET_SCATTER(scatter_max, Combine::maximum, "The larger of slices at indices.")};
// clang-format on
#undef STET_SCATTER

constinit const OpDef put_along_axis_row{
    .name = "put_along_axis",
    .kind = Kind::index,
    .summary = "Elements put at indices along an axis.",
    .operands = put_names,
    .infer = infer_put,
    .lower = lower_put,
    .gradient = gradient_of_put,
    .samples = samples_of_put,
    .errors =
        [](ErrorList& e) {
          ScatterAttributes first{0, Combine::none};
          e.add("'indices' are f32, not integers", {{DType::f32, {3}}, {DType::f32, {2}}, {DType::f32, {2}}}, first)
              .add("'indices' have rank 1, not 2 as 'x'", {{DType::f32, {3, 4}}, {DType::i64, {4}}, {DType::f32, {4}}},
                   first)
              .add("4 and 2 differ", {{DType::f32, {3, 4}}, {DType::i64, {2, 2}}, {DType::f32, {2, 2}}}, first)
              .add("'x' is f32 and 'values' are i32", {{DType::f32, {3}}, {DType::i64, {2}}, {DType::i32, {2}}}, first);
        },
    .batch = batch_put};

namespace {

Tensor scattered(const OpDef& row, const In& x, const In& indices, const In& updates, int axis, Combine combine) {
  return call(row, {x, indices, updates}, view_of(ScatterAttributes{axis, combine}));
}

}  // namespace

Tensor scatter_update(In x, In indices, In updates, int axis) {
  return scattered(scatter_update_row, x, indices, updates, axis, Combine::none);
}
Tensor scatter_add(In x, In indices, In updates, int axis) {
  return scattered(scatter_add_row, x, indices, updates, axis, Combine::sum);
}
Tensor scatter_multiply(In x, In indices, In updates, int axis) {
  return scattered(scatter_multiply_row, x, indices, updates, axis, Combine::product);
}
Tensor scatter_min(In x, In indices, In updates, int axis) {
  return scattered(scatter_min_row, x, indices, updates, axis, Combine::minimum);
}
Tensor scatter_max(In x, In indices, In updates, int axis) {
  return scattered(scatter_max_row, x, indices, updates, axis, Combine::maximum);
}

Tensor put_along_axis(In x, In indices, In values, int axis, PutOptions options) {
  return scattered(put_along_axis_row, x, indices, values, axis, combine_of(options.combine));
}

}  // namespace stet
