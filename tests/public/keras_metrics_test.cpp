// Every metric against results that Keras computed after each of three batches of different sizes: eagerly, after a
// reset, and in one trace.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <thread>

#include "expect_error.h"
#include "keras_values.h"
#include "stet/stet.h"

using namespace stet;
using keras::Metric;
namespace metrics = keras::metrics;

namespace {

using Metrics = std::map<std::string, Metric>;

void add_reductions(Metrics& all) {
  for (const char* suffix : {"", "/scalars", "/scalar_weights", "/weights", "/weight_columns", "/matrix",
                             "/matrix_weights", "/matrix_every_weight", "/cube_weights", "/no_weight"}) {
    all["Mean" + std::string(suffix)] = metrics::Mean();
    all["Sum" + std::string(suffix)] = metrics::Sum();
  }
  all["Mean/one_weight"] = metrics::Mean();
  all["MeanMetricWrapper"] = metrics::MeanMetricWrapper([](Tensor y, Tensor p) { return max(abs(y - p), -1); });
}

void add_accuracies(Metrics& all) {
  for (const char* name : {"Accuracy", "Accuracy/columns"}) all[name] = metrics::Accuracy();
  for (const char* name : {"BinaryAccuracy", "BinaryAccuracy/every_weight", "BinaryAccuracy/vectors"})
    all[name] = metrics::BinaryAccuracy();
  all["BinaryAccuracy/several"] = metrics::BinaryAccuracy({.threshold = 0.3});
  for (const char* name : {"CategoricalAccuracy", "CategoricalAccuracy/steps"})
    all[name] = metrics::CategoricalAccuracy();
  for (const char* suffix : {"", "/weights", "/column", "/steps"})
    all["SparseCategoricalAccuracy" + std::string(suffix)] = metrics::SparseCategoricalAccuracy();
  all["TopKCategoricalAccuracy"] = metrics::TopKCategoricalAccuracy();
  all["TopKCategoricalAccuracy/k_2"] = metrics::TopKCategoricalAccuracy({.k = 2});
  all["SparseTopKCategoricalAccuracy"] = metrics::SparseTopKCategoricalAccuracy();
  for (const char* suffix : {"/k_2", "/ties"})
    all["SparseTopKCategoricalAccuracy" + std::string(suffix)] = metrics::SparseTopKCategoricalAccuracy({.k = 2});
  all["SparseTopKCategoricalAccuracy/sorted_ids"] =
      metrics::SparseTopKCategoricalAccuracy({.k = 2, .from_sorted_ids = true});
  for (const char* kind : {"binary", "sparse", "one_hot"}) {
    all["by_shapes/accuracy_" + std::string(kind)] = Metric("accuracy");
    all["by_shapes/crossentropy_" + std::string(kind)] = Metric("ce");
  }
}

template <class M>
void add_numbers(Metrics& all, const std::string& name, bool of_signs = true) {
  for (const char* suffix : {"", "/weights"}) all[name + suffix] = M();
  if (of_signs) all[name + "/steps"] = M();
}

void add_regressions(Metrics& all) {
  add_numbers<metrics::MeanSquaredError>(all, "MeanSquaredError");
  add_numbers<metrics::RootMeanSquaredError>(all, "RootMeanSquaredError");
  add_numbers<metrics::MeanAbsoluteError>(all, "MeanAbsoluteError");
  add_numbers<metrics::LogCoshError>(all, "LogCoshError");
  add_numbers<metrics::CosineSimilarity>(all, "CosineSimilarity");
  add_numbers<metrics::PearsonCorrelation>(all, "PearsonCorrelation");
  add_numbers<metrics::ConcordanceCorrelation>(all, "ConcordanceCorrelation");
  add_numbers<metrics::MeanAbsolutePercentageError>(all, "MeanAbsolutePercentageError", false);
  add_numbers<metrics::MeanSquaredLogarithmicError>(all, "MeanSquaredLogarithmicError", false);
  all["CosineSimilarity/axis_1"] = metrics::CosineSimilarity({.axis = 1});
  all["PearsonCorrelation/axis_1"] = metrics::PearsonCorrelation({.axis = 1});
  all["ConcordanceCorrelation/axis_1"] = metrics::ConcordanceCorrelation({.axis = 1});
  for (const char* suffix : {"/every_weight", "/vectors"})
    all["RootMeanSquaredError" + std::string(suffix)] = metrics::RootMeanSquaredError();
  for (const char* suffix : {"", "/weights", "/one_output"}) all["R2Score" + std::string(suffix)] = metrics::R2Score();
  all["R2Score/each"] = metrics::R2Score({.class_aggregation = "none"});
  all["R2Score/variance"] = metrics::R2Score({.class_aggregation = "variance_weighted_average"});
  all["R2Score/adjusted"] = metrics::R2Score({.num_regressors = 2});
  all["R2Score/adjusted_too_many"] = metrics::R2Score({.num_regressors = 20});
}

void add_means_of_losses(Metrics& all) {
  for (const char* suffix : {"", "/binary"}) {
    all["Hinge" + std::string(suffix)] = metrics::Hinge();
    all["SquaredHinge" + std::string(suffix)] = metrics::SquaredHinge();
  }
  all["CategoricalHinge"] = metrics::CategoricalHinge();
  all["KLDivergence"] = metrics::KLDivergence();
  all["Poisson"] = metrics::Poisson();
  all["BinaryCrossentropy"] = metrics::BinaryCrossentropy();
  all["BinaryCrossentropy/logits"] = metrics::BinaryCrossentropy({.from_logits = true, .label_smoothing = 0.1});
  all["CategoricalCrossentropy"] = metrics::CategoricalCrossentropy();
  all["CategoricalCrossentropy/logits"] =
      metrics::CategoricalCrossentropy({.from_logits = true, .label_smoothing = 0.2});
  all["CategoricalCrossentropy/axis_1"] = metrics::CategoricalCrossentropy({.axis = 1});
  all["SparseCategoricalCrossentropy"] = metrics::SparseCategoricalCrossentropy();
  all["SparseCategoricalCrossentropy/logits"] = metrics::SparseCategoricalCrossentropy({.from_logits = true});
  for (const char* suffix : {"/ignore", "/ignore_weights"})
    all["SparseCategoricalCrossentropy" + std::string(suffix)] =
        metrics::SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = 2});
}

