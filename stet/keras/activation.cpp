#include "stet/keras/activation.h"

#include <string_view>

#include "stet/base/text.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

struct NamedActivation {
  std::string_view name;
  Tensor (*op)(In);
};
Tensor linear(In x) { return x.kind() == In::Kind::tensor ? x.tensor() : x + 0; }
constexpr NamedActivation named_activations[] = {
    {"exponential", exp}, {"gelu", gelu},       {"linear", linear}, {"log_softmax", log_softmax},
    {"relu", relu},       {"sigmoid", sigmoid}, {"silu", silu},     {"softmax", softmax},
    {"swish", silu},      {"tanh", tanh},
};

class ActivationBody : public CustomLayer {
 public:
  ActivationBody(ActivationFunction function, std::string name)
      : CustomLayer(std::move(name)), function_(std::move(function)) {}
  Tensor call(const Tensor& x, const Context& context) override { return function_(x, context.where); }
  bool supports_masking() const override { return true; }

 private:
  ActivationFunction function_;
};

}  // namespace

ActivationFunction::ActivationFunction(const char* name, Where where) {
  std::string known;
  for (const NamedActivation& one : named_activations) {
    if (one.name == name) op_ = one.op;
    known += text(known.empty() ? "" : ", ", one.name);
  }
  if (!op_)
    throw UserError(
        error_text(text("there is no activation '", name, "'"), where, text("one of ", known, "; or a function")));
}

Tensor ActivationFunction::operator()(const Tensor& x, Where where) const {
  if (op_) return op_(In(x, where));
  return function_ ? function_(x) : x;
}

Activation::Activation(ActivationFunction function, ActivationOptions options)
    : Layer(std::make_shared<ActivationBody>(std::move(function), std::move(options.name))) {}

}  // namespace stet::keras
