// Products against a triple loop in double precision.
//
// Bound, per element: a chain of k roundings of the sum and what the epilogue adds: |error| <= (k + 8) * eps *
// sum |a||b| + 8 * eps * |result|, scaled by the epilogue's largest derivative (2 in these tests).
#include "stet/cpu/gemm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/runtime/parallel.h"
#include "tests/sampling.h"

namespace stet::cpu {
namespace {

using Count = std::int64_t;

/// A stored matrix with gaps between rows and between matrices; gaps and surroundings hold a pattern that must survive.
template <class T>
struct Stored {
  Count rows, columns, batch, leading, stride;
  std::vector<T> memory;

  static constexpr Count guard = 64;
  static T pattern() { return static_cast<T>(-77.5); }

  Stored(Count rows, Count columns, Count batch, Count gap, std::minstd_rand& random)
      : rows(rows),
        columns(columns),
        batch(batch),
        leading(columns + gap),
        stride(rows * leading + gap),
        memory(static_cast<std::size_t>(2 * guard + batch * stride), pattern()) {
    for (Count i = 0; i < batch; ++i)
      for (Count r = 0; r < rows; ++r)
        for (Count c = 0; c < columns; ++c)
          at(i, r, c) = static_cast<T>(static_cast<double>(random() % 2001) / 1000.0 - 1.0);
  }
  T& at(Count i, Count r, Count c) { return memory[static_cast<std::size_t>(guard + i * stride + r * leading + c)]; }
  T* data() { return memory.data() + guard; }
  /// Exactly to the last element: the driver must not reach further.
  Count extent() const {
    return rows * columns * batch == 0 ? 0 : (batch - 1) * stride + (rows - 1) * leading + columns;
  }
  GemmMatrix view() { return {data(), leading, stride, extent()}; }
  /// Nothing outside the matrices was written.
  bool surroundings_intact() {
    std::vector<T> copy = memory;
    for (Count i = 0; i < batch; ++i)
      for (Count r = 0; r < rows; ++r)
        for (Count c = 0; c < columns; ++c)
          copy[static_cast<std::size_t>(guard + i * stride + r * leading + c)] = pattern();
    for (T value : copy)
      if (value != pattern()) return false;
    return true;
  }
};

struct Sizes {
  Count m, n, k, batch = 1;
};

std::string name_of(const GemmSpec& spec, const Sizes& s) {
  return text(name(spec.dtype), spec.transpose_left ? " T" : " N", spec.transpose_right ? "T " : "N ", s.m, "x", s.n,
              "x", s.k, " batch ", s.batch,
              spec.epilogue.expression.defined() ? " " + spec.epilogue.expression.str() : std::string());
}

/// sum * x1 + x2 + x3 * x4, one operand of each kind.
Epilogue all_kinds(DType dtype) {
  Expr sum = operand(0, dtype);
  Expr value = scalar::fma(sum, operand(4, dtype), operand(1, dtype)) + operand(2, dtype) * operand(3, dtype);
  return {value,
          {EpilogueOperand::per_column, EpilogueOperand::per_row, EpilogueOperand::full, EpilogueOperand::scalar}};
}
/// max(sum + bias, 0)
Epilogue bias_relu(DType dtype) {
  return {scalar::maximum(operand(0, dtype) + operand(1, dtype), 0), {EpilogueOperand::per_column}};
}

template <class T>
class Product {
 public:
  Product(GemmSpec spec, Sizes sizes, Count gap, unsigned seed)
      : spec_(std::move(spec)),
        s_(sizes),
        random_(seed),
        left_(spec_.transpose_left ? s_.k : s_.m, spec_.transpose_left ? s_.m : s_.k, s_.batch, gap, random_),
        right_(spec_.transpose_right ? s_.n : s_.k, spec_.transpose_right ? s_.k : s_.n, s_.batch, gap, random_),
        result_(s_.m, s_.n, s_.batch, gap, random_) {
    for (EpilogueOperand kind : spec_.epilogue.operands) {
      bool column = kind == EpilogueOperand::per_column, row = kind == EpilogueOperand::per_row;
      bool full = kind == EpilogueOperand::full;
      Count rows = full ? s_.m : 1, columns = full || column ? s_.n : row ? s_.m : 1;
      operands_.emplace_back(rows, columns, s_.batch, gap, random_);
    }
  }

