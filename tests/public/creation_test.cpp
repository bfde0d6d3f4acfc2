// Tensors made from sizes, numbers and bounds: NumPy's values, traced sizes, errors. And what reading and printing
// convert.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "eager_and_traced.h"
#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Doubles = std::vector<double>;

/// What NumPy 1.24 prints for the same call.
struct Case {
  const char* call;
  std::function<Tensor()> run;
  const char *shape, *text;
};

TEST(Creating, AsNumPy) {
  // clang-format off
  const std::vector<Case> cases{
      {"arange(5, f32)", [] { return arange(5, f32); }, "[5]", "[0. 1. 2. 3. 4.]"},
      {"arange(2, 7)", [] { return arange(2, 7); }, "[5]", "[2 3 4 5 6]"},
      {"arange(2, 7, f64)", [] { return arange(2, 7, f64); }, "[5]", "[2. 3. 4. 5. 6.]"},
      {"arange(0, 10, 3)", [] { return arange(0, 10, 3); }, "[4]", "[0 3 6 9]"},
      {"arange(0, 9, 3)", [] { return arange(0, 9, 3); }, "[3]", "[0 3 6]"},
      {"arange(10, 0, -3)", [] { return arange(10, 0, -3); }, "[4]", "[10  7  4  1]"},
      {"arange(5, 2)", [] { return arange(5, 2); }, "[0]", "[]"},
      {"arange(2, 5, -1)", [] { return arange(2, 5, -1); }, "[0]", "[]"},
      {"arange(-3, 3, 2, i8)", [] { return arange(-3, 3, 2, i8); }, "[3]", "[-3 -1  1]"},
      {"arange(3, 3)", [] { return arange(3, 3); }, "[0]", "[]"},
      {"arange(0.0, 1.0, 0.1, f64)", [] { return arange(0.0, 1.0, 0.1, f64); }, "[10]", "[0.  0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9]"},
      {"arange(1.0, 1.3, 0.1, f64)", [] { return arange(1.0, 1.3, 0.1, f64); }, "[4]", "[1.  1.1 1.2 1.3]"},
      {"arange(0, 1, 0.25)", [] { return arange(0, 1, 0.25); }, "[4]", "[0.   0.25 0.5  0.75]"},
      {"arange(2.5)", [] { return arange(2.5); }, "[3]", "[0. 1. 2.]"},
      {"arange(1.0, -1.0, -0.5, f64)", [] { return arange(1.0, -1.0, -0.5, f64); }, "[4]", "[ 1.   0.5  0.  -0.5]"},
      {"arange(1.0, 0.0, 0.5, f64)", [] { return arange(1.0, 0.0, 0.5, f64); }, "[0]", "[]"},
      {"arange(1e10, 1e10 + 3, 1.0, f64)", [] { return arange(1e10, 1e10 + 3, 1.0, f64); }, "[3]", "[1.e+10 1.e+10 1.e+10]"},
      {"linspace(0, 1, 5, {.dtype = f64})", [] { return linspace(0, 1, 5, {.dtype = f64}); }, "[5]", "[0.   0.25 0.5  0.75 1.  ]"},
      {"linspace(0, 1, 5, {.endpoint = false, .dtype = f64})", [] { return linspace(0, 1, 5, {.endpoint = false, .dtype = f64}); }, "[5]", "[0.  0.2 0.4 0.6 0.8]"},
      {"linspace(2, -3, 7, {.dtype = f64})", [] { return linspace(2, -3, 7, {.dtype = f64}); }, "[7]", "[ 2.          1.16666667  0.33333333 -0.5        -1.33333333 -2.16666667\n -3.        ]"},
      {"linspace(3, 9, 1, {.dtype = f64})", [] { return linspace(3, 9, 1, {.dtype = f64}); }, "[1]", "[3.]"},
      {"linspace(3, 9, 1, {.endpoint = false, .dtype = f64})", [] { return linspace(3, 9, 1, {.endpoint = false, .dtype = f64}); }, "[1]", "[3.]"},
      {"linspace(3, 9, 0, {.dtype = f64})", [] { return linspace(3, 9, 0, {.dtype = f64}); }, "[0]", "[]"},
      {"linspace(0, 10, 4, {.dtype = i64})", [] { return linspace(0, 10, 4, {.dtype = i64}); }, "[4]", "[ 0  3  6 10]"},
      {"linspace(0, -5, 4, {.dtype = i32})", [] { return linspace(0, -5, 4, {.dtype = i32}); }, "[4]", "[ 0 -2 -4 -5]"},
      {"linspace(tensor({0., 1.}), tensor({1., 5.}), 3)", [] { return linspace(tensor({0., 1.}), tensor({1., 5.}), 3); }, "[3,2]", "[[0.  1. ]\n [0.5 3. ]\n [1.  5. ]]"},
      {"linspace(tensor({0., 1.}), 4, 3)", [] { return linspace(tensor({0., 1.}), 4, 3); }, "[3,2]", "[[0.  1. ]\n [2.  2.5]\n [4.  4. ]]"},
      {"linspace(0, 0.3, 4)", [] { return linspace(0, 0.3, 4); }, "[4]", "[0.  0.1 0.2 0.3]"},
      {"eye(3, {.dtype = i64})", [] { return eye(3, {.dtype = i64}); }, "[3,3]", "[[1 0 0]\n [0 1 0]\n [0 0 1]]"},
      {"eye(2, 4, {.k = 1})", [] { return eye(2, 4, {.k = 1}); }, "[2,4]", "[[0. 1. 0. 0.]\n [0. 0. 1. 0.]]"},
      {"eye(3, {.k = -1, .dtype = bool_})", [] { return eye(3, {.k = -1, .dtype = bool_}); }, "[3,3]", "[[False False False]\n [ True False False]\n [False  True False]]"},
      {"eye(0)", [] { return eye(0); }, "[0,0]", "[]"},
      {"eye(2, 3, {.k = 9})", [] { return eye(2, 3, {.k = 9}); }, "[2,3]", "[[0. 0. 0.]\n [0. 0. 0.]]"},
      {"eye(1)", [] { return eye(1); }, "[1,1]", "[[1.]]"},
      {"tri(3, {.dtype = i64})", [] { return tri(3, {.dtype = i64}); }, "[3,3]", "[[1 0 0]\n [1 1 0]\n [1 1 1]]"},
      {"tri(3, 5, {.k = 1})", [] { return tri(3, 5, {.k = 1}); }, "[3,5]", "[[1. 1. 0. 0. 0.]\n [1. 1. 1. 0. 0.]\n [1. 1. 1. 1. 0.]]"},
      {"tri(3, 2, {.k = -1})", [] { return tri(3, 2, {.k = -1}); }, "[3,2]", "[[0. 0.]\n [1. 0.]\n [1. 1.]]"},
      {"tri(2, 0)", [] { return tri(2, 0); }, "[2,0]", "[]"},
      {"full({2}, tensor(2.5f))", [] { return full({2}, tensor(2.5f)); }, "[2]", "[2.5 2.5]"},
      {"full({2, 3}, tensor({1, 2, 3}))", [] { return full({2, 3}, tensor({1, 2, 3})); }, "[2,3]", "[[1 2 3]\n [1 2 3]]"},
      {"full({2}, tensor(2.7f), i32)", [] { return full({2}, tensor(2.7f), i32); }, "[2]", "[2 2]"},
      {"full_like(tensor({1.f, 2.f}), 7)", [] { return full_like(tensor({1.f, 2.f}), 7); }, "[2]", "[7. 7.]"},
      {"full_like(tensor({1, 2}), 7.0, f64)", [] { return full_like(tensor({1, 2}), 7.0, f64); }, "[2]", "[7. 7.]"},
      {"empty({2, 2})", [] { return empty({2, 2}); }, "[2,2]", "[[0. 0.]\n [0. 0.]]"},
      {"empty_like(tensor({1, 2}))", [] { return empty_like(tensor({1, 2})); }, "[2]", "[0 0]"},
      {"meshgrid({arange(3), arange(2)})[0]", [] { return meshgrid({arange(3), arange(2)})[0]; }, "[2,3]", "[[0 1 2]\n [0 1 2]]"},
      {"meshgrid({arange(3), arange(2)})[1]", [] { return meshgrid({arange(3), arange(2)})[1]; }, "[2,3]", "[[0 0 0]\n [1 1 1]]"},
      {"meshgrid({arange(3), arange(2)}, {.indexing = MeshIndexing::ij})[0]", [] { return meshgrid({arange(3), arange(2)}, {.indexing = MeshIndexing::ij})[0]; }, "[3,2]", "[[0 0]\n [1 1]\n [2 2]]"},
      {"meshgrid({arange(3), arange(2), arange(2)})[2]", [] { return meshgrid({arange(3), arange(2), arange(2)})[2]; }, "[2,3,2]", "[[[0 1]\n  [0 1]\n  [0 1]]\n\n [[0 1]\n  [0 1]\n  [0 1]]]"},
      {"meshgrid({arange(3), arange(2)}, {.sparse = true})[1]", [] { return meshgrid({arange(3), arange(2)}, {.sparse = true})[1]; }, "[2,1]", "[[0]\n [1]]"},
      {"meshgrid({arange(3)})[0]", [] { return meshgrid({arange(3)})[0]; }, "[3]", "[0 1 2]"},
      {"meshgrid({tensor(7), arange(2)})[0]", [] { return meshgrid({tensor(7), arange(2)})[0]; }, "[2,1]", "[[7]\n [7]]"},
  };
  // clang-format on
  for (const Case& one : cases) {
    try {
      Tensor out = one.run();
      EXPECT_EQ(out.shape().str(), one.shape) << one.call;
      EXPECT_EQ(to_string(out), one.text) << one.call;
    } catch (const std::exception& error) {
      ADD_FAILURE() << one.call << ": " << error.what();
    }
  }
}

