// Adam and those that grew from it.
#include "stet/core/scope.h"
#include "stet/keras/optimizer_state.h"
#include "stet/keras/optimizers.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

/// What these keep: moving averages of gradients and of their squares.
template <class Options>
class AdamLike : public KerasOptimizer<Options> {
 public:
  using KerasOptimizer<Options>::KerasOptimizer;

 protected:
  /// The update's number t, from 1. 1 - beta^t loses most of its digits in f32 while t is small; these are single
  /// numbers, so f64 costs nothing.
  Tensor step() const { return cast(this->iterations() + 1, f64); }
  static Tensor of_type(const Tensor& value, const Variable& variable) { return cast(value, variable.dtype()); }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    this->add_slots(trainable, {"momentum", "velocity"}, out);
    return out;
  }

  Tensor momentum(const Tensor& gradient, const Variable& variable) const {
    Variable m = this->slot(variable, "momentum");
    return m.assign_add((gradient - m) * (1 - this->options_.beta_1));
  }
  Tensor velocity(const Tensor& gradient, const Variable& variable) const {
    Variable s = this->slot(variable, "velocity");
    return s.assign_add((square(gradient) - s) * (1 - this->options_.beta_2));
  }
};

template <class Options>
class AdamBody : public AdamLike<Options> {
 public:
  using AdamLike<Options>::AdamLike;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    const Options& options = this->options_;
    Tensor t = this->step();
    Tensor alpha = this->of_type(rate * sqrt(1 - pow(options.beta_2, t)) / (1 - pow(options.beta_1, t)), variable);
    Tensor m = this->momentum(gradient, variable), s = this->velocity(gradient, variable);
    if (options.amsgrad) {
      Variable largest = this->slot(variable, "velocity_hat");
      s = largest.assign(maximum(largest, s));
    }
    variable.assign_sub(m * alpha / (sqrt(s) + options.epsilon));
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out = AdamLike<Options>::slots_in_keras_order(trainable);
    if (this->options_.amsgrad) this->add_slots(trainable, {"velocity_hat"}, out);
    return out;
  }
};

class AdamaxBody : public AdamLike<AdamaxOptions> {
 public:
  using AdamLike::AdamLike;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    Tensor alpha = of_type(rate / (1 - pow(options_.beta_1, step())), variable);
    Tensor m = momentum(gradient, variable);
    Variable u = slot(variable, "norm");
    Tensor norm = u.assign(maximum(options_.beta_2 * u, abs(gradient)));
    variable.assign_sub(alpha * m / (norm + options_.epsilon));
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    add_slots(trainable, {"momentum", "norm"}, out);
    return out;
  }
};

class NadamBody : public AdamLike<NadamOptions> {
 public:
  using AdamLike::AdamLike;

  void begin_update() override {
    Variable product = all_momenta();
    product.assign(product * momentum_at(step()));
  }
  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    Tensor t = step(), now = momentum_at(t), next = momentum_at(t + 1), product = all_momenta().read();
    Tensor m = momentum(gradient, variable), s = velocity(gradient, variable);
    Tensor ahead =
        of_type(next / (1 - product * next), variable) * m + of_type((1 - now) / (1 - product), variable) * gradient;
    Tensor size = sqrt(s * of_type(1 / (1 - pow(options_.beta_2, t)), variable)) + options_.epsilon;
    variable.assign_sub(ahead * rate / size);
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out = AdamLike::slots_in_keras_order(trainable);
    out.push_back(all_momenta());
    return out;
  }

 private:
  Variable all_momenta() const { return slot("u_product", 1, f64); }
  Tensor momentum_at(const Tensor& t) const { return options_.beta_1 * (1 - 0.5 * pow(0.96, t)); }
};

class LambBody : public AdamLike<LambOptions> {
 public:
  using AdamLike::AdamLike;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    Tensor t = step();
    Tensor m = momentum(gradient, variable) * of_type(1 / (1 - pow(options_.beta_1, t)), variable);
    Tensor s = velocity(gradient, variable) * of_type(1 / (1 - pow(options_.beta_2, t)), variable);
    Tensor update = m / (sqrt(s) + options_.epsilon);
    Tensor length = sqrt(sum(square(variable))), update_length = sqrt(sum(square(update)));
    Tensor ratio = where((length > 0) & (update_length > 0), length / update_length, 1);
    variable.assign_sub(ratio * rate * update);
  }
};

/// Slots: "momentum" is the point that makes the steps, z.
class ScheduleFreeAdamWBody : public AdamLike<ScheduleFreeAdamWOptions> {
 public:
  using AdamLike::AdamLike;

