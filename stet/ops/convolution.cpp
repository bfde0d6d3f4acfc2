// Convolutions. Three rows compute one of a convolution's tensors (input, filter, output) from the other two, and are
// each other's gradients, to any order.
#include "stet/compiler/lower.h"
#include "stet/core/batch.h"
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/saved_rows.h"
#include "stet/ops/table.h"
#include "stet/ops/window_call.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- windows and images

/// What surrounds an input that windows move over: "valid" is nothing; "same" as many zeros as give
/// ceil(size / stride) windows, the odd one at the end, as in TensorFlow; {{before, after}, …} that many, per spatial
/// axis.
class WindowPadding {
 public:
  WindowPadding(const char* padding) : name(padding) {}
  WindowPadding(std::string padding) : name(std::move(padding)) {}
  WindowPadding(std::vector<std::pair<std::int64_t, std::int64_t>> padding)
      : name("pairs"), pairs(std::move(padding)) {}
  WindowPadding(std::initializer_list<std::pair<std::int64_t, std::int64_t>> padding) : name("pairs"), pairs(padding) {}
  std::string name;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
};

struct Conv1DOptions {
  std::vector<std::int64_t> strides = {1};
  WindowPadding padding = "valid";
  std::vector<std::int64_t> dilations = {1};
  /// Channels and features fall into this many groups, and features see the channels of their own group alone.
  std::int64_t groups = 1;
};
/// Convolution of sequences [batch, steps, channels] with a filter [size, channels / groups, features].
/// Names: tf.nn.conv1d, keras.ops.conv, torch.nn.functional.conv1d, jax.lax.conv_general_dilated
/// Example: conv1d(reshape(tensor({1.f, 2.f, 3.f, 4.f}), {1, 4, 1}), reshape(tensor({1.f, 10.f}), {2, 1, 1}))
STET_API Tensor conv1d(In x, In filter, const Conv1DOptions& options = {});

struct Conv2DOptions {
  std::vector<std::int64_t> strides = {1, 1};
  WindowPadding padding = "valid";
  /// true: the same as padding = "same".
  bool same_padding = false;
  std::vector<std::int64_t> dilations = {1, 1};
  std::int64_t groups = 1;  // as in Conv1DOptions
};
/// Convolution of images [batch, height, width, channels] with a filter [height, width, channels / groups, features].
/// Names: tf.nn.conv2d, keras.ops.conv, torch.nn.functional.conv2d, jax.lax.conv_general_dilated
/// Example: conv2d(reshape(cast(arange(9), f32), {1, 3, 3, 1}), ones({2, 2, 1, 1}))
STET_API Tensor conv2d(In x, In filter, const Conv2DOptions& options = {});

struct Conv3DOptions {
  std::vector<std::int64_t> strides = {1, 1, 1};
  WindowPadding padding = "valid";
  std::vector<std::int64_t> dilations = {1, 1, 1};
  std::int64_t groups = 1;  // as in Conv1DOptions
};
/// Convolution of volumes [batch, depth, height, width, channels] with a filter
/// [depth, height, width, channels / groups, features].
/// Names: tf.nn.conv3d, keras.ops.conv, torch.nn.functional.conv3d, jax.lax.conv_general_dilated
/// Example: conv3d(ones({1, 2, 2, 2, 1}), ones({2, 2, 2, 1, 1}))
STET_API Tensor conv3d(In x, In filter, const Conv3DOptions& options = {});

struct DepthwiseConv1DOptions {
  std::vector<std::int64_t> strides = {1};
  WindowPadding padding = "valid";
  std::vector<std::int64_t> dilations = {1};
};
/// Every channel of [batch, steps, channels] convolved with filters of its own, [size, channels, multiplier]: features
/// c * multiplier + m are those of channel c.
/// Names: keras.ops.depthwise_conv
/// Example: depthwise_conv1d(ones({1, 2, 2}), reshape(tensor({1.f, 2.f, 3.f, 4.f}), {1, 2, 2}))
STET_API Tensor depthwise_conv1d(In x, In filter, const DepthwiseConv1DOptions& options = {});

