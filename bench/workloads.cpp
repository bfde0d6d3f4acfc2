// Workloads in which memory decides, of the sizes that networks have, against LibTorch: gelu and layer norm,
// cross-entropy of a large vocabulary with its gradient, and Adam on ten million parameters. Two threads.
//
//   workloads                    the parent: starts itself for each side and workload in turns and prints the table
//   workloads stet|libtorch <workload>     one side: prints the median and the least microseconds of a warm call
#include <torch/torch.h>

#include <cstring>

#include "bench/mlp_data.h"
#include "bench/process.h"
#include "stet/stet.h"

namespace {

using bench::mlp::uniform_values;

constexpr std::int64_t rows = 4096, columns = 1024;                  // gelu and layer norm
constexpr std::int64_t samples = 1024, vocabulary = 32000;           // cross-entropy
constexpr std::int64_t parameters = 156250, parameter_tensors = 64;  // Adam
constexpr double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;

std::vector<std::int64_t> labels() {
  bench::mlp::SplitMix random(3);
  std::vector<std::int64_t> out;
  for (std::int64_t sample = 0; sample < samples; ++sample)
    out.push_back(static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(vocabulary)));
  return out;
}

/// Prints the median and the least microseconds of a warm call.
template <class Body>
int measure(const Body& body) {
  bench::WarmCall call = bench::time_warm_calls(body);
  std::printf("%.2f %.2f\n", call.median, call.least);
  return 0;
}

// --- stet

int stet_gelu_norm() {
  stet::Tensor x = stet::tensor(uniform_values(rows * columns, -2, 2, 1), stet::Shape{rows, columns});
  stet::Tensor gamma = stet::ones({columns}), beta = stet::zeros({columns});
  auto norm = stet::function("gelu_norm(x, gamma, beta)", [](stet::Tensor x, stet::Tensor gamma, stet::Tensor beta) {
    return layer_norm(gelu(x), gamma, beta, {.epsilon = 1e-5});
  });
  return measure([&] { norm(x, gamma, beta); });
}

int stet_cross_entropy() {
  stet::Tensor x = stet::tensor(uniform_values(samples * vocabulary, -2, 2, 1), stet::Shape{samples, vocabulary});
  stet::Tensor y = stet::tensor(labels(), stet::Shape{samples});
  auto gradient = stet::function("gradient(x, y)", [](stet::Tensor x, stet::Tensor y) {
    stet::GradientTape tape;
    tape.watch(x);
    stet::Tensor loss = mean(sparse_cross_entropy(y, x));
    return std::pair(loss, tape.gradient(loss, x));
  });
  return measure([&] { gradient(x, y).first.item<float>(); });
}

int stet_adam() {
  std::vector<stet::Variable> w, m, v;
  std::vector<stet::Tensor> gradients;
  for (std::int64_t at = 0; at < parameter_tensors; ++at) {
    for (auto* variables : {&w, &m, &v}) variables->emplace_back(stet::zeros({parameters}));
    gradients.push_back(
        stet::tensor(uniform_values(parameters, -1, 1, static_cast<std::uint64_t>(at)), stet::Shape{parameters}));
  }
  stet::Variable steps(stet::tensor(0.f));
  auto adam = stet::function("adam(gradients)", [=](std::vector<stet::Tensor> gradients) {
    stet::Tensor step = steps.assign_add(1.f);
    stet::Tensor rate = learning_rate * sqrt(1 - stet::pow(beta2, step)) / (1 - stet::pow(beta1, step));
    for (std::size_t i = 0; i < w.size(); ++i) {
      stet::Tensor mean = m[i].assign(m[i] + (gradients[i] - m[i]) * (1 - beta1));
      stet::Tensor variance = v[i].assign(v[i] + (square(gradients[i]) - v[i]) * (1 - beta2));
      w[i].assign_sub(rate * mean / (sqrt(variance) + epsilon));
    }
  });
  return measure([&] { adam(gradients); });
}

// --- LibTorch

int libtorch_gelu_norm() {
  torch::NoGradGuard no_gradient;
  torch::Tensor x = torch::tensor(uniform_values(rows * columns, -2, 2, 1)).view({rows, columns});
  torch::Tensor gamma = torch::ones({columns}), beta = torch::zeros({columns});
  return measure([&] { torch::layer_norm(torch::gelu(x), {columns}, gamma, beta, 1e-5); });
}

int libtorch_cross_entropy() {
  torch::Tensor x = torch::tensor(uniform_values(samples * vocabulary, -2, 2, 1)).view({samples, vocabulary});
  torch::Tensor y = torch::tensor(labels());
  x.requires_grad_();
  return measure([&] {
    x.mutable_grad() = torch::Tensor();
    torch::Tensor loss = torch::nn::functional::cross_entropy(x, y);
    loss.backward();
    loss.item<float>();
  });
}

int libtorch_adam() {
  std::vector<torch::Tensor> w;
  for (std::int64_t at = 0; at < parameter_tensors; ++at) {
    w.push_back(torch::zeros({parameters}, torch::requires_grad()));
    w.back().mutable_grad() = torch::tensor(uniform_values(parameters, -1, 1, static_cast<std::uint64_t>(at)));
  }
  torch::optim::Adam adam(w, torch::optim::AdamOptions(learning_rate).betas({beta1, beta2}).eps(epsilon));
  return measure([&] { adam.step(); });
}

// --- the parent

struct Workload {
  const char *key, *name;
  int (*stet)();
  int (*libtorch)();
};
constexpr Workload workloads[] = {
    {"gelu_norm", "gelu, layer norm 4096x1024", stet_gelu_norm, libtorch_gelu_norm},
    {"cross_entropy", "cross-entropy, gradient 1024x32000", stet_cross_entropy, libtorch_cross_entropy},
    {"adam", "Adam, 10^7 parameters, 64 tensors", stet_adam, libtorch_adam}};

int run_side(const char* side, const char* key) {
  bool ours = std::strcmp(side, "stet") == 0;
  if (ours)
    stet::set_thread_count(2);
  else
    at::set_num_threads(2);
  for (const Workload& workload : workloads)
    if (std::strcmp(workload.key, key) == 0) return ours ? workload.stet() : workload.libtorch();
  std::fprintf(stderr, "workloads: no workload %s\n", key);
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) return run_side(arguments[1], arguments[2]);
  bench::print_head();
  for (const Workload& workload : workloads) {
    auto turn = [&](const char* side) {
      return [&workload, side] { return 1e3 * bench::run_in_quiet({"workloads", side, workload.key}, 2).numbers[0]; };
    };
    auto times = bench::interleave({turn("stet"), turn("libtorch")}, 6, 0, 2);
    bench::compare_quickness(std::string(workload.name) + ", x as fast", times[0], times[1], 1e6, "ms", 0);
  }
}
