#include "stet/keras/dropout.h"

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"
#include "stet/keras/noise_source.h"
#include "stet/ops/ops.h"

namespace stet::keras {

void require_rate(const char* layer, double rate, Where where, bool below_one) {
  if (rate >= 0 && (below_one ? rate < 1 : rate <= 1)) return;
  throw UserError(
      error_text(text(layer, ": a rate of ", rate), where,
                 below_one ? "it is a probability, from 0 to less than 1" : "it is a probability, from 0 to 1"));
}

Shape noise_shape(const char* layer, const Tensor& x, const ShapeSpec& spec, Where where) {
  if (spec.dims.empty()) return x.shape();
  if (spec.rank() != x.rank())
    throw UserError(error_text(text(layer, ": noise_shape ", spec.str(), " for an input ", described(x)), where,
                               "give a size for each axis: 1, the input's, or dyn"));
  std::vector<Dim> sizes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const DimSpec& dim = spec.dims[static_cast<std::size_t>(axis)];
    sizes.push_back(dim.size ? Dim(*dim.size) : x.dim(axis));
    if (dim.size && *dim.size != 1 &&
        !inside::require(x.dim(axis), Relation::equal, *dim.size, {layer, "noise_shape", where}))
      throw UserError(error_text(text(layer, ": noise_shape ", spec.str(), " for an input ", described(x)), where,
                                 "give a size for each axis: 1, the input's, or dyn"));
  }
  return Shape(sizes);
}

Tensor dropped(const Tensor& x, const Shape& noise, double rate, const NoiseSource& source, Where where) {
  if (rate == 1) return zeros_like(x);
  return stet::where(source->uniform(noise, {}, where) >= rate, x * (1 / (1 - rate)), 0);
}

namespace {

struct DropoutRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Dropout";
  double rate = 0;
  DropoutOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f.required("rate", rate);
    f("seed", options.seed);
    shape_field(f, "noise_shape", options.noise_shape);
  }
  Layer make(Where where) const { return Dropout(rate, options, where); }
};
const Savable<DropoutRecipe> savable_dropout;

}  // namespace

Dropout::Dropout(double rate, DropoutOptions options, Where where) {
  require_rate("Dropout", rate, where);
  const NoiseSource source(options.seed, where);
  auto call = [rate, shape = options.noise_shape, source](const Tensor& x, const Context& context) {
    if (!context.training || rate == 0) return x;
    return dropped(x, noise_shape("Dropout", x, shape, context.where), rate, source, context.where);
  };
  Layer::operator=(plain_layer({.class_name = "Dropout",
                                .name = options.name,
                                .takes = {.layout = "any tensor"},
                                .call = call,
                                .supports_masking = true,
                                .policy = options.dtype,
                                .generator = source.generator()}));
  note_recipe(*this, DropoutRecipe{rate, options});
}

}  // namespace stet::keras
