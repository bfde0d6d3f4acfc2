// Small programs that decide by values, in every position that a decision can have: traced they do what they do
// eagerly, in one trace.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <stdexcept>

#include "decisions.h"

namespace stet {
namespace {

struct Bend : keras::CustomLayer {
  Tensor call(const Tensor& x, const keras::Context&) override { return bend(x); }
};
struct BendTwice : keras::CustomLayer {
  keras::Layer inner = Bend{};
  STET_MEMBERS(inner)
  Tensor call(const Tensor& x, const keras::Context&) override {
    Tensor y = inner(x);
    if (sum(y) > 3.f) return y - inner(y);
    return y * 2;
  }
};

// --- a decision after an inner scope that forked

TEST(ForkAfterFork, IfAfterACond) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = cond(
              sum(x) > 0.f, [&] { return relu(x * 2) + 1; }, [&] { return x; });
          if (sum(y) > 4.f) return Tensors{y * 3};
          return Tensors{y - 1};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, IfAfterAScope) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = scope([&] { return bend(x); });
          if (sum(y) > 4.f) y = y * 3;
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, IfAfterALayerThatForks) {
  expect_same(
      [] {
        keras::Layer layer = Bend{};
        return Program{[=](Tensor x) {
          Tensor y = layer(x);
          if (sum(y) > 4.f) y = y * 3;
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, IfAfterAFunctionThatForks) {
  expect_same(
      [] {
        Function inner = function("inner(x)", [](Tensor x) { return bend(x); });
        return Program{[=](Tensor x) {
          Tensor y = inner(x);
          if (sum(y) > 4.f) y = y * 3;
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, LayerInLayer) {
  expect_same(
      [] {
        keras::Layer layer = BendTwice{};
        return Program{[=](Tensor x) { return Tensors{layer(x)}; }};
      },
      mixed());
}

TEST(ForkAfterFork, ScopeInCondInLayerInFunction) {
  struct Deep : keras::CustomLayer {
    Tensor call(const Tensor& x, const keras::Context&) override {
      Tensor y = cond(
          sum(x) > 0.f,
          [&] {
            Tensor inner = scope([&] { return bend(x - 1); });
            if (sum(inner) > 2.f) return inner * 2;
            return inner;
          },
          [&] { return x * x; });
      if (max(concat({y, zeros({1})})) > 3.f) return y + 10;
      return y;
    }
  };
  expect_same(
      [] {
        keras::Layer layer = Deep{};
        return Program{[=](Tensor x) {
          Tensor y = layer(x);
          if (sum(y) > 8.f) return Tensors{y, sum(y)};
          return Tensors{-y, sum(x)};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, BeforeBetweenAndAfter) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          if (sum(x) < -2.f) x = x + 4;
          Tensor y = scope([&] { return bend(x); });
          if (sum(y) > 4.f) y = y * 3;
          Tensor z = scope([&] { return bend(y - 2); });
          if (sum(z) > 6.f) z = z - y;
          return Tensors{z, y};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, TwoScopesThenOneDecisionOnBoth) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = scope([&] { return bend(x); }), z = scope([&] { return bend(-x); });
          if (sum(y) > sum(z)) return Tensors{y * z};
          return Tensors{y - z};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, ThreeDeep) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = scope([&] {
            Tensor a = scope([&] {
              Tensor b = scope([&] { return bend(x); });
              if (sum(b) > 4.f) return b * 2;
              return b + 1;
            });
            if (sum(a) > 9.f) return a * 0.5f;
            return a - 1;
          });
          if (sum(y) > 3.f) return Tensors{y * y};
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, TheInnerScopeReturnsSeveralTensors) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          auto [a, b] = scope([&] {
            if (sum(x) > 0.f) return std::tuple{x * 2, exp(x)};
            return std::tuple{x * x, x - 1};
          });
          if (sum(a) > sum(b)) return Tensors{a + b};
          return Tensors{a * b};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, TheDecisionDoesNotLookAtTheScope) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = scope([&] { return bend(x); });
          if (sum(square(x)) > 5.f) return Tensors{y};
          return Tensors{y + 1};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, TheScopeIsUsedOnOneSideOnly) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = scope([&] { return bend(x); });
          if (sum(square(x)) > 5.f) return Tensors{y};
          return Tensors{x};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, ADecisionBeforeTheScopeOnly) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          if (sum(square(x)) > 5.f) x = x - 1;
          return Tensors{scope([&] { return bend(x); })};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, ALoopOverLayersThatFork) {
  expect_same(
      [] {
        std::vector<keras::Layer> layers{Bend{}, Bend{}, Bend{}};
        return Program{[=](Tensor x) {
          for (const keras::Layer& layer : layers) x = layer(x) - 1;
          if (sum(x) > 0.f) x = x + 1;
          return Tensors{x};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, ConditionJoinedFromTwoScopes) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = scope([&] { return bend(x); });
          bool high = bool(sum(y) > 4.f) && bool(sum(x) < 5.f);
          return Tensors{high ? y * 2 : y / 2};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, SidesOfDifferentSizeThenADecision) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = cond(
              sum(x) > 0.f,
              [&] {
                return concat({x, x * 2});
              },
              [&] { return x * 1; });
          if (sum(y) > 10.f) return Tensors{y * 2, sum(y)};
          return Tensors{y, sum(square(y))};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, ASideOfTheInnerScopeThrows) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = scope([&] {
            if (sum(x) < -2.f) throw std::domain_error("too low");
            return bend(x);
          });
          if (sum(y) > 4.f) y = y * 3;
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, DrawsInTheInnerScopeAndAfterIt) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = scope([&] {
            if (sum(x) > 0.f) return x + random::uniform(x.shape());
            return x * 2;
          });
          if (sum(y) > 4.f) y = y * random::uniform(x.shape());
          return Tensors{y, random::uniform({2})};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, ACondThatThrowsThenAnIf) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor low = sum(x) < -2.f;
          Tensor y = cond(
              low, [&]() -> Tensor { throw std::domain_error("too low"); }, [&] { return x; });
          if (low) y = y * 3;
          return Tensors{y};
        }};
      },
      mixed());
}

