// What a compiled model keeps: how it is trained, and its traced steps. Not a public header.
#pragma once
#include <memory>
#include <vector>

#include "stet/base/lock.h"
#include "stet/keras/model.h"
#include "stet/keras/step.h"

namespace stet::keras {

struct Training {
  Lock guard;  // of what follows
  bool compiled = false;
  CompileOptions options = {.optimizer = {}};
  Metric mean_loss;
  std::shared_ptr<Step> train, test, predict;
};

/// The mean loss, the compiled metrics, then those that are members.
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
