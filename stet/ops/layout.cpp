// Layout ops: elements move, none is computed. A row's `view` says where the result's elements lie in the operand's
// memory; eager calls share the memory, programs read through it.
#include "stet/ir/layout.h"

#include <algorithm>

#include "stet/compiler/lower.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/core/tensor_node.h"
#include "stet/ir/graph.h"
#include "stet/ops/axis.h"
#include "stet/ops/composite.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/slice.h"
#include "stet/ops/sum_to.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- shapes

/// The same elements in row-major order under another shape; one size may be -1 and follows from the others.
/// Names: numpy.reshape, array_api.reshape, tf.reshape, torch.reshape
/// Example: reshape(arange(6), {2, -1})
STET_API Tensor reshape(In x, std::initializer_list<Dim> shape);
STET_API Tensor reshape(In x, const std::vector<Dim>& shape);
STET_API Tensor reshape(In x, const Shape& shape);
template <std::integral I>
Tensor reshape(In x, const std::vector<I>& shape) {
  return reshape(x, std::vector<Dim>(shape.begin(), shape.end()));
}
template <std::integral I, std::size_t count>
Tensor reshape(In x, const std::array<I, count>& shape) {
  return reshape(x, std::vector<Dim>(shape.begin(), shape.end()));
}
/// Axes in another order; without one, reversed.
/// Names: numpy.transpose, tf.transpose, torch.permute
/// Example: transpose(tensor({{1, 2}, {3, 4}}))
STET_API Tensor transpose(In x);
STET_API Tensor transpose(In x, const Axes& order);
/// Repeated along axes of size 1 (and new leading ones) up to `shape`, without copying.
/// Names: numpy.broadcast_to, array_api.broadcast_to, tf.broadcast_to, torch.broadcast_to
/// Example: broadcast_to(tensor({1, 2}), {2, 2})
STET_API Tensor broadcast_to(In x, const Shape& shape);
/// The block that starts at `begin` and has `size` elements along each axis, every `step`-th of them.
/// Names: tf.slice, tf.strided_slice, torch.narrow
/// Example: slice(arange(10), {2}, {3}, {2})
STET_API Tensor slice(In x, const std::vector<Dim>& begin, const std::vector<Dim>& size,
                      const std::vector<std::int64_t>& step = {});
/// The given axes backwards.
/// Names: numpy.flip, tf.reverse, torch.flip
/// Example: reverse(tensor({{1, 2}, {3, 4}}), 0)
STET_API Tensor reverse(In x, const Axes& axes);
/// Tensors one after the other along an axis, in the type that holds all of theirs.
/// Names: numpy.concatenate, array_api.concat, tf.concat, torch.cat
/// Example: concat({tensor({1, 2}), tensor({3})})
STET_API Tensor concat(const std::vector<Tensor>& parts, int axis = 0, Where where = Where::here());
/// Tensors of one shape along a new axis.
/// Names: numpy.stack, array_api.stack, tf.stack, torch.stack
/// Example: stack({tensor({1, 2}), tensor({3, 4})}, 1)
STET_API Tensor stack(const std::vector<Tensor>& parts, int axis = 0, Where where = Where::here());
/// An axis of size 1 put in.
/// Names: numpy.expand_dims, array_api.expand_dims, tf.expand_dims, torch.unsqueeze
/// Example: expand_dims(tensor({1, 2}), 1)
STET_API Tensor expand_dims(In x, int axis);
/// Axes of size 1 taken out: all, or the given ones.
/// Names: numpy.squeeze, array_api.squeeze, tf.squeeze, torch.squeeze
/// Example: squeeze(tensor({{1, 2}}))
STET_API Tensor squeeze(In x);
STET_API Tensor squeeze(In x, const Axes& axes);
#endif

