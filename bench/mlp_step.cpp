// The training step of a perceptron (see mlp_data.h): stet's traced one against LibTorch's and against one written by
// hand, with batches of 32, 128 and 1024. Each side is a process of its own, and processes take turns; a process warms
// up and gives the median time of a step.
#include "bench/mlp_data.h"
#include "bench/process.h"

namespace {

constexpr int rounds = 8;

/// One side's process: the median time of a step counts, and the least is kept for the column of minima.
struct Side {
  const char* program;
  std::int64_t batch;
  double least_ns = 1e300;

  double turn() {
    std::vector<double> us = bench::run_in_quiet({program, "time", std::to_string(batch)}, 2).numbers;
    least_ns = std::min(least_ns, us[1] * 1e3);
    return us[0] * 1e3;
  }
};

void compare_steps(std::int64_t batch, double quickness_goal, double time_goal) {
  Side stet{"mlp_stet", batch}, libtorch{"mlp_libtorch", batch}, hand{"mlp_hand", batch};
  auto times = bench::interleave(
      {[&] { return stet.turn(); }, [&] { return libtorch.turn(); }, [&] { return hand.turn(); }}, rounds, 0, 2);
  std::string name = "MLP step, batch " + std::to_string(batch);
  bench::compare_quickness(name + ", x as fast as LibTorch", times[0], times[1], 1e3, "us", quickness_goal,
                           libtorch.least_ns / stet.least_ns);
  bench::compare_times(name + ", time / hand-written's", times[0], times[2], 1e3, "us", time_goal,
                       stet.least_ns / hand.least_ns);
}

/// Whether both sides' losses agree to a percent at the first step and after 100 steps on the same batches.
bool compare_losses(const std::string& name, const char* ours, const char* theirs) {
  auto a = bench::run_program({ours, "loss"}, 2).numbers, b = bench::run_program({theirs, "loss"}, 2).numbers;
  bool good = std::abs(a[0] - b[0]) <= 1e-4 * b[0] && std::abs(a[1] - b[1]) <= 0.01 * b[1];
  bench::print({name, bench::format("%.6f", a[1]), bench::format("%.6f", b[1]), bench::format("%.4f", a[1] / b[1]), "",
                "", "1 % off", good});
  return good;
}

}  // namespace

int main() {
  bench::print_head();
  bench::run_program({"mlp_hand", "check"}, 0);
  bool good = compare_losses("MLP loss of step 100, against LibTorch", "mlp_stet", "mlp_libtorch");
  good = compare_losses("MLP loss of step 100, hand-written, LibTorch", "mlp_hand", "mlp_libtorch") && good;
  if (!good) {
    std::fprintf(stderr, "bench: the sides do not compute the same\n");
    return 1;
  }
  compare_steps(32, 1.4, 1.35);
  compare_steps(128, 0, 0);
  compare_steps(1024, 0, 0);
}
