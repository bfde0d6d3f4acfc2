// The inside of a Dataset: a chain of stages, each of which can be opened for a pass. Private to the library.
//
// Slices and ranges are sources: their elements have positions. Stages that only choose and order elements (shuffle,
// repeat, take, skip, shard) work on positions as long as only such stages lie between them and the source, so that a
// batch of shuffled slices is one gather of rows and no element is ever made.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/base/lock.h"
#include "stet/data/dataset.h"
#include "stet/data/random_order.h"
#include "stet/data/statistics.h"
#include "stet/ops/random_stream.h"

namespace stet::data {

/// One pass over a stage. Belongs to one thread at a time, and must not outlive its stage.
template <class Item>
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// The next item; false at the end. Not called again after the end or an exception.
  virtual bool next(Item& out) = 0;
  /// Goes on as if next() had been called so many times, but makes no item where that can be helped. How many there
  /// were: less than `count` means that the end has come, as next() tells it by false.
  virtual std::int64_t skip(std::int64_t count) {
    Item item{};
    std::int64_t skipped = 0;
    while (skipped < count && next(item)) ++skipped;
    return skipped;
  }
};
using Elements = Cursor<Tensors>;
using Positions = Cursor<std::int64_t>;

class Stage;
/// Tells a recording, if there is one, that a stage worked since `begin` (nanoseconds_now()); nothing of what is quick:
/// explain() and the report's table of stages have it.
void record_work(const Stage& stage, std::uint64_t begin);
/// Tells it what an iteration spent its time on.
void record_stages(const Stage& last, Statistics& statistics);
/// "map 'augment'", "batch(64)".
std::string called(const Stage& stage);

/// What sets a pass apart from others: all its random choices follow from it. Decided on the thread that begins an
/// iteration, so that they do not depend on when a thread of the pipeline gets to them.
struct Pass {
  std::uint64_t drawn = 0;           // from the process's generator, if Stage::draws()
  std::uint64_t iteration = 0;       // how many iterations of the dataset were begun before
  std::uint64_t repetition = 0;      // different for every repetition of every repeat()
  std::uint64_t shuffles = 0;        // how many shuffles come after
  std::uint64_t maps = 0;            // how many stages that call functions come after
  std::uint64_t joins = 0;           // how many stages of several upstreams come after
  std::uint64_t branch = 0;          // different for every one of several upstreams
  Statistics* statistics = nullptr;  // outlives the pass

  /// For one of several upstreams. Shuffles with one seed keep one order on all of them, so that they can be zipped;
  /// what is drawn differs.
  Pass of_branch(std::uint64_t number) const {
    Pass branch = *this;
    if (number > 0) branch.drawn = combined(joins == 0 ? drawn : combined(drawn, joins), number);
    branch.branch = combined(this->branch, number);
    ++branch.joins;
    return branch;
  }
  Pass before_map() const {
    Pass before = *this;
    ++before.maps;
    return before;
  }
};

/// What the callable of one stage draws in a pass: seeds of its own for every element, so that what it draws depends
/// neither on other threads nor on whether there is a prefetch. Generators with a seed follow from that and the number
/// of the iteration, as shuffles with a seed do.
class ElementSeeds {
 public:
  explicit ElementSeeds(const Pass& pass)
      : seed_(combined(combined(combined(pass.drawn, pass.repetition), pass.maps), 0x64726177)),
        others_(combined(combined(combined(combined(pass.iteration, pass.repetition), pass.maps), pass.branch),
                         0x6f776e)) {}
  std::uint64_t of(std::uint64_t element) const { return combined(seed_, element); }
  StreamSeeds streams_of(std::uint64_t element) const { return {of(element), combined(others_, element)}; }

 private:
  std::uint64_t seed_, others_;
};
/// The same for elements one after the other.
class ElementDraws {
 public:
  explicit ElementDraws(const Pass& pass) : seeds_(pass) {}
  /// For the time of the next element.
  RandomStream::Use next() { return {stream_, seeds_.streams_of(count_++)}; }
  /// The same of a callable that has Variables of its own: those that were made after this one.
  RandomStream::Use next(std::uint64_t newest) { return {stream_, seeds_.streams_of(count_++), newest}; }
  void skip(std::int64_t elements) { count_ += static_cast<std::uint64_t>(elements); }
  /// The next element is the one with this number.
  void go_to(std::uint64_t element) { count_ = element; }

 private:
  ElementSeeds seeds_;
  RandomStream stream_;
  std::uint64_t count_ = 0;
};

class SourceDraws;

