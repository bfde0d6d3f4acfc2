// The first training step of a process: the model is built and a batch of 32 is in memory, and the step is traced,
// compiled and run. With an empty object cache and with a filled one; LibTorch's first step beside, for scale.
#include "bench/process.h"

int main() {
  constexpr int processes = 10;
  bench::print_head();
  bench::Folder folder;
  bench::print_cold_and_warm("first MLP step", folder, {"mlp_stet", "first"}, processes, 1, 150, 50);
  std::vector<double> peer;
  for (int process = 0; process < processes; ++process)
    peer.push_back(bench::run_program({"mlp_libtorch", "first"}, 1).numbers[0]);
  bench::print(
      {"first MLP step, LibTorch", "", bench::format("%.2f ms", bench::median(peer)), "",
       bench::format("%.2f", bench::quantile(peer, 0.1)) + " to " + bench::format("%.2f", bench::quantile(peer, 0.9)),
       bench::format("%.2f ms", bench::quantile(peer, 0)), "", false});
}
