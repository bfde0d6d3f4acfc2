#include "stet/keras/backup_and_restore.h"

#include <utility>

#include "stet/base/error.h"
#include "stet/keras/backup_body.h"

namespace stet::keras {

BackupAndRestoreBody::BackupAndRestoreBody(std::string folder, const BackupAndRestoreOptions& options, Where where)
    : clock(call, options.save_freq, where),
      folder_(std::move(folder), call),
      twice_(options.double_checkpoint),
      deletes_(options.delete_checkpoint),
      where_(where) {
  if (folder_.path().empty())
    throw UserError(error_text("BackupAndRestore: backup_dir is empty", where, "name a folder"));
}

void BackupAndRestoreBody::write(const CheckpointContents& contents) {
  folder_.write(contents, twice_ ? 2 : 1, where_);
  clock.saved();
}

void BackupAndRestoreBody::end() {
  if (deletes_) folder_.clear(where_);
}

BackupAndRestore::BackupAndRestore(std::string backup_dir, BackupAndRestoreOptions options, Where where)
    : Callback(std::make_shared<BackupAndRestoreBody>(std::move(backup_dir), options, where)) {}

}  // namespace stet::keras
