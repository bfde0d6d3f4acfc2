// Ops of the table against LibTorch's, eagerly, as users call them: results in fresh memory on both sides, two threads
// each. Those that only move memory also against a copy of the same bytes.
//
//   ops [part of a row's name]
#include <malloc.h>
#include <torch/torch.h>

#include <cstring>
#include <functional>

#include "bench/bench.h"
#include "stet/stet.h"

namespace {

using stet::Tensor;

constexpr int threads = 2;
const char* filter = nullptr;

void copy(const char* from, char* to, std::int64_t bytes) {
  std::int64_t piece = std::max<std::int64_t>(bytes / 64 / 4096 * 4096, 65536);
  auto chunk = [&](std::int64_t number) {
    std::int64_t begin = number * piece;
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(std::min(piece, bytes - begin)));
  };
  stet::parallel_for((bytes + piece - 1) / piece, chunk);
}

/// `moved`: bytes read and written, for those that only move memory.
void compare(const std::string& title, const std::function<void()>& ours, const std::function<void()>& theirs,
             std::int64_t moved = 0) {
  if (filter && title.find(filter) == std::string::npos) return;
  int our_calls = bench::calls_for(ours, 1e6), their_calls = bench::calls_for(theirs, 1e6);
  std::vector<char> from(static_cast<std::size_t>(moved / 2 + 64), 1), to(from.size());
  auto copied = [&] { copy(from.data(), to.data(), moved / 2); };
  int copy_calls = moved ? bench::calls_for(copied, 1e6) : 1;
  auto times = bench::interleave(
      {[&] { return bench::best_time(ours, our_calls, 3); }, [&] { return bench::best_time(theirs, their_calls, 3); },
       [&] { return moved ? bench::best_time(copied, copy_calls, 3) : 1.0; }},
      15, 6);
  bench::compare_times(title + ", LibTorch", times[0], times[1], 1e3, "us", 1.0);
  if (moved) bench::compare_speeds(title + ", copy", times[0], times[2], static_cast<double>(moved), "GB/s", 0.8);
}

Tensor same(const torch::Tensor& x) {
  torch::Tensor dense = x.contiguous();
  std::vector<std::int64_t> sizes(dense.sizes().begin(), dense.sizes().end());
  auto bytes = static_cast<std::size_t>(dense.nbytes());
  auto fill = [&]<class T>(T) {
    std::vector<T> values(bytes / sizeof(T));
    std::memcpy(values.data(), dense.data_ptr(), bytes);
    return stet::tensor(values, stet::Shape(sizes));
  };
  return dense.dtype() == torch::kInt64 ? fill(std::int64_t{}) : fill(float{});
}

