// Arguments and results that are sizes, shapes, maps, functions, or nothing; numbers where a signature says so; and
// what may be traced: methods, functors, recursions.
#include <array>
#include <map>
#include <optional>

#include "expect_error.h"
#include "explanations.h"

using namespace stet;

namespace {

using MoreArguments = WithExplanations;

std::string at_line(int line) { return "more_arguments_test.cpp:" + std::to_string(line); }

// --- sizes and shapes

TEST_F(MoreArguments, sizes_are_inputs) {
  Function f = function("f(x, n)", [](Tensor x, Dim n) { return sum(x) + cast(arange(n), f32) * n; });
  for (int n : {3, 5, 0, 1, 3, 3}) {
    std::vector<float> expected;
    for (int i = 0; i < n; ++i) expected.push_back(static_cast<float>(2 + i * n));
    EXPECT_EQ(f(ones({2}), n).to_vector<float>(), expected);
  }
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f.traces()[0].arguments, (std::vector<std::string>{"f32[x_0]", "size n"}));
  f.verify(ones({2}), 4);
}

TEST_F(MoreArguments, sizes_that_host_code_asks_for_are_facts) {
  Function f = function("f(x, n)", [](Tensor x, Dim n) {
    Tensor y = x;
    for (int i = 0; i < int(n); ++i) y = y * 2;
    return y;
  });
  EXPECT_EQ(f(ones({1}), 3).item<float>({0}), 8);
  EXPECT_EQ(f(ones({1}), 4).item<float>({0}), 16);
  EXPECT_EQ(f(ones({1}), 3).item<float>({0}), 8);
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(told(), "n == 3 does not hold any more: n is 4");
}

TEST_F(MoreArguments, sizes_below_zero_are_numbers) {
  Function f = function("f(x, n)", [](Tensor x, Dim n) { return sum(x) + n; });
  EXPECT_EQ(f(ones({1}), -3).item<float>(), -2);
  EXPECT_EQ(f(ones({1}), 3).item<float>(), 4);
  EXPECT_EQ(f(ones({1}), -3).item<float>(), -2);
  EXPECT_EQ(f(ones({1}), -4).item<float>(), -3);
  EXPECT_EQ(f(ones({1}), 1'000'000'000'000).item<float>(), 1e12f);
}

