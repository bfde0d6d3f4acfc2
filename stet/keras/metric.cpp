#include "stet/keras/metric.h"

#include "stet/base/text.h"
#include "stet/core/scope.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/loss.h"
#include "stet/keras/names.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class VariableCollector : public MemberVisitor {
 public:
  explicit VariableCollector(std::vector<Variable>& out) : out_(out) {}

 private:
  void visit(const std::string&, const Layer&) override {}
  void visit(const std::string&, const Variable& variable) override {
    for (const Variable& known : out_)
      if (known.id() == variable.id()) return;
    out_.push_back(variable);
  }
  void visit(const std::string&, const Metric& metric) override {
    for (const Variable& variable : metric.variables()) visit({}, variable);
  }
  std::vector<Variable>& out_;
};

/// total / count, where values may have weights.
class MeanBody : public CustomMetric {
 public:
  explicit MeanBody(std::string name) : CustomMetric(std::move(name)) {}

  void update_state(const Tensor& values, const Tensor& weight, const Tensor&) override { take(values, weight); }
  Tensor result() override { return where(count_ == 0, 0, total_ / count_); }

 protected:
  void take(const Tensor& values, const Tensor& weight) {
    Tensor taken = cast(values, f32);
    if (!weight.defined()) {
      total_.assign_add(sum(taken));
      count_.assign_add(cast(taken.size(), f32));
      return;
    }
    // One weight may stand for several values: for all of a sample, or for all there are.
    Tensor weights = cast(weight, f32);
    while (weights.rank() > 0 && weights.rank() < taken.rank()) weights = expand_dims(weights, -1);
    if (weights.rank() > 0) weights = broadcast_to(weights, taken.shape());
    total_.assign_add(sum(taken * weights));
    count_.assign_add(weights.rank() > 0 ? sum(weights) : weights * taken.size());
  }

 private:
  Variable total_ = add_weight("total"), count_ = add_weight("count");
};

/// The mean of a function of labels and predictions.
class MeanOfBody : public MeanBody {
 public:
  MeanOfBody(std::string name, Metric::Function per_sample) : MeanBody(std::move(name)), f_(std::move(per_sample)) {}

  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight) override {
    auto [labels, predictions] = losses::same_rank(y_true, y_pred);
    take(f_(labels, predictions), weight);
  }

 private:
  Metric::Function f_;
};

// --- functions of labels and predictions, per sample

bool single_column(const Tensor& t) { return t.rank() > 0 && t.dim(-1) == 1; }

Tensor sparse_categorical_matches(Tensor y_true, Tensor y_pred) {
  Tensor labels = y_true.rank() == y_pred.rank() && single_column(y_true) ? squeeze(y_true, -1) : y_true;
  return argmax(y_pred, -1) == cast(labels, i64);
}
Tensor categorical_matches(Tensor y_true, Tensor y_pred) { return argmax(y_pred, -1) == argmax(y_true, -1); }
Metric::Function binary_matches(double threshold) {
  return [threshold](Tensor y_true, Tensor y_pred) {
    Tensor matches = cast(y_pred > threshold, f32) == cast(y_true, f32);
    return matches.rank() > 1 ? mean(matches, -1) : matches;
  };
}

/// What "accuracy" means: Keras decides by shapes, and so does this.
Tensor accuracy_matches(Tensor y_true, Tensor y_pred) {
  if (single_column(y_pred) || (y_pred.rank() == 1 && y_true.rank() == 1)) return binary_matches(0.5)(y_true, y_pred);
  if (y_true.rank() < y_pred.rank() || single_column(y_true)) return sparse_categorical_matches(y_true, y_pred);
  return categorical_matches(y_true, y_pred);
}

