#include "stet/data/dataset.h"

#include <algorithm>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"
#include "stet/core/trace.h"
#include "stet/data/stage.h"
#include "stet/ops/ops.h"
#include "stet/runtime/recording.h"

namespace stet::data {
namespace {

void require_no_trace(Where where) {
  if (Trace* trace = current_trace())
    throw TraceError(error_text(text("iterating a Dataset while '", trace->function(),
                                     "' is being traced: its elements would become constants"),
                                where, "iterate outside, and give the function each element as an argument"));
}

/// 64 bits of the process's generator.
std::uint64_t drawn_seed(Where where) {
  return static_cast<std::uint64_t>(random::randint({1}, INT64_MIN, INT64_MAX, {}, where).item<std::int64_t>());
}

[[noreturn]] void refuse(const std::string& what, Where where, const std::string& advice) {
  throw UserError(error_text(what, where, advice));
}

const StagePointer& one_more(const StagePointer& stage, const char* what, Where where) {
  require_depth(*stage, what, where);
  return stage;
}

void require_positive(const char* call, const char* what, std::int64_t value, Where where) {
  if (value < 1) refuse(text(call, ": the ", what, " is ", value), where, "it is at least 1");
}

/// Threads of a stage.
void check_calls(const char* call, std::int64_t calls, Where where) {
  constexpr std::int64_t most = 1024;
  if ((calls < 0 && calls != autotune) || calls > most)
    refuse(
        text(call, ": num_parallel_calls = ", calls), where,
        text("give the number of threads, at most ", most, "; 0 for none of its own, data::autotune for one per CPU"));
}

void check_shapes(const char* call, const std::vector<std::vector<std::int64_t>>& shapes, Where where) {
  for (const std::vector<std::int64_t>& shape : shapes)
    for (std::int64_t size : shape)
      if (size < -1)
        refuse(text(call, ": a padded size is ", size), where, "give a size, or -1 for the longest of the batch");
}

/// Numbers of which each is at least 0 and one is more.
void check_distribution(const char* call, const char* what, const std::vector<double>& values, Where where) {
  double total = 0;
  for (double value : values) {
    if (!(value >= 0 && value < 1e300))
      refuse(text(call, ": ", what, " holds ", value), where, "shares are numbers from 0");
    total += value;
  }
  if (!(total > 0)) refuse(text(call, ": ", what, " has no share above 0"), where, "give one for each class");
}

/// Who iterates has waited for an element, or for the end.
void tell(Statistics& statistics, std::uint64_t begin, bool more) {
  const std::uint64_t now = nanoseconds_now();
  if (statistics.first_had.load(std::memory_order_relaxed) == 0) {
    statistics.first_wait.store(now - begin, std::memory_order_relaxed);
    statistics.first_had.store(now, std::memory_order_relaxed);
  } else {
    StageStatistics::add(statistics.waited, now - begin);
  }
  statistics.last_had.store(now, std::memory_order_relaxed);
  if (more) StageStatistics::add(statistics.elements, 1);
}

}  // namespace

// --- iterating

struct Iteration::State {
  StagePointer stage;  // outlives the cursor
  std::shared_ptr<Statistics> statistics;
  std::unique_ptr<Elements> cursor;
  Tensors tensors;
  bool at_element = false;
  ~State() {
    if (recording::on() && stage && statistics) record_stages(*stage, *statistics);
  }

