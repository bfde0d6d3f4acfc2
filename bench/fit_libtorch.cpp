// fit_libtorch mlp|cnn: the epoch of fit_stet.cpp as a loop in LibTorch: shuffled batches, autograd, Adam, running loss
// and accuracy. Prints the seconds of the second epoch.
#include <torch/torch.h>

#include <cstdio>
#include <string>

#include "bench/bench.h"

int main(int argc, char** argv) {
  at::set_num_threads(2);
  const bool cnn = argc > 1 && argv[1] == std::string("cnn");
  torch::Tensor x = torch::rand({60000, 1, 28, 28}), y = torch::randint(0, 10, {60000});
  torch::nn::Sequential network;
  if (cnn)
    for (int filters : {32, 64}) {
      network->push_back(torch::nn::Conv2d(filters == 32 ? 1 : 32, filters, 3));
      network->push_back(torch::nn::ReLU());
      network->push_back(torch::nn::MaxPool2d(2));
    }
  network->push_back(torch::nn::Flatten());
  network->push_back(torch::nn::Linear(cnn ? 1600 : 784, 128));
  network->push_back(torch::nn::ReLU());
  network->push_back(torch::nn::Linear(128, 10));
  torch::optim::Adam optimizer(network->parameters(), torch::optim::AdamOptions(1e-3));
  double seconds = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    double begin = bench::now_ns();
    torch::Tensor order = torch::randperm(60000);
    torch::Tensor loss_sum = torch::zeros({}), right = torch::zeros({}, torch::kInt64);
    for (std::int64_t at = 0; at < 60000; at += 64) {
      torch::Tensor rows = order.slice(0, at, std::min<std::int64_t>(at + 64, 60000));
      torch::Tensor images = x.index_select(0, rows), labels = y.index_select(0, rows);
      network->zero_grad(/*set_to_none=*/true);
      torch::Tensor logits = network->forward(images);
      torch::Tensor loss = torch::nn::functional::cross_entropy(logits, labels);
      loss.backward();
      optimizer.step();
      torch::NoGradGuard no_gradient;
      loss_sum += loss * rows.size(0);
      right += (logits.argmax(-1) == labels).sum();
    }
    seconds = (bench::now_ns() - begin) * 1e-9;
  }
  std::printf("%g\n", seconds);
}
