#include "stet/keras/losses_probabilistic.h"

#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/loss_bodies.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace losses {
namespace {

void require_smoothing(const char* name, double smoothing, Where where) {
  require_option(smoothing >= 0 && smoothing <= 1, name, "label_smoothing", smoothing, "from 0 to 1", where);
}
void require_order(const char* name, double q, Where where) {
  require_option(q > 0 && q < 1, name, "q", q, "above 0 and below 1", where);
}

/// Labels of two classes, of which a part is spread over both.
Tensor smoothed(const Tensor& labels, double smoothing) {
  return smoothing == 0 ? labels : labels * (1 - smoothing) + 0.5 * smoothing;
}
Tensor smoothed(const Tensor& labels, double smoothing, int axis) {
  if (smoothing == 0) return labels;
  return labels * (1 - smoothing) + smoothing / cast(labels.dim(axis), labels.dtype());
}

/// Elementwise, of probabilities.
Tensor binary_losses(const Tensor& labels, const Tensor& predictions) {
  Tensor p = clipped(predictions);
  return -(labels * log(p) + (1 - labels) * log(1 - p));
}

}  // namespace

Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred, const CrossentropyFunctionOptions& options,
                           Where where) {
  constexpr const char* name = "binary_crossentropy";
  LossCall call(name, y_true, y_pred, where);
  require_smoothing(name, options.label_smoothing, where);
  Tensor labels = smoothed(call.labels, options.label_smoothing);
  Tensor each =
      options.from_logits ? sigmoid_cross_entropy(labels, call.predictions) : binary_losses(labels, call.predictions);
  return call.finished_mean(each, options.axis);
}

Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                 const BinaryFocalCrossentropyFunctionOptions& options, Where where) {
  constexpr const char* name = "binary_focal_crossentropy";
  LossCall call(name, y_true, y_pred, where);
  require_smoothing(name, options.label_smoothing, where);
  Tensor labels = smoothed(call.labels, options.label_smoothing);
  Tensor p = options.from_logits ? sigmoid(call.predictions) : call.predictions;
  Tensor of_label = labels * p + (1 - labels) * (1 - p);
  Tensor each = pow(1 - of_label, options.gamma) * binary_losses(labels, p);
  if (options.apply_class_balancing) each = (labels * options.alpha + (1 - labels) * (1 - options.alpha)) * each;
  return call.finished_mean(each, options.axis);
}

Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, const CrossentropyFunctionOptions& options,
                                Where where) {
  constexpr const char* name = "categorical_crossentropy";
  LossCall call(name, y_true, y_pred, where);
  require_smoothing(name, options.label_smoothing, where);
  const int axis = axis_from_end(name, options.axis, call.predictions, where);
  Tensor labels = smoothed(call.labels, options.label_smoothing, axis);
  if (!options.from_logits) return call.finished(-sum(labels * log(distribution(call.predictions, axis)), axis));
  Tensor logits = call.predictions;
  if (axis != -1) labels = moveaxis(labels, axis, -1), logits = moveaxis(logits, axis, -1);
  return call.finished(softmax_cross_entropy(labels, logits));
}

Tensor categorical_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                      const CategoricalFocalCrossentropyFunctionOptions& options, Where where) {
  constexpr const char* name = "categorical_focal_crossentropy";
  LossCall call(name, y_true, y_pred, where);
  require_smoothing(name, options.label_smoothing, where);
  const int axis = axis_from_end(name, options.axis, call.predictions, where);
  Tensor labels = smoothed(call.labels, options.label_smoothing, axis);
  Tensor p = distribution(options.from_logits ? softmax(call.predictions, axis) : call.predictions, axis);
  return call.finished(sum(options.alpha * pow(1 - p, options.gamma) * (-labels * log(p)), axis));
}

SampleValues sparse_categorical_values(const Tensor& y_true, const Tensor& y_pred,
                                       const SparseCrossentropyFunctionOptions& options, Where line) {
  ClassCall call("sparse_categorical_crossentropy", y_true, y_pred, options.axis, line);
  Tensor mask;
  if (options.ignore_class) {
    mask = call.labels != *options.ignore_class;
    call.labels = where(mask, call.labels, 0);
    call.predictions = where(expand_dims(mask, -1), call.predictions, options.from_logits ? 0 : 1);
  }
  Tensor values = options.from_logits ? sparse_cross_entropy(call.labels, call.predictions)
                                      : 0 - call.at_labels(log(distribution(call.predictions, -1)));
  if (mask.defined()) values = where(mask, values, 0);
  return {call.finished(values), mask};
}
Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                       const SparseCrossentropyFunctionOptions& options, Where where) {
  return sparse_categorical_values(y_true, y_pred, options, where).values;
}

