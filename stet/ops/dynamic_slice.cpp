// Slices that begin where values say.
#include "stet/compiler/lower.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/composite.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- choosing by position and by value

/// The block of `size` elements along each axis that begins at `begin`, an integer tensor with one position per axis. A
/// block that would reach beyond the tensor begins as much earlier as it must, as in JAX.
/// Names: jax.lax.dynamic_slice, tf.slice
/// Example: dynamic_slice(tensor({10, 20, 30, 40}), tensor({1}), {2})
STET_API Tensor dynamic_slice(In x, In begin, const std::vector<Dim>& size);
/// `x` with the block `update` at `begin`, moved into the tensor as in dynamic_slice.
/// Names: jax.lax.dynamic_update_slice
/// Example: dynamic_update_slice(tensor({10, 20, 30, 40}), tensor({7, 8}), tensor({1}))
STET_API Tensor dynamic_update_slice(In x, In update, In begin);
#endif

namespace {

constexpr const char* slice_names[] = {"x", "begin"};
constexpr const char* update_names[] = {"x", "update", "begin"};

struct DynamicSliceAttributes {
  std::vector<Dim> size;
  STET_ATTRIBUTES(size)
};

void check_block(InferCall& call, int begin, const Shape& x, std::span<const Dim> size) {
  call.require(is_integer(call.dtype(begin)), text("'begin' is ", call.dtype(begin), ", not integers"),
               "cast(begin, i64) first");
  call.require(call.rank(begin) == 1, text("'begin' has rank ", call.rank(begin), ", not 1"),
               "give one position for each axis");
  call.require_equal(call.shape(begin)[0], x.rank(), "positions in 'begin' and axes of 'x',");
  call.require(static_cast<int>(size.size()) == x.rank(),
               text("a size for ", size.size(), " axes, 'x' has ", x.rank()));
  for (int axis = 0; axis < x.rank(); ++axis) {
    const Dim& wanted = size[static_cast<std::size_t>(axis)];
    SizedText problem = sized_text("a block of ", wanted, " elements in axis ", axis, " of size ", x[axis]);
    call.check(0, Relation::less_equal, wanted, problem);
    call.check(wanted, Relation::less_equal, x[axis], problem, "a block is no larger than the tensor");
  }
}

void infer_slice(InferCall& call) {
  const auto& a = call.attributes<DynamicSliceAttributes>();
  check_block(call, 1, call.shape(0), a.size);
  call.result(call.dtype(0), Shape(std::span<const Dim>(a.size)));
}
void infer_update(InferCall& call) {
  call.require(call.dtype(0) == call.dtype(1), text("'x' is ", call.dtype(0), " and 'update' is ", call.dtype(1)),
               "cast one of them first");
  call.require(call.rank(0) == call.rank(1), text("'x' has rank ", call.rank(0), " and 'update' ", call.rank(1)));
  check_block(call, 2, call.shape(0), call.shape(1).dims());
  call.result(call.dtype(0), call.shape(0));
}

/// Where the block begins, within the tensor: one i64 per axis.
Place moved_begin(LowerCall& call, int number, const Shape& x, const Shape& block) {
  Place out = call.temporary(DType::i64, Shape{x.rank()});
  Place from = call.place(number);
  for (int axis = 0; axis < x.rank(); ++axis) {
    Kernel kernel;
    kernel.name = "begin";
    Access read = LowerCall::access(from, call.in(number).dtype, {}, 0);
    read.address.offset = read.address.offset + from.layout.strides[0] * axis;
    Access room;
    room.source = Access::number;
    room.dtype = DType::i64;
    room.address.offset = x[axis] - block[axis];
    kernel.operands = {read, room};
    Expr at = scalar::cast(operand(0, call.in(number).dtype), DType::i64);
    kernel.body = scalar::minimum(scalar::maximum(at, 0), operand(1, DType::i64));
    kernel.result = LowerCall::access(out, DType::i64, {}, 0);
    kernel.result.address.offset = kernel.result.address.offset + axis;
    call.kernel(std::move(kernel));
  }
  return out;
}

/// The block in the place of x, moved along every axis by a value.
void copy_block(LowerCall& call, const Place& begin, const Place& x, const Shape& whole, const Place& block,
                const Shape& shape, DType dtype, bool into) {
  Kernel kernel;
  kernel.name = call.node().op->name;
  std::vector<int> loops;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    kernel.loops.push_back({shape[axis], false});
    loops.push_back(axis);
  }
  std::size_t count = kernel.loops.size();
  Access moved = LowerCall::access(x, dtype, loops, count);
  std::vector<KernelCheck> checks;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    Access at = LowerCall::access(begin, DType::i64, {}, count);
    at.address.offset = at.address.offset + axis;
    kernel.operands.push_back(at);
    moved.indirections.push_back({.operand = axis,
                                  .stride = x.layout.strides[static_cast<std::size_t>(axis)],
                                  .extent = whole[axis] - shape[axis] + 1,
                                  .check = axis + 1});
    checks.push_back({"begin", whole[axis] - shape[axis] + 1});
  }
  Access dense = LowerCall::access(block, dtype, loops, count);
  kernel.operands.push_back(into ? dense : moved);
  kernel.result = into ? moved : dense;
  kernel.body = operand(static_cast<int>(kernel.operands.size()) - 1, dtype);
  call.kernel(std::move(kernel), std::move(checks));
}

