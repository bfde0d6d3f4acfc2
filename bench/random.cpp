// Random numbers beside LibTorch: new tensors of ten million, on two threads.
//
//   random [part of a measurement's name to select rows]
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <string>

#include "bench/bench.h"
#include "stet/stet.h"

namespace {

const char* selection = "";
constexpr std::int64_t count = 10'000'000;

void measure(const std::string& name, const std::function<void()>& ours, const std::function<void()>& theirs,
             double goal) {
  if (name.find(selection) == std::string::npos) return;
  ours();
  theirs();
  std::vector<bench::Turn> turns = {[&] { return bench::best_time(ours, 1, 3); },
                                    [&] { return bench::best_time(theirs, 1, 3); }};
  auto times = bench::interleave(turns, 12, 10, 2);
  bench::compare_times(name, times[0], times[1], 1e6, "ms", goal);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace stet;
  if (argc > 1) selection = argv[1];
  at::set_num_threads(2);
  measure(
      "normal f32 10^7", [] { random::normal({count}); }, [] { at::randn({count}); }, 1);
  measure(
      "normal f64 10^7", [] { random::normal({count}, {.dtype = f64}); }, [] { at::randn({count}, at::kDouble); }, 1);
  measure(
      "uniform f32 10^7", [] { random::uniform({count}); }, [] { at::rand({count}); }, 1);
  measure(
      "randint i64 10^7", [] { random::randint({count}, 0, 1000); }, [] { at::randint(1000, {count}, at::kLong); }, 1);
  const Tensor rates = full({count / 10}, 3);
  const at::Tensor their_rates = at::full({count / 10}, 3.f);
  measure(
      "gamma f32 10^6", [&] { random::gamma({count / 10}, rates); }, [&] { at::_standard_gamma(their_rates); }, 1);
  measure(
      "poisson f32 10^6", [&] { random::poisson({count / 10}, rates, {.dtype = f32}); },
      [&] { at::poisson(their_rates); }, 1);
  measure(
      "bernoulli f32 10^7", [] { random::bernoulli({count}, 0.3, {.dtype = f32}); },
      [] { at::empty({count}).bernoulli_(0.3); }, 1);
  measure(
      "permutation 10^6", [] { random::permutation(count / 10); }, [] { at::randperm(count / 10); }, 1);
}