Tensor categorical_generalized_cross_entropy(const Tensor& y_true, const Tensor& y_pred, double q, Where where) {
  ClassCall call("categorical_generalized_cross_entropy", y_true, y_pred, -1, where);
  require_order("categorical_generalized_cross_entropy", q, where);
  return call.finished((1 - pow(call.at_labels(call.predictions), q)) / q);
}

Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("kl_divergence", y_true, y_pred, where);
  call.require(call.predictions.rank() > 0, "predictions have no axis of classes", "they are [..., classes]");
  auto probability = [](const Tensor& t) { return minimum(maximum(t, smallest_probability), 1); };
  Tensor labels = probability(call.labels);
  return call.finished(sum(labels * log(labels / probability(call.predictions)), -1));
}

Tensor poisson(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("poisson", y_true, y_pred, where);
  return call.finished_mean(call.predictions - call.labels * log(call.predictions + smallest_probability));
}

Tensor ctc(const Tensor& y_true, const Tensor& y_pred, Where where) {
  Frame frame("ctc", where);
  auto fit = [&] {
    return y_true.rank() == 2 && y_pred.rank() == 3 &&
           require(y_true.dim(0), Relation::equal, y_pred.dim(0), {"ctc", "sequences", where});
  };
  if (!y_true.defined() || !y_pred.defined() || !fit())
    throw UserError(error_text(text("ctc: labels ", described(y_true), " do not fit predictions ", described(y_pred)),
                               where,
                               "labels are integers [batch, length], predictions logits [batch, time, classes]"));
  const DType result = floating_type(y_pred.dtype());
  Tensor labels = is_integer(y_true.dtype()) ? y_true : cast(y_true, i64);
  Tensor logits = log_softmax(cast(y_pred, compute_type(result)));
  Tensor times = broadcast_to(cast(y_pred.dim(1), i64), {y_pred.dim(0)});
  return cast(ctc_loss(transpose(logits, {1, 0, 2}), labels, times, sum(cast(labels != 0, i64), -1)), result);
}

// --- classes

namespace {
template <auto function, class Options>
PerSample with(Options options) {
  return [options](const Tensor& y_true, const Tensor& y_pred, Where where) {
    return SampleValues(function(y_true, y_pred, options, where));
  };
}
}  // namespace

namespace {

void crossentropy_fields(Fields& f, CrossentropyOptions& options) {
  f("from_logits", options.from_logits);
  f("label_smoothing", options.label_smoothing);
  f("axis", options.axis);
}
template <class Options>
void focal_fields(Fields& f, Options& options) {
  f("from_logits", options.from_logits);
  f("label_smoothing", options.label_smoothing);
  f("axis", options.axis);
  if constexpr (requires { options.apply_class_balancing; }) f("apply_class_balancing", options.apply_class_balancing);
  f("alpha", options.alpha);
  f("gamma", options.gamma);
}
void sparse_fields(Fields& f, SparseCategoricalCrossentropyOptions& options) {
  f("from_logits", options.from_logits);
  f("ignore_class", options.ignore_class);
  f.besides("axis", options.axis, -1);
}
void generalized_fields(Fields& f, CategoricalGeneralizedCrossEntropyOptions& options) { f("q", options.q); }

using BinaryCrossentropyRecipe =
    LossRecipe<BinaryCrossentropy, "BinaryCrossentropy", CrossentropyOptions, crossentropy_fields>;
using BinaryFocalCrossentropyRecipe =
    LossRecipe<BinaryFocalCrossentropy, "BinaryFocalCrossentropy", BinaryFocalCrossentropyOptions, focal_fields>;
using CategoricalCrossentropyRecipe =
    LossRecipe<CategoricalCrossentropy, "CategoricalCrossentropy", CrossentropyOptions, crossentropy_fields>;
using CategoricalFocalCrossentropyRecipe = LossRecipe<CategoricalFocalCrossentropy, "CategoricalFocalCrossentropy",
                                                      CategoricalFocalCrossentropyOptions, focal_fields>;
using SparseCategoricalCrossentropyRecipe = LossRecipe<SparseCategoricalCrossentropy, "SparseCategoricalCrossentropy",
                                                       SparseCategoricalCrossentropyOptions, sparse_fields>;
using CategoricalGeneralizedCrossEntropyRecipe =
    LossRecipe<CategoricalGeneralizedCrossEntropy, "CategoricalGeneralizedCrossEntropy",
               CategoricalGeneralizedCrossEntropyOptions, generalized_fields>;
using KLDivergenceRecipe = LossRecipe<KLDivergence, "KLDivergence">;
using PoissonRecipe = LossRecipe<Poisson, "Poisson">;
using CTCRecipe = LossRecipe<CTC, "CTC">;
const SavableAll<BinaryCrossentropyRecipe, BinaryFocalCrossentropyRecipe, CategoricalCrossentropyRecipe,
                 CategoricalFocalCrossentropyRecipe, SparseCategoricalCrossentropyRecipe,
                 CategoricalGeneralizedCrossEntropyRecipe, KLDivergenceRecipe, PoissonRecipe, CTCRecipe>
    savable_losses;

}  // namespace

