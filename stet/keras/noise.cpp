#include "stet/keras/noise.h"

#include <cmath>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/noise_source.h"
#include "stet/keras/spatial.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using Draw = std::function<Tensor(const Tensor& x, const NoiseSource& source, Where where)>;

/// A layer that does something in training alone.
template <class Options>
Layer noise_layer(const char* layer, Options options, Takes takes, bool nothing, Draw draw, Where where) {
  const NoiseSource source(options.seed, where);
  auto call = [nothing, source, draw = std::move(draw)](const Tensor& x, const Context& context) {
    return context.training && !nothing ? draw(x, source, context.where) : x;
  };
  return plain_layer({.class_name = layer,
                      .name = std::move(options.name),
                      .takes = takes,
                      .call = call,
                      .supports_masking = true,
                      .policy = options.dtype,
                      .generator = source.generator()});
}

template <class Options>
Layer spatial_dropout(const char* layer, int axes, double rate, Options options, bool first, Where where) {
  require_rate(layer, rate, where);
  Draw draw = [=](const Tensor& x, const NoiseSource& source, Where line) {
    std::vector<Dim> sizes(static_cast<std::size_t>(axes) + 2, Dim(1));
    sizes[0] = x.dim(0);
    (first ? sizes[1] : sizes.back()) = x.dim(first ? 1 : -1);
    return dropped(x, Shape(sizes), rate, source, line);
  };
  return noise_layer(layer, std::move(options), takes_spatial(axes, first), rate == 0, std::move(draw), where);
}

constexpr Takes any_tensor{.layout = "any tensor"};

template <class Made, Literal name, class Options>
struct SpatialDropoutRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  double rate = 0;
  Options options = {};
  void fields(Fields& f) {
    f.layer_without_trainable(options);
    f.required("rate", rate);
    f("seed", options.seed);
    if constexpr (requires { options.data_format; }) data_format_field(f, options.data_format);
  }
  Layer make(Where where) const { return Made(rate, options, where); }
};
/// Of layers with one number, `amount`, that says how much.
template <class Made, Literal name, Literal amount, class Options>
struct NoiseRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  double much = 0;
  Options options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required(amount.text, much);
    f("seed", options.seed);
    if constexpr (requires { options.noise_shape; }) shape_field(f, "noise_shape", options.noise_shape);
  }
  Layer make(Where where) const { return Made(much, options, where); }
};
using SpatialDropout1DRecipe = SpatialDropoutRecipe<SpatialDropout1D, "SpatialDropout1D", SpatialDropout1DOptions>;
using SpatialDropout2DRecipe = SpatialDropoutRecipe<SpatialDropout2D, "SpatialDropout2D", SpatialDropoutOptions>;
using SpatialDropout3DRecipe = SpatialDropoutRecipe<SpatialDropout3D, "SpatialDropout3D", SpatialDropoutOptions>;
using GaussianNoiseRecipe = NoiseRecipe<GaussianNoise, "GaussianNoise", "stddev", NoiseOptions>;
using GaussianDropoutRecipe = NoiseRecipe<GaussianDropout, "GaussianDropout", "rate", NoiseOptions>;
using AlphaDropoutRecipe = NoiseRecipe<AlphaDropout, "AlphaDropout", "rate", AlphaDropoutOptions>;
const Savable<SpatialDropout1DRecipe> savable_spatial_dropout_1d;
const Savable<SpatialDropout2DRecipe> savable_spatial_dropout_2d;
const Savable<SpatialDropout3DRecipe> savable_spatial_dropout_3d;
const Savable<GaussianNoiseRecipe> savable_gaussian_noise;
const Savable<GaussianDropoutRecipe> savable_gaussian_dropout;
const Savable<AlphaDropoutRecipe> savable_alpha_dropout;

}  // namespace

SpatialDropout1D::SpatialDropout1D(double rate, SpatialDropout1DOptions options, Where where)
    : Layer(spatial_dropout("SpatialDropout1D", 1, rate, options, false, where)) {
  note_recipe(*this, SpatialDropout1DRecipe{rate, options});
}
SpatialDropout2D::SpatialDropout2D(double rate, SpatialDropoutOptions options, Where where)
    : Layer(spatial_dropout("SpatialDropout2D", 2, rate, options,
                            is_channels_first("SpatialDropout2D", options.data_format, where), where)) {
  note_recipe(*this, SpatialDropout2DRecipe{rate, options});
}
SpatialDropout3D::SpatialDropout3D(double rate, SpatialDropoutOptions options, Where where)
    : Layer(spatial_dropout("SpatialDropout3D", 3, rate, options,
                            is_channels_first("SpatialDropout3D", options.data_format, where), where)) {
  note_recipe(*this, SpatialDropout3DRecipe{rate, options});
}

GaussianNoise::GaussianNoise(double stddev, NoiseOptions options, Where where) {
  if (!(stddev >= 0))
    throw UserError(error_text(text("GaussianNoise: a stddev of ", stddev), where, "it is a number from 0 on"));
  Draw draw = [=](const Tensor& x, const NoiseSource& source, Where line) {
    return x + source->normal(x.shape(), {.stddev = stddev, .dtype = x.dtype()}, line);
  };
  Layer::operator=(noise_layer("GaussianNoise", options, any_tensor, stddev == 0, std::move(draw), where));
  note_recipe(*this, GaussianNoiseRecipe{stddev, options});
}

GaussianDropout::GaussianDropout(double rate, NoiseOptions options, Where where) {
  require_rate("GaussianDropout", rate, where, true);
  Draw draw = [=](const Tensor& x, const NoiseSource& source, Where line) {
    return x * source->normal(x.shape(), {.mean = 1, .stddev = std::sqrt(rate / (1 - rate)), .dtype = x.dtype()}, line);
  };
  Layer::operator=(noise_layer("GaussianDropout", options, any_tensor, rate == 0, std::move(draw), where));
  note_recipe(*this, GaussianDropoutRecipe{rate, options});
}

AlphaDropout::AlphaDropout(double rate, AlphaDropoutOptions options, Where where) {
  require_rate("AlphaDropout", rate, where, true);
  const double limit = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
  const double a = 1 / std::sqrt((1 - rate) * (1 + rate * limit * limit)), b = -a * limit * rate;
  Draw draw = [=, shape = options.noise_shape](const Tensor& x, const NoiseSource& source, Where line) {
    const Tensor kept = source->uniform(noise_shape("AlphaDropout", x, shape, line), {}, line) >= rate;
    return stet::where(kept, x, limit) * a + b;
  };
  Layer::operator=(noise_layer("AlphaDropout", options, any_tensor, rate == 0, std::move(draw), where));
  note_recipe(*this, AlphaDropoutRecipe{rate, options});
}

}  // namespace stet::keras
