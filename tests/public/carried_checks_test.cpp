// Sizes that depend on values are compared when they are known, wherever the need was stated: by an op, by a function
// made of ops, in a layer. On which path it was stated decides whether it is tested.
#include <gtest/gtest.h>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

/// As many elements as there are ones in the mask: a size that no trace knows.
Tensor chosen(const Tensor& x, const Tensor& mask) { return boolean_mask(x, mask); }

Tensor mask_of(int ones_among_eight) { return less(arange(8), ones_among_eight); }

TEST(CarriedChecks, AFunctionOfOpsTestsItsSizesInEveryRun) {
  Function loss = function("loss(labels, logits, a, b)", [](Tensor labels, Tensor logits, Tensor a, Tensor b) {
    return sum(sparse_cross_entropy(chosen(labels, a), chosen(logits, b)));
  });
  Tensor labels = zeros({8}, i64), logits = ones({8, 3});
  Tensor expected = sum(sparse_cross_entropy(zeros({4}, i64), ones({4, 3})));
  EXPECT_FLOAT_EQ(loss(labels, logits, mask_of(4), mask_of(4)).item<float>(), expected.item<float>());
  std::string error = error_of([&] { loss(labels, logits, mask_of(6), mask_of(4)); });
  EXPECT_CONTAINS(error, "sparse_cross_entropy: samples: sizes 6 and 4 do not agree");
  EXPECT_CONTAINS(error, "in 'loss' called at");
  EXPECT_FLOAT_EQ(loss(labels, logits, mask_of(2), mask_of(2)).item<float>(), expected.item<float>() / 2);
  EXPECT_EQ(loss.trace_count(), 1);
}

TEST(CarriedChecks, SqueezedSizesAreOne) {
  Function f = function("f(x, m)", [](Tensor x, Tensor m) { return squeeze(chosen(x, m), 0) * 2.f; });
  EXPECT_FLOAT_EQ(f(arange(8.f), mask_of(1)).item<float>(), 0);
  EXPECT_CONTAINS(error_of([&] { f(arange(8.f), mask_of(3)); }), "squeeze: squeezed size: sizes 3 and 1 do not agree");
}

TEST(CarriedChecks, ATextHasTheSizesOfTheRun) {
  Function f = function("f(x, m)", [](Tensor x, Tensor m) { return median(chosen(x, m)); });
  EXPECT_FLOAT_EQ(f(arange(8.f), mask_of(3)).item<float>(), 1);
  std::string error = error_of([&] { f(arange(8.f), mask_of(0)); });
  EXPECT_CONTAINS(error, "median: an empty axis has no quantiles");
  EXPECT_CONTAINS(error, "fix: make sure the axis has at least one element");
}

TEST(CarriedChecks, InAFunctionThatATraceCalls) {
  Function inner = function("inner(a, b)", [](Tensor a, Tensor b) { return cosine_similarity(a, b); });
  Function outer = function("outer(x, m, n)",
                            [=](Tensor x, Tensor m, Tensor n) mutable { return inner(chosen(x, m), chosen(x, n)); });
  Tensor x = arange(8.f) + 1.f;
  EXPECT_NEAR(outer(x, mask_of(5), mask_of(5)).item<float>(), 1, 1e-6);
  EXPECT_CONTAINS(error_of([&] { outer(x, mask_of(5), mask_of(3)); }),
                  "cosine_similarity: sizes of axis 0 of 'x' and 'y': sizes 5 and 3 do not agree");
}

/// Stated before an if (tensor), on one of its sides, or after it, the need is one of that path alone.
TEST(CarriedChecks, OnTheSideWhereTheyWereStated) {
  Function f = function("f(x, m, n, c)", [](Tensor x, Tensor m, Tensor n, Tensor c) {
    Tensor a = chosen(x, m), b = chosen(x, n);
    if (c) return cosine_similarity(a, b);
    return sum(a) + sum(b);
  });
  Tensor x = arange(8.f) + 1.f, yes = tensor(true), no = tensor(false);
  for (int round = 0; round < 2; ++round) {
    EXPECT_NEAR(f(x, mask_of(2), mask_of(2), yes).item<float>(), 1, 1e-6);
    EXPECT_FLOAT_EQ(f(x, mask_of(2), mask_of(3), no).item<float>(), 9);
    EXPECT_CONTAINS(error_of([&] { f(x, mask_of(2), mask_of(3), yes); }), "sizes 2 and 3 do not agree");
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(CarriedChecks, BeforeDecisionsTheyHoldOnAllSides) {
  Function f = function("f(x, m, n, c, d)", [](Tensor x, Tensor m, Tensor n, Tensor c, Tensor d) {
    Tensor a = chosen(x, m), b = chosen(x, n);
    Tensor close = cosine_similarity(a, b);
    if (c) close = close + 1.f;
    Tensor e = squeeze(chosen(x, d), 0);
    if (e > 0.5f) return close + e;
    return close - e;
  });
  Tensor x = arange(8.f) + 1.f;
  for (bool c : {true, false}) {
    EXPECT_NEAR(f(x, mask_of(2), mask_of(2), tensor(c), mask_of(1)).item<float>(), c ? 3 : 2, 1e-6);
    EXPECT_CONTAINS(error_of([&] { f(x, mask_of(2), mask_of(3), tensor(c), mask_of(1)); }),
                    "sizes 2 and 3 do not agree");
    EXPECT_CONTAINS(error_of([&] { f(x, mask_of(2), mask_of(2), tensor(c), mask_of(4)); }),
                    "sizes 4 and 1 do not agree");
  }
}

/// What a side learns about sizes proves what was stated before it; the second run along the path still follows.
TEST(CarriedChecks, WhatIsLearnedLaterDoesNotChangeThePath) {
  Function f = function("f(x, y, m, c)", [](Tensor x, Tensor y, Tensor m, Tensor c) {
    Tensor a = squeeze(expand_dims(chosen(x, m), 0), 0);
    cosine_similarity(a, zeros({3}));  // the size is 3
    Tensor close = cosine_similarity(a, y);
    if (c) {
      int rows = static_cast<int>(y.dim(0));  // y's size is 3 too
      return close * static_cast<float>(rows);
    }
    return close;
  });
  Tensor x = arange(8.f) + 1.f, y = arange(3.f) + 1.f;
  EXPECT_NEAR(f(x, y, mask_of(3), tensor(true)).item<float>(), 3, 1e-5);
  EXPECT_NEAR(f(x, y, mask_of(3), tensor(false)).item<float>(), 1, 1e-6);
  EXPECT_CONTAINS(error_of([&] { f(x, y, mask_of(2), tensor(false)); }), "do not agree");
}

TEST(CarriedChecks, UnderATape) {
  Function f = function("f(x, m, n)", [](Tensor x, Tensor m, Tensor n) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(cosine_similarity(chosen(x, m), chosen(x, n)), x);
  });
  Tensor x = arange(8.f) + 1.f;
  f(x, mask_of(4), mask_of(4));
  EXPECT_CONTAINS(error_of([&] { f(x, mask_of(4), mask_of(2)); }), "sizes 4 and 2 do not agree");
  Function g = function("g(x, m, n)",
                        [](Tensor x, Tensor m, Tensor n) { return cosine_similarity(chosen(x, m), chosen(x, n)); });
  GradientTape tape;
  tape.watch(x);
  EXPECT_CONTAINS(error_of([&] { g(x, mask_of(4), mask_of(2)); }), "sizes");
  EXPECT_TRUE(tape.gradient(g(x, mask_of(4), mask_of(4)), x).defined());
}

}  // namespace
