#include "stet/base/dim.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"

namespace stet {
namespace {

const Reason none{};
constexpr std::int64_t greatest = INT64_MAX, least = INT64_MIN;

template <class Call>
std::string problem_text(Call call) {
  try {
    call();
  } catch (const Problem& problem) {
    return problem.text();
  }
  return "(no Problem)";
}

template <class Call>
std::string trace_error_text(Call call) {
  try {
    call();
  } catch (const TraceError& error) {
    return error.what();
  }
  return "(no TraceError)";
}

class DimTest : public testing::Test {
 protected:
  RecordingScope scope;
  Dim s = scope.symbol("s", 6), t = scope.symbol("t", 4), u = scope.symbol("u", 1);
  Dim late = scope.symbol("late", {}, 100);
};

TEST_F(DimTest, ConstantsCompute) {
  EXPECT_EQ((Dim(7) + 3).constant(), 10);
  EXPECT_EQ((Dim(7) - 10).constant(), -3);
  EXPECT_EQ((Dim(7) * 3).constant(), 21);
  EXPECT_EQ((Dim(7) / 2).constant(), 3);
  EXPECT_EQ((Dim(-7) / 2).constant(), -4);
  EXPECT_EQ((Dim(7) / -2).constant(), -4);
  EXPECT_EQ((Dim(-7) / -2).constant(), 3);
  EXPECT_EQ((Dim(-7) % 2).constant(), 1);
  EXPECT_EQ((Dim(7) % -2).constant(), -1);
  EXPECT_EQ((Dim(-7) % -2).constant(), -1);
  EXPECT_EQ((Dim(6) % -2).constant(), 0);
  EXPECT_EQ((Dim(least) / 1).constant(), least);
  EXPECT_EQ((Dim(least) % -1).constant(), 0);
  EXPECT_EQ(Dim(5).value(), 5);
  EXPECT_EQ(text(Dim(5)), "5");
}

TEST_F(DimTest, OverflowIsAProblemAndNeverWraps) {
  EXPECT_EQ(problem_text([] { Dim(greatest) + 1; }), "size 9223372036854775807 + 1 is too large");
  EXPECT_EQ(problem_text([] { Dim(least) - 1; }), "size -9223372036854775808 - 1 is too large");
  EXPECT_EQ(problem_text([] { Dim(0) - least; }), "size 0 - -9223372036854775808 is too large");
  EXPECT_EQ(problem_text([] { Dim(greatest) * 2; }), "size 9223372036854775807 * 2 is too large");
  EXPECT_EQ(problem_text([] { Dim(least) / -1; }), "size -9223372036854775808 // -1 is too large");
  EXPECT_EQ(problem_text([&] { (s * greatest) * 2; }), "size 9223372036854775807*s * 2 is too large");
  EXPECT_EQ(problem_text([&] { s* greatest + s; }), "size 9223372036854775807*s + s is too large");
  EXPECT_THROW(Dim(greatest) + 1, UserError);
}

TEST_F(DimTest, DivisionByConstantZeroIsAProblem) {
  EXPECT_EQ(problem_text([&] { s / 0; }), "size 6 cannot be divided by 0");
  EXPECT_EQ(problem_text([&] { Dim(3) % 0; }), "size 3 cannot be taken modulo 0");
}

TEST_F(DimTest, NarrowingConversionsAreChecked) {
  EXPECT_EQ(int(Dim(5)), 5);
  EXPECT_EQ(problem_text([] { (void)int(Dim(std::int64_t{1} << 32)); }),
            "size 4294967296 does not fit in an integer of 32 bits");
  EXPECT_EQ(problem_text([] { (void)std::size_t(Dim(-1)); }), "size -1 does not fit in an integer of 64 bits");
  EXPECT_EQ(problem_text([] { (void)std::uint8_t(Dim(256)); }), "size 256 does not fit in an integer of 8 bits");
}

TEST_F(DimTest, Printing) {
  EXPECT_EQ(text((s * t * 2 + 1)), "2*s*t + 1");
  EXPECT_EQ(text((t + s)), "s + t");
  EXPECT_EQ(text((1 - s)), "-s + 1");
  EXPECT_EQ(text((s - t * 3)), "s - 3*t");
  EXPECT_EQ(text((s / 2)), "s // 2");
  EXPECT_EQ(text(((s + 3) % 8)), "(s + 3) % 8");
  EXPECT_EQ(text((s / t)), "s // t");
  EXPECT_EQ(text((s * t / (t + 1))), "(s*t) // (t + 1)");
  EXPECT_EQ(text((s / 4 + t)), "t + s // 4");
  EXPECT_EQ(text((s / 2 * 3)), "3*(s // 2)");
  EXPECT_EQ(text((0 - s / 2)), "-(s // 2)");
  EXPECT_EQ(text((s * s)), "s*s");
  EXPECT_EQ(text(scope.symbol("", 3)), "s4");
}

TEST_F(DimTest, CanonicalForms) {
  const std::pair<Dim, Dim> pairs[] = {
      {(s + t) * (s - t), s * s - t * t},
      {s + t - t, s},
      {s - s, 0},
      {s * 0, 0},
      {s * 2 / 2, s},
      {(s * 4 + 2) / 2, s * 2 + 1},
      {s * 6 % 3, 0},
      {(s + t * 4) / 4, s / 4 + t},
      {s * 5 / 4, s + s / 4},
      {s / 1, s},
      {s % 1, 0},
      {s / -1, 0 - s},
      {s % -1, 0},
      {(s - 3) / 2 + 1, (s + 1) / 2 - 1},
      {(s * 2 + 1) / 4, s / 2},
      {s * 2 % 4, s % 2 * 2},
      {(s * 2 + 3) % 4, (s + 1) % 2 * 2 + 1},
      {s / 2 / 3, s / 6},
      {(s / 2 + t) / 2, (s + t * 2) / 4},
      {s % 12 % 4, s % 4},
      {(s % 8 + t * 4) % 4, s % 4},
      {s % 4 % 8, s % 4},
      {s % 4 / 4, 0},
      {late / 101, 0},
      {late % 101, late},
      {s * t % s, 0},
      {s % s, 0},
      {Dim(0) / s, 0},
      {Dim(0) % s, 0},
      {s / -2, (0 - s) / 2},
      {s * 6 / (t * 2), s * 3 / t},
      {s * 6 % (t * 2), s * 3 % t * 2},
  };
  for (const auto& [left, right] : pairs) {
    EXPECT_TRUE(identical(left, right)) << text(left) << " and " << text(right);
    EXPECT_EQ(left.hash(), right.hash()) << text(left) << " and " << text(right);
  }
  EXPECT_FALSE(identical(s, t));
  EXPECT_FALSE(identical(s, 6));
  EXPECT_FALSE(identical(s / 2, s % 2));
}

TEST_F(DimTest, DivisionBySymbolsDoesNotCancelButExactQuotientDoes) {
  const Dim ratio = s * t / s;
  EXPECT_EQ(ratio.evaluate(Bindings({0, 5})), 0);
  EXPECT_EQ(ratio.evaluate(Bindings({3, 5})), 5);
  EXPECT_TRUE(identical(*exact_quotient(s * 784, s), 784));
  EXPECT_TRUE(identical(*exact_quotient(s * s - t * t, s + t), s - t));
  EXPECT_TRUE(identical(*exact_quotient(s * 6, 3), s * 2));
  EXPECT_TRUE(identical(*exact_quotient(6, -1), -6));
  EXPECT_TRUE(identical(*exact_quotient(0, s), 0));
  EXPECT_FALSE(exact_quotient(s * 784, 10));
  EXPECT_FALSE(exact_quotient(s + 1, s));
  EXPECT_FALSE(exact_quotient(s, t));
  EXPECT_FALSE(exact_quotient(s, 0));
}

TEST_F(DimTest, Hints) {
  EXPECT_EQ((s * t + 1).hint(), 25);
  EXPECT_EQ(Dim(3).hint(), 3);
  EXPECT_EQ((late + s).hint(), std::nullopt);
  EXPECT_EQ(scope.symbol_hint(0), 6);
  EXPECT_EQ(scope.symbol_name(3), "late");
  EXPECT_THROW(scope.symbol_name(4), InternalError);
  EXPECT_THROW(scope.symbol("x", -1), InternalError);
}

TEST_F(DimTest, Symbols) {
  EXPECT_EQ(t.as_symbol(), 1);
  EXPECT_EQ((t * 2).as_symbol(), std::nullopt);
  EXPECT_EQ((t / 2).as_symbol(), std::nullopt);
  EXPECT_EQ(Dim(1).as_symbol(), std::nullopt);
  EXPECT_EQ((u * s + (t + s) / (u + 1)).symbols(), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(Dim(1).symbols(), std::vector<int>{});
}

TEST_F(DimTest, EvaluateNeedsEveryBindingAndChecksOverflow) {
  EXPECT_EQ((s * t).evaluate(Bindings({3, 5})), 15);
  EXPECT_EQ((s / t + s % t).evaluate(Bindings({3, 0})), 0);
  try {
    (s * u).evaluate(Bindings({3, 5}));
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "symbol 2 of size s*u is not bound");
  }
  EXPECT_EQ(problem_text([&] { (s * t).evaluate(Bindings({greatest, 2})); }), "size s*t is too large");
  EXPECT_EQ((s * t - s * t + s * 2 - s).evaluate(Bindings({greatest})), greatest);
  Bindings bindings;
  bindings.bind(2, 9);
  EXPECT_EQ(u.evaluate(bindings), 9);
  EXPECT_EQ(bindings.find(0), std::nullopt);
}

TEST_F(DimTest, SubstituteIntoAnotherScope) {
  RecordingScope other;
  const Dim x = other.symbol("x", 2);
  const Dim replacements[] = {x * 2, 4, x, 0};
  const Dim result = ((s + t) / 2 + s % t).substitute(replacements);
  EXPECT_TRUE(identical(result, x + 2 + x % 2 * 2)) << text(result);
  EXPECT_EQ(result.scope(), &other);
  EXPECT_TRUE(identical((s / late).substitute(replacements), 0));
  EXPECT_THROW((s + t).substitute(std::span(replacements, 1)), InternalError);
}

TEST_F(DimTest, ADimOutlivesItsScope) {
  Dim orphan = 0, twin = 0;
  {
    RecordingScope inner;
    const Dim a = inner.symbol("a", 3), b = inner.symbol("b", 4);
    EXPECT_TRUE(require(a, Relation::equal, b - 1, none));
    orphan = a * b + 1;
    twin = b * a + 1;
    EXPECT_EQ(orphan.scope(), &inner);
    EXPECT_EQ(prove_equal(a + 1, b), Proof::yes);
  }
  EXPECT_EQ(orphan.scope(), nullptr);
  EXPECT_EQ(text(orphan), "a*b + 1");
  EXPECT_EQ(orphan.hash(), twin.hash());
  EXPECT_TRUE(identical(orphan, twin));
  EXPECT_FALSE(identical(orphan, s * t + 1));
  EXPECT_EQ(prove(0, Relation::less, orphan), Proof::yes);
  EXPECT_EQ(prove_equal(orphan, s), Proof::unknown);
  const std::string advice =
      "\n  fix: take the size from a tensor of this call; a number that outlives a trace is int(size), which becomes "
      "part of the trace";
  EXPECT_EQ(trace_error_text([&] {
              orphan.value(Where{"a.cpp", 3});
            }),
            "size a*b + 1 belongs to a trace that has ended\n  at a.cpp:3" + advice);
  EXPECT_EQ(trace_error_text([&] { require(orphan, Relation::equal, 1, none); }),
            "size a*b + 1 belongs to a trace that has ended" + advice);
  EXPECT_EQ(trace_error_text([&] { orphan + s; }),
            "size a*b + 1 and size s belong to two different traces\n"
            "  fix: use only sizes of tensors of the trace that is running");
  EXPECT_THROW(check(s, Relation::less, orphan, none), TraceError);
}

TEST_F(DimTest, RunawayExpressionsAreAProblem) {
  const std::string expected = "a size computed here is too complicated an expression of other sizes";
  EXPECT_EQ(problem_text([&] {
              Dim deep = s;
              for (int i = 0; i < 1'000'000; ++i) deep = (deep * 2 + t) % (i % 2 ? 7 : 5) + s;
            }),
            expected);
  EXPECT_EQ(problem_text([&] {
              Dim wide = s + t + u;
              for (int i = 0; i < 1000; ++i) wide = wide * (s + t + u + 1);
            }),
            expected);
  EXPECT_EQ(problem_text([&] {
              Dim doubling = s;
              for (int i = 0; i < 64; ++i) doubling = doubling / (doubling + 1) + doubling % (t + doubling);
            }),
            expected);
}

// Divisions of divisions are merged as long as their divisor and coefficients fit, and nested after that.
TEST_F(DimTest, LongChainsOfHalvingStayExact) {
  Dim size = s;
  std::int64_t expected = greatest / 4;
  const Bindings bindings({expected, 3});
  for (int i = 0; i < 80; ++i) {
    size = (size + t * 3 - 5) / 2 + 1;
    expected = (expected + 9 - 5) / 2 + 1;
    ASSERT_EQ(size.evaluate(bindings), expected) << i;
  }
}

TEST_F(DimTest, AreCountedAcrossThreads) {
  const Dim shared = s * t + 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round) {
        Dim copy = shared;
        Dim moved = std::move(copy);
        copy = moved;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(text(shared), "s*t + 1");
}

// ---- proofs

TEST_F(DimTest, ProvesByFormAndBounds) {
  EXPECT_EQ(prove(3, Relation::less, 4), Proof::yes);
  EXPECT_EQ(prove(s + 1, Relation::equal, s + 1), Proof::yes);
  EXPECT_EQ(prove(s + 1, Relation::equal, s), Proof::no);
  EXPECT_EQ(prove(s + 1, Relation::not_equal, s), Proof::yes);
  EXPECT_EQ(prove(s, Relation::equal, t), Proof::unknown);
  EXPECT_EQ(prove(s, Relation::equal, 6), Proof::unknown);
  EXPECT_EQ(prove(0, Relation::less_equal, s), Proof::yes);
  EXPECT_EQ(prove(s, Relation::less, 0), Proof::no);
  EXPECT_EQ(prove(0, Relation::less, s * t + 1), Proof::yes);
  EXPECT_EQ(prove(late, Relation::less_equal, 100), Proof::yes);
  EXPECT_EQ(prove(late, Relation::less, 100), Proof::unknown);
  EXPECT_EQ(prove(late, Relation::equal, 101), Proof::no);
  EXPECT_EQ(prove(s % 8, Relation::less, 8), Proof::yes);
  EXPECT_EQ(prove(late / 10, Relation::less_equal, 10), Proof::yes);
  EXPECT_EQ(prove(s * 2 + 1, Relation::equal, t * 4), Proof::no);
  EXPECT_EQ(prove(s, Relation::less_equal, s + t), Proof::yes);
  EXPECT_EQ(prove(s / 4 * 4 + s % 4, Relation::equal, s), Proof::yes);
  EXPECT_TRUE(scope.facts().empty());
}

TEST_F(DimTest, ProvesByTiesAndPins) {
  RecordingScope trace;
  const Dim a = trace.symbol("a", 3), b = trace.symbol("b", 3), c = trace.symbol("c", 3), d = trace.symbol("d", 784);
  EXPECT_TRUE(require(a, Relation::equal, b, none));
  EXPECT_TRUE(require(c, Relation::equal, b, none));
  EXPECT_EQ(prove_equal(a * d + c, d * c + a), Proof::yes);
  EXPECT_EQ(prove_equal((a + 1) / 2, (c + 1) / 2), Proof::yes);
  EXPECT_EQ(prove_equal(a / d, c / d), Proof::yes);
  EXPECT_EQ(prove_equal(a, d), Proof::unknown);
  EXPECT_TRUE(require(d, Relation::equal, 784, none));
  EXPECT_EQ(prove_equal(d * a, c * 784), Proof::yes);
  EXPECT_EQ(prove_equal(d / 28, 28), Proof::yes);
  EXPECT_EQ(prove(d, Relation::less, 785), Proof::yes);
  EXPECT_TRUE(identical(simplified(c * d), a * 784));
  EXPECT_EQ(trace.facts().size(), 3u);
}

TEST_F(DimTest, ProvesByEquations) {
  RecordingScope trace;
  const Dim s0 = trace.symbol("s0", 32), s1 = trace.symbol("s1", 28), s2 = trace.symbol("s2", 28);
  EXPECT_TRUE(require(s1 * s2, Relation::equal, 784, none));
  EXPECT_EQ(prove_equal(s0 * s1 * s2, s0 * 784), Proof::yes);
  EXPECT_EQ(prove_equal(s0 * s1 * s2 * s1 + s1, s0 * s1 * 784 + s1), Proof::yes);
  EXPECT_EQ(prove_equal(s1 * s2 * 2 / 28, 56), Proof::yes);
  EXPECT_EQ(prove_equal(s1 * s2, 785), Proof::no);
  EXPECT_EQ(prove(s1 * s2, Relation::less, 1000), Proof::yes);
  EXPECT_EQ(prove_equal(s1, 28), Proof::unknown);
  EXPECT_TRUE(require(s1, Relation::equal, 28, none));
  EXPECT_EQ(prove_equal(s2, 28), Proof::yes);
  EXPECT_EQ(trace.facts().size(), 2u);
}

TEST_F(DimTest, ProvesWithCoefficients) {
  RecordingScope trace;
  const Dim a = trace.symbol("a", 4), b = trace.symbol("b", 6), c = trace.symbol("c", 7);
  EXPECT_TRUE(require(a * 3, Relation::equal, b * 2, none));
  EXPECT_EQ(prove_equal(a * 9 * c, b * 6 * c), Proof::yes);
  EXPECT_EQ(prove_equal(a * 3 + 1, b * 2), Proof::no);
  EXPECT_EQ(prove(b, Relation::less_equal, a + a), Proof::yes);  // b is 3/2 a
  EXPECT_EQ(prove(a + a, Relation::less, b), Proof::no);
}

TEST_F(DimTest, ProvesByDivisibilityChecks) {
  RecordingScope trace;
  const Dim n = trace.symbol("n", 20);
  EXPECT_TRUE(check(n * 784 % 10, Relation::equal, 0, none));
  EXPECT_EQ(prove_equal(n * 784 / 10 * 10, n * 784), Proof::yes);
  EXPECT_TRUE(trace.facts().empty());
  EXPECT_EQ(trace.checks().size(), 1u);
}

TEST_F(DimTest, ProvesByComparisons) {
  EXPECT_TRUE(scope.decide(s, Relation::less, 10, none));
  EXPECT_TRUE(scope.decide(2, Relation::less_equal, s, none));
  EXPECT_EQ(prove(s, Relation::less_equal, 9), Proof::yes);
  EXPECT_EQ(prove(s * t, Relation::less_equal, t * 9), Proof::unknown);
  EXPECT_EQ(prove(s * 2 + 1, Relation::less, 20), Proof::yes);
  EXPECT_EQ(prove(s, Relation::equal, 10), Proof::no);
  EXPECT_EQ(prove(s, Relation::equal, 1), Proof::no);
  EXPECT_EQ(prove(s / 4, Relation::less, 3), Proof::yes);
  EXPECT_FALSE(scope.decide(s, Relation::equal, 9, none));
  EXPECT_EQ(prove(s, Relation::less, 9), Proof::yes);
  EXPECT_TRUE(scope.decide(t, Relation::less, s, none));
  EXPECT_EQ(prove(t, Relation::less_equal, s), Proof::yes);
  EXPECT_EQ(prove(s, Relation::equal, t), Proof::no);
  EXPECT_EQ(prove(t * 2, Relation::less_equal, s * 2 - 2), Proof::yes);
  EXPECT_FALSE(scope.decide(u, Relation::equal, 0, none));
  EXPECT_EQ(prove(1, Relation::less_equal, u), Proof::yes);
  EXPECT_EQ(scope.facts().size(), 5u);
}

TEST_F(DimTest, ProofsFollowChecksThatAScopeDrops) {
  RecordingScope forgetful;
  const Dim a = forgetful.symbol("a", {}), b = forgetful.symbol("b", 3), c = forgetful.symbol("c", 3);
  require(a, Relation::equal, b, none);
  EXPECT_EQ(prove_equal(a, b), Proof::yes);
  forgetful.keep_checks(0);
  require(a, Relation::equal, c, none);
  EXPECT_EQ(prove_equal(a, b), Proof::unknown);
  EXPECT_EQ(prove_equal(a, c), Proof::yes);
}

TEST_F(DimTest, FactsInsideOfQuotientsFollowLaterOnes) {
  RecordingScope scope;
  const Dim a = scope.symbol("a", 1), b = scope.symbol("b", 1), c = scope.symbol("c", 1), d = scope.symbol("d", 7),
            e = scope.symbol("e", 7);
  require(smaller_of(a, b), Relation::equal, 1, none);
  require(d / 2, Relation::equal, 3, none);
  require(a, Relation::equal, c, none);
  require(b, Relation::equal, 1, none);
  require(d, Relation::equal, e, none);
  EXPECT_EQ(prove_equal(smaller_of(c, 1), 1), Proof::yes);
  EXPECT_EQ(prove_equal(smaller_of(a, b), 1), Proof::yes);
  EXPECT_EQ(prove_equal(e / 2, 3), Proof::yes);
  EXPECT_EQ(prove_equal(d / 2 + c, c + 3), Proof::yes);
}

TEST_F(DimTest, LargerAndSmallerSizesHaveOneForm) {
  EXPECT_EQ(text(larger_of(s - 1, 0)), "max(s - 1, 0)");
  EXPECT_EQ(text(smaller_of(s, 8)), "min(s, 8)");
  EXPECT_TRUE(identical(smaller_of(s, 8), smaller_of(8, s)));
  EXPECT_TRUE(identical(smaller_of(s, 2) + larger_of(s - 2, 0), s));
  EXPECT_TRUE(identical(larger_of(larger_of(s - 1, 0) - 1, 0), larger_of(s - 2, 0)));
  EXPECT_TRUE(identical(larger_of(s * 2, 0), s * 2));
  EXPECT_TRUE(identical(larger_of(s * 2 - 4, 0), larger_of(s - 2, 0) * 2));
  EXPECT_EQ(prove_by_form(0, Relation::less_equal, smaller_of(s, 8)), Proof::yes);
  EXPECT_EQ(prove_by_form(smaller_of(s, 8), Relation::less_equal, s), Proof::yes);
  EXPECT_EQ(prove_by_form(0, Relation::less_equal, larger_of(s - 2, 0) - larger_of(s - 5, 0)), Proof::yes);
  EXPECT_EQ(prove_by_form(larger_of(s - 2, 0), Relation::less, s), Proof::unknown);
}

// ---- recording

TEST_F(DimTest, RequireRecordsOnceAndOnlyWhatIsNotProven) {
  EXPECT_TRUE(require(s, Relation::equal, 6, Reason{"matmul", "inner sizes", Where{"a.cpp", 7}}));
  EXPECT_TRUE(require(s, Relation::equal, 6, none));
  EXPECT_TRUE(require(s * 2, Relation::equal, 12, none));
  EXPECT_TRUE(require(s, Relation::less, 7, none));
  EXPECT_FALSE(require(s, Relation::equal, 7, none));
  ASSERT_EQ(scope.facts().size(), 1u);
  const Fact& fact = scope.facts()[0];
  EXPECT_EQ(text(fact), "s == 6");
  EXPECT_STREQ(fact.reason.asker, "matmul");
  EXPECT_EQ(fact.reason.what, "inner sizes");
  EXPECT_EQ(fact.reason.where.line, 7);
  EXPECT_TRUE(fact.holds(Bindings({6})));
  EXPECT_FALSE(fact.holds(Bindings({7})));
}

TEST_F(DimTest, WhatHintsRefuteIsRecordedAsItsOpposite) {
  EXPECT_FALSE(require(s, Relation::equal, t, none));
  EXPECT_FALSE(require(t, Relation::equal, s, none));
  EXPECT_FALSE(require(s, Relation::less_equal, t, none));
  EXPECT_FALSE(require(u, Relation::not_equal, 1, none));
  ASSERT_EQ(scope.facts().size(), 3u);
  EXPECT_EQ(text(scope.facts()[0]), "s != t");
  EXPECT_EQ(text(scope.facts()[1]), "t < s");
  EXPECT_EQ(text(scope.facts()[2]), "u == 1");
  EXPECT_TRUE(scope.checks().empty());
}

TEST_F(DimTest, NeedsOnLateSymbolsAreChecks) {
  EXPECT_TRUE(require(late, Relation::equal, s, none));
  EXPECT_TRUE(require(late, Relation::equal, s, none));
  EXPECT_TRUE(require(late * 2, Relation::equal, s * 2, none));
  EXPECT_FALSE(require(late, Relation::equal, 200, none));
  EXPECT_TRUE(scope.facts().empty());
  ASSERT_EQ(scope.checks().size(), 1u);
  EXPECT_EQ(text(scope.checks()[0].fact), "late == s");
}

TEST_F(DimTest, DecideRecordsTheAnswer) {
  EXPECT_FALSE(scope.decide(s, Relation::less, 3, Reason{"host code", {}, Where{"a.cpp", 9}}));
  EXPECT_TRUE(scope.decide(t, Relation::not_equal, 7, none));
  EXPECT_FALSE(scope.decide(s, Relation::less, 2, none));
  ASSERT_EQ(scope.facts().size(), 2u);
  EXPECT_EQ(text(scope.facts()[0]), "3 <= s");
  EXPECT_EQ(scope.facts()[0].reason.where.line, 9);
  EXPECT_EQ(text(scope.facts()[1]), "t != 7");
}

TEST_F(DimTest, PinRecordsTheHint) {
  EXPECT_EQ((s + 1).value(Where{"a.cpp", 11}), 7);
  EXPECT_EQ(s.value(), 6);
  EXPECT_EQ(int(s * 2), 12);
  ASSERT_EQ(scope.facts().size(), 1u);
  EXPECT_EQ(text(scope.facts()[0]), "s + 1 == 7");
  EXPECT_EQ(scope.facts()[0].reason.where.line, 11);
}

TEST_F(DimTest, LateSymbolsCannotBeReadOrDecided) {
  const std::string advice =
      "\n  at a.cpp:5\n  fix: use the size as a Dim in ops; to decide by it, compare a tensor of it: cond(tensor(size) "
      "> 4, …)";
  EXPECT_EQ(
      trace_error_text([&] {
        (late + 1).value(Where{"a.cpp", 5});
      }),
      "size late + 1 depends on values and is not known while tracing, so host code cannot read it as an integer" +
          advice);
  EXPECT_EQ(
      trace_error_text([&] {
        scope.decide(s, Relation::less, late, Reason{"host code", {}, Where{"a.cpp", 5}});
      }),
      "size late depends on values and is not known while tracing, so host code cannot ask whether s < late" + advice);
  EXPECT_TRUE(scope.decide(late, Relation::less, 101, none));
  EXPECT_TRUE(scope.facts().empty());
  EXPECT_TRUE(scope.checks().empty());
}

// ---- properties

/// Random expressions, built alongside a function that computes them on integers.
class RandomDims {
 public:
  RandomDims(std::uint64_t seed, RecordingScope& scope, int symbols) : random_(seed) {
    for (int i = 0; i < symbols; ++i) symbols_.push_back(scope.symbol("", static_cast<std::int64_t>(pick(8))));
  }
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

