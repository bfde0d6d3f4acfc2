// if (tensor), cond and scope in traced functions: one trace, both sides, equal to eager.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <random>

#include "expect_error.h"

namespace stet {
namespace {

Tensor act(Tensor x) {
  if (mean(x) > 0.5f) return relu(x);
  return sigmoid(x);
}

TEST(Branch, BothSidesInOneTrace) {
  Function f = function("act(x)", act);
  for (float v : {1.f, -1.f, 2.f, 0.f}) {
    Tensor x = full({3, 2}, v);
    EXPECT_EQ(f(x).to_vector<float>(), act(x).to_vector<float>());
  }
  EXPECT_EQ(f(full({7, 1}, 3)).to_vector<float>(), act(full({7, 1}, 3)).to_vector<float>());
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_CONTAINS(f.graph(), "cond");
}

Tensor ladder(Tensor x) {
  Tensor s = sum(x);
  if (s > 10.f) {
    if (s > 100.f) return x * 3;
    return x * 2;
  }
  if (s < -10.f) x = -x;
  if (max(x) > 5.f) return x + 1;
  return x - 1;
}

TEST(Branch, NestedAndConsecutiveDecisions) {
  Function f = function("ladder(x)", ladder);
  for (float v : {0.f, 2.f, 6.f, 60.f, -20.f, -2.f, 3.f}) {
    Tensor x = tensor({v, v / 2, v * 2});
    EXPECT_EQ(f(x).to_vector<float>(), ladder(x).to_vector<float>()) << v;
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Branch, WritesToVariables) {
  Variable a(0.f), b(0.f);
  auto body = [=](Tensor x) {
    if (x > 0.f)
      a.assign_add(x);
    else
      b.assign_sub(x);
    return a + b;
  };
  Function f = function("count(x)", body);
  EXPECT_EQ(f(2.f).item<float>(), 2);
  EXPECT_EQ(f(-3.f).item<float>(), 5);
  EXPECT_EQ(a.value().item<float>(), 2);
  EXPECT_EQ(b.value().item<float>(), 3);
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Branch, APathThatThrowsThrowsWhenItIsTaken) {
  Variable calls(0);
  Function f = function("checked(x)", [=](Tensor x) {
    calls.assign_add(1);
    if (min(x) < 0.f) throw std::domain_error("negative input");
    return sqrt(x);
  });
  EXPECT_EQ(f(tensor({4.f, 9.f})).to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_THROW(f(tensor({4.f, -9.f, 1.f})), std::domain_error);
  EXPECT_EQ(calls.value().item<int>(), 1);
  EXPECT_EQ(f(tensor({1.f})).to_vector<float>(), (std::vector<float>{1}));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Branch, SidesOfDifferentSize) {
  auto body = [](Tensor x) {
    Tensor y = cond(
        x[0] > 0.f,
        [&] {
          return concat({x, x});
        },
        [&] { return x[range(0, 1)]; });
    return std::tuple{y * 2, sum(y)};
  };
  Function f = function("sizes(x)", body);
  for (float v : {1.f, -1.f, 3.f}) {
    Tensor x = tensor({v, 2.f, 3.f});
    auto [y, s] = f(x);
    auto [ey, es] = body(x);
    EXPECT_EQ(y.to_vector<float>(), ey.to_vector<float>());
    EXPECT_EQ(s.item<float>(), es.item<float>());
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Branch, GradientsThroughAScope) {
  Variable w(tensor({1.f, -2.f, 3.f}));
  auto body = [=](Tensor x) {
    GradientTape tape;
    Tensor h = scope([&] { return act(x * w); });
    Tensor loss = sum(square(h) * x);
    return tape.gradient(loss, w);
  };
  Function f = function("step(x)", body);
  for (float v : {1.f, -1.f, 4.f, 0.1f}) {
    Tensor x = tensor({v, v / 2, v + 1});
    EXPECT_EQ(f(x).to_vector<float>(), body(x).to_vector<float>()) << v;
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Branch, GradientsOfGradientsThroughAScope) {
  auto body = [](Tensor x) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    Tensor y = scope([&] {
      if (sum(x) > 0.f) return x * x * x;
      return exp(x);
    });
    Tensor first = inner.gradient(y, x);
    return outer.gradient(first, x);
  };
  Function f = function("second(x)", body);
  for (float v : {1.f, -1.f, 4.f}) {
    Tensor x = tensor({v, v / 2});
    EXPECT_EQ(f(x).to_vector<float>(), body(x).to_vector<float>()) << v;
  }
}

TEST(Branch, ATapeOutsideOfTheFunction) {
  Function f = function("act(x)", act);
  for (float v : {2.f, -2.f}) {
    Tensor x = tensor({v, v});
    GradientTape a, b;
    a.watch(x);
    b.watch(x);
    EXPECT_EQ(a.gradient(f(x), x).to_vector<float>(), b.gradient(act(x), x).to_vector<float>());
  }
}

TEST(Branch, WhatFollowsAScopeIsRecordedOnce) {
  Function f = function("many(x)", [](Tensor x) {
    for (int i = 0; i < 12; ++i)
      x = scope([&] {
        if (sum(x) > static_cast<float>(i)) return x * 0.5f;
        return x + 1;
      });
    return x;
  });
  auto eager = [](Tensor x) {
    for (int i = 0; i < 12; ++i) x = bool(sum(x) > static_cast<float>(i)) ? x * 0.5f : x + 1;
    return x;
  };
  for (float v : {0.f, 3.f, 50.f}) EXPECT_EQ(f(tensor({v})).to_vector<float>(), eager(tensor({v})).to_vector<float>());
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Branch, InnerScopesOnAPathThatIsRunAgain) {
  auto body = [](Tensor x) {
    Tensor y = scope([&] { return relu(x); });     // no fork
    Tensor z = scope([&] { return act(y - 1); });  // forks
    if (sum(z) > 1.f) return scope([&] { return act(z); });
    return z * 2;
  };
  Function f = function("inner(x)", body);
  for (float v : {0.f, 1.f, 2.f, 5.f, -3.f})
    EXPECT_EQ(f(tensor({v, 1.f})).to_vector<float>(), body(tensor({v, 1.f})).to_vector<float>()) << v;
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Branch, ALoopThatDecidesByValuesStopsWithAMessage) {
  Function f = function("halve(x)", [](Tensor x) {
    while (max(x) > 1.f) x = x / 2;
    return x;
  });
  std::string text = error_of([&] { f(tensor({8.f})); });
  EXPECT_CONTAINS(text, "a loop decides by the value of a tensor, over and over");
  EXPECT_CONTAINS(text, "while_loop");
  EXPECT_CONTAINS(text, "branch_test.cpp:");
  EXPECT_EQ(f.trace_count(), 0);
}

TEST(Branch, TooManyPathsAreNamed) {
  Function f = function("wide(x)", [](Tensor x) {
    if (x[0] > 0.f) x = x + 1;
    if (x[1] > 0.f) x = x + 2;
    if (x[2] > 0.f) x = x + 3;
    if (x[3] > 0.f) x = x + 4;
    if (x[4] > 0.f) x = x + 5;
    if (x[5] > 0.f) x = x + 6;
    if (x[6] > 0.f) x = x + 7;
    return x;
  });
  std::string text = error_of([&] { f(zeros({7})); });
  EXPECT_CONTAINS(text, "more than 64 paths");
  EXPECT_CONTAINS(text, "stet::scope");
}

TEST(Branch, DifferentTypesOnTheSidesAreNamed) {
  Function f = function("types(x)", [](Tensor x) {
    if (sum(x) > 0.f) return x;
    return cast(x, DType::i32);
  });
  std::string text = error_of([&] { f(zeros({2})); });
  EXPECT_CONTAINS(text, "the two sides of an if (tensor) give different types: f32[x_0]");
  EXPECT_CONTAINS(text, "and i32[x_0]");
  Function g = function("numbers(x)", [](Tensor x) {
    if (sum(x) > 0.f) return std::tuple{x, 1};
    return std::tuple{x, 2};
  });
  EXPECT_CONTAINS(error_of([&] { g(zeros({2})); }), "different C++ numbers");
}

TEST(Branch, ATensorOfOneSideCannotBeUsedOutside) {
  Function f = function("leak(x)", [](Tensor x) {
    Tensor kept;
    Tensor y = scope([&] {
      if (sum(x) > 0.f) {
        kept = x * 2;
        return kept;
      }
      return x;
    });
    return y + kept;
  });
  std::string text = error_of([&] { f(zeros({2})); });
  EXPECT_CONTAINS(text, "a tensor made on one side of an if (tensor)");
  EXPECT_CONTAINS(text, "is used outside of it");
}

TEST(Branch, HostCodeThatDiffersBetweenRunsIsCaught) {
  std::mt19937 generator(1);
  Function f = function("random(x)", [&](Tensor x) {
    x = x * static_cast<float>(generator() % 1000);
    if (sum(x) > 0.f) return x;
    return -x;
  });
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "did something else when it was run again");
}

TEST(Branch, RandomNumbersAreDrawnOnTheTakenSideOnly) {
  auto body = [](Tensor x) {
    if (sum(x) > 0.f) return random::uniform({3});
    return zeros({3});
  };
  Function f = function("draw(x)", body);
  random::seed(5);
  std::vector<std::vector<float>> traced, eager;
  for (float v : {1.f, -1.f, 1.f, 1.f}) traced.push_back(f(tensor({v})).to_vector<float>());
  random::seed(5);
  for (float v : {1.f, -1.f, 1.f, 1.f}) eager.push_back(body(tensor({v})).to_vector<float>());
  EXPECT_EQ(traced, eager);
}

TEST(Branch, ConditionsOfOneElementAndOtherTypes) {
  auto body = [](Tensor x) {
    if (x) return x + 1;
    return x - 1;
  };
  Function f = function("one(x)", body);
  for (int v : {0, 3}) EXPECT_EQ(f(tensor({v})).to_vector<int>(), body(tensor({v})).to_vector<int>());
  EXPECT_CONTAINS(error_of([&] { f(tensor({1, 2})); }), "is not defined");
}

TEST(Branch, TheTruthOfSeveralElementsNamesALine) {
  const int line = __LINE__ + 2;
  Function f = function("f(x)", [](Tensor x) {
    if (x > 0.f) return x;
    return -x;
  });
  std::string text = error_of([&] { f(ones({2})); });
  EXPECT_CONTAINS(text, "bool: the truth of bool[");
  EXPECT_CONTAINS(text, "branch_test.cpp:" + std::to_string(line));
}

}  // namespace
}  // namespace stet
