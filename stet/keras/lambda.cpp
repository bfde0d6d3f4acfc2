#include "stet/keras/lambda.h"

#include "stet/keras/layer_fields.h"
#include "stet/keras/library_layer.h"

namespace stet::keras {
namespace {

/// Keras writes the code of the function, which nobody runs here; a Lambda of stet's is not written.
const Savable<RefusedRecipe<"Lambda", "a Lambda is code, which is not loaded from files",
                            "make the model here and load the weights alone; or save it without the Lambda">>
    refused_lambda;

}  // namespace

Lambda::Lambda(std::function<Tensor(const Tensors& inputs, const Context& context)> f, bool of_one,
               LambdaOptions options) {
  PlainLayer what{.class_name = "Lambda",
                  .name = std::move(options.name),
                  .takes = {.layout = "any tensor", .inputs = of_one ? 1 : 0},
                  .call_many = std::move(f),
                  .policy = options.dtype};
  if (options.mask) {
    what.supports_masking = true;
    what.compute_mask = [mask = options.mask](const Tensors& inputs, const Tensors& masks) {
      return Tensors{mask(inputs[0], masks.empty() ? Tensor() : masks[0])};
    };
  }
  Layer::operator=(plain_layer(std::move(what)));
}

}  // namespace stet::keras
