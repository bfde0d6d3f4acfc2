// Datasets that a function makes of elements, a few of them open at a time: interleave and flat_map.
//
// Each open one has a place of a cycle; a turn of a place gives block_length elements. A place whose dataset has ended
// passes its turn on, and takes the next element of upstream when it is its turn again. With threads, places are filled
// ahead: opening a dataset and making its elements happens there, in an order of their own, but elements come out as
// they would without.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/data/crew.h"
#include "stet/data/stage.h"
#include "stet/runtime/parallel.h"

namespace stet::data {
namespace {

/// A dataset that was made of an element, open.
struct Inner {
  StagePointer stage;  // outlives the cursor
  std::unique_ptr<Elements> cursor;
};

/// Opens what the function makes of elements.
class Opener {
 public:
  Opener(const OpenFunction& open, FirstPass::Value first, const Pass& pass)
      : open_(open), first_(first), pass_(pass), seeds_(pass) {}
  Inner operator()(const Tensors& element, std::uint64_t number, RandomStream& stream) const {
    Inner inner;
    {
      RandomStream::Use draws(stream, seeds_.streams_of(number));
      inner.stage = open_(element);
    }
    // What happens in it follows from the element that it was made of.
    Pass pass = pass_;
    pass.drawn = combined(seeds_.of(number), 0x696e6e65);
    pass.repetition = combined(pass.repetition, number);
    pass.statistics = nullptr;
    // What it keeps, beyond this pass if the function gives it again, follows from the first pass, as everywhere.
    settle(all_stages(*inner.stage), combined(combined(first_.drawn, number), 0x6b656570), first_.iteration);
    inner.cursor = inner.stage->elements(pass);
    return inner;
  }

 private:
  const OpenFunction& open_;
  const FirstPass::Value first_;
  Pass pass_;
  ElementSeeds seeds_;
};

/// Whose turn it is.
class Cycle {
 public:
  explicit Cycle(const InterleaveOptions& options) : places_(options.cycle_length), block_(options.block_length) {}
  std::size_t place() const { return static_cast<std::size_t>(place_); }
  void given() {
    if (++given_ == block_) pass_on();
  }
  void pass_on() {
    place_ = (place_ + 1) % places_;
    given_ = 0;
  }

 private:
  std::int64_t places_, block_, place_ = 0, given_ = 0;
};

class InterleaveCursor : public Elements {
 public:
  InterleaveCursor(std::unique_ptr<Elements> upstream, Opener open, const InterleaveOptions& options)
      : upstream_(std::move(upstream)),
        open_(std::move(open)),
        cycle_(options),
        places_(static_cast<std::size_t>(options.cycle_length)) {}

  bool next(Tensors& out) override {
    while (Inner* inner = turn()) {
      if (inner->cursor->next(out)) {
        cycle_.given();
        return true;
      }
      close();
    }
    return false;
  }
  std::int64_t skip(std::int64_t count) override {
    if (places_.size() > 1) return Elements::skip(count);
    std::int64_t skipped = 0;  // one after the other: each can skip its own
    while (skipped < count) {
      Inner* inner = turn();
      if (!inner) break;
      skipped += inner->cursor->skip(count - skipped);
      if (skipped < count) close();
    }
    return skipped;
  }

 private:
  /// The one whose turn it is; null at the end.
  Inner* turn() {
    while (upstream_ || open_places_ > 0) {
      Inner& inner = places_[cycle_.place()];
      if (inner.cursor) return &inner;
      if (upstream_ && upstream_->next(element_)) {
        inner = open_(element_, number_++, stream_);
        ++open_places_;
        return &inner;
      }
      upstream_.reset();
      cycle_.pass_on();
    }
    return nullptr;
  }
  void close() {
    Inner& inner = places_[cycle_.place()];
    inner.cursor.reset();
    inner.stage.reset();
    --open_places_;
    cycle_.pass_on();
  }

