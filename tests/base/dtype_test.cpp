#include "stet/base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "stet/base/error.h"
#include "stet/base/text.h"

namespace stet {
namespace {

constexpr DType all_dtypes[dtype_count] = {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64};

TEST(DType, RowsStandInTheOrderOfTheEnumeration) {
  for (int i = 0; i < dtype_count; ++i) EXPECT_EQ(static_cast<int>(dtype_table[i].dtype), i);
}

TEST(DType, NamesAndSizes) {
  EXPECT_EQ(text(bool_, ' ', u8, ' ', i64, ' ', bf16), "bool u8 i64 bf16");
  std::ostringstream out;
  out << f32;
  EXPECT_EQ(out.str(), "f32");
  EXPECT_EQ(size_of(bool_), 1);
  EXPECT_EQ(size_of(f16), 2);
  EXPECT_EQ(size_of(f64), 8);
  EXPECT_TRUE(is_integer(u8));
  EXPECT_FALSE(is_integer(bool_));
  EXPECT_EQ(dtype_of<std::int64_t>, i64);
  EXPECT_EQ(dtype_of<long long>, i64);
  EXPECT_EQ(sum_type(bool_), i32);
  EXPECT_EQ(sum_type(i16), i32);
  EXPECT_EQ(sum_type(i64), i64);
  EXPECT_EQ(sum_type(bf16), bf16);
  EXPECT_EQ(compute_type(f16), f32);
  EXPECT_EQ(floating_type(i64), f32);
  EXPECT_EQ(floating_type(f64), f64);
}

// jax.numpy.promote_types of the row's and the column's type.
constexpr DType promotions[dtype_count][dtype_count] = {
    //           bool_  u8    i8    i16   i32   i64   f16   bf16  f32  f64
    /* bool */ {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64},
    /* u8   */ {u8, u8, i16, i16, i32, i64, f16, bf16, f32, f64},
    /* i8   */ {i8, i16, i8, i16, i32, i64, f16, bf16, f32, f64},
    /* i16  */ {i16, i16, i16, i16, i32, i64, f16, bf16, f32, f64},
    /* i32  */ {i32, i32, i32, i32, i32, i64, f16, bf16, f32, f64},
    /* i64  */ {i64, i64, i64, i64, i64, i64, f16, bf16, f32, f64},
    /* f16  */ {f16, f16, f16, f16, f16, f16, f16, f32, f32, f64},
    /* bf16 */ {bf16, bf16, bf16, bf16, bf16, bf16, f32, bf16, f32, f64},
    /* f32  */ {f32, f32, f32, f32, f32, f32, f32, f32, f32, f64},
    /* f64  */ {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
};

TEST(DType, PromotesAsJax) {
  for (int a = 0; a < dtype_count; ++a)
    for (int b = 0; b < dtype_count; ++b)
      EXPECT_EQ(promote(all_dtypes[a], all_dtypes[b]), promotions[a][b]) << all_dtypes[a] << " with " << all_dtypes[b];
}

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(Half, EveryPatternSurvivesARoundTrip) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    Half half;
    half.bits = static_cast<std::uint16_t>(pattern);
    const float wide = static_cast<float>(half);
    const bool is_nan = (pattern & 0x7fffu) > 0x7c00u;
    ASSERT_EQ(std::isnan(wide), is_nan) << pattern;
    ASSERT_EQ(Half(wide).bits, is_nan ? (pattern | 0x200u) : pattern) << pattern;
    if (is_nan || (pattern & 0x7c00u) == 0x7c00u) continue;
    const int exponent = static_cast<int>((pattern >> 10) & 31u);
    const double mantissa = pattern & 0x3ffu;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(static_cast<double>(wide), pattern & 0x8000u ? -magnitude : magnitude) << pattern;
  }
}

// Between each two neighbours: the middle goes to the even one, what is beside it to the nearer one.
TEST(Half, RoundsToNearestEvenEverywhere) {
  for (std::uint32_t pattern = 0; pattern < 0x7c00u; ++pattern) {
    Half low, high;
    low.bits = static_cast<std::uint16_t>(pattern);
    high.bits = static_cast<std::uint16_t>(pattern + 1);
    // Beyond the greatest number rounding goes on as if 2^16 were the next one.
    const float above = pattern + 1 == 0x7c00u ? 65536.f : static_cast<float>(high);
    const float middle = (static_cast<float>(low) + above) / 2;  // exact
    const std::uint32_t even = pattern % 2 == 0 ? pattern : pattern + 1;
    ASSERT_EQ(Half(middle).bits, even) << pattern;
    ASSERT_EQ(Half(-middle).bits, even | 0x8000u) << pattern;
    ASSERT_EQ(Half(std::nextafter(middle, 0.f)).bits, pattern) << pattern;
    ASSERT_EQ(Half(std::nextafter(middle, 1e9f)).bits, pattern + 1) << pattern;
  }
}

TEST(Half, Extremes) {
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.f).bits, 0x7c00);
  EXPECT_EQ(Half(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(Half(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(Half(-0.f).bits, 0x8000);
  EXPECT_EQ(Half(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(Half(0x1p-25f).bits, 0);
  EXPECT_EQ(Half(std::nextafter(0x1p-25f, 1.f)).bits, 1);
  EXPECT_EQ(Half(from_bits(0x7f800001u)).bits, 0x7e00);  // a signalling NaN becomes quiet, not infinite
  EXPECT_EQ(Half(from_bits(0xffc02000u)).bits, 0xfe01);
}

#ifdef __FLT16_MAX__
TEST(Half, AgreesWithTheCompiler) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const float value = from_bits(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(Half(value).bits, std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))) << bits_of(value);
  }
}
#endif

TEST(BFloat16, EveryPatternSurvivesARoundTrip) {
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    BFloat16 brain;
    brain.bits = static_cast<std::uint16_t>(pattern);
    const float wide = static_cast<float>(brain);
    ASSERT_EQ(bits_of(wide), pattern << 16);
    ASSERT_EQ(BFloat16(wide).bits, std::isnan(wide) ? (pattern | 0x40u) : pattern) << pattern;
  }
}

TEST(BFloat16, RoundsToNearestEvenEverywhere) {
  for (std::uint32_t pattern = 0; pattern < 0x7f80u; ++pattern) {
    const std::uint32_t middle = (pattern << 16) | 0x8000u;
    const std::uint32_t even = pattern % 2 == 0 ? pattern : pattern + 1;
    ASSERT_EQ(BFloat16(from_bits(middle)).bits, even) << pattern;
    ASSERT_EQ(BFloat16(-from_bits(middle)).bits, even | 0x8000u) << pattern;
    ASSERT_EQ(BFloat16(from_bits(middle - 1)).bits, pattern) << pattern;
    ASSERT_EQ(BFloat16(from_bits(middle + 1)).bits, pattern + 1) << pattern;
  }
}

TEST(BFloat16, Extremes) {
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(BFloat16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
  EXPECT_EQ(BFloat16(from_bits(0x7f800001u)).bits, 0x7fc0);
  EXPECT_EQ(BFloat16(from_bits(0xffffffffu)).bits, 0xffff);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(Text, JoinsParts) {
  EXPECT_EQ(text("literal ", std::string("string "), 'c', ' ', true, ' ', 42, ' ', std::uint8_t{7}),
            "literal string c true 42 7");
  EXPECT_EQ(text(0.1, ' ', 0.1f, ' ', 1e300, ' ', -2.0), "0.1 0.1 1e+300 -2");
  EXPECT_EQ(text(std::numeric_limits<double>::infinity(), ' ', std::numeric_limits<double>::quiet_NaN()), "inf nan");
  EXPECT_EQ(joined(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
  EXPECT_EQ(joined(std::vector<int>{}, ", "), "");
}

TEST(Text, ErrorsLeaveOutWhatIsUnknown) {
  EXPECT_EQ(error_text("what", Where{"a.cpp", 7}, "this"), "what\n  at a.cpp:7\n  fix: this");
  EXPECT_EQ(error_text("what", Where{}, "this"), "what\n  fix: this");
  EXPECT_EQ(error_text("what", Where{"a.cpp", 7}, ""), "what\n  at a.cpp:7");
  EXPECT_EQ(error_text("what", Where{}, ""), "what");
  const Problem problem("what", "this");
  EXPECT_EQ(problem.text(), "what");
  EXPECT_EQ(problem.advice(), "this");
  EXPECT_STREQ(problem.what(), "what\n  fix: this");
}

}  // namespace
}  // namespace stet
