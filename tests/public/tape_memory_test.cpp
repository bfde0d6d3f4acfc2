// What a tape keeps: of every op what its gradient reads, until the way back has passed it.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <cmath>

#include "stet/runtime/buffer.h"

namespace stet {
namespace {

std::size_t in_use() { return memory_statistics().bytes_in_use; }
constexpr std::size_t unit = 64 * 1024 * sizeof(float);  // the memory of one tensor below

Tensor block(float value = 0.5f) { return full({256, 256}, value); }

/// How much a tape holds on to after `f` has been computed and its result is all that is left beside.
template <class F>
double kept_units(const F& f, bool persistent = false) {
  Tensor x = block();
  f(x);  // compiled, and what is kept per process is there
  GradientTape tape({.persistent = persistent});
  tape.watch(x);
  std::size_t before = in_use();
  Tensor y = f(x);
  EXPECT_TRUE(y.defined());
  return static_cast<double>(in_use() - before) / static_cast<double>(unit);
}

TEST(TapeMemory, KeepsWhatGradientsRead) {
  // The result itself is one unit where it is as large as x.
  EXPECT_NEAR(kept_units([](Tensor x) { return x + 1 - 2; }), 1, 0.1);
  EXPECT_NEAR(kept_units([](Tensor x) { return -(x * 2) / 4; }), 1, 0.1);
  EXPECT_NEAR(kept_units([](Tensor x) { return tanh(x + 1); }), 1, 0.1);          // by its result
  EXPECT_NEAR(kept_units([](Tensor x) { return exp(sigmoid(x * 2)); }), 2, 0.1);  // by both results
  EXPECT_NEAR(kept_units([](Tensor x) { return relu(x + 1) * 3; }), 2, 0.1);      // relu by its result
  EXPECT_NEAR(kept_units([](Tensor x) { return sin(x + 1); }), 2, 0.1);           // by its operand
  EXPECT_NEAR(kept_units([](Tensor x) { return transpose(x + 1) + 1; }), 1, 0.1);
  EXPECT_NEAR(kept_units([](Tensor x) { return sum(x + 1); }), 0, 0.1);
  EXPECT_NEAR(kept_units([](Tensor x) { return mean(cumsum(x * 2, 0) + 1); }), 0, 0.1);
  EXPECT_NEAR(kept_units([](Tensor x) { return sum(concat({x + 1, x + 2}, 0)); }), 0, 0.1);
  EXPECT_NEAR(kept_units([](Tensor x) { return sum(square(x + 1)); }), 1, 0.1);
  EXPECT_NEAR(kept_units([](Tensor x) { return sum(max(x + 1, 0)); }), 1, 0.1);  // the operand, and a small result
  // A product reads the other factor: here the one that is followed is read for nobody.
  Tensor w = block();
  EXPECT_NEAR(kept_units([=](Tensor x) { return sum(matmul(x + 1, w)); }), 0, 0.1);
  EXPECT_NEAR(kept_units([=](Tensor x) { return sum(matmul(x + 1, x)); }), 1, 0.1);
  EXPECT_NEAR(kept_units([=](Tensor x) { return sum((x + 1) * w); }), 0, 0.1);
  EXPECT_NEAR(kept_units([=](Tensor x) { return sum(where(w > 0, x + 1, x - 1)); }), 0.25, 0.1);  // the condition
  // A function with a gradient of its own keeps what its backward function holds; a function run again its arguments.
  auto twice = custom_gradient([](Tensor x) { return std::pair(exp(sin(x) * 2) * 0 + x, [](Tensor d) { return d; }); });
  EXPECT_NEAR(kept_units([=](Tensor x) { return sum(twice(x + 1)); }), 0, 0.1);
  auto again = [](Tensor x) {
    for (int i = 0; i < 10; ++i) x = sin(x + 1);
    return x;
  };
  EXPECT_NEAR(kept_units([=](Tensor x) { return sum(again(x + 1)); }), 10, 0.1);
  EXPECT_NEAR(kept_units([=](Tensor x) { return sum(recompute(again)(x + 1)); }), 1, 0.1);
}

TEST(TapeMemory, ALongLoopKeepsOneTensorATurnAndFreesItOnTheWayBack) {
  const int turns = 10'000, rows = 4, width = 64;
  const std::size_t turn = rows * width * sizeof(float);
  random::seed(1);
  Variable w(random::normal({width, width}) * 0.1f);
  Tensor h0 = random::normal({rows, width});
  auto run = [&](int count) {
    Tensor h = h0;
    for (int i = 0; i < count; ++i) h = tanh(matmul(h, w));
    return h;
  };
  {
    GradientTape warm;
    warm.gradient(sum(run(3)), w);
  }
  GradientTape tape;
  std::size_t before = in_use();
  Tensor loss = sum(run(turns));
  std::size_t kept = in_use() - before;
  EXPECT_GE(kept, turn * turns);            // it does hold what it needs:
  EXPECT_LE(kept, turn * turns * 11 / 10);  // every h once, and none of the products
  reset_peak_memory();
  std::size_t start = in_use();
  Tensor d = tape.gradient(loss, w);
  // The gradients by w are summed as they come: together they would be 16 times as much as all that was kept.
  EXPECT_LE(memory_statistics().peak_bytes, start + 64 * turn);
  EXPECT_LE(in_use(), before + 64 * turn);  // all of it has gone, though the tape is still there
  EXPECT_TRUE(d.defined());
}

TEST(TapeMemory, ALoopsGradientIsRight) {
  // The same loop by hand in double: h' = tanh(h w), dw = sum over turns of h^T (d (1 - h'^2)).
  const int turns = 50, n = 5;
  std::vector<double> w(n * n), h(n);
  for (int i = 0; i < n * n; ++i) w[static_cast<std::size_t>(i)] = std::sin(i * 1.7) * 0.6;
  for (int i = 0; i < n; ++i) h[static_cast<std::size_t>(i)] = std::cos(i * 0.9);
  std::vector<std::vector<double>> states{h};
  auto at = [&](int row, int column) { return w[static_cast<std::size_t>(row * n + column)]; };
  for (int t = 0; t < turns; ++t) {
    std::vector<double> next(n);
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int i = 0; i < n; ++i) sum += states.back()[static_cast<std::size_t>(i)] * at(i, j);
      next[static_cast<std::size_t>(j)] = std::tanh(sum);
    }
    states.push_back(next);
  }
  std::vector<double> d(n, 1), dw(n * n, 0);
  for (int t = turns; t-- > 0;) {
    std::vector<double> inner(n), back(n, 0);
    for (std::size_t j = 0; j < n; ++j)
      inner[j] = d[j] * (1 - states[static_cast<std::size_t>(t) + 1][j] * states[static_cast<std::size_t>(t) + 1][j]);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        dw[static_cast<std::size_t>(i * n + j)] +=
            states[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)] * inner[static_cast<std::size_t>(j)];
        back[static_cast<std::size_t>(i)] += inner[static_cast<std::size_t>(j)] * at(i, j);
      }
    d = back;
  }
  Variable v(tensor(w, {n, n}));
  Tensor x = tensor(h, {1, n});
  GradientTape tape;
  tape.watch(x);
  Tensor y = x;
  for (int t = 0; t < turns; ++t) y = tanh(matmul(y, v));
  auto [dx, dv] = tape.gradient(y, std::tuple(x, v));
  std::vector<double> got = dv.to_vector<double>(), first = dx.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], dw[i], 1e-12 * (1 + std::abs(dw[i])));
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], d[i], 1e-12);
}

