#include "stet/keras/callback.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/model.h"
#include "stet/keras/monitor.h"
#include "stet/keras/names.h"
#include "stet/keras/optimizer_state.h"

namespace stet::keras {

CustomCallback::~CustomCallback() = default;
std::string CustomCallback::description() const { return text("callback ", class_name_of(*this)); }
const Model& CustomCallback::model(Where where) const {
  if (!model_)
    throw UserError(error_text(text(description(), " has no model yet"), where,
                               "it is set when fit(), evaluate() or predict() begins"));
  return *model_;
}
void CustomCallback::set_model(const Model& model) { model_ = std::make_shared<const Model>(model); }

CustomCallback& Callback::callback_body(Where where) const {
  if (!body_) throw UserError(error_text("a callback is undefined", where, "make one, as in keras::EarlyStopping()"));
  return *body_;
}

namespace {

class EarlyStoppingBody : public CustomCallback {
 public:
  EarlyStoppingBody(EarlyStoppingOptions options, Where where)
      : options_(options), monitor_("EarlyStopping", options.monitor, options.mode, options.min_delta, where) {}

  void on_train_begin() override {
    waited_ = stopped_epoch = best_epoch = 0;
    best_ = monitor_.worst();
    best_weights_.clear();
  }
  void on_epoch_end(int epoch, EpochLogs& logs) override {
    std::optional<double> value = monitor_.value(logs);
    if (!value || epoch < options_.start_from_epoch) return;
    if (options_.restore_best_weights && best_weights_.empty()) best_weights_ = model().get_weights();
    ++waited_;
    if (monitor_.better(*value, best_)) {
      best_ = *value;
      best_epoch = epoch;
      if (options_.restore_best_weights) best_weights_ = model().get_weights();
      if (!options_.baseline || monitor_.better(*value, *options_.baseline)) waited_ = 0;
      return;
    }
    if (waited_ >= options_.patience && epoch > 0) {
      stopped_epoch = epoch;
      model().stop_training();
    }
  }
  void on_train_end(EpochLogs&) override {
    if (stopped_epoch > 0 && options_.verbose > 0) std::cout << text("Epoch ", stopped_epoch + 1, ": early stopping\n");
    if (!options_.restore_best_weights || best_weights_.empty()) return;
    if (options_.verbose > 0)
      std::cout << text("Restoring model weights from the end of the best epoch: ", best_epoch + 1, ".\n");
    model().set_weights(best_weights_);
  }

  void save_state(SavedState& state) const override {
    state.set("stopped_epoch", stopped_epoch);
    state.set("best_epoch", best_epoch);
    state.set("waited", waited_);
    state.set("best", best_);
    state.set("best_weights", best_weights_);
  }
  void load_state(const SavedState& state) override {
    stopped_epoch = static_cast<int>(state.integer("stopped_epoch"));
    best_epoch = static_cast<int>(state.integer("best_epoch"));
    waited_ = static_cast<int>(state.integer("waited"));
    best_ = state.number("best");
    best_weights_ = state.tensors("best_weights");
  }

  int stopped_epoch = 0, best_epoch = 0;

 private:
  const EarlyStoppingOptions options_;
  Monitor monitor_;
  int waited_ = 0;
  double best_ = 0;
  std::vector<Tensor> best_weights_;
};

class ReduceLROnPlateauBody : public CustomCallback {
 public:
  ReduceLROnPlateauBody(ReduceLROnPlateauOptions options, Where where)
      : options_(options), monitor_("ReduceLROnPlateau", options.monitor, options.mode, options.min_delta, where) {
    if (!(options.factor < 1))
      throw UserError(error_text(text("ReduceLROnPlateau: a factor of ", options.factor), where, "it is below 1"));
  }
  void on_train_begin() override {
    best_ = monitor_.worst();
    waited_ = cooling_ = 0;
  }
  void on_epoch_end(int epoch, EpochLogs& logs) override {
    const CurrentLearningRate rate = model().optimizer().learning_rate();
    const double now = rate.read().item<double>();
    logs["learning_rate"] = now;
    std::optional<double> value = monitor_.value(logs);
    if (!value) return;
    if (cooling_ > 0) {
      --cooling_;
      waited_ = 0;
    }
    if (monitor_.better(*value, best_)) {
      best_ = *value;
      waited_ = 0;
    } else if (cooling_ == 0 && ++waited_ >= options_.patience) {
      if (now <= options_.min_lr) return;
      const double next = std::max(now * options_.factor, options_.min_lr);
      rate.assign(next);
      if (options_.verbose > 0)
        std::cout << text("\nEpoch ", epoch + 1, ": ReduceLROnPlateau reducing learning rate to ", next, ".\n");
      cooling_ = options_.cooldown;
      waited_ = 0;
    }
  }

  void save_state(SavedState& state) const override {
    state.set("best", best_);
    state.set("waited", waited_);
    state.set("cooling", cooling_);
  }
  void load_state(const SavedState& state) override {
    best_ = state.number("best");
    waited_ = static_cast<int>(state.integer("waited"));
    cooling_ = static_cast<int>(state.integer("cooling"));
  }

