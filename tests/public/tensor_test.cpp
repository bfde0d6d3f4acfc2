// The surface as a user sees it: creation, reading, indexing, printing, numbers, sizes, errors.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

std::string str(const Tensor& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

using Floats = std::vector<float>;

// --- creation

TEST(Creation, FromNestedBraces) {
  EXPECT_EQ(tensor(3).dtype(), i32);
  EXPECT_EQ(tensor(3.5).dtype(), f64);
  EXPECT_EQ(tensor({1, 2, 3}).shape().str(), "[3]");
  EXPECT_EQ(tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}).shape().str(), "[2,3]");
  EXPECT_EQ(tensor({{{1, 2}}, {{3, 4}}, {{5, 6}}}).shape().str(), "[3,1,2]");
  EXPECT_EQ(tensor({true, false}).to_vector<bool>(), (std::vector<bool>{true, false}));
  std::string error = error_of([] { tensor({{1, 2}, {3}}); });
  EXPECT_CONTAINS(error, "tensor: the rows of the nested list differ in length");
  EXPECT_CONTAINS(error, "tensor_test.cpp:");
}

TEST(Creation, FromVectorsSpansAndMemory) {
  std::vector<double> values{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(tensor(values).shape().str(), "[6]");
  Tensor x = tensor(values, {2, 3});
  values[0] = 100;  // copied
  EXPECT_EQ(x.item<double>({0, 0}), 1);
  EXPECT_EQ(tensor(std::span<const double>(values).subspan(1, 4), {2, 2}).item<double>({1, 1}), 5);
  EXPECT_EQ(tensor(std::vector<bool>{true, false, true}).dtype(), bool_);
  EXPECT_CONTAINS(error_of([&] {
                    tensor(values, {4, 2});
                  }),
                  "tensor: 6 values do not fill f64[4,2], which has 8 elements");

  int released = 0;
  {
    Tensor shared = from_memory(
        f64, values.data(), {6}, [](void* count) { ++*static_cast<int*>(count); }, &released);
    EXPECT_EQ(shared.data<double>(), values.data());
    Tensor view = shared[range(2, 4)];
    shared = Tensor();
    EXPECT_EQ(released, 0);
    EXPECT_EQ(sum(view).item<double>(), 7);
  }
  EXPECT_EQ(released, 1);
  EXPECT_CONTAINS(error_of([&] { from_memory(f64, nullptr, {6}, nullptr, nullptr); }),
                  "from_memory: no memory for f64[6]");
  EXPECT_CONTAINS(
      error_of([&] { from_memory(f64, reinterpret_cast<char*>(values.data()) + 1, {2}, nullptr, nullptr); }),
      "the address is not a multiple of the size of f64");
}

TEST(Creation, Filled) {
  EXPECT_EQ(zeros({2, 2}).to_vector<float>(), Floats(4, 0));
  EXPECT_EQ(ones({3}, i8).to_vector<std::int8_t>(), (std::vector<std::int8_t>{1, 1, 1}));
  EXPECT_EQ(full({2}, 2.5).to_vector<float>(), (Floats{2.5f, 2.5f}));
  EXPECT_EQ(arange(4).to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(ones({2}, bf16).to_vector<BFloat16>()[1], BFloat16(1.f));
  EXPECT_EQ(zeros({0, 3}).size().value(), 0);
  EXPECT_CONTAINS(error_of([] { full({2}, 300, u8); }), "full: 300 is not a value of u8");
  EXPECT_CONTAINS(error_of([] { full({2}, 0.5, i32); }), "full: 0.5 is not a value of i32");
  EXPECT_CONTAINS(error_of([] { arange(-1); }), "arange: the count -1 is negative");
  EXPECT_CONTAINS(error_of([] { zeros({-1}); }), "-1");
  EXPECT_CONTAINS(error_of([] { zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}); }), "too large");
  EXPECT_CONTAINS(error_of([] { zeros({std::int64_t{1} << 45}); }), "out of memory");
}

// --- reading

