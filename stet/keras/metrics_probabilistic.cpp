#include "stet/keras/metrics_probabilistic.h"

#include "stet/keras/metric_bodies.h"

namespace stet::keras::metrics {
namespace {

void require_smoothing(const char* owner, double smoothing, Where where) {
  require_option(smoothing >= 0 && smoothing <= 1, owner, "label_smoothing", smoothing, "from 0 to 1", where);
}

}  // namespace

namespace {

void binary_fields(Fields& f, BinaryCrossentropyOptions& options) {
  f("from_logits", options.from_logits);
  f("label_smoothing", options.label_smoothing);
}
void categorical_fields(Fields& f, CategoricalCrossentropyOptions& options) {
  f("from_logits", options.from_logits);
  f("label_smoothing", options.label_smoothing);
  f("axis", options.axis);
}
void sparse_fields(Fields& f, SparseCategoricalCrossentropyOptions& options) {
  f("from_logits", options.from_logits);
  f("ignore_class", options.ignore_class);
  f("axis", options.axis);
}

using BinaryCrossentropyRecipe =
    MetricRecipe<BinaryCrossentropy, "BinaryCrossentropy", BinaryCrossentropyOptions, binary_fields>;
using CategoricalCrossentropyRecipe = MetricRecipe<CategoricalCrossentropy, "CategoricalCrossentropy",
                                                   CategoricalCrossentropyOptions, categorical_fields>;
using SparseCategoricalCrossentropyRecipe = MetricRecipe<SparseCategoricalCrossentropy, "SparseCategoricalCrossentropy",
                                                         SparseCategoricalCrossentropyOptions, sparse_fields>;
using KLDivergenceRecipe = MetricRecipe<KLDivergence, "KLDivergence">;
using PoissonRecipe = MetricRecipe<Poisson, "Poisson">;
using HingeRecipe = MetricRecipe<Hinge, "Hinge">;
using SquaredHingeRecipe = MetricRecipe<SquaredHinge, "SquaredHinge">;
using CategoricalHingeRecipe = MetricRecipe<CategoricalHinge, "CategoricalHinge">;
const SavableAll<BinaryCrossentropyRecipe, CategoricalCrossentropyRecipe, SparseCategoricalCrossentropyRecipe,
                 KLDivergenceRecipe, PoissonRecipe, HingeRecipe, SquaredHingeRecipe, CategoricalHingeRecipe>
    savable_metrics;

}  // namespace

BinaryCrossentropy::BinaryCrossentropy(BinaryCrossentropyOptions options, Where where)
    : Metric(library_metric<MeanOfBody>(
          "BinaryCrossentropy", "binary_crossentropy", options,
          [of = losses::CrossentropyFunctionOptions{options.from_logits, options.label_smoothing}](
              const Tensor& y_true, const Tensor& y_pred, Where line) {
            return binary_crossentropy(y_true, y_pred, of, line);
          })) {
  require_smoothing("BinaryCrossentropy", options.label_smoothing, where);
  note_metric<BinaryCrossentropyRecipe>(*this, options);
}
CategoricalCrossentropy::CategoricalCrossentropy(CategoricalCrossentropyOptions options, Where where)
    : Metric(library_metric<MeanOfBody>(
          "CategoricalCrossentropy", "categorical_crossentropy", options,
          [of = losses::CrossentropyFunctionOptions{options.from_logits, options.label_smoothing, options.axis}](
              const Tensor& y_true, const Tensor& y_pred, Where line) {
            return categorical_crossentropy(y_true, y_pred, of, line);
          })) {
  require_smoothing("CategoricalCrossentropy", options.label_smoothing, where);
  note_metric<CategoricalCrossentropyRecipe>(*this, options);
}
SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(SparseCategoricalCrossentropyOptions options, Where)
    : Metric(library_metric<MeanOfBody>(
          "SparseCategoricalCrossentropy", "sparse_categorical_crossentropy", options,
          [of = losses::SparseCrossentropyFunctionOptions{options.from_logits, options.ignore_class, options.axis}](
              const Tensor& y_true, const Tensor& y_pred, Where line) {
            return losses::sparse_categorical_values(y_true, y_pred, of, line);
          })) {
  note_metric<SparseCategoricalCrossentropyRecipe>(*this, options);
}
KLDivergence::KLDivergence(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("KLDivergence", "kl_divergence", options, kl_divergence)) {
  note_metric<KLDivergenceRecipe>(*this, options);
}
Poisson::Poisson(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("Poisson", "poisson", options, poisson)) {
  note_metric<PoissonRecipe>(*this, options);
}
Hinge::Hinge(MetricOptions options, Where) : Metric(library_metric<MeanOfBody>("Hinge", "hinge", options, hinge)) {
  note_metric<HingeRecipe>(*this, options);
}
SquaredHinge::SquaredHinge(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("SquaredHinge", "squared_hinge", options, squared_hinge)) {
  note_metric<SquaredHingeRecipe>(*this, options);
}
CategoricalHinge::CategoricalHinge(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("CategoricalHinge", "categorical_hinge", options, categorical_hinge)) {
  note_metric<CategoricalHingeRecipe>(*this, options);
}

}  // namespace stet::keras::metrics
