// Index ops: positions come from values, checked while the kernel runs.
#include "stet/compiler/lower.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
/// Slices of `x` along `axis`, chosen by integer `indices`; an index outside 0 to size-1 is a UserError.
STET_API Tensor gather(In x, In indices, int axis = 0);
struct OneHotOptions {
  DType dtype = DType::f32;
};
/// A new last axis of size `depth` with 1 at the index and 0 elsewhere; an index outside gives all zeros.
STET_API Tensor one_hot(In indices, const Dim& depth, OneHotOptions options = {});
/// `x` with `updates` added at `indices` along `axis`: what gather's gradient is. Repeated indices add up, in order.
STET_API Tensor scatter_add(In x, In indices, In updates, int axis = 0);
#endif

namespace {

struct GatherAttributes {
  int axis = 0;
  STET_ATTRIBUTES(axis)
};
struct OneHotAttributes {
  Dim depth = 0;
  DType dtype = DType::f32;
  STET_ATTRIBUTES(depth, dtype)
};

constexpr const char* gather_names[] = {"x", "indices"};
constexpr const char* one_hot_names[] = {"indices"};
constexpr const char* scatter_names[] = {"x", "indices", "updates"};

void require_indices(InferCall& call, int number) {
  call.require(is_integer(call.dtype(number)), text("'indices' are ", call.dtype(number), ", not integers"),
               "cast(indices, i64) first");
}

/// x's axes before `axis`, then the axes of indices, then x's axes after it.
Shape gathered(const Shape& x, const Shape& indices, int axis) {
  Shape out;
  for (int k = 0; k < axis; ++k) out.push_back(x[k]);
  for (const Dim& size : indices) out.push_back(size);
  for (int k = axis + 1; k < x.rank(); ++k) out.push_back(x[k]);
  return out;
}

void infer_gather(InferCall& call) {
  require_indices(call, 1);
  call.require(call.rank(0) >= 1, "a scalar has no axis to gather from");
  int axis = normalize_axis(call.attributes<GatherAttributes>().axis, call.rank(0));
  call.result(call.dtype(0), gathered(call.shape(0), call.shape(1), axis));
}

/// Accesses of gather and scatter: loops over [before…, indices…, after…].
struct IndexedLoops {
  std::vector<Loop> loops;
  Access indexed;  // of the tensor that is indexed, moved by operand 0
  Access indices;
  Access other;  // dense over all loops
};

IndexedLoops indexed_loops(const Place& x, const ValueType& x_type, const Place& indices, const ValueType& indices_type,
                           const Place& other, int axis) {
  IndexedLoops out;
  const Shape &shape = x_type.shape, &positions = indices_type.shape;
  Shape all = gathered(shape, positions, axis);
  for (const Dim& extent : all) out.loops.push_back({extent, false});
  std::vector<int> x_loops, index_loops, all_loops;
  for (int k = 0; k < shape.rank(); ++k) x_loops.push_back(k < axis ? k : k == axis ? -1 : k - 1 + positions.rank());
  for (int k = 0; k < positions.rank(); ++k) index_loops.push_back(axis + k);
  for (int k = 0; k < all.rank(); ++k) all_loops.push_back(k);
  out.indexed = LowerCall::access(x, x_type.dtype, x_loops, out.loops.size());
  out.indexed.indirections = {
      {.operand = 0, .stride = x.layout.strides[static_cast<std::size_t>(axis)], .extent = shape[axis], .check = 1}};
  out.indices = LowerCall::access(indices, indices_type.dtype, index_loops, out.loops.size());
  out.other = LowerCall::access(other, x_type.dtype, all_loops, out.loops.size());
  return out;
}

void lower_gather(LowerCall& call) {
  int axis = normalize_axis(call.attributes<GatherAttributes>().axis, call.in(0).shape.rank());
  IndexedLoops nest = indexed_loops(call.place(0), call.in(0), call.place(1), call.in(1), call.result(), axis);
  Kernel kernel;
  kernel.name = "gather";
  kernel.loops = nest.loops;
  kernel.operands = {nest.indices, nest.indexed};
  kernel.body = operand(1, call.in(0).dtype);
  kernel.result = nest.other;
  call.kernel(std::move(kernel), {{"indices", call.in(0).shape[axis]}});
}

void infer_scatter_add(InferCall& call) {
  require_indices(call, 1);
  call.require(call.rank(0) >= 1, "a scalar has no axis to scatter into");
  call.require(call.dtype(0) != DType::bool_, "scatter_add does not take bool", "cast(x, i32) first");
  call.require(call.dtype(0) == call.dtype(2), text("'x' is ", call.dtype(0), " and 'updates' are ", call.dtype(2)),
               "cast one of them first");
  int axis = normalize_axis(call.attributes<GatherAttributes>().axis, call.rank(0));
  Shape expected = gathered(call.shape(0), call.shape(1), axis);
  call.require(call.rank(2) == expected.rank(),
               text("'updates' have rank ", call.rank(2), ", not ", expected.rank(), " as ", expected));
  for (int k = 0; k < expected.rank(); ++k)
    call.require_equal(call.shape(2)[k], expected[k], text("sizes of axis ", k, " of 'updates' and what is indexed,"));
  call.result(call.dtype(0), call.shape(0));
}

void lower_scatter_add(LowerCall& call) {
  int axis = normalize_axis(call.attributes<GatherAttributes>().axis, call.in(0).shape.rank());
  const ValueType& x = call.in(0);
  DType computed = compute_type(x.dtype);
  // f16 and bf16 add in f32 and round once, so they accumulate in a buffer of their own.
  Place to = computed == x.dtype ? call.result() : call.temporary(computed, x.shape);
  AxisMap same[] = {identity_axes(x.shape.rank())};
  Place from[] = {call.place(0)};
  DType dtypes[] = {x.dtype};
  call.map(x.shape, from, dtypes, same, scalar::cast(operand(0, x.dtype), computed), to, "scatter_add");

  ValueType sums{computed, x.shape};
  IndexedLoops nest = indexed_loops(to, sums, call.place(1), call.in(1), call.place(2), axis);
  nest.other.dtype = x.dtype;
  Kernel kernel;
  kernel.name = "scatter_add";
  kernel.loops = nest.loops;
  kernel.operands = {nest.indices, nest.other};
  kernel.body = scalar::cast(operand(1, x.dtype), computed);
  kernel.result = nest.indexed;
  kernel.accumulate = true;
  if (axis == x.shape.rank() - 1) {
    // The innermost loop runs over indices, which may repeat: one element at a time.
    auto still = [](Access& access) { access.address.strides.push_back(Dim(0)); };
    kernel.loops.push_back({Dim(1), false});
    for (Access& access : kernel.operands) still(access);
    kernel.result.address.strides.push_back(Dim(1));
  }
  call.kernel(std::move(kernel), {{"indices", x.shape[axis]}});
  if (computed != x.dtype) {
    Place wide[] = {to};
    DType wide_dtypes[] = {computed};
    call.map(x.shape, wide, wide_dtypes, same, scalar::cast(operand(0, computed), x.dtype), call.result(), "round");
  }
}

void infer_one_hot(InferCall& call) {
  const auto& attributes = call.attributes<OneHotAttributes>();
  require_indices(call, 0);
  call.check(0, Relation::less_equal, attributes.depth, text("the depth ", attributes.depth, " is negative"));
  Shape result = call.shape(0);
  result.push_back(attributes.depth);
  call.result(attributes.dtype, result);
}

void lower_one_hot(LowerCall& call) {
  DType dtype = call.out().dtype;
  int rank = call.out().shape.rank();
  AxisMap axes = identity_axes(rank);
  axes.axes[static_cast<std::size_t>(rank - 1)] = -1;
  Expr hit = scalar::equal(scalar::cast(operand(0, call.in(0).dtype), DType::i64), loop_index(rank - 1));
  Place operands[] = {call.place(0)};
  DType dtypes[] = {call.in(0).dtype};
  AxisMap maps[] = {axes};
  call.map(call.out().shape, operands, dtypes, maps, scalar::cast(hit, dtype), call.result(), "one_hot");
}

}  // namespace