/// An inner scope whose every path raises, on one side of a decision.
TEST(ForkAfterFork, AScopeThatRaisesEitherWay) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor low = sum(x) < -2.f, y = x * 2;
          if (low) {
            y = scope([&]() -> Tensor {
              Tensor z = y + 1;
              if (sum(z * z) > 12.f) throw std::domain_error("far too low");
              throw std::domain_error("too low");
            });
          }
          return Tensors{y};
        }};
      },
      {tensor({1.f, 2.f, 3.f}), tensor({-1.f, -2.f, 0.5f}), tensor({-9.f}), zeros({0}), tensor({-2.5f, 0.f})});
}

/// The condition is known there, so that the cond has one path.
TEST(ForkAfterFork, ACondThatRaisesWhereTheSideIsKnown) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor low = sum(x) < -2.f, y = x * 2;
          if (low) {
            y = cond(
                low,
                [&]() -> Tensor {
                  Tensor z = y + 1;
                  if (sum(z) > -20.f) throw std::domain_error("too low");
                  throw std::domain_error("far too low");
                },
                [&] { return y; });
          }
          return Tensors{y};
        }};
      },
      mixed());
}

/// What every path raises, host code may catch: what was recorded before the decision stays.
TEST(ForkAfterFork, AScopeThatRaisesEitherWayIsCaught) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = x, z = x;
          try {
            scope([&] {
              y = x * 3;
              if (sum(x) > 0.f) throw std::domain_error("high");
              throw std::domain_error("low");
            });
          } catch (const std::domain_error&) {
            z = y + 1;
          }
          if (sum(x) > 2.f) z = z - y;
          return Tensors{y, z};
        }};
      },
      mixed());
}

/// What sizes must be for an op is checked on a side also where an op before the decision has the same need.
TEST(ForkAfterFork, TheSameReshapeBeforeADecisionAndOnASide) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor wide = reshape(x, {x.dim(0), -1}), y = wide;
          if (sum(wide) > 2.f) y = reshape(x * 2, {x.dim(0), -1});
          return Tensors{y};
        }};
      },
      {ones({3, 2, 2}), zeros({2, 3, 1}), zeros({0, 2, 2}), ones({4, 1, 2})});
}