  IterationPosition position;
  const Stage* unrepeatable = nullptr;  // a stage whose order is another each time
  Where where;
};

Iteration::Iteration(std::unique_ptr<State> state) : state_(std::move(state)) {}
Iteration::Iteration(Iteration&&) noexcept = default;
Iteration& Iteration::operator=(Iteration&&) noexcept = default;
Iteration::~Iteration() = default;

bool Iteration::next() {
  if (!state_ || !state_->cursor) return false;
  State& state = *state_;
  require_no_trace(state.where);
  HiddenTapes hidden;  // how an element is made is not seen: with prefetch it could not be
  state.at_element = false;
  state.tensors.clear();  // their memory serves the next ones
  recording::Span span(recording::Kind::wait, [] { return "data"; });
  const std::uint64_t begin = nanoseconds_now();
  try {
    state.at_element = state.cursor->next(state.tensors);
  } catch (...) {
    state.cursor.reset();
    throw;
  }
  tell(*state.statistics, begin, state.at_element);
  if (state.at_element)
    ++state.position.elements;
  else
    state.cursor.reset();
  return state.at_element;
}

IterationPosition Iteration::position() const {
  if (!state_)
    refuse("Dataset: position() of an iteration that was moved from", Where{}, "ask the one that has it now");
  if (state_->unrepeatable && state_->cursor && state_->position.elements > 0)
    refuse(text("Dataset: position() after ", state_->position.elements, " elements behind ",
                state_->unrepeatable->facts().name, " with .deterministic = false",
                at_line(state_->unrepeatable->facts().where), ": nobody can repeat its order"),
           state_->where, "leave .deterministic = true, or take positions at the ends of iterations");
  return state_->position;
}

const Tensors& Iteration::tensors() const {
  if (!state_ || !state_->at_element)
    refuse("Dataset: there is no element here", state_ ? state_->where : Where{},
           "an iterator that has reached end() cannot be read");
  return state_->tensors;
}

bool Iteration::at_end() const { return !state_ || !state_->cursor; }

Iteration DatasetBase::begin(std::uint64_t drawn, std::uint64_t number, Where where) const {
  const std::vector<const Stage*> stages = all_stages(*stage_);
  settle(stages, drawn, number);
  auto state = std::make_unique<Iteration::State>();
  state->stage = stage_;
  state->where = where;
  state->position = {.drawn = drawn, .iteration = number, .pipeline = stage_->fingerprint()};
  for (const Stage* stage : stages) {
    if (!stage->repeatable()) state->unrepeatable = stage;
    if (const FirstPass* first = stage->first_pass()) {
      const FirstPass::Value value = first->get();
      state->position.kept.insert(state->position.kept.end(), {value.drawn, value.iteration});
    }
  }
  state->statistics = std::make_shared<Statistics>(stages);
  state->cursor = stage_->elements({.drawn = drawn, .iteration = number, .statistics = state->statistics.get()});
  {
    std::lock_guard lock(stage_->last_guard);
    stage_->last_statistics = state->statistics;
  }
  return Iteration(std::move(state));
}

Iteration DatasetBase::iterate(Where where) const {
  require_no_trace(where);
  HiddenTapes hidden;  // how an element is made is not seen: with prefetch it could not be
  const std::uint64_t drawn = stage_->draws() ? drawn_seed(where) : 0;
  return begin(drawn, stage_->iterations.fetch_add(1, std::memory_order_relaxed), where);
}

Iteration DatasetBase::iterate_from(const IterationPosition& position, Where where) const {
  require_no_trace(where);
  HiddenTapes hidden;
  const std::vector<const Stage*> stages = all_stages(*stage_);
  std::vector<const FirstPass*> keeping;
  for (const Stage* stage : stages)
    if (const FirstPass* first = stage->first_pass()) keeping.push_back(first);
  if (position.pipeline != stage_->fingerprint() || position.kept.size() != 2 * keeping.size())
    refuse(text("iterate_from: the position is one of a dataset of other stages or arguments; this one is ",
                described(*stage_)),
           where,
           "build the dataset as it was when the position was taken; prefetch and num_parallel_calls may differ");
  if (position.elements > static_cast<std::uint64_t>(INT64_MAX))
    refuse(text("iterate_from: the position is after element ", position.elements), where, "give what position() gave");
  for (std::size_t i = 0; i < keeping.size(); ++i) keeping[i]->set({position.kept[2 * i], position.kept[2 * i + 1]});
  set_next_iteration(position.iteration + 1);
  Iteration iteration = begin(position.drawn, position.iteration, where);
  const auto elements = static_cast<std::int64_t>(position.elements);
  const std::int64_t skipped = elements == 0 ? 0 : iteration.state_->cursor->skip(elements);
  if (skipped < elements)
    refuse(text("iterate_from: the position is after ", elements, " elements, and the dataset has ", skipped), where,
           "give it the data that it had when the position was taken");
  iteration.state_->position.elements = position.elements;
  return iteration;
}

std::uint64_t DatasetBase::next_iteration() const { return stage_->iterations.load(std::memory_order_relaxed); }
void DatasetBase::set_next_iteration(std::uint64_t number) const {
  stage_->iterations.store(number, std::memory_order_relaxed);
}

std::optional<std::int64_t> DatasetBase::cardinality() const {
  std::int64_t count = stage_->count();
  return count == unknown_count ? std::nullopt : std::optional(count);
}

std::vector<TensorSpec> DatasetBase::element_spec(Where where) const {
  if (std::optional<std::vector<TensorSpec>> known = stage_->spec()) return *known;
  require_no_trace(where);
  HiddenTapes hidden;
  // As a first iteration would begin, but none is: nothing is drawn, counted or kept.
  Tensors element;
  if (!stage_->elements({})->next(element))
    refuse("element_spec: what its elements are is known by making one, and the dataset is empty", where,
           "ask a dataset that has an element");
  std::vector<TensorSpec> out;
  for (const Tensor& tensor : element) {
    const std::vector<std::int64_t> sizes = tensor.shape().sizes();
    out.push_back({tensor.dtype(), ShapeSpec(std::vector<DimSpec>(sizes.begin(), sizes.end()))});
  }
  return out;
}

// --- strings

Tensor from_string(std::string_view text) {
  Buffer buffer = Buffer::allocate(text.size());
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(buffer.data()));
  const auto size = static_cast<std::int64_t>(text.size());
  return dense_tensor(u8, {&size, 1}, std::move(buffer));
}

