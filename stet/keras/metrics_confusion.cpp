#include "stet/keras/metrics_confusion.h"

#include <algorithm>

#include "stet/base/text.h"
#include "stet/keras/confusion_body.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using Counts = ConfusionCounts;

template <class Options>
FromBody confusion(const char* class_name, const Options& options, ConfusionOptions of, ConfusionBody::Result result) {
  return {std::make_shared<ConfusionBody>(class_name, numbered_name(options.name, class_name),
                                          options.dtype.value_or(DType::f32), std::move(of), std::move(result))};
}

std::vector<double> checked(const char* owner, const metrics::Thresholds& given, double otherwise, Where where) {
  for (double one : given.values) require_option(one >= 0 && one <= 1, owner, "a threshold", one, "from 0 to 1", where);
  return given.values.empty() ? std::vector{otherwise} : given.values;
}
/// Of one threshold a scalar.
Tensor one_or_all(const Tensor& of_thresholds, std::size_t count) {
  return count == 1 ? squeeze(of_thresholds, 0) : of_thresholds;
}

// --- counts

FromBody count_of_kind(const char* owner, const metrics::CountOptions& options, bool ConfusionOptions::*kept,
                       Tensor Counts::*which, Where where) {
  ConfusionOptions of;
  of.thresholds = checked(owner, options.thresholds, 0.5, where);
  of.evenly = spread_evenly(of.thresholds);
  of.*kept = true;
  const std::size_t count = of.thresholds.size();
  return confusion(owner, options, std::move(of),
                   [=](const Counts& counts) { return one_or_all(counts.*which, count); });
}

// --- precision and recall

Tensor precision(const Counts& c) { return quotient(c.true_positives, c.true_positives + c.false_positives); }
Tensor recall(const Counts& c) { return quotient(c.true_positives, c.true_positives + c.false_negatives); }
Tensor specificity(const Counts& c) { return quotient(c.true_negatives, c.true_negatives + c.false_positives); }

FromBody share(const char* owner, const metrics::PrecisionOptions& options, bool ConfusionOptions::*others,
               Tensor (*of_counts)(const Counts&), Where where) {
  constexpr double any_score = -1e10;  // what is not among the k largest is no more than this
  ConfusionOptions of{.top_k = options.top_k, .class_id = options.class_id};
  of.thresholds = checked(owner, options.thresholds, options.top_k ? any_score : 0.5, where);
  of.evenly = spread_evenly(of.thresholds);
  of.true_positives = of.*others = true;
  if (options.top_k)
    require_option(*options.top_k > 0, owner, "top_k", static_cast<double>(*options.top_k), "1 or more", where);
  if (options.class_id)
    require_option(*options.class_id >= 0, owner, "class_id", static_cast<double>(*options.class_id), "0 or more",
                   where);
  const std::size_t count = of.thresholds.size();
  return confusion(owner, options, std::move(of), [=](const Counts& c) { return one_or_all(of_counts(c), count); });
}

// --- the best of one where the other is good enough

std::vector<double> even_thresholds(std::int64_t count, double low, double high) {
  if (count == 1) return {0.5};
  std::vector<double> out{low};
  for (std::int64_t i = 1; i < count - 1; ++i) out.push_back(static_cast<double>(i) / static_cast<double>(count - 1));
  out.push_back(high);
  return out;
}

FromBody best_at(const char* owner, const char* constraint, double least, const metrics::AtOptions& options,
                 Tensor (*constrained)(const Counts&), Tensor (*wanted)(const Counts&), Where where) {
  require_option(least >= 0 && least <= 1, owner, constraint, least, "from 0 to 1", where);
  require_option(options.num_thresholds > 0, owner, "num_thresholds", static_cast<double>(options.num_thresholds),
                 "1 or more", where);
  ConfusionOptions of{.thresholds = even_thresholds(options.num_thresholds, 0, 1),
                      .evenly = options.num_thresholds > 1,
                      .true_positives = true,
                      .false_positives = true,
                      .true_negatives = true,
                      .false_negatives = true,
                      .class_id = options.class_id};
  return confusion(owner, options, std::move(of), [=](const Counts& counts) {
    return max(stet::where(constrained(counts) >= least, wanted(counts), 0));
  });
}

// --- areas

enum class Curve { roc, pr, prgain };
enum class Summation { interpolation, minoring, majoring };

