#include "stet/report/event.h"

#include <chrono>

// The messages, as protocol buffers (tensorflow/core/util/event.proto, framework/summary.proto and tensor.proto):
//
//   Event            { double wall_time = 1; int64 step = 2; string file_version = 3 | bytes graph_def = 4 |
//                      Summary summary = 5; SourceMetadata source_metadata = 10; }
//   SourceMetadata   { string writer = 1; }
//   Summary          { repeated Value value = 1; }
//   Value            { string tag = 1; TensorProto tensor = 8; SummaryMetadata metadata = 9; }
//   SummaryMetadata  { PluginData plugin_data = 1; string display_name = 2; string summary_description = 3;
//                      DataClass data_class = 4; }
//   PluginData       { string plugin_name = 1; bytes content = 2; }
//   TensorProto      { DataType dtype = 1; TensorShapeProto tensor_shape = 2; bytes tensor_content = 4;
//                      repeated bytes string_val = 8; }
//   TensorShapeProto { repeated Dim dim = 2; }    Dim { int64 size = 1; string name = 2; }

namespace stet::reporting {

int tensorflow_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 1;
    case DType::f64:
      return 2;
    case DType::i32:
      return 3;
    case DType::u8:
      return 4;
    case DType::i16:
      return 5;
    case DType::i8:
      return 6;
    case DType::i64:
      return 9;
    case DType::bool_:
      return 10;
    case DType::bf16:
      return 14;
    case DType::f16:
      return 19;
  }
  return 0;
}

Proto shape_proto(std::span<const std::int64_t> sizes) {
  Proto out;
  for (std::int64_t size : sizes) out.message(2, Proto().integer(1, size));
  return out;
}

Proto tensor_proto(DType dtype, std::span<const std::int64_t> sizes, std::string_view elements) {
  Proto out;
  out.integer(1, tensorflow_type(dtype)).message(2, shape_proto(sizes)).bytes(4, elements);
  return out;
}

Proto tensor_proto(std::span<const std::int64_t> sizes, const std::vector<std::string>& texts) {
  Proto out;
  out.integer(1, string_type).message(2, shape_proto(sizes));
  for (const std::string& text : texts) out.bytes(8, text);
  return out;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string version_event() {
  Proto out;
  out.real(1, seconds_now()).bytes(3, "brain.Event:2").message(10, Proto().bytes(1, "stet"));
  return std::move(out).str();
}

std::string summary_event(const std::string& tag, const Metadata& metadata, const Proto& tensor, std::int64_t step) {
  Proto plugin, about, value;
  plugin.bytes(1, metadata.plugin);
  if (!metadata.content.empty()) plugin.bytes(2, metadata.content);
  about.message(1, plugin);
  if (!metadata.display_name.empty()) about.bytes(2, metadata.display_name);
  if (!metadata.description.empty()) about.bytes(3, metadata.description);
  if (metadata.data_class != DataClass::unknown) about.integer(4, static_cast<int>(metadata.data_class));
  value.bytes(1, tag).message(8, tensor).message(9, about);
  Proto out;
  out.real(1, seconds_now()).integer(2, step).message(5, Proto().message(1, value));
  return std::move(out).str();
}

std::string graph_event(const std::string& graph) {
  Proto out;
  out.real(1, seconds_now()).bytes(4, graph);
  return std::move(out).str();
}

}  // namespace stet::reporting
