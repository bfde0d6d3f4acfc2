#include "stet/keras/preprocessing.h"

#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/dim_host.h"
#include "stet/keras/cropped_images.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/spatial.h"

namespace stet::keras {
namespace {

/// A layer of images, written for [batch, height, width, channels]; one image alone is a batch.
template <class Options>
Layer image_layer(const char* layer, const Options& options, std::function<Tensor(const Tensor&)> call, Where where) {
  const bool first = is_channels_first(layer, options.data_format, where);
  const DType dtype = options.dtype.compute_dtype();
  auto run = [=](const Tensor& given, const Context&) {
    Tensor x = given.dtype() == dtype ? given : cast(given, dtype);
    const bool one = x.rank() == 3;
    if (one) x = expand_dims(x, 0);
    Tensor out = first ? channels_to_first(call(channels_to_last(x))) : call(x);
    return one ? squeeze(out, 0) : out;
  };
  return plain_layer({.class_name = layer,
                      .name = options.name,
                      .takes = {.least = 3, .most = 4, .layout = spatial_layout(2, first)},
                      .call = run,
                      .policy = options.dtype});
}

/// With as much on two sides that they have the target's shape.
Tensor padded_to_shape(const Tensor& x, std::int64_t height, std::int64_t width, double value) {
  const Dim high = x.dim(1), wide = x.dim(2);
  const Dim rows = (larger_of(high, wide * height / width) - high) / 2;
  const Dim columns = (larger_of(wide, high * width / height) - wide) / 2;
  return pad(x, {{}, {rows, rows}, {columns, columns}, {}}, {.value = value});
}

class NormalizationBody final : public LibraryLayer {
 public:
  NormalizationBody(Axes axes, NormalizationOptions options)
      : LibraryLayer("Normalization", options.name, {.least = 1, .layout = "[batch, …]"}, options.dtype),
        axes_(std::move(axes)),
        options_(std::move(options)) {}
  bool supports_masking() const override { return true; }

  void adapt(const Tensor& data) const {
    const Tensor x = cast(data, compute_dtype());
    std::vector<int> others, kept = axes(x.rank());
    for (int axis = 0; axis < x.rank(); ++axis)
      if (std::find(kept.begin(), kept.end(), axis) == kept.end()) others.push_back(axis);
    const auto [mean, variance] = moments(x, others);
    mean_.assign(cast(mean, mean_.dtype()));
    variance_.assign(cast(variance, variance_.dtype()));
  }

 private:
  /// Those that are kept, from 0 on.
  std::vector<int> axes(int rank) const {
    std::vector<int> out;
    for (std::int64_t axis : axes_.axes) {
      const auto at = static_cast<int>(axis < 0 ? axis + rank : axis);
      if (at < 0 || at >= rank)
        throw UserError(error_text(text(description(), ": axis ", axis, " of an input with ", rank, " axes"),
                                   calling_line(), text("give one from ", -rank, " to ", rank - 1)));
      out.push_back(at);
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  void make_weights(const Shape& input) override {
    if (options_.mean.defined()) return;
    std::vector<Dim> sizes;
    for (int axis : axes(input.rank())) sizes.push_back(input[axis]);
    mean_ = weight("mean", Shape(sizes), {.otherwise = "zeros", .trainable = false});
    variance_ = weight("variance", Shape(sizes), {.otherwise = "ones", .trainable = false});
    count_ =
        add_weight("count", Shape{}, {.initializer = "zeros", .trainable = false, .dtype = DType::i32}, calling_line());
  }
  /// A statistic as it broadcasts against x: of the sizes of the kept axes, or of one that broadcasts to them.
  Tensor placed(const Tensor& statistic, const Tensor& x) const {
    const std::vector<int> kept = axes(x.rank());
    const Tensor value = cast(statistic, compute_dtype());
    std::vector<Dim> sizes(static_cast<std::size_t>(x.rank()), Dim(1)), own;
    for (int axis : kept) {
      own.push_back(x.dim(axis));
      sizes[static_cast<std::size_t>(axis)] = x.dim(axis);
    }
    return reshape(broadcast_to(value, Shape(own)), sizes);
  }
  Tensor run(const Tensor& given, const Context& context) override {
    const Tensor x = given.dtype() == compute_dtype() ? given : cast(given, compute_dtype());
    const bool fixed = options_.mean.defined();
    if (!fixed) {
      const std::vector<int> kept = axes(x.rank());
      for (std::size_t i = 0; i < kept.size(); ++i)
        require_size(x, kept[i], mean_.shape()[static_cast<int>(i)], "values", context.where);
    }
    const Tensor mean = placed(fixed ? options_.mean : mean_.read(), x);
    const Tensor deviation = maximum(sqrt(placed(fixed ? options_.variance : variance_.read(), x)), 1e-7);
    return options_.invert ? x * deviation + mean : (x - mean) / deviation;
  }

  const Axes axes_;
  const NormalizationOptions options_;
  Variable mean_, variance_, count_;
};

// --- what they were made from

struct ResizingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Resizing";
  std::int64_t height = 0, width = 0;
  ResizingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("height", height);
    f.required("width", width);
    f("interpolation", options.interpolation);
    f("crop_to_aspect_ratio", options.crop_to_aspect_ratio);
    f("pad_to_aspect_ratio", options.pad_to_aspect_ratio);
    f.only("fill_mode", "constant");
    f("fill_value", options.fill_value);
    f.only("antialias", false);
    data_format_field(f, options.data_format);
  }
  Layer make(Where where) const { return Resizing(height, width, options, where); }
};
struct CenterCropRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "CenterCrop";
  std::int64_t height = 0, width = 0;
  CenterCropOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("height", height);
    f.required("width", width);
    data_format_field(f, options.data_format);
  }
  Layer make(Where where) const { return CenterCrop(height, width, options, where); }
};
struct RescalingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Rescaling";
  Tensor scale = {}, offset = {};
  RescalingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("scale");
    tensor_field(f, "scale", scale);
    tensor_field(f, "offset", offset);
  }
  Layer make(Where) const { return Rescaling(scale, offset.defined() ? offset : Tensor(0.0), options); }
};
struct NormalizationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Normalization";
  Axes axis = -1;
  NormalizationOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    if (f.reading())
      axes_field(f, "axis", axis);
    else
      f("axis", axis.axes);
    f("invert", options.invert);
    tensor_field(f, "mean", options.mean);
    tensor_field(f, "variance", options.variance);
  }
  Layer make(Where where) const { return Normalization(axis, options, where); }
};
const Savable<ResizingRecipe> savable_resizing;
const Savable<CenterCropRecipe> savable_center_crop;
const Savable<RescalingRecipe> savable_rescaling;
const Savable<NormalizationRecipe> savable_normalization;

}  // namespace

