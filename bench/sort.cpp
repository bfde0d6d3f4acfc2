// Sorting, the first of the sorted order and searching against LibTorch's, whose stable and unstable sorts both count.
//
//   sort [part of a row's name]
#include "bench/op_bench.h"

namespace {

using stet::Tensor;

torch::Tensor elements(torch::ScalarType type, at::IntArrayRef sizes) {
  if (type == torch::kInt64) return at::randint(-(std::int64_t{1} << 62), std::int64_t{1} << 62, sizes, at::kLong);
  return at::randn(sizes);
}

/// Values and positions, and values alone, which LibTorch does not offer.
void sorts(torch::ScalarType type, const std::string& shape, at::IntArrayRef sizes, int axis) {
  torch::Tensor x = elements(type, sizes);
  Tensor t = bench::same(x);
  std::string title = (type == torch::kInt64 ? "sort i64 " : "sort f32 ") + shape;
  std::vector<std::function<void()>> theirs{[&] { at::sort(x, c10::optional<bool>(true), axis, false); },
                                            [&] { at::sort(x, axis, false); }};
  bench::compare_ops(
      title, [&] { sort_with_positions(t, axis); }, theirs);
  bench::compare_ops(
      title + ", values", [&] { sort(t, axis); }, theirs);
}

void firsts(torch::ScalarType type, const std::string& shape, at::IntArrayRef sizes, int count) {
  torch::Tensor x = elements(type, sizes);
  Tensor t = bench::same(x);
  bench::compare_ops(
      "top_k " + std::to_string(count) + (type == torch::kInt64 ? " i64 " : " f32 ") + shape, [&] { top_k(t, count); },
      [&] { x.topk(count); });
}

void searches(torch::ScalarType type) {
  torch::Tensor line = std::get<0>(at::sort(elements(type, {100'000}))), wanted = elements(type, {1'000'000});
  Tensor l = bench::same(line), w = bench::same(wanted);
  bench::compare_ops(
      std::string("searchsorted ") + (type == torch::kInt64 ? "i64" : "f32") + " 10^6 in 10^5",
      [&] { searchsorted(l, w); }, [&] { at::searchsorted(line, wanted); });
}

}  // namespace

int main(int argc, char** arguments) {
  bench::begin_ops(argc, arguments);
  torch::NoGradGuard no_gradient;
  for (torch::ScalarType type : {torch::kFloat32, torch::kInt64}) {
    sorts(type, "[10^6]", {1'000'000}, 0);
    sorts(type, "[1000,1000]", {1000, 1000}, 1);
    sorts(type, "[100000,16]", {100'000, 16}, 1);
    sorts(type, "[64,1000,64] axis 1", {64, 1000, 64}, 1);
    firsts(type, "[1000,10000]", {1000, 10'000}, 10);
    firsts(type, "[10^7]", {10'000'000}, 100);
    searches(type);
  }
}
