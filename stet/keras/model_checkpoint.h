// ModelCheckpoint: the model, or its weights, as files, while it is trained.
#pragma once
#include <optional>
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/keras/callback.h"
#include "stet/keras/save_frequency.h"

namespace stet::keras {

struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  int verbose = 0;
  bool save_best_only = false;  // only when the monitored value is the best so far
  bool save_weights_only = false;
  std::string mode = "auto";  // which way the value is better: "min", "max", or by its name
  SaveFrequency save_freq = "epoch";
  std::optional<double> initial_value_threshold = {};  // the best so far, at the beginning
};

/// Saves the model after epochs, or in between. The path may have values in it, written as Python's str.format does:
/// "{epoch:02d}-{val_loss:.2f}.keras" (epochs and batches are counted from 1). It ends with ".keras"; that of weights
/// alone with ".weights.h5" or ".safetensors". Folders are made. A file is complete or not there; one that was there
/// stays until it is.
class STET_API ModelCheckpoint : public Callback {
 public:
  explicit ModelCheckpoint(std::string filepath, ModelCheckpointOptions options = {}, Where where = Where::here());
  /// The best of the monitored values; nothing before there is one.
  std::optional<double> best() const;
};

}  // namespace stet::keras