TEST(Creating, Types) {
  EXPECT_EQ(arange(3).dtype(), i64);
  EXPECT_EQ(arange(1, 3).dtype(), i64);
  EXPECT_EQ(arange(1, 3, 1, u8).dtype(), u8);
  EXPECT_EQ(arange(0.5, 3).dtype(), f32);
  EXPECT_EQ(arange(0.5f, 3.f, 1.f, f16).dtype(), f16);
  EXPECT_EQ(linspace(0, 1).dtype(), f32);
  EXPECT_EQ(linspace(0, 1).shape().str(), "[50]");
  EXPECT_EQ(linspace(tensor(0.0), 1, 3).dtype(), f64);
  EXPECT_EQ(linspace(tensor(0), 1, 3).dtype(), f32);
  EXPECT_EQ(linspace(Tensor(0.0), 1, 3).dtype(), f32);  // a number still
  EXPECT_EQ(geomspace(1, 8, 4, {.dtype = bf16}).dtype(), bf16);
  EXPECT_EQ(eye(2).dtype(), f32);
  EXPECT_EQ(full({2}, tensor(1)).dtype(), i32);
  EXPECT_EQ(full({2}, tensor(1), f16).dtype(), f16);
  EXPECT_TRUE(full({2}, tensor(1)).is_dense());
  EXPECT_EQ(full_like(ones({2}, i8), 3).dtype(), i8);
  EXPECT_EQ(full({1}, (std::int64_t{1} << 53) + 1, i64).item<std::int64_t>(), (std::int64_t{1} << 53) + 1);
  EXPECT_EQ(full({1}, true, bool_).item<bool>(), true);
}

