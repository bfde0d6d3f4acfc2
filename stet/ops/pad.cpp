// Padding: elements around, and between, those of a tensor; and putting blocks together, which is its gradient's work.
#include <algorithm>

#include "stet/compiler/lower.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/assemble.h"
#include "stet/ops/axis.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- cutting and putting together

/// How much is put before and after an axis.
struct Padding {
  Dim before = 0, after = 0;
};
/// What stands in the padding: a constant; the elements mirrored at the border, without the border itself (reflect) or
/// with it (symmetric); the border (edge); the elements from the other end (wrap).
enum class PadMode : std::uint8_t { constant, reflect, symmetric, edge, wrap };
struct PadOptions {
  PadMode mode = PadMode::constant;
  double value = 0;  // of a constant padding
};
/// `x` with padding around it, one Padding per axis.
/// Names: numpy.pad, tf.pad
/// Example: pad(tensor({1, 2, 3}), {{1, 2}})
STET_API Tensor pad(In x, const std::vector<Padding>& paddings, PadOptions options = {});
#endif

namespace {

constexpr const char* operand_names[] = {"x", "value"};

struct PadAttributes {
  std::vector<Dim> low, high;
  std::vector<std::int64_t> between;  // elements put between neighbours
  STET_ATTRIBUTES(low, high, between)
};

/// In every call, by form.
bool same(const Dim& a, const Dim& b) { return GradientCall::same_size(a, b); }
bool none(const Dim& size) { return same(size, 0); }

void infer_pad(InferCall& call) {
  const auto& a = call.attributes<PadAttributes>();
  auto rank = static_cast<std::size_t>(call.rank(0));
  call.require(a.low.size() == rank && a.high.size() == rank && a.between.size() == rank,
               text("paddings for ", a.low.size(), " axes, 'x' has ", rank), "give one {before, after} for each axis");
  call.require(call.rank(1) == 0, text("'value' has rank ", call.rank(1), ", not 0"));
  call.require(call.dtype(0) == call.dtype(1), text("'x' is ", call.dtype(0), " and 'value' is ", call.dtype(1)),
               "cast the value first");
  Shape result;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    call.require(a.between[axis] >= 0, text("there cannot be ", a.between[axis], " elements between two"));
    for (const Dim* side : {&a.low[axis], &a.high[axis]})
      if (!call.always(0, Relation::less_equal, *side))
        call.check(0, Relation::less_equal, *side, sized_text("the padding ", *side, " of axis ", axis, " is negative"),
                   "a slice takes elements away");
    result.push_back(a.low[axis] + dilated_size(call.shape(0)[static_cast<int>(axis)], a.between[axis] + 1) +
                     a.high[axis]);
  }
  call.result(call.dtype(0), result);
}

/// The elements into their places, and the value into the boxes around them: every element is written once. Where there
/// are elements between neighbours, the value goes everywhere first.
void lower_pad(LowerCall& call) {
  const auto& a = call.attributes<PadAttributes>();
  const Shape &shape = call.in(0).shape, &out = call.out().shape;
  DType dtype = call.in(0).dtype;
  int rank = shape.rank();
  Place to = call.result(), value[] = {call.place(1)};
  DType dtypes[] = {dtype};
  auto fill = [&](const Shape& box, const Place& where) {
    AxisMap none = identity_axes(rank);
    for (int axis = 0; axis < rank; ++axis) none.axes[static_cast<std::size_t>(axis)] = -1;
    AxisMap axes[] = {none};
    call.map(box, value, dtypes, axes, operand(0, dtype), where, "pad");
  };
  Place inside = to;
  bool spread = false;
  for (std::size_t axis = 0; axis < a.low.size(); ++axis) {
    inside.layout.offset = inside.layout.offset + a.low[axis] * to.layout.strides[axis];
    inside.layout.strides[axis] = to.layout.strides[axis] * (a.between[axis] + 1);
    spread = spread || a.between[axis] > 0;
  }
  if (spread) {
    fill(out, to);
  } else {
    // Axis by axis: before and after, over what the axes before have inside and the axes behind have in all.
    Place corner = to;
    Shape box = out;
    for (int axis = 0; axis < rank; ++axis) {
      auto at = static_cast<std::size_t>(axis);
      const Dim& stride = to.layout.strides[at];
      Shape side = box;
      side.set(axis, a.low[at]);
      if (!none(a.low[at])) fill(side, corner);
      side.set(axis, a.high[at]);
      Place behind = corner;
      behind.layout.offset = corner.layout.offset + (a.low[at] + shape[axis]) * stride;
      if (!none(a.high[at])) fill(side, behind);
      corner.layout.offset = corner.layout.offset + a.low[at] * stride;
      box.set(axis, shape[axis]);
    }
  }
  Place from[] = {call.place(0)};
  AxisMap same[] = {identity_axes(rank)};
  call.map(shape, from, dtypes, same, operand(0, dtype), inside, "pad");
}

