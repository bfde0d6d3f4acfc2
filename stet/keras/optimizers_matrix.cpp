// Adafactor and Muon, which look at matrices as such.
#include <algorithm>
#include <cmath>
#include <regex>

#include "stet/base/text.h"
#include "stet/keras/optimizer_state.h"
#include "stet/keras/optimizers.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

class AdafactorBody : public KerasOptimizer<AdafactorOptions> {
 public:
  using KerasOptimizer::KerasOptimizer;

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& given_rate) override {
    Tensor t = cast(iterations() + 1, f64);
    Tensor rate = minimum(given_rate, of_type(1 / sqrt(t), variable));
    Tensor alpha = maximum(options_.epsilon_2, root_mean_square(variable)) * rate;
    Tensor squares = square(gradient) + options_.epsilon_1;
    Tensor kept = of_type(1 - pow(t, options_.beta_2_decay), variable);
    Tensor update = gradient / sqrt(velocity(squares, kept, variable));
    variable.assign_sub(alpha * update / maximum(1, root_mean_square(update) / options_.clip_threshold));
  }
  /// Keras keeps three for each variable: of matrices the product of rows and columns, of others one number for each of
  /// those, which it does not use.
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    for (const Variable& variable : trainable) {
      const bool matrix = variable.shape().rank() >= 2;
      auto unused = [&](const Shape& shape, DType dtype) {
        return Variable(zeros(shape, dtype), {.trainable = false, .name = text(name(), "/unused")});
      };
      out.push_back(matrix ? rows(variable) : unused({}, i32));
      out.push_back(matrix ? columns(variable) : unused({}, i32));
      out.push_back(matrix ? unused(variable.shape(), variable.dtype()) : slot(variable, "velocity"));
    }
    return out;
  }

 private:
  static Tensor of_type(const Tensor& value, const Variable& variable) { return cast(value, variable.dtype()); }
  static Tensor root_mean_square(const Tensor& x) { return sqrt(mean(square(x))); }

  /// The moving average of the squares; of matrices, as a product of those of rows and columns.
  Tensor velocity(const Tensor& squares, const Tensor& kept, const Variable& variable) const {
    auto moved = [&](const Variable& slot, const Tensor& value) {
      return slot.assign(kept * slot + (1 - kept) * value);
    };
    if (variable.shape().rank() < 2) return moved(slot(variable, "velocity"), squares);
    Tensor of_rows = moved(rows(variable), mean(squares, -1));
    Tensor of_columns = moved(columns(variable), mean(squares, -2));
    return expand_dims(of_rows / mean(of_rows, -1, {.keepdims = true}), -1) * expand_dims(of_columns, -2);
  }

  Variable rows(const Variable& variable) const {
    return slot(variable, "rows", {.shape = without_axis(variable.shape(), 1)});
  }
  Variable columns(const Variable& variable) const {
    return slot(variable, "columns", {.shape = without_axis(variable.shape(), 2)});
  }
  static Shape without_axis(const Shape& shape, int from_end) {
    Shape out;
    for (int axis = 0; axis < shape.rank(); ++axis)
      if (axis != shape.rank() - from_end) out.push_back(shape[axis]);
    return out;
  }
};

class MuonBody : public KerasOptimizer<MuonOptions> {
 public:
  MuonBody(LearningRate rate, const MuonOptions& options, Where where)
      : KerasOptimizer("Muon", std::move(rate), options, where) {
    for (const std::string& name : options.exclude_layers)
      excluded_.push_back(pattern_of(name, "Muon: exclude_layers", where));
  }

  std::optional<double> weight_decay_of(const Variable& variable) const override {
    return is_adams(variable) ? options_.adam_weight_decay : options_.weight_decay;
  }

