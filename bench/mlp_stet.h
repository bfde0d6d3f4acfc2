// The training step in stet.
#pragma once
#include "bench/mlp_data.h"
#include "stet/stet.h"

namespace bench::mlp {

using StetStep = stet::Function<stet::Tensor(stet::Tensor, stet::Tensor)>;

/// The model and its step as a user of stet writes them.
inline StetStep make_step() {
  namespace keras = stet::keras;
  keras::Sequential model{keras::Input({sizes[0]}), keras::Dense(sizes[1], {.activation = stet::relu}),
                          keras::Dense(sizes[2], {.activation = stet::relu}), keras::Dense(sizes[3])};
  std::vector<stet::Variable> weights = model.trainable_variables();
  for (int layer = 0; layer < layers; ++layer) {
    auto at = static_cast<std::size_t>(layer);
    weights[2 * at].assign(stet::tensor(first_weights(layer), stet::Shape{sizes[at], sizes[at + 1]}));
  }
  keras::Adam optimizer(learning_rate, {.beta_1 = beta1, .beta_2 = beta2, .epsilon = epsilon});
  keras::losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
  return stet::function("train_step(x, y)", [=](stet::Tensor x, stet::Tensor y) {
    stet::GradientTape tape;
    stet::Tensor loss = loss_of(y, model(x, {.training = true}));
    std::vector<stet::Variable> variables = model.trainable_variables();
    optimizer.apply_gradients(tape.gradient(loss, variables), variables);
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
