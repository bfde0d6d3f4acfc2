#include "stet/keras/metric.h"

#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/core/name_scope.h"
#include "stet/core/scope.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/metric_bodies.h"
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
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : shape) sizes.push_back(dim.value(where));
  InitScope outside;
  Variable variable(zeros(Shape(sizes), dtype), {.trainable = false, .name = text(name_, "/", name)}, where);
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

std::string LibraryMetric::description() const { return text(class_name_, " '", name(), "'"); }

void LibraryMetric::build_once(const std::function<void()>& build) {
  std::lock_guard lock(guard_);
  if (built_) return;
  build();
  built_ = true;
}
bool LibraryMetric::built() const {
  std::lock_guard lock(guard_);
  return built_;
}

std::string numbered_name(const std::string& given, const char* class_name) {
  return given.empty() ? next_name(class_name) : given;
}

// --- handles

FromBody Metric::of_function(std::string name, Function per_sample) {
  return {std::make_shared<MeanOfBody>(
      "Metric", std::move(name), DType::f32,
      [f = std::move(per_sample)](const Tensor& y_true, const Tensor& y_pred, Where where) {
        auto [labels, predictions] = losses::same_rank(y_true, y_pred, where);
        return SampleValues(f(labels, predictions));
      })};
}

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
  NameScope name_scope(metric.name());
  try {
    if (auto* of_ours = dynamic_cast<LibraryMetric*>(&metric))
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
  NameScope name_scope(metric.name());
  auto* of_ours = dynamic_cast<LibraryMetric*>(&metric);
  return of_ours ? of_ours->result_at(where) : metric.result();
}
Tensor Metric::operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, Where where) const {
  update_state(y_true, y_pred, sample_weight, where);
  return result(where);
}
void Metric::reset_state(Where where) const { metric_body("reset_state", where).reset_state(); }
std::vector<Variable> Metric::variables() const { return metric_body("variables", {}).variables(); }

}  // namespace stet::keras
