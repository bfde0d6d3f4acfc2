// Gradients through loops: traced against eager (a host loop on a tape) against central differences, first and second
// order, with checkpoints and without, at several numbers of turns in one trace.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Inputs = std::vector<Tensor>;
using Program = std::function<Tensor(const Inputs&)>;  // to a scalar

Tensor waves(std::vector<Dim> sizes, double phase) {
  Shape shape(sizes);
  return reshape(sin(cast(arange(shape.element_count()), f64) * 0.7 + phase) * 0.8, shape);
}

Inputs first_order(const Program& f, const Inputs& x) {
  GradientTape tape;
  for (const Tensor& one : x) tape.watch(one);
  Tensor y = f(x);
  Inputs out = tape.gradient(y, x);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!out[i].defined()) out[i] = zeros_like(x[i]);
  out.push_back(y);
  return out;
}

/// Of the sum of squares of all first derivatives.
Inputs second_order(const Program& f, const Inputs& x) {
  GradientTape tape;
  for (const Tensor& one : x) tape.watch(one);
  Inputs inner = first_order(f, x);
  Tensor total = zeros({}, f64);
  for (std::size_t i = 0; i < x.size(); ++i) total = total + sum(square(inner[i]));
  Inputs out = tape.gradient(total, x);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!out[i].defined()) out[i] = zeros_like(x[i]);
  out.push_back(total);
  return out;
}

void expect_same(const Inputs& got, const Inputs& expected, const char* what, double tolerance = 1e-9) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::vector<double> a = got[i].to_vector<double>(), b = expected[i].to_vector<double>();
    ASSERT_EQ(a.size(), b.size()) << what << " " << i;
    for (std::size_t k = 0; k < a.size(); ++k)
      ASSERT_NEAR(a[k], b[k], tolerance * (1 + std::abs(b[k]))) << what << " " << i << " element " << k;
  }
}

void expect_differences(const Program& f, const Inputs& x, const Inputs& gradients) {
  constexpr double step = 1e-5;
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<double> values = x[i].to_vector<double>(), d = gradients[i].to_vector<double>();
    for (std::size_t k = 0; k < values.size(); ++k) {
      auto at = [&](double moved) {
        std::vector<double> other = values;
        other[k] += moved;
        Inputs inputs = x;
        inputs[i] = reshape(tensor(other), x[i].shape());
        return f(inputs).item<double>();
      };
      double difference = (at(step) - at(-step)) / (2 * step);
      ASSERT_NEAR(d[k], difference, 2e-6 * (1 + std::abs(difference))) << "input " << i << " element " << k;
    }
  }
}

/// `inputs(n)`: inputs for n turns.
void check(const Program& f, const std::function<Inputs(std::int64_t)>& inputs,
           const std::vector<std::int64_t>& turns) {
  Function first = function("first(x)", [&](Inputs x) { return first_order(f, x); });
  Function second = function("second(x)", [&](Inputs x) { return second_order(f, x); });
  Function plain = function("plain(x)", [&](Inputs x) { return f(x); });
  Program called = [&](const Inputs& x) { return plain(x); };
  for (std::int64_t n : turns) {
    SCOPED_TRACE(n);
    Inputs x = inputs(n), eager = first_order(f, x);
    expect_same(first(x), eager, "traced");
    expect_same(first_order(called, x), eager, "called under a tape");
    expect_differences(f, x, eager);
    Inputs eager_second = second_order(f, x);
    expect_same(second(x), eager_second, "second order");
    expect_same(second_order(called, x), eager_second, "second order of a call");
  }
  EXPECT_EQ(first.trace_count(), 1);
  EXPECT_EQ(second.trace_count(), 1);
  EXPECT_EQ(plain.trace_count(), 1);
}

Program network(ScanLoopOptions options) {
  return [options](const Inputs& v) {
    auto [last, all] = scan(
        [&](Tensor h, Tensor x) {
          Tensor next = tanh(matmul(h, v[1]) + x);
          return std::pair(next, next * next);
        },
        v[2], v[0], options);
    return sum(last * v[3]) + sum(all) * 0.5;
  };
}
Inputs network_inputs(std::int64_t n) {
  return {waves({n, 2, 3}, 0), waves({3, 3}, 1), waves({2, 3}, 2), waves({3}, 3)};
}

