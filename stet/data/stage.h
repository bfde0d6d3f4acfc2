// The inside of a Dataset: a chain of stages, each of which can be opened for a pass. Private to the library.
//
// Slices and ranges are sources: their elements have positions. Stages that only choose and order elements (shuffle,
// repeat, take, skip) work on positions as long as only such stages lie between them and the source, so that a batch of
// shuffled slices is one gather of rows and no element is ever made.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>

#include "stet/data/dataset.h"
#include "stet/data/random_order.h"
#include "stet/ops/random_stream.h"

namespace stet::data {

/// One pass over a stage. Belongs to one thread at a time, and must not outlive its stage.
template <class Item>
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// The next item; false at the end. Not called again after the end or an exception.
  virtual bool next(Item& out) = 0;
};
using Elements = Cursor<Tensors>;
using Positions = Cursor<std::int64_t>;

/// What sets a pass apart from others: all its random choices follow from it. Decided on the thread that begins an
/// iteration, so that they do not depend on when a thread of the pipeline gets to them.
struct Pass {
  std::uint64_t drawn = 0;       // from the process's generator, if Stage::draws()
  std::uint64_t iteration = 0;   // how many iterations of the dataset were begun before
  std::uint64_t repetition = 0;  // different for every repetition of every repeat()
  std::uint64_t shuffles = 0;    // how many shuffles come after
  std::uint64_t maps = 0;        // how many maps come after
};

/// What the callable of one stage draws in a pass: numbers of its own for every element, so that they depend neither on
/// other threads nor on whether there is a prefetch.
class ElementDraws {
 public:
  explicit ElementDraws(const Pass& pass)
      : seed_(combined(combined(combined(pass.drawn, pass.repetition), pass.maps), 0x64726177)) {}
  /// For the time of the next element.
  RandomStream::Use next() { return {stream_, combined(seed_, count_++)}; }

 private:
  RandomStream stream_;
  std::uint64_t seed_, count_ = 0;
};

/// Elements that can be had in any order.
class Source {
 public:
  virtual ~Source() = default;
  virtual void element(std::int64_t position, ElementDraws& draws, Tensors& out) const = 0;
  /// The elements at these positions (at least one) stacked along a new first axis; `before` elements of the pass came
  /// earlier, for errors.
  virtual void batch(std::span<const std::int64_t> positions, std::int64_t before, ElementDraws& draws, Where where,
                     Tensors& out) const = 0;
};

inline constexpr std::int64_t unknown_count = -1;

class Stage {
 public:
  virtual ~Stage() = default;
  virtual std::unique_ptr<Elements> elements(const Pass& pass) const = 0;
  /// Where the elements come from if this stage only chooses and orders them; then positions() can be opened, too.
  virtual const Source* source() const { return nullptr; }
  virtual std::unique_ptr<Positions> positions(const Pass&) const { return nullptr; }
  /// `infinite`, unknown_count, or the number of elements.
  virtual std::int64_t count() const = 0;
  /// Needs Pass::drawn.
  virtual bool draws() const = 0;

  int depth = 1;  // stages from the source to this one
  mutable std::atomic<std::uint64_t> iterations{0};
};

/// A stage that works on what another gives.
class LaterStage : public Stage {
 public:
  explicit LaterStage(StagePointer before) : upstream(std::move(before)) { depth = upstream->depth + 1; }
  bool draws() const override { return upstream->draws(); }
  const StagePointer upstream;
};

/// A pass over a stage's elements or positions.
template <class Item>
std::unique_ptr<Cursor<Item>> open(const Stage& stage, const Pass& pass) {
  if constexpr (std::is_same_v<Item, Tensors>)
    return stage.elements(pass);
  else
    return stage.positions(pass);
}

/// Elements of a source at given positions, one by one.
std::unique_ptr<Elements> elements_at(const Source& source, std::unique_ptr<Positions> positions, const Pass& pass);

StagePointer shuffle_stage(StagePointer upstream, std::int64_t buffer_size, ShuffleOptions options);
StagePointer repeat_stage(StagePointer upstream, std::int64_t count);
StagePointer take_stage(StagePointer upstream, std::int64_t count);
StagePointer skip_stage(StagePointer upstream, std::int64_t count);
StagePointer map_stage(StagePointer upstream, std::function<void(const Tensors&, Tensors&)> function);
StagePointer batch_stage(StagePointer upstream, std::int64_t batch_size, BatchOptions options, Where where);
StagePointer prefetch_stage(StagePointer upstream, std::int64_t buffer_size, Where where);

}  // namespace stet::data
