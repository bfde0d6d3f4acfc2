// stop_gradient, custom_gradient and recompute: eagerly, under several tapes, traced, in branches, and in functions
// that are called under a tape.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <cmath>

#include "expect_error.h"

namespace stet {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
Floats floats(const Tensor& t) { return t.defined() ? t.to_vector<float>() : Floats{}; }
Doubles doubles(const Tensor& t) { return t.defined() ? t.to_vector<double>() : Doubles{}; }

void expect_near(const Tensor& got, const Doubles& expected, double tolerance = 1e-12) {
  ASSERT_TRUE(got.defined());
  Doubles values = doubles(got);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
}

/// The first, second and third derivative of sum(f) along each element, by tapes in each other.
template <class F>
std::vector<Tensor> derivatives(const F& f, const Tensor& x) {
  GradientTape third;
  third.watch(x);
  GradientTape second;
  second.watch(x);
  GradientTape first;
  first.watch(x);
  Tensor d = first.gradient(f(x), x, {.unconnected = "zero"});
  Tensor dd = second.gradient(d, x, {.unconnected = "zero"});
  return {d, dd, third.gradient(dd, x, {.unconnected = "zero"})};
}

/// The same in one traced function, and of a traced function called under eager tapes.
template <class F>
void expect_derivatives(const F& f, const Tensor& x, const std::vector<Doubles>& expected, double tolerance = 1e-11) {
  {
    SCOPED_TRACE("eagerly");
    std::vector<Tensor> got = derivatives(f, x);
    for (std::size_t k = 0; k < expected.size(); ++k) expect_near(got[k], expected[k], tolerance);
  }
  {
    SCOPED_TRACE("traced");
    Function traced = function("traced(x)", [f](Tensor at) { return derivatives(f, at); });
    std::vector<Tensor> got = traced(x);
    for (std::size_t k = 0; k < expected.size(); ++k) expect_near(got[k], expected[k], tolerance);
    got = traced(concat({x, x}, 0));
    EXPECT_EQ(got[0].size(), x.size() * 2);
    EXPECT_EQ(traced.trace_count(), 1);
  }
  {
    SCOPED_TRACE("a function under tapes");
    Function called = function("called(x)", [f](Tensor at) { return f(at); });
    std::vector<Tensor> got = derivatives(called, x);
    for (std::size_t k = 0; k < expected.size(); ++k) expect_near(got[k], expected[k], tolerance);
  }
  {
    SCOPED_TRACE("a function under one tape");
    Function called = function("called(x)", [f](Tensor at) { return f(at); });
    for (int round = 0; round < 2; ++round) {
      GradientTape tape;
      tape.watch(x);
      expect_near(tape.gradient(called(x), x, {.unconnected = "zero"}), expected[0], tolerance);
    }
  }
  {
    SCOPED_TRACE("in a branch, under one tape and under several");
    Function called = function("called(x)", [f](Tensor at) {
      return scope([&] {
        if (sum(at) > -1e6) return f(at);
        return at * 0;
      });
    });
    GradientTape tape;
    tape.watch(x);
    expect_near(tape.gradient(called(x), x, {.unconnected = "zero"}), expected[0], tolerance);
    std::vector<Tensor> got = derivatives(called, x);
    for (std::size_t k = 0; k < expected.size(); ++k) expect_near(got[k], expected[k], tolerance);
    Function inside = function("inside(x)", [called](Tensor at) { return derivatives(called, at); });
    got = inside(x);
    for (std::size_t k = 0; k < expected.size(); ++k) expect_near(got[k], expected[k], tolerance);
  }
}

// --- stop_gradient

TEST(StopGradient, LetsNothingPass) {
  Tensor x = tensor({1.0, 2.0});
  // x * stop(x): the factor is a constant to the tape, each time.
  expect_derivatives([](Tensor at) { return at * stop_gradient(at) * at; }, x, {{2, 8}, {2, 4}, {0, 0}});
  Variable v(tensor(3.f));
  GradientTape tape({.persistent = true});
  Tensor stopped = stop_gradient(v), y = v * stopped;
  EXPECT_EQ(floats(tape.gradient(y, v)), (Floats{3}));
  EXPECT_FALSE(tape.gradient(stopped * 2, v).defined());
  auto [a, count] = stop_gradient(std::pair(v.read(), tensor(7)));
  EXPECT_FALSE(tape.gradient(a + count, v).defined());
  EXPECT_EQ(count.item<int>(), 7);
}

// --- custom_gradient

Tensor log1pexp(Tensor x) {
  static const auto f = custom_gradient([](Tensor at) {
    Tensor e = exp(at);
    return std::pair(log(1 + e), [e](Tensor d) { return d * (1 - 1 / (1 + e)); });
  });
  return f(x);
}

TEST(CustomGradient, HasItsOwnSecondOrder) {
  Tensor x = tensor({-1.0, 0.5, 2.0});
  Doubles first, second, third;
  for (double at : doubles(x)) {
    double s = 1 / (1 + std::exp(-at));
    first.push_back(s);
    second.push_back(s * (1 - s));
    third.push_back(s * (1 - s) * (1 - 2 * s));
  }
  expect_derivatives(log1pexp, x, {first, second, third});
  // Where the plain gradient is not a number, this one is.
  Tensor far = tensor({800.0});
  GradientTape tape;
  tape.watch(far);
  EXPECT_EQ(doubles(tape.gradient(log1pexp(far), far)), (Doubles{1}));
}

TEST(CustomGradient, IsWhatTheBackwardFunctionSays) {
  // A gradient that is not the function's: a straight-through estimator, and one that is clipped.
  auto rounded = custom_gradient([](Tensor x) { return std::pair(round(x), [](Tensor d) { return d; }); });
  auto clipped = custom_gradient([](Tensor x) { return std::pair(x * 1, [](Tensor d) { return clip(d, -1, 1); }); });
  Tensor x = tensor({0.4, 1.6});
  expect_derivatives([&](Tensor at) { return square(rounded(at)); }, x, {{0, 4}, {2, 2}, {0, 0}});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  EXPECT_EQ(doubles(tape.gradient(clipped(x) * tensor({5.0, 0.25}), x)), (Doubles{1, 0.25}));
}

struct Line {
  Tensor slope, start;
  STET_FIELDS(slope, start)
};

TEST(CustomGradient, TakesAndGivesStructures) {
  auto f = custom_gradient([](Line line, Tensor x, int times) {
    Tensor y = line.slope * x + line.start, mean_of = mean(y);
    return std::pair(std::tuple(y * times, mean_of, argmax(y)), [=](Tensor dy, Tensor dm, Tensor dp) {
      EXPECT_FALSE(dp.defined());  // positions have no gradient
      Tensor d = dy * times + dm / y.size();
      return std::tuple(Line{sum(d * x), sum(d)}, d * line.slope);
    });
  });
  Line line{tensor(2.0), tensor(1.0)};
  Tensor x = tensor({1.0, 2.0, 3.0});
  auto plain = [](Line at, Tensor of) {
    Tensor y = at.slope * of + at.start;
    return std::pair(y * 3, mean(y));
  };
  auto gradients = [&](auto&& call) {
    GradientTape tape;
    tape.watch(std::pair(line, x));
    auto [y, m] = call();
    return tape.gradient({y * y, m * 7}, std::pair(line, x));
  };
  auto expected = gradients([&] { return plain(line, x); });
  auto got = gradients([&] {
    auto [y, m, position] = f(line, x, 3);
    EXPECT_EQ(position.item<int>(), 2);
    return std::pair(y, m);
  });
  expect_near(got.first.slope, doubles(expected.first.slope));
  expect_near(got.first.start, doubles(expected.first.start));
  expect_near(got.second, doubles(expected.second));
  // Only one of the results is used: the other's gradient is 0.
  GradientTape tape;
  tape.watch(x);
  expect_near(tape.gradient(std::get<1>(f(line, x, 3)), x), {2.0 / 3, 2.0 / 3, 2.0 / 3});
  Function traced = function("traced(x)", [=](Tensor at) {
    GradientTape inner;
    inner.watch(at);
    auto [y, m, position] = f(Line{tensor(2.0), tensor(1.0)}, at, 3);
    return std::pair(inner.gradient({y * y, m * 7}, at), position);
  });
  expect_near(traced(x).first, doubles(expected.second));
}

TEST(CustomGradient, ReachesVariablesThatAreArguments) {
  Variable w(tensor({2.0, 3.0}));
  auto scaled = custom_gradient([](Variable v, Tensor x) {
    Tensor held = v;
    return std::pair(held * x, [=](Tensor d) { return std::pair(d * x * 10, d * held); });
  });
  Tensor x = tensor({5.0, 7.0});
  Function called = function("called(x)", [=](Tensor at) { return scaled(w, at); });
  for (int kind = 0; kind < 2; ++kind) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = kind == 0 ? scaled(w, x) : called(x);
    std::vector<Tensor> d = tape.gradient(y, {w, x});
    EXPECT_EQ(doubles(d[0]), (Doubles{50, 70})) << kind;
    EXPECT_EQ(doubles(d[1]), (Doubles{2, 3})) << kind;
  }
}

