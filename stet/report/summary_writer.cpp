#include "stet/report/summary_writer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <span>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tensor_node.h"
#include "stet/data/image_codec.h"
#include "stet/files/utf8.h"
#include "stet/report/event.h"
#include "stet/report/event_file.h"
#include "stet/report/graph_def.h"
#include "stet/report/histogram_buckets.h"
#include "stet/report/hparams.h"

namespace stet {

using namespace reporting;

struct SummaryWriter::State {
  State(const std::string& folder, Where where) : file(folder, "SummaryWriter", where) {
    file.write(version_event(), where);
  }
  ~State() {
    if (std::uncaught_exceptions() > exceptions_before) return;
    try {
      end_trial({});
    } catch (...) {
      // Nobody is left to be told, as close() does.
    }
  }
  void write_hparams(const char* tag, const std::string& contents, Where where) {
    // The plugin reads what the value is described by; the tensor has no elements.
    const std::int64_t none = 0;
    file.write(
        summary_event(tag, {"hparams", contents, DataClass::tensor}, tensor_proto(DType::f32, {&none, 1}, {}), 0),
        where);
  }
  void end_trial(Where where) {
    if (has_hparams && !file.closed()) write_hparams("_hparams_/session_end_info", hparams_end(), where);
  }

  const int exceptions_before = std::uncaught_exceptions();
  EventFile file;
  std::atomic<bool> has_hparams = false;
};

namespace {

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(what, where, advice));
}

/// Readers of protocol buffers take no other strings.
void check_utf8(const char* call, const char* what, std::string_view value, Where where) {
  if (!files::is_utf8(value))
    refuse(text(call, ": ", what, " ", files::quoted_name(value), " is not UTF-8"), where, "give it as UTF-8");
}
void check_tag(const char* call, const std::string& tag, Where where) {
  if (tag.empty()) refuse(text(call, ": the tag is empty"), where, "name what is written, as in \"loss\"");
  check_utf8(call, "the tag", tag, where);
}
/// "scalar 'loss'", for errors about its value.
std::string named(const char* call, const std::string& tag) { return text(call, " ", files::quoted_name(tag)); }

/// UserError, or TraceError, for a value that does not exist.
const TensorNode& values_of(const char* call, const std::string& tag, const Tensor& value, Where where) {
  return concrete_node(value, named(call, tag).c_str(), where);
}

/// The image with this number, of a batch; or the only one.
Tensor one_of(const TensorNode& images, std::int64_t number) {
  const std::span sizes = images.size_span(), strides = images.stride_span();
  if (images.rank == 3) return view_tensor(images, sizes, strides, 0);
  return view_tensor(images, sizes.subspan(1), strides.subspan(1), number * strides[0]);
}
/// u8 as they are; of floating numbers from 0 to 1 the nearest of 256 steps, and NaN is 0.
std::vector<unsigned char> pixels_of(const Tensor& images) {
  if (images.dtype() == DType::u8) return images.to_vector<std::uint8_t>();
  std::vector<unsigned char> out;
  for (float value : images.to_vector<float>())
    out.push_back(value > 0 ? static_cast<unsigned char>(std::min(value, 1.0f) * 255 + 0.5f) : 0);
  return out;
}

Metadata metadata_of(const char* call, const SummaryMetadata& given, Where where) {
  if (given.plugin_name.empty())
    refuse(text(call, ": the plugin has no name"), where, "set .plugin_name, as in \"scalars\"");
  check_utf8(call, "plugin_name", given.plugin_name, where);
  check_utf8(call, "display_name", given.display_name, where);
  check_utf8(call, "description", given.description, where);
  return {given.plugin_name, given.plugin_content, DataClass::unknown, given.display_name, given.description};
}

void check_hparams(const HParams& values, const HParamsOptions& options, Where where) {
  const char* call = "hparams";
  for (const auto& [name, value] : values) {
    if (name.empty()) refuse("hparams: a hyperparameter has no name", where, "name it, as in \"learning_rate\"");
    check_utf8(call, "the name", name, where);
    if (const auto* string = std::get_if<std::string>(&value.value()))
      check_utf8(call, text("'", name, "' =").c_str(), *string, where);
  }
  for (const HParamsMetric& metric : options.metrics) {
    if (metric.tag.empty())
      refuse("hparams: a metric has no tag", where, "it is the tag of the scalar, as in \"epoch_loss\"");
    check_utf8(call, "the metric", metric.tag, where);
    check_utf8(call, "the metric's group", metric.group, where);
    check_utf8(call, "the metric's display_name", metric.display_name, where);
  }
  check_utf8(call, "trial", options.trial, where);
}

}  // namespace

SummaryWriter::SummaryWriter(const std::string& log_dir, Where where)
    : state_(std::make_shared<State>(log_dir, where)) {}

void SummaryWriter::scalar(const std::string& tag, const Tensor& value, std::int64_t step, Where where) const {
  check_tag("scalar", tag, where);
  if (values_of("scalar", tag, value, where).element_count() != 1)
    refuse(stet::text(named("scalar", tag), ": ", type_text(value), " is not one number"), where,
           "write its mean, or all of it with histogram()");
  const float number = value.item<float>({}, where);
  const std::string_view bytes(reinterpret_cast<const char*>(&number), sizeof number);
  state_->file.write(summary_event(tag, {"scalars", {}, DataClass::scalar}, tensor_proto(DType::f32, {}, bytes), step),
                     where);
}

