#include "stet/keras/losses_regression.h"

#include <cmath>

#include "stet/keras/loss_bodies.h"
#include "stet/ops/ops.h"

namespace stet::keras::losses {

Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("mean_squared_error", y_true, y_pred, where);
  return call.finished_mean(square(call.labels - call.predictions));
}
Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("mean_absolute_error", y_true, y_pred, where);
  return call.finished_mean(abs(call.labels - call.predictions));
}
Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("mean_absolute_percentage_error", y_true, y_pred, where);
  Tensor share = abs((call.labels - call.predictions) / maximum(abs(call.labels), smallest_probability));
  return call.finished_mean(100 * share);
}
Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("mean_squared_logarithmic_error", y_true, y_pred, where);
  auto logarithm = [](const Tensor& x) { return log(maximum(x, smallest_probability) + 1); };
  return call.finished_mean(square(logarithm(call.predictions) - logarithm(call.labels)));
}
Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred, Where line) {
  LossCall call("log_cosh", y_true, y_pred, line);
  Tensor error = call.predictions - call.labels, near = abs(error) < 1;
  // cosh(e) = 1 + 2 sinh(e / 2)^2: nothing cancels near 0; |e| + log(1 + exp(-2 |e|)) - log(2): nothing overflows.
  Tensor half = sinh(0.5 * where(near, error, 0)), size = abs(where(near, 1, error));
  Tensor far = size + log1p(exp(-2 * size)) - std::log(2.0);
  return call.finished_mean(where(near, log1p(2 * square(half)), far));
}
Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta, Where where) {
  LossCall call("huber", y_true, y_pred, where);
  require_option(delta > 0, "huber", "delta", delta, "positive", where);
  return call.finished_mean(stet::huber(call.labels, call.predictions, {.delta = delta}));
}

// --- classes

namespace {

void huber_fields(Fields& f, HuberOptions& options) { f.besides("delta", options.delta, 1); }

using MeanSquaredErrorRecipe = LossRecipe<MeanSquaredError, "MeanSquaredError">;
using MeanAbsoluteErrorRecipe = LossRecipe<MeanAbsoluteError, "MeanAbsoluteError">;
using MeanAbsolutePercentageErrorRecipe = LossRecipe<MeanAbsolutePercentageError, "MeanAbsolutePercentageError">;
using MeanSquaredLogarithmicErrorRecipe = LossRecipe<MeanSquaredLogarithmicError, "MeanSquaredLogarithmicError">;
using LogCoshRecipe = LossRecipe<LogCosh, "LogCosh">;
using HuberRecipe = LossRecipe<Huber, "Huber", HuberOptions, huber_fields>;
const SavableAll<MeanSquaredErrorRecipe, MeanAbsoluteErrorRecipe, MeanAbsolutePercentageErrorRecipe,
                 MeanSquaredLogarithmicErrorRecipe, LogCoshRecipe, HuberRecipe>
    savable_losses;

}  // namespace

MeanSquaredError::MeanSquaredError(LossOptions options, Where)
    : Loss(library_loss("mean_squared_error", options, mean_squared_error)) {
  note_loss<MeanSquaredErrorRecipe>(*this, options);
}
MeanAbsoluteError::MeanAbsoluteError(LossOptions options, Where)
    : Loss(library_loss("mean_absolute_error", options, mean_absolute_error)) {
  note_loss<MeanAbsoluteErrorRecipe>(*this, options);
}
MeanAbsolutePercentageError::MeanAbsolutePercentageError(LossOptions options, Where)
    : Loss(library_loss("mean_absolute_percentage_error", options, mean_absolute_percentage_error)) {
  note_loss<MeanAbsolutePercentageErrorRecipe>(*this, options);
}
MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(LossOptions options, Where)
    : Loss(library_loss("mean_squared_logarithmic_error", options, mean_squared_logarithmic_error)) {
  note_loss<MeanSquaredLogarithmicErrorRecipe>(*this, options);
}
LogCosh::LogCosh(LossOptions options, Where) : Loss(library_loss("log_cosh", options, log_cosh)) {
  note_loss<LogCoshRecipe>(*this, options);
}
Huber::Huber(HuberOptions options, Where where)
    : Loss(library_loss("huber_loss", options,
                        [delta = options.delta](const Tensor& y_true, const Tensor& y_pred, Where line) {
                          return huber(y_true, y_pred, delta, line);
                        })) {
  require_option(options.delta > 0, "Huber", "delta", options.delta, "positive", where);
  note_loss<HuberRecipe>(*this, options);
}

}  // namespace stet::keras::losses
