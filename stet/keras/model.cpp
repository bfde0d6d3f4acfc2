#include "stet/keras/model.h"

#include <algorithm>
#include <set>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tape.h"
#include "stet/keras/functional_body.h"
#include "stet/keras/input_body.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/metrics_reduction.h"
#include "stet/keras/training.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {
thread_local Where calling_line;
}

CallingLine::CallingLine(Where where) : before_(std::exchange(calling_line, where)) {}
CallingLine::~CallingLine() { calling_line = before_; }
Where CallingLine::now() { return calling_line; }

namespace {

/// "dense, dense_1 and 3 more".
std::string some_of(std::vector<std::string> names) {
  constexpr std::size_t most = 8;
  const std::size_t count = names.size();
  if (count > most) names.resize(most);
  return text(joined(names, ", "), count > most ? text(" and ", count - most, " more") : "");
}

/// "Sequential 'sequential' of dense, dense_1; frozen: dense". What was frozen, or is no longer, is named first.
std::string form_text(CustomModel& model, const std::vector<std::string>& frozen,
                      const std::vector<std::string>& before) {
  std::vector<std::string> names, now, old, no_longer;
  for (const Layer& layer : inventory(model).layers)
    if (!dynamic_cast<InputLayerBody*>(layer.body().get())) names.push_back(layer.name());
  auto among = [](const std::string& name, const std::vector<std::string>& all) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  auto shown = [](const std::string& path) { return path.empty() ? std::string("all of it") : path; };
  for (const std::string& one : frozen) (among(one, before) ? old : now).push_back(shown(one));
  for (const std::string& one : before)
    if (!among(one, frozen)) no_longer.push_back(shown(one));
  now.insert(now.end(), old.begin(), old.end());
  return text(model.description(), names.empty() ? "" : " of ", some_of(names),
              now.empty() ? "" : "; frozen: ", some_of(now),
              no_longer.empty() ? "" : "; no longer frozen: ", some_of(no_longer));
}

ModelForm form_now(CustomModel& model) {
  Training& training = model.training();
  struct Seen {
    std::uint64_t noted;
    std::vector<std::string> frozen;
  };
  auto seen = [&] {
    std::lock_guard lock(training.guard);
    return Seen{training.structures_noted, training.frozen};
  };
  for (Seen before = seen();; before = seen()) {
    const Structure now(model);
    std::vector<std::string> frozen = frozen_members(model);
    std::string description = form_text(model, frozen, before.frozen);  // without the lock: listing is user code
    std::lock_guard lock(training.guard);
    // Another thread has built layers meanwhile, and it was noted: beside that, what was seen here is old, not changed.
    if (training.structures_noted != before.noted) continue;
    if (!training.form) training.form = std::make_shared<ModelForm::State>([&model] { form_now(model); });
    auto known = std::find_if(training.forms.rbegin(), training.forms.rend(),
                              [&](const Training::Form& form) { return !now.changed_since(form.structure); });
    if (known == training.forms.rend()) {
      training.forms.push_back({training.forms_made++, now});
    } else if (known == training.forms.rbegin()) {
      return ModelForm(training.form);
    } else {
      std::rotate(known.base() - 1, known.base(), training.forms.end());
    }
    training.form->become(training.forms.back().number, std::move(description));
    training.frozen = std::move(frozen);
    ++training.structures_noted;
    return ModelForm(training.form);
  }
}

}  // namespace

FormOfModel::FormOfModel(CustomModel& model) : form_(form_now(model)) {}

void note_traced(CustomModel& model) {
  Structure now(model);
  Training& training = model.training();
  std::lock_guard lock(training.guard);
  if (training.forms.empty() || training.forms.back().structure == now) return;
  training.forms.back().structure = std::move(now);
  ++training.structures_noted;
}

// --- bodies

CustomModel::CustomModel() : CustomModel(std::string()) {}
CustomModel::CustomModel(std::string name) : CustomLayer(std::move(name)), training_(std::make_unique<Training>()) {}
CustomModel::CustomModel(CustomModel&&) noexcept = default;
CustomModel::~CustomModel() = default;

Optimizer CustomModel::optimizer(Where where) const {
  std::lock_guard lock(training_->guard);
  if (!training_->compiled)
    throw UserError(error_text(text("optimizer: ", description(), " is not compiled"), where,
                               "call compile({.optimizer = keras::Adam(), …}) first"));
  return training_->options.optimizer;
}
Loss CustomModel::loss(Where where) const {
  std::lock_guard lock(training_->guard);
  if (!training_->options.loss.defined())
    throw UserError(error_text(text(description(), " was compiled without a loss"),
                               CallingLine::now().known() ? CallingLine::now() : where,
                               "compile({.loss = keras::losses::MeanSquaredError()}), or override the step"));
  return training_->options.loss;
}

