// Small programs that decide by values and write Variables, call functions or keep host values: traced they do what
// they do eagerly.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <stdexcept>

#include "decisions.h"

namespace stet {
namespace {

struct GatedScale : keras::CustomLayer {
  Variable gain{full({}, 2)};
  STET_MEMBERS(gain)
  Tensor call(const Tensor& x, const keras::Context&) override {
    if (sum(x * gain) > 1.f) gain.assign_add(0.5f);
    return x * gain;
  }
};

// --- Variables

TEST(BranchState, WrittenOnOneSideOfAnInnerScopeAndReadInADecision) {
  expect_same(
      [] {
        Variable v(full({}, 1));
        return Program{[=](Tensor x) {
                         scope([&] {
                           if (sum(x) > 0.f) v.assign_add(sum(x));
                         });
                         if (v > 5.f) v.assign(v * 0.5f);
                         return Tensors{x * v};
                       },
                       {v}};
      },
      mixed());
}

TEST(BranchState, WrittenBeforeReadOnBothSides) {
  expect_same(
      [] {
        Variable v(full({}, 1)), w(full({}, 2));
        return Program{[=](Tensor x) {
                         v.assign_add(sum(x));
                         if (v > 3.f) {
                           w.assign(v * w);
                           return Tensors{x * w, v.read()};
                         }
                         v.assign_sub(1.f);
                         return Tensors{x + v, w.read()};
                       },
                       {v, w}};
      },
      mixed());
}

TEST(BranchState, AReadKeptFromBeforeTheScope) {
  expect_same(
      [] {
        Variable v(full({}, 1));
        return Program{[=](Tensor x) {
                         Tensor old = v.read();
                         Tensor y = scope([&] {
                           if (sum(x) > 0.f) v.assign(old * 3);
                           return x * v + old;
                         });
                         if (v > old) return Tensors{y, v - old};
                         return Tensors{y * 2, old};
                       },
                       {v}};
      },
      mixed());
}

TEST(BranchState, ALayerWithStateThatForksBeforeADecision) {
  expect_same(
      [] {
        auto layer = keras::make<GatedScale>();
        return Program{[=](Tensor x) {
                         Tensor y = keras::Layer(layer)(x);
                         if (sum(y) > 4.f) y = y - 1;
                         return Tensors{y};
                       },
                       {layer->gain}};
      },
      mixed());
}

TEST(BranchState, WrittenInEveryNestedScope) {
  expect_same(
      [] {
        Variable count(zeros({}));
        return Program{[=](Tensor x) {
                         count.assign_add(1.f);
                         Tensor y = scope([&] {
                           count.assign_add(10.f);
                           Tensor z = scope([&] {
                             if (sum(x) > 0.f) {
                               count.assign_add(100.f);
                               return x + count;
                             }
                             return x - count;
                           });
                           if (sum(z) > 50.f) count.assign_add(1000.f);
                           return z * 0.01f;
                         });
                         if (sum(y) > 1.f) count.assign(count * 0.5f);
                         return Tensors{y, count.read()};
                       },
                       {count}};
      },
      mixed());
}

TEST(BranchState, SwappedOnOneSide) {
  expect_same(
      [] {
        Variable a(full({2}, 1)), b(full({2}, 2));
        return Program{[=](Tensor x) {
                         scope([&] {
                           if (sum(x) > 0.f) {
                             Tensor keep = a.read();
                             a.assign(b.read());
                             b.assign(keep);
                           }
                         });
                         if (sum(a) > sum(b)) a.assign_add(full({2}, 0.25));
                         return Tensors{a - b};
                       },
                       {a, b}};
      },
      mixed());
}

TEST(BranchState, AThrowingSideChangesNothing) {
  expect_same(
      [] {
        Variable v(full({}, 1));
        return Program{[=](Tensor x) {
                         v.assign_add(1.f);
                         if (sum(x) < -2.f) throw std::domain_error("too low");
                         return Tensors{x * v};
                       },
                       {v}};
      },
      // Eagerly the write before the throw has happened: what a traced call takes back. So the last call throws.
      {tensor({1.f, 2.f}), tensor({-1.f, 0.5f}), tensor({3.f})});
}

TEST(BranchState, AVariableAsTheConditionTwice) {
  expect_same(
      [] {
        Variable v(full({}, 1));
        return Program{[=](Tensor x) {
                         Tensor y = cond(
                             v > 2.f, [&] { return x * v; }, [&] { return x / v; });
                         v.assign_add(1.f);
                         Tensor z = cond(
                             v > 2.f, [&] { return y * v; }, [&] { return y / v; });
                         if (v > 3.f) v.assign(full({}, 0.5));
                         return Tensors{y, z};
                       },
                       {v}};
      },
      mixed());
}

// --- inside one another

TEST(NestedFunctions, AForkAfterAnInnerFunctionThatForksTwice) {
  expect_same(
      [] {
        Function once = function("once(x)", [](Tensor x) { return bend(x); });
        Function twice = function("twice(x)", [=](Tensor x) {
          Tensor y = once(x);
          if (sum(y) > 4.f) return once(y - 3);
          return y;
        });
        return Program{[=](Tensor x) {
          Tensor y = twice(x);
          if (sum(y) > 2.f) return Tensors{twice(y * 0.5f)};
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(NestedFunctions, WholeProgramsInsideAnother) {
  MakeProgram make = [] {
    Variable v(full({}, 1));
    return Program{[=](Tensor x) {
                     if (sum(x) > 0.f) v.assign_add(sum(x));
                     return Tensors{x * v};
                   },
                   {v}};
  };
  expect_same_nested(make, mixed());
}

TEST(NestedFunctions, ForkAfterForkInsideAnother) {
  MakeProgram make = [] {
    Variable v(full({}, 1));
    return Program{[=](Tensor x) {
                     Tensor y = scope([&] { return bend(x); });
                     if (sum(y) > 4.f) v.assign_add(sum(x));
                     return Tensors{y * v};
                   },
                   {v}};
  };
  expect_same_nested(make, mixed());
}

TEST(NestedFunctions, DrawsInAScopeOnOneSideThenInALayer) {
  struct Noise : keras::CustomLayer {
    Tensor call(const Tensor& x, const keras::Context&) override { return x + random::normal({}); }
  };
  expect_same_nested(
      [] {
        keras::Layer noise = Noise{};
        return Program{[=](Tensor x) {
          Tensor y = x;
          if (sum(x) > 0.f) {
            y = scope([&] { return x * random::normal({}); });
            y = noise(y);
          }
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(NestedFunctions, ALayerWithAScopeOnOneSideOfAnInnerFunction) {
  struct Scoped : keras::CustomLayer {
    Tensor c = full({20}, 0.5);
    Tensor call(const Tensor& x, const keras::Context&) override {
      Tensor y = scope([&] { return sigmoid(c); });
      return x + sum(tanh(y));
    }
  };
  expect_same_nested(
      [] {
        keras::Layer layer = Scoped{};
        return Program{[=](Tensor x) {
          if (sum(x) > 0.f) return Tensors{x};
          return Tensors{layer(x)};
        }};
      },
      mixed());
}

TEST(NestedFunctions, ALayerThatWritesOnOneSideOfAnInnerFunction) {
  struct Counting : keras::CustomLayer {
    Variable count{zeros({})};
    STET_MEMBERS(count)
    Tensor call(const Tensor& x, const keras::Context&) override {
      count.assign_add(1.f);
      return x;
    }
  };
  expect_same_nested(
      [] {
        auto layer = keras::make<Counting>();
        return Program{[=](Tensor x) {
                         if (sum(x) > 0.f) x = keras::Layer(layer)(x);
                         return Tensors{layer->count.assign_add(10.f)};
                       },
                       {layer->count}};
      },
      mixed());
}

TEST(NestedFunctions, OnASideOfADecision) {
  expect_same(
      [] {
        Function inner = function("inner(x)", [](Tensor x) { return bend(x); });
        return Program{[=](Tensor x) {
          Tensor big = cast(arange(20), f32);
          if (sum(x) > 3.f) return Tensors{inner(x - 2), inner(big)};
          return Tensors{inner(x), big};
        }};
      },
      mixed());
}

TEST(Written, BeforeADecisionOfWhichBothSidesThrow) {
  expect_same(
      [] {
        Variable v(full({}, 1));
        return Program{[=](Tensor x) {
                         Tensor y = x;
                         try {
                           scope([&] {
                             v.assign_add(sum(x));
                             if (sum(x) > 0.f) throw std::domain_error("high");
                             throw std::domain_error("low");
                           });
                         } catch (const std::domain_error&) {
                           y = x * v;
                         }
                         if (sum(x) > 2.f) y = y + v;
                         return Tensors{y};
                       },
                       {v}};
      },
      mixed());
}

TEST(Written, DifferentlyOnSidesThatThrowIsRefused) {
  Variable v(full({}, 1));
  Function f = function("f(x)", [=](Tensor x) {
    try {
      scope([&] {
        if (sum(x) > 0.f) throw std::domain_error("high");
        v.assign(sum(x));
        throw std::domain_error("low");
      });
    } catch (const std::domain_error&) {
    }
    return x * v;
  });
  try {
    f(ones({2}));
    ADD_FAILURE() << "no error";
  } catch (const TraceError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("tracing 'f': every side of an if (tensor) throws, and they wrote Variables "
                        "differently"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(v.read().item<float>(), 1);
}

// --- host values

TEST(HostValues, ANumberWrittenOnOneSide) {
  Function f = function("k(x)", [](Tensor x) {
    int k = 0;
    Tensor y = cond(
        sum(x) > 0.f,
        [&] {
          k = 1;
          return x + 1;
        },
        [&] {
          k = 2;
          return x - 1;
        });
    return y * k;
  });
  EXPECT_THROW(f(tensor({1.f})), TraceError);
}

TEST(HostValues, ANumberWrittenOnOneSideBeforeAnIf) {
  Function f = function("k(x)", [](Tensor x) {
    int k = 0;
    scope([&] {
      if (sum(x) > 0.f) k = 1;
    });
    if (sum(x) > 5.f) return x * k;
    return x - k;
  });
  EXPECT_THROW(f(tensor({1.f})), TraceError);
}

TEST(HostValues, OfTheSideInTheSameScopeAreFine) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          int k = 3;
          if (sum(x) > 0.f) k = 1;
          if (sum(square(x)) > 5.f) k += 5;
          return Tensors{x * k};
        }};
      },
      mixed());
}

TEST(HostValues, ReturnedFromASideDecideLater) {
  // Numbers that both sides return alike are host values like any other.
  expect_same(
      [] {
        return Program{[](Tensor x) {
          auto [y, n] = scope([&] {
            if (sum(x) > 0.f) return std::tuple{x * 2, 3};
            return std::tuple{x + 1, 3};
          });
          if (sum(y) > 4.f) return Tensors{y * n};
          return Tensors{y};
        }};
      },
      mixed());
}

}  // namespace
}  // namespace stet