TEST(Reading, Items) {
  Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}});
  EXPECT_EQ(x.item<float>({1, 0}), 3);
  EXPECT_EQ(x.item<int>({-1, -1}), 4);
  EXPECT_EQ(tensor(2.9).item<int>(), 2);
  EXPECT_EQ(tensor(1e20).item<int>(), std::numeric_limits<int>::max());
  EXPECT_CONTAINS(error_of([&] { x.item<float>(); }), "item: f32[2,2] has 4 elements, not one");
  EXPECT_CONTAINS(error_of([&] { x.item<float>({1}); }), "item: 1 positions for f32[2,2]");
  EXPECT_CONTAINS(error_of([&] { x.item<float>({0, 2}); }), "item: position 2 of axis 1 is out of range for f32[2,2]");
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_CONTAINS(error_of([&] { x.data<int>(); }), "data: the tensor is f32[2,2], not i32");
  EXPECT_CONTAINS(error_of([&] { transpose(x).data<float>(); }), "is a view that is not dense in memory");
  EXPECT_EQ(transpose(x).contiguous().data<float>()[1], 3);
}

TEST(Reading, UndefinedTensorsSaySo) {
  Tensor nothing;
  EXPECT_FALSE(nothing.defined());
  EXPECT_CONTAINS(error_of([&] { nothing.shape(); }), "shape: the tensor is undefined");
  std::string error = error_of([&] { nothing + 1; });
  EXPECT_CONTAINS(error, "add: an operand is an undefined tensor");
  EXPECT_CONTAINS(error, "x undefined, y number 1");
  EXPECT_CONTAINS(error_of([&] { sum(nothing, 0); }), "sum: an operand is an undefined tensor");
  EXPECT_CONTAINS(error_of([&] { nothing[0]; }), "indexing: the tensor is undefined");
  EXPECT_EQ(str(nothing), "undefined");
}

TEST(Reading, TruthOfOneElement) {
  EXPECT_TRUE(bool(tensor({1.f, 2.f})[1] > 1));
  EXPECT_FALSE(bool(tensor(0)));
  EXPECT_CONTAINS(error_of([] {
                    (void)bool(tensor({1, 2}));
                  }),
                  "bool: the truth of i32[2] with 2 elements is not defined");
}

// --- indexing