struct DepthwiseConv2DOptions {
  std::vector<std::int64_t> strides = {1, 1};
  WindowPadding padding = "valid";
  std::vector<std::int64_t> dilations = {1, 1};
};
/// The same of images [batch, height, width, channels] with filters [height, width, channels, multiplier].
/// Names: tf.nn.depthwise_conv2d, keras.ops.depthwise_conv
/// Example: depthwise_conv2d(ones({1, 1, 2, 2}), reshape(tensor({1.f, 2.f, 3.f, 4.f}), {1, 1, 2, 2}))
STET_API Tensor depthwise_conv2d(In x, In filter, const DepthwiseConv2DOptions& options = {});
/// depthwise_conv2d, then a convolution with `pointwise` [1, 1, channels * multiplier, features].
/// Names: tf.nn.separable_conv2d, keras.ops.separable_conv
/// Example: separable_conv2d(ones({1, 1, 1, 2}), ones({1, 1, 2, 1}), reshape(tensor({1.f, 2.f}), {1, 1, 2, 1}))
STET_API Tensor separable_conv2d(In x, In depthwise, In pointwise, const DepthwiseConv2DOptions& options = {});

struct ConvTransposeOptions {
  /// Empty: 1 for every axis.
  std::vector<std::int64_t> strides = {};
  WindowPadding padding = "valid";
  /// Empty: sizes are input * stride for "same", and that plus what a filter longer than the stride adds for "valid".
  /// Otherwise, as in Keras: so many positions beyond (input - 1) * stride + filter - the padding.
  std::vector<std::int64_t> output_padding = {};
  std::vector<std::int64_t> dilations = {};  // empty: 1 for every axis
};
/// The transposed convolution: what the gradient of conv1d with these strides and this padding does. `x` is
/// [batch, steps, channels], the filter [size, features, channels].
/// Names: tf.nn.conv1d_transpose, keras.ops.conv_transpose, torch.nn.functional.conv_transpose1d
/// Example: conv1d_transpose(reshape(tensor({1.f, 2.f}), {1, 2, 1}), ones({2, 1, 1}), {.strides = {2}})
STET_API Tensor conv1d_transpose(In x, In filter, const ConvTransposeOptions& options = {});
/// The same of images [batch, height, width, channels] with a filter [height, width, features, channels].
/// Names: tf.nn.conv2d_transpose, keras.ops.conv_transpose, torch.nn.functional.conv_transpose2d
/// Example: conv2d_transpose(reshape(tensor({1.f, 2.f}), {1, 1, 2, 1}), ones({1, 2, 1, 1}), {.strides = {1, 2}})
STET_API Tensor conv2d_transpose(In x, In filter, const ConvTransposeOptions& options = {});
/// The same of volumes [batch, depth, height, width, channels] with a filter
/// [depth, height, width, features, channels].
/// Names: tf.nn.conv3d_transpose, keras.ops.conv_transpose, torch.nn.functional.conv_transpose3d
/// Example: conv3d_transpose(ones({1, 1, 1, 2, 1}), ones({1, 1, 2, 1, 1}))
STET_API Tensor conv3d_transpose(In x, In filter, const ConvTransposeOptions& options = {});
#endif

