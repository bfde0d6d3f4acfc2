// Elements through a function that several threads call.
//
// A thread takes a few elements from upstream, one thread at a time, and calls the function for each while others do
// the same with the next ones. What it takes at once is one slot of a window; slots come out in the order in which they
// were taken, or as they are done. Random numbers follow from an element's number, so results do not depend on threads.
//
// Where upstream only orders the elements of a source that calls host code (a folder of images), threads take positions
// and make the elements, too: reading and decoding go on side by side.
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "stet/base/text.h"
#include "stet/data/crew.h"
#include "stet/data/stage.h"
#include "stet/runtime/parallel.h"

namespace stet::data {
namespace {

/// So long should a thread be busy with what it takes at once: then handing over costs little. An element that takes
/// longer is taken alone.
constexpr std::uint64_t slot_nanoseconds = 100'000;
constexpr std::size_t most_in_slot = 64;

struct Slot {
  std::vector<Tensors> results = {};
  std::exception_ptr error = {};  // comes after the results
  bool done = false;
};

/// Where elements come from: take() is for one thread at a time, make() for all at once.
class Supply {
 public:
  Supply(const Stage& upstream, const Pass& pass) : pass_(pass) {
    source_ = upstream.source() && upstream.source()->calls_host_code() ? upstream.source() : nullptr;
    if (source_)
      positions_ = upstream.positions(pass);
    else
      elements_ = upstream.elements(pass);
  }
  struct Item {
    Tensors element = {};
    std::int64_t position = 0;
  };
  /// What one thread draws with for the source; nothing where take() gives whole elements.
  std::optional<SourceDraws> draws() const {
    return source_ ? std::optional<SourceDraws>(std::in_place, pass_, *source_) : std::nullopt;
  }

  bool take(Item& out) { return source_ ? positions_->next(out.position) : elements_->next(out.element); }
  /// How long that took. `number`: of the element in this pass.
  std::uint64_t make(Item& item, std::uint64_t number, std::optional<SourceDraws>& draws) const {
    if (!source_) return 0;
    const std::uint64_t begin = nanoseconds_now();
    draws->go_to(number);
    source_->element(item.position, *draws, item.element);
    draws->count(1);
    return nanoseconds_now() - begin;
  }
  std::int64_t skip(std::int64_t count) { return source_ ? positions_->skip(count) : elements_->skip(count); }

 private:
  const Pass pass_;
  const Source* source_;
  std::unique_ptr<Positions> positions_;
  std::unique_ptr<Elements> elements_;
};

class Window {
 public:
  Window(const Stage& upstream, const ElementFunction& function, const Pass& pass, std::size_t threads, bool ordered,
         const char* checked, const Stage& stage, StageStatistics* statistics, Where where)
      : upstream_(upstream, pass.before_map()),
        function_(function),
        seeds_(pass),
        most_slots_(2 * threads),
        ordered_(ordered),
        checked_(checked),
        stage_(stage),
        statistics_(statistics),
        where_(where) {}

  std::int64_t skip_before_start(std::int64_t count) {
    const std::int64_t skipped = upstream_.skip(count);
    taken_ += static_cast<std::uint64_t>(skipped);
    return skipped;
  }

