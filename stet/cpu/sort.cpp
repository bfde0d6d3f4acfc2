// Elements become keys, unsigned integers ordered like them (sort_keys.h), and what is sorted is made of keys:
//
// With positions a record is one 64-bit word, [bits of the key][position]. Where the bits that differ within a line are
// too many, or far more than it takes to tell so many elements apart, the record has the highest of them only; records
// that tie in those are looked at again with the bits below. Short lines go through a sorting network, eight side by
// side, others through a radix sort. Without positions the keys are the records.
//
// Few long lines are cut into blocks for threads, others are sorted each by one thread. Few of many (top_k) are
// selected in one pass, in sort_top.cpp.
#include "stet/cpu/sort.h"

#include "stet/base/text.h"
#include "stet/cpu/sort_line.h"
#include "stet/cpu/sort_records.h"
#include "stet/runtime/buffer.h"

namespace stet::cpu {
namespace {

// --- Thresholds, measured (bench/sort.cpp).

/// Up to here lines go through the network, a few of them only if they are shorter: it always sorts eight.
constexpr Count longest_small = 256, longest_small_of_wide = 128, longest_small_of_few = 64, few_lines = 4;
/// Digits of the radix sort are wide where clearing and adding up the counts is little beside the records.
constexpr Count least_for_wide = 1 << 14;
constexpr int narrow_digit = 8, wide_digit = 10;
/// Runs of ties up to here are sorted by insertion, others in narrow digits.
constexpr Count longest_insertion = 32;
constexpr Count counts_of_ties = counts_for(1, narrow_digit);

/// Elements that are asked for before they are needed, where they lie anywhere in a line.
constexpr Count prefetch_distance = 32;

constexpr std::size_t room_for(Count count, std::size_t bytes) {
  return (static_cast<std::size_t>(count) * bytes + 63) / 64 * 64;
}

/// How a line is sorted: which bits, in which digits.
struct RadixPlan {
  int key_bits = 0;  // that records are sorted by
  int hidden = 0;    // bits below, that only ties need
};

/// So many bits tell n elements apart, all but about a hundred of them, if those are spread evenly; floating ones use
/// about half of their exponent's bits.
template <class Order>
RadixPlan radix_plan(int differing, Count length, int room, int widest) {
  const int size = width_of(static_cast<std::uint64_t>(length));
  const int exponent = !Order::floating ? 0 : Order::bits == 64 ? 12 : 9;
  const int enough = std::max(1, 2 * size - 7) + exponent;
  const int whole_digits = (enough + widest - 1) / widest * widest;
  const int key_bits = std::min({differing, room, whole_digits});
  return {key_bits, differing - key_bits};
}

int widest_digit(Count length) { return length >= least_for_wide ? wide_digit : narrow_digit; }

/// Sorts a line by records in scratch memory that is made once and serves line after line.
template <class Order, class Offset>
class RadixSorter {
 public:
  using Word = typename Order::Word;
  /// `position_bits` 0: positions are not wanted.
  RadixSorter(const Blocks& blocks, int position_bits)
      : blocks_(blocks), position_bits_(position_bits), widest_(widest_digit(blocks.length)) {
    const std::size_t records = room_for(blocks.length, position_bits ? sizeof(std::uint64_t) : sizeof(Word));
    memory_ = Buffer::allocate(
        2 * records +
        room_for(std::max(counts_for(blocks.count, widest_), blocks.count * counts_of_ties), sizeof(Offset)));
    first_ = memory_.data();
    second_ = first_ + records;
    counts_ = reinterpret_cast<Offset*>(second_ + records);
  }

  void sort(const Line<Order>& line) {
    KeySpan<Word> spans[Blocks::most];
    // With positions, the records take the other half of the memory, and the keys have been read before it is used.
    auto* keys = reinterpret_cast<Word*>(position_bits_ ? second_ : first_);
    auto read = [&](Count block) {
      const Count begin = blocks_.begin(block);
      spans[block] = line.read_keys(begin, blocks_.end(block), keys + begin);
    };
    parallel_for(blocks_.count, read);
    for (Count block = 1; block < blocks_.count; ++block) spans[0].add(spans[block]);
    lowest_ = spans[0].lowest;
    const int differing = width_of(static_cast<Word>(spans[0].highest - lowest_));
    if (position_bits_)
      sort_with_positions(line, keys, differing);
    else
      sort_values(line, differing, spans[0].special != 0);
  }

