#include "stet/keras/confusion_body.h"

#include <cmath>

#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

constexpr double never = -1e10;  // what Keras makes of predictions that are not among the k largest

/// Predictions of a sample that are not among its k largest say no at any threshold.
Tensor only_largest(const Tensor& x, std::int64_t k) {
  Tensor classes = arange(x.dim(-1)), chosen = top_k(x, k, -1).positions;
  return where(any(expand_dims(chosen, -1) == classes, -2), x, never);
}

/// One column of the last axis, which stays.
Tensor column(const Tensor& x, std::int64_t which) { return x[{ellipsis, range(which, which + 1)}]; }

std::int64_t count_of(const std::vector<double>& values) { return static_cast<std::int64_t>(values.size()); }

}  // namespace

bool spread_evenly(const std::vector<double>& thresholds) {
  if (thresholds.size() < 3) return false;
  for (std::size_t i = 0; i < thresholds.size(); ++i) {
    const double even = static_cast<double>(i) / static_cast<double>(thresholds.size() - 1);
    if (!(std::abs(thresholds[i] - even) <= 1e-7 + 1e-5 * even)) return false;
  }
  return true;
}

ConfusionBody::ConfusionBody(const char* class_name, std::string name, DType dtype, ConfusionOptions options,
                             Result result)
    : LibraryMetric(class_name, std::move(name), dtype), options_(std::move(options)), result_(std::move(result)) {
  const Dim thresholds = count_of(options_.thresholds);
  if (!options_.multi_label) build_once([&] { make_state(Shape({thresholds}, Where{})); });
  if (options_.multi_label && options_.num_labels > 0)
    build_once([&] { make_state(Shape({thresholds, options_.num_labels}, Where{})); });
}

void ConfusionBody::make_state(const Shape& shape) {
  if (options_.true_positives) true_positives_ = state("true_positives", shape);
  if (options_.true_negatives) true_negatives_ = state("true_negatives", shape);
  if (options_.false_positives) false_positives_ = state("false_positives", shape);
  if (options_.false_negatives) false_negatives_ = state("false_negatives", shape);
}

void ConfusionBody::update_at(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight, Where where) {
  LossCall call(class_name(), y_true, y_pred, where);
  Tensor labels = cast(call.labels != 0, dtype()), predictions = cast(call.predictions, dtype());
  if (options_.from_logits) predictions = sigmoid(predictions);
  Tensor weights = weight.defined() ? aligned_weights(cast(weight, dtype()), predictions, where) : Tensor();
  const bool of_classes = options_.top_k || options_.class_id;
  call.require(!of_classes || predictions.rank() > 1,
               text("predictions ", described(y_pred), " have no axis of classes"), "they are [n, classes]");
  if (options_.top_k) {
    call.require(require(*options_.top_k, Relation::less_equal, predictions.dim(-1), {class_name(), "top_k", where}),
                 text("top_k is ", *options_.top_k, ", of predictions ", described(y_pred)), "there are not as many");
    predictions = only_largest(predictions, *options_.top_k);
  }
  if (options_.class_id) {
    call.require(require(*options_.class_id, Relation::less, predictions.dim(-1), {class_name(), "class_id", where}),
                 text("class_id is ", *options_.class_id, ", of predictions ", described(y_pred)),
                 "classes are numbered from 0");
    labels = column(labels, *options_.class_id), predictions = column(predictions, *options_.class_id);
  }
  if (options_.multi_label) {
    call.require(predictions.rank() == 2, text("predictions ", described(y_pred), " with multi_label"),
                 "they are [n, labels]");
    build_once([&] { make_state(Shape({count_of(options_.thresholds), predictions.dim(1)}, where)); });
    const Dim expected = true_positives_.shape()[1];
    call.require(require(predictions.dim(1), Relation::equal, expected, {class_name(), "labels", where}),
                 text("predictions ", described(y_pred), ", of ", size_text(expected), " labels before"),
                 "every batch has the same labels");
  }
  if (!options_.label_weights.empty()) {
    Tensor of_labels = cast(tensor(options_.label_weights), dtype());
    weights = weights.defined() ? weights * of_labels : of_labels;
  }
  if (weights.defined()) weights = broadcast_to(weights, predictions.shape());
  if (!options_.multi_label) {
    const Dim size = predictions.size();
    auto flat = [&](const Tensor& t) { return reshape(t, {size}); };
    labels = flat(labels), predictions = flat(predictions);
    if (weights.defined()) weights = flat(weights);
  }
  const ConfusionCounts counts =
      options_.evenly ? counted_in_bins(labels, predictions, weights) : counted(labels, predictions, weights);
  if (options_.true_positives) true_positives_.assign_add(counts.true_positives);
  if (options_.false_positives) false_positives_.assign_add(counts.false_positives);
  if (options_.true_negatives) true_negatives_.assign_add(counts.true_negatives);
  if (options_.false_negatives) false_negatives_.assign_add(counts.false_negatives);
}