template <class M>
void add_counts(Metrics& all, const std::string& name) {
  for (const char* suffix : {"", "/weights", "/columns"}) all[name + suffix] = M();
  all[name + "/every_weight"] = M({.thresholds = 0.3});
  all[name + "/several"] = M({.thresholds = {0.2, 0.5, 0.55}});
  all[name + "/even"] = M({.thresholds = {0, 0.25, 0.5, 0.75, 1}});
  all[name + "/on_thresholds"] = M({.thresholds = {0.25, 0.5}});
}
template <class M>
void add_shares(Metrics& all, const std::string& name) {
  add_counts<M>(all, name);
  for (const char* suffix : {"/top_k", "/top_k_ties"}) all[name + suffix] = M({.top_k = 2});
  all[name + "/top_k_thresholds"] = M({.thresholds = {0.4, 0.8}, .top_k = 2});
  all[name + "/class_id"] = M({.class_id = 2});
  all[name + "/top_k_class_id"] = M({.thresholds = 0.1, .top_k = 2, .class_id = 1});
  all[name + "/nothing"] = M();
}
template <class M>
void add_at(Metrics& all, const std::string& name) {
  all[name] = M(0.6);
  all[name + "/thresholds_7"] = M(0.3, {.num_thresholds = 7});
  all[name + "/thresholds_1"] = M(0.3, {.num_thresholds = 1});
  all[name + "/class_id"] = M(0.5, {.class_id = 1});
  all[name + "/out_of_reach"] = M(1, {.num_thresholds = 5});
}

