// A warm add of 4 f32 elements, eager and traced, against LibTorch: what a call costs when there is nothing to compute.
//
// The peer is tuned: no gradient bookkeeping, AVX-512 kernels, a malloc that keeps its memory, one thread.
#include <malloc.h>
#include <torch/torch.h>

#include "bench/bench.h"
#include "stet/stet.h"

int main(int, char** arguments) {
  if (__builtin_cpu_supports("avx512f")) bench::need_environment(arguments, "ATEN_CPU_CAPABILITY", "avx512");
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  torch::NoGradGuard no_gradient;
  at::set_num_threads(1);

  stet::Tensor a = stet::tensor({1.f, 2.f, 3.f, 4.f}), b = stet::tensor({5.f, 6.f, 7.f, 8.f});
  torch::Tensor c = torch::tensor({1.f, 2.f, 3.f, 4.f}), d = torch::tensor({5.f, 6.f, 7.f, 8.f});
  auto add = stet::function("add(x, y)", [](stet::Tensor x, stet::Tensor y) { return x + y; });
  auto theirs = [&] { torch::Tensor sum = c + d; };
  auto compare = [&](const char* name, const auto& ours, double goal) {
    int our_calls = bench::calls_for(ours), their_calls = bench::calls_for(theirs);
    auto times = bench::interleave({[&] { return bench::best_time(ours, our_calls, 5); },
                                    [&] { return bench::best_time(theirs, their_calls, 5); }},
                                   150);
    bench::compare_times(name, times[0], times[1], 1, "ns", goal);
  };
  bench::print_head();
  compare(
      "eager add of 4 f32, against LibTorch", [&] { stet::Tensor sum = a + b; }, 0.6);
  // 100 ns, where LibTorch takes 590.
  compare(
      "traced add of 4 f32, against LibTorch's eager", [&] { stet::Tensor sum = add(a, b); }, 0.17);
}