std::string to_string(const Tensor& bytes, Where where) {
  const TensorNode& node = concrete_node(bytes, "to_string", where);
  if (node.dtype != u8 || node.rank != 1)
    refuse(text("to_string: a tensor ", node.dtype, node.shape()), where,
           "a string is u8[bytes], as from_string gives it");
  const std::vector<std::uint8_t> values = bytes.to_vector<std::uint8_t>();
  return {values.begin(), values.end()};
}

// --- stages, with their arguments checked

StagePointer DatasetBase::shuffled(std::int64_t buffer_size, ShuffleOptions options, Where where) const {
  if (buffer_size < 1)
    refuse(text("shuffle: the buffer size is ", buffer_size), where,
           "it is at least 1; as many as the dataset has elements shuffles it completely");
  return shuffle_stage(one_more(stage_, "shuffle", where), buffer_size, options, where);
}

StagePointer DatasetBase::mapped(ElementFunction function, MapOptions options, bool host, Where where) const {
  const char* call = host ? "map_host" : "map";
  check_calls(call, options.num_parallel_calls, where);
  auto* make = options.num_parallel_calls == 0 ? map_stage : parallel_map_stage;
  return make(one_more(stage_, call, where), std::move(function), options, host, where);
}

StagePointer DatasetBase::filtered(Predicate predicate, FilterOptions options, bool host, Where where) const {
  return filter_stage(one_more(stage_, host ? "filter_host" : "filter", where), std::move(predicate), options, host,
                      where);
}

StagePointer DatasetBase::taken_while(Predicate predicate, FilterOptions options, Where where) const {
  return take_while_stage(one_more(stage_, "take_while", where), std::move(predicate), options, where);
}

