#include "stet/base/shape.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/inside.h"

namespace stet {
namespace {

const Reason none{};
constexpr std::int64_t big = std::int64_t{1} << 40;

/// "text | advice".
template <class Call>
std::string problem_of(Call call) {
  try {
    call();
  } catch (const Problem& problem) {
    return problem.text() + " | " + problem.advice();
  }
  return "(no Problem)";
}

std::vector<std::string> fact_texts(const SymbolScope& scope) {
  std::vector<std::string> result;
  for (const Fact& fact : scope.facts()) result.push_back(fact.str());
  for (const SizeCheck& check : scope.checks()) result.push_back("check " + check.fact.str());
  return result;
}
using Texts = std::vector<std::string>;

/// What a call with these sizes is told: "text | advice".
std::string refusal_of(const SymbolScope& scope, const Bindings& sizes) {
  return problem_of([&] {
    for (const SizeCheck& check : scope.checks()) test(check, sizes);
  });
}

std::vector<int> axes_of(const AxisMap& map) { return {map.axes.begin(), map.axes.begin() + map.rank}; }
using Axes = std::vector<int>;

Broadcast broadcast_of(std::initializer_list<Shape> shapes) {
  return broadcast(std::span<const Shape>(shapes.begin(), shapes.size()), none);
}

Shape reshape_to(const Shape& from, std::initializer_list<Dim> target) {
  return reshape(from, std::span<const Dim>(target.begin(), target.size()), none);
}

// ---- Shape

TEST(Shape, Construction) {
  const Shape braces{2, 3}, call({2, 3}), vector(std::vector<std::int64_t>{2, 3});
  EXPECT_EQ(text(braces), "[2,3]");
  EXPECT_TRUE(identical(braces, call));
  EXPECT_TRUE(identical(braces, vector));
  EXPECT_EQ(braces.hash(), vector.hash());
  EXPECT_EQ(text(Shape()), "[]");
  EXPECT_EQ(Shape{}.rank(), 0);
  EXPECT_TRUE(Shape().empty());
  EXPECT_FALSE(identical(Shape{2}, Shape{2, 1}));
  EXPECT_FALSE(identical(Shape{2, 3}, Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}.hash()), (Shape{3, 2}.hash()));
  std::ostringstream out;
  out << braces;
  EXPECT_EQ(text(out), "[2,3]");
}

TEST(Shape, SizesAreNeverNegative) {
  const std::string expected = "size -1 is negative | sizes are 0 or more; only reshape takes one -1";
  EXPECT_EQ(problem_of([] { Shape{2, -1}; }), expected);
  EXPECT_EQ(problem_of([] { Shape(std::vector<std::int64_t>{-1}); }), expected);
  EXPECT_EQ(problem_of([] { Shape().push_back(-1); }), expected);
  EXPECT_EQ(problem_of([] { Shape{3}.set(0, -1); }), expected);
  EXPECT_THROW((Shape{-1}), UserError);
}

TEST(Shape, CountsNeverWrap) {
  EXPECT_EQ(problem_of([] {
              Shape{big, big};
            }),
            "a tensor of shape [1099511627776,1099511627776] is too large | a tensor has at most 2^62 elements");
  EXPECT_EQ(problem_of([] {
              Shape{big, 0, big};
            }),
            "a tensor of shape [1099511627776,0,1099511627776] is too large | a tensor has at most 2^62 elements");
  EXPECT_EQ(problem_of([] { Shape{INT64_MAX}; }),
            "a tensor of shape [9223372036854775807] is too large | a tensor has at most 2^62 elements");
  EXPECT_EQ(problem_of([] {
              broadcast_of({Shape{big, 1}, Shape{1, big}});
            }),
            "a tensor of shape [1099511627776,1099511627776] is too large | a tensor has at most 2^62 elements");
  EXPECT_EQ((Shape{std::int64_t{1} << 62}.element_count().constant()), std::int64_t{1} << 62);
  EXPECT_EQ((Shape{big, 0}.element_count().constant()), 0);
}

TEST(Shape, RankIsLimited) {
  EXPECT_EQ(problem_of([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }),
            "a shape of 9 dimensions is too long; at most 8 are allowed | merge dimensions with reshape");
  Shape full{1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(problem_of([&] { full.push_back(1); }),
            "a shape of 9 dimensions is too long; at most 8 are allowed | merge dimensions with reshape");
  EXPECT_EQ(full.rank(), 8);
}

TEST(Shape, Positions) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape[0].constant(), 2);
  EXPECT_EQ(shape[-1].constant(), 4);
  EXPECT_EQ(problem_of([&] { (void)shape[3]; }), "axis 3 is out of range for rank 3; allowed are -3 to 2 | ");
  EXPECT_EQ(problem_of([&] { (void)shape[-4]; }), "axis -4 is out of range for rank 3; allowed are -3 to 2 | ");
  EXPECT_EQ(problem_of([&] { (void)Shape()[0]; }), "axis 0 is out of range for rank 0, which has no axes | ");
  EXPECT_THROW(shape[3], UserError);
  Shape changed = shape;
  changed.set(-1, 7);
  EXPECT_EQ(text(changed), "[2,3,7]");
}

