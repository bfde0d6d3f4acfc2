// Brackets with tensors, masks and sizes; slices that begin where values say; updates of a part. Values are NumPy's.
#include <gtest/gtest.h>

#include <cmath>

#include "stet/stet.h"
#include "tests/public/expect_error.h"

namespace stet {
namespace {

using Longs = std::vector<std::int64_t>;

Tensor counted(const Shape& shape) { return reshape(arange(shape.element_count()), shape); }
Longs values(const Tensor& x) { return x.to_vector<std::int64_t>(); }
Longs sizes(const Tensor& x) {
  Longs out;
  for (int axis = 0; axis < x.rank(); ++axis) out.push_back(x.dim(axis).value());
  return out;
}

TEST(Indexing, ByTensorsOfPositions) {
  Tensor x = counted({3, 4});
  EXPECT_EQ(values(x[tensor({2, 0})]), (Longs{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(values(x[tensor({-1})]), (Longs{8, 9, 10, 11}));
  EXPECT_EQ(values(x[{Range{}, tensor({3, 3, 0})}]), (Longs{3, 3, 0, 7, 7, 4, 11, 11, 8}));
  EXPECT_EQ(values(x[{tensor({0, 2}), tensor({1, 3})}]), (Longs{1, 11}));
  // They broadcast against each other.
  Tensor grid = x[{tensor({{0}, {2}}), tensor({1, 3})}];
  EXPECT_EQ(sizes(grid), (Longs{2, 2}));
  EXPECT_EQ(values(grid), (Longs{1, 3, 9, 11}));
  // Beside a tensor a position is one, too.
  EXPECT_EQ(values(x[{1, tensor({1, 3})}]), (Longs{5, 7}));
  EXPECT_EQ(sizes(x[tensor({{0, 1}, {2, 0}})]), (Longs{2, 2, 4}));
}

TEST(Indexing, AxesOfPositionsStandWhereTheFirstStood) {
  Tensor x = counted({2, 3, 4, 5}), a = tensor({0, 1, 1}), b = tensor({2, 0, 1});
  EXPECT_EQ(sizes(x[{Range{}, a, b}]), (Longs{2, 3, 5}));
  EXPECT_EQ(sizes(x[{a, Range{}, b}]), (Longs{3, 3, 5}));
  EXPECT_EQ(sizes(x[{Range{}, a, Range{}, b}]), (Longs{3, 2, 4}));
  EXPECT_EQ(sizes(x[{ellipsis, a}]), (Longs{2, 3, 4, 3}));
  EXPECT_EQ(sizes(x[{0, Range{}, a}]), (Longs{3, 3, 5}));
  EXPECT_EQ(sizes(x[{newaxis, a, ellipsis, range(1, 3)}]), (Longs{1, 3, 3, 4, 2}));
  EXPECT_EQ((x[{Range{}, a, Range{}, b}].item<int>({1, 1, 2})), (x.item<int>({1, 1, 2, 0})));
  EXPECT_EQ((x[{a, Range{}, b}].item<int>({2, 1, 3})), (x.item<int>({1, 1, 1, 3})));
}

TEST(Indexing, ByMasks) {
  Tensor x = counted({3, 4});
  EXPECT_EQ(values(x[x % 3 == 0]), (Longs{0, 3, 6, 9}));
  EXPECT_EQ(values(x[tensor({true, false, true})]), (Longs{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(values(x[{Range{}, tensor({false, true, true, false})}]), (Longs{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(sizes(x[x > 100]), (Longs{0}));
  EXPECT_EQ(sizes(x[{tensor({false, false, false}), Range{}}]), (Longs{0, 4}));
}

TEST(Indexing, BySizes) {
  Tensor x = counted({6, 4});
  Dim half = x.dim(0) / 2;
  EXPECT_EQ(sizes(x[Range{.end = half}]), (Longs{3, 4}));
  EXPECT_EQ(values(x[{half, Range{.begin = x.dim(1) - 1}}]), (Longs{15}));
  EXPECT_EQ(sizes(x[range(half, x.dim(0) * 5)]), (Longs{3, 4}));
  EXPECT_EQ(sizes(x[range(x.dim(0), half)]), (Longs{0, 4}));
  Function f = function("f(x)", [](Tensor t) {
    Dim n = t.dim(0);
    return concat({t[range(n / 2, n)], t[Range{.end = n / 2}], t[Range{.begin = n - 1, .step = -1}]});
  });
  for (std::int64_t n : {6, 1, 9}) {
    Tensor got = f(counted({n, 2}));
    EXPECT_EQ(sizes(got), (Longs{2 * n, 2}));
    EXPECT_EQ(got.item<int>({0, 0}), n / 2 * 2);
    EXPECT_EQ(got.item<int>({n, 0}), (n - 1) * 2);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Indexing, TracedForAllSizes) {
  Function f = function("f(x, at)", [](Tensor x, Tensor at) { return x[{at, -1}] + sum(x[x > 2]); });
  for (int n : {5, 3, 8}) {
    Tensor x = cast(counted({n, 3}), f32), at = tensor({0, 2, -1, 1});
    EXPECT_EQ(f(x, at).to_vector<float>(), (x[{at, -1}] + sum(x[x > 2])).to_vector<float>());
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(Indexing, GradientsGoBackToWhereValuesCameFrom) {
  Tensor x = cast(counted({3, 2}), f32);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor y = sum(x[tensor({2, 2, 0})]), z = sum(x[{tensor({1, 1}), tensor({0, 1})}] * tensor({3.0f, 5.0f}));
  Tensor w = sum(square(x[x > 2]));
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (std::vector<float>{1, 1, 0, 0, 2, 2}));
  EXPECT_EQ(tape.gradient(z, x).to_vector<float>(), (std::vector<float>{0, 0, 3, 5, 0, 0}));
  EXPECT_EQ(tape.gradient(w, x).to_vector<float>(), (std::vector<float>{0, 0, 0, 6, 8, 10}));
}

TEST(Indexing, Errors) {
  Tensor x = counted({3, 4});
  std::string far = error_of([&] { x[tensor({3})]; });
  EXPECT_CONTAINS(far, "index 3");
  std::string both = error_of([&] { x[{tensor({0}), tensor({4})}]; });
  EXPECT_CONTAINS(both, "index 4");
  std::string below = error_of([&] { x[tensor({-4})]; });
  EXPECT_CONTAINS(below, "out of range");
  std::string real = error_of([&] { x[tensor({0.5f})]; });
  EXPECT_CONTAINS(real, "indexing: an index is a tensor of f32, not of integers or bool");
  std::string mask = error_of([&] { x[tensor({true, false})]; });
  EXPECT_CONTAINS(mask, "indexing: axis 0 of the mask has 2 elements, axis 0 of 'x' 3");
  std::string many = error_of([&] { x[{x > 2, 0}]; });
  EXPECT_CONTAINS(many, "indexing: 3 indices for rank 2");
  std::string undefined = error_of([&] { x[Tensor()]; });
  EXPECT_CONTAINS(undefined, "indexing: an index is an undefined tensor");
}

TEST(DynamicSlice, BeginsWhereValuesSay) {
  Function f = function("f(x, at)", [](Tensor x, Tensor at) { return dynamic_slice(x, at, {2, x.dim(1)}); });
  Tensor x = counted({5, 2});
  EXPECT_EQ(values(f(x, tensor({1, 0}))), (Longs{2, 3, 4, 5}));
  EXPECT_EQ(values(f(x, tensor({4, 7}))), (Longs{6, 7, 8, 9}));  // moved into the tensor
  EXPECT_EQ(values(f(counted({3, 4}), tensor({-9, 0}))), (Longs{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_EQ(values(dynamic_update_slice(x, cast(tensor({{70, 80}}), i64), tensor({3, 1}))),
            (Longs{0, 1, 2, 3, 4, 5, 70, 80, 8, 9}));
}

TEST(At, MakesNewTensors) {
  Tensor x = counted({2, 3});
  EXPECT_EQ(values(at(x, 1).set(0)), (Longs{0, 1, 2, 0, 0, 0}));
  EXPECT_EQ(values(at(x, Range{}, 1).add(10)), (Longs{0, 11, 2, 3, 14, 5}));
  EXPECT_EQ(values(at(x, x > 3).multiply(-1)), (Longs{0, 1, 2, 3, -4, -5}));
  EXPECT_EQ(values(at(x, tensor({0, 0}), tensor({1, 1})).add(tensor({5, 7}))), (Longs{0, 13, 2, 3, 4, 5}));
  EXPECT_EQ(values(at(x, ellipsis, Range{.step = 2}).min(1)), (Longs{0, 1, 1, 1, 4, 1}));
  EXPECT_EQ(values(at(x, 0).max(tensor({7, 0, 9}))), (Longs{7, 1, 9, 3, 4, 5}));
  EXPECT_EQ(values(at(x, 0).subtract(1)), (Longs{-1, 0, 1, 3, 4, 5}));
  EXPECT_EQ(values(at(x, 1, -1).get()), (Longs{5}));
  EXPECT_EQ(values(x), (Longs{0, 1, 2, 3, 4, 5}));
  std::string wide = error_of([&] { at(x, 0).set(tensor({1, 2})); });
  EXPECT_CONTAINS(wide, "at().set");
}

TEST(At, TracedAndUnderATape) {
  Function f = function("f(x, v)", [](Tensor x, Tensor v) { return at(x, Range{}, 0).set(v); });
  for (int n : {2, 5}) EXPECT_EQ(f(ones({n, 3}), zeros({n})).to_vector<float>()[3], 0);
  EXPECT_EQ(f.trace_count(), 1);
  Tensor x = ones({2, 2}), v = tensor({2.0f, 3.0f});
  GradientTape tape;
  tape.watch(x);
  tape.watch(v);
  std::vector<Tensor> gradients = tape.gradient(sum(square(f(x, v))), {x, v});
  EXPECT_EQ(gradients[0].to_vector<float>(), (std::vector<float>{0, 2, 0, 2}));
  EXPECT_EQ(gradients[1].to_vector<float>(), (std::vector<float>{4, 6}));
}

TEST(Pad, ModesAreNumPys) {
  Tensor x = tensor({1, 2, 3});
  auto padded = [&](PadMode mode, int before, int after) {
    return cast(pad(x, {{before, after}}, {.mode = mode}), i64).to_vector<std::int64_t>();
  };
  EXPECT_EQ(padded(PadMode::constant, 1, 2), (Longs{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(padded(PadMode::reflect, 4, 3), (Longs{1, 2, 3, 2, 1, 2, 3, 2, 1, 2}));
  EXPECT_EQ(padded(PadMode::symmetric, 4, 3), (Longs{3, 3, 2, 1, 1, 2, 3, 3, 2, 1}));
  EXPECT_EQ(padded(PadMode::edge, 2, 1), (Longs{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(padded(PadMode::wrap, 4, 2), (Longs{3, 1, 2, 3, 1, 2, 3, 1, 2}));
  Function f = function("f(x)", [](Tensor t) { return pad(t, {{1, t.dim(0)}, {0, 2}}, {.mode = PadMode::reflect}); });
  for (int n : {3, 6}) EXPECT_EQ(sizes(f(counted({n, 4}))), (Longs{2 * n + 1, 6}));
  EXPECT_EQ(f.trace_count(), 1);
}

/// The gradients of many slices of one tensor are put together once: as many elements as it has, not as many for each.
TEST(Indexing, PositionsOutOfRangeAreNamedAsTheyWereGiven) {
  Tensor x = arange(3);
  std::string high = "index 5 at flat position 1 is out of range: allowed are -3 to 2",
              low = "index -7 at flat position 0 is out of range: allowed are -3 to 2";
  EXPECT_CONTAINS(error_of([&] { x[tensor({0, 5})]; }), "indexing: " + high);
  EXPECT_CONTAINS(error_of([&] { x[tensor({-7})]; }), "indexing: " + low);
  EXPECT_CONTAINS(error_of([&] { at(x, tensor({-7})).set(0); }), low);
  EXPECT_CONTAINS(error_of([&] { at(x, tensor({0, 5})).add(1); }), high);
  EXPECT_CONTAINS(error_of([&] { zeros({0})[tensor({0})]; }),
                  "index 0 at flat position 0 is out of range: positions are none");
  Function f = function("f(x, i)", [](Tensor v, Tensor i) { return v[i]; });
  EXPECT_CONTAINS(error_of([&] { f(x, tensor({-7})); }), "indexing: " + low);
}

TEST(Slices, GradientsOfManySlicesOfOneTensor) {
  Function f = function("f(x)", [](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    Tensor total = zeros({x.dim(0)});
    for (int t = 0; t < 40; ++t) total = total * 0.5 + x[{Range{}, t}];
    return tape.gradient(sum(square(total)), x);
  });
  Tensor x = random::stateless_normal({3, 40}, {1, 2});
  Tensor got = f(x);
  // By hand: total = sum of 0.5^(39 - t) x_t.
  for (int row = 0; row < 3; ++row) {
    double total = 0;
    for (int t = 0; t < 40; ++t) total = total * 0.5 + x.item<float>({row, t});
    for (int t = 0; t < 40; ++t)
      EXPECT_NEAR((got.item<float>({row, t})), 2 * total * std::pow(0.5, 39 - t), 1e-5) << row << " " << t;
  }
}

TEST(Slices, GradientsOfOverlappingAndStridedSlices) {
  Tensor x = cast(counted({7}), f32);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor overlapping = sum(x[range(0, 4)]) + 2 * sum(x[range(2, 6)]) + 4 * sum(x[range(3, 5)]);
  Tensor strided = sum(x[Range{.step = 3}]) + 2 * sum(x[Range{.begin = 1, .step = 2}]);
  Tensor apart = 3 * sum(x[range(5, 7)]) + sum(x[range(0, 2)]);
  EXPECT_EQ(tape.gradient(overlapping, x).to_vector<float>(), (std::vector<float>{1, 1, 3, 7, 6, 2, 0}));
  EXPECT_EQ(tape.gradient(strided, x).to_vector<float>(), (std::vector<float>{1, 2, 0, 3, 0, 2, 1}));
  EXPECT_EQ(tape.gradient(apart, x).to_vector<float>(), (std::vector<float>{1, 1, 0, 0, 0, 3, 3}));
}

}  // namespace
}  // namespace stet