template <class Kind>
struct Named {
  const char *name, *other;
  Kind kind;
};
template <class Kind, std::size_t count>
Kind by_name(const Named<Kind> (&all)[count], const char* option, const std::string& given, Where where) {
  std::string known;
  for (const Named<Kind>& one : all) {
    if (given == one.name || given == one.other) return one.kind;
    known += text(known.empty() ? "" : ", ", one.name);
  }
  throw UserError(error_text(text("AUC: ", option, " = '", given, "'"), where, text("one of ", known)));
}
constexpr Named<Curve> curves[] = {
    {"ROC", "roc", Curve::roc}, {"PR", "pr", Curve::pr}, {"PRGAIN", "prgain", Curve::prgain}};
constexpr Named<Summation> summations[] = {{"interpolation", "Interpolation", Summation::interpolation},
                                           {"minoring", "Minoring", Summation::minoring},
                                           {"majoring", "Majoring", Summation::majoring}};

void require_weight_of_each(const std::vector<double>& weights, std::int64_t labels, Where where) {
  if (!weights.empty() && static_cast<std::int64_t>(weights.size()) != labels)
    throw UserError(error_text(text("AUC: ", weights.size(), " label_weights for ", labels, " labels"), where,
                               "give one for every label"));
}

struct Area {
  std::int64_t thresholds;
  Curve curve;
  Summation summation;
  bool multi_label;
  std::vector<double> label_weights;

  Tensor lower(const Tensor& t) const { return t[range(0, thresholds - 1)]; }
  Tensor upper(const Tensor& t) const { return t[range(1, thresholds)]; }

  /// Between two thresholds precision is not linear in recall: Davis and Goadrich, ICML 2006.
  Tensor interpolated_pr(const Counts& c) const {
    Tensor hits = upper(c.true_positives), said = c.true_positives + c.false_positives;
    Tensor more_hits = lower(c.true_positives) - hits, more_said = lower(said) - upper(said);
    Tensor slope = quotient(more_hits, maximum(more_said, 0)), intercept = hits - slope * upper(said);
    Tensor some = logical_and(lower(said) > 0, upper(said) > 0);
    Tensor ratio = where(some, quotient(lower(said), maximum(upper(said), 0)), 1);
    return quotient(slope * (more_hits + intercept * log(ratio)), maximum(hits + upper(c.false_negatives), 0));
  }
  std::pair<Tensor, Tensor> points(const Counts& c) const {
    if (curve == Curve::roc) return {quotient(c.false_positives, c.false_positives + c.true_negatives), recall(c)};
    if (curve == Curve::pr) return {recall(c), precision(c)};
    Tensor odds = quotient(c.true_positives + c.false_negatives, c.true_negatives + c.false_positives);
    Tensor none = c.true_positives == 0;
    Tensor recall_gain = where(none, 0, 1 - odds * quotient(c.false_negatives, c.true_positives));
    Tensor precision_gain = where(none, 1, 1 - odds * quotient(c.false_positives, c.true_positives));
    return {maximum(recall_gain, 0), precision_gain};
  }
  Tensor parts(const Counts& c) const {
    if (curve == Curve::pr && summation == Summation::interpolation) return interpolated_pr(c);
    auto [x, y] = points(c);
    Tensor left = lower(y), right = upper(y);
    Tensor heights = summation == Summation::interpolation ? (left + right) / 2
                     : summation == Summation::minoring    ? minimum(left, right)
                                                           : maximum(left, right);
    return (lower(x) - upper(x)) * heights;
  }
  Tensor operator()(const Counts& c) const {
    Tensor each = parts(c);
    if (!multi_label) return sum(each);
    Tensor of_labels = sum(each, 0);
    if (label_weights.empty()) return mean(of_labels);
    require_weight_of_each(label_weights, of_labels.dim(0).value(), frame_where());
    Tensor weights = cast(tensor(label_weights), of_labels.dtype());
    return quotient(sum(of_labels * weights), sum(weights));
  }
};

std::vector<double> auc_thresholds(const metrics::AUCOptions& options, Where where) {
  constexpr double beyond = smallest_probability;  // so that predictions of 0 and 1 lie between thresholds
  if (options.thresholds.empty()) {
    require_option(options.num_thresholds > 1, "AUC", "num_thresholds", static_cast<double>(options.num_thresholds),
                   "2 or more", where);
    return even_thresholds(options.num_thresholds, -beyond, 1 + beyond);
  }
  std::vector<double> out = options.thresholds;
  for (double one : out) require_option(one >= 0 && one <= 1, "AUC", "a threshold", one, "from 0 to 1", where);
  std::sort(out.begin(), out.end());
  out.insert(out.begin(), -beyond);
  out.push_back(1 + beyond);
  return out;
}

