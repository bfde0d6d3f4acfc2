// Losses: functions of labels and predictions that leave averaging to the caller. f16 and bf16 are computed in f32;
// results have the type of the predictions. What is 0 by definition (no part of a label times an infinite logarithm) is
// 0, and its derivatives too.
#include <limits>

#include "stet/ops/composite.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- losses

struct CrossEntropyOptions {
  double label_smoothing = 0;  // this part of every label is spread evenly over all classes
};
/// -log(softmax(logits)[label]) per sample: `labels` are integers [...], `logits` [..., classes].
/// Names: tf.nn.sparse_softmax_cross_entropy_with_logits, torch.nn.functional.cross_entropy
/// Example: sparse_cross_entropy(tensor({0, 1}), tensor({{0.f, 0.f}, {100.f, 0.f}}))
STET_API Tensor sparse_cross_entropy(In labels, In logits, CrossEntropyOptions options = {});
/// -sum(labels * log_softmax(logits)) over the last axis: `labels` are probabilities, of the shape of `logits`. A logit
/// of -inf whose label is 0 costs nothing.
/// Example: softmax_cross_entropy(tensor({{0.f, 1.f}}), tensor({{0.f, 0.f}}))
/// Names: tf.nn.softmax_cross_entropy_with_logits, torch.nn.functional.cross_entropy, optax.softmax_cross_entropy
STET_API Tensor softmax_cross_entropy(In labels, In logits, CrossEntropyOptions options = {});
/// -(labels * log(sigmoid(logits)) + (1 - labels) * log(1 - sigmoid(logits))), elementwise, for logits of any size.
/// Example: sigmoid_cross_entropy(tensor({1.f, 0.f}), tensor({100.f, 100.f}))
/// Names: tf.nn.sigmoid_cross_entropy_with_logits, torch.nn.functional.binary_cross_entropy_with_logits
STET_API Tensor sigmoid_cross_entropy(In labels, In logits, CrossEntropyOptions options = {});
struct HuberOptions {
  double delta = 1;  // where the square becomes linear; positive
};
/// Elementwise 0.5 * e^2 for errors up to delta, beyond that delta * (|e| - 0.5 * delta).
/// Example: huber(tensor({0.f, 0.f}), tensor({0.5f, 4.f}))
/// Names: keras.losses.huber, torch.nn.functional.huber_loss
STET_API Tensor huber(In labels, In predictions, HuberOptions options = {});
/// sum(labels * log(labels / predictions)) over the last axis, of probabilities. Labels of 0 add nothing, and have no
/// derivative (0).
/// Example: kl_divergence(tensor({0.f, 1.f}), tensor({0.5f, 0.5f}))
/// Names: keras.losses.kl_divergence, torch.nn.functional.kl_div, scipy.special.rel_entr
STET_API Tensor kl_divergence(In labels, In predictions);
/// mean(square(labels - predictions)) over the last axis.
/// Example: mean_squared_error(tensor({{1.f, 2.f}}), tensor({{1.f, 4.f}}))
/// Names: keras.losses.mean_squared_error, torch.nn.functional.mse_loss
STET_API Tensor mean_squared_error(In labels, In predictions);
/// mean(|labels - predictions|) over the last axis.
/// Example: mean_absolute_error(tensor({{1.f, 2.f}}), tensor({{1.f, 4.f}}))
/// Names: keras.losses.mean_absolute_error, torch.nn.functional.l1_loss
STET_API Tensor mean_absolute_error(In labels, In predictions);
struct PoissonLossOptions {
  bool log_input = false;  // predictions are logarithms of rates
};
/// Elementwise predictions - labels * log(predictions): counts and the rates they are expected to have. Labels of 0 add
/// no logarithm.
/// Example: poisson_loss(tensor({0.f, 2.f}), tensor({0.f, 1.f}))
/// Names: tf.nn.log_poisson_loss, keras.losses.poisson, torch.nn.functional.poisson_nll_loss
STET_API Tensor poisson_loss(In labels, In predictions, PoissonLossOptions options = {});
#endif

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr const char* about_labels = "labels are class numbers: 0, 1, … up to the number of classes less one";
constexpr IndexWords label_of_sample{"label", "of sample", "classes", about_labels},
    label_of_many{"label", "at flat position", "classes", about_labels};

