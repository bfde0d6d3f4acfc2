// Checkpoints of training loops of your own. fit() has BackupAndRestore.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/core/variable.h"
#include "stet/keras/layer.h"
#include "stet/keras/metric.h"
#include "stet/keras/optimizer.h"
#include "stet/keras/saved_state.h"

namespace stet::keras {

/// What goes into a checkpoint. The process that restores it gives the same, under the same names.
struct CheckpointOptions {
  Layer model = {};  // its weights; it is built
  Optimizer optimizer = {};
  std::map<std::string, Layer> models = {};  // more of them
  std::map<std::string, Optimizer> optimizers = {};
  std::map<std::string, Metric> metrics = {};
  std::map<std::string, Variable> variables = {};  // {"step", step}; of a Generator, its variable()
  bool random = true;                              // the process's random generator
};

/// The state of a training, to files and back. Copies share it.
///
///   keras::Checkpoint checkpoint({.model = model, .optimizer = optimizer});
///   checkpoint.save("run");           // run/ckpt-1, run/ckpt-2, …
///   checkpoint.restore("run");        // the newest one that is whole
///
/// A file is complete or does not exist, whenever the process is killed, and every byte of it is under a checksum.
class STET_API Checkpoint {
 public:
  explicit Checkpoint(CheckpointOptions options, Where where = Where::here());

  /// Writes the folder's next checkpoint, and makes the folder where there is none. `notes` come back from restore():
  /// how far a loop is, the position of a Dataset's iteration as text. Gives the path of the file.
  std::string save(const std::string& folder, const SavedState& notes = {}, Where where = Where::here()) const;
  /// Gives everything the values that the newest whole checkpoint of the folder has; what is skipped is told on stderr.
  /// Nothing is done, and nothing given, if there is none. UserError, and nothing is changed, if it is of something
  /// else. A path of a file is that checkpoint.
  std::optional<SavedState> restore(const std::string& folder_or_file, Where where = Where::here()) const;

 private:
  friend class CheckpointManager;
  struct State;
  std::shared_ptr<const State> state_;
};

struct CheckpointManagerOptions {
  std::size_t max_to_keep = 5;  // 0: all
};

/// Keeps the last checkpoints of a folder.
class STET_API CheckpointManager {
 public:
  CheckpointManager(Checkpoint checkpoint, std::string folder, CheckpointManagerOptions options = {},
                    Where where = Where::here());
  /// The new one is on the disk before an old one goes. Gives its path.
  std::string save(const SavedState& notes = {}, Where where = Where::here()) const;
  std::optional<SavedState> restore(Where where = Where::here()) const;
  /// Paths of those that are there, the newest last.
  std::vector<std::string> checkpoints(Where where = Where::here()) const;
  std::optional<std::string> latest_checkpoint(Where where = Where::here()) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stet::keras
