// SaveClock: when a callback that saves now and then is to do so. Not a public header.
#pragma once
#include <cstdint>

#include "stet/base/where.h"
#include "stet/keras/save_frequency.h"

namespace stet::keras {

class SaveClock {
 public:
  /// UserError for a frequency that is none.
  SaveClock(const char* callback, const SaveFrequency& frequency, Where where);

  /// Training begins, or goes on.
  void start();
  /// The batch with this number in its epoch has ended: is it time? Batches are counted as Keras does, also when
  /// several are run at once.
  bool after_batch(std::int64_t batch);
  bool after_epoch();
  /// Batches since the last time, of which a training that goes on is told; and the last one's number.
  struct Counts {
    std::int64_t seen = 0, last = -1;
  };
  Counts counts() const { return counts_; }
  void set_counts(Counts counts) { counts_ = counts; }
  /// It was done.
  void saved();

 private:
  bool seconds_are_over() const;
  bool each_epoch_ = false;
  std::int64_t batches_ = 0;
  double seconds_ = 0, last_time_ = 0;
  Counts counts_;
};

}  // namespace stet::keras