std::vector<Metric> metrics_of(CustomModel& model) {
  std::vector<Metric> out;
  Training& training = model.training();
  {
    std::lock_guard lock(training.guard);
    if (training.mean_loss.defined()) out.push_back(training.mean_loss);
    out.insert(out.end(), training.options.metrics.begin(), training.options.metrics.end());
  }
  for (const Metric& metric : inventory(model).metrics) out.push_back(metric);
  return out;
}

// Visiting members changes nothing; it is not const because users write it.
std::vector<Metric> CustomModel::metrics() const { return metrics_of(const_cast<CustomModel&>(*this)); }

std::vector<Variable> CustomModel::trainable_variables() const {
  std::vector<Variable> out;
  for (const Weight& weight : inventory(const_cast<CustomModel&>(*this)).weights)
    if (weight.trainable) out.push_back(weight.variable);
  return out;
}

Tensor CustomModel::predict_on(const Tensor& x, CallOptions options) const {
  return call_layer(const_cast<CustomModel&>(*this), {x}, options, CallingLine::now())[0];
}

Tensor CustomModel::compute_loss(const Batch& batch, const Tensor& y_pred) const {
  const Where where = CallingLine::now();
  std::vector<Tensor> added = const_cast<CustomModel&>(*this).losses(where);
  const bool has_loss = [&] {
    std::lock_guard lock(training_->guard);
    return training_->options.loss.defined();
  }();
  Tensor value;
  if (has_loss || added.empty()) {  // without either, loss() says so
    Loss of = loss();
    if (!batch.y.defined())
      throw UserError(error_text("the data has no labels, which the loss needs", where, "give x and y: fit(x, y)"));
    value = of(batch.y, y_pred, batch.sample_weight, where);
  }
  for (const Tensor& one : added) {
    Tensor typed = !value.defined() || one.dtype() == value.dtype() ? one : cast(In(one, where), value.dtype());
    value = value.defined() ? add(In(value, where), typed) : typed;
  }
  Metric mean_loss;
  {
    std::lock_guard lock(training_->guard);
    // A model that is compiled without a loss has one when its layers add to it.
    if (!training_->mean_loss.defined()) training_->mean_loss = metrics::Mean("loss");
    mean_loss = training_->mean_loss;
  }
  // Weighted by samples, so that a smaller last batch counts for less.
  mean_loss.update_state(value, cast(In(batch.x.dim(0), where), f32), {}, where);
  return value;
}

Logs CustomModel::compute_metrics(const Batch& batch, const Tensor& y_pred) const {
  std::vector<Metric> compiled;
  {
    std::lock_guard lock(training_->guard);
    compiled = training_->options.metrics;
  }
  for (const Metric& metric : compiled) metric.update_state(batch.y, y_pred, batch.sample_weight, CallingLine::now());
  Logs logs;
  for (const Metric& metric : metrics()) logs[metric.name()] = metric.result(CallingLine::now());
  return logs;
}

Logs CustomModel::train_step(const Batch& batch) {
  const Where where = CallingLine::now();
  GradientTape tape;
  Tensor y_pred = predict_on(batch.x, {.training = true});
  Tensor loss = compute_loss(batch, y_pred);
  std::vector<Variable> variables = trainable_variables();
  if (variables.size() > 0) {
    Tensor scaled = optimizer().scale_loss(loss, where);
    optimizer().apply_gradients(tape.gradient(scaled, variables, {}, where), variables, where);
  } else {
    tell_all_frozen(*this, where);
  }
  return compute_metrics(batch, y_pred);
}

Logs CustomModel::test_step(const Batch& batch) {
  Tensor y_pred = predict_on(batch.x);
  compute_loss(batch, y_pred);
  return compute_metrics(batch, y_pred);
}

Tensor CustomModel::predict_step(const Batch& batch) { return predict_on(batch.x); }

// --- handles

CustomModel& Model::model_body(const char* asked, Where where) const {
  return static_cast<CustomModel&>(layer_body(asked, where));
}

