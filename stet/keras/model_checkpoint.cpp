#include "stet/keras/model_checkpoint.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/model.h"
#include "stet/keras/monitor.h"
#include "stet/keras/path_format.h"
#include "stet/keras/save_clock.h"

namespace stet::keras {
namespace {

constexpr const char* callback_name = "ModelCheckpoint";

std::string five_digits(const std::optional<double>& value) {
  if (!value) return "None";
  char room[400];
  std::snprintf(room, sizeof room, "%.5f", *value);
  return room;
}

class ModelCheckpointBody : public CustomCallback {
 public:
  ModelCheckpointBody(std::string filepath, ModelCheckpointOptions options, Where where)
      : options_(std::move(options)),
        path_(std::move(filepath), callback_name, where),
        monitor_(callback_name, options_.monitor, options_.mode, 0, where),
        clock_(callback_name, options_.save_freq, where),
        best_(options_.initial_value_threshold),
        where_(where) {
    const std::string& path = path_.str();
    const bool fits = options_.save_weights_only ? path.ends_with(".weights.h5") || path.ends_with(".safetensors")
                                                 : path.ends_with(".keras");
    if (!fits)
      throw UserError(error_text(
          text(callback_name, ": a ", options_.save_weights_only ? "file of weights" : "model", " in '", path, "'"),
          where,
          options_.save_weights_only ? "the path of weights ends with \".weights.h5\" or \".safetensors\""
                                     : "the path of a model ends with \".keras\"; of its weights alone, with "
                                       ".save_weights_only = true, with \".weights.h5\" or \".safetensors\""));
  }

  void on_train_begin() override { clock_.start(); }
  void on_epoch_begin(int epoch, EpochLogs&) override { epoch_ = epoch; }
  void on_train_batch_end(std::int64_t batch, const BatchLogs& logs) override {
    if (!clock_.after_batch(batch)) return;
    EpochLogs numbers;
    for (const auto& [name, value] : logs) numbers[name] = value.item<double>();
    save(epoch_, batch, numbers);
  }
  void on_epoch_end(int epoch, EpochLogs& logs) override {
    if (clock_.after_epoch()) save(epoch, std::nullopt, logs);
  }

  void save_state(SavedState& state) const override {
    if (best_) state.set("best", *best_);
    state.set("epoch", epoch_);
    state.set("batches_seen", clock_.counts().seen);
    state.set("last_batch", clock_.counts().last);
  }
  void load_state(const SavedState& state) override {
    best_ = state.has("best") ? std::optional(state.number("best")) : std::nullopt;
    epoch_ = static_cast<int>(state.integer("epoch"));
    clock_.set_counts({state.integer("batches_seen"), state.integer("last_batch")});
  }

  std::optional<double> best() const { return best_; }

 private:
  /// A value that is not there cannot be compared: the model is saved, as Keras does.
  bool is_wanted(int epoch, const EpochLogs& logs, const std::string& path) {
    const std::string head = text("\nEpoch ", epoch + 1, ": ");
    if (!options_.save_best_only) {
      if (options_.verbose > 0) std::cout << text(head, "saving model to ", path, "\n");
      return true;
    }
    const std::optional<double> value = monitor_.value(logs);
    if (!value) return true;
    const bool better = !best_ || monitor_.better(*value, *best_);
    if (options_.verbose > 0)
      std::cout << (better ? text(head, options_.monitor, " improved from ", five_digits(best_), " to ",
                                  five_digits(*value), ", saving model to ", path, "\n")
                           : text(head, options_.monitor, " did not improve from ", five_digits(best_), "\n"));
    return better;
  }

  void save(int epoch, std::optional<std::int64_t> batch, const EpochLogs& logs) {
    clock_.saved();
    FormatValues values{{"epoch", std::int64_t{epoch} + 1}};
    if (batch) values["batch"] = *batch + 1;
    for (const auto& [name, value] : logs) values[name] = value;
    const std::string path = path_(values);
    if (!is_wanted(epoch, logs, path)) return;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code failed;  // what cannot be made is said by the file that cannot be written there
    if (!folder.empty()) std::filesystem::create_directories(folder, failed);
    if (options_.save_weights_only)
      model(where_).save_weights(path, {}, where_);
    else
      model(where_).save(path, {}, where_);
    if (options_.save_best_only)
      if (const std::optional<double> value = monitor_.value(logs)) best_ = value;
    if (options_.verbose > 0) std::cout << text("\nEpoch ", epoch + 1, ": finished saving model to ", path, "\n");
  }
  const ModelCheckpointOptions options_;
  const PathFormat path_;
  Monitor monitor_;
  SaveClock clock_;
  std::optional<double> best_;
  const Where where_;
  int epoch_ = 0;
};

}  // namespace

ModelCheckpoint::ModelCheckpoint(std::string filepath, ModelCheckpointOptions options, Where where)
    : Callback(std::make_shared<ModelCheckpointBody>(std::move(filepath), std::move(options), where)) {}
std::optional<double> ModelCheckpoint::best() const {
  return static_cast<ModelCheckpointBody&>(callback_body({})).best();
}

}  // namespace stet::keras
