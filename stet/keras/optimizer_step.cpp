// What a step of every optimizer does around the update of each variable.
#include <optional>

#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/name_scope.h"
#include "stet/core/scope.h"
#include "stet/keras/constraint.h"
#include "stet/keras/optimizer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

using State = CustomOptimizer::State;
using Gradients = std::vector<Tensor>;
using Variables = std::vector<Variable>;
constexpr const char* step_name = "apply_gradients";

Tensor of_type(const Tensor& value, DType dtype) { return value.dtype() == dtype ? value : cast(value, dtype); }

/// The squared length. Squares of halves leave their range early.
Tensor squared_norm(const Tensor& x) { return sum(square(x.dtype() == f16 || x.dtype() == bf16 ? cast(x, f32) : x)); }

Gradients clipped(const OptimizerOptions& options, Gradients gradients, Where where) {
  Frame frame(step_name, where);
  if (options.clipnorm) {
    const double most = *options.clipnorm;
    for (Tensor& g : gradients) g = g * of_type(most / maximum(sqrt(squared_norm(g)), most), g.dtype());
  } else if (options.clipvalue) {
    for (Tensor& g : gradients) g = clip(g, -*options.clipvalue, *options.clipvalue);
  } else if (options.global_clipnorm) {
    const double most = *options.global_clipnorm;
    Tensor norm = zeros({}, f64);
    for (const Tensor& g : gradients) norm = norm + of_type(squared_norm(g), f64);
    norm = sqrt(norm);
    // A norm that is not finite makes all of them NaN, as in Keras: nothing else can be made of them.
    Tensor scale = most / maximum(norm, most) + (norm - norm);
    for (Tensor& g : gradients) g = g * of_type(scale, g.dtype());
  }
  return gradients;
}

bool decays(State& state, const Variable& variable) {
  std::lock_guard lock(state.guard);
  if (state.undecayed.contains(variable.id())) return false;
  for (const std::regex& name : state.undecayed_names)
    if (std::regex_search(variable.name(), name)) return false;
  return true;
}

void decay(const CustomOptimizer& optimizer, const Variables& variables, const Tensor& rate, Where where) {
  Frame frame(step_name, where);
  for (const Variable& variable : variables) {
    std::optional<double> part = optimizer.weight_decay_of(variable);
    if (part && decays(optimizer.state(), variable))
      variable.assign(variable - variable * *part * of_type(rate, variable.dtype()));
  }
}

/// Gradients are final: decay, then the optimizer's own rule for each variable.
void update(CustomOptimizer& optimizer, Gradients gradients, const Variables& variables, const Tensor& rate,
            Where where) {
  gradients = clipped(optimizer.state().options, std::move(gradients), where);
  decay(optimizer, variables, rate, where);
  std::optional<Frame> frame;
  if (dynamic_cast<LibraryOptimizer*>(&optimizer)) frame.emplace(step_name, where);
  optimizer.begin_update();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    NameScope name_scope(variables[i].name());
    optimizer.update_step(gradients[i], variables[i], of_type(rate, variables[i].dtype()));
  }
}

/// Moving averages, and what they overwrite. As in Keras the average is the variable until the second update.
void average(const OptimizerOptions& options, const Tensor& updates, const Variables& variables,
             const Variables& averages, Where where) {
  Frame frame(step_name, where);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Variable& variable = variables[i];
    Tensor momentum = cast(updates != 0, variable.dtype()) * options.ema_momentum;
    Tensor mean = averages[i].assign(momentum * averages[i] + (1 - momentum) * variable);
    if (options.ema_overwrite_frequency)
      variable.assign(stet::where((updates + 1) % *options.ema_overwrite_frequency == 0, mean, variable));
  }
}

void constrain(const Variables& variables, Where where) {
  for (const Variable& variable : variables) {
    Constraint constraint = constraint_of(variable);
    if (constraint.defined()) variable.assign(constraint(variable.read(where), where), where);
  }
}

}  // namespace

/// Two threads may both get there: slots are made once, whoever asks.
void ensure_built(CustomOptimizer& optimizer, const Variable& variable) {
  State& state = optimizer.state();
  {
    std::lock_guard lock(state.guard);
    if (state.built.contains(variable.id())) return;
  }
  optimizer.build(variable);
  std::lock_guard lock(state.guard);
  state.built.insert(variable.id());
}

void CustomOptimizer::apply(const std::vector<Tensor>& given, const std::vector<Variable>& variables, Where where) {
  State& state = *state_;
  const OptimizerOptions& options = state.options;
  Variables averages, sums;
  for (const Variable& variable : variables) {
    ensure_built(*this, variable);
    if (options.use_ema) averages.push_back(slot(variable, average_slot));
    if (options.gradient_accumulation_steps) sums.push_back(slot(variable, sum_slot));
  }
  Gradients gradients = given;
  if (options.loss_scale_factor)
    for (Tensor& g : gradients) g = divide(In(g, where), *options.loss_scale_factor);
  Tensor rate = rate_now(state, where);
  if (const std::optional<std::int64_t> steps = options.gradient_accumulation_steps) {
    for (std::size_t i = 0; i < sums.size(); ++i) gradients[i] = add(In(sums[i], where), gradients[i]);
    cond((state.iterations + 1) % *steps == 0,
         [&] {
           Gradients means = gradients;
           for (Tensor& g : means) g = divide(In(g, where), *steps);
           update(*this, std::move(means), variables, rate, where);
           for (const Variable& sum : sums) sum.assign(zeros_like(sum.read(where), where), where);
         },
         [&] {
           for (std::size_t i = 0; i < sums.size(); ++i) sums[i].assign(gradients[i], where);
         },
         where);
  } else {
    update(*this, std::move(gradients), variables, rate, where);
  }
  if (options.use_ema) average(options, iterations(), variables, averages, where);
  constrain(variables, where);
  state.iterations.assign_add(1, where);
}

void Optimizer::finalize_variable_values(const std::vector<Variable>& variables, Where where) const {
  CustomOptimizer& optimizer = optimizer_body("finalize_variable_values", where);
  if (optimizer.wrapped()) return optimizer.wrapped()->finalize_variable_values(variables, where);
  State& state = optimizer.state();
  for (const Variable& variable : variables) {
    Variable mean;
    {
      std::lock_guard lock(state.guard);
      auto found = state.slot_of.find(std::pair<std::uint64_t, std::string>(variable.id(), average_slot));
      if (found != state.slot_of.end()) mean = found->second;
    }
    if (mean.defined()) variable.assign(mean, where);
  }
}

}  // namespace stet::keras
