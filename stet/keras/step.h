// Step: what fit(), evaluate() and predict() run on every batch, traced as one function. Not a public header.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stet/base/lock.h"
#include "stet/core/function.h"
#include "stet/keras/model.h"

namespace stet::keras {

/// What a model consists of, as an argument of its steps: a step traced before the model was changed does not serve
/// calls from then on. Not the model itself, which a trace would keep alive.
class ModelForm {
 public:
  class State : public inside::Body {
   public:
    /// `look` sees whether the model has become another, and says so with become().
    explicit State(std::function<void()> look) : look_(std::move(look)) {}
    std::string description() const override;
    /// Forms are numbered; a trace serves the form that it was made of.
    void become(std::uint64_t number, std::string description);
    /// Before every step: cheap, unless some layer was changed.
    void refresh();

   private:
    const std::function<void()> look_;
    std::atomic<std::uint64_t> seen_{0};  // of layer_changes()
    mutable Lock guard_;
    std::string description_;
  };

  explicit ModelForm(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<inside::Body> body() const { return state_; }
  static ModelForm from_body(const std::shared_ptr<inside::Body>& body) {
    return ModelForm(std::static_pointer_cast<State>(body));
  }
  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

/// A function of a batch that reports named tensors. What a batch consists of is fixed by the data: each kind has a
/// function of its own, whose arguments are named x, y and sample_weight, and then the model.
class Step {
 public:
  using Report = std::vector<std::pair<std::string, Tensor>>;
  using Run = std::function<Report(const Batch&)>;
  Step(std::string name, Run run, bool eagerly);

  /// The values in the order of names().
  std::vector<Tensor> operator()(const Batch& batch, const ModelForm& model, Where where);
  /// All that such a step makes is there afterwards (weights, slots, metrics' Variables): it is traced, and not run. An
  /// eager one is run.
  void prepare(const Batch& batch, const ModelForm& model, Where where);
  std::vector<std::string> names() const;
  const std::string& name() const { return name_; }
  int trace_count() const;
  bool eager() const { return eagerly_; }
  /// That of the last batch; none before the first one, or when steps run eagerly.
  std::optional<FunctionBase> function() const;

 private:
  using One = Function<std::vector<Tensor>(Tensor, ModelForm)>;
  using Two = Function<std::vector<Tensor>(Tensor, Tensor, ModelForm)>;
  using Three = Function<std::vector<Tensor>(Tensor, Tensor, Tensor, ModelForm)>;
  using Several =
      Function<std::vector<Tensor>(std::vector<Tensor>, std::vector<Tensor>, std::vector<Tensor>, ModelForm)>;
  std::vector<Tensor> run(const Batch& batch);

  const std::string name_;
  const Run run_;
  const bool eagerly_;
  const One of_x_;
  const Two of_x_y_;
  const Three of_x_y_weight_;
  const Several of_several_;  // x, y or sample_weight
  mutable Lock guard_;        // of what follows
  std::vector<std::string> names_;
  std::optional<FunctionBase> last_;
};

}  // namespace stet::keras
