// A warm call of a traced function that adds 4 f32 elements, against LibTorch's eager add: what a call costs when there
// is nothing to compute. The peer is tuned as in add_of_four.cpp.
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
  auto add = stet::function("add(x, y)", [](stet::Tensor x, stet::Tensor y) { return x + y; });
  torch::Tensor c = torch::tensor({1.f, 2.f, 3.f, 4.f}), d = torch::tensor({5.f, 6.f, 7.f, 8.f});
  auto ours = [&] { stet::Tensor sum = add(a, b); };
  auto theirs = [&] { torch::Tensor sum = c + d; };
  int our_calls = bench::calls_for(ours), their_calls = bench::calls_for(theirs);
  auto times = bench::interleave(
      {[&] { return bench::best_time(ours, our_calls, 5); }, [&] { return bench::best_time(theirs, their_calls, 5); }},
      150);
  bench::print_head();
  // 100 ns, where LibTorch takes 590.
  bench::compare_times("traced add of 4 f32, against LibTorch's eager", times[0], times[1], 1, "ns", 0.17);
}
