// The networks as a user of stet writes them: weights, and logits of a batch. Those of bench/peers/models.py, in its
// order.
#pragma once
#include <functional>

#include "bench/peers/arrays.h"

namespace bench::peers {

using stet::Tensor, stet::Variable;

struct Network {
  std::vector<Variable> weights;
  std::function<Tensor(Tensor x)> logits;
};
using Weights = std::vector<Variable>;

inline Weights variables(const Arrays& arrays) {
  Weights out;
  for (const Tensor& weight : arrays.all('p')) out.emplace_back(weight);
  return out;
}

inline Tensor dense(const Tensor& x, const Variable& kernel, const Variable& bias) { return matmul(x, kernel) + bias; }

inline Network mlp(const Arrays& arrays) {
  Weights p = variables(arrays);
  return {p, [=](Tensor x) {
            x = relu(dense(x, p[0], p[1]));
            x = relu(dense(x, p[2], p[3]));
            return dense(x, p[4], p[5]);
          }};
}

inline Network cnn(const Arrays& arrays) {
  Weights p = variables(arrays);
  return {p, [=](Tensor x) {
            x = max_pool(relu(conv2d(x, p[0]) + p[1]), {2, 2});
            x = max_pool(relu(conv2d(x, p[2]) + p[3]), {2, 2});
            x = reshape(x, {x.dim(0), -1});
            return dense(relu(dense(x, p[4], p[5])), p[6], p[7]);
          }};
}

/// Attention of a sequence to itself, with the three projections in one kernel.
inline Tensor attention(const Tensor& x, const Variable* p, std::int64_t heads) {
  stet::Dim batch = x.dim(0), length = x.dim(1);
  std::int64_t width = p[2].shape()[0].value();
  std::vector<Tensor> parts = split(dense(x, p[0], p[1]), {width, width, width}, -1);
  for (Tensor& part : parts) part = transpose(reshape(part, {batch, length, heads, width / heads}), {0, 2, 1, 3});
  Tensor seen = scaled_dot_product_attention(parts[0], parts[1], parts[2]);
  return dense(reshape(transpose(seen, {0, 2, 1, 3}), {batch, length, width}), p[2], p[3]);
}

inline Network transformer(const Arrays& arrays) {
  constexpr std::int64_t heads = 4, layers = 2;
  Weights p = variables(arrays);
  return {p, [=](Tensor x) {
            for (std::int64_t layer = 0; layer < layers; ++layer) {
              const Variable* q = &p[static_cast<std::size_t>(12 * layer)];
              x = layer_norm(x + attention(x, q, heads), q[4], q[5], {.epsilon = 1e-5});
              x = layer_norm(x + dense(gelu(dense(x, q[6], q[7])), q[8], q[9]), q[10], q[11], {.epsilon = 1e-5});
            }
            return dense(mean(x, {1}), p[p.size() - 2], p[p.size() - 1]);
          }};
}

inline Network attention_512(const Arrays& arrays) {
  constexpr std::int64_t heads = 4;
  Weights p = variables(arrays);
  return {p, [=](Tensor x) { return dense(mean(x + attention(x, p.data(), heads), {1}), p[4], p[5]); }};
}

/// A recurrent layer with these weights, then a Dense one with the last two arrays.
inline Network recurrent(const stet::keras::Layer& layer, const std::vector<Tensor>& layer_weights,
                         const Arrays& arrays) {
  layer(stet::zeros({1, 1, layer_weights[0].dim(0)}));  // which builds it
  layer.set_weights(layer_weights);
  Weights all = variables(arrays), weights = layer.trainable_variables();
  Variable kernel = all[all.size() - 2], bias = all[all.size() - 1];
  weights.push_back(kernel);
  weights.push_back(bias);
  return {weights, [=](Tensor x) { return dense(layer(x), kernel, bias); }};
}

inline Network lstm(const Arrays& arrays) {
  std::vector<Tensor> p = arrays.all('p');
  return recurrent(stet::keras::LSTM(p[1].dim(0).value()), {p[0], p[1], p[2]}, arrays);
}

/// The same by hand, with scan().
inline Network lstm_scan(const Arrays& arrays) {
  Weights p = variables(arrays);
  return {p, [=](Tensor x) {
            std::int64_t units = p[1].shape()[0].value();
            Tensor zero = stet::zeros({x.dim(0), units});
            auto cell = [=](std::pair<Tensor, Tensor> state, Tensor row) {
              auto [h, c] = state;
              std::vector<Tensor> gates = split(row + matmul(h, p[1]), {units, units, units, units}, 1);
              c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2]);
              return std::pair(sigmoid(gates[3]) * tanh(c), c);
            };
            auto [h, c] = stet::scan(cell, std::pair(zero, zero), dense(transpose(x, {1, 0, 2}), p[0], p[2]));
            return dense(h, p[3], p[4]);
          }};
}

/// Keras has the update gate first, the peers the reset gate.
inline Network gru(const Arrays& arrays) {
  std::vector<Tensor> p = arrays.all('p');
  stet::Dim units = p[1].dim(0);
  auto turned = [&](const Tensor& gates) {
    std::vector<Tensor> parts = split(gates, {units, units, units}, -1);
    return stet::concat({parts[1], parts[0], parts[2]}, -1);
  };
  return recurrent(stet::keras::GRU(units.value()),
                   {turned(p[0]), turned(p[1]), stet::stack({turned(p[2]), turned(p[3])})}, arrays);
}

inline Network depthwise(const Arrays& arrays) {
  Weights p = variables(arrays);
  return {p, [=](Tensor x) {
            x = relu(depthwise_conv2d(x, p[0], {.padding = "same"}) + p[1]);
            x = relu(conv2d(x, p[2]) + p[3]);
            x = relu(depthwise_conv2d(x, p[4], {.strides = {2, 2}}) + p[5]);
            x = relu(conv2d(x, p[6]) + p[7]);
            return dense(global_average_pool(x), p[8], p[9]);
          }};
}

inline Network resnet(const Arrays& arrays) {
  Weights p = variables(arrays);
  return {p, [=](Tensor x) {
            auto normed = [](const Tensor& x, const Variable& gamma, const Variable& beta) {
              auto [mean, variance] = batch_statistics(x);
              return batch_norm(x, mean, variance, beta, gamma, {.epsilon = 1e-5});
            };
            Tensor inside = relu(normed(conv2d(x, p[0], {.padding = "same"}), p[1], p[2]));
            inside = normed(conv2d(inside, p[3], {.padding = "same"}), p[4], p[5]);
            return dense(global_average_pool(relu(x + inside)), p[6], p[7]);
          }};
}

inline Network embedding(const Arrays& arrays) {
  Weights p = variables(arrays);
  return {p, [=](Tensor tokens) {
            Tensor x = relu(dense(mean(gather(p[0], tokens), {1}), p[1], p[2]));
            return dense(x, p[3], p[4]);
          }};
}

}  // namespace bench::peers
