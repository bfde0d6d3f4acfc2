#include "stet/keras/optimizer.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/core/call.h"
#include "stet/core/scope.h"
#include "stet/keras/layer_state.h"
#include "stet/ops/ops.h"

namespace stet::keras {

struct CustomOptimizer::State {
  std::string name;
  Variable iterations, learning_rate;
  Lock guard;  // of what follows
  std::vector<Variable> slots;
  std::map<std::pair<std::uint64_t, std::string>, Variable, std::less<>> slot_of;  // by the Variable's id, never reused
  std::set<std::uint64_t> warned;                                                  // Variables without a gradient
};

CustomOptimizer::CustomOptimizer(std::string name, double learning_rate) : state_(std::make_unique<State>()) {
  InitScope outside;
  state_->iterations = Variable(tensor(std::int64_t{0}), {.trainable = false, .name = text(name, "/iterations")});
  state_->learning_rate =
      Variable(tensor(learning_rate), {.dtype = f32, .trainable = false, .name = text(name, "/learning_rate")});
  state_->name = std::move(name);
}
CustomOptimizer::CustomOptimizer(CustomOptimizer&&) noexcept = default;
CustomOptimizer::~CustomOptimizer() = default;

const std::string& CustomOptimizer::name() const { return state_->name; }
std::string CustomOptimizer::description() const { return text("optimizer '", name(), "'"); }
const Variable& CustomOptimizer::iterations() const { return state_->iterations; }

Variable CustomOptimizer::slot(const Variable& variable, std::string_view name) const {
  State& state = *state_;
  std::lock_guard lock(state.guard);
  Variable& slot = state.slot_of[{variable.id(), std::string(name)}];
  if (!slot.defined()) {
    InitScope outside;
    slot = Variable(zeros(variable.shape(), variable.dtype()),
                    {.trainable = false, .name = text(state.name, "/", variable.name(), "/", name)});
    state.slots.push_back(slot);
  }
  return slot;
}

CustomOptimizer& Optimizer::optimizer_body(const char* asked, Where where) const {
  if (!body_)
    throw UserError(
        error_text(text(asked, ": the optimizer is undefined"), where, "make one, as in keras::Adam(1e-3)"));
  return static_cast<CustomOptimizer&>(*body_);
}

namespace {

std::string name_of(const Variable& variable) {
  return variable.name().empty() ? text(variable.dtype(), variable.shape()) : text("'", variable.name(), "'");
}

/// SGD and Adam.
class LibraryOptimizer : public CustomOptimizer {
 public:
  using CustomOptimizer::CustomOptimizer;
};

/// Some of them, if there are many.
std::string names_of(const std::vector<Variable>& variables) {
  constexpr std::size_t most = 4;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(most, variables.size()); ++i) names.push_back(name_of(variables[i]));
  return text(joined(names, ", "), variables.size() > most ? text(" and ", variables.size() - most, " more") : "");
}

/// Says once for each Variable that it does not learn.
void warn(CustomOptimizer::State& state, const std::vector<Variable>& unused, Where where) {
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
  std::fputs(warning.c_str(), stderr);  // whole; std::cerr is not for several threads at once
}

}  // namespace

