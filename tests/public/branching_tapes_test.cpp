// Tapes and decisions, and tapes around traced functions: which tensor a tape saw is the same traced and eagerly.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <stdexcept>

#include "eager_and_traced.h"

namespace stet {
namespace {

using Tensors = std::vector<Tensor>;

Tensors mixed() {
  return {tensor({1.f, 2.f, 3.f}), tensor({-1.f, -2.f, 0.5f}), tensor({4.f}), tensor({-0.5f, 0.25f, -3.f, 1.f, 0.f}),
          tensor({1.f, 2.f, 3.f})};
}
Tensors of_three() {
  return {tensor({1.f, 2.f, 3.f}), tensor({-1.f, -2.f, 0.5f}), tensor({4.f, 0.f, -1.f}), tensor({1.f, 2.f, 3.f})};
}

Tensor bend(const Tensor& x) {
  if (sum(x) > 0.f) return square(x) + x;
  return tanh(x);
}
struct Bend : keras::CustomLayer {
  Tensor call(const Tensor& x, const keras::Context&) override { return bend(x); }
};

// --- a Function under an eager tape

TEST(TapeAroundAFunction, AVariableWrittenAndThenRead) {
  expect_same_gradients(
      [] {
        Variable m(full({}, 1));
        return Program{[=](Tensor x) {
                         m.assign(m * 0.9f + mean(x) * 0.1f);
                         return Tensors{x * x - m};
                       },
                       {m}};
      },
      mixed());
}

TEST(TapeAroundAFunction, AVariableDoubledAndThenRead) {
  expect_same_gradients(
      [] {
        Variable v(full({}, 3));
        return Program{[=](Tensor x) {
                         v.assign(v * 2);
                         return Tensors{x * v};
                       },
                       {v}};
      },
      mixed());
}

TEST(TapeAroundAFunction, ReadBeforeAndAfterAWrite) {
  expect_same_gradients(
      [] {
        Variable v(full({}, 3));
        return Program{[=](Tensor x) {
                         Tensor before = v.read();
                         v.assign_add(sum(x));
                         return Tensors{x * v, x * before};
                       },
                       {v}};
      },
      mixed());
}

TEST(TapeAroundAFunction, AVariableReadManyTimes) {
  expect_same_gradients(
      [] {
        Variable v(full({}, 3));
        return Program{[=](Tensor x) { return Tensors{x * v + v * v, exp(v * 0.1f) * x}; }, {v}};
      },
      mixed(), true);
}

TEST(TapeAroundAFunction, ACondOfWhichNobodyNeedsTheResultRaises) {
  expect_same_gradients(
      [] {
        return Program{[](Tensor x) {
          cond(
              sum(x * x) > 15.f, [&] { throw std::domain_error("too much"); }, [] {});
          scope([&] {
            if (sum(x) < -2.f) throw std::domain_error("too little");
          });
          return Tensors{x * x};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, TheSameTensorFromBothSides) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape tape({.persistent = true});
          tape.watch(x);
          Tensor a = cond(
              sum(x) > 0.f, [&] { return x; }, [&] { return x; });
          Tensor b = scope([&] {
            Tensor y = x * 2;
            if (sum(x) > 1.f) return y;
            return y;
          });
          Tensor c = sum(square(x) + b * 3);
          return known({tape.gradient(c, a), tape.gradient(c, b), tape.gradient(b, x)});
        }};
      },
      mixed());
}

/// A reading on one side only: which one the next is does not depend on the side that was run last.
TEST(TapeAroundAFork, AVariableReadOnOneSideAndAfterwards) {
  expect_same(
      [] {
        Variable v(full({3}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape tape;
                         Tensor y = scope([&] {
                           Tensor z = x;
                           if (sum(x) > 0.f) z = x * 2;
                           z = cond(
                               sum(x) > 5.f, [&] { return z; }, [&] { return z + v; });
                           Tensor after = v.read();
                           v.assign_sub(sin(after) * 0.25f);
                           return sum(z) * after;
                         });
                         return Tensors{y, known(tape.gradient(y, v))};
                       },
                       {v}};
      },
      of_three());
}

/// Which sizes the branch has, and what it takes from outside, does not depend on the side that is run first.
TEST(TapeAroundAFork, AnotherVariableOnEachSide) {
  expect_same(
      [] {
        Variable u(full({3}, 0.5)), v(full({3}, 2));
        return Program{[=](Tensor x) {
                         GradientTape tape;
                         Tensor y = cond(
                             sum(x) > 0.f, [&] { return u.read(); }, [&] { return v.read(); });
                         Tensors ds = tape.gradient(y, std::vector<Variable>{u, v});
                         // A branch cannot be undefined on one side.
                         for (Tensor& d : ds) d = d.defined() ? d : zeros({3});
                         return ds;
                       },
                       {u, v}};
      },
      of_three());
}

/// What only a decision is made by has no gradient: zeros would be NaN here.
TEST(TapeAroundAFunction, AValueThatOnlyDecides) {
  expect_same_gradients(
      [] {
        return Program{[](Tensor x) {
          Tensor far = x * log(sum(x * 0));  // -inf and NaN
          Tensor y = x;
          if (sum(x) > 4.5f) {
            if (sum(far) > 1.f)
              y = x * 2;
            else
              tanh(far);
          }
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(TapeAroundAFunction, ASmallCapturedWatchedTensor) {
  Tensor c = tensor({2.f, 3.f});
  Function f = function("f(x)", [=](Tensor x) { return x * c; });
  Tensor x = tensor({5.f, 7.f});
  GradientTape tape;
  tape.watch(c);
  Tensor d = tape.gradient(f(x), c);
  ASSERT_TRUE(d.defined());
  EXPECT_EQ(d.to_vector<float>(), (std::vector<float>{5, 7}));
}

TEST(TapeAroundAFunction, ALargeCapturedWatchedTensor) {
  Tensor c = full({40}, 2);
  Function f = function("f(x)", [=](Tensor x) { return x * c; });
  Tensor x = full({40}, 5);
  GradientTape tape;
  tape.watch(c);
  Tensor d = tape.gradient(f(x), c);
  ASSERT_TRUE(d.defined());
  EXPECT_EQ(d.to_vector<float>(), std::vector<float>(40, 5));
}

TEST(TapeAroundAFunction, ACapturedTensorComputedUnderTheTape) {
  for (int size : {3, 40}) {
    Tensor x = full({size}, 2);
    GradientTape tape;
    tape.watch(x);
    Tensor c = x * x;
    Function f = function("f(y)", [=](Tensor y) { return y * c; });
    Tensor d = tape.gradient(f(full({size}, 5)), x);
    ASSERT_TRUE(d.defined()) << size;
    EXPECT_EQ(d.to_vector<float>(), std::vector<float>(static_cast<std::size_t>(size), 20));
  }
}

TEST(TapeAroundAFunction, ACapturedTensorThatIsReturned) {
  Tensor c = tensor({2.f, 3.f});
  Function f = function("f(x)", [=](Tensor x) { return Tensors{c, x}; });
  GradientTape tape;
  tape.watch(c);
  Tensors out = f(tensor({5.f, 7.f}));
  Tensor d = tape.gradient(out[0] * out[1], c);
  ASSERT_TRUE(d.defined());
  EXPECT_EQ(d.to_vector<float>(), (std::vector<float>{5, 7}));
}

TEST(TapeAroundAFunction, ACapturedTensorThatIsTheArgumentToo) {
  Tensor c = tensor({2.f, 3.f});
  Function f = function("f(x)", [=](Tensor x) { return x * c; });
  GradientTape tape;
  tape.watch(c);
  EXPECT_EQ(tape.gradient(f(c), c).to_vector<float>(), (std::vector<float>{4, 6}));
}

TEST(TapeAroundAFunction, OneTensorAsTwoArguments) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return x * y * y; });
  Tensor x = tensor({2.f, 3.f});
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(f(x, x), x).to_vector<float>(), (std::vector<float>{12, 27}));
}

TEST(TapeAroundAFunction, AForkAndAVariable) {
  expect_same_gradients(
      [] {
        Variable w(full({}, 0.5));
        return Program{[=](Tensor x) {
                         if (sum(x * w) > 0.f) return Tensors{square(x * w)};
                         return Tensors{x - w};
                       },
                       {w}};
      },
      mixed(), true);
}

TEST(TapeAroundAFunction, AForkThatWritesAndReadsAgain) {
  expect_same_gradients(
      [] {
        Variable w(full({}, 0.5));
        return Program{[=](Tensor x) {
                         scope([&] {
                           if (sum(x) > 0.f) w.assign(w * 2 + sum(x));
                         });
                         return Tensors{x * w};
                       },
                       {w}};
      },
      mixed());
}

TEST(TapeAroundAFunction, ForkAfterFork) {
  expect_same_gradients(
      [] {
        Variable w(full({}, 0.5));
        return Program{[=](Tensor x) {
                         Tensor y = scope([&] { return bend(x * w); });
                         if (sum(y) > 3.f) return Tensors{y * w};
                         return Tensors{y + x};
                       },
                       {w}};
      },
      mixed(), true);
}

TEST(TapeAroundAFunction, ATapeInsideToo) {
  expect_same_gradients(
      [] {
        Variable w(full({}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape tape;
                         tape.watch(x);
                         Tensor y = sum(square(x) * x * w);
                         return Tensors{known(tape.gradient(y, x))};
                       },
                       {w}};
      },
      mixed(), true);
}

TEST(TapeAroundAFunction, Softmax) {
  MakeProgram make = [] { return Program{[](Tensor x) { return Tensors{softmax(x) * x, log_softmax(x)}; }}; };
  expect_same_gradients(make, mixed(), true);
}

TEST(TapeAroundAFunction, SoftmaxToTheLastBit) {
  Function f = function("f(x)", [](Tensor x) { return log_softmax(x * 3); });
  Tensor x = random::stateless_normal({5, 7}, {3, 4}), weight = random::stateless_normal({5, 7}, {5, 6});
  GradientTape a, b;
  a.watch(x);
  b.watch(x);
  Tensor eager = a.gradient(sum(log_softmax(x * 3) * weight), x);
  Tensor traced = b.gradient(sum(f(x) * weight), x);
  EXPECT_EQ(eager.to_vector<float>(), traced.to_vector<float>());
}

TEST(TapeAroundAFunction, TwoCallsOfOneFunction) {
  Variable w(full({}, 0.5));
  Function f = function("f(x)", [=](Tensor x) { return tanh(x * w); });
  Tensor x = tensor({0.5f, -1.f});
  GradientTape a, b;
  Tensor eager = a.gradient(sum(tanh(tanh(x * w) * w)), w);
  Tensor traced = b.gradient(sum(f(f(x))), w);
  EXPECT_FLOAT_EQ(eager.item<float>(), traced.item<float>());
}

TEST(TapeAroundAFunction, TwoCallsThatWriteWhatTheyRead) {
  auto body = [](Variable v) {
    return [=](Tensor x) {
      v.assign(v * x);
      return v + x;
    };
  };
  auto derivative = [](Variable v, const std::function<Tensor(Tensor)>& f) {
    Tensor x = full({}, 3);
    GradientTape tape({.persistent = true});
    tape.watch(x);
    Tensor y = f(x) + f(x * 2);
    return std::vector<float>{known(tape.gradient(y, x)).item<float>(), known(tape.gradient(y, v)).item<float>()};
  };
  Variable a(full({}, 2)), b(full({}, 2));
  std::vector<float> eager = derivative(a, body(a));
  EXPECT_EQ(derivative(b, function("f(x)", body(b))), eager);
}

TEST(TapeAroundAFunction, ANonTrainableVariableIsNotSeen) {
  auto derivative = [](bool traced) {
    Variable v(full({}, 2), {.trainable = false});
    std::function<Tensor(Tensor)> f = [=](Tensor x) {
      v.assign_add(1.f);
      return x * v;
    };
    if (traced) f = function("f(x)", f);
    GradientTape tape;
    Tensor x = full({}, 3);
    tape.watch(x);
    return tape.gradient(f(x), {x, v});
  };
  std::vector<Tensor> eager = derivative(false), with_function = derivative(true);
  EXPECT_EQ(with_function[0].item<float>(), eager[0].item<float>());
  EXPECT_EQ(with_function[1].defined(), eager[1].defined());
}

TEST(TapeAroundAFunction, WhatAssignAddGives) {
  for (bool subtract : {false, true})
    expect_same_gradients(
        [=] {
          Variable v(full({}, 3));
          return Program{[=](Tensor x) { return Tensors{subtract ? v.assign_sub(sum(x)) : v.assign_add(sum(x))}; },
                         {v}};
        },
        mixed());
}

TEST(TapeAroundAFunction, WhatAssignGives) {
  expect_same_gradients(
      [] {
        Variable v(full({}, 3));
        return Program{[=](Tensor x) {
                         Tensor y = v.assign(v * sum(x));
                         return Tensors{y * v};
                       },
                       {v}};
      },
      mixed());
}

// --- a tape inside a trace, around what forks

TEST(TapeAroundAFork, AWatchedCapture) {
  for (int size : {3, 40})
    expect_same(
        [=] {
          Tensor c = full({size}, 3);
          return Program{[=](Tensor x) {
            GradientTape tape;
            tape.watch(c);
            Tensor y = scope([&] {
              if (sum(x) > 0.f) return x * c;
              return c;
            });
            return Tensors{known(tape.gradient(y, c))};
          }};
        },
        {full({size}, 2), full({size}, -2)});
}

TEST(TapeAroundAFork, AWatchedLocalTensor) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor c = tensor({1.f, 2.f, 3.f});
          GradientTape tape;
          tape.watch(c);
          Tensor y = cond(
              sum(x) > 0.f, [&] { return x * c * c; }, [&] { return x - c; });
          return Tensors{known(tape.gradient(y, c))};
        }};
      },
      of_three());
}

