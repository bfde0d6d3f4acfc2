#include "stet/data/crew.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>

#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/runtime/parallel.h"

namespace stet::data {
namespace {

/// While it lives, threads that are started get no signals: the program's handlers run on the program's threads.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

void Crew::start(std::size_t count, const std::function<void()>& body, const char* stage, Where where) {
  auto threads = std::make_unique<std::vector<std::thread>>();
  threads->reserve(count);
  generation_ = fork_generation();
  threads_ = std::move(threads);
  NoSignals blocked;
  try {
    while (threads_->size() < count)
      threads_->emplace_back([body] {
        run_regions_inline();
        body();
      });
  } catch (const std::system_error& error) {
    if (!threads_->empty()) return;  // fewer do the same work
    threads_.reset();
    throw UserError(error_text(text(stage, ": no thread can be started: ", error.what()), where,
                               text("end other threads, or do without ", stage)));
  }
}

bool Crew::lost() const { return threads_ && generation_ != fork_generation(); }

void Crew::require(const char* stage, Where where) const {
  if (lost())
    throw UserError(error_text(text(stage, ": this iteration was begun before fork(), and its threads are not here"),
                               where, "begin another iteration in the child"));
}

void Crew::join() {
  for (std::thread& thread : *threads_) thread.join();
  threads_.reset();
}

}  // namespace stet::data
