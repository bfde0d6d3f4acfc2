// Losses: what training makes small. Functions give one number per sample; Loss objects take their mean.
#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/handle.h"
#include "stet/core/tensor.h"
#include "stet/keras/layer.h"

namespace stet::keras {

/// Subclass it to write a loss.
class STET_API CustomLoss : public inside::Body {
 public:
  CustomLoss() = default;
  CustomLoss(CustomLoss&&) noexcept = default;
  ~CustomLoss() override;

  /// One number per sample (or one for the whole batch).
  virtual Tensor call(const Tensor& y_true, const Tensor& y_pred) = 0;
  std::string description() const override;
};

template <class T>
concept LossBody = std::derived_from<T, CustomLoss>;

/// A loss. Copies share it. Called, it gives the mean over all numbers that its function gives, each times its sample's
/// weight where there are weights.
class STET_API Loss {
 public:
  using Function = std::function<Tensor(Tensor y_true, Tensor y_pred)>;

  /// Undefined: any use is a UserError.
  Loss() = default;
  /// "mse", "mae", "sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy": of
  /// probabilities, as in Keras; for logits make the object with {.from_logits = true}.
  Loss(const char* name, Where where = Where::here());
  Loss(const std::string& name, Where where = Where::here()) : Loss(name.c_str(), where) {}
  template <class F>
  requires(std::is_invocable_r_v<Tensor, F, Tensor, Tensor> && !std::derived_from<F, Loss>) Loss(F per_sample)
      : Loss(of_function(std::move(per_sample))) {}
  template <class T>
  requires(LossBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) Loss(T&& body)
      : Loss(FromBody{std::make_shared<std::remove_cvref_t<T>>(std::move(body))}) {}
  template <LossBody T>
  Loss(std::shared_ptr<T> body) : Loss(FromBody{std::move(body)}) {}
  template <LossBody T>
  Loss(T& body) = delete;

  bool defined() const { return body_ != nullptr; }
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here()) const;
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight,
                    Where where = Where::here()) const;

  std::shared_ptr<inside::Body> body() const { return body_; }
  static Loss from_body(std::shared_ptr<inside::Body> body) { return Loss(FromBody{std::move(body)}); }

 protected:
  explicit Loss(FromBody from) : body_(std::move(from.body)) {}
  static FromBody of_function(Function per_sample);

 private:
  std::shared_ptr<inside::Body> body_;
};

struct LossOptions {
  bool from_logits = false;  // predictions are logits, not probabilities
};

namespace losses {

/// -log of the probability of the label: labels are integers [...] or [..., 1], predictions [..., classes].
STET_API Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, LossOptions options = {},
                                                Where where = Where::here());
/// The same for labels as probabilities [..., classes].
STET_API Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, LossOptions options = {},
                                         Where where = Where::here());
/// Of labels between 0 and 1, mean over the last axis.
STET_API Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred, LossOptions options = {},
                                    Where where = Where::here());
/// Means over the last axis.
STET_API Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());
STET_API Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());

/// Labels [n] beside predictions [n, 1], or the other way round, would broadcast to [n, n]: the last axis of size 1 is
/// put in or taken out so that both agree, as Keras does. Others stay as they are.
STET_API std::pair<Tensor, Tensor> same_rank(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());

class STET_API SparseCategoricalCrossentropy : public Loss {
 public:
  SparseCategoricalCrossentropy(LossOptions options = {});
  STET_HANDLE(SparseCategoricalCrossentropy, Loss)
};
class STET_API CategoricalCrossentropy : public Loss {
 public:
  CategoricalCrossentropy(LossOptions options = {});
  STET_HANDLE(CategoricalCrossentropy, Loss)
};
class STET_API BinaryCrossentropy : public Loss {
 public:
  BinaryCrossentropy(LossOptions options = {});
  STET_HANDLE(BinaryCrossentropy, Loss)
};
class STET_API MeanSquaredError : public Loss {
 public:
  MeanSquaredError();
  STET_HANDLE(MeanSquaredError, Loss)
};
class STET_API MeanAbsoluteError : public Loss {
 public:
  MeanAbsoluteError();
  STET_HANDLE(MeanAbsoluteError, Loss)
};

}  // namespace losses
}  // namespace stet::keras
