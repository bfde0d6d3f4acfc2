#include "stet/keras/reshaping.h"

#include <algorithm>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/size_words.h"
#include "stet/keras/layer_fields.h"
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

// --- what they were made from

struct ReshapeRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Reshape";
  std::vector<std::int64_t> target_shape = {};
  ReshapingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("target_shape");
    if (!f.reading()) return f("target_shape", target_shape);
    ShapeSpec sizes;  // null is -1, too
    shape_field(f, "target_shape", sizes);
    for (const DimSpec& dim : sizes.dims) target_shape.push_back(dim.size.value_or(-1));
  }
  Layer make(Where where) const { return Reshape(target_shape, options, where); }
};
struct PermuteRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Permute";
  std::vector<int> dims = {};
  ReshapingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("dims", dims);
  }
  Layer make(Where where) const { return Permute(dims, options, where); }
};
struct RepeatVectorRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "RepeatVector";
  std::int64_t n = 0;
  ReshapingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("n", n);
  }
  Layer make(Where where) const { return RepeatVector(n, options, where); }
};
struct UpSampling1DRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "UpSampling1D";
  std::int64_t size = 2;
  ReshapingOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("size", size);
  }
  Layer make(Where where) const { return UpSampling1D(size, options, where); }
};
template <class Made, Literal name, int axes, class Options>
struct UpSamplingRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  WindowSizes size = 2;
  Options options = {};
  void fields(Fields& f) {
    f.layer(options);
    window_field(f, "size", size, axes);
    data_format_field(f, options.data_format);
    if constexpr (requires { options.interpolation; }) f("interpolation", options.interpolation);
  }
  Layer make(Where where) const { return Made(size, options, where); }
};
using UpSampling2DRecipe = UpSamplingRecipe<UpSampling2D, "UpSampling2D", 2, UpSampling2DOptions>;
using UpSampling3DRecipe = UpSamplingRecipe<UpSampling3D, "UpSampling3D", 3, SpatialOptions>;

/// Keras writes pairs for every axis, of one axis the pair alone; it takes a number for all, and one for each axis.
void margins_field(Fields& f, const char* name, Margins& value, int axes) {
  if (!f.reading()) {
    Json::List pairs;
    for (const auto& [before, after] : value.pairs(axes)) pairs.push_back(Json::List{before, after});
    return f.put(name, axes == 1 ? pairs[0] : Json(std::move(pairs)));
  }
  const Json* member = f.take(name);
  if (!member) return;
  constexpr const char* expected = "a number, or lists of them for every axis,";
  const Json::List* each = list_of(*member);
  if (!each) {
    const std::int64_t* all = member->if_integer();
    if (!all) f.wrong(name, *member, expected);
    value = *all;
    return;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  auto number = [&](const Json& item) {
    const std::int64_t* found = item.if_integer();
    if (!found) f.wrong(name, item, expected);
    return *found;
  };
  if (axes == 1 && each->size() == 2 && !list_of((*each)[0])) {
    pairs.emplace_back(number((*each)[0]), number((*each)[1]));
  } else {
    for (const Json& item : *each) {
      const Json::List* sides = list_of(item);
      if (sides && sides->size() != 2) f.wrong(name, item, "a pair of numbers");
      pairs.emplace_back(number(sides ? (*sides)[0] : item), number(sides ? (*sides)[1] : item));
    }
  }
  value = Margins(std::move(pairs));
}
/// ZeroPaddings and Croppings.
template <class Made, Literal name, Literal argument, int axes, class Options>
struct MarginsRecipe {
  static constexpr const char *module = "keras.layers", *class_name = name.text;
  Margins margins = 1;
  Options options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required(argument.text);
    margins_field(f, argument.text, margins, axes);
    if constexpr (requires { options.data_format; }) data_format_field(f, options.data_format);
  }
  Layer make(Where where) const { return Made(margins, options, where); }
};
using Cropping1DRecipe = MarginsRecipe<Cropping1D, "Cropping1D", "cropping", 1, ReshapingOptions>;