StagePointer DatasetBase::scanned(Tensors initial, ElementFunction function, FilterOptions options, Where where) const {
  require_values(initial, 0, "scan: the initial state", where);
  return scan_stage(one_more(stage_, "scan", where), std::move(initial), std::move(function), options, where);
}

bool DatasetBase::truth(const Tensor& result, const char* call, Where where) {
  if (!result.defined() || result.dtype() != bool_ || result.size() != 1)
    refuse(text(call, ": the predicate gives ", result.defined() ? text(result.dtype(), result.shape()) : "nothing",
                ", not one bool"),
           where, "compare (x > 0), and reduce with all() or any()");
  return result.item<bool>({}, where);
}

StagePointer DatasetBase::batched(std::int64_t batch_size, BatchOptions options, Where where) const {
  require_positive("batch", "batch size", batch_size, where);
  return batch_stage(one_more(stage_, "batch", where), batch_size, options, where);
}

StagePointer DatasetBase::padded(std::int64_t batch_size, PaddedBatchOptions options, Where where) const {
  require_positive("padded_batch", "batch size", batch_size, where);
  check_shapes("padded_batch", options.padded_shapes, where);
  return padded_batch_stage(one_more(stage_, "padded_batch", where), batch_size, std::move(options), where);
}

StagePointer DatasetBase::ragged(std::int64_t batch_size, std::vector<bool> which, BatchOptions options,
                                 Where where) const {
  require_positive("ragged_batch", "batch size", batch_size, where);
  return ragged_batch_stage(one_more(stage_, "ragged_batch", where), batch_size, std::move(which), options, where);
}

StagePointer DatasetBase::bucketed(NumberFunction length, BucketOptions options, Where where) const {
  constexpr const char* call = "bucket_by_sequence_length";
  const std::vector<std::int64_t>& boundaries = options.boundaries;
  if (boundaries.empty())
    refuse(text(call, ": there are no boundaries"), where, "give one or more, or use padded_batch");
  for (std::size_t i = 0; i < boundaries.size(); ++i)
    if (boundaries[i] < 1 || (i > 0 && boundaries[i] <= boundaries[i - 1]))
      refuse(text(call, ": the boundaries are ", joined(boundaries, ", ")), where, "each is above the one before it");
  if (options.batch_sizes.size() != boundaries.size() + 1)
    refuse(text(call, ": ", options.batch_sizes.size(), " batch sizes for ", boundaries.size(), " boundaries"), where,
           "give one for each bucket: one more than there are boundaries");
  for (std::int64_t size : options.batch_sizes) require_positive(call, "batch size", size, where);
  check_shapes(call, options.padded_shapes, where);
  if (options.no_padding && (options.pad_to_bucket_boundary || !options.padded_shapes.empty()))
    refuse(text(call, ": no_padding, and a padding too"), where, "leave one of them out");
  return bucket_stage(one_more(stage_, call, where), std::move(length), std::move(options), where);
}

StagePointer DatasetBase::unbatched(Where where) const {
  return unbatch_stage(one_more(stage_, "unbatch", where), where);
}

StagePointer DatasetBase::windowed(std::int64_t size, WindowOptions options, Where where) const {
  require_positive("window", "size", size, where);
  if (options.shift < 0)
    refuse(text("window: the shift is ", options.shift), where, "it is at least 1; 0 stands for the size");
  require_positive("window", "stride", options.stride, where);
  return window_stage(one_more(stage_, "window", where), size, options, where);
}

StagePointer DatasetBase::enumerated(std::int64_t start, Where where) const {
  one_more(stage_, "enumerate", where);
  return zip_stage({range_stage(start, 1, infinite, where), stage_}, "enumerate", start == 0 ? "" : text(start), where);
}

StagePointer DatasetBase::concatenated(const StagePointer& other, Where where) const {
  return concatenate_stage(one_more(stage_, "concatenate", where), one_more(other, "concatenate", where), where);
}

