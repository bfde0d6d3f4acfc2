// How the work of generated code is cut for threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <mutex>

#include "stet/runtime/kernel_abi.h"

namespace stet::cpu {

/// How [0, total) is cut: depends on sizes only.
struct Chunking {
  std::int64_t total = 0, size = 0, count = 0;
  static Chunking of(std::int64_t total, double nanoseconds_each, std::int64_t multiple) {
    constexpr double worth_a_chunk = 3000;
    double all = static_cast<double>(total) * nanoseconds_each;
    auto pieces = static_cast<std::int64_t>(std::clamp(all / worth_a_chunk, 1.0, 64.0));
    std::int64_t size = (total + pieces - 1) / pieces;
    size = std::max<std::int64_t>((size + multiple - 1) / multiple * multiple, 1);
    return {total, size, total == 0 ? 0 : (total + size - 1) / size};
  }
};

/// Collects what chunks on several threads report. The failure of the lowest chunk counts, so that the message does not
/// depend on timing.
struct FirstFailure {
  std::mutex guard;
  std::int64_t chunk = INT64_MAX;
  KernelStatus status;

  bool any() const { return chunk != INT64_MAX; }
  void run(std::int64_t number, KernelFunction function, void* const* buffers, const std::int64_t* numbers,
           std::int64_t begin, std::int64_t end) {
    KernelStatus mine;
    if (function(buffers, numbers, begin, end, &mine) == 0) return;
    std::lock_guard lock(guard);
    if (number >= chunk) return;
    chunk = number;
    status = mine;
  }
};

}  // namespace stet::cpu