namespace {

constexpr const char* operand_names[] = {"x"};

struct ReshapeAttributes {
  std::vector<Dim> shape;
  STET_ATTRIBUTES(shape)
};
struct TransposeAttributes {
  std::vector<int> order;
  STET_ATTRIBUTES(order)
};
struct SliceAttributes {
  std::vector<Dim> begin, size;
  std::vector<std::int64_t> step;
  std::vector<std::string> index = {};  // by axis, for messages: the position that was asked for, or nothing
  STET_ATTRIBUTES(begin, size, step, index)
};
struct ReverseAttributes {
  std::vector<int> axes;
  STET_ATTRIBUTES(axes)
};
struct ConcatAttributes {
  int axis = 0;
  STET_ATTRIBUTES(axis)
};

Tensor call_reshape(const In& x, std::vector<Dim> shape) {
  ReshapeAttributes attributes{std::move(shape)};
  if (x.kind() == In::Kind::tensor) return call(reshape_row, {x}, view_of(attributes));
  const Tensor scalar = as_tensor(x, x.dtype());  // memory to look at: a view says what -1 stands for
  return call(reshape_row, {In(scalar, x.where())}, view_of(attributes));
}

// --- reshape

void infer_reshape(InferCall& call) {
  const auto& attributes = call.attributes<ReshapeAttributes>();
  Shape result = reshape(call.shape(0), attributes.shape, call.reason("number of elements"));
  call.check_sizes(result.dims());
  call.result(call.dtype(0), std::move(result));
}

/// Axes of size 1 put in or taken out: a view of any memory.
std::optional<Layout> same_but_for_ones(const ViewCall& call) {
  const Shape& shape = call.shape();
  Layout out{call.layout().offset, {}};
  int from = 0;
  for (const Dim& size : call.result()) {
    if (call.is_one(size)) {
      out.strides.push_back(1);
      continue;
    }
    while (from < shape.rank() && call.is_one(shape[from])) ++from;
    if (from == shape.rank() || !call.same(shape[from], size)) return std::nullopt;
    out.strides.push_back(call.layout().strides[static_cast<std::size_t>(from++)]);
  }
  while (from < shape.rank() && call.is_one(shape[from])) ++from;
  return from == shape.rank() ? std::optional(out) : std::nullopt;
}

std::optional<Layout> view_reshape(const ViewCall& call) {
  if (std::optional<Layout> same = same_but_for_ones(call)) return same;
  // Otherwise only dense memory can be read under another shape. Size-1 axes may have any stride.
  std::vector<Dim> dense = dense_strides(call.shape());
  for (std::size_t axis = 0; axis < dense.size(); ++axis)
    if (!call.is_one(call.shape()[static_cast<int>(axis)]) && !call.same(dense[axis], call.layout().strides[axis]))
      return std::nullopt;
  return Layout{call.layout().offset, dense_strides(call.result())};
}

// --- transpose

void infer_transpose(InferCall& call) {
  const auto& order = call.attributes<TransposeAttributes>().order;
  call.require(static_cast<int>(order.size()) == call.rank(0),
               text("an order of ", order.size(), " axes for rank ", call.rank(0)), "name every axis once");
  Shape result;
  std::vector<bool> seen(order.size(), false);
  for (int axis : order) {
    int at = normalize_axis(axis, call.rank(0));
    call.require(!seen[static_cast<std::size_t>(at)], text("axis ", axis, " is named twice"), "name every axis once");
    seen[static_cast<std::size_t>(at)] = true;
    result.push_back(call.shape(0)[at]);
  }
  call.result(call.dtype(0), result);
}

std::optional<Layout> view_transpose(const ViewCall& call) {
  Layout out{call.layout().offset, {}};
  for (int axis : call.attributes<TransposeAttributes>().order)
    out.strides.push_back(call.layout().strides[static_cast<std::size_t>(normalize_axis(axis, call.shape().rank()))]);
  return out;
}

void gradient_of_transpose(GradientCall& call) {
  if (!call.wants(0)) return;
  const auto& order = call.attributes<TransposeAttributes>().order;
  TransposeAttributes back;
  back.order.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back.order[static_cast<std::size_t>(normalize_axis(order[i], static_cast<int>(order.size())))] =
        static_cast<int>(i);
  call.set(0, stet::call(transpose_row, {In(call.d())}, view_of(back)));
}

// --- broadcast_to

void infer_broadcast_to(InferCall& call) {
  const auto& attributes = call.attributes<ReshapeAttributes>();
  const Shape& from = call.shape(0);
  call.check_sizes(attributes.shape);
  Shape to{std::span<const Dim>(attributes.shape)};
  call.require(from.rank() <= to.rank(), text("rank ", from.rank(), " is more than the target's ", to.rank()),
               "a target has at least as many axes");
  for (int axis = 0; axis < from.rank(); ++axis) {
    try {
      is_repeated(from[axis], to[axis + to.rank() - from.rank()], call.reason("broadcast"));
    } catch (const Problem& problem) {
      throw Problem(text("axis ", axis, ": ", problem.text()), problem.advice());
    }
  }
  call.result(call.dtype(0), to);
}

std::optional<Layout> view_broadcast_to(const ViewCall& call) {
  const Shape& shape = call.shape();
  int extra = call.result().rank() - shape.rank();
  Layout out{call.layout().offset, std::vector<Dim>(static_cast<std::size_t>(extra), Dim(0))};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Dim &size = shape[axis], &to = call.result()[axis + extra];
    const Dim& stride = call.layout().strides[static_cast<std::size_t>(axis)];
    if (call.is_one(size))
      out.strides.push_back(call.is_one(to) ? stride : Dim(0));
    else if (call.same(size, to))
      out.strides.push_back(stride);
    else  // one of the two, as is known when it runs: 0 for a size of 1, whole for a larger one
      out.strides.push_back(stride * smaller_of(size - 1, 1));
  }
  return out;
}

