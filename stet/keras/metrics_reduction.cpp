#include "stet/keras/metrics_reduction.h"

#include <numeric>

#include "stet/base/text.h"
#include "stet/keras/columns.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/metric_bodies.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

/// The mean over all axes from `first` on.
Tensor mean_from(const Tensor& t, int first) {
  if (t.rank() <= first) return t;
  std::vector<int> axes(static_cast<std::size_t>(t.rank() - first));
  std::iota(axes.begin(), axes.end(), first);
  return mean(t, axes);
}

class SumBody : public LibraryMetric {
 public:
  using LibraryMetric::LibraryMetric;
  void update_at(const Tensor& given, const Tensor& weight, const Tensor&, Where where) override {
    Frame frame(class_name(), where);
    Tensor values = cast(given, dtype());
    if (weight.defined()) values = values * aligned_weights(weight, values, where);
    total_.assign_add(sum(values));
  }
  Tensor result_at(Where where) override { return total_.read(where); }

 private:
  Variable total_ = state("total");
};

}  // namespace

Tensor quotient(const Tensor& a, const Tensor& b) {
  Tensor none = b == 0;
  return where(none, 0, a / where(none, 1, b));
}

void MeanBody::take(const SampleValues& given, const Tensor& weight, Where where) {
  Frame frame(class_name(), where);
  if (!given.values.defined())
    throw UserError(error_text(text(class_name(), ": undefined values"), where, "give it a tensor"));
  Tensor values = cast(given.values, dtype());
  if (!weight.defined()) {
    total_.assign_add(sum(mean_from(values, 1)));
    count_.assign_add(values.rank() > 0 ? cast(values.dim(0), dtype()) : cast(1, dtype()));
    return;
  }
  Tensor weights = cast(weight, dtype());
  if (given.mask.defined()) weights = aligned_weights(weights, values, where) * cast(given.mask, dtype());
  if (weights.rank() == values.rank() + 1 && single_column(weights, "sample_weight", where))
    weights = squeeze(weights, -1);
  if (weights.rank() > values.rank())
    throw UserError(error_text(
        text(class_name(), ": sample weights ", described(weight), " do not fit values ", described(given.values)),
        where, "a weight for every sample, [samples], or for every value"));
  values = mean_from(values, weights.rank());
  weights = broadcast_to(weights, values.shape());
  total_.assign_add(sum(mean_from(values * weights, 1)));
  count_.assign_add(sum(mean_from(weights, 1)));
}
Tensor MeanBody::result_at(Where where) {
  Frame frame(class_name(), where);
  return quotient(total_, count_);
}

namespace metrics {

namespace {

using MeanRecipe = MetricRecipe<Mean, "Mean">;
using SumRecipe = MetricRecipe<Sum, "Sum">;
const SavableAll<MeanRecipe, SumRecipe> savable_metrics;

}  // namespace

Mean::Mean(MetricOptions options, Where) : Metric(library_metric<MeanBody>("Mean", "mean", options)) {
  note_metric<MeanRecipe>(*this, options);
}
Sum::Sum(MetricOptions options, Where) : Metric(library_metric<SumBody>("Sum", "sum", options)) {
  note_metric<SumRecipe>(*this, options);
}
MeanMetricWrapper::MeanMetricWrapper(Function fn, MetricOptions options)
    : Metric(library_metric<MeanOfBody>("MeanMetricWrapper", "mean_metric_wrapper", options,
                                        [f = std::move(fn)](const Tensor& y_true, const Tensor& y_pred, Where where) {
                                          auto [labels, predictions] = losses::same_rank(y_true, y_pred, where);
                                          return SampleValues(f(labels, predictions));
                                        })) {}

}  // namespace metrics
}  // namespace stet::keras