void gradient_of_pad(GradientCall& g) {
  const auto& a = g.attributes<PadAttributes>();
  std::vector<Dim> sizes;
  std::vector<std::int64_t> steps;
  for (const Dim& size : g.in(0).shape()) sizes.push_back(size);
  for (std::int64_t between : a.between) steps.push_back(between + 1);
  Tensor inside = slice(g.d(), a.low, sizes, steps);
  if (g.wants(0)) g.set(0, inside);
  if (g.wants(1)) g.set(1, sum(g.d()) - sum(inside));
}

void batch_pad(BatchCall& call) {
  if (call.has_batch(1)) return;
  PadAttributes attributes = call.attributes<PadAttributes>();
  attributes.low.insert(attributes.low.begin(), 0);
  attributes.high.insert(attributes.high.begin(), 0);
  attributes.between.insert(attributes.between.begin(), 0);
  call.set(call.call({call.in(0), call.in(1)}, view_of(attributes)));
}

}  // namespace

constinit const AttributeCodec pad_codec = attribute_codec<PadAttributes>;

constinit const OpDef pad_row{.name = "pad",
                              .kind = Kind::layout,
                              .summary = "Elements around and between those of a tensor.",
                              .operands = operand_names,
                              .infer = infer_pad,
                              .lower = lower_pad,
                              .gradient = gradient_of_pad,
                              .samples =
                                  [](SampleList& s) {
                                    s.add({{{5}}, {{}}}, PadAttributes{{1}, {2}, {0}})
                                        .add({{{3, 4}}, {{}}}, PadAttributes{{2, 0}, {1, 3}, {0, 0}})
                                        .add({{{2, 3, 18}}, {{}}}, PadAttributes{{0, 1, 2}, {1, 0, 0}, {0, 0, 0}})
                                        .add({{{4, 5}}, {{}}}, PadAttributes{{1, 0}, {0, 2}, {2, 1}})
                                        .add({{{1}}, {{}}}, PadAttributes{{0}, {1}, {3}})
                                        .add({{{}}, {{}}}, PadAttributes{{}, {}, {}})
                                        .add({{{0, 2}}, {{}}}, PadAttributes{{1, 1}, {1, 0}, {0, 0}});
                                  },
                              .errors =
                                  [](ErrorList& e) {
                                    e.add("paddings for 1 axes, 'x' has 2", {{DType::f32, {2, 3}}, {DType::f32, {}}},
                                          PadAttributes{{1}, {1}, {0}})
                                        .add("the padding -1 of axis 0 is negative",
                                             {{DType::f32, {2}}, {DType::f32, {}}}, PadAttributes{{-1}, {1}, {0}})
                                        .add("'value' has rank 1", {{DType::f32, {2}}, {DType::f32, {1}}},
                                             PadAttributes{{1}, {1}, {0}})
                                        .add("'x' is f32 and 'value' is i32", {{DType::f32, {2}}, {DType::i32, {}}},
                                             PadAttributes{{1}, {1}, {0}});
                                  },
                              .batch = batch_pad};

namespace {

Tensor padded(const Tensor& x, PadAttributes attributes, const In& value) {
  Tensor scalar = as_tensor(value, x.dtype());
  return call(pad_row, {In(x), In(scalar)}, view_of(attributes));
}

/// For every position of a padded axis, the element that stands there.
Tensor padded_positions(PadMode mode, const Dim& size, const Padding& padding) {
  Tensor position = arange(padding.before + size + padding.after) - padding.before;
  if (mode == PadMode::edge) return minimum(maximum(position, 0), size - 1);
  if (mode == PadMode::wrap) return mod(position, size);
  Dim period = mode == PadMode::symmetric ? size * 2 : larger_of(size * 2 - 2, 1);
  Tensor within = mod(position, period);
  return minimum(within, (mode == PadMode::symmetric ? period - 1 : period) - within);
}

}  // namespace

