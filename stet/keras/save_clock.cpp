#include "stet/keras/save_clock.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet::keras {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

SaveClock::SaveClock(const char* callback, const SaveFrequency& frequency, Where where)
    : each_epoch_(frequency.word == "epoch"), batches_(frequency.batches), seconds_(frequency.seconds) {
  if (each_epoch_ || batches_ > 0 || (seconds_ > 0 && std::isfinite(seconds_))) return;
  const std::string given = !frequency.word.empty()  ? text("\"", frequency.word, "\"")
                            : frequency.seconds != 0 ? text("EverySeconds{", frequency.seconds, "}")
                                                     : text(frequency.batches);
  throw UserError(error_text(text(callback, ": save_freq is ", given), where,
                             "it is \"epoch\", a number of batches from 1 on, or EverySeconds{…} of more than 0"));
}

void SaveClock::start() {
  last_time_ = seconds_now();
  counts_ = {};
}

bool SaveClock::seconds_are_over() const { return seconds_ > 0 && seconds_now() - last_time_ >= seconds_; }

bool SaveClock::after_batch(std::int64_t batch) {
  const bool new_epoch = batch <= counts_.last;
  counts_.seen += new_epoch ? batch + 1 : batch - counts_.last;
  counts_.last = batch;
  return (batches_ > 0 && counts_.seen >= batches_) || seconds_are_over();
}

bool SaveClock::after_epoch() { return each_epoch_ || seconds_are_over(); }

void SaveClock::saved() {
  last_time_ = seconds_now();
  counts_.seen = 0;
}

}  // namespace stet::keras
