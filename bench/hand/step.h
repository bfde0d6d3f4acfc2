// The training step by hand: what a patient programmer gets out of the machine for this one network. It is the bound
// that the compiler is measured against, so it may do what a compiler cannot easily do: it keeps the weights in the
// order its inner loops want, and writes no weight gradient to memory.
//
// A step is five phases with a barrier between them; threads take the chunks of a phase in order.
//
//   hidden 1   h1 = relu(x w1 + b1)                          a chunk is a panel of columns and some rows
//   hidden 2   h2 = relu(h1 w2 + b2)
//   head       logits = h2 w3 + b3, softmax, loss, dlogits; dh2 = dlogits w3' where h2 > 0, and its transpose: by rows
//   back       dh1 = dh2 w2' where h1 > 0, computed as (w2 dh2')', so that w2 is read as it lies
//   update     dw = x' dh in registers, and Adam on them; db and Adam: a chunk is a panel of columns and some rows
//
// The kernels are compiled once for each instruction set (avx512.cpp, avx2.cpp, plain.cpp). All sizes are variables.
#pragma once
#include <cstdint>

namespace bench::hand {

enum Phase { hidden1, hidden2, head, back, update, phases };

/// Columns lie in panels of `Kernels::panel`: panel after panel, in it row after row. The last panel is as wide as the
/// columns that are left, rounded up to whole vectors and filled with zeros.
struct Layer {
  std::int64_t inputs = 0, outputs = 0, width = 0;  // width: outputs, rounded up to whole vectors
  float *weights = nullptr, *weights_mean = nullptr, *weights_square = nullptr;
  float *bias = nullptr, *bias_mean = nullptr, *bias_square = nullptr;
};

/// A matrix row by row. Strides are odd numbers of cache lines, or rows would fall into the same sets of the cache.
struct Matrix {
  float* data = nullptr;
  std::int64_t stride = 0;
  float* row(std::int64_t at) const { return data + at * stride; }
};

struct State {
  Layer layers[3];
  std::int64_t batch = 0;
  const float* x = nullptr;  // [batch, inputs]
  const std::int64_t* labels = nullptr;
  Matrix h1, h2, dlogits, dh1, dh2;  // a row for each sample; dh2 has zeros in the rows that fill the last vector
  Matrix dh2_transposed;             // a column for each sample
  Matrix last_transposed;            // the last layer's weights, a row for each class
  double* losses = nullptr;          // sums of the chunks of `head`
  float rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;  // Adam's; the rate includes the correction of the bias
};

struct Kernels {
  const char* name;
  std::int64_t lanes, panel;
  std::int64_t (*chunks)(const State&, Phase);
  void (*run)(const State&, Phase, std::int64_t chunk);
};

const Kernels& avx512_kernels();
const Kernels& avx2_kernels();
const Kernels& plain_kernels();

}  // namespace bench::hand
