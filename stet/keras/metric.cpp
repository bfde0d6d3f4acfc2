#include "stet/keras/metric.h"

#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/scope.h"
#include "stet/keras/columns.h"
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

/// total / count, where values may have weights. One of ours: errors in it name the line that called the metric, not a
/// line of the library.
class MeanBody : public CustomMetric {
 public:
  explicit MeanBody(std::string name) : CustomMetric(std::move(name)) {}

  void update_state(const Tensor& a, const Tensor& b, const Tensor& c) final { update_at(a, b, c, {}); }
  Tensor result() final { return result_at({}); }
  virtual void update_at(const Tensor& values, const Tensor& weight, const Tensor&, Where where) {
    take(values, weight, where);
  }
  Tensor result_at(Where line) {
    Frame frame("Mean", line);
    return where(count_ == 0, 0, total_ / count_);
  }

 protected:
  void take(const Tensor& values, const Tensor& weight, Where where) {
    Frame frame("Mean", where);
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
  using Function = std::function<Tensor(Tensor, Tensor, Where)>;
  MeanOfBody(std::string name, Function per_sample) : MeanBody(std::move(name)), f_(std::move(per_sample)) {}

  void update_at(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight, Where where) override {
    auto [labels, predictions] = losses::same_rank(y_true, y_pred, where);
    take(f_(labels, predictions, where), weight, where);
  }

 private:
  Function f_;
};

// --- functions of labels and predictions, per sample

Tensor sparse_categorical_matches(Tensor y_true, Tensor y_pred, Where where) {
  constexpr const char* name = "sparse_categorical_accuracy";
  Frame frame(name, where);
  const bool column = y_true.rank() == y_pred.rank() && single_column(y_true, name, where);
  return argmax(y_pred, -1) == cast(column ? squeeze(y_true, -1) : y_true, i64);
}
Tensor categorical_matches(Tensor y_true, Tensor y_pred, Where where) {
  Frame frame("categorical_accuracy", where);
  return argmax(y_pred, -1) == argmax(y_true, -1);
}
Tensor binary_matches_above(double threshold, const Tensor& y_true, const Tensor& y_pred, Where where) {
  Frame frame("binary_accuracy", where);
  Tensor matches = cast(y_pred > threshold, f32) == cast(y_true, f32);
  return matches.rank() > 1 ? mean(matches, -1) : matches;
}
Tensor binary_matches(Tensor y_true, Tensor y_pred, Where where) {
  return binary_matches_above(0.5, y_true, y_pred, where);
}

/// What "accuracy" means: Keras decides by shapes, and so does this.
Tensor accuracy_matches(Tensor y_true, Tensor y_pred, Where where) {
  if ((y_pred.rank() == 1 && y_true.rank() == 1) || single_column(y_pred, "accuracy", where))
    return binary_matches(y_true, y_pred, where);
  if (y_true.rank() < y_pred.rank() || single_column(y_true, "accuracy", where))
    return sparse_categorical_matches(y_true, y_pred, where);
  return categorical_matches(y_true, y_pred, where);
}

struct NamedMetric {
  std::string_view name, shown;
  Tensor (*per_sample)(Tensor, Tensor, Where);
};
Tensor squared(Tensor y_true, Tensor y_pred, Where where) { return losses::mean_squared_error(y_true, y_pred, where); }
Tensor absolute(Tensor y_true, Tensor y_pred, Where where) {
  return losses::mean_absolute_error(y_true, y_pred, where);
}
constexpr NamedMetric named_metrics[] = {
    {"accuracy", "accuracy", accuracy_matches},
    {"acc", "acc", accuracy_matches},
    {"sparse_categorical_accuracy", "sparse_categorical_accuracy", sparse_categorical_matches},
    {"categorical_accuracy", "categorical_accuracy", categorical_matches},
    {"binary_accuracy", "binary_accuracy", binary_matches},
    {"mse", "mse", squared},
    {"mean_squared_error", "mean_squared_error", squared},
    {"mae", "mae", absolute},
    {"mean_absolute_error", "mean_absolute_error", absolute},
};

std::shared_ptr<inside::Body> mean_of(std::string name, MeanOfBody::Function per_sample) {
  return std::make_shared<MeanOfBody>(std::move(name), std::move(per_sample));
}

}  // namespace

// --- bodies

struct CustomMetric::Weights {
  Lock guard;  // of what follows
  std::vector<Variable> variables;
};

CustomMetric::CustomMetric(std::string name) : name_(std::move(name)), weights_(std::make_unique<Weights>()) {}
CustomMetric::CustomMetric(CustomMetric&&) noexcept = default;
CustomMetric::~CustomMetric() = default;

std::string CustomMetric::description() const { return text(class_name_of(*this), " '", name_, "'"); }

Variable CustomMetric::add_weight(std::string_view name, const Shape& shape, DType dtype, Where where) {
  InitScope outside;
  Variable variable(zeros(shape, dtype), {.trainable = false, .name = text(name_, "/", name)}, where);
  std::lock_guard lock(weights_->guard);
  weights_->variables.push_back(variable);
  return variable;
}

std::vector<Variable> CustomMetric::variables() {
  std::vector<Variable> out;
  {
    std::lock_guard lock(weights_->guard);
    out = weights_->variables;
  }
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

Metric::Metric(std::string name, Function per_sample)
    : body_(mean_of(std::move(name), [f = std::move(per_sample)](Tensor y_true, Tensor y_pred, Where) {
        return f(std::move(y_true), std::move(y_pred));
      })) {}

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
    if (auto* of_ours = dynamic_cast<MeanBody*>(&metric))
      of_ours->update_at(y_true, y_pred, sample_weight, where);
    else
      metric.update_state(y_true, y_pred, sample_weight);
  } catch (const UserError& error) {
    throw UserError(text(error.what(), "\n  in metric ", metric.name(), ", of ", described(y_true),
                         y_pred.defined() ? text(" and ", described(y_pred)) : std::string()));
  }
}
Tensor Metric::result(Where where) const {
  CustomMetric& metric = metric_body("result", where);
  auto* of_ours = dynamic_cast<MeanBody*>(&metric);
  return of_ours ? of_ours->result_at(where) : metric.result();
}
void Metric::reset_state(Where where) const { metric_body("reset_state", where).reset_state(); }
std::vector<Variable> Metric::variables() const { return metric_body("variables", {}).variables(); }

namespace metrics {

Mean::Mean(std::string name) : Metric(FromBody{std::make_shared<MeanBody>(std::move(name))}) {}
SparseCategoricalAccuracy::SparseCategoricalAccuracy(std::string name)
    : Metric(FromBody{mean_of(std::move(name), sparse_categorical_matches)}) {}
CategoricalAccuracy::CategoricalAccuracy(std::string name)
    : Metric(FromBody{mean_of(std::move(name), categorical_matches)}) {}
BinaryAccuracy::BinaryAccuracy(std::string name, BinaryAccuracyOptions options)
    : Metric(
          FromBody{mean_of(std::move(name), [threshold = options.threshold](Tensor y_true, Tensor y_pred, Where where) {
            return binary_matches_above(threshold, y_true, y_pred, where);
          })}) {}
MeanSquaredError::MeanSquaredError(std::string name) : Metric(FromBody{mean_of(std::move(name), squared)}) {}
MeanAbsoluteError::MeanAbsoluteError(std::string name) : Metric(FromBody{mean_of(std::move(name), absolute)}) {}

}  // namespace metrics
}  // namespace stet::keras
