// grad, value_and_grad, vjp, jvp, jacobian, batch_jacobian, hessian, hvp and check_grads: against derivatives written
// down by hand, eagerly and traced.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <cmath>

#include "expect_error.h"

namespace stet {
namespace {

using Doubles = std::vector<double>;
Doubles doubles(const Tensor& t) { return t.defined() ? cast(t, f64).to_vector<double>() : Doubles{}; }
void expect_near(const Tensor& got, const Doubles& expected, double tolerance = 1e-12) {
  ASSERT_TRUE(got.defined());
  Doubles values = doubles(got);
  ASSERT_EQ(values.size(), expected.size()) << got;
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i << " of " << got;
}

struct Model {
  Tensor w, b;
  STET_FIELDS(w, b)
};

Tensor cube(Tensor x) { return sum(x * x * x); }

// --- grad

TEST(Grad, OfTheFirstArgument) {
  Tensor x = tensor({1.0, 2.0, -1.0});
  expect_near(grad(cube)(x), {3, 12, 3});
  expect_near(grad([](Tensor at) { return sum(sin(at)); })(x), {std::cos(1.0), std::cos(2.0), std::cos(1.0)});
  auto [value, d] = value_and_grad(cube)(x);
  EXPECT_EQ(value.item<double>(), 8);
  expect_near(d, {3, 12, 3});
  // Of a gradient.
  auto second = grad([](Tensor at) { return sum(grad(cube)(at)); });
  expect_near(second(x), {6, 12, -6});
  expect_near(grad(grad([](Tensor at) { return at * at * at; }))(tensor(2.0)), {12});
  expect_near(grad(function("cube(x)", cube))(x), {3, 12, 3});
  Function traced = function("traced(x)", [](Tensor at) { return value_and_grad(cube)(at); });
  expect_near(traced(x).second, {3, 12, 3});
  expect_near(traced(concat({x, x}, 0)).second, {3, 12, 3, 3, 12, 3});
  EXPECT_EQ(traced.trace_count(), 1);
  EXPECT_EQ(doubles(grad(cube)(zeros({0}, f64))), Doubles{});
  expect_near(grad(cube)(tensor({2.0})), {12});
}

TEST(Grad, OfChosenArguments) {
  auto f = [](Tensor a, Tensor b, Tensor c) { return sum(a * b * b) + sum(c) * 0; };
  Tensor a = tensor({2.0, 3.0}), b = tensor({5.0, 7.0}), c = tensor({1.0});
  expect_near(grad(f)(a, b, c), {25, 49});
  expect_near(grad<1>(f)(a, b, c), {20, 42});
  auto [db, da] = grad<1, 0>(f)(a, b, c);
  expect_near(db, {20, 42});
  expect_near(da, {25, 49});
  expect_near(grad(f, {.argument = 1})(a, b, c), {20, 42});
  std::vector<Tensor> all = grad(f, {.arguments = {2, 0}})(a, b, c);
  expect_near(all[0], {0});
  expect_near(all[1], {25, 49});
  // The same tensor twice: two arguments.
  expect_near(grad<1>(f)(a, a, c), {8, 18});
  // What the result does not depend on has a gradient of zeros.
  expect_near(grad<1>([](Tensor x, Tensor) { return sum(x); })(a, b), {0, 0});
  EXPECT_EQ(value_and_grad(f, {.argument = 1})(a, b, c).first.item<double>(), 2 * 25 + 3 * 49);
}

TEST(Grad, OfStructures) {
  Model model{tensor({{1.0, 2.0}}), tensor({3.0})};
  auto loss = [](Model m, Tensor x, int power) {
    Tensor y = sum(m.w * x) + sum(m.b);
    Tensor out = y;
    for (int i = 1; i < power; ++i) out = out * y;
    return std::tuple(out, y, power);
  };
  Tensor x = tensor({10.0, 20.0});
  Model d = grad(loss)(model, x, 2);
  expect_near(d.w, {2 * 53 * 10, 2 * 53 * 20});
  expect_near(d.b, {2 * 53});
  auto [value, both] = value_and_grad<0, 1>(loss)(model, x, 2);
  EXPECT_EQ(std::get<0>(value).item<double>(), 53 * 53);
  EXPECT_EQ(std::get<1>(value).item<double>(), 53);
  EXPECT_EQ(std::get<2>(value), 2);
  expect_near(std::get<1>(both), {2 * 53 * 1, 2 * 53 * 2});
  Variable v(tensor(4.0));
  Tensor dv = grad([](Variable w, Tensor at) { return sum(w * w * at); })(v, x);
  expect_near(dv, {8 * 30});
  std::vector<Tensor> list = grad([](std::vector<Tensor> parts) { return sum(parts[0] * parts[1]); })({x, x * 2});
  expect_near(list[0], {20, 40});
  expect_near(list[1], {10, 20});
}

TEST(Grad, WrongUsesAreNamed) {
  Tensor x = tensor({1.0, 2.0});
  std::string error = error_of([&] { grad([](Tensor at) { return at * 2; })(x); });
  EXPECT_CONTAINS(error, "grad: the function gives f64[2], not a floating tensor without axes");
  EXPECT_CONTAINS(error, "differentiate_test.cpp:");
  EXPECT_CONTAINS(error_of([&] { value_and_grad([](Tensor at) { return argmax(at); })(x); }),
                  "value_and_grad: the function gives i64[]");
  error = error_of([&] { grad(cube)(tensor({1, 2})); });
  EXPECT_CONTAINS(error, "grad: there is no floating tensor in argument 0");
  EXPECT_CONTAINS(error, "differentiate_test.cpp:");
  EXPECT_CONTAINS(error_of([&] { grad(cube, {.argument = 1})(x); }),
                  "grad: there is no argument 1, the function has 1");
  EXPECT_CONTAINS(error_of([&] { grad(cube, {.arguments = {0, -1}})(x); }), "grad: there is no argument -1");
  EXPECT_CONTAINS(error_of([&] { jacobian(cube, {.mode = "backward"})(x); }), "jacobian: the mode is \"backward\"");
}

// --- vjp and jvp

Tensor polar(Tensor at) { return stack({at[0] * cos(at[1]), at[0] * sin(at[1])}); }

TEST(Products, WithTheJacobian) {
  double r = 2, phi = 0.7, c = std::cos(phi), s = std::sin(phi);
  Tensor x = tensor({r, phi});
  auto [value, pullback] = vjp(polar, x);
  expect_near(value, {r * c, r * s});
  expect_near(pullback(tensor({1.0, 0.0})), {c, -r * s});
  expect_near(pullback(tensor({0.0, 1.0})), {s, r * c});
  auto [same, tangent] = jvp(polar, x, tensor({1.0, 0.0}));
  expect_near(same, {r * c, r * s});
  expect_near(tangent, {c, s});
  expect_near(jvp(polar, x, tensor({0.0, 1.0})).second, {-r * s, r * c});
  Function traced = function("traced(x, v)", [](Tensor at, Tensor v) {
    auto [y, back] = vjp(polar, at);
    return std::tuple(back(v), jvp(polar, at, v).second);
  });
  auto [dx, dy] = traced(x, tensor({0.0, 1.0}));
  expect_near(dx, {s, r * c});
  expect_near(dy, {-r * s, r * c});
}

TEST(Products, OfStructures) {
  auto f = [](Model m, Tensor x) { return std::pair(m.w * x + m.b, argmax(x)); };
  Model model{tensor({2.0, 3.0}), tensor({1.0, 1.0})};
  Tensor x = tensor({5.0, 7.0});
  auto [value, pullback] = vjp(f, model, x);
  EXPECT_EQ(value.second.item<int>(), 1);
  auto [dm, dx] = pullback({tensor({1.0, 10.0}), Tensor()});
  expect_near(dm.w, {5, 70});
  expect_near(dm.b, {1, 10});
  expect_near(dx, {2, 30});
  auto moved =
      jvp(f, std::tuple(model, x), std::tuple(Model{tensor({1.0, 0.0}), tensor({0.0, 1.0})}, tensor({0.0, 1.0})));
  expect_near(moved.second.first, {5, 1 + 3});
  EXPECT_FALSE(moved.second.second.defined());
  // A tangent that is not there is 0, and so is what does not move.
  expect_near(jvp(f, std::tuple(model, x), std::tuple(Model{}, Tensor())).second.first, {0, 0});
}

TEST(Products, AreChecked) {
  Tensor x = tensor({1.0, 2.0});
  auto [value, pullback] = vjp(polar, x);
  std::string error = error_of([&, &back = pullback] { back(tensor({1.0})); });
  EXPECT_CONTAINS(error, "vjp: the gradient of result 0 is f64[1], not f64[2]");
  EXPECT_CONTAINS(error, "differentiate_test.cpp:");
  error = error_of([&] { jvp(polar, x, tensor({1.f, 2.f})); });
  EXPECT_CONTAINS(error, "jvp: the tangent of argument 0 is f32[2], not f64[2]");
  EXPECT_CONTAINS(error, "differentiate_test.cpp:");
  EXPECT_CONTAINS(error_of([&] { jvp(polar, x, std::pair(x, x)); }), "jvp: 2 tangents for 1 tensor");
}

/// Forward mode of rows of every kind equals differences along the direction.
TEST(Products, ForwardThroughEveryKindOfRow) {
  random::seed(2);
  Tensor x = random::normal({3, 4}, {.dtype = f64}), v = random::normal({3, 4}, {.dtype = f64});
  Tensor w = random::normal({4, 4}, {.dtype = f64});
  std::vector<std::pair<const char*, std::function<Tensor(Tensor)>>> functions = {
      {"map", [](Tensor t) { return tanh(t) * exp(t) / (1 + t * t); }},
      {"broadcast",
       [](Tensor t) {
         return t[0] * t + t[{Range{}, 0}][{ellipsis, newaxis}];
       }},
      {"layout",
       [](Tensor t) {
         return concat({transpose(t), flip(transpose(t))}, 1);
       }},
      {"slices",
       [](Tensor t) {
         return t[{range(1, 3), Range{.step = 2}}] * 2;
       }},
      {"reduce", [](Tensor t) { return sum(t, 0) * mean(t, 0) * max(t, 0) * prod(t, 0); }},
      {"contract", [&](Tensor t) { return matmul(t, w) * matmul(t, matmul(w, w)); }},
      {"product of itself", [](Tensor t) { return matmul(t, transpose(t)); }},
      {"window",
       [&](Tensor t) {
         return conv2d(reshape(t, {1, 3, 4, 1}), reshape(w, {2, 2, 1, 4}));
       }},
      {"pool",
       [](Tensor t) {
         return max_pool(reshape(t, {1, 3, 4, 1}), {2, 2}) + average_pool(reshape(t, {1, 3, 4, 1}), {2, 2});
       }},
      {"scan", [](Tensor t) { return cumsum(t, 0) * cumprod(t, 1) + logcumsumexp(t, 1); }},
      {"sort",
       [](Tensor t) {
         return sort(t, 1) * tensor({1.0, 2.0, 3.0, 4.0});
       }},
      {"index",
       [](Tensor t) {
         return gather(t, tensor({2, 0, 2})) * scatter_add(t, tensor({0, 0}), t[range(0, 2)]);
       }},
      {"linalg", [&](Tensor t) { return linalg::inverse(matmul(transpose(t), t) + eye(4, {.dtype = f64})); }},
      {"cholesky", [&](Tensor t) { return linalg::cholesky(matmul(t, transpose(t)) + eye(3, {.dtype = f64})); }},
      {"softmax", [](Tensor t) { return softmax(t) * log_softmax(t); }},
      {"norm", [](Tensor t) { return linalg::vector_norm(t, {.axes = {1}}); }},
      {"where", [](Tensor t) { return where(t > 0, t * t, sin(t)); }},
      {"casts", [](Tensor t) { return cast(cast(t * t, f64), f64) * floor(t); }},
      {"einsum",
       [&](Tensor t) {
         return einsum("ij,jk,ik->i", {t, w, t});
       }},
      {"norm layer", [](Tensor t) { return layer_norm(t, 1.5, 0.25); }},
      {"function", [f = function("f(t)", [](Tensor t) { return sin(t) * t; })](Tensor t) { return f(t); }},
      {"branch", [f = function("f(t)",
                               [](Tensor t) {
                                 if (sum(t) > 1e9) return t;
                                 return t * t * t;
                               })](Tensor t) { return f(t); }},
      {"recompute", [](Tensor t) { return recompute([](Tensor u) { return sin(u) * u; })(t); }},
  };
  for (const auto& [name, f] : functions) {
    SCOPED_TRACE(name);
    auto [value, tangent] = jvp(f, x, v);
    const double h = 1e-6;
    Doubles up = doubles(f(x + v * h)), down = doubles(f(x - v * h)), got = doubles(tangent);
    ASSERT_EQ(got.size(), up.size());
    EXPECT_EQ(tangent.shape().str(), value.shape().str());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], (up[i] - down[i]) / (2 * h), 1e-6 * (1 + std::abs(got[i]))) << i;
    // Traced the same.
    Function traced = function("traced(x, v)", [f = f](Tensor a, Tensor b) { return jvp(f, a, b).second; });
    expect_near(traced(x, v), got, 1e-9);
    // <w, J v> = <J' w, v>
    auto [same, pullback] = vjp(f, x);
    Tensor weights = reshape(cast(arange(same.size()), f64), same.shape()) + 1;
    EXPECT_NEAR(sum(weights * tangent).item<double>(), sum(pullback(weights) * v).item<double>(),
                1e-9 * (1 + std::abs(sum(abs(weights * tangent)).item<double>())));
  }
}

