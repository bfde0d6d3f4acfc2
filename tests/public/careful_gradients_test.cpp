// Derivatives where a careless formula gives NaN, infinity, or the wrong one of two answers. What JAX 0.4 and
// TensorFlow 2 give there is named where it is something else.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <cmath>
#include <limits>

namespace stet {
namespace {

using Doubles = std::vector<double>;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void expect_same(const Tensor& got, const Doubles& expected, double tolerance = 1e-12) {
  ASSERT_TRUE(got.defined());
  Doubles values = cast(got, f64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size()) << got;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(values[i])) << i << " of " << got;
    else if (std::isinf(expected[i]))
      EXPECT_EQ(values[i], expected[i]) << i << " of " << got;
    else
      EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i << " of " << got;
  }
}

template <class F>
Tensor gradient(const F& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x);
}

/// The gradient of the sum of f, eagerly, in a trace, of a traced function, and in f32.
template <class F>
void expect_gradient(const F& f, const Doubles& at, const Doubles& expected) {
  Tensor x = tensor(at);
  {
    SCOPED_TRACE("eagerly");
    expect_same(gradient(f, x), expected);
  }
  {
    SCOPED_TRACE("in f32");
    expect_same(gradient(f, cast(x, f32)), expected, 1e-6);
  }
  {
    SCOPED_TRACE("traced");
    Function inside = function("inside(x)", [f](Tensor u) { return gradient(f, u); });
    expect_same(inside(x), expected);
  }
  {
    SCOPED_TRACE("of a traced function");
    Function called = function("called(x)", [f](Tensor u) { return f(u); });
    expect_same(gradient(called, x), expected);
  }
}
/// The second derivative, each element by itself, eagerly and traced.
template <class F>
void expect_second(const F& f, const Doubles& at, const Doubles& expected) {
  Tensor x = tensor(at);
  auto second = [f](Tensor u) { return gradient([&](Tensor v) { return gradient(f, v); }, u); };
  expect_same(second(x), expected);
  Function traced = function("traced(x)", [second](Tensor u) { return second(u); });
  expect_same(traced(x), expected);
}

TEST(CarefulGradients, RootsAtZero) {
  expect_gradient([](Tensor x) { return sqrt(x); }, {0, 4}, {inf, 0.25});
  expect_gradient([](Tensor x) { return cbrt(x); }, {0, 8}, {inf, 1.0 / 12});
  // A norm has no derivative at 0; one of those beside it is 0. JAX and TensorFlow give NaN.
  expect_gradient([](Tensor x) { return linalg::vector_norm(x); }, {0, 0, 0}, {0, 0, 0});
  expect_gradient([](Tensor x) { return linalg::vector_norm(x); }, {3, -4}, {0.6, -0.8});
  expect_gradient([](Tensor x) { return hypot(x, x * 0); }, {0, -2}, {0, -1});
}

TEST(CarefulGradients, PowersAtZero) {
  auto to = [](double power) { return [power](Tensor x) { return pow(x, power); }; };
  expect_gradient(to(2), {0, -3, 3}, {0, -6, 6});
  expect_gradient(to(1), {0, -3}, {1, 1});
  expect_gradient(to(0), {0, -3, 2}, {0, 0, 0});
  expect_gradient(to(0.5), {0, 4}, {inf, 0.25});
  expect_gradient(to(-1), {2, -2}, {-0.25, -0.25});
  expect_gradient(to(3), {-2, 0}, {12, 0});
  expect_second(to(2), {0, -3}, {2, 2});
  expect_second(to(3), {0, -2}, {0, -12});
  // The exponent is a tensor: 0^0 is 1 whatever the base, 0^y is flat in y.
  auto tensors = [](double power) { return [power](Tensor x) { return pow(x, full(x.shape(), power, x.dtype())); }; };
  expect_gradient(tensors(0), {0, -3, 2}, {0, 0, 0});
  expect_gradient(tensors(1), {0, -3}, {1, 1});
  expect_gradient(tensors(2), {0, -3}, {0, -6});
  auto exponents = [](double base) { return [base](Tensor y) { return pow(full(y.shape(), base, y.dtype()), y); }; };
  expect_gradient(exponents(0), {0, 1, 2.5}, {0, 0, 0});
  expect_gradient(exponents(std::exp(1.0)), {0, 1}, {1, std::exp(1.0)});
  expect_gradient(exponents(-2), {2}, {nan});  // not a number beside 2; TensorFlow says 0, JAX NaN
}

