#include "stet/keras/interrupt.h"

#include <csignal>
#include <mutex>

#include "stet/base/lock.h"

namespace stet::keras {
namespace {

volatile std::sig_atomic_t noted = 0;

void note(int) {
  if (noted) {  // once more: as it would be without us
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  noted = 1;
}

struct Watching {
  Lock guard;
  int alive = 0;
  bool ours = false;  // nobody else handled the signal
};
Watching& watching() {
  static auto* const one = new Watching;  // never destroyed: models may be fitted until the process ends
  return *one;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  Watching& all = watching();
  std::lock_guard lock(all.guard);
  if (all.alive++ > 0) return;
  struct sigaction now = {};
  all.ours = ::sigaction(SIGINT, nullptr, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL;
  if (!all.ours) return;
  noted = 0;
  std::signal(SIGINT, note);
}
InterruptWatch::~InterruptWatch() {
  Watching& all = watching();
  std::lock_guard lock(all.guard);
  if (--all.alive > 0 || !all.ours) return;
  std::signal(SIGINT, SIG_DFL);
}
bool InterruptWatch::interrupted() { return noted != 0; }

}  // namespace stet::keras