TEST(Products, OfAnyOrderAndMode) {
  // d^n/dx^n of x^5 at 2, by every order of modes.
  auto power = [](Tensor x) { return x * x * x * x * x; };
  Tensor x = tensor(2.0), one = tensor(1.0);
  auto reverse = [](const std::function<Tensor(Tensor)>& f) -> std::function<Tensor(Tensor)> {
    return [f](Tensor at) { return grad([f](Tensor u) { return f(u); })(at); };
  };
  auto forward = [one](const std::function<Tensor(Tensor)>& f) -> std::function<Tensor(Tensor)> {
    return [f, one](Tensor at) { return jvp([f](Tensor u) { return f(u); }, at, one).second; };
  };
  std::vector<double> expected{80, 160, 240};
  for (int modes = 0; modes < 8; ++modes) {
    std::function<Tensor(Tensor)> f = power;
    for (int order = 0; order < 3; ++order) {
      f = modes >> order & 1 ? forward(f) : reverse(f);
      EXPECT_NEAR(f(x).item<double>(), expected[static_cast<std::size_t>(order)], 1e-9) << modes << " " << order;
    }
    Function traced = function("traced(x)", [f](Tensor at) { return f(at); });
    EXPECT_NEAR(traced(x).item<double>(), 240, 1e-9) << modes;
  }
}