  std::unique_ptr<Elements> upstream_;  // null when it has ended
  Opener open_;
  Cycle cycle_;
  std::vector<Inner> places_;
  std::size_t open_places_ = 0;
  std::uint64_t number_ = 0;
  RandomStream stream_;
  Tensors element_;
};

/// Places that threads fill ahead.
class FilledPlaces {
 public:
  FilledPlaces(std::unique_ptr<Elements> upstream, Opener open, const InterleaveOptions& options, const Stage& stage,
               StageStatistics* statistics)
      : upstream_(std::move(upstream)),
        open_(std::move(open)),
        cycle_(options),
        stage_(stage),
        statistics_(statistics),
        ordered_(options.deterministic),
        most_ready_(static_cast<std::size_t>(std::clamp<std::int64_t>(2 * options.block_length, 4, 64))),
        places_(static_cast<std::size_t>(options.cycle_length)) {}

  bool take(Tensors& out) {
    std::unique_lock lock(guard_);
    if (statistics_) tell();
    for (;;) {
      if (!fill(lock)) return false;
      Place* place = &places_[cycle_.place()];
      if (!ordered_ && place->ready.empty() && !place->error)
        for (Place& other : places_)
          if (!other.ready.empty() || other.error) {
            place = &other;
            break;
          }
      if (!place->ready.empty()) {
        out = std::move(place->ready.front());
        place->ready.pop_front();
        if (place == &places_[cycle_.place()]) cycle_.given();
        lock.unlock();
        work_.notify_one();
        return true;
      }
      if (place->error) std::rethrow_exception(std::exchange(place->error, nullptr));
      if (place->used && place->ended) {
        free(*place);
        cycle_.pass_on();
      } else if (!place->used) {
        cycle_.pass_on();  // upstream has ended, another place has some
      } else {
        news_.wait(lock);
      }
    }
  }

  void work() {
    RandomStream stream;
    std::unique_lock lock(guard_);
    for (;;) {
      Place* place = nullptr;
      work_.wait(lock, [&] { return abandoned_ || (place = most_wanted()); });
      if (abandoned_) return;
      place->busy = true;
      lock.unlock();
      Tensors element;
      std::exception_ptr error;
      bool more = false;
      const std::uint64_t begin = nanoseconds_now();
      try {
        if (!place->inner.cursor) place->inner = open_(place->element, place->number, stream);
        more = place->inner.cursor->next(element);
      } catch (...) {
        error = std::current_exception();
      }
      if (!more) place->inner = {};
      if (statistics_) StageStatistics::add(statistics_->busy, nanoseconds_now() - begin);
      record_work(stage_, begin);
      lock.lock();
      if (more)
        place->ready.push_back(std::move(element));
      else
        place->ended = true;
      place->error = std::move(error);
      place->busy = false;
      news_.notify_one();
    }
  }

  void abandon() {
    {
      std::lock_guard lock(guard_);
      abandoned_ = true;
    }
    work_.notify_all();
  }

 private:
  struct Place {
    bool used = false, busy = false, ended = false;
    Tensors element;  // what its dataset is made of
    std::uint64_t number = 0;
    Inner inner;  // of the thread that is busy with it
    std::deque<Tensors> ready;
    std::exception_ptr error;  // comes after what is ready
  };

  /// Gives elements of upstream to places that have none, in the order in which their turns come: those that the cycle
  /// would fill if all others had elements for ever are filled ahead; which those are must not depend on time, so only
  /// a place whose turn it is takes a new one, but at the begin, when all places are free, all take one. False when all
  /// has ended.
  bool fill(std::unique_lock<std::mutex>& lock) {
    if (!begun_) {
      begun_ = true;
      for (Place& place : places_)
        if (!give(place, lock)) break;
    } else if (!ordered_) {
      for (Place& place : places_) {
        if (place.used && place.ended && place.ready.empty() && !place.error) free(place);
        if (!place.used) give(place, lock);
      }
    } else if (Place& place = places_[cycle_.place()]; !place.used) {
      give(place, lock);
    }
    return used_ > 0;
  }
  void free(Place& place) {
    place = Place();
    --used_;
  }
  bool give(Place& place, std::unique_lock<std::mutex>& lock) {
    if (!upstream_) return false;
    lock.unlock();
    Tensors element;
    bool more;
    std::exception_ptr error;
    try {
      more = upstream_->next(element);
    } catch (...) {
      more = true;
      error = std::current_exception();
    }
    lock.lock();
    if (!more || error) upstream_.reset();
    if (!more) return false;
    place.used = true;
    place.ended = error != nullptr;
    place.error = error;
    place.element = std::move(element);
    place.number = number_++;
    ++used_;
    work_.notify_one();
    return !error;
  }
  /// The place with the fewest elements ready that nobody is busy with; null: there is nothing to do.
  Place* most_wanted() {
    Place* wanted = nullptr;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[(cycle_.place() + i) % places_.size()];
      if (!place.used || place.busy || place.ended || place.ready.size() >= most_ready_) continue;
      if (!wanted || place.ready.size() < wanted->ready.size()) wanted = &place;
    }
    return wanted;
  }
  void tell() const {
    std::size_t ready = 0;
    for (const Place& place : places_) ready += place.ready.size();
    StageStatistics::add(statistics_->looks, 1);
    StageStatistics::add(statistics_->found, ready);
    statistics_->room.store(most_ready_ * places_.size(), std::memory_order_relaxed);
  }

