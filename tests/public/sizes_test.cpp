// Every question about a size is recorded: what traced code does is what eager code does, at every size.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <sstream>

#include "expect_error.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

/// "sizes_test.cpp:<line>", as errors and explanations name lines of this file.
std::string line_text(int line) { return "sizes_test.cpp:" + std::to_string(line); }

Tensor counted(const Shape& shape) { return cast(reshape(arange(shape.element_count()), shape), f32) + 1; }

/// Traced with the first, then called with all of them, it does what the eager code does, in shape and value.
template <class Body>
void expect_as_eager(const char* name, Body body, const std::vector<Tensor>& arguments, int traces = 0) {
  Function f = function(name, body);
  for (const Tensor& x : arguments) {
    Tensor eager = body(x), traced = f(x);
    EXPECT_EQ(traced.shape().sizes(), eager.shape().sizes()) << name << " of " << x.shape();
    EXPECT_EQ(traced.to_vector<float>(), eager.to_vector<float>()) << name << " of " << x.shape();
  }
  if (traces > 0) {
    EXPECT_EQ(f.trace_count(), traces) << f.explain();
  }
}

TEST(Sizes, SqueezeWithoutAxesDropsWhatIsOneInThisCall) {
  expect_as_eager(
      "f(x)", [](Tensor x) { return squeeze(x) * 2; },
      {counted({1, 3}), counted({1, 4}), counted({2, 3}), counted({2, 1}), counted({1, 1}), counted({5, 6})});
  expect_as_eager("g(y)",
                  [](Tensor y) {
                    return mean(square(squeeze(counted({4, 1})) - squeeze(y)));
                  },
                  {counted({4, 1})});
  Function f = function("f(x)", [](Tensor x) { return squeeze(x); });
  f(counted({1, 3}));
  EXPECT_CONTAINS(f.explain(), "fact x_0 == 1, for squeeze without axes");
  Function g = function("g(x)", [](Tensor x) { return squeeze(x); }, {.signature = {{f32, {dyn, dyn}}}});
  std::string error = error_of([&] { g(counted({1, 3})); });
  EXPECT_CONTAINS(error, "is unknown by the function's signature, so squeeze without axes cannot ask whether x_0 == 1");
}

TEST(Sizes, SamePaddingWithMoreStrideThanFilter) {
  expect_as_eager(
      "f(x)",
      [](Tensor x) {
        return conv2d(x, ones({1, 1, 1, 1}), {.strides = {2, 2}, .same_padding = true});
      },
      {counted({1, 5, 5, 1}), counted({1, 4, 4, 1}), counted({1, 3, 8, 1})}, 1);
  expect_as_eager(
      "f(x)",
      [](Tensor x) {
        return conv2d(x, ones({2, 2, 1, 1}), {.strides = {4, 4}, .same_padding = true});
      },
      {counted({1, 8, 8, 1}), counted({1, 9, 9, 1}), counted({1, 11, 6, 1})}, 1);
}

TEST(Sizes, RangesOverAllExtentsInOneTrace) {
  const std::optional<std::int64_t> none, bounds[] = {none, 0, 2, 7, -1, -3, -9};
  for (std::int64_t step : {1, 2, -1, -2, -3})
    for (const auto& begin : bounds)
      for (const auto& end : bounds) {
        Range range{begin, end, step};
        auto body = [=](Tensor x) { return x[range] * 1; };
        Function f = function("f(x)", body, {.signature = {{f32, {dyn}}}});
        for (std::int64_t n : {0, 5, 4, 1, 2, 9}) {
          Tensor x = counted({n});
          ASSERT_EQ(f(x).to_vector<float>(), body(x).to_vector<float>())
              << n << " elements, " << begin.value_or(99) << " to " << end.value_or(99) << " by " << step;
        }
      }
}

