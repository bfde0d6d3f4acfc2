#include "bench/hand/network.h"

#include <sys/mman.h>

#include <cstdlib>

namespace bench::hand {
namespace {

/// Waits until a condition holds. It spins, as the wait is short; when it is not, another process may have the core
/// that the other thread needs, and the two must not sit on one core with the wrong one running.
template <class Condition>
void wait_until(const Condition& condition) {
  for (int spins = 0; !condition(); ++spins)
    if (spins < 4096) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      std::this_thread::yield();
    }
}

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

/// Where an element of a weight lies in the order of panels.
std::int64_t place(const Layer& layer, std::int64_t panel, std::int64_t row, std::int64_t column) {
  std::int64_t start = column / panel * panel, width = std::min(panel, layer.width - start);
  return start * layer.inputs + row * width + column - start;
}

}  // namespace

const Kernels& best_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512_kernels();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_kernels();
#endif
  return plain_kernels();
}

Network::Network(const Kernels& kernels, int threads) : kernels_(kernels), threads_(threads) {
  for (int at = 0; at < mlp::layers; ++at) {
    Layer& layer = state_.layers[at];
    layer.inputs = mlp::sizes[static_cast<std::size_t>(at)];
    layer.outputs = mlp::sizes[static_cast<std::size_t>(at) + 1];
    layer.width = round_up(layer.outputs, kernels_.lanes);
    for (float** array : {&layer.weights, &layer.weights_mean, &layer.weights_square})
      *array = floats(layer.inputs * layer.width);
    for (float** array : {&layer.bias, &layer.bias_mean, &layer.bias_square}) *array = floats(layer.width);
    std::vector<float> first = mlp::first_weights(at);
    for (std::int64_t row = 0; row < layer.inputs; ++row)
      for (std::int64_t column = 0; column < layer.outputs; ++column)
        layer.weights[place(layer, kernels_.panel, row, column)] =
            first[static_cast<std::size_t>(row * layer.outputs + column)];
  }
  // Logits that only fill a vector up: their exponential is zero, and so is their gradient.
  Layer& last = state_.layers[mlp::layers - 1];
  for (std::int64_t column = last.outputs; column < last.width; ++column) last.bias[column] = -1e30f;
  state_.last_transposed = matrix(last.width, last.inputs);
  state_.beta1 = static_cast<float>(mlp::beta1);
  state_.beta2 = static_cast<float>(mlp::beta2);
  state_.epsilon = static_cast<float>(mlp::epsilon);
  for (int worker = 1; worker < threads_; ++worker) workers_.emplace_back([this] { this->worker(); });
}

Network::~Network() {
  generation_.store(-1);
  for (std::thread& worker : workers_) worker.join();
}

float* Network::floats(std::int64_t count) {
  constexpr std::size_t huge_page = 2 << 20;
  std::size_t bytes = static_cast<std::size_t>(round_up(count * 4, 64));
  std::size_t alignment = bytes >= huge_page / 2 ? huge_page : 64;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  auto* array = static_cast<float*>(std::aligned_alloc(alignment, bytes));
  if (!array) std::abort();
  if (alignment == huge_page) madvise(array, bytes, MADV_HUGEPAGE);
  std::fill(array, array + bytes / 4, 0.f);
  memory_.emplace_back(array, std::free);
  return array;
}

Matrix Network::matrix(std::int64_t rows, std::int64_t columns) {
  std::int64_t lines = round_up(columns, 16) / 16;
  if (lines > 1 && lines % 2 == 0) ++lines;
  return {floats(rows * lines * 16), lines * 16};
}

void Network::make_room(std::int64_t batch) {
  state_.batch = batch;
  if (batch != room_) {
    // The rows that fill the last vector up must be zero, so another size begins with fresh memory.
    std::int64_t rows = round_up(batch, kernels_.lanes);
    state_.h1 = matrix(rows, state_.layers[0].width);
    state_.dh1 = matrix(rows, state_.layers[0].width);
    state_.h2 = matrix(rows, state_.layers[1].width);
    state_.dh2 = matrix(rows, state_.layers[1].width);
    state_.dlogits = matrix(rows, state_.layers[2].width);
    state_.dh2_transposed = matrix(state_.layers[1].width, rows);
    losses_.assign(static_cast<std::size_t>(kernels_.chunks(state_, head)), 0);
    state_.losses = losses_.data();
    room_ = batch;
  }
}

float Network::step(const float* x, const std::int64_t* labels, std::int64_t batch) {
  make_room(batch);
  state_.x = x;
  state_.labels = labels;
  ++steps_;
  state_.rate = static_cast<float>(mlp::learning_rate * std::sqrt(1 - std::pow(mlp::beta2, steps_)) /
                                   (1 - std::pow(mlp::beta1, steps_)));
  for (auto& next : next_) next.store(0, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  work();
  double loss = 0;
  for (double part : losses_) loss += part;
  return static_cast<float>(loss / static_cast<double>(batch));
}

void Network::work() {
  std::int64_t barriers = (generation_.load(std::memory_order_relaxed) - 1) * phases;
  for (int at = 0; at < phases; ++at) {
    auto phase = static_cast<Phase>(at);
    std::int64_t chunks = kernels_.chunks(state_, phase);
    for (std::int64_t chunk; (chunk = next_[at].fetch_add(1, std::memory_order_relaxed)) < chunks;)
      kernels_.run(state_, phase, chunk);
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    std::int64_t all = (barriers + at + 1) * threads_;
    wait_until([&] { return arrived_.load(std::memory_order_acquire) >= all; });
  }
}

void Network::worker() {
  for (std::int64_t done = 0;; ++done) {
    std::int64_t generation = 0;
    wait_until([&] { return (generation = generation_.load(std::memory_order_acquire)) != done; });
    if (generation < 0) return;
    work();
  }
}

std::vector<float> Network::weights(int at) const {
  const Layer& layer = state_.layers[at];
  std::vector<float> out;
  for (std::int64_t row = 0; row < layer.inputs; ++row)
    for (std::int64_t column = 0; column < layer.outputs; ++column)
      out.push_back(layer.weights[place(layer, kernels_.panel, row, column)]);
  return out;
}

std::vector<float> Network::bias(int at) const {
  const Layer& layer = state_.layers[at];
  return {layer.bias, layer.bias + layer.outputs};
}

}  // namespace bench::hand
