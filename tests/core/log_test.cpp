// STET_LOG: what its words mean.
#include "stet/core/log.h"

#include <gtest/gtest.h>

namespace stet {
namespace {

TEST(Log, WarningsOfAllKindsUnlessTold) {
  const LogSettings settings = parse_log_settings("");
  for (const char* category : {"trace", "retrace", "audit"}) {
    EXPECT_TRUE(settings.wants(LogLevel::warning, category));
    EXPECT_FALSE(settings.wants(LogLevel::info, category));
  }
}

TEST(Log, LevelsAndCategories) {
  EXPECT_FALSE(parse_log_settings("off").wants(LogLevel::warning, "retrace"));
  EXPECT_TRUE(parse_log_settings("info").wants(LogLevel::info, "audit"));
  const LogSettings some = parse_log_settings("info,retrace");
  EXPECT_TRUE(some.wants(LogLevel::info, "retrace"));
  EXPECT_FALSE(some.wants(LogLevel::info, "trace"));
  EXPECT_TRUE(some.wants(LogLevel::warning, "audit"));
  EXPECT_FALSE(parse_log_settings("retrace,off").wants(LogLevel::warning, "retrace"));
}

TEST(Log, WordsThatMeanNothing) {
  EXPECT_EQ(parse_log_settings("loud,,info,RETRACE").unknown, (std::vector<std::string>{"loud", "RETRACE"}));
  EXPECT_EQ(parse_log_settings("loud,,info").level, LogLevel::info);
}

}  // namespace
}  // namespace stet
