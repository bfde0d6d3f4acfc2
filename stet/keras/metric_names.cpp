// Metrics by name, as compile() and Keras's metrics.get() resolve them.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/columns.h"
#include "stet/keras/config.h"
#include "stet/keras/metric_bodies.h"
#include "stet/keras/metrics.h"

namespace stet::keras {
namespace {

using namespace metrics;

// --- those that the shapes decide on

enum class Classes { binary, by_number, one_hot };

Classes classes_of(const Tensor& y_true, const Tensor& y_pred, const char* asker, Where where) {
  if (!y_true.defined() || !y_pred.defined())
    throw UserError(error_text(text(asker, ": an undefined tensor"), where, "it takes labels and predictions"));
  if ((y_pred.rank() == 1 && y_true.rank() == 1) || single_column(y_pred, asker, where)) return Classes::binary;
  if (y_true.rank() < y_pred.rank() || single_column(y_true, asker, where)) return Classes::by_number;
  return Classes::one_hot;
}
SampleValues any_accuracy(const Tensor& y_true, const Tensor& y_pred, Where where) {
  switch (classes_of(y_true, y_pred, "accuracy", where)) {
    case Classes::binary:
      return binary_accuracy(y_true, y_pred, 0.5, where);
    case Classes::by_number:
      return sparse_categorical_accuracy(y_true, y_pred, where);
    default:
      return categorical_accuracy(y_true, y_pred, where);
  }
}
SampleValues any_crossentropy(const Tensor& y_true, const Tensor& y_pred, Where where) {
  switch (classes_of(y_true, y_pred, "crossentropy", where)) {
    case Classes::binary:
      return binary_crossentropy(y_true, y_pred, {}, where);
    case Classes::by_number:
      return sparse_categorical_crossentropy(y_true, y_pred, {}, where);
    default:
      return categorical_crossentropy(y_true, y_pred, {}, where);
  }
}

// --- the table

Metric accuracy_by_shapes(std::string name) {
  return Metric(std::make_shared<MeanOfBody>("Accuracy", std::move(name), DType::f32, any_accuracy));
}
Metric crossentropy_by_shapes(std::string name) {
  return Metric(std::make_shared<MeanOfBody>("Crossentropy", std::move(name), DType::f32, any_crossentropy));
}
template <class M>
Metric made(std::string name) {
  return M(std::move(name));
}

struct NamedMetric {
  std::string_view name, class_name, short_name;  // the short name in small letters and in capitals
  Metric (*made)(std::string name);               // none: it takes arguments
};
constexpr NamedMetric named_metrics[] = {
    {"accuracy", "", "acc", accuracy_by_shapes},
    {"crossentropy", "", "ce", crossentropy_by_shapes},
    {"binary_accuracy", "BinaryAccuracy", "", made<BinaryAccuracy>},
    {"categorical_accuracy", "CategoricalAccuracy", "", made<CategoricalAccuracy>},
    {"sparse_categorical_accuracy", "SparseCategoricalAccuracy", "", made<SparseCategoricalAccuracy>},
    {"top_k_categorical_accuracy", "TopKCategoricalAccuracy", "", made<TopKCategoricalAccuracy>},
    {"sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy", "", made<SparseTopKCategoricalAccuracy>},
    {"mean_squared_error", "MeanSquaredError", "mse", made<MeanSquaredError>},
    {"root_mean_squared_error", "RootMeanSquaredError", "", made<RootMeanSquaredError>},
    {"mean_absolute_error", "MeanAbsoluteError", "mae", made<MeanAbsoluteError>},
    {"mean_absolute_percentage_error", "MeanAbsolutePercentageError", "mape", made<MeanAbsolutePercentageError>},
    {"mean_squared_logarithmic_error", "MeanSquaredLogarithmicError", "msle", made<MeanSquaredLogarithmicError>},
    {"log_cosh_error", "LogCoshError", "", made<LogCoshError>},
    {"cosine_similarity", "CosineSimilarity", "", made<CosineSimilarity>},
    {"pearson_correlation", "PearsonCorrelation", "", made<PearsonCorrelation>},
    {"concordance_correlation", "ConcordanceCorrelation", "", made<ConcordanceCorrelation>},
    {"r2_score", "R2Score", "", made<R2Score>},
    {"binary_crossentropy", "BinaryCrossentropy", "bce", made<BinaryCrossentropy>},
    {"categorical_crossentropy", "CategoricalCrossentropy", "", made<CategoricalCrossentropy>},
    {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy", "", made<SparseCategoricalCrossentropy>},
    {"kl_divergence", "KLDivergence", "", made<KLDivergence>},
    {"poisson", "Poisson", "", made<Poisson>},
    {"hinge", "Hinge", "", made<Hinge>},
    {"squared_hinge", "SquaredHinge", "", made<SquaredHinge>},
    {"categorical_hinge", "CategoricalHinge", "", made<CategoricalHinge>},
    {"auc", "AUC", "", made<AUC>},
    {"precision", "Precision", "", made<Precision>},
    {"recall", "Recall", "", made<Recall>},
    {"true_positives", "TruePositives", "", made<TruePositives>},
    {"true_negatives", "TrueNegatives", "", made<TrueNegatives>},
    {"false_positives", "FalsePositives", "", made<FalsePositives>},
    {"false_negatives", "FalseNegatives", "", made<FalseNegatives>},
    {"sensitivity_at_specificity", "SensitivityAtSpecificity", "", nullptr},
    {"specificity_at_sensitivity", "SpecificityAtSensitivity", "", nullptr},
    {"precision_at_recall", "PrecisionAtRecall", "", nullptr},
    {"recall_at_precision", "RecallAtPrecision", "", nullptr},
    {"f1_score", "F1Score", "", made<F1Score>},
    {"f_beta_score", "FBetaScore", "", made<FBetaScore>},
    {"io_u", "IoU", "", nullptr},
    {"binary_io_u", "BinaryIoU", "", made<BinaryIoU>},
    {"mean_io_u", "MeanIoU", "", nullptr},
    {"one_hot_io_u", "OneHotIoU", "", nullptr},
    {"one_hot_mean_io_u", "OneHotMeanIoU", "", nullptr},
    {"mean", "Mean", "", made<Mean>},
    {"sum", "Sum", "", made<Sum>},
};

std::string small(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}
bool is_called(const NamedMetric& one, std::string_view wanted) {
  if (wanted == one.name || (!one.class_name.empty() && wanted == one.class_name)) return true;
  if (one.class_name.empty() && small(wanted) == one.name) return true;  // "Accuracy" is by shapes, as in Keras
  return !one.short_name.empty() && small(wanted) == one.short_name;
}

}  // namespace

Metric::Metric(const char* given, CallLine line) {
  const Where where = line.where;
  const std::string_view wanted = given;
  std::string known;
  for (const NamedMetric& one : named_metrics) {
    if (is_called(one, wanted)) {
      if (!one.made)
        throw UserError(error_text(text("metric '", wanted, "' takes arguments"), where,
                                   text("make it: keras::metrics::", one.class_name, "(…)")));
      body_ = one.made(given).body();
      // As in Keras, what is given by name is written by name: what "accuracy" is, shapes will say.
      static_cast<CustomMetric&>(*body_).set_recipe(std::make_shared<NameRecipe>(given));
      return;
    }
    if (!one.made) continue;
    known += text(known.empty() ? "" : ", ", one.name);
    if (!one.short_name.empty()) known += text(" (", one.short_name, ")");
  }
  throw UserError(
      error_text(text("there is no metric '", wanted, "'"), where,
                 text("one of ", known, "; or keras::Metric(\"", wanted, "\", f) for a function of yours")));
}

}  // namespace stet::keras
