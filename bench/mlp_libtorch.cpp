// The training step in LibTorch, as its users write it: modules, autograd, torch::optim::Adam. Two threads.
//
// bench/run.sh sets what makes it fast: AVX-512 kernels, OpenBLAS for OpenMP, a malloc that keeps its memory.
#include <torch/torch.h>

#include "bench/mlp_process.h"

namespace {

using namespace bench::mlp;

class LibTorchSide {
 public:
  struct Prepared {
    torch::Tensor x, labels;
  };

  LibTorchSide() {
    at::set_num_threads(2);
    for (int layer = 0; layer < layers; ++layer) {
      auto at = static_cast<std::size_t>(layer);
      torch::nn::Linear linear(sizes[at], sizes[at + 1]);
      std::vector<float> weights = first_weights(layer);
      torch::NoGradGuard no_gradient;
      linear->weight.copy_(torch::from_blob(weights.data(), {sizes[at], sizes[at + 1]}).t());
      linear->bias.zero_();
      network_->push_back(linear);
      if (layer + 1 < layers) network_->push_back(torch::nn::ReLU());
    }
    optimizer_ = std::make_unique<torch::optim::Adam>(
        network_->parameters(), torch::optim::AdamOptions(learning_rate).betas({beta1, beta2}).eps(epsilon));
  }

  Prepared prepare(const Batch& batch) const {
    return {torch::tensor(batch.x).view({batch.size, inputs}), torch::tensor(batch.labels)};
  }

  float step(const Prepared& batch) {
    network_->zero_grad(/*set_to_none=*/true);  // quicker than filling the gradients with zeros and adding to them
    torch::Tensor loss = torch::nn::functional::cross_entropy(network_->forward(batch.x), batch.labels);
    loss.backward();
    optimizer_->step();
    return loss.item<float>();
  }

  int traces() const { return 0; }

 private:
  torch::nn::Sequential network_;
  std::unique_ptr<torch::optim::Adam> optimizer_;
};

}  // namespace

int main(int count, char** arguments) { return process_main<LibTorchSide>(count, arguments); }