TEST(Creating, Sequences) {
  auto expect_near = [](const Tensor& found, const Doubles& expected) {
    Doubles values = found.to_vector<double>();
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i] / expected[i], 1, 4e-15) << i;
  };
  const std::optional<DType> f = f64;
  expect_near(logspace(0, 3, 4, {.dtype = f}), {1, 10, 100, 1000});
  expect_near(logspace(-1, 1, 5, {.base = 2, .dtype = f}), {0.5, 0.7071067811865476, 1, 1.4142135623730951, 2});
  expect_near(logspace(0, 2, 3, {.endpoint = false, .dtype = f}), {1, 4.641588833612778, 21.544346900318832});
  expect_near(geomspace(1, 1000, 4, {.dtype = f}), {1, 10, 100, 1000});
  expect_near(geomspace(-1, -8, 4, {.dtype = f}), {-1, -2, -4, -8});
  expect_near(geomspace(1, 256, 8, {.endpoint = false, .dtype = f}), {1, 2, 4, 8, 16, 32, 64, 128});
  expect_near(geomspace(5, 5, 3, {.dtype = f}), {5, 5, 5});
  expect_near(geomspace(3, 7, 1, {.dtype = f}), {3});
  // The ends are exact, whatever the steps round to.
  EXPECT_EQ(linspace(0, 0.1, 50, {.dtype = f}).item<double>({-1}), 0.1);
  EXPECT_EQ(geomspace(0.1, 0.7, 9, {.dtype = f}).item<double>({-1}), 0.7);
  EXPECT_EQ(geomspace(0.1, 0.7, 9, {.dtype = f}).item<double>({0}), 0.1);
}

