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

/// Sorts records by `bits` bits from `low` on, stable, least significant digits first. Digits have at most `widest`
/// bits; `counts` has room for blocks.count << widest numbers. Returns where the result is: `records` or `other`.
template <class Record, class Offset>
Record* sort_by_bits(Record* records, Record* other, const Blocks& blocks, int low, int bits, int widest,
                     Offset* counts) {
  if (bits == 0 || blocks.length < 2) return records;
  const int passes = (bits + widest - 1) / widest, width = (bits + passes - 1) / passes;
  for (int done = 0; done < bits; done += width) {
    const int shift = low + done;
    const Count digits = Count{1} << std::min(width, bits - done);
    const auto mask = static_cast<Record>(digits - 1);
    auto count = [&](Count block) {
      Offset* mine = counts + block * digits;
      std::fill(mine, mine + digits, Offset{0});
      for (Count i = blocks.begin(block), end = blocks.end(block); i < end; ++i) ++mine[(records[i] >> shift) & mask];
    };
    parallel_for(blocks.count, count);
    Offset sum = 0, largest = 0;
    for (Count digit = 0; digit < digits; ++digit) {
      const Offset before = sum;
      for (Count block = 0; block < blocks.count; ++block) {
        const Offset here = counts[block * digits + digit];
        counts[block * digits + digit] = sum;
        sum += here;
      }
      largest = std::max<Offset>(largest, sum - before);
    }
    if (static_cast<Count>(largest) == blocks.length) continue;  // All have the same digit.
    auto scatter = [&](Count block) {
      Offset* mine = counts + block * digits;
      for (Count i = blocks.begin(block), end = blocks.end(block); i < end; ++i) {
        const Record record = records[i];
        other[mine[(record >> shift) & mask]++] = record;
      }
    };
    parallel_for(blocks.count, scatter);
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
