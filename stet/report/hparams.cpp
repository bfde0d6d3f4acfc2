#include "stet/report/hparams.h"

#include "stet/report/event.h"

// The messages, as protocol buffers (tensorboard/plugins/hparams/api.proto and plugin_data.proto):
//
//   HParamsPluginData { int32 version = 1; Experiment experiment = 2 | SessionStartInfo session_start_info = 3 |
//                       SessionEndInfo session_end_info = 4; }
//   Experiment        { double time_created_secs = 3; repeated HParamInfo hparam_infos = 4;
//                       repeated MetricInfo metric_infos = 5; }
//   HParamInfo        { string name = 1; DataType type = 4; }    string: 1, bool: 2, f64: 3
//   MetricInfo        { MetricName name = 1; string display_name = 3; }    MetricName { string group = 1; string tag =
//   2; } SessionStartInfo  { map<string, Value> hparams = 1; string group_name = 4; double start_time_secs = 5; } Value
//   { double number_value = 2; string string_value = 3; bool bool_value = 4; } SessionEndInfo    { Status status = 1;
//   double end_time_secs = 2; }    success: 1

namespace stet::reporting {
namespace {

using Value = std::variant<bool, double, std::string>;

int type_of(const Value& value) {
  return std::holds_alternative<std::string>(value) ? 1 : std::holds_alternative<bool>(value) ? 2 : 3;
}

Proto value_proto(const Value& value) {
  Proto out;
  if (const auto* text = std::get_if<std::string>(&value))
    out.bytes(3, *text);
  else if (const bool* flag = std::get_if<bool>(&value))
    out.integer(4, *flag);
  else
    out.real(2, std::get<double>(value));
  return out;
}

std::string plugin_data(unsigned field, const Proto& contents) {
  return Proto().message(field, contents).str();  // version 0, which is the default
}

}  // namespace

std::string hparams_experiment(const HParams& values, const HParamsOptions& options) {
  Proto out;
  out.real(3, seconds_now());
  for (const auto& [name, value] : values) out.message(4, Proto().bytes(1, name).integer(4, type_of(value.value())));
  for (const HParamsMetric& metric : options.metrics) {
    Proto name, info;
    if (!metric.group.empty()) name.bytes(1, metric.group);
    info.message(1, name.bytes(2, metric.tag));
    if (!metric.display_name.empty()) info.bytes(3, metric.display_name);
    out.message(5, info);
  }
  return plugin_data(2, out);
}

std::string hparams_start(const HParams& values, const HParamsOptions& options) {
  Proto out;
  for (const auto& [name, value] : values)
    out.message(1, Proto().bytes(1, name).message(2, value_proto(value.value())));
  if (!options.trial.empty()) out.bytes(4, options.trial);
  out.real(5, seconds_now());
  return plugin_data(3, out);
}

std::string hparams_end() { return plugin_data(4, Proto().integer(1, 1).real(2, seconds_now())); }

}  // namespace stet::reporting
