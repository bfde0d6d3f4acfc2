#include "stet/keras/metrics_regression.h"

#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/losses_similarity.h"
#include "stet/keras/metric_bodies.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

constexpr ReduceOptions keep{.keepdims = true};

SampleValues squared_errors(const Tensor& y_true, const Tensor& y_pred, Where where) {
  LossCall call("RootMeanSquaredError", y_true, y_pred, where);
  return square(call.predictions - call.labels);
}

class RootMeanBody : public MeanOfBody {
 public:
  RootMeanBody(const char* class_name, std::string name, DType dtype)
      : MeanOfBody(class_name, std::move(name), dtype, squared_errors) {}
  Tensor result_at(Where where) override {
    Frame frame(class_name(), where);
    return sqrt(MeanBody::result_at(where));
  }
};

class R2ScoreBody : public LibraryMetric {
 public:
  R2ScoreBody(const char* class_name, std::string name, DType dtype, const std::string& aggregation,
              std::int64_t regressors)
      : LibraryMetric(class_name, std::move(name), dtype), aggregation_(aggregation), regressors_(regressors) {}

  void update_at(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight, Where where) override {
    LossCall call(class_name(), y_true, y_pred, where);
    call.require(call.predictions.rank() == 2,
                 text("labels ", described(y_true), " and predictions ", described(y_pred)), "both are [n, outputs]");
    build_once([&] {
      const Shape outputs({call.predictions.dim(-1)}, where);
      sum_ = state("sum", outputs);
      squares_ = state("squared_sum", outputs);
      residual_ = state("residual", outputs);
      count_ = state("count", outputs);
    });
    Tensor labels = cast(call.labels, dtype()), predictions = cast(call.predictions, dtype());
    Tensor weights = weight.defined() ? broadcast_to(aligned_weights(weight, labels, where), labels.shape())
                                      : ones(labels.shape(), dtype());
    sum_.assign_add(sum(labels * weights, 0));
    squares_.assign_add(sum(square(labels) * weights, 0));
    residual_.assign_add(sum(square(labels - predictions) * weights, 0));
    count_.assign_add(sum(weights, 0));
    numbers_.assign_add(cast(labels.size(), dtype()));
  }

  Tensor result_at(Where line) override {
    Frame frame(class_name(), line);
    if (!built()) return zeros({}, dtype());
    Tensor total = squares_ - sum_ * (sum_ / count_), scores = 1 - residual_ / total;
    scores = where(isinf(scores), 0, scores);
    Tensor score = scores;
    if (aggregation_ == "uniform_average") score = mean(scores);
    if (aggregation_ == "variance_weighted_average") score = sum(total * scores) / sum(total);
    if (regressors_ == 0) return score;
    Tensor numbers = numbers_, freedom = numbers - regressors_ - 1, some = freedom > 0;
    return where(some, 1 - (1 - score) * (numbers - 1) / where(some, freedom, 1), score);
  }

 private:
  const std::string aggregation_;
  const std::int64_t regressors_;
  Variable numbers_ = state("num_samples"), sum_, squares_, residual_, count_;
};

PerSample along(Tensor (*function)(const Tensor&, const Tensor&, int, Where), int axis) {
  return [=](const Tensor& y_true, const Tensor& y_pred, Where line) { return function(y_true, y_pred, axis, line); };
}
Tensor cosine(const Tensor& y_true, const Tensor& y_pred, int axis, Where where) {
  Frame frame("cosine_similarity", where);
  return -losses::cosine_similarity(y_true, y_pred, axis, where);
}

}  // namespace

