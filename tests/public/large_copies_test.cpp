// What is cut into pieces by size, at sizes around the cuts: transposed copies, and scatters of which many meet.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

class Threads {
 public:
  explicit Threads(int count) : before_(thread_count()) { set_thread_count(count); }
  ~Threads() { set_thread_count(before_); }

 private:
  int before_;
};

/// x[i, j, k] is its own flat position, as far as the type holds it.
template <class T>
void expect_transposed(DType dtype, std::int64_t n, std::int64_t m, std::int64_t k) {
  Tensor x = cast(reshape(arange(n * m * k) % 251, {n, m, k}), dtype);
  const std::vector<std::vector<int>> orders{{0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {1, 0, 2}};
  const std::int64_t sizes[] = {n, m, k}, strides[] = {m * k, k, 1};
  for (const std::vector<int>& order : orders) {
    std::vector<T> got = transpose(x, order).contiguous().to_vector<T>();
    std::size_t at = 0;
    for (std::int64_t a = 0; a < sizes[order[0]]; ++a)
      for (std::int64_t b = 0; b < sizes[order[1]]; ++b)
        for (std::int64_t c = 0; c < sizes[order[2]]; ++c, ++at)
          ASSERT_EQ(got[at],
                    static_cast<T>((a * strides[order[0]] + b * strides[order[1]] + c * strides[order[2]]) % 251))
              << dtype << " " << order[0] << order[1] << order[2] << " at " << a << "," << b << "," << c;
  }
}

TEST(LargeCopies, TransposedAtSizesAroundASquare) {
  for (std::int64_t m : {1, 3, 4, 63, 64, 65, 131})
    for (std::int64_t k : {1, 5, 64, 66}) {
      expect_transposed<float>(f32, 2, m, k);
      expect_transposed<std::uint8_t>(u8, 3, m, k);
    }
  expect_transposed<double>(f64, 3, 65, 130);
  expect_transposed<std::int16_t>(i16, 3, 65, 130);
  expect_transposed<std::int64_t>(i64, 1, 70, 67);
}

TEST(LargeCopies, TransposedPartsInOneTraceForAllSizes) {
  Function f = function("f(x)", [](Tensor x) {
    return transpose(x[{range(1, 1000), Range{.step = 2}}]).contiguous() + 0.f;
  });
  for (std::int64_t n : {5, 64, 129, 1}) {
    Tensor x = reshape(cast(arange(n * 70), f32), {n, 70});
    std::vector<float> got = f(x).to_vector<float>();
    ASSERT_EQ(got.size(), static_cast<std::size_t>((n - 1) * 35));
    for (std::int64_t b = 0, at = 0; b < 35; ++b)
      for (std::int64_t a = 1; a < n; ++a, ++at)
        ASSERT_EQ(got[static_cast<std::size_t>(at)], static_cast<float>(a * 70 + b * 2));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(LargeCopies, FilledAtSizesAroundABlock) {
  for (std::int64_t count : {0, 1, 511, 512, 513, 1023, 1025, 4097, 32'767, 32'769, 65'537, 300'001}) {
    EXPECT_EQ(full({count}, 2.5, f64).to_vector<double>(), std::vector<double>(static_cast<std::size_t>(count), 2.5));
    EXPECT_EQ(full({count}, -3, i16).to_vector<std::int16_t>(),
              std::vector<std::int16_t>(static_cast<std::size_t>(count), -3));
    EXPECT_EQ(ones({count}, u8).to_vector<std::uint8_t>(),
              std::vector<std::uint8_t>(static_cast<std::size_t>(count), 1));
  }
}

TEST(LargeCopies, BackwardsAtSizesAroundAVector) {
  for (std::int64_t n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1000}) {
    Tensor x = arange(n * 2);
    for (std::int64_t step : {-1, -2, -3, -1}) {
      std::vector<std::int64_t> expected;
      for (std::int64_t i = 2 * n - 1; i >= 0; i += step) expected.push_back(i);
      EXPECT_EQ(x[Range{.step = step}].contiguous().to_vector<std::int64_t>(), expected);
      EXPECT_EQ((cast(x, f32)[Range{.step = step}] + 0.f).to_vector<std::int64_t>(), expected);
    }
    EXPECT_EQ(reverse(cast(x, u8), 0).to_vector<int>(), reverse(cast(cast(x, u8), i32), 0).to_vector<int>());
  }
}

/// So many updates for a few places that pieces of them have results of their own.
constexpr std::int64_t many = 200'000, places = 7;

Tensor places_of_updates() {
  return random::stateless_randint({many}, {1, 2}, 0, places - 1);
}  // none goes to the last

TEST(ManyMeet, SumsProductsAndExtremesOfFewPlaces) {
  Tensor at = places_of_updates(), updates = random::stateless_normal({many}, {3, 4}, {.dtype = f64});
  Tensor x = tensor({1., 2., 3., 4., 5., 6., -0.});
  std::vector<std::int64_t> index = at.to_vector<std::int64_t>();
  std::vector<double> value = updates.to_vector<double>(), sum = x.to_vector<double>(), largest = sum, smallest = sum,
                      product = sum;
  for (std::size_t i = 0; i < value.size(); ++i) {
    auto place = static_cast<std::size_t>(index[i]);
    sum[place] += value[i];
    largest[place] = std::max(largest[place], value[i]);
    smallest[place] = std::min(smallest[place], value[i]);
    product[place] *= 1 + value[i] * 1e-6;
  }
  std::vector<double> first;
  for (int threads : {1, 2}) {
    Threads here(threads);
    std::vector<double> got = scatter_add(x, at, updates).to_vector<double>();
    for (std::size_t p = 0; p < sum.size(); ++p) EXPECT_NEAR(got[p], sum[p], 1e-9) << p;
    EXPECT_TRUE(std::signbit(got.back()));
    if (threads == 1) first = got;
    EXPECT_EQ(got, first);
    EXPECT_EQ(scatter_max(x, at, updates).to_vector<double>(), largest);
    EXPECT_EQ(scatter_min(x, at, updates).to_vector<double>(), smallest);
    got = scatter_multiply(x, at, 1 + updates * 1e-6).to_vector<double>();
    for (std::size_t p = 0; p < sum.size(); ++p) EXPECT_NEAR(got[p], product[p], 1e-9) << p;
  }
}

TEST(ManyMeet, RowsIntegersAndReplacement) {
  Tensor at = places_of_updates(), updates = random::stateless_randint({many, 3}, {3, 4}, -100, 100);
  Tensor sum = zeros({places, 3}, i64), last = sum;
  std::vector<std::int64_t> index = at.to_vector<std::int64_t>(), value = updates.to_vector<std::int64_t>(),
                            sums(static_cast<std::size_t>(places * 3)), latest = sums;
  for (std::size_t i = 0; i < index.size(); ++i)
    for (std::size_t c = 0; c < 3; ++c) {
      sums[static_cast<std::size_t>(index[i]) * 3 + c] += value[i * 3 + c];
      latest[static_cast<std::size_t>(index[i]) * 3 + c] = value[i * 3 + c];
    }
  for (int threads : {1, 2}) {
    Threads here(threads);
    EXPECT_EQ(scatter_add(sum, at, updates).to_vector<std::int64_t>(), sums);
    EXPECT_EQ(scatter_update(last, at, updates).to_vector<std::int64_t>(), latest);
    EXPECT_EQ(segment_sum(updates, at, places).to_vector<std::int64_t>(), sums);
  }
}

TEST(ManyMeet, NaNWins) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> value(static_cast<std::size_t>(many), 1);
  value[150'000] = nan;
  Tensor got = scatter_max(zeros({2}, f64), cast(arange(many) >= 100'000, i64), tensor(value));
  EXPECT_EQ(got.item<double>({0}), 1);
  EXPECT_TRUE(std::isnan(got.item<double>({1})));
}

/// The first that is not there is named, whoever finds it, and nothing has changed.
TEST(ManyMeet, TheFirstBadIndexIsNamed) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(many), 2);
  index[60'001] = 9;
  index[60'002] = -1;
  index[199'000] = -5;
  Variable total(zeros({places}));
  Function f = function("f(i, u)", [=](Tensor i, Tensor u) { return total.assign(scatter_add(total, i, u)); });
  Tensor updates = ones({many});
  for (int round = 0; round < 8; ++round) {
    EXPECT_CONTAINS(error_of([&] { scatter_add(zeros({places}), tensor(index), updates); }),
                    "holds index 9 at position 60001");
    EXPECT_CONTAINS(error_of([&] { f(tensor(index), updates); }), "holds index 9 at position 60001");
    EXPECT_EQ(sum(total.read()).item<float>(), 0);
  }
  index[60'001] = index[60'002] = index[199'000] = 0;
  EXPECT_EQ(sum(f(tensor(index), updates)).item<float>(), static_cast<float>(many));
}

}  // namespace
