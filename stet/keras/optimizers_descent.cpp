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
};

class AdagradBody : public KerasOptimizer<AdagradOptions> {
 public:
  using KerasOptimizer::KerasOptimizer;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    Variable a =
        slot(variable, "accumulator", {.initializer = initializers::Constant(options_.initial_accumulator_value)});
    variable.assign_sub(rate * gradient / sqrt(a.assign_add(square(gradient)) + options_.epsilon));
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
};

class FtrlBody : public KerasOptimizer<FtrlOptions> {
 public:
  using KerasOptimizer::KerasOptimizer;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    const double power = -options_.learning_rate_power, l1 = options_.l1_regularization_strength;
    Variable a =
        slot(variable, "accumulator", {.initializer = initializers::Constant(options_.initial_accumulator_value)});
    Variable z = slot(variable, "linear");
    Tensor sum_before = a.read(), sum_now = sum_before + square(gradient);
    Tensor pushed = gradient + 2 * options_.l2_shrinkage_regularization_strength * variable;
    Tensor linear = z.assign_add(pushed - (powered(sum_now, power) - powered(sum_before, power)) / rate * variable);
    Tensor quadratic =
        powered(sum_now, power) / rate + 2 * (options_.l2_regularization_strength + options_.beta / (2 * rate));
    variable.assign((clip(linear, -l1, l1) - linear) / quadratic);
    a.assign(sum_now);
  }

 private:
  static Tensor powered(const Tensor& x, double power) { return power == 0.5 ? sqrt(x) : pow(x, power); }
};

}  // namespace

SGD::SGD(LearningRate learning_rate, SGDOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<SGDBody>("SGD", std::move(learning_rate), options, where)}) {
  check_option(options.momentum >= 0 && options.momentum <= 1, "SGD", "momentum", options.momentum,
               "it is between 0 and 1", where);
}

RMSprop::RMSprop(LearningRate learning_rate, RMSpropOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<RMSpropBody>("RMSprop", std::move(learning_rate), options, where)}) {
  check_fraction("RMSprop", "rho", options.rho, where);
  check_fraction("RMSprop", "momentum", options.momentum, where);
}

Adagrad::Adagrad(LearningRate learning_rate, AdagradOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdagradBody>("Adagrad", std::move(learning_rate), options, where)}) {
  check_option(options.initial_accumulator_value >= 0, "Adagrad", "initial_accumulator_value",
               options.initial_accumulator_value, "it is 0 or more", where);
}

Adadelta::Adadelta(LearningRate learning_rate, AdadeltaOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdadeltaBody>("Adadelta", std::move(learning_rate), options, where)}) {
  check_fraction("Adadelta", "rho", options.rho, where);
}

Lion::Lion(LearningRate learning_rate, LionOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<LionBody>("Lion", std::move(learning_rate), options, where)}) {
  check_option(options.beta_1 > 0 && options.beta_1 <= 1, "Lion", "beta_1", options.beta_1,
               "it is above 0 and at most 1: with 0 only the sign of the last gradient would count", where);
  check_fraction("Lion", "beta_2", options.beta_2, where);
}

Ftrl::Ftrl(LearningRate learning_rate, FtrlOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<FtrlBody>("Ftrl", std::move(learning_rate), options, where)}) {
  check_option(options.learning_rate_power <= 0, "Ftrl", "learning_rate_power", options.learning_rate_power,
               "it is 0 or less", where);
  auto check = [&](const char* option, double value) {
    check_option(value >= 0, "Ftrl", option, value, "it is 0 or more", where);
  };
  check("initial_accumulator_value", options.initial_accumulator_value);
  check("l1_regularization_strength", options.l1_regularization_strength);
  check("l2_regularization_strength", options.l2_regularization_strength);
  check("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
}

}  // namespace stet::keras
