// Index ops: positions come from values, checked while the kernel runs.
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
// --- choosing by position and by value

/// Slices of `x` along `axis`, chosen by integer `indices`; an index outside 0 to size-1 is a UserError.
/// Names: numpy.take, array_api.take, tf.gather
/// Example: gather(tensor({10, 20, 30}), tensor({2, 0}))
STET_API Tensor gather(In x, In indices, int axis = 0);
struct OneHotOptions {
  DType dtype = DType::f32;
};
/// A new last axis of size `depth` with 1 at the index and 0 elsewhere; an index outside gives all zeros.
/// Names: tf.one_hot, jax.nn.one_hot
/// Example: one_hot(tensor({2, 0}), 3)
STET_API Tensor one_hot(In indices, const Dim& depth, OneHotOptions options = {});
/// Elements of `x` at `indices` along an axis: result[i, j] = x[indices[i, j], j] for axis 0. `indices` have as many
/// axes as x and its sizes, but for the axis; an index outside 0 to size-1 is a UserError.
/// Names: numpy.take_along_axis, array_api.take_along_axis, torch.gather
/// Example: take_along_axis(tensor({{10, 20}, {30, 40}}), tensor({{1, 0}}), 0)
STET_API Tensor take_along_axis(In x, In indices, int axis = -1);
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

/// Operand 0, whose axis is moved along by the value of the kernel's operand 0.
Access indexed_access(LowerCall& call, const std::vector<int>& loops, int axis, std::size_t loop_count) {
  const Place& x = call.place(0);
  Access out = LowerCall::access(x, call.in(0).dtype, loops, loop_count);
  out.indirections = {{.operand = 0,
                       .stride = x.layout.strides[static_cast<std::size_t>(axis)],
                       .extent = call.in(0).shape[axis],
                       .check = 1}};
  return out;
}

/// Loops over [before…, indices…, after…].
void lower_gather(LowerCall& call) {
  const ValueType &x = call.in(0), &indices = call.in(1);
  int axis = normalize_axis(call.attributes<GatherAttributes>().axis, x.shape.rank()), more = indices.shape.rank();
  Kernel kernel;
  kernel.name = "gather";
  Shape all = gathered(x.shape, indices.shape, axis);
  for (const Dim& extent : all) kernel.loops.push_back({extent, false});
  std::vector<int> x_loops, index_loops, all_loops;
  for (int k = 0; k < x.shape.rank(); ++k) x_loops.push_back(k < axis ? k : k == axis ? -1 : k - 1 + more);
  for (int k = 0; k < more; ++k) index_loops.push_back(axis + k);
  for (int k = 0; k < all.rank(); ++k) all_loops.push_back(k);
  std::size_t loops = kernel.loops.size();
  // Dense: an index that is out of range is named by its position among them.
  kernel.operands = {LowerCall::access(call.dense(1), indices.dtype, index_loops, loops),
                     indexed_access(call, x_loops, axis, loops)};
  kernel.body = operand(1, x.dtype);
  kernel.result = LowerCall::access(call.result(), x.dtype, all_loops, loops);
  call.kernel(std::move(kernel), {{"indices", x.shape[axis]}});
}

// --- take_along_axis

void infer_take_along_axis(InferCall& call) {
  require_indices(call, 1);
  call.require(call.rank(0) >= 1, "a scalar has no axis to take from");
  call.require(call.rank(1) == call.rank(0),
               text("'indices' have rank ", call.rank(1), ", not ", call.rank(0), " as 'x'"),
               "gather() takes whole slices by indices of any rank");
  int axis = normalize_axis(call.attributes<GatherAttributes>().axis, call.rank(0));
  for (int k = 0; k < call.rank(0); ++k)
    if (k != axis)
      call.require_equal(call.shape(0)[k], call.shape(1)[k], text("sizes of axis ", k, " of 'x' and 'indices',"));
  call.result(call.dtype(0), call.shape(1));
}

