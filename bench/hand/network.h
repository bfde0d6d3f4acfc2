// The hand-written step with its memory and its threads.
#pragma once
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "bench/hand/step.h"
#include "bench/mlp_data.h"

namespace bench::hand {

/// The best kernels that this machine can run.
const Kernels& best_kernels();

class Network {
 public:
  Network(const Kernels& kernels, int threads);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Trains on a batch and returns its loss.
  float step(const float* x, const std::int64_t* labels, std::int64_t batch);
  /// A layer's weights as a plain matrix, [inputs, outputs].
  std::vector<float> weights(int layer) const;
  std::vector<float> bias(int layer) const;

 private:
  float* floats(std::int64_t count);
  Matrix matrix(std::int64_t rows, std::int64_t columns);
  void make_room(std::int64_t batch);
  void work();  // all phases of one step, on every thread
  void worker();

  const Kernels& kernels_;
  State state_;
  std::vector<std::unique_ptr<float, void (*)(void*)>> memory_;
  std::vector<double> losses_;
  std::int64_t room_ = 0;  // samples that the activations have memory for
  int steps_ = 0;

  // Threads spin: a phase is a few hundred microseconds, and there are five in a step.
  const int threads_;
  std::vector<std::thread> workers_;
  alignas(64) std::atomic<std::int64_t> generation_{0};  // counts steps; -1 ends the workers
  alignas(64) std::atomic<std::int64_t> arrived_{0};     // counts arrivals at barriers, and never goes back
  alignas(64) std::atomic<std::int64_t> next_[phases] = {};
};

}  // namespace bench::hand
