#include "stet/keras/adaptive_pooling.h"

#include <limits>
#include <utility>

#include "stet/keras/layer_fields.h"
#include "stet/keras/spatial.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

/// Windows of one axis.
Tensor pooled(const Tensor& x, int axis, std::int64_t count, bool largest) {
  const Tensor last = moveaxis(x, axis, -1);
  const Dim size = last.dim(-1);
  const Tensor window = reshape(arange(count), {count, 1}), at = reshape(arange(size), {1, size});
  const Tensor begin = floor_divide(window * size, count);
  const Tensor end = floor_divide((window + 1) * size + (count - 1), count);
  const Tensor inside = logical_and(at >= begin, at < end);
  const Tensor rows = expand_dims(last, -2);
  const Tensor out = largest ? max(where(inside, rows, -std::numeric_limits<double>::infinity()), -1)
                             : sum(where(inside, rows, 0), -1) / cast(squeeze(end - begin, 1), x.dtype());
  return moveaxis(out, -1, axis);
}

Layer adaptive_pooling(const char* layer, int axes, const WindowSizes& output_size, AdaptivePoolingOptions options,
                       bool largest, Where where) {
  const bool first = is_channels_first(layer, options.data_format, where);
  const auto sizes = for_each_axis(layer, "output_size", output_size, axes, 1, where);
  return plain_layer({.class_name = layer,
                      .name = std::move(options.name),
                      .takes = takes_spatial(axes, first),
                      .call =
                          [=](const Tensor& x, const Context&) {
                            Tensor out = x;
                            for (int axis = 0; axis < axes; ++axis)
                              out = pooled(out, axis + (first ? 2 : 1), sizes[static_cast<std::size_t>(axis)], largest);
                            return out;
                          },
                      .policy = options.dtype});
}

template <class Made, Literal name, int axes>
struct AdaptivePoolingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  WindowSizes output_size = {};
  AdaptivePoolingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("output_size");
    window_field(f, "output_size", output_size, axes);
    data_format_field(f, options.data_format);
  }
  Layer make(Where where) const { return Made(output_size, options, where); }
};

}  // namespace

#define STET_ADAPTIVE_POOLING(Name, axes, largest)                                      \
  Name::Name(WindowSizes output_size, AdaptivePoolingOptions options, Where where)      \
      : Layer(adaptive_pooling(#Name, axes, output_size, options, largest, where)) {    \
    note_recipe(*this, AdaptivePoolingRecipe<Name, #Name, axes>{output_size, options}); \
  }                                                                                     \
  const Savable<AdaptivePoolingRecipe<Name, #Name, axes>> savable_##Name;
STET_ADAPTIVE_POOLING(AdaptiveAveragePooling1D, 1, false)
STET_ADAPTIVE_POOLING(AdaptiveAveragePooling2D, 2, false)
STET_ADAPTIVE_POOLING(AdaptiveAveragePooling3D, 3, false)
STET_ADAPTIVE_POOLING(AdaptiveMaxPooling1D, 1, true)
STET_ADAPTIVE_POOLING(AdaptiveMaxPooling2D, 2, true)
STET_ADAPTIVE_POOLING(AdaptiveMaxPooling3D, 3, true)
#undef STET_ADAPTIVE_POOLING

}  // namespace stet::keras
