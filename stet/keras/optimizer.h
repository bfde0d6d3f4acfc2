// Optimizers: how gradients change variables. An Optimizer is what you hold; a CustomOptimizer is what you subclass.
// Keras's own are in optimizers.h.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/handle.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/keras/initializer.h"
#include "stet/keras/layer.h"
#include "stet/keras/schedule.h"

namespace stet::keras {

// What the options of every optimizer end with, in the order of Keras's signatures; none of it is on by default.
//   clipnorm                     the norm of each gradient is at most this
//   clipvalue                    each element of a gradient is within ± this; at most one of the three is given
//   global_clipnorm              the norm of all gradients together is at most this
//   use_ema                      keeps a moving average of each variable: average = momentum * average + (1 - momentum)
//                                * variable. fit() ends by giving it to the variables
//   ema_overwrite_frequency      and so does every so manieth update
//   loss_scale_factor            train_step multiplies the loss by it, apply_gradients divides the gradients
//   gradient_accumulation_steps  2 or more: variables change in every so manieth step, by the mean of the gradients
//                                since then. Schedules count steps, all else counts these updates
#define STET_OPTIMIZER_OPTIONS                                  \
  std::optional<double> clipnorm = {};                          \
  std::optional<double> clipvalue = {};                         \
  std::optional<double> global_clipnorm = {};                   \
  bool use_ema = false;                                         \
  double ema_momentum = 0.99;                                   \
  std::optional<std::int64_t> ema_overwrite_frequency = {};     \
  std::optional<double> loss_scale_factor = {};                 \
  std::optional<std::int64_t> gradient_accumulation_steps = {}; \
  std::string name = {} /* none: after the class, as in "adam" */

/// What an optimizer of your own gets for free.
struct OptimizerOptions {
  std::optional<double> weight_decay =
      {};  // before each update, variables lose this part of themselves, times the rate
  STET_OPTIMIZER_OPTIONS;
};

struct SlotOptions {
  Initializer initializer = {};     // none: zeros
  std::optional<Shape> shape = {};  // none: the variable's
};

class Optimizer;

/// Subclass it to write an optimizer: update_step() changes one variable by its gradient, with plain ops. Learning
/// rates, schedules, clipping, weight decay, averages, accumulation and constraints are done around it.
///
///   struct SignDescent : keras::CustomOptimizer {
///     explicit SignDescent(keras::LearningRate rate) : CustomOptimizer("sign_descent", rate) {}
///     void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
///       variable.assign_sub(rate * sign(gradient));
///     }
///   };
class STET_API CustomOptimizer : public inside::Body, public Recorded {
 public:
  CustomOptimizer(std::string name, LearningRate learning_rate, OptimizerOptions options = {},
                  Where where = Where::here());
  CustomOptimizer(CustomOptimizer&&) noexcept;
  ~CustomOptimizer() override;

  /// `gradient` and `learning_rate` have the variable's type.
  virtual void update_step(const Tensor& gradient, const Variable& variable, const Tensor& learning_rate) = 0;

  /// Runs once for each variable, before the first step that changes it: the place for slots that start from its value.
  virtual void build(const Variable& variable);
  /// Runs in every update, before the variables' turns: for what all of them share.
  virtual void begin_update();
  /// What weight decay takes from this variable; by default what the options say.
  virtual std::optional<double> weight_decay_of(const Variable& variable) const;
  /// One step with everything around it. There is a gradient of the right rank and type for each variable.
  virtual void apply(const std::vector<Tensor>& gradients, const std::vector<Variable>& variables, Where where);
  virtual Tensor scale_loss(const Tensor& loss, Where where) const;
  /// An optimizer inside this one that does the work, if any: it has the learning rate and the step count.
  virtual const Optimizer* wrapped() const;

  const std::string& name() const;
  std::string description() const override;

  struct State;
  State& state() const { return *state_; }

