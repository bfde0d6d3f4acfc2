// Fixes that are printed with a retrace: each was tried on the calls that were recorded, or says "perhaps".
#include <gtest/gtest.h>
#include <stet/stet.h>

#include "expect_error.h"
#include "explanations.h"

namespace stet {
namespace {

class Fixes : public WithExplanations {
 protected:
  /// The lines of the last explanation from "fix" on.
  std::string fix() const {
    std::string all = told();
    std::size_t at = all.find("  fix             ");
    return at == std::string::npos ? "no fix in\n" + all : all.substr(at + 18);
  }
  void expect_no(const std::string& part) const { EXPECT_EQ(told().find(part), std::string::npos) << told(); }
};

struct Settings {
  float rate;
  int steps;
  STET_FIELDS(rate, steps)
};

// --- dtypes

TEST_F(Fixes, FloatLabelsAreNotRoundedAway) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return sum(x * y); });
  f(ones({3}), ones({3}, i64));
  f(ones({3}), ones({3}));
  EXPECT_CONTAINS(fix(), "cast(y, f32) before the call, which rounds i64 (2 traces -> 1)\n");
  Function g = function("g(x, y)", [](Tensor x, Tensor y) { return sum(x * y); });
  g(ones({3}), ones({3}));
  g(ones({3}), ones({3}, u8));
  EXPECT_CONTAINS(fix(), "cast(y, f32) before the call (2 traces -> 1)\n");
}

TEST_F(Fixes, TheWiderInteger) {
  Function f = function("f(y)", [](Tensor y) { return y * 2; });
  f(ones({3}, i32));
  f(ones({3}, i64));
  EXPECT_CONTAINS(fix(), "cast(y, i64) before the call (2 traces -> 1)\n");
}

TEST_F(Fixes, OfTwoRealTypesTheOneThatMostCallsUse) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  for (int n = 1; n < 5; ++n) f(ones({n}));
  f(ones({3}, f64));
  EXPECT_CONTAINS(fix(), "cast(x, f32) before the call, which rounds f64 (2 traces -> 1)\n");
}

TEST_F(Fixes, ElementsOfAListAreNotTheList) {
  Function f = function("f(list)", [](std::vector<Tensor> list) { return list[0] + list[1]; });
  f({ones({2}), ones({2})});
  f({ones({2}, f64), ones({2}, f64)});
  EXPECT_CONTAINS(told(), "argument 0 'list[0]' f32[list_");
  EXPECT_CONTAINS(fix(), "cast the elements of list to f32 before the call, which rounds f64 (2 traces -> 1)\n");
  expect_no("cast(list");
}

TEST_F(Fixes, TwoArgumentsChangedTwoFixes) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return sum(x) + sum(y); });
  f(ones({3}), ones({3}, i32));
  f(ones({3}, f64), ones({3}, i64));
  EXPECT_CONTAINS(fix(),
                  "cast(x, f32) before the call, which rounds f64; and cast(y, i64) before the call (2 traces -> 1)\n");
}

TEST_F(Fixes, TheOneOfTwoThatIsEnough) {
  Function f = function("f(x, n)", [](Tensor x, float n) { return x * n; });
  f(ones({3}), 1.f);
  f(ones({3}), 2.f);
  f(ones({3}), 3.f);
  EXPECT_CONTAINS(fix(), "(3 traces -> 1)");
  f(ones({3}, f64), 3.f);
  EXPECT_CONTAINS(fix(), "cast(x, f32) before the call, which rounds f64 (4 traces -> 3)\n");
}

// --- C++ numbers

TEST_F(Fixes, ARealNumberBecomesAScalar) {
  Function f = function("f(x, rate)", [](Tensor x, float rate) { return x * rate; });
  for (int n = 0; n < 12; ++n) f(ones({2}), static_cast<float>(n));
  EXPECT_CONTAINS(fix(),
                  "declare rate as Scalar instead of a C++ number: then it is an input of the program (12 traces "
                  "-> 1)\n");
  // And so it is.
  Function g = function("g(x, rate)", [](Tensor x, Scalar rate) { return x * rate; });
  for (int n = 0; n < 12; ++n) g(ones({2}), static_cast<float>(n));
  EXPECT_EQ(g.trace_count(), 1);
}

