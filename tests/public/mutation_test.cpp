// What one-line mutations of the library broke without any test noticing, seen from outside.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "expect_error.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

Tensor counted(std::vector<Dim> sizes) {
  Dim count = 1;
  for (const Dim& size : sizes) count = count * size;
  return reshape(cast(arange(count), f32), sizes);
}

// --- the hit path (hit.cpp: an argument that is not dense is no hit)

TEST(Hit, AViewIsNotTakenForADenseTensorOfItsShape) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return x * 2 + y; });
  Tensor x = counted({3, 3}), y = zeros({3, 3});
  const Floats straight = (x * 2).to_vector<float>(), turned = (transpose(x) * 2).to_vector<float>();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(f(x, y).to_vector<float>(), straight);
    EXPECT_EQ(f(transpose(x), y).to_vector<float>(), turned);
    EXPECT_EQ(f(y, transpose(x)).to_vector<float>(), transpose(x).to_vector<float>());
  }
  // Reversed, every other, and repeated elements: the same shape, other strides.
  Tensor six = counted({6});
  Function g = function("g(x)", [](Tensor x) { return x + 1; });
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(g(six).to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(g(reverse(six, {0})).to_vector<float>(), (Floats{6, 5, 4, 3, 2, 1}));
    EXPECT_EQ(g(broadcast_to(six[1], {6})).to_vector<float>(), Floats(6, 2));
    EXPECT_EQ(g(counted({12})[Range{.step = 2}]).to_vector<float>(), (Floats{1, 3, 5, 7, 9, 11}));
  }
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(g.trace_count(), 1);
}

// --- Variables of a call (function_entry.cpp: written ones are held alone)

TEST(VariableLocks, LongUpdatesOnSeveralThreadsAllArrive) {
  // Reversed, so that the next value cannot be written over the old one: two calls at once would both start from one
  // value, and one of them would be lost as a whole. A call takes long enough that calls at once do happen, on one core
  // too.
  constexpr int thread_total = 4, calls = 25, size = 400'000;
  Variable total(zeros({size})), beside(zeros({size}));
  Function f = function("f(x)", [=](Tensor x) {
    total.assign(reverse(total, {0}) + x);
    beside.assign(beside + x);  // in place
    return x;
  });
  f(zeros({1}));
  std::latch start(thread_total);
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_total; ++t)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int n = 0; n < calls; ++n) f(ones({1}));
    });
  for (std::thread& thread : threads) thread.join();
  for (const Variable& variable : {total, beside}) {
    EXPECT_EQ(min(variable.read()).item<float>(), thread_total * calls);
    EXPECT_EQ(max(variable.read()).item<float>(), thread_total * calls);
  }
}

// --- checks of sizes on the sides of a branch (fork.cpp: each side keeps its own; branch_step.cpp: a side whose sizes
// do not fit fails when it is taken, and only then)

/// Eager and traced: the same values, or both an error with the same reason.
template <class Body>
void expect_like_eager(const Function<Tensor(Tensor)>& f, Body body, const Tensor& x) {
  Tensor expected;
  std::string eager = error_of([&] { expected = body(x); });
  Tensor got;
  std::string traced = error_of([&] { got = f(x); });
  SCOPED_TRACE("eagerly " + eager + "\ntraced " + traced);
  ASSERT_EQ(eager == "no error", traced == "no error");
  if (eager != "no error") return;
  EXPECT_EQ(got.shape().str(), expected.shape().str());
  EXPECT_EQ(got.to_vector<float>(), expected.to_vector<float>());
}

