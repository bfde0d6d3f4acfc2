#include "stet/keras/optimizer_variables.h"

#include <set>

#include "stet/keras/optimizer_state.h"

namespace stet::keras {
namespace {

using Variables = std::vector<Variable>;

void append(Variables& to, const Variables& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Slots in the order in which they were made, but for those that are listed already.
Variables slots_as_made(CustomOptimizer& optimizer, const Variables& trainable, const Variables& listed) {
  for (const Variable& variable : trainable) ensure_built(optimizer, variable);
  std::set<std::uint64_t> known;
  for (const Variable& variable : listed) known.insert(variable.id());
  CustomOptimizer::State& state = optimizer.state();
  std::lock_guard lock(state.guard);
  Variables out;
  for (const Variable& slot : state.slots)
    if (!known.contains(slot.id())) out.push_back(slot);
  return out;
}

}  // namespace

Variables variables_in_keras_order(const Optimizer& optimizer, const Variables& trainable, Where where) {
  CustomOptimizer& body = optimizer.optimizer_body("variables", where);
  const CustomOptimizer::State& state = body.state();
  Variables out{state.iterations};
  if (!state.schedule) out.push_back(state.learning_rate);
  if (state.options.use_ema)
    for (const Variable& variable : trainable) out.push_back(slot_of(body.state(), variable, average_slot));
  if (state.options.gradient_accumulation_steps)
    for (const Variable& variable : trainable) out.push_back(slot_of(body.state(), variable, sum_slot));
  const auto* of_keras = dynamic_cast<const LibraryOptimizer*>(&body);
  append(out, of_keras ? of_keras->slots_in_keras_order(trainable) : slots_as_made(body, trainable, out));
  if (body.wrapped()) append(out, variables_in_keras_order(*body.wrapped(), trainable, where));
  return out;
}

}  // namespace stet::keras