// --- slice

/// A part of what makes a slice of an axis lie within it.
void check_slice(InferCall& call, const SliceAttributes& a, std::size_t axis, const Dim& left, Relation relation,
                 const Dim& right) {
  const Dim& extent = call.shape(0)[static_cast<int>(axis)];
  if (axis >= a.index.size() || a.index[axis].empty()) {
    call.check(left, relation, right,
               sized_text("the slice of axis ", axis, " reaches outside of its ", extent, " elements"));
    return;
  }
  SizedText problem = sized_text("index ", a.index[axis], " is out of range for axis ", axis, " of size ", extent);
  call.check(0, Relation::less, extent, problem, "the axis is empty");
  call.check(left, relation, right, problem, sized_text("allowed are ", Dim(0) - extent, " to ", extent - 1));
}

void infer_slice(InferCall& call) {
  const auto& a = call.attributes<SliceAttributes>();
  auto rank = static_cast<std::size_t>(call.rank(0));
  call.require(a.begin.size() == rank && a.size.size() == rank && a.step.size() == rank,
               text("begin, size and step must have one entry per axis: ", rank));
  Shape result;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const Dim& extent = call.shape(0)[static_cast<int>(axis)];
    call.require(a.step[axis] >= 1, text("step ", a.step[axis], " of axis ", axis, " is less than 1"));
    auto ensure = [&](const Dim& left, Relation relation, const Dim& right) {
      if (!call.always(left, relation, right)) check_slice(call, a, axis, left, relation, right);
    };
    ensure(0, Relation::less_equal, a.begin[axis]);
    ensure(0, Relation::less_equal, a.size[axis]);
    // An empty slice may begin anywhere within; otherwise its last element must exist.
    ensure(a.begin[axis] + (a.size[axis] - 1) * a.step[axis], Relation::less, extent);
    ensure(a.begin[axis], Relation::less_equal, extent);
    result.push_back(a.size[axis]);
  }
  call.result(call.dtype(0), result);
}

std::optional<Layout> view_slice(const ViewCall& call) {
  const auto& a = call.attributes<SliceAttributes>();
  const Layout& layout = call.layout();
  Layout out = layout;
  for (std::size_t axis = 0; axis < layout.strides.size(); ++axis) {
    out.offset = out.offset + a.begin[axis] * layout.strides[axis];
    // Where one element is taken, a step may be as long as it likes.
    const Dim& size = call.result()[static_cast<int>(axis)];
    if (!call.is_one(size) && !call.same(size, 0)) out.strides[axis] = layout.strides[axis] * a.step[axis];
  }
  return out;
}

/// d back where the slice was taken from, zeros elsewhere.
void gradient_of_slice(GradientCall& call) {
  const auto& a = call.attributes<SliceAttributes>();
  if (call.wants(0)) call.set_block(0, {a.begin, a.step, call.d()});
}

// --- reverse

void infer_reverse(InferCall& call) {
  const auto& axes = call.attributes<ReverseAttributes>().axes;
  std::vector<std::int64_t> asked(axes.begin(), axes.end());
  normalize_axes(asked, call.rank(0));
  call.result(call.dtype(0), call.shape(0));
}

std::optional<Layout> view_reverse(const ViewCall& call) {
  const Shape& shape = call.shape();
  const Layout& layout = call.layout();
  Layout out = layout;
  for (int axis : call.attributes<ReverseAttributes>().axes) {
    auto at = static_cast<std::size_t>(normalize_axis(axis, shape.rank()));
    out.offset = out.offset + (shape[static_cast<int>(at)] - 1) * layout.strides[at];
    out.strides[at] = Dim(0) - layout.strides[at];
  }
  return out;
}