TEST(TapeMemory, RecomputeTakesLessEagerlyAndTraced) {
  // 4 blocks of 8 layers of one unit each: all of them, or one for each block and one block at a time.
  const int blocks = 4, depth = 8;
  random::seed(3);
  Variable w(random::normal({64, 64}) * 0.1f);
  auto block_of = [=](Tensor h) {
    for (int i = 0; i < depth; ++i) h = tanh(matmul(h, w));
    return h;
  };
  auto loss = [=](Tensor h, bool again) {
    for (int b = 0; b < blocks; ++b) h = again ? recompute(block_of)(h) : block_of(h);
    return sum(h * h);
  };
  Function step = function("step(h, again)", [=](Tensor h, bool again) {
    GradientTape tape;
    return tape.gradient(loss(h, again), w);
  });
  Function called = function("called(h, again)", loss);
  Tensor h = full({1024, 64}, 0.5f);
  auto run = [&](int kind, bool again) {
    if (kind == 1) return step(h, again);
    GradientTape tape;
    return tape.gradient(kind == 0 ? loss(h, again) : called(h, again), w);
  };
  on_retrace([](const RetraceEvent&) {});
  std::vector<float> expected = run(0, false).to_vector<float>();
  for (int kind = 0; kind < 3; ++kind) {
    auto peak_units = [&](bool again) {
      run(kind, again);
      std::size_t before = in_use();
      reset_peak_memory();
      std::vector<float> got = run(kind, again).to_vector<float>();
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4) << kind << again;
      return static_cast<double>(memory_statistics().peak_bytes - before) / static_cast<double>(unit);
    };
    double plain = peak_units(false), recomputed = peak_units(true);
    EXPECT_GE(plain, blocks * depth) << kind;
    EXPECT_LE(recomputed, blocks + depth + 8) << kind;
  }
  on_retrace({});
}

