// Draws against what SciPy says of their distributions, their gradients against central differences with the same
// numbers, and generators as state. Seeds are fixed; bounds are such that other seeds would fail once in a million.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "tests/public/expect_error.h"
#include "tests/public/random_quantiles.h"

namespace stet {
namespace {

using random::Generator;
using random::Source;
using Draw = std::function<Tensor(const Source&, const Dim& count, DType dtype)>;

const QuantileTable& table(const std::string& name) {
  for (const QuantileTable& one : quantile_tables)
    if (one.name == name) return one;
  throw std::runtime_error("no table of " + name);
}

struct NamedDraw {
  const char* name;
  Draw draw;
};
/// One for each table.
const std::vector<NamedDraw>& named_draws() {
  static const std::vector<NamedDraw> draws = {
      {"uniform", [](auto& g, auto& n, DType t) { return g.uniform({n}, -2.5, 7, {.dtype = t}); }},
      {"normal", [](auto& g, auto& n, DType t) { return g.normal({n}, 1, 2, {.dtype = t}); }},
      {"truncated_normal", [](auto& g, auto& n, DType t) { return g.truncated_normal({n}, 1, 2, {.dtype = t}); }},
      {"gumbel", [](auto& g, auto& n, DType t) { return g.gumbel({n}, 0.5, 2, {.dtype = t}); }},
      {"exponential", [](auto& g, auto& n, DType t) { return g.exponential({n}, 1.5, {.dtype = t}); }},
      {"laplace", [](auto& g, auto& n, DType t) { return g.laplace({n}, -1, 0.5, {.dtype = t}); }},
      {"logistic", [](auto& g, auto& n, DType t) { return g.logistic({n}, 1, 0.5, {.dtype = t}); }},
      {"gamma 0.3", [](auto& g, auto& n, DType t) { return g.gamma({n}, 0.3, {.dtype = t}); }},
      {"gamma 1", [](auto& g, auto& n, DType t) { return g.gamma({n}, 1, {.dtype = t}); }},
      {"gamma 2.5 4", [](auto& g, auto& n, DType t) { return g.gamma({n}, 2.5, 4, {.dtype = t}); }},
      {"gamma 50", [](auto& g, auto& n, DType t) { return g.gamma({n}, 50, {.dtype = t}); }},
      {"gamma 1e6", [](auto& g, auto& n, DType t) { return g.gamma({n}, 1e6, {.dtype = t}); }},
      {"beta 0.5 0.5", [](auto& g, auto& n, DType t) { return g.beta({n}, 0.5, 0.5, {.dtype = t}); }},
      {"beta 2 5", [](auto& g, auto& n, DType t) { return g.beta({n}, 2, 5, {.dtype = t}); }},
      {"dirichlet",
       [](auto& g, auto& n, DType t) {
         Tensor alpha = tensor({1.5, 0.5, 4.0});
         return g.dirichlet({n, 3}, alpha, {.dtype = t})[{Range{}, 0}].contiguous();
       }},
      {"chi2", [](auto& g, auto& n, DType t) { return g.chi2({n}, 3, {.dtype = t}); }},
      {"student_t", [](auto& g, auto& n, DType t) { return g.student_t({n}, 5, {.dtype = t}); }},
      {"poisson 0.1", [](auto& g, auto& n, DType t) { return g.poisson({n}, 0.1, {.dtype = t}); }},
      {"poisson 1", [](auto& g, auto& n, DType t) { return g.poisson({n}, 1, {.dtype = t}); }},
      {"poisson 10", [](auto& g, auto& n, DType t) { return g.poisson({n}, 10, {.dtype = t}); }},
      {"poisson 31.9", [](auto& g, auto& n, DType t) { return g.poisson({n}, 31.9, {.dtype = t}); }},
      {"poisson 32.1", [](auto& g, auto& n, DType t) { return g.poisson({n}, tensor(32.1), {.dtype = t}); }},
      {"poisson 1000", [](auto& g, auto& n, DType t) { return g.poisson({n}, tensor(1000), {.dtype = t}); }},
      {"poisson 1e6", [](auto& g, auto& n, DType t) { return g.poisson({n}, 1e6, {.dtype = t}); }},
      {"multinomial",
       [](auto& g, auto& n, DType t) {
         Tensor p = broadcast_to(tensor({0.6, 1.4, 0.0}), {n, 3});  // proportional to probabilities
         return g.multinomial(40, p, {.dtype = t})[{Range{}, 0}].contiguous();
       }},
  };
  return draws;
}

std::vector<double> doubles(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

/// How often a number fell between two edges, as chi-square; and the largest difference of distribution functions.
struct Fit {
  double chi_square = 0, distance = 0;
};
Fit fit_of(std::vector<double> values, const std::vector<double>& edges, const std::vector<double>& below) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  Fit out;
  double found_before = 0, expected_before = 0;
  for (std::size_t i = 0; i <= edges.size(); ++i) {
    double found = i == edges.size()
                       ? count
                       : static_cast<double>(std::upper_bound(values.begin(), values.end(), edges[i]) - values.begin());
    double expected = count * (i == edges.size() ? 1 : below[i]);
    double difference = found - found_before - (expected - expected_before);
    out.chi_square += difference * difference / (expected - expected_before);
    out.distance = std::max(out.distance, std::abs(found - expected) / count);
    found_before = found;
    expected_before = expected;
  }
  return out;
}

TEST(RandomDistributions, FitWhatSciPySays) {
  ASSERT_EQ(named_draws().size(), quantile_tables.size());
  std::uint64_t seed = 100;
  for (const NamedDraw& one : named_draws())
    for (DType dtype : {f32, f64}) {
      const QuantileTable& expected = table(one.name);
      const bool many = expected.name == "multinomial";
      const std::int64_t count = many ? 20'000 : 200'000;
      std::vector<double> values = doubles(one.draw(Generator(++seed), count, dtype));
      ASSERT_EQ(values.size(), static_cast<std::size_t>(count)) << one.name;
      Fit fit = fit_of(values, expected.edges, expected.below);
      EXPECT_LT(fit.chi_square, chi_square_bounds[expected.edges.size()]) << one.name << " " << dtype;
      EXPECT_LT(fit.distance, 2.7 / std::sqrt(count)) << one.name << " " << dtype;
      double mean = 0, variance = 0;
      for (double value : values) mean += value / static_cast<double>(count);
      for (double value : values) variance += (value - mean) * (value - mean) / static_cast<double>(count);
      EXPECT_NEAR(mean, expected.mean, 5 * std::sqrt(expected.variance / static_cast<double>(count)))
          << one.name << " " << dtype;
      EXPECT_NEAR(variance / expected.variance, 1, 0.06) << one.name << " " << dtype;
    }
}

/// The tests can fail: the same draws do not fit a distribution that differs by a hundredth.
TEST(RandomDistributions, TestsSeeAHundredth) {
  const QuantileTable& expected = table("gamma 2.5 4");
  Fit fit = fit_of(doubles(Generator(1).gamma({200'000}, 2.535, 4)), expected.edges, expected.below);
  EXPECT_GT(fit.chi_square, chi_square_bounds[expected.edges.size()]);
}

/// Kolmogorov and Smirnov's distance of all numbers from a distribution function: above 2.7 / sqrt(n) once in a
/// million.
TEST(RandomDistributions, KolmogorovSmirnov) {
  struct Case {
    const char* name;
    std::function<Tensor(const Source&)> draw;
    double (*distribution)(double);
  };
  const std::int64_t count = 300'000;
  for (const Case& one : {
           Case{"normal", [&](auto& g) { return g.normal({count}, {}); },
                [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; }},
           Case{"normal f64", [&](auto& g) { return g.normal({count}, {.dtype = f64}); },
                [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; }},
           Case{"uniform", [&](auto& g) { return g.uniform({count}, {}); }, [](double x) { return x; }},
           Case{"truncated", [&](auto& g) { return g.truncated_normal({count}, {}); },
                [](double x) { return (std::erf(x / std::sqrt(2)) / std::erf(std::sqrt(2)) + 1) / 2; }},
           Case{"exponential", [&](auto& g) { return g.exponential({count}, 1); },
                [](double x) { return -std::expm1(-x); }},
           Case{"gamma 3", [&](auto& g) { return g.gamma({count}, 3); },
                [](double x) { return 1 - std::exp(-x) * (1 + x + x * x / 2); }},
           Case{"beta 1 3", [&](auto& g) { return g.beta({count}, 1, 3); },
                [](double x) { return 1 - std::pow(1 - x, 3); }},
           Case{"student_t 2", [&](auto& g) { return g.student_t({count}, 2); },
                [](double x) { return 0.5 + x / (2 * std::sqrt(2 + x * x)); }},
       }) {
    std::vector<double> values = doubles(one.draw(Generator(77)));
    std::sort(values.begin(), values.end());
    double distance = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      double expected = one.distribution(values[i]);
      distance = std::max({distance, std::abs(expected - static_cast<double>(i) / static_cast<double>(count)),
                           std::abs(expected - static_cast<double>(i + 1) / static_cast<double>(count))});
    }
    EXPECT_LT(distance, 2.7 / std::sqrt(count)) << one.name;
  }
}

TEST(RandomDistributions, TruncatedNormalStaysWithinTwo) {
  std::vector<double> values = doubles(Generator(3).truncated_normal({300'000}, {}));
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 2);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 1.99);
  EXPECT_GT(*std::min_element(values.begin(), values.end()), -2);
}

// --- choices

TEST(RandomDistributions, CategoricalChoosesInProportion) {
  const std::vector<double> p = {0.5, 0, 0.2, 0.05, 0.25};
  const std::int64_t count = 200'000;
  Tensor probabilities = tensor({{0.5f, 0.f, 0.2f, 0.05f, 0.25f}, {0.25f, 0.05f, 0.2f, 0.f, 0.5f}});
  for (bool logits : {false, true}) {
    Tensor given = logits ? log(probabilities) + 3 : probabilities;
    Tensor drawn = Generator(5).categorical(given, {.samples = count, .probabilities = !logits});
    ASSERT_EQ(drawn.shape().str(), "[2,200000]");
    std::vector<std::int64_t> classes = drawn.to_vector<std::int64_t>();
    for (std::size_t line = 0; line < 2; ++line) {
      std::vector<double> found(5);
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        ++found.at(static_cast<std::size_t>(classes[line * static_cast<std::size_t>(count) + i]));
      for (std::size_t k = 0; k < 5; ++k) {
        double expected = p[line ? 4 - k : k];
        EXPECT_NEAR(found[k] / static_cast<double>(count), expected,
                    5 * std::sqrt(expected * (1 - expected) / static_cast<double>(count)));
      }
    }
  }
  EXPECT_EQ(Generator(5).categorical(probabilities, {.probabilities = true}).shape().str(), "[2]");
  EXPECT_EQ(Generator(5).categorical(probabilities, {.samples = 0}).shape().str(), "[2,0]");
  EXPECT_EQ(Generator(5).categorical(probabilities, {.dtype = i32}).dtype(), i32);
}

TEST(RandomDistributions, Bernoulli) {
  const double count = 200'000;
  Tensor rates = tensor({0.0, 1.0, 0.3, 1e-5});
  std::vector<double> found = doubles(mean(cast(Generator(4).bernoulli({200'000, 4}, rates), f64), 0));
  EXPECT_EQ(found[0], 0);
  EXPECT_EQ(found[1], 1);
  EXPECT_NEAR(found[2], 0.3, 5 * std::sqrt(0.21 / count));
  EXPECT_NEAR(found[3], 1e-5, 5 * std::sqrt(1e-5 / count));
  EXPECT_EQ(Generator(4).bernoulli({3}, 0.5).dtype(), bool_);
  EXPECT_EQ(Generator(4).bernoulli({3}, 0.5, {.dtype = f32}).dtype(), f32);
  // More than what 24 bits tell apart.
  EXPECT_EQ(sum(cast(Generator(6).bernoulli({5'000'000}, 1e-12), i64)).item<std::int64_t>(), 0);
}

/// Every order of four as often as any other: chi-square with 23 degrees of freedom.
TEST(RandomDistributions, PermutationsAreUnbiased) {
  Generator g(8);
  std::vector<double> found(256);
  const int count = 12'000;
  for (int i = 0; i < count; ++i) {
    std::vector<std::int64_t> order = g.permutation(4).to_vector<std::int64_t>();
    ++found[static_cast<std::size_t>(order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3])];
  }
  double chi_square = 0;
  int orders = 0;
  for (double one : found)
    if (one > 0) ++orders, chi_square += (one - count / 24.) * (one - count / 24.) / (count / 24.);
  EXPECT_EQ(orders, 24);
  EXPECT_LT(chi_square, chi_square_bounds[23]);
  std::vector<std::int64_t> large = g.permutation(10'000).to_vector<std::int64_t>();
  EXPECT_EQ(std::set<std::int64_t>(large.begin(), large.end()).size(), 10'000u);
  EXPECT_EQ(*std::min_element(large.begin(), large.end()), 0);
  EXPECT_EQ(*std::max_element(large.begin(), large.end()), 9'999);
  EXPECT_EQ(g.permutation(0).shape().str(), "[0]");
  EXPECT_EQ(g.permutation(1).to_vector<std::int64_t>(), std::vector<std::int64_t>{0});
}

TEST(RandomDistributions, ShuffleMovesSlices) {
  Generator g(9);
  Tensor x = reshape(arange(60), {20, 3});
  std::vector<std::int64_t> rows = g.shuffle(x).to_vector<std::int64_t>();
  std::set<std::int64_t> first;
  bool moved = false;
  for (std::size_t i = 0; i < 20; ++i) {
    first.insert(rows[3 * i]);
    moved |= rows[3 * i] != static_cast<std::int64_t>(3 * i);
    EXPECT_EQ(rows[3 * i] % 3, 0);
    EXPECT_EQ(rows[3 * i + 1], rows[3 * i] + 1);
  }
  EXPECT_TRUE(moved);
  EXPECT_EQ(first.size(), 20u);
  std::vector<std::int64_t> columns = g.shuffle(x, {.axis = -1}).to_vector<std::int64_t>();
  EXPECT_EQ(columns[0] / 3 + columns[1] / 3 + columns[2] / 3, 0);
}

TEST(RandomDistributions, Choice) {
  Generator g(10);
  Tensor x = tensor({10, 20, 30, 40});
  const double count = 100'000;
  auto shares = [&](const Tensor& chosen) {
    std::vector<double> out(4);
    for (int value : chosen.to_vector<int>()) out.at(static_cast<std::size_t>(value / 10 - 1)) += 1;
    return out;
  };
  std::vector<double> even = shares(g.choice(x, 100'000));
  for (double one : even) EXPECT_NEAR(one / count, 0.25, 5 * std::sqrt(0.1875 / count));
  Tensor p = tensor({0.0, 1.0, 3.0, 0.0});
  std::vector<double> uneven = shares(g.choice(x, 100'000, {.p = p}));
  EXPECT_EQ(uneven[0], 0);
  EXPECT_EQ(uneven[3], 0);
  EXPECT_NEAR(uneven[2] / count, 0.75, 5 * std::sqrt(0.1875 / count));
  // Without replacement: each at most once; the first is chosen in proportion.
  Tensor weights = tensor({1.0, 1.0, 2.0, 4.0});
  double last_first = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<int> two = g.choice(x, 2, {.replace = false, .p = weights}).to_vector<int>();
    ASSERT_NE(two[0], two[1]);
    last_first += two[0] == 40;
  }
  EXPECT_NEAR(last_first / 4000, 0.5, 5 * std::sqrt(0.25 / 4000));
  std::vector<int> all = g.choice(x, 4, {.replace = false}).to_vector<int>();
  EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), 4u);
  EXPECT_EQ(g.choice(reshape(arange(6), {2, 3}), 5, {.axis = 1}).shape().str(), "[2,5]");
  EXPECT_CONTAINS(error_of([&] { g.choice(x, 5, {.replace = false}); }), "random::choice: ");
  EXPECT_CONTAINS(error_of([&] { g.choice(x, 5, {.p = tensor({1.0, 2.0})}); }), "one probability for each slice");
  EXPECT_CONTAINS(error_of([&] { g.choice(3, 5); }), "random::choice: x must be a tensor");
}

TEST(RandomDistributions, MultinomialCountsAllTrials) {
  Tensor p = tensor({{1.0, 2.0, 0.0}, {0.0, 0.0, 5.0}});
  Tensor counts = Generator(11).multinomial(1000, p);
  EXPECT_EQ(counts.shape().str(), "[2,3]");
  std::vector<std::int64_t> found = counts.to_vector<std::int64_t>();
  EXPECT_EQ(found[0] + found[1], 1000);
  EXPECT_EQ(found[2], 0);
  EXPECT_EQ(found[5], 1000);
  EXPECT_EQ(Generator(11).multinomial(0, p).to_vector<std::int64_t>(), (std::vector<std::int64_t>(6, 0)));
  EXPECT_EQ(sum(Generator(11).multinomial(7, tensor({1.f, 1.f}))).item<int>(), 7);
}

// --- extremes

TEST(RandomDistributions, Extremes) {
  Generator g(12);
  EXPECT_EQ(doubles(g.poisson({3}, 0)), (std::vector<double>{0, 0, 0}));
  for (DType dtype : {f32, f64}) {
    for (double value : doubles(g.gamma({10'000}, 1e-3, {.dtype = dtype})))
      ASSERT_TRUE(value >= 0 && value < 40) << value;
    // A share of x^0.001 of numbers is below x.
    double above = 0;
    for (double value : doubles(g.gamma({100'000}, 1e-3, {.dtype = dtype}))) above += value > 1e-30;
    EXPECT_NEAR(above / 1e5, 1 - std::pow(1e-30, 1e-3), 5 * std::sqrt(0.07 / 1e5));
    for (double value : doubles(g.beta({10'000}, 1e-3, 1e-3, {.dtype = dtype})))
      ASSERT_TRUE(value >= 0 && value <= 1) << value;
    for (double value : doubles(sum(g.dirichlet({1000, 5}, 1e-3, {.dtype = dtype}), -1))) ASSERT_NEAR(value, 1, 1e-5);
    for (double value : doubles(g.gumbel({300'000}, 0, 1, {.dtype = dtype}))) ASSERT_TRUE(std::isfinite(value));
    for (double value : doubles(g.laplace({300'000}, 0, 1, {.dtype = dtype}))) ASSERT_TRUE(std::isfinite(value));
    EXPECT_EQ(doubles(g.normal({2}, 3, 0, {.dtype = dtype})), (std::vector<double>{3, 3}));
  }
  for (const NamedDraw& one : named_draws()) EXPECT_EQ(one.draw(g, 0, f32).shape().str(), "[0]") << one.name;
  EXPECT_EQ(g.gamma({}, 2).shape().str(), "[]");
  EXPECT_EQ(g.bits({2, 3}).shape().str(), "[2,3]");
}

TEST(RandomDistributions, HalfTypesAreRoundedOnce) {
  for (DType dtype : {f16, bf16})
    for (const NamedDraw& one : named_draws()) {
      Tensor wide = one.draw(Generator(2), 50, f32), narrow = one.draw(Generator(2), 50, dtype);
      EXPECT_EQ(narrow.dtype(), dtype);
      // uniform stays below its bound, otherwise it is the same.
      EXPECT_EQ(doubles(narrow), doubles(cast(wide, dtype))) << one.name;
    }
}

TEST(RandomDistributions, TensorParametersOutOfRangeGiveNaN) {
  Generator g(13);
  Tensor bad = tensor({-1.f, 1.f, NAN});
  auto expect = [](const Tensor& drawn, const char* name) {
    std::vector<double> values = doubles(drawn);
    EXPECT_TRUE(std::isnan(values[0])) << name;
    EXPECT_FALSE(std::isnan(values[1])) << name;
    EXPECT_TRUE(std::isnan(values[2])) << name;
  };
  expect(g.uniform({3}, 0, bad), "uniform");
  expect(g.normal({3}, 0, bad), "normal");
  expect(g.truncated_normal({3}, 0, bad), "truncated_normal");
  expect(g.gumbel({3}, 0, bad), "gumbel");
  expect(g.exponential({3}, bad), "exponential");
  expect(g.laplace({3}, 0, bad), "laplace");
  expect(g.logistic({3}, 0, bad), "logistic");
  expect(g.gamma({3}, bad), "gamma");
  expect(g.gamma({3}, 1, bad), "gamma");
  expect(g.beta({3}, bad, 1), "beta");
  expect(g.chi2({3}, bad), "chi2");
  expect(g.student_t({3}, bad), "student_t");
  expect(g.poisson({3}, bad, {.dtype = f32}), "poisson");
  expect(g.bernoulli({3}, bad, {.dtype = f32}), "bernoulli");
  EXPECT_EQ(g.poisson({3}, bad).to_vector<std::int64_t>()[0], -1);
  EXPECT_EQ(g.poisson({3}, bad).to_vector<std::int64_t>()[2], -1);
}

TEST(RandomDistributions, WrongNumbersAreRefused) {
  Generator g(14);
  EXPECT_CONTAINS(error_of([&] { g.normal({2}, 0, -1); }), "random::normal: stddev -1 is not 0 or more");
  EXPECT_CONTAINS(error_of([&] { random::normal({2}, {.stddev = -1}); }), "random::normal: stddev -1");
  EXPECT_CONTAINS(error_of([&] { g.truncated_normal({2}, {.stddev = NAN}); }), "random::truncated_normal: stddev");
  EXPECT_CONTAINS(error_of([&] { g.bernoulli({2}, 1.5); }), "random::bernoulli: p 1.5 is not in 0 to 1");
  EXPECT_CONTAINS(error_of([&] { g.bernoulli({2}, -0.5); }), "random::bernoulli: p -0.5 is not in 0 to 1");
  EXPECT_CONTAINS(error_of([&] { g.gamma({2}, 0); }), "random::gamma: alpha 0 is not above 0");
  EXPECT_CONTAINS(error_of([&] { g.gamma({2}, 1, -2); }), "random::gamma: beta -2 is not above 0");
  EXPECT_CONTAINS(error_of([&] { g.beta({2}, 1, 0); }), "random::beta: b 0 is not above 0");
  EXPECT_CONTAINS(error_of([&] { g.poisson({2}, -1); }), "random::poisson: rate -1 is not 0 or more");
  EXPECT_CONTAINS(error_of([&] { g.exponential({2}, 0); }), "random::exponential: rate 0 is not above 0");
  EXPECT_CONTAINS(error_of([&] { g.laplace({2}, 0, -1); }), "random::laplace: scale -1 is not 0 or more");
  EXPECT_CONTAINS(error_of([&] { g.dirichlet({}, 1); }), "random::dirichlet: a scalar has no axis");
  EXPECT_CONTAINS(error_of([&] { g.gamma({2}, 1, {.dtype = i32}); }), "random::gamma: random numbers of i32");
  EXPECT_CONTAINS(error_of([&] { g.gamma({2}, ones({3})); }), "random::gamma: ");
  EXPECT_CONTAINS(error_of([&] { g.bits({2}, {.dtype = f32}); }), "random::bits: ");
  // What fails takes no numbers.
  EXPECT_EQ(g.state().to_vector<std::int64_t>(), (std::vector<std::int64_t>{14, 0}));
}

// --- gradients

/// The gradient of a weighted sum of a draw with respect to its parameters, against central differences of the same
/// draw, in f64.
void check_gradients(const char* name, const std::function<Tensor(const Source&, const std::vector<Tensor>&)>& draw,
                     const std::vector<Tensor>& parameters) {
  auto loss = [&](const std::vector<Tensor>& at) {
    Tensor drawn = draw(Generator(21), at);
    Tensor weights = random::stateless_uniform(drawn.shape(), {1, 2}, {.minval = 0.5, .dtype = f64});
    return sum(drawn * weights);
  };
  GradientTape tape;
  for (const Tensor& parameter : parameters) tape.watch(parameter);
  Tensor value = loss(parameters);
  std::vector<Tensor> found = tape.gradient(value, parameters);
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    ASSERT_TRUE(found[k].defined()) << name << " " << k;
    std::vector<double> slopes = doubles(found[k]), at = doubles(parameters[k]);
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double step = 1e-5 * std::max(1.0, std::abs(at[i]));
      double ends[2];
      for (int side : {0, 1}) {
        std::vector<double> moved = at;
        moved[i] += side ? step : -step;
        std::vector<Tensor> all = parameters;
        all[k] = reshape(tensor(moved), parameters[k].shape());
        ends[side] = loss(all).item<double>();
      }
      double expected = (ends[1] - ends[0]) / (2 * step);
      EXPECT_NEAR(slopes[i], expected, 2e-6 * std::max(1.0, std::abs(expected))) << name << " " << k << " " << i;
    }
  }
}

TEST(RandomDistributions, GradientsGoThroughDraws) {
  using P = const std::vector<Tensor>&;
  Tensor a = tensor({0.4, 1.3, 9.5}), b = tensor({{1.5}, {0.7}}), c = tensor({-1.0, 0.3, 2.0});
  check_gradients("uniform", [](auto& g, P p) { return g.uniform({2, 3}, p[0], p[1]); }, {c, tensor({{3.0}, {4.0}})});
  check_gradients("normal", [](auto& g, P p) { return g.normal({2, 3}, p[0], p[1]); }, {c, b});
  check_gradients("truncated", [](auto& g, P p) { return g.truncated_normal({2, 3}, p[0], p[1]); }, {c, b});
  check_gradients("gumbel", [](auto& g, P p) { return g.gumbel({2, 3}, p[0], p[1]); }, {c, b});
  check_gradients("exponential", [](auto& g, P p) { return g.exponential({2, 3}, p[0]); }, {a});
  check_gradients("laplace", [](auto& g, P p) { return g.laplace({2, 3}, p[0], p[1]); }, {c, b});
  check_gradients("logistic", [](auto& g, P p) { return g.logistic({2, 3}, p[0], p[1]); }, {c, b});
  check_gradients("gamma", [](auto& g, P p) { return g.gamma({2, 3}, p[0]); }, {a});
  check_gradients("gamma rate", [](auto& g, P p) { return g.gamma({2, 3}, p[0], p[1]); }, {a, b});
  check_gradients("gamma scalar", [](auto& g, P p) { return g.gamma({2, 3}, p[0]); }, {tensor(1.7)});
  check_gradients("beta", [](auto& g, P p) { return g.beta({2, 3}, p[0], p[1]); }, {a, b});
  check_gradients("dirichlet", [](auto& g, P p) { return g.dirichlet({2, 3}, p[0]); }, {a});
  check_gradients("chi2", [](auto& g, P p) { return g.chi2({2, 3}, p[0]); }, {a});
  check_gradients("student_t", [](auto& g, P p) { return g.student_t({2, 3}, p[0]); }, {a});
  // The gradient's gradient.
  check_gradients("gamma twice",
                  [](auto& g, P p) {
                    GradientTape inner;
                    inner.watch(p[0]);
                    return inner.gradient(sum(g.gamma({3}, p[0])), {p[0]})[0];
                  },
                  {a});
}

/// The mean of d gamma / d alpha is 1, and of d gamma^2 / d alpha is 2 alpha + 1, as those of their means.
TEST(RandomDistributions, GammaGradientsAreUnbiased) {
  const std::int64_t count = 400'000;
  for (double shape : {0.2, 1.0, 7.5, 60.0}) {
    Tensor alpha = full({count}, shape, f64);
    GradientTape tape = GradientTape({.persistent = true});
    tape.watch(alpha);
    Tensor drawn = Generator(31).gamma({count}, alpha);
    Tensor first = sum(drawn), second = sum(square(drawn));
    for (auto [target, expected] : {std::pair{first, 1.0}, std::pair{second, 2 * shape + 1}}) {
      std::vector<double> slopes = doubles(tape.gradient(target, {alpha})[0]);
      double mean = 0, variance = 0;
      for (double slope : slopes) mean += slope / static_cast<double>(count);
      for (double slope : slopes) variance += (slope - mean) * (slope - mean) / static_cast<double>(count);
      EXPECT_NEAR(mean, expected, 5 * std::sqrt(variance / static_cast<double>(count))) << shape;
    }
  }
}

// --- generators

/// Traced as eagerly, other numbers in the second call, and one trace for all sizes.
TEST(RandomGenerators, TracedDrawsAreTheEagerOnes) {
  std::vector<NamedDraw> draws = named_draws();
  draws.push_back({"permutation", [](auto& g, auto& n, DType) { return g.permutation(n); }});
  draws.push_back({"shuffle", [](auto& g, auto& n, DType) { return g.shuffle(arange(n)); }});
  draws.push_back({"choice", [](auto& g, auto& n, DType) { return g.choice(arange(n + 3), n); }});
  draws.push_back(
      {"choice once", [](auto& g, auto& n, DType) { return g.choice(arange(n + 3), n, {.replace = false}); }});
  draws.push_back({"bits", [](auto& g, auto& n, DType) { return g.bits({n}); }});
  draws.push_back({"categorical", [](auto& g, auto& n, DType) {
                     return g.categorical(tensor({0.1f, 0.4f, 0.2f}), {.samples = n});
                   }});
  draws.push_back({"bernoulli", [](auto& g, auto& n, DType) { return g.bernoulli({n}, 0.4); }});
  for (const NamedDraw& one : draws) {
    Generator eager(17), traced(17);
    Function f = function("f(x)", [=](Tensor x) { return one.draw(traced, x.dim(0), f32); });
    std::vector<double> before;
    for (int size : {40, 40, 17, 1}) {
      std::vector<double> expected = doubles(one.draw(eager, size, f32)), found = doubles(f(zeros({size})));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], 4e-6 * std::max(1.0, std::abs(expected[i]))) << one.name;
      EXPECT_NE(found, before) << one.name;
      before = found;
    }
    EXPECT_EQ(f.trace_count(), 1) << one.name;
    EXPECT_EQ(eager.state().to_vector<std::int64_t>(), traced.state().to_vector<std::int64_t>()) << one.name;
  }
}

TEST(RandomGenerators, StateIsKeptAndGivenBack) {
  Generator g(5), copy = g;
  std::vector<double> first = doubles(g.normal({10}));
  Tensor middle = g.state();
  std::vector<double> second = doubles(copy.normal({10}));  // copies share
  EXPECT_NE(first, second);
  g.restore(middle);
  EXPECT_EQ(doubles(g.normal({10})), second);
  Generator other(99);
  other.restore(middle);
  EXPECT_EQ(doubles(other.normal({10})), second);
  EXPECT_EQ(doubles(Generator(5).normal({10})), first);
  EXPECT_FALSE(g.variable().trainable());
  // The process's generator is one of them, and is not moved by others.
  random::seed(5);
  EXPECT_EQ(doubles(random::normal({10})), first);
  EXPECT_EQ(random::default_generator().state().to_vector<std::int64_t>(), middle.to_vector<std::int64_t>());
}

TEST(RandomGenerators, SplitsAreIndependent) {
  const std::int64_t count = 50'000;
  Generator parent(6);
  std::vector<Generator> generators = parent.split(4);
  for (const Generator& one : parent.split(2)) generators.push_back(one);  // others than the first
  generators.push_back(parent);
  std::vector<std::vector<double>> draws;
  std::set<std::int64_t> keys;
  for (const Generator& one : generators) {
    keys.insert(one.state().to_vector<std::int64_t>()[0]);
    draws.push_back(doubles(one.normal({count}, {.dtype = f64})));
  }
  EXPECT_EQ(keys.size(), generators.size());
  for (std::size_t a = 0; a < draws.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      for (std::size_t lag : {0, 1}) {
        double sum = 0;
        for (std::size_t i = 0; i + lag < draws[a].size(); ++i) sum += draws[a][i + lag] * draws[b][i];
        EXPECT_LT(std::abs(sum) / std::sqrt(static_cast<double>(count)), 5.5) << a << " " << b;
      }
  EXPECT_EQ(doubles(Generator(6).split(3)[2].uniform({5})), doubles(Generator(6).split(3)[2].uniform({5})));
  // Of streams: a function of its arguments.
  EXPECT_EQ(random::split({1, 2}, 3), random::split({1, 2}, 3));
  EXPECT_NE(random::split({1, 2}, 1)[0], random::split({1, 3}, 1)[0]);
  EXPECT_EQ(random::split({1, 2}, 5)[1], random::split({1, 2}, 2)[1]);
  EXPECT_CONTAINS(error_of([] { Generator(1).split(-1); }), "-1 generators cannot be made");
  Generator captured(3);
  Function f = function("f(x)", [=](Tensor x) { return x + captured.split(1)[0].uniform({1}); });
  EXPECT_CONTAINS(error_of([&] { f(ones({1})); }), "Generator::split: 'f' is being traced");
}

TEST(RandomGenerators, StatelessDrawsAreFunctions) {
  random::seed(3);
  std::vector<std::int64_t> before = random::default_generator().state().to_vector<std::int64_t>();
  random::StreamSeed stream = {7, 8};
  EXPECT_EQ(doubles(random::stateless_gamma({5}, stream, 2)), doubles(random::stateless_gamma({5}, stream, 2)));
  EXPECT_EQ(doubles(random::stateless_gamma({5}, stream, 2)), doubles(random::Stream(stream).gamma({5}, 2)));
  EXPECT_NE(doubles(random::stateless_gamma({5}, stream, 2)), doubles(random::stateless_gamma({5}, {7, 9}, 2)));
  EXPECT_EQ(doubles(random::stateless_poisson({5}, stream, 50)), doubles(random::stateless_poisson({5}, stream, 50)));
  EXPECT_EQ(doubles(random::stateless_permutation(9, stream)), doubles(random::stateless_permutation(9, stream)));
  EXPECT_EQ(doubles(random::stateless_shuffle(arange(9), stream)), doubles(random::stateless_permutation(9, stream)));
  EXPECT_EQ(random::default_generator().state().to_vector<std::int64_t>(), before);
}

/// Each free function draws from the process's generator as a generator with that seed would.
TEST(RandomGenerators, FreeFunctionsUseTheProcessesGenerator) {
  random::seed(44);
  Generator g(44);
  EXPECT_EQ(doubles(random::gamma({6}, 2)), doubles(g.gamma({6}, 2)));
  EXPECT_EQ(doubles(random::beta({6}, 2, 3)), doubles(g.beta({6}, 2, 3)));
  EXPECT_EQ(doubles(random::categorical(ones({6, 3}))), doubles(g.categorical(ones({6, 3}))));
  EXPECT_EQ(doubles(random::poisson({6}, tensor(40.f))), doubles(g.poisson({6}, tensor(40.f))));
  EXPECT_EQ(doubles(random::choice(arange(9), 3)), doubles(g.choice(arange(9), 3)));
  EXPECT_EQ(doubles(random::student_t({6}, 3)), doubles(g.student_t({6}, 3)));
  EXPECT_EQ(doubles(random::uniform({6})), doubles(g.uniform({6})));
}

/// The type of tensors among the parameters, f32 of numbers.
TEST(RandomDistributions, TypesFollowParameters) {
  Generator g(1);
  EXPECT_EQ(g.gamma({2}, 1.5).dtype(), f32);
  EXPECT_EQ(g.gamma({2}, tensor(1.5)).dtype(), f64);
  EXPECT_EQ(g.gamma({2}, cast(tensor(1.5), bf16)).dtype(), bf16);
  EXPECT_EQ(g.normal({2}, tensor({1.f, 2.f}), tensor(1.0)).dtype(), f64);
  EXPECT_EQ(g.normal({2}, tensor({1.f, 2.f}), 1.0).dtype(), f32);
  EXPECT_EQ(g.gamma({2}, tensor({1, 2})).dtype(), f32);
}

}  // namespace
}  // namespace stet
