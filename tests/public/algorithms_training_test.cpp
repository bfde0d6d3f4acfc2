// A whole training run as one call: a scan over batches, in whose turns a tape, an optimizer and Variables live.
#include "algorithms.h"

namespace stet {
namespace {

/// Descent with momentum on a linear model, by hand in plain C++. Gives the loss of every batch.
struct PlainRun {
  Reals w, speed, losses;
};
PlainRun plain_run(const Reals& xs, const Reals& ys, std::size_t batch, std::size_t features, double rate,
                   double momentum, PlainRun run) {
  run.losses.clear();
  for (std::size_t from = 0; from < ys.size(); from += batch) {
    Reals slope(features, 0);
    double loss = 0;
    for (std::size_t e = from; e < from + batch; ++e) {
      double off = -ys[e];
      for (std::size_t j = 0; j < features; ++j) off += xs[e * features + j] * run.w[j];
      loss += off * off / static_cast<double>(batch);
      for (std::size_t j = 0; j < features; ++j)
        slope[j] += 2 * off * xs[e * features + j] / static_cast<double>(batch);
    }
    for (std::size_t j = 0; j < features; ++j) {
      run.speed[j] = momentum * run.speed[j] - rate * slope[j];
      run.w[j] += run.speed[j];
    }
    run.losses.push_back(loss);
  }
  return run;
}

TEST(AlgorithmsTraining, AnEpochIsAScan) {
  constexpr std::size_t features = 3;
  Variable w(zeros({3}, f64)), speed(zeros({3}, f64), {.trainable = false});
  auto epoch = [=](Tensor xs, Tensor ys) {
    auto step = [&](std::pair<Tensor, Tensor> batch) {
      GradientTape tape;
      Tensor loss = mean(square(matmul(batch.first, w) - batch.second));
      speed.assign(0.9 * speed.read() - 0.02 * tape.gradient(loss, w));
      w.assign_add(speed);
      return loss;
    };
    return map_fn(step, std::pair(xs, ys));
  };
  Function traced = function("epoch(xs, ys)", epoch);
  for (bool eager : {false, true}) {
    w.assign(zeros({3}, f64)), speed.assign(zeros({3}, f64));
    PlainRun plain{Reals(features, 0), Reals(features, 0), {}};
    for (auto [batches, size] : std::vector<std::pair<std::int64_t, std::int64_t>>{{20, 8}, {3, 5}, {0, 4}, {50, 1}}) {
      SCOPED_TRACE(testing::Message() << (eager ? "eager, " : "traced, ") << batches << " batches of " << size);
      Reals xs = wave(batches * size * 3, 0.4), ys = wave(batches * size, 2);
      plain = plain_run(xs, ys, static_cast<std::size_t>(size), features, 0.02, 0.9, plain);
      Tensor x = shaped(xs, {batches, size, 3}), y = shaped(ys, {batches, size});
      expect_close(eager ? epoch(x, y) : traced(x, y), plain.losses, 1e-11, "losses");
      expect_close(w.read(), plain.w, 1e-11, "weights");
      expect_close(speed.read(), plain.speed, 1e-11, "speed");
    }
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

struct Learner {
  keras::Sequential model{keras::Input({2}), keras::Dense(8, {.activation = stet::tanh}), keras::Dense(1)};
  keras::Adam optimizer{0.02};
  Tensor step(const Tensor& x, const Tensor& y) const {
    GradientTape tape;
    Tensor loss = mean(square(model(x) - y));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()), model.trainable_variables());
    return loss;
  }
};

/// Adam's slots are carried too. A scan over batches does what as many calls for one batch each do.
TEST(AlgorithmsTraining, AnOptimizerStepsInTurns) {
  random::seed(4);
  Learner one;
  random::seed(4);
  Learner other;
  Function epoch = function("epoch(xs, ys)", [=](Tensor xs, Tensor ys) {
    return map_fn([&](std::pair<Tensor, Tensor> batch) { return one.step(batch.first, batch.second); },
                  std::pair(xs, ys));
  });
  Function step = function("step(x, y)", [=](Tensor x, Tensor y) { return other.step(x, y); });
  double first = 0, last = 0;
  for (std::int64_t batches : {60, 7, 120}) {
    Tensor xs = cast(shaped(wave(batches * 10 * 2, static_cast<double>(batches)), {batches, 10, 2}), f32);
    Tensor ys = prod(xs, 2, {.keepdims = true});
    Tensor losses = epoch(xs, ys);
    std::vector<Tensor> each;
    for (std::int64_t b = 0; b < batches; ++b) each.push_back(step(xs[b], ys[b]));
    expect_agree(losses, stack(each), 1e-5, "losses");
    for (std::size_t i = 0; i < one.model.trainable_variables().size(); ++i)
      expect_agree(one.model.trainable_variables()[i].read(), other.model.trainable_variables()[i].read(), 1e-4);
    if (first == 0) first = losses[0].item<double>();
    last = losses[-1].item<double>();
  }
  EXPECT_EQ(one.optimizer.iterations().read().item<std::int64_t>(), 187);
  EXPECT_LT(last, first / 5);
  EXPECT_EQ(epoch.trace_count(), 1) << epoch.explain();
  EXPECT_EQ(step.trace_count(), 1) << step.explain();
}

}  // namespace
}  // namespace stet
