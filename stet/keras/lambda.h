// Lambda: a function as a layer.
#pragma once
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

struct LambdaOptions {
  /// The mask of what it gives, from the input and its mask; without, masks end here.
  std::function<Tensor(const Tensor& x, const Tensor& mask)> mask = {};
  std::string name = {};
  DTypePolicy dtype = {};
};
/// What a function gives for a tensor, Lambda([](Tensor x) { return x * 2; }), or for several: of keras::Tensors. It
/// may take the call's Context too. A Variable that it captures is not trained with the layer: write a CustomLayer.
class STET_API Lambda : public Layer {
 public:
  template <class F>
  requires std::is_invocable_r_v<Tensor, F, const Tensor&>
  explicit Lambda(F f, LambdaOptions options = {})
      : Lambda([f = std::move(f)](const Tensors& inputs, const Context&) -> Tensor { return f(inputs[0]); }, true,
               std::move(options)) {}
  template <class F>
  requires std::is_invocable_r_v<Tensor, F, const Tensor&, const Context&>
  explicit Lambda(F f, LambdaOptions options = {})
      : Lambda([f = std::move(f)](const Tensors& inputs,
                                  const Context& context) -> Tensor { return f(inputs[0], context); },
               true, std::move(options)) {}
  template <class F>
  requires(std::is_invocable_r_v<Tensor, F, const Tensors&> &&
           !std::is_invocable_r_v<Tensor, F, const Tensor&>) explicit Lambda(F f, LambdaOptions options = {})
      : Lambda([f = std::move(f)](const Tensors& inputs, const Context&) -> Tensor { return f(inputs); }, false,
               std::move(options)) {}
  STET_HANDLE(Lambda, Layer)

 private:
  Lambda(std::function<Tensor(const Tensors& inputs, const Context& context)> f, bool of_one, LambdaOptions options);
};

}  // namespace stet::keras
