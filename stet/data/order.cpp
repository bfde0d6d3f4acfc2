// Stages that choose and order elements without looking at them. Each is written once, for elements and for positions.
#include <algorithm>
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/data/random_order.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

class ElementsAt : public Elements {
 public:
  ElementsAt(const Source& source, std::unique_ptr<Positions> positions, const Pass& pass)
      : source_(source), positions_(std::move(positions)), draws_(pass, source) {}
  bool next(Tensors& out) override {
    std::int64_t position;
    if (!positions_->next(position)) return false;
    out.clear();
    source_.element(position, draws_, out);
    draws_.count(1);
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = positions_->skip(count);
    draws_.skip(skipped);
    return skipped;
  }

 private:
  const Source& source_;
  std::unique_ptr<Positions> positions_;
  SourceDraws draws_;
};

/// `Choice` has open<Item>(upstream, pass), count(upstream's), draws() and first_pass().
template <class Choice>
class OrderStage : public LaterStage {
 public:
  OrderStage(StagePointer before, Choice choice, const char* name, std::string arguments, Where where)
      : LaterStage(before, {.name = name,
                            .arguments = std::move(arguments),
                            .where = where,
                            .count = choice.count(before->count()),
                            .draws = choice.draws()}),
        choice_(std::move(choice)) {
    source_ = upstream.source();
  }

  std::unique_ptr<Positions> positions(const Pass& pass) const override {
    return choice_.template open<std::int64_t>(upstream, pass);
  }
  const FirstPass* first_pass() const override { return choice_.first_pass(); }
  std::optional<std::vector<TensorSpec>> spec() const override { return upstream.spec(); }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    if (source()) return elements_at(*source(), positions(pass), pass);
    return choice_.template open<Tensors>(upstream, pass);
  }
  Choice choice_;
};
template <class Choice>
StagePointer order_stage(StagePointer upstream, Choice choice, const char* name, std::string arguments, Where where) {
  return std::make_shared<OrderStage<Choice>>(std::move(upstream), std::move(choice), name, std::move(arguments),
                                              where);
}

// --- shuffle

template <class Item>
class ShuffleCursor : public Cursor<Item> {
 public:
  /// `count` of the upstream's items.
  ShuffleCursor(std::unique_ptr<Cursor<Item>> upstream, std::int64_t count, std::int64_t buffer_size,
                std::uint64_t seed)
      : upstream_(std::move(upstream)),
        count_(count),
        buffer_size_(static_cast<std::size_t>(buffer_size)),
        random_(seed) {}

  bool next(Item& out) override {
    begun_ = true;
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

  std::int64_t skip(std::int64_t count) override {
    if constexpr (std::is_same_v<Item, Tensors>)
      if (!begun_ && count > 0 && count_ != unknown_count) return skip_by_number(count);
    return Cursor<Item>::skip(count);
  }

 private:
  template <class Other>
  friend class ShuffleCursor;
  class Numbers : public Positions {
   public:
    explicit Numbers(std::int64_t count) : count_(count) {}
    bool next(std::int64_t& out) override { return at_ < count_ && (out = at_++, true); }

   private:
    std::int64_t at_ = 0, count_;
  };

  /// Shuffles the numbers of the items first, and then makes those only that are left in the buffer.
  std::int64_t skip_by_number(std::int64_t count) {
    begun_ = true;
    ShuffleCursor<std::int64_t> numbers(std::make_unique<Numbers>(count_), count_,
                                        static_cast<std::int64_t>(buffer_size_), 0);
    numbers.random_ = random_;
    const std::int64_t skipped = numbers.skip(count);
    random_ = numbers.random_;
    std::vector<std::pair<std::int64_t, std::size_t>> left;  // number and place, in the order of the upstream
    for (std::size_t place = 0; place < numbers.buffer_.size(); ++place)
      left.emplace_back(numbers.buffer_[place], place);
    std::sort(left.begin(), left.end());
    buffer_.resize(left.size());
    std::int64_t at = 0;
    for (const auto& [number, place] : left) {
      // A count that was not right shows as an upstream that ends early: then this is the end as well.
      if (upstream_->skip(number - at) < number - at || !upstream_->next(buffer_[place])) return 0;
      at = number + 1;
    }
    const std::int64_t taken = skipped + static_cast<std::int64_t>(left.size());
    upstream_->skip(taken - at);
    if (!numbers.upstream_) upstream_.reset();
    return skipped;
  }

  std::unique_ptr<Cursor<Item>> upstream_;  // null when it has ended
  std::int64_t count_;
  std::size_t buffer_size_;
  RandomOrder random_;
  std::vector<Item> buffer_;
  bool begun_ = false;
};

class Shuffle {
 public:
  Shuffle(std::int64_t buffer_size, ShuffleOptions options) : buffer_size_(buffer_size), options_(options) {
    if (!options_.reshuffle_each_iteration && !options_.seed) first_ = std::make_shared<const FirstPass>();
  }

