// Activations: functions applied to every element, as an option of layers and as a layer of their own.
#pragma once
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/in.h"
#include "stet/keras/layer.h"

namespace stet::keras {

/// What an option `.activation` takes: an op (relu), a function or lambda of a tensor, or a name ("relu", "softmax", …;
/// another name is a UserError that lists them).
class STET_API ActivationFunction {
 public:
  /// None: the identity.
  ActivationFunction() = default;
  ActivationFunction(Tensor (*op)(In)) : op_(op) {}
  template <class F>
  requires std::is_invocable_r_v<Tensor, F, Tensor> ActivationFunction(F f) : function_(std::move(f)) {}
  ActivationFunction(const char* name, Where where = Where::here());
  ActivationFunction(const std::string& name, Where where = Where::here()) : ActivationFunction(name.c_str(), where) {}

  bool defined() const { return op_ || function_; }
  bool is(Tensor (*op)(In)) const { return op_ == op; }
  Tensor operator()(const Tensor& x, Where where = Where::here()) const;

 private:
  Tensor (*op_)(In) = nullptr;
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