 private:
  // --- with positions

  /// The bits of the key in which elements of the line differ.
  std::uint64_t differing_bits(const Line<Order>& line, Count position) const {
    return static_cast<Word>(line.key(position) - lowest_);
  }

  void sort_with_positions(const Line<Order>& line, const Word* keys, int differing) {
    const RadixPlan plan = radix_plan<Order>(differing, line.length, 64 - position_bits_, widest_);
    auto* records = reinterpret_cast<std::uint64_t*>(first_);
    auto* other = reinterpret_cast<std::uint64_t*>(second_);
    auto make = [&](Count block) {
      for (Count i = blocks_.begin(block), end = blocks_.end(block); i < end; ++i)
        records[i] = static_cast<std::uint64_t>(static_cast<Word>(keys[i] - lowest_)) >> plan.hidden << position_bits_ |
                     static_cast<std::uint64_t>(i);
    };
    parallel_for(blocks_.count, make);
    auto* sorted = sort_by_bits(records, other, blocks_, position_bits_, plan.key_bits, widest_, counts_);
    auto* free = sorted == records ? other : records;
    if (plan.hidden > 0) {
      for_ties(sorted, blocks_, position_bits_, [&](Count block, Count begin, Count end) {
        resolve_ties(line, sorted + begin, free + begin, end - begin, plan.hidden, counts_ + block * counts_of_ties);
      });
    }
    write_with_positions(line, sorted, plan.hidden == 0);
  }

  /// Sorts records that tie, and are in the order of positions, by the `hidden` lowest bits that differ.
  void resolve_ties(const Line<Order>& line, std::uint64_t* records, std::uint64_t* free, Count count, int hidden,
                    Offset* counts) const {
    const std::uint64_t position_mask = low_bits(position_bits_);
    auto bits_of = [&](std::uint64_t record) {
      return differing_bits(line, static_cast<Count>(record & position_mask)) & low_bits(hidden);
    };
    if (count <= longest_insertion) {
      std::uint64_t bits[longest_insertion];
      for (Count i = 0; i < count; ++i) {
        const std::uint64_t record = records[i], mine = bits_of(record);
        Count to = i;
        for (; to > 0 && bits[to - 1] > mine; --to) {
          bits[to] = bits[to - 1];
          records[to] = records[to - 1];
        }
        bits[to] = mine;
        records[to] = record;
      }
      return;
    }
    const int next = std::min(hidden, 64 - position_bits_), still_hidden = hidden - next;
    for (Count i = 0; i < count; ++i)
      records[i] = bits_of(records[i]) >> still_hidden << position_bits_ | (records[i] & position_mask);
    const Blocks block = Blocks::one(count);
    const auto* sorted = sort_by_bits(records, free, block, position_bits_, next, narrow_digit, counts);
    if (sorted != records) std::copy(sorted, sorted + count, records);
    if (still_hidden == 0) return;
    for_ties(records, block, position_bits_, [&](Count, Count begin, Count end) {
      resolve_ties(line, records + begin, free + begin, end - begin, still_hidden, counts);
    });
  }

  void write_with_positions(const Line<Order>& line, const std::uint64_t* sorted, bool complete) const {
    const std::uint64_t position_mask = low_bits(position_bits_);
    auto write = [&](Count block) {
      const Count begin = blocks_.begin(block), end = std::min(blocks_.end(block), line.kept);
      if (line.positions)
        for (Count i = begin; i < end; ++i)
          line.positions[i * line.stride] = static_cast<std::int64_t>(sorted[i] & position_mask);
      if (!line.values) return;
      if (!complete) {
        for (Count i = begin; i < end; ++i) {
          const Count ahead = std::min(i + prefetch_distance, end - 1);
          __builtin_prefetch(line.address(static_cast<Count>(sorted[ahead] & position_mask)));
          line.write(i, line.word(static_cast<Count>(sorted[i] & position_mask)));
        }
        return;
      }
      for (Count i = begin; i < end; ++i) {
        const auto record = static_cast<Word>(sorted[i] >> position_bits_ & Order::highest);
        const auto key = static_cast<Word>(static_cast<Word>(record + lowest_) ^ line.flip);
        const bool known = !Order::several(key);
        line.write(i, known ? Order::word(key) : line.word(static_cast<Count>(sorted[i] & position_mask)));
      }
    };
    parallel_for(blocks_.count, write);
  }