  template <class Item>
  std::unique_ptr<Cursor<Item>> open(const Stage& upstream, const Pass& pass) const {
    Pass before = pass;
    ++before.shuffles;
    return std::make_unique<ShuffleCursor<Item>>(open_pass<Item>(upstream, before), upstream.count(), buffer_size_,
                                                 seed_for(pass));
  }
  std::int64_t count(std::int64_t upstream) const { return upstream; }
  bool draws() const { return !options_.seed; }
  const FirstPass* first_pass() const { return first_.get(); }

 private:
  std::uint64_t seed_for(const Pass& pass) const {
    if (options_.reshuffle_each_iteration)
      return combined(options_.seed ? combined(*options_.seed, pass.iteration) : combined(pass.drawn, pass.shuffles),
                      pass.repetition);
    return options_.seed ? spread(*options_.seed) : combined(first_->get().drawn, 0x6f6e6365);
  }

  std::int64_t buffer_size_;
  ShuffleOptions options_;
  std::shared_ptr<const FirstPass> first_;  // when all passes have one order
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
      end_repetition();
    }
    return false;
  }
  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    while (current_ && skipped < count) {
      skipped += skip_repetitions(count - skipped);
      const std::int64_t here = current_->skip(count - skipped);
      if (here > 0) empty_ = false;
      skipped += here;
      if (skipped < count) end_repetition();
    }
    return skipped;
  }

 private:
  void begin_repetition() {
    if (count_ >= 0 && done_ == count_) return;
    Pass pass = pass_;
    pass.repetition = combined(pass.repetition, static_cast<std::uint64_t>(done_++));
    empty_ = true;
    current_ = open_pass<Item>(upstream_, pass);
  }
  void end_repetition() {
    current_.reset();
    if (!empty_) begin_repetition();  // an empty one would be empty for ever
  }
  /// Whole ones, without opening them: only from the begin of one, and so that one is left to be opened.
  std::int64_t skip_repetitions(std::int64_t most) {
    const std::int64_t each = upstream_.count();
    if (!empty_ || each == unknown_count || each == infinite || each == 0) return 0;
    std::int64_t whole = (most - 1) / each;
    if (count_ >= 0) whole = std::min(whole, count_ - done_);
    if (whole <= 0) return 0;
    current_.reset();
    done_ += whole - 1;
    begin_repetition();
    return whole * each;
  }

  const Stage& upstream_;
  Pass pass_;
  std::int64_t count_, done_ = 0;
  bool empty_ = true;  // the current repetition has given nothing yet
  std::unique_ptr<Cursor<Item>> current_;
};

/// A choice that needs nothing but positions.
struct PlainChoice {
  bool draws() const { return false; }
  const FirstPass* first_pass() const { return nullptr; }
};

struct Repeat : PlainChoice {
  explicit Repeat(std::int64_t times) : repetitions(times) {}
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
};

// --- take, skip, shard

template <class Item>
class TakeCursor : public Cursor<Item> {
 public:
  TakeCursor(std::unique_ptr<Cursor<Item>> upstream, std::int64_t count)
      : upstream_(std::move(upstream)), left_(count) {}
  bool next(Item& out) override { return left_ > 0 && left_-- && upstream_->next(out); }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t here = std::min(count, left_);
    left_ -= here;
    return upstream_->skip(here);
  }

 private:
  std::unique_ptr<Cursor<Item>> upstream_;
  std::int64_t left_;
};

struct Take : PlainChoice {
  explicit Take(std::int64_t count) : most(count) {}
  std::int64_t most;

  template <class Item>
  std::unique_ptr<Cursor<Item>> open(const Stage& upstream, const Pass& pass) const {
    return std::make_unique<TakeCursor<Item>>(open_pass<Item>(upstream, pass), most);
  }
  std::int64_t count(std::int64_t upstream) const {
    if (upstream == unknown_count) return most == 0 ? 0 : unknown_count;
    return std::min(upstream, most);
  }
};