/// Labels and predictions of one shape, in the type that is computed in.
class LossCall {
 public:
  LossCall(const char* name, const char* predictions, const In& y, const In& p)
      : call_(name, {"labels", predictions}, {y, p}) {
    call_.require_same_shape(0, 1, "every prediction needs a label");
    this->predictions = widened(call_[1]);
    labels = in_type(call_[0], this->predictions.dtype());
  }
  void require(bool condition, const std::string& problem, const std::string& advice) const {
    call_.require(condition, problem, advice);
  }
  Tensor finished(const Tensor& loss) const { return in_type(loss, floating_type(call_[1].dtype())); }
  /// Of a scalar itself.
  Tensor finished_mean(const Tensor& elements) const {
    return finished(elements.rank() > 0 ? mean(elements, -1) : elements);
  }

  Tensor labels, predictions;

 private:
  Composite call_;
};

void require_smoothing(const auto& call, double smoothing) {
  call.require(smoothing >= 0 && smoothing <= 1, text("'label_smoothing' is ", smoothing, ", not from 0 to 1"), {});
}

/// labels * logarithms, where nothing of -inf is nothing. Other products with labels of 0 keep their derivatives.
Tensor weighted(const Tensor& labels, const Tensor& logarithms) {
  Tensor void_of = logical_and(equal(labels, 0), equal(logarithms, -infinity));
  return labels * where(void_of, 0, logarithms);
}

/// A value whose derivatives with respect to two operands are stated.
Expr with_derivatives(Expr value, Expr x, Expr by_x, Expr y, Expr by_y) {
  return scalar::with_derivative(value, x, by_x) + scalar::with_derivative(constant(0.0, value.dtype()), y, by_y);
}

/// z is the logit and y the label. max(z, 0) - z y + log(1 + exp(-|z|)): nothing overflows, nothing cancels, and a
/// label that is certain makes nothing of an infinite logit on its side. The derivatives are sigmoid(z) - y and -z:
/// derived, those of max and abs at 0 would be wrong, and 0 is where a model with zero weights starts.
Expr sigmoid_loss(Expr z, Expr y) {
  Expr factor = scalar::select(z < 0, -y, 1 - y);
  Expr linear = scalar::select(scalar::equal(factor, 0), 0, z * factor);
  // log(1 + u) for small u: what rounding took from 1 + u is in the quotient.
  Expr u = scalar::exp(-scalar::abs(z)), whole = 1 + u;
  Expr tail = scalar::select(scalar::equal(whole, 1), u, scalar::log(whole) * (u / (whole - 1)));
  Expr s = 1 / (1 + scalar::exp(-z)), sigmoid = scalar::with_derivative(s, z, s * (1 - s));
  return with_derivatives(linear + tail, z, sigmoid - y, y, -z);
}

/// c (e - c / 2) with c the error cut to delta; its derivative is c, also where e is infinite.
Expr huber_loss(Expr e, double delta) {
  Expr cut = scalar::maximum(scalar::minimum(e, Literal(delta)), Literal(-delta));
  return scalar::with_derivative(cut * (e - cut * 0.5), e, cut);
}

}  // namespace