TEST(Shape, SymbolicSizes) {
  RecordingScope scope;
  const Dim s = scope.symbol("s0", 5);
  const Shape shape{s, 10};
  EXPECT_EQ(text(shape), "[s0,10]");
  EXPECT_FALSE(shape.is_constant());
  EXPECT_EQ(text(shape.element_count()), "10*s0");
  EXPECT_EQ(text((Shape{s, 0}.element_count())), "0");
  EXPECT_EQ(shape.evaluate(Bindings({7})), (std::vector<std::int64_t>{7, 10}));
  EXPECT_EQ(shape.sizes(), (std::vector<std::int64_t>{5, 10}));
  EXPECT_EQ(fact_texts(scope), Texts{"s0 == 5"});  // read as integers, they are pinned
  const Dim replacements[] = {4};
  EXPECT_EQ(shape.substitute(replacements).sizes(), (std::vector<std::int64_t>{4, 10}));
  EXPECT_EQ(Shape().element_count().constant(), 1);
}

TEST(Shape, DenseStrides) {
  RecordingScope scope;
  const Dim s = scope.symbol("s0", 5);
  const std::vector<Dim> strides = dense_strides(Shape{2, s, 3});
  ASSERT_EQ(strides.size(), 3u);
  EXPECT_EQ(text(strides[0]), "3*s0");
  EXPECT_EQ(text(strides[1]), "3");
  EXPECT_EQ(text(strides[2]), "1");
  EXPECT_TRUE(dense_strides(Shape()).empty());
}

TEST(Axes, Normalize) {
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_EQ(normalize_axis(0, 3), 0);
  EXPECT_EQ(problem_of([] { normalize_axis(2, 2); }), "axis 2 is out of range for rank 2; allowed are -2 to 1 | ");
  EXPECT_EQ(problem_of([] { normalize_axis(INT64_MIN, 2); }),
            "axis -9223372036854775808 is out of range for rank 2; allowed are -2 to 1 | ");
  const std::int64_t axes[] = {-1, 0}, repeated[] = {1, -1};
  EXPECT_EQ(normalize_axes(axes, 3), (std::vector<int>{0, 2}));
  EXPECT_EQ(problem_of([&] { normalize_axes(repeated, 2); }), "axis 1 is named twice in [1,-1] | name each axis once");
}

// ---- broadcast