/// Elements that can be had in any order.
class Source {
 public:
  virtual ~Source() = default;
  virtual void element(std::int64_t position, SourceDraws& draws, Tensors& out) const = 0;
  /// The elements at these positions (at least one) stacked along a new first axis; `before` elements of the pass came
  /// earlier, for errors.
  virtual void batch(std::span<const std::int64_t> positions, std::int64_t before, SourceDraws& draws, Where where,
                     Tensors& out) const = 0;
  virtual const Stage& stage() const = 0;
  /// To make an element runs host code: then it draws numbers and takes time.
  virtual bool calls_host_code() const { return false; }
};
/// What is drawn for the elements of a source in a pass, and what is told of them.
class SourceDraws : public ElementDraws {
 public:
  SourceDraws(const Pass& pass, const Source& source)
      : ElementDraws(pass), statistics_(pass.statistics ? pass.statistics->of(&source.stage()) : nullptr) {}
  void count(std::size_t elements) {
    if (statistics_) StageStatistics::add(statistics_->elements, elements);
  }
  /// Null: nobody asks.
  StageStatistics* statistics() const { return statistics_; }

 private:
  StageStatistics* statistics_;
};

inline constexpr std::int64_t unknown_count = -1;

/// What the first iteration of a dataset leaves for all later ones, in a stage that keeps something: the order of a
/// shuffle that has one for all iterations, the elements of a cache, what the datasets of an interleave keep.
class FirstPass {
 public:
  struct Value {
    std::uint64_t drawn, iteration;
  };
  void settle(Value value) const {
    std::lock_guard lock(guard_);
    if (!value_) value_ = value;
  }
  /// As a saved position has it.
  void set(Value value) const {
    std::lock_guard lock(guard_);
    value_ = value;
  }
  Value get() const {
    std::lock_guard lock(guard_);
    return value_.value_or(Value{});
  }

 private:
  mutable Lock guard_;
  mutable std::optional<Value> value_;
};

/// UserError if a pipeline with one stage more would be too deep: opening it, and letting go of it, goes down the chain
/// by recursion.
void require_depth(const Stage& stage, const char* what, Where where);

/// What everybody may know of a stage.
struct StageFacts {
  std::string name = {};       // "shuffle"
  std::string arguments = {};  // "1000, {.seed = 3}"
  Where where = {};            // the user's line
  std::int64_t count = 0;      // `infinite`, unknown_count, or the number of elements
  bool draws = false;          // needs Pass::drawn, itself or one of its upstreams
  /// Gives the elements of its upstream, and as many: a position before it is one after it.
  bool passes_on = false;
  // Shown, but no part of what a position or a cache belongs to.
  std::string label = {};      // what the user calls its function
  std::string threading = {};  // ".num_parallel_calls = 2"
};

class Stage {
 public:
  virtual ~Stage() = default;

  /// A pass over its elements, timed if the pass has statistics.
  std::unique_ptr<Elements> elements(const Pass& pass) const;
  /// Where the elements come from if this stage only chooses and orders them; then positions() can be opened, too.
  const Source* source() const { return source_; }
  virtual std::unique_ptr<Positions> positions(const Pass&) const { return nullptr; }
  /// Of a stage that keeps something.
  virtual const FirstPass* first_pass() const { return nullptr; }
  /// Dtypes and sizes of its elements as far as they are known without making one.
  virtual std::optional<std::vector<TensorSpec>> spec() const { return std::nullopt; }
  /// Has threads of its own that call upstream.
  virtual bool has_threads() const { return false; }
  /// Gives its elements in one order whenever it is asked; otherwise as threads happen to make them.
  virtual bool repeatable() const { return true; }

  const StageFacts& facts() const { return facts_; }
  std::int64_t count() const { return facts_.count; }
  bool draws() const { return facts_.draws; }
  std::span<const StagePointer> upstreams() const { return upstreams_; }
  int depth() const { return depth_; }
  /// Equal for equal stages on equal upstreams, in every process. What callables do, and what tensors hold, is not
  /// seen.
  std::uint64_t fingerprint() const { return fingerprint_; }

  mutable std::atomic<std::uint64_t> iterations{0};
  /// Of its last iteration.
  mutable Lock last_guard;
  mutable std::shared_ptr<Statistics> last_statistics;

 protected:
  Stage(StageFacts facts, std::vector<StagePointer> upstreams);
  virtual std::unique_ptr<Elements> open(const Pass& pass) const = 0;
  const Source* source_ = nullptr;

 private:
  StageFacts facts_;
  std::vector<StagePointer> upstreams_;
  int depth_;
  std::uint64_t fingerprint_;
};

