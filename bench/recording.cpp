// What a Profile costs while it lives: a hit of a small function, and a training step of the MLP at batch 32; each
// recorded (stet) against the same not recorded (peer).
#include <memory>

#include "bench/bench.h"
#include "bench/mlp_stet.h"

namespace {

/// The same calls, recorded: a Profile of its own for every turn, of which beginning and end are not timed.
template <class Body>
bench::Turn recorded(const Body& body, int calls) {
  return [=] {
    stet::Profile profile;
    body();  // takes its room
    return bench::best_time(body, calls, 5);
  };
}
template <class Body>
void compare(const char* name, const Body& body, double unit_ns, const char* unit, double goal) {
  const int calls = bench::calls_for(body, 200e3);
  const auto times = bench::interleave({recorded(body, calls), [=] { return bench::best_time(body, calls, 5); }}, 60);
  bench::compare_times(name, times[0], times[1], unit_ns, unit, goal);
}

}  // namespace

int main() {
  bench::print_head();
  stet::set_thread_count(2);
  stet::Function hit = stet::function("hit(x)", [](stet::Tensor x) { return x + 1; });
  const stet::Tensor x = stet::ones({4});
  hit(x);
  compare(
      "hit of x + 1, recorded / not recorded", [&] { hit(x); }, 1, "ns", 0);
  bench::mlp::StetSide side;
  const auto batch = side.prepare(bench::mlp::make_batch(32, 0));
  for (int step = 0; step < 10; ++step) side.step(batch);
  compare(
      "MLP step, batch 32, recorded / not recorded", [&] { side.step(batch); }, 1e3, "us", 1.03);
}
