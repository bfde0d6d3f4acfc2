// What is said about a cache folder that is not used.
#include "stet/cpu/object_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

namespace stet::cpu {
namespace {

/// A run of the program of its own, because it is said once in a process.
class ObjectCacheDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
    char folder[] = "/tmp/stet_cache_XXXXXX";
    folder_ = mkdtemp(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

[[noreturn]] void open_twice(const std::string& folder, mode_t mode) {
  ::chmod(folder.c_str(), mode);
  ObjectCache first(folder), second(folder);
  std::exit(first.folder().empty() ? 1 : 0);
}

TEST_F(ObjectCacheDeathTest, AFolderThatOthersMayEnterIsSaidOnceWithTheRemedy) {
  EXPECT_EXIT(open_twice(folder_, 0755), ::testing::ExitedWithCode(1),
              "^stet: the object cache /tmp/stet_cache_[a-zA-Z0-9]+ is not used: others may enter it\n"
              "  why             code found there is run, so the folder must be yours alone\n"
              "  fix             chmod 700 /tmp/stet_cache_[a-zA-Z0-9]+\n$");
}

TEST_F(ObjectCacheDeathTest, OfAGoodFolderNothingIsSaid) {
  EXPECT_EXIT(open_twice(folder_, 0700), ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace stet::cpu
