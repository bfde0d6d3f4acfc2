// One epoch of fit beside a loop in LibTorch, as processes in turns.
#include "bench/process.h"

int main() {
  constexpr int rounds = 6;
  bench::print_head();
  auto compare = [&](const char* model, const char* name) {
    auto side = [model](const char* program) {
      return [program, model] { return bench::run_in_quiet({program, model}, 1).numbers[0] * 1e9; };
    };
    auto times = bench::interleave({side("fit_stet"), side("fit_libtorch")}, rounds, 0, 2);
    bench::compare_quickness(name, times[0], times[1], 1e6, "ms", 0,
                             bench::quantile(times[1], 0) / bench::quantile(times[0], 0));
  };
  compare("mlp", "fit, an epoch of 60,000, MLP 784-128-10, x as fast");
  compare("cnn", "fit, an epoch of 60,000, CNN of two convolutions, x as fast");
}
