// The tape's options: what it watches, when it records, what it is asked for, and what it says when that is wrong.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <thread>

#include "expect_error.h"

namespace stet {
namespace {

using Floats = std::vector<float>;
Floats floats(const Tensor& t) { return t.defined() ? t.to_vector<float>() : Floats{}; }

struct Weights {
  Tensor w, b;
  int layers = 3;
  STET_FIELDS(w, b, layers)
};
struct WithVariable {
  Variable v;
  Tensor x;
  STET_FIELDS(v, x)
};

// --- targets, sources, weights

TEST(TapeOptions, SeveralTargetsAddUp) {
  Tensor x = tensor({1.f, 2.f});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor a = square(x), b = sum(x * 3), other = tensor({5.f});
  EXPECT_EQ(floats(tape.gradient({a, b}, x)), (Floats{5, 7}));
  EXPECT_EQ(floats(tape.gradient(std::tuple(a, b, other), x)), (Floats{5, 7}));
  EXPECT_EQ(floats(tape.gradient(std::vector<Tensor>{a, a}, x)), (Floats{4, 8}));
  EXPECT_EQ(floats(tape.gradient({a, b}, x, {.output_gradients = {tensor({1.f, 10.f}), tensor(2.f)}})),
            (Floats{2 + 6, 40 + 6}));
  EXPECT_EQ(floats(tape.gradient({a, b}, x, {.output_gradients = {Tensor(), tensor(0.f)}})), (Floats{2, 4}));
  EXPECT_EQ(floats(tape.gradient(a, x, {.output_gradients = tensor({0.f, -1.f})})), (Floats{0, -4}));
  // A target that is a source as well.
  EXPECT_EQ(floats(tape.gradient({x, a}, x)), (Floats{3, 5}));
}

TEST(TapeOptions, GradientsHaveTheSourcesStructure) {
  Weights weights{tensor({{1.f, 2.f}}), tensor({3.f}), 7};
  Variable v(tensor(2.f)), u(tensor(4.f));
  GradientTape tape({.persistent = true});
  tape.watch(weights);
  Tensor y = sum(weights.w * weights.w) * v + sum(weights.b) * u * u;
  Weights d = tape.gradient(y, weights);
  EXPECT_EQ(floats(d.w), (Floats{4, 8}));
  EXPECT_EQ(floats(d.b), (Floats{16}));
  EXPECT_EQ(d.layers, 7);
  std::tuple<Tensor, std::vector<Tensor>> nest = tape.gradient(y, std::tuple(weights.b, std::vector<Variable>{u, v}));
  EXPECT_EQ(floats(std::get<0>(nest)), (Floats{16}));
  EXPECT_EQ(floats(std::get<1>(nest)[0]), (Floats{24}));
  EXPECT_EQ(floats(std::get<1>(nest)[1]), (Floats{5}));
  std::pair<Tensor, Tensor> pair = tape.gradient(y, std::pair(weights.w, v));
  EXPECT_EQ(floats(pair.second), (Floats{5}));
  std::array<Tensor, 2> array = tape.gradient(y, std::array<Variable, 2>{v, u});
  EXPECT_EQ(floats(array[1]), (Floats{24}));
  std::optional<Tensor> none = tape.gradient(y, std::optional<Tensor>());
  EXPECT_FALSE(none.has_value());
  std::vector<Tensor> mixed = tape.gradient(y, {weights.w, v});
  EXPECT_EQ(floats(mixed[1]), (Floats{5}));
}

TEST(TapeOptions, UnconnectedIsNoneOrZero) {
  Tensor x = tensor({1.f, 2.f}), other = tensor({{1.f}, {2.f}});
  Variable v(tensor({1.f, 2.f, 3.f}));
  GradientTape tape({.persistent = true});
  tape.watch({x, other});
  Tensor y = sum(x);
  EXPECT_TRUE(tape.gradient(y, other).is_no_gradient());
  EXPECT_TRUE(tape.gradient(y, v, {.unconnected = "none"}).is_no_gradient());
  Tensor zero = tape.gradient(y, other, {.unconnected = "zero"});
  EXPECT_EQ(zero.shape().str(), "[2,1]");
  EXPECT_EQ(floats(zero), (Floats{0, 0}));
  EXPECT_EQ(floats(tape.gradient(y, v, {.unconnected = "zero"})), (Floats{0, 0, 0}));
  std::string error = error_of([&] { tape.gradient(y, x, {.unconnected = "zeros"}); });
  EXPECT_CONTAINS(error, "gradient: unconnected is \"zeros\"");
  EXPECT_CONTAINS(error, "it is \"none\" or \"zero\"");
  EXPECT_CONTAINS(error, "tape_options_test.cpp:");
}

// --- watching

TEST(TapeOptions, WatchesVariablesThatItIsTold) {
  Variable w(tensor(3.f)), frozen(tensor(5.f), {.trainable = false});
  auto gradients = [&](bool watch_variables, bool watch_w, bool watch_frozen, auto&& f) {
    GradientTape tape({.watch_variables = watch_variables});
    if (watch_w) tape.watch(w);
    if (watch_frozen) tape.watch(frozen);
    std::vector<Tensor> d = tape.gradient(f(), {w, frozen});
    return std::pair(floats(d[0]), floats(d[1]));
  };
  auto eager = [&] { return w * w * frozen; };
  Function traced = function("f()", [=] { return w * w * frozen; });
  Function branches = function("f(x)", [=](Tensor x) {
    if (x > 0) return w * w * frozen;
    return w * frozen;
  });
  Tensor one = tensor(1.f);
  for (int kind = 0; kind < 3; ++kind) {
    SCOPED_TRACE(kind);
    auto f = [&] { return kind == 0 ? eager() : kind == 1 ? traced() : branches(one); };
    EXPECT_EQ(gradients(true, false, false, f), std::pair(Floats{30}, Floats{}));
    EXPECT_EQ(gradients(false, false, false, f), std::pair(Floats{}, Floats{}));
    EXPECT_EQ(gradients(false, true, false, f), std::pair(Floats{30}, Floats{}));
    EXPECT_EQ(gradients(true, false, true, f), std::pair(Floats{30}, Floats{9}));
    EXPECT_EQ(gradients(false, false, true, f), std::pair(Floats{}, Floats{9}));
  }
  // The same with the tape inside of the traced function.
  for (bool decides : {false, true}) {
    Function inside = function("inside(x)", [=](Tensor x) {
      GradientTape tape({.watch_variables = false});
      tape.watch(frozen);
      Tensor y = decides ? scope([&] {
        if (x > 0) return w * frozen * frozen;
        return w * frozen;
      })
                         : w * frozen * frozen;
      std::vector<Tensor> d = tape.gradient(y, {w, frozen}, {.unconnected = "zero"});
      return d;
    });
    std::vector<Tensor> d = inside(one);
    EXPECT_EQ(floats(d[0]), (Floats{0})) << decides;
    EXPECT_EQ(floats(d[1]), (Floats{30})) << decides;
  }
}

TEST(TapeOptions, WhatIsWatchedLaterIsFollowedFromThereOn) {
  auto gradients = [](Tensor x) {
    Variable w(tensor(5.f));
    GradientTape tape;
    Tensor before = x * w * exp(x);  // of these ops the tape keeps what the gradient by w reads
    tape.watch(x);
    Tensor after = x * x;
    return tape.gradient(before + after, std::tuple(x, w));
  };
  auto [dx, dw] = gradients(tensor(3.f));
  EXPECT_EQ(floats(dx), (Floats{6}));
  EXPECT_NEAR(dw.item<float>(), 3 * std::exp(3.f), 1e-3);
  Variable w(tensor(5.f));
  Function traced = function("traced(x)", [w](Tensor x) {
    GradientTape tape;
    Tensor before = x * w * exp(x);
    tape.watch(x);
    return tape.gradient(before + x * x, std::tuple(x, w));
  });
  EXPECT_EQ(floats(std::get<0>(traced(tensor(3.f)))), (Floats{6}));
}

TEST(TapeOptions, WhatCannotBeWatchedIsNamed) {
  GradientTape tape;
  Variable count(tensor(3), {.trainable = false, .name = "count"});
  std::string error = error_of([&] { tape.watch(count); });
  EXPECT_CONTAINS(error, "watch: the Variable 'count' of i32[] has no gradient");
  EXPECT_CONTAINS(error, "tape_options_test.cpp:");
  error = error_of([&] { tape.watch(std::pair(tensor(1.f), tensor(2))); });
  EXPECT_CONTAINS(error, "watch: '.second', i32[], has no gradient");
  EXPECT_CONTAINS(error_of([&] { tape.watch(Tensor()); }), "watch: ");
}

TEST(TapeOptions, WrongTargetsAndWeightsAreNamed) {
  Tensor x = tensor({1.f, 2.f});
  auto error = [&](auto&& ask) {
    GradientTape tape;
    tape.watch(x);
    return error_of([&] { ask(tape); });
  };
  EXPECT_CONTAINS(error([&](GradientTape& t) {
                    t.gradient({x, argmax(x)}, x);
                  }),
                  "gradient: the target [1] i64[] is not floating");
  EXPECT_CONTAINS(error([&](GradientTape& t) { t.gradient(std::vector<Tensor>(), x); }),
                  "gradient: there is no tensor among the targets");
  std::string text = error([&](GradientTape& t) { t.gradient(x * x, x, {.output_gradients = {x, x}}); });
  EXPECT_CONTAINS(text, "gradient: 1 targets have 2 output gradients");
  EXPECT_CONTAINS(text, "tape_options_test.cpp:");
  EXPECT_CONTAINS(error([&](GradientTape& t) { t.gradient(x * x, x, {.output_gradients = tensor({1.f})}); }),
                  "gradient: the output gradient f32[1] is not of its target's type f32[2]");
  EXPECT_CONTAINS(error([&](GradientTape& t) {
                    t.gradient({x, x * x}, x, {.output_gradients = {x, tensor({1.0, 1.0})}});
                  }),
                  "the output gradient [1] f64[2] is not of its target's type f32[2]");
  {
    // A question that was refused is not an answer: the tape may be asked again.
    GradientTape tape;
    tape.watch(x);
    Tensor y = x * x;
    error_of([&] { tape.gradient(y, x, {.output_gradients = tensor({1.f})}); });
    error_of([&] { tape.gradient(y, Tensor()); });
    error_of([&] { tape.gradient(argmax(y), x); });
    EXPECT_EQ(floats(tape.gradient(y, x)), (Floats{2, 4}));
  }
  WithVariable nest{Variable(tensor(1.f)), x};
  text = error([&](GradientTape& t) { t.gradient(sum(x * nest.v), nest); });
  EXPECT_CONTAINS(text, "gradient: '.v' of the sources is a Variable inside of an aggregate");
  EXPECT_CONTAINS(text, "give the Variables in a tuple or a vector");
}

// --- recording

TEST(TapeOptions, StopsRecordingForAWhile) {
  Tensor x = tensor(3.f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * x, unseen;
  {
    auto stopped = tape.stop_recording();
    unseen = y * 2;
    {
      auto again = tape.stop_recording();
      EXPECT_EQ(floats(tape.gradient(y, x)), (Floats{6}));
    }
    unseen = unseen * x;
  }
  EXPECT_FALSE(tape.gradient(unseen, x).defined());
  EXPECT_EQ(floats(tape.gradient(unseen * y, x)), (Floats{54 * 6}));
  try {
    auto stopped = tape.stop_recording();
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(floats(tape.gradient(y * y, x)), (Floats{108}));
  // Another tape goes on.
  GradientTape outer;
  outer.watch(x);
  auto stopped = tape.stop_recording();
  EXPECT_EQ(floats(outer.gradient(x * x, x)), (Floats{6}));
}

TEST(TapeOptions, StopsRecordingWhileTraced) {
  Variable w(tensor(2.f));
  Function f = function("f(x)", [=](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = scope([&] {
      auto stopped = tape.stop_recording();
      if (x > 0) return x * w;
      return x * x;
    });
    Tensor z = x * y;  // recorded again, whichever way it went
    return tape.gradient(z, x);
  });
  EXPECT_EQ(floats(f(tensor(3.f))), (Floats{6}));
  EXPECT_EQ(floats(f(tensor(-3.f))), (Floats{9}));
  // On one side alone: the tape would have to know which side was taken.
  Function one_side = function("one_side(x)", [=](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = scope([&] {
      if (x > 0) {
        auto stopped = tape.stop_recording();
        return x * w;
      }
      return x * x;
    });
    return tape.gradient(y, x);
  });
  EXPECT_CONTAINS(error_of([&] { one_side(tensor(3.f)); }), "a tape that was made before an if (tensor)");
}

TEST(TapeOptions, ResetBeginsAnew) {
  Tensor x = tensor(3.f);
  Variable v(tensor(2.f));
  GradientTape tape;
  tape.watch(x);
  Tensor y = x * v;
  EXPECT_EQ(floats(tape.gradient(y, x)), (Floats{2}));
  tape.reset();
  Tensor z = x * v;
  EXPECT_EQ(floats(tape.gradient(z, v)), (Floats{3}));
  tape.reset();
  EXPECT_FALSE(tape.gradient(x * x, x).defined());  // is watched no more
  tape.reset();
  tape.watch(x);
  y = x * x;
  tape.reset();
  EXPECT_FALSE(tape.gradient(y, x).defined());
  Function f = function("f(x)", [](Tensor at) {
    GradientTape inner;
    inner.watch(at);
    Tensor first = inner.gradient(at * at, at);
    inner.reset();
    inner.watch(at);
    return first + inner.gradient(at * at * at, at);
  });
  EXPECT_EQ(floats(f(x)), (Floats{6 + 27}));
  Function refused = function("refused(x)", [](Tensor at) {
    GradientTape outer;
    outer.watch(at);
    return scope([&] {
      Tensor doubled = at * 2;
      outer.reset();
      if (at > 0) return doubled;
      return at;
    });
  });
  EXPECT_CONTAINS(error_of([&] { refused(x); }), "a tape that was made before an if (tensor) is reset in the scope");
}

TEST(TapeOptions, AnExceptionInTheMiddleLeavesTheTapeRecording) {
  Tensor x = tensor({1.f, 2.f});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = x * x;
  EXPECT_NE(error_of([&] { matmul(y, tensor({{1.f}, {2.f}, {3.f}})); }), "no error");
  auto broken = custom_gradient(
      [](Tensor at) { return std::pair(at * 2, [](Tensor) -> Tensor { throw UserError("backwards"); }); });
  Tensor z = broken(y);
  EXPECT_EQ(error_of([&] { tape.gradient(z, x); }), "backwards");
  EXPECT_EQ(floats(tape.gradient(sum(y * 3), x)), (Floats{6, 12}));
}

// --- nests of tapes

TEST(TapeOptions, TapesInEveryOrder) {
  Tensor x = tensor(2.0);
  // Inner one first, outer one first, and a third order; persistent or not.
  for (bool persistent : {false, true}) {
    GradientTape third({.persistent = persistent}), second({.persistent = persistent});
    third.watch(x);
    second.watch(x);
    GradientTape first({.persistent = persistent});
    first.watch(x);
    Tensor y = x * x * x * x;
    Tensor d = first.gradient(y, x), dd = second.gradient(d, x), ddd = third.gradient(dd, x);
    EXPECT_EQ(d.item<double>(), 32);
    EXPECT_EQ(dd.item<double>(), 48);
    EXPECT_EQ(ddd.item<double>(), 48);
  }
  {
    // The tape that was made first gives its gradient first, and the later one has seen that.
    GradientTape a;
    a.watch(x);
    GradientTape b;
    b.watch(x);
    Tensor y = x * x * x;
    Tensor d = a.gradient(y, x);
    EXPECT_EQ(b.gradient(d, x).item<double>(), 12);
  }
  {
    // One ends before the other.
    GradientTape a({.persistent = true});
    a.watch(x);
    Tensor d;
    {
      GradientTape b;
      b.watch(x);
      d = b.gradient(tanh(x * x), x);
    }
    double t = std::tanh(4.0), s = 1 - t * t;
    EXPECT_NEAR(d.item<double>(), 4 * s, 1e-12);
    EXPECT_NEAR(a.gradient(d, x).item<double>(), 2 * s - 8 * 4 * t * s, 1e-12);
  }
}

TEST(TapeOptions, TapesOfThreadsDoNotSeeEachOther) {
  Tensor x = tensor({1.f, 2.f});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  std::vector<Floats> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        GradientTape own;
        own.watch(x);
        Tensor y = sum(x * x * static_cast<float>(i));
        found[i] = floats(own.gradient(y, x));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(found[i], (Floats{2.f * static_cast<float>(i), 4.f * static_cast<float>(i)}));
  EXPECT_EQ(floats(tape.gradient(x * x, x)), (Floats{2, 4}));
}

TEST(TapeOptions, EmptyTensorsAndTensorsOfOneElement) {
  for (Shape shape : {Shape({0}), Shape({0, 3}), Shape({1}), Shape({1, 1})}) {
    Tensor x = ones(shape);
    GradientTape tape({.persistent = true});
    tape.watch(x);
    Tensor y = sum(exp(x) * x, -1);
    EXPECT_EQ(tape.gradient(y, x).shape().str(), shape.str());
    Tensor d = tape.gradient(y, x, {.output_gradients = ones_like(y)});
    for (float value : floats(d)) EXPECT_NEAR(value, 2 * std::exp(1.f), 1e-5);
  }
}

}  // namespace
}  // namespace stet