void Optimizer::apply_gradients(const std::vector<Tensor>& gradients, const std::vector<Variable>& variables,
                                Where where) const {
  CustomOptimizer& optimizer = optimizer_body("apply_gradients", where);
  if (gradients.size() != variables.size())
    throw UserError(
        error_text(text("apply_gradients: ", gradients.size(), " gradients for ", variables.size(), " variables"),
                   where, "give the gradients of exactly these variables, in their order"));
  std::vector<Variable> unused;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].defined())
      throw UserError(error_text(text("apply_gradients: variable ", i, " is undefined"), where, ""));
    if (!gradients[i].defined()) unused.push_back(variables[i]);
  }
  if (unused.size() == variables.size())
    throw UserError(
        error_text(variables.empty() ? "apply_gradients: there are no variables to train"
                                     : text("apply_gradients: none of the variables has a gradient: the loss "
                                            "does not depend on ",
                                            names_of(variables)),
                   where,
                   variables.empty() ? "the weights of a layer are there after its first call"
                                     : "compute the loss from these variables, after the GradientTape was made"));
  warn(optimizer.state(), unused, where);
  Tensor rate = optimizer.state().learning_rate.read(where);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Variable& variable = variables[i];
    if (gradients[i].rank() != variable.shape().rank())
      throw UserError(error_text(text("apply_gradients: the gradient ", described(gradients[i]), " does not fit ",
                                      name_of(variable), " of ", variable.dtype(), variable.shape()),
                                 where, "give the gradients in the order of the variables"));
    auto of_type = [&](const Tensor& t) {
      return t.dtype() == variable.dtype() ? t : cast(In(t, where), variable.dtype());
    };
    std::optional<Frame> frame;  // of ours: errors name the line that called the optimizer, not a line of the library
    if (dynamic_cast<LibraryOptimizer*>(&optimizer)) frame.emplace("apply_gradients", where);
    optimizer.update_step(of_type(gradients[i]), variable, of_type(rate));
  }
  optimizer.state().iterations.assign_add(1, where);
}

Variable Optimizer::iterations(Where where) const { return optimizer_body("iterations", where).state().iterations; }
Variable Optimizer::learning_rate(Where where) const {
  return optimizer_body("learning_rate", where).state().learning_rate;
}
std::vector<Variable> Optimizer::variables(Where where) const {
  CustomOptimizer::State& state = optimizer_body("variables", where).state();
  std::lock_guard lock(state.guard);
  std::vector<Variable> out{state.iterations, state.learning_rate};
  out.insert(out.end(), state.slots.begin(), state.slots.end());
  return out;
}

Optimizer::Optimizer(const char* name, Where where) {
  const std::string_view wanted(name);
  if (wanted == "adam")
    *this = Adam();
  else if (wanted == "sgd")
    *this = SGD();
  else
    throw UserError(error_text(text("there is no optimizer '", name, "'"), where, "one of adam, sgd; or an object"));
}

// --- SGD and Adam

namespace {

double checked_rate(double rate, const char* optimizer, Where where) {
  if (!(rate >= 0))
    throw UserError(error_text(text(optimizer, ": a learning rate of ", rate), where, "it is 0 or more"));
  return rate;
}
void check_below_one(double value, const char* option, const char* optimizer, Where where) {
  if (!(value >= 0 && value < 1))
    throw UserError(error_text(text(optimizer, ": ", option, " = ", value), where, "it is at least 0 and below 1"));
}

class SGDBody : public LibraryOptimizer {
 public:
  SGDBody(double rate, SGDOptions options) : LibraryOptimizer("sgd", rate), options_(options) {}

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

 private:
  SGDOptions options_;
};

class AdamBody : public LibraryOptimizer {
 public:
  AdamBody(double rate, AdamOptions options) : LibraryOptimizer("adam", rate), options_(options) {}

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    const auto& [beta_1, beta_2, epsilon] = options_;
    // 1 - beta^t loses most of its digits in f32 while t is small; these are two numbers, so f64 costs nothing.
    Tensor t = cast(iterations() + 1, f64);
    Tensor alpha = cast(rate * sqrt(1 - pow(beta_2, t)) / (1 - pow(beta_1, t)), variable.dtype());
    Variable m = slot(variable, "momentum"), s = slot(variable, "velocity");
    Tensor momentum = m.assign_add((gradient - m) * (1 - beta_1));
    Tensor velocity = s.assign_add((square(gradient) - s) * (1 - beta_2));
    variable.assign_sub(momentum * alpha / (sqrt(velocity) + epsilon));
  }

 private:
  AdamOptions options_;
};

}  // namespace

SGD::SGD(double learning_rate, SGDOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<SGDBody>(checked_rate(learning_rate, "SGD", where), options)}) {
  check_below_one(options.momentum, "momentum", "SGD", where);
}

Adam::Adam(double learning_rate, AdamOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdamBody>(checked_rate(learning_rate, "Adam", where), options)}) {
  check_below_one(options.beta_1, "beta_1", "Adam", where);
  check_below_one(options.beta_2, "beta_2", "Adam", where);
}

}  // namespace stet::keras