const Savable<ReshapeRecipe> savable_reshape;
const Savable<PermuteRecipe> savable_permute;
const Savable<RepeatVectorRecipe> savable_repeat_vector;
const Savable<UpSampling1DRecipe> savable_up_sampling_1d;
const Savable<UpSampling2DRecipe> savable_up_sampling_2d;
const Savable<UpSampling3DRecipe> savable_up_sampling_3d;
const Savable<Cropping1DRecipe> savable_cropping_1d;

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
                                .name = options.name,
                                .takes = {.least = 1, .layout = "[batch, …]"},
                                .call = call,
                                .policy = options.dtype}));
  note_recipe(*this, ReshapeRecipe{std::move(target_shape), std::move(options)});
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
       .name = options.name,
       .takes = {.least = rank, .most = rank, .layout = rank >= 3 && rank <= 5 ? layouts[rank - 1] : "[batch, …]"},
       .call = [=](const Tensor& x, const Context&) { return transpose(x, order); },
       .policy = options.dtype}));
  note_recipe(*this, PermuteRecipe{std::move(dims), std::move(options)});
}

RepeatVector::RepeatVector(std::int64_t n, ReshapingOptions options, Where where) {
  require_at_least("RepeatVector", "n", n, 1, where);
  Layer::operator=(
      plain_layer({.class_name = "RepeatVector",
                   .name = options.name,
                   .takes = {.least = 2, .most = 2, .layout = "[batch, values]"},
                   .call = [=](const Tensor& x, const Context&) { return repeat(expand_dims(x, 1), n, 1); },
                   .policy = options.dtype}));
  note_recipe(*this, RepeatVectorRecipe{n, std::move(options)});
}

UpSampling1D::UpSampling1D(std::int64_t size, ReshapingOptions options, Where where)
    : Layer(up_sampling_layer("UpSampling1D", 1, size, {.name = options.name, .dtype = options.dtype}, where)) {
  note_recipe(*this, UpSampling1DRecipe{size, std::move(options)});
}
UpSampling2D::UpSampling2D(WindowSizes size, UpSampling2DOptions options, Where where) {
  require_name("UpSampling2D", "interpolation", options.interpolation, {"nearest", "bilinear", "bicubic"}, where);
  Layer::operator=(up_sampling_layer("UpSampling2D", 2, size,
                                     {.data_format = options.data_format, .name = options.name, .dtype = options.dtype},
                                     where, options.interpolation));
  note_recipe(*this, UpSampling2DRecipe{std::move(size), std::move(options)});
}
UpSampling3D::UpSampling3D(WindowSizes size, SpatialOptions options, Where where)
    : Layer(up_sampling_layer("UpSampling3D", 3, size, options, where)) {
  note_recipe(*this, UpSampling3DRecipe{std::move(size), std::move(options)});
}

#define STET_MARGINS(Name, make, argument, axes)                                                                     \
  Name::Name(Margins margins, SpatialOptions options, Where where)                                                   \
      : Layer(make(#Name, axes, margins, options, where)) {                                                          \
    note_recipe(*this,                                                                                               \
                MarginsRecipe<Name, #Name, argument, axes, SpatialOptions>{std::move(margins), std::move(options)}); \
  }                                                                                                                  \
  const Savable<MarginsRecipe<Name, #Name, argument, axes, SpatialOptions>> savable_##Name;
STET_MARGINS(ZeroPadding1D, zero_padding, "padding", 1)
STET_MARGINS(ZeroPadding2D, zero_padding, "padding", 2)
STET_MARGINS(ZeroPadding3D, zero_padding, "padding", 3)
STET_MARGINS(Cropping2D, cropping, "cropping", 2)
STET_MARGINS(Cropping3D, cropping, "cropping", 3)
#undef STET_MARGINS
Cropping1D::Cropping1D(Margins margins, ReshapingOptions options, Where where)
    : Layer(cropping("Cropping1D", 1, margins, {.name = options.name, .dtype = options.dtype}, where)) {
  note_recipe(*this, Cropping1DRecipe{std::move(margins), std::move(options)});
}

}  // namespace stet::keras
