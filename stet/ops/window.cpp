// Convolution, general enough that its gradients are convolutions too.
#include "stet/compiler/lower.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/cpu/convolution_step.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/table.h"

namespace stet {
namespace {

constexpr const char* operand_names[] = {"x", "filter"};

/// One entry per spatial axis. Input dilation puts zeros between the input's elements: what a stride becomes in the
/// gradient. Padding may be negative, which cuts.
struct Conv2DAttributes {
  std::vector<std::int64_t> strides = {1, 1}, dilations = {1, 1}, input_dilations = {1, 1};
  std::vector<Dim> low = {0, 0}, high = {0, 0};
  static constexpr auto fields() {
    return std::tuple(field("strides", &Conv2DAttributes::strides), field("dilations", &Conv2DAttributes::dilations),
                      field("input_dilations", &Conv2DAttributes::input_dilations),
                      field("low", &Conv2DAttributes::low), field("high", &Conv2DAttributes::high));
  }
};

Dim output_size(const Conv2DAttributes& a, const Shape& x, const Shape& filter, int axis, const Reason& reason) {
  auto at = static_cast<std::size_t>(axis);
  return convolve({.input = x[axis + 1],
                   .kernel = filter[axis],
                   .low = a.low[at],
                   .high = a.high[at],
                   .stride = a.strides[at],
                   .dilation = a.dilations[at],
                   .input_dilation = a.input_dilations[at]},
                  reason);
}

void infer_conv2d(InferCall& call) {
  const auto& a = call.attributes<Conv2DAttributes>();
  call.require(call.rank(0) == 4, text("'x' has rank ", call.rank(0), ", not 4"),
               "images are [batch, height, width, channels]");
  call.require(call.rank(1) == 4, text("'filter' has rank ", call.rank(1), ", not 4"),
               "a filter is [height, width, channels, features]");
  call.require(call.dtype(0) == call.dtype(1), text("'x' is ", call.dtype(0), " and 'filter' is ", call.dtype(1)),
               "cast one of them first");
  call.require(is_floating(call.dtype(0)), text("conv2d does not take ", call.dtype(0)), "cast to f32 first");
  call.require(a.strides.size() == 2 && a.dilations.size() == 2,
               "strides and dilations have one entry for height and one for width");
  call.require_equal(call.shape(0)[3], call.shape(1)[2], "channels of 'x' and 'filter',");
  Shape result{call.shape(0)[0]};
  for (int axis : {0, 1}) result.push_back(output_size(a, call.shape(0), call.shape(1), axis, call.reason("size")));
  result.push_back(call.shape(1)[3]);
  call.result(call.dtype(0), result);
}

/// Zeros between the elements: the input of a convolution with input dilation.
Place dilated(LowerCall& call, const Conv2DAttributes& a, Shape& shape, DType dtype) {
  Place given = call.place(0);
  if (a.input_dilations[0] == 1 && a.input_dilations[1] == 1) return given;
  Shape grown = shape;
  for (int axis : {0, 1})
    grown.set(axis + 1, (shape[axis + 1] - 1) * a.input_dilations[static_cast<std::size_t>(axis)] + 1);
  Place to = call.temporary(dtype, grown);
  call.map(grown, {}, {}, {}, constant(0.0, dtype), to, "zeros");
  Place spread = to;
  for (std::size_t axis : {std::size_t{0}, std::size_t{1}})
    spread.layout.strides[axis + 1] = to.layout.strides[axis + 1] * a.input_dilations[axis];
  Place operands[] = {given};
  DType dtypes[] = {dtype};
  AxisMap axes[] = {identity_axes(4)};
  call.map(shape, operands, dtypes, axes, operand(0, dtype), spread, "dilate");
  shape = grown;
  return to;
}

/// Patches of the (dilated, padded) input as rows [batch, out_h, out_w] x [kernel_h, kernel_w, channels], read through
/// guards instead of a padded copy; then a matrix product with the filter. Patches live in a scratch block per chunk.
void lower_conv2d(LowerCall& call) {
  const auto& a = call.attributes<Conv2DAttributes>();
  DType dtype = call.in(0).dtype, computed = compute_type(dtype);
  Shape shape = call.in(0).shape;
  const Shape &filter = call.in(1).shape, &out = call.out().shape;
  Place x = dilated(call, a, shape, dtype);

  Kernel patches;
  patches.name = "patches";
  for (const Dim& extent : {out[0], out[1], out[2], filter[0], filter[1], shape[3]})
    patches.loops.push_back({extent, false});
  const std::vector<Dim>& s = x.layout.strides;
  Access read;
  read.dtype = dtype;
  read.buffer = x.buffer;
  read.address.offset = x.layout.offset - a.low[0] * s[1] - a.low[1] * s[2];
  read.address.strides = {s[0], s[1] * a.strides[0], s[2] * a.strides[1], s[1] * a.dilations[0], s[2] * a.dilations[1],
                          s[3]};
  read.guards = {{{Dim(0) - a.low[0], {0, a.strides[0], 0, a.dilations[0], 0, 0}}, shape[1]},
                 {{Dim(0) - a.low[1], {0, 0, a.strides[1], 0, a.dilations[1], 0}}, shape[2]}};
  patches.operands = {read};
  patches.body = scalar::cast(operand(0, dtype), computed);
  Dim depth = filter[0] * filter[1] * shape[3], rows = out[0] * out[1] * out[2];

  Place weights = call.dense(1);
  if (dtype != computed) {
    Place wide = call.temporary(computed, filter);
    Place operands[] = {weights};
    DType dtypes[] = {dtype};
    AxisMap axes[] = {identity_axes(4)};
    call.map(filter, operands, dtypes, axes, scalar::cast(operand(0, dtype), computed), wide, "widen");
    weights = wide;
  }
  auto step = std::make_unique<cpu::ConvolutionStep>();
  step->patches = std::move(patches);
  step->rows = rows;
  step->depth = depth;
  step->features = filter[3];
  step->computed = computed;
  step->stored = dtype;
  step->input = x.buffer;
  step->input_extent = call.elements(x);
  step->weights = weights.buffer;
  step->result = call.result().buffer;
  step->finish();
  call.step(std::move(step));
}

Tensor convolution(const Tensor& x, const Tensor& filter, const Conv2DAttributes& attributes) {
  return call(conv2d_row, {In(x), In(filter)}, view_of(attributes));
}

/// With respect to x: d, spread out by the stride, convolved with the filter turned around. With respect to the filter:
/// x convolved with d, batch and channels exchanged, d spread out by the stride.
void gradient_of_conv2d(GradientCall& g) {
  const auto& a = g.attributes<Conv2DAttributes>();
  Shape x = g.in(0).shape(), filter = g.in(1).shape(), out = g.out().shape();
  if (g.wants(0)) {
    Conv2DAttributes back;
    back.dilations = a.dilations;
    back.strides = a.input_dilations;
    back.input_dilations = a.strides;
    for (int axis : {0, 1}) {
      auto at = static_cast<std::size_t>(axis);
      Dim reach = (filter[axis] - 1) * a.dilations[at];
      Dim whole = (x[axis + 1] - 1) * a.input_dilations[at] + 1;
      Dim spread = (out[axis + 1] - 1) * a.strides[at] + 1;
      back.low[at] = reach - a.low[at];
      back.high[at] = whole + a.low[at] - spread;
    }
    Tensor turned = transpose(reverse(g.in(1), {0, 1}), {0, 1, 3, 2});
    g.set(0, convolution(g.d(), turned, back));
  }
  if (g.wants(1)) {
    Conv2DAttributes across;
    across.dilations = a.strides;
    across.strides = a.dilations;
    across.input_dilations = a.input_dilations;
    for (int axis : {0, 1}) {
      auto at = static_cast<std::size_t>(axis);
      Dim whole = (x[axis + 1] - 1) * a.input_dilations[at] + 1;
      Dim spread = (out[axis + 1] - 1) * a.strides[at] + 1;
      across.low[at] = a.low[at];
      // As much as makes the result exactly as large as the filter.
      across.high[at] = (filter[axis] - 1) * a.dilations[at] + spread - whole - a.low[at];
    }
    Tensor images = transpose(g.in(0), {3, 1, 2, 0}), filters = transpose(g.d(), {1, 2, 0, 3});
    g.set(1, transpose(convolution(images, filters, across), {1, 2, 0, 3}));
  }
}

void samples_of_conv2d(SampleList& list) {
  Conv2DAttributes plain, strided, padded, dilated;
  strided.strides = {2, 2};
  padded.low = {1, 2};
  padded.high = {1, 0};
  padded.strides = {1, 2};
  dilated.dilations = {2, 1};
  dilated.low = {1, 1};
  dilated.high = {1, 1};
  list.rounded(Rounding::sums)
      .add({{{2, 5, 6, 3}}, {{3, 3, 3, 4}}}, view_of(plain))
      .add({{{1, 7, 8, 2}}, {{3, 2, 2, 5}}}, view_of(strided))
      .add({{{2, 5, 5, 1}}, {{2, 3, 1, 3}}}, view_of(padded))
      .add({{{1, 9, 6, 20}}, {{3, 3, 20, 2}}}, view_of(dilated))
      .add({{{0, 5, 5, 2}}, {{3, 3, 2, 4}}}, view_of(plain))
      .add({{{2, 1, 1, 3}}, {{1, 1, 3, 4}}}, view_of(plain));
}

void errors_of_conv2d(ErrorList& list) {
  Conv2DAttributes plain, stuck;
  stuck.strides = {0, 1};
  list.add("'x' has rank 3, not 4", {{DType::f32, {5, 5, 3}}, {DType::f32, {3, 3, 3, 4}}}, view_of(plain))
      .add("channels of 'x' and 'filter', 3 and 2 differ", {{DType::f32, {1, 5, 5, 3}}, {DType::f32, {3, 3, 2, 4}}},
           view_of(plain))
      .add("conv2d does not take i32", {{DType::i32, {1, 5, 5, 3}}, {DType::i32, {3, 3, 3, 4}}}, view_of(plain))
      .add("stride", {{DType::f32, {1, 5, 5, 3}}, {DType::f32, {3, 3, 3, 4}}}, view_of(stuck))
      .add("kernel", {{DType::f32, {1, 5, 5, 3}}, {DType::f32, {0, 3, 3, 4}}}, view_of(plain))
      .add("", {{DType::f32, {1, 2, 2, 3}}, {DType::f32, {5, 5, 3, 4}}}, view_of(plain));
}

}  // namespace

constinit const OpDef conv2d_row{.name = "conv2d",
                                 .kind = Kind::window,
                                 .summary = "Two-dimensional convolution.",
                                 .operands = operand_names,
                                 .infer = infer_conv2d,
                                 .lower = lower_conv2d,
                                 .gradient = gradient_of_conv2d,
                                 .samples = samples_of_conv2d,
                                 .errors = errors_of_conv2d};

Tensor conv2d(In x, In filter, const Conv2DOptions& options) {
  Conv2DAttributes attributes;
  attributes.strides = options.strides;
  attributes.dilations = options.dilations;
  bool shaped = x.kind() == In::Kind::tensor && filter.kind() == In::Kind::tensor && x.tensor().defined() &&
                filter.tensor().defined() && x.tensor().rank() == 4 && filter.tensor().rank() == 4 &&
                options.strides.size() == 2 && options.dilations.size() == 2;
  if (options.same_padding && shaped) try {
      for (int axis : {0, 1}) {
        auto at = static_cast<std::size_t>(axis);
        std::int64_t stride = options.strides[at];
        if (stride < 1 || options.dilations[at] < 1) break;  // inference says what is wrong
        Dim size = x.tensor().dim(axis + 1);
        Dim reach = (filter.tensor().dim(axis) - 1) * options.dilations[at] + 1;
        Dim total = ((size + (stride - 1)) / stride - 1) * stride + reach - size;
        // More stride than filter needs no padding.
        if (total.hint() && *total.hint() < 0) total = 0;
        attributes.low[at] = total / 2;
        attributes.high[at] = total - total / 2;
      }
    } catch (const Problem& problem) {
      // Strides and dilations so large that sizes overflow.
      In operands[] = {x, filter};
      throw_user_error(conv2d_row.name, conv2d_row.operands, operands, problem,
                       frame_name() ? frame_where() : x.where());
    }
  return call(conv2d_row, {x, filter}, view_of(attributes));
}

}  // namespace stet