TEST(CarefulGradients, LogSumExp) {
  auto f = [](Tensor x) { return logsumexp(x, 0); };
  expect_gradient(f, {0, std::log(3.0)}, {0.25, 0.75});
  expect_gradient(f, {-inf, 0}, {0, 1});
  expect_gradient(f, {-inf, 1, -inf, 1}, {0, 0.5, 0, 0.5});
  expect_gradient(f, {1000, -1000}, {1, 0});
  // Nothing to share: JAX and TensorFlow give NaN.
  expect_gradient(f, {-inf, -inf}, {0, 0});
  expect_gradient([](Tensor x) { return logaddexp(x, x * 0 - 1); }, {-inf}, {nan});  // -inf * 0 is not a number
  expect_gradient([](Tensor x) { return logaddexp(x, zeros_like(x)); }, {-inf, 0, 1000}, {0, 0.5, 1});
  auto soft = [](Tensor x) { return softmax(x, 0) * tensor({1.0, 2.0, 3.0})[range(0, x.dim(0))]; };
  expect_same(gradient(soft, tensor({0.0, -inf, 0.0})), {-0.5, 0, 0.5});
}

TEST(CarefulGradients, TheSideThatIsNotTaken) {
  // JAX and TensorFlow give NaN in all of these: 0 times infinity, or times NaN, of the side that was not taken.
  expect_gradient([](Tensor x) { return where(x > 0, sqrt(x), 0); }, {-1, 0, 4}, {0, 0, 0.25});
  expect_gradient([](Tensor x) { return where(x > 0, log(x), x); }, {-1, 0, 2}, {1, 1, 0.5});
  expect_gradient([](Tensor x) { return where(x == 0, 1, sin(x) / x); }, {0, 2},
                  {0, (2 * std::cos(2.0) - std::sin(2.0)) / 4});
  expect_gradient([](Tensor x) { return where(x < 80, exp(x), x); }, {1, 2000}, {std::exp(1.0), 1});
  expect_gradient([](Tensor x) { return where(x > 0, pow(x, 0.5), 0); }, {-1, 0, 4}, {0, 0, 0.25});
  expect_gradient([](Tensor x) { return where(abs(x) < 1, asin(x), 0); }, {0.5, 2}, {1 / std::sqrt(0.75), 0});
  expect_gradient([](Tensor x) { return where(x != 0, linalg::vector_norm(x) * x / x, 0); }, {0}, {0});
  expect_second([](Tensor x) { return where(x > 0, sqrt(x), 0); }, {-1, 0, 4}, {0, 0, -1.0 / 32});
  expect_second([](Tensor x) { return where(x == 0, 1, 1 / x); }, {0, 2}, {0, 0.25});
  // A value that is not a number on the side not taken, and an infinite gradient that comes in there.
  expect_gradient([](Tensor x) { return where(x > 0, x * 3, full(x.shape(), nan, x.dtype())); }, {1, -1}, {3, 0});
  expect_gradient([](Tensor x) { return sqrt(where(x > 0, x, 0)); }, {4, -1}, {0.25, 0});
  expect_gradient([](Tensor x) { return sqrt(relu(x)); }, {4, -1, 0}, {0.25, 0, 0});
  expect_gradient([](Tensor x) { return log(clip(x, 0, 10)); }, {2, -1}, {0.5, 0});
  // Forward mode the same.
  Tensor x = tensor({-1.0, 0.0, 4.0});
  expect_same(jvp([](Tensor u) { return where(u > 0, sqrt(u), 0); }, x, ones_like(x)).second, {0, 0, 0.25});
}

