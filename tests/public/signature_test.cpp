// Promises about arguments: .signature, and Scalar parameters.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include "expect_error.h"
#include "explanations.h"

namespace stet {
namespace {

using Floats = std::vector<float>;

class SignatureTest : public WithExplanations {};

std::string here(int line) {
  std::string out = __FILE__;
  out += ":";
  return out += std::to_string(line);
}

TEST_F(SignatureTest, OneTraceForAllItAllows) {
  Function f = function("f(x, n)",
                        [](Tensor x, Tensor n) {
                          return x * cast(n, f32)[{ellipsis, newaxis}];
                        },
                        {.signature = {{f32, {dyn("batch"), 10}}, {i32, {dyn("batch")}}}});
  for (int batch : {1, 7, 0, 3, 1})
    EXPECT_EQ(f(ones({batch, 10}), ones({batch}, i32)).to_vector<float>(), Floats(batch * 10, 1));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_CONTAINS(f.explain(), "f32[batch,10]");
}

TEST_F(SignatureTest, WhatBreaksThePromise) {
  int runs = 0;
  Function f = function("f(x, n)",
                        [&](Tensor x, Tensor n) {
                          runs += tracing_run();
                          return sum(x) + sum(n);
                        },
                        {.signature = {{f32, {dyn("batch"), 10}}, {i32, {dyn("batch")}}}});
  auto error = [&](Tensor x, Tensor n) { return error_of([&] { f(x, n); }); };
  for (int round = 0; round < 2; ++round) {  // before and after there is a trace
    std::string text = error(ones({2, 10}, f64), ones({2}, i32));
    EXPECT_CONTAINS(text, "f: argument 0 'x' is f64[2,10], the signature promises f32[batch,10]");
    EXPECT_CONTAINS(text, "signature_test.cpp:");
    EXPECT_CONTAINS(text, "fix: change the call, or the signature");
    EXPECT_CONTAINS(error(ones({10}), ones({2}, i32)), "is f32[10], the signature promises f32[batch,10]");
    EXPECT_CONTAINS(error(ones({2, 9}), ones({2}, i32)), "is f32[2,9], the signature promises f32[batch,10]");
    EXPECT_CONTAINS(error(ones({2, 10}), ones({3}, i32)),
                    "argument 1 'n' is i32[3], the signature promises i32[batch], and batch is 2 in argument 0 'x'");
    EXPECT_EQ(f.trace_count(), round);
    EXPECT_EQ(runs, 2 * round);
    f(ones({2, 10}), ones({2}, i32));
  }
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_TRUE(events.empty());
}

TEST_F(SignatureTest, HostCodeMayNotDecideByUnknownSizes) {
  int line = 0;
  FunctionOptions named{.signature = {{f32, {dyn("batch"), 4}}}}, unnamed{.signature = {{f32, {dyn, 4}}}};
  Function read = function(
      "read(x)",
      [&](Tensor x) {
        line = __LINE__ + 1;
        return x * static_cast<float>(x.dim(0).value());
      },
      named);
  std::string error = error_of([&] { read(ones({3, 4})); });
  EXPECT_CONTAINS(error,
                  "size batch is unknown by the function's signature, so host code cannot read it as an integer");
  EXPECT_CONTAINS(error, "fix: give the size in the signature, leave the signature out, or use the size as a Dim");
  EXPECT_CONTAINS(error, here(line));
  EXPECT_THROW(read(ones({3, 4})), TraceError);
  EXPECT_EQ(read.trace_count(), 0);

  Function compare = function(
      "compare(x)",
      [&](Tensor x) {
        line = __LINE__ + 1;
        if (x.dim(0) > 2) return x;
        return x * 2;
      },
      unnamed);
  error = error_of([&] { compare(ones({3, 4})); });
  EXPECT_CONTAINS(error, "size x_0 is unknown by the function's signature, so host code cannot ask whether 2 < x_0");
  EXPECT_CONTAINS(error, here(line));
  EXPECT_THROW(compare(ones({3, 4})), TraceError);

  // What the signature gives may be read and compared; what is true of every size may be asked.
  Function known =
      function("known(x)",
               [](Tensor x) { return x.dim(0) >= 0 && x.dim(1) == 4 ? x * static_cast<float>(x.dim(1).value()) : x; },
               {.signature = {{f32, {dyn, 4}}}});
  EXPECT_EQ(known(ones({2, 4})).item<float>({0, 0}), 4);
}

TEST_F(SignatureTest, SizesThatOpsRequireAreChecksOfTheCall) {
  Variable weight(ones({3, 2}));
  int line = 0;
  Function f = function("f(x, y)",
                        [&](Tensor x, Tensor y) {
                          line = __LINE__ + 1;
                          return matmul(x, weight) + y;
                        },
                        {.signature = {{f32, {dyn, dyn}}, {f32, {dyn, 2}}}});
  f(ones({4, 3}), ones({4, 2}));
  f(ones({1, 3}), ones({1, 2}));
  std::string error = error_of([&] { f(ones({4, 5}), ones({4, 2})); });
  EXPECT_CONTAINS(error,
                  "f: these sizes do not fit: (f32[4,5], f32[4,2]); matmul at " + here(line) + " needs x_1 == 3");
  EXPECT_CONTAINS(error, "signature_test.cpp:");
  error = error_of([&] { f(ones({4, 3}), ones({7, 2})); });
  EXPECT_CONTAINS(error, "add at " + here(line) + " needs x_0 == y_0");
  EXPECT_THROW(f(ones({4, 3}), ones({7, 2})), UserError);
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f(ones({2, 3}), ones({2, 2})).to_vector<float>(), Floats(4, 4));
  EXPECT_TRUE(events.empty());
}

TEST_F(SignatureTest, AsManySpecsAsTensors) {
  Function f = function("f(x, y)", [](Tensor x, Tensor y) { return x + y; }, {.signature = {{f32, {dyn}}}});
  EXPECT_CONTAINS(error_of([&] { f(ones({1}), ones({1})); }), "f: the signature names 1 tensors, the call has 2");
  Function list = function("g(list)", [](std::vector<Tensor> list) { return list[0] + list[1]; },
                           {.signature = {{f32, {dyn("n")}}, {f32, {dyn("n")}}}});
  EXPECT_EQ(list({ones({2}), ones({2})}).to_vector<float>(), Floats(2, 2));
  EXPECT_CONTAINS(error_of([&] { list({ones({2})}); }), "the signature names 2 tensors, the call has 1");
  EXPECT_CONTAINS(error_of([&] { list({ones({2}), ones({3})}); }), "and n is 2 in argument 0 'list'");
}

TEST_F(SignatureTest, AnotherNumberIsStillAnotherTrace) {
  Function f = function("f(x, n)", [](Tensor x, int n) { return x * n; }, {.signature = {{f32, {dyn}}}});
  EXPECT_EQ(f(ones({1}), 2).item<float>(), 2);
  EXPECT_EQ(f(ones({4}), 3).item<float>({3}), 3);
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(told(), "the value of a C++ number changed");
}

// --- Scalar

TEST_F(SignatureTest, ScalarsTakeAnyValueInOneTrace) {
  Variable weight(zeros({2}));
  Function step = function("step(x, rate)", [=](Tensor x, Scalar rate) { return weight.assign_sub(x * rate); });
  float expected = 0;
  for (int n = 1; n <= 20; ++n) {
    step(ones({2}), 1.0 / n);
    expected = expected - 1.f * static_cast<float>(1.0 / n);
    EXPECT_EQ(weight.read().item<float>({1}), expected);
  }
  EXPECT_EQ(step.trace_count(), 1);
  Function times = function("times(x, n)", [](Tensor x, Scalar n) { return x * n; });
  for (int n = -3; n < 3; ++n) EXPECT_EQ(times(ones({2}, i32), n).to_vector<int>(), std::vector<int>(2, n));
  EXPECT_EQ(times.trace_count(), 1);
}

TEST_F(SignatureTest, ScalarsBehaveLikeNumbers) {
  auto expect_same = [](const Tensor& scalar, const Tensor& number) {
    EXPECT_EQ(scalar.dtype(), number.dtype());
    EXPECT_EQ(cast(scalar, f64).to_vector<double>(), cast(number, f64).to_vector<double>());
  };
  for (DType type : {f32, f64, f16, bf16, i32, i64, u8, bool_}) {
    SCOPED_TRACE(type);
    Tensor x = cast(tensor({0.f, 1.f, 3.f}), type);
    auto with = [&](auto number) {
      Function traced = function("traced(x, n)", [](Tensor t, Scalar n) {
        return std::tuple{t + n, n - t, t * n, t / n, maximum(t, n), where(t > n, t, n)};
      });
      auto [sum, difference, product, quotient, larger, chosen] = traced(x, number);
      expect_same(sum, x + number);
      expect_same(difference, number - x);
      expect_same(product, x * number);
      expect_same(quotient, x / number);
      expect_same(larger, maximum(x, number));
      expect_same(chosen, where(x > number, x, number));
      Scalar eager(number);
      expect_same(x + eager, x + number);
      expect_same(eager - x, number - x);
      expect_same(x / eager, x / number);
      expect_same(where(x > eager, x, eager), where(x > number, x, number));
    };
    with(2);
    with(0.5f);
    with(0.25);
    if (type != bool_) with(true);  // two bools do not add
  }
}

TEST_F(SignatureTest, ScalarsOfTwoKindsAreTwoTraces) {
  Function f = function("f(x, n)", [](Tensor x, Scalar n) { return x * n; });
  EXPECT_EQ(f(ones({2}, i32), 2).dtype(), i32);
  EXPECT_EQ(f(ones({2}, i32), 0.5).dtype(), f32);
  EXPECT_EQ(f(ones({2}, i32), 3.f).dtype(), f32);
  EXPECT_EQ(f.trace_count(), 2);
}

TEST_F(SignatureTest, HoldsInsideAnotherTrace) {
  Function inner = function("inner(x, y)", [](Tensor x, Tensor y) { return x * 2 + y; },
                            {.signature = {{f32, {dyn("n"), 4}}, {f32, {dyn("n"), 1}}}});
  Function outer = function("outer(x, y)", [=](Tensor x, Tensor y) { return inner(x, y); });
  EXPECT_EQ(outer(ones({3, 4}), ones({3, 1})).to_vector<float>(), std::vector<float>(12, 3));
  EXPECT_CONTAINS(error_of([&] { outer(ones({3, 5}), ones({3, 1})); }), "the signature promises f32[n,4]");
  EXPECT_CONTAINS(error_of([&] { outer(ones({3, 4}, f64), ones({3, 1})); }), "the signature promises f32[n,4]");
  EXPECT_CONTAINS(error_of([&] { outer(ones({3, 4}), ones({1, 1})); }), "the signature promises f32[n,1], and n is ");
}

}  // namespace
}  // namespace stet
