// Batches: of positions where there are some (the source gathers rows), otherwise of elements (stacked as they come).
#include <algorithm>
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/data/stack.h"
#include "stet/data/stage.h"

namespace stet::data {
namespace {

struct BatchPlan {
  std::int64_t size;
  bool drop_remainder;
  Where where;

  std::int64_t batches_of(std::int64_t elements) const {
    return elements / size + (!drop_remainder && elements % size != 0);
  }
};

/// The elements of so many batches, less at the end; how many there were. An upstream that has ended is let go of.
template <class Item>
std::int64_t skip_batches(std::unique_ptr<Cursor<Item>>& upstream, const BatchPlan& plan, std::int64_t batches) {
  std::int64_t elements;
  if (__builtin_mul_overflow(batches, plan.size, &elements)) elements = INT64_MAX;
  const std::int64_t there = upstream->skip(elements);
  if (there < elements) upstream.reset();
  return there;
}

class GatheredBatches : public Elements {
 public:
  GatheredBatches(const Source& source, std::unique_ptr<Positions> upstream, const BatchPlan& plan, const Pass& pass)
      : source_(source), upstream_(std::move(upstream)), plan_(plan), draws_(pass, source) {}

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
    draws_.count(positions_.size());
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    if (!upstream_) return 0;
    const std::int64_t elements = skip_batches(upstream_, plan_, count);
    draws_.skip(elements);
    before_ += elements;
    return plan_.batches_of(elements);
  }

 private:
  const Source& source_;
  std::unique_ptr<Positions> upstream_;  // null when it has ended
  const BatchPlan& plan_;
  SourceDraws draws_;
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
  std::int64_t skip(std::int64_t count) override {
    if (!upstream_) return 0;
    const std::int64_t elements = skip_batches(upstream_, plan_, count);
    before_ += elements;
    return plan_.batches_of(elements);
  }

 private:
  std::unique_ptr<Elements> upstream_;  // null when it has ended
  const BatchPlan& plan_;
  Tensors element_;
  std::int64_t before_ = 0, expected_;
};

std::int64_t count_of_batches(std::int64_t elements, const BatchPlan& plan) {
  return elements == unknown_count || elements == infinite ? elements : plan.batches_of(elements);
}

class BatchStage : public LaterStage {
 public:
  BatchStage(StagePointer before, const BatchPlan& plan)
      : LaterStage(before, {.name = "batch",
                            .arguments = text(plan.size, plan.drop_remainder ? ", {.drop_remainder = true}" : ""),
                            .where = plan.where,
                            .count = count_of_batches(before->count(), plan)}),
        plan_(plan) {}
  std::optional<std::vector<TensorSpec>> spec() const override {
    const std::int64_t elements = upstream.count();
    const bool full =
        plan_.drop_remainder || elements == infinite || (elements != unknown_count && elements % plan_.size == 0);
    return with_first_axis(upstream.spec(), full ? DimSpec(plan_.size) : DimSpec(dyn));
  }

 private:
  std::unique_ptr<Elements> open(const Pass& pass) const override {
    if (const Source* source = upstream.source())
      return std::make_unique<GatheredBatches>(*source, upstream.positions(pass), plan_, pass);
    return std::make_unique<StackedBatches>(upstream.elements(pass), upstream.count(), plan_);
  }
  BatchPlan plan_;
};

}  // namespace

std::optional<std::vector<TensorSpec>> with_first_axis(std::optional<std::vector<TensorSpec>> specs, DimSpec size) {
  if (specs)
    for (TensorSpec& spec : *specs) spec.shape.dims.insert(spec.shape.dims.begin(), size);
  return specs;
}

StagePointer batch_stage(StagePointer upstream, std::int64_t batch_size, BatchOptions options, Where where) {
  return std::make_shared<BatchStage>(std::move(upstream), BatchPlan{batch_size, options.drop_remainder, where});
}

}  // namespace stet::data