TEST(CustomGradient, WrongUsesAreNamed) {
  Tensor x = tensor({1.f, 2.f}), other = tensor({3.f, 4.f});
  Variable v(tensor(2.f));
  GradientTape tape({.persistent = true});
  tape.watch({x, other});
  auto two = custom_gradient([](Tensor a, Tensor b) { return std::pair(a * b, [=](Tensor d) { return d * b; }); });
  Tensor y = two(x, other);
  std::string error = error_of([&] { tape.gradient(y, x); });
  EXPECT_CONTAINS(error, "custom_gradient: the backward function gives 1 gradient for 2 arguments");
  EXPECT_CONTAINS(error, "custom_gradient_test.cpp:");
  auto shape = custom_gradient([](Tensor a) { return std::pair(a * 2, [](Tensor d) { return sum(d); }); });
  Tensor z = shape(x);
  EXPECT_CONTAINS(error_of([&] { tape.gradient(z, x); }),
                  "custom_gradient: the backward function gives f32[] for argument 0 of f32[2]");
  auto captures = custom_gradient([=](Tensor a) { return std::pair(a * other, [](Tensor d) { return d; }); });
  error = error_of([&] { captures(x); });
  EXPECT_CONTAINS(error, "custom_gradient: the function uses a tensor, f32[2], that is no argument of it");
  EXPECT_CONTAINS(error, "stop_gradient(x)");
  auto reads = custom_gradient([=](Tensor a) { return std::pair(a * v, [](Tensor d) { return d; }); });
  EXPECT_CONTAINS(error_of([&] { reads(x); }), "custom_gradient: the function reads a Variable that is no argument");
  auto constant = stop_gradient(other);
  auto fine = custom_gradient([=](Tensor a) { return std::pair(a * constant, [](Tensor d) { return d; }); });
  EXPECT_EQ(floats(tape.gradient(fine(x), x)), (Floats{1, 1}));
  // In a trace a way back has no effects: it may happen never, or twice.
  auto writes = custom_gradient([=](Tensor a) {
    return std::pair(a * 2, [=](Tensor d) {
      v.assign_add(1);
      return d * 2;
    });
  });
  Function traced = function("traced(x)", [=](Tensor a) { return writes(a); });
  EXPECT_CONTAINS(error_of([&] { traced(x); }), "the backward function of a custom_gradient writes a Variable");
  EXPECT_CONTAINS(error_of([&] { function("shape(x)", [=](Tensor a) { return shape(a); })(x); }),
                  "the backward function gives f32[] for argument 0");
}

