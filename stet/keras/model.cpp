#include "stet/keras/model.h"

#include <algorithm>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/name_scope.h"
#include "stet/core/tape.h"
#include "stet/keras/functional_body.h"
#include "stet/keras/input_body.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/metrics_reduction.h"
#include "stet/keras/output_kind.h"
#include "stet/keras/training.h"
#include "stet/ops/ops.h"
#include "stet/runtime/log.h"

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
    {
      // As it was, as in most calls: nothing has to be described.
      std::lock_guard lock(training.guard);
      if (training.structures_noted == before.noted && !training.forms.empty() &&
          !now.changed_since(training.forms.back().structure))
        return ModelForm(training.form);
    }
    std::vector<std::string> frozen = frozen_members(model);
    std::string description = form_text(model, frozen, before.frozen);  // without the lock: listing is user code
    std::lock_guard lock(training.guard);
    // Another thread has built layers meanwhile, and it was noted: beside that, what was seen here is old, not changed.
    if (training.structures_noted != before.noted) continue;
    if (!training.form) training.form = std::make_shared<ModelForm::State>([&model] { form_now(model); });
    auto known = std::find_if(training.forms.rbegin(), training.forms.rend(),
                              [&](const Training::Form& form) { return !now.changed_since(form.structure); });
    if (known == training.forms.rend()) {
      constexpr std::size_t most = 16;  // a model that is changed all the time does not come back to what it was
      if (training.forms.size() == most) {
        std::erase_if(training.used, [&](const auto& one) { return one.first.first == training.forms.front().number; });
        training.forms.erase(training.forms.begin());
      }
      training.forms.push_back({training.forms_made++, now});
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
  const Where line = CallingLine::now().known() ? CallingLine::now() : where;
  std::lock_guard lock(training_->guard);
  const LossesByOutput& losses = training_->options.loss;
  if (!losses.defined())
    throw UserError(error_text(text(description(), " was compiled without a loss"), line,
                               "compile({.loss = keras::losses::MeanSquaredError()}), or override the step"));
  if (losses.for_all().defined()) return losses.for_all();
  if (losses.in_order().size() == 1) return losses.in_order()[0];
  throw UserError(error_text(text("loss: ", description(), " was compiled with losses by output"), line,
                             "compute_loss(batch, y_pred) takes all of them"));
}

namespace {

/// How the outputs are trained, of a model that gives so many.
std::vector<CompiledOutput> outputs_of(const CustomModel& model, std::size_t count) {
  const std::vector<std::string> names = model.names().outputs;
  Training& training = model.training();
  std::lock_guard lock(training.guard);
  if (training.outputs.size() != count)
    training.outputs = compiled_outputs(training.options, count, names, training.compiled_at);
  return training.outputs;
}

/// What is reported of a model, by name; and of the metrics that are its members.
std::vector<ReportedMetric> reported_metrics(CustomModel& model) {
  std::vector<ReportedMetric> out;
  Training& training = model.training();
  {
    std::lock_guard lock(training.guard);
    if (training.mean_loss.defined()) out.push_back({training.mean_loss.name(), training.mean_loss});
    for (const CompiledOutput& output : training.outputs)
      if (output.mean_loss.defined()) out.push_back({output.mean_loss.name(), output.mean_loss});
    // Before the first step only the metrics are known, not the outputs that they measure.
    if (training.outputs.empty())
      for (const Metric& metric : listed_metrics(training.options)) out.push_back({metric.name(), metric});
    for (const CompiledOutput& output : training.outputs)
      for (const auto* some : {&output.metrics, &output.weighted_metrics})
        out.insert(out.end(), some->begin(), some->end());
  }
  for (const Metric& metric : inventory(model).metrics) out.push_back({metric.name(), metric});
  return out;
}

/// By output: its labels, or its weights. One tensor of weights serves all outputs; labels may be those of the outputs
/// alone that have a loss.
Tensors labels_by_output(const Batch& batch, const std::vector<CompiledOutput>& outputs, Where where) {
  Tensors labels = batch.all_y();
  if (labels.size() == outputs.size()) return labels;
  Tensors out(outputs.size());
  if (labels.size() == 1 && !labels[0].defined()) return out;
  std::vector<std::size_t> trained;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].loss.defined()) trained.push_back(i);
  if (labels.size() != trained.size())
    throw UserError(error_text(
        text("the model gives ", outputs.size(), outputs.size() == 1 ? " output" : " outputs", ", and the data has ",
             labels.size(), labels.size() == 1 ? " tensor" : " tensors", " of labels"),
        where, "give labels for every output, in their order, or by their names"));
  for (std::size_t i = 0; i < trained.size(); ++i) out[trained[i]] = labels[i];
  return out;
}
Tensors weights_by_output(const Batch& batch, const std::vector<CompiledOutput>& outputs, Where where) {
  Tensors weights = batch.all_sample_weights();
  if (weights.size() == 1) return Tensors(outputs.size(), weights[0]);
  if (weights.size() != outputs.size())
    throw UserError(error_text(text("the model gives ", outputs.size(), outputs.size() == 1 ? " output" : " outputs",
                                    ", and the data has ", weights.size(), " tensors of sample weights"),
                               where, "give one for all outputs, or one for each, in their order or by their names"));
  return weights;
}

/// On stderr; of a model that is compiled once, one warning.
void tell_once(Training& training, const std::string& warning) {
  if (!warning.empty() && !training.told_of_outputs.exchange(true)) warn("keras", warning);
}

