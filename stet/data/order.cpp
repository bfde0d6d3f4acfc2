// Stages that choose and order elements without looking at them. Each is written once, for elements and for positions.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "stet/data/random_order.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

class ElementsAt : public Elements {
 public:
  ElementsAt(const Source& source, std::unique_ptr<Positions> positions, const Pass& pass)
      : source_(source), positions_(std::move(positions)), draws_(pass) {}
  bool next(Tensors& out) override {
    std::int64_t position;
    if (!positions_->next(position)) return false;
    out.clear();
    source_.element(position, draws_, out);
    return true;
  }

 private:
  const Source& source_;
  std::unique_ptr<Positions> positions_;
  ElementDraws draws_;
};

/// `Choice` has open<Item>(upstream, pass), count(upstream's) and draws().
template <class Choice>
class OrderStage : public LaterStage {
 public:
  template <class... A>
  explicit OrderStage(StagePointer before, A... arguments) : LaterStage(std::move(before)), choice_{arguments...} {}

  const Source* source() const override { return upstream->source(); }
  std::unique_ptr<Positions> positions(const Pass& pass) const override {
    return choice_.template open<std::int64_t>(*upstream, pass);
  }
  std::unique_ptr<Elements> elements(const Pass& pass) const override {
    if (source()) return elements_at(*source(), positions(pass), pass);
    return choice_.template open<Tensors>(*upstream, pass);
  }
  std::int64_t count() const override { return choice_.count(upstream->count()); }
  bool draws() const override { return choice_.draws() || LaterStage::draws(); }

 private:
  Choice choice_;
};

// --- shuffle

template <class Item>
class ShuffleCursor : public Cursor<Item> {
 public:
  ShuffleCursor(std::unique_ptr<Cursor<Item>> upstream, std::int64_t buffer_size, std::uint64_t seed)
      : upstream_(std::move(upstream)), buffer_size_(static_cast<std::size_t>(buffer_size)), random_(seed) {}

  bool next(Item& out) override {
    while (upstream_ && buffer_.size() < buffer_size_) {
      Item item{};
      if (upstream_->next(item))
        buffer_.push_back(std::move(item));
      else
        upstream_.reset();
    }
    if (buffer_.empty()) return false;
    std::swap(buffer_[random_.below(buffer_.size())], buffer_.back());
    out = std::move(buffer_.back());
    buffer_.pop_back();
    return true;
  }

 private:
  std::unique_ptr<Cursor<Item>> upstream_;  // null when it has ended
  std::size_t buffer_size_;
  RandomOrder random_;
  std::vector<Item> buffer_;
};

class Shuffle {
 public:
  Shuffle(std::int64_t buffer_size, ShuffleOptions options) : buffer_size_(buffer_size), options_(options) {}

  template <class Item>
  std::unique_ptr<Cursor<Item>> open(const Stage& upstream, const Pass& pass) const {
    Pass before = pass;
    ++before.shuffles;
    return std::make_unique<ShuffleCursor<Item>>(data::open<Item>(upstream, before), buffer_size_, seed_for(pass));
  }
  std::int64_t count(std::int64_t upstream) const { return upstream; }
  bool draws() const { return !options_.seed; }

 private:
  std::uint64_t seed_for(const Pass& pass) const {
    const std::uint64_t drawn = combined(pass.drawn, pass.shuffles);
    if (options_.reshuffle_each_iteration)
      return combined(options_.seed ? combined(*options_.seed, pass.iteration) : drawn, pass.repetition);
    if (options_.seed) return spread(*options_.seed);
    std::call_once(first_, [&] { kept_ = drawn; });
    return kept_;
  }

  std::int64_t buffer_size_;
  ShuffleOptions options_;
  mutable std::once_flag first_;
  mutable std::uint64_t kept_ = 0;  // of the first pass, when all have one order
};

// --- repeat

template <class Item>
class RepeatCursor : public Cursor<Item> {
 public:
  RepeatCursor(const Stage& upstream, const Pass& pass, std::int64_t count)
      : upstream_(upstream), pass_(pass), count_(count) {
    begin_repetition();
  }

