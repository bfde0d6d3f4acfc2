// The training step written by hand, with two threads (see bench/hand/step.h). `mlp_hand check` compares it with the
// same step in double precision, written plainly, for every instruction set that the machine has; the other modes are
// those of mlp_process.h.
#include "bench/hand/network.h"
#include "bench/mlp_process.h"

namespace {

using namespace bench::mlp;
using bench::hand::Kernels;
using bench::hand::Network;
constexpr int threads = 2;

class HandSide {
 public:
  Batch prepare(Batch batch) const { return batch; }
  float step(const Batch& batch) { return network_.step(batch.x.data(), batch.labels.data(), batch.size); }
  int traces() const { return 0; }

 private:
  Network network_{bench::hand::best_kernels(), threads};
};

/// The step as it stands in a textbook.
class Reference {
 public:
  Reference() {
    for (int at = 0; at < layers; ++at) {
      std::vector<float> first = first_weights(at);
      w_[at].assign(first.begin(), first.end());
      b_[at].assign(static_cast<std::size_t>(size(at + 1)), 0);
      for (auto* state : {&wm_[at], &wv_[at]}) state->assign(w_[at].size(), 0);
      for (auto* state : {&bm_[at], &bv_[at]}) state->assign(b_[at].size(), 0);
    }
  }

  double step(const Batch& batch) {
    std::vector<double> h[layers + 1];
    h[0].assign(batch.x.begin(), batch.x.end());
    for (int at = 0; at < layers; ++at) h[at + 1] = forward(at, h[at], batch.size);
    double loss = softmax(h[layers], batch);
    std::vector<double> d = h[layers];
    ++steps_;
    for (int at = layers - 1; at >= 0; --at) d = back(at, h[at], d, batch.size);
    return loss;
  }

  const std::vector<double>& weights(int at) const { return w_[at]; }
  const std::vector<double>& bias(int at) const { return b_[at]; }

 private:
  static std::int64_t size(int at) { return sizes[static_cast<std::size_t>(at)]; }

  std::vector<double> forward(int at, const std::vector<double>& h, std::int64_t batch) const {
    std::int64_t in = size(at), out = size(at + 1);
    std::vector<double> y(static_cast<std::size_t>(batch * out));
    for (std::int64_t s = 0; s < batch; ++s) {
      double* row = y.data() + s * out;
      std::copy(b_[at].begin(), b_[at].end(), row);
      for (std::int64_t i = 0; i < in; ++i)
        for (std::int64_t o = 0; o < out; ++o) row[o] += h[s * in + i] * w_[at][i * out + o];
      if (at + 1 < layers)
        for (std::int64_t o = 0; o < out; ++o) row[o] = std::max(row[o], 0.0);
    }
    return y;
  }

  /// Logits become their gradient.
  static double softmax(std::vector<double>& logits, const Batch& batch) {
    double loss = 0;
    for (std::int64_t s = 0; s < batch.size; ++s) {
      double *row = logits.data() + s * classes, total = 0, wanted = row[batch.labels[s]];
      for (std::int64_t c = 0; c < classes; ++c) total += std::exp(row[c]);
      for (std::int64_t c = 0; c < classes; ++c)
        row[c] = (std::exp(row[c]) / total - (c == batch.labels[s])) / static_cast<double>(batch.size);
      loss += std::log(total) - wanted;
    }
    return loss / static_cast<double>(batch.size);
  }

  /// Updates a layer; returns the gradient of its input.
  std::vector<double> back(int at, const std::vector<double>& h, const std::vector<double>& d, std::int64_t batch) {
    std::int64_t in = size(at), out = size(at + 1);
    std::vector<double> dh(static_cast<std::size_t>(batch * in)), dw(w_[at].size()), db(b_[at].size());
    for (std::int64_t s = 0; s < batch; ++s) {
      const double* row = d.data() + s * out;
      for (std::int64_t o = 0; o < out; ++o) db[o] += row[o];
      for (std::int64_t i = 0; i < in; ++i) {
        double value = h[s * in + i], sum = 0;
        for (std::int64_t o = 0; o < out; ++o) {
          dw[i * out + o] += value * row[o];
          sum += row[o] * w_[at][i * out + o];
        }
        dh[s * in + i] = value > 0 ? sum : 0;
      }
    }
    adam(dw, w_[at], wm_[at], wv_[at]);
    adam(db, b_[at], bm_[at], bv_[at]);
    return dh;
  }

  void adam(const std::vector<double>& d, std::vector<double>& w, std::vector<double>& m,
            std::vector<double>& v) const {
    double rate = learning_rate * std::sqrt(1 - std::pow(beta2, steps_)) / (1 - std::pow(beta1, steps_));
    for (std::size_t i = 0; i < d.size(); ++i) {
      m[i] += (d[i] - m[i]) * (1 - beta1);
      v[i] += (d[i] * d[i] - v[i]) * (1 - beta2);
      w[i] -= rate * m[i] / (std::sqrt(v[i]) + epsilon);
    }
  }

  std::vector<double> w_[layers], b_[layers], wm_[layers], wv_[layers], bm_[layers], bv_[layers];
  int steps_ = 0;
};

/// How many values of two arrays differ. A gradient that is all but zero takes a whole step of Adam in the direction of
/// its rounding, so single weights may be off by a step or two; more than a few of them may not.
std::int64_t different(const std::vector<float>& a, const std::vector<double>& b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(static_cast<double>(a[i]) - b[i]) <= 1e-5 + 1e-4 * std::abs(b[i]))) ++count;
  return count;
}

bool check(const Kernels& kernels) {
  bool good = true;
  // Sizes that fill tiles, panels and vectors, and sizes that do not.
  for (std::int64_t size : {32, 33, 7, 71}) {
    Network network(kernels, threads);
    Reference reference;
    for (std::uint64_t number = 0; number < 3; ++number) {
      Batch batch = make_batch(size, number);
      double loss = static_cast<double>(network.step(batch.x.data(), batch.labels.data(), size));
      double expected = reference.step(batch);
      if (std::abs(loss - expected) <= 1e-4 * expected) continue;
      std::fprintf(stderr, "mlp_hand: %s, batch %lld: loss %.7f of step %d instead of %.7f\n", kernels.name,
                   static_cast<long long>(size), loss, static_cast<int>(number) + 1, expected);
      good = false;
    }
    for (int at = 0; at < layers; ++at) {
      std::int64_t weights = different(network.weights(at), reference.weights(at));
      std::int64_t biases = different(network.bias(at), reference.bias(at));
      if (weights * 1000 <= static_cast<std::int64_t>(reference.weights(at).size()) && biases <= 1) continue;
      std::fprintf(stderr, "mlp_hand: %s, batch %lld: %lld weights and %lld biases of layer %d are wrong\n",
                   kernels.name, static_cast<long long>(size), static_cast<long long>(weights),
                   static_cast<long long>(biases), at + 1);
      good = false;
    }
  }
  return good;
}

int check_all() {
  bool good = check(bench::hand::plain_kernels());
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    good = check(bench::hand::avx2_kernels()) && good;
  if (__builtin_cpu_supports("avx512f")) good = check(bench::hand::avx512_kernels()) && good;
#endif
  return good ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::strcmp(arguments[1], "check") == 0) return check_all();
  return process_main<HandSide>(count, arguments);
}
