// Losses of numbers. Functions are means over the last axis: one number per sample.
#pragma once
#include "stet/keras/loss.h"

namespace stet::keras::losses {

/// Functions of labels and predictions of one shape; f16 and bf16 are computed in f32, and results have the type of the
/// predictions.
STET_API Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
STET_API Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// 100 |y_true - y_pred| / |y_true|, labels next to 0 taken as 1e-7.
STET_API Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// Squares of log(1 + y_true) - log(1 + y_pred), both 1e-7 at least.
STET_API Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// log(cosh(y_pred - y_true)), to the last digits for small errors too (Keras's loses them, and can be negative).
STET_API Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// Half the square of errors up to delta, linear beyond; delta is positive.
STET_API Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta = 1, Where where = Where::here());

struct HuberOptions {
  double delta = 1;
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};  // not given: "huber_loss"
  std::optional<DType> dtype = {};
};

STET_LOSS(MeanSquaredError, LossOptions);
STET_LOSS(MeanAbsoluteError, LossOptions);
STET_LOSS(MeanAbsolutePercentageError, LossOptions);
STET_LOSS(MeanSquaredLogarithmicError, LossOptions);
STET_LOSS(LogCosh, LossOptions);
STET_LOSS(Huber, HuberOptions);

}  // namespace stet::keras::losses