constinit const OpDef gather_row{
    .name = "gather",
    .kind = Kind::index,
    .summary = "Slices chosen by index.",
    .operands = gather_names,
    .infer = infer_gather,
    .lower = lower_gather,
    .gradient =
        [](GradientCall& g) {
          if (g.wants(0))
            g.set(0, scatter_add(zeros_like(g.in(0)), g.in(1), g.d(), g.attributes<GatherAttributes>().axis));
        },
    .samples =
        [](SampleList& s) {
          s.add({{{5, 3}}, {{4}, 5}}, GatherAttributes{0})
              .add({{{5, 40}}, {{2, 3}, 5}}, GatherAttributes{0})
              .add({{{4, 37}}, {{50}, 37}}, GatherAttributes{1})
              .add({{{2, 5, 3}}, {{}, 5}}, GatherAttributes{-2})
              .add({{{5, 3}}, {{0}, 5}}, GatherAttributes{0});
        },
    .errors =
        [](ErrorList& e) {
          e.add("'indices' are f32, not integers", {{DType::f32, {3, 4}}, {DType::f32, {2}}}, GatherAttributes{0})
              .add("axis 2 is out of range", {{DType::f32, {3, 4}}, {DType::i64, {2}}}, GatherAttributes{2})
              .add("a scalar has no axis", {{DType::f32, {}}, {DType::i64, {2}}}, GatherAttributes{0})
              .add("the axis it goes into is empty", {{DType::f32, {0, 4}}, {DType::i64, {2}}}, GatherAttributes{0});
        }};

