// The network, its first weights and its batches, the same for every side: a perceptron 784-512-512-10 with ReLU,
// sparse softmax cross-entropy from logits and Adam(1e-3).
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench::mlp {

inline constexpr std::array<std::int64_t, 4> sizes = {784, 512, 512, 10};
inline constexpr int layers = 3;
inline constexpr std::int64_t inputs = sizes[0], classes = sizes[3];
inline constexpr double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999;
/// Keras adds it before, LibTorch after the correction of the bias. At 1e-7 that moves losses by a percent, as many
/// gradients here are 1e-5 and less; so small, it does not matter.
inline constexpr double epsilon = 1e-10;

/// SplitMix64: the same numbers whatever the library, the compiler and the number of threads.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Uniform in [low, high).
  float uniform(double low, double high) {
    return static_cast<float>(low + (high - low) * (static_cast<double>(next() >> 40) * 0x1p-24));
  }

 private:
  std::uint64_t state_;
};

inline std::vector<float> uniform_values(std::int64_t count, double low, double high, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = random.uniform(low, high);
  return values;
}

/// Weights of a layer, [sizes[layer], sizes[layer + 1]] row by row, as Glorot has them. Biases begin as zeros.
inline std::vector<float> first_weights(int layer) {
  auto at = static_cast<std::size_t>(layer);
  double limit = std::sqrt(6.0 / static_cast<double>(sizes[at] + sizes[at + 1]));
  return uniform_values(sizes[at] * sizes[at + 1], -limit, limit, 1000 + static_cast<std::uint64_t>(layer));
}

struct Batch {
  std::int64_t size = 0;
  std::vector<float> x;              // [size, inputs], in [-0.5, 0.5)
  std::vector<std::int64_t> labels;  // [size]
};

/// Batch `number` of an endless set: noise with a little of the pattern of its class in it. Losses fall steadily, to
/// 0.002 after 100 steps, and rounding does not move them far: those of two sides can be compared.
inline Batch make_batch(std::int64_t size, std::uint64_t number) {
  constexpr float pattern_part = 0.2f;
  static const std::vector<float> patterns = uniform_values(classes * inputs, -0.5, 0.5, 7);
  Batch batch{size, uniform_values(size * inputs, -0.5, 0.5, 1000000 + number), {}};
  SplitMix random(2000000 + number);
  for (std::int64_t row = 0; row < size; ++row) {
    auto label = static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(classes));
    batch.labels.push_back(label);
    float* values = batch.x.data() + row * inputs;
    const float* pattern = patterns.data() + label * inputs;
    for (std::int64_t i = 0; i < inputs; ++i) values[i] += pattern_part * (pattern[i] - values[i]);
  }
  return batch;
}

}  // namespace bench::mlp
