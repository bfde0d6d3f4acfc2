#include "stet/keras/fit_progress.h"

#include <limits>
#include <utility>

#include "stet/base/text.h"
#include "stet/keras/backup_body.h"
#include "stet/keras/checkpoint_variables.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/training.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using files::Json;

/// The Variables that a step of the model as it is now uses.
std::vector<Variable> used_by(Training& training, const char* step) {
  std::vector<Variable> out;
  std::lock_guard lock(training.guard);
  if (training.forms.empty()) return out;
  auto found = training.used.find({training.forms.back().number, step});
  if (found != training.used.end())
    for (const auto& [id, variable] : found->second) out.push_back(variable);
  return out;
}

/// What the group of those is called.
std::string used_by_step(const char* step) { return text("used by ", step); }

CheckpointVariables variables_of(CustomModel& model, Where where) {
  CheckpointVariables out;
  out.add_group("model");
  for (const Weight& weight : inventory(model).weights) out.add("model", weight.path, weight.variable);
  Training& training = model.training();
  Optimizer optimizer;
  {
    std::lock_guard lock(training.guard);
    optimizer = training.options.optimizer;
  }
  out.add("optimizer", optimizer, where);
  std::size_t number = 0;
  for (const Metric& metric : metrics_of(model)) {
    const std::string group = text("metrics/", number++, " ", as_utf8(metric.name()));
    out.add_group(group, true);
    for (const Variable& variable : metric.variables()) out.add(group, variable.name(), variable);
  }
  out.add("random", "state", random::default_generator().variable());
  // What no layer lists: the generators of layers with a seed, and whatever else host code of a step uses.
  for (const char* step : {"train_step", "test_step"}) {
    const std::string group = used_by_step(step);
    out.add_group(group, std::string_view(step) == "test_step");
    for (const Variable& variable : used_by(training, step))
      if (!out.holds(variable)) out.add(group, variable.name(), variable);
  }
  return out;
}

Json numbers_of(const EpochLogs& logs) {
  Json out = Json::Object();
  for (const auto& [name, value] : logs) out[as_utf8(name)] = value;
  return out;
}
Json position_of(const std::optional<data::IterationPosition>& position) {
  return position ? Json(position->str()) : Json();
}
Json count_of(const std::optional<std::int64_t>& count) { return count ? Json(*count) : Json(); }

int as_int(std::uint64_t count, const HeadReader& head) {
  if (count > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) head.fail("its head has a count too large");
  return static_cast<int>(count);
}

}  // namespace

CheckpointContents checkpoint_of(const FitProgress& progress, CustomModel& model, const CallbackList& callbacks,
                                 Where where) {
  CheckpointContents out;
  variables_of(model, where).write(out, false, BackupAndRestoreBody::call, where);
  Json& fit = out.state["fit"];
  fit["epoch"] = progress.epoch;
  fit["steps"] = progress.steps;
  fit["stopped"] = progress.stopped;
  fit["batches"] = count_of(progress.batches);
  fit["target"] = count_of(progress.target);
  Json& values = fit["values"] = Json::List();
  for (const auto& [name, value] : progress.values) values.push_back(Json::List{Json(as_utf8(name)), Json(value)});
  Json& epochs = fit["epochs"] = Json::List();
  for (const int epoch : progress.history.epochs) epochs.push_back(epoch);
  Json& history = fit["history"] = Json::Object();
  for (const auto& [name, series] : progress.history.values) {
    Json& list = history[as_utf8(name)] = Json::List();
    for (const double value : series) list.push_back(value);
  }
  fit["last"] = numbers_of(progress.last);
  fit["position"] = position_of(progress.position);
  fit["validation_position"] = position_of(progress.validation_position);
  fit["next_iteration"] = static_cast<std::int64_t>(progress.next_iteration);
  fit["next_validation"] = static_cast<std::int64_t>(progress.next_validation);
  Json& states = out.state["callbacks"] = Json::Object();
  for (const auto& [name, callback] : callbacks.named()) {
    SavedState state;
    std::as_const(*callback).save_state(state);
    if (!state.values().empty()) states[as_utf8(name)] = json_of(state, text("callbacks/", as_utf8(name)), out);
  }
  return out;
}

FitProgress progress_of(const CheckpointFolder::Found& found, const char* call, Where where) {
  const files::Reading reading{call, found.path, where};
  const HeadReader head(reading);
  const Json* given = found.contents.state.find("fit");
  if (!given)
    reading.fail("is a checkpoint, but of no fit()", "keras::Checkpoint reads those that it wrote; use another folder");
  const Json& fit = *given;
  auto count = [&](const char* name) {
    const Json& value = head.member(fit, name);
    return value.is_null() ? std::nullopt : std::optional(static_cast<std::int64_t>(head.count(value)));
  };
  auto position = [&](const char* name) -> std::optional<data::IterationPosition> {
    const Json& value = head.member(fit, name);
    if (value.is_null()) return std::nullopt;
    return data::IterationPosition::from_string(head.string(value), where);
  };
  FitProgress out;
  out.epoch = as_int(head.count(head.member(fit, "epoch")), head);
  out.steps = static_cast<std::int64_t>(head.count(head.member(fit, "steps")));
  out.stopped = head.boolean(head.member(fit, "stopped"));
  if (const Json* used = head.member(found.contents.state, "variables").find(used_by_step("test_step")))
    out.tested = !head.list(*used).empty();
  out.batches = count("batches");
  out.target = count("target");
  for (const Json& one : head.list(head.member(fit, "values"))) {
    const Json::List& pair = head.list(one);
    if (pair.size() != 2) head.fail("its head has a value without a name");
    out.values.emplace_back(head.string(pair[0]), head.real(pair[1]));
  }
  for (const Json& epoch : head.list(head.member(fit, "epochs")))
    out.history.epochs.push_back(as_int(head.count(epoch), head));
  for (const auto& [name, series] : head.object(head.member(fit, "history")))
    for (const Json& value : head.list(series)) out.history.values[name].push_back(head.real(value));
  for (const auto& [name, value] : head.object(head.member(fit, "last"))) out.last[name] = head.real(value);
  out.position = position("position");
  out.validation_position = position("validation_position");
  out.next_iteration = head.count(head.member(fit, "next_iteration"));
  out.next_validation = head.count(head.member(fit, "next_validation"));
  return out;
}

bool restore_variables(const CheckpointFolder::Found& found, CustomModel& model, const char* call, Where where) {
  std::vector<Variable> forgotten;
  variables_of(model, where).restore(found.contents, {call, found.path, where}, &forgotten);
  if (forgotten.empty()) return false;
  Training& training = model.training();
  std::lock_guard lock(training.guard);
  for (auto& [step, used] : training.used)
    for (const Variable& variable : forgotten) used.erase(variable.id());
  training.train.reset();
  return true;
}

void restore_callbacks(const CheckpointFolder::Found& found, const CallbackList& callbacks, const char* call,
                       Where where) {
  const files::Reading reading{call, found.path, where};
  const HeadReader head(reading);
  const Json& states = head.member(found.contents.state, "callbacks");
  for (const auto& [name, callback] : callbacks.named())
    if (const Json* state = states.find(as_utf8(name)))
      callback->load_state(saved_state_of(*state, found.contents, head));
}

}  // namespace stet::keras
