// vmap: a function of one example for many of them, against a loop over the examples; eagerly, traced in one trace for
// all sizes, under tapes, and in every order with gradients and loops.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

std::vector<double> numbers(const Tensor& x) { return cast(x, f64).to_vector<double>(); }
std::vector<std::int64_t> sizes(const Tensor& x) { return x.shape().sizes(); }

void expect_near(const Tensor& got, const Tensor& expected, double tolerance = 1e-5) {
  ASSERT_EQ(sizes(got), sizes(expected));
  EXPECT_EQ(got.dtype(), expected.dtype());
  std::vector<double> a = numbers(got), b = numbers(expected);
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << "element " << i;
}

Tensor waves(const Shape& shape, double phase = 0) {
  return reshape(cast(sin(cast(arange(shape.element_count()), f64) * 0.7 + phase), f32), shape);
}

/// The function for the rows of x, one after the other.
template <class F>
Tensor rows(F f, const Tensor& x) {
  std::vector<Tensor> out;
  for (std::int64_t i = 0; i < x.dim(0).value(); ++i) out.push_back(f(x[i]));
  return stack(out);
}

/// vmap of f equals the rows, eagerly and traced, at several sizes, in one trace; so do gradients of its sum.
template <class F>
void check(F f, const std::vector<Shape>& shapes, double tolerance = 1e-5) {
  auto mapped = vmap(f);
  Function traced = function("traced(x)", [&](Tensor x) { return mapped(x); });
  auto slope_of = [](auto g) {
    return [g](Tensor x) {
      GradientTape tape;
      tape.watch(x);
      Tensor y = g(x);
      return tape.gradient(sum(y * cast(waves(y.shape(), 1), y.dtype())), x, {.unconnected = "zero"});
    };
  };
  Function traced_slope = function("traced_slope(x)", slope_of(mapped));
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.str());
    Tensor x = waves(shape), expected = rows(f, x);
    expect_near(mapped(x), expected, tolerance);
    expect_near(traced(x), expected, tolerance);
    if (!is_floating(expected.dtype())) continue;
    Tensor slope = slope_of([&](Tensor all) { return rows(f, all); })(x);
    expect_near(slope_of(mapped)(x), slope, 10 * tolerance);
    expect_near(traced_slope(x), slope, 10 * tolerance);
    // A tape outside of the traced function.
    expect_near(slope_of([&](Tensor all) { return traced(all); })(x), slope, 10 * tolerance);
  }
  EXPECT_EQ(traced.trace_count(), 1);
}

const std::vector<Shape> vectors = {{3, 4}, {5, 2}, {1, 3}};

TEST(Vmap, OfOrdinaryFunctions) {
  check([](Tensor x) { return exp(x) * 2 + x; }, vectors);
  check([](Tensor x) { return sum(x * x); }, vectors);
  check([](Tensor x) { return softmax(x) - mean(x); }, vectors);
  check([](Tensor x) { return matmul(reshape(x, {-1, 1}), reshape(x, {1, -1})); }, vectors);
  check([](Tensor x) { return concat({x, flip(x, {0}), x * 3}, 0); }, vectors);
  check([](Tensor x) { return cumsum(x, 0) + sort(x, 0); }, vectors);
  check([](Tensor x) { return argmax(x, 0); }, vectors);
  check([](Tensor x) { return pad(x, {{1, 2}}); }, vectors);
  check([](Tensor x) { return x[range(1, x.dim(0))] - x[range(0, x.dim(0) - 1)]; }, vectors);
  check([](Tensor x) { return where(x > 0, x, x * 0.1f); }, vectors);
  check([](Tensor) { return tensor({1.f, 2.f}); }, vectors);
  check([](Tensor x) { return x; }, vectors);
  check([](Tensor x) { return ones({x.dim(0), x.dim(0)}) * x; }, vectors);
}

TEST(Vmap, OfImages) {
  Tensor filter = waves({3, 3, 2, 4}, 2);
  check([&](Tensor image) { return conv2d(expand_dims(image, 0), filter)[0]; }, {{3, 5, 6, 2}, {2, 4, 4, 2}});
  check([&](Tensor image) { return max_pool(expand_dims(image, 0), {2, 2})[0]; }, {{3, 4, 6, 2}, {2, 4, 4, 3}});
}