TEST(Broadcast, Constants) {
  const Broadcast result = broadcast_of({Shape{3, 1, 5}, Shape{4, 5}, Shape{}, Shape{1, 1}});
  EXPECT_EQ(text(result.result), "[3,4,5]");
  ASSERT_EQ(result.operands.size(), 4u);
  EXPECT_EQ(axes_of(result.operands[0]), (Axes{0, -1, 2}));
  EXPECT_EQ(axes_of(result.operands[1]), (Axes{-1, 0, 1}));
  EXPECT_EQ(axes_of(result.operands[2]), (Axes{-1, -1, -1}));
  EXPECT_EQ(axes_of(result.operands[3]), (Axes{-1, -1, -1}));
  EXPECT_EQ(text(broadcast_of({}).result), "[]");
  EXPECT_EQ(text(broadcast_of({Shape{0}, Shape{1}}).result), "[0]");
  // A size of 1 in a result of 1 is not repeated.
  EXPECT_EQ(axes_of(broadcast_of({Shape{1}, Shape{1}}).operands[0]), (Axes{0}));
}

TEST(Broadcast, Problems) {
  EXPECT_EQ(problem_of([] {
              broadcast_of({Shape{2, 3}, Shape{2, 4}});
            }),
            "sizes 3 and 4 of axis -1 do not broadcast | make the sizes equal or one of them 1");
  EXPECT_EQ(problem_of([] {
              broadcast_of({Shape{2, 3}, Shape{5, 3}});
            }),
            "sizes 2 and 5 of axis -2 do not broadcast | make the sizes equal or one of them 1");
  EXPECT_EQ(problem_of([] {
              broadcast_of({Shape{0}, Shape{3}});
            }),
            "sizes 0 and 3 of axis -1 do not broadcast | make the sizes equal or one of them 1");
  RecordingScope scope;
  const Dim s = scope.symbol("s0", 3), t = scope.symbol("s1", 4);
  EXPECT_EQ(problem_of([&] {
              broadcast_of({Shape{s}, Shape{t}});
            }),
            "sizes 3 and 4 of axis -1 do not broadcast | make the sizes equal or one of them 1");
  EXPECT_EQ(problem_of([&] {
              broadcast_of({Shape{s}, Shape{4}});
            }),
            "sizes 3 and 4 of axis -1 do not broadcast | make the sizes equal or one of them 1");
}

TEST(Broadcast, ALiteralOneMakesNoFact) {
  RecordingScope scope;
  const Dim s = scope.symbol("s0", 1);
  const Broadcast result = broadcast_of({Shape{s, 1}, Shape{1, 4}});
  EXPECT_EQ(text(result.result), "[s0,4]");
  EXPECT_EQ(axes_of(result.operands[0]), (Axes{0, -1}));
  EXPECT_EQ(axes_of(result.operands[1]), (Axes{-1, 1}));
  EXPECT_EQ(fact_texts(scope), Texts{});
}

TEST(Broadcast, EqualHintsTie) {
  for (const std::int64_t hint : {0, 1, 5}) {
    RecordingScope scope;
    const Dim s = scope.symbol("s0", hint), t = scope.symbol("s1", hint);
    const Broadcast result = broadcast_of({Shape{s}, Shape{t}, Shape{t}});
    EXPECT_EQ(text(result.result), "[s0]");
    EXPECT_EQ(fact_texts(scope), Texts{"s0 == s1"});
    for (const AxisMap& map : result.operands) EXPECT_EQ(axes_of(map), Axes{0});
  }
}

TEST(Broadcast, OneHintOfOneIsPinned) {
  RecordingScope scope;
  const Dim s = scope.symbol("s0", 1), t = scope.symbol("s1", 4);
  const Broadcast result = broadcast_of({Shape{s}, Shape{t}});
  EXPECT_EQ(text(result.result), "[s1]");
  EXPECT_EQ(axes_of(result.operands[0]), Axes{-1});
  EXPECT_EQ(axes_of(result.operands[1]), Axes{0});
  EXPECT_EQ(fact_texts(scope), Texts{"s0 == 1"});
  // From now on it is a pinned 1, which needs no further fact.
  EXPECT_EQ(axes_of(broadcast_of({Shape{7}, Shape{s}}).operands[1]), Axes{-1});
  EXPECT_EQ(fact_texts(scope), Texts{"s0 == 1"});
}