  Dim make(int depth) {
    if (depth == 0 || pick(6) == 0) {
      if (pick(3) == 0) return static_cast<std::int64_t>(pick(13)) - 6;
      return symbols_[pick(symbols_.size())];
    }
    const Dim a = make(depth - 1), b = make(depth - 1);
    switch (pick(8)) {
      case 0:
      case 1:
        return a + b;
      case 2:
        return a - b;
      case 3:
        return a * b;
      case 4:
        return a / divisor(b);
      case 5:
        return a % divisor(b);
      case 6:
        return pick(2) == 0 ? larger_of(a, b) : smaller_of(a, b);
      default:
        return a + static_cast<std::int64_t>(pick(9));
    }
  }
  Dim divisor(const Dim& dim) {
    if (!dim.is_constant() && pick(3) == 0) return dim;
    const auto constant = static_cast<std::int64_t>(pick(12)) - 4;
    return constant == 0 ? 5 : constant;
  }
  Bindings bindings(std::uint64_t below = 12) {
    Bindings result;
    for (std::size_t i = 0; i < symbols_.size(); ++i)
      result.bind(static_cast<int>(i), static_cast<std::int64_t>(pick(below)));
    return result;
  }
  const std::vector<Dim>& symbols() const { return symbols_; }

 private:
  std::mt19937_64 random_;
  std::vector<Dim> symbols_;
};

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : a - floor_quotient(a, b) * b; }

TEST(DimProperty, ArithmeticAgreesWithEvaluation) {
  RecordingScope scope;
  RandomDims dims(42, scope, 4);
  for (int round = 0; round < 4000; ++round) {
    const Dim a = dims.make(3), b = dims.make(3);
    const Dim n = dims.divisor(b);
    for (int i = 0; i < 5; ++i) {
      const Bindings bindings = dims.bindings();
      const std::int64_t x = a.evaluate(bindings), y = b.evaluate(bindings), z = n.evaluate(bindings);
      const std::string what = text(a) + "   and   " + text(b) + "   and   " + text(n);
      ASSERT_EQ((a + b).evaluate(bindings), x + y) << what;
      ASSERT_EQ((a - b).evaluate(bindings), x - y) << what;
      ASSERT_EQ((a * b).evaluate(bindings), x * y) << what;
      ASSERT_EQ(larger_of(a, b).evaluate(bindings), std::max(x, y)) << what;
      ASSERT_EQ(smaller_of(a, b).evaluate(bindings), std::min(x, y)) << what;
      ASSERT_EQ((a / n).evaluate(bindings), floor_quotient(x, z)) << what;
      ASSERT_EQ((a % n).evaluate(bindings), floor_remainder(x, z)) << what;
    }
  }
}

TEST(DimProperty, RingLawsHoldStructurally) {
  RecordingScope scope;
  RandomDims dims(7, scope, 4);
  for (int round = 0; round < 2000; ++round) {
    const Dim a = dims.make(3), b = dims.make(3), c = dims.make(2);
    const std::pair<Dim, Dim> laws[] = {{a + b - b, a},
                                        {a + b, b + a},
                                        {a * b, b * a},
                                        {(a + b) + c, a + (b + c)},
                                        {(a * b) * c, a * (b * c)},
                                        {a * (b + c), a * b + a * c},
                                        {(a * 6 + 3) / 3, a * 2 + 1},
                                        {(a + b * 5) % 5, a % 5},
                                        {(a + b * 5) / 5, a / 5 + b}};
    for (const auto& [left, right] : laws) {
      ASSERT_TRUE(identical(left, right)) << text(left) << "   and   " << text(right);
      ASSERT_EQ(left.hash(), right.hash());
      ASSERT_EQ(text(left), text(right));
    }
  }
}

TEST(DimProperty, SubstitutionAgreesWithEvaluation) {
  RecordingScope scope, other;
  RandomDims dims(3, scope, 3), inner(4, other, 3);
  for (int round = 0; round < 1000; ++round) {
    const Dim dim = dims.make(3);
    std::vector<Dim> replacements, constants;
    Bindings outer_bindings;
    const Bindings bindings = inner.bindings();
    for (int i = 0; i < 3; ++i) {
      replacements.push_back(inner.make(1));
      const std::int64_t value = replacements.back().evaluate(bindings);
      if (value == INT64_MIN) continue;
      outer_bindings.bind(i, value);
      constants.push_back(value);
    }
    // Symbols are sizes: the canonical form relies on them being >= 0.
    bool is_size = true;
    for (const Dim& constant : constants) is_size = is_size && constant.constant() >= 0;
    if (!is_size) continue;
    const std::int64_t expected = dim.evaluate(outer_bindings);
    ASSERT_EQ(dim.substitute(constants).value(), expected) << text(dim);
    ASSERT_EQ(dim.substitute(replacements).evaluate(bindings), expected) << text(dim);
  }
}

TEST(DimProperty, ExactQuotientInvertsMultiplication) {
  RecordingScope scope;
  RandomDims dims(11, scope, 3);
  for (int round = 0; round < 2000; ++round) {
    const Dim a = dims.make(2), b = dims.make(2);
    if (identical(b, 0)) continue;
    const auto quotient = exact_quotient(a * b, b);
    ASSERT_TRUE(quotient) << text(a) << "   and   " << text(b);
    ASSERT_TRUE(identical(*quotient, a)) << text(*quotient) << "   and   " << text(a);
    if (const auto other = exact_quotient(a, b)) {
      ASSERT_TRUE(identical(*other * b, a)) << text(a) << "   and   " << text(b);
    }
  }
}

// Facts are made so that they hold for a secret binding; proofs must then agree with every binding that obeys them.
TEST(DimProperty, ProofsNeverContradictEvaluation) {
  int proven = 0, refuted = 0, unknown = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    RecordingScope scope;
    RandomDims dims(seed, scope, 3);
    const int fact_count = static_cast<int>(dims.pick(4));
    for (int i = 0; i < fact_count; ++i) try {
        scope.decide(dims.make(1 + static_cast<int>(dims.pick(2))), static_cast<Relation>(dims.pick(4)), dims.make(1),
                     none);
      } catch (const UserError&) {  // a division by a size that is 0
      }
    std::vector<Bindings> obedient;
    for (std::int64_t x = 0; x < 9; ++x)
      for (std::int64_t y = 0; y < 9; ++y)
        for (std::int64_t z = 0; z < 9; ++z) {
          Bindings bindings({x, y, z});
          bool obeys = true;
          for (const Fact& fact : scope.facts()) obeys = obeys && fact.holds(bindings);
          if (obeys) obedient.push_back(std::move(bindings));
        }
    ASSERT_FALSE(obedient.empty());  // the hints obey
    for (int round = 0; round < 25; ++round) {
      const Dim a = dims.make(2), b = dims.make(1);
      const auto relation = static_cast<Relation>(dims.pick(4));
      const Proof proof = prove(a, relation, b);
      const Dim simple = simplified(a);
      ++(proof == Proof::yes ? proven : proof == Proof::no ? refuted : unknown);
      for (const Bindings& bindings : obedient) {
        ASSERT_EQ(simple.evaluate(bindings), a.evaluate(bindings)) << text(a) << " became " << text(simple);
        if (proof == Proof::unknown) continue;
        ASSERT_EQ(holds(a.evaluate(bindings), relation, b.evaluate(bindings)), proof == Proof::yes)
            << Fact{a, relation, b, none}.str() << " with seed " << seed;
      }
    }
    for (const Fact& fact : scope.facts())
      ASSERT_EQ(prove(fact.left, fact.relation, fact.right), Proof::yes) << fact.str();
  }
  EXPECT_GT(proven, 500);
  EXPECT_GT(refuted, 500);
  EXPECT_GT(unknown, 500);
}

}  // namespace
}  // namespace stet