void Model::compile(CompileOptions options, Where where) const {
  CustomModel& model = model_body("compile", where);
  if (!options.optimizer.defined())
    throw UserError(error_text("compile: the optimizer is undefined", where, "make one, as in keras::Adam(1e-3)"));
  std::set<std::string> names{"loss"};
  for (const Metric& metric : options.metrics) {
    if (!metric.defined()) throw UserError(error_text("compile: a metric is undefined", where, "make one"));
    if (!names.insert(metric.name()).second)
      throw UserError(error_text(text("compile: there are two metrics '", metric.name(), "'"), where,
                                 "their results would overwrite each other: give one of them another name"));
  }
  Training& training = model.training();
  std::lock_guard lock(training.guard);
  training.compiled = true;
  training.options = std::move(options);
  // A model without a loss of its own reports what its steps compute.
  training.mean_loss = training.options.loss.defined() ? Metric(metrics::Mean("loss")) : Metric();
  training.train = training.test = training.predict = nullptr;
}

void Model::stop_training(Where where) const { model_body("stop_training", where).training().stops = true; }

Optimizer Model::optimizer(Where where) const {
  CustomModel& model = model_body("optimizer", where);
  std::lock_guard lock(model.training().guard);
  if (!model.training().compiled)
    throw UserError(error_text(text("optimizer: ", model.description(), " is not compiled"), where,
                               "call compile({.optimizer = keras::Adam(), …}) first"));
  return model.training().options.optimizer;
}

std::vector<Layer> Model::layers(Where where) const {
  std::vector<Layer> out;
  for (const Layer& layer : inventory(model_body("layers", where)).layers)
    if (!dynamic_cast<InputLayerBody*>(layer.body().get())) out.push_back(layer);
  return out;
}

Model::Model(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs, ModelOptions options,
             Where where)
    : Layer(std::make_shared<FunctionalBody>(inputs, outputs, std::move(options.name), where)) {
  auto& body = static_cast<FunctionalBody&>(*this->body());
  std::vector<TensorSpec> types;
  for (const KerasTensor& input : inputs) types.push_back(input.spec(where));
  build_from(body, types, {}, where);
}
Model::Model(const KerasTensor& input, const KerasTensor& output, ModelOptions options, Where where)
    : Model(std::vector<KerasTensor>{input}, std::vector<KerasTensor>{output}, std::move(options), where) {}

Layer Model::get_layer(const std::string& name, Where where) const {
  std::vector<std::string> names;
  for (const Layer& layer : layers(where)) {
    if (layer.name() == name) return layer;
    names.push_back(layer.name());
  }
  throw UserError(
      error_text(text("get_layer: ", model_body("get_layer", where).description(), " has no layer '", name, "'"), where,
                 text("it has ", joined(names, ", "))));
}
Layer Model::get_layer(int number, Where where) const {
  std::vector<Layer> all = layers(where);
  const auto count = static_cast<int>(all.size());
  if (number < -count || number >= count)
    throw UserError(error_text(text("get_layer: there is no layer ", number, " among ", count), where,
                               "they are counted from 0, or from -1 at the end"));
  return all[static_cast<std::size_t>(number < 0 ? number + count : number)];
}

namespace {
FunctionalBody& functional_body(CustomModel& model, const char* asked, Where where) {
  if (auto* body = dynamic_cast<FunctionalBody*>(&model)) return *body;
  throw UserError(error_text(text(asked, ": ", model.description(), " was not made of KerasTensors"), where,
                             "keras::Model(inputs, outputs) has them"));
}
}  // namespace
std::vector<KerasTensor> Model::inputs(Where where) const {
  return functional_body(model_body("inputs", where), "inputs", where).inputs();
}
std::vector<KerasTensor> Model::outputs(Where where) const {
  return functional_body(model_body("outputs", where), "outputs", where).outputs();
}

namespace {
FunctionBase traced_step(CustomModel& model, const std::shared_ptr<Step> Training::*which, const char* name,
                         Where where) {
  std::shared_ptr<Step> step;
  {
    std::lock_guard lock(model.training().guard);
    step = model.training().*which;
  }
  std::optional<FunctionBase> function = step ? step->function() : std::nullopt;
  if (!function)
    throw UserError(error_text(text("the ", name, " of ", model.description(), " has not been traced"), where,
                               "it is there after fit(), evaluate() or predict(), unless steps run eagerly"));
  return *function;
}
}  // namespace

FunctionBase Model::train_function(Where where) const {
  return traced_step(model_body("train_function", where), &Training::train, "train_step", where);
}
FunctionBase Model::test_function(Where where) const {
  return traced_step(model_body("test_function", where), &Training::test, "test_step", where);
}
FunctionBase Model::predict_function(Where where) const {
  return traced_step(model_body("predict_function", where), &Training::predict, "predict_step", where);
}

}  // namespace stet::keras