TEST(Sizes, SlicesOfSlices) {
  expect_as_eager(
      "f(x)", [](Tensor x) { return x[Range{.begin = 1}][Range{.begin = 1}] + x[range(2, 1000)]; },
      {counted({5}), counted({2}), counted({1}), counted({0}), counted({9})}, 1);
  expect_as_eager(
      "f(x)",
      [](Tensor x) {
        return concat({x[range(0, 2)], x[Range{.begin = 2}]}) + x;
      },
      {counted({5}), counted({2}), counted({1}), counted({0})}, 1);
  expect_as_eager(
      "f(x)", [](Tensor x) { return x[Range{.begin = 1}] - x[Range{.end = -1}]; },
      {counted({5}), counted({2}), counted({1}), counted({0})}, 1);
}

TEST(Sizes, AWholeRangeAsksNothing) {
  // The second side of the branch runs the same code, with more known about the sizes.
  auto body = [](Tensor x) {
    Tensor y = conv2d(x, ones({3, 3, 1, 1}));
    Tensor z = y[{0, Range{}, Range{}, 0}];
    if (sum(x) > 0.f) return z;
    return z * 2;
  };
  expect_as_eager("f(x)", body, {counted({1, 3, 3, 1}), counted({1, 5, 4, 1}), counted({1, 2, 2, 1})}, 1);
  expect_as_eager("f(x)", body, {counted({1, 2, 2, 1}), counted({1, 5, 4, 1})}, 1);
}

TEST(Sizes, ANumberOfATypeIsCheckedInEveryCall) {
  auto body = [](Tensor x) { return cast(zeros({2}, i8) + x.dim(0), f32); };
  Function f = function("f(x)", body);
  EXPECT_EQ(f(zeros({10})).to_vector<float>(), (Floats{10, 10}));
  std::string eager = error_of([&] { body(zeros({300})); }), traced = error_of([&] { f(zeros({300})); });
  for (const std::string& error : {eager, traced}) {
    EXPECT_CONTAINS(error, "the number 300 is out of range for i8");
    EXPECT_CONTAINS(error, "allowed are -128 to 127; cast the tensor to a wider type");
  }
  EXPECT_CONTAINS(traced, line_text(__LINE__ - 8));
  EXPECT_EQ(f(zeros({127})).to_vector<float>(), (Floats{127, 127}));
}

TEST(Sizes, DivisionByASizeOfZero) {
  auto body = [](Tensor x) { return x + x.dim(1) / x.dim(0); };
  Function f = function("f(x)", body);
  EXPECT_EQ(f(zeros({2, 6})).to_vector<float>(), Floats(12, 3));
  for (const std::string& error : {error_of([&] { body(zeros({0, 4})); }), error_of([&] { f(zeros({0, 4})); })})
    EXPECT_CONTAINS(error, "size 4 cannot be divided by 0");
  Function pinned = function("pinned(x)", [](Tensor x) { return x * int(x.dim(1) % x.dim(0)); });
  EXPECT_CONTAINS(error_of([&] { pinned(zeros({0, 4})); }), "size 4 cannot be taken modulo 0");
}

TEST(Sizes, AnOpenSizeBesideZero) {
  auto body = [](Tensor x, Tensor m) { return reshape(x, {-1, m.dim(0)}); };
  Function f = function("f(x, m)", body);
  EXPECT_EQ(f(zeros({2, 6}), zeros({3})).shape().str(), "[4,3]");
  for (const std::string& error : {error_of([&] {
                                     body(zeros({0, 6}), zeros({0}));
                                   }),
                                   error_of([&] {
                                     f(zeros({0, 6}), zeros({0}));
                                   })}) {
    EXPECT_CONTAINS(error,
                    "cannot reshape [0,6] with 0 elements to [-1,0]: the size -1 cannot be found beside a size of 0");
    EXPECT_CONTAINS(error, "fix: give sizes whose product divides the number of elements");
  }
  for (const std::string& error : {error_of([&] {
                                     body(zeros({2, 6}), zeros({5}));
                                   }),
                                   error_of([&] {
                                     f(zeros({2, 6}), zeros({5}));
                                   })})
    EXPECT_CONTAINS(error, "cannot reshape [2,6] with 12 elements to [-1,5]: 12 is not divisible by 5");
}

