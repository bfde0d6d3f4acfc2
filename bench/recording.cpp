// What a Profile costs while it lives: a hit of a small function, and a training step of the MLP at batch 32; each
// recorded (stet) against the same not recorded (peer). The step on one thread is in CPU time, which neighbours change
// little.
#include <time.h>

#include <memory>

#include "bench/bench.h"
#include "bench/mlp_stet.h"

namespace {

double cpu_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

/// The same turn, recorded: a Profile of its own, of which beginning and end are not timed.
template <class Body>
bench::Turn recorded(const Body& body, const bench::Turn& turn) {
  return [=] {
    stet::Profile profile;
    body();  // takes its room
    return turn();
  };
}
template <class Body>
void compare(const char* name, const Body& body, const bench::Turn& turn, double unit_ns, const char* unit,
             double goal) {
  const auto times = bench::interleave({recorded(body, turn), turn}, 60);
  bench::compare_times(name, times[0], times[1], unit_ns, unit, goal);
}
/// By the clock, the best of some tries.
template <class Body>
bench::Turn timed(const Body& body, int tries) {
  const int calls = bench::calls_for(body, 200e3);
  return [=] { return bench::best_time(body, calls, tries); };
}
/// In CPU time of this thread, the median of single calls.
template <class Body>
bench::Turn cpu_timed(const Body& body, int calls) {
  return [=] {
    std::vector<double> times;
    for (int call = 0; call < calls; ++call) {
      const double begin = cpu_ns();
      body();
      times.push_back(cpu_ns() - begin);
    }
    return bench::median(times);
  };
}

}  // namespace

int main() {
  bench::print_head();
  stet::set_thread_count(2);
  stet::Function hit = stet::function("hit(x)", [](stet::Tensor x) { return x + 1; });
  const stet::Tensor x = stet::ones({4});
  auto call = [&] { hit(x); };
  compare("hit of x + 1, recorded / not recorded", call, timed(call, 5), 1, "ns", 0);
  bench::mlp::StetSide side;
  const auto batch = side.prepare(bench::mlp::make_batch(32, 0));
  auto step = [&] { side.step(batch); };
  for (int warm = 0; warm < 10; ++warm) step();
  compare("MLP step, batch 32, recorded / not recorded", step, timed(step, 20), 1e3, "us", 1.03);
  stet::set_thread_count(1);
  compare("the same on one thread, CPU time", step, cpu_timed(step, 20), 1e3, "us", 1.03);
}
