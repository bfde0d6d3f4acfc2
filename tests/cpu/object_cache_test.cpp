// What is said about a cache folder that is not used, and what people see of one that is.
#include "stet/cpu/object_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "stet/base/text.h"

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

class ObjectCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/stet_cache_XXXXXX";
    folder_ = mkdtemp(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }
  void set_age(const std::string& name, std::time_t seconds) const {
    const timespec then{.tv_sec = std::time(nullptr) - seconds, .tv_nsec = 0};
    const timespec times[] = {then, then};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ + "/" + name).c_str(), times, 0), 0);
  }
  std::string folder_;
};

TEST_F(ObjectCacheTest, ListsItsFilesTheLatestUsedFirst) {
  ObjectCache cache(folder_);
  EXPECT_TRUE(cache.files().empty());
  cache.store("one", "object");
  const std::string one = cache.files().at(0).name;
  set_age(one, 7200);
  cache.store("two\nlines", "object");
  write("tmp-1-0-x.o", "begun");
  set_age("tmp-1-0-x.o", 10'000);
  write("other", "not of the cache");
  std::vector<CachedFile> files = cache.files();
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].key, "two\nlines");
  EXPECT_EQ(files[1].key, "one");
  EXPECT_EQ(files[1].name, one);
  EXPECT_EQ(files[1].bytes, 32 + 3 + 6);
  EXPECT_FALSE(files[1].unfinished);
  EXPECT_TRUE(files[2].unfinished);
  EXPECT_EQ(files[2].key, "");
  bool rejected;
  EXPECT_TRUE(cache.find("one", rejected));
  EXPECT_EQ(cache.files()[0].key.size() + cache.files()[1].key.size(), 12u);
  EXPECT_LE(std::time(nullptr) - cache.files()[1].last_used, 60);  // found, so used now
}

TEST_F(ObjectCacheTest, KeysOfDamagedFilesAreNotReadWhereTheyCannotBe) {
  ObjectCache cache(folder_);
  cache.store("key", "object");
  const std::string name = cache.files().at(0).name;
  std::string whole;
  {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (std::size_t size = 0; size < 32 + 3; ++size) {
    write(name, whole.substr(0, size));
    EXPECT_EQ(cache.files().at(0).key, "") << size;
  }
  std::string huge = whole;
  for (std::size_t i = 8; i < 16; ++i) huge[i] = '\xff';  // how long its key is
  write(name, huge);
  EXPECT_EQ(cache.files().at(0).key, "");
}

TEST_F(ObjectCacheTest, VerifyAsksAboutWhatIsWholeAndDeletesNothing) {
  ObjectCache cache(folder_);
  cache.store("good", "object");
  cache.store("bad", "object");
  write("broken.o", "x");
  write("tmp-1-0-x.o", "begun");
  int asked = 0;
  VerifiedFiles verified = cache.verify([&](std::string_view key, std::string_view object) {
    ++asked;
    EXPECT_EQ(object, "object");
    return key == "bad" ? std::string("I say so") : std::string();
  });
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(verified.files, 3);
  ASSERT_EQ(verified.damaged.size(), 2u);
  for (const DamagedFile& file : verified.damaged)
    EXPECT_EQ(file.reason, file.name == "broken.o" ? "it is shorter than its head" : "I say so");
  EXPECT_EQ(cache.files().size(), 4u);
}

TEST_F(ObjectCacheTest, RemovesWhatIsUnwanted) {
  ObjectCache cache(folder_);
  cache.store("one", "object");
  cache.store("two", "object");
  write("other", "not of the cache");
  RemovedFiles removed = cache.remove_if([](const CachedFile& file) { return file.key == "one"; });
  EXPECT_EQ(removed.files, 1);
  EXPECT_EQ(removed.bytes, 32 + 3 + 6);
  ASSERT_EQ(cache.files().size(), 1u);
  EXPECT_EQ(cache.files()[0].key, "two");
  cache.remove_if([&](const CachedFile& file) {
    std::filesystem::remove(folder_ + "/" + file.name);  // another process was faster
    return true;
  });
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/other"));
}

TEST_F(ObjectCacheTest, ACacheThatIsOffHasNothing) {
  ObjectCache cache("");
  EXPECT_TRUE(cache.files().empty());
  EXPECT_EQ(cache.verify([](std::string_view, std::string_view) { return std::string("never"); }).files, 0);
  EXPECT_EQ(cache.remove_if([](const CachedFile&) { return true; }).files, 0);
}

TEST_F(ObjectCacheTest, AFolderIsLookedAtWithoutMakingIt) {
  using enum CacheFolder::State;
  EXPECT_EQ(look_at_cache_folder("").state, off);
  EXPECT_EQ(look_at_cache_folder(folder_).state, usable);
  EXPECT_EQ(look_at_cache_folder(folder_ + "/a/b").state, missing);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a"));
  write("file", "x");
  CacheFolder file = look_at_cache_folder(folder_ + "/file");
  EXPECT_EQ(file.state, unusable);
  EXPECT_EQ(file.why, "it is no folder");
  ::chmod(folder_.c_str(), 0750);
  CacheFolder open = look_at_cache_folder(folder_);
  EXPECT_EQ(open.why, "others may enter it");
  EXPECT_EQ(open.fix, "chmod 700 " + folder_);
}

TEST_F(ObjectCacheTest, WhetherAFolderCanBeWrittenToIsTried) {
  EXPECT_EQ(why_not_writable(folder_), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_EQ(why_not_writable(folder_ + "/a/b"), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/a/b"));
  write("file", "x");
  EXPECT_EQ(why_not_writable(folder_ + "/file"), "it cannot be opened: Not a directory");
  EXPECT_EQ(why_not_writable(folder_ + "/file/b"), "it cannot be opened: Not a directory");
  EXPECT_EQ(why_not_writable("/proc/nowhere/b"), "it cannot be made: No such file or directory");
  EXPECT_EQ(why_not_writable("/proc/self"), "no file can be made there: No such file or directory");
}

}  // namespace
}  // namespace stet::cpu
