// Audits: host code is run again at calls 2, 4, 8, … 1024 of a trace, and what has changed is told.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <set>
#include <thread>

#include "expect_error.h"

namespace stet {
namespace {

class AuditTest : public ::testing::Test {
 protected:
  AuditTest() {
    on_stale([this](const StaleEvent& event) { told.push_back(event); });
    on_retrace([this](const RetraceEvent& event) { retraces.push_back(event.explanation); });
  }
  ~AuditTest() override {
    on_stale({});
    on_retrace({});
  }
  std::vector<StaleEvent> told;
  std::vector<std::string> retraces;
};

/// The calls of f(x) in which host code runs an audit.
template <class Call>
std::set<int> audited_calls(std::atomic<int>& audits, int calls, const Call& call) {
  std::set<int> out;
  for (int n = 1; n <= calls; ++n) {
    int before = audits;
    call();
    if (audits > before) out.insert(n);
  }
  return out;
}

TEST_F(AuditTest, ComesAtPowersOfTwoUpTo1024) {
  std::atomic<int> audits = 0;
  auto body = [&](Tensor x) {
    audits += tracing().audit;
    return x * 2;
  };
  Tensor x = ones({3});
  Function usual = function("f(x)", body);
  EXPECT_EQ(audited_calls(audits, 3000, [&] { usual(x); }), (std::set<int>{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}));
  Function never = function("f(x)", body, {.audit = Audit::never});
  EXPECT_EQ(audited_calls(audits, 100, [&] { never(x); }), std::set<int>{});
  Function seventh = function("f(x)", body, {.audit = Audit::every(7)});
  EXPECT_EQ(audited_calls(audits, 30, [&] { seventh(x); }), (std::set<int>{7, 14, 21, 28}));
  Function always = function("f(x)", body, {.audit = Audit::every(1)});
  EXPECT_EQ(audited_calls(audits, 5, [&] { always(x); }), (std::set<int>{2, 3, 4, 5}));
  EXPECT_TRUE(told.empty());
}

TEST_F(AuditTest, TellsOnceWithLineAndRemedy) {
  float rate = 0.5f;
  int line = 0;
  Function f = function("scale(x)", [&](Tensor x) {
    line = __LINE__ + 1;
    return x * rate;
  });
  Tensor x = ones({2});
  f(x);
  rate = 0.25f;
  for (int n = 0; n < 3000; ++n) EXPECT_EQ(f(x).item<float>({0}), 0.5f);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].function, "scale");
  const std::string& text = told[0].explanation;
  EXPECT_CONTAINS(text, "stet: 'scale' would be traced differently now (call 2 of its trace), called at ");
  EXPECT_CONTAINS(text, "traced          the constant 0.5 at ");
  EXPECT_CONTAINS(text, "audit_test.cpp:" + std::to_string(line));
  EXPECT_CONTAINS(text, "now             the constant 0.25\n");
  EXPECT_CONTAINS(text, "why             host code runs while tracing only");
  EXPECT_CONTAINS(text, "fix             pass what changes as an argument, keep it in a Variable");
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(AuditTest, MayBeAnErrorOrANewTrace) {
  float rate = 0.5f;
  auto body = [&](Tensor x) { return x * rate; };
  Tensor x = ones({2});
  Function strict = function("strict(x)", body, {.on_stale = OnStale::error});
  strict(x);
  rate = 0.25f;
  for (int n = 0; n < 3; ++n) {
    try {
      strict(x);
      ADD_FAILURE() << "no error";
    } catch (const StaleTraceError& error) {
      EXPECT_CONTAINS(std::string(error.what()), "the constant 0.25");
    }
  }
  rate = 0.5f;
  EXPECT_EQ(strict(x).item<float>({0}), 0.5f);  // as it was traced

  Function fresh = function("fresh(x)", body, {.on_stale = OnStale::retrace});
  fresh(x);
  rate = 0.125f;
  EXPECT_EQ(fresh(x).item<float>({0}), 0.125f);
  EXPECT_EQ(fresh.trace_count(), 2);
  ASSERT_EQ(retraces.size(), 1u);
  EXPECT_CONTAINS(retraces[0], "stet: tracing 'fresh' again (trace 2)");
  EXPECT_CONTAINS(retraces[0], "traced          the constant 0.5 at ");
  EXPECT_CONTAINS(retraces[0], "now             the constant 0.125");
  EXPECT_TRUE(told.empty());
}

TEST_F(AuditTest, HasNoEffects) {
  Variable total(0.f);
  random::seed(5);
  Function f = function("f(x)", [=](Tensor x) {
    total.assign_add(sum(x));
    return x * random::uniform({x.dim(0)});
  });
  std::vector<float> drawn;
  for (int n = 0; n < 20; ++n) drawn.push_back(f(ones({1})).item<float>({0}));
  EXPECT_EQ(total.read().item<float>(), 20);
  EXPECT_TRUE(told.empty());
  random::seed(5);
  for (int n = 0; n < 20; ++n) EXPECT_EQ(random::uniform({1}).item<float>({0}), drawn[static_cast<std::size_t>(n)]);
}

TEST_F(AuditTest, IsUnseenByTapes) {
  Variable w(3.f);
  Function f = function("f(x)", [=](Tensor x) { return x * w; });
  for (int n = 0; n < 9; ++n) {
    GradientTape tape;
    Tensor y = f(tensor(2.f));
    EXPECT_EQ(tape.gradient(y, w).item<float>(), 2);
  }
  EXPECT_TRUE(told.empty());
}

TEST_F(AuditTest, SeesSidesOfBranchesAndHostValues) {
  float rate = 1;
  int number = 7;
  Function f = function("f(x)", [&](Tensor x) {
    if (sum(x) > 0.f) return std::tuple{x * rate, number};
    return std::tuple{x, number};
  });
  f(ones({2}));
  rate = 2;
  f(ones({2}));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_CONTAINS(told[0].explanation, "now             the constant 2");
  Function g = function("g(x)", [&](Tensor x) { return std::tuple{x, number}; });
  g(ones({2}));
  number = 8;
  g(ones({2}));
  ASSERT_EQ(told.size(), 2u);
  EXPECT_CONTAINS(told[1].explanation, "traced          7 returned");
  EXPECT_CONTAINS(told[1].explanation, "now             8 returned");
}

TEST_F(AuditTest, HostCodeThatThrowsNowIsTold) {
  bool broken = false;
  Function f = function("f(x)", [&](Tensor x) {
    if (broken) throw std::runtime_error("the file is gone");
    return x + 1;
  });
  f(ones({2}));
  broken = true;
  EXPECT_EQ(f(ones({2})).item<float>({0}), 2);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_CONTAINS(told[0].explanation, "now             an exception: the file is gone");
}

TEST_F(AuditTest, AWrongCallIsNotAStaleTrace) {
  Function f = function("f(x)", [](Tensor x) { return reshape(x, {-1, 3}); });
  f(ones({6}));
  for (int n = 0; n < 3; ++n) EXPECT_CONTAINS(error_of([&] { f(ones({4})); }), "reshape");
  for (int n = 0; n < 10; ++n) f(ones({9}));
  EXPECT_TRUE(told.empty());
}

TEST_F(AuditTest, OneThreadAuditsTheOthersGoOn) {
  std::atomic<int> audits = 0;
  Function f = function("f(x)", [&](Tensor x) {
    audits += tracing().audit;
    return x * 2;
  });
  Tensor x = ones({4});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int n = 0; n < 400; ++n) f(x);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(audits, 10);
  EXPECT_GE(audits, 5);
  EXPECT_TRUE(told.empty());
}

}  // namespace
}  // namespace stet
