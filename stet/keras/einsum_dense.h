// EinsumDense: a product of any axes with a kernel, by an equation.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stet/core/signature.h"
#include "stet/keras/activation.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

struct EinsumDenseOptions {
  ActivationFunction activation = {};
  std::string bias_axes = {};           // letters of the result that the bias has an element for; none: no bias
  Initializer kernel_initializer = {};  // none: "glorot_uniform" of what goes into a result and comes from an input
  Initializer bias_initializer = {};    // none: "zeros"
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// activation(einsum(equation, x, kernel) + bias). The equation is "ab,bc->ac", "...b,bc->...c" or "ab...,bc->ac...";
/// `output_shape` has the sizes of its result but the first, with `dyn` for those that the input tells.
class STET_API EinsumDense : public Layer {
 public:
  EinsumDense(const std::string& equation, const ShapeSpec& output_shape, EinsumDenseOptions options = {},
              Where where = Where::here());
  EinsumDense(const std::string& equation, std::int64_t output_size, EinsumDenseOptions options = {},
              Where where = Where::here())
      : EinsumDense(equation, ShapeSpec({DimSpec(output_size)}), std::move(options), where) {}
  STET_HANDLE(EinsumDense, Layer)
};

}  // namespace stet::keras
