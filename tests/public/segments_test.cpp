// Rows combined by their segment, counts of values, histograms. Expected values are NumPy's and TensorFlow's.
#include "composites.h"

namespace stet {
namespace {

using Segment = Tensor (*)(In, In, const Dim&);
constexpr Segment all_segments[] = {segment_sum, segment_mean, segment_max, segment_min, segment_prod};

const double lowest = std::numeric_limits<double>::lowest(), highest = std::numeric_limits<double>::max();

TEST(Segments, OfAVectorWithAnEmptySegment) {
  Tensor data = tensor({1., 2., 3., 4., -5.}), ids = tensor({2, 0, 2, 0, 3});
  expect_values(segment_sum(data, ids, 4), {6, 0, 4, -5}, {4});
  expect_values(segment_mean(data, ids, 4), {3, 0, 2, -5}, {4});
  expect_values(segment_max(data, ids, 4), {4, lowest, 3, -5}, {4});
  expect_values(segment_min(data, ids, 4), {2, highest, 1, -5}, {4});
  expect_values(segment_prod(data, ids, 4), {8, 1, 3, -5}, {4});
}

TEST(Segments, OfRowsAndOfIdsWithTwoAxes) {
  Tensor data = counting({2, 3, 2}), ids = tensor({{1, 0, 1}, {1, 1, 0}});
  expect_values(segment_sum(data, ids, 2), {12, 14, 18, 22}, {2, 2});
  expect_values(segment_mean(data, ids, 2), {6, 7, 4.5, 5.5}, {2, 2});
  expect_values(segment_max(data, ids, 2), {10, 11, 8, 9}, {2, 2});
  Tensor flat = tensor({0, 1});
  expect_values(segment_sum(data, flat, 3), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 0, 0, 0}, {3, 3, 2});
  // An id for everything.
  expect_values(segment_sum(tensor({1., 2.}), tensor(1), 2), {0, 0, 1, 2}, {2, 2});
}

TEST(Segments, InfinitiesAndNaN) {
  Tensor data = tensor({-infinity, infinity, nan_value, 1.}), ids = tensor({0, 1, 2, 2});
  expect_values(segment_max(data, ids, 4), {-infinity, infinity, nan_value, lowest}, {4});
  expect_values(segment_min(data, ids, 4), {-infinity, infinity, nan_value, highest}, {4});
}

TEST(Segments, EveryType) {
  Tensor ids = tensor({1, 1, 0});
  for (DType dtype : {u8, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    Tensor data = cast(tensor({2, 3, 4}), dtype);
    for (DType index : {u8, i8, i16, i32, i64}) {
      Tensor sums = segment_sum(data, cast(ids, index), 2);
      EXPECT_EQ(sums.dtype(), dtype);
      expect_values(sums, {4, 5}, {2});
    }
    expect_values(segment_prod(data, ids, 2), {4, 6}, {2});
    Tensor means = segment_mean(data, ids, 2), empty = segment_max(data, ids, 3), high = segment_min(data, ids, 3);
    EXPECT_EQ(means.dtype(), is_floating(dtype) ? dtype : f32);
    expect_values(means, {4, 2.5}, {2});
    EXPECT_EQ(empty.item<double>({1}), 3);
    // The ends of the type, which have nothing beyond them but infinities.
    const double low = empty.item<double>({2}), top = high.item<double>({2});
    Numbers lows{0, -128, -32768, -2147483648., -9223372036854775808., -65504, -0x1.fep127, -0x1.fffffep127, lowest};
    const auto number = static_cast<std::size_t>(dtype) - 1;
    EXPECT_EQ(low, lows[number]);
    EXPECT_EQ(top, dtype == u8 ? 255 : is_floating(dtype) ? -low : numbers_of(cast(cast(-low - 1, i64), f64))[0]);
  }
}

TEST(Segments, EmptyAndSizeOne) {
  for (Segment segment : all_segments) {
    EXPECT_EQ(segment(zeros({0, 3}), zeros({0}, i32), 0).shape().sizes(), (Sizes{0, 3}));
    EXPECT_EQ(segment(zeros({4, 0}), zeros({4}, i32), 2).shape().sizes(), (Sizes{2, 0}));
    expect_values(segment(tensor({7.}), tensor({0}), 1), {7}, {1});
  }
  expect_values(segment_sum(zeros({0}), zeros({0}, i64), 2), {0, 0}, {2});
  expect_values(segment_mean(zeros({0}), zeros({0}, i64), 2), {0, 0}, {2});
}

TEST(Segments, OneTraceForAllSizes) {
  for (Segment segment : all_segments)
    expect_one_trace([segment](Tensors t) { return Tensors{segment(t[0], t[1], t[2].dim(0))}; },
                     {{uneven({5, 3}), tensor({1, 0, 1, 3, 0}), zeros({4})},
                      {uneven({1, 1}), tensor({0}), zeros({1})},
                      {uneven({0, 2}), zeros({0}, i32), zeros({2})},
                      {uneven({70, 17}), cast(arange(70), i32) % 6, zeros({9})}});
  // Segments as many as there are distinct ids: their number depends on values.
  expect_one_trace(
      [](Tensors t) {
        Unique ids = unique_with(t[1], {.inverse = true});
        return Tensors{segment_sum(t[0], ids.inverse, ids.values.dim(0)), ids.values};
      },
      {{uneven({5, 3}), tensor({10, 70, 10, 30, 70})}, {uneven({2, 1}), tensor({4, 4})}});
}

TEST(Segments, Gradients) {
  Tensor ids = tensor({2, 0, 2, 1, 0}), with_empty = tensor({2, 0, 2, 0, 0});
  for (Segment segment : all_segments)
    expect_gradient([&](Tensors t) { return segment(t[0], ids, 3); }, {uneven({5, 2})}, 1e-6);
  for (Segment segment : {segment_sum, segment_mean, segment_prod})
    expect_gradient([&](Tensors t) { return segment(t[0], with_empty, 4); }, {uneven({5, 2})}, 1e-6);
}

TEST(Segments, Errors) {
  Tensor data = zeros({3, 2});
  std::string out = error_of([&] { segment_sum(data, tensor({0, 5, 1}), 3); });
  EXPECT_CONTAINS(out, "segment_sum: segment id 5 of row 1 is not one of the 3 segments");
  EXPECT_CONTAINS(out, "segments_test.cpp");
  EXPECT_CONTAINS(error_of([&] { segment_max(data, tensor({0, -1, 1}), 3); }), "segment_max: segment id -1 of row 1");
  EXPECT_CONTAINS(error_of([&] {
                    segment_mean(data, tensor({{0, 1}, {0, 1}, {7, 0}}), 3);
                  }),
                  "segment_mean: segment id 7 at flat position 4 is not one of the 3 segments");
  EXPECT_CONTAINS(error_of([&] {
                    segment_sum(data, tensor({0, 1}), 3);
                  }),
                  "segment_sum: sizes of axis 0 of 'data' and 'segment_ids', 3 and 2 do not agree");
  EXPECT_CONTAINS(error_of([&] {
                    segment_sum(data, tensor({0.f, 1.f, 2.f}), 3);
                  }),
                  "segment_sum: 'segment_ids' are f32, not integers");
  EXPECT_CONTAINS(error_of([&] {
                    segment_sum(tensor({1.f, 2.f}), zeros({2, 1}, i32), 3);
                  }),
                  "segment_sum: 'segment_ids' have rank 2, more than the 1 of 'data'");
  EXPECT_CONTAINS(error_of([&] {
                    segment_prod(data, tensor({0, 1, 2}), -1);
                  }),
                  "segment_prod: the number of segments -1 is negative");
  EXPECT_CONTAINS(error_of([&] { segment_sum(Tensor(), tensor({0}), 1); }),
                  "segment_sum: 'data' is an undefined tensor");
  Function f = function("f(x, ids)", [](Tensor x, Tensor ids) { return segment_sum(x, ids, x.dim(1)); });
  f(data, tensor({0, 1, 1}));
  EXPECT_CONTAINS(error_of([&] {
                    f(data, tensor({0, 1, 2}));
                  }),
                  "segment_sum: segment id 2 of row 2 is not one of the 2 segments");
}

TEST(Bincount, CountsAndWeights) {
  Tensor x = tensor({1, 0, 1, 5, 3, 1});
  expect_values(bincount(x, 6), {1, 3, 0, 1, 0, 1}, {6});
  expect_values(bincount(x, 2), {1, 3}, {2});
  expect_values(bincount(x, 0), {}, {0});
  EXPECT_EQ(bincount(x, 2).dtype(), i64);
  Tensor weights = tensor({.5, 1., 2., 3., 4., 5.});
  expect_values(bincount(x, 6, weights), {1, 7.5, 0, 4, 0, 3}, {6});
  EXPECT_EQ(bincount(x, 6, cast(weights, f16)).dtype(), f16);
  EXPECT_EQ(bincount(x, 6, x > 0).dtype(), i32);
  expect_values(bincount(tensor({{-1, 2}, {2, 0}}), 3), {1, 0, 2}, {3});
  expect_values(bincount(cast(tensor({200, 200}), u8), 201)[range(199, 201)], {0, 2}, {2});
  expect_values(bincount(zeros({0}, i32), 2), {0, 0}, {2});
  expect_one_trace(
      [](Tensors t) {
        return Tensors{bincount(t[0], t[1].dim(0)), bincount(t[0], t[1].dim(0), cast(t[0], f32))};
      },
      {{x, zeros({4})}, {tensor({0}), zeros({1})}, {zeros({0}, i32), zeros({0})}, {x % 3, zeros({17})}});
  expect_gradient([&](Tensors t) { return bincount(x, 4, t[0]); }, {uneven({6})});
  EXPECT_CONTAINS(error_of([&] { bincount(tensor({1.f}), 3); }), "bincount: 'x' are f32, not integers");
  EXPECT_CONTAINS(error_of([&] { bincount(x, -3); }), "bincount: the length -3 is negative");
  EXPECT_CONTAINS(error_of([&] { bincount(x, 3, zeros({5})); }),
                  "bincount: sizes of axis 0 of 'x' and 'weights', 6 and 5 do not agree");
  EXPECT_CONTAINS(error_of([&] { bincount(x, 3, zeros({6, 1})); }), "bincount: 'weights' have rank 2, not 1 as 'x'");
}

const Numbers values{0, 1, 1, 2.5, 4, -1, 9, 4, nan_value};

TEST(HistogramOf, Counts) {
  Tensor x = tensor(values), numbers = x[range(0, 8)];
  Histogram h = histogram(x, 4, {.low = 0, .high = 4});
  expect_values(h.counts, {1, 2, 1, 2}, {4});
  expect_values(h.edges, {0, 1, 2, 3, 4}, {5});
  EXPECT_EQ(h.counts.dtype(), i64);
  h = histogram(numbers, 5);
  expect_values(h.counts, {2, 3, 2, 0, 1}, {5});
  expect_values(h.edges, {-1, 1, 3, 5, 7, 9}, {6});
  expect_values(histogram_bin_edges(numbers, 5), {-1, 1, 3, 5, 7, 9}, {6});
  expect_values(histogram(numbers, 5, {.weights = counting({8}, 0.5)}).counts, {6, 7.5, 12, 0, 6.5}, {5});
  expect_values(histogram(numbers, 5, {.density = true}).counts, {0.125, 0.1875, 0.125, 0, 0.0625}, {5});
  h = histogram(reshape(numbers, {2, 4}), tensor({0, 1, 2, 4}));
  expect_values(h.counts, {1, 2, 3}, {3});
  expect_values(h.edges, {0, 1, 2, 4}, {4});
  h = histogram(zeros({0}, f64), 3);
  expect_values(h.counts, {0, 0, 0}, {3});
  expect_values(h.edges, {0, 1 / 3., 2 / 3., 1}, {4});
  h = histogram(tensor({2., 2.}), 2);
  expect_values(h.counts, {0, 2}, {2});
  expect_values(h.edges, {1.5, 2, 2.5}, {3});
  h = histogram(tensor({1, 2, 2, 7}), 3);
  expect_values(h.counts, {3, 0, 1}, {3});
  expect_values(h.edges, {1, 3, 5, 7}, {4});
  EXPECT_EQ(h.edges.dtype(), f64);
  for (DType dtype : {f16, bf16, f32}) {
    h = histogram(cast(numbers, dtype), 5);
    EXPECT_EQ(h.edges.dtype(), f32);
    expect_values(h.counts, {2, 3, 2, 0, 1}, {5});
  }
}

TEST(HistogramOf, OneTraceForAllSizesAndGradients) {
  expect_one_trace(
      [](Tensors t) {
        Histogram a = histogram(t[0], t[1].dim(0)), b = histogram(t[0], 3, {.low = -1, .high = 1, .density = true}),
                  c = histogram(t[0], t[1]);
        return Tensors{a.counts, a.edges, b.counts, b.edges, c.counts, histogram_bin_edges(t[0], 2)};
      },
      {{uneven({9}), tensor({-1., 0., 2.})},
       {uneven({1}), tensor({-9., 9.})},
       {uneven({0}), tensor({1., 2.})},
       {uneven({500}), tensor({-3., -2., 0., 0.5, 3.})}});
  Tensor x = uneven({7});
  expect_gradient([&](Tensors t) { return histogram(x, 3, {.weights = t[0]}).counts; }, {uneven({7}, 3)});
  expect_gradient([&](Tensors t) { return histogram(t[0], 3).edges; }, {x});
}

TEST(HistogramOf, Errors) {
  Tensor x = tensor({1.f, 2.f});
  EXPECT_CONTAINS(error_of([&] { histogram(x, 0); }), "histogram: the number of bins is 0");
  EXPECT_CONTAINS(error_of([&] { histogram(x, 2.5); }), "histogram: the number of bins is no integer");
  EXPECT_CONTAINS(error_of([&] { histogram(x, 2, {.low = 3, .high = 1}); }),
                  "histogram: the range from 3 to 1 is backwards");
  EXPECT_CONTAINS(error_of([&] { histogram(x, 2, {.low = nan_value}); }), "histogram: the range ends at nan");
  EXPECT_CONTAINS(error_of([&] { histogram(x, zeros({2, 2})); }), "histogram: 'bins' have rank 2");
  EXPECT_CONTAINS(error_of([&] { histogram(x, tensor({1.f})); }), "histogram: the edges are 1");
  EXPECT_CONTAINS(error_of([&] { histogram(x, 2, {.weights = zeros({3})}); }),
                  "histogram: sizes of axis 0 of 'x' and 'weights', 2 and 3 do not agree");
  EXPECT_CONTAINS(error_of([&] { histogram_bin_edges(x, -1); }), "histogram_bin_edges: the number of bins is -1");
}

TEST(Digitize, BothSides) {
  Tensor x = tensor({0.5, 1., 7., 2., nan_value}), edges = tensor({1., 2.});
  expect_values(digitize(x, edges), {0, 1, 2, 2, 2}, {5});
  expect_values(digitize(x, edges, {.right = true}), {0, 0, 2, 1, 2}, {5});
  expect_values(digitize(tensor({{1, 3}}), tensor({0.5f, 2.5f})), {1, 2}, {1, 2});
  expect_values(digitize(2, tensor({1.f, 2.f})), {2}, {});
  expect_values(digitize(x, zeros({0}, f64)), {0, 0, 0, 0, 0}, {5});
  expect_one_trace([](Tensors t) { return Tensors{digitize(t[0], t[1])}; },
                   {{x, edges}, {zeros({0}, f64), tensor({1.})}, {uneven({33}), tensor({-1., 0., 1.})}});
  EXPECT_CONTAINS(error_of([&] { digitize(x, zeros({2, 2}, f64)); }), "digitize: 'edges' have rank 2, not 1");
}

}  // namespace
}  // namespace stet
