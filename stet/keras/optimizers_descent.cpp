// SGD, RMSprop, Adagrad, Adadelta, Lion and Ftrl.
#include "stet/core/scope.h"
#include "stet/keras/initializers.h"
#include "stet/keras/optimizer_state.h"
#include "stet/keras/optimizers.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class SGDBody : public KerasOptimizer<SGDOptions> {
 public:
  using KerasOptimizer::KerasOptimizer;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    Tensor step = gradient * rate;
    if (options_.momentum == 0) {
      variable.assign_sub(step);
      return;
    }
    Variable m = slot(variable, "momentum");
    Tensor momentum = m.assign(m * options_.momentum - step);
    variable.assign_add(options_.nesterov ? momentum * options_.momentum - step : momentum);
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    if (options_.momentum != 0) add_slots(trainable, {"momentum"}, out);
    return out;
  }
};

class RMSpropBody : public KerasOptimizer<RMSpropOptions> {
 public:
  using KerasOptimizer::KerasOptimizer;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    const double rho = options_.rho;
    Variable s = slot(variable, "velocity");
    Tensor velocity = s.assign(rho * s + (1 - rho) * square(gradient));
    if (options_.centered) {
      Variable mean = slot(variable, "average_gradient");
      velocity = velocity - square(mean.assign(rho * mean + (1 - rho) * gradient));
    }
    Tensor step = rate * gradient / sqrt(velocity + options_.epsilon);
    if (options_.momentum > 0) {
      Variable m = slot(variable, "momentum");
      step = m.assign(options_.momentum * m + step);
    }
    variable.assign_sub(step);
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    add_slots(trainable, {"velocity"}, out);
    if (options_.momentum > 0) add_slots(trainable, {"momentum"}, out);
    if (options_.centered) add_slots(trainable, {"average_gradient"}, out);
    return out;
  }
};

class AdagradBody : public KerasOptimizer<AdagradOptions> {
 public:
  using KerasOptimizer::KerasOptimizer;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    variable.assign_sub(rate * gradient / sqrt(accumulator(variable).assign_add(square(gradient)) + options_.epsilon));
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    for (const Variable& variable : trainable) out.push_back(accumulator(variable));
    return out;
  }

 private:
  Variable accumulator(const Variable& variable) const {
    return slot(variable, "accumulator", {.initializer = initializers::Constant(options_.initial_accumulator_value)});
  }
};

class AdadeltaBody : public KerasOptimizer<AdadeltaOptions> {
 public:
  using KerasOptimizer::KerasOptimizer;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    const double rho = options_.rho, epsilon = options_.epsilon;
    Variable gradients = slot(variable, "accumulated_grad"), steps = slot(variable, "accumulated_delta_var");
    Tensor gradients_now = gradients.assign(rho * gradients + (1 - rho) * square(gradient));
    Tensor step = sqrt(steps + epsilon) * gradient / sqrt(gradients_now + epsilon);
    steps.assign(rho * steps + (1 - rho) * square(step));
    variable.assign_sub(rate * step);
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    add_slots(trainable, {"accumulated_grad", "accumulated_delta_var"}, out);
    return out;
  }
};

class LionBody : public KerasOptimizer<LionOptions> {
 public:
  using KerasOptimizer::KerasOptimizer;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    const double beta_1 = options_.beta_1, beta_2 = options_.beta_2;
    Variable m = slot(variable, "momentum");
    variable.assign_sub(rate * sign(m * beta_1 + gradient * (1 - beta_1)));
    m.assign(m * beta_2 + gradient * (1 - beta_2));
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    add_slots(trainable, {"momentum"}, out);
    return out;
  }
};

class FtrlBody : public KerasOptimizer<FtrlOptions> {
 public:
  using KerasOptimizer::KerasOptimizer;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    const double power = -options_.learning_rate_power, l1 = options_.l1_regularization_strength;
    Variable a = accumulator(variable), z = slot(variable, "linear");
    Tensor sum_before = a.read(), sum_now = sum_before + square(gradient);
    Tensor pushed = gradient + 2 * options_.l2_shrinkage_regularization_strength * variable;
    Tensor linear = z.assign_add(pushed - (powered(sum_now, power) - powered(sum_before, power)) / rate * variable);
    Tensor quadratic =
        powered(sum_now, power) / rate + 2 * (options_.l2_regularization_strength + options_.beta / (2 * rate));
    variable.assign((clip(linear, -l1, l1) - linear) / quadratic);
    a.assign(sum_now);
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    for (const Variable& variable : trainable) {
      out.push_back(accumulator(variable));
      out.push_back(slot(variable, "linear"));
    }
    return out;
  }

 private:
  Variable accumulator(const Variable& variable) const {
    return slot(variable, "accumulator", {.initializer = initializers::Constant(options_.initial_accumulator_value)});
  }
  static Tensor powered(const Tensor& x, double power) { return power == 0.5 ? sqrt(x) : pow(x, power); }
};

