#include "stet/keras/convolution.h"

#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/spatial.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using Numbers = std::vector<std::int64_t>;

/// The options that all of them have, checked.
struct Windows {
  const char* layer;
  int axes;
  Numbers kernel, strides, dilations;
  std::string padding;
  bool channels_first;
};

template <class Options>
Windows windows_of(const char* layer, int axes, const WindowSizes& kernel_size, const Options& options, Where where,
                   bool causal = false) {
  Windows out{layer,
              axes,
              for_each_axis(layer, "kernel_size", kernel_size, axes, 1, where),
              for_each_axis(layer, "strides", options.strides, axes, 1, where),
              for_each_axis(layer, "dilation_rate", options.dilation_rate, axes, 1, where),
              options.padding,
              is_channels_first(layer, options.data_format, where)};
  if (causal)
    require_name(layer, "padding", out.padding, {"valid", "same", "causal"}, where);
  else
    require_name(layer, "padding", out.padding, {"valid", "same"}, where);
  auto above_one = [](std::int64_t number) { return number > 1; };
  if (std::any_of(out.strides.begin(), out.strides.end(), above_one) &&
      std::any_of(out.dilations.begin(), out.dilations.end(), above_one))
    throw UserError(error_text(text(layer, ": strides and dilation_rate are both more than 1"), where,
                               "one of them is 1 in every axis"));
  return out;
}

/// The kernel's sizes, then two more.
Shape kernel_shape(const Windows& windows, const Dim& before_last, const Dim& last) {
  std::vector<Dim> sizes(windows.kernel.begin(), windows.kernel.end());
  sizes.insert(sizes.end(), {before_last, last});
  return Shape(sizes);
}

/// What is the same for all of them: layouts, bias and activation.
template <class Options>
class ConvolutionLayer : public LibraryLayer {
 public:
  ConvolutionLayer(Windows windows, Options options)
      : LibraryLayer(windows.layer, options.name, takes_spatial(windows.axes, windows.channels_first), options.dtype,
                     {options.activation, options.activity_regularizer}),
        windows_(std::move(windows)),
        options_(std::move(options)) {}

 protected:
  /// Adds the kernels, for inputs of so many channels, and gives the number of features that come out.
  virtual Dim make_kernels(const Dim& channels) = 0;
  /// Of `x` with its channels last.
  virtual Tensor convolved(const Tensor& x) const = 0;

  Tensor run(const Tensor& x, const Context& context) final {
    const int channels_axis = windows_.channels_first ? 1 : -1;
    require_size(x, channels_axis, channels_[0], "channels", context.where);
    Tensor out = convolved(windows_.channels_first ? channels_to_last(x) : x);
    if (options_.use_bias) out = out + in_compute_type(bias_);
    return windows_.channels_first ? channels_to_first(out) : out;
  }
  void make_weights(const Shape& input) final {
    const Dim channels = input[windows_.channels_first ? 1 : -1].value();
    const Dim features = make_kernels(channels);
    channels_ = Shape({channels});
    if (options_.use_bias) bias_ = weight("bias", {features}, bias_rule_of(options_));
  }

  const Windows windows_;
  const Options options_;

 private:
  Shape channels_;  // of what it was built for
  Variable bias_;
};

/// A convolution with zeros put before the steps for "causal".
WindowPadding padding_of(const Windows& windows) {
  if (windows.padding != "causal") return windows.padding;
  return {{(windows.kernel[0] - 1) * windows.dilations[0], 0}};
}

Tensor convolution(const Windows& windows, const Tensor& x, const Tensor& kernel, std::int64_t groups) {
  const WindowPadding padding = padding_of(windows);
  const Numbers &strides = windows.strides, &dilations = windows.dilations;
  switch (windows.axes) {
    case 1:
      return conv1d(x, kernel, {.strides = strides, .padding = padding, .dilations = dilations, .groups = groups});
    case 2:
      return conv2d(x, kernel, {.strides = strides, .padding = padding, .dilations = dilations, .groups = groups});
    default:
      return conv3d(x, kernel, {.strides = strides, .padding = padding, .dilations = dilations, .groups = groups});
  }
}

Tensor depthwise_convolution(const Windows& windows, const Tensor& x, const Tensor& kernel) {
  const Numbers &strides = windows.strides, &dilations = windows.dilations;
  if (windows.axes == 1)
    return depthwise_conv1d(x, kernel, {.strides = strides, .padding = windows.padding, .dilations = dilations});
  return depthwise_conv2d(x, kernel, {.strides = strides, .padding = windows.padding, .dilations = dilations});
}

template <class Options>
WeightRule depthwise_rule_of(const Options& options) {
  return {options.depthwise_initializer, "glorot_uniform", options.depthwise_regularizer, options.depthwise_constraint};
}

