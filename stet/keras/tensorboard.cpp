#include "stet/keras/tensorboard.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/files/json.h"
#include "stet/keras/config.h"
#include "stet/keras/model.h"
#include "stet/keras/model_config.h"
#include "stet/keras/training.h"
#include "stet/ops/ops.h"
#include "stet/report/profile.h"
#include "stet/report/summary_writer.h"
#include "stet/runtime/log.h"

namespace stet::keras {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Batches from one time to the next; 0: at the ends of epochs only.
std::int64_t batches_of(const UpdateFrequency& frequency, Where where) {
  if (frequency.word == "epoch") return 0;
  if (frequency.word == "batch") return 1;
  if (frequency.word.empty() && frequency.batches > 0) return frequency.batches;
  throw UserError(error_text(text("TensorBoard: update_freq is ",
                                  frequency.word.empty() ? text(frequency.batches) : text("\"", frequency.word, "\"")),
                             where, "it is \"epoch\", \"batch\" or a number of batches from 1 on"));
}

/// A whole number; none where it is something else.
std::optional<std::int64_t> number_in(std::string_view word) {
  while (word.starts_with(' ')) word.remove_prefix(1);
  while (word.ends_with(' ')) word.remove_suffix(1);
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(out) : std::nullopt;
}

/// The first batch and the last one; {0, 0}: none.
ProfileBatches batches_to_profile(const ProfileBatches& given, Where where) {
  ProfileBatches out = given;
  bool known = true;
  if (given.words) {
    const std::string_view words = *given.words;
    const std::size_t comma = words.find(',');
    const std::optional<std::int64_t> first = number_in(words.substr(0, comma)),
                                      last = comma == words.npos ? first : number_in(words.substr(comma + 1));
    known = first && last;
    if (known) out = ProfileBatches(*first, *last);
  }
  const bool none = out.first == 0 && out.last == 0;
  if (known && (none || (out.first > 0 && out.first <= out.last))) return out;
  const std::string found = given.words                 ? text("\"", *given.words, "\"")
                            : given.first == given.last ? text(given.first)
                                                        : text("{", given.first, ", ", given.last, "}");
  throw UserError(error_text(text("TensorBoard: profile_batch = ", found), where,
                             "it is a batch, counted from 1 through all epochs, two of them from first to last, {10, "
                             "20}, or 0 for none"));
}

void check_options(const TensorBoardOptions& options, Where where) {
  auto refuse = [&](const char* option, int value, const char* advice) {
    throw UserError(error_text(text("TensorBoard: ", option, " = ", value), where, advice));
  };
  if (options.histogram_freq < 0)
    refuse("histogram_freq", options.histogram_freq, "it is a number of epochs, or 0 for none");
  if (options.embeddings_freq != 0)
    refuse("embeddings_freq", options.embeddings_freq, "embeddings are not written for TensorBoard: leave it 0");
}

/// What a weight looks like: [images, height, width, 1], from 0, its smallest value, to 1. Undefined for what has no
/// picture: too many axes, or more elements along one than a screen could show.
Tensor picture_of(const Tensor& weight) {
  std::vector<std::int64_t> sizes;
  for (int axis = 0; axis < weight.rank(); ++axis)
    if (const std::int64_t size = weight.dim(axis).value(); size != 1) sizes.push_back(size);
  constexpr std::int64_t most = 1 << 14;
  if (!is_floating(weight.dtype()) || sizes.size() > 4 ||
      std::any_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size == 0 || size > most; }))
    return {};
  const Tensor low = min(weight), range = max(weight) - low;
  const Tensor grey = where(range > 0, (weight - low) / range, zeros_like(weight));
  if (sizes.size() > 2) {
    // Filters [height, width, …]: a picture for each.
    const Tensor filters = reshape(grey, {sizes[0], sizes[1], -1});
    return expand_dims(transpose(filters, {2, 0, 1}), 3);
  }
  sizes.insert(sizes.begin(), 2 - sizes.size(), 1);
  const Tensor flat = reshape(grey, {sizes[0], sizes[1]});
  return expand_dims(sizes[0] > sizes[1] ? transpose(flat) : flat, {0, 3});
}

class TensorBoardBody : public CustomCallback {
 public:
  TensorBoardBody(std::string log_dir, TensorBoardOptions options, Where where)
      : log_dir_(std::move(log_dir)),
        options_(std::move(options)),
        batches_between_(batches_of(options_.update_freq, where)),
        profiled_(batches_to_profile(options_.profile_batch, where)),
        where_(where) {
    check_options(options_, where);
  }

  void on_train_begin() override {
    train_.emplace(folder("train"), where_);
    validation_.reset();
    graph_is_due_ = options_.write_graph;
    batches_ = 0;
    profile_.reset();  // of a fit() that an exception ended
  }
  void on_train_end(EpochLogs&) override {
    if (profile_) write_profile();
    if (batches_ < profiled_.first)
      warn("keras",
           text("stet: TensorBoard: there is no profile: fit() ended after ", batches_,
                batches_ == 1 ? " batch" : " batches", ", and profile_batch begins at ", profiled_.first, "\n"));
    if (train_) train_->close(where_);
    if (validation_) validation_->close(where_);
    train_.reset();
    validation_.reset();
  }

