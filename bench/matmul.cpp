// Eager matrix products, dispatch and the result's memory included, against oneDNN's bare dnnl_sgemm into memory that
// is already there.
#include <dnnl.h>
#include <omp.h>

#include <cstdint>
#include <random>

#include "bench/bench.h"
#include "stet/stet.h"

namespace {

std::vector<float> random_values(std::int64_t count) {
  std::minstd_rand random(1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random() % 1000) * 1e-3f - 0.5f;
  return values;
}

struct Product {
  std::int64_t m, n, k;
  std::vector<float> a = random_values(m * k), b = random_values(k * n), c = random_values(m * n);
  stet::Tensor left = stet::tensor(a, stet::Shape{m, k}), right = stet::tensor(b, stet::Shape{k, n});

  void ours() const { stet::Tensor product = stet::matmul(left, right); }
  void theirs() { dnnl_sgemm('N', 'N', m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n); }
};

void set_threads(int count) {
  stet::set_thread_count(count);
  omp_set_num_threads(count);
}

void large(int threads) {
  Product product{512, 512, 512};
  set_threads(threads);
  auto times = bench::interleave({[&] { return bench::best_time([&] { product.ours(); }, 1, 8); },
                                  [&] { return bench::best_time([&] { product.theirs(); }, 1, 8); }},
                                 120, 25);
  bench::compare_speeds(
      threads == 1 ? "matmul 512^3, 1 thread, against dnnl_sgemm" : "matmul 512^3, 2 threads, against dnnl_sgemm",
      times[0], times[1], 2.0 * 512 * 512 * 512, "GF/s", 0.95);
}

void small() {
  Product product{8, 64, 64};
  // The library's best time: with one thread it does not ask OpenMP for a team, so both settings take turns.
  auto turn = [&](int threads, auto body) {
    return [=] {
      set_threads(threads);
      body();
      return bench::best_time(body, 64, 8);
    };
  };
  auto ours = [&] { product.ours(); };
  auto theirs = [&] { product.theirs(); };
  auto times = bench::interleave({turn(2, ours), turn(1, theirs), turn(2, theirs)}, 120, 1);
  bench::compare_excess("matmul 8x64x64, against dnnl_sgemm's best", times[0], bench::best_of(times, 1), 300);
}

}  // namespace

int main() {
  bench::print_head();
  large(2);
  large(1);
  small();
}
