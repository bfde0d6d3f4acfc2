#include "stet/keras/compiled.h"

#include <algorithm>
#include <set>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/metrics_reduction.h"
#include "stet/ops/ops.h"

namespace stet::keras {
namespace {

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(what, where, advice));
}

/// The outputs of a model as one argument of compile() speaks of them.
struct Outputs {
  std::size_t count = 0;
  const std::vector<std::string>& names;
  Where where = {};

  std::size_t find(const char* argument, const std::string& name) const {
    if (names.empty())
      refuse(text("compile: ", argument, " are given by name ('", name, "'), and the model's outputs have no names"),
             where, "give them in the order of the outputs; a model of keras::Inputs has names");
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      refuse(text("compile: ", argument, " are given for '", name, "', which is none of the model's outputs"), where,
             text("they are '", joined(names, "', '"), "'"));
    return static_cast<std::size_t>(found - names.begin());
  }
  void check_count(const char* argument, std::size_t given) const {
    if (given != count)
      refuse(text("compile: there are ", given, " ", argument, " for ", count, count == 1 ? " output" : " outputs"),
             where, "give one for every output, in their order, or by their names: {{\"name\", …}, …}");
  }
};

void assign_losses(const LossesByOutput& losses, const Outputs& outputs, std::vector<CompiledOutput>& out) {
  if (losses.for_all().defined())
    for (CompiledOutput& one : out) one.loss = losses.for_all();
  if (!losses.in_order().empty()) {
    outputs.check_count("losses", losses.in_order().size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i].loss = losses.in_order()[i];
  }
  std::set<std::string> seen;
  for (const auto& [name, loss] : losses.by_name()) {
    if (!seen.insert(name).second)
      refuse(text("compile: there are two losses of '", name, "'"), outputs.where, "give one");
    out[outputs.find("losses", name)].loss = loss;
  }
}

void assign_weights(const WeightsByOutput& weights, const Outputs& outputs, std::vector<CompiledOutput>& out) {
  if (!weights.in_order().empty()) {
    outputs.check_count("loss_weights", weights.in_order().size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i].loss_weight = weights.in_order()[i];
  }
  for (const auto& [name, weight] : weights.by_name()) {
    CompiledOutput& output = out[outputs.find("loss_weights", name)];
    if (!output.loss.defined())
      refuse(text("compile: there is a weight for the loss of '", name, "', which has none"), outputs.where,
             "give it a loss, or leave the weight out");
    output.loss_weight = weight;
  }
}

using MetricsOf = std::vector<ReportedMetric> CompiledOutput::*;
void assign_metrics(const MetricsByOutput& metrics, const char* argument, MetricsOf list, const Outputs& outputs,
                    std::vector<CompiledOutput>& out) {
  auto add = [&](CompiledOutput& output, const Metric& metric) {
    if (!metric.defined()) refuse(text("compile: a metric of ", argument, " is undefined"), outputs.where, "make one");
    (output.*list).push_back({metric.name(), metric});
  };
  const std::vector<Metric>& in_order = metrics.in_order();
  if (outputs.count == 1) {
    for (const Metric& metric : in_order) add(out[0], metric);
  } else if (!in_order.empty()) {
    outputs.check_count(argument, in_order.size());
    for (std::size_t i = 0; i < out.size(); ++i) add(out[i], in_order[i]);
  }
  for (const auto& [name, some] : metrics.by_name())
    for (const Metric& metric : some) add(out[outputs.find(argument, name)], metric);
}

/// Keras's names of what is reported, each once.
void name_metrics(std::vector<CompiledOutput>& outputs, Where where) {
  std::set<std::string> taken{"loss"};
  std::set<const inside::Body*> bodies;
  auto take = [&](const CompiledOutput& output, const Metric& metric, const std::string& name) {
    if (!taken.insert(name).second)
      refuse(text("compile: there are two metrics '", name, "'"), where,
             "their results would overwrite each other: give one of them another name");
    if (!bodies.insert(metric.body().get()).second)
      refuse(text("compile: one metric '", metric.name(), "' is to gather from several places, the last of them ",
                  output.name.empty() ? "weighted_metrics" : text("output '", output.name, "'")),
             where, "make one for each");
  };
  for (CompiledOutput& output : outputs)
    if (output.mean_loss.defined()) take(output, output.mean_loss, output.mean_loss.name());
  auto prefixed = [](const CompiledOutput& output, const std::string& name) {
    return output.name.empty() ? name : text(output.name, "_", name);
  };
  for (CompiledOutput& output : outputs)
    for (ReportedMetric& one : output.metrics) take(output, one.metric, one.name = prefixed(output, one.metric.name()));
  for (CompiledOutput& output : outputs)
    for (ReportedMetric& one : output.weighted_metrics) {
      one.name = prefixed(output, one.metric.name());
      if (taken.count(one.name)) one.name = prefixed(output, text("weighted_", one.metric.name()));
      take(output, one.metric, one.name);
    }
}

}  // namespace