// --- jacobian, hessian

TEST(Jacobians, OfMatricesAndVectors) {
  Tensor a = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}), x = tensor({1.0, -1.0, 2.0});
  auto f = [=](Tensor at) { return matmul(a, at * at); };
  for (const char* mode : {"reverse", "forward"}) {
    Tensor j = jacobian(f, {.mode = mode})(x);
    EXPECT_EQ(j.shape().str(), "[2,3]");
    expect_near(j, {2, -4, 12, 8, -10, 24});
  }
  expect_near(jacobian(f)(x), {2, -4, 12, 8, -10, 24});
  // Of matrices: four axes.
  Tensor m = tensor({{1.0, 2.0}, {3.0, 4.0}});
  Tensor j = jacobian([](Tensor at) { return transpose(at); })(m);
  EXPECT_EQ(j.shape().str(), "[2,2,2,2]");
  expect_near(j, {1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1});
  // Scalars, empty ones, and what does not depend.
  EXPECT_EQ(jacobian([](Tensor at) { return at * at; })(tensor(3.0)).item<double>(), 6);
  EXPECT_EQ(jacobian([](Tensor at) { return at; })(zeros({0}, f64)).shape().str(), "[0,0]");
  expect_near(jacobian([=](Tensor at) { return zeros_like(at); })(x), Doubles(9, 0));
  Model d = jacobian([](Model model) { return model.w * model.b; })(Model{tensor({1.0, 2.0}), tensor(3.0)});
  expect_near(d.w, {3, 0, 0, 3});
  expect_near(d.b, {1, 2});
  Function traced = function("traced(x)", [=](Tensor at) { return jacobian(f)(at); });
  expect_near(traced(x), {2, -4, 12, 8, -10, 24});
}