  void build(const Variable& variable) override { point(variable); }

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    const double beta_1 = options_.beta_1;
    Tensor t = step();
    Tensor alpha = rate;
    if (options_.warmup_steps > 0)
      alpha = rate * of_type(minimum(t / static_cast<double>(options_.warmup_steps), 1), variable);
    Tensor s = velocity(gradient, variable) * of_type(1 / (1 - pow(options_.beta_2, t)), variable);
    Variable z = point(variable);
    Tensor z_before = z.read(), z_now = z.assign_sub(alpha * gradient / (sqrt(s) + options_.epsilon));
    Tensor part = of_type(1 / t, variable);
    Tensor mean_before = (variable - (1 - beta_1) * z_before) / beta_1;
    Tensor mean_now = (1 - part) * mean_before + part * z_now;
    variable.assign((1 - beta_1) * z_now + beta_1 * mean_now);
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    for (const Variable& variable : trainable) point(variable);
    return AdamLike::slots_in_keras_order(trainable);
  }

 private:
  Variable point(const Variable& variable) const {
    return slot(variable, "momentum", {.initializer = [&](const Shape&, DType) { return variable.read(); }});
  }
};

template <class Options>
void check_betas(const char* optimizer, const Options& options, Where where) {
  check_fraction(optimizer, "beta_1", options.beta_1, where);
  check_fraction(optimizer, "beta_2", options.beta_2, where);
}

// --- recipes

template <class Options>
void beta_fields(Fields& f, Options& options) {
  f("beta_1", options.beta_1);
  f("beta_2", options.beta_2);
  f("epsilon", options.epsilon);
}
template <class Options>
void adam_fields(Fields& f, Options& options) {
  beta_fields(f, options);
  f("amsgrad", options.amsgrad);
}
void schedule_free_fields(Fields& f, ScheduleFreeAdamWOptions& options) {
  beta_fields(f, options);
  f("warmup_steps", options.warmup_steps);
}
constexpr double schedule_free_rate = 0.0025;
using AdamRecipe = OptimizerRecipe<Adam, "Adam", usual_rate, AdamOptions, adam_fields>;
using AdamWRecipe = OptimizerRecipe<AdamW, "AdamW", usual_rate, AdamWOptions, adam_fields>;
using AdamaxRecipe = OptimizerRecipe<Adamax, "Adamax", usual_rate, AdamaxOptions, beta_fields>;
using NadamRecipe = OptimizerRecipe<Nadam, "Nadam", usual_rate, NadamOptions, beta_fields>;
using LambRecipe = OptimizerRecipe<Lamb, "Lamb", usual_rate, LambOptions, beta_fields>;
using ScheduleFreeAdamWRecipe = OptimizerRecipe<ScheduleFreeAdamW, "ScheduleFreeAdamW", schedule_free_rate,
                                                ScheduleFreeAdamWOptions, schedule_free_fields>;
const SavableAll<AdamRecipe, AdamWRecipe, AdamaxRecipe, NadamRecipe, LambRecipe, ScheduleFreeAdamWRecipe>
    savable_optimizers;

}  // namespace

Adam::Adam(LearningRate learning_rate, AdamOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdamBody<AdamOptions>>("Adam", learning_rate, options, where)}) {
  check_betas("Adam", options, where);
  note_optimizer<AdamRecipe>(*this, learning_rate, options);
}

AdamW::AdamW(LearningRate learning_rate, AdamWOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdamBody<AdamWOptions>>("AdamW", learning_rate, options, where)}) {
  check_betas("AdamW", options, where);
  note_optimizer<AdamWRecipe>(*this, learning_rate, options);
}

Adamax::Adamax(LearningRate learning_rate, AdamaxOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdamaxBody>("Adamax", learning_rate, options, where)}) {
  check_betas("Adamax", options, where);
  note_optimizer<AdamaxRecipe>(*this, learning_rate, options);
}

Nadam::Nadam(LearningRate learning_rate, NadamOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<NadamBody>("Nadam", learning_rate, options, where)}) {
  check_betas("Nadam", options, where);
  note_optimizer<NadamRecipe>(*this, learning_rate, options);
}

Lamb::Lamb(LearningRate learning_rate, LambOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<LambBody>("Lamb", learning_rate, options, where)}) {
  check_betas("Lamb", options, where);
  note_optimizer<LambRecipe>(*this, learning_rate, options);
}

ScheduleFreeAdamW::ScheduleFreeAdamW(LearningRate learning_rate, ScheduleFreeAdamWOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<ScheduleFreeAdamWBody>("ScheduleFreeAdamW", learning_rate, options, where)}) {
  check_betas("ScheduleFreeAdamW", options, where);
  check_option(options.beta_1 > 0, "ScheduleFreeAdamW", "beta_1", options.beta_1, "it is above 0 and below 1", where);
  check_option(options.warmup_steps >= 0, "ScheduleFreeAdamW", "warmup_steps",
               static_cast<double>(options.warmup_steps), "it is 0 or more", where);
  note_optimizer<ScheduleFreeAdamWRecipe>(*this, learning_rate, options);
}

}  // namespace stet::keras