void SummaryWriter::histogram(const std::string& tag, const Tensor& values, std::int64_t step,
                              SummaryHistogramOptions options, Where where) const {
  check_tag("histogram", tag, where);
  constexpr std::int64_t most = 100'000;
  if (options.buckets < 1 || options.buckets > most)
    refuse(stet::text(named("histogram", tag), ": buckets = ", options.buckets), where,
           stet::text("it is from 1 to ", most));
  values_of("histogram", tag, values, where);
  const std::vector<Bucket> buckets = histogram_buckets(values.to_vector<double>(where), options.buckets);
  const std::int64_t sizes[] = {options.buckets, 3};
  static_assert(sizeof(Bucket) == 3 * sizeof(double));
  const std::string_view bytes(reinterpret_cast<const char*>(buckets.data()), buckets.size() * sizeof(Bucket));
  state_->file.write(
      summary_event(tag, {"histograms", {}, DataClass::tensor}, tensor_proto(DType::f64, sizes, bytes), step), where);
}

void SummaryWriter::image(const std::string& tag, const Tensor& images, std::int64_t step, SummaryImageOptions options,
                          Where where) const {
  check_tag("image", tag, where);
  if (options.max_outputs < 1)
    refuse(stet::text(named("image", tag), ": max_outputs = ", options.max_outputs), where, "it is 1 or more");
  const TensorNode& given = values_of("image", tag, images, where);
  std::vector<std::int64_t> sizes(given.sizes, given.sizes + given.rank);
  if (sizes.size() == 3) sizes.insert(sizes.begin(), 1);
  const bool fits = sizes.size() == 4 && sizes[1] > 0 && sizes[2] > 0 && sizes[3] >= 1 && sizes[3] <= 4;
  if (!fits || (given.dtype != DType::u8 && !is_floating(given.dtype)))
    refuse(stet::text(named("image", tag), ": ", type_text(images), " is no image"), where,
           "it is [batch, height, width, channels] or [height, width, channels] with 1 to 4 channels, of u8 or a "
           "floating type; reshape() adds an axis");
  const std::int64_t written = std::min(sizes[0], options.max_outputs);
  std::vector<std::string> parts{stet::text(sizes[2]), stet::text(sizes[1])};
  for (std::int64_t i = 0; i < written; ++i) {
    // One after the other: what is not written is not converted.
    const Tensor one = one_of(given, i);
    const std::vector<unsigned char> pixels = pixels_of(one);
    parts.push_back(data::encode_png_pixels({one, pixels.data(), sizes[1], sizes[2], sizes[3]}, {}, "image", where));
  }
  const auto count = static_cast<std::int64_t>(parts.size());
  state_->file.write(summary_event(tag, {"images", {}, DataClass::blobs}, tensor_proto({&count, 1}, parts), step),
                     where);
}

void SummaryWriter::text(const std::string& tag, const std::string& value, std::int64_t step, Where where) const {
  check_tag("text", tag, where);
  check_utf8("text", "the text", value, where);
  state_->file.write(summary_event(tag, {"text", {}, DataClass::tensor}, tensor_proto({}, {value}), step), where);
}

void SummaryWriter::table(const std::string& tag, const std::vector<std::vector<std::string>>& rows, std::int64_t step,
                          Where where) const {
  check_tag("table", tag, where);
  if (rows.empty() || rows[0].empty())
    refuse(stet::text(named("table", tag), " has no cells"), where, "give it rows of one cell or more");
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size())
      refuse(stet::text(named("table", tag), ": row ", i, " has another number of cells, ", rows[i].size(),
                        ", than row 0, ", rows[0].size()),
             where, "fill it up with empty cells");
    for (const std::string& cell : rows[i]) {
      check_utf8("table", "the cell", cell, where);
      cells.push_back(cell);
    }
  }
  const std::int64_t sizes[] = {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())};
  state_->file.write(summary_event(tag, {"text", {}, DataClass::tensor}, tensor_proto(sizes, cells), step), where);
}

void SummaryWriter::hparams(const HParams& values, HParamsOptions options, Where where) const {
  check_hparams(values, options, where);
  if (state_->has_hparams.exchange(true))
    refuse("hparams: this run has hyperparameters already", where,
           "a trial is a run of its own: make a SummaryWriter with another folder");
  // Without, TensorBoard takes all that it finds.
  if (!options.metrics.empty())
    state_->write_hparams("_hparams_/experiment", hparams_experiment(values, options), where);
  state_->write_hparams("_hparams_/session_start_info", hparams_start(values, options), where);
}

void SummaryWriter::graph(const FunctionBase& function, int trace, Where where) const {
  state_->file.write(graph_event(graph_def_of(function, trace, "SummaryWriter::graph", where)), where);
}

void SummaryWriter::write(const std::string& tag, const Tensor& value, std::int64_t step,
                          const SummaryMetadata& metadata, Where where) const {
  check_tag("write", tag, where);
  const Metadata about = metadata_of("write", metadata, where);
  values_of("write", tag, value, where);
  const Tensor dense = on_host(value.contiguous(where));
  const TensorNode& node = values_of("write", tag, dense, where);
  const std::string_view bytes(reinterpret_cast<const char*>(node.data),
                               static_cast<std::size_t>(node.element_count() * size_of(node.dtype)));
  state_->file.write(summary_event(tag, about, tensor_proto(node.dtype, node.size_span(), bytes), step), where);
}

void SummaryWriter::write_string(const std::string& tag, const std::string& value, std::int64_t step,
                                 const SummaryMetadata& metadata, Where where) const {
  check_tag("write_string", tag, where);
  state_->file.write(summary_event(tag, metadata_of("write_string", metadata, where), tensor_proto({}, {value}), step),
                     where);
}

void SummaryWriter::flush(Where where) const { state_->file.flush(where); }

void SummaryWriter::close(Where where) const {
  state_->end_trial(where);
  state_->file.close(where);
}

const std::string& SummaryWriter::path() const { return state_->file.path(); }

}  // namespace stet