constinit const OpDef scatter_add_row{
    .name = "scatter_add",
    .kind = Kind::index,
    .summary = "Slices added at indices.",
    .operands = scatter_names,
    .infer = infer_scatter_add,
    .lower = lower_scatter_add,
    .gradient =
        [](GradientCall& g) {
          if (g.wants(0)) g.set(0, g.d());
          if (g.wants(2)) g.set(2, gather(g.d(), g.in(1), g.attributes<GatherAttributes>().axis));
        },
    .samples =
        [](SampleList& s) {
          s.rounded(Rounding::sums)
              .add({{{5, 3}}, {{4}, 5}, {{4, 3}}}, GatherAttributes{0})
              .add({{{5, 40}}, {{2, 3}, 5}, {{2, 3, 40}}}, GatherAttributes{0})
              .add({{{7}}, {{50}, 7}, {{50}}}, GatherAttributes{0})
              .add({{{2, 5, 3}}, {{6}, 5}, {{2, 6, 3}}}, GatherAttributes{1})
              .add({{{5, 3}}, {{0}, 5}, {{0, 3}}}, GatherAttributes{0});
        },
    .errors =
        [](ErrorList& e) {
          e.add("'indices' are bool, not integers", {{DType::f32, {3}}, {DType::bool_, {2}}, {DType::f32, {2}}},
                GatherAttributes{0})
              .add("'updates' have rank 2, not 1", {{DType::f32, {3}}, {DType::i64, {2}}, {DType::f32, {2, 2}}},
                   GatherAttributes{0})
              .add("2 and 4 differ", {{DType::f32, {3, 4}}, {DType::i64, {2}}, {DType::f32, {2, 2}}},
                   GatherAttributes{0})
              .add("'x' is f32 and 'updates' are f64", {{DType::f32, {3}}, {DType::i64, {2}}, {DType::f64, {2}}},
                   GatherAttributes{0});
        }};

constinit const OpDef one_hot_row{
    .name = "one_hot",
    .kind = Kind::index,
    .summary = "1 at the index, 0 elsewhere.",
    .operands = one_hot_names,
    .infer = infer_one_hot,
    .lower = lower_one_hot,
    .samples =
        [](SampleList& s) {
          s.growing(Grows::everything)
              .add({{{4}, 5}}, OneHotAttributes{5, DType::f32})
              .add({{{2, 3}, 7}}, OneHotAttributes{5, DType::f32})
              .add({{{}, 3}}, OneHotAttributes{40, DType::f32})
              .add({{{3}, 3}}, OneHotAttributes{0, DType::f32});
        },
    .errors =
        [](ErrorList& e) {
          e.add("'indices' are f32, not integers", {{DType::f32, {3}}}, OneHotAttributes{5, DType::f32})
              .add("the depth -1 is negative", {{DType::i64, {3}}}, OneHotAttributes{-1, DType::f32});
        }};

Tensor gather(In x, In indices, int axis) { return call(gather_row, {x, indices}, view_of(GatherAttributes{axis})); }

Tensor scatter_add(In x, In indices, In updates, int axis) {
  return call(scatter_add_row, {x, indices, updates}, view_of(GatherAttributes{axis}));
}

Tensor one_hot(In indices, const Dim& depth, OneHotOptions options) {
  return call(one_hot_row, {indices}, view_of(OneHotAttributes{depth, options.dtype}));
}

}  // namespace stet
