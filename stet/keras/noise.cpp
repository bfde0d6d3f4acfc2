#include "stet/keras/noise.h"

#include <cmath>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/noise_source.h"
#include "stet/keras/spatial.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using Draw = std::function<Tensor(const Tensor& x, Where where)>;

/// A layer that does something in training alone.
template <class Options>
Layer noise_layer(const char* layer, Options options, Takes takes, bool nothing, Draw draw) {
  auto call = [nothing, draw = std::move(draw)](const Tensor& x, const Context& context) {
    return context.training && !nothing ? draw(x, context.where) : x;
  };
  return plain_layer({.class_name = layer,
                      .name = std::move(options.name),
                      .takes = takes,
                      .call = call,
                      .supports_masking = true,
                      .policy = options.dtype});
}

template <class Options>
Layer spatial_dropout(const char* layer, int axes, double rate, Options options, bool first, Where where) {
  require_rate(layer, rate, where);
  Draw draw = [=, source = NoiseSource(options.seed, where)](const Tensor& x, Where line) {
    std::vector<Dim> sizes(static_cast<std::size_t>(axes) + 2, Dim(1));
    sizes[0] = x.dim(0);
    (first ? sizes[1] : sizes.back()) = x.dim(first ? 1 : -1);
    return dropped(x, Shape(sizes), rate, source, line);
  };
  return noise_layer(layer, std::move(options), takes_spatial(axes, first), rate == 0, std::move(draw));
}

constexpr Takes any_tensor{.layout = "any tensor"};

}  // namespace

SpatialDropout1D::SpatialDropout1D(double rate, SpatialDropout1DOptions options, Where where)
    : Layer(spatial_dropout("SpatialDropout1D", 1, rate, std::move(options), false, where)) {}
SpatialDropout2D::SpatialDropout2D(double rate, SpatialDropoutOptions options, Where where)
    : Layer(spatial_dropout("SpatialDropout2D", 2, rate, options,
                            is_channels_first("SpatialDropout2D", options.data_format, where), where)) {}
SpatialDropout3D::SpatialDropout3D(double rate, SpatialDropoutOptions options, Where where)
    : Layer(spatial_dropout("SpatialDropout3D", 3, rate, options,
                            is_channels_first("SpatialDropout3D", options.data_format, where), where)) {}

GaussianNoise::GaussianNoise(double stddev, NoiseOptions options, Where where) {
  if (!(stddev >= 0))
    throw UserError(error_text(text("GaussianNoise: a stddev of ", stddev), where, "it is a number from 0 on"));
  Draw draw = [=, source = NoiseSource(options.seed, where)](const Tensor& x, Where line) {
    return x + source->normal(x.shape(), {.stddev = stddev, .dtype = x.dtype()}, line);
  };
  Layer::operator=(noise_layer("GaussianNoise", std::move(options), any_tensor, stddev == 0, std::move(draw)));
}

GaussianDropout::GaussianDropout(double rate, NoiseOptions options, Where where) {
  require_rate("GaussianDropout", rate, where, true);
  Draw draw = [=, source = NoiseSource(options.seed, where)](const Tensor& x, Where line) {
    return x * source->normal(x.shape(), {.mean = 1, .stddev = std::sqrt(rate / (1 - rate)), .dtype = x.dtype()}, line);
  };
  Layer::operator=(noise_layer("GaussianDropout", std::move(options), any_tensor, rate == 0, std::move(draw)));
}

AlphaDropout::AlphaDropout(double rate, AlphaDropoutOptions options, Where where) {
  require_rate("AlphaDropout", rate, where, true);
  const double limit = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
  const double a = 1 / std::sqrt((1 - rate) * (1 + rate * limit * limit)), b = -a * limit * rate;
  Draw draw = [=, shape = options.noise_shape, source = NoiseSource(options.seed, where)](const Tensor& x, Where line) {
    const Tensor kept = source->uniform(noise_shape("AlphaDropout", x, shape, line), {}, line) >= rate;
    return stet::where(kept, x, limit) * a + b;
  };
  Layer::operator=(noise_layer("AlphaDropout", std::move(options), any_tensor, rate == 0, std::move(draw)));
}

}  // namespace stet::keras
