// Loops: eager against traced against plain C++, at several sizes and numbers of turns, in one trace.
#include "stet/ops/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }

void expect_near(const Tensor& got, const std::vector<double>& expected, double tolerance = 1e-5) {
  std::vector<double> values = numbers(got);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

/// Rows of small numbers of both signs.
Tensor waves(std::int64_t n, std::int64_t m, double phase = 0) {
  return reshape(cast(sin(cast(arange(n * m), f64) * 0.7 + phase), f32), {n, m});
}

// --- forward

auto decayed(const Tensor& x) {
  return scan(
      [](Tensor c, Tensor v) {
        Tensor next = c * 0.5f + v;
        return std::pair(next, next * 2.f);
      },
      zeros({x.dim(1)}), x);
}

TEST(Loops, ScanInOneTraceForAllLengths) {
  Function f = function("f(x)", [](Tensor x) { return decayed(x); });
  for (std::int64_t n : {3, 5, 0, 1, 64, 3})
    for (std::int64_t m : {2, 1, 0, 7}) {
      Tensor x = waves(n, m);
      auto [last, all] = f(x);
      std::vector<double> from = numbers(x), state(static_cast<std::size_t>(m), 0), stacked;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < m; ++j) {
          double& s = state[static_cast<std::size_t>(j)];
          s = s * 0.5 + from[static_cast<std::size_t>(i * m + j)];
          stacked.push_back(2 * s);
        }
      expect_near(last, state);
      expect_near(all, stacked);
      EXPECT_EQ(all.shape().sizes(), (std::vector<std::int64_t>{n, m}));
      auto [eager_last, eager_all] = decayed(x);
      EXPECT_EQ(numbers(eager_last), numbers(last));
      EXPECT_EQ(numbers(eager_all), numbers(all));
      EXPECT_EQ(eager_all.shape().sizes(), all.shape().sizes());
    }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Loops, ReverseKeepsResultsBesideTheirElements) {
  auto body = [](Tensor c, Tensor v) { return std::pair(c + v, c); };
  Function f = function("f(x)", [&](Tensor x) { return scan(body, tensor(0.f), x, {.reverse = true}); });
  for (std::int64_t n : {4, 1, 9}) {
    Tensor x = cast(arange(n), f32);
    auto [total, after] = f(x);
    std::vector<double> expected(static_cast<std::size_t>(n));
    double sum = 0;
    for (std::int64_t i = n; i-- > 0; sum += static_cast<double>(i)) expected[static_cast<std::size_t>(i)] = sum;
    expect_near(total, {sum});
    expect_near(after, expected);
    EXPECT_EQ(numbers(scan(body, tensor(0.f), x, {.reverse = true}).second), numbers(after));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Loops, ScanWithoutASequenceHasALength) {
  Function f = function("f(x)", [](Tensor x) {
    return scan([](Tensor c) { return std::pair(c * 2, c); }, tensor(1), {.length = x.dim(0)}).second;
  });
  EXPECT_EQ(f(zeros({4})).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(f(zeros({6})).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(
      scan([](Tensor c) { return std::pair(c + 1, c); }, tensor(0), {.length = 3}).second.to_vector<std::int64_t>(),
      (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(Loops, ForLoopByNumberSizeAndTensor) {
  auto body = [](Tensor i, Tensor s) { return s * 2.f + cast(i, f32); };
  Function by_tensor = function("by_tensor(n, x)", [&](Tensor n, Tensor x) { return for_loop(n, body, x); });
  Function by_size = function("by_size(n, x)", [&](Tensor n, Tensor x) { return for_loop(n.dim(0), body, x); });
  for (std::int64_t n : {0, 1, 2, 3, 10}) {
    std::vector<double> expected{1, -2};
    for (std::int64_t i = 0; i < n; ++i)
      for (double& s : expected) s = s * 2 + static_cast<double>(i);
    Tensor x = tensor({1.f, -2.f});
    expect_near(by_tensor(tensor(n), x), expected);
    expect_near(by_size(zeros({n}), x), expected);
    expect_near(for_loop(n, body, x), expected);
    expect_near(for_loop(tensor(n), body, x), expected);
  }
  expect_near(by_tensor(tensor(std::int64_t{-3}), tensor({5.f, 6.f})), {5, 6});
  expect_near(for_loop(-3, body, tensor({5.f, 6.f})), {5, 6});
  EXPECT_EQ(by_tensor.trace_count(), 1);
  EXPECT_EQ(by_size.trace_count(), 1);
}

TEST(Loops, WhileLoopTakesPartsOfATuple) {
  auto collatz = [](Tensor n) {
    return while_loop(
        [](Tensor n, Tensor) { return n != 1; },
        [](Tensor n, Tensor k) { return std::tuple(stet::where(n % 2 == 0, floor_divide(n, 2), 3 * n + 1), k + 1); },
        std::tuple(n, tensor(0)));
  };
  Function f = function("f(n)", collatz);
  for (std::int64_t n : {1, 2, 7, 27, 97}) {
    std::int64_t steps = 0;
    for (std::int64_t at = n; at != 1; ++steps) at = at % 2 == 0 ? at / 2 : 3 * at + 1;
    EXPECT_EQ(std::get<1>(f(tensor(n))).item<std::int64_t>(), steps);
    EXPECT_EQ(std::get<1>(collatz(tensor(n))).item<std::int64_t>(), steps);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

struct Particle {
  Tensor position, velocity;
  STET_FIELDS(position, velocity)
};

TEST(Loops, StatesAreStructures) {
  auto fall = [](Particle p, std::vector<Tensor> xs) {
    return scan(
        [](Particle p, std::vector<Tensor> x) {
          Particle next{p.position + p.velocity * 0.1f, p.velocity + x[0] * x[1]};
          return std::pair(next, std::tuple(next.position, std::vector<Tensor>{x[1], next.velocity}));
        },
        p, xs);
  };
  Function f = function("f(p, xs)", fall);
  for (std::int64_t n : {3, 5}) {
    Particle p{tensor({0.f, 1.f}), tensor({1.f, 2.f})};
    std::vector<Tensor> xs{waves(n, 2), waves(n, 2, 1)};
    auto [a, ys] = f(p, xs);
    auto [b, zs] = fall(p, xs);
    EXPECT_EQ(numbers(a.position), numbers(b.position));
    EXPECT_EQ(numbers(a.velocity), numbers(b.velocity));
    EXPECT_EQ(numbers(std::get<0>(ys)), numbers(std::get<0>(zs)));
    EXPECT_EQ(numbers(std::get<1>(ys)[0]), numbers(xs[1]));
    EXPECT_EQ(numbers(std::get<1>(ys)[1]), numbers(std::get<1>(zs)[1]));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Loops, MapFnAndLoopsInLoops) {
  auto sums = [](Tensor x) {
    return map_fn(
        [](Tensor row) {
          return scan([](Tensor c, Tensor v) { return std::pair(c + v, c + v); }, tensor(0.f), row).second;
        },
        x);
  };
  Function f = function("f(x)", sums);
  for (auto [n, m] : std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 3}, {3, 4}, {1, 1}, {0, 3}, {3, 0}}) {
    Tensor x = waves(n, m);
    EXPECT_EQ(f(x).shape().sizes(), x.shape().sizes());
    expect_near(f(x), numbers(cumsum(x, 1)));
    EXPECT_EQ(numbers(sums(x)), numbers(f(x)));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Loops, DecisionsInABody) {
  auto clipped = [](Tensor x) {
    return scan(
        [](Tensor c, Tensor v) {
          if (c > 1.f) return std::pair(c - 1.f, v);
          if (v < 0.f) c = c * 2.f;
          return std::pair(c + v * v, c);
        },
        tensor(0.3f), x);
  };
  Function f = function("f(x)", clipped);
  for (std::int64_t n : {1, 6, 40}) {
    Tensor x = reshape(waves(n, 1), {n});
    auto [last, all] = f(x);
    auto [eager_last, eager_all] = clipped(x);
    EXPECT_EQ(numbers(last), numbers(eager_last));
    EXPECT_EQ(numbers(all), numbers(eager_all));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Loops, SizesThatDependOnValuesInABody) {
  auto counts = [](Tensor x) {
    return scan(
        [](Tensor c, Tensor row) {
          Tensor kept = boolean_mask(row, row > c);
          return std::pair(c + sum(kept) * 0.1f, tensor(kept.dim(0)));
        },
        tensor(0.f), x);
  };
  Function f = function("f(x)", counts);
  for (std::int64_t n : {1, 4, 9}) {
    Tensor x = waves(n, 6);
    EXPECT_EQ(f(x).second.to_vector<std::int64_t>(), counts(x).second.to_vector<std::int64_t>());
    EXPECT_EQ(numbers(f(x).first), numbers(counts(x).first));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

struct Line {  // x -> a x + b
  Tensor a, b;
  STET_FIELDS(a, b)
};

TEST(Loops, AssociativeScan) {
  auto compose = [](Line first, Line then) { return Line{then.a * first.a, then.a * first.b + then.b}; };
  Function f = function("f(a, b)", [&](Tensor a, Tensor b) { return associative_scan(compose, Line{a, b}); });
  Function g = function("g(a, b)", [&](Tensor a, Tensor b) {
    return associative_scan(compose, Line{a, b}, {.reverse = true});
  });
  for (std::int64_t n : {1, 2, 3, 7, 8, 9, 100}) {
    Tensor a = waves(n, 2), b = waves(n, 2, 2);
    std::vector<double> x = numbers(a), y = numbers(b), product(x.size()), sum(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      product[i] = i < 2 ? x[i] : x[i] * product[i - 2];
      sum[i] = i < 2 ? y[i] : x[i] * sum[i - 2] + y[i];
    }
    Line got = f(a, b), eager = associative_scan(compose, Line{a, b});
    expect_near(got.a, product);
    expect_near(got.b, sum);
    EXPECT_EQ(numbers(got.b), numbers(eager.b));
    std::vector<double> back(x.size());
    for (std::size_t i = x.size(); i-- > 0;) back[i] = i + 2 >= x.size() ? x[i] : x[i] * back[i + 2];
    expect_near(g(a, b).a, back);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Loops, SwitchCase) {
  auto choose = [](Tensor i, Tensor x) {
    return switch_case(
        i, [&] { return x + 1.f; }, [&] { return x * 10.f; }, [&] { return -x; });
  };
  Function f = function("f(i, x)", choose);
  for (auto [i, expected] : std::vector<std::pair<std::int64_t, double>>{{0, 4}, {1, 30}, {2, -3}, {7, -3}, {-2, 4}}) {
    expect_near(f(tensor(i), tensor(3.f)), {expected});
    expect_near(choose(tensor(i), tensor(3.f)), {expected});
  }
  EXPECT_EQ(f.trace_count(), 1);
}

// --- state

TEST(Loops, WhatABodyWritesIsWrittenTurnByTurn) {
  Variable total(tensor(0.f)), turns(tensor(0)), untouched(tensor(2.f));
  auto run = [&](Tensor x) {
    return scan(
        [&](Tensor c, Tensor v) {
          total.assign_add(v * c * untouched.value());
          turns.assign_add(1);
          return c + total.value();
        },
        tensor(1.f), x);
  };
  Function f = function("f(x)", run);
  for (std::int64_t n : {3, 1, 0, 5}) {
    Tensor x = cast(arange(n), f32);
    double c = 1, sum = 0;
    for (std::int64_t i = 0; i < n; ++i) c += sum += static_cast<double>(i) * c * 2;
    for (bool traced : {true, false}) {
      total.assign(0.f), turns.assign(0);
      expect_near(traced ? f(x) : run(x), {c});
      expect_near(total.value(), {sum});
      EXPECT_EQ(turns.value().item<std::int64_t>(), n);
    }
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Loops, DrawsDifferFromTurnToTurn) {
  random::Generator generator(7);
  Function f = function("f(x)", [&](Tensor x) { return map_fn([&](Tensor) { return generator.normal({3}); }, x); });
  random::Generator same(7);
  Tensor got = f(zeros({4})), again = f(zeros({4}));
  Tensor eager = map_fn([&](Tensor) { return same.normal({3}); }, zeros({4}));
  EXPECT_EQ(numbers(got), numbers(eager));
  EXPECT_NE(numbers(got), numbers(again));
  EXPECT_NE(numbers(got[0]), numbers(got[1]));
}

TEST(Loops, ATurnThatThrowsLeavesEverythingAsBefore) {
  Variable written(tensor({1.f, 2.f}));
  Function f = function("f(table, at)", [&](Tensor table, Tensor at) {
    return scan(
        [&](Tensor c, Tensor i) {
          written.assign_add(1.f);
          if (i == 77) throw std::runtime_error("seventy-seven");
          return c + gather(table, i);
        },
        tensor(0.f), at);
  });
  Tensor table = cast(arange(10), f32);
  expect_near(f(table, tensor({1, 2, 3})), {6});
  expect_near(written.value(), {4, 5});
  EXPECT_CONTAINS(error_of([&] {
                    f(table, tensor({1, 2, 10, 3}));
                  }),
                  "gather: 'indices' holds index 10 at position 0, out of range: allowed are 0 to 9");
  expect_near(written.value(), {4, 5});
  try {
    f(table, tensor({1, 77}));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "seventy-seven");
  }
  expect_near(written.value(), {4, 5});
  expect_near(f(table, tensor({9})), {9});
  expect_near(written.value(), {5, 6});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Loops, ManyThreadsAtOnce) {
  Function f = function("f(x)", [](Tensor x) { return decayed(x).first; });
  std::vector<std::vector<double>> expected;
  for (std::int64_t n = 0; n < 8; ++n) expected.push_back(numbers(decayed(waves(n * 5, 3)).first));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t round = 0; round < 40; ++round) {
        auto n = static_cast<std::size_t>((round + t) % 8);
        EXPECT_EQ(numbers(f(waves(static_cast<std::int64_t>(n) * 5, 3))), expected[n]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(f.trace_count(), 1);
}

// --- what is wrong

TEST(Loops, AStateThatChangesIsNamed) {
  Particle p{tensor({0.f, 1.f}), tensor({1.f, 2.f})};
  auto dtype = [](Particle p) {
    return for_loop(
        2,
        [](Particle p) {
          return Particle{p.position, cast(p.velocity, f64)};
        },
        p);
  };
  auto size = [](Tensor x) {
    return for_loop(
        2,
        [](Tensor x) {
          return concat({x, x}, 0);
        },
        x);
  };
  auto rank = [](Tensor x) {
    return while_loop([](Tensor x) { return sum(x) < 5.f; }, [](Tensor x) { return reshape(x, {1, -1}); }, x);
  };
  Function traced_dtype = function("dtype(p)", dtype);
  Function traced_size = function("size(x)", size);
  Function traced_rank = function("rank(x)", rank);
  for (const std::string& text : {error_of([&] { dtype(p); }), error_of([&] { traced_dtype(p); })}) {
    EXPECT_CONTAINS(text, "for_loop: the state .velocity is f32[2] when a turn begins and f64[2] when it ends");
    EXPECT_CONTAINS(text, "loops_test.cpp:");
    EXPECT_CONTAINS(text, "a turn must leave the dtype and the sizes it began with");
  }
  EXPECT_CONTAINS(error_of([&] { size(ones({2})); }), "for_loop: the state is f32[2] when a turn begins and f32[4]");
  EXPECT_CONTAINS(error_of([&] { traced_size(ones({2})); }),
                  "for_loop: the state is f32[2] when a turn begins and f32[4]");
  EXPECT_CONTAINS(error_of([&] { rank(ones({2})); }),
                  "while_loop: the state is f32[2] when a turn begins and f32[1,2]");
  EXPECT_CONTAINS(error_of([&] { traced_rank(ones({2})); }),
                  "while_loop: the state is f32[2] when a turn begins and f32[1,2]");
}

struct Counted {
  Tensor x;
  int n = 0;
  STET_FIELDS(x, n)
};

TEST(Loops, WhatCannotBeScannedIsTold) {
  auto body = [](Tensor c, std::pair<Tensor, Tensor> x) { return c + sum(x.first) + sum(x.second); };
  auto run = [&](Tensor a, Tensor b) { return scan(body, tensor(0.f), std::pair(a, b)); };
  Function traced = function("f(a, b)", run);
  for (bool now : {true, false}) {
    auto call = [&](Tensor a, Tensor b) { return error_of([&] { now ? traced(a, b) : run(a, b); }); };
    EXPECT_CONTAINS(call(ones({3, 2}), ones({4, 2})), "scan: sequences of different lengths: 3 and 4 in f32[4,2]");
    EXPECT_CONTAINS(call(ones({3}), tensor(1.f)), "scan: what is scanned is f32[], which has no axis to scan");
  }
  auto same = [](Tensor c) { return c; };
  EXPECT_CONTAINS(error_of([&] { scan(same, tensor(0.f), ScanLoopOptions{}); }),
                  "scan: neither a sequence nor a length says how many turns there are");
  EXPECT_CONTAINS(error_of([&] { for_loop(2.5, same, tensor(0.f)); }),
                  "for_loop: the number of turns is 2.5, not an integer");
  EXPECT_CONTAINS(error_of([&] { for_loop(tensor(2.f), same, tensor(0.f)); }),
                  "for_loop: the number of turns is f32[], not an integer");
  EXPECT_CONTAINS(error_of([&] {
                    for_loop(tensor({1, 2}), same, tensor(0.f));
                  }),
                  "for_loop: the number of turns is i32[2], not one number");
  EXPECT_CONTAINS(error_of([&] { while_loop([](Tensor x) { return x < 1.f; }, same, ones({2})); }),
                  "while_loop: the condition gives bool[2], not one element");
  EXPECT_CONTAINS(error_of([&] { for_loop(3, same, tensor(0.f), {.checkpoint_every = -1}); }),
                  "for_loop: checkpoint_every is -1");
  EXPECT_CONTAINS(error_of([&] {
                    for_loop(
                        1,
                        [](std::vector<Tensor> v) {
                          v.pop_back();
                          return v;
                        },
                        std::vector<Tensor>{ones({1}), ones({1})});
                  }),
                  "for_loop: a turn leaves a state of another structure than it began with");
  EXPECT_CONTAINS(error_of([&] {
                    for_loop(
                        1, [](Counted c) { return c; }, Counted{ones({1}), 2});
                  }),
                  "for_loop: the state .n is a C++ number, the same in every turn");
  int turn = 0;
  EXPECT_CONTAINS(error_of([&] { map_fn([&](Tensor) { return ones({++turn}); }, ones({3})); }),
                  "map_fn: a result of a turn is f32[2], and was f32[1] in the first turn");
  Function late =
      function("late(x)", [](Tensor x) { return map_fn([](Tensor row) { return boolean_mask(row, row > 0.f); }, x); });
  EXPECT_CONTAINS(error_of([&] { late(waves(3, 4)); }),
                  "map_fn: a result of the turns has a size that depends on values");
  Function cases = function("cases(x)", [](Tensor x) {
    return switch_case(
        x, [&] { return x; }, [&] { return x; });
  });
  EXPECT_CONTAINS(error_of([&] { cases(tensor(1.f)); }), "switch_case: the index is f32[], not an integer");
}

TEST(Loops, ConditionsReadVariablesThatWereWrittenBefore) {
  Variable n(tensor(0), {.trainable = false});
  auto run = [=](Tensor x) {
    n.assign(0);
    return while_loop([=](Tensor) { return n.read() < 3; },
                      [=](Tensor s) {
                        n.assign_add(1);
                        return s * 2;
                      },
                      x);
  };
  Function f = function("f(x)", run);
  EXPECT_EQ(numbers(run(tensor({1.f, 2.f}))), (std::vector<double>{8, 16}));
  EXPECT_EQ(numbers(f(tensor({1.f, 2.f}))), (std::vector<double>{8, 16}));
}

TEST(Loops, SayWhatCannotBe) {
  auto makes = [](Tensor x) {
    return for_loop(
        3,
        [](Tensor s) {
          Variable v(zeros({}));
          v.assign_add(1.f);
          return s * 2 + v;
        },
        x);
  };
  Function f = function("f(x)", makes);
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "for_loop: a turn makes a Variable, and writes one");
  Tensor flag = tensor(true);
  Function g = function(
      "g(x)", [=](Tensor x) { return while_loop([=](Tensor) { return flag; }, [](Tensor s) { return s * 2; }, x); });
  EXPECT_CONTAINS(error_of([&] { g(ones({2})); }),
                  "while_loop: the condition depends on nothing that changes from turn to turn");
}

TEST(Loops, BodiesTakePartsOfTheState) {
  std::tuple<Tensor, Tensor> first(tensor(0), tensor(1));
  auto [a, b] = for_loop(
      10, [](Tensor x, Tensor y) { return std::tuple(y, x + y); }, first);
  EXPECT_EQ(a.item<int>(), 55);
  auto [c, d] = for_loop(
      10, [](Tensor, Tensor x, Tensor y) { return std::tuple(y, x + y); }, first);
  EXPECT_EQ(d.item<int>(), b.item<int>());
  EXPECT_EQ(c.item<int>(), a.item<int>());
}

}  // namespace