namespace {

constexpr const char* conv_names[] = {"x", "filter"};
constexpr const char* input_names[] = {"output", "filter"};
constexpr const char* filter_names[] = {"x", "output"};

/// Filters of the rows are [window…, channels of a group, groups, features of a group]; everything else is
/// [batch, spatial axes…, channels]. One entry per spatial axis: output o sees input o * stride + k * dilation - low.
struct ConvAttributes {
  std::vector<std::int64_t> strides, dilations;
  std::vector<Dim> low;
  /// Of the result: the spatial ones of an input or output, all of a filter. Any will do: what would lie outside is 0.
  std::vector<Dim> sizes;
  STET_ATTRIBUTES(strides, dilations, low, sizes)
};

int spatial_of(const ConvAttributes& a) { return static_cast<int>(a.strides.size()); }

void require_attributes(InferCall& call, std::size_t sizes) {
  const auto& a = call.attributes<ConvAttributes>();
  std::size_t spatial = a.strides.size();
  call.require(spatial >= 1 && spatial <= 3, text("there are ", spatial, " spatial axes"), "1, 2 or 3 are possible");
  call.require(a.dilations.size() == spatial && a.low.size() == spatial && a.sizes.size() == sizes,
               "strides, dilations, padding and sizes are for different numbers of axes");
  for (std::int64_t number : a.strides) call.require(number >= 1, text("stride ", number, " is less than 1"));
  for (std::int64_t number : a.dilations) call.require(number >= 1, text("dilation ", number, " is less than 1"));
  call.check_sizes(a.sizes);
  call.require(call.dtype(0) == call.dtype(1), text("the operands are ", call.dtype(0), " and ", call.dtype(1)),
               "cast one of them first");
  call.require(is_floating(call.dtype(0)), text("a convolution does not take ", call.dtype(0)), "cast to f32 first");
}

void require_rank(InferCall& call, int number, const char* name, int rank) {
  call.require(call.rank(number) == rank, text("'", name, "' has rank ", call.rank(number), ", not ", rank));
}

Shape with_sizes(const Dim& batch, std::span<const Dim> sizes, const Dim& channels) {
  Shape out{batch};
  for (const Dim& size : sizes) out.push_back(size);
  out.push_back(channels);
  return out;
}

void infer_conv(InferCall& call) {
  const auto& a = call.attributes<ConvAttributes>();
  int spatial = spatial_of(a);
  require_attributes(call, a.strides.size());
  require_rank(call, 0, "x", spatial + 2);
  require_rank(call, 1, "filter", spatial + 3);
  const Shape &x = call.shape(0), &filter = call.shape(1);
  call.require_equal(x[-1], filter[spatial] * filter[spatial + 1], "channels of 'x' and of all groups of 'filter',");
  call.result(call.dtype(0), with_sizes(x[0], a.sizes, filter[spatial + 1] * filter[spatial + 2]));
}

void infer_conv_input(InferCall& call) {
  const auto& a = call.attributes<ConvAttributes>();
  int spatial = spatial_of(a);
  require_attributes(call, a.strides.size());
  require_rank(call, 0, "output", spatial + 2);
  require_rank(call, 1, "filter", spatial + 3);
  const Shape &output = call.shape(0), &filter = call.shape(1);
  call.require_equal(output[-1], filter[spatial + 1] * filter[spatial + 2], "features of 'output' and of 'filter',");
  call.result(call.dtype(0), with_sizes(output[0], a.sizes, filter[spatial] * filter[spatial + 1]));
}

void infer_conv_filter(InferCall& call) {
  const auto& a = call.attributes<ConvAttributes>();
  int spatial = spatial_of(a);
  require_attributes(call, a.strides.size() + 3);
  require_rank(call, 0, "x", spatial + 2);
  require_rank(call, 1, "output", spatial + 2);
  const Shape &x = call.shape(0), &output = call.shape(1);
  auto at = static_cast<std::size_t>(spatial);
  call.require_equal(x[0], output[0], "batch sizes of 'x' and 'output',");
  call.require_equal(x[-1], a.sizes[at] * a.sizes[at + 1], "channels of 'x' and of the filter,");
  call.require_equal(output[-1], a.sizes[at + 1] * a.sizes[at + 2], "features of 'output' and of the filter,");
  call.result(call.dtype(0), Shape(std::span(a.sizes)));
}

// --- lowering

/// The operand, dense and in the type of the sums.
Place computed_operand(LowerCall& call, int number, DType computed) {
  const ValueType& type = call.in(number);
  if (type.dtype == computed) return call.dense(number);
  Place to = call.temporary(computed, type.shape), operands[] = {call.place(number)};
  DType dtypes[] = {type.dtype};
  AxisMap axes[] = {identity_axes(type.shape.rank())};
  call.map(type.shape, operands, dtypes, axes, scalar::cast(operand(0, type.dtype), computed), to, "widen");
  return to;
}

void lower_convolution(LowerCall& call, ConvolutionResult result, const Shape& input, const Shape& filter,
                       const Shape& output) {
  const auto& a = call.attributes<ConvAttributes>();
  DType dtype = call.out().dtype, computed = compute_type(dtype);
  ConvolutionSpec spec;
  spec.dtype = computed;
  spec.result = result;
  int spatial = spatial_of(a);
  for (int axis = 0; axis < spatial; ++axis) {
    auto at = static_cast<std::size_t>(axis);
    spec.axes.push_back({.input = input[axis + 1],
                         .filter = filter[axis],
                         .output = output[axis + 1],
                         .low = a.low[at],
                         .stride = a.strides[at],
                         .dilation = a.dilations[at]});
  }
  spec.batch = input[0];
  spec.channels = filter[spatial];
  spec.groups = filter[spatial + 1];
  spec.features = filter[spatial + 2];
  int first = computed_operand(call, 0, computed).buffer, second = computed_operand(call, 1, computed).buffer;
  Place to = dtype == computed ? call.result() : call.temporary(computed, call.out().shape);
  spec.input = result == ConvolutionResult::input ? to.buffer : first;
  spec.filter = result == ConvolutionResult::filter ? to.buffer : second;
  spec.output = result == ConvolutionResult::output ? to.buffer : result == ConvolutionResult::input ? first : second;
  call.step(call.target().convolution(std::move(spec)));
  if (dtype == computed) return;
  Place operands[] = {to};
  DType dtypes[] = {computed};
  AxisMap axes[] = {identity_axes(call.out().shape.rank())};
  call.map(call.out().shape, operands, dtypes, axes, scalar::cast(operand(0, computed), dtype), call.result(), "round");
}

// --- gradients

Tensor convolve_to(const OpDef& row, const Tensor& left, const Tensor& right, const ConvAttributes& of,
                   const Shape& result) {
  ConvAttributes attributes = of;
  std::span<const Dim> sizes = result.dims();
  if (&row != &conv_filter_row) sizes = sizes.subspan(1, sizes.size() - 2);
  attributes.sizes.assign(sizes.begin(), sizes.end());
  return call(row, {In(left), In(right)}, view_of(attributes));
}

void gradient_of_conv(GradientCall& g) {
  const auto& a = g.attributes<ConvAttributes>();
  const Tensor &x = g.in(0), &filter = g.in(1);
  if (g.wants(0)) g.set(0, convolve_to(conv_input_row, g.d(), filter, a, x.shape()));
  if (g.wants(1)) g.set(1, convolve_to(conv_filter_row, x, g.d(), a, filter.shape()));
}

void gradient_of_conv_input(GradientCall& g) {
  const auto& a = g.attributes<ConvAttributes>();
  const Tensor &output = g.in(0), &filter = g.in(1);
  if (g.wants(0)) g.set(0, convolve_to(conv_row, g.d(), filter, a, output.shape()));
  if (g.wants(1)) g.set(1, convolve_to(conv_filter_row, g.d(), output, a, filter.shape()));
}

void gradient_of_conv_filter(GradientCall& g) {
  const auto& a = g.attributes<ConvAttributes>();
  const Tensor &x = g.in(0), &output = g.in(1);
  if (g.wants(0)) g.set(0, convolve_to(conv_input_row, output, g.d(), a, x.shape()));
  if (g.wants(1)) g.set(1, convolve_to(conv_row, x, g.d(), a, output.shape()));
}

// --- samples

struct ConvSample {
  std::vector<std::int64_t> x, filter, output;
  ConvAttributes attributes;
};

/// Every kind of window: plain, strided, padded on either side (also cut), dilated, grouped, depthwise with and without
/// a multiplier, one to three axes, empty, of one element, more stride than window, more window than input.
const std::vector<ConvSample>& conv_samples() {
  static const auto* samples = new std::vector<ConvSample>{
      {{2, 5, 6, 3}, {3, 3, 3, 1, 4}, {2, 3, 4, 4}, {{1, 1}, {1, 1}, {0, 0}, {}}},
      {{1, 7, 8, 2}, {3, 2, 2, 1, 5}, {1, 3, 4, 5}, {{2, 2}, {1, 1}, {0, 0}, {}}},
      {{2, 5, 5, 2}, {2, 3, 2, 1, 3}, {2, 6, 3, 3}, {{1, 2}, {1, 1}, {1, 2}, {}}},
      {{1, 7, 4, 17}, {2, 2, 17, 1, 2}, {1, 7, 5, 2}, {{1, 1}, {2, 1}, {1, 1}, {}}},
      {{0, 5, 5, 2}, {3, 3, 2, 1, 4}, {0, 3, 3, 4}, {{1, 1}, {1, 1}, {0, 0}, {}}},
      {{2, 1, 1, 3}, {1, 1, 3, 1, 4}, {2, 1, 1, 4}, {{1, 1}, {1, 1}, {0, 0}, {}}},
      {{1, 6, 5, 2}, {2, 2, 2, 1, 3}, {1, 2, 2, 3}, {{4, 3}, {1, 1}, {0, 0}, {}}},
      {{2, 6, 6, 3}, {4, 4, 3, 1, 2}, {2, 2, 2, 2}, {{1, 1}, {1, 1}, {-1, -1}, {}}},
      {{2, 3, 3, 2}, {5, 4, 2, 1, 3}, {2, 3, 2, 3}, {{1, 2}, {1, 1}, {2, 1}, {}}},
      {{2, 7, 4}, {3, 4, 1, 5}, {2, 5, 5}, {{1}, {1}, {0}, {}}},
      {{2, 9, 2}, {2, 2, 1, 17}, {2, 3, 17}, {{3}, {2}, {1}, {}}},
      {{1, 3, 4, 3, 2}, {2, 3, 2, 2, 1, 3}, {1, 2, 2, 2, 3}, {{1, 2, 1}, {1, 1, 1}, {0, 1, 0}, {}}},
      {{2, 4, 4, 5}, {3, 3, 1, 5, 1}, {2, 4, 4, 5}, {{1, 1}, {1, 1}, {1, 1}, {}}}};
  return *samples;
}
/// Groups of several channels: their product must be kept, so only the batch grows.
const std::vector<ConvSample>& fixed_samples() {
  static const auto* samples =
      new std::vector<ConvSample>{{{2, 5, 5, 6}, {3, 2, 2, 3, 4}, {2, 3, 4, 12}, {{1, 1}, {1, 1}, {0, 0}, {}}},
                                  {{2, 4, 6, 3}, {3, 3, 1, 3, 2}, {2, 2, 3, 6}, {{2, 2}, {1, 1}, {0, 1}, {}}},
                                  {{3, 8, 4}, {3, 2, 2, 1}, {3, 4, 2}, {{2}, {1}, {1}, {}}}};
  return *samples;
}

template <class Add>
void each_conv_sample(SampleList& list, const Add& add) {
  list.rounded(Rounding::sums);
  for (const ConvSample& sample : conv_samples()) add(sample);
  list.growing(Grows::first);
  for (const ConvSample& sample : fixed_samples()) add(sample);
}

ConvAttributes sized(const ConvSample& sample, const std::vector<std::int64_t>& sizes, std::size_t from,
                     std::size_t until) {
  ConvAttributes out = sample.attributes;
  for (std::size_t i = from; i + until < sizes.size(); ++i) out.sizes.push_back(sizes[i]);
  return out;
}

void samples_of_conv(SampleList& list) {
  each_conv_sample(list, [&](const ConvSample& s) { list.add({{s.x}, {s.filter}}, sized(s, s.output, 1, 1)); });
}
void samples_of_conv_input(SampleList& list) {
  each_conv_sample(list, [&](const ConvSample& s) { list.add({{s.output}, {s.filter}}, sized(s, s.x, 1, 1)); });
}
/// The sizes of a filter follow from those of the operands: they grow with them, or not at all.
void samples_of_conv_filter(SampleList& list) {
  list.rounded(Rounding::sums).growing(Grows::everything);
  for (const ConvSample& s : conv_samples()) list.add({{s.x}, {s.output}}, sized(s, s.filter, 0, 0));
}

void errors_of_conv(ErrorList& list) {
  ConvAttributes plain{{1, 1}, {1, 1}, {0, 0}, {3, 3}}, stuck{{0, 1}, {1, 1}, {0, 0}, {3, 3}},
      close{{1, 1}, {1, -1}, {0, 0}, {3, 3}}, uneven{{1, 1}, {1}, {0, 0}, {3, 3}}, none{{}, {}, {}, {}},
      negative{{1, 1}, {1, 1}, {0, 0}, {3, -1}};
  DType f = DType::f32;
  list.add("'x' has rank 3, not 4", {{f, {5, 5, 3}}, {f, {3, 3, 3, 1, 4}}}, plain)
      .add("'filter' has rank 4, not 5", {{f, {1, 5, 5, 3}}, {f, {3, 3, 3, 4}}}, plain)
      .add("channels of 'x' and of all groups of 'filter', 3 and 4 differ", {{f, {1, 5, 5, 3}}, {f, {3, 3, 2, 2, 4}}},
           plain)
      .add("a convolution does not take i32", {{DType::i32, {1, 5, 5, 3}}, {DType::i32, {3, 3, 3, 1, 4}}}, plain)
      .add("the operands are f32 and f64", {{f, {1, 5, 5, 3}}, {DType::f64, {3, 3, 3, 1, 4}}}, plain)
      .add("stride 0 is less than 1", {{f, {1, 5, 5, 3}}, {f, {3, 3, 3, 1, 4}}}, stuck)
      .add("dilation -1 is less than 1", {{f, {1, 5, 5, 3}}, {f, {3, 3, 3, 1, 4}}}, close)
      .add("different numbers of axes", {{f, {1, 5, 5, 3}}, {f, {3, 3, 3, 1, 4}}}, uneven)
      .add("there are 0 spatial axes", {{f, {1, 3}}, {f, {3, 1, 4}}}, none)
      .add("-1", {{f, {1, 5, 5, 3}}, {f, {3, 3, 3, 1, 4}}}, negative);
}
void errors_of_conv_input(ErrorList& list) {
  ConvAttributes plain{{1, 1}, {1, 1}, {0, 0}, {5, 5}};
  list.add("features of 'output' and of 'filter', 3 and 4 differ",
           {{DType::f32, {1, 3, 3, 3}}, {DType::f32, {3, 3, 2, 1, 4}}}, plain)
      .add("'output' has rank 2, not 4", {{DType::f32, {1, 3}}, {DType::f32, {3, 3, 2, 1, 4}}}, plain);
}
void errors_of_conv_filter(ErrorList& list) {
  ConvAttributes plain{{1, 1}, {1, 1}, {0, 0}, {3, 3, 2, 1, 4}}, short_sizes{{1, 1}, {1, 1}, {0, 0}, {3, 3}};
  list.add("batch sizes of 'x' and 'output', 1 and 2 differ", {{DType::f32, {1, 5, 5, 2}}, {DType::f32, {2, 3, 3, 4}}},
           plain)
      .add("channels of 'x' and of the filter, 3 and 2 differ",
           {{DType::f32, {1, 5, 5, 3}}, {DType::f32, {1, 3, 3, 4}}}, plain)
      .add("features of 'output' and of the filter, 5 and 4 differ",
           {{DType::f32, {1, 5, 5, 2}}, {DType::f32, {1, 3, 3, 5}}}, plain)
      .add("different numbers of axes", {{DType::f32, {1, 5, 5, 2}}, {DType::f32, {1, 3, 3, 4}}}, short_sizes);
}

// --- many examples

/// All examples are one batch, unless each has a filter of its own.
void batch_conv(BatchCall& call) {
  if (call.has_batch(1)) return;
  call.set({call.unfolded(call.call({call.folded(0), call.in(1)}, call.attributes_view())[0])});
}

}  // namespace

