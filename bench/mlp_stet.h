// The training step in stet.
#pragma once
#include "bench/mlp_data.h"
#include "stet/stet.h"

namespace bench::mlp {

using StetStep = stet::Function<stet::Tensor(stet::Tensor, stet::Tensor)>;

/// The model and its step with nothing but Variables and a tape.
inline StetStep make_step() {
  std::vector<stet::Variable> w, m, v;
  for (int layer = 0; layer < layers; ++layer) {
    auto at = static_cast<std::size_t>(layer);
    w.emplace_back(stet::tensor(first_weights(layer), stet::Shape{sizes[at], sizes[at + 1]}));
    w.emplace_back(
        stet::tensor(std::vector<float>(static_cast<std::size_t>(sizes[at + 1])), stet::Shape{sizes[at + 1]}));
  }
  for (const stet::Variable& variable : w) {
    // From memory, not by zeros(): what the first step costs is measured, and nothing shall be compiled before.
    auto zeros = [&] {
      return stet::tensor(std::vector<float>(static_cast<std::size_t>(variable.value().size())), variable.shape());
    };
    m.emplace_back(zeros(), stet::VariableOptions{.trainable = false});
    v.emplace_back(zeros(), stet::VariableOptions{.trainable = false});
  }
  stet::Variable steps(stet::tensor(0.f), {.trainable = false});
  return stet::function("train_step(x, y)", [=](stet::Tensor x, stet::Tensor y) {
    stet::GradientTape tape;
    stet::Tensor h = relu(matmul(x, w[0]) + w[1]);
    h = relu(matmul(h, w[2]) + w[3]);
    stet::Tensor loss = mean(sparse_cross_entropy(y, matmul(h, w[4]) + w[5]));
    std::vector<stet::Tensor> gradients = tape.gradient(loss, w);
    stet::Tensor step = steps.assign_add(1.f);
    stet::Tensor rate = learning_rate * sqrt(1 - stet::pow(beta2, step)) / (1 - stet::pow(beta1, step));
    for (std::size_t i = 0; i < w.size(); ++i) {
      stet::Tensor mean = m[i].assign(m[i] + (gradients[i] - m[i]) * (1 - beta1));
      stet::Tensor variance = v[i].assign(v[i] + (square(gradients[i]) - v[i]) * (1 - beta2));
      w[i].assign_sub(rate * mean / (sqrt(variance) + epsilon));
    }
    return loss;
  });
}

class StetSide {
 public:
  struct Prepared {
    stet::Tensor x, labels;
  };
  StetSide() { stet::set_thread_count(2); }
  Prepared prepare(const Batch& batch) const {
    return {stet::tensor(batch.x, stet::Shape{batch.size, inputs}),
            stet::tensor(batch.labels, stet::Shape{batch.size})};
  }
  float step(const Prepared& batch) { return step_(batch.x, batch.labels).item<float>(); }
  int traces() const { return step_.trace_count(); }

 private:
  StetStep step_ = make_step();
};

}  // namespace bench::mlp