struct NamedMetric {
  std::string_view name, shown;
  Tensor (*per_sample)(Tensor, Tensor);
};
Tensor squared(Tensor y_true, Tensor y_pred) { return losses::mean_squared_error(y_true, y_pred); }
Tensor absolute(Tensor y_true, Tensor y_pred) { return losses::mean_absolute_error(y_true, y_pred); }
Tensor binary(Tensor y_true, Tensor y_pred) { return binary_matches(0.5)(y_true, y_pred); }
constexpr NamedMetric named_metrics[] = {
    {"accuracy", "accuracy", accuracy_matches},
    {"acc", "acc", accuracy_matches},
    {"sparse_categorical_accuracy", "sparse_categorical_accuracy", sparse_categorical_matches},
    {"categorical_accuracy", "categorical_accuracy", categorical_matches},
    {"binary_accuracy", "binary_accuracy", binary},
    {"mse", "mse", squared},
    {"mean_squared_error", "mean_squared_error", squared},
    {"mae", "mae", absolute},
    {"mean_absolute_error", "mean_absolute_error", absolute},
};

std::shared_ptr<inside::Body> mean_of(std::string name, Metric::Function per_sample) {
  return std::make_shared<MeanOfBody>(std::move(name), std::move(per_sample));
}

}  // namespace

// --- bodies

CustomMetric::CustomMetric(std::string name) : name_(std::move(name)) {}
CustomMetric::~CustomMetric() = default;

std::string CustomMetric::description() const { return text(class_name_of(*this), " '", name_, "'"); }

Variable CustomMetric::add_weight(std::string_view name, const Shape& shape, DType dtype, Where where) {
  InitScope outside;
  Variable variable(zeros(shape, dtype), {.trainable = false, .name = text(name_, "/", name)}, where);
  weights_.push_back(variable);
  return variable;
}

std::vector<Variable> CustomMetric::variables() {
  std::vector<Variable> out = weights_;
  VariableCollector collector(out);
  visit_members(collector);
  return out;
}

void CustomMetric::reset_state() {
  for (const Variable& variable : variables()) variable.assign(zeros(variable.shape(), variable.dtype()));
}

// --- handles

Metric::Metric(const char* name, Where where) {
  std::string known;
  for (const NamedMetric& one : named_metrics) {
    if (one.name == name) {
      body_ = mean_of(std::string(one.shown), one.per_sample);
      return;
    }
    known += text(known.empty() ? "" : ", ", one.name);
  }
  throw UserError(error_text(text("there is no metric '", name, "'"), where,
                             text("one of ", known, "; or keras::Metric(\"", name, "\", f) for a function of yours")));
}

Metric::Metric(std::string name, Function per_sample) : body_(mean_of(std::move(name), std::move(per_sample))) {}

CustomMetric& Metric::metric_body(const char* asked, Where where) const {
  if (!body_)
    throw UserError(error_text(text(asked, ": the metric is undefined"), where,
                               "make one, as in keras::metrics::SparseCategoricalAccuracy()"));
  return static_cast<CustomMetric&>(*body_);
}

const std::string& Metric::name(Where where) const { return metric_body("name", where).name(); }

void Metric::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, Where where) const {
  CustomMetric& metric = metric_body("update_state", where);
  LayerFrame nobody;
  try {
    metric.update_state(y_true, y_pred, sample_weight);
  } catch (const UserError& error) {
    throw UserError(text(error.what(), "\n  in metric ", metric.name(), ", of ", described(y_true),
                         y_pred.defined() ? text(" and ", described(y_pred)) : std::string()));
  }
}
Tensor Metric::result(Where where) const { return metric_body("result", where).result(); }
void Metric::reset_state(Where where) const { metric_body("reset_state", where).reset_state(); }
std::vector<Variable> Metric::variables() const { return metric_body("variables", {}).variables(); }

namespace metrics {

Mean::Mean(std::string name) : Metric(FromBody{std::make_shared<MeanBody>(std::move(name))}) {}
SparseCategoricalAccuracy::SparseCategoricalAccuracy(std::string name)
    : Metric(std::move(name), sparse_categorical_matches) {}
CategoricalAccuracy::CategoricalAccuracy(std::string name) : Metric(std::move(name), categorical_matches) {}
BinaryAccuracy::BinaryAccuracy(std::string name, BinaryAccuracyOptions options)
    : Metric(std::move(name), binary_matches(options.threshold)) {}
MeanSquaredError::MeanSquaredError(std::string name) : Metric(std::move(name), squared) {}
MeanAbsoluteError::MeanAbsoluteError(std::string name) : Metric(std::move(name), absolute) {}

}  // namespace metrics
}  // namespace stet::keras