  void update_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) override {
    if (is_adams(variable))
      adam_step(gradient, variable, rate * options_.adam_lr_ratio);
    else
      muon_step(gradient, variable, rate);
  }
  std::vector<Variable> slots_in_keras_order(const std::vector<Variable>& trainable) const override {
    std::vector<Variable> out;
    for (const Variable& variable : trainable) {
      out.push_back(slot(variable, "momentum"));
      if (is_adams(variable)) out.push_back(slot(variable, "velocity"));
    }
    return out;
  }

 private:
  bool is_adams(const Variable& variable) const {
    if (variable.shape().rank() != 2) return true;
    if (options_.exclude_embeddings && lower_case(variable.name()).find("embedding") != std::string::npos) return true;
    return std::ranges::any_of(excluded_,
                               [&](const std::regex& name) { return std::regex_search(variable.name(), name); });
  }

  void adam_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) const {
    const double beta_1 = options_.adam_beta_1, beta_2 = options_.adam_beta_2;
    Tensor t = cast(iterations() + 1, f64);
    Tensor alpha = cast(rate * sqrt(1 - pow(beta_2, t)) / (1 - pow(beta_1, t)), variable.dtype());
    Variable m = slot(variable, "momentum"), s = slot(variable, "velocity");
    Tensor momentum = m.assign_add((gradient - m) * (1 - beta_1));
    Tensor velocity = s.assign_add((square(gradient) - s) * (1 - beta_2));
    variable.assign_sub(momentum * alpha / (sqrt(velocity) + options_.epsilon));
  }

  void muon_step(const Tensor& gradient, const Variable& variable, const Tensor& rate) const {
    Variable m = slot(variable, "momentum");
    Tensor momentum = m.assign_add(gradient + m * (options_.momentum - 1));
    Tensor wanted = options_.nesterov ? gradient + options_.momentum * momentum : momentum;
    Tensor update = rate * orthogonalized(wanted, variable);
    // The update's elements get the same size whatever the matrix's is.
    if (options_.rms_rate)
      update =
          update * (std::sqrt(static_cast<double>(std::max(rows(variable), columns(variable)))) * *options_.rms_rate);
    variable.assign_sub(update);
  }

  static std::int64_t rows(const Variable& variable) { return variable.shape()[0].value(); }
  static std::int64_t columns(const Variable& variable) { return variable.shape()[1].value(); }

  /// Singular values go towards 1: a Newton-Schulz iteration, on the side with fewer products.
  Tensor orthogonalized(Tensor x, const Variable& variable) const {
    const bool tall = rows(variable) > columns(variable);
    if (tall) x = matrix_transpose(x);
    x = x / (sqrt(sum(square(x))) + 1e-7);
    for (int i = 0; i < options_.ns_steps; ++i) {
      Tensor a = matmul(x, x, {.transpose_b = true});
      Tensor b = options_.muon_b * a + options_.muon_c * matmul(a, a);
      x = options_.muon_a * x + matmul(b, x);
    }
    return tall ? matrix_transpose(x) : x;
  }

  std::vector<std::regex> excluded_;
};

// --- recipes

void adafactor_fields(Fields& f, AdafactorOptions& options) {
  f("beta_2_decay", options.beta_2_decay);
  f("epsilon_1", options.epsilon_1);
  f("epsilon_2", options.epsilon_2);
  f("clip_threshold", options.clip_threshold);
  f("relative_step", options.relative_step);
}

/// Regular expressions of a file: short ones that are searched for quickly, whatever the names are.
void check_patterns(Fields& f, const std::vector<std::string>& patterns) {
  constexpr std::size_t most_letters = 100, most_repeats = 3;
  for (const std::string& pattern : patterns) {
    const auto repeats = static_cast<std::size_t>(
        std::ranges::count_if(pattern, [](char c) { return c == '*' || c == '+' || c == '?'; }));
    if (pattern.size() > most_letters || repeats > most_repeats || pattern.find_first_of("(){}\\") != std::string::npos)
      f.place().fail(text("its 'exclude_layers' have the expression '", pattern.substr(0, most_letters), "'"),
                     "in files expressions have at most 100 letters, three of * + ? and none of ( ) { } \\");
  }
}
void muon_fields(Fields& f, MuonOptions& options) {
  f("adam_beta_1", options.adam_beta_1);
  f("adam_beta_2", options.adam_beta_2);
  f("epsilon", options.epsilon);
  f("exclude_layers", options.exclude_layers);
  if (f.reading()) check_patterns(f, options.exclude_layers);
  f("muon_a", options.muon_a);
  f("muon_b", options.muon_b);
  f("muon_c", options.muon_c);
  f("adam_lr_ratio", options.adam_lr_ratio);
  f("momentum", options.momentum);
  f("ns_steps", options.ns_steps);
  f.at_most("ns_steps", options.ns_steps, 1000);  // each is part of a trace
  f("nesterov", options.nesterov);
  f("exclude_embeddings", options.exclude_embeddings);
  f("adam_weight_decay", options.adam_weight_decay);
  f("rms_rate", options.rms_rate);
}
using AdafactorRecipe = OptimizerRecipe<Adafactor, "Adafactor", usual_rate, AdafactorOptions, adafactor_fields>;
using MuonRecipe = OptimizerRecipe<Muon, "Muon", usual_rate, MuonOptions, muon_fields>;
const SavableAll<AdafactorRecipe, MuonRecipe> savable_optimizers;

}  // namespace

Adafactor::Adafactor(LearningRate learning_rate, AdafactorOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdafactorBody>("Adafactor", learning_rate, options, where)}) {
  check_option(options.clip_threshold > 0, "Adafactor", "clip_threshold", options.clip_threshold, "it is more than 0",
               where);
  note_optimizer<AdafactorRecipe>(*this, learning_rate, options);
}

Muon::Muon(LearningRate learning_rate, MuonOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<MuonBody>(learning_rate, options, where)}) {
  check_fraction("Muon", "adam_beta_1", options.adam_beta_1, where);
  check_fraction("Muon", "adam_beta_2", options.adam_beta_2, where);
  check_fraction("Muon", "momentum", options.momentum, where);
  check_option(options.ns_steps >= 0, "Muon", "ns_steps", options.ns_steps, "it is 0 or more", where);
  if (options.adam_weight_decay)
    check_option(*options.adam_weight_decay >= 0, "Muon", "adam_weight_decay", *options.adam_weight_decay,
                 "it is 0 or more", where);
  note_optimizer<MuonRecipe>(*this, learning_rate, options);
}

}  // namespace stet::keras
