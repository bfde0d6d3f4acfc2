// Metrics: numbers gathered over batches. A Metric is what you hold; a CustomMetric is what you subclass to make one.
// The frame; the metrics themselves are in metrics.h, by families.
#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/handle.h"
#include "stet/core/tensor.h"
#include "stet/core/variable.h"
#include "stet/keras/layer.h"
#include "stet/keras/members.h"

namespace stet::keras {

/// Subclass it to write a metric. What it gathers lives in Variables, so that updates are part of traced steps.
class STET_API CustomMetric : public inside::Body, public Recorded {
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
  /// A Variable of this metric: zeros, not trainable. Its sizes become integers.
  Variable add_weight(std::string_view name, const Shape& shape = {}, DType dtype = DType::f32,
                      Where where = Where::here());

 private:
  struct Weights;
  std::string name_;
  std::unique_ptr<Weights> weights_;
};

template <class T>
concept MetricBody = std::derived_from<T, CustomMetric>;

/// What all metrics have.
struct MetricOptions {
  std::string name = {};            // not given: after the class, "mean"
  std::optional<DType> dtype = {};  // of what is gathered; not given: f32
};

/// The line that names a metric. Unlike a Where it is not made of a braced list: in {"output", {"accuracy"}} the second
/// part is a list of metrics.
struct CallLine {
  CallLine(Where where) : where(where) {}
  Where where;
};

/// A metric. Copies share it. Nothing in it looks at values on the host: updates and results are parts of traced steps,
/// and one trace serves batches of all sizes.
///
/// Weights have a number for every sample [n], or for more of the axes of what is measured, [n, steps], or are one
/// number for all.
class STET_API Metric {
 public:
  using Function = std::function<Tensor(Tensor y_true, Tensor y_pred)>;

  /// Undefined: any use is a UserError.
  Metric() = default;
  /// As Keras resolves names: "mse", "auc", "f1_score", …, or a class, "Precision", with its defaults; the metric has
  /// the name given. "accuracy" (or "acc") and "crossentropy" ("ce") are those of two classes, of classes by number or
  /// of one-hot classes, as the shapes of labels and predictions say. Another name is a UserError that lists them.
  Metric(const char* name, CallLine line = Where::here());
  Metric(const std::string& name, CallLine line = Where::here()) : Metric(name.c_str(), line) {}
  /// The mean of what the function gives for every sample (or for every batch, if it gives one number).
  template <class F>
  requires(std::is_invocable_r_v<Tensor, F, Tensor, Tensor> && !std::derived_from<F, Metric>)
      Metric(std::string name, F per_sample)
      : Metric(of_function(std::move(name), std::move(per_sample))) {}
  template <class T>
  requires(MetricBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) Metric(T&& body)
      : Metric(FromBody{std::make_shared<std::remove_cvref_t<T>>(std::move(body))}) {}
  template <MetricBody T>
  Metric(std::shared_ptr<T> body) : Metric(FromBody{std::move(body)}) {}
  template <MetricBody T>
  Metric(T& body) = delete;

  bool defined() const { return body_ != nullptr; }
  const std::string& name(Where where = Where::here()) const;
  /// Of metrics::Mean and metrics::Sum the first tensor holds the values, the second, if there is one, their weights.
  void update_state(const Tensor& y_true, const Tensor& y_pred = {}, const Tensor& sample_weight = {},
                    Where where = Where::here()) const;
  Tensor result(Where where = Where::here()) const;
  /// Takes in a batch, and gives the result so far.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred = {}, const Tensor& sample_weight = {},
                    Where where = Where::here()) const;
  void reset_state(Where where = Where::here()) const;
  std::vector<Variable> variables() const;

  std::shared_ptr<inside::Body> body() const { return body_; }
  static Metric from_body(std::shared_ptr<inside::Body> body) { return Metric(FromBody{std::move(body)}); }

 protected:
  explicit Metric(FromBody from) : body_(std::move(from.body)) {}
  static FromBody of_function(std::string name, Function per_sample);
  template <class Options>
  static Options named(std::string name, Options options) {
    options.name = std::move(name);
    return options;
  }

 private:
  CustomMetric& metric_body(const char* asked, Where where) const;
  std::shared_ptr<inside::Body> body_;
};

// A class of metrics: a handle whose constructor takes a name, options, both or nothing.
#define STET_METRIC(Self, Options)                                                     \
  class STET_API Self : public Metric {                                                \
   public:                                                                             \
    explicit Self(Options options = {}, Where where = Where::here());                  \
    template <std::convertible_to<std::string> Name>                                   \
    explicit Self(const Name& name, Options options = {}, Where where = Where::here()) \
        : Self(named(name, std::move(options)), where) {}                              \
    STET_HANDLE(Self, Metric)                                                          \
  }

}  // namespace stet::keras