TEST(Indexing, AsInNumPy) {
  Tensor x = reshape(arange(24), {2, 3, 4});
  auto values = [](const Tensor& t) { return t.to_vector<std::int64_t>(); };
  using Longs = std::vector<std::int64_t>;
  EXPECT_EQ(values(x[{1, 2, 3}]), Longs{23});
  EXPECT_EQ(x[1].shape().str(), "[3,4]");
  EXPECT_EQ(values(x[{-1, -1}]), (Longs{20, 21, 22, 23}));
  EXPECT_EQ(values(x[{0, Range{}, 1}]), (Longs{1, 5, 9}));
  EXPECT_EQ(values(x[{ellipsis, 0}]), (Longs{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(values(x[{0, 0, range(1, 3)}]), (Longs{1, 2}));
  EXPECT_EQ(values(x[{0, 0, Range{.begin = -2}}]), (Longs{2, 3}));
  EXPECT_EQ(values(x[{0, 0, Range{.end = -1}}]), (Longs{0, 1, 2}));
  EXPECT_EQ(values(x[{0, 0, Range{.step = 2}}]), (Longs{0, 2}));
  EXPECT_EQ(values(x[{0, 0, Range{.step = -1}}]), (Longs{3, 2, 1, 0}));
  EXPECT_EQ(values(x[{0, 0, range(3, 0, -2)}]), (Longs{3, 1}));
  EXPECT_EQ(values(x[{0, 0, range(2, 100)}]), (Longs{2, 3}));
  EXPECT_EQ((x[{0, 0, range(3, 1)}].shape().str()), "[0]");
  EXPECT_EQ((x[{newaxis, 0, ellipsis, newaxis}].shape().str()), "[1,3,4,1]");
  EXPECT_EQ((x[{Range{.step = -1}, ellipsis}].item<int>({0, 0, 0})), 12);
}

TEST(Indexing, Views) {
  Tensor x = reshape(arange(24), {4, 6});
  EXPECT_FALSE((x[{Range{}, 1}].is_dense()));
  EXPECT_EQ(x[2].data<std::int64_t>(), x.data<std::int64_t>() + 12);  // shares memory
  Tensor part = x[{range(1, 3), Range{.begin = 1, .step = 2}}];
  EXPECT_EQ(sum(part).item<int>(), 7 + 9 + 11 + 13 + 15 + 17);
  EXPECT_EQ((part + 1).to_vector<std::int64_t>(), (std::vector<std::int64_t>{8, 10, 12, 14, 16, 18}));
}

TEST(Indexing, WrongIndices) {
  Tensor x = zeros({2, 3});
  std::string error = error_of([&] { x[{0, 3}]; });
  EXPECT_CONTAINS(error, "index 3 is out of range for axis 1 of size 3");
  EXPECT_CONTAINS(error, "with x f32[2,3]");
  EXPECT_CONTAINS(error, "tensor_test.cpp:");
  EXPECT_CONTAINS(error, "fix: allowed are -3 to 2");
  EXPECT_CONTAINS(error_of([&] { x[{0, 0, 0}]; }), "indexing: 3 indices for rank 2");
  EXPECT_CONTAINS(error_of([&] { x[{ellipsis, ellipsis}]; }), "indexing: more than one ellipsis");
  EXPECT_CONTAINS(error_of([&] { x[Range{.step = 0}]; }), "indexing: the step of axis 0 is 0");
  EXPECT_CONTAINS(error_of([&] { zeros({0})[0]; }), "the axis is empty");
}

// --- printing

TEST(Printing, AsNumPy) {
  EXPECT_EQ(str(tensor(3)), "3");
  EXPECT_EQ(str(tensor(2.5f)), "2.5");
  EXPECT_EQ(str(tensor({1.f, 2.f})), "[1. 2.]");
  EXPECT_EQ(str(tensor({1.5f, -2.f, 100.25f})), "[  1.5   -2.   100.25]");
  EXPECT_EQ(str(tensor({{1, 20}, {300, 4}})), "[[  1  20]\n [300   4]]");
  EXPECT_EQ(str(tensor({true, false})), "[ True False]");
  EXPECT_EQ(str(zeros({0})), "[]");
  EXPECT_EQ(str(zeros({2, 1, 1})), "[[[0.]]\n\n [[0.]]]");
  EXPECT_EQ(str(tensor({0.1f, 1.f / 3})), "[0.1        0.33333334]");
  EXPECT_EQ(str(tensor({1e10, 1.0})), "[1.e+10 1.e+00]");
  float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(str(tensor({inf, -inf, inf - inf, 1.f})), "[ inf -inf  nan   1.]");
  std::string big = str(zeros({2000}));
  EXPECT_EQ(big, "[0. 0. 0. ... 0. 0. 0.]");
}

// --- numbers

TEST(Numbers, TakeTheTensorsType) {
  EXPECT_EQ((tensor({1, 2}) + 1).dtype(), i32);
  EXPECT_EQ((tensor({1, 2}) + 0.5).dtype(), f32);
  EXPECT_EQ((zeros({2}, f16) * 2.0).dtype(), f16);
  EXPECT_EQ((zeros({2}, f64) * 2.0f).dtype(), f64);
  EXPECT_EQ((tensor({1, 2}) / 2).dtype(), f32);
  EXPECT_EQ((zeros({2}, i8) + zeros({2}, u8)).dtype(), i16);
  EXPECT_EQ(maximum(tensor({true}), 3).dtype(), i32);
  EXPECT_EQ((1 - tensor({0.25f})).to_vector<float>(), Floats{0.75f});
  EXPECT_EQ((2 > tensor({1, 3})).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(where(tensor({true, false}), 1.5f, tensor({0.f, 2.f})).to_vector<float>(), (Floats{1.5f, 2}));
  std::string error = error_of([] { zeros({2}, u8) + 256; });
  EXPECT_CONTAINS(error, "add: the number 256 is out of range for u8");
  EXPECT_CONTAINS(error, "with x u8[2], y number 256");
  EXPECT_CONTAINS(error_of([] { zeros({2}, f16) * 1e6; }), "multiply: the number 1e+06 is out of range for f16");
}

TEST(Numbers, IntegersWrapAndDivideSafely) {
  EXPECT_EQ((tensor({INT32_MAX}) + 1).item<std::int32_t>(), INT32_MIN);
  EXPECT_EQ(floor_divide(tensor({7, -7, 5}), tensor({2, 2, 0})).to_vector<int>(), (std::vector<int>{3, -4, 0}));
  EXPECT_EQ((tensor({7, -7, 5}) % tensor({3, 3, 0})).to_vector<int>(), (std::vector<int>{1, 2, 0}));
  EXPECT_EQ(cast(tensor({300.7f, -5.f, NAN}), u8).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{255, 0, 0}));
}

// --- sizes

TEST(Sizes, AreNumbersOnTheHost) {
  Tensor x = zeros({4, 10});
  EXPECT_TRUE(x.dim(0) == 4 && x.dim(-1) > 9 && x.dim(0) != x.dim(1));
  EXPECT_TRUE(x.shape() == Shape({4, 10}));
  EXPECT_EQ(int(x.dim(0) * 2), 8);
  Tensor m = sum(ones({4, 10})) / x.dim(0);
  EXPECT_EQ(m.item<float>(), 10);
  EXPECT_CONTAINS(error_of([&] { x.dim(2); }), "dim: axis 2 is out of range for f32[4,10]");
  EXPECT_CONTAINS(error_of([&] { reshape(x, {1, 1, 1, 1, 1, 1, 1, 1, 40}); }), "8");
}

// --- errors name the user's line, also inside composites

TEST(Errors, NameTheCallersLine) {
  std::string error = error_of([] { softmax(zeros({2, 3}), 5); });
  EXPECT_CONTAINS(error, "softmax: max: axis 5 is out of range");
  EXPECT_CONTAINS(error, "tensor_test.cpp:");
  error = error_of([] { layer_norm(zeros({2, 3}), zeros({4}), 0.f); });
  EXPECT_CONTAINS(error, "layer_norm: multiply: sizes 3 and 4 of axis -1 do not broadcast");
  error = error_of([] { sparse_cross_entropy(tensor({0, 7}), zeros({2, 3})); });
  EXPECT_CONTAINS(error, "sparse_cross_entropy: label 7 of sample 1 is not one of the 3 classes");
  error = error_of([] { sparse_cross_entropy(tensor({0, 1, 2}), zeros({2, 3})); });
  EXPECT_CONTAINS(error, "sparse_cross_entropy: labels and logits have different numbers of samples");
  EXPECT_CONTAINS(error, "with labels i32[3], logits f32[2,3]");
  error = error_of([] { matmul(zeros({2, 3}), zeros({4, 5})); });
  EXPECT_CONTAINS(error, "matmul: inner sizes 3 and 4");
  EXPECT_CONTAINS(error, "with a f32[2,3], b f32[4,5]");
  EXPECT_CONTAINS(error, "fix: ");
}

// --- the same call again, other sizes, other threads

TEST(SecondCall, OtherSizesAndThreads) {
  auto work = [](int seed) {
    for (int n = 0; n < 60; ++n) {
      std::int64_t rows = (n * 7 + seed) % 13, columns = (n * 5) % 17 + 1;
      Tensor x = ones({rows, columns});
      Tensor y = sum(x * 2 + 1, 1);
      ASSERT_EQ(y.to_vector<float>(), Floats(static_cast<std::size_t>(rows), 3 * static_cast<float>(columns)));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(Random, SeedsRepeat) {
  random::seed(7);
  Tensor a = random::normal({100}), b = random::uniform({100});
  random::seed(7);
  EXPECT_EQ(random::normal({100}).to_vector<float>(), a.to_vector<float>());
  EXPECT_EQ(random::uniform({100}).to_vector<float>(), b.to_vector<float>());
  EXPECT_NE(random::uniform({100}).to_vector<float>(), b.to_vector<float>());
  EXPECT_CONTAINS(error_of([] { random::randint({2}, 5, 5); }), "random::randint: low 5 is not below high 5");
  EXPECT_CONTAINS(error_of([] { random::randint({2}, 0, 300, {.dtype = u8}); }), "0 to 300 does not fit into u8");
  EXPECT_CONTAINS(error_of([] { random::normal({2}, {.stddev = -1}); }), "random::normal: stddev -1 is not 0 or more");
  EXPECT_CONTAINS(error_of([] { random::uniform({2}, {.dtype = i32}); }), "random numbers of i32 do not exist here");
}

}  // namespace