void add_areas(Metrics& all) {
  using metrics::AUC;
  for (std::string curve : {"ROC", "PR", "PRGAIN"}) {
    for (std::string method : {"interpolation", "minoring", "majoring"})
      all["AUC/" + curve + "_" + method] = AUC({.num_thresholds = 20, .curve = curve, .summation_method = method});
    all["AUC/" + curve + "_multi_label"] = AUC({.num_thresholds = 9, .curve = curve, .multi_label = true});
    all["AUC/" + curve + "_on_thresholds"] = AUC({.num_thresholds = 9, .curve = curve});
    all["AUC/" + curve + "_thresholds"] = AUC({.curve = curve, .thresholds = {0.7, 0.2, 0.45}});
  }
  all["AUC"] = AUC();
  all["AUC/logits"] = AUC({.from_logits = true});
  all["AUC/even_thresholds"] = AUC({.thresholds = {0.25, 0.5, 0.75}});
  all["AUC/label_weights"] = AUC({.num_thresholds = 15, .label_weights = {0.5, 2, 1}});
  all["AUC/label_weights_thresholds"] = AUC({.thresholds = {0.3, 0.4}, .label_weights = {0.5, 2, 1}});
  for (std::string curve : {"", "_pr"})
    all["AUC/multi_label_weights" + curve] = AUC({.num_thresholds = 15,
                                                  .curve = curve.empty() ? "ROC" : "pr",
                                                  .multi_label = true,
                                                  .num_labels = 3,
                                                  .label_weights = {0.5, 2, 1}});
  for (const char* name : {"AUC/multi_label_thresholds", "AUC/multi_label_thresholds_weights"})
    all[name] = AUC({.thresholds = {0.3, 0.4}, .multi_label = true});
  all["AUC/of_one_class"] = AUC({.num_thresholds = 9});
}

void add_confusions(Metrics& all) {
  add_counts<metrics::TruePositives>(all, "TruePositives");
  add_counts<metrics::TrueNegatives>(all, "TrueNegatives");
  add_counts<metrics::FalsePositives>(all, "FalsePositives");
  add_counts<metrics::FalseNegatives>(all, "FalseNegatives");
  add_shares<metrics::Precision>(all, "Precision");
  add_shares<metrics::Recall>(all, "Recall");
  add_at<metrics::SensitivityAtSpecificity>(all, "SensitivityAtSpecificity");
  add_at<metrics::SpecificityAtSensitivity>(all, "SpecificityAtSensitivity");
  add_at<metrics::PrecisionAtRecall>(all, "PrecisionAtRecall");
  add_at<metrics::RecallAtPrecision>(all, "RecallAtPrecision");
  add_areas(all);
  for (std::string average : {"None", "micro", "macro", "weighted"}) {
    const std::string given = average == "None" ? "none" : average;
    all["F1Score/" + average] = metrics::F1Score({.average = given});
    all["FBetaScore/" + average] = metrics::FBetaScore({.average = given, .beta = 2, .threshold = 0.4});
    all["FBetaScore/" + average + "_unweighted"] = metrics::FBetaScore({.average = given, .beta = 0.5});
  }
  all["F1Score/zeros"] = metrics::F1Score();
}

void add_intersections(Metrics& all) {
  all["IoU"] = metrics::IoU(3, {0, 2});
  all["IoU/weights"] = metrics::IoU(3, {1}, {.dtype = f32});
  all["IoU/integer_weights"] = metrics::IoU(3, {0, 1});
  all["IoU/scores"] = metrics::IoU(3, {0, 1}, {.sparse_y_pred = false});
  all["IoU/ignore"] = metrics::IoU(3, {0, 1, 2}, {.ignore_class = 1});
  all["IoU/no_classes"] = metrics::IoU(2, {0, 1});
  all["BinaryIoU"] = metrics::BinaryIoU();
  all["BinaryIoU/threshold"] = metrics::BinaryIoU({.target_class_ids = {1}, .threshold = 0.3, .dtype = f32});
  all["BinaryIoU/on_threshold"] = metrics::BinaryIoU({.target_class_ids = {0}});
  all["MeanIoU"] = metrics::MeanIoU(4);
  all["MeanIoU/ignore"] = metrics::MeanIoU(4, {.ignore_class = 0});
  all["MeanIoU/scores"] = metrics::MeanIoU(3, {.sparse_y_true = false, .sparse_y_pred = false});
  all["OneHotIoU"] = metrics::OneHotIoU(3, {0, 2});
  all["OneHotIoU/sparse"] = metrics::OneHotIoU(3, {0, 2}, {.dtype = f32, .sparse_y_pred = true});
  all["OneHotMeanIoU"] = metrics::OneHotMeanIoU(3);
  all["OneHotMeanIoU/ignore"] = metrics::OneHotMeanIoU(3, {.ignore_class = 1});
}