StagePointer DatasetBase::interleaved(OpenFunction open, InterleaveOptions options, const char* name,
                                      Where where) const {
  require_positive(name, "cycle length", options.cycle_length, where);
  require_positive(name, "block length", options.block_length, where);
  constexpr std::int64_t most_open = 10'000;
  if (options.cycle_length > most_open)
    refuse(text(name, ": the cycle length is ", options.cycle_length), where,
           text("so many datasets would be open at a time: it is at most ", most_open));
  check_calls(name, options.num_parallel_calls, where);
  return interleave_stage(one_more(stage_, name, where), std::move(open), options, name, where);
}

StagePointer DatasetBase::cached(std::optional<std::string> file, Where where) const {
  one_more(stage_, "cache", where);
  if (stage_->count() == infinite)
    refuse("cache: the dataset never ends", where, "cache before repeat(), or take() a part of it");
  if (!file) return cache_stage(stage_, where);
  if (file->empty() || file->find('\0') != std::string::npos)
    refuse("cache: the name of the file is empty or has a zero byte in it", where,
           "give the name of a file; cache() without one keeps elements in memory");
  return file_cache_stage(stage_, std::move(*file), where);
}

StagePointer DatasetBase::sharded(std::int64_t shards, std::int64_t index, Where where) const {
  require_positive("shard", "number of shards", shards, where);
  if (index < 0 || index >= shards)
    refuse(text("shard: index ", index, " of ", shards, " shards"), where, text("it is one of 0 to ", shards - 1));
  return shard_stage(one_more(stage_, "shard", where), shards, index, where);
}

StagePointer DatasetBase::resampled(NumberFunction class_of, std::vector<double> target, ResampleOptions options,
                                    Where where) const {
  constexpr const char* call = "rejection_resample";
  check_distribution(call, "target_dist", target, where);
  if (!options.initial_dist.empty()) {
    check_distribution(call, "initial_dist", options.initial_dist, where);
    if (options.initial_dist.size() != target.size())
      refuse(text(call, ": initial_dist has ", options.initial_dist.size(), " classes, target_dist ", target.size()),
             where, "give both the same number of classes");
    for (std::size_t c = 0; c < target.size(); ++c)
      if (target[c] > 0 && options.initial_dist[c] == 0)
        refuse(text(call, ": class ", c, " is wanted, and by initial_dist it never comes"), where,
               "give it a share above 0 in initial_dist, or none in target_dist");
  }
  return resample_stage(one_more(stage_, call, where), std::move(class_of), std::move(target), std::move(options),
                        where);
}

void DatasetBase::require_end(const char* call, Where where) const {
  if (stage_->count() == infinite) refuse(text(call, ": the dataset never ends"), where, "take() a part of it");
}

StagePointer DatasetBase::prefetched(std::int64_t buffer_size, Where where) const {
  if (buffer_size < 1 && buffer_size != autotune)
    refuse(text("prefetch: the buffer size is ", buffer_size), where,
           "it is at least 1; 2 is usual, and data::autotune finds out");
  return prefetch_stage(one_more(stage_, "prefetch", where), buffer_size, where);
}

StagePointer DatasetBase::repeated(std::int64_t count, Where where) const {
  if (count < -1) refuse(text("repeat: the count is ", count), where, "give the number of times, or -1 for no end");
  return repeat_stage(one_more(stage_, "repeat", where), count, where);
}

StagePointer DatasetBase::taken(std::int64_t count, Where where) const {
  if (count < 0) refuse(text("take: the count is ", count), where, "it is at least 0; without take there are all");
  return take_stage(one_more(stage_, "take", where), count, where);
}

StagePointer DatasetBase::skipped(std::int64_t count, Where where) const {
  if (count < 0) refuse(text("skip: the count is ", count), where, "it is at least 0");
  return skip_stage(one_more(stage_, "skip", where), count, where);
}

}  // namespace stet::data
