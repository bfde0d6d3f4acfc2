#include "stet/keras/losses_hinge.h"

#include "stet/keras/loss_bodies.h"
#include "stet/ops/ops.h"

namespace stet::keras::losses {
namespace {

/// Decided by the whole batch, as Keras does it: without a look at values on the host.
Tensor of_signs(const Tensor& labels) {
  Tensor binary = all(logical_or(labels == 0, labels == 1));
  return where(binary, 2 * labels - 1, labels);
}
Tensor margins_missed(const LossCall& call) { return maximum(1 - of_signs(call.labels) * call.predictions, 0); }

}  // namespace

Tensor hinge(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("hinge", y_true, y_pred, where);
  return call.finished_mean(margins_missed(call));
}
Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("squared_hinge", y_true, y_pred, where);
  return call.finished_mean(square(margins_missed(call)));
}
Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("categorical_hinge", y_true, y_pred, where);
  call.require(call.predictions.rank() > 0, "predictions have no axis of classes", "they are [..., classes]");
  Tensor of_label = sum(call.labels * call.predictions, -1), other = max((1 - call.labels) * call.predictions, -1);
  return call.finished(maximum(other - of_label + 1, 0));
}

namespace {

using HingeRecipe = LossRecipe<Hinge, "Hinge">;
using SquaredHingeRecipe = LossRecipe<SquaredHinge, "SquaredHinge">;
using CategoricalHingeRecipe = LossRecipe<CategoricalHinge, "CategoricalHinge">;
const SavableAll<HingeRecipe, SquaredHingeRecipe, CategoricalHingeRecipe> savable_losses;

}  // namespace

Hinge::Hinge(LossOptions options, Where) : Loss(library_loss("hinge", options, hinge)) {
  note_loss<HingeRecipe>(*this, options);
}
SquaredHinge::SquaredHinge(LossOptions options, Where) : Loss(library_loss("squared_hinge", options, squared_hinge)) {
  note_loss<SquaredHingeRecipe>(*this, options);
}
CategoricalHinge::CategoricalHinge(LossOptions options, Where)
    : Loss(library_loss("categorical_hinge", options, categorical_hinge)) {
  note_loss<CategoricalHingeRecipe>(*this, options);
}

}  // namespace stet::keras::losses
