// Step: what fit(), evaluate() and predict() run on every batch, traced as one function. Not a public header.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stet/base/lock.h"
#include "stet/core/function.h"
#include "stet/keras/model.h"

namespace stet::keras {

/// A function of a batch that reports named tensors. How many tensors a batch has is fixed by the data: each number has
/// a function of its own, whose arguments are named x, y and sample_weight.
class Step {
 public:
  using Run = std::function<Logs(const Batch&)>;
  Step(std::string name, Run run, bool eagerly);

  /// The values in the order of names().
  std::vector<Tensor> operator()(const Batch& batch, Where where);
  std::vector<std::string> names() const;
  const std::string& name() const { return name_; }
  int trace_count() const;
  bool eager() const { return eagerly_; }
  /// That of the last batch; none before the first one, or when steps run eagerly.
  std::optional<FunctionBase> function() const;

 private:
  using One = Function<std::vector<Tensor>(Tensor)>;
  using Two = Function<std::vector<Tensor>(Tensor, Tensor)>;
  using Three = Function<std::vector<Tensor>(Tensor, Tensor, Tensor)>;
  std::vector<Tensor> run(const Batch& batch);

  const std::string name_;
  const Run run_;
  const bool eagerly_;
  const One of_x_;
  const Two of_x_y_;
  const Three of_x_y_weight_;
  mutable Lock guard_;  // of what follows
  std::vector<std::string> names_;
  std::optional<FunctionBase> last_;
};

}  // namespace stet::keras
