// Regularizers: what a weight or an output adds to the loss for being large.
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/tensor.h"
#include "stet/keras/recipe.h"

namespace stet::keras {

/// What options such as `.kernel_regularizer` take: one of keras::regularizers, its name ("l2", …; another name is a
/// UserError that lists them), or a callable from a tensor to a penalty without axes.
class STET_API Regularizer : public Recorded {
 public:
  using Rule = std::function<Tensor(const Tensor& x)>;

  /// None: no penalty.
  Regularizer() = default;
  Regularizer(const char* name, Where where = Where::here());
  Regularizer(const std::string& name, Where where = Where::here()) : Regularizer(name.c_str(), where) {}
  template <class F>
  requires(!std::derived_from<F, Regularizer> && std::is_invocable_r_v<Tensor, F, const Tensor&>) Regularizer(F rule)
      : rule_(std::move(rule)) {}

  bool defined() const { return rule_ != nullptr; }
  /// The penalty; another rank than 0, which only a callable can give, is a UserError.
  Tensor operator()(const Tensor& x, Where where = Where::here()) const;

 private:
  Rule rule_;
};

namespace regularizers {

/// l1 * sum(|x|).
class STET_API L1 : public Regularizer {
 public:
  explicit L1(double l1 = 0.01, Where where = Where::here());
};

/// l2 * sum(x²).
class STET_API L2 : public Regularizer {
 public:
  explicit L2(double l2 = 0.01, Where where = Where::here());
};

struct L1L2Options {
  double l1 = 0;
  double l2 = 0;
};
/// l1 * sum(|x|) + l2 * sum(x²).
class STET_API L1L2 : public Regularizer {
 public:
  explicit L1L2(L1L2Options options = {}, Where where = Where::here());
};

struct OrthogonalRegularizerOptions {
  std::string mode = "rows";  // or "columns": which of the matrix's vectors
};
/// factor times the mean of |cosine| between different rows, or columns, of a matrix.
class STET_API OrthogonalRegularizer : public Regularizer {
 public:
  explicit OrthogonalRegularizer(double factor = 0.01, OrthogonalRegularizerOptions options = {},
                                 Where where = Where::here());
};

}  // namespace regularizers
}  // namespace stet::keras