TEST_F(Fixes, AWholeNumberMayBeALoopCount) {
  Function f = function("f(x, steps)", [](Tensor x, int steps) {
    for (int i = 0; i < steps; ++i) x = x * 2;
    return x;
  });
  f(ones({1}), 2);
  f(ones({1}), 3);
  EXPECT_CONTAINS(fix(),
                  "perhaps declare steps as Scalar instead of a C++ number: then it is an input of the program, if "
                  "host code only computes with it (a loop count or a size has to stay a number) (2 traces -> "
                  "1)\n");
}

TEST_F(Fixes, ABoolNeedsNone) {
  Function f = function("f(x, training)", [](Tensor x, bool training) { return training ? x * 2 : x; });
  f(ones({1}), true);
  f(ones({1}), false);
  EXPECT_CONTAINS(fix(), "none is needed: a bool makes two traces at most\n");
  expect_no("Scalar");
}

TEST_F(Fixes, AMemberIsNamed) {
  Function f = function("f(x, a)", [](Tensor x, Settings a) { return x * a.rate * a.steps; });
  f(ones({1}), {0.5f, 2});
  f(ones({1}), {0.5f, 3});
  EXPECT_CONTAINS(told(), "argument 1 'a.steps' 2 -> 3   the value of a C++ number changed");
  EXPECT_CONTAINS(fix(), "perhaps declare a.steps as Scalar");
  f(ones({1}), {0.25f, 3});
  EXPECT_CONTAINS(told(), "argument 1 'a.rate' 0.5 -> 0.25   ");
  EXPECT_CONTAINS(fix(), "declare a.rate as Scalar");
}

TEST_F(Fixes, NumbersOfAListBecomeATensor) {
  Function f = function("f(x, weights)", [](Tensor x, std::vector<float> weights) { return x * weights[0]; });
  f(ones({1}), {1.f, 2.f});
  f(ones({1}), {3.f, 4.f});
  EXPECT_CONTAINS(told(), "argument 1 'weights[0]' 1 -> 3   ");
  EXPECT_CONTAINS(fix(), "pass weights as one Tensor instead of C++ numbers (2 traces -> 1)\n");
}

// --- sizes

TEST_F(Fixes, ASizeThatHostCodePinnedSaysItsValue) {
  int line = __LINE__ + 2;
  Function f = function("f(x)", [](Tensor x) {
    std::int64_t n = x.dim(0).value();
    return x * static_cast<float>(n);
  });
  f(ones({4}));
  f(ones({7}));
  EXPECT_CONTAINS(told(), "size            x_0 == 4 does not hold any more: x_0 is 7; host code asked for it at " +
                              std::string(__FILE__) + ":" + std::to_string(line));
  f(ones({5}));
  EXPECT_CONTAINS(fix(), "let all calls agree in these sizes, or pad axis 0 of x to 7 (3 traces -> 1)\n");
  EXPECT_CONTAINS(fix(), "perhaps keep the size a Dim in host code at " + std::string(__FILE__));
}

TEST_F(Fixes, PaddingIsTriedOnTheCallsThatDiffer) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return x + y; });
  f(ones({3}), ones({3}));
  f(ones({3}), ones({1}));  // broadcasts
  EXPECT_CONTAINS(told(), "x_0 is 3, y_0 is 1; add asked for it at ");
  EXPECT_CONTAINS(fix(), "pad axis 0 of x to 3, axis 0 of y to 3 (2 traces -> 1)\n");
}

// --- identities

TEST_F(Fixes, AnotherVariableInEveryCall) {
  Function f = function("f(v)", [](Variable v) { return v * 2; });
  for (int n = 0; n < 5; ++n) f(Variable(ones({2})));
  EXPECT_CONTAINS(fix(), "pass the same Variable in every call, or its value as a Tensor (5 traces -> 1)\n");
}

TEST_F(Fixes, WhatCannotBeTriedIsAGuess) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  f(ones({2}));
  f(ones({2, 3}));
  EXPECT_CONTAINS(fix(), "perhaps reshape or expand_dims x to one rank before the call\n");
  Function g = function("g(list)", [](std::vector<Tensor> list) { return list[0]; });
  g({ones({2})});
  g({ones({2}), ones({2})});
  EXPECT_CONTAINS(fix(), "perhaps pass as many in every call, or stack them into one Tensor\n");
}

// --- functions made in a loop