 protected:
  /// A Variable that goes with `variable`, made when it is asked for the first time.
  Variable slot(const Variable& variable, std::string_view name, const SlotOptions& options = {}) const;
  /// A Variable of the optimizer itself, made when it is asked for the first time.
  Variable slot(std::string_view name, double initial, DType dtype) const;
  /// How many updates were made before this one, i64.
  Tensor iterations() const;

 private:
  std::unique_ptr<State> state_;
};

template <class T>
concept OptimizerBody = std::derived_from<T, CustomOptimizer>;

/// What Optimizer::learning_rate() gives: the rate now, and a way to change it that needs no retrace.
class STET_API CurrentLearningRate {
 public:
  explicit CurrentLearningRate(std::shared_ptr<CustomOptimizer> optimizer) : optimizer_(std::move(optimizer)) {}
  /// f32. Of a schedule: for the next step.
  Tensor read(Where where = Where::here()) const;
  Tensor value(Where where = Where::here()) const { return read(where); }
  operator Tensor() const { return read({}); }
  /// A UserError when the optimizer follows a schedule.
  Tensor assign(const In& value, Where where = Where::here()) const;

 private:
  std::shared_ptr<CustomOptimizer> optimizer_;
};

struct WeightDecayExclusions {
  std::vector<Variable> var_list = {};
  std::vector<std::string> var_names = {};  // regular expressions that are found in a variable's name
};

/// An optimizer. Copies share it. All that it keeps (slots, the step count, the learning rate) is Variables: in a
/// traced step it is state, and assigning to learning_rate() needs no retrace.
class STET_API Optimizer {
 public:
  /// Undefined: any use is a UserError.
  Optimizer() = default;
  /// One of Keras's, with its defaults: "adam", "sgd", …; another name is a UserError that lists them.
  Optimizer(const char* name, Where where = Where::here());
  Optimizer(const std::string& name, Where where = Where::here()) : Optimizer(name.c_str(), where) {}
  template <class T>
  requires(OptimizerBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) Optimizer(T&& body)
      : Optimizer(FromBody{std::make_shared<std::remove_cvref_t<T>>(std::move(body))}) {}
  template <OptimizerBody T>
  Optimizer(std::shared_ptr<T> body) : Optimizer(FromBody{std::move(body)}) {}
  template <OptimizerBody T>
  Optimizer(T& body) = delete;

  bool defined() const { return body_ != nullptr; }
  /// One step. A variable whose gradient is undefined (the loss does not use it) is left as it is, with a warning on
  /// stderr the first time; when that holds for all of them, it is a UserError. Afterwards variables that a layer made
  /// with a constraint are put where it wants them.
  void apply_gradients(const std::vector<Tensor>& gradients, const std::vector<Variable>& variables,
                       Where where = Where::here()) const;
  /// What to differentiate instead of the loss: apply_gradients() undoes the scale. The loss itself without one.
  Tensor scale_loss(const Tensor& loss, Where where = Where::here()) const;
  /// These keep their size. Before the first step (UserError afterwards); each call replaces the one before.
  void exclude_from_weight_decay(WeightDecayExclusions exclusions, Where where = Where::here()) const;
  /// Gives variables their moving averages, if it keeps any. fit() ends with it.
  void finalize_variable_values(const std::vector<Variable>& variables, Where where = Where::here()) const;

  /// How often apply_gradients() was called.
  Variable iterations(Where where = Where::here()) const;
  CurrentLearningRate learning_rate(Where where = Where::here()) const;
  /// The step count, the learning rate unless it is a schedule, then the slots in the order they were made.
  std::vector<Variable> variables(Where where = Where::here()) const;
  const std::string& name(Where where = Where::here()) const;

  std::shared_ptr<inside::Body> body() const { return body_; }
  static Optimizer from_body(std::shared_ptr<inside::Body> body) { return Optimizer(FromBody{std::move(body)}); }
  CustomOptimizer& optimizer_body(const char* asked, Where where) const;

 protected:
  explicit Optimizer(FromBody from) : body_(std::move(from.body)) {}

 private:
  std::shared_ptr<inside::Body> body_;
};

}  // namespace stet::keras
