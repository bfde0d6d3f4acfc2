#include "stet/keras/random_images.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/dim_host.h"
#include "stet/keras/cropped_images.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/random_image_layer.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

/// Rows or columns of an image that are asked for, as ones that it has, and whether it has them.
struct Places {
  Tensor at, inside;
};
Places placed(const Tensor& index, const Dim& size, const std::string& fill_mode) {
  if (fill_mode == "wrap") return {index % size, {}};
  if (fill_mode == "reflect") {
    const Tensor twice = index % (size * 2);
    return {minimum(twice, size * 2 - 1 - twice), {}};
  }
  const Tensor near = clip(index, 0, size - 1);
  return {near, fill_mode == "constant" ? near == index : Tensor()};
}

/// Pixels of images [batch, height, width, channels] at rows and columns, [batch, height, width] each.
class Pixels {
 public:
  Pixels(const Tensor& images, const AffineTransformOptions& options) : images_(images), options_(options) {
    const Dim high = images.dim(1), wide = images.dim(2);
    flat_ = reshape(images, {images.dim(0) * high * wide, images.dim(3)});
    first_ = reshape(arange(images.dim(0)) * (high * wide), {images.dim(0), 1, 1});
  }
  Tensor at(const Tensor& row, const Tensor& column) const {
    const Places y = placed(row, images_.dim(1), options_.fill_mode);
    const Places x = placed(column, images_.dim(2), options_.fill_mode);
    const Tensor found = gather(flat_, first_ + y.at * images_.dim(2) + x.at);
    if (!y.inside.defined()) return found;
    return stet::where(expand_dims(logical_and(y.inside, x.inside), -1), found, options_.fill_value);
  }

 private:
  const Tensor images_;
  const AffineTransformOptions& options_;
  Tensor flat_, first_;
};

/// Of images [batch, height, width, channels]; a row of six numbers for each, or one for all.
Tensor transformed(const Tensor& images, const Tensor& rows, const AffineTransformOptions& options) {
  const DType type = images.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Pixels pixels(images.dtype() == type ? images : cast(images, type), options);
  auto number = [&, matrix = cast(rows, type)](std::int64_t i) {
    return reshape(slice(matrix, {0, i}, {rows.dim(0), 1}), {rows.dim(0), 1, 1});
  };
  const Tensor x = reshape(cast(arange(images.dim(2)), type), {1, 1, images.dim(2)});
  const Tensor y = reshape(cast(arange(images.dim(1)), type), {1, images.dim(1), 1});
  const Shape all{images.dim(0), images.dim(1), images.dim(2)};
  const Tensor column = broadcast_to(y * number(1) + x * number(0) + number(2), all);
  const Tensor row = broadcast_to(y * number(4) + x * number(3) + number(5), all);
  Tensor out;
  if (options.interpolation == "nearest") {
    // Halves away from 0.
    auto nearest = [](const Tensor& place) { return cast(sign(place) * floor(abs(place) + 0.5), DType::i64); };
    out = pixels.at(nearest(row), nearest(column));
  } else {
    const Tensor above = floor(row), left = floor(column);
    const Tensor down = expand_dims(row - above, -1), right = expand_dims(column - left, -1);
    const Tensor i = cast(above, DType::i64), j = cast(left, DType::i64);
    out = pixels.at(i, j) * ((1 - down) * (1 - right)) + pixels.at(i, j + 1) * ((1 - down) * right) +
          pixels.at(i + 1, j) * (down * (1 - right)) + pixels.at(i + 1, j + 1) * (down * right);
  }
  return is_floating(images.dtype()) ? cast(out, images.dtype()) : out;
}

void require_names(const char* layer, const std::string& interpolation, const std::string& fill_mode, Where where) {
  require_name(layer, "interpolation", interpolation, {"nearest", "bilinear"}, where);
  require_name(layer, "fill_mode", fill_mode, {"constant", "nearest", "wrap", "reflect"}, where);
}

struct Bounds {
  double lower, upper;
  /// Numbers from there on, from some that are from 0 to 1.
  Tensor from(const Tensor& drawn) const { return drawn * (upper - lower) + lower; }
};
Bounds bounds_of(const char* layer, const char* option, const RandomFactor& factor, bool above_minus_one, Where where) {
  auto within = [&](double number) { return number <= 1 && (above_minus_one ? number > -1 : number >= -1); };
  const double size = std::abs(factor.first);
  const Bounds out = factor.one ? Bounds{-size, size}
                                : Bounds{std::min(factor.first, factor.second), std::max(factor.first, factor.second)};
  if (!within(factor.first) || !within(factor.second) || !within(out.lower))
    throw UserError(
        error_text(text(layer, ": a ", option,
                        factor.one ? text(" of ", factor.first) : text(" from ", factor.first, " to ", factor.second)),
                   where,
                   above_minus_one ? "one number below 1, or {lower, upper} above -1 and up to 1"
                                   : "one number from -1 to 1, or {lower, upper} of such"));
  return out;
}

