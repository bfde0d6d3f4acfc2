// What a process repeats: the workloads of bench/peers/models.py in stet, each as one traced function.
#pragma once
#include <memory>

#include "bench/peers/networks.h"

namespace bench::peers {

struct Repeated {
  std::function<void()> call;  // what is timed: `per_call` steps
  int per_call = 1;
  /// What all sides must agree on, losses after the first and after so many steps among them.
  std::function<std::vector<double>(int steps)> numbers;
  std::function<void()> restart = {};  // a training begins anew
  std::function<int()> traces;
};

inline stet::keras::Adam make_adam() { return stet::keras::Adam(1e-3, {.epsilon = 1e-10}); }

/// Forward, gradients and Adam as one function; the loss is read at each step.
class Training {
 public:
  explicit Training(const Network& network)
      : weights_(network.weights), step_(stet::function("step(x, y)", [network, adam = adam_](Tensor x, Tensor y) {
          stet::GradientTape tape;
          Tensor loss = mean(sparse_cross_entropy(y, network.logits(x)));
          adam.apply_gradients(tape.gradient(loss, network.weights), network.weights);
          return loss;
        })) {
    for (const Variable& weight : weights_) first_weights_.push_back(weight.value());
  }
  void step(const Tensor& x, const Tensor& y) { losses_.push_back(static_cast<double>(step_(x, y).item<float>())); }
  void restart() const {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i].assign(first_weights_[i]);
    adam_.iterations().assign(zeros_like(adam_.iterations()));
    std::vector<Variable> state = adam_.variables();
    for (std::size_t i = 2; i < state.size(); ++i) state[i].assign(zeros_like(state[i]));  // not the learning rate
  }
  std::vector<double> numbers(int steps) const {
    return {losses_.front(), losses_[static_cast<std::size_t>(steps - 1)]};
  }
  int traces() const { return step_.trace_count(); }

 private:
  std::vector<Variable> weights_;
  std::vector<Tensor> first_weights_;
  stet::keras::Adam adam_ = make_adam();
  stet::Function<Tensor(Tensor, Tensor)> step_;
  std::vector<double> losses_;
};

/// Trains on the batches, one after the other, in every call.
inline Repeated training(const Network& network, std::vector<std::pair<Tensor, Tensor>> batches) {
  auto training = std::make_shared<Training>(network);
  Repeated out;
  out.per_call = static_cast<int>(batches.size());
  out.call = [=] {
    for (const auto& [x, y] : batches) training->step(x, y);
  };
  out.numbers = [=](int steps) { return training->numbers(steps); };
  out.restart = [=] { training->restart(); };
  out.traces = [=] { return training->traces(); };
  return out;
}

inline Repeated training(Network (*network)(const Arrays&), const Arrays& arrays) {
  return training(network(arrays), {{arrays["x"], arrays["y"]}});
}

/// Another length in every step: each from 20 to 60 once, far from in order.
inline Repeated training_on_lengths(Network (*network)(const Arrays&), const Arrays& arrays) {
  std::vector<std::pair<Tensor, Tensor>> batches;
  for (int step = 0; step < 41; ++step) {
    std::string length = std::to_string(20 + step * 17 % 41);
    batches.emplace_back(arrays["x_" + length], arrays["y_" + length]);
  }
  return training(network(arrays), batches);
}

inline Repeated gelu_norm(const Arrays& arrays) {
  Tensor x = arrays["x"], gamma = arrays["p00"], beta = arrays["p01"];
  stet::Function norm = stet::function("gelu_norm(x, gamma, beta)", [](Tensor x, Tensor gamma, Tensor beta) {
    return layer_norm(gelu(x), gamma, beta, {.epsilon = 1e-5});
  });
  return {.call = [=] { norm(x, gamma, beta); },
          .numbers = [=](int) { return std::vector{fingerprint(norm(x, gamma, beta))}; },
          .traces = [=] { return norm.trace_count(); }};
}

inline Repeated cross_entropy(const Arrays& arrays) {
  Tensor x = arrays["x"], y = arrays["y"];
  stet::Function both = stet::function("cross_entropy(x, y)", [](Tensor x, Tensor y) {
    stet::GradientTape tape;
    tape.watch(x);
    Tensor loss = mean(sparse_cross_entropy(y, x));
    return std::pair(loss, tape.gradient(loss, x));
  });
  auto numbers = [=](int) {
    auto [loss, gradient] = both(x, y);
    return std::vector{static_cast<double>(loss.item<float>()), fingerprint(gradient)};
  };
  return {.call = [=] { both(x, y); }, .numbers = numbers, .traces = [=] { return both.trace_count(); }};
}

/// Adam's update of tensors that begin with zeros, from the same gradients again and again.
inline Repeated adam(const Arrays& arrays) {
  std::vector<Tensor> gradients = arrays.all('g');
  std::vector<Variable> weights;
  for (const Tensor& gradient : gradients) weights.emplace_back(zeros_like(gradient));
  stet::keras::Adam adam = make_adam();
  stet::Function update = stet::function(
      "adam(gradients)", [=](std::vector<Tensor> gradients) { adam.apply_gradients(gradients, weights); });
  struct Seen {
    int calls = 0;
    double last = 0;
  };
  auto seen = std::make_shared<Seen>();
  constexpr int compared = 20;  // steps of the workload
  auto call = [=] {
    update(gradients);
    if (++seen->calls != compared) return;
    for (const Variable& weight : weights) seen->last += fingerprint(weight.value());
  };
  return {.call = call,
          .numbers = [=](int) { return std::vector{seen->last}; },
          .traces = [=] { return update.trace_count(); }};
}

}  // namespace bench::peers