  std::unique_ptr<Elements> upstream_;  // of who takes; null when it has ended
  Opener open_;
  Cycle cycle_;
  const Stage& stage_;
  StageStatistics* const statistics_;
  const bool ordered_;
  const std::size_t most_ready_;  // elements in a place
  std::mutex guard_;
  std::condition_variable news_, work_;
  std::vector<Place> places_;
  std::size_t used_ = 0;
  std::uint64_t number_ = 0;
  bool begun_ = false, abandoned_ = false;
};

class ParallelInterleaveCursor : public Elements {
 public:
  ParallelInterleaveCursor(std::unique_ptr<Elements> upstream, Opener open, const InterleaveOptions& options,
                           std::size_t threads, const Stage& stage, StageStatistics* statistics, Where where)
      : places_(std::move(upstream), std::move(open), options, stage, statistics), threads_(threads), where_(where) {}
  bool next(Tensors& out) override {
    if (!places_.crew().started())
      places_.crew().start(
          threads_, [&places = *places_] { places.work(); }, "interleave", where_);
    places_.crew().require("interleave", where_);
    return places_->take(out);
  }

 private:
  CrewWork<FilledPlaces> places_;
  std::size_t threads_;
  Where where_;
};

class InterleaveStage : public LaterStage {
 public:
  InterleaveStage(StagePointer before, OpenFunction open, InterleaveOptions options, const char* name, Where where)
      : LaterStage(before,
                   {.name = name,
                    .arguments = options.cycle_length == 1 && options.block_length == 1
                                     ? std::string()
                                     : text("{.cycle_length = ", options.cycle_length,
                                            ", .block_length = ", options.block_length, "}"),
                    .where = where,
                    .count = before->count() == 0 ? 0 : unknown_count,
                    .draws = true,
                    .threading = options.num_parallel_calls == 0
                                     ? std::string()
                                     : text(".num_parallel_calls = ",
                                            options.num_parallel_calls == autotune ? "autotune"
                                                                                   : text(options.num_parallel_calls),
                                            options.deterministic ? "" : ", .deterministic = false")}),
        open_(std::move(open)),
        options_(options) {}
  const FirstPass* first_pass() const override { return &first_; }
  bool has_threads() const override { return options_.num_parallel_calls != 0; }
  bool repeatable() const override { return options_.deterministic || options_.num_parallel_calls == 0; }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    std::unique_ptr<Elements> before = upstream.elements(pass.before_map());
    Opener opener(open_, first_.get(), pass);
    if (options_.num_parallel_calls == 0)
      return std::make_unique<InterleaveCursor>(std::move(before), std::move(opener), options_);
    const auto threads = static_cast<std::size_t>(std::min<std::int64_t>(
        options_.num_parallel_calls == autotune ? thread_count() : options_.num_parallel_calls, options_.cycle_length));
    StageStatistics* statistics = pass.statistics ? pass.statistics->of(this) : nullptr;
    if (statistics) statistics->threads.store(threads, std::memory_order_relaxed);
    return std::make_unique<ParallelInterleaveCursor>(std::move(before), std::move(opener), options_, threads, *this,
                                                      statistics, facts().where);
  }
  OpenFunction open_;
  InterleaveOptions options_;
  FirstPass first_;
};

}  // namespace

StagePointer interleave_stage(StagePointer upstream, OpenFunction open, InterleaveOptions options, const char* name,
                              Where where) {
  return std::make_shared<InterleaveStage>(std::move(upstream), std::move(open), options, name, where);
}

}  // namespace stet::data
