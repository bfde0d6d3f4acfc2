// A neural ODE: the slope is a network with Variables, integrated with Runge and Kutta's classical steps. Gradients
// with checkpoints are those without, in the same bits, and those of a plain program; training by them finds a known
// motion.
#include "algorithms.h"

namespace stet {
namespace {

constexpr std::size_t hidden = 4;

struct Network {
  Variable w1, b1, w2;
  explicit Network(const Reals& p)
      : w1(reshape(tensor(Reals(p.begin(), p.begin() + 8)), {2, 4})),
        b1(tensor(Reals(p.begin() + 8, p.begin() + 12))),
        w2(reshape(tensor(Reals(p.begin() + 12, p.end())), {4, 2})) {}
  Tensor operator()(const Tensor& y) const { return matmul(tanh(matmul(y, w1) + b1), w2); }
};

/// States after each of so many steps of length h, [steps, batch, 2].
Tensor trajectory(const Network& slope, Tensor start, Tensor h, Dim steps, std::int64_t checkpoint_every) {
  return scan(
             [&](Tensor y) {
               Tensor k1 = slope(y), k2 = slope(y + h / 2 * k1), k3 = slope(y + h / 2 * k2), k4 = slope(y + h * k3);
               Tensor next = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
               return std::pair(next, next);
             },
             start, {.length = steps, .checkpoint_every = checkpoint_every})
      .second;
}

/// Of one state, the sum of weights · states.
double plain_loss(const Reals& p, Reals y, double h, std::size_t steps, const Reals& weights) {
  auto slope = [&](const Reals& at) {
    Reals out(2, 0);
    for (std::size_t i = 0; i < hidden; ++i) {
      const double unit = std::tanh(at[0] * p[i] + at[1] * p[hidden + i] + p[8 + i]);
      out[0] += unit * p[12 + 2 * i];
      out[1] += unit * p[12 + 2 * i + 1];
    }
    return out;
  };
  auto moved = [&](double by, const Reals& along) { return Reals{y[0] + by * along[0], y[1] + by * along[1]}; };
  double out = 0;
  for (std::size_t s = 0; s < steps; ++s) {
    Reals k1 = slope(y), k2 = slope(moved(h / 2, k1)), k3 = slope(moved(h / 2, k2)), k4 = slope(moved(h, k3));
    for (std::size_t i = 0; i < 2; ++i) {
      y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
      out += weights[2 * s + i] * y[i];
    }
  }
  return out;
}

TEST(AlgorithmsNeuralOde, GradientsWithCheckpointsAreThoseWithout) {
  Reals p = wave(20, 0.4);
  Network network(p);
  using Slopes = std::tuple<Tensor, Tensor, std::vector<Tensor>>;
  auto slopes = [&](Tensor start, Tensor h, Tensor weights, std::int64_t checkpoint_every) -> Slopes {
    GradientTape tape({.persistent = true});
    tape.watch(start);
    Tensor loss = sum(weights * trajectory(network, start, h, weights.dim(0), checkpoint_every));
    return {loss, tape.gradient(loss, start), tape.gradient(loss, {network.w1, network.b1, network.w2})};
  };
  std::vector<Function<Slopes(Tensor, Tensor, Tensor)>> traced;
  const std::vector<std::int64_t> every{0, 1, 5, 1000};
  for (std::int64_t k : every)
    traced.push_back(function("slopes(start, h, weights)",
                              [=](Tensor start, Tensor h, Tensor weights) { return slopes(start, h, weights, k); }));
  for (std::int64_t steps : {20, 1, 33})
    for (std::int64_t batch : {1, 3}) {
      SCOPED_TRACE(testing::Message() << steps << " steps of " << batch);
      Reals starts = wave(batch * 2, 2), factors = wave(steps * batch * 2, 3);
      Tensor start = shaped(starts, {batch, 2}), weights = shaped(factors, {steps, batch, 2}), h = tensor(0.1);
      auto [loss, by_start, by_network] = traced[0](start, h, weights);
      for (std::size_t i = 1; i < every.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "a checkpoint every " << every[i]);
        auto [other_loss, other_by_start, other_by_network] = traced[i](start, h, weights);
        expect_bits(other_loss, loss, "loss");
        expect_bits(other_by_start, by_start, "by the start");
        for (std::size_t k = 0; k < 3; ++k) expect_agree(other_by_network[k], by_network[k], 1e-13, "by the network");
      }
      auto [eager_loss, eager_by_start, eager_by_network] = slopes(start, h, weights, 5);
      expect_agree(loss, eager_loss, 1e-12, "eager loss");
      expect_agree(by_start, eager_by_start, 1e-12, "eager by the start");
      for (std::size_t k = 0; k < 3; ++k) expect_agree(by_network[k], eager_by_network[k], 1e-12, "eager by network");

      auto all = [&](const Reals& at) {
        double out = 0;
        for (std::size_t b = 0; b < static_cast<std::size_t>(batch); ++b) {
          Reals mine;
          for (std::size_t s = 0; s < static_cast<std::size_t>(steps); ++s)
            for (std::size_t i = 0; i < 2; ++i)
              mine.push_back(factors[(s * static_cast<std::size_t>(batch) + b) * 2 + i]);
          out += plain_loss(at, {starts[2 * b], starts[2 * b + 1]}, 0.1, static_cast<std::size_t>(steps), mine);
        }
        return out;
      };
      expect_close(loss, {all(p)}, 1e-12, "plain loss");
      expect_close(concat({ravel(by_network[0]), by_network[1], ravel(by_network[2])}), differences(all, p, 3e-4), 1e-8,
                   "differences");
    }
  for (auto& f : traced) EXPECT_EQ(f.trace_count(), 1) << f.explain();
}

/// y' = (-y1, y0) turns states round the origin.
TEST(AlgorithmsNeuralOde, TrainingFindsARotation) {
  Network network(wave(20, 0.4));
  Function step = function("step(start, h, truth)", [=](Tensor start, Tensor h, Tensor truth) {
    GradientTape tape;
    Tensor loss = mean(square(trajectory(network, start, h, truth.dim(0), 4) - truth));
    std::vector<Tensor> d = tape.gradient(loss, {network.w1, network.b1, network.w2});
    network.w1.assign_sub(0.5 * d[0]);
    network.b1.assign_sub(0.5 * d[1]);
    network.w2.assign_sub(0.5 * d[2]);
    return loss;
  });
  double first = 0, last = 0;
  for (int turn = 0; turn < 300; ++turn) {
    const std::int64_t batch = 4 + turn % 3, length = 10 + turn % 5;
    Tensor angle = tensor(wave(batch, turn)) * 3, time = 0.1 * expand_dims(cast(arange(1, length + 1), f64), 1) + angle;
    last = step(stack({cos(angle), sin(angle)}, 1), tensor(0.1), stack({cos(time), sin(time)}, 2)).item<double>();
    if (turn == 0) first = last;
  }
  EXPECT_LT(last, first / 100) << "from " << first;
  EXPECT_EQ(step.trace_count(), 1) << step.explain();
}

}  // namespace
}  // namespace stet
