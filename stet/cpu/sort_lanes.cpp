// Batcher's merge exchange (Knuth, volume 3, 5.2.2 M): a sorting network for any length, on several lines at once.
#include <bit>

#include "stet/cpu/sort_groups.h"
#include "stet/cpu/sort_records.h"

namespace stet::cpu {
namespace {

using Lanes [[gnu::vector_size(8 * sort_lanes_count), gnu::may_alias]] = std::int64_t;

[[gnu::always_inline]] inline void exchange_range(Lanes* low, Lanes* high, Count count) {
  for (Count i = 0; i < count; ++i) {
    const Lanes a = low[i], b = high[i];
    low[i] = a < b ? a : b;
    high[i] = a < b ? b : a;
  }
}

[[gnu::always_inline]] inline void sort_network(std::int64_t* records, Count length) {
  auto* lanes = reinterpret_cast<Lanes*>(records);
  const Count top = static_cast<Count>(std::bit_ceil(static_cast<std::uint64_t>(length))) / 2;
  for (Count p = top; p > 0; p /= 2) {
    Count distance = p, remainder = 0;
    for (Count q = top;; q /= 2) {
      // All i below length - distance with (i & p) == remainder.
      for (Count i = remainder; i < length - distance; i += 2 * p)
        exchange_range(lanes + i, lanes + i + distance, std::min(p, length - distance - i));
      if (q == p) break;
      distance = q - p;
      remainder = p;
    }
  }
}

void sort_plain(std::int64_t* records, Count length) { sort_network(records, length); }
STET_AVX2 void sort_avx2(std::int64_t* records, Count length) { sort_network(records, length); }
STET_AVX512 void sort_avx512(std::int64_t* records, Count length) { sort_network(records, length); }

}  // namespace

VectorLevel vector_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return VectorLevel::avx512;
  if (__builtin_cpu_supports("avx2")) return VectorLevel::avx2;
#endif
  return VectorLevel::plain;
}

void sort_lanes(std::int64_t* records, Count length) {
  static const VectorLevel level = vector_level();
  if (length < 2) return;
  if (level == VectorLevel::avx512)
    sort_avx512(records, length);
  else if (level == VectorLevel::avx2)
    sort_avx2(records, length);
  else
    sort_plain(records, length);
}

}  // namespace stet::cpu
