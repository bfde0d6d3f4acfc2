// What the library's own metrics are made of. Not a public header.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "stet/base/lock.h"
#include "stet/keras/loss_bodies.h"
#include "stet/keras/metric.h"

namespace stet::keras {

/// One of ours: errors in it name the line that called the metric, not a line of the library.
class LibraryMetric : public CustomMetric {
 public:
  /// `class_name` outlives all traces.
  LibraryMetric(const char* class_name, std::string name, DType dtype)
      : CustomMetric(std::move(name)), class_name_(class_name), dtype_(dtype) {}

  void update_state(const Tensor& a, const Tensor& b, const Tensor& c) final { update_at(a, b, c, {}); }
  Tensor result() final { return result_at({}); }
  virtual void update_at(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight, Where where) = 0;
  virtual Tensor result_at(Where where) = 0;
  std::string description() const override;

 protected:
  const char* class_name() const { return class_name_; }
  DType dtype() const { return dtype_; }
  Variable state(std::string_view name, const Shape& shape = {}) { return add_weight(name, shape, dtype_, Where{}); }
  /// For state whose shape the first batch tells: runs `build` in the first call. Others wait.
  void build_once(const std::function<void()>& build);
  bool built() const;

 private:
  const char* class_name_;
  DType dtype_;
  mutable Lock guard_;  // of what follows
  bool built_ = false;
};

/// The name of a metric: given, or the class's own, or "auc", "auc_1", … where the class numbers its metrics.
template <class Options>
std::string metric_name(const Options& options, const char* own) {
  return options.name.empty() ? own : options.name;
}
std::string numbered_name(const std::string& given, const char* class_name);
/// The same with the type of its state.
template <class Body, class Options, class... A>
FromBody library_metric(const char* class_name, const char* own_name, const Options& options, A&&... arguments) {
  return {std::make_shared<Body>(class_name, metric_name(options, own_name), options.dtype.value_or(DType::f32),
                                 std::forward<A>(arguments)...)};
}

// --- recipes

/// "name" and "dtype", of which Keras writes what it computes in.
template <class Options>
void metric_fields(Fields& f, Options& options, DType own_type = DType::f32) {
  f("name", options.name);
  std::optional<DType> dtype = f.reading() ? options.dtype : options.dtype.value_or(own_type);
  f("dtype", dtype);
  options.dtype = dtype;
}

/// A class of metrics: `own` reads and writes what it has besides.
template <class Self, Literal name, class Options = MetricOptions, void (*own)(Fields&, Options&) = nullptr>
struct MetricRecipe {
  static constexpr const char *module = "keras.metrics", *class_name = name.text;
  Options options = {};
  void fields(Fields& f) {
    metric_fields(f, options);
    if constexpr (own != nullptr) own(f, options);
  }
  Metric make(Where where) const { return Self(options, where); }
};
/// Notes what a metric was made from, with the name that it has.
template <class R, class Options>
void note_metric(Metric& metric, Options options) {
  options.name = metric.name();
  note_recipe(metric, R{std::move(options)});
}

/// total / count of values, which may have weights: means over the samples of the means over their other axes.
class MeanBody : public LibraryMetric {
 public:
  using LibraryMetric::LibraryMetric;
  void update_at(const Tensor& values, const Tensor& weight, const Tensor&, Where where) override {
    take(values, weight, where);
  }
  Tensor result_at(Where where) override;

 protected:
  /// As in Keras, what does not count is left out only where there are weights.
  void take(const SampleValues& values, const Tensor& weight, Where where);

 private:
  Variable total_ = state("total"), count_ = state("count");
};

/// The mean of a function of labels and predictions.
class MeanOfBody : public MeanBody {
 public:
  MeanOfBody(const char* class_name, std::string name, DType dtype, PerSample per_sample)
      : MeanBody(class_name, std::move(name), dtype), per_sample_(std::move(per_sample)) {}
  void update_at(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight, Where where) override {
    take(per_sample_(y_true, y_pred, where), weight, where);
  }

 private:
  const PerSample per_sample_;
};

/// a / b, and 0 where b is 0.
Tensor quotient(const Tensor& a, const Tensor& b);

}  // namespace stet::keras