/// Every prediction beside every threshold.
ConfusionCounts ConfusionBody::counted(const Tensor& labels, const Tensor& predictions, const Tensor& weights) const {
  Tensor thresholds = cast(tensor(options_.thresholds), dtype());
  for (int axis = 0; axis < predictions.rank(); ++axis) thresholds = expand_dims(thresholds, -1);
  Tensor yes = cast(expand_dims(predictions, 0) > thresholds, dtype());
  Tensor positive = weights.defined() ? labels * weights : labels;
  Tensor negative = weights.defined() ? (1 - labels) * weights : 1 - labels;
  auto of = [&](bool kept, const Tensor& which, const Tensor& said) {
    return kept ? sum(expand_dims(which, 0) * said, 1) : Tensor();
  };
  return {of(options_.true_positives, positive, yes), of(options_.false_positives, negative, yes),
          of(options_.true_negatives, negative, 1 - yes), of(options_.false_negatives, positive, 1 - yes)};
}

/// Thresholds i / (count - 1): a prediction in (i / (count - 1), (i + 1) / (count - 1)] says yes at thresholds 0 to i.
/// Sums over bins, and from each bin on, take as many steps as there are predictions, not times the thresholds.
ConfusionCounts ConfusionBody::counted_in_bins(const Tensor& labels, const Tensor& predictions,
                                               const Tensor& weights) const {
  const std::int64_t count = count_of(options_.thresholds), bins = count + 1;
  const bool below_zero = options_.thresholds.front() < 0;  // so that a prediction of 0 says yes at the first one
  Tensor bin = ceil(minimum(maximum(predictions, 0), 1) * (count - 1)) - 1;
  Tensor number = cast((below_zero ? maximum(bin, 0) : bin) + 1, i64);  // 0: at no threshold
  Tensor positive = weights.defined() ? labels * weights : labels;
  Tensor negative = weights.defined() ? (1 - labels) * weights : 1 - labels;
  auto above = [&](const Tensor& which) {
    if (!options_.multi_label) return cumsum(bincount(number, bins, which)[range(1, bins)], 0, {.reverse = true});
    const std::int64_t columns = true_positives_.shape()[1].value();
    const Dim size = number.size();
    Tensor flat = reshape(number + arange(columns) * bins, {size});
    Tensor table = reshape(bincount(flat, columns * bins, reshape(which, {size})), {columns, bins});
    return transpose(cumsum(table[{ellipsis, range(1, bins)}], 1, {.reverse = true}));
  };
  auto total = [&](const Tensor& which) { return options_.multi_label ? sum(which, 0) : sum(which); };
  ConfusionCounts out;
  if (options_.true_positives || options_.false_negatives) out.true_positives = above(positive);
  if (options_.false_positives || options_.true_negatives) out.false_positives = above(negative);
  if (options_.false_negatives) out.false_negatives = total(positive) - out.true_positives;
  if (options_.true_negatives) out.true_negatives = total(negative) - out.false_positives;
  return out;
}

Tensor ConfusionBody::result_at(Where where) {
  Frame frame(class_name(), where);
  if (!built()) return zeros({}, dtype());
  auto now = [&](const Variable& v) { return v.defined() ? v.read(where) : Tensor(); };
  return result_({now(true_positives_), now(false_positives_), now(true_negatives_), now(false_negatives_)});
}

}  // namespace stet::keras
