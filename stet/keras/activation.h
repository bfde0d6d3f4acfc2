// Activations: functions applied to every element, as an option of layers and as a layer of their own.
#pragma once
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/in.h"
#include "stet/keras/layer.h"

namespace stet::keras {

/// What an option `.activation` takes: an op (relu), a function or lambda of a tensor, a name ("relu", "softmax", …;
/// another name is a UserError that lists them), or a layer that has no weights, LeakyReLU(0.1).
class STET_API ActivationFunction {
 public:
  /// None: the identity.
  ActivationFunction() = default;
  ActivationFunction(Tensor (*op)(In)) : op_(op) {}
  template <class F>
  requires(std::is_invocable_r_v<Tensor, F, Tensor> && !std::derived_from<F, Layer>) ActivationFunction(F f)
      : function_(std::move(f)) {}
  /// ReLU, LeakyReLU, ELU, Softmax, Activation or a layer of your own; UserError for others, and for one that turns out
  /// to have weights.
  ActivationFunction(const Layer& layer, Where where = Where::here());
  ActivationFunction(const char* name, Where where = Where::here());
  ActivationFunction(const std::string& name, Where where = Where::here()) : ActivationFunction(name.c_str(), where) {}

  bool defined() const { return op_ || function_ || layer_.defined(); }
  bool is(Tensor (*op)(In)) const { return op_ == op; }
  /// As it can be given: "relu", or "linear" where there is none; nothing of a function that has no name.
  std::optional<std::string> known_name() const;
  /// The layer that it was made of; undefined: none.
  const Layer& layer() const { return layer_; }
  Tensor operator()(const Tensor& x, Where where = Where::here()) const;

 private:
  Tensor (*op_)(In) = nullptr;
  Layer layer_;
  std::function<Tensor(Tensor)> function_;
};

struct ActivationOptions {
  std::string name = {};
};
/// A layer that applies a function.
class STET_API Activation : public Layer {
 public:
  explicit Activation(ActivationFunction function, ActivationOptions options = {});
  STET_HANDLE(Activation, Layer)
};

}  // namespace stet::keras
