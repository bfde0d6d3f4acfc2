// What stands behind an Input. Not a public header.
#pragma once
#include <string>
#include <utility>

#include "stet/keras/input.h"

namespace stet::keras {

class InputLayerBody : public CustomLayer {
 public:
  InputLayerBody(ShapeSpec shape, InputOptions options)
      : CustomLayer(options.name), shape(std::move(shape)), dtype(options.dtype) {}
  Tensor call(const Tensor& x, const Context& context) override;
  bool supports_masking() const override { return true; }
  /// What it gives, the batch axis in front.
  TensorSpec type() const {
    TensorSpec out{.dtype = dtype, .shape = {dyn("batch")}, .name = name()};
    out.shape.dims.insert(out.shape.dims.end(), shape.dims.begin(), shape.dims.end());
    return out;
  }

  const ShapeSpec shape;
  const DType dtype;
};

}  // namespace stet::keras
