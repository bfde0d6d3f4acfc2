// What stands behind every optimizer, and what Keras's own have in common. Not a public header.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/lock.h"
#include "stet/keras/config.h"
#include "stet/keras/optimizer.h"

namespace stet::keras {

struct CustomOptimizer::State {
  std::string name;
  OptimizerOptions options;
  LearningRate::Rule schedule;  // none: the rate is a Variable
  Variable iterations, learning_rate;
  Lock guard;  // of what follows
  std::vector<Variable> slots;
  std::map<std::pair<std::uint64_t, std::string>, Variable, std::less<>> slot_of;  // by the Variable's id, never reused
  std::set<std::uint64_t> warned;                                                  // Variables without a gradient
  std::set<std::uint64_t> built;                                                   // Variables that had their build()
  std::set<std::uint64_t> undecayed;                                               // excluded from weight decay
  std::vector<std::regex> undecayed_names;
};

/// The slot of this name that goes with a variable, made if it is not there.
Variable slot_of(CustomOptimizer::State& state, const Variable& variable, std::string_view name,
                 const SlotOptions& options = {});
inline constexpr const char *average_slot = "average", *sum_slot = "gradient_accumulator";
/// The optimizer's build() for this variable, unless it has run.
void ensure_built(CustomOptimizer& optimizer, const Variable& variable);

std::string lower_case(std::string text);

/// Those that the library wrote: errors name the line that called the optimizer, not one of the library.
class LibraryOptimizer : public CustomOptimizer {
 public:
  using CustomOptimizer::CustomOptimizer;
  /// The slots that Keras has for these variables, in its order, made where they are not there yet; without averages
  /// and sums, which all optimizers have.
  virtual std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const = 0;

 protected:
  /// Of each variable the slots of these names, which start as zeros.
  void add_slots(const std::vector<Variable>& trainable, std::initializer_list<const char*> names,
                 std::vector<Variable>& to) const {
    for (const Variable& variable : trainable)
      for (const char* name : names) to.push_back(slot(variable, name));
  }
};

/// One of Keras's: its options, in its own struct. Errors name the class; without a name, it is called after it.
template <class Options>
class KerasOptimizer : public LibraryOptimizer {
 public:
  KerasOptimizer(const char* class_name, LearningRate rate, Options options, Where where)
      : LibraryOptimizer(class_name, std::move(rate), shared(options, class_name), where),
        options_(std::move(options)) {}

 protected:
  const Options options_;

 private:
  static OptimizerOptions shared(const Options& of, const char* class_name) {
    return {.weight_decay = of.weight_decay,
            .clipnorm = of.clipnorm,
            .clipvalue = of.clipvalue,
            .global_clipnorm = of.global_clipnorm,
            .use_ema = of.use_ema,
            .ema_momentum = of.ema_momentum,
            .ema_overwrite_frequency = of.ema_overwrite_frequency,
            .loss_scale_factor = of.loss_scale_factor,
            .gradient_accumulation_steps = of.gradient_accumulation_steps,
            .name = of.name.empty() ? lower_case(class_name) : of.name};
  }
};

// --- recipes

/// "learning_rate": a schedule, or the number that it is now.
void rate_field(Fields& f, LearningRate& learning_rate, const Variable& now);

template <class Options>
void shared_fields(Fields& f, Options& options) {
  f("weight_decay", options.weight_decay);
  f("clipnorm", options.clipnorm);
  f("global_clipnorm", options.global_clipnorm);
  f("clipvalue", options.clipvalue);
  f("use_ema", options.use_ema);
  f("ema_momentum", options.ema_momentum);
  f("ema_overwrite_frequency", options.ema_overwrite_frequency);
  f("loss_scale_factor", options.loss_scale_factor);
  f("gradient_accumulation_steps", options.gradient_accumulation_steps);
}

inline constexpr double usual_rate = 1e-3;
/// A class of optimizers, whose rate is `own_rate` where none is given: `own` reads and writes what it has besides.
template <class Self, Literal class_name_of, const double& own_rate, class Options, void (*own)(Fields&, Options&)>
struct OptimizerRecipe {
  static constexpr const char *module = "keras.optimizers", *class_name = class_name_of.text;
  LearningRate learning_rate = own_rate;
  Options options = {};
  Variable rate_now = {};  // unless it is a schedule
  void fields(Fields& f) {
    f("name", options.name);
    rate_field(f, learning_rate, rate_now);
    shared_fields(f, options);
    own(f, options);
  }
  Optimizer make(Where where) const { return Self(learning_rate, options, where); }
};
/// Notes what an optimizer was made from, with the name that it has.
template <class R, class Options>
void note_optimizer(Optimizer& optimizer, LearningRate learning_rate, Options options) {
  const CustomOptimizer::State& state = optimizer.optimizer_body("", {}).state();
  options.name = state.name;
  note_recipe(optimizer, R{std::move(learning_rate), std::move(options), state.learning_rate});
}

/// An option that is not what it must be is a UserError.
void check_option(bool fine, const char* optimizer, const char* option, double value, const char* advice, Where where);
/// At least 0 and below 1.
void check_fraction(const char* optimizer, const char* option, double value, Where where);

/// A regular expression that a user wrote.
std::regex pattern_of(const std::string& expression, const char* asked, Where where);

/// The rate for the step that is made now: as the schedule gives it, or f32.
Tensor rate_now(const CustomOptimizer::State& state, Where where);

}  // namespace stet::keras