Metrics all_metrics() {
  Metrics all;
  add_reductions(all);
  add_accuracies(all);
  add_regressions(all);
  add_means_of_losses(all);
  add_confusions(all);
  add_intersections(all);
  return all;
}

double largest = 0;
void compare(const Tensor& got, const Tensor& expected, const std::string& what) {
  expect_close(got, expected, 3e-6, what);
  Tensor a = cast(got, f64), b = cast(expected, f64);
  if (a.shape() != b.shape()) return;
  Tensor difference = where(logical_or(a == b, isnan(b)), 0.0, abs(a - b) / maximum(1.0, abs(b)));
  largest = std::max(largest, max(difference).item<double>());
}

struct OneBatch {
  Tensor y_true, y_pred, sample_weight, result;
};
std::vector<OneBatch> batches_of(const KerasCase& one) {
  std::vector<OneBatch> out;
  for (int i = 0; one.has("result_" + std::to_string(i)); ++i) {
    auto tensor = [&](const char* key) {
      const std::string name = std::string(key) + "_" + std::to_string(i);
      return one.has(name) ? one[name] : Tensor();
    };
    out.push_back({tensor("y_true"), tensor("y_pred"), tensor("sample_weight"), tensor("result")});
  }
  return out;
}

TEST(KerasMetrics, AsKerasHasThem) {
  KerasValues values("metrics");
  int compared = 0;
  std::vector<FunctionBase> kept;  // else many functions made on one line would end, and stet would advise against it
  for (const auto& [name, metric] : all_metrics()) {
    const std::vector<OneBatch> batches = batches_of(values.at(name));
    ASSERT_EQ(batches.size(), 3u);
    for (bool again : {false, true}) {
      metric.reset_state();
      for (std::size_t i = 0; i < batches.size(); ++i) {
        const OneBatch& batch = batches[i];
        compare(metric(batch.y_true, batch.y_pred, batch.sample_weight), batch.result,
                name + (again ? ", again" : "") + ", batch " + std::to_string(i));
      }
    }
    metric.reset_state();
    Function of_one = function("of_one(y)", [metric = metric](Tensor y) { return metric(y); });
    Function of_two = function("of_two(y, p)", [metric = metric](Tensor y, Tensor p) { return metric(y, p); });
    Function of_three =
        function("of_three(y, p, weight)", [metric = metric](Tensor y, Tensor p, Tensor w) { return metric(y, p, w); });
    kept.insert(kept.end(), {of_one, of_two, of_three});
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const OneBatch& batch = batches[i];
      Tensor result = !batch.y_pred.defined()          ? of_one(batch.y_true)
                      : !batch.sample_weight.defined() ? of_two(batch.y_true, batch.y_pred)
                                                       : of_three(batch.y_true, batch.y_pred, batch.sample_weight);
      compare(result, batch.result, name + ", traced, batch " + std::to_string(i));
    }
    EXPECT_EQ(of_one.trace_count() + of_two.trace_count() + of_three.trace_count(), 1) << name;
    ++compared;
  }
  EXPECT_EQ(values.left(), std::vector<std::string>());
  std::cout << compared << " metrics, largest relative difference " << largest << "\n";
}