TEST(TapeAroundAFork, AWatchedLargeLocalTensor) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor c = full({20}, 1.5);
          GradientTape tape;
          tape.watch(c);
          Tensor y = cond(
              sum(x) > 0.f, [&] { return sum(x) * c * c; }, [&] { return sum(x) - c; });
          return Tensors{known(tape.gradient(y, c))};
        }};
      },
      of_three());
}

TEST(TapeAroundAFork, AWatchedComputedTensor) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor c = exp(x);
          GradientTape tape;
          tape.watch(c);
          Tensor y = cond(
              sum(x) > 0.f, [&] { return x * c * c; }, [&] { return x - c; });
          return Tensors{known(tape.gradient(y, c))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, AnAssignedTargetIsNotItsSource) {
  expect_same(
      [] {
        Variable online(full({}, 2)), target(full({}, 1));
        return Program{[=](Tensor x) {
                         target.assign(online.read());
                         GradientTape tape({.persistent = true});
                         Tensor q = scope([&] {
                           if (sum(x) > 0.f) return x * target;
                           return x - target;
                         });
                         Tensor y = sum(q) + online;
                         return known(Tensors{tape.gradient(y, online), tape.gradient(y, target)});
                       },
                       {online, target}};
      },
      mixed());
}

TEST(TapeAroundAFork, AnAssignmentUnderTheTape) {
  expect_same(
      [] {
        Variable online(full({}, 2)), target(full({}, 1));
        return Program{[=](Tensor x) {
                         GradientTape tape({.persistent = true});
                         target.assign(online.read());
                         Tensor q = scope([&] {
                           if (sum(x) > 0.f) return x * target;
                           return x - target;
                         });
                         return known(Tensors{tape.gradient(q, online), tape.gradient(q, target)});
                       },
                       {online, target}};
      },
      mixed());
}