TEST(Vmap, SharesArgumentsAndCaptures) {
  Tensor w = waves({4, 2}), x = waves({3, 4}, 1), bias = waves({2}, 2);
  auto dense = [&](Tensor weights, Tensor one) { return matmul(one, weights) + bias; };
  expect_near(vmap(dense, {std::nullopt, 0})(w, x), matmul(x, w) + bias);
  // The other way round: many weights for one input.
  Tensor ws = waves({5, 4, 2}, 3);
  expect_near(vmap(dense, {0, std::nullopt})(ws, x[0]), rows([&](Tensor one) { return matmul(x[0], one) + bias; }, ws));
  // Both.
  Tensor both = vmap(dense, {0, 0})(ws, waves({5, 4}, 4));
  EXPECT_EQ(sizes(both), (std::vector<std::int64_t>{5, 2}));
  // All pairs.
  Tensor pairs = vmap(vmap(dense, {std::nullopt, 0}), {0, std::nullopt})(ws, x);
  EXPECT_EQ(sizes(pairs), (std::vector<std::int64_t>{5, 3, 2}));
  for (std::int64_t i = 0; i < 5; ++i) expect_near(pairs[i], matmul(x, ws[i]) + bias);
}

TEST(Vmap, TakesAnyAxis) {
  Tensor x = waves({3, 4, 5});
  auto f = [](Tensor one) { return cumsum(one, 0) * 2; };  // [3, 4] or so
  expect_near(vmap(f, {-1})(x), transpose(vmap(f)(transpose(x, {2, 0, 1})), {0, 1, 2}));
  Tensor middle = vmap(f, VmapOptions{.axes = {1}, .out_axis = 1})(x);
  expect_near(middle, cumsum(x, 0) * 2);
  Tensor last = vmap(f, VmapOptions{.axes = {1}, .out_axis = -1})(x);
  expect_near(last, transpose(cumsum(x, 0) * 2, {0, 2, 1}));
}

TEST(Vmap, OfStructures) {
  auto f = [](std::pair<Tensor, Tensor> both, float scale) {
    return std::tuple(both.first * scale, std::vector<Tensor>{both.second, sum(both.first)});
  };
  auto [scaled, list] = vmap(f)({waves({3, 2}), waves({3}, 1)}, 2.f);
  expect_near(scaled, waves({3, 2}) * 2);
  ASSERT_EQ(list.size(), 2u);
  expect_near(list[0], waves({3}, 1));
  expect_near(list[1], sum(waves({3, 2}), {1}));
}

