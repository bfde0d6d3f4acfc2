// Variables and gradients as a user sees them, eagerly.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;

// --- Variable

TEST(VariableTest, ReadKeepsItsValueWhenTheVariableChanges) {
  Variable v(tensor({1.f, 2.f}), {.name = "v"});
  Tensor before = v.read();
  EXPECT_EQ(v.assign_add(tensor({10.f, 10.f})).to_vector<float>(), (Floats{11, 12}));
  EXPECT_EQ(before.to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ((v * 2).to_vector<float>(), (Floats{22, 24}));
  v.assign_sub(tensor({1.f, 2.f}));
  Variable same = v;  // a handle
  same.assign(tensor({0.f, 0.f}));
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{0, 0}));
  EXPECT_EQ(v.id(), same.id());
}

TEST(VariableTest, KeepsTypeAndShape) {
  Variable v(zeros({2, 3}), {.name = "kernel"});
  std::string error = error_of([&] { v.assign(zeros({3, 2})); });
  EXPECT_CONTAINS(error, "assign: a Variable 'kernel' of f32[2,3] cannot hold f32[3,2]");
  EXPECT_CONTAINS(error, "tape_test.cpp:");
  EXPECT_CONTAINS(error_of([&] {
                    v.assign_add(zeros({2, 3}, f64));
                  }),
                  "assign_add: a Variable 'kernel' of f32[2,3] cannot hold f64[2,3]");
  EXPECT_EQ(sum(v).item<float>(), 0);  // nothing was changed
  Variable count(tensor(0), {.trainable = false});
  EXPECT_EQ(count.assign_add(1).item<int>(), 1);
  Variable nothing;
  EXPECT_CONTAINS(error_of([&] { nothing + 1; }), "read: the Variable is undefined");
  EXPECT_CONTAINS(error_of([&] { nothing.assign(1); }), "assign: the Variable is undefined");
}

TEST(VariableTest, NumbersOutOfRangeNameTheCall) {
  Variable v(zeros({}, u8), {.trainable = false});
  std::string error = error_of([&] { v.assign_add(300); });
  EXPECT_CONTAINS(error, "assign_add: the number 300 is out of range for u8");
  EXPECT_CONTAINS(error, "tape_test.cpp:");
}

TEST(VariableTest, ThreadsLoseNothing) {
  Variable v(tensor(0.f));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) v.assign_add(1.f);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(v.value().item<float>(), 800);
}

// --- GradientTape

/// d(f)/d(x) along every coordinate by central differences in f64.
std::vector<double> numeric_gradient(const std::function<Tensor(Tensor)>& f, const Tensor& x) {
  std::vector<double> values = x.to_vector<double>(), out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double step = 1e-6, saved = values[i];
    values[i] = saved + step;
    double high = sum(f(tensor(values, x.shape()))).item<double>();
    values[i] = saved - step;
    double low = sum(f(tensor(values, x.shape()))).item<double>();
    values[i] = saved;
    out.push_back((high - low) / (2 * step));
  }
  return out;
}

void expect_near(const Tensor& gradient, const std::vector<double>& expected, double tolerance = 1e-6) {
  std::vector<double> actual = gradient.to_vector<double>();
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "at " << i;
}

TEST(TapeTest, ChainsOfEveryKind) {
  random::seed(3);
  Tensor w = random::normal({4, 3}, {.dtype = f64}), b = random::normal({3}, {.dtype = f64});
  std::vector<std::function<Tensor(Tensor)>> functions = {
      [&](Tensor x) { return tanh(matmul(x, w) + b); },
      [&](Tensor x) { return softmax(x) * 2; },
      [&](Tensor x) { return log_softmax(matmul(x, w)) * b; },
      [&](Tensor x) { return layer_norm(x, 1.5, b[0]); },
      [&](Tensor x) { return max(x, 1) * mean(square(x), 1); },
      [&](Tensor x) {
        return x[{Range{.step = -1}, range(1, 4, 2)}] * x[{Range{}, 0}][{ellipsis, newaxis}];
      },
      [&](Tensor x) {
        return concat({x, x * x}, 1) * gather(x, tensor({1, 0, 1}))[0][0];
      },
      [&](Tensor x) {
        return sparse_cross_entropy(tensor({2, 0}), matmul(x, w));
      },
      [&](Tensor x) { return gelu(x) + silu(x) * relu(x) + where(x > 0, exp(x), x * x); },
      [&](Tensor x) {
        return reshape(transpose(x), {2, 4}) / (x * x + 1);
      },
      [&](Tensor x) {
        return conv2d(reshape(x, {1, 2, 4, 1}), reshape(w, {2, 2, 1, 3}), {.same_padding = true});
      },
      [&](Tensor x) {
        return broadcast_to(sum(x, 0, {.keepdims = true}), {3, 4}) * stack({x[0], x[1], x[0]});
      },
  };
  Tensor x = random::normal({2, 4}, {.dtype = f64});
  for (std::size_t i = 0; i < functions.size(); ++i) {
    SCOPED_TRACE(i);
    GradientTape tape;
    tape.watch(x);
    Tensor y = functions[i](x);
    expect_near(tape.gradient(y, x), numeric_gradient(functions[i], x), 2e-5);
  }
}