template <class Body>
void expect_sides_like_eager(Body body) {
  Function<Tensor(Tensor)> f = function("f(x)", body);
  for (int size : {6, 4, 3, 7, 12, 1, 6})
    for (float sign : {1.f, -1.f}) {
      SCOPED_TRACE(size * static_cast<int>(sign));
      expect_like_eager(f, body, full({size}, sign));
      if (testing::Test::HasFailure()) return;
    }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(SideChecks, OfOneSideOnly) {
  expect_sides_like_eager([](Tensor x) {
    if (sum(x) > 0.f) return sum(reshape(x, {-1, 3}), 0);
    return x[range(0, 1)] * ones({3});
  });
}

TEST(SideChecks, TheSameOnBothSides) {
  expect_sides_like_eager([](Tensor x) {
    if (sum(x) > 0.f) return sum(reshape(x, {-1, 3}), 0);
    return max(reshape(x, {-1, 3}), 0);
  });
}

TEST(SideChecks, DifferentOnesOnTheSides) {
  expect_sides_like_eager([](Tensor x) {
    if (sum(x) > 0.f) return sum(reshape(x, {-1, 2}));
    return max(reshape(x, {-1, 3}));
  });
}

TEST(SideChecks, BeforeADecisionAndOnItsSides) {
  expect_sides_like_eager([](Tensor x) {
    Tensor pairs = reshape(x, {-1, 2});
    if (sum(pairs) > 0.f) return sum(reshape(x, {-1, 3}));
    return sum(pairs) + sum(reshape(x, {-1, 2}) * 2);
  });
}

TEST(SideChecks, InNestedDecisions) {
  expect_sides_like_eager([](Tensor x) {
    if (sum(x) > 0.f) {
      if (sum(x) > 5.f) return sum(reshape(x, {-1, 3}));
      return sum(reshape(x, {-1, 2}));
    }
    if (sum(x) < -5.f) return sum(reshape(x, {-1, 2}));
    return sum(reshape(x, {-1, 3}));
  });
}

TEST(SideChecks, OfACond) {
  auto body = [](Tensor x) {
    return cond(
        sum(x) > 0.f,
        [&] {
          return sum(reshape(x, {-1, 3}));
        },
        [&] {
          return sum(reshape(x, {-1, 3})) * 2;
        });
  };
  expect_sides_like_eager(body);
}

// --- the cache of traces (after tracing it is looked up again: another thread may have made the same meanwhile)

/// Where threads wait for each other; not for ever, so that a library that lets one trace at a time passes too.
class Meeting {
 public:
  explicit Meeting(int expected) : expected_(expected) {}
  void meet() {
    std::unique_lock lock(guard_);
    ++come_;
    all_here_.notify_all();
    all_here_.wait_for(lock, std::chrono::seconds(2), [&] { return come_ >= expected_; });
  }

 private:
  std::mutex guard_;
  std::condition_variable all_here_;
  int expected_, come_ = 0;
};

TEST(TraceCache, TwoThreadsInsideOfTracesMakeOneTrace) {
  // A thread inside of a trace does not wait for another that traces the same, so both of these trace f.
  Meeting both(2);
  Function f = function("f(x)", [&](Tensor x) {
    thread_local bool came = false;
    if (!std::exchange(came, true)) both.meet();
    return x * 2;
  });
  std::vector<Floats> results(2);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      Function g = function("g(x)", [&](Tensor x) {
        Tensor y = [&] {
          InitScope outside;
          return f(ones({3}));
        }();
        return x + y;
      });
      results[t] = g(zeros({3})).to_vector<float>();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Floats& result : results) EXPECT_EQ(result, Floats(3, 2));
  EXPECT_EQ(f.trace_count(), 1) << f.explain();
}

// --- matrix products (gemm_step.cpp: a batch of transposed left operands is not one matrix with more rows)

TEST(Products, BatchesOfTransposedLeftOperandsTimesOneMatrix) {
  for (std::int64_t batch : {1, 2, 3})
    for (std::int64_t k : {1, 3, 4, 17})
      for (std::int64_t m : {1, 3, 4, 17}) {
        constexpr std::int64_t n = 5;
        SCOPED_TRACE(testing::Message() << batch << " of " << k << " x " << m);
        Tensor a = counted({batch, k, m}) % 7, b = counted({k, n}) % 5;
        Floats expected;
        for (std::int64_t i = 0; i < batch; ++i)
          for (std::int64_t row = 0; row < m; ++row)
            for (std::int64_t column = 0; column < n; ++column) {
              float sum = 0;
              for (std::int64_t at = 0; at < k; ++at) sum += a.item<float>({i, at, row}) * b.item<float>({at, column});
              expected.push_back(sum);
            }
        EXPECT_EQ(matmul(a, b, {.transpose_a = true}).to_vector<float>(), expected);
        Function f = function("f(a, b)", [](Tensor a, Tensor b) { return matmul(a, b, {.transpose_a = true}); });
        EXPECT_EQ(f(a, b).to_vector<float>(), expected);
        EXPECT_EQ(matmul(transpose(a, {0, 2, 1}), b).to_vector<float>(), expected);
      }
}

// --- the generator (random.cpp: a failed draw gives its numbers back only if nobody drew meanwhile)

TEST(RandomGenerator, FailedDrawsBesideOthersNeverRepeatNumbers) {
  random::seed(5);
  constexpr int draws = 4000;
  std::latch start(2);
  std::atomic<bool> done{false};
  std::thread failing([&] {
    start.arrive_and_wait();
    while (!done) EXPECT_THROW(random::uniform({std::int64_t{1} << 50}), UserError);
  });
  start.arrive_and_wait();
  std::set<std::int64_t> seen;
  for (int i = 0; i < draws; ++i)
    seen.insert(random::randint({}, INT64_MIN, INT64_MAX, {.dtype = i64}).item<std::int64_t>());
  done = true;
  failing.join();
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(draws));
}

}  // namespace
}  // namespace stet