  void on_epoch_begin(int, EpochLogs&) override {
    last_batch_ = -1;
    steps_before_epoch_ = iterations();
    epoch_began_ = seconds_now();
  }
  void on_epoch_end(int epoch, EpochLogs& logs) override {
    constexpr std::string_view of_validation = "val_";
    for (const auto& [name, value] : logs) {
      if (name.starts_with(of_validation))
        validation().scalar("epoch_" + name.substr(of_validation.size()), value, epoch, where_);
      else if (name != "learning_rate")
        train_->scalar("epoch_" + name, value, epoch, where_);
    }
    train_->scalar("epoch_learning_rate", model().optimizer().learning_rate().read(), epoch, where_);
    if (options_.write_steps_per_second) {
      const auto steps = static_cast<double>(iterations() - steps_before_epoch_);
      train_->scalar("epoch_steps_per_second", steps / (seconds_now() - epoch_began_), epoch, where_);
    }
    if (options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0) write_weights(epoch);
  }

  void on_train_batch_begin(std::int64_t) override {
    if (batches_ < profiled_.first && profiled_.first <= batches_ + steps_at_once()) {
      first_profiled_ = batches_ + 1;
      profile_.emplace(ProfileOptions{}, where_);
    }
    if (options_.write_steps_per_second) batch_began_ = seconds_now();
  }
  void on_train_batch_end(std::int64_t batch, const BatchLogs& logs) override {
    const double seconds = options_.write_steps_per_second ? seconds_now() - batch_began_ : 0;
    const std::int64_t steps = batch - std::exchange(last_batch_, batch), before = batches_;
    batches_ += steps;
    if (profile_ && batches_ >= profiled_.last) write_profile();
    if (std::exchange(graph_is_due_, false)) write_graphs();
    if (batches_between_ == 0 || before / batches_between_ == batches_ / batches_between_) return;
    if (options_.write_steps_per_second)
      train_->scalar("batch_steps_per_second", static_cast<double>(steps) / seconds, batches_, where_);
    for (const auto& [name, value] : logs) train_->scalar("batch_" + name, value, batches_, where_);
  }

  void on_test_end(EpochLogs& logs) override {
    for (const auto& [name, value] : logs)
      validation().scalar(text("evaluation_", name, "_vs_iterations"), value, iterations(), where_);
  }

  void save_state(SavedState& state) const override {
    state.set("batches", batches_);
    state.set("last_batch", last_batch_);
  }
  void load_state(const SavedState& state) override {
    batches_ = state.integer("batches");
    last_batch_ = state.integer("last_batch");
  }

 private:
  std::string folder(const char* name) const { return text(log_dir_.empty() ? "." : log_dir_, "/", name); }
  const SummaryWriter& validation() {
    if (!validation_) validation_.emplace(folder("validation"), where_);
    return *validation_;
  }
  std::int64_t iterations() const { return model().optimizer().iterations().read().item<std::int64_t>(); }

  Training& training() const { return dynamic_cast<CustomModel&>(*model().body()).training(); }
  std::int64_t steps_at_once() const {
    std::lock_guard lock(training().guard);
    return training().options.steps_per_execution;
  }

  void write_profile() {
    profile_->stop(where_);
    profile_->save_tensorboard(folder("train"), first_profiled_, where_);
    profile_.reset();
  }

  void write_weights(int epoch) {
    for (const Weight& weight : model().weights()) {
      // Without the model's own name: the same layers are the same curves in every run.
      const std::string name = weight.path.substr(weight.path.find('/') + 1);
      const Tensor value = weight.variable.read();
      train_->histogram(name + "/histogram", value, epoch, {}, where_);
      if (!options_.write_images) continue;
      if (const Tensor picture = picture_of(value); picture.defined())
        train_->image(name + "/image", picture, epoch, {}, where_);
    }
  }

  /// As files of models have it. Nothing of a model of a user's class, and, with a warning, of one with layers that
  /// cannot be described.
  std::optional<std::string> description_of(CustomModel& body) const {
    if (!is_model_of_layers(body)) return std::nullopt;
    try {
      Fields::Place place{.call = "TensorBoard", .where = where_};
      const SharedLayers shared(body);
      return files::to_text(to_config(model(), place));
    } catch (const UserError& error) {
      warn("keras", text("stet: the graph of layers is left out: ", error.what(), "\n"));
      return std::nullopt;
    }
  }

  void write_graphs() {
    const Model fitted = model();
    auto& body = dynamic_cast<CustomModel&>(*fitted.body());
    if (const std::optional<std::string> layers = description_of(body))
      train_->write_string("keras", *layers, 0, {.plugin_name = "graph_keras_model", .plugin_content = "1"}, where_);
    Training& training = body.training();
    std::unique_lock lock(training.guard);
    const bool traced = !training.options.run_eagerly;
    lock.unlock();
    if (traced) train_->graph(fitted.train_function(where_), 0, where_);
  }

  const std::string log_dir_;
  const TensorBoardOptions options_;
  const std::int64_t batches_between_;
  const ProfileBatches profiled_;
  const Where where_;
  std::optional<SummaryWriter> train_, validation_;
  std::optional<Profile> profile_;
  std::int64_t first_profiled_ = 0;
  bool graph_is_due_ = false;
  std::int64_t batches_ = 0, last_batch_ = -1, steps_before_epoch_ = 0;
  double epoch_began_ = 0, batch_began_ = 0;
};

}  // namespace

TensorBoard::TensorBoard(std::string log_dir, TensorBoardOptions options, Where where)
    : Callback(std::make_shared<TensorBoardBody>(std::move(log_dir), std::move(options), where)) {}

}  // namespace stet::keras
