// Small things that users reach for.
#include <array>
#include <deque>

#include "expect_error.h"
#include "explanations.h"

using namespace stet;

namespace {

std::string at_line(int line) { return "surface_test.cpp:" + std::to_string(line); }

// --- in place

TEST(InPlace, tensors_get_a_new_value) {
  Tensor loss = 0.f, before = loss;
  for (int i = 0; i < 3; ++i) loss += sum(ones({2}));
  EXPECT_EQ(loss.item<float>(), 6);
  EXPECT_EQ(before.item<float>(), 0);
  Tensor x = tensor({1.f, 2.f});
  x -= 1;
  x *= tensor({2.f, 4.f});
  x /= 8;
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 0.5f}));
  Variable v(ones({2}));
  x += v;
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 1.5f}));
}

TEST(InPlace, names_its_line) {
  Tensor x = ones({2});
  std::string line = at_line(__LINE__ + 1);
  std::string text = error_of([&] { x += ones({3}); });
  EXPECT_CONTAINS(text, "add: ");
  EXPECT_CONTAINS(text, line);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(InPlace, works_in_traces_and_under_tapes) {
  Function f = function("f(x)", [](Tensor x) {
    Tensor total = 0.f;
    for (int i = 0; i < 3; ++i) total += sum(x) * i;
    return total;
  });
  EXPECT_EQ(f(ones({2})).item<float>(), 6);
  Tensor x = ones({2});
  GradientTape tape;
  tape.watch(x);
  Tensor y = x * 2;
  y *= x;
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (std::vector<float>{4, 4}));
}

TEST(InPlace, of_a_variable_is_assign_add) {
  Variable v(zeros({2}));
  v += 1;
  v += tensor({1.f, 2.f});
  (v -= 0.5) += 1;
  EXPECT_EQ(v.read().to_vector<float>(), (std::vector<float>{2.5f, 3.5f}));
  Function step = function("step(x)", [=](Tensor x) { v -= mean(x) * 0.5f; });
  step(ones({3}));
  step(ones({4}));
  EXPECT_EQ(v.read().to_vector<float>(), (std::vector<float>{1.5f, 2.5f}));
}

TEST(VariableIndexing, is_that_of_its_value) {
  Variable v(tensor({{1.f, 2.f}, {3.f, 4.f}}));
  EXPECT_EQ(v[0].to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ((v[{ellipsis, 1}].to_vector<float>()), (std::vector<float>{2, 4}));
  EXPECT_CONTAINS(error_of([&] { v[5]; }), at_line(__LINE__));
  GradientTape tape;
  Tensor y = sum(v[1]) * 2;
  EXPECT_EQ(tape.gradient(y, v).to_vector<float>(), (std::vector<float>{0, 0, 2, 2}));
}

TEST(AssignAdd, repeats_along_the_axes_of_the_variable) {
  Variable v(zeros({2, 3}));
  v.assign_add(0.5f);
  v.assign_add(tensor({1.f, 2.f, 3.f}));
  v.assign_sub(tensor({{1.f}, {2.f}}));
  v.assign_add(tensor({{1.f}}));
  EXPECT_EQ(v.read().to_vector<float>(), (std::vector<float>{1.5f, 2.5f, 3.5f, 0.5f, 1.5f, 2.5f}));
  EXPECT_EQ(v.shape(), (Shape{2, 3}));
}

TEST(AssignAdd, never_changes_the_shape) {
  Variable v(zeros({1, 3}), {.name = "v"});
  for (const Tensor& wrong : {zeros({2, 3}), zeros({1, 1, 3}), zeros({2}), zeros({3, 1})}) {
    std::string text = error_of([&] { v.assign_add(wrong); });
    EXPECT_CONTAINS(text, "assign_add: a Variable 'v' of f32[1,3] cannot hold f32");
    EXPECT_CONTAINS(text,
                    "fix: a Variable keeps its type and shape; cast the value, or give it a shape that "
                    "broadcasts to the Variable's");
  }
  EXPECT_CONTAINS(error_of([&] { v.assign_add(zeros({3}, f64)); }), "cannot hold f64[3]");
  EXPECT_CONTAINS(error_of([&] { v.assign(zeros({3})); }), "cannot hold f32[3]");
  EXPECT_EQ(v.shape(), (Shape{1, 3}));
}

TEST(AssignAdd, repeats_in_traces_for_sizes_that_fit) {
  Variable v(zeros({2, 3}));
  Function f = function("f(x)", [=](Tensor x) { v += x; });
  f(ones({3}));
  f(ones({1}));
  f(ones({3}));
  EXPECT_EQ(v.read().to_vector<float>(), std::vector<float>(6, 3));
  EXPECT_CONTAINS(error_of([&] { f(ones({2})); }), "assign_add: a Variable of f32[2,3] cannot hold");
}

// --- creation

TEST(NestedLists, give_an_axis_for_each_level) {
  std::vector<std::vector<float>> rows{{1, 2, 3}, {4, 5, 6}};
  Tensor x = tensor(rows);
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.dtype(), f32);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  Tensor deep = tensor(std::vector<std::vector<std::vector<int>>>{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}});
  EXPECT_EQ(deep.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(deep.dtype(), i32);
  EXPECT_EQ((deep.item<int>({1, 0, 1})), 6);
  EXPECT_EQ(tensor(std::array<double, 3>{1, 2, 3}).shape(), (Shape{3}));
  Tensor mixed = tensor(std::vector<std::array<float, 2>>{{1, 2}, {3, 4}, {5, 6}});
  EXPECT_EQ(mixed.shape(), (Shape{3, 2}));
  EXPECT_EQ(mixed.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor(std::array<std::array<std::array<int, 1>, 2>, 3>{}).shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(tensor(std::vector<std::vector<bool>>{{true, false}, {false, true}}).to_vector<bool>(),
            (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(tensor(std::vector<bool>{true, false}).to_vector<bool>(), (std::vector<bool>{true, false}));
}

TEST(NestedLists, may_be_empty) {
  EXPECT_EQ(tensor(std::vector<float>()).shape(), (Shape{0}));
  EXPECT_EQ(tensor(std::vector<std::vector<float>>()).shape(), (Shape{0, 0}));
  EXPECT_EQ(tensor(std::vector<std::vector<float>>(2)).shape(), (Shape{2, 0}));
}

TEST(NestedLists, must_not_be_ragged) {
  std::string line = at_line(__LINE__ + 1);
  std::string text = error_of([&] { tensor(std::vector<std::vector<float>>{{1, 2}, {3}}); });
  EXPECT_CONTAINS(text, "tensor: the rows of the nested list differ in length");
  EXPECT_CONTAINS(text, line);
  EXPECT_CONTAINS(error_of([&] {
                    tensor(std::vector<std::vector<std::vector<int>>>{{{1}, {2}}, {{3}}});
                  }),
                  "differ in length");
  EXPECT_CONTAINS(error_of([&] { tensor({{1, 2.5f}, {3}}); }), "differ in length");
}

TEST(MixedNumbers, take_the_type_that_theirs_promote_to) {
  Tensor x = tensor({1, 2.5f});
  EXPECT_EQ(x.dtype(), f32);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2.5f}));
  EXPECT_EQ(tensor({1.f, 2.5}).dtype(), f64);
  EXPECT_EQ(tensor({1, 2L}).dtype(), i64);
  EXPECT_EQ(tensor({true, 2}).dtype(), i32);
  EXPECT_EQ(tensor({std::int64_t{1} << 60, 1}).item<std::int64_t>({0}), std::int64_t{1} << 60);
  Tensor rows = tensor({{1, 2.5}, {3, 4}});
  EXPECT_EQ(rows.dtype(), f64);
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  EXPECT_EQ(rows.to_vector<double>(), (std::vector<double>{1, 2.5, 3, 4}));
  // Of one type as ever.
  EXPECT_EQ(tensor({1, 2}).dtype(), i32);
  EXPECT_EQ(tensor({{1.f}, {2.f}}).shape(), (Shape{2, 1}));
  EXPECT_CONTAINS(error_of([] { tensor({1, ~0ull}); }), "tensor: the number 18446744073709551615 is out of range");
}

