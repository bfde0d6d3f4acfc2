// Constraints: where a weight is put after each step of an optimizer.
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/keras/recipe.h"
#include "stet/ops/ops.h"

namespace stet::keras {

/// What options such as `.kernel_constraint` take: one of keras::constraints, its name ("non_neg", …; another name is a
/// UserError that lists them), or a callable from the value of a weight to the nearest one that is allowed.
class STET_API Constraint : public Recorded {
 public:
  using Rule = std::function<Tensor(const Tensor& weight)>;

  /// None: any value.
  Constraint() = default;
  Constraint(const char* name, Where where = Where::here());
  Constraint(const std::string& name, Where where = Where::here()) : Constraint(name.c_str(), where) {}
  template <class F>
  requires(!std::derived_from<F, Constraint> && std::is_invocable_r_v<Tensor, F, const Tensor&>) Constraint(F rule)
      : rule_(std::move(rule)) {}

  bool defined() const { return rule_ != nullptr; }
  /// The value to take; another type or rank, which only a callable can give, is a UserError.
  Tensor operator()(const Tensor& weight, Where where = Where::here()) const;

 private:
  Rule rule_;
};

/// That of a layer's weight; undefined for other Variables, and when the layer is gone.
STET_API Constraint constraint_of(const Variable& variable);

namespace constraints {

struct MaxNormOptions {
  Axes axis = 0;  // along which the norms are taken
};
/// Norms are at most max_value.
class STET_API MaxNorm : public Constraint {
 public:
  explicit MaxNorm(double max_value = 2, MaxNormOptions options = {}, Where where = Where::here());
};

/// No element is negative.
class STET_API NonNeg : public Constraint {
 public:
  NonNeg();
};

struct UnitNormOptions {
  Axes axis = 0;
};
/// Norms are 1.
class STET_API UnitNorm : public Constraint {
 public:
  explicit UnitNorm(UnitNormOptions options = {}, Where where = Where::here());
};

struct MinMaxNormOptions {
  double min_value = 0;
  double max_value = 1;
  double rate = 1;  // how much of the way is gone in one step
  Axes axis = 0;
};
/// Norms are between min_value and max_value.
class STET_API MinMaxNorm : public Constraint {
 public:
  explicit MinMaxNorm(MinMaxNormOptions options = {}, Where where = Where::here());
};

}  // namespace constraints
}  // namespace stet::keras