  // --- without

  void sort_values(const Line<Order>& line, int differing, bool special) {
    const RadixPlan plan = radix_plan<Order>(differing, line.length, Order::bits, widest_);
    auto* records = reinterpret_cast<Word*>(first_);
    auto* other = reinterpret_cast<Word*>(second_);
    auto make = [&](Count block) {
      for (Count i = blocks_.begin(block), end = blocks_.end(block); i < end; ++i)
        records[i] = static_cast<Word>(records[i] - lowest_);
    };
    parallel_for(blocks_.count, make);
    Word* sorted = sort_by_bits(records, other, blocks_, plan.hidden, plan.key_bits, widest_, counts_);
    Word* free = sorted == records ? other : records;
    if (plan.hidden > 0)
      for_ties(sorted, blocks_, plan.hidden, [&](Count block, Count begin, Count end) {
        sort_tied_values(sorted + begin, free + begin, end - begin, plan.hidden, counts_ + block * counts_of_ties);
      });
    auto write = [&](Count block) {
      for (Count i = blocks_.begin(block), end = std::min(blocks_.end(block), line.kept); i < end; ++i)
        line.write(i, Order::word(static_cast<Word>(static_cast<Word>(sorted[i] + lowest_) ^ line.flip)));
    };
    parallel_for(blocks_.count, write);
    if (special) write_special(line, sorted);
  }

  void sort_tied_values(Word* records, Word* free, Count count, int hidden, Offset* counts) const {
    if (count <= longest_insertion) {
      for (Count i = 1; i < count; ++i) {
        const Word record = records[i];
        Count to = i;
        for (; to > 0 && records[to - 1] > record; --to) records[to] = records[to - 1];
        records[to] = record;
      }
      return;
    }
    const Word* sorted = sort_by_bits(records, free, Blocks::one(count), 0, hidden, narrow_digit, counts);
    if (sorted != records) std::copy(sorted, sorted + count, records);
  }

  /// Zeros and NaN, which keys do not tell apart, in the order of the line.
  void write_special(const Line<Order>& line, const Word* sorted) const {
    auto first_of = [&](Word key) {
      const auto record = static_cast<Word>((key ^ line.flip) - lowest_);
      return std::lower_bound(sorted, sorted + line.length, record) - sorted;
    };
    // A key below the lowest would wrap; then the line has none of it, and nothing is written.
    Count next_zero = first_of(Order::sign), next_nan = first_of(Order::highest);
    for (Count i = 0; i < line.length; ++i) {
      const Word word = line.word(i), key = Order::key(word);
      if (!Order::several(key)) continue;
      Count& next = key == Order::sign ? next_zero : next_nan;
      if (next < line.kept) line.write(next, word);
      ++next;
    }
  }

