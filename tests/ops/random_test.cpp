// Random rows: Philox's published test vectors (in make_values.py, whose implementation is its own), the same numbers
// as that implementation, and moments.
#include "stet/ops/random_words.h"
#include "tests/ops/coverage.h"
#include "tests/ops/oracle.h"

namespace stet::op_test {
namespace {

class Random : public OpTest {
 protected:
  void TearDown() override {
    set_thread_count(threads_before_);
    OpTest::TearDown();
  }
  int threads_before_ = thread_count();
};

const OracleBlock& block_of(const std::string& header) {
  const OracleBlock* block = Oracle::instance().find(header);
  if (!block) throw std::runtime_error("no values of " + header);
  return *block;
}

constexpr std::uint64_t seeds[] = {0, 42, (std::uint64_t{1} << 63) + 12345};

TEST_F(Random, UniformIsPhiloxExactly) {
  for (std::uint64_t seed : seeds)
    for (DType dtype : floating_dtypes)
      for (auto [low, high] : {std::pair{0.0, 1.0}, std::pair{-2.5, 7.0}}) {
        Values expected = block_of(text("random uniform ", dtype, " ", seed, " ", low, " ", high)).values("=");
        random::UniformOptions options{.minval = low, .maxval = high, .dtype = dtype};
        random::seed(seed);
        EXPECT_EQ(values_of(random::uniform({40}, options)), expected) << dtype << " " << seed;
        // The counter goes on: two draws are one, cut.
        random::seed(seed);
        Values first = values_of(random::uniform({3, 5}, options)), second = values_of(random::uniform({25}, options));
        first.insert(first.end(), second.begin(), second.end());
        EXPECT_EQ(first, expected) << dtype << " " << seed;
        tested(uniform_row, dtype, Aspect::eager);
      }
}

/// sqrt(-2 log u) is below 6.7 and the angle's error below 2 pi u: 64 u is more than both.
TEST_F(Random, NormalIsBoxMuller) {
  for (std::uint64_t seed : seeds)
    for (DType dtype : floating_dtypes) {
      Values expected = block_of(text("random normal ", dtype, " ", seed, " 1 2")).values("=");
      random::seed(seed);
      Values got = values_of(random::normal({40}, {.mean = 1, .stddev = 2, .dtype = dtype}));
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(static_cast<double>(got[i]), static_cast<double>(expected[i]),
                    static_cast<double>(64 * unit_roundoff(dtype)))
            << dtype << " " << i;
      tested(normal_row, dtype, Aspect::eager);
    }
}

/// Sizes that no counter's numbers fill: the last elements are other counters' first numbers.
TEST_F(Random, NormalOfOddSizes) {
  for (std::uint64_t seed : seeds)
    for (DType dtype : floating_dtypes) {
      Values expected = block_of(text("random normal ", dtype, " ", seed, " 1 2 rest")).values("=");
      random::seed(seed);
      Values got = values_of(random::normal({7}, {.mean = 1, .stddev = 2, .dtype = dtype}));
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(static_cast<double>(got[i]), static_cast<double>(expected[i]),
                    static_cast<double>(64 * unit_roundoff(dtype)))
            << dtype << " " << i;
      for (std::int64_t size = 0; size < 20; ++size)
        EXPECT_EQ(values_of(random::normal({size}, {.dtype = dtype})).size(), static_cast<std::size_t>(size));
    }
}

/// SciPy's quantiles of the same words: f32 up to its rounding, f64 up to how close the fitted quantiles are.
TEST_F(Random, GammaIsTheQuantileOfItsWords) {
  for (std::uint64_t seed : seeds)
    for (DType dtype : {DType::f32, DType::f64})
      for (const char* name : {"0.01", "0.5", "3", "100000"}) {
        const double alpha = std::stod(name);
        Values expected = block_of(text("random gamma ", dtype, " ", seed, " ", name)).values("=");
        random::seed(seed);
        Values got = values_of(random::gamma({40}, alpha, {.dtype = dtype}));
        ASSERT_EQ(got.size(), expected.size());
        // Of small shapes, errors of the logarithm (up to 1600 here) are errors of the number.
        double bound = dtype == DType::f32 ? (alpha < 0.1 ? 4e-4 : 4e-6) : 1e-7;
        for (std::size_t i = 0; i < got.size(); ++i)
          EXPECT_NEAR(static_cast<double>(got[i]), static_cast<double>(expected[i]),
                      bound * static_cast<double>(expected[i]) + 1e-37)
              << dtype << " " << alpha << " " << i;
        tested(random_gamma_row, dtype, Aspect::eager);
      }
}

/// All draws, with the bits of one thread on two.
TEST_F(Random, SameBitsOnOneAndTwoThreads) {
  const Dim count = 150'001;
  Tensor alpha = full({count}, 1.7);
  const std::function<Tensor(const random::Source&)> draws[] = {
      [&](auto& g) { return g.uniform({count}, 0, alpha); },
      [&](auto& g) { return g.normal({count}); },
      [&](auto& g) { return g.normal({count}, {.dtype = DType::f64}); },
      [&](auto& g) { return g.truncated_normal({count}); },
      [&](auto& g) { return g.bits({count}); },
      [&](auto& g) { return g.randint({count}, 0, 1000); },
      [&](auto& g) { return g.bernoulli({count}, 0.3); },
      [&](auto& g) { return g.gumbel({count}, 0, alpha); },
      [&](auto& g) { return g.gamma({count}, alpha); },
      [&](auto& g) { return g.beta({count}, alpha, alpha); },
      [&](auto& g) {
        return g.dirichlet({50'000, 3}, 0.5);
      },
      [&](auto& g) { return g.student_t({count}, alpha); },
      [&](auto& g) { return g.poisson({count}, alpha * 20); },
      [&](auto& g) { return g.permutation(count); },
      [&](auto& g) {
        return g.categorical(zeros({count / 10, 10}));
      },
      [&](auto& g) { return g.choice(alpha, 100'000, {.p = alpha}); },
      [&](auto& g) {
        return g.multinomial(100, reshape(alpha[range(0, 150'000)], {3000, 50}));
      },
  };
  int number = 0;
  for (const auto& draw : draws) {
    set_thread_count(1);
    Tensor alone = draw(random::Generator(3));
    set_thread_count(2);
    EXPECT_TRUE(same_bits(alone, draw(random::Generator(3)))) << "draw " << number++;
  }
}

/// The two halves of a word are random, and narrower types are its low bits.
TEST_F(Random, BitsAreUniform) {
  std::vector<std::int64_t> words = random::Generator(1).bits({100'000}).to_vector<std::int64_t>();
  std::vector<double> ones(64);
  for (std::int64_t word : words)
    for (std::size_t bit = 0; bit < 64; ++bit) ones[bit] += static_cast<double>(word >> bit & 1);
  for (double count : ones) EXPECT_NEAR(count, 50'000, 5.5 * std::sqrt(25'000));
  for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
    EXPECT_TRUE(
        same_bits(random::Generator(1).bits({100}, {.dtype = dtype}), cast(random::Generator(1).bits({100}), dtype)))
        << dtype;
    tested(random_bits_row, dtype, Aspect::eager);  // in i64 they are words of Philox: structured_test.cpp
  }
}

TEST_F(Random, RandintIsPhiloxExactly) {
  for (std::uint64_t seed : seeds)
    for (auto [low, high] : {std::pair<std::int64_t, std::int64_t>{0, 10},
                             {-128, 128},
                             {-(std::int64_t{1} << 40), std::int64_t{1} << 40},
                             {0, std::int64_t{1} << 31},
                             {5, 6},
                             {INT64_MIN, INT64_MAX},
                             {INT64_MIN, 0}}) {
      random::seed(seed);
      Values expected = block_of(text("random randint i64 ", seed, " ", low, " ", high)).values("=");
      EXPECT_EQ(values_of(random::randint({40}, low, high)), expected);
      for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
        if (low < row(dtype).lowest || high - 1 > row(dtype).highest) continue;
        random::seed(seed);
        EXPECT_EQ(values_of(random::randint({40}, low, high, {.dtype = dtype})), expected) << dtype;
        tested(randint_row, dtype, Aspect::eager);
      }
    }
}

/// A row's first sample, with results of the type.
Sample typed_sample(const OpDef& op, DType dtype) {
  Sample sample = samples_of(op).front();
  if (&op == &random_gamma_row) return sample;
  RandomAttributes attributes = sample.attributes.as<RandomAttributes>();
  attributes.dtype = dtype;
  sample.attributes = Attributes(view_of(attributes));
  return sample;
}

/// One program draws what eager calls draw, at two sizes and in every type.
TEST_F(Random, RowsAsGraphsInEveryType) {
  for (const OpDef* op : all_rows()) {
    if (op->kind != Kind::random) continue;
    for (DType dtype : all_dtypes) {
      if (!takes(*op, dtype)) continue;
      SCOPED_TRACE(text(op->name, " of ", dtype));
      Sample sample = typed_sample(*op, dtype), larger = grown(sample);
      DType parameters = compute_type(dtype);
      std::vector<Tensor> inputs = drawn_inputs(sample, parameters), more = drawn_inputs(larger, parameters);
      OneNode graph(*op, inputs, sample.attributes);
      Tensor drawn = eager(*op, inputs, sample.attributes);
      EXPECT_EQ(drawn.dtype(), dtype);
      EXPECT_TRUE(same_bits(graph.run(inputs, sample.attributes), drawn));
      Tensor other = graph.run(more, larger.attributes);
      ASSERT_TRUE(other.defined()) << graph.str();
      EXPECT_NE(sizes_of(other), sizes_of(drawn));
      EXPECT_TRUE(same_bits(other, eager(*op, more, larger.attributes)));
      tested(*op, dtype, Aspect::traced, {drawn, other});
    }
  }
}

TEST_F(Random, RowsRefuseOtherTypes) {
  for (const OpDef* op : all_rows()) {
    if (op->kind != Kind::random) continue;
    for (DType dtype : all_dtypes) {
      if (takes(*op, dtype)) continue;
      Sample sample = typed_sample(*op, dtype);
      std::string message = message_of([&] { return eager(*op, drawn_inputs(sample, dtype), sample.attributes); });
      std::string problem = op == &random_gamma_row ? text("'alpha' is ", dtype, ", not f32 or f64")
                                                    : text("random numbers of ", dtype, " do not exist here");
      EXPECT_NE(message.find(text(op->name, ": ", problem)), std::string::npos) << message;
      tested(*op, dtype, Aspect::errors);
    }
  }
}

/// Mean and variance within five standard errors, all in range, and the ends of the range are met.
TEST_F(Random, Moments) {
  const std::int64_t count = 200'000;
  auto moments = [&](const Tensor& tensor) {
    Value mean = 0, square = 0;
    Values values = values_of(tensor);
    for (Value value : values) mean += value / count;
    for (Value value : values) square += (value - mean) * (value - mean) / count;
    return std::pair{static_cast<double>(mean), static_cast<double>(square)};
  };
  random::seed(7);
  double deviations = 5 / std::sqrt(static_cast<double>(count));
  for (DType dtype : {DType::f32, DType::f64}) {
    auto [mean, variance] = moments(random::normal({count}, {.mean = 3, .stddev = 2, .dtype = dtype}));
    EXPECT_NEAR(mean, 3, 2 * deviations);
    EXPECT_NEAR(variance, 4, 4 * std::sqrt(2) * deviations);
    Tensor uniform = random::uniform({count}, {.minval = -1, .maxval = 3, .dtype = dtype});
    auto [middle, spread] = moments(uniform);
    EXPECT_NEAR(middle, 1, 4 / std::sqrt(12) * deviations);
    EXPECT_NEAR(spread, 16.0 / 12, 16.0 / 12 * deviations);
    EXPECT_GE(min(uniform).item<double>(), -1);
    EXPECT_LT(max(uniform).item<double>(), 3);
  }
  for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
    Tensor dice = random::randint({count}, 1, 7, {.dtype = dtype});
    EXPECT_EQ(dice.dtype(), dtype);
    auto [mean, variance] = moments(dice);
    EXPECT_NEAR(mean, 3.5, std::sqrt(35.0 / 12) * deviations);
    EXPECT_NEAR(variance, 35.0 / 12, 35.0 / 12 * deviations);
    EXPECT_EQ(min(dice).item<int>(), 1);
    EXPECT_EQ(max(dice).item<int>(), 6);
  }
}

/// f16 and bf16 have few numbers below maxval: rounding must not reach it.
TEST_F(Random, UniformStaysBelowMaxval) {
  for (DType dtype : floating_dtypes) {
    Values values = values_of(random::uniform({100'000}, {.dtype = dtype}));
    for (Value value : values) ASSERT_TRUE(value >= 0 && value < 1) << dtype << " " << static_cast<double>(value);
    EXPECT_EQ(values_of(random::uniform({3}, {.minval = 2, .maxval = 2, .dtype = dtype})), (Values{2, 2, 2}));
  }
}

/// The widest ranges there are.
TEST_F(Random, RandintOfEveryWidth) {
  for (auto [low, high] : {std::pair<std::int64_t, std::int64_t>{INT64_MIN, INT64_MAX},
                           {INT64_MIN, INT64_MIN + 1},
                           {INT64_MAX - 1, INT64_MAX},
                           {INT64_MIN, 0},
                           {-1, INT64_MAX},
                           {0, INT64_MAX},
                           {INT32_MIN, std::int64_t{INT32_MAX} + 1}}) {
    bool below = false, above = false;
    std::int64_t middle = low / 2 + high / 2;
    for (std::int64_t value : random::randint({2000}, low, high).to_vector<std::int64_t>()) {
      ASSERT_TRUE(value >= low && value < high) << value << " is not in " << low << " to " << high;
      below |= value < middle;
      above |= value >= middle;
    }
    if (static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) > 2) {
      EXPECT_TRUE(below && above) << low << " to " << high;
    }
  }
  for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32}) {
    auto low = row(dtype).lowest, high = row(dtype).highest;
    Tensor all = random::randint({5000}, low, high + 1, {.dtype = dtype});
    EXPECT_LT(min(all).item<std::int64_t>(), low / 2 + high / 2) << dtype;
    EXPECT_GT(max(all).item<std::int64_t>(), low / 2 + high / 2) << dtype;
  }
}

TEST_F(Random, EmptyAndScalar) {
  EXPECT_EQ(sizes_of(random::uniform({0, 3})), (Sizes{0, 3}));
  EXPECT_EQ(sizes_of(random::normal({})), (Sizes{}));
  EXPECT_EQ(sizes_of(random::randint({1, 1}, 0, 2)), (Sizes{1, 1}));
}

/// A draw that fails takes no numbers.
TEST_F(Random, FailedDrawTakesNothing) {
  random::seed(9);
  Tensor first = random::uniform({4});
  random::seed(9);
  EXPECT_THROW(random::uniform({std::int64_t{1} << 50}), UserError);
  EXPECT_THROW(random::uniform({4}, {.dtype = DType::i32}), UserError);
  EXPECT_TRUE(same_bits(random::uniform({4}), first));
}

}  // namespace
}  // namespace stet::op_test