template <class Item>
class SkipCursor : public Cursor<Item> {
 public:
  SkipCursor(std::unique_ptr<Cursor<Item>> upstream, std::int64_t count)
      : upstream_(std::move(upstream)), left_(count) {}
  bool next(Item& out) override { return begin() && upstream_->next(out); }
  std::int64_t skip(std::int64_t count) override { return begin() ? upstream_->skip(count) : 0; }

 private:
  /// False when the upstream ended before.
  bool begin() {
    const std::int64_t first = std::exchange(left_, 0);
    return first == 0 || upstream_->skip(first) == first;
  }
  std::unique_ptr<Cursor<Item>> upstream_;
  std::int64_t left_;
};

struct Skip : PlainChoice {
  explicit Skip(std::int64_t count) : first(count) {}
  std::int64_t first;

  template <class Item>
  std::unique_ptr<Cursor<Item>> open(const Stage& upstream, const Pass& pass) const {
    return std::make_unique<SkipCursor<Item>>(open_pass<Item>(upstream, pass), first);
  }
  std::int64_t count(std::int64_t upstream) const {
    if (upstream == unknown_count || upstream == infinite) return upstream;
    return std::max<std::int64_t>(upstream - first, 0);
  }
};

template <class Item>
class ShardCursor : public Cursor<Item> {
 public:
  ShardCursor(std::unique_ptr<Cursor<Item>> upstream, std::int64_t shards, std::int64_t index)
      : upstream_(std::move(upstream)), shards_(shards), gap_(index) {}
  bool next(Item& out) override {
    const std::int64_t gap = std::exchange(gap_, shards_ - 1);
    return (gap == 0 || upstream_->skip(gap) == gap) && upstream_->next(out);
  }
  std::int64_t skip(std::int64_t count) override {
    if (count <= 0) return 0;
    // The gap before the first one, and so on to just after the last one.
    std::int64_t all;
    if (__builtin_mul_overflow(count - 1, shards_, &all) || __builtin_add_overflow(all, gap_ + 1, &all))
      return Cursor<Item>::skip(count);
    const std::int64_t first = std::exchange(gap_, shards_ - 1);
    const std::int64_t there = upstream_->skip(all);
    return there <= first ? 0 : (there - first - 1) / shards_ + 1;
  }

 private:
  std::unique_ptr<Cursor<Item>> upstream_;
  std::int64_t shards_, gap_;  // how many elements of others come before the next one
};

struct Shard : PlainChoice {
  Shard(std::int64_t count, std::int64_t which) : shards(count), index(which) {}
  std::int64_t shards, index;

  template <class Item>
  std::unique_ptr<Cursor<Item>> open(const Stage& upstream, const Pass& pass) const {
    return std::make_unique<ShardCursor<Item>>(open_pass<Item>(upstream, pass), shards, index);
  }
  std::int64_t count(std::int64_t upstream) const {
    if (upstream == unknown_count || upstream == infinite) return upstream;
    return upstream / shards + (upstream % shards > index);
  }
};

}  // namespace

std::unique_ptr<Elements> elements_at(const Source& source, std::unique_ptr<Positions> positions, const Pass& pass) {
  return std::make_unique<ElementsAt>(source, std::move(positions), pass);
}

StagePointer shuffle_stage(StagePointer upstream, std::int64_t buffer_size, ShuffleOptions options, Where where) {
  std::string arguments = text(buffer_size);
  if (options.seed) arguments += text(", {.seed = ", *options.seed);
  if (!options.reshuffle_each_iteration)
    arguments += text(options.seed ? ", " : ", {", ".reshuffle_each_iteration = false");
  if (options.seed || !options.reshuffle_each_iteration) arguments += "}";
  return order_stage(std::move(upstream), Shuffle(buffer_size, options), "shuffle", std::move(arguments), where);
}
StagePointer repeat_stage(StagePointer upstream, std::int64_t count, Where where) {
  return order_stage(std::move(upstream), Repeat(count), "repeat", count < 0 ? "" : text(count), where);
}
StagePointer take_stage(StagePointer upstream, std::int64_t count, Where where) {
  return order_stage(std::move(upstream), Take(count), "take", text(count), where);
}
StagePointer skip_stage(StagePointer upstream, std::int64_t count, Where where) {
  return order_stage(std::move(upstream), Skip(count), "skip", text(count), where);
}
StagePointer shard_stage(StagePointer upstream, std::int64_t shards, std::int64_t index, Where where) {
  return order_stage(std::move(upstream), Shard(shards, index), "shard", text(shards, ", ", index), where);
}

}  // namespace stet::data
