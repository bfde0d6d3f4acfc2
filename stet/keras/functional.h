// Functional models: layers called on tensors that do not exist yet, and the model between some of them.
//
//   keras::Input image({28, 28}), size({1});
//   auto features = keras::Dense(64, {.activation = relu})(keras::Flatten()(image));
//   auto merged = keras::Concatenate()({features, size});
//   keras::Model model({image, size}, {keras::Dense(10)(merged)});
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/signature.h"
#include "stet/keras/input.h"
#include "stet/keras/layer.h"

namespace stet::keras {

struct SymbolicCall;

/// What a layer would give: a type, and how to get there. Copies share.
class STET_API KerasTensor {
 public:
  /// Undefined: any use is a UserError.
  KerasTensor() = default;
  KerasTensor(const Input& input);

  bool defined() const { return call_ != nullptr; }
  /// Its type, the batch axis in front: "f32[batch,28,28]".
  const TensorSpec& spec(Where where = Where::here()) const;
  DType dtype(Where where = Where::here()) const { return spec(where).dtype; }
  const ShapeSpec& shape(Where where = Where::here()) const { return spec(where).shape; }
  int rank(Where where = Where::here()) const { return shape(where).rank(); }
  /// The layer that gives it.
  Layer layer(Where where = Where::here()) const;

  const std::shared_ptr<const SymbolicCall>& call() const { return call_; }
  int number() const { return number_; }
  KerasTensor(std::shared_ptr<const SymbolicCall> call, int number) : call_(std::move(call)), number_(number) {}

 private:
  std::shared_ptr<const SymbolicCall> call_;
  int number_ = 0;  // among what the call gives
};

/// A layer called on such tensors.
struct SymbolicCall {
  Layer layer;
  std::vector<KerasTensor> inputs;  // none: an Input
  std::vector<TensorSpec> outputs;
  CallOptions options = {};
};

// a + b and its kin, of two such tensors, or of one and a number.
STET_API KerasTensor operator+(const KerasTensor& a, const KerasTensor& b);
STET_API KerasTensor operator-(const KerasTensor& a, const KerasTensor& b);
STET_API KerasTensor operator*(const KerasTensor& a, const KerasTensor& b);
STET_API KerasTensor operator/(const KerasTensor& a, const KerasTensor& b);
STET_API KerasTensor operator+(const KerasTensor& a, double b);
STET_API KerasTensor operator-(const KerasTensor& a, double b);
STET_API KerasTensor operator*(const KerasTensor& a, double b);
STET_API KerasTensor operator/(const KerasTensor& a, double b);
STET_API KerasTensor operator+(double a, const KerasTensor& b);
STET_API KerasTensor operator-(double a, const KerasTensor& b);
STET_API KerasTensor operator*(double a, const KerasTensor& b);
STET_API KerasTensor operator/(double a, const KerasTensor& b);

}  // namespace stet::keras
