// STET_LOG: what its words mean.
#include "stet/runtime/log.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace stet {
namespace {

TEST(Log, WarningsOfAllKindsUnlessTold) {
  const LogSettings settings = parse_log_settings("");
  for (const char* category : {"trace", "retrace", "audit", "cache", "keras", "profile"}) {
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

TEST(Log, AWarningIsSaidOnceAndCounted) {
  testing::internal::CaptureStderr();
  for (int time = 0; time < 3; ++time) warn("keras", "stet: this is told by a test\n  fix: nothing\n");
  warn("keras", "stet: and this once\n");
  for (int time = 0; time < 2; ++time) inform("keras", "stet: this each time\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "stet: this is told by a test\n  fix: nothing\nstet: and this once\nstet: this each time\nstet: this each "
            "time\n");
  const std::string told = repeated_warnings();
  EXPECT_TRUE(told.starts_with("stet: warnings that were said once, and came again:\n")) << told;
  EXPECT_NE(told.find("\n  3 x  this is told by a test\n"), std::string::npos) << told;
  EXPECT_EQ(told.find("and this once"), std::string::npos) << told;
}

/// A process that exits at once, with what it says on stderr.
void end_after(const char* setting) {
  ::setenv("STET_LOG", setting, 1);
  for (int time = 0; time < 7; ++time) warn("cache", "stet: said in a child\nand more\n");
  inform("keras", "stet: news\n");
  std::exit(0);
}

TEST(LogDeathTest, CountsAreSaidAtTheEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has asked for no setting yet
  EXPECT_EXIT(end_after("warning"), testing::ExitedWithCode(0),
              "stet: said in a child\nand more\nstet: news\nstet: warnings that were said once, and came again:\n"
              "  7 x  said in a child\n$");
}

TEST(LogDeathTest, OffIsOff) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_after("off"), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace stet
