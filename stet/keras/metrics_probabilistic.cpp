#include "stet/keras/metrics_probabilistic.h"

#include "stet/keras/metric_bodies.h"

namespace stet::keras::metrics {
namespace {

void require_smoothing(const char* owner, double smoothing, Where where) {
  require_option(smoothing >= 0 && smoothing <= 1, owner, "label_smoothing", smoothing, "from 0 to 1", where);
}

}  // namespace

BinaryCrossentropy::BinaryCrossentropy(BinaryCrossentropyOptions options, Where where)
    : Metric(library_metric<MeanOfBody>(
          "BinaryCrossentropy", "binary_crossentropy", options,
          [of = losses::CrossentropyFunctionOptions{options.from_logits, options.label_smoothing}](
              const Tensor& y_true, const Tensor& y_pred, Where line) {
            return binary_crossentropy(y_true, y_pred, of, line);
          })) {
  require_smoothing("BinaryCrossentropy", options.label_smoothing, where);
}
CategoricalCrossentropy::CategoricalCrossentropy(CategoricalCrossentropyOptions options, Where where)
    : Metric(library_metric<MeanOfBody>(
          "CategoricalCrossentropy", "categorical_crossentropy", options,
          [of = losses::CrossentropyFunctionOptions{options.from_logits, options.label_smoothing, options.axis}](
              const Tensor& y_true, const Tensor& y_pred, Where line) {
            return categorical_crossentropy(y_true, y_pred, of, line);
          })) {
  require_smoothing("CategoricalCrossentropy", options.label_smoothing, where);
}
SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(SparseCategoricalCrossentropyOptions options, Where)
    : Metric(library_metric<MeanOfBody>(
          "SparseCategoricalCrossentropy", "sparse_categorical_crossentropy", options,
          [of = losses::SparseCrossentropyFunctionOptions{options.from_logits, options.ignore_class, options.axis}](
              const Tensor& y_true, const Tensor& y_pred, Where line) {
            return losses::sparse_categorical_values(y_true, y_pred, of, line);
          })) {}
KLDivergence::KLDivergence(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("KLDivergence", "kl_divergence", options, kl_divergence)) {}
Poisson::Poisson(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("Poisson", "poisson", options, poisson)) {}
Hinge::Hinge(MetricOptions options, Where) : Metric(library_metric<MeanOfBody>("Hinge", "hinge", options, hinge)) {}
SquaredHinge::SquaredHinge(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("SquaredHinge", "squared_hinge", options, squared_hinge)) {}
CategoricalHinge::CategoricalHinge(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("CategoricalHinge", "categorical_hinge", options, categorical_hinge)) {}

}  // namespace stet::keras::metrics
