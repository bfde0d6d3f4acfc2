// Windows: overlapping batches. Of positions where there are some (the source gathers rows, or makes a view), otherwise
// of elements.
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/data/stack.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

struct WindowPlan {
  std::int64_t size, shift, stride;
  bool drop_remainder;

  /// From the first element of a window to just after its last; INT64_MAX if that is more than there can be.
  std::int64_t span() const {
    std::int64_t span;
    return __builtin_mul_overflow(size - 1, stride, &span) || span == INT64_MAX ? INT64_MAX : span + 1;
  }
  std::int64_t count(std::int64_t elements) const {
    if (elements == unknown_count || elements == infinite) return elements;
    if (!drop_remainder) return elements / shift + (elements % shift != 0);
    return elements < span() ? 0 : (elements - span()) / shift + 1;
  }
};

/// The items of one window after the other.
template <class Item>
class Sliding {
 public:
  Sliding(std::unique_ptr<Cursor<Item>> upstream, const WindowPlan& plan)
      : upstream_(std::move(upstream)), plan_(plan) {}

  /// False at the end. `items` are those of the window: at least one.
  bool next(std::vector<Item>& items) {
    if (!skip_gap() || !fill(plan_.span())) return false;
    items.clear();
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(kept_.size()); at += plan_.stride) {
      items.push_back(kept_[static_cast<std::size_t>(at)]);
      if (static_cast<std::int64_t>(items.size()) == plan_.size || at > INT64_MAX - plan_.stride) break;
    }
    move_on();
    return true;
  }
  std::int64_t skip(std::int64_t count) {
    std::int64_t skipped = 0;
    // What is kept has been had already; the first window that needs no element of it can be found without making any.
    while (skipped < count && !kept_.empty()) {
      if (!skip_gap() || !fill(plan_.span())) return skipped;
      move_on();
      ++skipped;
    }
    std::int64_t elements;
    if (skipped == count) return skipped;
    if (plan_.drop_remainder || plan_.shift < 1 || __builtin_mul_overflow(count - skipped, plan_.shift, &elements) ||
        __builtin_add_overflow(elements, gap_, &elements) || !upstream_)
      return skipped + skip_one_by_one(count - skipped);
    // A window is there if its first element is: all but the last are passed over whole.
    const std::int64_t before = elements - plan_.shift;
    const std::int64_t there = upstream_->skip(before);
    if (there < before) {
      upstream_.reset();
      return skipped + (there <= gap_ ? 0 : (there - gap_ - 1) / plan_.shift + 1);
    }
    gap_ = 0;
    return skipped + (count - skipped - 1) + skip_one_by_one(1);
  }

 private:
  std::int64_t skip_one_by_one(std::int64_t count) {
    std::int64_t skipped = 0;
    for (; skipped < count && skip_gap() && fill(plan_.span()); ++skipped) move_on();
    return skipped;
  }
  /// The elements between two windows. False at the end.
  bool skip_gap() {
    if (gap_ == 0) return true;
    const std::int64_t gap = std::exchange(gap_, 0);
    if (upstream_ && upstream_->skip(gap) == gap) return true;
    upstream_.reset();
    return false;
  }
  /// False if there is no window any more.
  bool fill(std::int64_t span) {
    while (upstream_ && static_cast<std::int64_t>(kept_.size()) < span) {
      Item item{};
      if (upstream_->next(item))
        kept_.push_back(std::move(item));
      else
        upstream_.reset();
    }
    return plan_.drop_remainder ? static_cast<std::int64_t>(kept_.size()) == span : !kept_.empty();
  }
  void move_on() {
    const auto here = std::min(plan_.shift, static_cast<std::int64_t>(kept_.size()));
    kept_.erase(kept_.begin(), kept_.begin() + here);
    gap_ = plan_.shift - here;
  }

  std::unique_ptr<Cursor<Item>> upstream_;  // null when it has ended
  const WindowPlan& plan_;
  std::deque<Item> kept_;  // from the begin of the next window
  std::int64_t gap_ = 0;   // elements before it, if none is kept
};

class GatheredWindows : public Elements {
 public:
  GatheredWindows(const Source& source, std::unique_ptr<Positions> upstream, const WindowPlan& plan, const Pass& pass,
                  Where where)
      : source_(source), windows_(std::move(upstream), plan), draws_(pass, source), where_(where) {}
  bool next(Tensors& out) override {
    if (!windows_.next(positions_)) return false;
    source_.batch(positions_, 0, draws_, where_, out);
    draws_.count(positions_.size());
    return true;
  }
  std::int64_t skip(std::int64_t count) override { return windows_.skip(count); }

 private:
  const Source& source_;
  Sliding<std::int64_t> windows_;
  SourceDraws draws_;
  std::vector<std::int64_t> positions_;
  Where where_;
};

class StackedWindows : public Elements {
 public:
  StackedWindows(std::unique_ptr<Elements> upstream, const WindowPlan& plan, Where where)
      : windows_(std::move(upstream), plan), where_(where) {}
  bool next(Tensors& out) override {
    if (!windows_.next(elements_)) return false;
    Stack stack(static_cast<std::int64_t>(elements_.size()), 0, where_, "window");
    for (const Tensors& element : elements_) stack.add(element);
    stack.finish(out);
    return true;
  }
  std::int64_t skip(std::int64_t count) override { return windows_.skip(count); }

 private:
  Sliding<Tensors> windows_;
  std::vector<Tensors> elements_;
  Where where_;
};

class WindowStage : public LaterStage {
 public:
  WindowStage(StagePointer before, const WindowPlan& plan, Where where)
      : LaterStage(before, {.name = "window",
                            .arguments = text(plan.size, ", {.shift = ", plan.shift, ", .stride = ", plan.stride,
                                              plan.drop_remainder ? ", .drop_remainder = true}" : "}"),
                            .where = where,
                            .count = plan.count(before->count())}),
        plan_(plan) {}
  std::optional<std::vector<TensorSpec>> spec() const override {
    const bool full = plan_.drop_remainder || upstream.count() == infinite;
    return with_first_axis(upstream.spec(), full ? DimSpec(plan_.size) : DimSpec(dyn));
  }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    // An element of host code is part of several windows: it is made once.
    const Source* source = upstream.source();
    if (source && !source->calls_host_code())
      return std::make_unique<GatheredWindows>(*source, upstream.positions(pass), plan_, pass, facts().where);
    return std::make_unique<StackedWindows>(upstream.elements(pass), plan_, facts().where);
  }
  WindowPlan plan_;
};

}  // namespace

StagePointer window_stage(StagePointer upstream, std::int64_t size, WindowOptions options, Where where) {
  const WindowPlan plan{size, options.shift == 0 ? size : options.shift, options.stride, options.drop_remainder};
  return std::make_shared<WindowStage>(std::move(upstream), plan, where);
}

}  // namespace stet::data
