// oneDNN threads by OpenMP; where our workers call it, it must not.
#pragma once
#include <omp.h>

namespace stet::cpu {

/// While it lives, OpenMP regions of this thread run on it alone. What the user has set on the thread comes back.
class SingleOpenMpThread {
 public:
  SingleOpenMpThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~SingleOpenMpThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  SingleOpenMpThread(const SingleOpenMpThread&) = delete;
  SingleOpenMpThread& operator=(const SingleOpenMpThread&) = delete;

 private:
  int before_;
};

}  // namespace stet::cpu
