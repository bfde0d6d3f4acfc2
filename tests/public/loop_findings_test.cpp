// Programs with loops that went wrong when random programs, and attacks on purpose, found them. Those that are disabled
// still do: they are enabled with what mends them.
#include <gtest/gtest.h>

#include <stdexcept>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

double number(const Tensor& x) { return x.item<double>(); }
Tensor scalar(double value) { return full({}, value, f64); }

/// The condition is handed the Variables that the body writes; that is no write.
TEST(LoopFindings, AVariableWrittenBeforeAWhileLoopAndInIt) {
  Variable v(scalar(0));
  auto code = [&](Tensor x) {
    v.assign(x);
    return while_loop([&](Tensor s) { return s + v * 0.5 < 3.; },
                      [&](Tensor s) {
                        v.assign(s);
                        return s + 1.;
                      },
                      x);
  };
  Function f = function("f(x)", code);
  for (double at : {0.3, 1.9, 7.}) {
    const double eager = number(code(scalar(at))), held = number(v.value());
    v.assign(scalar(0));
    EXPECT_EQ(number(f(scalar(at))), eager);
    EXPECT_EQ(number(v.value()), held);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

/// The body is recorded twice, since it writes a Variable; its readings are counted once.
TEST(LoopFindings, ALoopOnOneSideReadsOneVariableAndWritesAnother) {
  Variable w(scalar(0.7)), seen(scalar(0), {.trainable = false});
  auto code = [&](Tensor x) {
    GradientTape tape;
    Tensor y = cond(
        x > 0.,
        [&] {
          return for_loop(
              2,
              [&](Tensor h) {
                seen.assign_add(x);
                return h * w;
              },
              x);
        },
        [&] { return x * w; });
    return tape.gradient(y, w);
  };
  Function f = function("f(x)", code);
  for (double at : {0.3, -0.4, 2.}) {
    seen.assign(scalar(0));
    const double eager = number(code(scalar(at))), held = number(seen.value());
    seen.assign(scalar(0));
    EXPECT_EQ(number(f(scalar(at))), eager);
    EXPECT_EQ(number(seen.value()), held);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

/// The order of the sides does not change the order in which a loop carries Variables.
TEST(LoopFindings, VariablesReadOnSidesAndWrittenInALoop) {
  Variable a(scalar(1)), b(scalar(2));
  auto code = [&](Tensor x) {
    Tensor y = cond(
        x > 0., [&] { return a * x; }, [&] { return b * x; });
    return for_loop(
        2,
        [&](Tensor s) {
          a.assign_add(s);
          b.assign_add(a * s);
          return s + b;
        },
        y);
  };
  Function f = function("f(x)", code);
  for (double at : {0.5, -0.5}) {
    a.assign(scalar(1)), b.assign(scalar(2));
    const double eager = number(code(scalar(at))), held = number(b.value());
    a.assign(scalar(1)), b.assign(scalar(2));
    EXPECT_EQ(number(f(scalar(at))), eager);
    EXPECT_EQ(number(b.value()), held);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

/// What is asked of sizes is checked where nobody uses the op, if there is a turn.
TEST(LoopFindings, SizesAreCheckedInTurnsThoughNobodyUsesTheOp) {
  Function f = function("f(x, n)", [](Tensor x, Tensor n) {
    return for_loop(
        n,
        [&](Tensor s) {
          max(x, 0);
          return s + 1.;
        },
        sum(x));
  });
  EXPECT_EQ(number(f(ones({3}, f64), tensor(2))), 5);
  EXPECT_EQ(number(f(zeros({0}, f64), tensor(0))), 0);
  EXPECT_CONTAINS(error_of([&] { f(zeros({0}, f64), tensor(1)); }), "max: an empty axis has no largest or smallest");
}

/// A loop that takes no turn does not look at what a turn would do.
TEST(LoopFindings, NoTurnEagerly) {
  int runs = 0;
  Tensor empty = zeros({0}, f64);
  auto body = [&](Tensor s) {
    ++runs;
    return s + max(empty);
  };
  EXPECT_EQ(number(for_loop(0, body, scalar(1))), 1);
  EXPECT_EQ(number(for_loop(tensor(-1), body, scalar(1))), 1);
  EXPECT_EQ(number(scan([&](Tensor s, Tensor) { return body(s); }, scalar(1), empty)), 1);
  EXPECT_EQ(runs, 0);
}

TEST(LoopFindings, ABodyThatThrowsOnOneSide) {
  Function f = function("f(x)", [](Tensor x) {
    return cond(
        x > 0.,
        [&] {
          return for_loop(
              2, [](Tensor) -> Tensor { throw std::domain_error("the body throws"); }, x);
        },
        [&] { return x * 2.; });
  });
  EXPECT_EQ(number(f(scalar(-1))), -2);
  EXPECT_THROW(f(scalar(1)), std::domain_error);
  EXPECT_EQ(number(f(scalar(-3))), -6);
  EXPECT_EQ(f.trace_count(), 1);
}

/// The structure of what is stacked comes from a path of the body that gives something.
TEST(LoopFindings, ASideOfABodyThrowsOnOneSide) {
  auto code = [](Tensor x) {
    if (sum(x) > 0.) {
      auto [c, y] = scan(
          [](Tensor c, Tensor v) {
            if (v > 9.) throw std::domain_error("the side throws");
            return std::pair(c + v, std::vector<Tensor>{c, v * c});
          },
          scalar(0), x);
      if (c > 5.) return sum(y[0]) + sum(y[1]);
      return c;
    }
    return sum(x);
  };
  Function f = function("f(x)", code);
  for (double at : {1., -5., 4.}) {
    Tensor x = tensor({at, 1., 2.});
    EXPECT_EQ(number(f(x)), number(code(x))) << at;
  }
  EXPECT_THROW(f(tensor({20., 1., 2.})), std::domain_error);
  EXPECT_EQ(f.trace_count(), 1);
}

/// A tape from outside would see the one turn that is recorded: refused, as watching there is, or right.
TEST(LoopFindings, ATapeFromOutsideAskedInATurn) {
  auto code = [](Tensor x) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    return for_loop(
        3,
        [&](Tensor s) {
          Tensor y = sin(s) * x;
          return y + tape.gradient(y, x);
        },
        x);
  };
  Function f = function("f(x)", code);
  try {
    EXPECT_NEAR(number(f(scalar(0.3))), number(code(scalar(0.3))), 1e-12);
  } catch (const TraceError& error) {
    EXPECT_CONTAINS(std::string(error.what()), "a tape that was made outside of a loop");
  }
}

/// In a trace a way back has no effects: those of callbacks are refused as writes are, or happen on the way back alone.
TEST(LoopFindings, ACallbackOnAWayBack) {
  int calls = 0;
  auto identity = custom_gradient([&calls](Tensor x) {
    return std::pair(x * 1., [x, &calls](Tensor d) {
      host_call([&calls](Tensor) { ++calls; }, {}, stop_gradient(x));
      return d * 1.;
    });
  });
  Function f = function("f(x)", [&](Tensor x) { return tanh(x) * identity(x); });
  error_of([&] { f(scalar(0.1)); });
  EXPECT_EQ(calls, 0);
}

}  // namespace