TEST(Broadcast, ATiedOneIsRepeatedWithItsTwin) {
  RecordingScope scope;
  const Dim s = scope.symbol("s0", 1), t = scope.symbol("s1", 1);
  const Broadcast result = broadcast_of({Shape{s}, Shape{t}, Shape{5}});
  EXPECT_EQ(text(result.result), "[5]");
  EXPECT_EQ(fact_texts(scope), (Texts{"s0 == s1", "s0 == 1"}));
  EXPECT_EQ(axes_of(result.operands[0]), Axes{-1});
  EXPECT_EQ(axes_of(result.operands[1]), Axes{-1});
  EXPECT_EQ(axes_of(result.operands[2]), Axes{0});
}

TEST(Broadcast, ConstantsPinSymbols) {
  RecordingScope scope;
  const Dim s = scope.symbol("s0", 10);
  EXPECT_EQ(text(broadcast_of({Shape{s}, Shape{10}}).result), "[10]");
  EXPECT_EQ(fact_texts(scope), Texts{"s0 == 10"});
}

TEST(Broadcast, LateSymbolsAreChecked) {
  RecordingScope scope;
  const Dim late = scope.symbol("n", {}, 50), s = scope.symbol("s0", 10);
  EXPECT_EQ(text(broadcast_of({Shape{late}, Shape{s}}).result), "[s0]");
  EXPECT_EQ(text(broadcast_of({Shape{1}, Shape{late}}).result), "[n]");
  EXPECT_EQ(fact_texts(scope), Texts{"check n == s0"});
  EXPECT_EQ(problem_of([&] {
              broadcast_of({Shape{late}, Shape{51}});
            }),
            "sizes n and 51 of axis -1 do not broadcast | make the sizes equal or one of them 1");
}

// ---- reshape

TEST(Reshape, Constants) {
  EXPECT_EQ(text(reshape_to(Shape{2, 6}, {3, 4})), "[3,4]");
  EXPECT_EQ(text(reshape_to(Shape{2, 6}, {3, -1})), "[3,4]");
  EXPECT_EQ(text(reshape_to(Shape{1, 1}, {})), "[]");
  EXPECT_EQ(text(reshape_to(Shape{0, 6}, {0})), "[0]");
  EXPECT_EQ(text(reshape_to(Shape{0, 6}, {-1, 3})), "[0,3]");
}

TEST(Reshape, Problems) {
  EXPECT_EQ(problem_of([] {
              reshape_to(Shape{2, 3}, {4});
            }),
            "cannot reshape [2,3] with 6 elements to [4] with 4 elements | "
            "give sizes with the same product, or -1 for one of them");
  EXPECT_EQ(problem_of([] { reshape_to(Shape{2}, {}); }),
            "cannot reshape [2] with 2 elements to [] with 1 element | "
            "give sizes with the same product, or -1 for one of them");
  EXPECT_EQ(problem_of([] {
              reshape_to(Shape{2, 3}, {4, -1});
            }),
            "cannot reshape [2,3] with 6 elements to [4,-1]: 6 is not divisible by 4 | "
            "give sizes whose product divides the number of elements, or all of them without -1");
  EXPECT_EQ(problem_of([] {
              reshape_to(Shape{0, 3}, {0, -1});
            }),
            "cannot reshape [0,3] with 0 elements to [0,-1]: the size -1 cannot be found beside a size of 0 | "
            "give sizes whose product divides the number of elements, or all of them without -1");
  EXPECT_EQ(problem_of([] {
              reshape_to(Shape{6}, {-1, -1});
            }),
            "only one size of a reshape may be -1, but [-1,-1] has more | give all sizes but one");
  EXPECT_EQ(problem_of([] {
              reshape_to(Shape{6}, {-2, 3});
            }),
            "size -2 is negative | sizes are 0 or more; only reshape takes one -1");
  EXPECT_EQ(problem_of([] {
              reshape_to(Shape{6}, {big, big, 0});
            }),
            "a tensor of shape [1099511627776,1099511627776] is too large | a tensor has at most 2^62 elements");
  EXPECT_EQ(problem_of([] {
              reshape_to(Shape{1}, {1, 1, 1, 1, 1, 1, 1, 1, 1});
            }),
            "a shape of 9 dimensions is too long; at most 8 are allowed | merge dimensions with reshape");
}

