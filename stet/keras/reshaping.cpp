#include "stet/keras/reshaping.h"

#include <algorithm>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/spatial.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using Call = std::function<Tensor(const Tensor& x, const Context& context)>;

/// A layer over spatial axes, written for channels in the last one.
Layer spatial_layer(const char* layer, int axes, SpatialOptions options, Call call, Where where) {
  const bool first = is_channels_first(layer, options.data_format, where);
  auto turned = [call](const Tensor& x, const Context& context) {
    return channels_to_first(call(channels_to_last(x), context));
  };
  return plain_layer({.class_name = layer,
                      .name = std::move(options.name),
                      .takes = takes_spatial(axes, first),
                      .call = first ? Call(turned) : call,
                      .policy = options.dtype});
}

/// "[-1,5]"
std::string target_text(const std::vector<std::int64_t>& sizes) {
  std::string out;
  for (std::int64_t size : sizes) out += text(out.empty() ? "" : ",", size);
  return text("[", out, "]");
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

Pairs margins_of(const char* layer, const char* option, const Margins& margins, int axes, Where where) {
  Pairs pairs = margins.pairs(axes);
  if (pairs.size() != static_cast<std::size_t>(axes))
    throw UserError(error_text(text(layer, ": ", option, " for ", pairs.size(), " axes"), where,
                               axes == 1 ? "give one number, or {before, after}"
                                         : text("give one number, or one or a pair for each of the ", axes,
                                                " spatial axes: {{before, after}, …}")));
  for (const auto& [before, after] : pairs) require_at_least(layer, option, std::min(before, after), 0, where);
  return pairs;
}

Layer zero_padding(const char* layer, int axes, const Margins& padding, SpatialOptions options, Where where) {
  const Pairs pairs = margins_of(layer, "padding", padding, axes, where);
  auto call = [pairs](const Tensor& x, const Context&) {
    std::vector<Padding> around{{}};
    for (const auto& [before, after] : pairs) around.push_back({before, after});
    around.push_back({});
    return pad(x, around);
  };
  return spatial_layer(layer, axes, std::move(options), call, where);
}

Layer cropping(const char* layer, int axes, const Margins& margins, SpatialOptions options, Where where) {
  const Pairs pairs = margins_of(layer, "cropping", margins, axes, where);
  auto call = [layer, pairs](const Tensor& x, const Context& context) {
    std::vector<Dim> begin{0}, size{x.dim(0)};
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const Dim whole = x.dim(static_cast<int>(i) + 1), off = pairs[i].first + pairs[i].second;
      const inside::SizedText problem =
          inside::sized_text(layer, ": ", off, " positions cut off an axis of size ", whole);
      if (!inside::check(off, Relation::less, whole, {layer, "what is left", context.where}, problem,
                         "something has to be left"))
        throw UserError(error_text(problem.now(), context.where, "something has to be left"));
      begin.push_back(pairs[i].first);
      size.push_back(whole - off);
    }
    begin.push_back(0);
    size.push_back(x.dim(-1));
    return slice(x, begin, size);
  };
  return spatial_layer(layer, axes, std::move(options), call, where);
}

Layer up_sampling_layer(const char* layer, int axes, const WindowSizes& size, SpatialOptions options, Where where,
                        const std::string& method = "nearest") {
  const auto factors = for_each_axis(layer, "size", size, axes, 1, where);
  auto call = [factors, method](const Tensor& x, const Context&) {
    if (method == "nearest") return up_sampling(x, factors);
    return resize(x, x.dim(1) * factors[0], x.dim(2) * factors[1], {.method = method});
  };
  return spatial_layer(layer, axes, std::move(options), call, where);
}

}  // namespace

