// What a compiled model keeps: how it is trained, and its traced steps. Not a public header.
#pragma once
#include <atomic>
#include <memory>
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
  Metric mean_loss;
  std::vector<CompiledOutput> outputs;  // empty until it is known how many there are
  std::shared_ptr<Step> train, test, predict;
  std::shared_ptr<ModelForm::State> form;  // of the model as `structure` says
  Structure structure;
  std::uint64_t structures_noted = 0;  // how often another one was
};

/// For the time of a fit(), evaluate() or predict(): looks whether the model was changed since the last one.
class FormOfModel {
 public:
  explicit FormOfModel(CustomModel& model);
  ~FormOfModel();
  FormOfModel(const FormOfModel&) = delete;
  FormOfModel& operator=(const FormOfModel&) = delete;
  const ModelForm& operator*() const { return form_; }

 private:
  CustomModel& model_;
  ModelForm form_;
};

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