TEST(Reshape, FlattenThenDense) {
  RecordingScope scope;
  const Dim s0 = scope.symbol("s0", 32), s1 = scope.symbol("s1", 28), s2 = scope.symbol("s2", 28);
  const Shape flat = reshape_to(Shape{s0, s1, s2}, {s0, -1});
  EXPECT_EQ(text(flat), "[s0,s1*s2]");
  EXPECT_EQ(fact_texts(scope), Texts{"check s0 != 0"});
  const Contraction dense = contract(flat, false, Shape{784, 128}, false, none);
  EXPECT_EQ(text(dense.result), "[s0,128]");
  EXPECT_EQ(text(dense.k), "784");
  EXPECT_EQ(fact_texts(scope), (Texts{"s1*s2 == 784", "check s0 != 0"}));
  // The equation, multiplied by the batch, is enough for the way back.
  EXPECT_EQ(text(reshape_to(Shape{s0, 784}, {s0, s1, s2})), "[s0,s1,s2]");
  EXPECT_EQ(fact_texts(scope), (Texts{"s1*s2 == 784", "check s0 != 0"}));
}

TEST(Reshape, SymbolsInCounts) {
  RecordingScope scope;
  const Dim s0 = scope.symbol("s0", 20), s1 = scope.symbol("s1", 4);
  EXPECT_EQ(text(reshape_to(Shape{s0, 784}, {-1, 28, 28})), "[s0,28,28]");
  EXPECT_EQ(text(reshape_to(Shape{s0, s1, 6}, {s0, 2, 3 * s1})), "[s0,2,3*s1]");
  EXPECT_EQ(fact_texts(scope), Texts{});
  EXPECT_EQ(text(reshape_to(Shape{s0}, {5, -1})), "[5,s0 // 5]");
  EXPECT_EQ(fact_texts(scope), Texts{"check s0 % 5 == 0"});
  EXPECT_EQ(text(reshape_to(Shape{5, s0 / 5}, {s0})), "[s0]");
  EXPECT_EQ(fact_texts(scope), Texts{"check s0 % 5 == 0"});
  reshape_to(Shape{s0}, {3, -1});
  EXPECT_EQ(refusal_of(scope, Bindings({20, 4})),
            "cannot reshape [20] with 20 elements to [3,-1]: 20 is not divisible by 3 | "
            "give sizes whose product divides the number of elements, or all of them without -1");
  EXPECT_EQ(refusal_of(scope, Bindings({30, 4})), "(no Problem)");
  EXPECT_EQ(problem_of([&] { reshape_to(Shape{s0}, {s1}); }),
            "cannot reshape [20] with 20 elements to [4] with 4 elements | "
            "give sizes with the same product, or -1 for one of them");
}

TEST(Reshape, BesideAZeroNothingIsFound) {
  RecordingScope scope;
  const Dim s0 = scope.symbol("s0", 8), zero = scope.symbol("z", 0);
  EXPECT_EQ(text(reshape_to(Shape{s0, zero}, {zero, -1})), "[z,s0]");
  EXPECT_EQ(fact_texts(scope), Texts{"check z != 0"});
  EXPECT_EQ(refusal_of(scope, Bindings({8, 0})),
            "cannot reshape [8,0] with 0 elements to [0,-1]: the size -1 cannot be found beside a size of 0 | "
            "give sizes whose product divides the number of elements, or all of them without -1");
}

TEST(Reshape, WhatIsTiedDoesNotChangeTheForm) {
  // A scope that is run again knows more than in its first run, and must come to the same.
  RecordingScope scope;
  const Dim s0 = scope.symbol("s0", 8), s1 = scope.symbol("s1", 8);
  const Shape before = reshape_to(Shape{s0, 10}, {s1, -1});
  EXPECT_TRUE(require(s0, Relation::equal, s1, none));
  EXPECT_TRUE(identical(reshape_to(Shape{s0, 10}, {s1, -1}), before));
}

