// The first few of a sorted line in one pass: what is below a threshold is collected, and whenever the room is full,
// all but the lowest are dropped and the threshold moves down. Elements in any order cost O(length) in all.
#include "stet/cpu/sort.h"
#include "stet/cpu/sort_line.h"
#include "stet/runtime/buffer.h"

namespace stet::cpu {
namespace {

/// Up to length / this the lowest are selected; sorting what was selected costs more per element than sorting the line.
constexpr Count least_ratio = 16;
/// Elements looked at together; the room has space for so many more, so that collecting them needs no check.
constexpr Count group = key_group;
/// Blocks of a long line: each begins without a threshold, so they are larger than those of sorting.
constexpr Count least_selected_block = 1 << 19;

template <class Word>
struct Candidate {
  Word key;
  Count position;
  bool operator<(const Candidate& other) const {
    return key < other.key || (key == other.key && position < other.position);
  }
};

constexpr Count room_of(Count kept) { return 2 * kept + 16 + group; }

/// Leaves the `kept` lowest of the candidates, in no order.
template <class Word>
Count drop_others(Candidate<Word>* candidates, Count count, Count kept) {
  if (count <= kept) return count;
  std::nth_element(candidates, candidates + kept, candidates + count);
  return kept;
}

/// Collects the lowest elements of [begin, end), at most kept of them, in room for room_of(kept); returns how many.
template <class Order>
Count collect(const Line<Order>& line, Count begin, Count end, Candidate<typename Order::Word>* candidates) {
  using Word = typename Order::Word;
  static const auto lowest_key = GroupKeys<Order>::choose_lowest();
  const Count kept = line.kept, full = room_of(kept) - group;
  Count count = 0;
  auto add = [&](Count i) { candidates[count++] = {line.key(i), i}; };
  Count i = begin;
  for (const Count first = std::min(end, begin + full); i < first; ++i) add(i);
  // All positions from here on are greater than those of the candidates, so an equal key comes too late.
  Word threshold = 0;
  auto tighten = [&] {
    count = drop_others(candidates, count, kept);
    threshold = 0;
    for (Count k = 0; k < count; ++k) threshold = std::max(threshold, candidates[k].key);
  };
  if (i < end) tighten();
  while (i < end) {
    if (line.stride == 1)
      while (i + 2 * group <= end && lowest_key(static_cast<const Word*>(line.from) + i, line.flip) >= threshold)
        i += 2 * group;
    const Count here = std::min(group, end - i);
    Word keys[group];
    if (line.read_keys(i, i + here, keys).lowest < threshold) {
      for (Count k = 0; k < here; ++k) {
        candidates[count] = {keys[k], i + k};
        count += keys[k] < threshold;
      }
      if (count > full) tighten();
    }
    i += here;
  }
  return drop_others(candidates, count, kept);
}

/// Writes the lowest candidates, of which there are at least line.kept.
template <class Order>
void write_lowest(const Line<Order>& line, Candidate<typename Order::Word>* candidates, Count count) {
  count = drop_others(candidates, count, line.kept);
  std::sort(candidates, candidates + count);
  for (Count i = 0; i < count; ++i) {
    if (line.positions) line.positions[i * line.stride] = candidates[i].position;
    if (line.values) line.write(i, line.word(candidates[i].position));
  }
}

template <class Order>
void select_all(const SortArguments& arguments) {
  using Element = Candidate<typename Order::Word>;
  const Count room = room_of(arguments.kept), lines = arguments.outer * arguments.inner;
  auto allocate = [](Count count) { return Buffer::allocate(static_cast<std::size_t>(count) * sizeof(Element)); };
  if (few_long_lines(arguments)) {
    const Blocks blocks = Blocks::of(arguments.length, std::max(least_selected_block, least_ratio * arguments.kept));
    const Buffer memory = allocate(blocks.count * room);
    auto* candidates = reinterpret_cast<Element*>(memory.data());
    for (Count index = 0; index < lines; ++index) {
      const Line<Order> line(arguments, index);
      Count counts[Blocks::most];
      auto body = [&](Count block) {
        counts[block] = collect(line, blocks.begin(block), blocks.end(block), candidates + block * room);
      };
      parallel_for(blocks.count, body);
      Count all = counts[0];
      for (Count block = 1; block < blocks.count; all += counts[block++])
        std::copy_n(candidates + block * room, counts[block], candidates + all);
      write_lowest(line, candidates, all);
    }
    return;
  }
  for_lines(arguments, 1, [&](Count begin, Count end) {
    const Buffer memory = allocate(room);
    auto* candidates = reinterpret_cast<Element*>(memory.data());
    for (Count index = begin; index < end; ++index) {
      const Line<Order> line(arguments, index);
      write_lowest(line, candidates, collect(line, 0, line.length, candidates));
    }
  });
}

}  // namespace

bool selects(const SortArguments& arguments) { return arguments.kept <= arguments.length / least_ratio; }

void select_lines(const SortArguments& arguments) {
  with_ordering(arguments.dtype, [&]<class Order>(Order) { select_all<Order>(arguments); });
}

}  // namespace stet::cpu