TEST(Jacobians, OfATape) {
  Tensor x = tensor({1.f, 2.f, 3.f});
  Variable v(tensor({2.f, 1.f}));
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = stack({sum(square(x)) * v[0], prod(x)});
  expect_near(tape.jacobian(y, x), {4, 8, 12, 6, 3, 2}, 1e-6);
  expect_near(tape.jacobian(y, v), {14, 0, 0, 0}, 1e-6);
  EXPECT_TRUE(tape.jacobian(y, tensor(1.f)).is_no_gradient());
  expect_near(tape.jacobian(y, tensor(1.f), {.unconnected = "zero"}), {0, 0});
  GradientTape once;
  once.watch(x);
  expect_near(once.jacobian(x * x, x), {2, 0, 0, 0, 4, 0, 0, 0, 6}, 1e-6);
  EXPECT_CONTAINS(error_of([&] { once.gradient(x, x); }), "this tape has given its gradients already");
  std::string error = error_of([&] { tape.jacobian(argmax(x), x); });
  EXPECT_CONTAINS(error, "jacobian: the target i64[] is not floating");
  EXPECT_CONTAINS(error, "differentiate_test.cpp:");
  Tensor deep = ones({1, 1, 1, 1, 1});
  tape.watch(deep);
  EXPECT_CONTAINS(error_of([&] { tape.jacobian(deep * 2, deep); }), "jacobian: the result would have 10 axes");
}