/// A check of an op that nobody needs, on one side.
TEST(ForkAfterFork, AnUnusedSoftmaxOfNothingOnOneSide) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = x + 1;
          cond(
              sum(x) > -1.f, [&] { softmax(x); }, [&] { x * 2; });
          return Tensors{y};
        }};
      },
      {tensor({1.f, 2.f}), zeros({0}), tensor({-1.f, -2.f, 0.5f})});
}

/// And one whose size is known when the program runs.
TEST(ForkAfterFork, AnUnusedSoftmaxOfALateSize) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          softmax(cast(nonzero(x > 0.f), f32), 0);
          return Tensors{x + 1};
        }};
      },
      {tensor({1.f, 2.f}), tensor({-1.f, -2.f, 0.5f}), tensor({-1.f, -2.f})});
}

/// A tie that one side finds, of sizes that the other joins.
TEST(ForkAfterFork, SizesThatAreTiedOnOnePathOnly) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) {
    Tensor z = y;
    if (sum(x) > 0.f)
      z = cond(
          sum(y) > 0.f, [&] { return x; }, [&] { return y; });
    z <= x;
    return z;
  });
  EXPECT_EQ(f(ones({3}), zeros({3})).to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(f(ones({2}), ones({2})).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(f.trace_count(), 1) << f.explain();
}

/// Sizes of both sides that are equal in the call that is traced are equal in all that its trace is for: host code may
/// ask for them. Calls where they differ get a trace that finds them out as it runs.
TEST(ForkAfterFork, SizesOfSidesThatAreEqualInTheFirstCall) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) {
    Tensor z = cond(
        sum(x) > 0.f, [&] { return x; }, [&] { return y; });
    return z * 2;
  });
  EXPECT_EQ(f(ones({3}), zeros({3})).to_vector<float>(), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(f(-ones({2}), ones({2})).to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(f.trace_count(), 1) << f.explain();
  EXPECT_EQ(f(-ones({2}), ones({3})).to_vector<float>(), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(f(ones({1}), ones({3})).to_vector<float>(), (std::vector<float>{2}));
  EXPECT_EQ(f(-ones({7}), ones({0})).to_vector<float>(), (std::vector<float>{}));
  EXPECT_EQ(f.trace_count(), 2) << f.explain();

  Function asks = function("asks(x, y)", [](Tensor x, Tensor y) {
    Tensor z = cond(
        sum(x) > 0.f, [&] { return x; }, [&] { return y; });
    return z.dim(0) > 3 ? z * 2 : z * 3;
  });
  EXPECT_EQ(asks(ones({3}), zeros({3})).to_vector<float>(), (std::vector<float>{3, 3, 3}));
}

/// A product with a size that differs by side, before a decision: its kernel is made when nobody can be asked any more.
TEST(ForkAfterFork, AProductOfALateSizeBeforeADecision) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor column = reshape(x, {x.dim(0), 1});
          Tensor y = cond(
              sum(x) > 0.f,
              [&] {
                return concat({x, x}, 0);
              },
              [&] { return x; });
          Tensor z = matmul(column, reshape(y, {1, y.dim(0)}));
          if (sum(x) > 4.5f) return Tensors{z};
          return Tensors{matmul(z, reshape(y, {y.dim(0), 1}))};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, ALateSizeAfterADecision) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          if (sum(x) > 0.f) x = x - 1;
          Tensor found = nonzero(x > 0.25f);
          return Tensors{found, sum(found)};
        }};
      },
      mixed());
}

TEST(ForkAfterFork, TwoArgumentsOfEqualSizeInTurns) {
  // Nothing ties the two sizes: the size of y is known when the branch has run.
  auto body = [](Tensor a, Tensor b) {
    Tensor y = a;
    if (sum(a) > 0.f) y = b;
    if (sum(square(b)) > 3.f) y = a;
    return y;
  };
  Function f = function("f(a, b)", body);
  for (float v : {1.f, -1.f, 2.f, -2.f}) {
    Tensor a = full({3}, v), b = full({3}, v / 2);
    EXPECT_EQ(f(a, b).to_vector<float>(), body(a, b).to_vector<float>());
  }
}

