// Adafactor and Muon, which look at matrices as such.
#include <algorithm>
#include <cmath>
#include <regex>

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

 private:
  static Tensor of_type(const Tensor& value, const Variable& variable) { return cast(value, variable.dtype()); }
  static Tensor root_mean_square(const Tensor& x) { return sqrt(mean(square(x))); }

  /// The moving average of the squares; of matrices, as a product of those of rows and columns.
  Tensor velocity(const Tensor& squares, const Tensor& kept, const Variable& variable) const {
    auto moved = [&](const Variable& slot, const Tensor& value) {
      return slot.assign(kept * slot + (1 - kept) * value);
    };
    const Shape shape = variable.shape();
    if (shape.rank() < 2) return moved(slot(variable, "velocity"), squares);
    Shape of_rows, of_columns;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (axis != shape.rank() - 1) of_rows.push_back(shape[axis]);
      if (axis != shape.rank() - 2) of_columns.push_back(shape[axis]);
    }
    Tensor rows = moved(slot(variable, "rows", {.shape = of_rows}), mean(squares, -1));
    Tensor columns = moved(slot(variable, "columns", {.shape = of_columns}), mean(squares, -2));
    return expand_dims(rows / mean(rows, -1, {.keepdims = true}), -1) * expand_dims(columns, -2);
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

}  // namespace

Adafactor::Adafactor(LearningRate learning_rate, AdafactorOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<AdafactorBody>("Adafactor", std::move(learning_rate), options, where)}) {
  check_option(options.clip_threshold > 0, "Adafactor", "clip_threshold", options.clip_threshold, "it is more than 0",
               where);
}

Muon::Muon(LearningRate learning_rate, MuonOptions options, Where where)
    : Optimizer(FromBody{std::make_shared<MuonBody>(std::move(learning_rate), options, where)}) {
  check_fraction("Muon", "adam_beta_1", options.adam_beta_1, where);
  check_fraction("Muon", "adam_beta_2", options.adam_beta_2, where);
  check_fraction("Muon", "momentum", options.momentum, where);
  check_option(options.ns_steps >= 0, "Muon", "ns_steps", options.ns_steps, "it is 0 or more", where);
  if (options.adam_weight_decay)
    check_option(*options.adam_weight_decay >= 0, "Muon", "adam_weight_decay", *options.adam_weight_decay,
                 "it is 0 or more", where);
}

}  // namespace stet::keras