/// The matrices of images [batch, height, width, channels], [batch, 6], from random numbers [batch, 1] from 0 to 1.
using Matrices = std::function<Tensor(const Tensor& x, const std::function<Tensor()>& draw)>;

Layer transforming(const char* layer, const RandomTransformOptions& options, Matrices matrices, Where where) {
  require_names(layer, options.interpolation, options.fill_mode, where);
  const bool first = is_channels_first(layer, options.data_format, where);
  const AffineTransformOptions how{options.interpolation, options.fill_mode, options.fill_value, {}};
  auto change = [=](const Tensor& x, const NoiseSource& source, Where line) {
    auto draw = [&] { return source->uniform({x.dim(0), 1}, {}, line); };
    return transformed(x, matrices(x, draw), how);
  };
  return random_image_layer(layer, options, first, change, where);
}

/// A size as a number of the matrices' type.
Tensor number_of(const Dim& size) { return cast(tensor(size), DType::f32); }

// --- what they were made from

void transform_fields(Fields& f, RandomTransformOptions& options) {
  f("fill_mode", options.fill_mode);
  f("interpolation", options.interpolation);
  f("seed", options.seed);
  f("fill_value", options.fill_value);
  data_format_field(f, options.data_format);
}
struct RandomRotationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "RandomRotation";
  std::optional<RandomFactor> factor = {};
  RandomTransformOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("factor");
    if (!f.reading() && factor->one) factor = RandomFactor(-std::abs(factor->first), std::abs(factor->first));
    factor_field(f, "factor", factor);
    transform_fields(f, options);
  }
  Layer make(Where where) const { return RandomRotation(*factor, options, where); }
};
struct RandomTranslationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "RandomTranslation";
  std::optional<RandomFactor> height_factor = {}, width_factor = {};
  RandomTransformOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("height_factor");
    factor_field(f, "height_factor", height_factor);
    f.required("width_factor");
    factor_field(f, "width_factor", width_factor);
    transform_fields(f, options);
  }
  Layer make(Where where) const { return RandomTranslation(*height_factor, *width_factor, options, where); }
};
struct RandomZoomRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "RandomZoom";
  std::optional<RandomFactor> height_factor = {}, width_factor = {};
  RandomTransformOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("height_factor");
    factor_field(f, "height_factor", height_factor);
    factor_field(f, "width_factor", width_factor);
    transform_fields(f, options);
  }
  Layer make(Where where) const {
    return width_factor ? RandomZoom(*height_factor, *width_factor, options, where)
                        : RandomZoom(*height_factor, options, where);
  }
};
struct RandomCropRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "RandomCrop";
  std::int64_t height = 0, width = 0;
  RandomCropOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("height", height);
    f.required("width", width);
    f("seed", options.seed);
    data_format_field(f, options.data_format);
  }
  Layer make(Where where) const { return RandomCrop(height, width, options, where); }
};
const Savable<RandomRotationRecipe> savable_random_rotation;
const Savable<RandomTranslationRecipe> savable_random_translation;
const Savable<RandomZoomRecipe> savable_random_zoom;
const Savable<RandomCropRecipe> savable_random_crop;

Layer zooming(const RandomFactor& height_factor, const std::optional<RandomFactor>& width_factor,
              const RandomTransformOptions& options, Where where) {
  const Bounds height = bounds_of("RandomZoom", "height_factor", height_factor, true, where);
  std::optional<Bounds> width;
  if (width_factor) width = bounds_of("RandomZoom", "width_factor", *width_factor, true, where);
  auto matrices = [=](const Tensor& x, const std::function<Tensor()>& draw) {
    const Tensor down = height.from(draw()) + 1, across = width ? width->from(draw()) + 1 : down;
    const Tensor nothing = zeros_like(down);
    return concat({across, nothing, number_of(x.dim(2) - 1) / 2 * (1 - across), nothing, down,
                   number_of(x.dim(1) - 1) / 2 * (1 - down)},
                  1);
  };
  Layer layer = transforming("RandomZoom", options, matrices, where);
  note_recipe(layer, RandomZoomRecipe{height_factor, width_factor, options});
  return layer;
}

}  // namespace

