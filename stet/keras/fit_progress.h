// How far a fit() is, and all that it needs to go on from there in another process. Not a public header.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stet/data/position.h"
#include "stet/keras/callback_list.h"
#include "stet/keras/checkpoint_file.h"
#include "stet/keras/history.h"
#include "stet/keras/model.h"
#include "stet/keras/progress_bar.h"

namespace stet::keras {

struct FitProgress {
  int epoch = 0;           // that runs, or begins next
  std::int64_t steps = 0;  // that it has made
  bool stopped = false;    // somebody has ended the training
  bool tested = false;     // read from a checkpoint: there are Variables that test steps used
  /// Batches of an epoch: as the data says, and as the bar knows.
  std::optional<std::int64_t> batches = {}, target = {};
  ProgressBar::Values values = {};  // that its last step reported
  History history = {};
  EpochLogs last = {};  // of the epoch before
  /// Of the reader that gives its batches, or gave those of the epoch before; of the last validation.
  std::optional<data::IterationPosition> position = {}, validation_position = {};
  /// How many iterations of the two Datasets were begun, which may be one and the same.
  std::uint64_t next_iteration = 0, next_validation = 0;
};

/// A checkpoint of all of it: the progress, the model with all that its steps use, the random generator, callbacks.
CheckpointContents checkpoint_of(const FitProgress& progress, CustomModel& model, const CallbackList& callbacks,
                                 Where where);

/// What a checkpoint says of the progress alone.
FitProgress progress_of(const CheckpointFolder::Found& found, const char* call, Where where);
/// Gives all Variables their values. They are there: Step::prepare(). UserError if it is of something else; then none
/// is changed. What the optimizer keeps of Variables that were frozen until then is forgotten: true if there was some,
/// and the training step is to be made anew.
bool restore_variables(const CheckpointFolder::Found& found, CustomModel& model, const char* call, Where where);
/// Gives callbacks their states.
void restore_callbacks(const CheckpointFolder::Found& found, const CallbackList& callbacks, const char* call,
                       Where where);

}  // namespace stet::keras
