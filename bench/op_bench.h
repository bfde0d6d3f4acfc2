// One op against LibTorch's, eagerly, as users call them: results in fresh memory on both sides, two threads each. Ops
// that only move memory also against STREAM's copy.
#pragma once
#include <malloc.h>
#include <torch/torch.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/stream.h"
#include "stet/stet.h"

namespace bench {

inline constexpr int op_threads = 2;
inline const char* op_filter = nullptr;  // a part of the names of the rows that are wanted

/// The head of the table, and both libraries as quick as they get: no gradient bookkeeping is the caller's.
inline void begin_ops(int count, char** arguments) {
  if (__builtin_cpu_supports("avx512f")) need_environment(arguments, "ATEN_CPU_CAPABILITY", "avx512");
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  at::set_num_threads(op_threads);
  stet::set_thread_count(op_threads);
  if (count > 1) op_filter = arguments[1];
  print_head();
}

/// The same elements.
inline stet::Tensor same(const torch::Tensor& x) {
  torch::Tensor dense = x.contiguous();
  std::vector<std::int64_t> sizes(dense.sizes().begin(), dense.sizes().end());
  auto bytes = static_cast<std::size_t>(dense.nbytes());
  auto fill = [&]<class T>(T) {
    std::vector<T> values(bytes / sizeof(T));
    std::memcpy(values.data(), dense.data_ptr(), bytes);
    return stet::tensor(values, stet::Shape(sizes));
  };
  return dense.dtype() == torch::kInt64 ? fill(std::int64_t{}) : fill(float{});
}

/// `moved`: bytes read and written, for ops that only move memory. `theirs`: the quickest of several ways counts.
inline void compare_ops(const std::string& title, const std::function<void()>& ours,
                        const std::vector<std::function<void()>>& theirs, std::int64_t moved = 0) {
  if (op_filter && title.find(op_filter) == std::string::npos) return;
  auto turn = [](const std::function<void()>& body) {
    // Cores that have rested are slow for some milliseconds: as many tries as leave that behind.
    return [&body, calls = calls_for(body, 1e6)] { return best_time(body, calls, 10); };
  };
  std::vector<Turn> turns{turn(ours)};
  for (const auto& way : theirs) turns.push_back(turn(way));
  if (moved) {
    static const StreamCopy copy;
    turns.push_back([] { return best_time([] { copy.through_cache(); }, 1, 2); });
    turns.push_back([] { return best_time([] { copy.past_cache(); }, 1, 2); });
  }
  auto times = interleave(turns, 15, 6);
  std::vector<double> copies;
  if (moved) {
    copies = best_of(times, times.size() - 2);
    for (double& time : copies) time *= static_cast<double>(moved) / StreamCopy::bytes;
    times.resize(times.size() - 2);
  }
  compare_times(title + ", LibTorch", times[0], best_of(times, 1), 1e3, "us", 1.0);
  if (moved) compare_speeds(title + ", STREAM copy", times[0], copies, static_cast<double>(moved), "GB/s", 0.8);
}
inline void compare_ops(const std::string& title, const std::function<void()>& ours,
                        const std::function<void()>& theirs, std::int64_t moved = 0) {
  compare_ops(title, ours, std::vector{theirs}, moved);
}

}  // namespace bench
