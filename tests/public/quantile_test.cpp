// Quantiles, differences of neighbours, interpolation. Expected values are NumPy's.
#include "composites.h"

namespace stet {
namespace {

Tensor table() { return tensor({{3., 1., 2., 9.}, {4., 8., -2., 0.5}, {7., 7., 1., 3.}}); }
/// counting ** 1.5 % 7
Tensor block() { return mod(pow(counting({2, 3, 4}), 1.5), 7.); }

TEST(Median, OverAxes) {
  Tensor m = table();
  expect_values(median(m), {3}, {});
  expect_values(median(m, 0), {4, 7, 1, 3}, {4});
  expect_values(median(m, 1), {2.5, 2.25, 5}, {3});
  expect_values(median(m, {0, 1}), {3}, {});
  expect_values(median(m, 0, {.keepdims = true}), {4, 7, 1, 3}, {1, 4});
  const Numbers outer{3.1058152697906847, 2.5901699437494736, 5.211618155094044};
  expect_values(median(block(), {0, 2}), outer, {3});
  expect_values(median(block(), {2, 0}, {.keepdims = true}), outer, {1, 3, 1});
  expect_values(median(tensor({1., nan_value, 3.})), {nan_value}, {});
  expect_values(median(tensor({infinity, infinity})), {infinity}, {});
  expect_values(median(tensor({-infinity, 1., 2., infinity})), {1.5}, {});
  expect_values(median(tensor({1e308, 1.7e308, 1.6e308})), {1.6e308}, {});
  expect_values(median(tensor(5.)), {5}, {});
  expect_values(median(zeros({0, 3}), 1), {}, {0});
  EXPECT_EQ(median(tensor({1, 2})).dtype(), f32);
  for (DType dtype : {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64})
    expect_values(median(cast(tensor({0, 1, 1, 0}), dtype)), {0.5}, {});
}

TEST(Median, WithoutNaN) {
  Tensor x = tensor({{1., nan_value, 3.}, {nan_value, nan_value, nan_value}, {5., nan_value, nan_value}});
  expect_values(nanmedian(x, 1), {2, nan_value, 5}, {3});
  expect_values(nanmedian(x), {3}, {});
  expect_values(nanmedian(table(), 1, {.keepdims = true}), {2.5, 2.25, 5}, {3, 1});
  expect_gradient([](Tensors t) { return nanmedian(t[0], 1); }, {uneven({3, 4})});
}

TEST(Quantile, AxesMethodsAndManyAtOnce) {
  Tensor m = table();
  expect_values(quantile(m, 0.3), {1.3}, {});
  expect_values(quantile(m, 0.3, 0), {3.6, 4.6, -0.2, 2}, {4});
  expect_values(quantile(m, 0.3, 1), {1.9, 0.25, 2.8}, {3});
  const Numbers many{1.3, -1.25, 1.6, 2.5, 2.25, 5, 7.2, 6.8, 7};
  Tensor three = tensor({.1, .5, .9}), four = tensor({.1, .4, .5, 1.});
  expect_values(quantile(m, three, 1), many, {3, 3});
  expect_values(quantile(m, three, 1, {.keepdims = true}), many, {3, 3, 1});
  const std::pair<QuantileMethod, Numbers> methods[] = {
      {QuantileMethod::linear, {1.3, -1.25, 1.6, 2.2, 1.2, 3.8, 2.5, 2.25, 5, 9, 8, 7}},
      {QuantileMethod::lower, {1, -2, 1, 2, 0.5, 3, 2, 0.5, 3, 9, 8, 7}},
      {QuantileMethod::higher, {2, 0.5, 3, 3, 4, 7, 3, 4, 7, 9, 8, 7}},
      {QuantileMethod::midpoint, {1.5, -0.75, 2, 2.5, 2.25, 5, 2.5, 2.25, 5, 9, 8, 7}},
      {QuantileMethod::nearest, {1, -2, 1, 2, 0.5, 3, 3, 4, 7, 9, 8, 7}}};
  for (const auto& [method, expected] : methods) {
    expect_values(quantile(m, four, 1, {.method = method}), expected, {4, 3});
    expect_gradient([&](Tensors t) { return quantile(t[0], three, 0, {.method = method}); }, {uneven({4, 2})});
  }
  expect_values(percentile(m, tensor({25, 75})), {1, 7}, {2});
  expect_values(percentile(m, 30, 0), {3.6, 4.6, -0.2, 2}, {4});
  Tensor square = tensor({{.2, .3}, {.6, 1.}});
  expect_values(quantile(block(), square, {0, 1}),
                {1.0, 1.0, 2.8284271247461903, 2.0947501931112527, 1.0, 2.5901699437494736, 3.1058152697906847,
                 3.3075046852816925, 1.6274169979695223, 4.872166581031863, 3.622776601683796, 5.196152422706632,
                 6.569219381653056, 6.0, 6.367532368147124, 5.819079927272796},
                {2, 2, 4});
  expect_values(quantile(tensor({1., nan_value, 3.}), tensor({0., 1.})), {nan_value, nan_value}, {2});
  expect_values(quantile(tensor({infinity, 1., infinity}), tensor({0., 0.9, 1.})), {1, nan_value, infinity}, {3});
  expect_values(quantile(tensor({7.}), 0.4), {7}, {});
  expect_values(quantile(m, zeros({0}, f64), 1), {}, {0, 3});
  EXPECT_EQ(quantile(cast(m, f16), 0.25, 1).dtype(), f16);
}

TEST(Quantile, OneTraceForAllSizesAndGradients) {
  expect_one_trace(
      [](Tensors t) {
        return Tensors{median(t[0]),
                       median(t[0], 0),
                       nanmedian(t[0], 1),
                       quantile(t[0], t[1], 0),
                       quantile(t[0], 0.3, {0, 1}),
                       percentile(t[0], 77, 1, {.method = QuantileMethod::nearest, .keepdims = true})};
      },
      {{uneven({4, 3}), tensor({0.2, 0.7})},
       {uneven({1, 1}), tensor({0.5})},
       {uneven({17, 33}), tensor({0., 0.1, 1.})},
       {uneven({2, 5}), zeros({0}, f64)}});
  for (int rows : {3, 4}) {
    expect_gradient([](Tensors t) { return median(t[0], 0); }, {uneven({rows, 3})});
    expect_gradient(
        [](Tensors t) {
          return quantile(t[0], t[1], {0, 1});
        },
        {uneven({rows, 3}), tensor({0.21, 0.73})}, 1e-6);
  }
}

TEST(Quantile, Errors) {
  Tensor m = table();
  EXPECT_CONTAINS(error_of([&] { quantile(m, 1.5); }), "quantile: the quantile 1.5 is not from 0 to 1");
  EXPECT_CONTAINS(error_of([&] { percentile(m, -1); }), "percentile: the quantile -1 is not from 0 to 100");
  EXPECT_CONTAINS(error_of([&] { quantile(m, nan_value); }), "quantile: the quantile nan is not from 0 to 1");
  EXPECT_CONTAINS(error_of([&] {
                    quantile(m, tensor({0.5, 1.5}));
                  }),
                  "quantile: position 16 of quantile 1 is not one of the 12 elements");
  EXPECT_CONTAINS(error_of([&] { median(zeros({0, 3}), 0); }), "median: an empty axis has no quantiles");
  EXPECT_CONTAINS(error_of([&] { quantile(zeros({0}), 0.5); }), "quantile: an empty axis has no quantiles");
  EXPECT_CONTAINS(error_of([&] { median(m, 2); }), "median: axis 2 is out of range");
  EXPECT_CONTAINS(error_of([&] { nanmedian(m, {0, 0}); }), "nanmedian: axis 0 is named twice");
  Function f = function("f(x)", [](Tensor x) { return median(x); });
  f(ones({3}));
  EXPECT_CONTAINS(error_of([&] { f(ones({0})); }), "median: an empty axis has no quantiles");
}

TEST(Diff, OrdersAndAxes) {
  Tensor squares = tensor({1, 4, 9, 16});
  expect_values(diff(squares), {3, 5, 7}, {3});
  expect_values(diff(squares, 2), {2, 2}, {2});
  expect_values(diff(squares, 5), {}, {0});
  expect_values(diff(squares, 0), {1, 4, 9, 16}, {4});
  expect_values(diff(table(), 1, 0), {1, 7, -4, -8.5, 3, -1, 3, 2.5}, {2, 4});
  expect_values(diff(table()), {-2, 1, 7, 4, -10, 2.5, 0, -6, 2}, {3, 3});
  Tensor flags = diff(tensor({true, false, false, true}));
  EXPECT_EQ(flags.dtype(), bool_);
  expect_values(flags, {1, 0, 1}, {3});
  expect_values(diff(zeros({0, 2}), 1, 0), {}, {0, 2});
  expect_one_trace(
      [](Tensors t) {
        return Tensors{diff(t[0]), diff(t[0], 2, 0)};
      },
      {{uneven({4, 3})}, {uneven({1, 1})}, {uneven({2, 0})}, {uneven({0, 2})}, {uneven({33, 17})}});
  expect_gradient([](Tensors t) { return diff(t[0], 2); }, {uneven({2, 5})});
  EXPECT_CONTAINS(error_of([&] { diff(squares, -1); }), "diff: differences taken -1 times");
  EXPECT_CONTAINS(error_of([&] { diff(squares, 1, 1); }), "diff: axis 1 is out of range");
  EXPECT_CONTAINS(error_of([&] { diff(tensor(1)); }), "diff: a scalar has no axes");
}

TEST(Interp, BetweenPointsAndOutside) {
  Tensor xp = tensor({0., 1., 3.}), fp = tensor({10., 20., -4.});
  expect_values(interp(tensor({-1., 0., .5, 1., 2.5, 3., 9., nan_value}), xp, fp),
                {10, 10, 15, 20, 2, -4, -4, nan_value}, {8});
  expect_values(interp(tensor({-1., 0., .5, 9.}), xp, fp, {.left = -7, .right = 7}), {-7, 10, 15, 7}, {4});
  expect_values(interp(tensor({1., 2.}), tensor({1.5}), tensor({4.})), {4, 4}, {2});
  expect_values(interp(0.5, cast(xp, f32), cast(fp, f32)), {15}, {});
  EXPECT_EQ(interp(0.5, cast(xp, f32), cast(fp, f32)).dtype(), f32);
  expect_values(interp(tensor({{1, 2}}), tensor({0, 4}), tensor({0, 8})), {2, 4}, {1, 2});
  expect_one_trace([](Tensors t) { return Tensors{interp(t[0], t[1], t[2])}; },
                   {{uneven({9}), xp, fp},
                    {uneven({1}), tensor({0.}), tensor({5.})},
                    {uneven({0}), xp, fp},
                    {uneven({50}), counting({20}, -10), uneven({20})}});
  expect_gradient([&](Tensors t) { return interp(t[0], t[1], t[2]); }, {tensor({-1., .3, 1.7, 5.}), xp, fp});
  EXPECT_CONTAINS(error_of([&] { interp(xp, xp, tensor({1.})); }),
                  "interp: sizes of 'xp' and 'fp', 3 and 1 do not agree");
  EXPECT_CONTAINS(error_of([&] { interp(xp, zeros({0}), zeros({0})); }), "interp: there are no points to go through");
  EXPECT_CONTAINS(error_of([&] { interp(xp, zeros({1, 2}), zeros({2})); }), "interp: 'xp' has rank 2 and 'fp' rank 1");
}

TEST(Trapezoid, EvenAndUnevenPlaces) {
  Tensor y = tensor({1., 2., 4.});
  expect_values(trapezoid(y), {4.5}, {});
  expect_values(trapezoid(y, -1, {.dx = 0.5}), {2.25}, {});
  expect_values(trapezoid(table(), 0), {9, 12, -0.5, 6.5}, {4});
  expect_values(trapezoid(table(), 1, {.x = tensor({0., 1., 3., 4.})}), {10.5, 11.25, 17}, {3});
  expect_values(trapezoid(table(), 1, {.x = broadcast_to(tensor({0., 1., 3., 4.}), {3, 4})}), {10.5, 11.25, 17}, {3});
  expect_values(trapezoid(tensor({3.})), {0}, {});
  expect_values(trapezoid(zeros({0})), {0}, {});
  expect_values(trapezoid(tensor({1, 2})), {1.5}, {});
  expect_one_trace(
      [](Tensors t) {
        return Tensors{trapezoid(t[0], 0), trapezoid(t[0], 1, {.x = t[1]})};
      },
      {{uneven({4, 3}), uneven({3})}, {uneven({1, 1}), uneven({1})}, {uneven({17, 33}), uneven({33})}});
  expect_gradient([](Tensors t) { return trapezoid(t[0], 0, {.x = t[1]}); }, {uneven({4, 2}), uneven({4})});
  EXPECT_CONTAINS(error_of([&] {
                    trapezoid(y, 0, {.x = tensor({1., 2.})});
                  }),
                  "trapezoid: numbers of values and of places, 2 and 3 do not agree");
  EXPECT_CONTAINS(error_of([&] {
                    trapezoid(y, 0, {.x = zeros({1, 3})});
                  }),
                  "trapezoid: 'x' has rank 2, neither 1 nor 1 as 'y'");
  EXPECT_CONTAINS(error_of([&] { trapezoid(y, 1); }), "trapezoid: axis 1 is out of range");
}

}  // namespace
}  // namespace stet