TEST(Sizes, MessagesSayTheSizesOfTheCall) {
  Function f = function("f(x)", [](Tensor x) { return slice(x, {1}, {4}); });
  f(zeros({7}));
  EXPECT_CONTAINS(error_of([&] { f(zeros({3})); }), "the slice of axis 0 reaches outside of its 3 elements");
  Function g = function("g(x)", [](Tensor x) { return x[4]; });
  g(zeros({7}));
  std::string error = error_of([&] { g(zeros({3})); });
  EXPECT_CONTAINS(error, "index 4 is out of range for axis 0 of size 3");
  EXPECT_CONTAINS(error, "allowed are -3 to 2");
  EXPECT_CONTAINS(error_of([&] { g(zeros({0})); }), "the axis is empty");
  Function h = function("h(x)", [](Tensor x) { return arange(x.dim(0) - 3); });
  h(zeros({7}));
  EXPECT_CONTAINS(error_of([&] { h(zeros({2})); }), "size -1 is negative");
  Variable v(zeros({2}));
  Function k = function("k(x)", [=](Tensor x) { v.assign(x); });
  EXPECT_CONTAINS(error_of([&] { k(zeros({3})); }), "cannot hold f32[3]");
  Function l = function("l(x, y)", [](Tensor x, Tensor y) { return matmul(x, y); });
  EXPECT_CONTAINS(error_of([&] { l(zeros({2, 3}), zeros({4, 5})); }), "with a f32[2,3], b f32[4,5]");
}

TEST(Sizes, ALateSizeIsKnownWhenItIsUsed) {
  Function f = function("c(x)", [](Tensor x) { return tensor(nonzero(x).dim(0)); });
  EXPECT_EQ(f(tensor({1.f, 0.f, 2.f})).item<int>(), 2);
  EXPECT_EQ(f(zeros({4})).item<int>(), 0);
  Function g = function("g(x)", [](Tensor x) { return zeros({nonzero(x).dim(0) + 1}); });
  EXPECT_EQ(g(tensor({1.f, 0.f, 2.f})).shape().str(), "[3]");
  Function h = function("h(x)", [](Tensor x) { return sum(x) / cast(tensor(nonzero(x).dim(0)), f32); });
  EXPECT_EQ(h(tensor({1.f, 0.f, 2.f})).item<float>(), 1.5f);
}

TEST(Sizes, BroadcastToOneOfASizeThatIsOne) {
  Function f = function("f(x)", [](Tensor x) { return broadcast_to(x, {1, 4}); });
  EXPECT_EQ(f(ones({1, 4})).shape().str(), "[1,4]");
  EXPECT_CONTAINS(error_of([&] { f(ones({3, 4})); }), "only axes of size 1 can be repeated");
}

TEST(Sizes, ALateSizeIsNotRepeated) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return cast(nonzero(x)[{ellipsis, 0}], f32) + y; });
  EXPECT_EQ(f(tensor({0.f, 1.f, 1.f}), tensor({5.f, 6.f})).to_vector<float>(), (Floats{6, 8}));
  std::string error = error_of([&] { f(tensor({0.f, 1.f, 0.f}), tensor({5.f, 6.f})); });
  EXPECT_CONTAINS(error, "sizes 1 and 2 do not agree");
  // Eager code repeats it, because it knows the size: verify() says so instead.
  if (!std::getenv("STET_VERIFY")) {
    EXPECT_CONTAINS(error, "one of them depends on values; traced code repeats only sizes of 1 that it knows of");
  }
}