// --- concat

void infer_concat(InferCall& call) {
  int axis = normalize_axis(call.attributes<ConcatAttributes>().axis, call.rank(0));
  Shape result = call.shape(0);
  Dim total = call.shape(0)[axis];
  for (int i = 1; i < call.input_count(); ++i) {
    call.require(call.rank(i) == call.rank(0),
                 text("part ", i, " has rank ", call.rank(i), ", part 0 has ", call.rank(0)));
    call.require(call.dtype(i) == call.dtype(0), text("part ", i, " is ", call.dtype(i), ", part 0 is ", call.dtype(0)),
                 "cast the parts to one type first");
    for (int k = 0; k < call.rank(0); ++k)
      if (k != axis)
        call.require_equal(call.shape(0)[k], call.shape(i)[k], text("sizes of axis ", k, " in parts 0 and ", i, ","));
    total = total + call.shape(i)[axis];
  }
  result.set(axis, total);
  call.result(call.dtype(0), result);
}

void lower_concat(LowerCall& call) {
  int axis = normalize_axis(call.attributes<ConcatAttributes>().axis, call.in(0).shape.rank());
  Place to = call.result();
  Dim start = 0;
  for (int i = 0; i < static_cast<int>(call.node().inputs.size()); ++i) {
    const ValueType& part = call.in(i);
    Place there = to;
    there.layout.offset = to.layout.offset + start * to.layout.strides[static_cast<std::size_t>(axis)];
    Place operands[] = {call.place(i)};
    DType dtypes[] = {part.dtype};
    AxisMap axes[] = {identity_axes(part.shape.rank())};
    call.map(part.shape, operands, dtypes, axes, operand(0, part.dtype), there, "concat");
    start = start + part.shape[axis];
  }
}

void gradient_of_concat(GradientCall& call) {
  int axis = normalize_axis(call.attributes<ConcatAttributes>().axis, call.in(0).rank());
  Dim start = 0;
  for (int i = 0; i < call.input_count(); ++i) {
    Shape part = call.in(i).shape();
    if (call.wants(i)) {
      std::vector<Dim> begin(static_cast<std::size_t>(part.rank()), Dim(0));
      begin[static_cast<std::size_t>(axis)] = start;
      call.set(i, slice(call.d(), begin, dims_of(part)));
    }
    start = start + part[axis];
  }
}

// --- many examples

void batch_reshape(BatchCall& call) {
  ReshapeAttributes attributes{call.sizes_with_batch(call.result_shape())};
  call.set(call.call({call.in(0)}, view_of(attributes)));
}
void batch_transpose(BatchCall& call) {
  TransposeAttributes attributes{BatchCall::shifted(call.attributes<TransposeAttributes>().order)};
  attributes.order.insert(attributes.order.begin(), 0);
  call.set(call.call({call.in(0)}, view_of(attributes)));
}
void batch_broadcast_to(BatchCall& call) {
  ReshapeAttributes attributes{call.sizes_with_batch(call.result_shape())};
  call.set(call.call({call.aligned(0, call.result_shape().rank())}, view_of(attributes)));
}
void batch_slice(BatchCall& call) {
  SliceAttributes attributes = call.attributes<SliceAttributes>();
  attributes.begin.insert(attributes.begin.begin(), 0);
  attributes.size.insert(attributes.size.begin(), call.size());
  attributes.step.insert(attributes.step.begin(), 1);
  if (!attributes.index.empty()) attributes.index.insert(attributes.index.begin(), "");
  call.set(call.call({call.in(0)}, view_of(attributes)));
}
void batch_reverse(BatchCall& call) {
  ReverseAttributes attributes{BatchCall::shifted(call.attributes<ReverseAttributes>().axes)};
  call.set(call.call({call.in(0)}, view_of(attributes)));
}
void batch_concat(BatchCall& call) {
  ConcatAttributes attributes{BatchCall::shifted(call.attributes<ConcatAttributes>().axis)};
  std::vector<Tensor> parts;
  for (int i = 0; i < call.input_count(); ++i) parts.push_back(call.with_batch(i));
  call.set(call.call(parts, view_of(attributes)));
}

}  // namespace

