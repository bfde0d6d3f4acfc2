// What each side of the training-step benchmarks does as a process of its own. One process never holds two thread
// pools: the programs mlp_stet, mlp_libtorch and mlp_hand share this main, and mlp_step starts them in turns.
//
//   mlp_… time <batch>    prints the median and the least microseconds of a warm step
//   mlp_… loss            prints the losses of steps 1 and 100, on batches of 32
//   mlp_… first           prints the milliseconds of a process's first step, with a batch of 32
//   mlp_… sizes           prints the seconds of 28 steps with 27 batch sizes, and the number of traces
//
// A side has `prepare(batch)`, which puts a batch where its library wants it, `step(prepared)`, which trains on it and
// returns the loss as a float, and `traces()`.
#pragma once
#include <cstring>

#include "bench/bench.h"
#include "bench/mlp_data.h"

namespace bench::mlp {

template <class Side>
int time_steps(std::int64_t size) {
  constexpr double warm_ns = 0.2e9, measured_ns = 0.5e9, longest_ns = 2e9;  // longest: on a machine that is busy
  constexpr std::size_t fewest = 15;
  Side side;
  auto batch = side.prepare(make_batch(size, 0));
  for (double begin = now_ns(); now_ns() - begin < warm_ns;) side.step(batch);
  std::vector<double> times;
  for (double begin = now_ns(), last = begin;
       last - begin < measured_ns || (times.size() < fewest && last - begin < longest_ns);) {
    side.step(batch);
    double end = now_ns();
    times.push_back((end - last) * 1e-3);
    last = end;
  }
  std::printf("%.2f %.2f\n", median(times), quantile(times, 0));
  return 0;
}

template <class Side>
int print_losses() {
  Side side;
  float first = 0, last = 0;
  for (std::uint64_t number = 0; number < 100; ++number) {
    last = side.step(side.prepare(make_batch(32, number)));
    if (number == 0) first = last;
  }
  std::printf("%.7f %.7f\n", static_cast<double>(first), static_cast<double>(last));
  return 0;
}

template <class Side>
int time_first() {
  Side side;
  auto batch = side.prepare(make_batch(32, 0));
  double begin = now_ns();
  side.step(batch);
  std::printf("%.4f\n", (now_ns() - begin) * 1e-6);
  return 0;
}

template <class Side>
int time_sizes() {
  constexpr std::int64_t batch_sizes[] = {32, 64, 96, 128, 17,  33, 65, 100, 7,  1, 2, 3,  50,  60,
                                          70, 80, 90, 110, 120, 55, 44, 22,  11, 5, 9, 13, 127, 32};
  Side side;
  std::vector<decltype(side.prepare(Batch{}))> batches;
  for (std::int64_t size : batch_sizes) batches.push_back(side.prepare(make_batch(size, 0)));
  double begin = now_ns();
  for (auto& batch : batches) side.step(batch);
  std::printf("%.6f %d\n", (now_ns() - begin) * 1e-9, side.traces());
  return 0;
}

template <class Side>
int process_main(int count, char** arguments) {
  if (count == 3 && std::strcmp(arguments[1], "time") == 0) return time_steps<Side>(std::atoll(arguments[2]));
  if (count == 2 && std::strcmp(arguments[1], "loss") == 0) return print_losses<Side>();
  if (count == 2 && std::strcmp(arguments[1], "first") == 0) return time_first<Side>();
  if (count == 2 && std::strcmp(arguments[1], "sizes") == 0) return time_sizes<Side>();
  std::fprintf(stderr, "usage: %s time <batch> | loss | first | sizes\n", arguments[0]);
  return 2;
}

}  // namespace bench::mlp