TEST(LoopGradients, Scan) { check(network({}), network_inputs, {5, 1, 0, 8}); }
TEST(LoopGradients, ScanInReverse) { check(network({.reverse = true}), network_inputs, {4, 1}); }
TEST(LoopGradients, ScanWithCheckpoints) {
  check(network({.checkpoint_every = 3}), network_inputs, {7, 6, 2, 0});
  check(network({.reverse = true, .checkpoint_every = 2}), network_inputs, {5, 4});
}

/// Products of elements alone, and of nothing that changes, are taken out of the turns.
TEST(LoopGradients, ProductsThatAreTakenOutOfTheTurns) {
  for (bool reverse : {false, true})
    check(
        [reverse](const Inputs& v) {
          auto [last, all] = scan(
              [&](Tensor h, Tensor x) {
                Tensor inner = matmul(v[2], v[2]) * 0.5, from_x = tanh(matmul(x, v[1]) + v[4]);
                Tensor line = matmul(reshape(x, {1, -1}), reshape(v[1], {6, 2}));  // [1, 2]
                Tensor next = tanh(from_x + matmul(h, inner) + sum(line) * 0.1);
                return std::pair(next, from_x);
              },
              v[3], v[0], {.reverse = reverse});
          return sum(last) + sum(all * 0.3);
        },
        [](std::int64_t n) {
          return Inputs{waves({n, 2, 3}, 0), waves({3, 4}, 1), waves({4, 4}, 2), waves({2, 4}, 3), waves({4}, 4)};
        },
        {5, 1, 0});
}

TEST(LoopGradients, ForLoopByATensor) {
  for (std::int64_t k : {0, 2})
    check(
        [k](const Inputs& v) {
          return sum(for_loop(v[2].dim(0) * tensor(1),
                              [&](Tensor i, Tensor s) { return s * v[0] + sin(s) * cast(i, f64) * 0.3; }, v[1],
                              {.checkpoint_every = k}));
        },
        [](std::int64_t n) {
          return Inputs{waves({3}, 0), waves({3}, 1), waves({n}, 2)};
        },
        {4, 1, 0, 5});
}

TEST(LoopGradients, WhileLoop) {
  for (std::int64_t k : {0, 2})
    check(
        [k](const Inputs& v) {
          auto [s, n] = while_loop([](Tensor s, Tensor) { return sum(s) < 20.; },
                                   [&](Tensor s, Tensor n) {
                                     return std::tuple(s * (v[0] + 1.5) + exp(s * 0.01) + cast(n, f64) * 0.1, n + 1);
                                   },
                                   std::tuple(v[1], tensor(0)), {.checkpoint_every = k});
          return sum(s * s);
        },
        [](std::int64_t n) {
          return Inputs{waves({2}, 0) * 0.3, waves({2}, 1) + static_cast<double>(n)};
        },
        {0, 3, 30});
}

TEST(LoopGradients, DecisionsInABody) {
  check(
      [](const Inputs& v) {
        return sum(scan(
            [&](Tensor h, Tensor x) {
              if (sum(h) > 0.5)
                h = h * v[1];
              else
                h = h + sin(x);
              return h * 1.1;
            },
            v[2], v[0]));
      },
      [](std::int64_t n) {
        return Inputs{waves({n, 2}, 0), waves({2}, 1), waves({2}, 2)};
      },
      {6, 1});
}

TEST(LoopGradients, LoopsInLoops) {
  check(
      [](const Inputs& v) {
        return sum(scan(
            [&](Tensor h, Tensor x) {
              return scan([&](Tensor a, Tensor b) { return a * v[1] + sin(b * a); }, h, stack({x, x * 2., x * 3.}));
            },
            v[2], v[0]));
      },
      [](std::int64_t n) {
        return Inputs{waves({n, 2}, 0), waves({2}, 1), waves({2}, 2)};
      },
      {3, 1});
}

TEST(LoopGradients, MapFnAndAssociativeScan) {
  check(
      [](const Inputs& v) {
        Tensor each = map_fn([&](Tensor x) { return sum(x * v[1]) * x; }, v[0]);
        return sum(associative_scan([](Tensor a, Tensor b) { return a * b; }, each + 1.5));
      },
      [](std::int64_t n) {
        return Inputs{waves({n, 2}, 0), waves({2}, 1)};
      },
      {5, 1, 8});
}

