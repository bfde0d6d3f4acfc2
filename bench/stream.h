// What the machine's memory gives to the simplest loops: arrays that no cache holds, on two threads.
#pragma once
#include <emmintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace bench {

inline constexpr int stream_threads = 2;
inline constexpr std::int64_t stream_elements = std::int64_t{1} << 25;  // 128 MiB of f32: 4 times the last-level cache

/// Memory as stet's allocator gets it: with huge pages.
inline float* huge_array(std::int64_t count) {
  constexpr std::size_t huge_page = 2 << 20;
  std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  void* memory = std::aligned_alloc(huge_page, (bytes + huge_page - 1) / huge_page * huge_page);
  if (!memory) std::abort();
  madvise(memory, bytes, MADV_HUGEPAGE);
  auto* values = static_cast<float*>(memory);
  std::fill(values, values + count, 1.f);
  return values;
}

/// Runs body(begin, end) over [0, count) on two threads, in pieces taken in order by whoever is free: a neighbour that
/// slows one core down then costs the peer as little as it costs us. One piece a thread is STREAM's own way.
template <class Body>
void on_threads(std::int64_t count, std::int64_t pieces, const Body& body) {
  std::atomic<std::int64_t> next{0};
  auto work = [&] {
    for (std::int64_t piece; (piece = next.fetch_add(1)) < pieces;)
      body(count / pieces * piece, count / pieces * (piece + 1));
  };
  std::thread other(work);
  work();
  other.join();
}

/// STREAM's copy.
class StreamCopy {
 public:
  static constexpr double bytes = 2.0 * sizeof(float) * stream_elements;  // read and written
  StreamCopy() = default;
  StreamCopy(const StreamCopy&) = delete;
  StreamCopy& operator=(const StreamCopy&) = delete;
  ~StreamCopy() {
    std::free(from_);
    std::free(to_);
  }
  void through_cache() const {
    on_threads(stream_elements, 64, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to_ + begin, from_ + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
    });
  }
  void past_cache() const {
    on_threads(stream_elements, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += 16)
        for (int k = 0; k < 16; k += 4) _mm_stream_ps(to_ + i + k, _mm_load_ps(from_ + i + k));
      _mm_sfence();
    });
  }

 private:
  float *from_ = huge_array(stream_elements), *to_ = huge_array(stream_elements);
};

}  // namespace bench