TEST_F(Fixes, FunctionsMadeAnewInALoopAreToldOnce) {
  int line = __LINE__ + 2;
  for (int n = 0; n < 50; ++n) {
    Function f = function("f(x)", [](Tensor x) { return x * 2; });
    f(ones({2}));
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_CONTAINS(told(), "stet: tracing 'f' for another function made at " + std::string(__FILE__) + ":" +
                              std::to_string(line) + "\n");
  EXPECT_CONTAINS(told(), "16 that were made there have been traced, and have ended: each traces anew");
  EXPECT_CONTAINS(fix(), "make the function once, outside of the loop, and call that one\n");
}

TEST_F(Fixes, FunctionsThatLiveAreNotALoop) {
  std::vector<Function<Tensor(Tensor)>> all;
  for (int n = 0; n < 30; ++n) {
    all.push_back(function("f(x)", [n](Tensor x) { return x * n; }));
    all.back()(ones({2}));
  }
  EXPECT_TRUE(events.empty()) << told();
}

// --- recursion

TEST_F(Fixes, ARecursionOnANumberIsCalledThat) {
  auto self = std::make_shared<Function<Tensor(Tensor, int)>>("f(x, n)", [](Tensor x, int) { return x; });
  *self = function("f(x, n)", [self = self.get()](Tensor x, int n) { return n == 0 ? x : (*self)(x + 1, n - 1); });
  EXPECT_EQ((*self)(ones({1}), 50).item<float>({0}), 51);
  std::string error = error_of([&] { (*self)(ones({1}), 500); });
  EXPECT_CONTAINS(error, "'f' is called inside itself more than 100 deep while being traced");
  EXPECT_CONTAINS(error,
                  "a recursion on C++ numbers is unrolled into the trace, at most 100 deep: check that it ends, or "
                  "write it as a loop");
  EXPECT_EQ(error.find("tensors"), std::string::npos) << error;
}

TEST_F(Fixes, ASizeThatARangeNeedsIsOnlyPerhapsADim) {
  Function f = function("f(x)", [](Tensor x) { return x[range(0, int(x.dim(0)) / 2)] * 2; });
  f(ones({4}));
  f(ones({6}));
  EXPECT_CONTAINS(fix(), "perhaps keep the size a Dim in host code at ");
  EXPECT_CONTAINS(fix(), ", where what it is used for takes one");
}

// --- host loops

TEST_F(Fixes, AHostLoopOverASizeIsAdvisedToBeAScan) {
  int line = 0;
  Function f = function("f(x)", [&](Tensor x) {
    Tensor sum = zeros({});
    line = __LINE__ + 1;
    for (std::int64_t i = 0; i < x.dim(0).value(); ++i) sum = tanh(sum + x[i]);
    return sum;
  });
  f(ones({5}));
  f(ones({7}));
  EXPECT_CONTAINS(fix(), "perhaps loop inside of the program instead of in host code, where " + std::string(__FILE__) +
                             ":" + std::to_string(line) +
                             " was recorded for each of 5 turns: scan(body, carry, xs) over the elements of xs, or "
                             "for_loop(n, body, state)");
  // Sizes that are asked for without a loop are no turns.
  Function g = function("g(x)", [](Tensor x) { return x * static_cast<float>(x.dim(0).value()); });
  g(ones({4}));
  g(ones({6}));
  expect_no("scan(body");
}

TEST_F(Fixes, AHostLoopOfThousandsOfOpsIsToldOnce) {
  int line = __LINE__ + 3;
  auto unrolled = [](Tensor x) {
    for (int i = 0; i < 1600; ++i) {
      Tensor next = x * 0.5f;
      x = tanh(next + 1) - next;
    }
    return x;
  };
  Function f = function("f(x)", unrolled);
  f(ones({3}));
  EXPECT_CONTAINS(told(), "stet: tracing 'f' recorded 6400 ops at " + std::string(__FILE__) + ":" +
                              std::to_string(line) + "-" + std::to_string(line + 1) + "\n");
  EXPECT_CONTAINS(told(), "cause           a host loop there runs while the function is traced");
  EXPECT_CONTAINS(fix(), "for_loop(n, body, state), or scan(body, carry, xs)");
  const std::size_t before = events.size();
  Function again = function("again(x)", unrolled);
  again(ones({3}));
  EXPECT_EQ(events.size(), before);
}

}  // namespace
}  // namespace stet