TEST(Reshape, ASymbolicDivisorIsCheckedByTheProduct) {
  RecordingScope scope;
  const Dim s0 = scope.symbol("s0", 20), s1 = scope.symbol("s1", 4);
  EXPECT_EQ(text(reshape_to(Shape{s0, 6}, {s1, 2, -1})), "[s1,2,(3*s0) // s1]");
  ASSERT_EQ(fact_texts(scope), (Texts{"check 2*s1 != 0", "check 2*s1*((3*s0) // s1) == 6*s0"}));
  EXPECT_FALSE(scope.checks()[1].fact.holds(Bindings({20, 0})));
  EXPECT_FALSE(scope.checks()[1].fact.holds(Bindings({20, 7})));
  EXPECT_TRUE(scope.checks()[1].fact.holds(Bindings({20, 6})));
  reshape_to(Shape{s0 + 1}, {s1, -1});
  EXPECT_EQ(refusal_of(scope, Bindings({20, 4})),
            "cannot reshape [21] with 21 elements to [4,-1]: 21 is not divisible by 4 | "
            "give sizes whose product divides the number of elements, or all of them without -1");
}

TEST(Reshape, LateCountsAreChecked) {
  RecordingScope scope;
  const Dim late = scope.symbol("n", {}, 50);
  EXPECT_EQ(text(reshape_to(Shape{late}, {4, -1})), "[4,n // 4]");
  EXPECT_EQ(text(reshape_to(Shape{late}, {5, 5})), "[5,5]");
  EXPECT_EQ(fact_texts(scope), (Texts{"check n % 4 == 0", "check n == 25"}));
}

// ---- reduce, contract, convolve

TEST(Reduce, Axes) {
  const int axes[] = {0, 2};
  EXPECT_EQ(text(reduce(Shape{2, 3, 4}, axes, false)), "[3]");
  EXPECT_EQ(text(reduce(Shape{2, 3, 4}, axes, true)), "[1,3,1]");
  EXPECT_EQ(text(reduce(Shape{2, 3}, {}, false)), "[2,3]");
}

TEST(Contract, Constants) {
  const Contraction plain = contract(Shape{5, 1, 2, 3}, false, Shape{7, 3, 4}, false, none);
  EXPECT_EQ(text(plain.result), "[5,7,2,4]");
  EXPECT_EQ(text(plain.batch), "[5,7]");
  EXPECT_EQ(axes_of(plain.left_batch), (Axes{0, -1}));
  EXPECT_EQ(axes_of(plain.right_batch), (Axes{-1, 0}));
  EXPECT_EQ(plain.m.constant(), 2);
  EXPECT_EQ(plain.n.constant(), 4);
  EXPECT_EQ(plain.k.constant(), 3);
  EXPECT_EQ(text(contract(Shape{3, 2}, true, Shape{4, 3}, true, none).result), "[2,4]");
}

TEST(Contract, Problems) {
  EXPECT_EQ(problem_of([] {
              contract(Shape{2, 3}, false, Shape{4, 5}, false, none);
            }),
            "inner sizes 3 and 4 do not agree | the size of axis -1 of the left operand must be that of axis -2 of the "
            "right one; transpose an operand, or change its size");
  EXPECT_EQ(problem_of([] {
              contract(Shape{2, 2, 3}, false, Shape{4, 3, 5}, false, none);
            }),
            "batch sizes 2 and 4 of axis -1 do not broadcast | make the sizes equal or one of them 1");
  EXPECT_THROW(contract(Shape{2}, false, Shape{2, 2}, false, none), InternalError);
}

