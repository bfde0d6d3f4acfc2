// Learning to learn (MAML): steps of gradient descent in a loop, and the gradient of what they lead to by where they
// began and by how long they are, which is of second order in the loss.
#include "algorithms.h"

namespace stet {
namespace {

struct Task {
  Tensor x, y, new_x, new_y;  // [examples, features], [examples]; those to learn from, and those to do well on
  STET_FIELDS(x, y, new_x, new_y)
};
Task task_of(std::int64_t examples, std::int64_t features, double phase) {
  return {shaped(wave(examples * features, phase), {examples, features}), tensor(wave(examples, phase + 1)),
          shaped(wave((examples + 2) * features, phase + 2), {examples + 2, features}),
          tensor(wave(examples + 2, phase + 3))};
}

Tensor linear_loss(const Tensor& w, const Tensor& x, const Tensor& y) { return mean(square(matmul(x, w) - y)); }

Tensor adapted(Tensor w, const Task& task, const Tensor& rate, const Dim& steps, LoopOptions options = {}) {
  return for_loop(
      steps,
      [&](Tensor w) {
        GradientTape tape;
        tape.watch(w);
        return w - rate * tape.gradient(linear_loss(w, task.x, task.y), w);
      },
      w, options);
}

/// The loss is quadratic: a step is w - rate (H w - c) with H = 2 x'x / n and c = 2 x'y / n, so that the gradient by
/// the first w is (I - rate H)^steps times that at the last, and by the rate -(H w - c) of every step, moved on.
TEST(AlgorithmsMaml, OfALinearModelIsAPowerOfAMatrix) {
  auto outer = [](Task task, Tensor w, Tensor rate, Dim steps, LoopOptions options) {
    GradientTape tape;
    tape.watch(w), tape.watch(rate);
    Tensor loss = linear_loss(adapted(w, task, rate, steps, options), task.new_x, task.new_y);
    std::vector<Tensor> d = tape.gradient(loss, {w, rate}, {.unconnected = "zero"});
    return std::tuple(loss, d[0], d[1]);
  };
  Function traced = function("outer(task, w, rate, steps)", [&](Task task, Tensor w, Tensor rate, Dim steps) {
    return outer(task, w, rate, steps, {});
  });
  Function saving = function("saving(task, w, rate, steps)", [&](Task task, Tensor w, Tensor rate, Dim steps) {
    return outer(task, w, rate, steps, {.checkpoint_every = 2});
  });
  for (std::int64_t features : {3, 1, 6})
    for (std::int64_t steps : {5, 1, 0, 12}) {
      SCOPED_TRACE(testing::Message() << features << " features, " << steps << " steps");
      Task task = task_of(8, features, 0.5);
      const double rate = 0.1;
      Tensor w = tensor(wave(features, 4));
      Tensor h = matmul(task.x, task.x, {.transpose_a = true}) / 4, c = matmul(task.y, task.x) / 4;
      Tensor step = eye(features, {.dtype = f64}) - rate * h, by_rate = zeros({features}, f64), at = w;
      for (std::int64_t i = 0; i < steps; ++i) {
        by_rate = matmul(step, by_rate) - (matmul(h, at) - c);
        at = matmul(step, at) + rate * c;
      }
      Tensor at_end = 2 * matmul(matmul(task.new_x, at) - task.new_y, task.new_x) / 10.0;
      Tensor expected = matmul(linalg::matrix_power(step, steps), at_end);
      auto check = [&](std::tuple<Tensor, Tensor, Tensor> got, const char* what) {
        expect_agree(std::get<0>(got), linear_loss(at, task.new_x, task.new_y), 1e-12, what);
        expect_agree(std::get<1>(got), expected, 1e-12, what);
        expect_agree(std::get<2>(got), sum(at_end * by_rate), 1e-12, what);
      };
      check(outer(task, w, tensor(rate), steps, {}), "eager");
      check(traced(task, w, tensor(rate), steps), "traced");
      check(saving(task, w, tensor(rate), steps), "with checkpoints");
    }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
  EXPECT_EQ(saving.trace_count(), 1) << saving.explain();
}

// --- a network, many tasks, and learning from them

struct Network {
  Tensor w1, b1, w2;
  STET_FIELDS(w1, b1, w2)
};
constexpr std::size_t hidden = 3;

Tensor network_loss(const Network& n, const Tensor& x, const Tensor& y) {
  return mean(square(matmul(tanh(matmul(x, n.w1) + n.b1), n.w2) - y));
}
Tensor after_learning(Network network, const Task& task, double rate, const Dim& steps) {
  Network learned = for_loop(
      steps,
      [&](Network n) {
        GradientTape tape;
        tape.watch(n);
        Network d = tape.gradient(network_loss(n, task.x, task.y), n);
        return Network{n.w1 - rate * d.w1, n.b1 - rate * d.b1, n.w2 - rate * d.w2};
      },
      network);
  return network_loss(learned, task.new_x, task.new_y);
}

/// The same of one feature, with the inner gradient written out.
double plain_loss(const Reals& p, const Reals& x, const Reals& y, Reals* slope) {
  double loss = 0;
  const double n = static_cast<double>(x.size());
  if (slope) slope->assign(p.size(), 0);
  for (std::size_t e = 0; e < x.size(); ++e) {
    double out = 0;
    Reals unit(hidden);
    for (std::size_t i = 0; i < hidden; ++i) {
      unit[i] = std::tanh(x[e] * p[i] + p[hidden + i]);
      out += unit[i] * p[2 * hidden + i];
    }
    loss += (out - y[e]) * (out - y[e]) / n;
    for (std::size_t i = 0; slope && i < hidden; ++i) {
      const double back = 2 * (out - y[e]) / n, inside = back * p[2 * hidden + i] * (1 - unit[i] * unit[i]);
      (*slope)[i] += inside * x[e];
      (*slope)[hidden + i] += inside;
      (*slope)[2 * hidden + i] += back * unit[i];
    }
  }
  return loss;
}
double plain_after_learning(Reals p, const Task& task, double rate, std::int64_t steps) {
  for (std::int64_t s = 0; s < steps; ++s) {
    Reals slope;
    plain_loss(p, reals(task.x), reals(task.y), &slope);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] -= rate * slope[i];
  }
  return plain_loss(p, reals(task.new_x), reals(task.new_y), nullptr);
}

/// Over a batch of tasks, one after the other: a loop in a loop, with a tape inside of each turn and one around all.
TEST(AlgorithmsMaml, OfANetworkOverManyTasks) {
  auto outer = [](Task tasks, Network network, Dim steps) {
    GradientTape tape;
    tape.watch(network);
    Tensor loss = mean(map_fn([&](Task task) { return after_learning(network, task, 0.2, steps); }, tasks));
    return std::pair(loss, tape.gradient(loss, network));
  };
  Function traced = function("outer(tasks, network, steps)", outer);
  for (std::int64_t count : {3, 1})
    for (std::int64_t steps : {4, 1, 7}) {
      SCOPED_TRACE(testing::Message() << count << " tasks, " << steps << " steps");
      std::vector<Task> each;
      for (std::int64_t i = 0; i < count; ++i) each.push_back(task_of(5, 1, static_cast<double>(i)));
      auto stacked = [&](Tensor Task::*part) {
        std::vector<Tensor> parts;
        for (const Task& task : each) parts.push_back(task.*part);
        return stack(parts);
      };
      Task tasks{stacked(&Task::x), stacked(&Task::y), stacked(&Task::new_x), stacked(&Task::new_y)};
      Reals p = wave(3 * hidden, 0.8);
      auto plain = [&](const Reals& at) {
        double out = 0;
        for (const Task& task : each) out += plain_after_learning(at, task, 0.2, steps) / static_cast<double>(count);
        return out;
      };
      Reals expected = differences(plain, p);
      Tensor all = tensor(p);
      Network network{reshape(all[range(0, 3)], {1, 3}), all[range(3, 6)], all[range(6, 9)]};
      for (bool eager : {true, false}) {
        auto [loss, d] = eager ? outer(tasks, network, steps) : traced(tasks, network, steps);
        expect_close(loss, {plain(p)}, 1e-12, "loss");
        expect_close(concat({ravel(d.w1), d.b1, d.w2}), expected, 1e-9, "gradient");
      }
    }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
}

}  // namespace
}  // namespace stet
