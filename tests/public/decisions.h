// What tests of decisions by values share: inputs that take the sides, and code that decides.
#pragma once
#include "eager_and_traced.h"

namespace stet {

using Tensors = std::vector<Tensor>;

/// Inputs that take the sides of a decision by sum(x), in several sizes.
inline Tensors mixed() {
  return {tensor({1.f, 2.f, 3.f}),
          tensor({-1.f, -2.f, 0.5f}),
          tensor({4.f}),
          tensor({-0.5f, 0.25f, -3.f, 1.f, 0.f}),
          zeros({0}),
          tensor({1.f, 2.f, 3.f})};
}

inline Tensor bend(const Tensor& x) {
  if (sum(x) > 0.f) return relu(x * 2) + 1;
  return sigmoid(x);
}

}  // namespace stet
