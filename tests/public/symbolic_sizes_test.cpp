// Sizes are symbols from the first trace: how many traces programs need, and what they say when it is more than one.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <random>
#include <set>

#include "expect_error.h"
#include "explanations.h"
#include "training.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

class SymbolicSizes : public WithExplanations {
 protected:
  void SetUp() override {
    WithExplanations::SetUp();
    random::seed(17);
  }
  /// Sizes drawn by the test, the same in every run.
  std::int64_t size(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(numbers_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 numbers_{5};
};

/// "symbolic_sizes_test.cpp:<line>", as explanations name lines of this file.
std::string line_text(int line) { return "symbolic_sizes_test.cpp:" + std::to_string(line); }

TEST_F(SymbolicSizes, BatchesOfATrainingLoop) {
  Network network;
  network.make();
  Countdown never;
  Function step = function("train_step(x, y)", [&](Tensor x, Tensor y) { return adam_step(network, never, x, y); });
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int batch_size : {10, 20, 10, 30}) {
      Batch batch = batch_of(epoch, batch_size);
      step(batch.x, batch.y);
    }
  EXPECT_EQ(step.trace_count(), 1);
  EXPECT_TRUE(events.empty());
}

TEST_F(SymbolicSizes, TwentyEightCallsWithTwentySevenSizes) {
  Network network;
  network.make();
  Countdown never;
  auto body = [&](Tensor x, Tensor y) { return loss_of(network, never, x, y, false); };
  Function loss = function("loss(x, y)", body);
  for (int n = 0; n < 28; ++n) {
    Batch batch = batch_of(n, 1 + 3 * (n % 27));
    EXPECT_NEAR(loss(batch.x, batch.y).item<float>(), body(batch.x, batch.y).item<float>(), 1e-6);
  }
  EXPECT_EQ(loss.trace_count(), 1);
}

/// The mean over the steps of each sequence that count.
Tensor masked_mean(Tensor x, Tensor lengths) {
  Tensor mask = cast(arange(x.dim(1))[{newaxis, ellipsis}] < lengths[{ellipsis, newaxis}], f32);
  Tensor count = maximum(sum(mask, 1, {.keepdims = true}), 1);
  return sum(x * mask[{ellipsis, newaxis}], 1) / count;
}

TEST_F(SymbolicSizes, MaskedPoolingOverBatchesAndLengths) {
  Function pool = function("pool(x, lengths)", masked_mean);
  for (int n = 0; n < 60; ++n) {
    std::int64_t batch = n == 0 ? 1 : n == 59 ? 0 : size(0, 9), length = n == 0 ? 1 : size(0, 40);
    Tensor x = random::normal({batch, length, 5}), lengths = random::randint({batch}, 0, length + 1);
    Tensor pooled = pool(x, lengths);
    EXPECT_EQ(pooled.shape().sizes(), (std::vector<std::int64_t>{batch, 5}));
    EXPECT_EQ(pooled.to_vector<float>(), masked_mean(x, lengths).to_vector<float>()) << batch << " x " << length;
  }
  EXPECT_EQ(pool.trace_count(), 1) << told();
}

TEST_F(SymbolicSizes, EqualSizesAreTiedByBroadcasting) {
  Function add = function("add(x, y)", [](Tensor x, Tensor y) { return x + y; });
  EXPECT_EQ(add(ones({1}), ones({1})).to_vector<float>(), Floats(1, 2));
  EXPECT_CONTAINS(add.explain(), "fact x_0 == y_0, for add at ");
  EXPECT_EQ(add(ones({5}), ones({5})).to_vector<float>(), Floats(5, 2));
  EXPECT_EQ(add(ones({0}), ones({0})).to_vector<float>(), Floats());
  EXPECT_EQ(add.trace_count(), 1);
  // Exactly one of them is 1: a program of its own.
  EXPECT_EQ(add(ones({5}), ones({1})).to_vector<float>(), Floats(5, 2));
  EXPECT_EQ(add.trace_count(), 2);
  EXPECT_CONTAINS(told(),
                  "size            x_0 == y_0 does not hold any more: x_0 is 5, y_0 is 1; add asked for it at ");
  EXPECT_EQ(add(ones({7}), ones({1})).to_vector<float>(), Floats(7, 2));
  EXPECT_EQ(add(ones({0}), ones({1})).to_vector<float>(), Floats());
  EXPECT_EQ(add(ones({9}), ones({9})).to_vector<float>(), Floats(9, 2));
  EXPECT_EQ(add(ones({1}), ones({1})).to_vector<float>(), Floats(1, 2));
  EXPECT_EQ(add.trace_count(), 2);
  EXPECT_EQ(add(ones({1}), ones({7})).to_vector<float>(), Floats(7, 2));
  EXPECT_EQ(add.trace_count(), 3);
  EXPECT_CONTAINS(error_of([&] { add(ones({2}), ones({3})); }), "add: ");
  EXPECT_EQ(add.trace_count(), 3);
  EXPECT_EQ(events.size(), 2u);
}

TEST_F(SymbolicSizes, ASizeOfOneFirstIsNotRememberedAsOne) {
  Function add = function("add(x, y)", [](Tensor x, Tensor y) { return x * 2 + y[{newaxis, ellipsis}]; });
  add(ones({1, 1}), ones({1}));
  add(ones({3, 4}), ones({4}));
  add(ones({0, 2}), ones({2}));
  EXPECT_EQ(add.trace_count(), 1);
  // Broadcast against a literal 1: no fact at all.
  Function scale = function("scale(x)", [](Tensor x) { return x * sum(x, 1, {.keepdims = true}); });
  for (auto [rows, columns] : {std::pair{1, 1}, {1, 4}, {3, 1}, {0, 2}, {2, 0}}) {
    Tensor x = random::normal({rows, columns});
    EXPECT_EQ(scale(x).to_vector<float>(), (x * sum(x, 1, {.keepdims = true})).to_vector<float>());
  }
  EXPECT_EQ(scale.trace_count(), 1);
  EXPECT_EQ(scale.explain().find("fact"), std::string::npos) << scale.explain();
}

TEST_F(SymbolicSizes, GradientsSumExactlyTheAxesThatWereBroadcast) {
  auto body = [](Tensor x, Tensor y) {
    GradientTape tape;
    tape.watch(y);
    return tape.gradient(sum(x * y), y);
  };
  Function f = function("f(x, y)", body);
  for (auto [rows, other] : {std::pair{1, 1}, {4, 4}, {4, 1}, {3, 1}, {1, 1}, {0, 0}, {0, 1}}) {
    Tensor x = random::normal({rows, 3}), y = random::normal({other, 3});
    Tensor gradient = f(x, y), expected = body(x, y);
    EXPECT_EQ(gradient.shape().sizes(), expected.shape().sizes());
    EXPECT_EQ(gradient.to_vector<float>(), expected.to_vector<float>()) << rows << " " << other;
  }
  EXPECT_EQ(f.trace_count(), 2);
}

/// A traced function against the same code run eagerly, over many shapes.
template <class Body, class Arguments>
void expect_one_trace(const char* name, Body body, Arguments arguments, int rounds = 30) {
  SCOPED_TRACE(name);
  Function f = function(name, body);
  for (int n = 0; n < rounds; ++n) {
    auto given = arguments(n);
    Tensor traced = std::apply(f, given), eager = std::apply(body, given);
    EXPECT_EQ(traced.shape().sizes(), eager.shape().sizes());
    EXPECT_EQ(traced.to_vector<float>(), eager.to_vector<float>()) << "round " << n;
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(SymbolicSizes, LayoutsOverRandomShapes) {
  auto first_one = [&](int n) { return n == 0 ? 1 : size(0, 9); };
  auto matrix = [&](int n) { return std::tuple{random::normal({first_one(n), first_one(n)})}; };
  expect_one_trace(
      "flatten(x)", [](Tensor x) { return reshape(x, {-1}) * 2; }, matrix);
  expect_one_trace(
      "keep_first(x)",
      [](Tensor x) {
        return reshape(x, {x.dim(0), x.dim(1) * x.dim(2)}) + 1;
      },
      [&](int n) {
        return std::tuple{random::normal({first_one(n), first_one(n), first_one(n)})};
      });
  expect_one_trace(
      "rest(x)",
      [](Tensor x) {
        return reshape(x, {x.dim(0), -1}) + 1;
      },
      [&](int n) {
        return std::tuple{random::normal({n == 0 ? 1 : size(1, 9), 3, size(0, 4)})};
      });
  expect_one_trace(
      "joined(x, y)",
      [](Tensor x, Tensor y) {
        return concat({x, y, x}, 0) * 3;
      },
      [&](int n) {
        std::int64_t columns = first_one(n);
        return std::tuple{random::normal({first_one(n), columns}), random::normal({first_one(n), columns})};
      });
  expect_one_trace(
      "half(x)",
      [](Tensor x) {
        return slice(x, {x.dim(0) / 2, 0}, {x.dim(0) - x.dim(0) / 2, x.dim(1)}) - 1;
      },
      matrix);
  expect_one_trace(
      "ends(x)",
      [](Tensor x) {
        return x[{Range{.begin = 1}, Range{.end = -1, .step = 2}}] - x[{-1, 0}];
      },
      [&](int) {
        return std::tuple{random::normal({size(1, 9), size(1, 9)})};
      });
  expect_one_trace(
      "turned(x)",
      [](Tensor x) {
        return reshape(transpose(x), {x.dim(1), x.dim(0)}) * reverse(transpose(x), 0);
      },
      matrix);
}

TEST_F(SymbolicSizes, ProductsAndReductionsOverRandomShapes) {
  auto pair_of_matrices = [&](int n) {
    std::int64_t middle = n == 0 ? 1 : size(0, 9);
    return std::tuple{random::normal({n == 0 ? 1 : size(0, 9), middle}),
                      random::normal({middle, n == 0 ? 1 : size(0, 9)})};
  };
  expect_one_trace(
      "product(a, b)", [](Tensor a, Tensor b) { return matmul(a, b) + matmul(a, b, {}); }, pair_of_matrices);
  expect_one_trace(
      "batched(a, b)", [](Tensor a, Tensor b) { return matmul(a, b, {.transpose_b = true}); },
      [&](int n) {
        std::int64_t batch = n == 0 ? 1 : size(0, 4), middle = n == 0 ? 1 : size(0, 5);
        return std::tuple{random::normal({batch, n == 0 ? 1 : size(0, 6), middle}),
                          random::normal({batch, n == 0 ? 1 : size(0, 6), middle})};
      });
  expect_one_trace(
      "sums(x)", [](Tensor x) { return sum(x, 0) + sum(transpose(x), 1); },
      [&](int n) {
        return std::tuple{random::normal({n == 0 ? 1 : size(0, 70), n == 0 ? 1 : size(0, 9)})};
      });
  expect_one_trace(
      "mean(x)", [](Tensor x) { return mean(x, 1) * x.dim(0) + sum(x) / x.dim(1); },
      [&](int n) {
        return std::tuple{random::normal({n == 0 ? 1 : size(1, 9), n == 0 ? 1 : size(1, 40)})};
      });
}

TEST_F(SymbolicSizes, AnEquationIsOneFact) {
  Variable weight(random::normal({12, 2}));
  auto body = [=](Tensor x) { return matmul(reshape(x, {x.dim(0), -1}), weight); };
  Function f = function("f(x)", body);
  for (auto [height, width] : {std::pair{3, 4}, {4, 3}, {2, 6}, {12, 1}, {1, 12}}) {
    Tensor x = random::normal({size(1, 5), height, width});
    EXPECT_EQ(f(x).to_vector<float>(), body(x).to_vector<float>());
  }
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_CONTAINS(f.explain(), "x_1*x_2 == 12, for matmul at ");
  EXPECT_CONTAINS(error_of([&] { f(ones({2, 5, 5})); }), "matmul: ");
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(SymbolicSizes, ASizeThatHostCodeReadsIsPinned) {
  int line = 0;
  Function f = function("unrolled(x)", [&](Tensor x) {
    line = __LINE__ + 1;
    std::int64_t steps = x.dim(0).value();
    Tensor total = x[0];
    for (std::int64_t i = 1; i < steps; ++i) total = total * 0.5f + x[i];
    return total;
  });
  f(ones({3, 2}));
  f(ones({3, 5}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f(ones({4, 2})).to_vector<float>(), Floats(2, 1.875f));
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(told(), "size            x_0 == 3 does not hold any more: x_0 is 4; host code asked for it at ");
  EXPECT_CONTAINS(told(), line_text(line) + "\n");
  EXPECT_CONTAINS(told(), "perhaps keep the size a Dim in host code at ");
  EXPECT_CONTAINS(f.explain(), "fact x_0 == 3, for host code at ");
  f(ones({3, 9}));  // each trace serves its own size
  f(ones({4, 9}));
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_F(SymbolicSizes, ASizeUsedAsANumberPinsNothing) {
  auto body = [](Tensor x) { return sum(x) / x.dim(0) + x.dim(1) * 2 + cast(tensor(x.size()), f32); };
  Function f = function("f(x)", body);
  for (auto [rows, columns] : {std::pair{1, 1}, {3, 2}, {8, 5}}) {
    Tensor x = random::normal({rows, columns});
    EXPECT_EQ(f(x).item<float>(), body(x).item<float>());
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(SymbolicSizes, ComparisonsByHostCodeAreFacts) {
  int line = 0;
  Function f = function("f(x)", [&](Tensor x) {
    line = __LINE__ + 1;
    if (x.dim(0) > 4) return x * 2;
    if (x.dim(0) >= 2) return x * 3;
    return x * 4;
  });
  auto factor = [&](std::int64_t n) { return f(ones({n})).to_vector<float>().front(); };
  EXPECT_EQ(factor(3), 3);
  EXPECT_EQ(factor(2), 3);
  EXPECT_EQ(factor(4), 3);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(factor(9), 2);
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(told(), "x_0 <= 4 does not hold any more: x_0 is 9; host code asked for it at ");
  EXPECT_CONTAINS(told(), line_text(line) + "\n");
  EXPECT_EQ(factor(1), 4);
  EXPECT_EQ(f.trace_count(), 3);
  for (std::int64_t n = 1; n < 30; ++n) EXPECT_EQ(factor(n), n > 4 ? 2 : n >= 2 ? 3 : 4) << n;
  EXPECT_EQ(f.trace_count(), 3);
}

TEST_F(SymbolicSizes, ComparisonsOfTwoSizes) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) {
    if (x.dim(0) == y.dim(0)) return x + y;
    if (x.dim(0) < y.dim(0)) return sum(x) * y;
    return x * sum(y);
  });
  f(ones({3}), ones({3}));
  f(ones({1}), ones({1}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f(ones({2}), ones({3})).to_vector<float>(), Floats(3, 2));
  EXPECT_EQ(f(ones({1}), ones({9})).to_vector<float>(), Floats(9, 1));
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_EQ(f(ones({4}), ones({3})).to_vector<float>(), Floats(4, 3));
  EXPECT_EQ(f.trace_count(), 3);
}

TEST_F(SymbolicSizes, DivisibilityIsACheckOfTheCall) {
  Variable calls(tensor(0));
  Function f = function("rows(x)", [=](Tensor x) {
    calls.assign_add(1);
    return sum(reshape(x, {-1, 4}), 1);
  });
  EXPECT_EQ(f(ones({12})).to_vector<float>(), Floats(3, 4));
  EXPECT_EQ(f(ones({8})).to_vector<float>(), Floats(2, 4));
  std::string error = error_of([&] { f(ones({10})); });
  EXPECT_CONTAINS(error, ", in 'rows' called at ");
  EXPECT_CONTAINS(error, "reshape: cannot reshape [10] with 10 elements to [-1,4]: 10 is not divisible by 4");
  EXPECT_CONTAINS(error, "symbolic_sizes_test.cpp:");
  EXPECT_EQ(calls.read().item<int>(), 2);
  EXPECT_EQ(f(ones({0})).to_vector<float>(), Floats());
  EXPECT_EQ(f(ones({16})).to_vector<float>(), Floats(4, 4));
  EXPECT_EQ(f.trace_count(), 1);
  Function first = function("first(x)", [](Tensor x) { return reshape(x, {-1, 4}); });
  EXPECT_CONTAINS(error_of([&] { first(ones({10})); }), "cannot reshape [10] with 10 elements");
  EXPECT_EQ(first(ones({8})).shape().str(), "[2,4]");  // the trace is one for all sizes: it serves those that fit
  EXPECT_EQ(first.trace_count(), 1);
}

TEST_F(SymbolicSizes, EmptinessIsACheckOfTheCall) {
  Function f = function("largest(x)", [](Tensor x) { return max(x, 1); });
  f(ones({3, 2}));
  EXPECT_EQ(f(ones({0, 2})).to_vector<float>(), Floats());
  std::string error = error_of([&] { f(ones({2, 0})); });
  EXPECT_CONTAINS(error, ", in 'largest' called at ");
  EXPECT_CONTAINS(error, "max: an empty axis has no largest or smallest element");
  EXPECT_EQ(f(ones({2, 1})).to_vector<float>(), Floats(2, 1));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(SymbolicSizes, ManySizesKeepTheirOwnPlans) {
  // More sizes than a trace remembers plans for, and views of other layouts, in an order that thrashes.
  auto body = [](Tensor x) { return tanh(matmul(x, transpose(x))) + sum(x, 1); };
  Function f = function("f(x)", body);
  for (int n = 0; n < 200; ++n) {
    std::int64_t rows = 1 + n * 7 % 23;
    Tensor x = random::normal({rows, 3});
    if (n % 3 == 0) x = transpose(random::normal({3, rows}));
    EXPECT_EQ(f(x).to_vector<float>(), body(x).to_vector<float>());
  }
  EXPECT_EQ(f.trace_count(), 1);
}

}  // namespace
/// That an axis is repeated follows from facts about sizes inside of a min(), which came later.
TEST_F(SymbolicSizes, RepeatedAxesWhoseSizeIsAnExpression) {
  Function f = function("f(a, b, c)", [](Tensor a, Tensor b, Tensor c) {
    linalg::LuResult r = linalg::lu(a);  // l [m, min(m, n)], u [min(m, n), n]
    return std::vector<Tensor>{b + broadcast_to(r.u, b.shape()), c + broadcast_to(r.l, c.shape())};
  });
  std::vector<Tensor> out = f(tensor({{-1.5f}}), zeros({2, 1}), zeros({3, 4}));
  EXPECT_EQ(out[0].to_vector<float>(), std::vector<float>(2, -1.5f));
  EXPECT_EQ(out[1].to_vector<float>(), std::vector<float>(12, 1.f));
}

TEST_F(SymbolicSizes, AVariableCountsSizesInOneTrace) {
  Variable count(tensor(0.f), {.trainable = false}), total(tensor(std::int64_t{0}), {.trainable = false});
  Function f = function("f(x)", [=](Tensor x) {
    count.assign_add(x.dim(0));
    total.assign_sub(x.size());
    return count.read();
  });
  for (int n : {1, 2, 3}) f(ones({n, 2}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(count.read().item<float>(), 6);
  EXPECT_EQ(total.read().item<std::int64_t>(), -12);
}

}  // namespace stet