TEST(ForkAfterFork, AScopeThatGivesACapturedTensor) {
  for (int size : {1, 40})
    expect_same(
        [=] {
          Tensor c = full({size}, 2);
          return Program{[=](Tensor x) {
            Tensor y = scope([&] { return c; });
            if (sum(x) > 0.f) y = y + 1;
            return Tensors{y};
          }};
        },
        mixed());
}

TEST(ForkAfterFork, AConstantSizeBesideAnArgumentsSize) {
  expect_same(
      [] {
        Variable v(zeros({3}));
        return Program{[=](Tensor x) {
                         Tensor k = full({3}, 0.5), z = k;
                         if (sum(x) > 0.f) z = x;
                         Tensor y = cond(
                             sum(square(x)) > 3.f,
                             [&] {
                               v.assign(tanh(z));
                               return k;
                             },
                             [&] { return x; });
                         return Tensors{y};
                       },
                       {v}};
      },
      {tensor({1.f, 2.f, 3.f}), tensor({-1.f, -2.f, 0.5f}), tensor({-1.f, 0.f, 0.5f})});
}

TEST(ForkAfterFork, AnIfThatGivesNothingThenATensor) {
  MakeProgram make = [] {
    Variable v(zeros({}));
    return Program{[=](Tensor x) {
                     if (sum(x) > 0.f) {
                     }
                     Tensor y = zeros({x.dim(0), x.dim(0)});
                     if (sum(square(x)) > 3.f) v.assign(sum(x));
                     return Tensors{y};
                   },
                   {v}};
  };
  expect_same(make, mixed());
  expect_same_gradients(make, mixed());
}

TEST(ForkAfterFork, SizesOfASideThatHasAScope) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = cond(
              sum(x) > -0.5f, [&] { return scope([&] {
                                      return full({x.dim(0), x.dim(1), 3}, 0.5);
                                    }); },
              [&] { return x; });
          return Tensors{full({y.dim(0), y.dim(1), 2}, 0.5)};
        }};
      },
      {ones({4, 0, 3}), ones({2, 3, 3}), full({2, 5, 3}, -1)});
}

TEST(ForkAfterFork, ACondOfOneConstant) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor high = sum(x) > 0.f, k = full({}, 0.75);
          Tensor y = cond(
              high, [&] { return k; }, [&] { return k; });
          if (high) y = y + 1;
          return Tensors{y};
        }};
      },
      mixed());
}

// --- tensors made before a decision

TEST(MadeBefore, ALargeConstant) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor table = cast(arange(100), f32);
          if (sum(x) > 0.f) return Tensors{table + sum(x)};
          return Tensors{table - sum(x)};
        }};
      },
      mixed());
}

TEST(MadeBefore, LargeZerosBeforeAnInnerScope) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor start = zeros({100});
          Tensor y = scope([&] { return bend(start + sum(x)); });
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(MadeBefore, LargeInsideAScopeBeforeItsDecision) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          return Tensors{scope([&] {
            Tensor start = full({4, 5}, 2);
            if (sum(x) > 0.f) return start * sum(x);
            return start;
          })};
        }};
      },
      mixed());
}

TEST(MadeBefore, FromAHostVector) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          std::vector<float> values(40, 0.5f);
          Tensor table = tensor(values, {8, 5});
          if (sum(x) > 0.f) return Tensors{table * sum(x)};
          return Tensors{table};
        }};
      },
      mixed());
}

TEST(MadeBefore, SmallConstants) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor table = cast(arange(10), f32);
          if (sum(x) > 0.f) return Tensors{table + sum(x)};
          return Tensors{table - sum(x)};
        }};
      },
      mixed());
}

TEST(MadeBefore, ALargeCapturedTensor) {
  expect_same(
      [] {
        Tensor table = cast(arange(100), f32);
        return Program{[=](Tensor x) {
          if (sum(x) > 0.f) return Tensors{table + sum(x)};
          return Tensors{table * 2};
        }};
      },
      mixed());
}

TEST(MadeBefore, LargeOnOneSideBeforeTheNextDecision) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = x;
          if (sum(x) > 0.f) y = sum(ones({50})) * x;
          if (sum(y) > 100.f) y = y * sum(full({30}, 0.5));
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(MadeBefore, LargeBetweenAnInnerScopeAndADecision) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = scope([&] { return bend(x); });
          Tensor weights = ones({3, 7});
          if (sum(y) > 4.f) return Tensors{weights * sum(y)};
          return Tensors{weights};
        }};
      },
      mixed());
}

