// Which traces are kept when there are too many.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include "expect_error.h"
#include "explanations.h"

namespace stet {
namespace {

class Eviction : public WithExplanations {};

Function<Tensor(Tensor, int)> scaled(FunctionOptions options) {
  return function(
      "scaled(x, n)", [](Tensor x, int n) { return x * n; }, options);
}

TEST_F(Eviction, NewcomersDoNotPushEachOtherOut) {
  Function f = scaled({.max_traces = 16});
  Tensor x = ones({4});
  for (int round = 0; round < 50; ++round)
    for (int n = 0; n < 16; ++n) f(x, n);
  EXPECT_EQ(f.trace_count(), 16);
  for (int call = 0; call < 200; ++call) EXPECT_EQ(f(x, 100 + call % 2).item<float>({0}), 100 + call % 2);
  EXPECT_LE(f.trace_count(), 16 + 4);
}

TEST_F(Eviction, WhatIsInUseStaysWhenStrangersPass) {
  Function f = scaled({.max_traces = 8});
  Tensor x = ones({4});
  for (int stranger = 0; stranger < 50; ++stranger) {
    for (int n = 0; n < 4; ++n)
      for (int call = 0; call < 3; ++call) f(x, n);
    f(x, 1000 + stranger);
  }
  EXPECT_EQ(f.trace_count(), 4 + 50);
}

TEST_F(Eviction, WhatWasBusyOnceGoesInTheEnd) {
  Function f = scaled({.max_traces = 2});
  Tensor x = ones({4});
  for (int call = 0; call < 1000; ++call) f(x, 1);
  for (int call = 0; call < 30; ++call) f(x, 2 + call % 2);
  EXPECT_LE(f.trace_count(), 1 + 4);
}

TEST_F(Eviction, TwoDozenLengthsAreKept) {
  Function f = function("f(x)", [](Tensor x) {
    Tensor sum = x[0];
    for (int i = 1; i < int(x.dim(0)); ++i) sum = sum * 0.5f + x[i];
    return sum;
  });
  for (int round = 0; round < 3; ++round)
    for (int length = 1; length <= 24; ++length) f(ones({length}));
  EXPECT_EQ(f.trace_count(), 24);
}

TEST_F(Eviction, AForgottenTraceThatIsMissedIsNamed) {
  Function f = scaled({.max_traces = 2});
  Tensor x = ones({4});
  for (int n : {1, 2, 3}) f(x, n);
  EXPECT_CONTAINS(told(), "warning         2 traces are kept at most; one that served 1 calls is forgotten");
  EXPECT_EQ(told().find("made before, and forgotten"), std::string::npos) << told();
  f(x, 1);
  EXPECT_CONTAINS(told(),
                  "again           a trace for this very call was made before, and forgotten: raise .max_traces");
}

TEST_F(Eviction, BytesAreCounted) {
  std::vector<Tensor> tables;
  for (int n = 0; n < 12; ++n) tables.push_back(full({1000, 250}, static_cast<float>(n)));
  Function f = function("f(x, n)", [=](Tensor x, int n) { return x + tables[static_cast<std::size_t>(n)]; },
                        {.max_traces = 100, .max_bytes = 4 << 20});
  Tensor x = ones({1000, 250});
  for (int n = 0; n < 12; ++n) EXPECT_EQ(f(x, n).item<float>({0, 0}), n + 1);
  std::string all = f.explain();
  int kept = 0;
  for (std::size_t at = all.find("  trace "); at != std::string::npos; at = all.find("  trace ", at + 1)) ++kept;
  EXPECT_LE(kept, 4) << all;  // a captured megabyte each
  EXPECT_GE(kept, 2) << all;
}

TEST_F(Eviction, OneTraceStaysHoweverLargeItIs) {
  Tensor table = ones({1000, 250});
  Function f = function("f(x)", [=](Tensor x) { return x + table; }, {.max_bytes = 1000});
  f(ones({1000, 250}));
  f(ones({1000, 250}));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(Eviction, AtTheLimitCallsMayRunEagerly) {
  int runs = 0;
  Function f = function("f(x, n)",
                        [&](Tensor x, int n) {
                          ++runs;
                          return std::pair{x * n, n};
                        },
                        {.max_traces = 2, .on_limit = OnLimit::eager});
  Tensor x = ones({3});
  for (int n : {1, 2}) f(x, n);
  events.clear();
  runs = 0;
  for (int call = 0; call < 5; ++call) {
    auto [y, n] = f(x, 3 + call);
    EXPECT_EQ(y.item<float>({2}), 3 + call);
    EXPECT_EQ(n, 3 + call);
  }
  EXPECT_EQ(runs, 5);
  EXPECT_EQ(f.trace_count(), 2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].trace, 0);
  EXPECT_CONTAINS(told(), "argument 1 'n'  2 -> 3");
  EXPECT_CONTAINS(told(),
                  "limit           2 traces are kept, as many as .max_traces or .max_bytes allow: this call, and "
                  "others that no trace fits, run eagerly");
  // Also under a tape.
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(sum(f(x, 9).first), x).item<float>({0}), 9);
}

TEST_F(Eviction, AtTheLimitCallsMayBeErrors) {
  Function f = scaled({.max_traces = 2, .on_limit = OnLimit::error});
  Tensor x = ones({3});
  for (int n : {1, 2}) f(x, n);
  std::string error = error_of([&] { f(x, 3); });
  EXPECT_CONTAINS(error, "stet: tracing 'scaled' again (trace 3), called at ");
  EXPECT_CONTAINS(error, "limit           2 traces are kept, as many as .max_traces or .max_bytes allow\n");
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_EQ(f(x, 2).item<float>({0}), 2);
  f.clear();
  EXPECT_EQ(f(x, 3).item<float>({0}), 3);
}

}  // namespace
}  // namespace stet