TEST(Vmap, OfNoAndOneExample) {
  auto f = [](Tensor x) { return std::pair(sum(x), matmul(reshape(x, {1, -1}), ones({4, 2}))); };
  auto [sums, products] = vmap(f)(zeros({0, 4}));
  EXPECT_EQ(sizes(sums), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(sizes(products), (std::vector<std::int64_t>{0, 1, 2}));
  expect_near(vmap(f)(waves({1, 4})).first, sum(waves({1, 4}), {1}));
}

// --- decisions and loops in examples

TEST(Vmap, DecidesForEveryExample) {
  check(
      [](Tensor x) {
        if (sum(x) > 0) return x * 2;
        return x - 1;
      },
      vectors);
  // All examples take the side that does not depend on them.
  Tensor sign = tensor(1.f);
  check(
      [&](Tensor x) {
        if (sign > 0) return x * 2;
        return x - 1;
      },
      vectors);
}

TEST(Vmap, LoopsForAllExamplesTogether) {
  auto decayed = [](Tensor x) {
    return scan(
               [](Tensor c, Tensor v) {
                 Tensor next = tanh(c * 0.5f + v);
                 return std::pair(next, next * v);
               },
               tensor(0.f), x)
        .second;
  };
  check(decayed, vectors);
  check(
      [](Tensor x) {
        return scan([](Tensor c, Tensor v) { return std::pair(c + v, c); }, tensor(1.f), x, {.reverse = true}).first;
      },
      vectors);
  check(
      [](Tensor x) {
        return for_loop(
            5, [&](Tensor, Tensor y) { return sin(y) + x; }, x);
      },
      vectors);
  // What is carried begins the same for all examples, and becomes different.
  check(
      [](Tensor x) {
        return for_loop(
            3, [&](Tensor i, Tensor y) { return y * 0.5f + x * cast(i, f32); }, zeros_like(x));
      },
      vectors);
  check([](Tensor x) { return map_fn([](Tensor v) { return v * v; }, x); }, vectors);
  check([](Tensor x) { return associative_scan([](Tensor a, Tensor b) { return a * b; }, x); }, vectors);
}

TEST(Vmap, LoopsOfDifferentLengthsRunExampleByExample) {
  check(
      [](Tensor x) {
        return while_loop([](Tensor y) { return sum(y * y) > 0.1f; }, [](Tensor y) { return y * 0.7f; }, x);
      },
      vectors);
  check(
      [](Tensor x) {
        return for_loop(
            cast(sum(abs(x)), i64), [](Tensor, Tensor y) { return y * 0.5f; }, x);
      },
      vectors);
}

TEST(Vmap, SizesThatDependOnValuesRunExampleByExample) {
  check([](Tensor x) { return sum(square(boolean_mask(x, x > 0))); }, vectors);
  // As many turns as the values say, all of which the second derivative needs.
  auto shrunk = [](Tensor x) {
    return sum(while_loop([](Tensor y) { return sum(y * y) > 0.2f; }, [](Tensor y) { return sin(y) * 0.8f; }, x));
  };
  check([&](Tensor x) { return hessian(shrunk)(x); }, vectors, 1e-4);
}

// --- state and effects: as a loop over the examples has them

TEST(Vmap, ReadsVariablesAndDifferentiatesThem) {
  Variable w(waves({4, 2}));
  Tensor x = waves({3, 4}, 1);
  auto f = vmap([&](Tensor one) { return tanh(matmul(one, w.read())); });
  auto gradient = [&](auto g) {
    GradientTape tape;
    Tensor loss = sum(g(x) * waves({3, 2}, 5));
    return tape.gradient(loss, w);
  };
  Tensor expected = gradient([&](Tensor all) { return tanh(matmul(all, w.read())); });
  expect_near(gradient(f), expected);
  Function traced = function("traced(x)", [&](Tensor all) { return f(all); });
  expect_near(gradient(traced), expected);
  Function inside = function("inside", [&] { return gradient(f); });
  expect_near(inside(), expected);
}

TEST(Vmap, WritesVariablesInTheOrderOfTheExamples) {
  auto run = [](bool traced) {
    Variable total(tensor(1.f));
    auto f = vmap([&](Tensor x) {
      total.assign(total.read() * 0.5f + x);
      return total.read() * 2;
    });
    Function g = function("g(x)", [&](Tensor x) { return f(x); });
    std::vector<double> out;
    for (const Tensor& x : {tensor({1.f, 2.f, 3.f}), tensor({4.f, 5.f})})
      for (double v : numbers(traced ? g(x) : f(x))) out.push_back(v);
    out.push_back(total.read().item<float>());
    return out;
  };
  EXPECT_EQ(run(false), (std::vector<double>{3, 5.5, 8.75, 12.375, 16.1875, 8.09375}));
  EXPECT_EQ(run(true), run(false));
}

TEST(Vmap, DrawsForEveryExample) {
  auto f = [](Tensor x) { return x + random::uniform({2}); };
  auto draw = [&](auto g, const Tensor& x) {
    random::seed(7);
    return numbers(g(x));
  };
  Tensor x = zeros({4, 2});
  std::vector<double> one_by_one = draw([&](Tensor all) { return rows(f, all); }, x);
  EXPECT_EQ(draw(vmap(f), x), one_by_one);
  Function traced = function("traced(x)", [&](Tensor all) { return vmap(f)(all); });
  EXPECT_EQ(draw(traced, x), one_by_one);
  EXPECT_NE(one_by_one[0], one_by_one[2]);
}

TEST(Vmap, HasItsEffectsInTheOrderOfTheExamples) {
  std::vector<float> seen;
  auto note = [&](Tensor x) { seen.push_back(x.item<float>()); };
  auto f = vmap([&](Tensor x) {
    host_call(note, {}, x);
    host_call(note, {}, x * 10);
    return x + 1;
  });
  const std::vector<float> expected{1, 10, 2, 20, 3, 30};
  EXPECT_EQ(numbers(f(tensor({1.f, 2.f, 3.f}))), (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(seen, expected);
  seen.clear();
  Function traced = function("traced(x)", [&](Tensor x) { return f(x); });
  traced(tensor({1.f, 2.f, 3.f}));
  if (!verifying()) {  // else it is run to be compared, too
    EXPECT_EQ(seen, expected);
  }
}

// --- with derivatives, in every order

Tensor loss(Tensor w, Tensor x, Tensor y) {
  Tensor off = sum(tanh(matmul(x, w))) - y;
  return off * off;
}

TEST(Vmap, OfGradientsIsPerSampleGradients) {
  Tensor w = waves({4, 2}), x = waves({5, 4}, 1), y = waves({5}, 2);
  auto per_sample = vmap(grad(loss), {std::nullopt, 0, 0});
  std::vector<Tensor> expected;
  for (std::int64_t i = 0; i < 5; ++i) expected.push_back(grad(loss)(w, x[i], y[i]));
  expect_near(per_sample(w, x, y), stack(expected));
  Function traced = function("traced(w, x, y)", [&](Tensor a, Tensor b, Tensor c) { return per_sample(a, b, c); });
  expect_near(traced(w, x, y), stack(expected));
  expect_near(traced(w, x[range(0, 2)], y[range(0, 2)]), stack({expected[0], expected[1]}));
  EXPECT_EQ(traced.trace_count(), 1);
  EXPECT_EQ(traced.graph(0).find(" loop "), std::string::npos);
  // Their mean is the gradient of the mean.
  auto total = [&](Tensor a) { return mean(vmap(loss, {std::nullopt, 0, 0})(a, x, y)); };
  expect_near(grad(total)(w), mean(per_sample(w, x, y), {0}));
}

TEST(Vmap, OfTapesInsideOfTheFunction) {
  check(
      [](Tensor x) {
        GradientTape tape;
        tape.watch(x);
        Tensor y = sum(x * x * x);
        return tape.gradient(y, x);
      },
      vectors);
}

TEST(Vmap, OfSecondOrder) {
  auto energy = [](Tensor x) { return sum(sin(x) * x) + prod(x); };
  check([&](Tensor x) { return hessian(energy)(x); }, vectors, 1e-4);
  check([&](Tensor x) { return jvp([](Tensor v) { return v * sum(v); }, x, x * 2).second; }, vectors, 1e-4);
  check([&](Tensor x) { return hvp(energy, x, x + 1); }, vectors, 1e-4);
}

TEST(Vmap, KeepsOtherGradients) {
  auto clipped =
      custom_gradient([](Tensor x) { return std::pair(x * 3, [x](Tensor d) { return clip(d * x, -0.2f, 0.2f); }); });
  check([&](Tensor x) { return clipped(x) * x; }, vectors);
  check([](Tensor x) { return stop_gradient(x * x) * x; }, vectors);
  check([](Tensor x) { return recompute([](Tensor v) { return sin(v) * v; })(x); }, vectors);
  // An argument that the examples share gets the sum.
  auto scaled = custom_gradient([](Tensor x, Tensor s) {
    return std::pair(x * s, [=](Tensor d) { return std::pair(d * s * 5, sum(d * x) * 7); });
  });
  Tensor x = waves({3, 4}), s = tensor(2.f);
  auto slope = [&](auto g) {
    GradientTape tape;
    tape.watch(s);
    return tape.gradient(sum(g(x) * waves({3, 4}, 1)), s);
  };
  auto one = [&](Tensor v) { return scaled(v, s); };
  Tensor expected = slope([&](Tensor all) { return rows(one, all); });
  expect_near(slope(vmap(one)), expected);
  Function traced = function("traced(x)", [&](Tensor all) { return vmap(one)(all); });
  expect_near(slope(traced), expected);
}

TEST(Vmap, InLoopsAndOfTracedFunctions) {
  Function square = function("square(x)", [](Tensor x) { return x * sum(x); });
  check([&](Tensor x) { return square(x) + 1; }, vectors);
  auto step = vmap([](Tensor x) { return x - 0.1f * grad([](Tensor v) { return sum(v * v * v); })(x); });
  Function traced = function("traced(x)", [&](Tensor x) {
    return for_loop(
        4, [&](Tensor, Tensor v) { return step(v); }, x);
  });
  Tensor x = waves({3, 2}), by_hand = x;
  for (int i = 0; i < 4; ++i) by_hand = by_hand - 0.3f * by_hand * by_hand;
  expect_near(traced(x), by_hand);
  expect_near(for_loop(
                  4, [&](Tensor, Tensor v) { return step(v); }, x),
              by_hand);
}

TEST(Vmap, OnSeveralThreads) {
  Tensor x = waves({6, 3});
  auto f = vmap([](Tensor v) { return softmax(v) * sum(v); });
  const std::vector<double> expected = numbers(f(x));
  std::vector<std::thread> threads;
  std::vector<std::vector<double>> got(4);
  for (std::vector<double>& one : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) one = numbers(f(x));
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<double>& one : got) EXPECT_EQ(one, expected);
}

// --- Jacobians are made of it

TEST(Vmap, MakesJacobiansOfAllSizesInOneTrace) {
  auto f = [](Tensor x) { return sin(cumsum(x, 0)) * sum(x); };
  Function traced =
      function("traced(x)", [&](Tensor x) { return std::pair(jacobian(f)(x), jacobian(f, {.mode = "forward"})(x)); });
  for (std::int64_t n : {3, 5, 1}) {
    Tensor x = waves({n});
    std::vector<Tensor> lines;
    for (std::int64_t i = 0; i < n; ++i) lines.push_back(grad([&](Tensor v) { return f(v)[i]; })(x));
    expect_near(jacobian(f)(x), stack(lines));
    auto [reverse, forward] = traced(x);
    expect_near(reverse, stack(lines));
    expect_near(forward, stack(lines));
  }
  EXPECT_EQ(traced.trace_count(), 1);
}

TEST(Vmap, MakesJacobiansOfTracedFunctionsUnderATape) {
  Function square = function("square(x)", [](Tensor x) { return x * sum(x); });
  Tensor x = waves({4});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = square(x);
  expect_near(tape.jacobian(y, x), jacobian([](Tensor v) { return v * sum(v); })(x));
}

// --- messages

TEST(Vmap, SaysWhatIsWrong) {
  auto f = vmap([](Tensor a, Tensor b) { return a + b; });
  EXPECT_CONTAINS(error_of([&] {
                    f(zeros({3, 2}), zeros({4, 2}));
                  }),
                  "vmap: argument 1, f32[4,2], holds 4 examples along axis 0, and argument 0 3");
  EXPECT_CONTAINS(error_of([&] { f(zeros({3, 2}), zeros({})); }), "vmap: argument 1 is f32[], which has no axis 0");
  EXPECT_CONTAINS(error_of([&] {
                    vmap([](Tensor a) { return a; }, {0, 1})(zeros({2}));
                  }),
                  "vmap: 2 axes for 1 argument");
  EXPECT_CONTAINS(error_of([&] { vmap([](Tensor a) { return a; }, {std::nullopt})(zeros({2})); }),
                  "vmap: no argument is a tensor that holds examples");
  EXPECT_CONTAINS(error_of([&] {
                    vmap([](Tensor a) { return a; }, VmapOptions{.out_axis = 2})(zeros({2, 3}));
                  }),
                  "vmap: a result of f32[2,3], the examples among its axes, has no axis 2");
  EXPECT_CONTAINS(error_of([&] {
                    vmap([](Tensor a) { return boolean_mask(a, a > 0); })(waves({3, 4}));
                  }),
                  "vmap: a result of the turns has a size that depends on values");
  // An op's own message speaks of one example.
  EXPECT_CONTAINS(error_of([&] { vmap([](Tensor a) { return a + zeros({7}); })(zeros({3, 2})); }), "f32[2]");
  EXPECT_CONTAINS(error_of([&] {
                    vmap([](Tensor a) { return reshape(a, {1, 1, 1, 1, 1, 1, 1, -1}); })(zeros({3, 2}));
                  }),
                  "vmap: reshape gives f32[1,1,1,1,1,1,1,2] for every example: with the axis of the examples, "
                  "there would be 9");
}

}  // namespace
