// Running combinations against LibTorch's cumsum, cumprod, cummax and logcumsumexp, and against a copy of the same
// bytes.
//
//   scan [part of a row's name]
//
// The kernels as a program's step calls them: into memory that is there. The peer is tuned: no gradient bookkeeping,
// AVX-512 kernels, results into tensors that are there (cumsum_out). Two threads each.
#include "stet/cpu/scan.h"

#include <malloc.h>
#include <torch/torch.h>

#include <cstring>
#include <limits>

#include "bench/bench.h"
#include "stet/runtime/parallel.h"

namespace {

using namespace stet;
using namespace stet::cpu;

constexpr int threads = 2;

struct Combination {
  const char* name;
  Expr combine, identity;
};

Combination sum(DType d) { return {"cumsum", operand(0, d) + operand(1, d), constant(0, d)}; }
Combination product(DType d) { return {"cumprod", operand(0, d) * operand(1, d), constant(1, d)}; }
Combination maximum(DType d) {
  return {"cummax", scalar::maximum(operand(0, d), operand(1, d)),
          constant(-std::numeric_limits<double>::infinity(), d)};
}
Combination log_sum(DType d) {
  Expr x = operand(0, d), y = operand(1, d), larger = scalar::maximum(x, y), smaller = scalar::minimum(x, y);
  Expr usual = larger + scalar::log(1 + scalar::exp(smaller - larger));
  return {"logcumsumexp", scalar::select(scalar::equal(smaller, larger), larger + 0.6931471805599453, usual),
          constant(-std::numeric_limits<double>::infinity(), d)};
}

/// A copy of as many bytes as are read and written, on as many threads.
void copy(const char* from, char* to, std::int64_t bytes) {
  std::int64_t piece = std::max<std::int64_t>(bytes / 64 / 4096 * 4096, 65536);
  auto chunk = [&](std::int64_t number) {
    std::int64_t begin = number * piece;
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(std::min(piece, bytes - begin)));
  };
  parallel_for((bytes + piece - 1) / piece, chunk);
}

template <class Theirs>
void compare(const char* filter, const Combination& what, std::int64_t outer, std::int64_t length, std::int64_t inner,
             const Theirs& theirs, bool against_copy = true) {
  DType dtype = what.combine.dtype();
  std::string shape = "[" + std::to_string(outer) + ", " + std::to_string(length) + ", " + std::to_string(inner) + "]";
  std::string title = std::string(what.name) + " " + std::string(name(dtype)) + " " + shape;
  if (filter && title.find(filter) == std::string::npos) return;
  auto options = torch::dtype(dtype == i64 ? torch::kInt64 : torch::kFloat32);
  torch::Tensor x = torch::rand({outer, length, inner}).add_(0.5).to(options.dtype()), y = torch::empty_like(x);
  std::int64_t count = outer * length * inner, bytes = count * size_of(dtype);
  void* mine = std::aligned_alloc(64, static_cast<std::size_t>((bytes + 63) / 64 * 64));
  std::memset(mine, 0, static_cast<std::size_t>(bytes));
  ScanKernel kernel({.stored = dtype, .result = dtype, .combine = what.combine, .identity = what.identity});
  ScanArguments arguments{outer, length, inner, x.data_ptr(), mine, count, count};
  auto ours = [&] { kernel.run(arguments); };
  auto peer = [&] { theirs(y, x); };
  auto moved = [&] { copy(static_cast<const char*>(x.data_ptr()), static_cast<char*>(mine), bytes); };
  int our_calls = bench::calls_for(ours, 1e6), their_calls = bench::calls_for(peer, 1e6),
      copy_calls = bench::calls_for(moved, 1e6);
  auto times = bench::interleave(
      {[&] { return bench::best_time(ours, our_calls, 3); }, [&] { return bench::best_time(peer, their_calls, 3); },
       [&] { return bench::best_time(moved, copy_calls, 3); }},
      21, 10);
  bench::compare_times(title + ", LibTorch", times[0], times[1], 1e3, "us", 1.0);
  if (against_copy)
    bench::compare_speeds(title + ", copy", times[0], times[2], 2.0 * static_cast<double>(bytes), "GB/s", 0.8);
  std::free(mine);
}

}  // namespace

int main(int argc, char** arguments) {
  if (__builtin_cpu_supports("avx512f")) bench::need_environment(arguments, "ATEN_CPU_CAPABILITY", "avx512");
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  torch::NoGradGuard no_gradient;
  at::set_num_threads(threads);
  set_thread_count(threads);
  const char* filter = argc > 1 ? arguments[1] : nullptr;
  auto cumsum = [](torch::Tensor& y, const torch::Tensor& x) { torch::cumsum_out(y, x, 1); };
  bench::print_head();
  compare(filter, sum(f32), 1, 10'000'000, 1, cumsum);
  compare(filter, sum(f32), 1, 1'000'000, 1, cumsum);
  compare(filter, sum(f32), 1000, 1000, 1, cumsum);
  compare(filter, sum(f32), 1, 1000, 1000, cumsum);
  compare(filter, sum(f32), 64, 512, 64, cumsum);
  compare(filter, sum(f32), 1, 1'000'000, 2, cumsum, false);
  compare(filter, sum(f32), 1, 100'000, 16, cumsum, false);
  compare(filter, sum(f32), 100'000, 10, 1, cumsum, false);
  compare(filter, sum(i64), 1, 1'000'000, 1, cumsum);
  compare(filter, product(f32), 1, 1'000'000, 1,
          [](torch::Tensor& y, const torch::Tensor& x) { torch::cumprod_out(y, x, 1); });
  torch::Tensor positions;
  compare(filter, maximum(f32), 1, 1'000'000, 1, [&](torch::Tensor& y, const torch::Tensor& x) {
    if (!positions.defined() || positions.sizes() != x.sizes()) positions = torch::empty_like(x, torch::kInt64);
    torch::cummax_out(y, positions, x, 1);
  });
  auto logcumsumexp = [](torch::Tensor& y, const torch::Tensor& x) { torch::logcumsumexp_out(y, x, 1); };
  compare(filter, log_sum(f32), 1, 1'000'000, 1, logcumsumexp, false);
  compare(filter, log_sum(f32), 1, 1000, 1000, logcumsumexp, false);
  compare(filter, log_sum(f32), 1, 100'000, 2, logcumsumexp, false);
  compare(filter, log_sum(f32), 10'000, 10, 1, logcumsumexp, false);
  compare(filter, log_sum(f32), 1'000, 40, 1, logcumsumexp, false);
}