constinit const AttributeCodec conv_codec = attribute_codec<ConvAttributes>;

constinit const OpDef conv_row{.name = "conv",
                               .kind = Kind::window,
                               .summary = "Convolution over one to three axes.",
                               .operands = conv_names,
                               .infer = infer_conv,
                               .lower =
                                   [](LowerCall& call) {
                                     lower_convolution(call, ConvolutionResult::output, call.in(0).shape,
                                                       call.in(1).shape, call.out().shape);
                                   },
                               .gradient = gradient_of_conv,
                               .samples = samples_of_conv,
                               .errors = errors_of_conv,
                               .batch = batch_conv};

constinit const OpDef conv_input_row{.name = "conv_input",
                                     .kind = Kind::window,
                                     .summary = "Transposed convolution: the input's gradient.",
                                     .operands = input_names,
                                     .infer = infer_conv_input,
                                     .lower =
                                         [](LowerCall& call) {
                                           lower_convolution(call, ConvolutionResult::input, call.out().shape,
                                                             call.in(1).shape, call.in(0).shape);
                                         },
                                     .gradient = gradient_of_conv_input,
                                     .samples = samples_of_conv_input,
                                     .errors = errors_of_conv_input,
                                     .batch = batch_conv};

constinit const OpDef conv_filter_row{.name = "conv_filter",
                                      .kind = Kind::window,
                                      .summary = "Input and output of a convolution multiplied: the filter's gradient.",
                                      .operands = filter_names,
                                      .infer = infer_conv_filter,
                                      .lower =
                                          [](LowerCall& call) {
                                            lower_convolution(call, ConvolutionResult::filter, call.in(0).shape,
                                                              call.out().shape, call.in(1).shape);
                                          },
                                      .gradient = gradient_of_conv_filter,
                                      .samples = samples_of_conv_filter,
                                      .errors = errors_of_conv_filter};

