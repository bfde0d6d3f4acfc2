// Losses: what training makes small. The frame; the losses themselves are in losses.h, by families.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "stet/base/dtype.h"
#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/handle.h"
#include "stet/core/tensor.h"
#include "stet/keras/layer.h"

namespace stet::keras {

/// How the numbers of the samples become one: "sum_over_batch_size" or "mean" (their mean over all of them, with
/// weights too), "sum", "mean_with_sample_weight" (their sum by the sum of the weights), "none" (they stay as they
/// are). Another name is a UserError that lists these.
class STET_API Reduction {
 public:
  enum class Kind : std::uint8_t { sum_over_batch_size, sum, mean, mean_with_sample_weight, none };

  Reduction(Kind kind) : kind_(kind) {}
  Reduction(const char* name, Where where = Where::here());
  Reduction(const std::string& name, Where where = Where::here()) : Reduction(name.c_str(), where) {}

  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// What all losses have.
struct LossOptions {
  Reduction reduction = Reduction::Kind::sum_over_batch_size;
  std::string name = {};            // not given: after the class, "mean_squared_error"
  std::optional<DType> dtype = {};  // what is computed in; not given: the predictions' type, but f32 at least
};

/// Subclass it to write a loss.
class STET_API CustomLoss : public inside::Body, public Recorded {
 public:
  CustomLoss() = default;
  explicit CustomLoss(LossOptions options) : options_(std::move(options)) {}
  CustomLoss(CustomLoss&&) noexcept = default;
  ~CustomLoss() override;

  /// One number per sample (or one for the whole batch).
  virtual Tensor call(const Tensor& y_true, const Tensor& y_pred) = 0;
  std::string description() const override;

  /// What its predictions are meant to be, where a loss is of one kind or the other: a step that finds its last layer
  /// to give the other kind says so.
  enum class Takes : std::uint8_t { anything, logits, probabilities };
  virtual Takes takes() const { return Takes::anything; }

  std::string name() const;
  const LossOptions& options() const { return options_; }

 private:
  LossOptions options_;
};

template <class T>
concept LossBody = std::derived_from<T, CustomLoss>;

/// A loss. Copies share it. Called, it gives one number: what its Reduction makes of the numbers that its function
/// gives, each times its sample's weight where there are weights.
///
/// Labels [n] and predictions [n, 1] (or the other way round) mean the same, as in Keras; beyond that the two have one
/// shape (Keras broadcasts), and others are a UserError. Weights have a number for every sample [n], or for more of the
/// axes that the loss has after its function: [n, steps], [n, steps, 1], …, or are one number for all. (Keras takes
/// weights [n] beside losses [n, steps] only where they happen to broadcast, along the steps.)
///
/// What there is of a batch without samples is 0.
class STET_API Loss {
 public:
  using Function = std::function<Tensor(Tensor y_true, Tensor y_pred)>;

  /// Undefined: any use is a UserError.
  Loss() = default;
  /// As Keras resolves names: "mse", "huber", "binary_crossentropy", …, or a class, "MeanSquaredError", with its
  /// defaults: of probabilities, as in Keras; for logits make the object with {.from_logits = true}. Another name is a
  /// UserError that lists them.
  Loss(const char* name, Where where = Where::here());
  Loss(const std::string& name, Where where = Where::here()) : Loss(name.c_str(), where) {}
  template <class F>
  requires(std::is_invocable_r_v<Tensor, F, Tensor, Tensor> && !std::derived_from<F, Loss>)
      Loss(F per_sample, LossOptions options = {})
      : Loss(of_function(std::move(per_sample), std::move(options))) {}
  template <class T>
  requires(LossBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) Loss(T&& body)
      : Loss(FromBody{std::make_shared<std::remove_cvref_t<T>>(std::move(body))}) {}
  template <LossBody T>
  Loss(std::shared_ptr<T> body) : Loss(FromBody{std::move(body)}) {}
  template <LossBody T>
  Loss(T& body) = delete;

  bool defined() const { return body_ != nullptr; }
  std::string name(Where where = Where::here()) const;
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here()) const;
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight,
                    Where where = Where::here()) const;

  std::shared_ptr<inside::Body> body() const { return body_; }
  static Loss from_body(std::shared_ptr<inside::Body> body) { return Loss(FromBody{std::move(body)}); }

 protected:
  explicit Loss(FromBody from) : body_(std::move(from.body)) {}
  static FromBody of_function(Function per_sample, LossOptions options);

 private:
  CustomLoss& loss_body(Where where) const;
  std::shared_ptr<inside::Body> body_;
};

// A class of losses: a handle whose constructor takes options, all of them with defaults.
#define STET_LOSS(Self, Options)                                      \
  class STET_API Self : public Loss {                                 \
   public:                                                            \
    explicit Self(Options options = {}, Where where = Where::here()); \
    STET_HANDLE(Self, Loss)                                           \
  }

namespace losses {

/// Labels [n] beside predictions [n, 1], or the other way round, would broadcast to [n, n]: the last axis of size 1 is
/// put in or taken out so that both agree, as Keras does. Others stay as they are.
STET_API std::pair<Tensor, Tensor> same_rank(const Tensor& y_true, const Tensor& y_pred, Where where = Where::here());

}  // namespace losses
}  // namespace stet::keras