Tensor sparse_cross_entropy(In labels, In logits, CrossEntropyOptions options) {
  const bool one_axis = labels.kind() == In::Kind::tensor && labels.tensor().defined() && labels.tensor().rank() == 1;
  Composite call("sparse_cross_entropy", {"labels", "logits"}, {labels, logits},
                 one_axis ? &label_of_sample : &label_of_many);
  for (const In& operand : {labels, logits})
    call.require(operand.kind() == In::Kind::tensor, "labels and logits must be tensors");
  const Tensor &y = call[0], &z = call[1];
  const char* shapes = "logits are [..., classes], labels [...]";
  call.require(z.rank() == y.rank() + 1, "logits must have one axis more than labels", shapes);
  call.require(is_integer(y.dtype()), "labels must be integers",
               "cast(labels, i64), or use one_hot labels with softmax_cross_entropy");
  require_smoothing(call, options.label_smoothing);
  for (int axis = 0; axis < y.rank(); ++axis)
    call.require(require(y.dim(axis), Relation::equal, z.dim(axis), {"sparse_cross_entropy", "samples", frame_where()}),
                 "labels and logits have different numbers of samples", shapes);
  // The label's logit is picked by index, so a label that is not a class is an error, not a zero. Logarithms of all
  // probabilities are never written: -log(softmax(z)[label]) is log(sum(exp(z - m))) - (z[label] - m).
  Tensor logits_in = widened(z);
  Tensor largest = unseen_largest(logits_in, -1);
  Tensor total = log(sum(exp(logits_in - largest), -1, {.keepdims = true}));
  Tensor picked = take_along_axis(logits_in, expand_dims(y, -1), -1) - largest;
  Tensor loss = total - picked;
  if (options.label_smoothing != 0)
    loss = (1 - options.label_smoothing) * loss +
           options.label_smoothing * (total - mean(logits_in - largest, -1, {.keepdims = true}));
  return in_type(squeeze(loss, -1), floating_type(z.dtype()));
}

Tensor softmax_cross_entropy(In labels, In logits, CrossEntropyOptions options) {
  LossCall call("softmax_cross_entropy", "logits", labels, logits);
  call.require(call.predictions.rank() > 0, "logits have no axis of classes", "they are [..., classes]");
  require_smoothing(call, options.label_smoothing);
  Tensor y = call.labels;
  if (options.label_smoothing != 0) {
    Tensor share = options.label_smoothing / cast(y.dim(-1), y.dtype());
    y = y * (1 - options.label_smoothing) + share;
  }
  return call.finished(-sum(weighted(y, log_softmax(call.predictions)), -1));
}

Tensor sigmoid_cross_entropy(In labels, In logits, CrossEntropyOptions options) {
  LossCall call("sigmoid_cross_entropy", "logits", labels, logits);
  require_smoothing(call, options.label_smoothing);
  Tensor y = call.labels;
  if (options.label_smoothing != 0) y = y * (1 - options.label_smoothing) + 0.5 * options.label_smoothing;
  const DType dtype = call.predictions.dtype();
  In operands[] = {call.predictions, y};
  return call.finished(call_map(sigmoid_loss(operand(0, dtype), operand(1, dtype)), operands));
}

Tensor huber(In labels, In predictions, HuberOptions options) {
  LossCall call("huber", "predictions", labels, predictions);
  call.require(options.delta > 0, text("'delta' is ", options.delta, ", not positive"), {});
  Tensor error = call.predictions - call.labels;
  In operands[] = {error};
  return call.finished(call_map(huber_loss(operand(0, error.dtype()), options.delta), operands));
}

Tensor kl_divergence(In labels, In predictions) {
  LossCall call("kl_divergence", "predictions", labels, predictions);
  call.require(call.predictions.rank() > 0, "predictions have no axis of classes", "they are [..., classes]");
  Tensor none = equal(call.labels, 0), y = where(none, 1, call.labels), p = where(none, 1, call.predictions);
  return call.finished(sum(where(none, 0, y * (log(y) - log(p))), -1));
}

Tensor mean_squared_error(In labels, In predictions) {
  LossCall call("mean_squared_error", "predictions", labels, predictions);
  return call.finished_mean(square(call.labels - call.predictions));
}

Tensor mean_absolute_error(In labels, In predictions) {
  LossCall call("mean_absolute_error", "predictions", labels, predictions);
  return call.finished_mean(abs(call.labels - call.predictions));
}

Tensor poisson_loss(In labels, In predictions, PoissonLossOptions options) {
  LossCall call("poisson_loss", "predictions", labels, predictions);
  const Tensor &y = call.labels, &p = call.predictions;
  if (options.log_input) return call.finished(exp(p) - weighted(y, p));
  Tensor none = equal(y, 0);
  return call.finished(p - where(none, 0, y * log(where(none, 1, p))));
}

}  // namespace stet