class ConvolutionBody final : public ConvolutionLayer<ConvolutionOptions> {
 public:
  ConvolutionBody(std::int64_t filters, Windows windows, ConvolutionOptions options)
      : ConvolutionLayer(std::move(windows), std::move(options)), filters_(filters) {}

 private:
  Dim make_kernels(const Dim& channels) override {
    if (channels.value() % options_.groups != 0)
      throw UserError(
          error_text(text(description(), ": ", channels, " channels do not fall into ", options_.groups, " groups"),
                     calling_line(), "their number is a multiple of the groups"));
    kernel_ = weight("kernel", kernel_shape(windows_, channels / options_.groups, filters_), kernel_rule_of(options_));
    return filters_;
  }
  Tensor convolved(const Tensor& x) const override {
    return convolution(windows_, x, in_compute_type(kernel_), options_.groups);
  }

  const std::int64_t filters_;
  Variable kernel_;
};

class DepthwiseBody final : public ConvolutionLayer<DepthwiseConvolutionOptions> {
 public:
  using ConvolutionLayer::ConvolutionLayer;

 private:
  Dim make_kernels(const Dim& channels) override {
    kernel_ =
        weight("kernel", kernel_shape(windows_, channels, options_.depth_multiplier), depthwise_rule_of(options_));
    return channels * options_.depth_multiplier;
  }
  Tensor convolved(const Tensor& x) const override {
    return depthwise_convolution(windows_, x, in_compute_type(kernel_));
  }

  Variable kernel_;
};

class SeparableBody final : public ConvolutionLayer<SeparableConvolutionOptions> {
 public:
  SeparableBody(std::int64_t filters, Windows windows, SeparableConvolutionOptions options)
      : ConvolutionLayer(std::move(windows), std::move(options)), filters_(filters) {}

 private:
  Dim make_kernels(const Dim& channels) override {
    depthwise_ = weight("depthwise_kernel", kernel_shape(windows_, channels, options_.depth_multiplier),
                        depthwise_rule_of(options_));
    Windows points = windows_;
    std::fill(points.kernel.begin(), points.kernel.end(), 1);
    pointwise_ = weight("pointwise_kernel", kernel_shape(points, channels * options_.depth_multiplier, filters_),
                        {options_.pointwise_initializer, "glorot_uniform", options_.pointwise_regularizer,
                         options_.pointwise_constraint});
    return filters_;
  }
  Tensor convolved(const Tensor& x) const override {
    Tensor deep = depthwise_convolution(windows_, x, in_compute_type(depthwise_));
    Tensor points = in_compute_type(pointwise_);
    return windows_.axes == 1 ? conv1d(deep, points) : conv2d(deep, points);
  }

  const std::int64_t filters_;
  Variable depthwise_, pointwise_;
};

class TransposedBody final : public ConvolutionLayer<TransposedConvolutionOptions> {
 public:
  TransposedBody(std::int64_t filters, Windows windows, TransposedConvolutionOptions options, Numbers output_padding)
      : ConvolutionLayer(std::move(windows), std::move(options)),
        filters_(filters),
        output_padding_(std::move(output_padding)) {}

 private:
  Dim make_kernels(const Dim& channels) override {
    kernel_ = weight("kernel", kernel_shape(windows_, filters_, channels), kernel_rule_of(options_));
    return filters_;
  }
  Tensor convolved(const Tensor& x) const override {
    const Tensor kernel = in_compute_type(kernel_);
    const stet::ConvTransposeOptions how{.strides = windows_.strides,
                                         .padding = windows_.padding,
                                         .output_padding = output_padding_,
                                         .dilations = windows_.dilations};
    return windows_.axes == 1   ? conv1d_transpose(x, kernel, how)
           : windows_.axes == 2 ? conv2d_transpose(x, kernel, how)
                                : conv3d_transpose(x, kernel, how);
  }

  const std::int64_t filters_;
  const Numbers output_padding_;
  Variable kernel_;
};

Layer make_convolution(const char* layer, int axes, std::int64_t filters, const WindowSizes& kernel_size,
                       ConvolutionOptions options, Where where) {
  require_at_least(layer, "filters", filters, 1, where);
  require_at_least(layer, "groups", options.groups, 1, where);
  if (filters % options.groups != 0)
    throw UserError(error_text(text(layer, ": ", filters, " filters do not fall into ", options.groups, " groups"),
                               where, "their number is a multiple of the groups"));
  Windows windows = windows_of(layer, axes, kernel_size, options, where, axes == 1);
  return Layer(std::make_shared<ConvolutionBody>(filters, std::move(windows), std::move(options)));
}

Layer make_depthwise(const char* layer, int axes, const WindowSizes& kernel_size, DepthwiseConvolutionOptions options,
                     Where where) {
  require_at_least(layer, "depth_multiplier", options.depth_multiplier, 1, where);
  Windows windows = windows_of(layer, axes, kernel_size, options, where);
  return Layer(std::make_shared<DepthwiseBody>(std::move(windows), std::move(options)));
}