// --- callables

namespace {

constexpr const char* data_layouts[] = {"sequences are [batch, steps, channels]",
                                        "images are [batch, height, width, channels]",
                                        "volumes are [batch, depth, height, width, channels]"};
constexpr const char* filter_layouts[] = {"a filter is [size, channels, features]",
                                          "a filter is [height, width, channels, features]",
                                          "a filter is [depth, height, width, channels, features]"};

/// The filter as the rows have it, its last two axes replaced.
Tensor regrouped(const Tensor& filter, int spatial, const Dim& channels, const Dim& groups, const Dim& features) {
  std::vector<Dim> sizes;
  for (int axis = 0; axis < spatial; ++axis) sizes.push_back(filter.dim(axis));
  sizes.insert(sizes.end(), {channels, groups, features});
  return reshape(filter, sizes);
}

/// What all of them have checked before they look at channels.
void require_windows(const WindowCall& call, int spatial, const std::vector<std::int64_t>& strides,
                     const std::vector<std::int64_t>& dilations, const WindowPadding& padding) {
  auto at = static_cast<std::size_t>(spatial - 1);
  call.require_rank(0, spatial + 2, data_layouts[at]);
  call.require_rank(1, spatial + 2, filter_layouts[at]);
  call.require_floating();
  call.require(strides.size() == static_cast<std::size_t>(spatial) && dilations.size() == strides.size(),
               text("strides and dilations have ", entries_text(spatial)));
  call.require_padding(padding, spatial);
}

Tensor convolved(const WindowCall& call, const Tensor& filter, const std::vector<std::int64_t>& strides,
                 const std::vector<std::int64_t>& dilations, const WindowPadding& padding) {
  ConvAttributes attributes{strides, dilations, {}, {}};
  const Tensor& x = call.operand(0);
  call.reporting([&] {
    for (int axis = 0; axis < x.rank() - 2; ++axis) {
      auto at = static_cast<std::size_t>(axis);
      WindowAxis windows = call.axis(axis, x.dim(axis + 1), filter.dim(axis), strides[at], dilations[at], padding);
      attributes.low.push_back(windows.low);
      attributes.sizes.push_back(windows.size);
    }
  });
  return stet::call(conv_row, {In(x, call.where()), In(filter, call.where())}, view_of(attributes));
}

template <class Options>
Tensor grouped_convolution(const char* name, int spatial, const In& x, const In& filter, const Options& options,
                           const WindowPadding& padding) {
  In operands[] = {x, filter};
  WindowCall call(name, conv_names, operands);
  require_windows(call, spatial, options.strides, options.dilations, padding);
  const Tensor& weights = call.operand(1);
  std::int64_t groups = options.groups;
  call.require(groups >= 1, text("groups are ", groups), "at least 1");
  Dim channels = weights.dim(spatial), features = weights.dim(spatial + 1);
  call.require_equal(call.operand(0).dim(-1), channels * groups,
                     groups == 1 ? "channels of 'x' and 'filter',"
                                 : text("channels of 'x' and of the ", groups, " groups of 'filter',"));
  call.require(groups == 1 || check(features % groups, Relation::equal, 0, {name, "groups", call.where()},
                                    sized_text("features ", features, " do not fall into ", groups, " groups")),
               text("features ", size_text(features), " do not fall into ", groups, " groups"),
               "their number must be a multiple of the groups");
  Tensor regular = regrouped(weights, spatial, channels, groups, groups == 1 ? features : features / groups);
  return convolved(call, regular, options.strides, options.dilations, padding);
}

template <class Options>
Tensor depthwise_convolution(const char* name, int spatial, const In& x, const In& filter, const Options& options) {
  In operands[] = {x, filter};
  WindowCall call(name, conv_names, operands);
  require_windows(call, spatial, options.strides, options.dilations, options.padding);
  const Tensor& weights = call.operand(1);
  Dim channels = weights.dim(spatial);
  call.require_equal(call.operand(0).dim(-1), channels, "channels of 'x' and 'filter',");
  Tensor regular = regrouped(weights, spatial, 1, channels, weights.dim(spatial + 1));
  return convolved(call, regular, options.strides, options.dilations, options.padding);
}

Tensor transposed_convolution(const char* name, int spatial, const In& x, const In& filter,
                              const ConvTransposeOptions& options) {
  In operands[] = {x, filter};
  WindowCall call(name, conv_names, operands);
  auto count = static_cast<std::size_t>(spatial);
  ConvAttributes attributes{options.strides, options.dilations, {}, {}};
  if (attributes.strides.empty()) attributes.strides.assign(count, 1);
  if (attributes.dilations.empty()) attributes.dilations.assign(count, 1);
  require_windows(call, spatial, attributes.strides, attributes.dilations, options.padding);
  if (!options.output_padding.empty()) call.require_entries("output paddings", options.output_padding.size(), spatial);
  const Tensor &data = call.operand(0), &weights = call.operand(1);
  call.require_equal(data.dim(-1), weights.dim(-1), "channels of 'x' and 'filter',",
                     "the filter of a transposed convolution ends in [features, channels]");
  call.reporting([&] {
    for (int axis = 0; axis < spatial; ++axis) {
      auto at = static_cast<std::size_t>(axis);
      WindowAxis result = call.transposed_axis(axis, data.dim(axis + 1), weights.dim(axis), attributes.strides[at],
                                               attributes.dilations[at], options.padding, options.output_padding);
      attributes.low.push_back(result.low);
      attributes.sizes.push_back(result.size);
    }
  });
  Tensor regular = regrouped(weights, spatial, weights.dim(-2), 1, weights.dim(-1));
  return stet::call(conv_input_row, {In(data, call.where()), In(regular, call.where())}, view_of(attributes));
}

}  // namespace

