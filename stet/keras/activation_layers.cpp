#include "stet/keras/activation_layers.h"

#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/keras/layer_fields.h"
#include "stet/keras/library_layer.h"

namespace stet::keras {

namespace activations {
namespace {

Tensor operand(const In& x) { return x.kind() == In::Kind::tensor ? x.tensor() : x + 0; }

}  // namespace

Tensor glu(In x, int axis) {
  Frame frame("glu", x.where());
  const std::vector<Tensor> halves = split(x, 2, axis);
  return halves[0] * sigmoid(halves[1]);
}
Tensor hard_shrink(In x, double threshold) {
  Frame frame("hard_shrink", x.where());
  return where(abs(x) > threshold, x, 0);
}
Tensor soft_shrink(In x, double threshold) {
  Frame frame("soft_shrink", x.where());
  return where(x > threshold, x - threshold, where(x < -threshold, x + threshold, 0));
}
Tensor tanh_shrink(In x) {
  Frame frame("tanh_shrink", x.where());
  return x - tanh(x);
}
Tensor threshold(In x, double threshold, double default_value) {
  Frame frame("threshold", x.where());
  return where(x > threshold, x, default_value);
}
Tensor sparse_plus(In x) {
  Frame frame("sparse_plus", x.where());
  return where(x <= -1, 0, where(x >= 1, x, square(x + 1) / 4));
}
Tensor sparse_sigmoid(In x) {
  Frame frame("sparse_sigmoid", x.where());
  return where(x <= -1, 0, where(x >= 1, 1, (x + 1) * 0.5));
}
Tensor squareplus(In x, double b) {
  Frame frame("squareplus", x.where());
  return (x + sqrt(square(x) + b)) * 0.5;
}
Tensor sparsemax(In x, int axis) {
  Frame frame("sparsemax", x.where());
  // Of the k largest elements, so many that the k-th stays above the amount that makes their sum 1.
  const Tensor given = operand(x), ordered = sort(given, axis, {.descending = true});
  const Tensor ranks = cumsum(ones_like(ordered), axis);
  const Tensor stays = ranks * ordered + 1 > cumsum(ordered, axis);
  const Tensor count = sum(cast(stays, given.dtype()), axis, {.keepdims = true});
  const Tensor amount = (sum(where(stays, ordered, 0), axis, {.keepdims = true}) - 1) / count;
  return maximum(given - amount, 0);
}

}  // namespace activations

namespace {

template <class Options>
Layer activation_layer(const char* layer, Options options, std::function<Tensor(const Tensor&, const Context&)> call) {
  return plain_layer({.class_name = layer,
                      .name = std::move(options.name),
                      .takes = {.layout = "any tensor"},
                      .call = std::move(call),
                      .supports_masking = true,
                      .policy = options.dtype});
}

Tensor rectified(const Tensor& x, const ReLUOptions& options) {
  const double slope = options.negative_slope, threshold = options.threshold;
  if (slope != 0 && !options.max_value && threshold == 0) return leaky_relu(x, slope);
  Tensor out = threshold != 0 ? where(x > threshold, x, 0) : relu(x);
  if (options.max_value) out = minimum(out, *options.max_value);
  return slope != 0 ? out - slope * relu(threshold - x) : out;
}

class PReLUBody final : public LibraryLayer {
 public:
  explicit PReLUBody(PReLUOptions options)
      : LibraryLayer("PReLU", options.name, {.least = 1, .layout = "[batch, …]"}, options.dtype,
                     {.activity_regularizer = options.activity_regularizer}),
        options_(std::move(options)) {}
  bool supports_masking() const override { return true; }

 private:
  bool shared(int axis) const {
    return std::find(options_.shared_axes.begin(), options_.shared_axes.end(), axis) != options_.shared_axes.end();
  }
  void make_weights(const Shape& input) override {
    std::vector<Dim> sizes;
    for (int axis = 1; axis < input.rank(); ++axis) sizes.push_back(shared(axis) ? Dim(1) : input[axis]);
    alpha_ = weight("alpha", Shape(sizes),
                    {options_.alpha_initializer, "zeros", options_.alpha_regularizer, options_.alpha_constraint});
  }
  Tensor run(const Tensor& x, const Context& context) override {
    for (int axis = 1; axis < x.rank(); ++axis)
      if (!shared(axis)) require_size(x, axis, alpha_.shape()[axis - 1], "values", context.where);
    return relu(x) - in_compute_type(alpha_) * relu(-x);
  }

