// Dense: every output depends on every input.
#pragma once
#include <cstdint>
#include <string>

#include "stet/keras/activation.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

struct DenseOptions {
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};  // none: "glorot_uniform"
  Initializer bias_initializer = {};    // none: "zeros"
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// activation(x · kernel + bias) over the last axis of x: [batch, …, inputs] gives [batch, …, units].
class STET_API Dense : public Layer {
 public:
  explicit Dense(std::int64_t units, DenseOptions options = {}, Where where = Where::here());
  STET_HANDLE(Dense, Layer)
};

}  // namespace stet::keras
