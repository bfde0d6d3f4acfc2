#include "stet/keras/optimizer.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/name_scope.h"
#include "stet/core/scope.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/optimizer_state.h"
#include "stet/ops/ops.h"
#include "stet/runtime/log.h"

namespace stet::keras {
namespace {

std::string name_of(const Variable& variable) {
  return variable.name().empty() ? text(variable.dtype(), variable.shape()) : text("'", variable.name(), "'");
}

/// Some of them, if there are many.
std::string names_of(const std::vector<Variable>& variables) {
  constexpr std::size_t most = 4;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(most, variables.size()); ++i) names.push_back(name_of(variables[i]));
  return text(joined(names, ", "), variables.size() > most ? text(" and ", variables.size() - most, " more") : "");
}

/// Says once for each Variable that it does not learn.
void tell_unused(CustomOptimizer::State& state, const std::vector<Variable>& unused, Where where) {
  std::vector<std::string> names;
  {
    std::lock_guard lock(state.guard);
    for (const Variable& variable : unused)
      if (state.warned.insert(variable.id()).second) names.push_back(name_of(variable));
  }
  if (names.empty()) return;
  const std::string warning =
      text("stet: apply_gradients: there is no gradient for ", joined(names, ", "),
           ", on which the loss does not depend: left unchanged", at_line(where, ", at "), "\n");
  warn("keras", warning);
}

void check_options(const OptimizerOptions& options, const char* name, Where where) {
  const auto positive = "it is more than 0";
  auto check_positive = [&](const std::optional<double>& value, const char* option) {
    if (value) check_option(*value > 0, name, option, *value, positive, where);
  };
  if (options.weight_decay)
    check_option(*options.weight_decay >= 0, name, "weight_decay", *options.weight_decay, "it is 0 or more", where);
  check_positive(options.clipnorm, "clipnorm");
  check_positive(options.clipvalue, "clipvalue");
  check_positive(options.global_clipnorm, "global_clipnorm");
  check_positive(options.loss_scale_factor, "loss_scale_factor");
  if (options.clipnorm.has_value() + options.clipvalue.has_value() + options.global_clipnorm.has_value() > 1)
    throw UserError(error_text(text(name, ": gradients are clipped in more than one way"), where,
                               "give one of clipnorm, clipvalue and global_clipnorm"));
  check_option(options.ema_momentum >= 0 && options.ema_momentum <= 1, name, "ema_momentum", options.ema_momentum,
               "it is between 0 and 1", where);
  if (options.ema_overwrite_frequency)
    check_option(*options.ema_overwrite_frequency >= 1, name, "ema_overwrite_frequency",
                 static_cast<double>(*options.ema_overwrite_frequency), "it is a number of updates, 1 or more", where);
  if (options.gradient_accumulation_steps)
    check_option(*options.gradient_accumulation_steps >= 2, name, "gradient_accumulation_steps",
                 static_cast<double>(*options.gradient_accumulation_steps),
                 "2 or more; without it, every step is an update", where);
}

}  // namespace

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

void check_option(bool fine, const char* optimizer, const char* option, double value, const char* advice, Where where) {
  if (!fine) throw UserError(error_text(text(optimizer, ": ", option, " = ", value), where, advice));
}
void check_fraction(const char* optimizer, const char* option, double value, Where where) {
  check_option(value >= 0 && value < 1, optimizer, option, value, "it is at least 0 and below 1", where);
}

std::regex pattern_of(const std::string& expression, const char* asked, Where where) {
  try {
    return std::regex(expression);
  } catch (const std::regex_error& error) {
    throw UserError(error_text(text(asked, ": '", expression, "' is no regular expression: ", error.what()), where,
                               "write \\\\ before what is meant literally"));
  }
}

void rate_field(Fields& f, LearningRate& learning_rate, const Variable& now) {
  constexpr const char* name = "learning_rate";
  if (!f.reading()) {
    if (learning_rate.is_schedule())
      f.put(name, to_config(learning_rate.recipe(), text("its ", name), f.place()));
    else
      f.put(name, now.read(f.where()).item<double>({}, f.where()));
    return;
  }
  const Json* given = f.take(name);
  if (!given) return;
  if (given->if_object()) {
    f.place().path.emplace_back(name);
    learning_rate = from_config<schedules::Schedule>(*given, "learning rate schedule", f.place());
    f.place().path.pop_back();
  } else {
    double rate = 0;
    f(name, rate);
    learning_rate = rate;
  }
}

