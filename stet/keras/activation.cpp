#include "stet/keras/activation.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "stet/base/text.h"
#include "stet/keras/activation_layers.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/library_layer.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

struct NamedActivation {
  std::string_view name;
  Tensor (*op)(In);
};
Tensor linear(In x) { return x.kind() == In::Kind::tensor ? x.tensor() : x + 0; }
Tensor celu_of_one(In x) { return celu(x, 1.); }
Tensor elu_of_one(In x) { return elu(x, 1.); }
Tensor leaky(In x) { return leaky_relu(x, 0.2); }
Tensor glu_of_last(In x) { return activations::glu(x); }
Tensor hard_shrink_by_half(In x) { return activations::hard_shrink(x); }
Tensor soft_shrink_by_half(In x) { return activations::soft_shrink(x); }
Tensor sparsemax_of_last(In x) { return activations::sparsemax(x); }
Tensor squareplus_of_four(In x) { return activations::squareplus(x); }
constexpr NamedActivation named_activations[] = {
    {"celu", celu_of_one},
    {"elu", elu_of_one},
    {"exponential", exp},
    {"gelu", gelu},
    {"glu", glu_of_last},
    {"hard_shrink", hard_shrink_by_half},
    {"hard_sigmoid", hard_sigmoid},
    {"hard_silu", hard_silu},
    {"hard_swish", hard_silu},
    {"hard_tanh", hard_tanh},
    {"leaky_relu", leaky},
    {"linear", linear},
    {"log_sigmoid", log_sigmoid},
    {"log_softmax", log_softmax},
    {"mish", mish},
    {"relu", relu},
    {"relu6", relu6},
    {"selu", selu},
    {"sigmoid", sigmoid},
    {"silu", silu},
    {"soft_shrink", soft_shrink_by_half},
    {"softmax", softmax},
    {"softplus", softplus},
    {"softsign", softsign},
    {"sparse_plus", activations::sparse_plus},
    {"sparse_sigmoid", activations::sparse_sigmoid},
    {"sparsemax", sparsemax_of_last},
    {"squareplus", squareplus_of_four},
    {"swish", silu},
    {"tanh", tanh},
    {"tanh_shrink", activations::tanh_shrink},
};

class ActivationBody : public CustomLayer {
 public:
  ActivationBody(ActivationFunction function, std::string name)
      : CustomLayer(std::move(name)), function_(std::move(function)) {}
  Tensor call(const Tensor& x, const Context& context) override {
    Tensor result = function_(x, context.where);
    note_probabilities(function_, result, *this);
    return result;
  }
  bool supports_masking() const override { return true; }

 private:
  ActivationFunction function_;
};

struct ActivationRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Activation";
  ActivationFunction function = {};
  ActivationOptions options = {};
  DTypePolicy dtype = {};
  void fields(Fields& f) {
    f.layer_name(options.name);
    f("dtype", dtype);
    f.required("activation", function);
  }
  Layer make(Where) const {
    Layer made = Activation(function, options);
    note_recipe(made, *this);  // with the type, which is no option here
    return made;
  }
};
const Savable<ActivationRecipe> savable_activation;

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

ActivationFunction::ActivationFunction(const Layer& layer, Where where) : layer_(layer) {
  const std::string name = layer.name(where);  // UserError if it is undefined
  const auto& body = dynamic_cast<const CustomLayer&>(*layer.body());
  constexpr std::string_view known[] = {"Activation", "ELU", "LeakyReLU", "ReLU", "Softmax"};
  const bool own = !body.recipe() && !dynamic_cast<const LibraryLayer*>(&body);
  if (own ||
      (body.recipe() && std::find(std::begin(known), std::end(known), body.recipe()->class_name()) != std::end(known)))
    return;
  throw UserError(error_text(text(body.description(), " is given as an activation"), where,
                             "ReLU, LeakyReLU, ELU, Softmax, Activation and layers of your own without weights are "
                             "taken; let other layers follow the one that should be activated"));
}

std::optional<std::string> ActivationFunction::known_name() const {
  if (!defined()) return "linear";
  for (const NamedActivation& one : named_activations)
    if (op_ && one.op == op_) return std::string(one.name);
  return std::nullopt;
}

Tensor ActivationFunction::operator()(const Tensor& x, Where where) const {
  if (op_) return op_(In(x, where));
  if (layer_.defined()) {
    LayerFrame nobody;  // it is no member of the layer that it activates: it has nothing that is trained
    Tensor out = layer_(x, {}, where);
    const auto& body = dynamic_cast<const CustomLayer&>(*layer_.body());
    if (!body.recipe() && !layer_.weights().empty())
      throw UserError(error_text(text(body.description(), " is an activation, and has weights"), where,
                                 "let it follow the layer as one of its own: only then are its weights trained and "
                                 "saved"));
    return out;
  }
  return function_ ? function_(x) : x;
}

Activation::Activation(ActivationFunction function, ActivationOptions options)
    : Layer(std::make_shared<ActivationBody>(function, options.name)) {
  note_recipe(*this, ActivationRecipe{std::move(function), std::move(options)});
}

}  // namespace stet::keras
