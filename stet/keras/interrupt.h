// Ctrl-C while a model is fitted: the first one ends after the batch, a second one ends the program. Not a public
// header.
#pragma once

namespace stet::keras {

/// While the outermost one lives, SIGINT is noted instead of ending the program, unless somebody else handles it.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;
  static bool interrupted();
};

}  // namespace stet::keras
