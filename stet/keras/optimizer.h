// Optimizers: how gradients change variables. An Optimizer is what you hold; a CustomOptimizer is what you subclass.
#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/handle.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/keras/layer.h"

namespace stet::keras {

/// Subclass it to write an optimizer: update_step() changes one variable by its gradient, with plain ops.
class STET_API CustomOptimizer : public inside::Body {
 public:
  CustomOptimizer(std::string name, double learning_rate);
  CustomOptimizer(CustomOptimizer&&) noexcept;
  ~CustomOptimizer() override;

  /// `gradient` has the variable's type and shape.
  virtual void update_step(const Tensor& gradient, const Variable& variable, const Tensor& learning_rate) = 0;

  const std::string& name() const;
  std::string description() const override;

  struct State;
  State& state() const { return *state_; }

 protected:
  /// A Variable that goes with `variable`, of its shape and type: zeros when it is asked for the first time.
  Variable slot(const Variable& variable, std::string_view name) const;
  /// How many steps were made before this one, i64.
  const Variable& iterations() const;

 private:
  std::unique_ptr<State> state_;
};

template <class T>
concept OptimizerBody = std::derived_from<T, CustomOptimizer>;

/// An optimizer. Copies share it. All that it keeps (slots, the step count, the learning rate) is Variables: in a
/// traced step it is state, and assigning to learning_rate() needs no retrace.
class STET_API Optimizer {
 public:
  /// Undefined: any use is a UserError.
  Optimizer() = default;
  /// "adam" or "sgd", with their defaults.
  Optimizer(const char* name, Where where = Where::here());
  Optimizer(const std::string& name, Where where = Where::here()) : Optimizer(name.c_str(), where) {}
  template <class T>
  requires(OptimizerBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) Optimizer(T&& body)
      : Optimizer(FromBody{std::make_shared<std::remove_cvref_t<T>>(std::move(body))}) {}
  template <OptimizerBody T>
  Optimizer(std::shared_ptr<T> body) : Optimizer(FromBody{std::move(body)}) {}
  template <OptimizerBody T>
  Optimizer(T& body) = delete;

  bool defined() const { return body_ != nullptr; }
  /// One step. A variable whose gradient is undefined (the loss does not use it) is left as it is, with a warning on
  /// stderr the first time; when that holds for all of them, it is a UserError.
  void apply_gradients(const std::vector<Tensor>& gradients, const std::vector<Variable>& variables,
                       Where where = Where::here()) const;
  Variable iterations(Where where = Where::here()) const;
  Variable learning_rate(Where where = Where::here()) const;
  /// The step count, the learning rate, then the slots in the order they were made.
  std::vector<Variable> variables(Where where = Where::here()) const;

  std::shared_ptr<inside::Body> body() const { return body_; }
  static Optimizer from_body(std::shared_ptr<inside::Body> body) { return Optimizer(FromBody{std::move(body)}); }

 protected:
  explicit Optimizer(FromBody from) : body_(std::move(from.body)) {}

 private:
  CustomOptimizer& optimizer_body(const char* asked, Where where) const;
  std::shared_ptr<inside::Body> body_;
};

struct SGDOptions {
  double momentum = 0;
  bool nesterov = false;
};
/// Gradient descent: v -= rate * g. With momentum: m = momentum * m - rate * g and v += m, or, with nesterov,
/// v += momentum * m - rate * g.
class STET_API SGD : public Optimizer {
 public:
  explicit SGD(double learning_rate = 0.01, SGDOptions options = {}, Where where = Where::here());
  STET_HANDLE(SGD, Optimizer)
};

struct AdamOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};
/// Adam as Keras has it: m += (g - m)(1 - beta_1), s += (g² - s)(1 - beta_2), then in step t
/// v -= rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(s) + epsilon).
class STET_API Adam : public Optimizer {
 public:
  explicit Adam(double learning_rate = 1e-3, AdamOptions options = {}, Where where = Where::here());
  STET_HANDLE(Adam, Optimizer)
};

}  // namespace stet::keras