constinit const AttributeCodec reshape_codec = attribute_codec<ReshapeAttributes>;
constinit const AttributeCodec transpose_codec = attribute_codec<TransposeAttributes>;
constinit const AttributeCodec slice_codec = attribute_codec<SliceAttributes>;
constinit const AttributeCodec reverse_codec = attribute_codec<ReverseAttributes>;
constinit const AttributeCodec concat_codec = attribute_codec<ConcatAttributes>;

constinit const OpDef reshape_row{.name = "reshape",
                                  .kind = Kind::layout,
                                  .summary = "The same elements under another shape.",
                                  .operands = operand_names,
                                  .infer = infer_reshape,
                                  .gradient =
                                      [](GradientCall& g) {
                                        if (g.wants(0)) g.set(0, call_reshape(g.d(), dims_of(g.in(0).shape())));
                                      },
                                  .samples =
                                      [](SampleList& s) {
                                        s.growing(Grows::first)
                                            .add({{{3, 4}}}, ReshapeAttributes{{12}})
                                            .add({{{2, 3, 4}}}, ReshapeAttributes{{4, 6}})
                                            .add({{{6}}}, ReshapeAttributes{{1, 2, 3}})
                                            .add({{{0, 4}}}, ReshapeAttributes{{2, 0}})
                                            .add({{{}}}, ReshapeAttributes{{1, 1}});
                                      },
                                  .errors =
                                      [](ErrorList& e) {
                                        e.add("12 elements", {{DType::f32, {3, 4}}}, ReshapeAttributes{{5, 2}})
                                            .add("-1", {{DType::f32, {3, 4}}}, ReshapeAttributes{{5, -1}})
                                            .add("-1", {{DType::f32, {3, 4}}}, ReshapeAttributes{{-1, -1}})
                                            .add("-2", {{DType::f32, {3, 4}}}, ReshapeAttributes{{-2, 6}});
                                      },
                                  .view = view_reshape,
                                  .batch = batch_reshape};

constinit const OpDef transpose_row{
    .name = "transpose",
    .kind = Kind::layout,
    .summary = "Axes in another order.",
    .operands = operand_names,
    .infer = infer_transpose,
    .gradient = gradient_of_transpose,
    .samples =
        [](SampleList& s) {
          s.add({{{3, 5}}}, TransposeAttributes{{1, 0}})
              .add({{{2, 3, 40}}}, TransposeAttributes{{2, 0, 1}})
              .add({{{4, 0, 2}}}, TransposeAttributes{{0, 2, 1}})
              .add({{{}}}, TransposeAttributes{{}});
        },
    .errors =
        [](ErrorList& e) {
          e.add("an order of 1 axes for rank 2", {{DType::f32, {3, 4}}}, TransposeAttributes{{0}})
              .add("axis 1 is named twice", {{DType::f32, {3, 4}}}, TransposeAttributes{{1, 1}})
              .add("axis 2 is out of range", {{DType::f32, {3, 4}}}, TransposeAttributes{{0, 2}});
        },
    .view = view_transpose,
    .batch = batch_transpose};

constinit const OpDef broadcast_to_row{
    .name = "broadcast_to",
    .kind = Kind::layout,
    .summary = "Repeated up to a shape.",
    .operands = operand_names,
    .infer = infer_broadcast_to,
    .gradient =
        [](GradientCall& g) {
          if (g.wants(0)) g.set(0, sum_to(g.d(), g.in(0).shape()));
        },
    .samples =
        [](SampleList& s) {
          s.growing(Grows::everything)
              .add({{{3, 1}}}, ReshapeAttributes{{3, 4}})
              .add({{{5}}}, ReshapeAttributes{{2, 3, 5}})
              .add({{{}}}, ReshapeAttributes{{2, 3}})
              .add({{{1, 4}}}, ReshapeAttributes{{0, 4}});
        },
    .errors =
        [](ErrorList& e) {
          e.add("only axes of size 1 can be repeated", {{DType::f32, {3, 4}}}, ReshapeAttributes{{3, 8}})
              .add("rank 2 is more than the target's 1", {{DType::f32, {3, 4}}}, ReshapeAttributes{{4}});
        },
    .view = view_broadcast_to,
    .batch = batch_broadcast_to};

