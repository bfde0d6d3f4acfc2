// What public tests train: a two-layer network with raw Variables, and its steps with SGD and Adam written out.
#pragma once
#include <exception>
#include <vector>

#include "stet/stet.h"

/// What a user's own code throws.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Host code with a fault: throws once, after as many ops as it was told.
class Countdown {
 public:
  void set(int ops) { left_ = ops; }
  bool spent() const { return left_ < 0; }
  void tick() {
    if (left_ >= 0 && left_-- == 0) throw Interrupted();
  }
  /// For the way through an expression: after(matmul(x, w)).
  stet::Tensor operator()(stet::Tensor result) {
    tick();
    return result;
  }

 private:
  int left_ = -1;
};

/// Two layers and what Adam keeps of them.
struct Network {
  static constexpr std::int64_t inputs = 6, width = 8, classes = 3;

  /// Each with a stream of its own, in this order: made again after the same seed, they are the same.
  void make() {
    weights.clear();
    weights.emplace_back(drawn({inputs, width}));
    weights.emplace_back(stet::zeros({width}));
    weights.emplace_back(drawn({width, classes}));
    weights.emplace_back(stet::zeros({classes}));
    make_moments();
  }
  void make_moments() {
    means.clear();
    squares.clear();
    for (const stet::Variable& weight : weights) {
      means.emplace_back(stet::zeros(weight.shape()), stet::VariableOptions{.trainable = false});
      squares.emplace_back(stet::zeros(weight.shape()), stet::VariableOptions{.trainable = false});
    }
    steps = stet::Variable(stet::tensor(0.f), {.trainable = false});
  }
  static stet::Tensor drawn(const stet::Shape& shape) {
    return stet::random::stateless_normal(shape, stet::random::next_initial_stream(), {.stddev = 0.4});
  }
  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> out;
    for (const auto* list : {&weights, &means, &squares})
      for (const stet::Variable& variable : *list) out.push_back(variable.read().to_vector<float>());
    out.push_back(steps.read().to_vector<float>());
    return out;
  }

  std::vector<stet::Variable> weights, means, squares;
  stet::Variable steps;
};

/// The loss on a batch. With dropout, random numbers are drawn.
inline stet::Tensor loss_of(const Network& network, Countdown& after, const stet::Tensor& x, const stet::Tensor& y,
                            bool dropout) {
  using namespace stet;
  Tensor hidden = after(relu(after(after(matmul(x, network.weights[0])) + network.weights[1])));
  if (dropout) {
    Tensor kept = after(after(random::uniform(hidden.shape())) < 0.75f);
    hidden = after(where(kept, after(hidden / 0.75f), 0.f));
  }
  Tensor logits = after(after(matmul(hidden, network.weights[2])) + network.weights[3]);
  return after(mean(after(sparse_cross_entropy(y, logits))));
}

inline void apply_adam(const Network& network, Countdown& after, const std::vector<stet::Tensor>& gradients) {
  using namespace stet;
  Tensor step = after(network.steps.assign_add(1.f));
  Tensor rate = after(0.01f * after(sqrt(1 - after(pow(0.999f, step))) / (1 - after(pow(0.9f, step)))));
  for (std::size_t i = 0; i < network.weights.size(); ++i) {
    const Tensor& g = gradients[i];
    Tensor mean = after(network.means[i].assign(after(network.means[i] * 0.9f) + after(g * 0.1f)));
    Tensor square = after(network.squares[i].assign(after(network.squares[i] * 0.999f) + after(g * g * 0.001f)));
    after(network.weights[i].assign_sub(after(after(rate * mean) / after(sqrt(square) + 1e-7f))));
  }
}

inline stet::Tensor adam_step(const Network& network, Countdown& after, const stet::Tensor& x, const stet::Tensor& y,
                              bool dropout = true) {
  stet::GradientTape tape;
  stet::Tensor loss = loss_of(network, after, x, y, dropout);
  std::vector<stet::Tensor> gradients = tape.gradient(loss, network.weights);
  after.tick();
  apply_adam(network, after, gradients);
  return loss;
}

inline stet::Tensor sgd_step(const Network& network, const stet::Tensor& x, const stet::Tensor& y) {
  Countdown never;
  stet::GradientTape tape;
  stet::Tensor loss = loss_of(network, never, x, y, false);
  std::vector<stet::Tensor> gradients = tape.gradient(loss, network.weights);
  for (std::size_t i = 0; i < gradients.size(); ++i) network.weights[i].assign_sub(0.1f * gradients[i]);
  return loss;
}

/// Batch number `n` of an endless stream that neither uses nor moves the process's generator.
struct Batch {
  stet::Tensor x, y;
};
inline Batch batch_of(std::int64_t n, std::int64_t size) {
  using namespace stet;
  Tensor x = random::stateless_normal({size, Network::inputs}, {77, n});
  return {x, cast(sum(x > 0.f, 1) % static_cast<int>(Network::classes), i32)};
}
