// The frame of layers that change images at random. Not a public header.
#pragma once
#include <functional>
#include <utility>

#include "stet/keras/noise_source.h"
#include "stet/keras/spatial.h"

namespace stet::keras {

/// What is made of images [batch, height, width, channels] in training, with numbers from the source.
using ImageChange = std::function<Tensor(const Tensor& images, const NoiseSource& source, Where where)>;

/// A layer of images, or of one image; in inference they stay as they are. The options have a seed, a name and a dtype;
/// with `channels_first` channels are the axis after the batch.
template <class Options>
Layer random_image_layer(const char* layer, const Options& options, bool channels_first, ImageChange change,
                         Where where) {
  const DType dtype = options.dtype.compute_dtype();
  auto call = [=, change = std::move(change), source = NoiseSource(options.seed, where)](const Tensor& given,
                                                                                         const Context& context) {
    Tensor x = given.dtype() == dtype ? given : cast(given, dtype);
    if (!context.training) return x;
    const bool one = x.rank() == 3;
    if (one) x = expand_dims(x, 0);
    if (channels_first) x = channels_to_last(x);
    Tensor out = change(x, source, context.where);
    if (channels_first) out = channels_to_first(out);
    return one ? squeeze(out, 0) : out;
  };
  return plain_layer({.class_name = layer,
                      .name = options.name,
                      .takes = {.least = 3, .most = 4, .layout = spatial_layout(2, channels_first)},
                      .call = call,
                      .policy = options.dtype});
}

}  // namespace stet::keras