TEST(Creating, TracedSizesInOneTrace) {
  auto sizes = [] {
    return Program{[](Tensor x) {
      Dim n = x.dim(0), m = x.dim(1);
      return std::vector<Tensor>{arange(n, f32),
                                 arange(1, n),
                                 arange(m, n),
                                 arange(n, m, -2),
                                 arange(n - 2, n + m, 3, f64),
                                 linspace(0, 1, n),
                                 linspace(x[{0, 0}], 2, m, {.endpoint = false}),
                                 linspace(x[0], x[0] + 1, n),
                                 logspace(0, 2, n),
                                 geomspace(1, 16, m),
                                 eye(n),
                                 eye(n, m, {.k = 1}),
                                 tri(m, n, {.k = -1, .dtype = i32}),
                                 full({n, 2}, x[{0, 0}]),
                                 full({m}, n),
                                 full_like(x, x[{0, 0}] * 2),
                                 full_like(x, 3, i8),
                                 empty({n, m}),
                                 empty_like(x),
                                 meshgrid({arange(n), arange(m)})[0],
                                 meshgrid({arange(n), arange(m)}, {.indexing = MeshIndexing::ij})[1]};
    }};
  };
  auto inputs = [](std::vector<Shape> shapes) {
    std::vector<Tensor> out;
    for (const Shape& shape : shapes) out.push_back(ones(shape) * 0.5f);
    return out;
  };
  expect_same(sizes, inputs({{3, 4}, {5, 2}, {1, 1}, {7, 7}, {2, 9}}));
}

TEST(Creating, Gradients) {
  auto ends = [] {
    return Program{[](Tensor x) {
      return std::vector<Tensor>{linspace(x[0], x[1], 5), geomspace(x[0], x[1], 4), full({3, 2}, sum(x)),
                                 full_like(x, x[0])};
    }};
  };
  expect_same_gradients(ends, {tensor({1.f, 3.f}), tensor({2.f, 2.5f, 4.f})}, true);
  GradientTape tape;
  Tensor stop = tensor(2.0);
  tape.watch(stop);
  // The sum of i / 4 for i = 0 … 4.
  EXPECT_NEAR(tape.gradient(sum(linspace(1, stop, 5)), stop).item<double>(), 2.5, 1e-12);
}