/// A stage that works on what another gives.
class LaterStage : public Stage {
 protected:
  LaterStage(StagePointer before, StageFacts facts)
      : Stage(std::move(facts), {std::move(before)}), upstream(*upstreams()[0]) {}
  const Stage& upstream;
};

/// The stage and all before it, each once, in an order that follows from how they were put together; the stage itself
/// comes last.
std::vector<const Stage*> all_stages(const Stage& last);
/// Decides, for all stages that keep something, what they keep, unless an earlier pass has.
void settle(const std::vector<const Stage*>& stages, std::uint64_t drawn, std::uint64_t iteration);

/// A pass over a stage's elements or positions.
template <class Item>
std::unique_ptr<Cursor<Item>> open_pass(const Stage& stage, const Pass& pass) {
  if constexpr (std::is_same_v<Item, Tensors>)
    return stage.elements(pass);
  else
    return stage.positions(pass);
}

/// Elements of a source at given positions, one by one.
std::unique_ptr<Elements> elements_at(const Source& source, std::unique_ptr<Positions> positions, const Pass& pass);

/// Each with one more axis before the others.
std::optional<std::vector<TensorSpec>> with_first_axis(std::optional<std::vector<TensorSpec>> specs, DimSpec size);

using ElementFunction = std::function<void(const Tensors&, Tensors&)>;
using Predicate = std::function<bool(const Tensors&)>;
using NumberFunction = std::function<std::int64_t(const Tensors&)>;
using OpenFunction = std::function<StagePointer(const Tensors&)>;

/// UserError if a tensor that host code made for an element is undefined or belongs to a trace.
void require_values(const Tensors& element, std::int64_t number, const char* stage, Where where);

StagePointer shuffle_stage(StagePointer upstream, std::int64_t buffer_size, ShuffleOptions options, Where where);
StagePointer repeat_stage(StagePointer upstream, std::int64_t count, Where where);
StagePointer take_stage(StagePointer upstream, std::int64_t count, Where where);
StagePointer skip_stage(StagePointer upstream, std::int64_t count, Where where);
StagePointer shard_stage(StagePointer upstream, std::int64_t shards, std::int64_t index, Where where);
StagePointer map_stage(StagePointer upstream, ElementFunction function, const MapOptions& options, bool host,
                       Where where);
StagePointer parallel_map_stage(StagePointer upstream, ElementFunction function, const MapOptions& options, bool host,
                                Where where);
StagePointer filter_stage(StagePointer upstream, Predicate predicate, const FilterOptions& options, bool host,
                          Where where);
StagePointer take_while_stage(StagePointer upstream, Predicate predicate, const FilterOptions& options, Where where);
StagePointer scan_stage(StagePointer upstream, Tensors initial, ElementFunction function, const FilterOptions& options,
                        Where where);
StagePointer resample_stage(StagePointer upstream, NumberFunction class_of, std::vector<double> target,
                            ResampleOptions options, Where where);
StagePointer batch_stage(StagePointer upstream, std::int64_t batch_size, BatchOptions options, Where where);
StagePointer window_stage(StagePointer upstream, std::int64_t size, WindowOptions options, Where where);
StagePointer padded_batch_stage(StagePointer upstream, std::int64_t batch_size, PaddedBatchOptions options,
                                Where where);
StagePointer ragged_batch_stage(StagePointer upstream, std::int64_t batch_size, std::vector<bool> which,
                                BatchOptions options, Where where);
StagePointer bucket_stage(StagePointer upstream, NumberFunction length, BucketOptions options, Where where);
StagePointer unbatch_stage(StagePointer upstream, Where where);
StagePointer concatenate_stage(StagePointer first, StagePointer second, Where where);
StagePointer zip_stage(std::vector<StagePointer> upstreams, const char* name, std::string arguments, Where where);
/// start, start + step, …: `count` of them.
StagePointer range_stage(std::int64_t start, std::int64_t step, std::int64_t count, Where where);
StagePointer interleave_stage(StagePointer upstream, OpenFunction open, InterleaveOptions options, const char* name,
                              Where where);
StagePointer cache_stage(StagePointer upstream, Where where);
StagePointer file_cache_stage(StagePointer upstream, std::string file, Where where);
StagePointer prefetch_stage(StagePointer upstream, std::int64_t buffer_size, Where where);

/// "from_tensor_slices(f32[10,3]) > shuffle(10) > batch(4)": the chain that ends in this stage.
std::string described(const Stage& last);

}  // namespace stet::data