namespace metrics {

Tensor pearson_correlation(const Tensor& y_true, const Tensor& y_pred, int axis, Where where) {
  LossCall call("pearson_correlation", y_true, y_pred, where);
  const int on = axis_from_end("pearson_correlation", axis, call.predictions, where);
  auto standardised = [&](const Tensor& t) {
    Tensor centred = t - mean(t, on, keep);
    return centred / stddev(centred, on, {.keepdims = true});
  };
  return call.finished(mean(standardised(call.labels) * standardised(call.predictions), on));
}
Tensor concordance_correlation(const Tensor& y_true, const Tensor& y_pred, int axis, Where where) {
  LossCall call("concordance_correlation", y_true, y_pred, where);
  const int on = axis_from_end("concordance_correlation", axis, call.predictions, where);
  Tensor y = call.labels, p = call.predictions, y_mean = mean(y, on, keep), p_mean = mean(p, on, keep);
  Tensor covariance = (y - p_mean) * (p - p_mean);  // their mean is that of (y - y_mean) (p - p_mean)
  Tensor scale =
      var(y - y_mean, on, {.keepdims = true}) + var(p - p_mean, on, {.keepdims = true}) + square(y_mean - p_mean);
  return call.finished(mean(2 * covariance / (scale + smallest_probability), on));
}

// --- classes

namespace {

void cosine_fields(Fields& f, AxisMetricOptions& options) { f.besides("axis", options.axis, -1); }
void axis_fields(Fields& f, AxisMetricOptions& options) { f("axis", options.axis); }
void r2_fields(Fields& f, R2ScoreOptions& options) {
  f.or_null("class_aggregation", options.class_aggregation, "none");
  f("num_regressors", options.num_regressors);
}

using MeanSquaredErrorRecipe = MetricRecipe<MeanSquaredError, "MeanSquaredError">;
using RootMeanSquaredErrorRecipe = MetricRecipe<RootMeanSquaredError, "RootMeanSquaredError">;
using MeanAbsoluteErrorRecipe = MetricRecipe<MeanAbsoluteError, "MeanAbsoluteError">;
using MeanAbsolutePercentageErrorRecipe = MetricRecipe<MeanAbsolutePercentageError, "MeanAbsolutePercentageError">;
using MeanSquaredLogarithmicErrorRecipe = MetricRecipe<MeanSquaredLogarithmicError, "MeanSquaredLogarithmicError">;
using LogCoshErrorRecipe = MetricRecipe<LogCoshError, "LogCoshError">;
using CosineSimilarityRecipe = MetricRecipe<CosineSimilarity, "CosineSimilarity", AxisMetricOptions, cosine_fields>;
using PearsonCorrelationRecipe = MetricRecipe<PearsonCorrelation, "PearsonCorrelation", AxisMetricOptions, axis_fields>;
using ConcordanceCorrelationRecipe =
    MetricRecipe<ConcordanceCorrelation, "ConcordanceCorrelation", AxisMetricOptions, axis_fields>;
using R2ScoreRecipe = MetricRecipe<R2Score, "R2Score", R2ScoreOptions, r2_fields>;
const SavableAll<MeanSquaredErrorRecipe, RootMeanSquaredErrorRecipe, MeanAbsoluteErrorRecipe,
                 MeanAbsolutePercentageErrorRecipe, MeanSquaredLogarithmicErrorRecipe, LogCoshErrorRecipe,
                 CosineSimilarityRecipe, PearsonCorrelationRecipe, ConcordanceCorrelationRecipe, R2ScoreRecipe>
    savable_metrics;

}  // namespace

MeanSquaredError::MeanSquaredError(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("MeanSquaredError", "mean_squared_error", options, mean_squared_error)) {
  note_metric<MeanSquaredErrorRecipe>(*this, options);
}
RootMeanSquaredError::RootMeanSquaredError(MetricOptions options, Where)
    : Metric(library_metric<RootMeanBody>("RootMeanSquaredError", "root_mean_squared_error", options)) {
  note_metric<RootMeanSquaredErrorRecipe>(*this, options);
}
MeanAbsoluteError::MeanAbsoluteError(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("MeanAbsoluteError", "mean_absolute_error", options, mean_absolute_error)) {
  note_metric<MeanAbsoluteErrorRecipe>(*this, options);
}
MeanAbsolutePercentageError::MeanAbsolutePercentageError(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("MeanAbsolutePercentageError", "mean_absolute_percentage_error", options,
                                        mean_absolute_percentage_error)) {
  note_metric<MeanAbsolutePercentageErrorRecipe>(*this, options);
}
MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("MeanSquaredLogarithmicError", "mean_squared_logarithmic_error", options,
                                        mean_squared_logarithmic_error)) {
  note_metric<MeanSquaredLogarithmicErrorRecipe>(*this, options);
}
LogCoshError::LogCoshError(MetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("LogCoshError", "logcosh", options, log_cosh)) {
  note_metric<LogCoshErrorRecipe>(*this, options);
}
CosineSimilarity::CosineSimilarity(AxisMetricOptions options, Where)
    : Metric(
          library_metric<MeanOfBody>("CosineSimilarity", "cosine_similarity", options, along(cosine, options.axis))) {
  note_metric<CosineSimilarityRecipe>(*this, options);
}
PearsonCorrelation::PearsonCorrelation(AxisMetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("PearsonCorrelation", "pearson_correlation", options,
                                        along(pearson_correlation, options.axis))) {
  note_metric<PearsonCorrelationRecipe>(*this, options);
}
ConcordanceCorrelation::ConcordanceCorrelation(AxisMetricOptions options, Where)
    : Metric(library_metric<MeanOfBody>("ConcordanceCorrelation", "concordance_correlation", options,
                                        along(concordance_correlation, options.axis))) {
  note_metric<ConcordanceCorrelationRecipe>(*this, options);
}
R2Score::R2Score(R2ScoreOptions options, Where where)
    : Metric(library_metric<R2ScoreBody>("R2Score", "r2_score", options, options.class_aggregation,
                                         options.num_regressors)) {
  const std::string& aggregation = options.class_aggregation;
  if (aggregation != "uniform_average" && aggregation != "variance_weighted_average" && aggregation != "none")
    throw UserError(error_text(text("R2Score: class_aggregation = '", aggregation, "'"), where,
                               "one of uniform_average, variance_weighted_average, none"));
  require_option(options.num_regressors >= 0, "R2Score", "num_regressors", static_cast<double>(options.num_regressors),
                 "0 or more", where);
  note_metric<R2ScoreRecipe>(*this, options);
}

}  // namespace metrics
}  // namespace stet::keras