TEST(Contract, SymbolsTie) {
  RecordingScope scope;
  const Dim a = scope.symbol("a", 3), b = scope.symbol("b", 5), c = scope.symbol("c", 5), late = scope.symbol("n", {});
  EXPECT_EQ(text(contract(Shape{a, b}, false, Shape{c, 4}, false, none).result), "[a,4]");
  EXPECT_EQ(fact_texts(scope), Texts{"b == c"});
  EXPECT_EQ(text(contract(Shape{a, late}, false, Shape{c, 4}, false, none).k), "c");
  EXPECT_EQ(fact_texts(scope), (Texts{"b == c", "check n == c"}));
}

TEST(Convolve, Constants) {
  EXPECT_EQ(convolve({28, 3, 1, 1, 1, 1, 1}, none).constant(), 28);
  EXPECT_EQ(convolve({28, 3, 0, 0, 2, 1, 1}, none).constant(), 13);
  EXPECT_EQ(convolve({28, 3, 0, 0, 1, 2, 1}, none).constant(), 24);
  EXPECT_EQ(convolve({4, 3, 2, 2, 1, 1, 2}, none).constant(), 9);
  EXPECT_EQ(convolve({2, 3, 0, 0, 1, 1, 1}, none).constant(), 0);
  EXPECT_EQ(convolve({0, 1, 0, 0, 1, 1, 3}, none).constant(), 0);
}

TEST(Convolve, Problems) {
  EXPECT_EQ(problem_of([] {
              convolve({28, 3, 0, 0, 0, 1, 1}, none);
            }),
            "stride 0 is not allowed | the stride must be at least 1");
  EXPECT_EQ(problem_of([] {
              convolve({28, 3, 0, 0, 1, -1, 1}, none);
            }),
            "dilation -1 is not allowed | the dilation must be at least 1");
  EXPECT_EQ(problem_of([] {
              convolve({28, 3, 0, 0, 1, 1, 0}, none);
            }),
            "input dilation 0 is not allowed | the input dilation must be at least 1");
  EXPECT_EQ(problem_of([] {
              convolve({28, 0, 0, 0, 1, 1, 1}, none);
            }),
            "kernel size 0 is not allowed | the kernel size must be at least 1");
  EXPECT_EQ(problem_of([] {
              convolve({2, 5, 0, 1, 1, 2, 1}, none);
            }),
            "a window of 9 does not fit in a padded size of 3 | pad more, or use a smaller kernel or dilation");
  EXPECT_EQ(problem_of([] {
              convolve({28, INT64_MAX, 0, 0, 1, 2, 1}, none);
            }),
            "size 9223372036854775806 * 2 is too large | sizes must stay below 2^62");
  RecordingScope scope;
  const Dim s = scope.symbol("s0", 2), zero = scope.symbol("s1", 0);
  convolve({s, 5, 0, 0, 1, 1, 1}, none);
  EXPECT_EQ(refusal_of(scope, Bindings({2, 0})),
            "a window of 5 does not fit in a padded size of 2 | pad more, or use a smaller kernel or dilation");
  // An empty input stays empty when it is dilated.
  EXPECT_EQ(convolve({zero, 1, 0, 0, 1, 1, 2}, none).evaluate(Bindings({2, 0})), 0);
  EXPECT_EQ(convolve({zero, 1, 0, 0, 1, 1, 2}, none).evaluate(Bindings({2, 3})), 5);
}

TEST(Convolve, SymbolsAreCheckedNotPinned) {
  RecordingScope scope;
  const Dim s = scope.symbol("s0", 28);
  EXPECT_EQ(text(convolve({s, 3, 1, 1, 1, 1, 1}, none)), "s0");
  EXPECT_EQ(fact_texts(scope), Texts{});
  const Dim halved = convolve({s, 3, 0, 0, 2, 1, 1}, none);
  EXPECT_EQ(text(halved), "(s0 + 1) // 2 - 1");
  EXPECT_EQ(halved.evaluate(Bindings({28})), 13);
  EXPECT_EQ(fact_texts(scope), Texts{"check 0 <= (s0 + 1) // 2 - 1"});
  convolve({s, 3, 0, 0, 2, 1, 1}, none);
  EXPECT_EQ(scope.checks().size(), 1u);
}

