#include "stet/keras/metrics_f_score.h"

#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/metric_bodies.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class FBetaScoreBody : public LibraryMetric {
 public:
  FBetaScoreBody(const char* class_name, std::string name, DType dtype, const std::string& average, double beta,
                 std::optional<double> threshold)
      : LibraryMetric(class_name, std::move(name), dtype), average_(average), beta_(beta), threshold_(threshold) {}

  void update_at(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight, Where where) override {
    LossCall call(class_name(), y_true, y_pred, where);
    call.require(call.predictions.rank() == 2,
                 text("labels ", described(y_true), " and predictions ", described(y_pred)), "both are [n, classes]");
    build_once([&] {
      const Shape each = average_ == "micro" ? Shape() : Shape({call.predictions.dim(-1)}, where);
      true_positives_ = state("true_positives", each);
      false_positives_ = state("false_positives", each);
      false_negatives_ = state("false_negatives", each);
      labels_ = state("intermediate_weights", each);
    });
    Tensor labels = cast(call.labels, dtype()), p = call.predictions;
    Tensor said = threshold_ ? p > *threshold_ : logical_and(p >= max(p, -1, {.keepdims = true}), abs(p) > 1e-9);
    said = cast(said, dtype());
    Tensor weights = weight.defined() ? aligned_weights(weight, labels, where) : Tensor();
    auto add = [&](const Variable& to, Tensor counts) {
      if (weights.defined()) counts = counts * weights;
      to.assign_add(average_ == "micro" ? sum(counts) : sum(counts, 0));
    };
    add(true_positives_, said * labels);
    add(false_positives_, said * (1 - labels));
    add(false_negatives_, (1 - said) * labels);
    add(labels_, labels);
  }

  Tensor result_at(Where where) override {
    Frame frame(class_name(), where);
    if (!built()) return zeros({}, dtype());
    Tensor hits = true_positives_, precision = hits / (hits + false_positives_ + smallest_probability);
    Tensor recall = hits / (hits + false_negatives_ + smallest_probability);
    const double squared = beta_ * beta_;
    Tensor score = precision * recall / (squared * precision + recall + smallest_probability) * (1 + squared);
    if (average_ == "weighted") return sum(score * (labels_ / (sum(labels_) + smallest_probability)));
    return average_ == "none" ? score : mean(score);
  }

 private:
  const std::string average_;
  const double beta_;
  const std::optional<double> threshold_;
  Variable true_positives_, false_positives_, false_negatives_, labels_;
};

void check_options(const char* owner, const std::string& average, double beta, std::optional<double> threshold,
                   Where where) {
  if (average != "none" && average != "micro" && average != "macro" && average != "weighted")
    throw UserError(
        error_text(text(owner, ": average = '", average, "'"), where, "one of none, micro, macro, weighted"));
  require_option(beta > 0, owner, "beta", beta, "positive", where);
  if (threshold)
    require_option(*threshold > 0 && *threshold <= 1, owner, "threshold", *threshold, "above 0 and at most 1", where);
}

}  // namespace

namespace metrics {

namespace {

void f_beta_fields(Fields& f, FBetaScoreOptions& options) {
  f.or_null("average", options.average, "none");
  f("beta", options.beta);
  f("threshold", options.threshold);
}
void f1_fields(Fields& f, F1ScoreOptions& options) {
  f.or_null("average", options.average, "none");
  f("threshold", options.threshold);
}
using FBetaScoreRecipe = MetricRecipe<FBetaScore, "FBetaScore", FBetaScoreOptions, f_beta_fields>;
using F1ScoreRecipe = MetricRecipe<F1Score, "F1Score", F1ScoreOptions, f1_fields>;
const SavableAll<FBetaScoreRecipe, F1ScoreRecipe> savable_metrics;

}  // namespace

FBetaScore::FBetaScore(FBetaScoreOptions options, Where where)
    : Metric(library_metric<FBetaScoreBody>("FBetaScore", "fbeta_score", options, options.average, options.beta,
                                            options.threshold)) {
  check_options("FBetaScore", options.average, options.beta, options.threshold, where);
  note_metric<FBetaScoreRecipe>(*this, options);
}
F1Score::F1Score(F1ScoreOptions options, Where where)
    : Metric(library_metric<FBetaScoreBody>("F1Score", "f1_score", options, options.average, 1.0, options.threshold)) {
  check_options("F1Score", options.average, 1, options.threshold, where);
  note_metric<F1ScoreRecipe>(*this, options);
}

}  // namespace metrics
}  // namespace stet::keras
