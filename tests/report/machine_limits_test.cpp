// The machine's limits are measured once, kept beside the compiled code, and measured again where what is kept cannot
// be.
#include "stet/report/machine_limits.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "stet/base/text.h"
#include "stet/cpu/jit.h"
#include "stet/cpu/object_cache.h"

namespace stet::reporting {
namespace {

namespace fs = std::filesystem;

class MachineLimitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/stet_limits_XXXXXX";
    folder_ = mkdtemp(folder);
    before_ = cpu::cache_folder();
    start(folder_);
  }
  void TearDown() override {
    start(before_);
    fs::remove_all(folder_);
  }
  /// As if the process had just begun.
  void start(const std::string& folder) {
    cpu::set_cache_folder(folder);
    forget_limits();
  }
  std::vector<cpu::CachedFile> stored() const { return cpu::ObjectCache(folder_).files(); }
  /// In the place of what is kept.
  void keep(const MachineLimits& limits) const {
    const std::string key = stored().at(0).key;
    cpu::ObjectCache(folder_).store(key, {reinterpret_cast<const char*>(&limits), sizeof limits});
  }
  std::string folder_, before_;
};

void expect_sensible(const MachineLimits& limits) {
  EXPECT_TRUE(std::isfinite(limits.bytes) && limits.bytes > 0) << limits.bytes;
  EXPECT_TRUE(std::isfinite(limits.flops) && limits.flops > 0) << limits.flops;
}

TEST_F(MachineLimitsTest, MeasuresOnceAndKeepsIt) {
  const MachineLimits first = machine_limits();
  expect_sensible(first);
  ASSERT_EQ(stored().size(), 1u);
  EXPECT_TRUE(stored()[0].key.starts_with(cpu::figures_key)) << stored()[0].key;
  EXPECT_TRUE(cpu::verify_cache(cpu::ObjectCache(folder_)).damaged.empty());
  start(folder_);
  const MachineLimits second = machine_limits();
  EXPECT_EQ(first.bytes, second.bytes);  // no measurement gives the same figure twice
  EXPECT_EQ(first.flops, second.flops);
}

TEST_F(MachineLimitsTest, TheBestIsKept) {
  machine_limits();
  keep({1, 1e300});
  start(folder_);
  const MachineLimits now = measured_again(), best = machine_limits();
  expect_sensible(now);
  EXPECT_EQ(best.bytes, now.bytes);
  EXPECT_EQ(best.flops, 1e300);
  start(folder_);
  EXPECT_EQ(machine_limits().flops, 1e300);
}

TEST_F(MachineLimitsTest, WhatIsNoFigureIsMeasuredAnew) {
  machine_limits();
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const MachineLimits& bad :
       {MachineLimits{0, 1}, MachineLimits{-5, 1}, MachineLimits{nan, 1}, MachineLimits{1, infinity}}) {
    keep(bad);
    start(folder_);
    expect_sensible(machine_limits());
  }
  for (const auto& entry : fs::directory_iterator(folder_)) std::ofstream(entry.path(), std::ios::app) << "x";
  start(folder_);
  expect_sensible(machine_limits());
  EXPECT_TRUE(cpu::verify_cache(cpu::ObjectCache(folder_)).damaged.empty());
}

TEST_F(MachineLimitsTest, WithoutACacheTheProcessKnowsIt) {
  start("");
  const MachineLimits first = machine_limits(), second = machine_limits();
  expect_sensible(first);
  EXPECT_EQ(first.bytes, second.bytes);
  EXPECT_EQ(first.flops, second.flops);
  EXPECT_TRUE(stored().empty());
}

}  // namespace
}  // namespace stet::reporting
