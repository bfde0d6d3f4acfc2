// Training, eager and traced, on one thread and two: the same losses.
#include "training.h"

#include <gtest/gtest.h>
#include <stet/stet.h>

namespace stet {
namespace {

using Floats = std::vector<float>;

enum class Optimizer { sgd, adam };
enum class Mode { eager, traced };

struct Outcome {
  Floats losses;
  std::vector<Floats> variables;
  int traces = 0;
  bool operator==(const Outcome&) const = default;
};

/// A hundred steps from the same start, with batches of changing size.
Outcome train(Optimizer optimizer, Mode mode, bool dropout = false) {
  random::seed(31);
  Network network;
  network.make();
  Countdown never;
  auto body = [&](Tensor x, Tensor y) {
    return optimizer == Optimizer::sgd ? sgd_step(network, x, y) : adam_step(network, never, x, y, dropout);
  };
  Function step = function("step(x, y)", body);
  Outcome run;
  for (int n = 0; n < 100; ++n) {
    Batch batch = batch_of(n, 16 + n % 5);
    Tensor loss = mode == Mode::traced ? step(batch.x, batch.y) : body(batch.x, batch.y);
    run.losses.push_back(loss.item<float>());
  }
  run.variables = network.values();
  run.traces = step.trace_count();
  return run;
}

class Training : public ::testing::Test {
 protected:
  void TearDown() override { set_thread_count(threads_before_); }

 private:
  int threads_before_ = thread_count();
};

void expect_equal(const Outcome& eager, const Outcome& traced) {
  for (std::size_t n = 0; n < eager.losses.size(); ++n)
    ASSERT_EQ(eager.losses[n], traced.losses[n]) << "step " << n << ", apart by " << traced.losses[n] - eager.losses[n];
  EXPECT_EQ(eager.variables, traced.variables);
  EXPECT_EQ(traced.traces, 1);
  EXPECT_LT(traced.losses.back(), traced.losses.front());
}

TEST_F(Training, SgdEagerAndTraced) {
  expect_equal(train(Optimizer::sgd, Mode::eager), train(Optimizer::sgd, Mode::traced));
}
TEST_F(Training, AdamEagerAndTraced) {
  expect_equal(train(Optimizer::adam, Mode::eager), train(Optimizer::adam, Mode::traced));
}
TEST_F(Training, AdamWithDropoutEagerAndTraced) {
  expect_equal(train(Optimizer::adam, Mode::eager, true), train(Optimizer::adam, Mode::traced, true));
}

TEST_F(Training, TheSameBitsOnOneAndTwoThreads) {
  for (Optimizer optimizer : {Optimizer::sgd, Optimizer::adam})
    for (Mode mode : {Mode::eager, Mode::traced}) {
      set_thread_count(1);
      Outcome one = train(optimizer, mode, true);
      set_thread_count(2);
      EXPECT_TRUE(train(optimizer, mode, true) == one);
    }
}

/// Sizes at which work is cut into chunks for several threads.
TEST_F(Training, TheSameBitsOnOneTwoAndThreeThreadsForLargeLayers) {
  auto losses = [](Mode mode) {
    random::seed(2);
    Variable w1(random::normal({300, 700}, {.stddev = 0.05})), w2(random::normal({700, 10}, {.stddev = 0.05}));
    Tensor x = random::normal({257, 300}), y = random::randint({257}, 0, 10);
    auto body = [&](Tensor input, Tensor labels) {
      GradientTape tape;
      Tensor loss = mean(sparse_cross_entropy(labels, matmul(tanh(matmul(input, w1)), w2)));
      std::vector<Tensor> d = tape.gradient(loss, std::vector<Variable>{w1, w2});
      w1.assign_sub(0.1f * d[0]);
      w2.assign_sub(0.1f * d[1]);
      return loss;
    };
    Function step = function("step(x, y)", body);
    Floats out;
    for (int n = 0; n < 4; ++n) out.push_back((mode == Mode::traced ? step(x, y) : body(x, y)).item<float>());
    for (float value : w1.read().to_vector<float>()) out.push_back(value);
    return out;
  };
  for (Mode mode : {Mode::eager, Mode::traced}) {
    set_thread_count(1);
    Floats one = losses(mode);
    for (int threads : {2, 3}) {
      set_thread_count(threads);
      EXPECT_TRUE(losses(mode) == one) << threads;
    }
  }
}

}  // namespace
}  // namespace stet
