// Cholesky and solve, one large matrix and many small ones, beside LibTorch on the same number of threads.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdint>
#include <string>

#include "bench/bench.h"
#include "stet/stet.h"

namespace {

/// The same values on both sides: positive definite, and regular.
struct Matrices {
  stet::Tensor ours;
  at::Tensor theirs;
};

Matrices definite(std::int64_t count, std::int64_t n, bool wide) {
  stet::DType dtype = wide ? stet::f64 : stet::f32;
  stet::Tensor b = stet::random::stateless_normal({count, n, n}, {1, 2}, {.dtype = stet::f64});
  stet::Tensor x =
      stet::matmul(b, b, {.transpose_b = true}) + double(n) * stet::one_hot(stet::arange(n), n, {.dtype = stet::f64});
  Matrices out{stet::cast(count == 1 ? stet::reshape(x, {n, n}) : x, dtype), {}};
  auto sizes = count == 1 ? std::vector<std::int64_t>{n, n} : std::vector<std::int64_t>{count, n, n};
  out.theirs = at::from_blob(
                   const_cast<void*>(static_cast<const void*>(wide ? static_cast<const void*>(out.ours.data<double>())
                                                                   : static_cast<const void*>(out.ours.data<float>()))),
                   sizes, wide ? at::kDouble : at::kFloat)
                   .clone();
  return out;
}

void compare(const std::string& name, const auto& ours, const auto& theirs) {
  int our_calls = bench::calls_for(ours), their_calls = bench::calls_for(theirs);
  auto times = bench::interleave(
      {[&] { return bench::best_time(ours, our_calls, 8); }, [&] { return bench::best_time(theirs, their_calls, 8); }},
      60, 25);
  bench::compare_times(name, times[0], times[1], 1e3, "us", 1.0);
}

void run(std::int64_t count, std::int64_t n, bool wide) {
  Matrices x = definite(count, n, wide);
  std::string what = (count > 1 ? std::to_string(count) + " of " : std::string()) + std::to_string(n) + "x" +
                     std::to_string(n) + (wide ? ", f64" : ", f32");
  compare(
      "cholesky " + what, [&] { stet::linalg::cholesky(x.ours); }, [&] { at::linalg_cholesky(x.theirs); });
  stet::Tensor b = stet::sum(x.ours, -1, {.keepdims = true});
  at::Tensor c = x.theirs.sum(-1, true);
  compare(
      "solve " + what, [&] { stet::linalg::solve(x.ours, b); }, [&] { at::linalg_solve(x.theirs, c); });
}

}  // namespace

int main() {
  bench::print_head();
  at::set_num_threads(2);
  stet::set_thread_count(2);
  for (bool wide : {false, true}) {
    run(1, 512, wide);
    run(1000, 8, wide);
  }
}
