// Metrics of numbers: errors, directions and correlations.
#pragma once
#include <cstdint>
#include <string>

#include "stet/keras/losses_regression.h"
#include "stet/keras/metric.h"

namespace stet::keras::metrics {

using losses::huber;
using losses::log_cosh;
using losses::mean_absolute_error;
using losses::mean_absolute_percentage_error;
using losses::mean_squared_error;
using losses::mean_squared_logarithmic_error;

/// Pearson's correlation of labels and predictions along an axis; NaN where one of them is constant.
STET_API Tensor pearson_correlation(const Tensor& y_true, const Tensor& y_pred, int axis = -1,
                                    Where where = Where::here());
/// Lin's concordance correlation coefficient along an axis.
STET_API Tensor concordance_correlation(const Tensor& y_true, const Tensor& y_pred, int axis = -1,
                                        Where where = Where::here());

struct AxisMetricOptions {
  std::string name = {};
  std::optional<DType> dtype = {};
  int axis = -1;
};
struct R2ScoreOptions {
  std::string class_aggregation = "uniform_average";  // or "variance_weighted_average", or "none": one for each output
  std::int64_t num_regressors = 0;                    // for the adjusted score; 0: the plain one
  std::string name = {};
  std::optional<DType> dtype = {};
};
STET_METRIC(MeanSquaredError, MetricOptions);
STET_METRIC(RootMeanSquaredError, MetricOptions);
STET_METRIC(MeanAbsoluteError, MetricOptions);
STET_METRIC(MeanAbsolutePercentageError, MetricOptions);
STET_METRIC(MeanSquaredLogarithmicError, MetricOptions);
/// Called "logcosh", as in Keras.
STET_METRIC(LogCoshError, MetricOptions);
/// The mean cosine, 1 where labels and predictions point the same way (the loss has the other sign).
STET_METRIC(CosineSimilarity, AxisMetricOptions);
STET_METRIC(PearsonCorrelation, AxisMetricOptions);
STET_METRIC(ConcordanceCorrelation, AxisMetricOptions);
/// 1 - the sum of squared errors by that of squared deviations from the mean, of labels and predictions [n, outputs].
/// Where the adjusted score has no value (not more numbers than regressors) it is the plain one, without a warning.
STET_METRIC(R2Score, R2ScoreOptions);

}  // namespace stet::keras::metrics