  Blocks blocks_;
  int position_bits_, widest_;
  Word lowest_ = 0;
  Buffer memory_;
  std::byte* first_ = nullptr;
  std::byte* second_ = nullptr;
  Offset* counts_ = nullptr;
};

// --- short lines

/// Sorts up to sort_lanes_count lines, from `first_line` on.
template <class Order>
void sort_short(const SortArguments& arguments, Count first_line, int lines, std::int64_t* records) {
  using Word = typename Order::Word;
  constexpr int lanes = sort_lanes_count;
  const Count length = arguments.length;
  const int position_bits = width_of(static_cast<std::uint64_t>(length - 1));
  const std::uint64_t position_mask = low_bits(position_bits);
  int hidden[lanes] = {};
  Word lowest[lanes] = {};
  for (int lane = 0; lane < lines; ++lane) {
    const Line<Order> line(arguments, first_line + lane);
    if constexpr (Order::bits == 64) {
      Word highest = 0;
      lowest[lane] = Order::highest;
      for (Count i = 0; i < length; ++i) {
        const Word key = line.key(i);
        lowest[lane] = std::min(lowest[lane], key);
        highest = std::max(highest, key);
      }
      hidden[lane] = std::max(0, width_of(highest - lowest[lane]) + position_bits - 63);
    }
    for (Count i = 0; i < length; ++i) {
      const auto bits = static_cast<std::uint64_t>(static_cast<Word>(line.key(i) - lowest[lane])) >> hidden[lane];
      records[i * lanes + lane] = static_cast<std::int64_t>(bits << position_bits | static_cast<std::uint64_t>(i));
    }
  }
  for (int lane = lines; lane < lanes; ++lane)
    for (Count i = 0; i < length; ++i) records[i * lanes + lane] = 0;
  sort_lanes(records, length);
  for (int lane = 0; lane < lines; ++lane) {
    const Line<Order> line(arguments, first_line + lane);
    std::int64_t* mine = records + lane;
    auto position_of = [&](std::int64_t record) {
      return static_cast<Count>(static_cast<std::uint64_t>(record) & position_mask);
    };
    if (hidden[lane] > 0) {
      // Insertion by whole keys: only records that tie in what they have of them can be out of order.
      for (Count i = 1; i < length; ++i) {
        const std::int64_t record = mine[i * lanes];
        const Word key = line.key(position_of(record));
        Count to = i;
        for (; to > 0 && mine[(to - 1) * lanes] >> position_bits == record >> position_bits &&
               line.key(position_of(mine[(to - 1) * lanes])) > key;
             --to)
          mine[to * lanes] = mine[(to - 1) * lanes];
        mine[to * lanes] = record;
      }
    }
    if (line.positions)
      for (Count i = 0; i < line.kept; ++i) line.positions[i * line.stride] = position_of(mine[i * lanes]);
    if (line.values)
      for (Count i = 0; i < line.kept; ++i) line.write(i, line.word(position_of(mine[i * lanes])));
  }
}

template <class Order>
void sort_short_lines(const SortArguments& arguments) {
  for_lines(arguments, sort_lanes_count, [&](Count begin, Count end) {
    alignas(64) std::int64_t records[longest_small * sort_lanes_count];
    for (Count line = begin; line < end; line += sort_lanes_count)
      sort_short<Order>(arguments, line, static_cast<int>(std::min<Count>(sort_lanes_count, end - line)), records);
  });
}

// --- all lines

template <class Order, class Offset>
void sort_lines(const SortArguments& arguments, int position_bits) {
  const Count lines = arguments.outer * arguments.inner;
  if (few_long_lines(arguments)) {
    RadixSorter<Order, Offset> sorter(Blocks::of(arguments.length, least_block), position_bits);
    for (Count line = 0; line < lines; ++line) sorter.sort(Line<Order>(arguments, line));
    return;
  }
  for_lines(arguments, 1, [&](Count begin, Count end) {
    RadixSorter<Order, Offset> sorter(Blocks::one(arguments.length), position_bits);
    for (Count line = begin; line < end; ++line) sorter.sort(Line<Order>(arguments, line));
  });
}

void check(const SortArguments& a) {
  if (a.outer < 0 || a.length < 0 || a.inner < 0 || a.kept < 0 || a.kept > a.length)
    throw InternalError(text("sort: ", a.kept, " of [", a.outer, ",", a.length, ",", a.inner, "]"));
}

}  // namespace

void inside::sort_with(const SortArguments& arguments, int position_bits) {
  check(arguments);
  if (arguments.outer == 0 || arguments.inner == 0 || arguments.kept == 0) return;
  if (!arguments.values && !arguments.positions) return;
  const int needed = std::max(1, width_of(static_cast<std::uint64_t>(arguments.length - 1)));
  const bool few = arguments.outer * arguments.inner < few_lines;
  const bool wide = size_of(arguments.dtype) == 8;
  const Count longest = few ? longest_small_of_few : wide ? longest_small_of_wide : longest_small;
  with_ordering(arguments.dtype, [&]<class Order>(Order) {
    if (position_bits == 0 && arguments.length <= longest) return sort_short_lines<Order>(arguments);
    if (position_bits == 0 && selects(arguments)) return select_lines(arguments);
    const int bits = std::max(position_bits, needed), used = arguments.positions ? bits : 0;
    if (bits <= 32)
      sort_lines<Order, std::uint32_t>(arguments, used);
    else
      sort_lines<Order, std::uint64_t>(arguments, used);
  });
}

void sort(const SortArguments& arguments) { inside::sort_with(arguments, 0); }

}  // namespace stet::cpu
