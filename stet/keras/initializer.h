// Initializers: the first values of weights, by name or by a callable.
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/base/dtype.h"
#include "stet/base/export.h"
#include "stet/base/shape.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/keras/recipe.h"

namespace stet::keras {

/// A rule for the first value of a weight: one of Keras's by name ("glorot_uniform", "he_normal", "zeros", …; another
/// name is a UserError that lists them), or a callable that makes the tensor. Random rules draw from the weight's own
/// stream, so that weights made in the same order are the same, eagerly or traced.
class STET_API Initializer : public Recorded {
 public:
  using Rule = std::function<Tensor(const Shape& shape, DType dtype)>;

  /// None: the layer's own choice.
  Initializer() = default;
  Initializer(const char* name, Where where = Where::here());
  Initializer(const std::string& name, Where where = Where::here()) : Initializer(name.c_str(), where) {}
  template <class F>
  requires(!std::derived_from<F, Initializer> && std::is_invocable_r_v<Tensor, F, const Shape&, DType>)
      Initializer(F rule)
      : rule_(std::move(rule)) {}

  bool defined() const { return rule_ != nullptr; }
  /// The value; a tensor of another shape or type, which only a callable can give, is a UserError.
  Tensor operator()(const Shape& shape, DType dtype, Where where = Where::here()) const;

 private:
  Rule rule_;
};

}  // namespace stet::keras