Tensor cropped_to_shape(const Tensor& x, std::int64_t height, std::int64_t width) {
  const Dim high = x.dim(1), wide = x.dim(2);
  const Dim rows = larger_of(smaller_of(high, wide * height / width), 1);
  const Dim columns = larger_of(smaller_of(wide, high * width / height), 1);
  return slice(x, {0, (high - rows) / 2, (wide - columns) / 2, 0}, {x.dim(0), rows, columns, x.dim(3)});
}

Resizing::Resizing(std::int64_t height, std::int64_t width, ResizingOptions options, Where where) {
  require_at_least("Resizing", "height", height, 1, where);
  require_at_least("Resizing", "width", width, 1, where);
  require_name("Resizing", "interpolation", options.interpolation, {"nearest", "bilinear", "bicubic"}, where);
  if (options.crop_to_aspect_ratio && options.pad_to_aspect_ratio)
    throw UserError(error_text("Resizing: crop_to_aspect_ratio and pad_to_aspect_ratio", where, "choose one of them"));
  auto call = [=](const Tensor& x) {
    Tensor shaped = x;
    if (options.crop_to_aspect_ratio) shaped = cropped_to_shape(x, height, width);
    if (options.pad_to_aspect_ratio) shaped = padded_to_shape(x, height, width, options.fill_value);
    return resize(shaped, height, width, {.method = options.interpolation});
  };
  Layer::operator=(image_layer("Resizing", options, call, where));
  note_recipe(*this, ResizingRecipe{height, width, options});
}

CenterCrop::CenterCrop(std::int64_t height, std::int64_t width, CenterCropOptions options, Where where) {
  require_at_least("CenterCrop", "height", height, 1, where);
  require_at_least("CenterCrop", "width", width, 1, where);
  auto call = [=](const Tensor& x) {
    const Dim high = x.dim(1), wide = x.dim(2);
    const inside::Reason reason{"CenterCrop", "whether images are as large as the crop", calling_line()};
    if (!inside::decide(height, Relation::less_equal, high, reason) ||
        !inside::decide(width, Relation::less_equal, wide, reason))
      return resize(cropped_to_shape(x, height, width), height, width);
    return slice(x, {0, (high - height) / 2, (wide - width) / 2, 0}, {x.dim(0), height, width, x.dim(3)});
  };
  Layer::operator=(image_layer("CenterCrop", options, call, where));
  note_recipe(*this, CenterCropRecipe{height, width, options});
}

Rescaling::Rescaling(const Tensor& scale, const Tensor& offset, RescalingOptions options) {
  const DType dtype = options.dtype.compute_dtype();
  Layer::operator=(
      plain_layer({.class_name = "Rescaling",
                   .name = options.name,
                   .takes = {.layout = "any tensor"},
                   .call = [=](const Tensor& x,
                               const Context&) { return cast(x, dtype) * cast(scale, dtype) + cast(offset, dtype); },
                   .supports_masking = true,
                   .policy = options.dtype}));
  note_recipe(*this, RescalingRecipe{scale, offset, options});
}

Normalization::Normalization(Axes axis, NormalizationOptions options, Where where)
    : Layer(std::make_shared<NormalizationBody>(axis, options)) {
  if (options.mean.defined() != options.variance.defined())
    throw UserError(
        error_text("Normalization: one of mean and variance", where, "give both, or none and call adapt()"));
  if (std::count(axis.axes.begin(), axis.axes.end(), 0) > 0)
    throw UserError(error_text("Normalization: axis 0 is the batch", where, "give one from 1 on, or from the end: -1"));
  note_recipe(*this, NormalizationRecipe{axis, options});
}

void Normalization::adapt(const Tensor& data, Where where) const {
  auto& own = static_cast<NormalizationBody&>(layer_body("adapt", where));
  (*this)(data, {}, where);  // makes the weights, and refuses data of other sizes
  if (weights().empty())
    throw UserError(error_text(text("adapt: ", own.description(), " was given its mean and variance"), where,
                               "make it without them"));
  own.adapt(data);
}

}  // namespace stet::keras
