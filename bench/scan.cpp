// Running sums, products, maxima and logarithms of sums against LibTorch's, and against a copy of the same bytes.
//
//   scan [part of a row's name]
#include "bench/op_bench.h"

namespace {

using stet::Tensor;

/// Along the middle axis.
void compare(const std::string& name, std::vector<std::int64_t> sizes, Tensor (*ours)(stet::In, int, stet::ScanOptions),
             const std::function<void(const torch::Tensor&)>& theirs, bool against_copy,
             torch::ScalarType type = torch::kFloat32) {
  torch::Tensor x = torch::rand(sizes).add_(0.5).to(type);
  Tensor t = bench::same(x);
  std::string shape;
  for (std::int64_t size : sizes) shape += (shape.empty() ? "[" : ",") + std::to_string(size);
  bench::compare_ops(
      name + (type == torch::kInt64 ? " i64 " : " f32 ") + shape + "]", [&] { ours(t, 1, {}); }, [&] { theirs(x); },
      against_copy ? 2 * static_cast<std::int64_t>(x.nbytes()) : 0);
}

}  // namespace

int main(int argc, char** arguments) {
  bench::begin_ops(argc, arguments);
  torch::NoGradGuard no_gradient;
  auto sums = [](const torch::Tensor& x) { x.cumsum(1); };
  compare("cumsum", {1, 10'000'000, 1}, stet::cumsum, sums, true);
  compare("cumsum", {1, 1'000'000, 1}, stet::cumsum, sums, true);
  compare("cumsum", {1000, 1000, 1}, stet::cumsum, sums, true);
  compare("cumsum", {1, 1000, 1000}, stet::cumsum, sums, true);
  compare("cumsum", {64, 512, 64}, stet::cumsum, sums, true);
  compare("cumsum", {1, 1'000'000, 2}, stet::cumsum, sums, false);
  compare("cumsum", {1, 100'000, 16}, stet::cumsum, sums, false);
  compare("cumsum", {100'000, 10, 1}, stet::cumsum, sums, false);
  compare("cumsum", {1, 1'000'000, 1}, stet::cumsum, sums, true, torch::kInt64);
  compare(
      "cumprod", {1, 1'000'000, 1}, stet::cumprod, [](const torch::Tensor& x) { x.cumprod(1); }, true);
  compare(
      "cummax", {1, 1'000'000, 1}, stet::cummax, [](const torch::Tensor& x) { x.cummax(1); }, true);
  auto logs = [](const torch::Tensor& x) { x.logcumsumexp(1); };
  compare("logcumsumexp", {1, 1'000'000, 1}, stet::logcumsumexp, logs, false);
  compare("logcumsumexp", {1, 1000, 1000}, stet::logcumsumexp, logs, false);
  compare("logcumsumexp", {1, 100'000, 2}, stet::logcumsumexp, logs, false);
  compare("logcumsumexp", {10'000, 10, 1}, stet::logcumsumexp, logs, false);
}