/// Keras has no result of these before the first batch, or fails; here they are 0.
TEST(KerasMetrics, NothingGatheredIsZero) {
  const Metric all[] = {metrics::Mean(),
                        metrics::Sum(),
                        metrics::AUC(),
                        metrics::AUC({.multi_label = true}),
                        metrics::Precision(),
                        metrics::Recall({.thresholds = {0.1, 0.2}}),
                        metrics::F1Score(),
                        metrics::R2Score(),
                        metrics::MeanIoU(2),
                        metrics::RootMeanSquaredError(),
                        metrics::PrecisionAtRecall(0.5),
                        metrics::TruePositives()};
  for (const Metric& metric : all) {
    metric.reset_state();
    for (double value : cast(metric.result(), f64).to_vector<double>()) EXPECT_EQ(value, 0) << metric.name();
  }
  // A batch without samples changes nothing.
  const Metric of_pairs[] = {metrics::MeanSquaredError(),
                             metrics::AUC(),
                             metrics::Precision(),
                             metrics::F1Score(),
                             metrics::RootMeanSquaredError(),
                             metrics::CategoricalAccuracy()};
  for (const Metric& metric : of_pairs) {
    Tensor y = tensor({{1.f, 0.f}, {0.f, 1.f}}), p = tensor({{0.75f, 0.25f}, {0.875f, 0.125f}});
    std::vector<double> before = cast(metric(y, p), f64).to_vector<double>();
    EXPECT_EQ(cast(metric(ones({0, 2}), ones({0, 2})), f64).to_vector<double>(), before) << metric.name();
  }
}

TEST(KerasMetrics, ByNameAsKerasResolvesThem) {
  for (const char* name : {"accuracy",
                           "acc",
                           "Accuracy",
                           "ACC",
                           "crossentropy",
                           "ce",
                           "mse",
                           "MSE",
                           "mean_squared_error",
                           "MeanSquaredError",
                           "mae",
                           "MAE",
                           "mape",
                           "MAPE",
                           "msle",
                           "MSLE",
                           "bce",
                           "BCE",
                           "root_mean_squared_error",
                           "log_cosh_error",
                           "LogCoshError",
                           "cosine_similarity",
                           "pearson_correlation",
                           "concordance_correlation",
                           "r2_score",
                           "R2Score",
                           "kl_divergence",
                           "KLDivergence",
                           "poisson",
                           "hinge",
                           "squared_hinge",
                           "categorical_hinge",
                           "auc",
                           "AUC",
                           "precision",
                           "Precision",
                           "recall",
                           "true_positives",
                           "true_negatives",
                           "false_positives",
                           "false_negatives",
                           "f1_score",
                           "F1Score",
                           "f_beta_score",
                           "binary_io_u",
                           "mean",
                           "sum",
                           "binary_accuracy",
                           "categorical_accuracy",
                           "sparse_categorical_accuracy",
                           "top_k_categorical_accuracy",
                           "sparse_top_k_categorical_accuracy",
                           "binary_crossentropy",
                           "categorical_crossentropy",
                           "sparse_categorical_crossentropy"})
    EXPECT_EQ(Metric(name).name(), name);
  Tensor y = tensor({{0.f, 1.f}, {1.f, 0.f}}), p = tensor({{0.25f, 0.75f}, {0.75f, 0.5f}});
  const std::pair<const char*, Metric> same[] = {
      {"mse", metrics::MeanSquaredError()},
      {"AUC", metrics::AUC()},
      {"recall", metrics::Recall()},
      {"acc", metrics::CategoricalAccuracy()},
      {"bce", metrics::BinaryCrossentropy()},
      {"mape", metrics::MeanAbsolutePercentageError()},
      {"f1_score", metrics::F1Score()},
      {"r2_score", metrics::R2Score()},
      {"ce", metrics::CategoricalCrossentropy()},
      {"cosine_similarity", metrics::CosineSimilarity()},
      {"binary_io_u", metrics::BinaryIoU()},
      {"squared_hinge", metrics::SquaredHinge()},
  };
  for (const auto& [name, metric] : same)
    EXPECT_EQ(Metric(name)(y, p).to_vector<float>(), metric(y, p).to_vector<float>()) << name;
  std::string error = error_of([] { Metric("acuracy"); });
  EXPECT_CONTAINS(error, "there is no metric 'acuracy'");
  EXPECT_CONTAINS(error, "one of accuracy (acc), crossentropy (ce), ");
  EXPECT_CONTAINS(error, "f1_score");
  EXPECT_CONTAINS(error, "keras::Metric(\"acuracy\", f)");
  error = error_of([] { Metric("mean_io_u"); });
  EXPECT_CONTAINS(error, "metric 'mean_io_u' takes arguments");
  EXPECT_CONTAINS(error, "keras::metrics::MeanIoU(…)");
}