void lower_slice(LowerCall& call) {
  const Shape &x = call.in(0).shape, &block = call.out().shape;
  Place begin = moved_begin(call, 1, x, block);
  copy_block(call, begin, call.place(0), x, call.result(), block, call.in(0).dtype, false);
}

void lower_update(LowerCall& call) {
  const ValueType& x = call.in(0);
  const Shape& block = call.in(1).shape;
  Place begin = moved_begin(call, 2, x.shape, block), from[] = {call.place(0)};
  DType dtypes[] = {x.dtype};
  AxisMap same[] = {identity_axes(x.shape.rank())};
  call.map(x.shape, from, dtypes, same, operand(0, x.dtype), call.result(), "copy");
  copy_block(call, begin, call.result(), x.shape, call.dense(1), block, x.dtype, true);
}

/// Where all examples begin, with the examples' own axis.
Tensor begin_with_batch(const Tensor& begin) { return concat({zeros({1}, begin.dtype()), begin}, 0); }

void batch_slice(BatchCall& call) {
  if (call.has_batch(1)) return;
  DynamicSliceAttributes attributes{call.sizes_with_batch(call.result_shape())};
  call.set(call.call({call.in(0), begin_with_batch(call.in(1))}, view_of(attributes)));
}
void batch_update(BatchCall& call) {
  if (call.has_batch(2)) return;
  call.set(call.call({call.with_batch(0), call.with_batch(1), begin_with_batch(call.in(2))}, call.attributes_view()));
}

}  // namespace

constinit const AttributeCodec dynamic_slice_codec = attribute_codec<DynamicSliceAttributes>;

constinit const OpDef dynamic_slice_row{
    .name = "dynamic_slice",
    .kind = Kind::index,
    .summary = "A block that begins where values say.",
    .operands = slice_names,
    .infer = infer_slice,
    .lower = lower_slice,
    .gradient =
        [](GradientCall& g) {
          if (g.wants(0)) g.set(0, dynamic_update_slice(zeros_like(g.in(0)), g.d(), g.in(1)));
        },
    .samples =
        [](SampleList& s) {
          s.add({{{7}}, {{1}, 9, Draw::plain, false}}, DynamicSliceAttributes{{3}})
              .add({{{5, 40}}, {{2}, 6, Draw::plain, false}}, DynamicSliceAttributes{{2, 17}})
              .add({{{2, 3, 18}}, {{3}, 3, Draw::plain, false}}, DynamicSliceAttributes{{1, 3, 5}})
              .add({{{4, 3}}, {{2}, 2, Draw::plain, false}}, DynamicSliceAttributes{{0, 2}});
        },
    .errors =
        [](ErrorList& e) {
          e.add("'begin' is f32, not integers", {{DType::f32, {3}}, {DType::f32, {1}}}, DynamicSliceAttributes{{2}})
              .add("a block of 4 elements in axis 0 of size 3", {{DType::f32, {3}}, {DType::i64, {1}}},
                   DynamicSliceAttributes{{4}})
              .add("2 and 1 differ", {{DType::f32, {3}}, {DType::i64, {2}}}, DynamicSliceAttributes{{2}})
              .add("'begin' has rank 0", {{DType::f32, {3}}, {DType::i64, {}}}, DynamicSliceAttributes{{2}});
        },
    .batch = batch_slice};

constinit const OpDef dynamic_update_slice_row{
    .name = "dynamic_update_slice",
    .kind = Kind::index,
    .summary = "A block put where values say.",
    .operands = update_names,
    .infer = infer_update,
    .lower = lower_update,
    .gradient =
        [](GradientCall& g) {
          if (g.wants(0)) g.set(0, dynamic_update_slice(g.d(), zeros_like(g.in(1)), g.in(2)));
          if (g.wants(1)) g.set(1, dynamic_slice(g.d(), g.in(2), dims_of(g.in(1).shape())));
        },
    .samples =
        [](SampleList& s) {
          s.add({{{7}}, {{3}}, {{1}, 9, Draw::plain, false}})
              .add({{{5, 40}}, {{2, 17}}, {{2}, 6, Draw::plain, false}})
              .add({{{2, 3, 18}}, {{1, 3, 5}}, {{3}, 3, Draw::plain, false}})
              .add({{{4, 3}}, {{0, 2}}, {{2}, 2, Draw::plain, false}});
        },
    .errors =
        [](ErrorList& e) {
          e.add("'x' is f32 and 'update' is i32", {{DType::f32, {3}}, {DType::i32, {2}}, {DType::i64, {1}}})
              .add("'x' has rank 1 and 'update' 2", {{DType::f32, {3}}, {DType::f32, {2, 1}}, {DType::i64, {1}}})
              .add("a block of 4 elements in axis 0 of size 3",
                   {{DType::f32, {3}}, {DType::f32, {4}}, {DType::i64, {1}}});
        },
    .batch = batch_update};

Tensor dynamic_slice(In x, In begin, const std::vector<Dim>& size) {
  return call(dynamic_slice_row, {x, begin}, view_of(DynamicSliceAttributes{size}));
}

Tensor dynamic_update_slice(In x, In update, In begin) { return call(dynamic_update_slice_row, {x, update, begin}); }

}  // namespace stet
