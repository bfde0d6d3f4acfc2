// Convolution, general enough that its gradients are convolutions too.
#include "stet/compiler/lower.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
struct Conv2DOptions {
  std::vector<std::int64_t> strides = {1, 1};
  /// true: as much zero padding as keeps ceil(size / stride) positions, as TensorFlow's "SAME"; false: none.
  bool same_padding = false;
  std::vector<std::int64_t> dilations = {1, 1};
};
/// Convolution of images [batch, height, width, channels] with a filter [height, width, channels, features].
STET_API Tensor conv2d(In x, In filter, const Conv2DOptions& options = {});
#endif

namespace {

constexpr const char* operand_names[] = {"x", "filter"};

/// One entry per spatial axis. Input dilation puts zeros between the input's elements: what a stride becomes in the
/// gradient. Padding may be negative, which cuts.
struct Conv2DAttributes {
  std::vector<std::int64_t> strides = {1, 1}, dilations = {1, 1}, input_dilations = {1, 1};
  std::vector<Dim> low = {0, 0}, high = {0, 0};
  bool filter_may_be_empty = false;  // as the gradient of an empty result is
  STET_ATTRIBUTES(strides, dilations, input_dilations, low, high, filter_may_be_empty)
};

Dim output_size(const Conv2DAttributes& a, const Shape& x, const Shape& filter, int axis, const Reason& reason) {
  auto at = static_cast<std::size_t>(axis);
  return convolve({.input = x[axis + 1],
                   .kernel = filter[axis],
                   .low = a.low[at],
                   .high = a.high[at],
                   .stride = a.strides[at],
                   .dilation = a.dilations[at],
                   .input_dilation = a.input_dilations[at],
                   .kernel_may_be_empty = a.filter_may_be_empty},
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
    grown.set(axis + 1, dilated_size(shape[axis + 1], a.input_dilations[static_cast<std::size_t>(axis)]));
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

void lower_conv2d(LowerCall& call) {
  const auto& a = call.attributes<Conv2DAttributes>();
  ConvolutionSpec spec;
  spec.dtype = call.in(0).dtype;
  DType computed = compute_type(spec.dtype);
  Shape shape = call.in(0).shape;
  const Shape &filter = call.in(1).shape, &out = call.out().shape;
  Place x = dilated(call, a, shape, spec.dtype);
  for (int axis : {0, 1}) {
    auto at = static_cast<std::size_t>(axis);
    spec.axes.push_back({.input = shape[axis + 1],
                         .filter = filter[axis],
                         .output = out[axis + 1],
                         .low = a.low[at],
                         .stride = a.strides[at],
                         .dilation = a.dilations[at]});
  }
  spec.batch = shape[0];
  spec.channels = shape[3];
  spec.features = filter[3];
  spec.input = x.buffer;
  spec.input_layout = x.layout;
  spec.input_extent = call.elements(x);

  Place weights = call.dense(1);
  if (spec.dtype != computed) {
    Place wide = call.temporary(computed, filter);
    Place operands[] = {weights};
    DType dtypes[] = {spec.dtype};
    AxisMap axes[] = {identity_axes(4)};
    call.map(filter, operands, dtypes, axes, scalar::cast(operand(0, spec.dtype), computed), wide, "widen");
    weights = wide;
  }
  spec.filter = weights.buffer;
  spec.result = call.result().buffer;
  call.step(call.target().convolution(std::move(spec)));
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
      Dim whole = dilated_size(x[axis + 1], a.input_dilations[at]);
      Dim spread = dilated_size(out[axis + 1], a.strides[at]);
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
    across.filter_may_be_empty = true;
    for (int axis : {0, 1}) {
      auto at = static_cast<std::size_t>(axis);
      Dim whole = dilated_size(x[axis + 1], a.input_dilations[at]);
      Dim spread = dilated_size(out[axis + 1], a.strides[at]);
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
      .add({{{2, 5, 6, 3}}, {{3, 3, 3, 4}}}, plain)
      .add({{{1, 7, 8, 2}}, {{3, 2, 2, 5}}}, strided)
      .add({{{2, 5, 5, 1}}, {{2, 3, 1, 3}}}, padded)
      .add({{{1, 9, 6, 20}}, {{3, 3, 20, 2}}}, dilated)
      .add({{{0, 5, 5, 2}}, {{3, 3, 2, 4}}}, plain)
      .add({{{2, 1, 1, 3}}, {{1, 1, 3, 4}}}, plain);
}

void errors_of_conv2d(ErrorList& list) {
  Conv2DAttributes plain, stuck;
  stuck.strides = {0, 1};
  list.add("'x' has rank 3, not 4", {{DType::f32, {5, 5, 3}}, {DType::f32, {3, 3, 3, 4}}}, plain)
      .add("channels of 'x' and 'filter', 3 and 2 differ", {{DType::f32, {1, 5, 5, 3}}, {DType::f32, {3, 3, 2, 4}}},
           plain)
      .add("conv2d does not take i32", {{DType::i32, {1, 5, 5, 3}}, {DType::i32, {3, 3, 3, 4}}}, plain)
      .add("stride", {{DType::f32, {1, 5, 5, 3}}, {DType::f32, {3, 3, 3, 4}}}, stuck)
      .add("kernel", {{DType::f32, {1, 5, 5, 3}}, {DType::f32, {0, 3, 3, 4}}}, plain)
      .add("", {{DType::f32, {1, 2, 2, 3}}, {DType::f32, {5, 5, 3, 4}}}, plain);
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
        // More stride than filter needs no padding.
        Dim total = larger_of(((size + (stride - 1)) / stride - 1) * stride + reach - size, 0);
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
