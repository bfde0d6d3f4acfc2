// One line of a SortArguments, and how lines are shared out to threads: for sort.cpp and sort_top.cpp.
#pragma once
#include <algorithm>

#include "stet/cpu/parallel_throwing.h"
#include "stet/cpu/sort.h"
#include "stet/cpu/sort_groups.h"
#include "stet/cpu/sort_keys.h"
#include "stet/cpu/sort_records.h"

namespace stet::cpu {

template <class Order>
struct Line {
  using Word = typename Order::Word;
  const void* from;
  void* values;
  std::int64_t* positions;
  Count stride, length, kept;
  Word flip;  // makes keys of a descending order

  Line(const SortArguments& arguments, Count index)
      : stride(arguments.inner),
        length(arguments.length),
        kept(arguments.kept),
        flip(arguments.descending ? Order::highest : Word{0}) {
    const Count outer = index / stride, column = index % stride;
    const Count source = outer * length * stride + column, result = outer * kept * stride + column;
    const Count bytes = sizeof(Word);
    from = static_cast<const std::byte*>(arguments.from) + source * bytes;
    values = arguments.values ? static_cast<std::byte*>(arguments.values) + result * bytes : nullptr;
    positions = arguments.positions ? arguments.positions + result : nullptr;
  }
  const void* address(Count i) const { return static_cast<const Word*>(from) + i * stride; }
  Word word(Count i) const { return load_word<Word>(from, i * stride); }
  Word key(Count i) const { return static_cast<Word>(Order::key(word(i)) ^ flip); }
  /// Writes the keys of [begin, end), and returns their span.
  KeySpan<Word> read_keys(Count begin, Count end, Word* keys) const {
    static const auto group_keys = GroupKeys<Order>::choose_make();
    KeySpan<Word> span;
    Count i = begin;
    if (stride == 1)
      for (; i + key_group <= end; i += key_group, keys += key_group)
        span.add(group_keys(static_cast<const Word*>(from) + i, flip, keys));
    for (; i < end; ++i) {
      const Word here = word(i);
      *keys = static_cast<Word>(Order::key(here) ^ flip);
      span.template add<Order>(here, *keys++);
    }
    return span;
  }
  void write(Count i, Word word) const { store_word(values, i * stride, word); }
};

/// Elements that are worth a chunk of their own, tens of microseconds.
inline constexpr Count chunk_elements = 1 << 14;
/// From here on a line is worth blocks, of at least so many elements, unless there are lines enough for threads.
inline constexpr Count least_block = 1 << 16;
inline constexpr Count enough_lines = 16;

inline bool few_long_lines(const SortArguments& arguments) {
  return arguments.length >= 2 * least_block && arguments.outer * arguments.inner < enough_lines;
}

/// Calls body(begin, end) for ranges of lines on the threads, ranges of a multiple of `step` lines but for the last. It
/// may throw: the first exception is thrown again in the end.
template <class Body>
void for_lines(const SortArguments& arguments, Count step, const Body& body) {
  const Count lines = arguments.outer * arguments.inner;
  Count each = std::max<Count>(1, chunk_elements / arguments.length);
  // Neighbours share cache lines.
  if (arguments.inner > 1) each = std::max(each, std::min<Count>(arguments.inner, 64 / size_of(arguments.dtype)));
  each = (each + step - 1) / step * step;
  parallel_for_throwing((lines + each - 1) / each,
                        [&](Count index) { body(index * each, std::min(lines, (index + 1) * each)); });
}

/// Few enough of the lines are kept to select them in one pass.
bool selects(const SortArguments& arguments);
/// sort() for those.
void select_lines(const SortArguments& arguments);

}  // namespace stet::cpu
