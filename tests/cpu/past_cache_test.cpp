// Results that are stored past the cache, because it is said to be small: transposed copies and scans.
#include <gtest/gtest.h>

#include "stet/cpu/cache_size.h"
#include "stet/stet.h"

namespace stet {
namespace {

class PastCache : public ::testing::Test {
 protected:
  void SetUp() override { cpu::set_last_level_cache(1 << 12); }
  void TearDown() override { cpu::set_last_level_cache(0); }
};

TEST_F(PastCache, TheMachineHasACache) {
  cpu::set_last_level_cache(0);
  EXPECT_GE(cpu::last_level_cache(), 128 << 10);
  EXPECT_LE(cpu::last_level_cache(), std::int64_t{4} << 30);
}

Tensor beside_transposed(Tensor beside, Tensor x) {
  static Function f = function("f(beside, x)", [](Tensor beside, Tensor x) {
    return concat({beside, transpose(x)}, 1);
  });
  return f(beside, x);
}

/// Whole squares and ragged ones; rows of the result that are aligned, that are not, and that begin anywhere but lie
/// as far apart as aligned ones.
template <class T>
void expect_transposed(DType dtype) {
  for (std::int64_t m : {64, 65, 77, 144, 192})
    for (std::int64_t n : {64, 72, 131, 256})
      for (std::int64_t before : {0, 3}) {
        Tensor x = cast(reshape(arange(m * n) % 113, {m, n}), dtype);
        std::vector<T> got = beside_transposed(full({n, before}, 7, dtype), x).template to_vector<T>();
        std::size_t at = 0;
        for (std::int64_t b = 0; b < n; ++b) {
          for (std::int64_t k = 0; k < before; ++k) ASSERT_EQ(got[at++], T(7));
          for (std::int64_t a = 0; a < m; ++a)
            ASSERT_EQ(got[at++], static_cast<T>((a * n + b) % 113)) << dtype << " " << m << " " << n;
        }
      }
}

TEST_F(PastCache, TransposedCopies) {
  expect_transposed<std::uint8_t>(u8);
  expect_transposed<std::int16_t>(i16);
  expect_transposed<float>(f32);
  expect_transposed<double>(f64);
}

TEST_F(PastCache, Scans) {
  for (std::int64_t rows : {1, 3})
    for (std::int64_t n : {4096, 4100, 70001}) {
      Tensor x = cast(reshape(arange(rows * n) % 5, {rows, n}), i64);
      std::vector<std::int64_t> from = x.to_vector<std::int64_t>(), got = cumsum(x, 1).to_vector<std::int64_t>();
      for (std::int64_t row = 0, at = 0; row < rows; ++row)
        for (std::int64_t i = 0, sum = 0; i < n; ++i, ++at) {
          sum += from[static_cast<std::size_t>(at)];
          ASSERT_EQ(got[static_cast<std::size_t>(at)], sum) << rows << " x " << n << " at " << i;
        }
    }
}

/// An element of a stacked result begins wherever the one before it ends.
TEST_F(PastCache, ElementsOfStackedResults) {
  Function f = function("f(x)", [](Tensor x) { return map_fn([](Tensor v) { return v * 2.f; }, x); });
  for (std::int64_t m : {300'001, 262'144}) {
    std::vector<float> got = f(reshape(cast(arange(3 * m), f32), {3, m})).to_vector<float>();
    for (std::int64_t i = 0; i < 3 * m; ++i)
      ASSERT_EQ(got[static_cast<std::size_t>(i)], static_cast<float>(2 * i)) << m << " at " << i;
  }
}

}  // namespace
}  // namespace stet