TEST(CustomGradient, DecidesByValuesOnTheWayBack) {
  // Both ways decide: each path of the function has a way back of its own.
  auto f = custom_gradient([](Tensor x) {
    Tensor y = x * x;
    if (sum(x) > 0) y = y * 2;
    return std::pair(y, [=](Tensor d) {
      if (sum(x) > 0) return d * x * 4;
      return d * x * 2;
    });
  });
  Function called = function("called(x)", [=](Tensor x) { return f(x); });
  Function inside = function("inside(x)", [=](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(f(x), x);
  });
  for (Doubles at : {Doubles{1, 2}, Doubles{-1, -2}}) {
    Tensor x = tensor(at);
    double factor = at[0] > 0 ? 4 : 2;
    GradientTape tape({.persistent = true});
    tape.watch(x);
    EXPECT_EQ(doubles(tape.gradient(f(x), x)), (Doubles{factor * at[0], factor * at[1]}));
    EXPECT_EQ(doubles(tape.gradient(called(x), x)), (Doubles{factor * at[0], factor * at[1]}));
    EXPECT_EQ(doubles(inside(x)), (Doubles{factor * at[0], factor * at[1]}));
  }
}

TEST(CustomGradient, MayThrowOnTheWayBack) {
  auto f = custom_gradient([](Tensor x) {
    return std::pair(x * 2, [=](Tensor d) {
      if (sum(x) < 0) throw UserError("not that way");
      return d * 2;
    });
  });
  Function called = function("called(x)", [=](Tensor x) { return f(x); });
  Function inside = function("inside(x)", [=](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(f(x), x);
  });
  Tensor good = tensor({1.0, 2.0}), bad = tensor({-1.0, -2.0});
  EXPECT_EQ(doubles(called(bad)), (Doubles{-2, -4}));  // nobody goes back
  EXPECT_EQ(doubles(inside(good)), (Doubles{2, 2}));
  EXPECT_EQ(error_of([&] { inside(bad); }), "not that way");
  for (int kind = 0; kind < 2; ++kind) {
    GradientTape tape({.persistent = true});
    tape.watch({good, bad});
    EXPECT_EQ(doubles(tape.gradient(kind ? f(good) : called(good), good)), (Doubles{2, 2}));
    Tensor y = kind ? f(bad) : called(bad);
    EXPECT_EQ(error_of([&] { tape.gradient(y, bad); }), "not that way");
  }
}

