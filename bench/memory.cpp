// Operations that only move memory, against what the machine's memory gives to the simplest loops: a large elementwise
// add against STREAM's triad, and a sum of rows against a read-only stream. Both sides use two threads, count the same
// compulsory bytes (what a perfect cache would move: each operand once, each result once) and read the same arrays.
#include <immintrin.h>

#include <atomic>
#include <cstdint>

#include "bench/bench.h"
#include "bench/stream.h"
#include "stet/stet.h"

namespace {

using bench::huge_array, bench::on_threads;
constexpr int threads = bench::stream_threads;
constexpr std::int64_t elements = bench::stream_elements;
constexpr std::int64_t rows = 16384, columns = 4096;  // 256 MiB

#define STET_AVX512 __attribute__((target("avx512f")))
#define STET_AVX2 __attribute__((target("avx2,fma")))

// Loops over [begin, end), which are multiples of 128 elements.

STET_AVX512 void triad_512(float* to, const float* b, const float* c, std::int64_t begin, std::int64_t end) {
  __m512 factor = _mm512_set1_ps(3);
  for (std::int64_t i = begin; i < end; i += 64)
#pragma GCC unroll 4
    for (int k = 0; k < 64; k += 16)
      _mm512_storeu_ps(to + i + k, _mm512_fmadd_ps(factor, _mm512_loadu_ps(c + i + k), _mm512_loadu_ps(b + i + k)));
}
STET_AVX512 void triad_512_nontemporal(float* to, const float* b, const float* c, std::int64_t begin,
                                       std::int64_t end) {
  __m512 factor = _mm512_set1_ps(3);
  for (std::int64_t i = begin; i < end; i += 64)
#pragma GCC unroll 4
    for (int k = 0; k < 64; k += 16)
      _mm512_stream_ps(to + i + k, _mm512_fmadd_ps(factor, _mm512_loadu_ps(c + i + k), _mm512_loadu_ps(b + i + k)));
  _mm_sfence();
}
STET_AVX2 void triad_256(float* to, const float* b, const float* c, std::int64_t begin, std::int64_t end) {
  __m256 factor = _mm256_set1_ps(3);
  for (std::int64_t i = begin; i < end; i += 32)
#pragma GCC unroll 4
    for (int k = 0; k < 32; k += 8)
      _mm256_storeu_ps(to + i + k, _mm256_fmadd_ps(factor, _mm256_loadu_ps(c + i + k), _mm256_loadu_ps(b + i + k)));
}
STET_AVX2 void triad_256_nontemporal(float* to, const float* b, const float* c, std::int64_t begin, std::int64_t end) {
  __m256 factor = _mm256_set1_ps(3);
  for (std::int64_t i = begin; i < end; i += 32)
#pragma GCC unroll 4
    for (int k = 0; k < 32; k += 8)
      _mm256_stream_ps(to + i + k, _mm256_fmadd_ps(factor, _mm256_loadu_ps(c + i + k), _mm256_loadu_ps(b + i + k)));
  _mm_sfence();
}

// Unrolled by hand or pragma: at -O2 gcc would keep the sums in memory.

STET_AVX512 float read_512(const float* from, std::int64_t begin, std::int64_t end) {
  __m512 sums[8];
#pragma GCC unroll 8
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t i = begin; i < end; i += 128)
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) sums[k] = _mm512_add_ps(sums[k], _mm512_loadu_ps(from + i + 16 * k));
  __m512 all = _mm512_setzero_ps();
#pragma GCC unroll 8
  for (__m512 sum : sums) all = _mm512_add_ps(all, sum);
  float lanes[16], total = 0;  // not _mm512_reduce_add_ps: gcc 12 warns inside it
  _mm512_storeu_ps(lanes, all);
  for (float lane : lanes) total += lane;
  return total;
}
STET_AVX2 float read_256(const float* from, std::int64_t begin, std::int64_t end) {
  __m256 sums[8];
#pragma GCC unroll 8
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (std::int64_t i = begin; i < end; i += 64)
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) sums[k] = _mm256_add_ps(sums[k], _mm256_loadu_ps(from + i + 8 * k));
  __m256 all = _mm256_setzero_ps();
#pragma GCC unroll 8
  for (__m256 sum : sums) all = _mm256_add_ps(all, sum);
  float lanes[8], total = 0;
  _mm256_storeu_ps(lanes, all);
  for (float lane : lanes) total += lane;
  return total;
}

std::atomic<float> sink;

void large_add(bool wide) {
  stet::Tensor a = stet::full(stet::Shape{elements}, 1), b = stet::full(stet::Shape{elements}, 2);
  const float *from_a = a.data<float>(), *from_b = b.data<float>();
  float* to = huge_array(elements);
  std::vector<bench::Turn> turns;
  turns.push_back([&] { return bench::best_time([&] { stet::Tensor sum = a + b; }, 1, 2); });
  for (auto loop : {wide ? triad_512 : triad_256, wide ? triad_512_nontemporal : triad_256_nontemporal})
    for (std::int64_t pieces : {std::int64_t{threads}, std::int64_t{64}})
      turns.push_back([=] {
        return bench::best_time(
            [&] {
              on_threads(elements, pieces,
                         [&](std::int64_t begin, std::int64_t end) { loop(to, from_a, from_b, begin, end); });
            },
            1, 2);
      });
  auto times = bench::interleave(turns, 60);
  bench::compare_speeds("add of 2^25 f32, against the best triad", times[0], bench::best_of(times, 1),
                        3.0 * sizeof(float) * elements, "GB/s", 0.80);
  std::free(to);
}

void row_sums(bool wide) {
  stet::Tensor x = stet::full(stet::Shape{rows, columns}, 1);
  const float* from = x.data<float>();
  std::vector<bench::Turn> turns;
  turns.push_back([&] { return bench::best_time([&] { stet::Tensor sums = stet::sum(x, {-1}); }, 1, 2); });
  auto loop = wide ? read_512 : read_256;
  for (std::int64_t pieces : {std::int64_t{threads}, std::int64_t{64}})
    turns.push_back([=] {
      return bench::best_time(
          [&] {
            on_threads(rows * columns, pieces, [&](std::int64_t begin, std::int64_t end) {
              sink.store(loop(from, begin, end), std::memory_order_relaxed);
            });
          },
          1, 2);
    });
  auto times = bench::interleave(turns, 90);
  bench::compare_speeds("sum of 16384 rows of 4096 f32, against reading", times[0], bench::best_of(times, 1),
                        sizeof(float) * static_cast<double>(rows * columns), "GB/s", 0.85);
}

}  // namespace

int main() {
  bool wide = __builtin_cpu_supports("avx512f");
  stet::set_thread_count(threads);
  bench::print_head();
  large_add(wide);
  row_sums(wide);
}