  void run(const GemmKernel& kernel) {
    std::vector<GemmOperand> views;
    for (Stored<T>& operand : operands_) views.push_back(operand.view());
    kernel.run({s_.m, s_.n, s_.k, s_.batch, left_.view(), right_.view(), result_.view(), views});
  }
  void check(const GemmKernel& kernel) {
    SCOPED_TRACE(name_of(spec_, s_));
    run(kernel);
    EXPECT_TRUE(result_.surroundings_intact());
    int wrong = 0;
    // Large results are sampled: every element of the first and last rows, and some between.
    Count step = std::max<Count>(1, s_.m * s_.n * s_.k / (full_tests() ? 20'000'000 : 4'000'000));
    for (Count i = 0; i < s_.batch && wrong < 3; ++i)
      for (Count r = 0; r < s_.m && wrong < 3; r += (r < 8 || r > s_.m - 9) ? 1 : step)
        for (Count c = 0; c < s_.n && wrong < 3; ++c) wrong += !element_is_right(i, r, c);
    EXPECT_EQ(wrong, 0);
  }
  std::vector<T>& result() { return result_.memory; }

 private:
  bool element_is_right(Count i, Count r, Count c) {
    double sum = 0, size = 0;
    for (Count k = 0; k < s_.k; ++k) {
      double a = spec_.transpose_left ? left_.at(i, k, r) : left_.at(i, r, k);
      double b = spec_.transpose_right ? right_.at(i, c, k) : right_.at(i, k, c);
      sum += a * b;
      size += std::abs(a * b);
    }
    std::vector<ScalarValue> values = {{sum, 0}};
    for (std::size_t o = 0; o < operands_.size(); ++o) {
      EpilogueOperand kind = spec_.epilogue.operands[o];
      bool full = kind == EpilogueOperand::full;
      Count column = full || kind == EpilogueOperand::per_column ? c : kind == EpilogueOperand::per_row ? r : 0;
      values.push_back({static_cast<double>(operands_[o].at(i, full ? r : 0, column)), 0});
    }
    double expected = spec_.epilogue.expression.defined() ? evaluate(spec_.epilogue.expression, values).real : sum;
    double epsilon = std::numeric_limits<T>::epsilon();
    double bound = epsilon * (2 * (static_cast<double>(s_.k) + 8) * size + 8 * (1 + std::abs(expected)));
    double got = result_.at(i, r, c);
    if (std::abs(got - expected) <= bound) return true;
    ADD_FAILURE() << "element " << i << ", " << r << ", " << c << ": " << got << ", expected " << expected << " within "
                  << bound;
    return false;
  }