// --- recipes

void sgd_fields(Fields& f, SGDOptions& options) {
  f("momentum", options.momentum);
  f("nesterov", options.nesterov);
}
void rmsprop_fields(Fields& f, RMSpropOptions& options) {
  f("rho", options.rho);
  f("momentum", options.momentum);
  f("epsilon", options.epsilon);
  f("centered", options.centered);
}
void adagrad_fields(Fields& f, AdagradOptions& options) {
  f("initial_accumulator_value", options.initial_accumulator_value);
  f("epsilon", options.epsilon);
}
void adadelta_fields(Fields& f, AdadeltaOptions& options) {
  f("rho", options.rho);
  f("epsilon", options.epsilon);
}
void lion_fields(Fields& f, LionOptions& options) {
  f("beta_1", options.beta_1);
  f("beta_2", options.beta_2);
}
void ftrl_fields(Fields& f, FtrlOptions& options) {
  f("learning_rate_power", options.learning_rate_power);
  f("initial_accumulator_value", options.initial_accumulator_value);
  f("l1_regularization_strength", options.l1_regularization_strength);
  f("l2_regularization_strength", options.l2_regularization_strength);
  f("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  f("beta", options.beta);
}
constexpr double sgd_rate = 0.01;
using SGDRecipe = OptimizerRecipe<SGD, "SGD", sgd_rate, SGDOptions, sgd_fields>;
using RMSpropRecipe = OptimizerRecipe<RMSprop, "RMSprop", usual_rate, RMSpropOptions, rmsprop_fields>;
using AdagradRecipe = OptimizerRecipe<Adagrad, "Adagrad", usual_rate, AdagradOptions, adagrad_fields>;
using AdadeltaRecipe = OptimizerRecipe<Adadelta, "Adadelta", usual_rate, AdadeltaOptions, adadelta_fields>;
using LionRecipe = OptimizerRecipe<Lion, "Lion", usual_rate, LionOptions, lion_fields>;
using FtrlRecipe = OptimizerRecipe<Ftrl, "Ftrl", usual_rate, FtrlOptions, ftrl_fields>;
const SavableAll<SGDRecipe, RMSpropRecipe, AdagradRecipe, AdadeltaRecipe, LionRecipe, FtrlRecipe> savable_optimizers;

}  // namespace

SGD::SGD(LearningRate learning_rate, SGDOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<SGDBody>("SGD", learning_rate, options, where)}) {
  check_option(options.momentum >= 0 && options.momentum <= 1, "SGD", "momentum", options.momentum,
               "it is between 0 and 1", where);
  note_optimizer<SGDRecipe>(*this, learning_rate, options);
}

RMSprop::RMSprop(LearningRate learning_rate, RMSpropOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<RMSpropBody>("RMSprop", learning_rate, options, where)}) {
  check_fraction("RMSprop", "rho", options.rho, where);
  check_fraction("RMSprop", "momentum", options.momentum, where);
  note_optimizer<RMSpropRecipe>(*this, learning_rate, options);
}

Adagrad::Adagrad(LearningRate learning_rate, AdagradOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdagradBody>("Adagrad", learning_rate, options, where)}) {
  check_option(options.initial_accumulator_value >= 0, "Adagrad", "initial_accumulator_value",
               options.initial_accumulator_value, "it is 0 or more", where);
  note_optimizer<AdagradRecipe>(*this, learning_rate, options);
}

Adadelta::Adadelta(LearningRate learning_rate, AdadeltaOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdadeltaBody>("Adadelta", learning_rate, options, where)}) {
  check_fraction("Adadelta", "rho", options.rho, where);
  note_optimizer<AdadeltaRecipe>(*this, learning_rate, options);
}

Lion::Lion(LearningRate learning_rate, LionOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<LionBody>("Lion", learning_rate, options, where)}) {
  check_option(options.beta_1 > 0 && options.beta_1 <= 1, "Lion", "beta_1", options.beta_1,
               "it is above 0 and at most 1: with 0 only the sign of the last gradient would count", where);
  check_fraction("Lion", "beta_2", options.beta_2, where);
  note_optimizer<LionRecipe>(*this, learning_rate, options);
}

Ftrl::Ftrl(LearningRate learning_rate, FtrlOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<FtrlBody>("Ftrl", learning_rate, options, where)}) {
  check_option(options.learning_rate_power <= 0, "Ftrl", "learning_rate_power", options.learning_rate_power,
               "it is 0 or less", where);
  auto check = [&](const char* option, double value) {
    check_option(value >= 0, "Ftrl", option, value, "it is 0 or more", where);
  };
  check("initial_accumulator_value", options.initial_accumulator_value);
  check("l1_regularization_strength", options.l1_regularization_strength);
  check("l2_regularization_strength", options.l2_regularization_strength);
  check("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  note_optimizer<FtrlRecipe>(*this, learning_rate, options);
}

}  // namespace stet::keras