constinit const OpDef slice_row{.name = "slice",
                                .kind = Kind::layout,
                                .summary = "A block of a tensor.",
                                .operands = operand_names,
                                .infer = infer_slice,
                                .gradient = gradient_of_slice,
                                .samples =
                                    [](SampleList& s) {
                                      s.add({{{5, 6}}}, SliceAttributes{{1, 2}, {3, 4}, {1, 1}})
                                          .add({{{9}}}, SliceAttributes{{1}, {4}, {2}})
                                          .add({{{2, 37, 3}}}, SliceAttributes{{0, 3, 1}, {2, 11, 2}, {1, 3, 1}})
                                          .add({{{4}}}, SliceAttributes{{4}, {0}, {1}});
                                    },
                                .errors =
                                    [](ErrorList& e) {
                                      e.add("reaches outside of its 4 elements", {{DType::f32, {4}}},
                                            SliceAttributes{{2}, {3}, {1}})
                                          .add("one entry per axis", {{DType::f32, {4}}}, SliceAttributes{{}, {}, {}})
                                          .add("is less than 1", {{DType::f32, {4}}}, SliceAttributes{{0}, {1}, {0}});
                                    },
                                .view = view_slice,
                                .batch = batch_slice};

constinit const OpDef reverse_row{
    .name = "reverse",
    .kind = Kind::layout,
    .summary = "Axes backwards.",
    .operands = operand_names,
    .infer = infer_reverse,
    .gradient =
        [](GradientCall& g) {
          if (g.wants(0)) g.set(0, stet::call(reverse_row, {In(g.d())}, view_of(g.attributes<ReverseAttributes>())));
        },
    .samples =
        [](SampleList& s) {
          s.add({{{5, 6}}}, ReverseAttributes{{1}})
              .add({{{37}}}, ReverseAttributes{{0}})
              .add({{{3, 0}}}, ReverseAttributes{{0, 1}});
        },
    .errors =
        [](ErrorList& e) {
          e.add("axis 1 is out of range", {{DType::f32, {4}}}, ReverseAttributes{{1}});
        },
    .view = view_reverse,
    .batch = batch_reverse};

constinit const OpDef concat_row{
    .name = "concat",
    .kind = Kind::layout,
    .summary = "Tensors one after the other.",
    .infer = infer_concat,
    .lower = lower_concat,
    .gradient = gradient_of_concat,
    .samples =
        [](SampleList& s) {
          s.add({{{2, 3}}, {{2, 5}}}, ConcatAttributes{1})
              .add({{{2, 3}}, {{4, 3}}, {{0, 3}}}, ConcatAttributes{0})
              .add({{{3}}}, ConcatAttributes{0})
              .add({{{2, 1, 33}}, {{2, 2, 33}}}, ConcatAttributes{-2});
        },
    .errors =
        [](ErrorList& e) {
          e.add("sizes of axis 0 in parts 0 and 1, 2 and 3 differ", {{DType::f32, {2, 3}}, {DType::f32, {3, 3}}},
                ConcatAttributes{1})
              .add("part 1 has rank 1, part 0 has 2", {{DType::f32, {2, 3}}, {DType::f32, {3}}}, ConcatAttributes{0})
              .add("part 1 is i32, part 0 is f32", {{DType::f32, {2}}, {DType::i32, {2}}}, ConcatAttributes{0})
              .add("axis 3 is out of range", {{DType::f32, {2, 3}}, {DType::f32, {2, 3}}}, ConcatAttributes{3});
        },
    .batch = batch_concat};

// --- callables

Tensor reshape(In x, std::initializer_list<Dim> shape) { return call_reshape(x, shape); }
Tensor reshape(In x, const std::vector<Dim>& shape) { return call_reshape(x, shape); }
Tensor reshape(In x, const Shape& shape) { return call_reshape(x, dims_of(shape)); }

namespace {
/// Axes as attributes hold them. Beyond 32 bits they are out of range, not cut to what may be an axis.
std::vector<int> narrowed(const OpDef& row, const In& x, const Axes& axes) {
  std::vector<int> out;
  for (std::int64_t axis : axes.axes) {
    if (axis != static_cast<int>(axis)) {
      try {
        normalize_axis(axis, x.rank());
      } catch (const Problem& problem) {
        fail(row, {&x, 1}, problem);
      }
    }
    out.push_back(static_cast<int>(axis));
  }
  return out;
}
}  // namespace

Tensor transpose(In x) {
  TransposeAttributes attributes;
  for (int axis = x.rank(); axis-- > 0;) attributes.order.push_back(axis);
  return call(transpose_row, {x}, view_of(attributes));
}
Tensor transpose(In x, const Axes& order) {
  TransposeAttributes attributes{narrowed(transpose_row, x, order)};
  return call(transpose_row, {x}, view_of(attributes));
}