FromBody area(const metrics::AUCOptions& options, Where where) {
  if (options.num_labels != 0 && !options.multi_label)
    throw UserError(error_text(text("AUC: num_labels = ", options.num_labels, " without multi_label"), where,
                               "add .multi_label = true, or leave it out"));
  require_option(options.num_labels >= 0, "AUC", "num_labels", static_cast<double>(options.num_labels), "0 or more",
                 where);
  if (options.num_labels > 0) require_weight_of_each(options.label_weights, options.num_labels, where);
  ConfusionOptions of{.thresholds = auc_thresholds(options, where),
                      .true_positives = true,
                      .false_positives = true,
                      .true_negatives = true,
                      .false_negatives = true,
                      .multi_label = options.multi_label,
                      .num_labels = options.num_labels,
                      .from_logits = options.from_logits};
  std::vector<double> ends = of.thresholds;
  ends.front() = 0, ends.back() = 1;
  of.evenly = options.thresholds.empty() || spread_evenly(ends);
  if (!options.multi_label) of.label_weights = options.label_weights;
  Area result{static_cast<std::int64_t>(of.thresholds.size()), by_name(curves, "curve", options.curve, where),
              by_name(summations, "summation_method", options.summation_method, where), options.multi_label,
              options.label_weights};
  return confusion("AUC", options, std::move(of), result);
}

}  // namespace

