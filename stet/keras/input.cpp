#include "stet/keras/input.h"

#include "stet/base/text.h"
#include "stet/keras/input_body.h"
#include "stet/keras/layer_fields.h"
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

namespace {

struct InputRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "InputLayer";
  ShapeSpec shape = {};
  InputOptions options = {};
  void fields(Fields& f) {
    f.name_only(options.name);
    f.required("batch_shape");
    ShapeSpec with_batch({dyn});
    with_batch.dims.insert(with_batch.dims.end(), shape.dims.begin(), shape.dims.end());
    shape_field(f, "batch_shape", with_batch);
    if (f.reading()) {
      if (with_batch.dims.empty()) f.wrong("batch_shape", *f.take("batch_shape"), "the sizes of a batch");
      // A number of samples that the file promises is no limit here.
      shape.dims.assign(with_batch.dims.begin() + 1, with_batch.dims.end());
    }
    f("dtype", options.dtype);
    f.only("sparse", false);
  }
  Layer make(Where where) const { return Input(shape, options, where); }
};
const Savable<InputRecipe> savable_input;

}  // namespace

Input::Input(const ShapeSpec& shape, InputOptions options, Where where)
    : Layer(std::make_shared<InputLayerBody>(shape, options)) {
  for (const DimSpec& dim : shape.dims)
    if (dim.size && *dim.size < 0)
      throw UserError(error_text(text("Input: a size of ", *dim.size), where, "write dyn for a size that varies"));
  note_recipe(*this, InputRecipe{shape, std::move(options)});
}

}  // namespace stet::keras
