// Events, as bytes: what SummaryWriter puts into its file. Not a public header.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stet/base/dtype.h"
#include "stet/files/proto.h"

namespace stet::reporting {

using files::Proto;

/// How TensorBoard reads a summary's tensor.
enum class DataClass : int { unknown = 0, scalar = 1, tensor = 2, blobs = 3 };

struct Metadata {
  std::string plugin;
  std::string content = {};
  DataClass data_class = DataClass::unknown;
  std::string display_name = {}, description = {};
};

/// TensorFlow's number of a type.
int tensorflow_type(DType dtype);
constexpr int string_type = 7;

/// TensorShapeProto of known sizes.
Proto shape_proto(std::span<const std::int64_t> sizes);
/// TensorProto of dense elements, and of texts.
Proto tensor_proto(DType dtype, std::span<const std::int64_t> sizes, std::string_view elements);
Proto tensor_proto(std::span<const std::int64_t> sizes, const std::vector<std::string>& texts);

/// The first event of a file.
std::string version_event();
std::string summary_event(const std::string& tag, const Metadata& metadata, const Proto& tensor, std::int64_t step);
/// `graph` is a GraphDef.
std::string graph_event(const std::string& graph);

/// Seconds since 1970.
double seconds_now();

}  // namespace stet::reporting
