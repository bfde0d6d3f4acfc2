#include "stet/keras/metrics_accuracy.h"

#include <limits>

#include "stet/keras/metric_bodies.h"
#include "stet/ops/ops.h"

namespace stet::keras::metrics {
namespace {

void require_some(const char* owner, std::int64_t k, Where where) {
  require_option(k > 0, owner, "k", static_cast<double>(k), "1 or more", where);
}

/// Whether the label's score is among the k largest: labels [...], scores [..., classes]. One that is no class is not.
Tensor among_largest(const Tensor& labels, const Tensor& scores, std::int64_t k) {
  Tensor classes = arange(scores.dim(-1)), label = expand_dims(cast(labels, i64), -1), here = classes == label;
  Tensor of_label = sum(where(here, scores, 0), -1, {.keepdims = true});
  of_label = where(isnan(of_label), -std::numeric_limits<double>::infinity(), of_label);
  Tensor larger = sum(cast(scores > of_label, i64), -1);
  return logical_and(any(here, -1), larger < k);
}

}  // namespace

Tensor accuracy(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("accuracy", y_true, y_pred, where);
  return cast(call.labels == call.predictions, f32);
}
Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred, double threshold, Where where) {
  LossCall call("binary_accuracy", y_true, y_pred, where);
  return cast(cast(call.predictions > threshold, call.labels.dtype()) == call.labels, f32);
}
Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("categorical_accuracy", y_true, y_pred, where);
  call.require(call.predictions.rank() > 0, "predictions have no axis of classes", "they are [..., classes]");
  return cast(argmax(call.labels, -1) == argmax(call.predictions, -1), f32);
}
Tensor sparse_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred, Where where) {
  ClassCall call("sparse_categorical_accuracy", y_true, y_pred, -1, where);
  return cast(argmax(call.predictions, -1) == cast(call.labels, i64), f32);
}
Tensor top_k_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred, std::int64_t k, Where where) {
  LossCall call("top_k_categorical_accuracy", y_true, y_pred, where);
  require_some("top_k_categorical_accuracy", k, where);
  call.require(call.predictions.rank() > 0, "predictions have no axis of classes", "they are [..., classes]");
  return cast(among_largest(argmax(call.labels, -1), call.predictions, k), f32);
}
Tensor sparse_top_k_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred, SparseTopKFunctionOptions options,
                                         Where where) {
  constexpr const char* name = "sparse_top_k_categorical_accuracy";
  ClassCall call(name, y_true, y_pred, -1, where);
  require_some(name, options.k, where);
  if (!options.from_sorted_ids) return cast(among_largest(call.labels, call.predictions, options.k), f32);
  Tensor matches = cast(call.predictions, i64) == expand_dims(cast(call.labels, i64), -1);
  return cast(any(logical_and(matches, arange(call.predictions.dim(-1)) < options.k), -1), f32);
}

// --- classes

namespace {

void binary_fields(Fields& f, BinaryAccuracyOptions& options) { f("threshold", options.threshold); }
void top_k_fields(Fields& f, TopKCategoricalAccuracyOptions& options) { f("k", options.k); }
void sparse_top_k_fields(Fields& f, SparseTopKCategoricalAccuracyOptions& options) {
  f("k", options.k);
  f.besides("from_sorted_ids", options.from_sorted_ids, false);
}

using AccuracyRecipe = MetricRecipe<Accuracy, "Accuracy">;
using BinaryAccuracyRecipe = MetricRecipe<BinaryAccuracy, "BinaryAccuracy", BinaryAccuracyOptions, binary_fields>;
using CategoricalAccuracyRecipe = MetricRecipe<CategoricalAccuracy, "CategoricalAccuracy">;
using SparseCategoricalAccuracyRecipe = MetricRecipe<SparseCategoricalAccuracy, "SparseCategoricalAccuracy">;
using TopKCategoricalAccuracyRecipe =
    MetricRecipe<TopKCategoricalAccuracy, "TopKCategoricalAccuracy", TopKCategoricalAccuracyOptions, top_k_fields>;
using SparseTopKCategoricalAccuracyRecipe = MetricRecipe<SparseTopKCategoricalAccuracy, "SparseTopKCategoricalAccuracy",
                                                         SparseTopKCategoricalAccuracyOptions, sparse_top_k_fields>;
const SavableAll<AccuracyRecipe, BinaryAccuracyRecipe, CategoricalAccuracyRecipe, SparseCategoricalAccuracyRecipe,
                 TopKCategoricalAccuracyRecipe, SparseTopKCategoricalAccuracyRecipe>
    savable_metrics;

}  // namespace

Accuracy::Accuracy(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("Accuracy", "accuracy", options, accuracy)) {
  note_metric<AccuracyRecipe>(*this, options);
}
BinaryAccuracy::BinaryAccuracy(BinaryAccuracyOptions options, Where)
    : Metric(library_metric<MeanOfBody>(
          "BinaryAccuracy", "binary_accuracy", options,
          [threshold = options.threshold](const Tensor& y_true, const Tensor& y_pred, Where line) {
            return binary_accuracy(y_true, y_pred, threshold, line);
          })) {
  note_metric<BinaryAccuracyRecipe>(*this, options);
}
CategoricalAccuracy::CategoricalAccuracy(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("CategoricalAccuracy", "categorical_accuracy", options, categorical_accuracy)) {
  note_metric<CategoricalAccuracyRecipe>(*this, options);
}
SparseCategoricalAccuracy::SparseCategoricalAccuracy(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("SparseCategoricalAccuracy", "sparse_categorical_accuracy", options,
                                        sparse_categorical_accuracy)) {
  note_metric<SparseCategoricalAccuracyRecipe>(*this, options);
}
TopKCategoricalAccuracy::TopKCategoricalAccuracy(TopKCategoricalAccuracyOptions options, Where where)
    : Metric(library_metric<MeanOfBody>("TopKCategoricalAccuracy", "top_k_categorical_accuracy", options,
                                        [k = options.k](const Tensor& y_true, const Tensor& y_pred, Where line) {
                                          return top_k_categorical_accuracy(y_true, y_pred, k, line);
                                        })) {
  require_some("TopKCategoricalAccuracy", options.k, where);
  note_metric<TopKCategoricalAccuracyRecipe>(*this, options);
}
SparseTopKCategoricalAccuracy::SparseTopKCategoricalAccuracy(SparseTopKCategoricalAccuracyOptions options, Where where)
    : Metric(library_metric<MeanOfBody>("SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy", options,
                                        [of = SparseTopKFunctionOptions{options.k, options.from_sorted_ids}](
                                            const Tensor& y_true, const Tensor& y_pred, Where line) {
                                          return sparse_top_k_categorical_accuracy(y_true, y_pred, of, line);
                                        })) {
  require_some("SparseTopKCategoricalAccuracy", options.k, where);
  note_metric<SparseTopKCategoricalAccuracyRecipe>(*this, options);
}

}  // namespace stet::keras::metrics