 private:
  const ReduceLROnPlateauOptions options_;
  Monitor monitor_;
  double best_ = 0;
  int waited_ = 0, cooling_ = 0;
};

class LearningRateSchedulerBody : public CustomCallback {
 public:
  LearningRateSchedulerBody(std::function<double(int, double)> schedule, LearningRateSchedulerOptions options)
      : schedule_(std::move(schedule)), options_(options) {}
  void on_epoch_begin(int epoch, EpochLogs&) override {
    const CurrentLearningRate rate = model().optimizer().learning_rate();
    const double next = schedule_(epoch, rate.read().item<double>());
    rate.assign(next);
    if (options_.verbose > 0)
      std::cout << text("\nEpoch ", epoch + 1, ": LearningRateScheduler setting learning rate to ", next, ".\n");
  }
  void on_epoch_end(int, EpochLogs& logs) override {
    logs["learning_rate"] = model().optimizer().learning_rate().read().item<double>();
  }

 private:
  std::function<double(int, double)> schedule_;
  LearningRateSchedulerOptions options_;
};

class CSVLoggerBody : public CustomCallback {
 public:
  CSVLoggerBody(std::string filename, CSVLoggerOptions options, Where where)
      : filename_(std::move(filename)), options_(std::move(options)), where_(where) {}
  void on_train_begin() override {
    const bool has_head = options_.append && std::ifstream(filename_).peek() != std::ifstream::traits_type::eof();
    // Nothing is taken away before the first line: a training that goes on has lines there.
    opened_ = false;
    bytes_before_ = options_.append ? size_now() : 0;
    std::ofstream probe(filename_, std::ios::app);
    if (!probe) refuse();
    keys_.clear();
    lines_.clear();
    writes_head_ = !has_head;
  }
  void on_epoch_end(int epoch, EpochLogs& logs) override {
    std::string more;
    if (keys_.empty()) {
      for (const auto& [name, value] : logs) keys_.push_back(name);
      if (writes_head_) {
        more += "epoch";
        for (const std::string& key : keys_) more += text(options_.separator, key);
        more += "\n";
      }
    }
    more += text(epoch);
    for (const std::string& key : keys_) {
      auto found = logs.find(key);
      more += text(options_.separator, found == logs.end() ? std::string("NA") : text(found->second));
    }
    write(more + "\n");
  }
  void on_train_end(EpochLogs&) override {
    write("");  // no epoch was run: the file is empty, or what it was
    file_.close();
  }

  void save_state(SavedState& state) const override {
    state.set("bytes_before", bytes_before_);
    state.set("lines", lines_);
    state.set("keys", joined(keys_, "\n"));
    state.set("writes_head", writes_head_);
  }
  void load_state(const SavedState& state) override {
    bytes_before_ = state.integer("bytes_before");
    writes_head_ = state.boolean("writes_head");
    keys_.clear();
    std::istringstream keys(state.string("keys"));
    for (std::string key; std::getline(keys, key);) keys_.push_back(key);
    // What was written after the checkpoint is written again.
    lines_.clear();
    opened_ = false;
    write(state.string("lines"));
  }

 private:
  [[noreturn]] void refuse() const {
    throw UserError(
        error_text(text("CSVLogger: cannot write '", filename_, "'"), where_, "check the folder and its permissions"));
  }
  std::int64_t size_now() const {
    std::ifstream file(filename_, std::ios::ate | std::ios::binary);
    return file ? static_cast<std::int64_t>(file.tellg()) : 0;
  }
  /// Behind what was there before this training, and what it has written.
  void write(const std::string& more) {
    if (!std::exchange(opened_, true)) {
      file_.close();
      std::error_code failed;
      if (size_now() > bytes_before_)
        std::filesystem::resize_file(filename_, static_cast<std::uintmax_t>(bytes_before_), failed);
      file_.open(filename_, std::ios::app);
      if (failed || !file_) refuse();
    }
    file_ << more << std::flush;
    lines_ += more;
  }

  std::string filename_;
  CSVLoggerOptions options_;
  Where where_;
  std::ofstream file_;
  std::int64_t bytes_before_ = 0;
  std::string lines_;  // that this training has written
  std::vector<std::string> keys_;
  bool writes_head_ = true, opened_ = false;
};

class TerminateOnNaNBody : public CustomCallback {
 public:
  void on_train_batch_end(std::int64_t batch, const BatchLogs& logs) override {
    auto loss = logs.find("loss");
    if (loss == logs.end() || std::isfinite(loss->second.item<double>())) return;
    std::cout << text("\nBatch ", batch, ": Invalid loss, terminating training\n");
    model().stop_training();
  }
};

class SwapEMAWeightsBody : public CustomCallback {
 public:
  SwapEMAWeightsBody(SwapEMAWeightsOptions options, Where where) : options_(options), where_(where) {}