namespace metrics {

namespace {

/// State has a number for every threshold, and with labels for every label, and is made at once.
constexpr std::int64_t most_thresholds = 1'000'000, most_state = 1 << 24;

/// A number, a list, or null.
void thresholds_field(Fields& f, Thresholds& thresholds) {
  if (!f.reading() && thresholds.values.size() == 1) return f.put("thresholds", thresholds.values[0]);
  const Json* given = f.reading() ? f.take("thresholds") : nullptr;
  if (given && (given->if_real() || given->if_integer()))
    f("thresholds", thresholds.values.emplace_back());
  else
    f.or_null("thresholds", thresholds.values);
}
void count_fields(Fields& f, CountOptions& options) { thresholds_field(f, options.thresholds); }
void precision_fields(Fields& f, PrecisionOptions& options) {
  thresholds_field(f, options.thresholds);
  f("top_k", options.top_k);
  f("class_id", options.class_id);
}

/// A list, or as Keras writes arrays.
void label_weights_field(Fields& f, std::vector<double>& weights) {
  const Json* given = f.reading() ? f.take("label_weights") : nullptr;
  if (!given || !given->if_object()) return f.or_null("label_weights", weights);
  Tensor array;
  f("label_weights", array);
  if (array.rank() != 1) f.wrong("label_weights", *given, "a list of numbers");
  weights = array.to_vector<double>(f.where());
}
void auc_fields(Fields& f, AUCOptions& options) {
  // Keras counts the two that are added.
  std::int64_t thresholds = options.num_thresholds;
  if (!options.thresholds.empty()) thresholds = static_cast<std::int64_t>(options.thresholds.size()) + 2;
  f("num_thresholds", thresholds);
  f.at_most("num_thresholds", thresholds, most_thresholds);
  options.num_thresholds = thresholds;
  f("curve", options.curve);
  f("summation_method", options.summation_method);
  f("multi_label", options.multi_label);
  std::optional<std::int64_t> labels;
  if (options.num_labels != 0) labels = options.num_labels;
  f("num_labels", labels);
  options.num_labels = labels.value_or(0);
  f.at_most("num_labels", options.num_labels, most_state / std::max<std::int64_t>(thresholds, 1));
  label_weights_field(f, options.label_weights);
  f("from_logits", options.from_logits);
  f.besides("thresholds", options.thresholds, {});
}

/// The best of one where the other, called `least`, is at least the number given.
template <class Self, Literal name, Literal least>
struct AtRecipe {
  static constexpr const char *module = "keras.metrics", *class_name = name.text;
  double at_least = 0;
  AtOptions options = {};
  void fields(Fields& f) {
    metric_fields(f, options);
    f("class_id", options.class_id);
    f("num_thresholds", options.num_thresholds);
    f.at_most("num_thresholds", options.num_thresholds, most_thresholds);
    f.required(least.text, at_least);
  }
  Metric make(Where where) const { return Self(at_least, options, where); }
};
template <class R>
void note_at(Metric& metric, double least, AtOptions options) {
  options.name = metric.name();
  note_recipe(metric, R{least, std::move(options)});
}

using TruePositivesRecipe = MetricRecipe<TruePositives, "TruePositives", CountOptions, count_fields>;
using TrueNegativesRecipe = MetricRecipe<TrueNegatives, "TrueNegatives", CountOptions, count_fields>;
using FalsePositivesRecipe = MetricRecipe<FalsePositives, "FalsePositives", CountOptions, count_fields>;
using FalseNegativesRecipe = MetricRecipe<FalseNegatives, "FalseNegatives", CountOptions, count_fields>;
using PrecisionRecipe = MetricRecipe<Precision, "Precision", PrecisionOptions, precision_fields>;
using RecallRecipe = MetricRecipe<Recall, "Recall", PrecisionOptions, precision_fields>;
using SensitivityAtSpecificityRecipe = AtRecipe<SensitivityAtSpecificity, "SensitivityAtSpecificity", "specificity">;
using SpecificityAtSensitivityRecipe = AtRecipe<SpecificityAtSensitivity, "SpecificityAtSensitivity", "sensitivity">;
using PrecisionAtRecallRecipe = AtRecipe<PrecisionAtRecall, "PrecisionAtRecall", "recall">;
using RecallAtPrecisionRecipe = AtRecipe<RecallAtPrecision, "RecallAtPrecision", "precision">;
using AUCRecipe = MetricRecipe<AUC, "AUC", AUCOptions, auc_fields>;
const SavableAll<TruePositivesRecipe, TrueNegativesRecipe, FalsePositivesRecipe, FalseNegativesRecipe, PrecisionRecipe,
                 RecallRecipe, SensitivityAtSpecificityRecipe, SpecificityAtSensitivityRecipe, PrecisionAtRecallRecipe,
                 RecallAtPrecisionRecipe, AUCRecipe>
    savable_metrics;

}  // namespace

TruePositives::TruePositives(CountOptions options, Where where)
    : Metric(
          count_of_kind("TruePositives", options, &ConfusionOptions::true_positives, &Counts::true_positives, where)) {
  note_metric<TruePositivesRecipe>(*this, options);
}
TrueNegatives::TrueNegatives(CountOptions options, Where where)
    : Metric(
          count_of_kind("TrueNegatives", options, &ConfusionOptions::true_negatives, &Counts::true_negatives, where)) {
  note_metric<TrueNegativesRecipe>(*this, options);
}
FalsePositives::FalsePositives(CountOptions options, Where where)
    : Metric(count_of_kind("FalsePositives", options, &ConfusionOptions::false_positives, &Counts::false_positives,
                           where)) {
  note_metric<FalsePositivesRecipe>(*this, options);
}
FalseNegatives::FalseNegatives(CountOptions options, Where where)
    : Metric(count_of_kind("FalseNegatives", options, &ConfusionOptions::false_negatives, &Counts::false_negatives,
                           where)) {
  note_metric<FalseNegativesRecipe>(*this, options);
}
Precision::Precision(PrecisionOptions options, Where where)
    : Metric(share("Precision", options, &ConfusionOptions::false_positives, precision, where)) {
  note_metric<PrecisionRecipe>(*this, options);
}
Recall::Recall(PrecisionOptions options, Where where)
    : Metric(share("Recall", options, &ConfusionOptions::false_negatives, recall, where)) {
  note_metric<RecallRecipe>(*this, options);
}
SensitivityAtSpecificity::SensitivityAtSpecificity(double least, AtOptions options, Where where)
    : Metric(best_at("SensitivityAtSpecificity", "specificity", least, options, specificity, recall, where)) {
  note_at<SensitivityAtSpecificityRecipe>(*this, least, options);
}
SpecificityAtSensitivity::SpecificityAtSensitivity(double least, AtOptions options, Where where)
    : Metric(best_at("SpecificityAtSensitivity", "sensitivity", least, options, recall, specificity, where)) {
  note_at<SpecificityAtSensitivityRecipe>(*this, least, options);
}
PrecisionAtRecall::PrecisionAtRecall(double least, AtOptions options, Where where)
    : Metric(best_at("PrecisionAtRecall", "recall", least, options, recall, precision, where)) {
  note_at<PrecisionAtRecallRecipe>(*this, least, options);
}
RecallAtPrecision::RecallAtPrecision(double least, AtOptions options, Where where)
    : Metric(best_at("RecallAtPrecision", "precision", least, options, precision, recall, where)) {
  note_at<RecallAtPrecisionRecipe>(*this, least, options);
}
AUC::AUC(AUCOptions options, Where where) : Metric(area(options, where)) { note_metric<AUCRecipe>(*this, options); }

}  // namespace metrics
}  // namespace stet::keras