// --- recompute

TEST(Recompute, GivesTheSameDerivatives) {
  Tensor x = tensor({0.5, 1.5});
  auto f = [](Tensor at) { return sin(at * at) * exp(at); };
  std::vector<Tensor> plain = derivatives(f, x);
  std::vector<Doubles> expected;
  for (const Tensor& one : plain) expected.push_back(doubles(one));
  expect_derivatives([f](Tensor at) { return recompute(f)(at); }, x, expected);
  expect_derivatives([f](Tensor at) { return recompute([f](Tensor u) { return recompute(f)(u * 1); })(at); }, x,
                     expected);
  expect_derivatives([f](Tensor at) { return log1pexp(recompute(f)(at)); }, x,
                     [&] {
                       std::vector<Doubles> out;
                       for (const Tensor& one : derivatives([f](Tensor at) { return log1pexp(f(at)); }, x))
                         out.push_back(doubles(one));
                       return out;
                     }());
}

TEST(Recompute, ReachesVariables) {
  Variable w(tensor({2.0, 3.0})), stats(tensor(0.0), {.trainable = false});
  auto layer = [=](Tensor x) {
    stats.assign_add(sum(x));
    return tanh(x * w) * w;
  };
  Tensor x = tensor({0.5, -0.25});
  auto gradients = [&](auto&& f) {
    stats.assign(tensor(0.0));
    GradientTape outer;
    outer.watch(x);
    GradientTape tape;
    tape.watch(x);
    Tensor y = f(x);
    std::vector<Tensor> d = tape.gradient(y, {x, w});
    Tensor second = outer.gradient(d, w);
    return std::tuple(doubles(d[0]), doubles(d[1]), doubles(second), stats.read().template item<double>());
  };
  auto expected = gradients(layer);
  EXPECT_EQ(std::get<3>(expected), 0.25);
  EXPECT_EQ(gradients(recompute(layer)), expected);
  // The state is what it was when it was called, whatever has happened since.
  {
    stats.assign(tensor(0.0));
    Tensor before = w.read();
    GradientTape tape;
    tape.watch(x);
    Tensor y = recompute(layer)(x);
    w.assign(tensor({100.0, 100.0}));
    std::vector<Tensor> d = tape.gradient(y, {x, w});
    w.assign(before);
    EXPECT_EQ(doubles(d[0]), std::get<0>(expected));
    EXPECT_EQ(doubles(d[1]), std::get<1>(expected));
    EXPECT_EQ(stats.read().item<double>(), 0.25);  // once, not twice
  }
  Function called = function("called(x)", [=](Tensor at) { return recompute(layer)(at); });
  Function whole = function("whole(x)", [=](Tensor at) {
    GradientTape tape;
    tape.watch(at);
    return tape.gradient(recompute(layer)(at), std::tuple(at, w));
  });
  for (int round = 0; round < 3; ++round) {
    stats.assign(tensor(0.0));
    GradientTape tape;
    tape.watch(x);
    std::vector<Tensor> d = tape.gradient(called(x), {x, w});
    expect_near(d[0], std::get<0>(expected));
    expect_near(d[1], std::get<1>(expected));
    EXPECT_EQ(stats.read().item<double>(), 0.25);
    auto [dx, dw] = whole(x);
    expect_near(dx, std::get<0>(expected));
    expect_near(dw, std::get<1>(expected));
    EXPECT_EQ(stats.read().item<double>(), 0.5);
  }
}

