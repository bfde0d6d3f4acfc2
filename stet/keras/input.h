// Input: what a model takes, without the batch axis.
#pragma once
#include <initializer_list>
#include <string>
#include <utility>

#include "stet/core/signature.h"
#include "stet/keras/layer.h"

namespace stet::keras {

struct InputOptions {
  DType dtype = DType::f32;
  std::string name = {};
};
/// The shape of one sample: Input({28, 28}), with `dyn` for sizes that vary. A model that starts with it has its
/// weights when it is made. Tensors of another shape are a UserError; other types are cast.
class STET_API Input : public Layer {
 public:
  explicit Input(const ShapeSpec& shape, InputOptions options = {}, Where where = Where::here());
  explicit Input(std::initializer_list<DimSpec> shape, InputOptions options = {}, Where where = Where::here())
      : Input(ShapeSpec(shape), std::move(options), where) {}
  STET_HANDLE(Input, Layer)
};

}  // namespace stet::keras
