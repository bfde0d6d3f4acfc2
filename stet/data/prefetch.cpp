// Elements made ahead of time, by a thread for each pass.
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "stet/base/text.h"
#include "stet/data/crew.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

/// How many elements a buffer of its own choice holds at most.
constexpr std::size_t most_chosen = 64;

/// Elements on their way from the thread to the one who asks.
class Queue {
 public:
  Queue(std::unique_ptr<Elements> upstream, std::int64_t buffer_size)
      : upstream_(std::move(upstream)),
        chooses_(buffer_size == autotune),
        limit_(chooses_ ? 2 : static_cast<std::size_t>(buffer_size)) {}

  std::int64_t skip_before_start(std::int64_t count) { return upstream_->skip(count); }

  bool take(Tensors& out, StageStatistics* statistics) {
    std::unique_lock lock(guard_);
    if (statistics) {
      StageStatistics::add(statistics->looks, 1);
      StageStatistics::add(statistics->found, ready_.size());
      statistics->room.store(limit_, std::memory_order_relaxed);
    }
    if (chooses_) choose();
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

  void produce() {
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

  void abandon() {
    {
      std::lock_guard lock(guard_);
      abandoned_ = true;
    }
    room_.notify_one();
  }

 private:
  /// False when nobody wants more.
  bool hand_over(Tensors element) {
    std::unique_lock lock(guard_);
    room_.wait(lock, [&] { return ready_.size() < limit_ || abandoned_; });
    if (abandoned_) return false;
    ready_.push_back(std::move(element));
    was_full_ |= ready_.size() == limit_;
    lock.unlock();
    news_.notify_one();
    return true;
  }
  /// Who makes elements is fast enough to fill the buffer, and yet it was empty once: it comes in bursts, and more
  /// room would have helped. One that is always too slow gets none.
  void choose() {
    if (!ready_.empty() || !was_full_ || limit_ >= most_chosen) return;
    was_full_ = false;
    limit_ *= 2;
  }

  std::unique_ptr<Elements> upstream_;  // the thread's
  const bool chooses_;
  std::mutex guard_;
  std::condition_variable news_, room_;
  std::size_t limit_;
  std::deque<Tensors> ready_;
  bool ended_ = false, abandoned_ = false, was_full_ = false;
  std::exception_ptr error_;  // comes after what is ready
};

class PrefetchCursor : public Elements {
 public:
  PrefetchCursor(std::unique_ptr<Elements> upstream, std::int64_t buffer_size, StageStatistics* statistics, Where where)
      : queue_(std::move(upstream), buffer_size), statistics_(statistics), where_(where) {}

  bool next(Tensors& out) override {
    start();
    queue_.crew().require("prefetch", where_);
    return queue_->take(out, statistics_);
  }
  std::int64_t skip(std::int64_t count) override {
    return queue_.crew().started() ? Elements::skip(count) : queue_->skip_before_start(count);
  }

 private:
  /// At the first element, not before: until then, what is skipped need not be made.
  void start() {
    if (queue_.crew().started()) return;
    queue_.crew().start(
        1, [&queue = *queue_] { queue.produce(); }, "prefetch", where_);
  }
  CrewWork<Queue> queue_;
  StageStatistics* statistics_;
  Where where_;
};

class PrefetchStage : public LaterStage {
 public:
  PrefetchStage(StagePointer before, std::int64_t buffer_size, Where where)
      : LaterStage(before, {.name = "prefetch",
                            .arguments = buffer_size == autotune ? "autotune" : text(buffer_size),
                            .where = where,
                            .count = before->count(),
                            .passes_on = true}),
        buffer_size_(buffer_size) {}
  bool has_threads() const override { return true; }
  std::optional<std::vector<TensorSpec>> spec() const override { return upstream.spec(); }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    return std::make_unique<PrefetchCursor>(upstream.elements(pass), buffer_size_,
                                            pass.statistics ? pass.statistics->of(this) : nullptr, facts().where);
  }
  std::int64_t buffer_size_;
};

}  // namespace

StagePointer prefetch_stage(StagePointer upstream, std::int64_t buffer_size, Where where) {
  return std::make_shared<PrefetchStage>(std::move(upstream), buffer_size, where);
}

}  // namespace stet::data