TEST(Sizes, GradientOfAConvolutionWithAnEmptyResult) {
  auto body = [](Tensor x) {
    Tensor w = ones({3, 3, 1, 1});
    GradientTape tape;
    tape.watch(x);
    tape.watch(w);
    Tensor y = sum(conv2d(x, w, {.strides = {2, 2}}));
    std::vector<Tensor> d = tape.gradient(y, {x, w});
    return sum(d[0]) * 1000 + sum(d[1]);
  };
  expect_as_eager("f(x)", body, {counted({1, 5, 5, 1}), counted({1, 2, 5, 1}), counted({1, 7, 5, 1})}, 1);
  EXPECT_EQ(body(counted({1, 2, 5, 1})).item<float>(), 0);
}

TEST(Sizes, WhatASignatureAcceptsDoesNotDependOnTheFirstCall) {
  for (std::vector<std::array<int, 2>> calls :
       {std::vector<std::array<int, 2>>{{3, 3}, {1, 3}, {1, 1}}, {{1, 3}, {3, 3}, {1, 1}}, {{1, 1}, {3, 3}, {1, 3}}}) {
    Function f =
        function("f(x, y)", [](Tensor x, Tensor y) { return x + y; }, {.signature = {{f32, {dyn}}, {f32, {dyn}}}});
    for (auto [a, b] : calls) {
      std::string error = error_of([&, a = a, b = b] { f(zeros({a}), zeros({b})); });
      if (a == b)
        EXPECT_EQ(error, "no error");
      else
        EXPECT_NE(error, "no error");
    }
  }
  Function f =
      function("f(x, y)", [](Tensor x, Tensor y) { return x + y; }, {.signature = {{f32, {dyn}}, {f32, {dyn}}}});
  std::string error = error_of([&] { f(zeros({1}), zeros({3})); });
  EXPECT_CONTAINS(error, "sizes 1 and 3 of axis -1 do not broadcast");
  EXPECT_CONTAINS(error, "an unknown size of a signature is not repeated: say 1 in it");
  Function g = function("g(x, y)", [](Tensor x, Tensor y) { return x + y; }, {.signature = {{f32, {1}}, {f32, {dyn}}}});
  EXPECT_EQ(g(zeros({1}), zeros({3})).shape().str(), "[3]");
  EXPECT_EQ(g(zeros({1}), zeros({1})).shape().str(), "[1]");
}

TEST(Sizes, IndexingWithASignature) {
  Function f = function("f(x)", [](Tensor x) { return sum(x[Range{.begin = 1}]) + sum(x[range(0, 8)]); },
                        {.signature = {{f32, {dyn}}}});
  EXPECT_EQ(f(ones({10})).item<float>(), 17);
  EXPECT_EQ(f(ones({3})).item<float>(), 5);
  EXPECT_EQ(f(ones({0})).item<float>(), 0);
}

TEST(Sizes, TheLineWhereASizeWasTaken) {
  auto fact_of = [](auto body) {
    Function f = function("f(x, y)", body);
    f(zeros({4}), zeros({4}));
    return f.explain();
  };
  EXPECT_CONTAINS(fact_of([](Tensor x, Tensor) { return x * int(x.dim(0)); }),
                  "fact x_0 == 4, for host code at " __FILE__ ":" + std::to_string(__LINE__ - 1));
  EXPECT_CONTAINS(fact_of([](Tensor x, Tensor) { return x * float(x.dim(-1)); }), line_text(__LINE__));
  EXPECT_CONTAINS(fact_of([](Tensor x, Tensor y) { return x.dim(0) == y.dim(0) ? x : y; }), line_text(__LINE__));
  EXPECT_CONTAINS(fact_of([](Tensor x, Tensor y) { return x.shape() == y.shape() ? x : y; }), line_text(__LINE__));
  EXPECT_CONTAINS(fact_of([](Tensor x, Tensor) { return x * static_cast<int>(x.dim(0) * 2); }), line_text(__LINE__));
  EXPECT_CONTAINS(error_of([] { zeros({-1, 2}); }), line_text(__LINE__));
}

