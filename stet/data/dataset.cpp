#include "stet/data/dataset.h"

#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/tape.h"
#include "stet/core/trace.h"
#include "stet/data/stage.h"
#include "stet/ops/ops.h"

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

[[noreturn]] void refuse(const std::string& what, Where where, const char* advice) {
  throw UserError(error_text(what, where, advice));
}

/// Opening a pipeline, and letting go of it, goes down the chain by recursion.
constexpr int most_stages = 1000;

const StagePointer& one_more(const StagePointer& stage, const char* what, Where where) {
  if (stage->depth >= most_stages)
    refuse(text(what, ": a pipeline of more than ", most_stages, " stages"), where,
           "is the dataset made longer in a loop? begin with the same one each time");
  return stage;
}

}  // namespace

// --- iterating

struct Iteration::State {
  StagePointer stage;  // outlives the cursor
  std::unique_ptr<Elements> cursor;
  Tensors tensors;
  bool at_element = false;
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
  try {
    state.at_element = state.cursor->next(state.tensors);
  } catch (...) {
    state.cursor.reset();
    throw;
  }
  if (!state.at_element) state.cursor.reset();
  return state.at_element;
}

const Tensors& Iteration::tensors() const {
  if (!state_ || !state_->at_element)
    refuse("Dataset: there is no element here", state_ ? state_->where : Where{},
           "an iterator that has reached end() cannot be read");
  return state_->tensors;
}

bool Iteration::at_end() const { return !state_ || !state_->cursor; }

Iteration DatasetBase::iterate(Where where) const {
  require_no_trace(where);
  HiddenTapes hidden;  // how an element is made is not seen: with prefetch it could not be
  Pass pass;
  if (stage_->draws()) pass.drawn = drawn_seed(where);
  pass.iteration = stage_->iterations.fetch_add(1, std::memory_order_relaxed);
  auto state = std::make_unique<Iteration::State>();
  state->stage = stage_;
  state->where = where;
  state->cursor = stage_->elements(pass);
  return Iteration(std::move(state));
}

std::optional<std::int64_t> DatasetBase::cardinality() const {
  std::int64_t count = stage_->count();
  return count == unknown_count ? std::nullopt : std::optional(count);
}

// --- stages, with their arguments checked

StagePointer DatasetBase::shuffled(std::int64_t buffer_size, ShuffleOptions options, Where where) const {
  if (buffer_size < 1)
    refuse(text("shuffle: the buffer size is ", buffer_size), where,
           "it is at least 1; as many as the dataset has elements shuffles it completely");
  return shuffle_stage(one_more(stage_, "shuffle", where), buffer_size, options);
}

StagePointer DatasetBase::mapped(ElementFunction function, Where where) const {
  return map_stage(one_more(stage_, "map", where), std::move(function));
}

StagePointer DatasetBase::batched(std::int64_t batch_size, BatchOptions options, Where where) const {
  if (batch_size < 1) refuse(text("batch: the batch size is ", batch_size), where, "it is at least 1");
  return batch_stage(one_more(stage_, "batch", where), batch_size, options, where);
}

StagePointer DatasetBase::prefetched(std::int64_t buffer_size, Where where) const {
  if (buffer_size < 1)
    refuse(text("prefetch: the buffer size is ", buffer_size), where, "it is at least 1; 2 is usual");
  return prefetch_stage(one_more(stage_, "prefetch", where), buffer_size, where);
}

StagePointer DatasetBase::repeated(std::int64_t count, Where where) const {
  if (count < -1) refuse(text("repeat: the count is ", count), where, "give the number of times, or -1 for no end");
  return repeat_stage(one_more(stage_, "repeat", where), count);
}

StagePointer DatasetBase::taken(std::int64_t count, Where where) const {
  if (count < 0) refuse(text("take: the count is ", count), where, "it is at least 0; without take there are all");
  return take_stage(one_more(stage_, "take", where), count);
}

StagePointer DatasetBase::skipped(std::int64_t count, Where where) const {
  if (count < 0) refuse(text("skip: the count is ", count), where, "it is at least 0");
  return skip_stage(one_more(stage_, "skip", where), count);
}

}  // namespace stet::data
