#include "stet/keras/callback_list.h"

#include <map>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/backup_body.h"
#include "stet/keras/model.h"
#include "stet/keras/names.h"

namespace stet::keras {

CallbackList::CallbackList(const std::vector<Callback>& callbacks, const Model& model, Where where) {
  for (const Callback& callback : callbacks) {
    callbacks_.push_back(callback);
    callback.callback_body(where).set_model(model);
  }
}

std::string CallbackList::recorded_as(const CustomCallback& body) { return class_name_of(body); }

BatchHooks CallbackList::of_batches(void (CustomCallback::*begin)(std::int64_t),
                                    void (CustomCallback::*end)(std::int64_t, const BatchLogs&)) const {
  if (callbacks_.empty()) return {};
  return {[this, begin](std::int64_t number) { tell(begin, number); },
          [this, end](std::int64_t number, const BatchLogs& logs) { tell(end, number, logs); }};
}

std::vector<std::pair<std::string, CustomCallback*>> CallbackList::named() const {
  std::map<std::string, int> counts;
  std::vector<std::pair<std::string, CustomCallback*>> out;
  for (const Callback& callback : callbacks_) {
    CustomCallback& body = callback.callback_body({});
    const std::string name = class_name_of(body);
    out.emplace_back(text(name, " ", counts[name]++), &body);
  }
  return out;
}

BackupAndRestoreBody* CallbackList::backup(Where where) const {
  BackupAndRestoreBody* found = nullptr;
  for (const Callback& callback : callbacks_)
    if (auto* one = dynamic_cast<BackupAndRestoreBody*>(&callback.callback_body(where))) {
      if (found)
        throw UserError(error_text("fit: there are two BackupAndRestore among the callbacks", where,
                                   "a training has one; .double_checkpoint keeps two files"));
      found = one;
    }
  return found;
}

}  // namespace stet::keras
