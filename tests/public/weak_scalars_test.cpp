// A tensor made from a C++ number stays a number: beside other tensors it takes their type, as in JAX.
#include "expect_error.h"
#include "explanations.h"

using namespace stet;

namespace {

TEST(WeakScalars, take_the_type_of_the_tensors_beside_them) {
  Tensor x = ones({2}), half = 0.5, three = 3;
  EXPECT_EQ((x * half).dtype(), f32);
  EXPECT_EQ((half * x).dtype(), f32);
  EXPECT_EQ((x * three).dtype(), f32);
  EXPECT_EQ((cast(x, f16) * half).dtype(), f16);
  EXPECT_EQ((cast(x, bf16) + Tensor(0.5f)).dtype(), bf16);
  EXPECT_EQ((ones({2}, u8) + three).dtype(), u8);
  EXPECT_EQ((ones({2}, i32) * half).dtype(), f32);
  EXPECT_EQ((ones({2}, bool_) | (Tensor(1) == 1)).dtype(), bool_);
  EXPECT_EQ(where(x > half, x, half).dtype(), f32);
  EXPECT_EQ((x > half).dtype(), bool_);
  EXPECT_EQ((x * half).to_vector<float>(), (std::vector<float>{0.5f, 0.5f}));
  // The digits of the number count, not those of the type it has alone.
  EXPECT_EQ((ones({1}, f64) * Tensor(0.1)).item<double>(), 0.1);
}

TEST(WeakScalars, take_it_as_the_number_itself_does) {
  for (DType dtype : {u8, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    Tensor x = ones({2}, dtype);
    EXPECT_EQ((x + Tensor(2)).dtype(), (x + 2).dtype()) << dtype;
    EXPECT_EQ((x + Tensor(2.5)).dtype(), (x + 2.5).dtype()) << dtype;
    EXPECT_EQ((x + Tensor(2.5f)).dtype(), (x + 2.5f).dtype()) << dtype;
    EXPECT_EQ((x + Scalar(2)).dtype(), (x + 2).dtype()) << dtype;
    EXPECT_EQ((x + Scalar(2.5)).dtype(), (x + 2.5).dtype()) << dtype;
  }
}

TEST(WeakScalars, must_fit) {
  Tensor x = ones({2}, u8);
  for (const std::string& text : {error_of([&] { x + Tensor(300); }), error_of([&] { x + Scalar(300); })}) {
    EXPECT_CONTAINS(text, "add: the number 300 is out of range for u8");
    EXPECT_CONTAINS(text, "allowed are 0 to 255; cast the tensor to a wider type");
  }
  EXPECT_CONTAINS(error_of([] { ones({2}, f16) * Tensor(1e6); }), "the number 1e+06 is out of range for f16");
}

TEST(WeakScalars, have_a_type_of_their_own_alone) {
  EXPECT_EQ(Tensor(0.5).dtype(), f64);
  EXPECT_EQ(Tensor(0.5f).dtype(), f32);
  EXPECT_EQ(Tensor(1).dtype(), i32);
  EXPECT_EQ(Tensor(1L).dtype(), i64);
  EXPECT_EQ((Tensor(1) + Tensor(0.5)).dtype(), f64);
  EXPECT_EQ((Tensor(1) + 0.5).dtype(), f64);
  EXPECT_EQ((Tensor(1) + 1).dtype(), i32);
  EXPECT_EQ((Tensor(1) / 2).dtype(), f32);
}

TEST(WeakScalars, give_weak_results_among_themselves) {
  Tensor x = ones({2});
  Tensor rate = 0.1;
  Tensor decayed = rate * 0.5 + 1;
  EXPECT_EQ((x * decayed).dtype(), f32);
  EXPECT_EQ((x * sqrt(Tensor(2.0))).dtype(), f32);
  EXPECT_EQ((x * -rate).dtype(), f32);
  EXPECT_EQ((x * maximum(0.5, 0.25)).dtype(), f32);
  EXPECT_EQ((x * where(Tensor(true), rate, 0.0)).dtype(), f32);
}

TEST(WeakScalars, end_where_a_type_is_said) {
  Tensor x = ones({2});
  EXPECT_EQ((x * tensor(0.5)).dtype(), f64);
  EXPECT_EQ((x * cast(Tensor(0.5), f64)).dtype(), f64);
  EXPECT_EQ((x * full({}, 0.5, f64)).dtype(), f64);
  EXPECT_EQ((x * reshape(Tensor(0.5), {1})).dtype(), f64);
  Variable v(0.5);
  EXPECT_EQ(v.dtype(), f64);
  EXPECT_EQ((x * v).dtype(), f64);
  v.assign(0.25);
  EXPECT_EQ((x * v).dtype(), f64);
}

TEST(WeakScalars, accumulate_in_the_type_of_what_is_added) {
  Tensor x = ones({3});
  Tensor total = 0.0;
  for (int i = 0; i < 3; ++i) total = total + sum(x);
  EXPECT_EQ(total.dtype(), f32);
  EXPECT_EQ(total.item<float>(), 9);
}

TEST(WeakScalars, go_into_variables_of_any_type) {
  Variable v(zeros({}));
  v.assign(Tensor(0.5));
  v.assign_add(Tensor(1));
  v.assign_add(Scalar(2.0));
  EXPECT_EQ(v.dtype(), f32);
  EXPECT_EQ(v.read().item<float>(), 3.5f);
}

TEST(WeakScalars, have_gradients) {
  Tensor x = tensor({1.f, 2.f}), half = 0.5;
  GradientTape tape;
  tape.watch(half);
  Tensor y = sum(x * half) * half;
  Tensor d = tape.gradient(y, half);
  EXPECT_EQ(d.dtype(), f64);
  EXPECT_EQ(d.item<double>(), 3);
}

using WeakArguments = WithExplanations;

TEST_F(WeakArguments, stay_weak_inside) {
  Function step = function("step(x, rate)", [](Tensor x, Tensor rate) { return x - x * rate; });
  Tensor x = ones({2});
  EXPECT_EQ(step(x, 0.5).dtype(), f32);
  EXPECT_EQ(step(x, 0.25).to_vector<float>(), (std::vector<float>{0.75f, 0.75f}));
  EXPECT_EQ(step(ones({3}), 0.125).to_vector<float>(), std::vector<float>(3, 0.875f));
  EXPECT_EQ(step.trace_count(), 1);
}

TEST_F(WeakArguments, are_told_from_tensors) {
  Function step = function("step(x, rate)", [](Tensor x, Tensor rate) { return x * rate; });
  Tensor x = ones({2});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(step(x, 0.5).dtype(), f32);
    EXPECT_EQ(step(x, tensor(0.5)).dtype(), f64);
  }
  EXPECT_EQ(step.trace_count(), 2);
  EXPECT_CONTAINS(told(), "argument 1 'rate'");
  EXPECT_CONTAINS(told(), "f64[] -> f64[]   a tensor, no C++ number any more");
  EXPECT_CONTAINS(told(), "fix             pass a number as rate in every call, or a tensor in every call");
  step(x, 1);
  EXPECT_CONTAINS(told(), "another kind of number");
  EXPECT_CONTAINS(told(), "fix             pass integers or reals, not both, as rate");
  Function other = function("other(x, rate)", [](Tensor x, Tensor rate) { return x * rate; });
  other(x, 0.5);
  other(x, 0.5f);
  EXPECT_CONTAINS(told(), "fix             pass numbers of one C++ type as rate");
}

TEST_F(WeakArguments, give_what_the_same_code_gives_eagerly) {
  Tensor x = ones({2});
  auto twice = [](Tensor n) { return n * 2; };
  Function f = function("f(n)", twice);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ((x * f(0.5)).dtype(), (x * twice(0.5)).dtype());
    EXPECT_EQ((x * f(tensor(0.5))).dtype(), (x * twice(tensor(0.5))).dtype());
    GradientTape tape;
    EXPECT_EQ((x * f(0.5)).dtype(), f32);
  }
  // Also out of both sides of a decision, and through functions in functions.
  Function g = function("g(x, n)", [&](Tensor x, Tensor n) {
    Tensor chosen = cond(
        sum(x) > 0, [&] { return n; }, [&] { return f(n); });
    return x * chosen;
  });
  EXPECT_EQ(g(x, 0.5).dtype(), f32);
  EXPECT_EQ(g(x, tensor(0.5)).dtype(), f64);
  EXPECT_EQ(g(-x, 0.5).to_vector<float>(), (std::vector<float>{-1, -1}));
}