TEST(CarefulGradients, SoftFunctionsFarOut) {
  expect_gradient([](Tensor x) { return softplus(x); }, {-1000, 0, 1000}, {0, 0.5, 1});
  expect_gradient([](Tensor x) { return log_sigmoid(x); }, {-1000, 0, 1000}, {1, 0.5, 0});
  expect_second([](Tensor x) { return softplus(x); }, {-1000, 0, 1000}, {0, 0.25, 0});
  expect_second([](Tensor x) { return log_sigmoid(x); }, {-1000, 0, 1000}, {0, -0.25, 0});
  expect_gradient([](Tensor x) { return sigmoid(x); }, {-1000, 0, 1000}, {0, 0.25, 0});
  expect_gradient([](Tensor x) { return tanh(x); }, {-1000, 0, 1000}, {0, 1, 0});
  expect_second([](Tensor x) { return sigmoid(x); }, {-1000, 0, 1000}, {0, 0, 0});
  expect_second([](Tensor x) { return tanh(x); }, {-1000, 0, 1000}, {0, 0, 0});
}

TEST(CarefulGradients, Kinks) {
  expect_gradient([](Tensor x) { return abs(x); }, {-2, -0.0, 0, 3}, {-1, 0, 0, 1});
  expect_gradient([](Tensor x) { return relu(x); }, {-2, 0, 3}, {0, 0, 1});
  expect_gradient([](Tensor x) { return maximum(x, zeros_like(x)); }, {-2, 0, 3}, {0, 0.5, 1});
  expect_gradient([](Tensor x) { return minimum(x, zeros_like(x)); }, {-2, 0, 3}, {1, 0.5, 0});
  expect_gradient([](Tensor x) { return clip(x, -1, 1); }, {-2, -1, 0, 1, 2}, {0, 1, 1, 1, 0});
  // Equal extremes share.
  expect_gradient([](Tensor x) { return max(x, 0); }, {3, 1, 3, 3}, {1.0 / 3, 0, 1.0 / 3, 1.0 / 3});
  expect_gradient([](Tensor x) { return min(x, 0); }, {1, 1, 3}, {0.5, 0.5, 0});
  expect_gradient([](Tensor x) { return max(x, 0); }, {-inf, -inf}, {0.5, 0.5});
}

TEST(CarefulGradients, ProductsWithZeros) {
  auto f = [](Tensor x) { return prod(x, 0); };
  expect_gradient(f, {2, 3, 5}, {15, 10, 6});
  expect_gradient(f, {2, 0, 5}, {0, 10, 0});
  expect_gradient(f, {0, 0, 5}, {0, 0, 0});
  expect_gradient([](Tensor x) { return cumprod(x, 0); }, {2, 0, 5}, {1, 12, 0});
  expect_same(hessian(f)(tensor({2.0, 0.0, 5.0})), {0, 5, 0, 5, 0, 2, 0, 2, 0});
}

TEST(CarefulGradients, XLogY) {
  auto by_x = [](Tensor x) { return xlogy(x, full(x.shape(), 4, x.dtype())); };
  expect_gradient(by_x, {0, 2}, {std::log(4.0), std::log(4.0)});
  expect_gradient([](Tensor x) { return xlogy(x, zeros_like(x)); }, {0}, {0});
  expect_gradient([](Tensor y) { return xlogy(zeros_like(y), y); }, {0, 1, -1}, {0, 0, 0});
  expect_gradient([](Tensor y) { return xlogy(full(y.shape(), 2, y.dtype()), y); }, {4}, {0.5});
  // The entropy of a distribution with zeros.
  expect_gradient([](Tensor p) { return xlogy(p, p); }, {0, 0.5}, {0, std::log(0.5) + 1});
}

}  // namespace
}  // namespace stet
