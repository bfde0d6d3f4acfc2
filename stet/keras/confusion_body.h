// Counts of true and false positives and negatives at several thresholds. Not a public header.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stet/keras/metric_bodies.h"

namespace stet::keras {

/// Each [thresholds], or [thresholds, labels]; undefined where it is not kept.
struct ConfusionCounts {
  Tensor true_positives, false_positives, true_negatives, false_negatives;
};

struct ConfusionOptions {
  std::vector<double> thresholds = {};
  bool evenly = false;  // from 0 to 1: samples are counted in bins between thresholds
  bool true_positives = false, false_positives = false, true_negatives = false, false_negatives = false;  // kept
  std::optional<std::int64_t> top_k = {}, class_id = {};
  bool multi_label = false;
  std::int64_t num_labels = 0;             // with multi_label; 0: told by the first batch
  std::vector<double> label_weights = {};  // without multi_label
  bool from_logits = false;
};

/// What counts that are gathered over batches come to.
class ConfusionBody : public LibraryMetric {
 public:
  using Result = std::function<Tensor(const ConfusionCounts&)>;
  ConfusionBody(const char* class_name, std::string name, DType dtype, ConfusionOptions options, Result result);

  void update_at(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight, Where where) override;
  Tensor result_at(Where where) override;

 private:
  void make_state(const Shape& shape);
  ConfusionCounts counted(const Tensor& labels, const Tensor& predictions, const Tensor& weights) const;
  ConfusionCounts counted_in_bins(const Tensor& labels, const Tensor& predictions, const Tensor& weights) const;

  const ConfusionOptions options_;
  const Result result_;
  Variable true_positives_, false_positives_, true_negatives_, false_negatives_;
};

/// As Keras tells it: up to rounding.
bool spread_evenly(const std::vector<double>& thresholds);

}  // namespace stet::keras
