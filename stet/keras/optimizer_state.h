// What stands behind every optimizer, and what Keras's own have in common. Not a public header.
#pragma once
#include <cstdint>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "stet/base/lock.h"
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

std::string lower_case(std::string text);

/// Those that the library wrote: errors name the line that called the optimizer, not one of the library.
class LibraryOptimizer : public CustomOptimizer {
 public:
  using CustomOptimizer::CustomOptimizer;
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

/// An option that is not what it must be is a UserError.
void check_option(bool fine, const char* optimizer, const char* option, double value, const char* advice, Where where);
/// At least 0 and below 1.
void check_fraction(const char* optimizer, const char* option, double value, Where where);

/// A regular expression that a user wrote.
std::regex pattern_of(const std::string& expression, const char* asked, Where where);

/// The rate for the step that is made now: as the schedule gives it, or f32.
Tensor rate_now(const CustomOptimizer::State& state, Where where);

}  // namespace stet::keras