TEST(KerasMetrics, NamesOfTheirOwn) {
  keras::clear_session();
  EXPECT_EQ(metrics::Precision().name(), "precision");
  EXPECT_EQ(metrics::Precision().name(), "precision_1");
  EXPECT_EQ(metrics::AUC().name(), "auc");
  EXPECT_EQ(metrics::MeanIoU(2).name(), "mean_io_u");
  EXPECT_EQ(metrics::FBetaScore().name(), "fbeta_score");
  EXPECT_EQ(metrics::LogCoshError().name(), "logcosh");
  EXPECT_EQ(metrics::AUC("area").name(), "area");
  EXPECT_EQ(metrics::AUC({.name = "area"}).name(), "area");
  EXPECT_EQ(metrics::AUC(std::string("pr"), {.curve = "PR"}).name(), "pr");
  EXPECT_EQ(metrics::Mean(std::string("m"), {.dtype = f64}).result().dtype(), f64);
  EXPECT_EQ(metrics::AUC().variables().size(), 4u);
  EXPECT_EQ(metrics::AUC().variables()[0].shape(), Shape({200}));
  EXPECT_EQ(metrics::Precision({.thresholds = {0.2, 0.4}}).variables()[0].shape(), Shape({2}));
  EXPECT_EQ(metrics::MeanIoU(3).variables()[0].dtype(), i64);
}

TEST(KerasMetrics, WrongUses) {
  Tensor y = ones({4, 3}), p = ones({4, 3}) / 3;
  const Metric of_one_shape[] = {metrics::MeanSquaredError(),
                                 metrics::RootMeanSquaredError(),
                                 metrics::BinaryAccuracy(),
                                 metrics::CategoricalAccuracy(),
                                 metrics::AUC(),
                                 metrics::Precision(),
                                 metrics::Recall(),
                                 metrics::TruePositives(),
                                 metrics::F1Score(),
                                 metrics::R2Score(),
                                 metrics::MeanIoU(3),
                                 metrics::PearsonCorrelation(),
                                 metrics::TopKCategoricalAccuracy(),
                                 metrics::CategoricalHinge(),
                                 metrics::PrecisionAtRecall(0.5)};
  for (const Metric& metric : of_one_shape) {
    std::string error = error_of([&] { metric.update_state(ones({4, 2}), p); });
    EXPECT_CONTAINS(error, "labels f32[4,2] and predictions f32[4,3] differ in shape");
    EXPECT_CONTAINS(error, "in metric " + metric.name() + ", of f32[4,2] and f32[4,3]");
    EXPECT_CONTAINS(error, "keras_metrics_test.cpp:");
    EXPECT_EQ(error.find("stet/keras/"), std::string::npos) << error;
  }
  EXPECT_CONTAINS(error_of([&] { metrics::SparseCategoricalAccuracy().update_state(y, p); }),
                  "sparse_categorical_accuracy: labels f32[4,3] do not fit predictions f32[4,3]");
  EXPECT_CONTAINS(error_of([&] { metrics::F1Score().update_state(ones({4}), ones({4})); }), "both are [n, classes]");
  EXPECT_CONTAINS(error_of([&] { metrics::R2Score().update_state(ones({4}), ones({4})); }), "both are [n, outputs]");
  EXPECT_CONTAINS(error_of([&] { metrics::AUC({.multi_label = true}).update_state(ones({4}), ones({4})); }),
                  "they are [n, labels]");
  metrics::AUC of_three({.multi_label = true});
  of_three.update_state(y, p);
  EXPECT_CONTAINS(error_of([&] { of_three.update_state(ones({4, 2}), ones({4, 2})); }), "of 3 labels before");
  EXPECT_CONTAINS(error_of([&] { metrics::Precision({.class_id = 3}).update_state(y, p); }), "class_id is 3");
  EXPECT_CONTAINS(error_of([&] { metrics::Precision({.top_k = 4}).update_state(y, p); }), "top_k is 4");
  EXPECT_CONTAINS(error_of([&] { metrics::Precision({.class_id = 0}).update_state(ones({4}), ones({4})); }),
                  "have no axis of classes");
  EXPECT_CONTAINS(error_of([&] {
                    metrics::Mean().update_state(ones({4}), ones({4, 3}));
                  }),
                  "Mean: sample weights f32[4,3] do not fit values f32[4]");
  EXPECT_CONTAINS(error_of([&] { metrics::MeanIoU(3).update_state(ones({4}, i32), ones({4}, i32), ones({4})); }),
                  "weights f32[4] with counts of i64");
  EXPECT_CONTAINS(error_of([&] { metrics::AUC().update_state(y); }), "AUC: an undefined tensor");
  EXPECT_CONTAINS(error_of([&] { metrics::MeanSquaredError().update_state(y); }), "an undefined tensor");
}

