// A traced function under a GradientTape: one op to the tape, with a forward and a backward program, equal to eager.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include "expect_error.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

Floats floats(const Tensor& t) { return t.defined() ? t.to_vector<float>() : Floats{}; }

/// The gradients of sum(f(x)) with respect to x and the Variables, and what the Variables hold then; state is restored.
template <class F>
std::vector<Floats> gradients(const F& f, const Tensor& x, const std::vector<Variable>& variables) {
  std::vector<Tensor> before;
  for (const Variable& v : variables) before.push_back(v.read());
  std::vector<Floats> out;
  {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    Tensor y = f(x);
    out.push_back(floats(y));
    out.push_back(floats(tape.gradient(y, x)));
    for (const Variable& v : variables) out.push_back(floats(tape.gradient(y, v)));
  }
  for (const Variable& v : variables) out.push_back(floats(v.read()));
  for (std::size_t i = 0; i < variables.size(); ++i) variables[i].assign(before[i]);
  return out;
}

template <class F>
void expect_equal(const F& body, const std::vector<Tensor>& xs, const std::vector<Variable>& variables) {
  Function f = function("f(x)", body);
  for (int round = 0; round < 2; ++round)
    for (const Tensor& x : xs) EXPECT_EQ(gradients(f, x, variables), gradients(body, x, variables)) << x.shape().str();
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(FunctionUnderTape, WritesAndReadsOfVariables) {
  Variable m(tensor({1.f})), v(tensor({2.f}));
  std::vector<Tensor> xs = {tensor({3.f}), tensor({-1.f})};
  expect_equal(
      [=](Tensor x) {
        m.assign(m * 0.9f + mean(x) * 0.1f);
        return x * x - m;
      },
      xs, {m, v});
  expect_equal(
      [=](Tensor x) {
        v.assign(v * 2);
        return x * v;
      },
      xs, {v, m});
  expect_equal([=](Tensor x) { return v.assign_add(x) * v; }, xs, {v, m});
  expect_equal(
      [=](Tensor x) {
        Tensor old = v.read();
        v.assign(old * x);
        m.assign(v);
        return old * v + m * x;
      },
      xs, {v, m});
}

TEST(FunctionUnderTape, CapturedTensorsThatAreWatched) {
  for (int size : {1, 4, 40}) {
    Tensor c = full({size}, 2), other = full({size}, 2);
    auto body = [=](Tensor x) { return sum(x * c * c * other); };
    Function f = function("f(x)", body);
    for (bool traced : {false, true}) {
      GradientTape tape;
      tape.watch(c);
      Tensor y = traced ? f(full({size}, 3)) : body(full({size}, 3));
      EXPECT_EQ(floats(tape.gradient(y, c)), Floats(static_cast<std::size_t>(size), 24)) << traced;
    }
  }
}

TEST(FunctionUnderTape, BranchesAndDraws) {
  Variable w(tensor({1.f, -2.f, 3.f}));
  std::vector<Tensor> xs = {tensor({1.f, 2.f, 3.f}), tensor({-1.f, 2.f, -3.f})};
  expect_equal(
      [=](Tensor x) {
        Tensor h = x * w;
        if (sum(h) > 5.f) {
          w.assign(w * 2);
          return h * w;
        }
        return exp(h) * sum(w);
      },
      xs, {w});
  auto noisy = [=](Tensor x) { return sum(x * w * random::uniform({x.dim(0)})); };
  Function f = function("f(x)", noisy);
  for (const Tensor& x : xs) {
    random::seed(4);
    std::vector<Floats> traced = gradients(f, x, {w});
    random::seed(4);
    EXPECT_EQ(traced, gradients(noisy, x, {w}));
  }
}

TEST(FunctionUnderTape, OnePairForAllSizesAndSaidInExplain) {
  SKIP_WHEN_VERIFYING();  // which makes pairs of its own
  Variable w(ones({3, 2}));
  Function f = function("f(x)", [=](Tensor x) { return mean(tanh(matmul(x, w))); });
  for (int n : {4, 1, 7, 0, 4}) {
    Tensor x = random::normal({n, 3});
    GradientTape tape;
    Tensor y = f(x);
    EXPECT_EQ(tape.gradient(y, w).shape().str(), "[3,2]");
  }
  std::string text = f.explain();
  EXPECT_CONTAINS(text, "under a tape: ");
  EXPECT_CONTAINS(text, " steps forward, ");
  EXPECT_CONTAINS(text, " kept for a gradient; 5 calls");
  EXPECT_EQ(text.find("under a tape"), text.rfind("under a tape"));  // one pair
  // Nothing is watched: the tape sees nothing, and no pair is made for it.
  Function plain = function("plain(x)", [](Tensor x) { return x * 2; });
  GradientTape tape;
  plain(ones({2}));
  EXPECT_EQ(plain.explain().find("under a tape"), std::string::npos);
}

TEST(FunctionUnderTape, SecondOrder) {
  Variable w(tensor({2.f, -1.f}));
  auto body = [=](Tensor x) { return sum(x * x * x * w * w); };
  Function f = function("f(x)", body);
  auto second = [&](const auto& g) {
    Tensor x = tensor({1.f, 3.f});
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    Tensor d = inner.gradient(g(x), x);
    std::vector<Tensor> dd = outer.gradient(sum(d * d), {x, w});
    return std::pair{floats(dd[0]), floats(dd[1])};
  };
  EXPECT_EQ(second(f), second(body));
}

TEST(FunctionUnderTape, SeveralResultsAndUnusedOnes) {
  Variable w(3.f);
  Function f = function("f(x)", [=](Tensor x) { return std::tuple{x * w, argmax(x, 0), x + 1}; });
  GradientTape tape({.persistent = true});
  auto [a, b, c] = f(tensor({1.f, 5.f}));
  EXPECT_EQ(tape.gradient(a, w).item<float>(), 6);
  EXPECT_EQ(tape.gradient(sum(a) * 2 + sum(c), w).item<float>(), 12);
  EXPECT_FALSE(tape.gradient(c, w).defined());
  EXPECT_EQ(b.item<int>(), 1);
}

TEST(FunctionUnderTape, SizesThatDependOnValues) {
  auto body = [](Tensor x) { return sum(gather(x, reshape(nonzero(x > 0.f), {-1}))); };
  Function f = function("f(x)", body);
  for (const Tensor& x : {tensor({1.f, -2.f, 3.f}), tensor({-1.f, -2.f})})
    EXPECT_EQ(gradients(f, x, {}), gradients(body, x, {}));
}

}  // namespace
}  // namespace stet
