#include "stet/keras/input.h"

#include "stet/base/text.h"
#include "stet/keras/input_body.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {

Tensor InputLayerBody::call(const Tensor& x, const Context& context) {
  bool fits = x.rank() == shape.rank() + 1;
  for (int axis = 0; fits && axis < shape.rank(); ++axis) {
    const DimSpec& promised = shape.dims[static_cast<std::size_t>(axis)];
    if (promised.size)
      fits = inside::require(x.dim(axis + 1), Relation::equal, *promised.size,
                             {"Input", text("axis ", axis + 1, " of '", name(), "'"), context.where});
  }
  if (!fits) {
    std::string sizes = "batch";
    for (const DimSpec& dim : shape.dims) sizes += dim.size ? text(",", *dim.size) : ",?";
    throw UserError(error_text(text("the model takes ", dtype, "[", sizes, "] and was given ", described(x)),
                               context.where,
                               "give it a batch of samples, the samples along axis 0; those of a Dataset: .batch(32)"));
  }
  return x.dtype() == dtype ? x : cast(In(x, context.where), dtype);
}

Input::Input(const ShapeSpec& shape, InputOptions options, Where where)
    : Layer(std::make_shared<InputLayerBody>(shape, options)) {
  for (const DimSpec& dim : shape.dims)
    if (dim.size && *dim.size < 0)
      throw UserError(error_text(text("Input: a size of ", *dim.size), where, "write dyn for a size that varies"));
}

}  // namespace stet::keras
