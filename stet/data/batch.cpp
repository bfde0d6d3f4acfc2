// Batches: of positions where there are some (the source gathers rows), otherwise of elements (stacked as they come).
#include <algorithm>
#include <utility>
#include <vector>

#include "stet/data/stack.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

struct BatchPlan {
  std::int64_t size;
  bool drop_remainder;
  Where where;
};

class GatheredBatches : public Elements {
 public:
  GatheredBatches(const Source& source, std::unique_ptr<Positions> upstream, const BatchPlan& plan, const Pass& pass)
      : source_(source), upstream_(std::move(upstream)), plan_(plan), draws_(pass) {}

  bool next(Tensors& out) override {
    if (!upstream_) return false;
    positions_.clear();
    std::int64_t position;
    while (static_cast<std::int64_t>(positions_.size()) < plan_.size) {
      if (!upstream_->next(position)) {
        upstream_.reset();
        if (positions_.empty() || plan_.drop_remainder) return false;
        break;
      }
      positions_.push_back(position);
    }
    source_.batch(positions_, before_, draws_, plan_.where, out);
    before_ += static_cast<std::int64_t>(positions_.size());
    return true;
  }

 private:
  const Source& source_;
  std::unique_ptr<Positions> upstream_;  // null when it has ended
  const BatchPlan& plan_;
  ElementDraws draws_;
  std::vector<std::int64_t> positions_;
  std::int64_t before_ = 0;
};

class StackedBatches : public Elements {
 public:
  /// `count` of the upstream's elements, or a negative number: for how many to make room.
  StackedBatches(std::unique_ptr<Elements> upstream, std::int64_t count, const BatchPlan& plan)
      : upstream_(std::move(upstream)), plan_(plan) {
    constexpr std::int64_t room = 64;
    expected_ = std::min(plan.size, count == unknown_count || count == infinite ? room : std::max(count, room));
  }

  bool next(Tensors& out) override {
    if (!upstream_) return false;
    Stack stack(std::min(expected_, plan_.size), before_, plan_.where);
    while (stack.count() < plan_.size) {
      if (!upstream_->next(element_)) {
        upstream_.reset();
        if (stack.count() == 0 || plan_.drop_remainder) return false;
        break;
      }
      stack.add(element_);
    }
    before_ += stack.count();
    expected_ = std::max(expected_, stack.count());
    stack.finish(out);
    return true;
  }

 private:
  std::unique_ptr<Elements> upstream_;  // null when it has ended
  const BatchPlan& plan_;
  Tensors element_;
  std::int64_t before_ = 0, expected_;
};

class BatchStage : public LaterStage {
 public:
  BatchStage(StagePointer before, const BatchPlan& plan) : LaterStage(std::move(before)), plan_(plan) {}

  std::unique_ptr<Elements> elements(const Pass& pass) const override {
    if (const Source* source = upstream->source())
      return std::make_unique<GatheredBatches>(*source, upstream->positions(pass), plan_, pass);
    return std::make_unique<StackedBatches>(upstream->elements(pass), upstream->count(), plan_);
  }
  std::int64_t count() const override {
    std::int64_t elements = upstream->count();
    if (elements == unknown_count || elements == infinite) return elements;
    return elements / plan_.size + (!plan_.drop_remainder && elements % plan_.size != 0);
  }

 private:
  BatchPlan plan_;
};

}  // namespace

StagePointer batch_stage(StagePointer upstream, std::int64_t batch_size, BatchOptions options, Where where) {
  return std::make_shared<BatchStage>(std::move(upstream), BatchPlan{batch_size, options.drop_remainder, where});
}

}  // namespace stet::data
