// Metrics of how often predictions are right.
#pragma once
#include <cstdint>

#include "stet/keras/metric.h"

namespace stet::keras::metrics {

/// Where predictions equal labels, 1 or 0 for every one of them. Labels [n] and predictions [n, 1] mean the same.
STET_API Tensor accuracy(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// The same of predictions cut at the threshold, labels 0 and 1.
STET_API Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred, double threshold = 0.5,
                                Where where = Where::here());
/// Whether the largest prediction stands where the largest label stands: both [..., classes].
STET_API Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// Whether it stands at the label: labels [...] or [..., 1], predictions [..., classes].
STET_API Tensor sparse_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
/// Whether fewer than k predictions are larger than that of the label. One of NaN is the smallest.
STET_API Tensor top_k_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred, std::int64_t k = 5,
                                           Where where = Where::here());
struct SparseTopKFunctionOptions {
  std::int64_t k = 5;
  bool from_sorted_ids = false;  // predictions are classes, the likeliest first, not scores
};
STET_API Tensor sparse_top_k_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred,
                                                  SparseTopKFunctionOptions options = {}, Where where = Where::here());

struct BinaryAccuracyOptions {
  std::string name = {};
  std::optional<DType> dtype = {};
  double threshold = 0.5;
};
struct TopKCategoricalAccuracyOptions {
  std::int64_t k = 5;
  std::string name = {};
  std::optional<DType> dtype = {};
};
struct SparseTopKCategoricalAccuracyOptions {
  std::int64_t k = 5;
  std::string name = {};
  std::optional<DType> dtype = {};
  bool from_sorted_ids = false;
};
STET_METRIC(Accuracy, MetricOptions);
STET_METRIC(BinaryAccuracy, BinaryAccuracyOptions);
STET_METRIC(CategoricalAccuracy, MetricOptions);
STET_METRIC(SparseCategoricalAccuracy, MetricOptions);
STET_METRIC(TopKCategoricalAccuracy, TopKCategoricalAccuracyOptions);
STET_METRIC(SparseTopKCategoricalAccuracy, SparseTopKCategoricalAccuracyOptions);

}  // namespace stet::keras::metrics