BinaryCrossentropy::BinaryCrossentropy(CrossentropyOptions options, Where where)
    : Loss(library_loss("binary_crossentropy", options,
                        with<binary_crossentropy>(
                            CrossentropyFunctionOptions{options.from_logits, options.label_smoothing, options.axis}))) {
  require_smoothing("BinaryCrossentropy", options.label_smoothing, where);
  note_loss<BinaryCrossentropyRecipe>(*this, options);
}
BinaryFocalCrossentropy::BinaryFocalCrossentropy(BinaryFocalCrossentropyOptions options, Where where)
    : Loss(library_loss("binary_focal_crossentropy", options,
                        with<binary_focal_crossentropy>(BinaryFocalCrossentropyFunctionOptions{
                            options.apply_class_balancing, options.alpha, options.gamma, options.from_logits,
                            options.label_smoothing, options.axis}))) {
  require_smoothing("BinaryFocalCrossentropy", options.label_smoothing, where);
  note_loss<BinaryFocalCrossentropyRecipe>(*this, options);
}
CategoricalCrossentropy::CategoricalCrossentropy(CrossentropyOptions options, Where where)
    : Loss(library_loss("categorical_crossentropy", options,
                        with<categorical_crossentropy>(
                            CrossentropyFunctionOptions{options.from_logits, options.label_smoothing, options.axis}))) {
  require_smoothing("CategoricalCrossentropy", options.label_smoothing, where);
  note_loss<CategoricalCrossentropyRecipe>(*this, options);
}
CategoricalFocalCrossentropy::CategoricalFocalCrossentropy(CategoricalFocalCrossentropyOptions options, Where where)
    : Loss(library_loss(
          "categorical_focal_crossentropy", options,
          with<categorical_focal_crossentropy>(CategoricalFocalCrossentropyFunctionOptions{
              options.alpha, options.gamma, options.from_logits, options.label_smoothing, options.axis}))) {
  require_smoothing("CategoricalFocalCrossentropy", options.label_smoothing, where);
  note_loss<CategoricalFocalCrossentropyRecipe>(*this, options);
}
SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(SparseCategoricalCrossentropyOptions options, Where)
    : Loss(library_loss("sparse_categorical_crossentropy", options,
                        with<sparse_categorical_values>(SparseCrossentropyFunctionOptions{
                            options.from_logits, options.ignore_class, options.axis}))) {
  note_loss<SparseCategoricalCrossentropyRecipe>(*this, options);
}
CategoricalGeneralizedCrossEntropy::CategoricalGeneralizedCrossEntropy(
    CategoricalGeneralizedCrossEntropyOptions options, Where where)
    : Loss(library_loss("categorical_generalized_cross_entropy", options,
                        with<categorical_generalized_cross_entropy>(options.q))) {
  require_order("CategoricalGeneralizedCrossEntropy", options.q, where);
  note_loss<CategoricalGeneralizedCrossEntropyRecipe>(*this, options);
}
KLDivergence::KLDivergence(LossOptions options, Where) : Loss(library_loss("kl_divergence", options, kl_divergence)) {
  note_loss<KLDivergenceRecipe>(*this, options);
}
Poisson::Poisson(LossOptions options, Where) : Loss(library_loss("poisson", options, poisson)) {
  note_loss<PoissonRecipe>(*this, options);
}
CTC::CTC(LossOptions options, Where) : Loss(library_loss("ctc", options, ctc)) { note_loss<CTCRecipe>(*this, options); }

}  // namespace losses
}  // namespace stet::keras