TEST_F(MoreArguments, sizes_meet_sizes_of_tensors) {
  Function f = function("f(x, n)", [](Tensor x, Dim n) { return x + zeros({n}); });
  EXPECT_EQ(f(ones({3}), 3).shape(), Shape({3}));
  EXPECT_EQ(f(ones({4}), 4).shape(), Shape({4}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_THROW(f(ones({3}), 4), UserError);
  Function outer = function("outer(x)", [f](Tensor x) { return f(x, x.dim(0)); });
  EXPECT_EQ(outer(ones({5})).shape(), Shape({5}));
  EXPECT_EQ(outer(ones({6})).shape(), Shape({6}));
  EXPECT_EQ(outer.trace_count(), 1);
}

TEST_F(MoreArguments, sizes_and_shapes_are_results) {
  Function f = function("f(x, k)", [](Tensor x, Dim k) {
    return std::tuple{x.dim(0) * 2 + k, x.shape(), Dim(7), Shape({x.dim(1), 3}), sum(x)};
  });
  for (int n : {2, 5, 2}) {
    auto [twice, shape, seven, mixed, total] = f(ones({n, 4}), 1);
    EXPECT_EQ(twice, 2 * n + 1);
    EXPECT_EQ(shape, Shape({n, 4}));
    EXPECT_EQ(seven, 7);
    EXPECT_EQ(mixed, Shape({4, 3}));
    EXPECT_EQ(total.item<float>(), 4.f * n);
  }
  EXPECT_EQ(f.trace_count(), 1);
  f.verify(ones({3, 4}), 2);
  // Inside of another trace they stay symbols.
  Function outer = function("outer(x)", [f](Tensor x) {
    auto [twice, shape, seven, mixed, total] = f(x, 1);
    return zeros({twice}) + cast(zeros(shape), f32)[0][0] + total;
  });
  EXPECT_EQ(outer(ones({2, 4})).shape(), Shape({5}));
  EXPECT_EQ(outer(ones({3, 4})).shape(), Shape({7}));
  EXPECT_EQ(outer.trace_count(), 1);
}

TEST_F(MoreArguments, shapes_are_inputs_by_rank) {
  Function f = function("f(shape)", [](Shape shape) { return std::pair{ones(shape), shape}; });
  EXPECT_EQ(f({2, 3}).first.shape(), Shape({2, 3}));
  EXPECT_EQ(f({4, 5}).second, Shape({4, 5}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(f({4}).first.shape(), Shape({4}));
  EXPECT_EQ(f({}).first.shape(), Shape({}));
  EXPECT_EQ(f.trace_count(), 3);
  EXPECT_CONTAINS(events[0].explanation, "argument 0 'shape' 2 elements -> 1 element");
}

TEST_F(MoreArguments, sizes_under_tapes_and_in_vectors) {
  Function f = function("f(x, sizes)", [](Tensor x, std::vector<Dim> sizes) {
    Tensor out = sum(x * x) * 1.f;
    for (const Dim& size : sizes) out = out * size;
    return out;
  });
  for (int k : {2, 3, 5}) {
    Tensor x = tensor({1.f, 2.f});
    GradientTape tape;
    tape.watch(x);
    Tensor y = f(x, {k, 10});
    EXPECT_EQ(y.item<float>(), 50.f * k);
    EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (std::vector<float>{20.f * k, 40.f * k}));
  }
  {
    Tensor x = tensor({1.f, 2.f});
    GradientTape outer, inner;  // op by op
    outer.watch(x);
    inner.watch(x);
    EXPECT_EQ(inner.gradient(f(x, {2, 10}), x).to_vector<float>(), (std::vector<float>{40, 80}));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(MoreArguments, a_scope_gives_sizes) {
  Function f = function("f(x)", [](Tensor x) {
    Dim n = scope([&] { return x.dim(0) + 1; });
    return zeros({n});
  });
  EXPECT_EQ(f(ones({3})).shape(), Shape({4}));
  Function differ = function("differ(x)", [](Tensor x) {
    Dim n = scope([&] {
      if (sum(x) > 0.f) return x.dim(0) + 1;
      return x.dim(0) + 2;
    });
    return zeros({n});
  });
  EXPECT_CONTAINS(error_of([&] { differ(ones({3})); }), "the sides of an if (tensor) give different sizes");
}

// --- maps

TEST_F(MoreArguments, maps_have_parts_by_key) {
  using Named = std::map<std::string, Tensor>;
  Function f = function("f(named)", [](Named named) {
    Named out;
    for (const auto& [key, value] : named) out[key + "!"] = value * 2;
    return out;
  });
  Named named{{"a", ones({2})}, {"b", ones({3})}};
  Named out = f(named);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out["a!"].to_vector<float>(), (std::vector<float>{2, 2}));
  EXPECT_EQ(out["b!"].shape(), Shape({3}));
  named["a"] = ones({9});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(named)["a!"].shape(), Shape({9}));
  EXPECT_EQ(f.trace_count(), 1);
  named["b"] = ones({3}, f64);
  f(named);
  EXPECT_CONTAINS(told(), "argument 0 'named[\"b\"]'");
  f({{"a", ones({2})}, {"c", ones({3})}});
  EXPECT_CONTAINS(told(), "\"b\" -> \"c\"   another text");
  f({{"a", ones({2})}});
  EXPECT_CONTAINS(told(), "2 elements -> 1 element");
  EXPECT_TRUE(f({}).empty());
  EXPECT_EQ(f.trace_count(), 5);
}

// --- nothing

TEST_F(MoreArguments, an_undefined_tensor_is_none) {
  Function f = function("f(x, mask)", [](Tensor x, Tensor mask) {
    if (!mask.defined()) return std::pair{x, Tensor()};
    return std::pair{x * mask, mask};
  });
  Tensor x = tensor({1.f, 2.f}), mask = tensor({0.f, 1.f});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f(x, {}).first.to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_FALSE(f(x, {}).second.defined());
    EXPECT_EQ(f(x, mask).first.to_vector<float>(), (std::vector<float>{0, 2}));
    EXPECT_EQ(f(x, mask).second.to_vector<float>(), mask.to_vector<float>());
  }
  EXPECT_EQ(f.trace_count(), 2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_CONTAINS(told(), "argument 1 'mask' none -> f32[2]   a tensor, where there was none");
  EXPECT_CONTAINS(told(), "pass a tensor as mask in every call, or none in every call");
  f.verify(x, {});
  Function g = function("g(x, mask)", [](Tensor x, Tensor mask) { return mask.defined() ? mask : x; });
  g(x, mask);
  g(x, {});
  EXPECT_CONTAINS(told(), "f32[mask_0] -> none   no tensor any more");
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(f(x, {}).first, x).to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST_F(MoreArguments, none_where_it_is_used_or_promised_is_an_error) {
  Function f = function("f(x)", [](Tensor x) { return x * 2; });
  EXPECT_CONTAINS(error_of([&] { f({}); }), "multiply: an operand is an undefined tensor");
  EXPECT_EQ(f.trace_count(), 0);
  Function g = function("g(x)", [](Tensor x) { return x; }, {.signature = {{f32, {dyn}}}});
  int line = __LINE__ + 1;
  std::string text = error_of([&] { g({}); });
  EXPECT_CONTAINS(text, "g: argument 0 'x' is undefined, the signature promises f32[?]");
  EXPECT_CONTAINS(text, at_line(line));
  Function h = function("h(v)", [](Variable v) { return v.read(); });
  EXPECT_CONTAINS(error_of([&] { h({}); }), "h: argument 0 'v' is an undefined Variable");
}

TEST_F(MoreArguments, no_gradient_stays_no_gradient) {
  Tensor x = ones({2}), y = ones({2});
  GradientTape tape;
  tape.watch(x);
  tape.watch(y);
  std::vector<Tensor> d = tape.gradient(sum(x), {x, y});
  Function f = function("f(g)", [](Tensor g) { return g * 2; });
  EXPECT_CONTAINS(error_of([&] { f(d[1]); }), "gradient");
}

// --- functions

TEST_F(MoreArguments, functions_are_arguments_by_identity) {
  Function twice = function("twice(x)", [](Tensor x) { return x * 2; });
  Function thrice = function("thrice(x)", [](Tensor x) { return x * 3; });
  Function apply = function("apply(f, x)", [](Function<Tensor(Tensor)> f, Tensor x) { return std::pair{f(f(x)), f}; });
  EXPECT_EQ(apply(twice, ones({1})).first.item<float>({0}), 4);
  EXPECT_EQ(apply(thrice, ones({1})).first.item<float>({0}), 9);
  EXPECT_EQ(apply(twice, ones({2})).second(ones({1})).item<float>({0}), 2);
  EXPECT_EQ(apply.trace_count(), 2);
  EXPECT_CONTAINS(told(), "argument 0 'f'  Function 'twice' -> Function 'thrice'   another object");
}

// --- results

enum class Mode { train, evaluate };

TEST_F(MoreArguments, results_of_every_kind) {
  using Everything = std::tuple<std::optional<Tensor>, std::optional<Dim>, std::array<Tensor, 2>, Mode, std::string,
                                DType, std::map<std::string, std::vector<Tensor>>, Variable, float, bool>;
  Variable v(ones({1}));
  auto code = [v](Tensor x, bool some) {
    return Everything{some ? std::optional(x * 2) : std::nullopt,
                      some ? std::optional(x.dim(0)) : std::nullopt,
                      {x, x + 1},
                      Mode::evaluate,
                      "text",
                      x.dtype(),
                      {{"a", {x, x}}, {"b", {}}},
                      v,
                      0.5f,
                      some};
  };
  Function f = function("f(x, some)", code);
  for (bool some : {true, false, true})
    for (int size : {2, 3}) {
      auto [tensor, size_too, array, mode, text, dtype, named, variable, number, flag] = f(ones({size}), some);
      EXPECT_EQ(tensor.has_value(), some);
      EXPECT_EQ(size_too.has_value(), some);
      if (some) {
        EXPECT_EQ(tensor->to_vector<float>(), std::vector<float>(size, 2));
        EXPECT_EQ(*size_too, size);
      }
      EXPECT_EQ(array[1].to_vector<float>(), std::vector<float>(size, 2));
      EXPECT_EQ(mode, Mode::evaluate);
      EXPECT_EQ(text, "text");
      EXPECT_EQ(dtype, f32);
      EXPECT_EQ(named["a"].size(), 2u);
      EXPECT_TRUE(named["b"].empty());
      EXPECT_EQ(variable.id(), v.id());
      EXPECT_EQ(number, 0.5f);
      EXPECT_EQ(flag, some);
    }
  EXPECT_EQ(f.trace_count(), 2);
  f.verify(ones({4}), true);
}

// --- numbers and signatures

TEST_F(MoreArguments, numbers_take_the_promised_type) {
  Function f = function("f(x, rate)",
                        [](Tensor x, Tensor rate) {
                          return std::pair{x * rate, rate};
                        },
                        {.signature = {{f32, {dyn}}, {f32, {}}}});
  Tensor x = ones({2});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(f(x, 0.5).first.to_vector<float>(), (std::vector<float>{0.5f, 0.5f}));
    EXPECT_EQ(f(x, 2).first.to_vector<float>(), (std::vector<float>{2, 2}));
    EXPECT_EQ(f(x, 0.25f).second.dtype(), f32);
    EXPECT_EQ(f(x, tensor(3.f)).first.to_vector<float>(), (std::vector<float>{3, 3}));
  }
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_CONTAINS(error_of([&] { f(x, tensor(3.0)); }), "f: argument 1 'rate' is f64[], the signature promises f32[]");
  Function g = function("g(n)", [](Tensor n) { return n + 1; }, {.signature = {{u8, {}}}});
  EXPECT_EQ(g(7).dtype(), u8);
  EXPECT_CONTAINS(error_of([&] { g(300); }), "g: argument 0 'n': the number 300 is out of range for u8");
  Function outer = function("outer(x, rate)", [f](Tensor x, Scalar rate) { return f(x, rate.tensor()).first; });
  EXPECT_EQ(outer(x, 0.5).to_vector<float>(), (std::vector<float>{0.5f, 0.5f}));
  Function s =
      function("s(x, rate)", [](Tensor x, Scalar rate) { return x * rate; }, {.signature = {{f32, {dyn}}, {f32, {}}}});
  EXPECT_EQ(s(x, 4).to_vector<float>(), (std::vector<float>{4, 4}));
}

// --- what may be traced

struct Scaler {
  float by = 2;
  Tensor scaled(Tensor x) const { return x * by; }
  Tensor operator()(Tensor x, int power) const noexcept {
    Tensor y = x;
    for (int i = 1; i < power; ++i) y = y * x;
    return y;
  }
};
Tensor plain(Tensor x) noexcept { return x + 1; }

TEST_F(MoreArguments, methods_functors_and_noexcept) {
  Scaler scaler;
  Function by_value = function("scaled(x)", &Scaler::scaled, scaler);
  Function by_pointer = function("scaled(x)", &Scaler::scaled, &scaler, {.on_stale = OnStale::retrace});
  Function shared = function("scaled(x)", &Scaler::scaled, std::make_shared<Scaler>(Scaler{5}));
  EXPECT_EQ(by_value(ones({1})).item<float>({0}), 2);
  EXPECT_EQ(by_pointer(ones({1})).item<float>({0}), 2);
  EXPECT_EQ(shared(ones({1})).item<float>({0}), 5);
  scaler.by = 3;
  EXPECT_EQ(by_value(ones({1})).item<float>({0}), 2);
  EXPECT_EQ(by_pointer(ones({1})).item<float>({0}), 3);  // call 2 is audited
  Function functor = function("power(x, n)", Scaler());
  EXPECT_EQ(functor(full({1}, 2, f32), 3).item<float>({0}), 8);
  EXPECT_EQ(function("plain(x)", plain)(ones({1})).item<float>({0}), 2);
  EXPECT_EQ(function("plain(x)", &plain)(ones({1})).item<float>({0}), 2);
  EXPECT_EQ(function([](Tensor x) noexcept { return x; })(ones({1})).item<float>({0}), 1);
}

TEST_F(MoreArguments, defaults_are_kept_by_a_shorter_signature) {
  auto scaled = [](Tensor x, float by = 4, int twice = 1) { return x * by * twice; };
  Function f = function<Tensor(Tensor)>("f(x)", scaled);
  EXPECT_EQ(f(ones({1})).item<float>({0}), 4);
  Function g = function<Tensor(Tensor, float)>("g(x, by)", scaled);
  EXPECT_EQ(g(ones({1}), 3).item<float>({0}), 3);
  Function all = function("all(x, by, twice)", scaled);
  EXPECT_EQ(all(ones({1}), 3, 2).item<float>({0}), 6);
  Function generic = function<Tensor(Tensor)>("generic(x)", [](auto x) { return x * 2; });
  EXPECT_EQ(generic(ones({1})).item<float>({0}), 2);
  EXPECT_EQ(function<Tensor(Tensor)>("plain(x)", plain)(ones({1})).item<float>({0}), 2);
  EXPECT_EQ(function<Tensor(Tensor)>(plain)(ones({1})).item<float>({0}), 2);
}

TEST_F(MoreArguments, recursions_are_named) {
  std::function<Tensor(Tensor)> to_odd;
  Function even = function("even(x)", [&](Tensor x) { return to_odd(x); });
  Function odd = function("odd(x)", [&](Tensor x) { return even(x + 1); });
  to_odd = [&](Tensor x) { return odd(x); };
  std::string text = error_of([&] { even(ones({1})); });
  EXPECT_CONTAINS(text, "is called inside itself more than 100 deep while being traced: ");
  EXPECT_CONTAINS(text, "odd -> even -> odd");
  EXPECT_CONTAINS(text, "more_arguments_test.cpp:");
  EXPECT_CONTAINS(text, "both sides of an if (tensor) are taken");
  EXPECT_EQ(even.trace_count(), 0);
  // One that ends is fine, and many functions inside of each other are no recursion.
  std::function<Tensor(Tensor, int)> down;
  Function factorial = function("factorial(x, n)", [&](Tensor x, int n) { return n == 0 ? x : down(x * n, n - 1); });
  down = [&](Tensor x, int n) { return factorial(x, n); };
  EXPECT_EQ(factorial(ones({}), 5).item<float>(), 120);
  std::vector<Function<Tensor(Tensor)>> chain;
  chain.push_back(function("first(x)", [](Tensor x) { return x + 1; }));
  for (int i = 0; i < 150; ++i)
    chain.push_back(function("next(x)", [last = chain.back()](Tensor x) { return last(x); }));
  EXPECT_EQ(chain.back()(ones({1})).item<float>({0}), 2);
}

}  // namespace