Layer make_separable(const char* layer, int axes, std::int64_t filters, const WindowSizes& kernel_size,
                     SeparableConvolutionOptions options, Where where) {
  require_at_least(layer, "filters", filters, 1, where);
  require_at_least(layer, "depth_multiplier", options.depth_multiplier, 1, where);
  Windows windows = windows_of(layer, axes, kernel_size, options, where);
  return Layer(std::make_shared<SeparableBody>(filters, std::move(windows), std::move(options)));
}

Layer make_transposed(const char* layer, int axes, std::int64_t filters, const WindowSizes& kernel_size,
                      TransposedConvolutionOptions options, Where where) {
  require_at_least(layer, "filters", filters, 1, where);
  Windows windows = windows_of(layer, axes, kernel_size, options, where);
  Numbers output_padding;
  if (options.output_padding.given()) {
    output_padding = for_each_axis(layer, "output_padding", options.output_padding, axes, 0, where);
    for (std::size_t axis = 0; axis < output_padding.size(); ++axis)
      if (output_padding[axis] >= windows.strides[axis])
        throw UserError(error_text(
            text(layer, ": output_padding ", output_padding[axis], " with a stride of ", windows.strides[axis]), where,
            "it is less than the stride of its axis"));
  }
  return Layer(
      std::make_shared<TransposedBody>(filters, std::move(windows), std::move(options), std::move(output_padding)));
}

template <class Made, Literal name, int axes, class Options>
struct ConvolutionRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  static constexpr bool has_filters = !std::is_same_v<Options, DepthwiseConvolutionOptions>;
  std::int64_t filters = 0;
  WindowSizes kernel_size = {};
  Options options = {};

  void fields(Fields& f) {
    f.layer(options);
    if constexpr (has_filters) f.required("filters", filters);
    f.required("kernel_size");
    window_field(f, "kernel_size", kernel_size, axes);
    window_field(f, "strides", options.strides, axes, 1);
    f("padding", options.padding);
    if constexpr (requires { options.output_padding; }) window_field(f, "output_padding", options.output_padding, axes);
    data_format_field(f, options.data_format);
    window_field(f, "dilation_rate", options.dilation_rate, axes, 1);
    if constexpr (requires { options.groups; }) f("groups", options.groups);
    if constexpr (requires { options.depth_multiplier; }) f("depth_multiplier", options.depth_multiplier);
    f("activation", options.activation);
    f("use_bias", options.use_bias);
    weight_fields(f, options);
    f("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const {
    if constexpr (has_filters)
      return Made(filters, kernel_size, options, where);
    else
      return Made(kernel_size, options, where);
  }
};

}  // namespace

#define STET_CONVOLUTION(Name, make, axes, Options)                                                   \
  Name::Name(std::int64_t filters, WindowSizes kernel_size, Options options, Where where)             \
      : Layer(make(#Name, axes, filters, kernel_size, options, where)) {                              \
    note_recipe(*this, ConvolutionRecipe<Name, #Name, axes, Options>{filters, kernel_size, options}); \
  }                                                                                                   \
  const Savable<ConvolutionRecipe<Name, #Name, axes, Options>> savable_##Name;
#define STET_DEPTHWISE(Name, axes)                                                                                  \
  Name::Name(WindowSizes kernel_size, DepthwiseConvolutionOptions options, Where where)                             \
      : Layer(make_depthwise(#Name, axes, kernel_size, options, where)) {                                           \
    note_recipe(*this, ConvolutionRecipe<Name, #Name, axes, DepthwiseConvolutionOptions>{0, kernel_size, options}); \
  }                                                                                                                 \
  const Savable<ConvolutionRecipe<Name, #Name, axes, DepthwiseConvolutionOptions>> savable_##Name;
STET_CONVOLUTION(Conv1D, make_convolution, 1, ConvolutionOptions)
STET_CONVOLUTION(Conv2D, make_convolution, 2, ConvolutionOptions)
STET_CONVOLUTION(Conv3D, make_convolution, 3, ConvolutionOptions)
STET_DEPTHWISE(DepthwiseConv1D, 1)
STET_DEPTHWISE(DepthwiseConv2D, 2)
STET_CONVOLUTION(SeparableConv1D, make_separable, 1, SeparableConvolutionOptions)
STET_CONVOLUTION(SeparableConv2D, make_separable, 2, SeparableConvolutionOptions)
STET_CONVOLUTION(Conv1DTranspose, make_transposed, 1, TransposedConvolutionOptions)
STET_CONVOLUTION(Conv2DTranspose, make_transposed, 2, TransposedConvolutionOptions)
STET_CONVOLUTION(Conv3DTranspose, make_transposed, 3, TransposedConvolutionOptions)
#undef STET_CONVOLUTION
#undef STET_DEPTHWISE

}  // namespace stet::keras