  void on_train_begin() override { bring(false); }
  void on_epoch_begin(int, EpochLogs&) override { bring(false); }
  void on_epoch_end(int, EpochLogs&) override {
    if (options_.swap_on_epoch) bring(true);
  }
  void on_train_end(EpochLogs&) override {
    // fit() ends with the averages in the variables; those are there already, and the averages' places hold weights.
    if (averages_are_in_)
      for (const auto& [variable, average] : pairs()) average.assign(variable.read());
    averages_are_in_ = false;
  }
  void on_test_begin() override { bring(true); }
  void on_test_end(EpochLogs&) override { bring(false); }
  void on_predict_begin() override { bring(true); }
  void on_predict_end() override { bring(false); }

  void save_state(SavedState& state) const override { state.set("averages_are_in", averages_are_in_); }
  void load_state(const SavedState& state) override { averages_are_in_ = state.boolean("averages_are_in"); }

 private:
  /// The variables that have an average, and it.
  std::vector<std::pair<Variable, Variable>> pairs() const {
    Optimizer optimizer = model().optimizer();
    while (const Optimizer* wrapped = optimizer.optimizer_body("SwapEMAWeights", where_).wrapped()) {
      const Optimizer inner = *wrapped;
      optimizer = inner;
    }
    CustomOptimizer::State& state = optimizer.optimizer_body("SwapEMAWeights", where_).state();
    if (!state.options.use_ema)
      throw UserError(error_text(text("SwapEMAWeights: the optimizer '", state.name, "' keeps no averages"), where_,
                                 "make it with {.use_ema = true}"));
    std::vector<std::pair<Variable, Variable>> out;
    std::lock_guard lock(state.guard);
    for (const Variable& variable : model().trainable_variables()) {
      auto found = state.slot_of.find(std::pair<std::uint64_t, std::string>(variable.id(), "average"));
      if (found != state.slot_of.end()) out.emplace_back(variable, found->second);
    }
    return out;
  }
  void bring(bool averages) {
    if (averages == averages_are_in_) return;
    for (const auto& [variable, average] : pairs()) {
      const Tensor other = variable.read();
      variable.assign(average.read());
      average.assign(other);
    }
    averages_are_in_ = averages;
  }

  const SwapEMAWeightsOptions options_;
  const Where where_;
  bool averages_are_in_ = false;
};

class LambdaCallbackBody : public CustomCallback {
 public:
  explicit LambdaCallbackBody(LambdaCallbackOptions hooks) : hooks_(std::move(hooks)) {}
  void on_train_begin() override {
    if (hooks_.on_train_begin) hooks_.on_train_begin();
  }
  void on_train_end(EpochLogs& logs) override {
    if (hooks_.on_train_end) hooks_.on_train_end(logs);
  }
  void on_epoch_begin(int epoch, EpochLogs& logs) override {
    if (hooks_.on_epoch_begin) hooks_.on_epoch_begin(epoch, logs);
  }
  void on_epoch_end(int epoch, EpochLogs& logs) override {
    if (hooks_.on_epoch_end) hooks_.on_epoch_end(epoch, logs);
  }
  void on_train_batch_begin(std::int64_t batch) override {
    if (hooks_.on_train_batch_begin) hooks_.on_train_batch_begin(batch);
  }
  void on_train_batch_end(std::int64_t batch, const BatchLogs& logs) override {
    if (hooks_.on_train_batch_end) hooks_.on_train_batch_end(batch, logs);
  }

  void save_state(SavedState& state) const override {
    if (hooks_.save_state) hooks_.save_state(state);
  }
  void load_state(const SavedState& state) override {
    if (hooks_.load_state) hooks_.load_state(state);
  }

 private:
  LambdaCallbackOptions hooks_;
};

}  // namespace

EarlyStopping::EarlyStopping(EarlyStoppingOptions options, Where where)
    : Callback(std::make_shared<EarlyStoppingBody>(std::move(options), where)) {}
int EarlyStopping::stopped_epoch() const { return static_cast<EarlyStoppingBody&>(callback_body({})).stopped_epoch; }
int EarlyStopping::best_epoch() const { return static_cast<EarlyStoppingBody&>(callback_body({})).best_epoch; }

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options, Where where)
    : Callback(std::make_shared<ReduceLROnPlateauBody>(std::move(options), where)) {}
LearningRateScheduler::LearningRateScheduler(std::function<double(int, double)> schedule,
                                             LearningRateSchedulerOptions options)
    : Callback(std::make_shared<LearningRateSchedulerBody>(std::move(schedule), options)) {}
CSVLogger::CSVLogger(std::string filename, CSVLoggerOptions options, Where where)
    : Callback(std::make_shared<CSVLoggerBody>(std::move(filename), std::move(options), where)) {}
TerminateOnNaN::TerminateOnNaN() : Callback(std::make_shared<TerminateOnNaNBody>()) {}
SwapEMAWeights::SwapEMAWeights(SwapEMAWeightsOptions options, Where where)
    : Callback(std::make_shared<SwapEMAWeightsBody>(options, where)) {}
LambdaCallback::LambdaCallback(LambdaCallbackOptions hooks)
    : Callback(std::make_shared<LambdaCallbackBody>(std::move(hooks))) {}

}  // namespace stet::keras
