// What stands behind BackupAndRestore: fit() asks it when to save, and does it, since only fit() knows how far it is.
// Not a public header.
#pragma once
#include <optional>
#include <string>

#include "stet/keras/backup_and_restore.h"
#include "stet/keras/checkpoint_file.h"
#include "stet/keras/save_clock.h"

namespace stet::keras {

class BackupAndRestoreBody : public CustomCallback {
 public:
  BackupAndRestoreBody(std::string folder, const BackupAndRestoreOptions& options, Where where);

  static constexpr const char* call = "BackupAndRestore";
  SaveClock clock;
  /// The line that made it, which errors name.
  Where where() const { return where_; }
  std::optional<CheckpointFolder::Found> newest() { return folder_.newest(where_); }
  void write(const CheckpointContents& contents);
  /// All is done.
  void end();

 private:
  CheckpointFolder folder_;
  const bool twice_, deletes_;
  const Where where_;
};

}  // namespace stet::keras