  bool next(Item& out) override {
    while (current_) {
      if (current_->next(out)) {
        empty_ = false;
        return true;
      }
      current_.reset();
      if (!empty_) begin_repetition();  // an empty one would be empty for ever
    }
    return false;
  }

 private:
  void begin_repetition() {
    if (count_ >= 0 && done_ == count_) return;
    Pass pass = pass_;
    pass.repetition = combined(pass.repetition, static_cast<std::uint64_t>(done_++));
    empty_ = true;
    current_ = data::open<Item>(upstream_, pass);
  }

  const Stage& upstream_;
  Pass pass_;
  std::int64_t count_, done_ = 0;
  bool empty_ = true;  // the current repetition has given nothing yet
  std::unique_ptr<Cursor<Item>> current_;
};

struct Repeat {
  std::int64_t repetitions;  // -1: without end

  template <class Item>
  std::unique_ptr<Cursor<Item>> open(const Stage& upstream, const Pass& pass) const {
    return std::make_unique<RepeatCursor<Item>>(upstream, pass, repetitions);
  }
  std::int64_t count(std::int64_t upstream) const {
    if (upstream == 0 || repetitions == 0) return 0;
    if (upstream == unknown_count) return unknown_count;  // perhaps none at all
    std::int64_t total;
    if (repetitions < 0 || __builtin_mul_overflow(upstream, repetitions, &total)) return infinite;
    return total;
  }
  bool draws() const { return false; }
};

// --- take and skip

template <class Item>
class TakeCursor : public Cursor<Item> {
 public:
  TakeCursor(std::unique_ptr<Cursor<Item>> upstream, std::int64_t count)
      : upstream_(std::move(upstream)), left_(count) {}
  bool next(Item& out) override { return left_ > 0 && left_-- && upstream_->next(out); }

 private:
  std::unique_ptr<Cursor<Item>> upstream_;
  std::int64_t left_;
};

struct Take {
  std::int64_t most;

  template <class Item>
  std::unique_ptr<Cursor<Item>> open(const Stage& upstream, const Pass& pass) const {
    return std::make_unique<TakeCursor<Item>>(data::open<Item>(upstream, pass), most);
  }
  std::int64_t count(std::int64_t upstream) const {
    if (upstream == unknown_count) return most == 0 ? 0 : unknown_count;
    return std::min(upstream, most);
  }
  bool draws() const { return false; }
};

template <class Item>
class SkipCursor : public Cursor<Item> {
 public:
  SkipCursor(std::unique_ptr<Cursor<Item>> upstream, std::int64_t count)
      : upstream_(std::move(upstream)), left_(count) {}
  bool next(Item& out) override {
    for (; left_ > 0; --left_)
      if (!upstream_->next(out)) return false;
    return upstream_->next(out);
  }

 private:
  std::unique_ptr<Cursor<Item>> upstream_;
  std::int64_t left_;
};

struct Skip {
  std::int64_t first;

  template <class Item>
  std::unique_ptr<Cursor<Item>> open(const Stage& upstream, const Pass& pass) const {
    return std::make_unique<SkipCursor<Item>>(data::open<Item>(upstream, pass), first);
  }
  std::int64_t count(std::int64_t upstream) const {
    if (upstream == unknown_count || upstream == infinite) return upstream;
    return std::max<std::int64_t>(upstream - first, 0);
  }
  bool draws() const { return false; }
};

}  // namespace

std::unique_ptr<Elements> elements_at(const Source& source, std::unique_ptr<Positions> positions, const Pass& pass) {
  return std::make_unique<ElementsAt>(source, std::move(positions), pass);
}

StagePointer shuffle_stage(StagePointer upstream, std::int64_t buffer_size, ShuffleOptions options) {
  return std::make_shared<OrderStage<Shuffle>>(std::move(upstream), buffer_size, options);
}
StagePointer repeat_stage(StagePointer upstream, std::int64_t count) {
  return std::make_shared<OrderStage<Repeat>>(std::move(upstream), count);
}
StagePointer take_stage(StagePointer upstream, std::int64_t count) {
  return std::make_shared<OrderStage<Take>>(std::move(upstream), count);
}
StagePointer skip_stage(StagePointer upstream, std::int64_t count) {
  return std::make_shared<OrderStage<Skip>>(std::move(upstream), count);
}

}  // namespace stet::data