TEST(TapeAroundAFork, AReadFromBeforeTheTape) {
  expect_same(
      [] {
        Variable v(full({}, 2));
        return Program{[=](Tensor x) {
                         Tensor old = v.read();
                         GradientTape tape;
                         Tensor y = scope([&] {
                           if (sum(x) > 0.f) return v * old;
                           return v * 3;
                         });
                         return Tensors{known(tape.gradient(y, v))};
                       },
                       {v}};
      },
      mixed());
}

TEST(TapeAroundAFork, AReadFromBeforeTheTapeWithoutAFork) {
  expect_same(
      [] {
        Variable v(full({}, 2));
        return Program{[=](Tensor x) {
                         Tensor old = v.read();
                         GradientTape tape;
                         return Tensors{known(tape.gradient(v * old + sum(x), v))};
                       },
                       {v}};
      },
      mixed());
}

TEST(TapeAroundAFork, SidesThatReturnOuterTensors) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape tape;
          tape.watch(x);
          Tensor a = x * 2, b = x * 7;
          Tensor y = cond(
              sum(x) > 0.f, [&] { return a; }, [&] { return b; });
          return Tensors{known(tape.gradient(sum(y) + sum(square(x)), x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, OneSideReturnsAnOuterTensor) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape tape;
          tape.watch(x);
          Tensor a = x * 2;
          Tensor y = scope([&] {
            if (sum(x) > 0.f) return a;
            return a * a;
          });
          return Tensors{known(tape.gradient(y, x)), y};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, ASideReturnsTheWatchedTensorItself) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape tape;
          tape.watch(x);
          Tensor y = cond(
              sum(x) > 0.f, [&] { return x; }, [&] { return x * 3; });
          return Tensors{known(tape.gradient(y * 2, x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, ChoosingBetweenTwoLosses) {
  expect_same(
      [] {
        Variable w(full({3}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape tape;
                         Tensor low = sum(square(x - w)), high = sum(abs(x * w));
                         Tensor loss = cond(
                             sum(x) > 0.f, [&] { return low; }, [&] { return high; });
                         w.assign_sub(0.1f * known(tape.gradient(loss, w)));
                         return Tensors{loss};
                       },
                       {w}};
      },
      of_three());
}

TEST(TapeAroundAFork, ThenADecisionOnTheLoss) {
  expect_same(
      [] {
        Variable w(full({3}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape tape;
                         Tensor y = scope([&] { return bend(x * w); });
                         Tensor loss = sum(square(y));
                         Tensor d = tape.gradient(loss, w);
                         if (sum(square(d)) > 4.f) d = d / sqrt(sum(square(d)));
                         w.assign_sub(0.1f * d);
                         return Tensors{loss};
                       },
                       {w}};
      },
      of_three());
}

TEST(TapeAroundAFork, TheDecisionInTheSameScopeAsTheTape) {
  expect_same(
      [] {
        Variable w(full({3}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape tape;
                         Tensor y = bend(x * w);
                         Tensor d = tape.gradient(sum(square(y)), w);
                         w.assign_sub(0.1f * d);
                         return Tensors{y};
                       },
                       {w}};
      },
      of_three());
}

TEST(TapeAroundAFork, ALayerThatForks) {
  expect_same(
      [] {
        keras::Layer layer = Bend{};
        return Program{[=](Tensor x) {
          GradientTape tape;
          tape.watch(x);
          return Tensors{known(tape.gradient(layer(x) * x, x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, AFunctionThatForks) {
  expect_same(
      [] {
        Function inner = function("inner(x)", [](Tensor x) { return bend(x); });
        return Program{[=](Tensor x) {
          GradientTape tape;
          tape.watch(x);
          return Tensors{known(tape.gradient(inner(x) * x, x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, TwoScopesInARow) {
  expect_same(
      [] {
        Variable w(full({}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape tape({.persistent = true});
                         tape.watch(x);
                         Tensor y = scope([&] { return bend(x * w); });
                         Tensor z = scope([&] {
                           if (sum(y) > 2.f) return y;
                           return y * w;
                         });
                         return known(Tensors{tape.gradient(z, x), tape.gradient(z, w), tape.gradient(z, y)});
                       },
                       {w}};
      },
      mixed());
}

TEST(TapeAroundAFork, SecondOrder) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape outer;
          outer.watch(x);
          GradientTape inner;
          inner.watch(x);
          Tensor y = scope([&] { return bend(x) * x; });
          Tensor first = inner.gradient(y, x);
          return Tensors{first, known(outer.gradient(first * x, x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, SecondOrderOfSidesThatReturnOuterTensors) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape outer;
          outer.watch(x);
          GradientTape inner;
          inner.watch(x);
          Tensor a = x * x * x, b = exp(x);
          Tensor y = cond(
              sum(x) > 0.f, [&] { return a; }, [&] { return b; });
          Tensor first = known(inner.gradient(y, x));
          return Tensors{first, known(outer.gradient(first, x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, SecondOrderWithADecisionBetween) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape outer;
          outer.watch(x);
          GradientTape inner;
          inner.watch(x);
          Tensor y = scope([&] { return bend(x); });
          Tensor first = inner.gradient(y * x, x);
          if (sum(first) > 5.f) first = first * 2;
          return Tensors{known(outer.gradient(first, x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, ATapeOnOneSide) {
  expect_same(
      [] {
        Variable w(full({}, 0.5));
        return Program{[=](Tensor x) {
                         if (sum(x) > 0.f) {
                           GradientTape tape;
                           Tensor d = tape.gradient(sum(square(x * w)), w);
                           w.assign_sub(0.01f * d);
                           return Tensors{d};
                         }
                         return Tensors{w * 1};
                       },
                       {w}};
      },
      mixed());
}

TEST(TapeAroundAFork, ATapeInsideTheScopeAndOneOutside) {
  expect_same(
      [] {
        Variable w(full({}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape outer;
                         Tensor y = scope([&] {
                           GradientTape tape;
                           tape.watch(x);
                           Tensor z = sum(x) > 0.f ? square(x) * w : x * w * w;
                           return known(tape.gradient(z, x));
                         });
                         return Tensors{y, known(outer.gradient(y, w))};
                       },
                       {w}};
      },
      mixed());
}

TEST(TapeAroundAFork, StoppedBeforeTheScope) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape tape;
          tape.watch(x);
          Tensor d = tape.gradient(square(x), x);
          Tensor y = scope([&] { return bend(d); });
          if (sum(y) > 4.f) return Tensors{y};
          return Tensors{d};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, PersistentAskedBetweenScopes) {
  expect_same(
      [] {
        Variable w(full({}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape tape({.persistent = true});
                         Tensor y = scope([&] { return bend(x * w); });
                         Tensor first = known(tape.gradient(y, w));
                         Tensor z = scope([&] {
                           if (sum(first) > 1.f) return y * w;
                           return y;
                         });
                         return known(Tensors{first, tape.gradient(z, w), tape.gradient(z, y)});
                       },
                       {w}};
      },
      mixed());
}

TEST(TapeAroundAFork, WritesOnASideReadAfterIt) {
  expect_same(
      [] {
        Variable w(full({}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape tape({.persistent = true});
                         tape.watch(x);
                         scope([&] {
                           if (sum(x) > 0.f) w.assign(w * 2 + sum(x));
                         });
                         Tensor y = x * w;
                         return known(Tensors{tape.gradient(y, w), tape.gradient(y, x)});
                       },
                       {w}};
      },
      mixed());
}

TEST(TapeAroundAFork, SidesOfDifferentSize) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape tape;
          tape.watch(x);
          Tensor y = cond(
              sum(x) > 0.f,
              [&] {
                return concat({x * x, x});
              },
              [&] { return x * 3; });
          return Tensors{known(tape.gradient(sum(square(y)), x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, ASideThatThrows) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape tape;
          tape.watch(x);
          Tensor a = x * x;
          Tensor y = scope([&] {
            if (sum(x) < -2.f) throw std::domain_error("too low");
            return a;
          });
          return Tensors{known(tape.gradient(y, x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, TheSameTensorReturnedTwice) {
  // On the side that gives x, z does not depend on a: undefined eagerly, zeros traced.
  auto or_zeros = [](const Tensor& d, const Tensor& like) { return d.defined() ? d : zeros_like(like); };
  expect_same(
      [=] {
        return Program{[=](Tensor x) {
          GradientTape tape({.persistent = true});
          tape.watch(x);
          Tensor a = x * x;
          auto [y, z] = scope([&] {
            if (sum(x) > 0.f) return std::tuple{a, a};
            return std::tuple{a * 2, x};
          });
          return Tensors{tape.gradient(y * z, x), tape.gradient(y, a), or_zeros(tape.gradient(z, a), a)};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, GradientByTheResultOfAScope) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape tape;
          Tensor y = scope([&] { return bend(x); });
          tape.watch(y);
          Tensor z = scope([&] { return bend(y - 1); });
          return Tensors{known(tape.gradient(z * y, y))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, AScopeThatDoesNotForkReturnsAnOuterTensor) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          GradientTape tape;
          tape.watch(x);
          Tensor a = x * x;
          Tensor y = scope([&] { return a; });
          return Tensors{known(tape.gradient(y + a, x))};
        }};
      },
      mixed());
}

TEST(TapeAroundAFork, AWatchedConstantThroughALayerAndAFunction) {
  for (int size : {3, 40})
    for (bool local : {false, true})
      expect_same(
          [=] {
            Tensor captured = full({size}, 3);
            keras::Layer layer = Bend{};
            Function inner = function("inner(x)", [](Tensor x) { return bend(x); });
            return Program{[=](Tensor x) {
              Tensor c = local ? full({size}, 3) : captured;
              GradientTape tape({.persistent = true});
              tape.watch(c);
              Tensor y = layer(x * c), z = inner(x + c);
              return known(Tensors{tape.gradient(y, c), tape.gradient(z, c)});
            }};
          },
          {full({size}, 2), full({size}, -2)});
}

/// The tape is around a scope that is run again: what it may not see it does not see then either.
TEST(TapeAroundAFork, SoftmaxToTheLastBit) {
  Tensor weight = random::stateless_normal({5, 7}, {5, 6}), x = random::stateless_normal({5, 7}, {3, 4});
  for (bool logarithm : {false, true}) {
    auto body = [=](Tensor given) {
      GradientTape tape;
      tape.watch(given);
      Tensor y = scope([&] {
        if (sum(given) > 1e9f) return given;
        return logarithm ? log_softmax(given * 3) : softmax(given * 3);
      });
      return tape.gradient(sum(y * weight), given);
    };
    Function f = function("f(given)", body);
    EXPECT_EQ(f(x).to_vector<float>(), body(x).to_vector<float>()) << logarithm;
  }
}

/// The same reading on all sides of an inner branch, made first on one side of an outer one or in the inner.
TEST(TapeAroundAFork, OneReadingOnSidesOfSides) {
  expect_same(
      [] {
        Variable v(full({3}, 0.5));
        return Program{[=](Tensor x) {
                         GradientTape tape;
                         Tensor y = cond(
                             sum(x) > 5.f, [&] { return v * 2; },
                             [&] {
                               Tensor z = cond(
                                   sum(x) > 0.f, [&] { return v.read(); },
                                   [&] {
                                     Tensor read = v.read();
                                     random::normal({2});
                                     return read;
                                   });
                               return z * x;
                             });
                         return Tensors{y, known(tape.gradient(y, v))};
                       },
                       {v}};
      },
      of_three());
}

/// Two constants with equal elements, of which a tape watches one.
TEST(TapeAroundAFork, AnEqualConstantOnOneSideIsNotWatched) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = x;
          if (sum(x) > 4.5f) y = x * 2;
          Tensor watched = zeros({20});
          GradientTape tape({.persistent = true});
          tape.watch(watched);
          tape.watch(y);
          Tensor z = cond(
              sum(y) > 0.f, [&] { return y * 2; },
              [&] {
                Tensor d = tape.gradient(sum(y), watched);
                return y + sum(d.defined() ? d : zeros({20}));
              });
          return Tensors{known(tape.gradient(z, y)), known(tape.gradient(z, watched))};
        }};
      },
      mixed());
}

/// With one tape around it a Function is two programs, with several its ops run one by one: this is the first.
TEST(TapeAroundAFunction, WhatRaisesDoesSoInTheCall) {
  Function f = function("f(x)", [](Tensor x) {
    cond(
        sum(x) > 15.f, [&] { throw std::domain_error("too much"); }, [] {});
    return x * x;
  });
  for (float size : {1.f, 20.f}) {
    Tensor x = full({2}, size);
    GradientTape tape;
    tape.watch(x);
    if (size > 15)
      EXPECT_THROW(f(x), std::domain_error);
    else
      EXPECT_EQ(tape.gradient(sum(f(x)), x).to_vector<float>(), (std::vector<float>{2, 2}));
  }
}

TEST(TapeAroundAFunction, WhatOnlyAnInnerDecisionNeedsHasNoGradient) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) {
    Tensor far = y * log(sum(x * 0));  // -inf
    if (sum(x) > 4.5f) return x;
    if (sum(far) > 1.f) return x * 2;
    tanh(far);
    return x * 3;
  });
  Tensor x = ones({2}), y = ones({3});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(y);
  Tensor z = sum(f(x, y));
  EXPECT_EQ(tape.gradient(z, x).to_vector<float>(), (std::vector<float>{3, 3}));
  EXPECT_FALSE(tape.gradient(z, y).defined());
}

TEST(TapeAroundAFunction, AnUnusedSoftmaxOfALateSize) {
  expect_same_gradients(
      [] {
        return Program{[](Tensor x) {
          softmax(cast(nonzero(x > 0.f), f32), 0);
          return Tensors{x * x};
        }};
      },
      {tensor({1.f, 2.f}), tensor({-1.f, -2.f, 0.5f}), tensor({-1.f, -2.f})});
}

}  // namespace
}  // namespace stet