TEST(TapeMemory, AFunctionCalledInALoopKeepsWhatItsBackwardProgramUses) {
  Variable w(full({256, 256}, 0.01f));
  Function cell = function("cell(h)", [=](Tensor h) { return tanh(matmul(h, w)); });
  Function moved = function("moved(h)", [](Tensor h) { return h + 1; });
  auto kept = [&](const Function<Tensor(Tensor)>& f) {
    Tensor h = block();
    {
      GradientTape warm;
      warm.watch(h);
      warm.gradient(sum(f(h)), h);
    }
    GradientTape tape;
    tape.watch(h);
    std::size_t before = in_use();
    for (int i = 0; i < 20; ++i) h = f(h);
    return static_cast<double>(in_use() - before) / static_cast<double>(unit);
  };
  EXPECT_NEAR(kept(moved), 0, 0.2);   // the result, instead of the first h
  EXPECT_LE(kept(cell), 2 * 20 + 1);  // h and what the program kept of each turn, not its result once more
}

TEST(TapeMemory, PersistentTapesKeepUntilTheirEnd) {
  Tensor x = block();
  std::size_t before = in_use();
  {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    Tensor y = sum(sin(x + 1));
    for (int i = 0; i < 3; ++i) {
      Tensor d = tape.gradient(y, x);
      EXPECT_NEAR(d.item<float>({0, 0}), std::cos(1.5f), 1e-6);
    }
    EXPECT_GE(in_use(), before + unit);
    tape.reset();
    EXPECT_LT(in_use(), before + unit);
  }
  EXPECT_LT(in_use(), before + unit);
}

TEST(TapeMemory, ReadingsOfAVariableGetTheirGradients) {
  Variable v(tensor(3.f));
  GradientTape tape({.persistent = true});
  Tensor first = v.read(), second = v.read();
  Tensor y = first * first * second;
  EXPECT_EQ(tape.gradient(y, v).item<float>(), 27);
  EXPECT_EQ(tape.gradient(y, first).item<float>(), 18);
  std::vector<Tensor> all = tape.gradient(y, {first, v, second});
  EXPECT_EQ(all[0].item<float>(), 18);
  EXPECT_EQ(all[1].item<float>(), 27);
  EXPECT_EQ(all[2].item<float>(), 9);
  EXPECT_EQ(tape.gradient({first, y}, v).item<float>(), 28);  // a target that is a reading
}

}  // namespace
}  // namespace stet