TEST(Creating, WrongCallsSayWhatIsWrong) {
  struct Wrong {
    std::function<void()> call;
    const char* text;
  };
  const std::vector<Wrong> all{
      {[] { arange(0, 3, 0); }, "arange: the step is 0"},
      {[] { arange(0.0, 3.0, 0.0); }, "arange: the step is 0"},
      {[] { arange(0.0, std::numeric_limits<double>::infinity()); }, "arange: there is no end to the numbers from 0"},
      {[] { arange(0.0, 1.0, 1e-300); }, "arange: there is no end"},
      {[] { arange(0, 3, std::numeric_limits<std::int64_t>::min()); }, "arange: the step -9223372036854775808 is too"},
      {[] { linspace(0, 1, -1); }, "linspace: size -1 is negative"},
      {[] { linspace(Tensor(), 1, 3); }, "linspace: an operand is an undefined tensor"},
      {[] { linspace(ones({2}), ones({3}), 3); }, "linspace: subtract: sizes 3 and 2 of axis -1 do not broadcast"},
      {[] { geomspace(0, 1, 3); }, "geomspace: a geometric sequence has no zero"},
      {[] { geomspace(-1, 1, 3); }, "geomspace: a geometric sequence does not change its sign"},
      {[] { eye(-1); }, "eye: size -1 is negative"},
      {[] { tri(2, -3); }, "tri: size -3 is negative"},
      {[] { full({2}, ones({3})); }, "full: broadcast_to: axis 0: sizes 3 and 2 differ"},
      {[] { full({2}, 300, u8); }, "full: 300 is not a value of u8"},
      {[] { full({2}, 70000, f16); }, "full: 70000 is not a value of f16"},
      {[] { full({2}, -1, u8); }, "full: -1 is not a value of u8"},
      {[] { full_like(ones({2}, u8), 256); }, "full_like: the number 256 is out of range for u8"},
      {[] { full_like(Tensor(), 2); }, "full_like: the tensor is undefined"},
      {[] {
         meshgrid({ones({2, 2})});
       },
       "meshgrid: part 0 is f32[2,2], not a vector"},
      {[] { meshgrid({Tensor()}); }, "meshgrid: an operand is an undefined tensor"}};
  for (const Wrong& one : all) {
    std::string error = error_of(one.call);
    EXPECT_CONTAINS(error, one.text);
    EXPECT_CONTAINS(error, "creation_test.cpp:");
  }
}

TEST(Creating, ChecksOfTracedCodeAreMadeInEveryCall) {
  Function f = function("f(x)", [](Tensor x) { return eye(x.dim(0) - 2); });
  EXPECT_EQ(f(ones({4})).shape().str(), "[2,2]");
  EXPECT_CONTAINS(error_of([&] { f(ones({1})); }), "eye: broadcast_to: size -1 is negative");
  EXPECT_EQ(f(ones({5})).shape().str(), "[3,3]");
  EXPECT_EQ(f.trace_count(), 1);
}

// --- reading

TEST(ReadingAs, AnyTypeAsCastDoes) {
  const float inf = std::numeric_limits<float>::infinity();
  Tensor wild = tensor({0.f,     -0.f, 0.5f, -1.7f, 2.9f,  127.9f, 128.f, -129.f, 255.5f,    256.f,
                        65504.f, 1e6f, 3e9f, -3e9f, 1e19f, -1e19f, inf,   -inf,   inf - inf, 9.2e18f});
  const DType types[] = {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64};
  for (DType from : types) {
    Tensor dense = cast(wild, from);
    // A view as well: every second element, of two rows.
    Tensor view = reshape(dense, {2, 10})[{Range{}, Range{.step = 2}}];
    for (const Tensor& x : {dense, view}) {
      auto expect = [&]<class T>(T) {
        Tensor there = cast(x, dtype_of<T>).contiguous();
        std::vector<T> read = x.to_vector<T>();
        ASSERT_EQ(static_cast<std::int64_t>(read.size()), x.size().value());
        for (std::size_t i = 0; i < read.size(); ++i) {
          const T value = read[i], expected = there.to_vector<T>()[i];
          EXPECT_EQ(std::memcmp(&value, &expected, sizeof(T)), 0) << from << " to " << dtype_of<T> << ", element " << i;
        }
      };
      expect(bool{});
      expect(std::uint8_t{});
      expect(std::int8_t{});
      expect(std::int16_t{});
      expect(std::int32_t{});
      expect(std::int64_t{});
      expect(Half{});
      expect(BFloat16{});
      expect(float{});
      expect(double{});
    }
  }
}

