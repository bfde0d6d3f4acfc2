// Unsigned integers sorted by some of their bits, in blocks fixed by sizes: what sort.cpp makes of elements.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "stet/runtime/parallel.h"

namespace stet::cpu {

using Count = std::int64_t;

/// A line cut into blocks for threads.
struct Blocks {
  static constexpr Count most = 64;
  Count length = 0, each = 0, count = 1;

  static Blocks one(Count length) { return {length, length, 1}; }
  /// As many as are worth it, at least one.
  static Blocks of(Count length, Count least_each) {
    const Count count = std::clamp<Count>(length / least_each, 1, most);
    return {length, (length + count - 1) / count, count};
  }
  Count begin(Count block) const { return std::min(length, block * each); }
  Count end(Count block) const { return std::min(length, (block + 1) * each); }
};

/// Bits of a number without leading zeros; std::bit_width returns different types in different libraries.
constexpr int width_of(std::uint64_t number) { return 64 - std::countl_zero(number); }
constexpr std::uint64_t low_bits(int count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// The digits that some bits are cut into.
struct Digits {
  int passes, width;
  /// Of at most `widest` bits, all about as wide.
  Digits(int bits, int widest)
      : passes((bits + widest - 1) / widest), width((bits + passes - 1) / std::max(passes, 1)) {}
};
/// Numbers that sort_by_bits() counts in.
constexpr Count counts_for(Count blocks, int widest) { return std::max<Count>(blocks, 64 / widest + 1) << widest; }

/// Makes counts of each digit, and block, the places where its first record goes. Whether there is more than one digit.
template <class Offset>
bool add_up(Offset* counts, Count digits, Count blocks, Count length) {
  Offset sum = 0, largest = 0;
  for (Count digit = 0; digit < digits; ++digit) {
    const Offset before = sum;
    for (Count block = 0; block < blocks; ++block) {
      const Offset here = counts[block * digits + digit];
      counts[block * digits + digit] = sum;
      sum += here;
    }
    largest = std::max<Offset>(largest, sum - before);
  }
  return static_cast<Count>(largest) != length;
}

template <class Record, class Offset>
void scatter(const Record* records, Record* other, Count begin, Count end, int shift, Record mask, Offset* places) {
  for (Count i = begin; i < end; ++i) {
    const Record record = records[i];
    other[places[(record >> shift) & mask]++] = record;
  }
}

/// Counts all digits in one pass over the records; `passes` is their number where the compiler shall know it.
template <int passes, class Record, class Offset>
void count_digits(const Record* records, Count length, int low, const Digits& cut, Offset* counts) {
  const int pass_count = passes ? passes : cut.passes, width = cut.width;
  const auto mask = static_cast<Record>((Count{1} << width) - 1);
  for (Count i = 0; i < length; ++i) {
    auto rest = static_cast<Record>(records[i] >> low);
    for (int pass = 0; pass < pass_count; ++pass) {
      ++counts[(Count{pass} << width) + static_cast<Count>(rest & mask)];
      rest = static_cast<Record>(rest >> width);
    }
  }
}

/// sort_by_bits() of one block.
template <class Record, class Offset>
Record* sort_block(Record* records, Record* other, Count length, int low, int bits, int widest, Offset* counts) {
  const Digits cut(bits, widest);
  const Count digits = Count{1} << cut.width;
  const auto mask = static_cast<Record>(digits - 1);
  std::fill_n(counts, cut.passes * digits, Offset{0});
  switch (cut.passes) {
    case 1:
      count_digits<1>(records, length, low, cut, counts);
      break;
    case 2:
      count_digits<2>(records, length, low, cut, counts);
      break;
    case 3:
      count_digits<3>(records, length, low, cut, counts);
      break;
    case 4:
      count_digits<4>(records, length, low, cut, counts);
      break;
    default:
      count_digits<0>(records, length, low, cut, counts);
  }
  for (int pass = 0; pass < cut.passes; ++pass) {
    Offset* places = counts + pass * digits;
    if (!add_up(places, digits, 1, length)) continue;
    scatter(records, other, 0, length, low + pass * cut.width, mask, places);
    std::swap(records, other);
  }
  return records;
}

/// Sorts records by `bits` bits from `low` on, stable, least significant digits first. Digits have at most `widest`
/// bits; `counts` has room for counts_for(blocks.count, widest). The bits above must be the same in all records.
/// Returns where the result is: `records` or `other`.
template <class Record, class Offset>
Record* sort_by_bits(Record* records, Record* other, const Blocks& blocks, int low, int bits, int widest,
                     Offset* counts) {
  if (bits == 0 || blocks.length < 2) return records;
  if (blocks.count == 1) return sort_block(records, other, blocks.length, low, bits, widest, counts);
  const Digits cut(bits, widest);
  const Count digits = Count{1} << cut.width;
  const auto mask = static_cast<Record>(digits - 1);
  for (int pass = 0; pass < cut.passes; ++pass) {
    const int shift = low + pass * cut.width;
    auto count = [&](Count block) {
      Offset* mine = counts + block * digits;
      std::fill_n(mine, digits, Offset{0});
      for (Count i = blocks.begin(block), end = blocks.end(block); i < end; ++i) ++mine[(records[i] >> shift) & mask];
    };
    parallel_for(blocks.count, count);
    if (!add_up(counts, digits, blocks.count, blocks.length)) continue;  // All have the same digit.
    auto move = [&](Count block) {
      scatter(records, other, blocks.begin(block), blocks.end(block), shift, mask, counts + block * digits);
    };
    parallel_for(blocks.count, move);
    std::swap(records, other);
  }
  return records;
}

/// Calls resolve(block, begin, end) for every run of two or more records that are equal from bit `shift` on. It may
/// change the records of the run.
template <class Record, class Resolve>
void for_ties(const Record* records, const Blocks& blocks, int shift, const Resolve& resolve) {
  auto tied = [&](Count i) { return records[i - 1] >> shift == records[i] >> shift; };
  // Where the first run of each block begins, before anything is changed: a run belongs to the block that it begins in.
  Count first[Blocks::most + 1];
  for (Count block = 0; block <= blocks.count; ++block) {
    Count begin = block == blocks.count ? blocks.length : blocks.begin(block);
    if (block > 0) begin = std::max(begin, first[block - 1]);
    while (begin > 0 && begin < blocks.length && tied(begin)) ++begin;
    first[block] = begin;
  }
  auto body = [&](Count block) {
    for (Count begin = first[block], end = first[block + 1]; begin < end;) {
      Count next = begin + 1;
      while (next < end && tied(next)) ++next;
      if (next - begin > 1) resolve(block, begin, next);
      begin = next;
    }
  };
  parallel_for(blocks.count, body);
}

/// Lines that sort_lanes() sorts side by side.
inline constexpr int sort_lanes_count = 8;

/// Sorts every column of records [length, sort_lanes_count], which are not negative; not stable, so they should differ.
/// `records` is aligned to 64 bytes.
void sort_lanes(std::int64_t* records, Count length);

}  // namespace stet::cpu
