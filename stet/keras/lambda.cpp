#include "stet/keras/lambda.h"

#include "stet/keras/library_layer.h"

namespace stet::keras {

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
