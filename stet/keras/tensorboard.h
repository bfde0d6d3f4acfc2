// TensorBoard: what a training measures, as files that TensorBoard shows.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/keras/callback.h"

namespace stet::keras {

/// "epoch": at the end of each; "batch": after each; a number: after every so many batches.
struct UpdateFrequency {
  UpdateFrequency(const char* word) : word(word) {}
  UpdateFrequency(std::string word) : word(std::move(word)) {}
  template <std::integral I>
  requires(!std::same_as<I, bool>) UpdateFrequency(I batches) : batches(static_cast<std::int64_t>(batches)) {}

  std::string word = {};
  std::int64_t batches = 0;
};

/// Which batches of fit() are profiled, counted from 1 through all epochs. 0: none; 5: the fifth; {10, 20}: from the
/// tenth to the twentieth. As words, as Keras takes them: "5", "10,20".
struct ProfileBatches {
  template <std::integral I>
  requires(!std::same_as<I, bool>) ProfileBatches(I batch)
      : first(static_cast<std::int64_t>(batch)), last(static_cast<std::int64_t>(batch)) {}
  ProfileBatches(std::int64_t first, std::int64_t last) : first(first), last(last) {}
  ProfileBatches(const char* words) : words(words) {}
  ProfileBatches(std::string words) : words(std::move(words)) {}

  std::int64_t first = 0, last = 0;
  std::optional<std::string> words = {};
};

struct TensorBoardOptions {
  int histogram_freq = 0;     // epochs from one histogram of every weight to the next; 0: none
  bool write_graph = true;    // of the layers, and of the traced step
  bool write_images = false;  // of every weight, with its histogram; from black, its smallest value, to white
  bool write_steps_per_second = false;
  UpdateFrequency update_freq = "epoch";  // of losses and metrics; what an epoch measured is written in any case
  ProfileBatches profile_batch = 0;       // what these batches do and when, for the profile tab
  int embeddings_freq = 0;                // embeddings are not written: 0 (UserError)
};

/// Writes losses and metrics, and what the options ask for, into the folders "train" and "validation" of `log_dir`, by
/// the names that Keras gives them: "epoch_loss" by epochs, "batch_loss" by batches since fit() began,
/// "evaluation_loss_vs_iterations" by steps of the optimizer. `tensorboard --logdir logs` shows them while it trains.
class STET_API TensorBoard : public Callback {
 public:
  explicit TensorBoard(std::string log_dir = "logs", TensorBoardOptions options = {}, Where where = Where::here());
};

}  // namespace stet::keras