TEST(LoopGradients, OfVariablesReadAndWrittenInTurns) {
  Variable w(waves({2, 2}, 1)), seen(zeros({2}, f64), {.trainable = false});
  auto run = [&](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = sum(scan(
        [&](Tensor h, Tensor x) {
          Tensor next = tanh(reshape(matmul(reshape(h, {1, 2}), w) + matmul(reshape(x, {1, 2}), w), {2}) + x);
          seen.assign_add(next);
          return next + seen.value() * 0.1;
        },
        zeros({2}, f64), x));
    std::vector<Tensor> d = tape.gradient(y, std::vector<GradientTape::Source>{x, w});
    return std::tuple(y, d[0], d[1]);
  };
  Function f = function("f(x)", run);
  for (std::int64_t n : {3, 1, 6}) {
    Tensor x = waves({n, 2}, 0);
    seen.assign(zeros({2}, f64));
    auto [y, dx, dw] = run(x);
    std::vector<double> left = seen.value().to_vector<double>();
    seen.assign(zeros({2}, f64));
    auto [ty, tdx, tdw] = f(x);
    expect_same({ty, tdx, tdw}, {y, dx, dw}, "traced");
    EXPECT_EQ(seen.value().to_vector<double>(), left);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

/// A derivative that is infinite where nothing flows back does not become NaN.
TEST(LoopGradients, NothingFlowsBackByWhatNobodyAskedFor) {
  Function f = function("f(x)", [](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    auto [root, total] = for_loop(
        3, [&](std::pair<Tensor, Tensor> s) { return std::pair(sqrt(s.first), s.second + x); },
        std::pair(x * 0., zeros({}, f64)));
    return tape.gradient(total, x);
  });
  EXPECT_EQ(f(tensor(2.)).item<double>(), 3);
}

// --- loops that take no turn: what they give is computed from the same, with a derivative of 0

/// By x, by a Variable and by a tensor that the body captures: as if the loop were traced.
void expect_like_traced(const char* what,
                        const std::function<Tensor(Tensor x, Tensor captured, const Variable& w)>& code) {
  SCOPED_TRACE(what);
  const Variable w(tensor({1.5, -2.0}), {.name = "w"});
  auto gradients = [=](Tensor x, Tensor captured) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(captured);
    Tensor y = code(x, captured, w);
    std::vector<Tensor> d = tape.gradient(sum(y), {x, captured, w});
    return std::tuple(y, d[0], d[1], d[2]);
  };
  Function traced_gradients = function("gradients(x, captured)", gradients);
  for (int turns : {0, 3, 0}) {
    SCOPED_TRACE(turns);
    Tensor x = random::stateless_normal({turns, 2}, {1, 2}, {.dtype = f64}), captured = tensor({-0.0, 4.0});
    auto eager = gradients(x, captured), traced = traced_gradients(x, captured);
    auto expect_same = [](const char* of, const Tensor& a, const Tensor& b) {
      SCOPED_TRACE(of);
      ASSERT_EQ(a.defined(), b.defined());
      if (!a.defined()) return;
      EXPECT_EQ(a.shape().str(), b.shape().str());
      const std::vector<double> one = a.to_vector<double>(), other = b.to_vector<double>();
      ASSERT_EQ(one.size(), other.size());
      for (std::size_t i = 0; i < one.size(); ++i) {
        EXPECT_TRUE(one[i] == other[i] || std::abs(one[i] - other[i]) < 1e-12) << one[i] << " " << other[i];
      }
    };
    expect_same("value", std::get<0>(eager), std::get<0>(traced));
    if (turns == 0) expect_same("signs of zeros", 1 / std::get<0>(eager), 1 / std::get<0>(traced));
    expect_same("by x", std::get<1>(eager), std::get<1>(traced));
    expect_same("by what is captured", std::get<2>(eager), std::get<2>(traced));
    expect_same("by a Variable", std::get<3>(eager), std::get<3>(traced));
  }
}

TEST(LoopsWithoutTurns, DependOnWhatTurnsReadAllTheSame) {
  expect_like_traced("scan, its state", [](Tensor x, Tensor captured, const Variable& w) {
    return scan([=](Tensor s, Tensor row) { return std::pair(tanh(s * w + row), s * row); }, captured, x).first;
  });
  expect_like_traced("scan, what is stacked", [](Tensor x, Tensor captured, const Variable& w) {
    return scan([=](Tensor s, Tensor row) { return std::pair(s * w, row * captured); }, ones({2}, f64), x).second;
  });
  expect_like_traced("a part that nothing flows to", [](Tensor x, Tensor captured, const Variable& w) {
    return scan([=](Tensor s, Tensor row) { return std::pair(s * w, row * captured); }, ones({2}, f64), x).first;
  });
  expect_like_traced("a state by way of another", [](Tensor x, Tensor captured, const Variable& w) {
    auto [state, none] = scan(
        [=](std::pair<Tensor, Tensor> s, Tensor row) {
          return std::pair(std::pair(s.first + s.second, s.second * w + row * captured), s.first);
        },
        std::pair(zeros({2}, f64), ones({2}, f64)), x);
    return state.first;
  });
  expect_like_traced("for, by a size", [](Tensor x, Tensor captured, const Variable& w) {
    return for_loop(
        x.dim(0), [=](Tensor, Tensor s) { return s * w + sum(x) * captured; }, captured);
  });
  expect_like_traced("for, by a value", [](Tensor x, Tensor captured, const Variable& w) {
    return for_loop(
        tensor(x.dim(0)), [=](Tensor, Tensor s) { return s * w * captured; }, ones({2}, f64));
  });
  expect_like_traced("while", [](Tensor x, Tensor captured, const Variable& w) {
    return while_loop([=](std::pair<Tensor, Tensor> s) { return s.first < tensor(x.dim(0)); },
                      [=](std::pair<Tensor, Tensor> s) {
                        return std::pair(s.first + std::int64_t{1}, s.second * w + captured);
                      },
                      std::pair(tensor(std::int64_t{0}), ones({2}, f64)))
        .second;
  });
  expect_like_traced("in each other", [](Tensor x, Tensor captured, const Variable& w) {
    return for_loop(
        2,
        [=](Tensor, Tensor t) {
          return for_loop(
              x.dim(0), [=](Tensor, Tensor s) { return s * w + captured; }, t);
        },
        ones({2}, f64));
  });
  expect_like_traced("where gradients stop", [](Tensor x, Tensor captured, const Variable& w) {
    return for_loop(
        x.dim(0), [=](Tensor, Tensor s) { return s * w + stop_gradient(captured); }, ones({2}, f64));
  });
  expect_like_traced("with a derivative that is infinite", [](Tensor x, Tensor captured, const Variable& w) {
    return for_loop(
        x.dim(0), [=](Tensor, Tensor s) { return s * w + sqrt(abs(captured)) * 0 + log(captured * captured + 1); },
        captured);
  });
}

TEST(LoopsWithoutTurns, ForwardsAndTwice) {
  Variable w(tensor({1.5, -2.0}), {.name = "w"});
  auto f = [=](Tensor x) {
    return sum(
        scan([=](Tensor s, Tensor row) { return std::pair(s * w + row, s); }, x[0] * x[0], x[{range(1, x.dim(0))}])
            .first);
  };
  Tensor x = tensor({{3.0, 4.0}}), direction = tensor({{1.0, 0.5}});
  EXPECT_EQ(jvp(f, std::tuple(x), std::tuple(direction)).second.item<double>(), 10);
  EXPECT_EQ(grad(f)(x).to_vector<double>(), (std::vector<double>{6, 8}));
  EXPECT_EQ(hessian(f)(x).to_vector<double>(), (std::vector<double>{2, 0, 0, 2}));
}

/// What a turn would do is not done, and what cannot be traced is let alone.
TEST(LoopsWithoutTurns, DoNothing) {
  Variable count(tensor(0.0), {.name = "count"});
  Tensor x = tensor({1.0, 2.0});
  GradientTape tape;
  tape.watch(x);
  random::seed(3);
  Tensor y = for_loop(
      0,
      [=](Tensor, Tensor s) {
        count.assign_add(1.0);
        assert_that(tensor(false), "no turn is taken");
        return s * x + random::uniform({}, {.dtype = f64});
      },
      x);
  Tensor z = for_loop(
      0, [=](Tensor, Tensor s) { return s * x.item<double>({0}); }, x);
  Tensor u = for_loop(
      0, [=](Tensor, Tensor) -> Tensor { throw UserError("no turn is taken"); }, x);
  Tensor v = for_loop(
      0,
      [=](Tensor, Tensor s) {
        return s + gather(x, tensor({std::int64_t{7}, std::int64_t{8}}));
      },
      x);
  EXPECT_EQ(count.read().item<double>(), 0);
  const float drawn = random::uniform({}).item<float>();
  random::seed(3);
  EXPECT_EQ(random::uniform({}).item<float>(), drawn);
  EXPECT_EQ(tape.gradient(sum(y + z + u + v), x).to_vector<double>(), (std::vector<double>{4, 4}));
}

}  // namespace