void check_labels(const Tensor& labels, const CompiledOutput& output, const char* needed_by, Where where) {
  if (labels.defined()) return;
  throw UserError(error_text(
      output.name.empty() ? text("the data has no labels, which ", needed_by)
                          : text("the data has no labels for output '", output.name, "', which ", needed_by),
      where,
      output.name.empty() ? "give x and y: fit(x, y)" : "give labels for every output that has a loss or a metric"));
}

}  // namespace

std::vector<Metric> metrics_of(CustomModel& model) {
  std::vector<Metric> out;
  for (const ReportedMetric& one : reported_metrics(model)) out.push_back(one.metric);
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
Tensors CustomModel::predict_on(const Tensors& inputs, CallOptions options) const {
  return call_layer(const_cast<CustomModel&>(*this), inputs, options, CallingLine::now());
}

Tensor CustomModel::compute_loss(const Batch& batch, const Tensors& y_pred) const {
  const Where where = CallingLine::now();
  NameScope name_scope("compute_loss");
  std::vector<Tensor> added = const_cast<CustomModel&>(*this).losses(where);
  const std::vector<CompiledOutput> outputs = outputs_of(*this, y_pred.size());
  const bool has_loss =
      std::any_of(outputs.begin(), outputs.end(), [](const auto& output) { return output.loss.defined(); });
  Tensor value;
  auto plus = [&](const Tensor& one) {
    Tensor typed = !value.defined() || one.dtype() == value.dtype() ? one : cast(In(one, where), value.dtype());
    value = value.defined() ? add(In(value, where), typed) : typed;
  };
  // Weighted by samples, so that a smaller last batch counts for less.
  auto tell = [&](const Metric& mean, const Tensor& one) {
    mean.update_state(one, cast(In(batch.x.dim(0), where), f32), {}, where);
  };
  if (!has_loss && added.empty()) loss(where);  // says that there is none
  const Tensors labels = has_loss ? labels_by_output(batch, outputs, where) : Tensors(outputs.size());
  const Tensors weights = has_loss ? weights_by_output(batch, outputs, where) : Tensors(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const CompiledOutput& output = outputs[i];
    if (!output.loss.defined()) continue;
    check_labels(labels[i], output, "the loss needs", where);
    tell_once(*training_, OutputKinds::warning(output.loss, y_pred[i], where));
    Tensor one = output.loss(labels[i], y_pred[i], weights[i], where);
    if (output.mean_loss.defined()) tell(output.mean_loss, one);
    plus(output.loss_weight == 1 ? one : multiply(In(one, where), output.loss_weight));
  }
  for (const Tensor& one : added) plus(one);
  Metric mean_loss;
  {
    std::lock_guard lock(training_->guard);
    // A model that is compiled without a loss has one when its layers add to it.
    if (!training_->mean_loss.defined()) training_->mean_loss = metrics::Mean("loss");
    mean_loss = training_->mean_loss;
  }
  tell(mean_loss, value);
  return value;
}

Logs CustomModel::compute_metrics(const Batch& batch, const Tensors& y_pred) const {
  const Where where = CallingLine::now();
  NameScope name_scope("compute_metrics");
  const std::vector<CompiledOutput> outputs = outputs_of(*this, y_pred.size());
  const bool measured = std::any_of(outputs.begin(), outputs.end(), [](const auto& output) {
    return !output.metrics.empty() || !output.weighted_metrics.empty();
  });
  const Tensors labels = measured ? labels_by_output(batch, outputs, where) : Tensors(outputs.size());
  const Tensors weights = measured ? weights_by_output(batch, outputs, where) : Tensors(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for (const auto* some : {&outputs[i].metrics, &outputs[i].weighted_metrics})
      for (const ReportedMetric& one : *some) {
        check_labels(labels[i], outputs[i], "its metrics need", where);
        one.metric.update_state(labels[i], y_pred[i], some == &outputs[i].weighted_metrics ? weights[i] : Tensor(),
                                where);
      }
  Logs logs;
  for (const ReportedMetric& one : reported_metrics(const_cast<CustomModel&>(*this)))
    logs[one.name] = one.metric.result(where);
  return logs;
}

Logs CustomModel::train_step(const Batch& batch) {
  const Where where = CallingLine::now();
  GradientTape tape;
  Tensors y_pred = predict_on(batch.all_x(), {.training = true});
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
  Tensors y_pred = predict_on(batch.all_x());
  compute_loss(batch, y_pred);
  return compute_metrics(batch, y_pred);
}

Tensors CustomModel::predict_step(const Batch& batch) { return predict_on(batch.all_x()); }

// --- handles

CustomModel& Model::model_body(const char* asked, Where where) const {
  return static_cast<CustomModel&>(layer_body(asked, where));
}

void Model::compile(CompileOptions options, Where where) const {
  CustomModel& model = model_body("compile", where);
  if (!options.optimizer.defined())
    throw UserError(error_text("compile: the optimizer is undefined", where, "make one, as in keras::Adam(1e-3)"));
  if (options.steps_per_execution < 1)
    throw UserError(
        error_text(text("compile: steps_per_execution = ", options.steps_per_execution), where, "it is 1 or more"));
  // Of a model whose outputs are known, what does not fit is said here; of others by the first step.
  const std::vector<std::string> names = model.names().outputs;
  std::vector<CompiledOutput> outputs;
  if (!names.empty()) outputs = compiled_outputs(options, names.size(), names, where);
  Training& training = model.training();
  std::lock_guard lock(training.guard);
  training.compiled = true;
  training.options = std::move(options);
  training.compiled_at = where;
  training.outputs = std::move(outputs);
  training.told_of_outputs = false;
  // A model without a loss of its own reports what its steps compute.
  training.mean_loss = training.options.loss.defined() ? Metric(metrics::Mean("loss")) : Metric();
  training.train = training.test = training.predict = nullptr;
  training.used.clear();
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