Tensor rate_now(const CustomOptimizer::State& state, Where where) {
  if (!state.schedule) return state.learning_rate.read(where);
  Tensor rate = state.schedule(state.iterations.read(where));
  if (!rate.defined() || rate.rank() != 0 || !is_floating(rate.dtype()))
    throw UserError(error_text(text("the schedule of optimizer '", state.name, "' gave ",
                                    rate.defined() ? described(rate) : std::string("an undefined tensor")),
                               where, "a rate is a floating tensor without axes"));
  return rate;
}

// --- bodies

CustomOptimizer::CustomOptimizer(std::string name, LearningRate learning_rate, OptimizerOptions options, Where where)
    : state_(std::make_unique<State>()) {
  check_options(options, name.c_str(), where);
  if (!learning_rate.is_schedule() && !(learning_rate.rate() >= 0))
    throw UserError(error_text(text(name, ": a learning rate of ", learning_rate.rate()), where, "it is 0 or more"));
  State& state = *state_;
  state.name = options.name.empty() ? std::move(name) : options.name;
  state.schedule = learning_rate.schedule();
  state.options = std::move(options);
  InitScope outside;
  state.iterations = Variable(tensor(std::int64_t{0}), {.trainable = false, .name = text(state.name, "/iterations")});
  if (!state.schedule)
    state.learning_rate = Variable(tensor(learning_rate.rate()),
                                   {.dtype = f32, .trainable = false, .name = text(state.name, "/learning_rate")});
}
CustomOptimizer::CustomOptimizer(CustomOptimizer&&) noexcept = default;
CustomOptimizer::~CustomOptimizer() = default;

void CustomOptimizer::build(const Variable&) {}
void CustomOptimizer::begin_update() {}
std::optional<double> CustomOptimizer::weight_decay_of(const Variable&) const { return state_->options.weight_decay; }
const Optimizer* CustomOptimizer::wrapped() const { return nullptr; }

const std::string& CustomOptimizer::name() const { return state_->name; }
std::string CustomOptimizer::description() const { return text("optimizer '", name(), "'"); }

Tensor CustomOptimizer::iterations() const {
  const std::optional<std::int64_t>& steps = state_->options.gradient_accumulation_steps;
  Tensor made = state_->iterations.read();
  return steps ? floor_divide(made, *steps) : made;
}

Tensor CustomOptimizer::scale_loss(const Tensor& loss, Where where) const {
  const std::optional<double>& factor = state_->options.loss_scale_factor;
  return factor ? multiply(In(loss, where), *factor) : loss;
}

namespace {

/// The slot of this name, or the one that `make` gives.
template <class Make>
Variable found_or_made(CustomOptimizer::State& state, std::uint64_t owner, std::string_view name, Make make) {
  const std::pair<std::uint64_t, std::string> key{owner, name};
  {
    std::lock_guard lock(state.guard);
    if (auto found = state.slot_of.find(key); found != state.slot_of.end()) return found->second;
  }
  InitScope outside;
  Variable made = make();  // without the lock: an initializer may be user's code
  std::lock_guard lock(state.guard);
  auto [place, is_new] = state.slot_of.try_emplace(key, made);
  if (is_new) state.slots.push_back(made);
  return place->second;
}

}  // namespace

Variable slot_of(CustomOptimizer::State& state, const Variable& variable, std::string_view name,
                 const SlotOptions& options) {
  return found_or_made(state, variable.id(), name, [&] {
    Shape shape = options.shape ? *options.shape : variable.shape();
    Initializer initializer = options.initializer.defined() ? options.initializer : "zeros";
    return Variable(initializer(shape, variable.dtype()),
                    {.trainable = false, .name = text(state.name, "/", variable.name(), "/", name)});
  });
}
Variable CustomOptimizer::slot(const Variable& variable, std::string_view name, const SlotOptions& options) const {
  return slot_of(*state_, variable, name, options);
}

Variable CustomOptimizer::slot(std::string_view name, double initial, DType dtype) const {
  return found_or_made(*state_, 0, name, [&] {
    return Variable(full({}, initial, dtype), {.trainable = false, .name = text(state_->name, "/", name)});
  });
}

// --- the learning rate

Tensor CurrentLearningRate::read(Where where) const {
  Tensor rate = rate_now(optimizer_->state(), where);
  return rate.dtype() == f32 ? rate : cast(In(rate, where), f32);
}
Tensor CurrentLearningRate::assign(const In& value, Where where) const {
  CustomOptimizer::State& state = optimizer_->state();
  if (state.schedule)
    throw UserError(error_text(text("learning_rate: optimizer '", state.name, "' follows a schedule"), where,
                               "to assign to the rate, make the optimizer with a number"));
  return state.learning_rate.assign(value, where);
}

// --- handles