  /// A slot that is done; none at the end.
  bool take(Slot& out) {
    std::unique_lock lock(guard_);
    if (statistics_) {
      StageStatistics::add(statistics_->looks, 1);
      StageStatistics::add(statistics_->found,
                           static_cast<std::uint64_t>(
                               std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.done; })));
      statistics_->room.store(most_slots_, std::memory_order_relaxed);
    }
    for (;;) {
      auto ready = slots_.begin();
      if (!ordered_) ready = std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.done; });
      if (ready != slots_.end() && ready->done) {
        out = std::move(*ready);
        slots_.erase(ready);
        lock.unlock();
        room_.notify_one();
        return true;
      }
      if (slots_.empty() && ended_) return false;
      news_.wait(lock);
    }
  }

  void work() {
    RandomStream stream;
    std::optional<SourceDraws> source_draws = upstream_.draws();
    std::vector<Supply::Item> elements;
    for (;;) {
      std::unique_lock lock(guard_);
      room_.wait(lock, [&] { return abandoned_ || ended_ || (!taking_ && slots_.size() < most_slots_); });
      if (abandoned_ || ended_) return;
      taking_ = true;
      Slot& slot = slots_.emplace_back();  // stays where it is until it is done and taken
      const std::uint64_t first = taken_;
      const std::size_t most = at_once_;
      lock.unlock();

      const std::uint64_t begin = nanoseconds_now();
      std::exception_ptr error;
      bool more = true;
      elements.clear();
      try {
        while (elements.size() < most && more) {
          Supply::Item element;
          more = upstream_.take(element);
          if (more) elements.push_back(std::move(element));
        }
      } catch (...) {
        error = std::current_exception();
        more = false;
      }
      lock.lock();
      taking_ = false;
      taken_ += elements.size();
      ended_ |= !more;
      const bool ended = ended_;
      lock.unlock();
      if (ended)
        room_.notify_all();
      else
        room_.notify_one();

      const std::uint64_t middle = nanoseconds_now();
      std::uint64_t making = 0;
      std::vector<Tensors> results;
      for (std::size_t i = 0; i < elements.size() && !abandoned_; ++i) {
        try {
          making += upstream_.make(elements[i], first + i, source_draws);
          RandomStream::Use draws(stream, seeds_.streams_of(first + i));
          Tensors result;
          function_(elements[i].element, result);
          if (checked_) require_values(result, static_cast<std::int64_t>(first + i), checked_, where_);
          results.push_back(std::move(result));
        } catch (...) {
          error = std::current_exception();
          break;
        }
        elements[i].element.clear();
      }
      const std::uint64_t end = nanoseconds_now();
      if (statistics_) StageStatistics::add(statistics_->busy, end - middle - making);
      if (!elements.empty()) record_work(stage_, begin);

      lock.lock();
      if (!elements.empty()) {
        const std::uint64_t each = std::max<std::uint64_t>((end - begin) / elements.size(), 1);
        at_once_ = std::clamp<std::size_t>(slot_nanoseconds / each, 1, std::min(most_in_slot, 2 * at_once_));
      }
      slot.results = std::move(results);
      slot.error = std::move(error);  // moved, so that this thread touches the exception no more
      slot.done = true;
      lock.unlock();
      news_.notify_one();
    }
  }

  void abandon() {
    {
      std::lock_guard lock(guard_);
      abandoned_ = true;
    }
    room_.notify_all();
  }

 private:
  Supply upstream_;
  const ElementFunction& function_;
  const ElementSeeds seeds_;
  const std::size_t most_slots_;
  const bool ordered_;
  const char* const checked_;
  const Stage& stage_;
  StageStatistics* const statistics_;
  const Where where_;
  std::mutex guard_;
  std::condition_variable news_, room_;
  std::list<Slot> slots_;    // in the order in which they were taken
  std::uint64_t taken_ = 0;  // elements, from upstream
  std::size_t at_once_ = 1;  // elements that a thread takes at once
  bool taking_ = false, ended_ = false;
  std::atomic<bool> abandoned_ = false;
};

class ParallelMapCursor : public Elements {
 public:
  template <class... A>
  ParallelMapCursor(std::size_t threads, const char* name, Where where, A&&... of_window)
      : window_(std::forward<A>(of_window)...), threads_(threads), name_(name), where_(where) {}

  bool next(Tensors& out) override {
    start();
    window_.crew().require(name_, where_);
    while (at_ == slot_.results.size()) {
      if (slot_.error) std::rethrow_exception(std::exchange(slot_.error, nullptr));
      slot_ = {};
      at_ = 0;
      if (!window_->take(slot_)) return false;
    }
    out = std::move(slot_.results[at_++]);
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    return window_.crew().started() ? Elements::skip(count) : window_->skip_before_start(count);
  }

 private:
  /// At the first element, not before: until then, what is skipped need not be made.
  void start() {
    if (window_.crew().started()) return;
    window_.crew().start(
        threads_, [&window = *window_] { window.work(); }, name_, where_);
  }
  CrewWork<Window> window_;
  Slot slot_;  // the one that is being given out
  std::size_t at_ = 0;
  const std::size_t threads_;
  const char* name_;
  Where where_;
};

class ParallelMapStage : public LaterStage {
 public:
  ParallelMapStage(StagePointer before, ElementFunction function, const MapOptions& options, bool host, Where where)
      : LaterStage(before, {.name = host ? "map_host" : "map",
                            .where = where,
                            .count = before->count(),
                            .draws = true,
                            .label = options.name,
                            .threading = described_options(options)}),
        function_(std::move(function)),
        options_(options),
        host_(host) {}
  bool has_threads() const override { return true; }
  bool repeatable() const override { return options_.deterministic || options_.num_parallel_calls == 1; }

 private:
  static std::string described_options(const MapOptions& options) {
    return text(".num_parallel_calls = ",
                options.num_parallel_calls == autotune ? "autotune" : text(options.num_parallel_calls),
                options.deterministic ? "" : ", .deterministic = false");
  }
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    const auto threads = static_cast<std::size_t>(
        options_.num_parallel_calls == autotune ? thread_count() : options_.num_parallel_calls);
    StageStatistics* statistics = pass.statistics ? pass.statistics->of(this) : nullptr;
    if (statistics) statistics->threads.store(threads, std::memory_order_relaxed);
    if (const Source* source = upstream.source(); statistics && source && source->calls_host_code())
      if (StageStatistics* of_source = pass.statistics->of(&source->stage()))
        of_source->threads.store(threads, std::memory_order_relaxed);
    return std::make_unique<ParallelMapCursor>(threads, host_ ? "map_host" : "map", facts().where, upstream, function_,
                                               pass, threads, options_.deterministic, host_ ? "map_host" : nullptr,
                                               *this, statistics, facts().where);
  }
  ElementFunction function_;
  MapOptions options_;
  bool host_;
};

}  // namespace

StagePointer parallel_map_stage(StagePointer upstream, ElementFunction function, const MapOptions& options, bool host,
                                Where where) {
  return std::make_shared<ParallelMapStage>(std::move(upstream), std::move(function), options, host, where);
}

}  // namespace stet::data