Tensor affine_transform(const Tensor& images, const Tensor& transform, AffineTransformOptions options, Where where) {
  constexpr const char* name = "affine_transform";
  require_names(name, options.interpolation, options.fill_mode, where);
  const bool first = is_channels_first(name, options.data_format, where);
  auto fail = [&](const std::string& problem, const std::string& advice) {
    throw UserError(error_text(text(name, ": ", problem), where, advice));
  };
  if (images.rank() != 3 && images.rank() != 4)
    fail(text("images ", described(images)), text("they are ", spatial_layout(2, first), ", or one without the batch"));
  const bool one = images.rank() == 3;
  Tensor x = is_floating(images.dtype()) ? images : cast(In(images, where), DType::f32);
  if (one) x = expand_dims(In(x, where), 0);
  if (first) x = channels_to_last(x);
  const Tensor rows = transform.rank() == 1 ? expand_dims(In(transform, where), 0) : transform;
  const inside::Reason reason{name, "the transform", where};
  bool fits = rows.rank() == 2 && (inside::decide(rows.dim(1), Relation::equal, 6, reason) ||
                                   inside::decide(rows.dim(1), Relation::equal, 8, reason));
  fits = fits && (inside::decide(rows.dim(0), Relation::equal, 1, reason) ||
                  inside::require(rows.dim(0), Relation::equal, x.dim(0), reason));
  if (!fits)
    fail(text("a transform ", described(transform), " for images ", described(images)),
         "it has six numbers for all images, [6], or for each, [batch, 6]");
  Frame frame(name, where);
  Tensor out = transformed(x, rows, options);
  if (first) out = channels_to_first(out);
  return one ? squeeze(out, 0) : out;
}

RandomRotation::RandomRotation(RandomFactor factor, RandomTransformOptions options, Where where) {
  const Bounds turn = bounds_of("RandomRotation", "factor", factor, false, where);
  auto matrices = [=](const Tensor& x, const std::function<Tensor()>& draw) {
    const Tensor angle = turn.from(draw()) * (2 * std::numbers::pi);
    const Tensor cosine = cos(angle), sine = sin(angle);
    const Tensor middle_x = number_of(x.dim(2) - 1) / 2, middle_y = number_of(x.dim(1) - 1) / 2;
    return concat({cosine, -sine, middle_x - middle_x * cosine + middle_y * sine, sine, cosine,
                   middle_y - middle_x * sine - middle_y * cosine},
                  1);
  };
  Layer::operator=(transforming("RandomRotation", options, matrices, where));
  note_recipe(*this, RandomRotationRecipe{factor, options});
}

RandomTranslation::RandomTranslation(RandomFactor height_factor, RandomFactor width_factor,
                                     RandomTransformOptions options, Where where) {
  const Bounds height = bounds_of("RandomTranslation", "height_factor", height_factor, false, where);
  const Bounds width = bounds_of("RandomTranslation", "width_factor", width_factor, false, where);
  auto matrices = [=](const Tensor& x, const std::function<Tensor()>& draw) {
    const Tensor down = height.from(draw()) * number_of(x.dim(1)), right = width.from(draw()) * number_of(x.dim(2));
    const Tensor nothing = zeros_like(down), one = ones_like(down);
    return concat({one, nothing, -right, nothing, one, -down}, 1);
  };
  Layer::operator=(transforming("RandomTranslation", options, matrices, where));
  note_recipe(*this, RandomTranslationRecipe{height_factor, width_factor, options});
}

RandomZoom::RandomZoom(RandomFactor height_factor, RandomTransformOptions options, Where where)
    : Layer(zooming(height_factor, {}, options, where)) {}
RandomZoom::RandomZoom(RandomFactor height_factor, RandomFactor width_factor, RandomTransformOptions options,
                       Where where)
    : Layer(zooming(height_factor, width_factor, options, where)) {}

RandomCrop::RandomCrop(std::int64_t height, std::int64_t width, RandomCropOptions options, Where where) {
  constexpr const char* layer = "RandomCrop";
  require_at_least(layer, "height", height, 1, where);
  require_at_least(layer, "width", width, 1, where);
  const bool first = is_channels_first(layer, options.data_format, where);
  const DType dtype = options.dtype.compute_dtype();
  const NoiseSource source(options.seed, where);
  auto call = [=](const Tensor& given, const Context& context) {
    Tensor x = given.dtype() == dtype ? given : cast(given, dtype);
    const bool one = x.rank() == 3;
    if (one) x = expand_dims(x, 0);
    if (first) x = channels_to_last(x);
    const Dim high = x.dim(1), wide = x.dim(2);
    const inside::Reason reason{layer, "whether images are larger than the crop", context.where};
    Tensor out;
    if (context.training && inside::decide(height, Relation::less, high, reason) &&
        inside::decide(width, Relation::less, wide, reason)) {
      auto start = [&](const Dim& places) {
        const Tensor drawn = floor(source->uniform(Shape{}, {}, context.where) * number_of(places));
        return minimum(cast(drawn, DType::i64), places - 1);
      };
      const Tensor row = start(high - height + 1), column = start(wide - width + 1), nothing = zeros_like(row);
      out = dynamic_slice(x, stack({nothing, row, column, nothing}), {x.dim(0), height, width, x.dim(3)});
    } else {
      out = resize(cropped_to_shape(x, height, width), height, width);
    }
    if (first) out = channels_to_first(out);
    return one ? squeeze(out, 0) : out;
  };
  Layer::operator=(plain_layer({.class_name = layer,
                                .name = options.name,
                                .takes = {.least = 3, .most = 4, .layout = spatial_layout(2, first)},
                                .call = call,
                                .policy = options.dtype,
                                .generator = source.generator()}));
  note_recipe(*this, RandomCropRecipe{height, width, options});
}

}  // namespace stet::keras