TEST(ReadingAs, TypesThatTensorsDoNotHave) {
  Tensor x = tensor({-1.5, 3.0, 70000.0, 1e20, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(x.to_vector<unsigned short>(), (std::vector<unsigned short>{0, 3, 65535, 65535, 0}));
  EXPECT_EQ(x.to_vector<unsigned>(), (std::vector<unsigned>{0, 3, 70000, 4294967295u, 0}));
  EXPECT_EQ(x.to_vector<unsigned long>()[3], std::numeric_limits<unsigned long>::max());
  EXPECT_EQ(x.to_vector<char>(), (std::vector<char>{-1, 3, 127, 127, 0}));
  EXPECT_EQ(x.to_vector<long double>()[0], -1.5L);
  EXPECT_EQ(tensor({-1, 300}).to_vector<unsigned short>(), (std::vector<unsigned short>{65535, 300}));
  EXPECT_EQ(tensor({1, 2}).to_vector<long long>(), (std::vector<long long>{1, 2}));
  EXPECT_EQ(tensor(70000.5).item<unsigned short>(), 65535);
  EXPECT_EQ(tensor(-2).item<unsigned>(), 4294967294u);
  EXPECT_EQ(zeros({0}).to_vector<unsigned>().size(), 0u);
}

// --- printing

TEST(PrintOptions, ScopesNestAndEndWithTheirThread) {
  Tensor x = tensor({1.23456789, 1000.0}) / 7;
  const std::string plain = to_string(x);
  {
    PrintScope outer({.precision = 2});
    EXPECT_EQ(to_string(x), "[  0.18 142.86]");
    {
      PrintScope inner({.precision = 0});
      EXPECT_EQ(to_string(x), "[  0. 143.]");
    }
    EXPECT_EQ(to_string(x), "[  0.18 142.86]");
    std::string elsewhere;
    std::thread([&] { elsewhere = to_string(x); }).join();
    EXPECT_EQ(elsewhere, plain);
  }
  EXPECT_EQ(to_string(x), plain);
}

TEST(PrintOptions, OfTheProcess) {
  Tensor x = tensor({1.0, 2.0, 3.0, 4.0}) / 3;
  const std::string plain = to_string(x);
  set_print_options({.precision = 1, .threshold = 3, .edge_items = 1});
  std::string elsewhere;
  std::thread([&] { elsewhere = to_string(x); }).join();
  EXPECT_EQ(elsewhere, "[0.3 ... 1.3]");
  EXPECT_EQ(print_options().precision, 1);
  EXPECT_EQ(to_string(x, {.precision = 2}), "[0.33 0.67 1.   1.33]");
  {
    PrintScope all({});
    EXPECT_EQ(to_string(x), plain);
  }
  set_print_options({});
  EXPECT_EQ(to_string(x), plain);
}

TEST(PrintOptions, ThatMeanNothing) {
  EXPECT_CONTAINS(error_of([] { set_print_options({.precision = -1}); }), "set_print_options: precision is -1");
  EXPECT_CONTAINS(error_of([] { PrintScope scope({.edge_items = 0}); }), "PrintScope: edge_items is 0");
  EXPECT_CONTAINS(error_of([] { to_string(ones({2}), {.line_width = 0}); }), "to_string: line_width is 0");
  EXPECT_CONTAINS(error_of([] { to_string(ones({2}), {.threshold = -1}); }), "fix: it must be 0 or more");
  EXPECT_EQ(to_string(ones({2}), {.edge_items = std::numeric_limits<std::int64_t>::max()}), "[1. 1.]");
}

}  // namespace
