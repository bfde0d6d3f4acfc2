// Every trace is made twice, with other sizes and the sides of decisions in the other order: what differs is an error
// that says which of the three it was.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <random>
#include <set>
#include <sstream>

#include "expect_error.h"

namespace stet {
namespace {

TEST(ComparingRuns, SidesThatLeaveSomethingWithTheHost) {
  auto text_of = [](auto body) { return error_of([&] { function("f(x)", body)(ones({2})); }); };
  const char* order = "tracing 'f' with the sides of an if (tensor) in the other order gave two different programs";
  std::string number = text_of([](Tensor x) {
    int k = 0;
    Tensor y = cond(
        sum(x) > 0.f,
        [&] {
          k = 1;
          return x;
        },
        [&] {
          k = 2;
          return x + 1;
        });
    return y * k;
  });
  EXPECT_CONTAINS(number, order);
  EXPECT_CONTAINS(number, "they part at ");
  EXPECT_CONTAINS(number, "comparing_runs_test.cpp:");
  EXPECT_CONTAINS(number, "the constant 2.0, then the constant 1.0");
  EXPECT_CONTAINS(number, "fix: host code keeps something from one side of a decision");

  // A later decision sees what the sides left, too.
  EXPECT_CONTAINS(text_of([](Tensor x) {
                    bool flag = false;
                    Tensor y = cond(
                        sum(x) > 0.f,
                        [&] {
                          flag = true;
                          return x;
                        },
                        [&] {
                          flag = false;
                          return x * 3;
                        });
                    if (max(y) > 2.f) return flag ? y : y * 2;
                    return flag ? y * 5 : y * 7;
                  }),
                  order);
  EXPECT_CONTAINS(text_of([](Tensor x) {
                    std::vector<int> list;
                    scope([&] {
                      if (sum(x) > 0.f) list.push_back(1);
                    });
                    return x * static_cast<int>(list.size() + 1) + (list.empty() ? 0 : list[0]);
                  }),
                  "two different programs");
  EXPECT_CONTAINS(text_of([](Tensor x) {
                    int n = 0;
                    scope([&] {
                      if (sum(x) > 0.f) return x;
                      ++n;
                      return x + 1;
                    });
                    return x * n;
                  }),
                  order);
  // What both sides leave alike is no business of theirs.
  Function fine = function("fine(x)", [](Tensor x) {
    int k = 0;
    Tensor y = scope([&] {
      k = 3;
      if (sum(x) > 0.f) return x * 2;
      return x;
    });
    if (max(y) > 100.f) return y;
    return y * k;
  });
  EXPECT_EQ(fine(ones({2})).to_vector<float>(), (std::vector<float>{6, 6}));
  EXPECT_EQ(fine(zeros({2})).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(ComparingRuns, SizesThatWereLookedAtBehindTheTracesBack) {
  SKIP_WHEN_VERIFYING();
  // Words about sizes are for messages, and not recorded. Whoever decides by them is found out by the other sizes.
  Function f = function("f(x)", [](Tensor x) { return x * (size_text(x.dim(0)) == "4" ? 2 : 3); });
  std::string error = error_of([&] { f(ones({4, 3})); });
  EXPECT_CONTAINS(error, "tracing 'f' with other sizes gave two different programs");
  EXPECT_CONTAINS(error, "fix: host code looks at sizes in a way that the trace does not see");
}

TEST(ComparingRuns, ACoinInALaterTraceToo) {
  std::mt19937 coin(3);
  bool flips = false;
  Function f = function("f(x)", [&](Tensor x) { return flips ? x * static_cast<float>(coin() % 1000) : x * 2; });
  f(ones({2}));
  flips = true;
  std::string error = error_of([&] { f(ones({2}, f64)); });
  EXPECT_CONTAINS(error, "tracing 'f' twice gave two different programs");
  EXPECT_CONTAINS(error, "fix: what host code computes (random numbers, clocks, counters) is frozen");
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(ComparingRuns, NumbersAmongTheResults) {
  int n = 0;
  Function f = function("f(x)", [&](Tensor x) { return std::tuple{x, ++n}; });
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "tracing 'f' twice gave two different programs: 1 returned, then ");
}

TEST(ComparingRuns, FactsAndChecksAreKept) {
  // The other sizes obey what the first run relied on, so that none of these is accused.
  NoRetrace guard;
  Tensor x = random::normal({6, 4});
  auto runs = [&](auto body, const Tensor& argument) { return error_of([&] { function("f(x)", body)(argument); }); };
  EXPECT_EQ(runs([](Tensor x) { return reshape(x, {-1, 3}); }, x), "no error");
  EXPECT_EQ(runs([](Tensor x) { return reshape(x, {x.dim(1), -1}); }, x), "no error");
  EXPECT_EQ(runs([](Tensor x) { return x.dim(0) > 5 ? x * 2 : x; }, x), "no error");
  EXPECT_EQ(runs([](Tensor x) { return x.dim(0) != 7 ? x * 2 : x; }, x), "no error");
  EXPECT_EQ(runs([](Tensor x) { return x * int(x.dim(0)); }, x), "no error");
  EXPECT_EQ(runs([](Tensor x) { return x[range(1, 3)]; }, x), "no error");
  EXPECT_EQ(runs([](Tensor x) { return matmul(x, transpose(x)) + ones({6, 6}); }, x), "no error");
  EXPECT_EQ(runs([](Tensor x) { return x + x[{range(0, 1)}]; }, random::normal({1, 4})), "no error");
  EXPECT_EQ(runs(
                [](Tensor x) {
                  if (sum(x) > 0.f) return reshape(x, {-1, 2});
                  return reshape(x, {-1, 3});
                },
                x),
            "no error");
  EXPECT_EQ(runs(
                [](Tensor x) {
                  return matmul(reshape(x, {-1, 784}), ones({784, 2}));
                },
                random::normal({5, 28, 28})),
            "no error");
}

TEST(ComparingRuns, TheOrderInWhichVariablesAreMetDoesNotMatter) {
  Variable a(1.f), b(2.f), c(3.f);
  Tensor big = arange(100);
  Function f = function("f(x)", [=](Tensor x) {
    if (sum(x) > 0.f) {
      a.assign_add(1.f);
      c.assign(b + a);
      return x + cast(big[3], f32);
    }
    b.assign_add(5.f);
    a.assign(c * 2);
    return x * cast(sum(big), f32);
  });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{4, 4}));
  EXPECT_EQ(c.read().item<float>(), 4);
  EXPECT_EQ(f(zeros({3}) - 1).to_vector<float>(), (std::vector<float>{-4950, -4950, -4950}));
  EXPECT_EQ(a.read().item<float>(), 8);
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(ComparingRuns, TenDecisionsInARowGetAdviceThatHelps) {
  auto turn = [](Tensor y) {
    if (sum(y) > 1.f) return y * 0.5f;
    return y + 1;
  };
  auto body = [&](Tensor x, auto&& one) {
    for (int n = 0; n < 10; ++n) x = one(x);
    return x;
  };
  std::string error = error_of([&] { function("f(x)", [&](Tensor x) { return body(x, turn); })(ones({2})); });
  EXPECT_CONTAINS(error, "a loop decides by the value of a tensor, over and over");
  EXPECT_CONTAINS(error, "put what a turn does into stet::scope(f)");
  auto scoped = [&](Tensor y) { return scope([&] { return turn(y); }); };
  Function f = function("f(x)", [&](Tensor x) { return body(x, scoped); });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), body(ones({2}), turn).to_vector<float>());
}

}  // namespace
}  // namespace stet