Tensor pad(In x, const std::vector<Padding>& paddings, PadOptions options) {
  PadAttributes attributes;
  for (const Padding& padding : paddings) {
    attributes.low.push_back(padding.before);
    attributes.high.push_back(padding.after);
    attributes.between.push_back(0);
  }
  bool defined = x.kind() == In::Kind::tensor && x.tensor().defined();
  bool fits = defined && paddings.size() == static_cast<std::size_t>(x.tensor().rank());
  if (options.mode == PadMode::constant || !fits) {
    DType type = defined ? x.tensor().dtype() : DType::f32;
    Tensor value = full({}, options.value, type);
    return call(pad_row, {x, In(value, x.where())}, view_of(attributes));
  }
  Frame frame("pad", x.where());
  Tensor out = x.tensor();
  for (int axis = 0; axis < out.rank(); ++axis) {
    const Padding& padding = paddings[static_cast<std::size_t>(axis)];
    if (none(padding.before) && none(padding.after)) continue;
    out = gather(out, padded_positions(options.mode, out.dim(axis), padding), axis);
  }
  return out;
}

// --- blocks

namespace {

/// Where a block begins and ends along an axis.
struct Span {
  Dim begin, end;
};
Span span_of(const GradientBlock& block, int axis) {
  auto at = static_cast<std::size_t>(axis);
  return {block.begin[at], block.begin[at] + dilated_size(block.d.dim(axis), block.step[at])};
}

/// Blocks of neighbouring elements that lie alike but for one axis. -1: they do not.
int common_axis(const std::vector<GradientBlock>& blocks) {
  int axis = -1;
  for (const GradientBlock& block : blocks) {
    for (int k = 0; k < block.d.rank(); ++k) {
      if (block.step[static_cast<std::size_t>(k)] != 1) return -1;
      Span here = span_of(block, k), first = span_of(blocks[0], k);
      if (same(here.begin, first.begin) && same(here.end, first.end)) continue;
      if (axis >= 0 && axis != k) return -1;
      axis = k;
    }
  }
  return axis;
}

Tensor in_zeros(const Shape& shape, const GradientBlock& block) {
  PadAttributes attributes{block.begin, {}, {}};
  bool whole = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    auto at = static_cast<std::size_t>(axis);
    attributes.high.push_back(shape[axis] - span_of(block, axis).end);
    attributes.between.push_back(block.step[at] - 1);
    whole = whole && block.step[at] == 1 && none(block.begin[at]) && same(block.d.dim(axis), shape[axis]);
  }
  return whole ? block.d : padded(block.d, std::move(attributes), 0);
}

/// The blocks of a row, each beginning where the one before ends or behind it, as one block.
GradientBlock joined(const std::vector<const GradientBlock*>& row, int axis) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const GradientBlock* block = row[i];
    if (i > 0) {
      Dim gap = span_of(*block, axis).begin - span_of(*row[i - 1], axis).end;
      if (!none(gap)) {
        Shape shape = block->d.shape();
        shape.set(axis, gap);
        parts.push_back(broadcast_to(zeros_like(sum(block->d)), shape));
      }
    }
    parts.push_back(block->d);
  }
  return {row[0]->begin, row[0]->step, parts.size() == 1 ? parts[0] : concat(parts, axis)};
}

/// Rows of blocks that do not overlap, whatever the sizes: few, if few of them do.
std::vector<std::vector<const GradientBlock*>> rows_of(const std::vector<GradientBlock>& blocks, int axis) {
  auto begin = [&](const GradientBlock* block) { return span_of(*block, axis).begin; };
  // In order, as far as it follows from their form. Walking backwards meets the last slice first, so the blocks come in
  // order turned around.
  std::vector<const GradientBlock*> order;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    auto place = order.end();
    while (place != order.begin() && InferCall::always(begin(&*block), Relation::less, begin(*(place - 1)))) --place;
    order.insert(place, &*block);
  }
  std::vector<std::vector<const GradientBlock*>> rows;
  for (const GradientBlock* block : order) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const std::vector<const GradientBlock*>& one) {
      return InferCall::always(span_of(*one.back(), axis).end, Relation::less_equal, begin(block));
    });
    if (row == rows.end()) row = rows.insert(rows.end(), std::vector<const GradientBlock*>());
    row->push_back(block);
  }
  return rows;
}

}  // namespace

Tensor assembled(const Shape& shape, std::vector<GradientBlock> blocks) {
  int axis = blocks.size() > 1 ? common_axis(blocks) : -1;
  std::vector<GradientBlock> rows;
  if (axis >= 0)
    for (const std::vector<const GradientBlock*>& row : rows_of(blocks, axis)) rows.push_back(joined(row, axis));
  else
    rows = std::move(blocks);
  Tensor out;
  for (const GradientBlock& row : rows) {
    Tensor one = in_zeros(shape, row);
    out = out.defined() ? out + one : one;
  }
  return out;
}

}  // namespace stet