TEST(Jacobians, OfBatches) {
  Tensor w = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  auto f = [=](Tensor x) { return matmul(x, w) * matmul(x, w); };
  auto expected = [&](const Tensor& x) {
    Doubles at = doubles(x), out;
    Doubles weights = doubles(w);
    for (std::size_t b = 0; b < at.size() / 3; ++b)
      for (std::size_t m = 0; m < 2; ++m) {
        double y = 0;
        for (std::size_t n = 0; n < 3; ++n) y += at[b * 3 + n] * weights[n * 2 + m];
        for (std::size_t n = 0; n < 3; ++n) out.push_back(2 * y * weights[n * 2 + m]);
      }
    return out;
  };
  Function traced = function("traced(x)", [=](Tensor at) { return batch_jacobian(f)(at); });
  for (int batch : {1, 2, 5}) {
    Tensor x = reshape(cast(arange(batch * 3), f64), {batch, 3}) / 7;
    Tensor j = batch_jacobian(f)(x);
    EXPECT_EQ(j.shape().str(), "[" + std::to_string(batch) + ",2,3]");
    expect_near(j, expected(x));
    expect_near(traced(x), expected(x));
  }
  EXPECT_EQ(traced.trace_count(), 1) << traced.explain();
  std::string error = error_of([&] { batch_jacobian([](Tensor x) { return sum(x, 0); })(ones({2, 3})); });
  EXPECT_CONTAINS(error, "batch_jacobian: the target f32[3] and the source f32[2,3] have no first axis in common");
  EXPECT_CONTAINS(error, "differentiate_test.cpp:");
}

TEST(Hessians, OfAFunction) {
  // f = x0^2 x1 + exp(x1) x2
  auto f = [](Tensor x) { return x[0] * x[0] * x[1] + exp(x[1]) * x[2]; };
  double a = 1.5, b = 0.5, c = -2, e = std::exp(b);
  Tensor x = tensor({a, b, c});
  Doubles h{2 * b, 2 * a, 0, 2 * a, e * c, e, 0, e, 0};
  for (const char* mode : {"reverse", "forward"}) {
    Tensor got = hessian(f, {.mode = mode})(x);
    EXPECT_EQ(got.shape().str(), "[3,3]");
    expect_near(got, h);
  }
  expect_near(hessian(f)(x), h);
  Tensor v = tensor({1.0, -2.0, 0.5});
  Doubles product;
  for (std::size_t i = 0; i < 3; ++i) product.push_back(h[i * 3] * 1 + h[i * 3 + 1] * -2 + h[i * 3 + 2] * 0.5);
  expect_near(hvp(f, x, v), product);
  Function traced =
      function("traced(x, v)", [=](Tensor at, Tensor along) { return std::pair(hessian(f)(at), hvp(f, at, along)); });
  auto [whole, times] = traced(x, v);
  expect_near(whole, h);
  expect_near(times, product);
  auto two = [](Tensor p, Tensor q) { return sum(p * p * q); };
  auto [hp, hq] = hvp(two, std::tuple(tensor({2.0}), tensor({3.0})), std::tuple(tensor({1.0}), tensor({10.0})));
  expect_near(hp, {2 * 3 * 1 + 2 * 2 * 10});
  expect_near(hq, {2 * 2 * 1});
  EXPECT_CONTAINS(error_of([&] { hessian([](Tensor at) { return at; })(x); }),
                  "hessian: the function gives f64[3], not a floating tensor without axes");
  EXPECT_CONTAINS(error_of([&] { hvp(f, x, tensor({1.0})); }), "hvp: the tangent of argument 0 is f64[1], not f64[3]");
}

