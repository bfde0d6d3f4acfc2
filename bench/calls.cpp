// What calls cost that nobody records, in a form that builds before recordings have, too (bench/two_builds.py starts
// two of them by turns): a hit of a small traced function, an eager op, and a training step of the MLP at batch 32.
// Prints a line for each: its name, the least and the median nanoseconds of a call.
#include <cstdio>
#include <vector>

#include "bench/bench.h"
#include "bench/mlp_stet.h"

namespace {

constexpr double turn_ns = 0.25e9, batch_ns = 200e3;

template <class Body>
void time(const char* name, const Body& body) {
  const int calls = bench::calls_for(body, batch_ns);
  std::vector<double> times;
  for (const double begin = bench::now_ns(); bench::now_ns() - begin < turn_ns;)
    times.push_back(bench::best_time(body, calls, 1));
  std::printf("%s %.2f %.2f\n", name, bench::quantile(times, 0), bench::median(times));
}

}  // namespace

int main() {
  stet::set_thread_count(2);
  stet::Function hit = stet::function("hit(x)", [](stet::Tensor x) { return x + 1; });
  const stet::Tensor x = stet::ones({4}), y = stet::ones({4});
  time("hit", [&] { hit(x); });
  time("eager", [&] { stet::Tensor sum = x + y; });
  bench::mlp::StetSide side;
  const auto batch = side.prepare(bench::mlp::make_batch(32, 0));
  for (int step = 0; step < 10; ++step) side.step(batch);
  time("step", [&] { side.step(batch); });
}
