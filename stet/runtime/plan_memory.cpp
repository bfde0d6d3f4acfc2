#include "stet/runtime/plan_memory.h"

#include <algorithm>
#include <vector>

#include "stet/base/error.h"

namespace stet {
namespace {

constexpr std::size_t alignment = 64;
std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// a + b bytes, or Problem: an arena that wrapped around would be far too small.
std::size_t added_bytes(std::size_t a, std::size_t b) {
  std::size_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum) || sum > std::size_t{1} << 62)
    throw Problem("the values that are needed at the same time are too large for memory");
  return sum;
}

struct Span {
  std::size_t begin = 0, end = 0;
};

/// Occupied memory: spans in order, with free memory between any two. Blocks that touch are one span, so that a
/// thousand of them side by side are passed in one step.
class Occupied {
 public:
  bool empty() const { return spans_.empty(); }
  void add(const Span& span) {
    auto from = first_reaching(span.begin);
    if (from == spans_.end() || from->begin > span.end) {
      spans_.insert(from, span);
      return;
    }
    if (from->begin <= span.begin && span.end <= from->end) return;
    auto to = from;
    while (to != spans_.end() && to->begin <= span.end) ++to;
    *from = {std::min(from->begin, span.begin), std::max((to - 1)->end, span.end)};
    spans_.erase(from + 1, to);
  }
  /// The lowest offset from `offset` on at which `bytes` are free.
  std::size_t first_free(std::size_t offset, std::size_t bytes) const {
    for (auto at = first_reaching(offset + 1); at != spans_.end() && at->begin < added_bytes(offset, bytes); ++at)
      offset = at->end;
    return offset;
  }

 private:
  /// The first span that ends at `offset` or later.
  std::vector<Span>::iterator first_reaching(std::size_t offset) {
    return std::lower_bound(spans_.begin(), spans_.end(), offset,
                            [](const Span& span, std::size_t at) { return span.end < at; });
  }
  std::vector<Span>::const_iterator first_reaching(std::size_t offset) const {
    return std::lower_bound(spans_.begin(), spans_.end(), offset,
                            [](const Span& span, std::size_t at) { return span.end < at; });
  }
  std::vector<Span> spans_;
};

/// Memory over time: a tree over stretches of time. What a lifetime meets is what was occupied in all of a stretch
/// that holds it, or anywhere in a stretch that it holds; a few stretches tell it, however many blocks there are.
class MemoryOverTime {
 public:
  explicit MemoryOverTime(std::span<const PlannedBlock> blocks) {
    // Two lifetimes meet if one begins within the other: of all steps, only those at which blocks begin matter.
    for (const PlannedBlock& block : blocks)
      if (block.first <= block.last) begins_.push_back(block.first);
    std::sort(begins_.begin(), begins_.end());
    begins_.erase(std::unique(begins_.begin(), begins_.end()), begins_.end());
    while (leaves_ < begins_.size()) leaves_ *= 2;
    throughout_.resize(2 * leaves_);
    somewhere_.resize(2 * leaves_);
  }

  void add(const PlannedBlock& block) {
    const Span span{block.offset, aligned(added_bytes(block.offset, block.bytes))};
    for_each_stretch(
        block, [&](std::size_t stretch) { somewhere_[stretch].add(span); },
        [&](std::size_t stretch) {
          throughout_[stretch].add(span);
          somewhere_[stretch].add(span);
        });
  }

  /// The lowest offset that is free for the block while it lives.
  std::size_t first_free(const PlannedBlock& block) {
    met_.clear();
    auto meet = [&](const Occupied& occupied) {
      if (!occupied.empty()) met_.push_back(&occupied);
    };
    for_each_stretch(
        block, [&](std::size_t stretch) { meet(throughout_[stretch]); },
        [&](std::size_t stretch) { meet(somewhere_[stretch]); });
    std::size_t offset = 0;
    // Until all of them in a row agree.
    for (std::size_t agreed = 0, at = 0; agreed < met_.size(); at = at + 1 == met_.size() ? 0 : at + 1) {
      ++probes;
      const std::size_t next = met_[at]->first_free(offset, block.bytes);
      agreed = next == offset ? agreed + 1 : 1;
      offset = next;
    }
    return offset;
  }

  std::size_t probes = 0;

 private:
  /// The block's lifetime as few stretches, each given to `inside`; all larger ones that hold these, to `around`.
  template <class Around, class Inside>
  void for_each_stretch(const PlannedBlock& block, const Around& around, const Inside& inside) const {
    auto begin = std::lower_bound(begins_.begin(), begins_.end(), block.first) - begins_.begin();
    auto end = std::upper_bound(begins_.begin(), begins_.end(), block.last) - begins_.begin();
    visit({1, 0, leaves_}, static_cast<std::size_t>(begin), static_cast<std::size_t>(end), around, inside);
  }
  struct Stretch {
    std::size_t number, begin, end;
  };
  template <class Around, class Inside>
  void visit(const Stretch& at, std::size_t begin, std::size_t end, const Around& around, const Inside& inside) const {
    if (begin <= at.begin && at.end <= end) return inside(at.number);
    around(at.number);
    const std::size_t middle = (at.begin + at.end) / 2;
    if (begin < middle) visit({2 * at.number, at.begin, middle}, begin, end, around, inside);
    if (end > middle) visit({2 * at.number + 1, middle, at.end}, begin, end, around, inside);
  }

  std::vector<int> begins_;
  std::size_t leaves_ = 1;
  std::vector<Occupied> throughout_, somewhere_;  // by stretch; 1 is all of the time, 2n and 2n + 1 the halves of n
  std::vector<const Occupied*> met_;
};

}  // namespace

std::size_t plan_memory(std::span<PlannedBlock> blocks) {
  std::size_t probes = 0;
  return plan_memory(blocks, probes);
}

std::size_t plan_memory(std::span<PlannedBlock> blocks, std::size_t& probes) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].offset = 0;
    if (blocks[i].first <= blocks[i].last && blocks[i].bytes > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  MemoryOverTime memory(blocks);
  std::size_t total = 0;
  for (std::size_t number : order) {
    PlannedBlock& block = blocks[number];
    block.offset = memory.first_free(block);
    total = std::max(total, added_bytes(block.offset, block.bytes));
    memory.add(block);
  }
  probes += memory.probes;
  return aligned(total);
}

}  // namespace stet