  GemmSpec spec_;
  Sizes s_;
  std::minstd_rand random_;
  Stored<T> left_, right_, result_;
  std::vector<Stored<T>> operands_;
};

void check_all(DType dtype, const Epilogue& epilogue, std::span<const Sizes> sizes, Count gap) {
  for (int layout = 0; layout < 4; ++layout) {
    GemmKernel kernel({dtype, (layout & 1) != 0, (layout & 2) != 0, epilogue});
    unsigned seed = 1;
    for (const Sizes& s : sizes) {
      if (dtype == f32)
        Product<float>(kernel.spec(), s, gap, ++seed).check(kernel);
      else
        Product<double>(kernel.spec(), s, gap, ++seed).check(kernel);
      if (testing::Test::HasFailure()) return;
    }
  }
}

std::vector<Sizes> edge_sizes() {
  std::vector<Sizes> out;
  for (Count m : {1, 2, 3, 4, 5, 7, 8, 14, 15, 31})
    for (Count n : {1, 7, 16, 17, 33, 64, 65, 100, 131, 300})
      for (Count k : {1, 3, 16, 37}) out.push_back({m, n, k});
  return out;
}

TEST(GemmTest, TileEdges) {
  for (DType dtype : {f32, f64}) check_all(dtype, {}, edge_sizes(), 0);
}

TEST(GemmTest, LeadingDimensionsAndGaps) {
  std::vector<Sizes> sizes = {{1, 1, 1}, {1, 513, 40}, {5, 67, 19}, {13, 130, 64}, {64, 64, 64}, {29, 31, 37}};
  for (DType dtype : {f32, f64}) check_all(dtype, {}, sizes, 3);
}

TEST(GemmTest, RandomSizes) {
  std::minstd_rand random(7);
  std::vector<Sizes> sizes;
  for (int i = 0; i < 30; ++i) {
    auto size = [&](Count most) { return static_cast<Count>(random() % static_cast<unsigned>(most)); };
    sizes.push_back({size(90), size(200), size(150), 1 + size(3)});
  }
  std::vector<Sizes> visited;
  for (std::size_t i : chosen("sizes of products", sizes.size(), 8)) visited.push_back(sizes[i]);
  for (DType dtype : {f32, f64}) {
    check_all(dtype, {}, visited, 1);
    check_all(dtype, all_kinds(dtype), visited, 1);
  }
}

TEST(GemmTest, EpilogueOnEveryTileEdge) {
  std::vector<Sizes> sizes;
  for (const Sizes& s : edge_sizes())
    if (s.k == 3) sizes.push_back(s);
  for (DType dtype : {f32, f64}) {
    check_all(dtype, all_kinds(dtype), sizes, 2);  // too long to be inlined: from a tile put aside
    check_all(dtype, bias_relu(dtype), sizes, 0);
  }
}

TEST(GemmTest, EmptySizes) {
  std::vector<Sizes> sizes;
  for (Count m : {0, 1, 9})
    for (Count n : {0, 1, 70})
      for (Count k : {0, 5})
        for (Count batch : {0, 1, 2}) sizes.push_back({m, n, k, batch});
  for (DType dtype : {f32, f64}) {
    check_all(dtype, {}, sizes, 0);
    check_all(dtype, bias_relu(dtype), sizes, 2);
  }
}

TEST(GemmTest, Batches) {
  std::vector<Sizes> sizes = {{3, 4, 5, 200}, {16, 16, 16, 70}, {65, 130, 33, 5}, {1, 64, 64, 9}};
  for (DType dtype : {f32, f64}) check_all(dtype, bias_relu(dtype), sizes, 1);
}

TEST(GemmTest, SharedMatrixOfABatch) {
  std::vector<float> left = {1, 2, 3, 4}, right = {5, 6}, result(2, -1);
  GemmKernel kernel(GemmSpec{});
  kernel.run({1, 1, 2, 2, {left.data(), 2, 2, 4}, {right.data(), 1, 0, 2}, {result.data(), 1, 1, 2}, {}});
  EXPECT_EQ(result, (std::vector<float>{17, 39}));
}

TEST(GemmTest, BeyondEveryThreshold) {
  GemmSpec spec{f32, true, false, {}};
  EXPECT_EQ(gemm_method(spec, 661, 653, 659), GemmMethod::library_panels);
  std::vector<Sizes> large = {{661, 653, 659}};
  check_all(f32, {}, large, 0);
  check_all(f32, all_kinds(f32), large, 1);
  spec = {f64, false, false, {}};
  EXPECT_EQ(gemm_method(spec, 70, 1040, 1031), GemmMethod::packed_tile);
  std::vector<Sizes> packed = {{70, 1040, 1031}, {1040, 70, 1031}};
  check_all(f64, bias_relu(f64), packed, 0);
  spec = {f32, false, true, {}};
  EXPECT_EQ(gemm_method(spec, 2, 65, 100), GemmMethod::dot);
  EXPECT_EQ(gemm_method(spec, 65, 65, 100), GemmMethod::packed_tile);
  // So long that no panel is made.
  std::vector<Sizes> huge = {{9, 5, 70'001}};
  check_all(f32, {}, huge, 0);
}

TEST(GemmTest, ResultOfAnotherType) {
  Count m = 19, n = 77, k = 23;
  std::minstd_rand random(3);
  Stored<float> left(m, k, 1, 0, random), right(k, n, 1, 0, random);
  std::vector<BFloat16> result(static_cast<std::size_t>(m * n));
  std::vector<std::uint8_t> positive(static_cast<std::size_t>(m * n), 9);
  GemmArguments arguments{m, n, k, 1, left.view(), right.view(), {result.data(), n, 0, m * n}, {}};
  GemmKernel(GemmSpec{f32, false, false, {scalar::cast(operand(0, f32), bf16), {}}}).run(arguments);
  arguments.result.data = positive.data();
  GemmKernel(GemmSpec{f32, false, false, {0 < operand(0, f32), {}}}).run(arguments);
  std::vector<float> sums(static_cast<std::size_t>(m * n));
  arguments.result.data = sums.data();
  GemmKernel(GemmSpec{}).run(arguments);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(result[i].bits, BFloat16(sums[i]).bits);
    EXPECT_EQ(positive[i], sums[i] > 0);
  }
}

TEST(GemmTest, AFullOperandMayBeTheResult) {
  for (Count size : {40, 660}) {  // generated, and by the library
    std::minstd_rand random(5);
    Stored<float> left(size, size, 1, 0, random), right(size, size, 1, 0, random), result(size, size, 1, 0, random);
    Stored<float> before = result;
    GemmKernel plain({f32, true, false, {}}),
        added({f32, true, false, {operand(0, f32) + operand(1, f32), {EpilogueOperand::full}}});
    Stored<float> sums = result;
    plain.run({size, size, size, 1, left.view(), right.view(), sums.view(), {}});
    GemmOperand operands[] = {result.view()};
    added.run({size, size, size, 1, left.view(), right.view(), result.view(), operands});
    for (Count r = 0; r < size; ++r)
      for (Count c = 0; c < size; ++c) ASSERT_EQ(result.at(0, r, c), sums.at(0, r, c) + before.at(0, r, c));
  }
}

TEST(GemmTest, OneThreadAndTwoGiveTheSameBits) {
  int before = thread_count();
  std::vector<Sizes> sizes = {{64, 300, 200},    {700, 50, 90},   {1, 2000, 600},     {3, 40, 3000},
                              {16, 16, 16, 300}, {660, 660, 660}, {256, 300, 140, 3}, {2, 700, 700}};
  for (DType dtype : {f32, f64})
    for (int layout = 0; layout < 4; ++layout)
      for (const Sizes& s : sizes) {
        GemmKernel kernel({dtype, (layout & 1) != 0, (layout & 2) != 0, bias_relu(dtype)});
        auto compare = [&]<class T>(T) {
          Product<T> first(kernel.spec(), s, 0, 11), second(kernel.spec(), s, 0, 11);
          set_thread_count(1);
          first.run(kernel);
          set_thread_count(2);
          second.run(kernel);
          EXPECT_EQ(std::memcmp(first.result().data(), second.result().data(), first.result().size() * sizeof(T)), 0)
              << name_of(kernel.spec(), s);
        };
        dtype == f32 ? compare(0.f) : compare(0.0);
      }
  set_thread_count(before);
}

TEST(GemmTest, OpenMpSettingsOfTheUserStay) {
  omp_set_num_threads(7);
  GemmKernel kernel({f32, true, false, {}});
  Product<float> product(kernel.spec(), {660, 660, 660}, 0, 1);
  product.run(kernel);
  EXPECT_EQ(omp_get_max_threads(), 7);
}

TEST(GemmTest, CodeCanBeLoadedBeforehand) {
  GemmKernel kernel({f64, true, true, bias_relu(f64)});
  for (const Sizes& s : {Sizes{1, 40, 9}, Sizes{30, 70, 50}, Sizes{70, 1040, 1031}}) {
    load_code(kernel.code_requests(s.m, s.n, s.k));
    std::uint64_t compiled = code_statistics().compiled, loaded = code_statistics().loaded;
    Product<double>(kernel.spec(), s, 0, 1).run(kernel);
    EXPECT_EQ(code_statistics().compiled, compiled);
    EXPECT_EQ(code_statistics().loaded, loaded);
  }
}

TEST(GemmTest, ManyCallersShareAKernel) {
  GemmKernel kernel({f32, false, true, bias_relu(f32)});
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (Count size : {3, 40, 150}) Product<float>(kernel.spec(), {size, size + i, size}, 0, i + 1).check(kernel);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(GemmTest, ReachingBeyondABufferIsRefused) {
  std::vector<float> memory(100);
  GemmKernel plain(GemmSpec{}), biased({f32, false, false, bias_relu(f32)});
  GemmMatrix good{memory.data(), 10, 0, 100};
  auto matrix = [&](Count leading, Count batch_stride, Count extent) {
    return GemmMatrix{memory.data(), leading, batch_stride, extent};
  };
  EXPECT_NO_THROW(plain.run({3, 3, 3, 1, good, good, {memory.data() + 50, 10, 0, 50}, {}}));
  Count most = std::numeric_limits<Count>::max();
  for (const GemmMatrix& bad : {matrix(10, 0, 22), matrix(2, 0, 100), matrix(10, -1, 100), matrix(10, 80, 100),
                                matrix(most, 0, 100), matrix(10, most, 100)}) {
    EXPECT_THROW(plain.run({3, 3, 3, 2, bad, good, good, {}}), InternalError);
    EXPECT_THROW(plain.run({3, 3, 3, 2, good, bad, good, {}}), InternalError);
    EXPECT_THROW(plain.run({3, 3, 3, 2, good, good, bad, {}}), InternalError);
  }
  EXPECT_THROW(plain.run({-1, 3, 3, 1, good, good, good, {}}), InternalError);
  EXPECT_THROW(plain.run({most, most, most, most, good, good, good, {}}), InternalError);
  GemmOperand operands[] = {{memory.data(), 0, 0, 2}};
  EXPECT_THROW(biased.run({3, 3, 3, 1, good, good, good, operands}), InternalError);
  EXPECT_THROW(biased.run({3, 3, 3, 1, good, good, good, {}}), InternalError);
}

TEST(GemmTest, BatchesOfBatches) {
  // Heads of samples, as attention has them: matrices that lie in strips beside each other.
  constexpr Count outer = 5, batch = 3, side = 17;
  constexpr Count leading = batch * side, sample = side * leading;
  std::vector<float> left(outer * sample), right(outer * sample), bias(outer * sample);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> value(-1, 1);
  for (std::vector<float>* values : {&left, &right, &bias})
    for (float& v : *values) v = value(random);
  for (bool transpose : {false, true}) {
    GemmKernel kernel({f32, false, transpose, {operand(0, f32) + operand(1, f32), {EpilogueOperand::full}}});
    auto matrix = [&](std::vector<float>& values, Count number) {
      const Count offset = number * sample;
      return GemmMatrix{values.data() + offset, leading, side, outer * sample - offset, sample};
    };
    std::vector<float> apart(outer * sample, -7.f), together(outer * sample, -7.f);
    for (Count number = 0; number < outer; ++number) {
      GemmOperand operands[] = {matrix(bias, number)};
      kernel.run(
          {side, side, side, batch, matrix(left, number), matrix(right, number), matrix(apart, number), operands});
    }
    GemmOperand operands[] = {matrix(bias, 0)};
    kernel.run({side, side, side, batch, matrix(left, 0), matrix(right, 0), matrix(together, 0), operands, outer});
    EXPECT_EQ(apart, together);
    EXPECT_EQ(std::count(together.begin(), together.end(), -7.f), 0);
    kernel.run({side, side, side, batch, matrix(left, 0), matrix(right, 0), matrix(together, 0), operands, 0});
    EXPECT_EQ(apart, together) << "no batches";
    GemmMatrix small = matrix(together, 0);
    --small.extent;
    EXPECT_THROW(kernel.run({side, side, side, batch, matrix(left, 0), matrix(right, 0), small, operands, outer}),
                 InternalError);
    GemmMatrix backwards = matrix(together, 0);
    backwards.outer_stride = -sample;
    EXPECT_THROW(kernel.run({side, side, side, batch, matrix(left, 0), matrix(right, 0), backwards, operands, outer}),
                 InternalError);
  }
}

TEST(GemmTest, TilesStayInRegisters) {
  if (!gemm_wide_tiles()) GTEST_SKIP() << "the names below are those of AVX-512";
  for (DType dtype : {f32, f64})
    for (bool transpose_left : {false, true})
      for (int vectors : {1, 2, 3, 4, 8, 16}) {
        std::string code = assembly_text(gemm_tile_request(dtype, transpose_left, gemm_tile(dtype, vectors), {}));
        std::size_t begin = 0;
        for (std::size_t end; (end = code.find('\n', begin)) != std::string::npos; begin = end + 1) {
          std::string line = code.substr(begin, end - begin);
          bool spill = line.find("zmm") != std::string::npos && line.find("(%rsp)") != std::string::npos;
          ASSERT_FALSE(spill) << vectors << " vectors: " << line;
        }
      }
}

TEST(GemmTest, SpecsThatMakeNoSenseAreRefused) {
  EXPECT_THROW(GemmKernel({i32, false, false, {}}), InternalError);
  EXPECT_THROW(GemmKernel({f64, false, false, {operand(0, f32), {}}}), InternalError);
  EXPECT_THROW(GemmKernel({f32, false, false, {operand(0, f32) + operand(1, f32), {}}}), InternalError);
  EXPECT_THROW(GemmKernel({f32, false, false, {{}, {EpilogueOperand::full}}}), InternalError);
}

}  // namespace
}  // namespace stet::cpu