void indices() {
  torch::Tensor table = torch::rand({50'000, 64}), at = torch::randint(0, 50'000, {100'000}),
                updates = torch::rand({100'000, 64});
  Tensor t = same(table), i = same(at), u = same(updates);
  compare(
      "gather 100000 rows of 64 f32", [&] { gather(t, i); }, [&] { table.index_select(0, at); }, 2 * 100'000 * 64 * 4);
  compare(
      "scatter_add 100000 rows of 64 f32", [&] { scatter_add(t, i, u); }, [&] { table.index_add(0, at, updates); });
  torch::Tensor line = torch::rand({1000}), ids = torch::randint(0, 1000, {1'000'000}), ones = torch::rand({1'000'000});
  Tensor l = same(line), s = same(ids), o = same(ones);
  compare(
      "scatter_add 10^6 f32 into 1000", [&] { scatter_add(l, s, o); }, [&] { line.index_add(0, ids, ones); });
  compare(
      "segment_sum 10^6 f32 into 1000", [&] { segment_sum(o, s, 1000); },
      [&] { torch::zeros({1000}).index_add(0, ids, ones); });
  torch::Tensor rows = torch::rand({100'000, 64}),
                of_rows = std::get<0>(torch::sort(torch::randint(0, 5000, {100'000})));
  Tensor r = same(rows), owners = same(of_rows);
  compare(
      "segment_sum 100000 rows of 64 into 5000", [&] { segment_sum(r, owners, 5000); },
      [&] {
        torch::zeros({5000, 64}).index_add(0, of_rows, rows);
      });
  torch::Tensor square = torch::rand({1000, 1000}), along = torch::randint(0, 1000, {1000, 1000});
  Tensor q = same(square), a = same(along);
  compare(
      "take_along_axis [1000,1000]", [&] { take_along_axis(q, a, 1); }, [&] { square.gather(1, along); });
  compare(
      "put_along_axis add [1000,1000]", [&] { put_along_axis(q, a, q, 1, {.combine = stet::ScatterCombine::add}); },
      [&] { square.scatter_add(1, along, square); });
}

void layouts() {
  torch::Tensor x = torch::rand({32, 128, 512});
  Tensor t = same(x);
  std::int64_t bytes = x.nbytes();
  compare(
      "pad [32,128,512] by 2",
      [&] {
        pad(t, {{0, 0}, {2, 2}, {2, 2}});
      },
      [&] {
        torch::constant_pad_nd(x, {2, 2, 2, 2});
      },
      2 * bytes);
  compare(
      "concat 2 x [32,128,512] axis 1",
      [&] {
        concat({t, t}, 1);
      },
      [&] {
        torch::cat({x, x}, 1);
      },
      4 * bytes);
  compare(
      "transposed copy [32,128,512]",
      [&] {
        transpose(t, {0, 2, 1}).contiguous();
      },
      [&] { x.transpose(1, 2).contiguous(); }, 2 * bytes);
  torch::Tensor m = torch::rand({2048, 2048});
  Tensor n = same(m);
  compare(
      "transposed copy [2048,2048]", [&] { transpose(n).contiguous(); }, [&] { m.t().contiguous(); }, 2 * m.nbytes());
  compare(
      "flip [32,128,512] last axis", [&] { reverse(t, -1); }, [&] { x.flip(-1); }, 2 * bytes);
}

void products() {
  torch::Tensor q = torch::rand({8, 8, 256, 64}), k = torch::rand({8, 8, 256, 64});
  Tensor a = same(q), b = same(k);
  compare(
      "einsum bhqd,bhkd->bhqk [8,8,256,64]",
      [&] {
        einsum("bhqd,bhkd->bhqk", {a, b});
      },
      [&] {
        torch::einsum("bhqd,bhkd->bhqk", {q, k});
      });
}

/// Gathering T slices and adding their gradients: the time per slice must not grow with T.
void slices() {
  for (int steps : {40, 160}) {
    torch::Tensor x = torch::rand({32, steps, 256}, torch::requires_grad());
    Tensor t = same(x.detach());
    stet::Function ours = stet::function("slices(x)", [steps](Tensor v) {
      stet::GradientTape tape;
      tape.watch(v);
      Tensor total = v[{stet::Range{}, 0}];
      for (int k = 1; k < steps; ++k) total = tanh(total) + v[{stet::Range{}, k}];
      return tape.gradient(sum(total), v);
    });
    ours(t);
    auto theirs = [&] {
      torch::Tensor total = x.select(1, 0);
      for (int k = 1; k < steps; ++k) total = torch::tanh(total) + x.select(1, k);
      return torch::autograd::grad({total.sum()}, {x});
    };
    compare(
        "gradient of " + std::to_string(steps) + " slices of [32,T,256]", [&] { ours(t); }, [&] { theirs(); });
  }
}

}  // namespace

int main(int argc, char** arguments) {
  if (__builtin_cpu_supports("avx512f")) bench::need_environment(arguments, "ATEN_CPU_CAPABILITY", "avx512");
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  at::set_num_threads(threads);
  stet::set_thread_count(threads);
  if (argc > 1) filter = arguments[1];
  bench::print_head();
  {
    torch::NoGradGuard no_gradient;
    indices();
    layouts();
    products();
  }
  slices();
}