TEST(TapeTest, WatchesTrainableVariables) {
  Variable w(tensor({{1.f}, {2.f}})), b(tensor({0.5f})), frozen(tensor({3.f}), {.trainable = false});
  Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}});
  GradientTape tape;
  Tensor loss = sum(square(matmul(x, w) + b) * frozen);
  std::vector<Tensor> d = tape.gradient(loss, std::vector<Variable>{w, b, frozen});
  // 2 * 3 * x^T (x w + b)
  EXPECT_EQ(d[0].to_vector<float>(), (Floats{6 * (5.5f + 3 * 11.5f), 6 * (2 * 5.5f + 4 * 11.5f)}));
  EXPECT_EQ(d[1].to_vector<float>(), (Floats{6 * (5.5f + 11.5f)}));
  EXPECT_FALSE(d[2].defined());
}

TEST(TapeTest, AVariableReadTwiceGetsBothGradients) {
  Variable v(tensor(3.f));
  GradientTape tape;
  Tensor y = v * v.read() + v;
  EXPECT_EQ(tape.gradient(y, v).item<float>(), 7);
}

TEST(TapeTest, GradientsEndAtWhatWasAssigned) {
  Variable v(tensor(3.f)), w(tensor(2.f));
  GradientTape tape;
  v.assign(w * 5);
  Tensor y = v * v;
  std::vector<Tensor> d = tape.gradient(y, std::vector<Variable>{v, w});
  EXPECT_EQ(d[0].item<float>(), 20);
  EXPECT_FALSE(d[1].defined());
}

TEST(TapeTest, SecondDerivatives) {
  Tensor x = tensor({0.5, 1.5});
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(tanh(x) * x * x, x);
  }
  Tensor second = outer.gradient(first, x);
  std::vector<double> expected;
  for (double v : {0.5, 1.5}) {
    double t = std::tanh(v), s = 1 - t * t;
    expected.push_back(-2 * t * s * v * v + 4 * s * v + 2 * t);
  }
  expect_near(second, expected, 1e-12);
}

TEST(TapeTest, SecondDerivativesThroughMatrixProductsAndReductions) {
  Tensor x = tensor({{0.3, -0.2}, {0.1, 0.4}}), w = tensor({{1.0, 2.0}, {-1.0, 0.5}});
  auto first_derivative = [&](Tensor at) {
    GradientTape inner;
    inner.watch(at);
    return inner.gradient(sum(softmax(matmul(at, w))[{Range{}, 0}] * mean(at * at)), at);
  };
  GradientTape outer;
  outer.watch(x);
  expect_near(outer.gradient(first_derivative(x), x), numeric_gradient(first_derivative, x), 1e-5);
}

TEST(TapeTest, OncePersistentlyAndWrongUses) {
  Tensor x = tensor(2.f);
  GradientTape once;
  once.watch(x);
  Tensor y = x * x * x;
  EXPECT_EQ(once.gradient(y, x).item<float>(), 12);
  std::string error = error_of([&] { once.gradient(y, x); });
  EXPECT_CONTAINS(error, "gradient: this tape has given its gradients already");
  EXPECT_CONTAINS(error, "fix: make it GradientTape tape({.persistent = true})");

  GradientTape often({.persistent = true});
  often.watch(x);
  Tensor z = x * x;
  EXPECT_EQ(often.gradient(z, x).item<float>(), 4);
  EXPECT_EQ(often.gradient(z * 3, x).item<float>(), 12);

  EXPECT_CONTAINS(error_of([&] { often.watch(tensor({1, 2})); }), "watch: i32[2] has no gradient");
  EXPECT_CONTAINS(error_of([&] { often.gradient(tensor({1, 2}), x); }), "gradient: the target i32[2] is not floating");
  EXPECT_CONTAINS(error_of([&] { often.gradient(Tensor(), x); }), "gradient: the tensor is undefined");
  EXPECT_FALSE(often.gradient(tensor(1.f), x).defined());
  EXPECT_EQ(often.gradient(x, x).item<float>(), 1);
}

TEST(TapeTest, TrainsARegression) {
  random::seed(5);
  Tensor x = random::normal({256, 3}), truth = tensor({{1.f}, {-2.f}, {0.5f}}), y = matmul(x, truth) + 0.25f;
  Variable w(zeros({3, 1})), b(zeros({1}));
  for (int step = 0; step < 200; ++step) {
    GradientTape tape;
    Tensor loss = mean(square(matmul(x, w) + b - y));
    std::vector<Tensor> d = tape.gradient(loss, std::vector<Variable>{w, b});
    w.assign_sub(0.1f * d[0]);
    b.assign_sub(0.1f * d[1]);
  }
  EXPECT_LT(max(abs(w - truth)).item<float>(), 1e-3);
  EXPECT_NEAR(b.value().item<float>(), 0.25f, 1e-3);
}

}  // namespace