std::vector<CompiledOutput> compiled_outputs(const CompileOptions& options, std::size_t count,
                                             const std::vector<std::string>& known, Where where) {
  std::vector<CompiledOutput> out(count);
  const std::vector<std::string> names = known.size() == count ? known : std::vector<std::string>();
  const Outputs outputs{count, names, where};
  assign_losses(options.loss, outputs, out);
  assign_weights(options.loss_weights, outputs, out);
  assign_metrics(options.metrics, "metrics", &CompiledOutput::metrics, outputs, out);
  assign_metrics(options.weighted_metrics, "weighted_metrics", &CompiledOutput::weighted_metrics, outputs, out);
  if (count > 1) {
    const auto losses = std::count_if(out.begin(), out.end(), [](const auto& one) { return one.loss.defined(); });
    for (std::size_t i = 0; i < count; ++i) {
      out[i].name = names.empty() ? text("output_", i + 1) : names[i];
      if (losses > 1 && out[i].loss.defined()) out[i].mean_loss = metrics::Mean(text(out[i].name, "_loss"));
    }
  }
  name_metrics(out, where);
  return out;
}

std::vector<Metric> listed_metrics(const CompileOptions& options) {
  std::vector<Metric> out;
  for (const MetricsByOutput* metrics : {&options.metrics, &options.weighted_metrics}) {
    out.insert(out.end(), metrics->in_order().begin(), metrics->in_order().end());
    for (const OutputMetrics& some : metrics->by_name())
      out.insert(out.end(), some.metrics.begin(), some.metrics.end());
  }
  return out;
}

ClassWeights::ClassWeights(const std::map<std::int64_t, double>& weights, Where where) : where_(where) {
  if (weights.empty()) return;
  const std::int64_t most = weights.rbegin()->first;
  if (weights.begin()->first < 0 || most > 1'000'000)
    refuse(text("class_weight: there is a weight of class ", most > 1'000'000 ? most : weights.begin()->first), where,
           "classes are counted from 0");
  std::vector<float> table(static_cast<std::size_t>(most) + 2, 1.0F);
  for (const auto& [number, weight] : weights) table[static_cast<std::size_t>(number)] = static_cast<float>(weight);
  table_ = tensor(table);
}

Batch ClassWeights::applied(Batch batch) const {
  if (!table_.defined()) return batch;
  if (!batch.more_y.empty())
    refuse(text("class_weight: there are ", batch.more_y.size() + 1, " tensors of labels"), where_,
           "it is for models with one output: give sample_weight by output");
  const Tensor& y = batch.y;
  if (!y.defined()) refuse("class_weight: the data has no labels", where_, "give x and y: fit(x, y)");
  if (y.rank() < 1 || y.rank() > 2)
    refuse(text("class_weight: the labels are ", described(y)), where_,
           "they are numbers of classes [n] or [n, 1], or one-hot [n, classes]");
  Tensor classes = y;
  if (y.rank() == 2) classes = y.dim(1).value() == 1 ? reshape(In(y, where_), {y.dim(0)}) : argmax(y, 1);
  if (is_floating(classes.dtype())) classes = round(classes);
  classes = cast(classes, i64);
  const Dim beyond = table_.dim(0) - 1;
  Tensor of_samples = gather(table_, where(logical_and(classes >= 0, classes < beyond), classes, beyond), 0);
  if (batch.sample_weight.defined()) {
    const Tensor& given = batch.sample_weight;
    std::vector<Dim> shape{of_samples.dim(0)};
    shape.resize(static_cast<std::size_t>(given.rank()), 1);
    of_samples = reshape(cast(of_samples, given.dtype()), Shape(shape)) * given;
  }
  batch.sample_weight = of_samples;
  return batch;
}

}  // namespace stet::keras
