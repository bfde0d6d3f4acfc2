// 28 training steps with 27 batch sizes in a fresh process with an empty object cache: what a changing size costs, as
// the last batch of an epoch has it. One trace serves all sizes. LibTorch, which compiles nothing, in turns with it.
#include "bench/process.h"

int main() {
  constexpr int rounds = 8;
  bench::print_head();
  bench::Folder folder;
  int caches = 0;
  double traces = 0;
  auto ours = [&] {
    bench::use_object_cache(folder.path() / std::to_string(caches++));
    bench::Output output = bench::run_program({"mlp_stet", "sizes"}, 2);
    traces = std::max(traces, output.numbers[1]);
    return output.numbers[0] * 1e9;
  };
  auto theirs = [] { return bench::run_program({"mlp_libtorch", "sizes"}, 2).numbers[0] * 1e9; };
  auto times = bench::interleave({ours, theirs}, rounds, 0, 2);
  bench::compare_times("28 MLP steps of 27 batch sizes, cold", times[0], times[1], 1e6, "ms", 0);
  bench::print({"traces of these", bench::format("%.0f", traces), "", "", "", "", "<= 1", traces <= 1});
}