void lower_take_along_axis(LowerCall& call) {
  const ValueType& x = call.in(0);
  int axis = normalize_axis(call.attributes<GatherAttributes>().axis, x.shape.rank());
  Kernel kernel;
  kernel.name = "take_along_axis";
  std::vector<int> x_loops, loops_of_indices;
  for (int k = 0; k < x.shape.rank(); ++k) {
    kernel.loops.push_back({call.in(1).shape[k], false});
    x_loops.push_back(k == axis ? -1 : k);
    loops_of_indices.push_back(k);
  }
  std::size_t loops = kernel.loops.size();
  kernel.operands = {LowerCall::access(call.dense(1), call.in(1).dtype, loops_of_indices, loops),
                     indexed_access(call, x_loops, axis, loops)};
  kernel.body = operand(1, x.dtype);
  kernel.result = LowerCall::access(call.result(), x.dtype, loops_of_indices, loops);
  call.kernel(std::move(kernel), {{"indices", x.shape[axis]}});
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

void batch_gather(BatchCall& call) {
  const int axis = normalize_axis(call.attributes<GatherAttributes>().axis, call.rank(0));
  const Shape x = call.shape(0), indices = call.shape(1);
  if (!call.has_batch(1)) {
    call.set(call.call({call.in(0), call.in(1)}, view_of(GatherAttributes{axis + 1})));
  } else if (!call.has_batch(0)) {
    Tensor chosen = call.call({call.in(0), call.in(1)}, view_of(GatherAttributes{axis}))[0];
    call.set({moved_axis(chosen, axis, 0)});
  } else {
    // Every example's indices along the axis of its own slices.
    std::vector<Dim> line{call.size()}, whole{call.size()};
    for (int k = 0; k < x.rank(); ++k) {
      line.push_back(k == axis ? indices.element_count() : Dim(1));
      whole.push_back(k == axis ? indices.element_count() : x[k]);
    }
    Tensor places = broadcast_to(reshape(call.in(1), line), Shape(whole));
    call.set({reshape(take_along_axis(call.in(0), places, axis + 1), call.sizes_with_batch(call.result_shape()))});
  }
}
void batch_take_along_axis(BatchCall& call) {
  GatherAttributes attributes{BatchCall::shifted(call.attributes<GatherAttributes>().axis)};
  call.set(call.call({call.with_batch(0), call.with_batch(1)}, view_of(attributes)));
}
void batch_one_hot(BatchCall& call) { call.set(call.call({call.in(0)}, call.attributes_view())); }

}  // namespace

constinit const AttributeCodec gather_codec = attribute_codec<GatherAttributes>;
constinit const AttributeCodec one_hot_codec = attribute_codec<OneHotAttributes>;

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
        },
    .batch = batch_gather};

constinit const OpDef take_along_axis_row{
    .name = "take_along_axis",
    .kind = Kind::index,
    .summary = "Elements chosen by index along an axis.",
    .operands = gather_names,
    .infer = infer_take_along_axis,
    .lower = lower_take_along_axis,
    .gradient =
        [](GradientCall& g) {
          if (!g.wants(0)) return;
          const int axis = normalize_axis(g.attributes<GatherAttributes>().axis, g.in(0).rank());
          // One element along the axis: where it was taken from is a question to every element, which whoever uses the
          // answer can ask itself; updates would have to be written into zeros first.
          if (InferCall::always(g.in(1).dim(axis), Relation::equal, 1)) {
            const DType value = g.d().dtype(), index = g.in(1).dtype();
            Expr here = scalar::equal(loop_index(axis), scalar::cast(operand(1, index), DType::i64));
            const Tensor d = broadcast_to(g.d(), g.in(0).shape());
            const In operands[] = {d, g.in(1)};
            g.set(0, call_map(scalar::select(here, operand(0, value), constant(0.0, value)), operands));
            return;
          }
          g.set(0, put_along_axis(zeros_like(g.in(0)), g.in(1), g.d(), axis, {.combine = ScatterCombine::add}));
        },
    .samples =
        [](SampleList& s) {
          s.add({{{5, 3}}, {{4, 3}, 5}}, GatherAttributes{0})
              .add({{{2, 37}}, {{2, 50}, 37}}, GatherAttributes{-1})
              .add({{{2, 5, 18}}, {{2, 3, 18}, 5}}, GatherAttributes{1})
              .add({{{1}}, {{1}, 1}}, GatherAttributes{0})
              .add({{{5, 3}}, {{0, 3}, 5}}, GatherAttributes{0});
        },
    .errors =
        [](ErrorList& e) {
          e.add("'indices' are f32, not integers", {{DType::f32, {3}}, {DType::f32, {2}}}, GatherAttributes{0})
              .add("'indices' have rank 1, not 2 as 'x'", {{DType::f32, {3, 4}}, {DType::i64, {2}}},
                   GatherAttributes{0})
              .add("4 and 2 differ", {{DType::f32, {3, 4}}, {DType::i64, {2, 2}}}, GatherAttributes{0})
              .add("the axis it goes into is empty", {{DType::f32, {0, 4}}, {DType::i64, {2, 4}}}, GatherAttributes{0});
        },
    .batch = batch_take_along_axis};

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
        },
    .batch = batch_one_hot};

Tensor gather(In x, In indices, int axis) { return call(gather_row, {x, indices}, view_of(GatherAttributes{axis})); }

Tensor take_along_axis(In x, In indices, int axis) {
  return call(take_along_axis_row, {x, indices}, view_of(GatherAttributes{axis}));
}

Tensor one_hot(In indices, const Dim& depth, OneHotOptions options) {
  return call(one_hot_row, {indices}, view_of(OneHotAttributes{depth, options.dtype}));
}

}  // namespace stet
