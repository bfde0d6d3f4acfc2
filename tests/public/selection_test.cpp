// Masks, distinct values, indices of several axes, choices and comparisons. Expected values are NumPy's and
// TensorFlow's.
#include "composites.h"

namespace stet {
namespace {

TEST(BooleanMask, RowsElementsAndInnerAxes) {
  Tensor x = counting({2, 3, 2});
  expect_values(boolean_mask(tensor({10, 20, 30}), tensor({true, false, true})), {10, 30}, {2});
  expect_values(boolean_mask(x, tensor({false, true})), {6, 7, 8, 9, 10, 11}, {1, 3, 2});
  expect_values(boolean_mask(x, tensor({true, false, true}), 1), {0, 1, 4, 5, 6, 7, 10, 11}, {2, 2, 2});
  expect_values(boolean_mask(x, tensor({true, false}), -1), {0, 2, 4, 6, 8, 10}, {2, 3, 1});
  Tensor mask = tensor({{true, false, false}, {false, true, true}});
  expect_values(boolean_mask(x, mask), {0, 1, 8, 9, 10, 11}, {3, 2});
  expect_values(boolean_mask(x, x > 8), {9, 10, 11}, {3});
  expect_values(boolean_mask(x, transpose(mask), 1), {0, 3, 5, 6, 9, 11}, {2, 3});
  expect_values(boolean_mask(x, x > 99), {}, {0});
  expect_values(boolean_mask(zeros({0, 2}), zeros({0}, bool_)), {}, {0, 2});
  for (DType dtype : {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    Tensor out = boolean_mask(cast(tensor({0, 1, 1}), dtype), tensor({true, true, false}));
    EXPECT_EQ(out.dtype(), dtype);
    expect_values(out, {0, 1}, {2});
  }
}

TEST(BooleanMask, TracedAtAllSizesUnderATapeAndInBranches) {
  expect_one_trace(
      [](Tensors t) {
        Tensor chosen = boolean_mask(t[0], t[0] > 0), rows = boolean_mask(t[0], sum(t[0], 1) > 0);
        return Tensors{chosen, sum(chosen * 2), rows, mean(rows, 1), boolean_mask(t[0], t[1] > 0, 1)};
      },
      {{uneven({4, 3}), uneven({3}, 1)},
       {uneven({1, 1}), uneven({1})},
       {uneven({17, 9}), uneven({9})},
       {uneven({0, 2}), uneven({2})}});
  expect_gradient([](Tensors t) { return boolean_mask(square(t[0]), t[0] > 0); }, {uneven({4, 3})});
  expect_gradient(
      [](Tensors t) {
        return boolean_mask(t[0] * t[1], tensor({true, false, true}), 1);
      },
      {uneven({2, 3}), uneven({2, 3}, 5)});
  // The gradient inside a traced function, at several sizes with one trace.
  expect_one_trace(
      [](Tensors t) {
        GradientTape tape;
        tape.watch(t[0]);
        Tensor loss = sum(square(boolean_mask(t[0], t[0] > 0)));
        return Tensors{loss, tape.gradient(loss, t[0])};
      },
      {{uneven({5})}, {uneven({1}, 3)}, {uneven({40})}, {uneven({0})}});
  // On one side of a branch, on both, and used after it.
  expect_one_trace(
      [](Tensors t) {
        Tensor total = t[0] * 0;
        if (sum(t[0]) > 0)
          total = total + sum(boolean_mask(t[0], t[0] > 0));
        else
          total = total - sum(square(boolean_mask(t[0], t[0] < 0)));
        Tensor most = zeros({}, f64);
        if (sum(t[0]) > 1) most = max(unique(t[0]));
        return Tensors{total, most};
      },
      {{uneven({5})}, {uneven({5}, 2)}, {uneven({9}, 1)}, {uneven({1}, 3)}, {uneven({2}, 3)}, {uneven({30}, 7)}});
}

// Sizes that depend on values must agree: they are compared when they are known.
TEST(BooleanMask, LateSizesThatDoNotAgree) {
  Function f = function(
      "f(x, y)", [](Tensor x, Tensor y) { return boolean_mask(boolean_mask(x, x > 0), boolean_mask(y, y > 0) > 2); });
  expect_values(f(tensor({1., -1., 2.}), tensor({3., 2.})), {1}, {1});
  EXPECT_CONTAINS(error_of([&] { f(tensor({1., -1., 2.}), tensor({3., 2., 5.})); }), "boolean_mask: ");
  Function dot = function("dot(x, y)", [](Tensor x, Tensor y) {
    return einsum("i,i->", {boolean_mask(x, x > 0), boolean_mask(y, y > 0)});
  });
  expect_values(dot(tensor({1., -1., 2.}), tensor({3., 2.})), {7}, {});
  EXPECT_CONTAINS(error_of([&] { dot(tensor({1., -1., 2.}), tensor({3., 2., 5.})); }), "einsum: ");
  Function middle = function("middle(x)", [](Tensor x) { return median(boolean_mask(x, x > 0)); });
  expect_values(middle(tensor({1., -1., 2., 7.})), {2}, {});
  expect_values(middle(tensor({1., -1., 2.})), {1.5}, {});
  EXPECT_CONTAINS(error_of([&] { middle(tensor({-1.})); }), "median: ");
}

TEST(BooleanMask, Errors) {
  Tensor x = zeros({2, 3});
  EXPECT_CONTAINS(error_of([&] { boolean_mask(x, tensor({1, 0})); }), "boolean_mask: 'mask' is i32, not bool");
  EXPECT_CONTAINS(error_of([&] { boolean_mask(x, tensor(true)); }), "boolean_mask: 'mask' is a scalar");
  EXPECT_CONTAINS(error_of([&] {
                    boolean_mask(x, tensor({true, false, true}));
                  }),
                  "boolean_mask: sizes of axis 0 of 'x' and axis 0 of 'mask', 2 and 3 do not agree");
  EXPECT_CONTAINS(error_of([&] { boolean_mask(x, x > 0, 1); }),
                  "boolean_mask: 'mask' has 2 axes, 'x' has 1 from axis 1 on");
  EXPECT_CONTAINS(error_of([&] { boolean_mask(x, tensor({true}), 2); }), "boolean_mask: axis 2 is out of range");
  EXPECT_CONTAINS(error_of([&] { boolean_mask(tensor(1.f), tensor({true})); }), "boolean_mask: a scalar has no axes");
}

TEST(Positions, OfElementsThatAreNotZero) {
  Tensor x = tensor({{0, 7}, {8, 0}, {0, 9}});
  expect_values(argwhere(x), {0, 1, 1, 0, 2, 1}, {3, 2});
  expect_values(flatnonzero(x), {1, 2, 5}, {3});
  expect_values(flatnonzero(zeros({0})), {}, {0});
  expect_values(flatnonzero(tensor(3)), {0}, {1});
  expect_one_trace(
      [](Tensors t) {
        return Tensors{argwhere(t[0] > 0), flatnonzero(t[0] > 0)};
      },
      {{uneven({4, 3})}, {uneven({1, 1})}, {uneven({0, 2})}, {uneven({20, 20})}});
}

constexpr UniqueOptions everything{.index = true, .inverse = true, .counts = true};
Tensors parts(const Unique& u) { return {u.values, u.index, u.inverse, u.counts}; }

TEST(UniqueOf, ValuesIndexInverseCounts) {
  Unique u = unique_with(tensor({3., nan_value, -0., 1., 3., nan_value, 0., 1., infinity}), everything);
  expect_values(u.values, {0, 1, 3, infinity, nan_value}, {5});
  expect_values(u.index, {2, 3, 0, 8, 1}, {5});
  expect_values(u.inverse, {2, 4, 0, 1, 2, 4, 0, 1, 3}, {9});
  expect_values(u.counts, {2, 2, 2, 1, 2}, {5});
  u = unique_with(tensor({{3, 1, 3}, {2, 3, 1}}), everything);
  expect_values(u.values, {1, 2, 3}, {3});
  expect_values(u.index, {1, 3, 0}, {3});
  expect_values(u.inverse, {2, 0, 2, 1, 2, 0}, {2, 3});
  expect_values(u.counts, {2, 1, 3}, {3});
  expect_values(unique(tensor({3, 1, 3, 2})), {1, 2, 3}, {3});
  expect_values(unique(tensor(4)), {4}, {1});
  u = unique_with(zeros({0, 2}), everything);
  for (const Tensor& part : {u.values, u.index, u.counts}) EXPECT_EQ(part.shape().sizes(), Sizes{0});
  EXPECT_EQ(u.inverse.shape().sizes(), (Sizes{0, 2}));
  EXPECT_FALSE(unique_with(tensor({1, 2}), {.counts = true}).index.defined());
  for (DType dtype : {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    u = unique_with(cast(tensor({1, 0, 1, 1}), dtype), everything);
    EXPECT_EQ(u.values.dtype(), dtype);
    expect_values(u.values, {0, 1}, {2});
    expect_values(u.counts, {1, 3}, {2});
  }
  // Both ends of an integer type.
  expect_values(unique(tensor({INT64_MAX, INT64_MIN, INT64_MAX})), {-9223372036854775808., 9223372036854775807.}, {2});
}

TEST(UniqueOf, TracedAtAllSizesUnderATapeAndInBranches) {
  Tensor repeated = round(uneven({60})), nans = uneven({9}) / cast(arange(9) % 2, f64) * 0;
  expect_one_trace([](Tensors t) { return parts(unique_with(t[0], everything)); },
                   {{repeated}, {uneven({1})}, {zeros({0}, f64)}, {nans}, {zeros({5}, f64)}, {uneven({1000})}});
  expect_one_trace(
      [](Tensors t) {
        Unique u = unique_with(t[0], everything);
        return Tensors{gather(u.values, u.inverse), sum(u.counts), cumsum(u.values)};
      },
      {{reshape(repeated, {6, 10})}, {uneven({1, 1})}, {uneven({0, 4})}});
  expect_gradient([](Tensors t) { return square(unique(t[0])); }, {uneven({6})});
  expect_one_trace(
      [](Tensors t) {
        Tensor out = zeros({}, f64);
        if (max(t[0]) > 2.5) out = sum(unique(t[0]) * 2);
        return Tensors{out};
      },
      {{repeated}, {uneven({3})}, {uneven({1})}, {repeated[range(0, 20)]}});
}

TEST(Select, FirstConditionThatHolds) {
  Tensor first = tensor({true, false, false}), second = tensor({true, true, false});
  Tensor out = select({first, second}, {tensor({1, 2, 3}), tensor({10, 20, 30})}, -1);
  EXPECT_EQ(out.dtype(), i32);
  expect_values(out, {1, 20, -1}, {3});
  expect_values(select({first}, {tensor({{1.}, {2.}})}, tensor({7., 8., 9.})), {1, 8, 9, 2, 8, 9}, {2, 3});
  expect_one_trace(
      [](Tensors t) {
        return Tensors{select({t[0] > 1, t[0] > 0}, {t[0] * 2, t[0] * 3}, 5.)};
      },
      {{uneven({5})}, {uneven({1})}, {uneven({0})}, {uneven({33})}});
  expect_gradient(
      [](Tensors t) {
        return select({t[0] > 1, t[0] > 0}, {t[0] * 2, square(t[0])}, t[0] * 7);
      },
      {uneven({7})});
  EXPECT_CONTAINS(error_of([&] { select({first}, {tensor(1), tensor(2)}, 0); }), "select: 1 conditions for 2 values");
  EXPECT_CONTAINS(error_of([&] { select({}, {}, 0); }), "select: there are no conditions");
  EXPECT_CONTAINS(error_of([&] {
                    select({tensor({1, 0})}, {tensor(1)}, 0);
                  }),
                  "select: condition 0 is i32[2], not bool");
  EXPECT_CONTAINS(error_of([&] { select({first}, {tensor({1, 2})}, 0); }), "select: ");
}

TEST(GatherNd, ElementsSlicesAndNothing) {
  Tensor x = counting({2, 3, 2});
  expect_values(gather_nd(x, tensor({{1, 0, 1}, {0, 2, 0}})), {7, 4}, {2});
  expect_values(gather_nd(x, tensor({{1, 2}, {0, 0}, {1, 2}})), {10, 11, 0, 1, 10, 11}, {3, 2});
  expect_values(gather_nd(x, tensor({{{1}}, {{0}}})), {6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5}, {2, 1, 3, 2});
  expect_values(gather_nd(x, tensor({1, 1})), {8, 9}, {2});
  expect_values(gather_nd(tensor({5., 6.}), zeros({3, 0}, i32)), {5, 6, 5, 6, 5, 6}, {3, 2});
  expect_values(gather_nd(x, zeros({0, 2}, i64)), {}, {0, 2});
  for (DType index : {u8, i8, i16, i32, i64}) expect_values(gather_nd(x, cast(tensor({{1, 0, 1}}), index)), {7}, {1});
  expect_one_trace(
      [](Tensors t) {
        return Tensors{gather_nd(t[0], stack({t[1], t[2]}, -1))};
      },
      {{uneven({3, 4, 2}), tensor({0, 2}), tensor({3, 1})},
       {uneven({1, 1, 1}), tensor({0}), tensor({0})},
       {uneven({5, 7, 0}), tensor({4, 2, 0}), tensor({6, 0, 1})},
       {uneven({2, 2, 17}), zeros({0}, i32), zeros({0}, i32)}});
  // Indices as an argument: how many components they have is a fact, how many of them there are is none.
  expect_one_trace([](Tensors t) { return Tensors{gather_nd(t[0], t[1])}; },
                   {{uneven({3, 4}), tensor({{0, 1}, {2, 3}})}, {uneven({2, 9}), tensor({{1, 8}})}});
  expect_gradient(
      [](Tensors t) {
        return gather_nd(square(t[0]), tensor({{1, 2}, {0, 0}, {1, 2}}));
      },
      {uneven({2, 3, 2})});
  EXPECT_CONTAINS(error_of([&] {
                    gather_nd(x, tensor({{0, 0}, {1, 3}}));
                  }),
                  "gather_nd: component 1 of the indices, 3 at flat position");
  EXPECT_CONTAINS(error_of([&] { gather_nd(x, tensor({{-1, 0}})); }), "gather_nd: component 0 of the indices, -1 at");
  EXPECT_CONTAINS(error_of([&] {
                    gather_nd(x, zeros({2, 4}, i32));
                  }),
                  "gather_nd: 'indices' have 4 components, more than the 3 axes of 'x'");
  EXPECT_CONTAINS(error_of([&] { gather_nd(x, tensor({{0.f}})); }), "gather_nd: 'indices' are f32, not integers");
  EXPECT_CONTAINS(error_of([&] { gather_nd(x, tensor(1)); }), "gather_nd: 'indices' have no axis");
}

TEST(ScatterNd, EveryWayToCombine) {
  Tensor x = counting({2, 3}, 1), at = tensor({{1, 0}, {0, 2}, {1, 0}}), updates = tensor({5., -2., 7.});
  expect_values(scatter_nd(x, at, updates), {1, 2, -2, 7, 5, 6}, {2, 3});
  expect_values(scatter_nd(x, at, updates, {.combine = ScatterCombine::add}), {1, 2, 1, 16, 5, 6}, {2, 3});
  expect_values(scatter_nd(x, at, updates, {.combine = ScatterCombine::multiply}), {1, 2, -6, 140, 5, 6}, {2, 3});
  expect_values(scatter_nd(x, at, updates, {.combine = ScatterCombine::min}), {1, 2, -2, 4, 5, 6}, {2, 3});
  expect_values(scatter_nd(x, at, updates, {.combine = ScatterCombine::max}), {1, 2, 3, 7, 5, 6}, {2, 3});
  expect_values(scatter_nd(x, tensor({{1}}), tensor({{7., 8., 9.}})), {1, 2, 3, 7, 8, 9}, {2, 3});
  expect_values(scatter_nd(x, tensor({0, 1}), tensor(9.)), {1, 9, 3, 4, 5, 6}, {2, 3});
  expect_values(scatter_nd(x, zeros({1, 0}, i32), reshape(x, {1, 2, 3}) * 2), {2, 4, 6, 8, 10, 12}, {2, 3});
  expect_values(scatter_nd(x, zeros({0, 2}, i32), zeros({0}, f64)), numbers_of(x), {2, 3});
  for (int combine = 0; combine < 5; ++combine) {
    PutOptions options{static_cast<ScatterCombine>(combine)};
    expect_one_trace([=](Tensors t) { return Tensors{scatter_nd(t[0], t[1], t[2], options)}; },
                     {{uneven({3, 4, 2}), tensor({{0, 1}, {2, 3}, {0, 1}}), uneven({3, 2})},
                      {uneven({1, 1, 1}), tensor({{0, 0}}), uneven({1, 1}, 3)},
                      {uneven({2, 5, 17}), tensor({{0, 1}, {1, 4}}), uneven({2, 17}, 9)}});
    expect_gradient([&](Tensors t) { return scatter_nd(t[0], at, t[1], options); }, {uneven({2, 3}), uneven({3}, 9)},
                    1e-6);
  }
  EXPECT_CONTAINS(
      error_of([&] {
        scatter_nd(x, tensor({{2, 0}}), tensor({1.}));
      }),
      "scatter_nd: component 0 of the indices, 2 at flat position 0 is not one of the 2 positions of axis 0");
  EXPECT_CONTAINS(error_of([&] {
                    scatter_nd(x, tensor({{1, 0}}), tensor({{1.}}));
                  }),
                  "scatter_nd: 'updates' have rank 2, not 1");
  EXPECT_CONTAINS(error_of([&] {
                    scatter_nd(x, tensor({{1, 0}}), tensor({1., 2.}));
                  }),
                  "scatter_nd: sizes of axis 0 of 'updates' and what is indexed, 2 and 1 do not agree");
  EXPECT_CONTAINS(error_of([&] { scatter_nd(x, tensor({{1, 0}}), tensor({1})); }), "scatter_nd: ");
}

TEST(Isin, ValuesAmongOthers) {
  Tensor x = tensor({0., nan_value, 3., 1., -0.}), values = tensor({3., 0., nan_value});
  expect_values(isin(x, values), {1, 0, 1, 0, 1}, {5});
  expect_values(isin(x, values, {.invert = true}), {0, 1, 0, 1, 0}, {5});
  expect_values(isin(tensor({{1, 2}, {3, 4}}), tensor({{4}, {1}})), {1, 0, 0, 1}, {2, 2});
  expect_values(isin(3, tensor({1.f, 3.f})), {1}, {});
  expect_values(isin(tensor({1, 2}), zeros({0}, i32)), {0, 0}, {2});
  expect_values(isin(zeros({0}), tensor({1.f})), {}, {0});
  EXPECT_EQ(isin(x, values).dtype(), bool_);
  for (DType dtype : {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64})
    expect_values(isin(cast(tensor({0, 1}), dtype), cast(tensor({1, 1}), dtype)), {0, 1}, {2});
  expect_one_trace(
      [](Tensors t) { return Tensors{isin(t[0], t[1])}; },
      {{round(uneven({9})), tensor({1., 2.})}, {uneven({1}), uneven({1})}, {uneven({70}), zeros({0}, f64)}});
}

TEST(Close, ElementsAndAll) {
  Tensor x = tensor({1., 1., infinity, infinity, 1., nan_value, -infinity});
  Tensor y = tensor({1 + 1e-6, 1.1, infinity, 1., infinity, nan_value, infinity});
  expect_values(isclose(x, y), {1, 0, 1, 0, 0, 0, 0}, {7});
  expect_values(isclose(x, y, {.rtol = 0.2, .equal_nan = true}), {1, 1, 1, 0, 0, 1, 0}, {7});
  expect_values(isclose(x, y, {.rtol = 0, .atol = 1e-7}), {0, 0, 1, 0, 0, 0, 0}, {7});
  expect_values(isclose(cast(tensor({1, 255}), u8), cast(tensor({2, 255}), u8)), {0, 1}, {2});
  expect_values(isclose(tensor({1.f, 2.f}), 1), {1, 0}, {2});
  expect_values(isclose(1.0, tensor({1.f, 2.f})), {1, 0}, {2});
  EXPECT_FALSE(allclose(x, y).item<bool>());
  EXPECT_TRUE(allclose(tensor({1.f, 2.f}), tensor({1.000001f, 2.f})).item<bool>());
  EXPECT_TRUE(allclose(zeros({0}), zeros({0})).item<bool>());
  EXPECT_TRUE(allclose(zeros({3, 2}), 0).item<bool>());
  EXPECT_TRUE(isclose(cast(tensor({1.f}), f16), cast(tensor({1.f}), f16)).item<bool>());
  expect_one_trace(
      [](Tensors t) {
        return Tensors{isclose(t[0], t[1]), allclose(t[0], t[1])};
      },
      {{uneven({4}), uneven({4})}, {uneven({1}), uneven({1}, 2)}, {uneven({0}), uneven({0})}});
  EXPECT_CONTAINS(error_of([&] { allclose(x, zeros({3})); }), "allclose: ");
}

TEST(ArrayEqual, ShapesAndElements) {
  EXPECT_TRUE(array_equal(tensor({1, 2}), tensor({1.f, 2.f})).item<bool>());
  EXPECT_FALSE(array_equal(tensor({1, 2}), tensor({1, 3})).item<bool>());
  EXPECT_FALSE(array_equal(zeros({2, 1}), zeros({1, 2})).item<bool>());
  EXPECT_FALSE(array_equal(zeros({2}), zeros({2, 1})).item<bool>());
  EXPECT_TRUE(array_equal(zeros({0}), zeros({0})).item<bool>());
  Tensor nan = tensor({nan_value, 1.});
  EXPECT_FALSE(array_equal(nan, nan).item<bool>());
  EXPECT_TRUE(array_equal(nan, nan, {.equal_nan = true}).item<bool>());
  // Shapes that are equal are one trace, those that differ another.
  expect_one_trace([](Tensors t) { return Tensors{array_equal(t[0], t[1])}; },
                   {{uneven({4}), uneven({4})}, {uneven({7}), uneven({7}, 1)}, {uneven({4}), uneven({5})}}, 2);
}

TEST(NanToNum, EveryKind) {
  const double largest = std::numeric_limits<float>::max();
  Tensor x = tensor({nan_value, infinity, -infinity, 1.});
  expect_values(nan_to_num(cast(x, f32)), {0, largest, -largest, 1}, {4});
  expect_values(nan_to_num(x, {.nan = 5, .posinf = 6, .neginf = -6}), {5, 6, -6, 1}, {4});
  expect_values(nan_to_num(cast(x, f16)), {0, 65504, -65504, 1}, {4});
  expect_values(nan_to_num(cast(x, bf16)), {0, 0x1.fep127, -0x1.fep127, 1}, {4});
  EXPECT_EQ(nan_to_num(tensor({1, 2})).dtype(), i32);
  expect_one_trace([](Tensors t) { return Tensors{nan_to_num(t[0] / t[1])}; },
                   {{uneven({4}), zeros({4}, f64)}, {uneven({1}), uneven({1})}, {uneven({0}), uneven({0})}});
  expect_gradient([](Tensors t) { return nan_to_num(square(t[0])); }, {uneven({4})});
}

}  // namespace
}  // namespace stet
