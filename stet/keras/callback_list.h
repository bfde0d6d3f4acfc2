// The callbacks of a fit(), evaluate() or predict(). Not a public header.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "stet/keras/callback.h"
#include "stet/runtime/recording.h"

namespace stet::keras {

class BackupAndRestoreBody;

/// What is told of every batch of an epoch.
struct BatchHooks {
  std::function<void(std::int64_t number)> begin = {};
  std::function<void(std::int64_t number, const BatchLogs& logs)> end = {};
  std::function<bool()> stops = {};  // after this batch
  std::int64_t steps_at_once = 1;    // batches that are run between a begin and its end
};

class CallbackList {
 public:
  CallbackList(const std::vector<Callback>& callbacks, const Model& model, Where where);
  template <class... P, class... A>
  void tell(void (CustomCallback::*hook)(P...), A&&... given) const {
    for (const Callback& callback : callbacks_) {
      CustomCallback& body = callback.callback_body({});
      recording::Span span(recording::Kind::callback, [&] { return recorded_as(body); });
      (body.*hook)(given...);
    }
  }
  /// Of every batch, if there is anybody to tell.
  BatchHooks of_batches(void (CustomCallback::*begin)(std::int64_t),
                        void (CustomCallback::*end)(std::int64_t, const BatchLogs&)) const;

  /// By class and number among those of it, "EarlyStopping 0": what they are known by in checkpoints.
  std::vector<std::pair<std::string, CustomCallback*>> named() const;
  /// The one that there is, or null. UserError if there are two.
  BackupAndRestoreBody* backup(Where where) const;

 private:
  static std::string recorded_as(const CustomCallback& body);
  std::vector<Callback> callbacks_;
};

}  // namespace stet::keras