TEST(KerasMetrics, WrongOptions) {
  EXPECT_CONTAINS(error_of([] { metrics::Precision({.thresholds = {0.5, 1.5}}); }), "Precision: a threshold = 1.5");
  EXPECT_CONTAINS(error_of([] { metrics::TruePositives({.thresholds = -0.1}); }), "TruePositives: a threshold = -0.1");
  EXPECT_CONTAINS(error_of([] { metrics::AUC({.num_thresholds = 1}); }), "AUC: num_thresholds = 1");
  EXPECT_CONTAINS(error_of([] { metrics::AUC({.curve = "RUC"}); }), "AUC: curve = 'RUC'");
  EXPECT_CONTAINS(error_of([] { metrics::AUC({.curve = "RUC"}); }), "one of ROC, PR, PRGAIN");
  EXPECT_CONTAINS(error_of([] { metrics::AUC({.summation_method = "trapezoid"}); }),
                  "one of interpolation, minoring, majoring");
  EXPECT_CONTAINS(error_of([] { metrics::AUC({.thresholds = {2}}); }), "AUC: a threshold = 2");
  EXPECT_CONTAINS(error_of([] { metrics::AUC({.num_labels = 3}); }), "num_labels = 3 without multi_label");
  EXPECT_CONTAINS(error_of([] {
                    metrics::AUC({.multi_label = true, .num_labels = 3, .label_weights = {1, 2}});
                  }),
                  "AUC: 2 label_weights for 3 labels");
  metrics::AUC late({.multi_label = true, .label_weights = {1, 2}});
  late.update_state(ones({4, 3}), ones({4, 3}));
  EXPECT_CONTAINS(error_of([&] { late.result(); }), "AUC: 2 label_weights for 3 labels");
  EXPECT_CONTAINS(error_of([] { metrics::PrecisionAtRecall(1.5); }), "PrecisionAtRecall: recall = 1.5");
  EXPECT_CONTAINS(error_of([] { metrics::RecallAtPrecision(0.5, {.num_thresholds = 0}); }), "num_thresholds = 0");
  EXPECT_CONTAINS(error_of([] { metrics::F1Score({.average = "median"}); }), "one of none, micro, macro, weighted");
  EXPECT_CONTAINS(error_of([] { metrics::FBetaScore({.beta = 0}); }), "FBetaScore: beta = 0");
  EXPECT_CONTAINS(error_of([] { metrics::FBetaScore({.threshold = 0}); }), "FBetaScore: threshold = 0");
  EXPECT_CONTAINS(error_of([] { metrics::R2Score({.class_aggregation = "mean"}); }), "class_aggregation = 'mean'");
  EXPECT_CONTAINS(error_of([] { metrics::R2Score({.num_regressors = -1}); }), "num_regressors = -1");
  EXPECT_CONTAINS(error_of([] { metrics::IoU(2, {2}); }), "IoU: target class 2 of 2 classes");
  EXPECT_CONTAINS(error_of([] { metrics::IoU(2, {}); }), "IoU: no target_class_ids");
  EXPECT_CONTAINS(error_of([] { metrics::MeanIoU(0); }), "MeanIoU: num_classes = 0");
  EXPECT_CONTAINS(error_of([] { metrics::TopKCategoricalAccuracy({.k = 0}); }), "TopKCategoricalAccuracy: k = 0");
}

