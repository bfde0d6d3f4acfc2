// Metrics: numbers gathered over batches. A Metric is what you hold; a CustomMetric is what you subclass to make one.
#pragma once
#include <concepts>
#include <functional>
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
#include "stet/keras/members.h"

namespace stet::keras {

/// Subclass it to write a metric. What it gathers lives in Variables, so that updates are part of traced steps.
class STET_API CustomMetric : public inside::Body {
 public:
  explicit CustomMetric(std::string name);
  CustomMetric(CustomMetric&&) noexcept;
  ~CustomMetric() override;

  /// Takes in a batch. `sample_weight` may be undefined.
  virtual void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) = 0;
  virtual Tensor result() = 0;
  /// Starts again; by default every Variable becomes 0.
  virtual void reset_state();
  virtual void visit_members(MemberVisitor&) {}

  const std::string& name() const { return name_; }
  /// Those it added, and those of its members.
  std::vector<Variable> variables();
  std::string description() const override;

 protected:
  /// A Variable of this metric: zeros, not trainable.
  Variable add_weight(std::string_view name, const Shape& shape = {}, DType dtype = DType::f32,
                      Where where = Where::here());

 private:
  struct Weights;
  std::string name_;
  std::unique_ptr<Weights> weights_;
};

template <class T>
concept MetricBody = std::derived_from<T, CustomMetric>;

/// A metric. Copies share it.
class STET_API Metric {
 public:
  using Function = std::function<Tensor(Tensor y_true, Tensor y_pred)>;

  /// Undefined: any use is a UserError.
  Metric() = default;
  /// "accuracy" (which one follows from the shapes of labels and predictions), "mse", "mae" or the full name of a
  /// metric.
  Metric(const char* name, Where where = Where::here());
  Metric(const std::string& name, Where where = Where::here()) : Metric(name.c_str(), where) {}
  /// The mean of what the function gives for every sample (or for every batch, if it gives one number).
  Metric(std::string name, Function per_sample);
  template <class T>
  requires(MetricBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) Metric(T&& body)
      : Metric(FromBody{std::make_shared<std::remove_cvref_t<T>>(std::move(body))}) {}
  template <MetricBody T>
  Metric(std::shared_ptr<T> body) : Metric(FromBody{std::move(body)}) {}
  template <MetricBody T>
  Metric(T& body) = delete;

  bool defined() const { return body_ != nullptr; }
  const std::string& name(Where where = Where::here()) const;
  /// Of metrics::Mean the first tensor holds the values, the second, if there is one, their weights.
  void update_state(const Tensor& y_true, const Tensor& y_pred = {}, const Tensor& sample_weight = {},
                    Where where = Where::here()) const;
  Tensor result(Where where = Where::here()) const;
  void reset_state(Where where = Where::here()) const;
  std::vector<Variable> variables() const;

  std::shared_ptr<inside::Body> body() const { return body_; }
  static Metric from_body(std::shared_ptr<inside::Body> body) { return Metric(FromBody{std::move(body)}); }

 protected:
  explicit Metric(FromBody from) : body_(std::move(from.body)) {}

 private:
  CustomMetric& metric_body(const char* asked, Where where) const;
  std::shared_ptr<inside::Body> body_;
};

namespace metrics {

/// The weighted mean of the values it is given.
class STET_API Mean : public Metric {
 public:
  explicit Mean(std::string name = "mean");
  STET_HANDLE(Mean, Metric)
};
/// How often the largest prediction stands at the label: labels [...] (or [..., 1]), predictions [..., classes].
class STET_API SparseCategoricalAccuracy : public Metric {
 public:
  explicit SparseCategoricalAccuracy(std::string name = "sparse_categorical_accuracy");
  STET_HANDLE(SparseCategoricalAccuracy, Metric)
};
/// How often the largest prediction stands where the largest label stands: both [..., classes].
class STET_API CategoricalAccuracy : public Metric {
 public:
  explicit CategoricalAccuracy(std::string name = "categorical_accuracy");
  STET_HANDLE(CategoricalAccuracy, Metric)
};
struct BinaryAccuracyOptions {
  double threshold = 0.5;
};
/// How often predictions, cut at the threshold, equal the labels 0 and 1.
class STET_API BinaryAccuracy : public Metric {
 public:
  explicit BinaryAccuracy(std::string name = "binary_accuracy", BinaryAccuracyOptions options = {});
  STET_HANDLE(BinaryAccuracy, Metric)
};
class STET_API MeanSquaredError : public Metric {
 public:
  explicit MeanSquaredError(std::string name = "mean_squared_error");
  STET_HANDLE(MeanSquaredError, Metric)
};
class STET_API MeanAbsoluteError : public Metric {
 public:
  explicit MeanAbsoluteError(std::string name = "mean_absolute_error");
  STET_HANDLE(MeanAbsoluteError, Metric)
};

}  // namespace metrics
}  // namespace stet::keras
