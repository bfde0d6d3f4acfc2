#include "stet/keras/pooling.h"

#include <utility>

#include "stet/keras/layer_fields.h"
#include "stet/keras/spatial.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using Pool = Tensor (*)(In x, const std::vector<std::int64_t>& window, const PoolOptions& options);

Layer pooling(const char* layer, int axes, Pool pool, const WindowSizes& pool_size, PoolingOptions options,
              Where where) {
  const bool first = is_channels_first(layer, options.data_format, where);
  const auto window = for_each_axis(layer, "pool_size", pool_size, axes, 1, where);
  const auto strides =
      options.strides.given() ? for_each_axis(layer, "strides", options.strides, axes, 1, where) : window;
  require_name(layer, "padding", options.padding, {"valid", "same"}, where);
  const PoolOptions how{.strides = strides, .padding = options.padding};
  return plain_layer({.class_name = layer,
                      .name = std::move(options.name),
                      .takes = takes_spatial(axes, first),
                      .call =
                          [=](const Tensor& x, const Context&) {
                            return first ? channels_to_first(pool(channels_to_last(x), window, how))
                                         : pool(x, window, how);
                          },
                      .policy = options.dtype});
}

using Reduce = Tensor (*)(In x, const Axes& axes, ReduceOptions options);

/// The mean of the steps that count.
Tensor masked_mean(const Tensor& x, const Tensor& mask, int steps_axis, bool keepdims) {
  const Tensor counts = expand_dims(mask, steps_axis == 1 ? 2 : 1);
  const Tensor total = sum(where(counts, x, 0), steps_axis, {.keepdims = keepdims});
  return total / sum(cast(counts, x.dtype()), steps_axis, {.keepdims = keepdims});
}

Layer global_pooling(const char* layer, int axes, Reduce reduce, GlobalPoolingOptions options, Where where,
                     bool masks = false) {
  const bool first = is_channels_first(layer, options.data_format, where), keepdims = options.keepdims;
  std::vector<int> spatial;
  for (int axis = 0; axis < axes; ++axis) spatial.push_back(axis + (first ? 2 : 1));
  return plain_layer({.class_name = layer,
                      .name = std::move(options.name),
                      .takes = takes_spatial(axes, first),
                      .call =
                          [=](const Tensor& x, const Context& context) {
                            if (masks && context.mask().defined())
                              return masked_mean(x, context.mask(), spatial[0], keepdims);
                            return reduce(x, spatial, {.keepdims = keepdims});
                          },
                      .policy = options.dtype});
}

template <class Made, Literal name, int axes>
struct PoolingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  WindowSizes pool_size = 2;
  PoolingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    window_field(f, "pool_size", pool_size, axes);
    window_field(f, "strides", options.strides, axes, pool_size);
    f("padding", options.padding);
    data_format_field(f, options.data_format);
  }
  Layer make(Where where) const { return Made(pool_size, options, where); }
};
template <class Made, Literal name>
struct GlobalPoolingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  GlobalPoolingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    data_format_field(f, options.data_format);
    f("keepdims", options.keepdims);
  }
  Layer make(Where where) const { return Made(options, where); }
};

}  // namespace

#define STET_POOLING(Name, axes, pool)                                        \
  Name::Name(WindowSizes pool_size, PoolingOptions options, Where where)      \
      : Layer(pooling(#Name, axes, pool, pool_size, options, where)) {        \
    note_recipe(*this, PoolingRecipe<Name, #Name, axes>{pool_size, options}); \
  }                                                                           \
  const Savable<PoolingRecipe<Name, #Name, axes>> savable_##Name;
STET_POOLING(MaxPooling1D, 1, max_pool)
STET_POOLING(MaxPooling2D, 2, max_pool)
STET_POOLING(MaxPooling3D, 3, max_pool)
STET_POOLING(AveragePooling1D, 1, average_pool)
STET_POOLING(AveragePooling2D, 2, average_pool)
STET_POOLING(AveragePooling3D, 3, average_pool)
#undef STET_POOLING
#define STET_GLOBAL_POOLING(Name, axes, reduce, masks)                      \
  Name::Name(GlobalPoolingOptions options, Where where)                     \
      : Layer(global_pooling(#Name, axes, reduce, options, where, masks)) { \
    note_recipe(*this, GlobalPoolingRecipe<Name, #Name>{options});          \
  }                                                                         \
  const Savable<GlobalPoolingRecipe<Name, #Name>> savable_##Name;
STET_GLOBAL_POOLING(GlobalMaxPooling1D, 1, max, false)
STET_GLOBAL_POOLING(GlobalMaxPooling2D, 2, max, false)
STET_GLOBAL_POOLING(GlobalMaxPooling3D, 3, max, false)
STET_GLOBAL_POOLING(GlobalAveragePooling1D, 1, mean, true)
STET_GLOBAL_POOLING(GlobalAveragePooling2D, 2, mean, false)
STET_GLOBAL_POOLING(GlobalAveragePooling3D, 3, mean, false)
#undef STET_GLOBAL_POOLING

}  // namespace stet::keras