Tensor broadcast_to(In x, const Shape& shape) {
  ReshapeAttributes attributes{dims_of(shape)};
  return call(broadcast_to_row, {x}, view_of(attributes));
}

Tensor indexed_slice(In x, const std::vector<Dim>& begin, const std::vector<Dim>& size,
                     const std::vector<std::int64_t>& step, const std::vector<std::string>& index) {
  SliceAttributes attributes{begin, size, step, index};
  return call(slice_row, {x}, view_of(attributes));
}

Tensor slice(In x, const std::vector<Dim>& begin, const std::vector<Dim>& size, const std::vector<std::int64_t>& step) {
  SliceAttributes attributes{begin, size, step};
  if (step.empty()) attributes.step.assign(begin.size(), 1);
  return call(slice_row, {x}, view_of(attributes));
}

Tensor reverse(In x, const Axes& axes) {
  ReverseAttributes attributes{narrowed(reverse_row, x, axes)};
  return call(reverse_row, {x}, view_of(attributes));
}

Tensor concat(const std::vector<Tensor>& parts, int axis, Where where) {
  if (parts.empty())
    throw UserError(error_text("concat: there are no tensors to put together", where, "give at least one"));
  // Parts of several types are put together in the one that holds them all; numbers take the others'.
  const auto counts = [](const Tensor& part) { return part.defined() && !part.node()->weak; };
  std::optional<DType> type;
  for (const Tensor& part : parts)
    if (counts(part)) type = type ? promote(*type, part.dtype()) : part.dtype();
  auto differs = [&](const Tensor& part) { return counts(part) && part.dtype() != *type; };
  std::vector<Tensor> promoted;  // operands refer to them
  if (std::any_of(parts.begin(), parts.end(), differs)) {
    promoted = parts;
    for (Tensor& part : promoted)
      if (differs(part)) part = cast(In(part, where), *type);
  }
  std::vector<In> operands;
  for (const Tensor& part : promoted.empty() ? parts : promoted) operands.emplace_back(part, where);
  ConcatAttributes attributes{axis};
  return call(concat_row, operands, view_of(attributes));
}

Tensor stack(const std::vector<Tensor>& parts, int axis, Where where) {
  Frame frame("stack", where);
  std::vector<Tensor> grown;
  for (const Tensor& part : parts) grown.push_back(expand_dims(In(part, where), axis));
  return concat(grown, axis, where);
}

Tensor expand_dims(In x, int axis) {
  Frame frame("expand_dims", x.where());
  int rank = x.rank();
  int at = 0;
  try {
    at = normalize_axis(axis, rank + 1);
  } catch (const Problem& problem) {
    fail(reshape_row, {&x, 1}, problem);
  }
  std::vector<Dim> sizes =
      x.kind() == In::Kind::tensor && x.tensor().defined() ? dims_of(x.tensor().shape()) : std::vector<Dim>();
  sizes.insert(sizes.begin() + at, Dim(1));
  return call_reshape(x, sizes);
}

Tensor squeeze(In x) {
  Frame frame("squeeze", x.where());
  std::vector<Dim> sizes;
  // How many axes are left depends on this call's sizes, so each answer is a fact.
  if (x.kind() == In::Kind::tensor && x.tensor().defined())
    for (const Dim& dim : x.tensor().shape())
      if (!decide(dim, Relation::equal, 1, {"squeeze without axes", "axis of size 1", x.where()})) sizes.push_back(dim);
  return call_reshape(x, sizes);
}

Tensor squeeze(In x, const Axes& axes) {
  Frame frame("squeeze", x.where());
  std::vector<Dim> sizes;
  try {
    std::vector<int> gone = normalize_axes(axes.axes, x.rank());
    for (int axis = 0; axis < x.rank(); ++axis) {
      Dim size = x.tensor().dim(axis);
      if (std::find(gone.begin(), gone.end(), axis) == gone.end())
        sizes.push_back(size);
      else if (!require(size, Relation::equal, 1, {"squeeze", "squeezed size", x.where()}))
        throw Problem(text("axis ", axis, " has ", size_text(size), " elements, not one"),
                      "squeeze only axes of size 1");
    }
  } catch (const Problem& problem) {
    fail(reshape_row, {&x, 1}, problem);
  }
  return call_reshape(x, sizes);
}

}  // namespace stet