CustomOptimizer& Optimizer::optimizer_body(const char* asked, Where where) const {
  if (!body_)
    throw UserError(
        error_text(text(asked, ": the optimizer is undefined"), where, "make one, as in keras::Adam(1e-3)"));
  return static_cast<CustomOptimizer&>(*body_);
}

void Optimizer::apply_gradients(const std::vector<Tensor>& gradients, const std::vector<Variable>& variables,
                                Where where) const {
  CustomOptimizer& optimizer = optimizer_body("apply_gradients", where);
  if (gradients.size() != variables.size())
    throw UserError(
        error_text(text("apply_gradients: ", gradients.size(), " gradients for ", variables.size(), " variables"),
                   where, "give the gradients of exactly these variables, in their order"));
  NameScope name_scope(optimizer.name());
  std::vector<Variable> used, unused;
  std::vector<Tensor> typed;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Variable& variable = variables[i];
    const Tensor& gradient = gradients[i];
    if (!variable.defined())
      throw UserError(error_text(text("apply_gradients: variable ", i, " is undefined"), where, ""));
    if (!gradient.defined()) {
      unused.push_back(variable);
      continue;
    }
    if (gradient.rank() != variable.shape().rank())
      throw UserError(error_text(text("apply_gradients: the gradient ", described(gradient), " does not fit ",
                                      name_of(variable), " of ", variable.dtype(), variable.shape()),
                                 where, "give the gradients in the order of the variables"));
    used.push_back(variable);
    typed.push_back(gradient.dtype() == variable.dtype() ? gradient : cast(In(gradient, where), variable.dtype()));
  }
  if (used.empty())
    throw UserError(
        error_text(variables.empty() ? "apply_gradients: there are no variables to train"
                                     : text("apply_gradients: none of the variables has a gradient: the loss "
                                            "does not depend on ",
                                            names_of(variables)),
                   where,
                   variables.empty() ? "the weights of a layer are there after its first call"
                                     : "compute the loss from these variables, after the GradientTape was made"));
  tell_unused(optimizer.state(), unused, where);
  optimizer.apply(typed, used, where);
}

Tensor Optimizer::scale_loss(const Tensor& loss, Where where) const {
  return optimizer_body("scale_loss", where).scale_loss(loss, where);
}

void Optimizer::exclude_from_weight_decay(WeightDecayExclusions exclusions, Where where) const {
  CustomOptimizer& optimizer = optimizer_body("exclude_from_weight_decay", where);
  if (const Optimizer* inner = optimizer.wrapped()) return inner->exclude_from_weight_decay(exclusions, where);
  std::set<std::uint64_t> variables;
  for (const Variable& variable : exclusions.var_list) {
    if (!variable.defined())
      throw UserError(error_text("exclude_from_weight_decay: a variable is undefined", where, ""));
    variables.insert(variable.id());
  }
  std::vector<std::regex> names;
  for (const std::string& name : exclusions.var_names)
    names.push_back(pattern_of(name, "exclude_from_weight_decay", where));
  CustomOptimizer::State& state = optimizer.state();
  std::lock_guard lock(state.guard);
  if (!state.built.empty())
    throw UserError(error_text(text("exclude_from_weight_decay: optimizer '", state.name, "' has made steps"), where,
                               "exclude variables before the first step: traced steps would not see it"));
  state.undecayed = std::move(variables);
  state.undecayed_names = std::move(names);
}

Variable Optimizer::iterations(Where where) const {
  CustomOptimizer& optimizer = optimizer_body("iterations", where);
  return optimizer.wrapped() ? optimizer.wrapped()->iterations(where) : optimizer.state().iterations;
}
CurrentLearningRate Optimizer::learning_rate(Where where) const {
  CustomOptimizer& optimizer = optimizer_body("learning_rate", where);
  if (optimizer.wrapped()) return optimizer.wrapped()->learning_rate(where);
  return CurrentLearningRate(std::static_pointer_cast<CustomOptimizer>(body_));
}
const std::string& Optimizer::name(Where where) const { return optimizer_body("name", where).name(); }

std::vector<Variable> Optimizer::variables(Where where) const {
  CustomOptimizer& optimizer = optimizer_body("variables", where);
  CustomOptimizer::State& state = optimizer.state();
  std::vector<Variable> out;
  if (optimizer.wrapped()) {
    out = optimizer.wrapped()->variables(where);
  } else {
    out.push_back(state.iterations);
    if (!state.schedule) out.push_back(state.learning_rate);
  }
  std::lock_guard lock(state.guard);
  out.insert(out.end(), state.slots.begin(), state.slots.end());
  return out;
}

}  // namespace stet::keras
