// The frame of layers that change images at random. Not a public header.
#pragma once
#include <functional>
#include <utility>

#include "stet/keras/augmentation.h"
#include "stet/keras/layer_fields.h"
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
  const NoiseSource source(options.seed, where);
  auto call = [=, change = std::move(change)](const Tensor& given, const Context& context) {
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
                      .policy = options.dtype,
                      .generator = source.generator()});
}

/// A number, or a lower and an upper one; null: none. Written as it was given.
inline void factor_field(Fields& f, const char* name, std::optional<RandomFactor>& value) {
  if (!f.reading()) {
    if (!value) return f.put(name, nullptr);
    return f.put(name, value->one ? Json(value->first) : Json(Json::List{value->first, value->second}));
  }
  const Json* member = f.take(name);
  if (!member || member->is_null()) return;
  if (!list_of(*member)) {
    double both = 0;
    f(name, both);
    value = RandomFactor(both);
    return;
  }
  std::vector<double> pair;
  f(name, pair);
  if (pair.size() != 2) f.wrong(name, *member, "a number, or a lower and an upper one,");
  value = RandomFactor(pair[0], pair[1]);
}

}  // namespace stet::keras