// --- functions without a name

using Nameless = WithExplanations;

TEST_F(Nameless, functions_are_called_by_their_place) {
  std::string line = at_line(__LINE__ + 1);
  Function f = function([](Tensor x) { return x * 2; });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{2, 2}));
  f(ones({2}, f64));
  EXPECT_CONTAINS(told(), "stet: tracing 'function at ");
  EXPECT_CONTAINS(told(), line + "' again (trace 2)");
  EXPECT_CONTAINS(told(), "argument 0 ");
  EXPECT_CONTAINS(f.explain(), line + ": 2 traces");
  Function of_state = function([](Variable v) { return v.read(); });
  EXPECT_CONTAINS(error_of([&] { of_state({}); }), ": argument 0 is an undefined Variable");
}

TEST_F(Nameless, functions_take_options_and_generic_callables) {
  Function promised = function([](Tensor x) { return x; }, {.signature = {{f32, {dyn}}}});
  EXPECT_CONTAINS(error_of([&] { promised(ones({2}, f64)); }), "the signature promises f32[?]");
  Function generic = function<Tensor(Tensor)>([](auto x) { return x + 1; });
  EXPECT_EQ(generic(zeros({})).item<float>(), 1);
}

// --- gradients that are not there

TEST(NoGradient, says_that_the_target_does_not_depend_on_the_source) {
  Variable w(ones({2})), unused(ones({2}));
  auto gradients = [&] {
    GradientTape tape;
    Tensor loss = sum(square(w.read()));
    return tape.gradient(loss, {w, unused});
  };
  std::vector<Tensor> d = gradients();
  EXPECT_FALSE(d[1].defined());
  EXPECT_FALSE(d[1].is_dense());
  for (const std::string& text :
       {error_of([&] { d[1] * 2; }), error_of([&] { unused.assign_sub(d[1]); }), error_of([&] { d[1].shape(); })}) {
    EXPECT_CONTAINS(text, "undefined");
    EXPECT_CONTAINS(text, "it came from gradient(), whose target does not depend on that source");
    EXPECT_EQ(text.find("default-made"), std::string::npos) << text;
  }
  EXPECT_CONTAINS(error_of([] { Tensor() * 2; }), "a default-made Tensor holds nothing");
  // Copies, moves and results of functions remember it.
  Tensor copy = d[1], moved = std::move(copy);
  EXPECT_CONTAINS(error_of([&] { moved + 1; }), "it came from gradient()");
  Function f = function("f()", gradients);
  EXPECT_CONTAINS(error_of([&] { f()[1] + 1; }), "it came from gradient()");
  Function g = function("g(x)", [](Tensor x) { return x; });
  EXPECT_CONTAINS(error_of([&] { g(d[1]) + 1; }), "it came from gradient()");
  EXPECT_CONTAINS(error_of([&] { g(Tensor()) + 1; }), "a default-made Tensor holds nothing");
  EXPECT_CONTAINS(error_of([&] { g(d[1]) + 1; }), "it came from gradient()");
  Function doubled = function("doubled(x)", [](Tensor x) { return x * 2; });
  EXPECT_CONTAINS(error_of([&] { doubled(d[1]); }), "it came from gradient()");
  d[1] = ones({2});
  EXPECT_TRUE(d[1].defined());
}

}  // namespace
