// Gathers, scatters, layouts, products and gradients of slices against LibTorch's.
//
//   ops [part of a row's name]
#include "bench/op_bench.h"

namespace {

using bench::same;
using stet::Tensor;

void indices() {
  torch::Tensor table = torch::rand({50'000, 64}), at = torch::randint(0, 50'000, {100'000}),
                updates = torch::rand({100'000, 64});
  Tensor t = same(table), i = same(at), u = same(updates);
  bench::compare_ops(
      "gather 100000 rows of 64 f32", [&] { gather(t, i); }, [&] { table.index_select(0, at); }, 2 * 100'000 * 64 * 4);
  bench::compare_ops(
      "scatter_add 100000 rows of 64 f32", [&] { scatter_add(t, i, u); }, [&] { table.index_add(0, at, updates); });
  torch::Tensor line = torch::rand({1000}), ids = torch::randint(0, 1000, {1'000'000}), ones = torch::rand({1'000'000});
  Tensor l = same(line), s = same(ids), o = same(ones);
  bench::compare_ops(
      "scatter_add 10^6 f32 into 1000", [&] { scatter_add(l, s, o); }, [&] { line.index_add(0, ids, ones); });
  bench::compare_ops(
      "segment_sum 10^6 f32 into 1000", [&] { segment_sum(o, s, 1000); },
      [&] { torch::zeros({1000}).index_add(0, ids, ones); });
  torch::Tensor rows = torch::rand({100'000, 64}),
                of_rows = std::get<0>(torch::sort(torch::randint(0, 5000, {100'000})));
  Tensor r = same(rows), owners = same(of_rows);
  bench::compare_ops(
      "segment_sum 100000 rows of 64 into 5000", [&] { segment_sum(r, owners, 5000); },
      [&] {
        torch::zeros({5000, 64}).index_add(0, of_rows, rows);
      });
  torch::Tensor square = torch::rand({1000, 1000}), along = torch::randint(0, 1000, {1000, 1000});
  Tensor q = same(square), a = same(along);
  bench::compare_ops(
      "take_along_axis [1000,1000]", [&] { take_along_axis(q, a, 1); }, [&] { square.gather(1, along); });
  bench::compare_ops(
      "put_along_axis add [1000,1000]", [&] { put_along_axis(q, a, q, 1, {.combine = stet::ScatterCombine::add}); },
      [&] { square.scatter_add(1, along, square); });
}

void layouts() {
  torch::Tensor x = torch::rand({32, 128, 512});
  Tensor t = same(x);
  std::int64_t bytes = x.nbytes();
  bench::compare_ops(
      "pad [32,128,512] by 2",
      [&] {
        pad(t, {{0, 0}, {2, 2}, {2, 2}});
      },
      [&] {
        torch::constant_pad_nd(x, {2, 2, 2, 2});
      },
      2 * bytes);
  bench::compare_ops(
      "concat 2 x [32,128,512] axis 1",
      [&] {
        stet::concat({t, t}, 1);
      },
      [&] {
        torch::cat({x, x}, 1);
      },
      4 * bytes);
  bench::compare_ops(
      "transposed copy [32,128,512]",
      [&] {
        transpose(t, {0, 2, 1}).contiguous();
      },
      [&] { x.transpose(1, 2).contiguous(); }, 2 * bytes);
  torch::Tensor m = torch::rand({2048, 2048});
  Tensor n = same(m);
  bench::compare_ops(
      "transposed copy [2048,2048]", [&] { transpose(n).contiguous(); }, [&] { m.t().contiguous(); }, 2 * m.nbytes());
  bench::compare_ops(
      "flip [32,128,512] last axis", [&] { reverse(t, -1); }, [&] { x.flip(-1); }, 2 * bytes);
}

void products() {
  torch::Tensor q = torch::rand({8, 8, 256, 64}), k = torch::rand({8, 8, 256, 64});
  Tensor a = same(q), b = same(k);
  bench::compare_ops(
      "einsum bhqd,bhkd->bhqk [8,8,256,64]",
      [&] {
        stet::einsum("bhqd,bhkd->bhqk", {a, b});
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
    bench::compare_ops(
        "gradient of " + std::to_string(steps) + " slices of [32,T,256]", [&] { ours(t); }, [&] { theirs(); });
  }
}

}  // namespace

int main(int argc, char** arguments) {
  bench::begin_ops(argc, arguments);
  {
    torch::NoGradGuard no_gradient;
    indices();
    layouts();
    products();
  }
  slices();
}