Reshape::Reshape(std::vector<std::int64_t> target_shape, ReshapingOptions options, Where where) {
  if (std::count(target_shape.begin(), target_shape.end(), -1) > 1 ||
      std::any_of(target_shape.begin(), target_shape.end(), [](std::int64_t size) { return size < -1; }))
    throw UserError(error_text(text("Reshape: a target of ", target_text(target_shape)), where,
                               "sizes are from 0 on, and one of them may be -1: what is left"));
  auto call = [=](const Tensor& x, const Context& context) {
    Dim values = 1, known = 1;  // of a sample
    for (int axis = 1; axis < x.rank(); ++axis) values = values * x.dim(axis);
    for (std::int64_t size : target_shape) known = size < 0 ? known : known * size;
    const bool open = std::count(target_shape.begin(), target_shape.end(), -1) > 0;
    const bool fits = open ? inside::check(values % known, Relation::equal, 0, {"Reshape", "values", context.where},
                                           inside::sized_text("Reshape: the ", values,
                                                              " values of a sample are no multiple of ", known))
                           : inside::require(values, Relation::equal, known, {"Reshape", "values", context.where});
    if (!fits)
      throw UserError(
          error_text(text("Reshape: ", described(x), " has ", size_now(values), " values per sample; the target ",
                          target_text(target_shape), " has ", open ? "a multiple of " : "", known),
                     context.where, "give a target_shape with as many values, without the batch axis"));
    std::vector<Dim> sizes{x.dim(0)};
    for (std::int64_t size : target_shape) sizes.push_back(size < 0 ? values / known : Dim(size));
    return reshape(x, sizes);
  };
  Layer::operator=(plain_layer({.class_name = "Reshape",
                                .name = std::move(options.name),
                                .takes = {.least = 1, .layout = "[batch, …]"},
                                .call = call,
                                .policy = options.dtype}));
}

Permute::Permute(std::vector<int> dims, ReshapingOptions options, Where where) {
  std::vector<int> sorted = dims, order{0};
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int>(i) + 1)
      throw UserError(
          error_text("Permute: dims are not a permutation", where,
                     text("give each of the numbers from 1 to ", dims.size(), " once: axis 0, the batch, stays")));
  order.insert(order.end(), dims.begin(), dims.end());
  const int rank = static_cast<int>(order.size());
  static constexpr const char* layouts[] = {"", "", "[batch, a, b]", "[batch, a, b, c]", "[batch, a, b, c, d]"};
  Layer::operator=(plain_layer(
      {.class_name = "Permute",
       .name = std::move(options.name),
       .takes = {.least = rank, .most = rank, .layout = rank >= 3 && rank <= 5 ? layouts[rank - 1] : "[batch, …]"},
       .call = [=](const Tensor& x, const Context&) { return transpose(x, order); },
       .policy = options.dtype}));
}

RepeatVector::RepeatVector(std::int64_t n, ReshapingOptions options, Where where) {
  require_at_least("RepeatVector", "n", n, 1, where);
  Layer::operator=(
      plain_layer({.class_name = "RepeatVector",
                   .name = std::move(options.name),
                   .takes = {.least = 2, .most = 2, .layout = "[batch, values]"},
                   .call = [=](const Tensor& x, const Context&) { return repeat(expand_dims(x, 1), n, 1); },
                   .policy = options.dtype}));
}

UpSampling1D::UpSampling1D(std::int64_t size, ReshapingOptions options, Where where)
    : Layer(up_sampling_layer("UpSampling1D", 1, size, {.name = options.name, .dtype = options.dtype}, where)) {}
UpSampling2D::UpSampling2D(WindowSizes size, UpSampling2DOptions options, Where where) {
  require_name("UpSampling2D", "interpolation", options.interpolation, {"nearest", "bilinear", "bicubic"}, where);
  Layer::operator=(up_sampling_layer("UpSampling2D", 2, size,
                                     {.data_format = options.data_format, .name = options.name, .dtype = options.dtype},
                                     where, options.interpolation));
}
UpSampling3D::UpSampling3D(WindowSizes size, SpatialOptions options, Where where)
    : Layer(up_sampling_layer("UpSampling3D", 3, size, std::move(options), where)) {}

#define STET_MARGINS(Name, make, axes)                             \
  Name::Name(Margins margins, SpatialOptions options, Where where) \
      : Layer(make(#Name, axes, margins, std::move(options), where)) {}
STET_MARGINS(ZeroPadding1D, zero_padding, 1)
STET_MARGINS(ZeroPadding2D, zero_padding, 2)
STET_MARGINS(ZeroPadding3D, zero_padding, 3)
STET_MARGINS(Cropping2D, cropping, 2)
STET_MARGINS(Cropping3D, cropping, 3)
#undef STET_MARGINS
Cropping1D::Cropping1D(Margins margins, ReshapingOptions options, Where where)
    : Layer(cropping("Cropping1D", 1, margins, {.name = options.name, .dtype = options.dtype}, where)) {}

}  // namespace stet::keras
