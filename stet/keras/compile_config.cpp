#include "stet/keras/compile_config.h"

#include "stet/base/text.h"

namespace stet::keras {
namespace {

/// While it lives, errors say that what they speak of stands there.
class Inside {
 public:
  Inside(Fields::Place& place, std::string part) : place_(place) { place_.path.push_back(std::move(part)); }
  ~Inside() { place_.path.pop_back(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Fields::Place& place_;
};

[[noreturn]] void wrong(const Json& found, const char* expected, Fields::Place& place) {
  place.fail(text(found.kind(), " stands where ", expected, " should stand"),
             "write the file again, with the library that it comes from");
}

/// A class entry has these; a dictionary by outputs has the outputs' names.
bool is_entry(const Json& value) { return value.find("class_name") && value.find("config"); }

// --- losses

Json written(const Loss& loss, Fields::Place& place) {
  if (!loss.defined()) return {};
  return to_config(dynamic_cast<const CustomLoss&>(*loss.body()).recipe(), text("the loss '", loss.name(), "'"), place);
}

Json written(const LossesByOutput& losses, Fields::Place& place) {
  if (losses.for_all().defined()) return written(losses.for_all(), place);
  Json out;
  for (const Loss& loss : losses.in_order()) out.push_back(written(loss, place));
  for (const auto& [output, loss] : losses.by_name()) {
    Inside here(place, text("'", output, "'"));
    out[output] = written(loss, place);
  }
  return out;
}

Loss read_loss(const Json& value, Fields::Place& place) {
  return value.is_null() ? Loss() : from_config<Loss>(value, "loss", place);
}

LossesByOutput read_losses(const Json& value, Fields::Place& place) {
  if (value.is_null()) return {};
  if (name_entry(value) || is_entry(value)) return read_loss(value, place);
  if (const Json::List* list = list_of(value)) {
    std::vector<Loss> in_order;
    for (std::size_t i = 0; i < list->size(); ++i) {
      Inside here(place, text("[", i, "]"));
      in_order.push_back(read_loss((*list)[i], place));
    }
    return in_order;
  }
  const Json::Object* members = value.if_object();
  if (!members) wrong(value, "a loss, a list of losses or losses by output", place);
  std::vector<OutputLoss> by_name;
  for (const auto& [output, loss] : *members) {
    Inside here(place, text("'", output, "'"));
    by_name.push_back({output, read_loss(loss, place)});
  }
  return by_name;
}

// --- weights of losses

Json written(const WeightsByOutput& weights) {
  Json out;
  for (double weight : weights.in_order()) out.push_back(weight);
  for (const auto& [output, weight] : weights.by_name()) out[output] = weight;
  return out;
}

double read_weight(const Json& value, Fields::Place& place) {
  if (const std::int64_t* integer = value.if_integer()) return static_cast<double>(*integer);
  if (const double* real = value.if_real()) return *real;
  wrong(value, "a number", place);
}

WeightsByOutput read_weights(const Json& value, Fields::Place& place) {
  if (value.is_null()) return {};
  if (const Json::List* list = list_of(value)) {
    std::vector<double> in_order;
    for (std::size_t i = 0; i < list->size(); ++i) {
      Inside here(place, text("[", i, "]"));
      in_order.push_back(read_weight((*list)[i], place));
    }
    return in_order;
  }
  const Json::Object* members = value.if_object();
  if (!members) return std::vector{read_weight(value, place)};
  std::vector<OutputWeight> by_name;
  for (const auto& [output, weight] : *members) {
    Inside here(place, text("'", output, "'"));
    by_name.push_back({output, read_weight(weight, place)});
  }
  return by_name;
}

// --- metrics

Json written(const Metric& metric, Fields::Place& place) {
  if (!metric.defined()) return {};
  return to_config(dynamic_cast<const CustomMetric&>(*metric.body()).recipe(), text("the metric '", metric.name(), "'"),
                   place);
}

Json written(const MetricsByOutput& metrics, Fields::Place& place) {
  Json out;
  for (const Metric& metric : metrics.in_order()) out.push_back(written(metric, place));
  for (const auto& [output, some] : metrics.by_name()) {
    Inside here(place, text("'", output, "'"));
    Json::List list;
    for (const Metric& metric : some) list.push_back(written(metric, place));
    out[output] = std::move(list);
  }
  return out;
}

/// What stands for one output: a metric, a list of them, or nothing.
void read_metrics_of(const Json& value, std::vector<Metric>& to, Fields::Place& place) {
  if (value.is_null()) return;
  if (const Json::List* list = list_of(value)) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Json& one = (*list)[i];
      Inside here(place, text("[", i, "]"));
      if (list_of(one)) wrong(one, "a metric", place);
      read_metrics_of(one, to, place);
    }
  } else {
    to.push_back(from_config<Metric>(value, "metric", place));
  }
}

MetricsByOutput read_metrics(const Json& value, const std::vector<std::string>& outputs, Fields::Place& place) {
  if (value.is_null()) return {};
  const Json::List* list = list_of(value);
  if (!list && value.if_object() && !is_entry(value) && !name_entry(value)) {
    std::vector<OutputMetrics> by_name;
    for (const auto& [output, metrics] : *value.if_object()) {
      Inside here(place, text("'", output, "'"));
      read_metrics_of(metrics, by_name.emplace_back(OutputMetrics{output, {}}).metrics, place);
    }
    return by_name;
  }
  if (!list) wrong(value, "a list of metrics, or metrics by output", place);
  if (outputs.size() <= 1) {
    std::vector<Metric> in_order;
    for (std::size_t i = 0; i < list->size(); ++i) {  // Keras takes [["mse"]] as well as ["mse"]
      Inside here(place, text("[", i, "]"));
      read_metrics_of((*list)[i], in_order, place);
    }
    return in_order;
  }
  if (list->size() != outputs.size())
    place.fail(text("there are metrics for ", list->size(), " outputs, and the model has ", outputs.size()),
               "write the file again, with the library that it comes from");
  std::vector<OutputMetrics> by_name;
  bool one_each = true;
  for (std::size_t i = 0; i < list->size(); ++i) {
    Inside here(place, text("[", i, "]"));
    one_each = one_each && !list_of((*list)[i]) && !(*list)[i].is_null();
    read_metrics_of((*list)[i], by_name.emplace_back(OutputMetrics{outputs[i], {}}).metrics, place);
  }
  if (!one_each) return by_name;
  std::vector<Metric> in_order;
  for (const OutputMetrics& of_output : by_name) in_order.push_back(of_output.metrics.front());
  return in_order;
}

}  // namespace

Json compile_to_config(const CompileOptions& options, Fields::Place& place) {
  Json config;
  auto put = [&](const char* argument, auto write) {
    Inside here(place, argument);
    config[argument] = write();
  };
  put("optimizer", [&] {
    const CustomOptimizer& body = options.optimizer.optimizer_body(place.call.c_str(), place.where);
    return to_config(body.recipe(), body.description(), place);
  });
  put("loss", [&] { return written(options.loss, place); });
  put("loss_weights", [&] { return written(options.loss_weights); });
  put("metrics", [&] { return written(options.metrics, place); });
  put("weighted_metrics", [&] { return written(options.weighted_metrics, place); });
  config["run_eagerly"] = options.run_eagerly;
  config["steps_per_execution"] = options.steps_per_execution;
  config["jit_compile"] = "auto";  // of Keras: here, every step is compiled
  return config;
}

CompileOptions compile_from_config(const Json& config, const std::vector<std::string>& outputs, Fields::Place& place) {
  Inside compiled(place, "compile_config");
  if (!config.if_object()) wrong(config, "an object", place);
  Fields fields(config, place);
  CompileOptions options{.optimizer = {}};
  auto read = [&](const char* argument, auto use) {
    const Json* value = fields.take(argument);
    if (!value) return;
    Inside here(place, argument);
    use(*value);
  };
  read("optimizer", [&](const Json& value) { options.optimizer = from_config<Optimizer>(value, "optimizer", place); });
  fields.required("optimizer");
  read("loss", [&](const Json& value) { options.loss = read_losses(value, place); });
  read("loss_weights", [&](const Json& value) { options.loss_weights = read_weights(value, place); });
  read("metrics", [&](const Json& value) { options.metrics = read_metrics(value, outputs, place); });
  read("weighted_metrics", [&](const Json& value) { options.weighted_metrics = read_metrics(value, outputs, place); });
  fields("run_eagerly", options.run_eagerly);
  fields("steps_per_execution", options.steps_per_execution);
  if (options.steps_per_execution < 1)
    place.fail(text("its 'steps_per_execution' is ", options.steps_per_execution), "it is 1 or more");
  for (const char* of_keras : {"jit_compile", "auto_scale_loss"}) fields.take(of_keras);
  fields.finish("compile_config");
  return options;
}

}  // namespace stet::keras