TEST(Sizes, PrintingAndConverting) {
  Tensor x = zeros({2, 3});
  std::ostringstream out;
  out << x.dim(0) << " " << x.dim(-1) + 1;
  EXPECT_EQ(out.str(), "2 4");
  EXPECT_EQ(float(x.dim(-1)), 3.f);
  EXPECT_EQ(static_cast<double>(x.size()), 6.0);
  EXPECT_EQ(x.dim(1).str(), "3");
  std::ostringstream traced;
  Function f = function("f(x)", [&](Tensor x) {
    traced << x.dim(0) << " " << x.shape() << ";";
    return x;
  });
  f(x);
  EXPECT_EQ(traced.str().substr(0, 14), "x_0 [x_0,x_1];");
  EXPECT_EQ(f.explain().find("fact"), std::string::npos);  // printing pins nothing
  Function g = function("g(x)", [](Tensor x) { return x * static_cast<float>(x.shape().str().size()); });
  g(x);
  EXPECT_CONTAINS(g.explain(), "fact x_0 == 2, for host code");  // a string may be compared
}

TEST(Sizes, ListsOfSizes) {
  Tensor y = counted({6});
  Tensor x = zeros({2, 3});
  EXPECT_EQ(reshape(y, x.shape()).shape().str(), "[2,3]");
  EXPECT_EQ(reshape(y, std::vector<int>{3, -1}).shape().str(), "[3,2]");
  EXPECT_EQ(reshape(y, std::array{3, 2}).shape().str(), "[3,2]");
  EXPECT_EQ(zeros(std::vector<int>{2, 5}).shape().str(), "[2,5]");
  EXPECT_EQ(zeros(std::vector<std::int64_t>{2, 5}).shape().str(), "[2,5]");
  EXPECT_EQ(ones(std::array{4, 1}).shape().str(), "[4,1]");
  EXPECT_EQ(zeros({}).shape().str(), "[]");
  EXPECT_EQ(sum(ones({2, 3, 4}), std::vector<int>{0, 2}).to_vector<float>(), (Floats{8, 8, 8}));
  EXPECT_EQ(sum(ones({2, 3, 4}), std::array{0, 1}).to_vector<float>(), (Floats{6, 6, 6, 6}));
  EXPECT_EQ(broadcast_to(ones({1}), x.shape()).shape().str(), "[2,3]");
}

TEST(Sizes, ManyTiedArguments) {
  // Near linear in the number of arguments whose sizes are tied; it was quadratic.
  Function f = function("f(xs)", [](std::vector<Tensor> xs) {
    Tensor total = xs[0];
    for (std::size_t i = 1; i < xs.size(); ++i) total = total + xs[i];
    return total;
  });
  EXPECT_EQ(f(std::vector<Tensor>(600, ones({3}))).to_vector<float>(), (Floats{600, 600, 600}));
}

/// One size after the other is found to be that of the first: work per argument must not grow with their number.
TEST(Sizes, TracingManyTiedArgumentsGrowsWithTheirNumber) {
  auto seconds = [](int count) {
    Function f = function("f(xs)", [](std::vector<Tensor> xs) { return sum(stack(xs), 0); });
    std::vector<Tensor> xs(static_cast<std::size_t>(count), ones({3}));
    auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(f(xs).to_vector<float>()[0], static_cast<float>(count));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double few = seconds(400);
  EXPECT_LT(seconds(1600), 8 * few + 1);  // with the square of it, 16 times
}

/// The size of the result is the sum of more sizes than an expression may have.
TEST(Sizes, AConcatenationOfManyTensorsEagerly) {
  std::vector<Tensor> parts;
  for (int i = 0; i < 1500; ++i) parts.push_back(full({i % 3}, i));
  for (int round = 0; round < 2; ++round) {
    Tensor all = concat(parts, 0);
    EXPECT_EQ(all.dim(0).value(), 1500);
    EXPECT_EQ(all[1499].item<float>(), 1499);
    EXPECT_EQ(stack(std::vector<Tensor>(1200, ones({2}))).dim(0).value(), 1200);
    parts[0] = ones({1});
    parts[1] = ones({0});
  }
}

}  // namespace
}  // namespace stet