TEST(Recompute, DrawsTheSameRandomNumbers) {
  auto noisy = [](Tensor x) {
    return x * random::uniform(x.shape(), {.dtype = f64}) * random::normal(x.shape(), {.dtype = f64});
  };
  Tensor x = ones({6}, f64);
  auto gradients = [&](auto&& f) {
    random::seed(5);
    GradientTape tape;
    tape.watch(x);
    Tensor y = f(x);
    Doubles d = doubles(tape.gradient(y, x));
    return std::tuple(doubles(y), d, doubles(random::uniform({2})));
  };
  auto expected = gradients(noisy);
  EXPECT_EQ(std::get<0>(expected), std::get<1>(expected));  // linear in x, at 1
  EXPECT_EQ(gradients(recompute(noisy)), expected);
  Function called = function("called(x)", [=](Tensor at) { return recompute(noisy)(at); });
  Function drawn = function("drawn(x)", [=](Tensor at) {
    GradientTape tape;
    tape.watch(at);
    Tensor y = recompute(noisy)(at);
    return std::pair(y, tape.gradient(y, at));
  });
  for (int round = 0; round < 2; ++round) {
    auto [y, d, next] = gradients(called);
    EXPECT_EQ(y, d);
    auto [value, gradient] = drawn(x);
    EXPECT_EQ(doubles(value), doubles(gradient));
  }
  EXPECT_EQ(gradients(called), expected);
}