// --- check_grads

TEST(CheckGrads, AcceptsWhatIsRight) {
  Tensor x = tensor({0.3f, -1.2f, 2.5f});
  check_grads([](Tensor at) { return sin(at) * exp(at); }, x, {.order = 3});
  check_grads([](Tensor a, Tensor b) { return matmul(a, b); }, {ones({2, 3}), ones({3, 2}) * 2});
  check_grads([](Tensor a, Tensor b) { return a * b; }, std::tuple(x, x));
  check_grads([](Model m) { return std::tuple(sum(m.w * m.w), m.b * 2, argmax(m.w)); }, Model{x, tensor(1.f)});
  check_grads([](Tensor at) { return at * 2; }, zeros({0}));
  check_grads([](Tensor at) { return square(at); }, x, {.order = 1, .cast = false});
  check_grads([](Tensor at) { return softmax(at); }, x, {.order = 2, .modes = {"forward"}});
  check_grads(function("f(x)", [](Tensor at) { return tanh(at) * at; }), x);
}

TEST(CheckGrads, NamesWhatIsWrong) {
  auto wrong = custom_gradient(
      [](Tensor at) { return std::pair(at * at, [=](Tensor d) { return d * at * where(at > 2, 3.0, 2.0); }); });
  Tensor x = tensor({{1.0, 1.5}, {3.0, 0.5}});
  std::string error = error_of([&] { check_grads([=](Tensor, Tensor at) { return wrong(at); }, {x, x}); });
  EXPECT_CONTAINS(error, "check_grads: the derivative of order 1 (reverse) by argument 1 at [1,0] is ");
  EXPECT_CONTAINS(error, ", but differences give ");
  EXPECT_CONTAINS(error, "differentiate_test.cpp:");
  EXPECT_CONTAINS(error_of([&] { check_grads([=](Tensor at) { return wrong(at); }, x, {.modes = {"forward"}}); }),
                  "order 1 (forward) by argument 0 at ");
  auto wrong_second = custom_gradient(
      [](Tensor at) { return std::pair(at * at, [=](Tensor d) { return d * stop_gradient(at) * 2; }); });
  check_grads([=](Tensor at) { return wrong_second(at); }, x, {.order = 1});
  EXPECT_CONTAINS(error_of([&] { check_grads([=](Tensor at) { return wrong_second(at); }, x); }),
                  "the derivative of order 2 (reverse) by argument 0 at [0,0] is 0, but differences give ");
  EXPECT_CONTAINS(error_of([&] { check_grads(cube, tensor(1)); }), "check_grads: there is no floating tensor among");
  EXPECT_CONTAINS(error_of([&] { check_grads([](Tensor at) { return argmax(at); }, x); }),
                  "check_grads: the function gives no floating tensor");
  EXPECT_CONTAINS(error_of([&] { check_grads(cube, x, {.order = 0}); }), "check_grads: the order is 0");
  EXPECT_CONTAINS(error_of([&] { check_grads(cube, x, {.modes = {"sideways"}}); }),
                  "check_grads: the mode is \"sideways\"");
  EXPECT_CONTAINS(error_of([&] { check_grads(cube, {x, x}); }), "check_grads: there is no argument 1");
}

}  // namespace
}  // namespace stet
