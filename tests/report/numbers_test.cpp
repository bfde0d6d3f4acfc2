#include "stet/report/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stet::reporting {
namespace {

TEST(Numbers, TellSeconds) {
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(850e-9), "850 ns");
  EXPECT_EQ(seconds_text(3e-9), "3 ns");
  EXPECT_EQ(seconds_text(3.21e-6), "3.2 µs");
  EXPECT_EQ(seconds_text(12.3e-3), "12 ms");
  EXPECT_EQ(seconds_text(0.99949), "999 ms");
  EXPECT_EQ(seconds_text(0.9996), "1.0 s");
  EXPECT_EQ(seconds_text(8.4), "8.4 s");
  EXPECT_EQ(seconds_text(9.96), "10 s");
  EXPECT_EQ(seconds_text(119.4), "119 s");
  EXPECT_EQ(seconds_text(185), "3 min 5 s");
  EXPECT_EQ(seconds_text(3599.6), "1 h 0 min");
  EXPECT_EQ(seconds_text(7441), "2 h 4 min");
  EXPECT_EQ(seconds_text(-2), "-2.0 s");
  EXPECT_EQ(seconds_text(INFINITY), "?");
  EXPECT_EQ(seconds_text(NAN), "?");
  EXPECT_EQ(seconds_text(1e300).substr(0, 4), "1000");
}

TEST(Numbers, TellShares) {
  EXPECT_EQ(percent_text(0), "0 %");
  EXPECT_EQ(percent_text(0.0004), "<0.1 %");
  EXPECT_EQ(percent_text(0.034), "3.4 %");
  EXPECT_EQ(percent_text(0.0996), "10 %");
  EXPECT_EQ(percent_text(0.21), "21 %");
  EXPECT_EQ(percent_text(0.996), "99.6 %");
  EXPECT_EQ(percent_text(0.99999), "99.9 %");
  EXPECT_EQ(percent_text(1), "100 %");
  EXPECT_EQ(percent_text(NAN), "?");
}

TEST(Numbers, TellCountsAndAmounts) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(-123), "-123");
  EXPECT_EQ(count_text(-1234), "-1,234");
  EXPECT_EQ(counted(1, "trace"), "1 trace");
  EXPECT_EQ(counted(0, "trace"), "0 traces");
  EXPECT_EQ(counted(2000, "trace"), "2,000 traces");
  EXPECT_EQ(prefixed(12.34e9), "12.3 G");
  EXPECT_EQ(prefixed(999.6), "1.00 k");
  EXPECT_EQ(prefixed(0), "0.00 ");
  EXPECT_EQ(prefixed(NAN), "? ");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1.3 * 1024 * 1024), "1.3 MiB");
}

TEST(Numbers, TellPlaces) {
  EXPECT_EQ(place_text("/a/b/train.cpp", 57), "train.cpp:57");
  EXPECT_EQ(place_text("train.cpp", 0), "train.cpp");
  EXPECT_EQ(place_text("", 7), "");
}

}  // namespace
}  // namespace stet::reporting