Tensor conv1d(In x, In filter, const Conv1DOptions& options) {
  return grouped_convolution("conv1d", 1, x, filter, options, options.padding);
}
Tensor conv2d(In x, In filter, const Conv2DOptions& options) {
  return grouped_convolution("conv2d", 2, x, filter, options,
                             options.same_padding ? WindowPadding("same") : options.padding);
}
Tensor conv3d(In x, In filter, const Conv3DOptions& options) {
  return grouped_convolution("conv3d", 3, x, filter, options, options.padding);
}

Tensor depthwise_conv1d(In x, In filter, const DepthwiseConv1DOptions& options) {
  return depthwise_convolution("depthwise_conv1d", 1, x, filter, options);
}
Tensor depthwise_conv2d(In x, In filter, const DepthwiseConv2DOptions& options) {
  return depthwise_convolution("depthwise_conv2d", 2, x, filter, options);
}

Tensor separable_conv2d(In x, In depthwise, In pointwise, const DepthwiseConv2DOptions& options) {
  Frame frame("separable_conv2d", x.where());
  return conv2d(depthwise_conv2d(x, depthwise, options), pointwise);
}

Tensor conv1d_transpose(In x, In filter, const ConvTransposeOptions& options) {
  return transposed_convolution("conv1d_transpose", 1, x, filter, options);
}
Tensor conv2d_transpose(In x, In filter, const ConvTransposeOptions& options) {
  return transposed_convolution("conv2d_transpose", 2, x, filter, options);
}
Tensor conv3d_transpose(In x, In filter, const ConvTransposeOptions& options) {
  return transposed_convolution("conv3d_transpose", 3, x, filter, options);
}

}  // namespace stet
