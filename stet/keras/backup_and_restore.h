// BackupAndRestore: a training that is killed goes on where it was.
#pragma once
#include <string>

#include "stet/base/export.h"
#include "stet/base/where.h"
#include "stet/keras/callback.h"
#include "stet/keras/save_frequency.h"

namespace stet::keras {

struct BackupAndRestoreOptions {
  SaveFrequency save_freq = "epoch";
  bool double_checkpoint = false;  // the last two are kept: if the last one is damaged, there is the one before
  bool delete_checkpoint = true;   // when training has ended
};

/// Writes checkpoints of a fit() into a folder. A fit() that finds one there goes on with the batch after it, and ends
/// with the numbers, to the last bit, that it would have ended with: weights, optimizer, metrics, random generators,
/// the data's position, History and the other callbacks' states are all in it. It says so on stderr.
///
/// A checkpoint is complete or not there, whenever the process is killed, and the one before goes when the next one is
/// on the disk. One that cannot be written is a UserError of fit(). After Ctrl-C, fit() writes one and keeps it.
class STET_API BackupAndRestore : public Callback {
 public:
  explicit BackupAndRestore(std::string backup_dir, BackupAndRestoreOptions options = {}, Where where = Where::here());
};

}  // namespace stet::keras
