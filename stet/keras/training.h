// What a compiled model keeps: how it is trained, and its traced steps. Not a public header.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/lock.h"
#include "stet/keras/compiled.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/model.h"
#include "stet/keras/step.h"

namespace stet::keras {

struct Training {
  Lock guard;  // of what follows
  bool compiled = false;
  std::atomic<bool> stops = false;  // fit() is to end
  CompileOptions options = {.optimizer = {}};
  Where compiled_at = {};
  std::atomic<bool> told_of_outputs = false;  // that they are not what a loss takes
  Metric mean_loss;
  std::vector<CompiledOutput> outputs;  // empty until it is known how many there are
  std::shared_ptr<Step> train, test, predict;
  /// By the number of the model's form and the step's name: the Variables that its host code used, by their ids.
  std::map<std::pair<std::uint64_t, std::string>, std::map<std::uint64_t, Variable>> used;
  /// A form that the model had: what traces of it rely on.
  struct Form {
    std::uint64_t number = 0;
    Structure structure;
  };
  std::shared_ptr<ModelForm::State> form;
  std::vector<Form> forms;          // that the model had; the one of now is the last
  std::vector<std::string> frozen;  // members, in the last of them
  std::uint64_t forms_made = 0;
  std::uint64_t structures_noted = 0;  // how often another one was
};

/// For the time of a fit(), evaluate() or predict(): looks whether the model was changed since the last one. A form
/// that it had before has its traces still. Before every step it is looked at again, if some layer was changed.
class FormOfModel {
 public:
  explicit FormOfModel(CustomModel& model);
  FormOfModel(const FormOfModel&) = delete;
  FormOfModel& operator=(const FormOfModel&) = delete;
  const ModelForm& operator*() const { return form_; }

 private:
  ModelForm form_;
};
/// A step was traced: the trace relies on what the model consists of now. What building has added is no change.
void note_traced(CustomModel& model);

/// The mean losses, the compiled metrics, then those that are members.
std::vector<Metric> metrics_of(CustomModel& model);

/// The line of the fit(), evaluate() or predict() that runs on this thread.
class CallingLine {
 public:
  explicit CallingLine(Where where);
  ~CallingLine();
  CallingLine(const CallingLine&) = delete;
  CallingLine& operator=(const CallingLine&) = delete;
  static Where now();

 private:
  Where before_;
};

}  // namespace stet::keras