TEST(KerasMetrics, InFitOneTraceWithAPartialLastBatch) {
  random::seed(5);
  Tensor x = random::normal({65, 4}), y = one_hot(argmax(x, -1), 4);  // 52 to train on, 13 to validate
  keras::Sequential model{keras::Input({4}), keras::Dense(4, {.activation = "softmax"})};
  model.compile({.optimizer = keras::Adam(0.05),
                 .loss = "categorical_crossentropy",
                 .metrics = {"accuracy", "auc", metrics::AUC("by_label", {.curve = "PR", .multi_label = true}),
                             metrics::F1Score({.average = "macro"}), metrics::R2Score(), "precision", "recall",
                             metrics::PrecisionAtRecall(0.5), metrics::TopKCategoricalAccuracy({.k = 2}),
                             metrics::OneHotMeanIoU(4), metrics::RootMeanSquaredError(), "ce"}});
  keras::History history = model.fit(x, y, {.batch_size = 17, .epochs = 12, .verbose = 0, .validation_split = 0.2});
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_EQ(model.test_function().trace_count(), 1);
  for (const char* name : {"accuracy", "auc", "by_label", "f1_score", "precision", "recall"})
    EXPECT_GT(history[name].back(), history[name].front()) << name;
  // The same once more over all data, beside the metrics by themselves on the model's predictions.
  keras::Results results = model.evaluate(x, y, {.batch_size = 32});
  Tensor predictions = model.predict(x);
  EXPECT_NEAR(results["auc"], metrics::AUC()(y, predictions).item<float>(), 1e-6);
  EXPECT_NEAR(results["f1_score"], metrics::F1Score({.average = "macro"})(y, predictions).item<float>(), 1e-6);
  EXPECT_NEAR(results["r2_score"], metrics::R2Score()(y, predictions).item<float>(), 1e-5);
  EXPECT_NEAR(results["ce"], results["loss"], 1e-6);
}

/// A metric that the first batch shapes, as a member of a model with a step of its own.
struct Scored : keras::CustomModel {
  keras::Sequential net{keras::Dense(3, {.activation = "softmax"})};
  metrics::F1Score f1{{.average = "macro"}};
  metrics::AUC area{{.multi_label = true}};
  STET_MEMBERS(net, f1, area)
  Tensor call(const Tensor& x, const keras::Context&) override { return net(x); }
  keras::Logs train_step(const keras::Batch& batch) override {
    GradientTape tape;
    Tensor p = predict_on(batch.x, {.training = true});
    Tensor value = loss()(batch.y, p);
    optimizer().apply_gradients(tape.gradient(value, trainable_variables()), trainable_variables());
    return {{"loss", value}, {"f1", f1(batch.y, p)}, {"area", area(batch.y, p)}};
  }
};

TEST(KerasMetrics, MembersOfModels) {
  random::seed(7);
  Tensor x = random::normal({50, 3}), y = one_hot(argmax(x, -1), 3);
  keras::Model model = Scored{};
  model.compile({.optimizer = keras::Adam(0.05), .loss = "categorical_crossentropy"});
  keras::History history = model.fit(x, y, {.batch_size = 16, .epochs = 10, .verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_GT(history["f1"].back(), history["f1"].front());
  EXPECT_GT(history["area"].back(), history["area"].front());
}

TEST(KerasMetrics, ManyThreadsUpdateOne) {
  metrics::F1Score f1({.average = "micro"});
  metrics::AUC area({.multi_label = true});
  Tensor y = tensor({{1.f, 0.f}, {0.f, 1.f}}), p = tensor({{0.75f, 0.25f}, {0.875f, 0.125f}});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([=] {
      for (int k = 0; k < 25; ++k) {
        f1.update_state(y, p);
        area.update_state(y, p);
      }
    });
  for (std::thread& one : threads) one.join();
  ASSERT_EQ(f1.variables().size(), 4u);
  EXPECT_EQ(f1.variables()[0].read().item<float>(), 100);  // true positives
  EXPECT_EQ(f1.variables()[1].read().item<float>(), 100);  // false positives
  ASSERT_EQ(area.variables().size(), 4u);
  EXPECT_EQ((area.variables()[0].read()[{0, 1}].item<float>()), 100);
}

}  // namespace
