// SummaryWriter: event files that TensorBoard shows: numbers, histograms, images, texts, hyperparameters and graphs.
#pragma once
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/function.h"
#include "stet/core/tensor.h"

namespace stet {

struct SummaryHistogramOptions {
  std::int64_t buckets = 30;
};
struct SummaryImageOptions {
  std::int64_t max_outputs = 3;  // of a batch, so many are written
};

/// A hyperparameter: a number, true or false, or a text.
class HParam {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T>) HParam(T value) {
    if constexpr (std::same_as<T, bool>)
      value_ = value;
    else
      value_ = static_cast<double>(value);
  }
  HParam(const char* value) : value_(std::string(value)) {}
  HParam(std::string value) : value_(std::move(value)) {}
  const std::variant<bool, double, std::string>& value() const { return value_; }

 private:
  std::variant<bool, double, std::string> value_;
};
using HParams = std::map<std::string, HParam>;

/// A scalar that trials are compared by: {"epoch_loss", "validation"} is the tag in the folder below the trial's.
struct HParamsMetric {
  HParamsMetric(const char* tag) : tag(tag) {}
  HParamsMetric(std::string tag, std::string group = {}, std::string display_name = {})
      : tag(std::move(tag)), group(std::move(group)), display_name(std::move(display_name)) {}
  std::string tag, group, display_name;
};
struct HParamsOptions {
  std::vector<HParamsMetric> metrics = {};  // none: all scalars that there are
  std::string trial = {};                   // what TensorBoard calls it; none: the same values are the same trial
};

/// What a plugin of TensorBoard knows a value by, for write().
struct SummaryMetadata {
  std::string plugin_name = {};
  std::string plugin_content = {};  // bytes that the plugin understands
  std::string display_name = {};
  std::string description = {};  // Markdown
};

/// Writes a file of events into a folder, which is one run to TensorBoard; its folders are runs of their own. Copies
/// share it, and any number of threads may write. Every event is in the file when the call returns, and stays there if
/// the process is killed then. A wrong call, a folder that cannot be written to and a full disk are UserErrors.
///
///   SummaryWriter writer("logs/first");
///   writer.scalar("loss", loss, step);
///
/// Steps are numbers of the user's: of batches, epochs, whatever a curve is to have below it. Inside of traced
/// functions nothing has a value yet: write what they return, or in a host_call.
class STET_API SummaryWriter {
 public:
  /// The folder is made if it does not exist.
  explicit SummaryWriter(const std::string& log_dir, Where where = Where::here());
  // To move one is to copy it: none is without a file.
  SummaryWriter(const SummaryWriter&) = default;
  SummaryWriter& operator=(const SummaryWriter&) = default;

  /// One number, or a tensor with one element. It is kept as f32, as TensorFlow does.
  void scalar(const std::string& tag, const Tensor& value, std::int64_t step, Where where = Where::here()) const;
  /// How the elements of a tensor are distributed, from the smallest to the largest. NaN and infinities are left out.
  void histogram(const std::string& tag, const Tensor& values, std::int64_t step, SummaryHistogramOptions options = {},
                 Where where = Where::here()) const;
  /// [batch, height, width, channels], or one image without the batch; u8, or floating from 0 to 1; 1 to 4 channels.
  void image(const std::string& tag, const Tensor& images, std::int64_t step, SummaryImageOptions options = {},
             Where where = Where::here()) const;
  /// Markdown.
  void text(const std::string& tag, const std::string& value, std::int64_t step, Where where = Where::here()) const;
  /// Rows of as many cells each, which are Markdown; the first row is no head.
  void table(const std::string& tag, const std::vector<std::vector<std::string>>& rows, std::int64_t step,
             Where where = Where::here()) const;
  /// The hyperparameters of this run, once, for the table of trials. The trial ends with close(), or with the last copy
  /// unless an exception has ended it.
  void hparams(const HParams& values, HParamsOptions options = {}, Where where = Where::here()) const;
  /// What a traced function computes: a trace of it, as it was recorded. Layers and NameScopes are boxes to open.
  void graph(const FunctionBase& function, int trace = 0, Where where = Where::here()) const;

  /// A tensor, or a string, for a plugin that has no function here.
  void write(const std::string& tag, const Tensor& value, std::int64_t step, const SummaryMetadata& metadata,
             Where where = Where::here()) const;
  void write_string(const std::string& tag, const std::string& value, std::int64_t step,
                    const SummaryMetadata& metadata, Where where = Where::here()) const;

  /// What was written stands on the disk: it outlasts a power cut too.
  void flush(Where where = Where::here()) const;
  /// Nothing can be written afterwards; another close() does nothing. Without it the file is closed with the last copy.
  void close(Where where = Where::here()) const;
  /// Of the file.
  const std::string& path() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stet