TEST_F(WeakArguments, of_scalar_parameters_are_the_same_thing) {
  Function f = function("f(x, rate)", [](Tensor x, Scalar rate) { return x * rate; });
  EXPECT_EQ(f(ones({2}), 0.5).dtype(), f32);
  EXPECT_EQ(f(ones({2}), 0.25f).dtype(), f32);
  EXPECT_EQ(f.trace_count(), 1);
  f(ones({2}), 1);
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(told(), "another kind of number");
}

TEST_F(WeakArguments, are_captured_as_numbers) {
  Tensor half = 0.5;
  Function f = function("f(x)", [=](Tensor x) { return x * half; });
  EXPECT_EQ(f(ones({2})).dtype(), f32);
  EXPECT_EQ(f(ones({2}, f16)).dtype(), f16);
}

TEST_F(WeakArguments, may_meet_a_tensor_on_the_other_side_of_a_decision) {
  Function f = function("f(x)", [](Tensor x) {
    Tensor y = 0.f;
    if (sum(x) > 0) y = sum(x);
    return y;
  });
  EXPECT_EQ(f(ones({2})).item<float>(), 2);
  EXPECT_EQ(f(-ones({2})).item<float>(), 0);
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(IntegersBesideShortFloats, are_rounded_to_the_type) {
  // 2173 is no bf16, 2049 no f16: as in JAX, the integer becomes one first.
  Tensor b = tensor({2173, 2049, 70000, 7});
  for (DType dtype : {bf16, f16}) {
    Tensor rounded = cast(b, dtype);
    EXPECT_EQ((rounded == b).to_vector<bool>(), std::vector<bool>(4, true)) << dtype;
    EXPECT_EQ(cast(rounded - b, f32)[{range(0, 2)}].to_vector<float>(), (std::vector<float>{0, 0})) << dtype;
    Function f = function("f(x, y)", [](Tensor x, Tensor y) { return x == y; });
    EXPECT_EQ(f(rounded, b).to_vector<bool>(), std::vector<bool>(4, true)) << dtype;
  }
}

/// The value is known when the program runs; eagerly the same call is an error too.
TEST_F(WeakArguments, must_fit) {
  Function f = function("f(x, n)", [](Tensor x, Scalar n) { return x + n; });
  Tensor x = ones({2}, u8);
  EXPECT_EQ(f(x, 2).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{3, 3}));
  for (int n : {300, -1}) {
    std::string text = error_of([&] { f(x, n); });
    EXPECT_CONTAINS(text, "add: a number is out of range for u8");
    EXPECT_CONTAINS(text, "weak_scalars_test.cpp:");
    EXPECT_CONTAINS(text, "allowed are 0 to 255; cast the tensor to a wider type");
  }
  EXPECT_EQ(f(x, 254).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{255, 255}));
  EXPECT_EQ(f.trace_count(), 1) << f.explain();
  Function g = function("g(x, n)", [](Tensor x, Scalar n) { return x * n; });
  EXPECT_EQ(g(ones({2}, i32), -7).to_vector<std::int32_t>(), (std::vector<std::int32_t>{-7, -7}));
  EXPECT_CONTAINS(error_of([&] { g(ones({2}, i32), std::int64_t{1} << 40); }), "a number is out of range for i32");
  EXPECT_EQ(g(ones({2}), 1 << 20).to_vector<float>()[0], 1 << 20);
}

}  // namespace
