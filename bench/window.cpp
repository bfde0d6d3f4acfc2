// Convolutions and pools of the sizes that small image networks have, against LibTorch: forward, and backward to all
// operands. Two threads. LibTorch is given the layout it is quicker with, channels first or last.
//
//   window                        the parent: starts itself for each side and workload in turns and prints the table
//   window stet|libtorch <workload>     one side: prints the median and the least microseconds of a warm call
#include <torch/torch.h>

#include <cstring>

#include "bench/mlp_data.h"
#include "bench/process.h"
#include "stet/stet.h"

namespace {

using bench::mlp::uniform_values;

/// Images [batch, size, size, channels], a window [3, 3] with padding, or [2, 2] without, which is a pool.
struct Workload {
  const char *key, *name;
  std::int64_t size, channels, features, groups;
  bool pool;
  enum Part { forward, backward, both } part;
};
constexpr std::int64_t batch = 64;
constexpr Workload workloads[] = {
    {"first", "conv2d 64x28x28x1, 3x3, 32", 28, 1, 32, 1, false, Workload::forward},
    {"first_back", "  its gradients", 28, 1, 32, 1, false, Workload::backward},
    {"second", "conv2d 64x14x14x32, 3x3, 64", 14, 32, 64, 1, false, Workload::forward},
    {"second_back", "  its gradients", 14, 32, 64, 1, false, Workload::backward},
    {"depthwise", "depthwise_conv2d 64x14x14x64, 3x3", 14, 64, 64, 64, false, Workload::forward},
    {"depthwise_back", "  its gradients", 14, 64, 64, 64, false, Workload::backward},
    {"pool", "max_pool 64x28x28x32, 2x2", 28, 32, 32, 1, true, Workload::forward},
    {"pool_back", "  its gradient", 28, 32, 32, 1, true, Workload::backward},
    // LibTorch's forward notes where the largest are; ours leaves it to the gradient.
    {"pool_both", "  both, recorded by a tape", 28, 32, 32, 1, true, Workload::both},
};

using bench::time_warm_calls, bench::WarmCall;

WarmCall run_stet(const Workload& w) {
  using stet::Tensor;
  auto values = [](std::int64_t count, int seed) {
    return uniform_values(count, -1, 1, static_cast<std::uint64_t>(seed));
  };
  std::int64_t filter_features = w.groups > 1 ? 1 : w.features;
  Tensor x =
      stet::tensor(values(batch * w.size * w.size * w.channels, 1), stet::Shape{batch, w.size, w.size, w.channels});
  Tensor filter =
      stet::tensor(values(9 * w.channels * filter_features, 2), stet::Shape{3, 3, w.channels, filter_features});
  auto apply = [w](const Tensor& image, const Tensor& weights) {
    if (w.pool) return max_pool(image, {2, 2});
    return w.groups > 1 ? depthwise_conv2d(image, weights, {.padding = "same"})
                        : conv2d(image, weights, {.padding = "same"});
  };
  if (w.part == Workload::forward) return time_warm_calls([&] { apply(x, filter); });
  if (w.part == Workload::both)
    return time_warm_calls([&] {
      stet::GradientTape tape;
      tape.watch(x);
      tape.gradient(apply(x, filter), x);
    });
  // Of the sum: the gradient that comes in is all ones, made anew by every call, on both sides.
  stet::GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(filter);
  Tensor y = apply(x, filter);
  if (w.pool) return time_warm_calls([&] { tape.gradient(y, x); });
  return time_warm_calls([&] { tape.gradient(y, {x, filter}); });
}

WarmCall run_libtorch(const Workload& w, at::MemoryFormat layout) {
  torch::NoGradGuard no_gradient;
  torch::Tensor x = (torch::rand({batch, w.channels, w.size, w.size}) * 2 - 1).contiguous(layout);
  if (w.pool) {
    auto [y, indices] = at::max_pool2d_with_indices(x, {2, 2});
    if (w.part == Workload::forward) return time_warm_calls([&] { at::max_pool2d_with_indices(x, {2, 2}); });
    if (w.part == Workload::both)
      return time_warm_calls([&] {
        torch::AutoGradMode with_gradient(true);
        torch::Tensor watched = x.detach().requires_grad_();
        torch::Tensor result = torch::max_pool2d(watched, {2, 2});
        result.backward(torch::ones_like(result));
      });
    torch::Tensor result = y, kept = indices;
    return time_warm_calls([&] {
      torch::Tensor d = torch::ones_like(result);
      at::max_pool2d_with_indices_backward(d, x, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, kept);
    });
  }
  torch::Tensor filter = (torch::rand({w.features, w.channels / w.groups, 3, 3}) * 2 - 1).contiguous(layout);
  auto forward = [&] { return torch::conv2d(x, filter, {}, 1, 1, 1, w.groups); };
  if (w.part == Workload::forward) return time_warm_calls(forward);
  torch::Tensor result = forward();
  return time_warm_calls([&] {
    torch::Tensor d = torch::ones_like(result);
    at::convolution_backward(d, x, filter, c10::nullopt, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, w.groups,
                             {true, true, false});
  });
}

int run_side(const char* side, const char* key) {
  for (const Workload& workload : workloads) {
    if (std::strcmp(workload.key, key) != 0) continue;
    WarmCall best;
    if (std::strcmp(side, "stet") == 0) {
      stet::set_thread_count(2);
      best = run_stet(workload);
    } else {
      at::set_num_threads(2);
      WarmCall first = run_libtorch(workload, at::MemoryFormat::Contiguous),
               last = run_libtorch(workload, at::MemoryFormat::ChannelsLast);
      best = first.median < last.median ? first : last;
    }
    std::printf("%.2f %.2f\n", best.median, best.least);
    return 0;
  }
  std::fprintf(stderr, "window: no workload %s\n", key);
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) return run_side(arguments[1], arguments[2]);
  bench::print_head();
  for (const Workload& workload : workloads) {
    auto turn = [&](const char* side, std::vector<double>& least) {
      return [&workload, side, &least] {
        auto output = bench::run_in_quiet({"window", side, workload.key}, 2);
        least.push_back(output.numbers[1]);
        return 1e3 * output.numbers[0];
      };
    };
    std::vector<double> ours, theirs;
    auto times = bench::interleave({turn("stet", ours), turn("libtorch", theirs)}, 6, 0, 2);
    bench::compare_times(workload.name, times[0], times[1], 1e3, "us", 1,
                         bench::quantile(ours, 0) / bench::quantile(theirs, 0));
  }
}