TEST(Recompute, DecidesByValues) {
  auto f = [](Tensor x) {
    if (sum(x) > 0) return x * x;
    return x * 5;
  };
  Function called = function("called(x)", [=](Tensor x) { return recompute(f)(x); });
  Function inside = function("inside(x)", [=](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(recompute(f)(x), x);
  });
  for (Doubles at : {Doubles{1, 2}, Doubles{-1, -2}}) {
    Tensor x = tensor(at);
    Doubles expected = at[0] > 0 ? Doubles{2, 4} : Doubles{5, 5};
    GradientTape tape({.persistent = true});
    tape.watch(x);
    EXPECT_EQ(doubles(tape.gradient(recompute(f)(x), x)), expected);
    EXPECT_EQ(doubles(tape.gradient(called(x), x)), expected);
    EXPECT_EQ(doubles(inside(x)), expected);
  }
}

TEST(Recompute, TakesAndGivesStructures) {
  auto f = recompute([](Line line, int power) {
    Tensor y = line.slope;
    for (int i = 1; i < power; ++i) y = y * line.slope;
    return std::pair(y + line.start, argmax(line.start));
  });
  Line line{tensor({2.0, 3.0}), tensor({1.0, 5.0})};
  GradientTape tape;
  tape.watch(line);
  auto [y, position] = f(line, 3);
  EXPECT_EQ(doubles(y), (Doubles{9, 32}));
  EXPECT_EQ(position.item<int>(), 1);
  Line d = tape.gradient(y, line);
  EXPECT_EQ(doubles(d.slope), (Doubles{12, 27}));
  EXPECT_EQ(doubles(d.start), (Doubles{1, 1}));
}

/// Tensors from outside that the function uses, and that somebody follows, get their gradients: made before the tape
/// watched, computed under the tape, given back as they are, on a side of a decision, in a loop.
TEST(Recompute, ReachesCapturedTensors) {
  auto run = [](Tensor h, Tensor w, bool again, int kind) {
    GradientTape tape;
    tape.watch(h);
    tape.watch(w);
    Tensor inner = w * w;
    auto f = [=](Tensor x) {
      if (kind == 1) return scope([&] { return sum(x) > 0 ? x * inner : x - w; });
      if (kind == 2)
        return for_loop(
            3, [&](Tensor y) { return sin(y) * inner; }, x);
      if (kind == 3) return inner;
      return x * inner + sin(w);
    };
    Tensor y = again ? recompute(f)(h) : f(h);
    std::vector<Tensor> d = tape.gradient(sum(y * y), {h, w}, {.unconnected = "zero"});
    return std::tuple(d[0], d[1]);
  };
  Tensor h = tensor({1.0, 2.0}), w = tensor({3.0, 0.5});
  for (int kind : {0, 1, 2, 3}) {
    SCOPED_TRACE(kind);
    auto [dh, dw] = run(h, w, false, kind);
    auto [eager_h, eager_w] = run(h, w, true, kind);
    EXPECT_EQ(doubles(eager_h), doubles(dh));
    EXPECT_EQ(doubles(eager_w), doubles(dw));
    Function traced = function("traced(h, w)", [=](Tensor a, Tensor b) { return run(a, b, true, kind); });
    auto [traced_h, traced_w] = traced(h, w);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(doubles(traced_h)[i], doubles(dh)[i], 1e-12);
      EXPECT_NEAR(doubles(traced_w)[i], doubles(dw)[i], 1e-12);
    }
  }
}

/// The tape is outside of the traced function, and what it follows is captured by it.
TEST(Recompute, ReachesTensorsThatATracedFunctionCaptured) {
  Tensor w = tensor({3.0, 0.5});
  Function f = function("f(h)", [=](Tensor h) { return recompute([=](Tensor x) { return sin(x * w); })(h); });
  Tensor h = tensor({1.0, 2.0});
  auto slope = [&](auto g) {
    GradientTape tape;
    tape.watch(w);
    return doubles(tape.gradient(sum(g(h)), w, {.unconnected = "zero"}));
  };
  Doubles expected = slope([&](Tensor x) { return sin(x * w); }), got = slope([&](Tensor x) { return f(x); });
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[i], expected[i], 1e-12);
}

}  // namespace
}  // namespace stet
