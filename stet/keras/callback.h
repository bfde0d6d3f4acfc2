// Callbacks: what is done between the steps of fit(), evaluate() and predict(). A Callback is what you hold; a
// CustomCallback is what you subclass.
#pragma once
#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/handle.h"
#include "stet/core/tensor.h"
#include "stet/keras/layer.h"
#include "stet/keras/saved_state.h"

namespace stet::keras {

class Model;

/// What an epoch measured, by name. Callbacks may add to it: what they add is in the History and in later callbacks.
using EpochLogs = std::map<std::string, double>;
/// What a step reported: scalars that are read when somebody asks for them.
using BatchLogs = std::map<std::string, Tensor>;

/// Subclass it to write a callback; every hook does nothing by default. Host code, never traced.
///
///   struct Tell : keras::CustomCallback {
///     void on_epoch_end(int epoch, keras::EpochLogs& logs) override { std::cout << epoch << ": " << logs["loss"]; }
///   };
///   model.fit(x, y, {.epochs = 3, .callbacks = {Tell{}}});
class STET_API CustomCallback : public inside::Body {
 public:
  CustomCallback() = default;
  CustomCallback(CustomCallback&&) noexcept = default;
  ~CustomCallback() override;

  virtual void on_train_begin() {}
  virtual void on_train_end(EpochLogs&) {}
  virtual void on_epoch_begin(int, EpochLogs&) {}
  virtual void on_epoch_end(int, EpochLogs&) {}
  virtual void on_train_batch_begin(std::int64_t) {}
  virtual void on_train_batch_end(std::int64_t, const BatchLogs&) {}
  virtual void on_test_begin() {}
  virtual void on_test_end(EpochLogs&) {}
  virtual void on_test_batch_begin(std::int64_t) {}
  virtual void on_test_batch_end(std::int64_t, const BatchLogs&) {}
  virtual void on_predict_begin() {}
  virtual void on_predict_end() {}
  virtual void on_predict_batch_begin(std::int64_t) {}
  virtual void on_predict_batch_end(std::int64_t, const BatchLogs&) {}

  /// What it must know to go on in another process. A BackupAndRestore beside it keeps that, and gives it back to the
  /// callback of the same class in the list of the fit() that goes on: after on_train_begin(), and in the middle of an
  /// epoch after on_epoch_begin(), too.
  virtual void save_state(SavedState&) const {}
  virtual void load_state(const SavedState&) {}

  std::string description() const override;
  /// The model that runs; fit(), evaluate() and predict() set it.
  const Model& model(Where where = Where::here()) const;
  void set_model(const Model& model);

 private:
  std::shared_ptr<const Model> model_;
};

template <class T>
concept CallbackBody = std::derived_from<T, CustomCallback>;

/// A callback. Copies share it.
class STET_API Callback {
 public:
  Callback() = default;
  template <class T>
  requires(CallbackBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) Callback(T&& body)
      : body_(std::make_shared<std::remove_cvref_t<T>>(std::move(body))) {}
  template <CallbackBody T>
  Callback(std::shared_ptr<T> body) : body_(std::move(body)) {}
  template <CallbackBody T>
  Callback(T& body) = delete;

  bool defined() const { return body_ != nullptr; }
  CustomCallback& callback_body(Where where) const;

 private:
  std::shared_ptr<CustomCallback> body_;
};

/// Which way a monitored value is better: "min", "max", or "auto", by its name.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;  // a change of less is none
  int patience = 0;      // epochs without a change for the better, after which training stops
  int verbose = 0;
  std::string mode = "auto";
  std::optional<double> baseline = {};  // to be reached
  bool restore_best_weights = false;
  int start_from_epoch = 0;
};
/// Stops training when a value has not become better for a while.
class STET_API EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {}, Where where = Where::here());
  /// The epoch after which it stopped, from 0; 0 if it did not.
  int stopped_epoch() const;
  int best_epoch() const;
};

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  int patience = 10;
  int verbose = 0;
  std::string mode = "auto";
  double min_delta = 1e-4;
  int cooldown = 0;
  double min_lr = 0;
};
/// Multiplies the learning rate by a factor when a value has not become better for a while.
class STET_API ReduceLROnPlateau : public Callback {
 public:
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {}, Where where = Where::here());
};

struct LearningRateSchedulerOptions {
  int verbose = 0;
};
/// Sets the learning rate before every epoch, from its number and the rate so far; notes it as "learning_rate".
class STET_API LearningRateScheduler : public Callback {
 public:
  explicit LearningRateScheduler(std::function<double(int epoch, double rate)> schedule,
                                 LearningRateSchedulerOptions options = {});
};

struct CSVLoggerOptions {
  std::string separator = ",";
  bool append = false;
};
/// A line for every epoch in a file of values, with a head.
class STET_API CSVLogger : public Callback {
 public:
  explicit CSVLogger(std::string filename, CSVLoggerOptions options = {}, Where where = Where::here());
};

/// Stops training when the loss is not a number, or infinite.
class STET_API TerminateOnNaN : public Callback {
 public:
  TerminateOnNaN();
};

struct SwapEMAWeightsOptions {
  bool swap_on_epoch = false;  // from the end of an epoch to the begin of the next too, for callbacks that come after
};
/// Evaluates and predicts with the moving averages of the weights, which an optimizer made with use_ema keeps; the
/// weights are back afterwards.
class STET_API SwapEMAWeights : public Callback {
 public:
  explicit SwapEMAWeights(SwapEMAWeightsOptions options = {}, Where where = Where::here());
};

struct LambdaCallbackOptions {
  std::function<void(int, EpochLogs&)> on_epoch_begin = {}, on_epoch_end = {};
  std::function<void()> on_train_begin = {};
  std::function<void(EpochLogs&)> on_train_end = {};
  std::function<void(std::int64_t)> on_train_batch_begin = {};
  std::function<void(std::int64_t, const BatchLogs&)> on_train_batch_end = {};
  std::function<void(SavedState&)> save_state = {};
  std::function<void(const SavedState&)> load_state = {};
};
/// Hooks as functions: LambdaCallback({.on_epoch_end = [](int epoch, auto& logs) { … }}).
class STET_API LambdaCallback : public Callback {
 public:
  explicit LambdaCallback(LambdaCallbackOptions hooks);
};

}  // namespace stet::keras
