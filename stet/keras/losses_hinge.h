// Losses of margins.
#pragma once
#include "stet/keras/loss.h"

namespace stet::keras::losses {

/// max(1 - y_true y_pred, 0), mean over the last axis. Labels are -1 and 1; a batch of nothing but 0 and 1 is taken as
/// -1 and 1.
STET_API Tensor hinge(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// The same of squares.
STET_API Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// max(1 + the largest prediction of the other classes - that of the label's, 0): labels are one-hot [..., classes].
STET_API Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());

STET_LOSS(Hinge, LossOptions);
STET_LOSS(SquaredHinge, LossOptions);
STET_LOSS(CategoricalHinge, LossOptions);

}  // namespace stet::keras::losses