TEST(MadeBefore, LargeOnBothSidesOfACondBeforeAnIf) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor high = sum(x) > 0.f;
          Tensor y = cond(
              high, [&] { return full({20}, 1); }, [&] { return full({20}, 2); });
          if (high) y = y * sum(x);
          return Tensors{y};
        }};
      },
      mixed());
}

TEST(MadeBefore, LargeUsedInACondBeforeAnIf) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor high = sum(x) > 0.f, k = full({20}, -0.25), y = k;
          cond(
              high, [&] { return sin(k); }, [&] { return k * k; });
          if (high) y = y * sum(x);
          return Tensors{y};
        }};
      },
      {tensor({1.f}), tensor({-1.f, -2.f, 0.5f}), tensor({1.f, 2.f})});
}

TEST(MadeBefore, ALayerBuiltBeforeADecision) {
  expect_same(
      [] {
        keras::Dense dense(20, {.kernel_initializer = "ones"});
        return Program{[=](Tensor x) {
          Tensor y = dense(reshape(x, {-1, 1}));
          if (sum(y) > 0.f) y = y * 2;
          return Tensors{y, zeros({30}) + sum(y)};
        }};
      },
      mixed());
}

// --- what a proof learned in the first run

TEST(Proofs, AskedInTheFirstRunOnly) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = conv2d(x, ones({3, 3, 1, 1}));
          Tensor z = y[{0, Range{}, Range{}, 0}];
          if (sum(x) > 0.f) return Tensors{z};
          return Tensors{z * 2};
        }};
      },
      {ones({1, 4, 5, 1}), full({1, 4, 5, 1}, -1), ones({1, 6, 3, 1}), full({1, 9, 9, 1}, -2)});
}

TEST(Proofs, AskedInTheFirstRunOnlyEmpty) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = conv2d(x, ones({3, 3, 1, 1}));
          Tensor z = y[{0, Range{}, Range{}, 0}];
          if (sum(x) > 0.f) return Tensors{z};
          return Tensors{z * 2};
        }};
      },
      {ones({1, 2, 2, 1}), full({1, 2, 2, 1}, -1)});
}

TEST(Proofs, HostComparisonsOnOneSide) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          if (sum(x) > 0.f) return Tensors{x.dim(0) > 1 ? x[range(0, 2)] : x};
          return Tensors{x};
        }};
      },
      {tensor({1.f, 2.f, 3.f}), tensor({-1.f, 3.f, -9.f}), tensor({4.f, 5.f})});
}

TEST(Proofs, ASliceBeforeAnInnerScopeAndADecision) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor rest = x[Range{.begin = 1}];
          Tensor y = scope([&] { return bend(rest); });
          if (sum(y) > 4.f) return Tensors{y[Range{.begin = 1}]};
          return Tensors{rest};
        }};
      },
      {tensor({1.f, 2.f, 3.f}), tensor({-1.f, 3.f, -9.f, 1.f}), tensor({4.f, 5.f})});
}

/// Caught on one side: nothing raises there when it is taken.
TEST(ForkAfterFork, AScopeThatRaisesEitherWayIsCaughtOnOneSide) {
  expect_same(
      [] {
        return Program{[](Tensor x) {
          Tensor y = x;
          if (sum(x) > 2.f) {
            try {
              scope([&] {
                y = x * 3;
                if (sum(x) > 5.f) throw std::domain_error("high");
                throw std::domain_error("low");
              });
            } catch (const std::domain_error&) {
              y = y + 1;
            }
          }
          return Tensors{y};
        }};
      },
      mixed());
}

/// The run that a trace is compared with has other sizes, but none that makes the sides equal where they were not.
TEST(ForkAfterFork, ASideThatIsOneLongerThanTheOther) {
  Function f = function("f(x)", [](Tensor x) {
    return cond(
        sum(x) > 0.f, [&] { return x; }, [&] { return full({3}, 2); });
  });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(f(-ones({2})).to_vector<float>(), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(f(ones({3})).to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(f.trace_count(), 1) << f.explain();
}

}  // namespace
}  // namespace stet
