// Metrics of values: their mean and their sum.
#pragma once
#include "stet/keras/metric.h"

namespace stet::keras::metrics {

/// The weighted mean of the values it is given: of each sample the mean over all its axes. One weight for a whole
/// tensor is that of its mean.
STET_METRIC(Mean, MetricOptions);
/// Their weighted sum.
STET_METRIC(Sum, MetricOptions);
/// The mean of a function of labels and predictions.
class STET_API MeanMetricWrapper : public Metric {
 public:
  explicit MeanMetricWrapper(Function fn, MetricOptions options = {});
  STET_HANDLE(MeanMetricWrapper, Metric)
};

}  // namespace stet::keras::metrics