  const PReLUOptions options_;
  Variable alpha_;
};

Tensor softmax_over(const Tensor& x, const Axes& axes) {
  if (axes.axes.size() == 1) return softmax(x, static_cast<int>(axes.axes[0]));
  const Tensor grown = exp(x - max(x, axes, {.keepdims = true}));
  return grown / sum(grown, axes, {.keepdims = true});
}

// --- what they were made from

struct ReLURecipe {
  static constexpr const char *module = "keras.layers", *class_name = "ReLU";
  ReLUOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("max_value", options.max_value);
    f("negative_slope", options.negative_slope);
    f("threshold", options.threshold);
  }
  Layer make(Where where) const { return ReLU(options, where); }
};
struct LeakyReLURecipe {
  static constexpr const char *module = "keras.layers", *class_name = "LeakyReLU";
  double negative_slope = 0.3;
  ActivationLayerOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("negative_slope", negative_slope);
  }
  Layer make(Where where) const { return LeakyReLU(negative_slope, options, where); }
};
struct PReLURecipe {
  static constexpr const char *module = "keras.layers", *class_name = "PReLU";
  PReLUOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("alpha_initializer", options.alpha_initializer, "zeros");
    f("alpha_regularizer", options.alpha_regularizer);
    f("alpha_constraint", options.alpha_constraint);
    list_or_null_field(f, "shared_axes", options.shared_axes);
    f.if_defined("activity_regularizer", options.activity_regularizer);
  }
  Layer make(Where where) const { return PReLU(options, where); }
};
struct ELURecipe {
  static constexpr const char *module = "keras.layers", *class_name = "ELU";
  double alpha = 1;
  ActivationLayerOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    f("alpha", alpha);
  }
  Layer make(Where) const { return ELU(alpha, options); }
};
struct SoftmaxRecipe {
  static constexpr const char *module = "keras.layers", *class_name = "Softmax";
  Axes axis = -1;
  ActivationLayerOptions options = {};
  void fields(Fields& f) {
    f.layer(options);
    axes_field(f, "axis", axis);
  }
  Layer make(Where) const { return Softmax(axis, options); }
};
const Savable<ReLURecipe> savable_relu;
const Savable<LeakyReLURecipe> savable_leaky_relu;
const Savable<PReLURecipe> savable_prelu;
const Savable<ELURecipe> savable_elu;
const Savable<SoftmaxRecipe> savable_softmax;

}  // namespace

ReLU::ReLU(ReLUOptions options, Where where) {
  if (options.negative_slope < 0 || options.threshold < 0 || options.max_value.value_or(0) < 0)
    throw UserError(
        error_text("ReLU: max_value, negative_slope or threshold is negative", where, "they are numbers from 0 on"));
  Layer::operator=(
      activation_layer("ReLU", options, [options](const Tensor& x, const Context&) { return rectified(x, options); }));
  note_recipe(*this, ReLURecipe{options});
}
LeakyReLU::LeakyReLU(double negative_slope, ActivationLayerOptions options, Where where) {
  if (!(negative_slope >= 0))
    throw UserError(
        error_text(text("LeakyReLU: a negative_slope of ", negative_slope), where, "it is a number from 0 on"));
  Layer::operator=(activation_layer("LeakyReLU", options,
                                    [=](const Tensor& x, const Context&) { return leaky_relu(x, negative_slope); }));
  note_recipe(*this, LeakyReLURecipe{negative_slope, options});
}
PReLU::PReLU(PReLUOptions options, Where where) : Layer(std::make_shared<PReLUBody>(options)) {
  for (int axis : options.shared_axes)
    if (axis < 1)
      throw UserError(error_text(text("PReLU: the shared axis ", axis), where,
                                 "they count from 1; axis 0, the batch, is always shared"));
  note_recipe(*this, PReLURecipe{options});
}
ELU::ELU(double alpha, ActivationLayerOptions options)
    : Layer(activation_layer("ELU", options, [=](const Tensor& x, const Context&) { return elu(x, alpha); })) {
  note_recipe(*this, ELURecipe{alpha, options});
}
Softmax::Softmax(Axes axis, ActivationLayerOptions options)
    : Layer(activation_layer("Softmax", options, [=](const Tensor& x, const Context& context) {
        const Tensor mask = context.mask();
        if (!mask.defined()) return softmax_over(x, axis);
        const double lowest = x.dtype() == DType::f16 ? -3e4 : -1e9;
        return where(mask, softmax_over(where(mask, x, lowest), axis), 0);
      })) {
  note_recipe(*this, SoftmaxRecipe{axis, options});
}

}  // namespace stet::keras
