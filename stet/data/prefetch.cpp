// Elements made ahead of time, by a thread for each pass.
#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "stet/base/error.h"
#include "stet/data/stage.h"
#include "stet/runtime/parallel.h"

namespace stet::data {
namespace {

/// Starts a thread that gets no signals: the program's handlers run on the program's threads.
template <class Body>
std::thread thread_without_signals(Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

class PrefetchCursor : public Elements {
 public:
  PrefetchCursor(std::unique_ptr<Elements> upstream, std::int64_t buffer_size, Where where)
      : upstream_(std::move(upstream)), buffer_size_(static_cast<std::size_t>(buffer_size)) {
    try {
      thread_ = thread_without_signals([this] { produce(); });
    } catch (const std::system_error& error) {
      throw UserError(error_text(std::string("prefetch: no thread can be started: ") + error.what(), where,
                                 "end other threads, or do without prefetch"));
    }
  }
  ~PrefetchCursor() override {
    {
      std::lock_guard lock(guard_);
      abandoned_ = true;
    }
    room_.notify_one();
    thread_.join();
  }

  bool next(Tensors& out) override {
    std::unique_lock lock(guard_);
    news_.wait(lock, [&] { return !ready_.empty() || ended_; });
    if (ready_.empty()) {
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
      return false;
    }
    out = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    room_.notify_one();
    return true;
  }

 private:
  void produce() {
    run_regions_inline();
    std::exception_ptr error;
    try {
      Tensors element;
      while (upstream_->next(element) && hand_over(std::move(element))) element.clear();
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard lock(guard_);
    ended_ = true;
    error_ = std::move(error);  // moved, so that this thread touches the exception no more
    news_.notify_one();
  }
  /// False when nobody wants more.
  bool hand_over(Tensors element) {
    std::unique_lock lock(guard_);
    room_.wait(lock, [&] { return ready_.size() < buffer_size_ || abandoned_; });
    if (abandoned_) return false;
    ready_.push_back(std::move(element));
    lock.unlock();
    news_.notify_one();
    return true;
  }

  std::unique_ptr<Elements> upstream_;  // the thread's
  const std::size_t buffer_size_;
  std::mutex guard_;
  std::condition_variable news_, room_;
  std::deque<Tensors> ready_;
  bool ended_ = false, abandoned_ = false;
  std::exception_ptr error_;  // comes after what is ready
  std::thread thread_;
};

class PrefetchStage : public LaterStage {
 public:
  PrefetchStage(StagePointer before, std::int64_t buffer_size, Where where)
      : LaterStage(std::move(before)), buffer_size_(buffer_size), where_(where) {}
  std::unique_ptr<Elements> elements(const Pass& pass) const override {
    return std::make_unique<PrefetchCursor>(upstream->elements(pass), buffer_size_, where_);
  }
  std::int64_t count() const override { return upstream->count(); }

 private:
  std::int64_t buffer_size_;
  Where where_;
};

}  // namespace

StagePointer prefetch_stage(StagePointer upstream, std::int64_t buffer_size, Where where) {
  return std::make_shared<PrefetchStage>(std::move(upstream), buffer_size, where);
}

}  // namespace stet::data