// ---- properties

// Symbolic algebra, evaluated, is the algebra of integers; and the facts it left hold for those sizes.
TEST(ShapeProperty, SymbolicBroadcastAgreesWithConstants) {
  std::mt19937_64 random(5);
  int fitting = 0;
  for (int round = 0; round < 3000; ++round) {
    RecordingScope scope;
    Bindings bindings;
    std::vector<Shape> symbolic, constant;
    const std::int64_t base[] = {2 + static_cast<std::int64_t>(random() % 3), 3, 1, 0};
    const auto count = 2 + random() % 4;
    for (std::uint64_t i = 0; i < count; ++i) {
      Shape with_symbols, with_integers;
      for (std::uint64_t axis = random() % 4; axis-- > 0;) {
        const std::int64_t size = random() % 3 == 0 ? 1 : random() % 16 == 0 ? 4 : base[axis];
        with_integers.push_back(size);
        if (random() % 2) {
          bindings.bind(scope.symbol_count(), size);
          with_symbols.push_back(scope.symbol("", size));
        } else {
          with_symbols.push_back(size);
        }
      }
      symbolic.push_back(with_symbols);
      constant.push_back(with_integers);
    }
    std::optional<Broadcast> expected, actual;
    std::string expected_problem = problem_of([&] { expected = broadcast(constant, none); });
    std::string actual_problem = problem_of([&] { actual = broadcast(symbolic, none); });
    ASSERT_EQ(expected.has_value(), actual.has_value()) << expected_problem << actual_problem;
    for (const Fact& fact : scope.facts()) ASSERT_TRUE(fact.holds(bindings)) << fact.str();
    if (!expected) continue;
    ++fitting;
    ASSERT_EQ(actual->result.evaluate(bindings), expected->result.sizes());
    for (std::size_t i = 0; i < symbolic.size(); ++i) {
      for (int axis = 0; axis < actual->result.rank(); ++axis) {
        const int from = actual->operands[i].axes[static_cast<std::size_t>(axis)];
        const int constant_from = expected->operands[i].axes[static_cast<std::size_t>(axis)];
        // A symbol of size 1 in a result of size 1 may be taken for either; otherwise they are the same.
        if (expected->result[axis].constant() != 1) {
          ASSERT_EQ(from, constant_from);
        }
        if (from >= 0) {
          ASSERT_EQ(symbolic[i][from].evaluate(bindings), expected->result[axis].constant());
        } else if (axis >= actual->result.rank() - symbolic[i].rank()) {
          ASSERT_EQ(prove_equal(symbolic[i][axis - actual->result.rank()], 1), Proof::yes);
        }
      }
    }
  }
  EXPECT_GT(fitting, 500);
}

TEST(ShapeProperty, SymbolicReshapeKeepsTheCount) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 2000; ++round) {
    RecordingScope scope;
    Bindings bindings;
    Shape from;
    std::vector<Dim> target;
    for (int axis = 0; axis < 3; ++axis) {
      const auto size = static_cast<std::int64_t>(1 + random() % 4);
      bindings.bind(axis, size);
      const Dim symbol = scope.symbol("", size);
      from.push_back(random() % 2 ? symbol : Dim(size));
      target.push_back(random() % 2 ? symbol : Dim(size));
    }
    std::shuffle(target.begin(), target.end(), random);
    if (random() % 2) target[random() % 3] = -1;
    const Shape result = reshape(from, target, none);
    std::int64_t before = 1, after = 1;
    for (const std::int64_t size : from.evaluate(bindings)) before *= size;
    for (const std::int64_t size : result.evaluate(bindings)) after *= size;
    ASSERT_EQ(before, after) << from << " to " << result;
    for (const Fact& fact : scope.facts()) ASSERT_TRUE(fact.holds(bindings));
    EXPECT_EQ(prove_equal(from.element_count(), result.element_count()), Proof::yes) << from << " to " << result;
  }
}

}  // namespace
}  // namespace stet
