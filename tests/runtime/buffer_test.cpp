#include "stet/runtime/buffer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "stet/base/error.h"
#include "stet/runtime/guard.h"

namespace stet {
namespace {

std::uintptr_t address(const Buffer& buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data()); }

TEST(Buffer, IsAlignedAndUsableAtEverySize) {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = 0; bytes < 1300; ++bytes) sizes.push_back(bytes);
  for (int bits = 11; bits < 25; ++bits)
    for (int offset : {-1, 0, 1}) sizes.push_back((std::size_t{1} << bits) + static_cast<std::size_t>(offset));
  for (std::size_t bytes : sizes) {
    Buffer buffer = Buffer::allocate(bytes);
    ASSERT_EQ(buffer.bytes(), bytes);
    ASSERT_EQ(address(buffer) % 64, 0u);
    std::memset(buffer.data(), 0x5A, bytes);
    Buffer second = Buffer::allocate(bytes);
    ASSERT_NE(address(buffer), address(second));
    std::memset(second.data(), 0x3C, bytes);
    for (std::size_t i = 0; i < bytes; i += 61) ASSERT_EQ(buffer.data()[i], std::byte{0x5A});
  }
}

TEST(Buffer, CountsItsHolders) {
  Buffer empty;
  EXPECT_FALSE(empty);
  Buffer a = Buffer::allocate(100);
  EXPECT_TRUE(a.unique());
  Buffer b = a;
  EXPECT_FALSE(a.unique());
  EXPECT_EQ(a.data(), b.data());
  Buffer c = std::move(b);
  EXPECT_FALSE(b);
  c = Buffer();
  EXPECT_TRUE(a.unique());
  Buffer& self = a;
  a = self;
  EXPECT_TRUE(a.unique());
}

TEST(Buffer, IsReusedAfterRelease) {
  for (std::size_t bytes : {std::size_t{10}, std::size_t{5000}, std::size_t{3} << 20}) {
    const std::uintptr_t first = address(Buffer::allocate(bytes));
    const MemoryStatistics before = memory_statistics();
    EXPECT_EQ(address(Buffer::allocate(bytes)), first);
    const MemoryStatistics after = memory_statistics();
    EXPECT_EQ(after.allocations - before.allocations, 1u);
    EXPECT_EQ(after.cache_hits - before.cache_hits, 1u);
  }
}

TEST(Buffer, ALargeBlockServesASomewhatSmallerRequest) {
  release_cached_memory();
  const std::uintptr_t first = address(Buffer::allocate(std::size_t{10} << 20));
  EXPECT_EQ(address(Buffer::allocate(std::size_t{7} << 20)), first);
  EXPECT_NE(address(Buffer::allocate(std::size_t{1} << 20)), first);
}

TEST(Buffer, StatisticsCountBytesExactly) {
  release_cached_memory();
  reset_peak_memory();
  const MemoryStatistics start = memory_statistics();
  EXPECT_EQ(start.peak_bytes, start.bytes_in_use);
  {
    Buffer a = Buffer::allocate(1000), b = Buffer::allocate(5'000'000);
    EXPECT_EQ(memory_statistics().bytes_in_use - start.bytes_in_use, 5'001'000u);
  }
  Buffer c = Buffer::allocate(70);
  const MemoryStatistics end = memory_statistics();
  EXPECT_EQ(end.bytes_in_use - start.bytes_in_use, 70u);
  EXPECT_EQ(end.peak_bytes - start.bytes_in_use, 5'001'000u);
  EXPECT_EQ(end.allocations - start.allocations, 3u);
  EXPECT_GE(end.bytes_cached, 5'001'000u);
  reset_peak_memory();
  EXPECT_EQ(memory_statistics().peak_bytes - start.bytes_in_use, 70u);
}

TEST(Buffer, ThePeakIsExactWhenThreadsTakeTurns) {
  reset_peak_memory();
  const std::size_t start = memory_statistics().bytes_in_use;
  Buffer mine = Buffer::allocate(100);
  mine = Buffer();
  Buffer theirs;
  std::thread([&] {
    Buffer::allocate(100);
    theirs = Buffer::allocate(100);
  }).join();
  mine = Buffer::allocate(100);
  EXPECT_EQ(memory_statistics().peak_bytes - start, 200u);
  std::thread([&] { theirs = Buffer(); }).join();  // Released elsewhere than allocated.
  EXPECT_EQ(memory_statistics().bytes_in_use - start, 100u);
  Buffer more = Buffer::allocate(99);
  EXPECT_EQ(memory_statistics().peak_bytes - start, 200u);
  Buffer most = Buffer::allocate(2);
  EXPECT_EQ(memory_statistics().peak_bytes - start, 201u);
}

TEST(Buffer, CachedMemoryCanBeGivenBack) {
  { Buffer small = Buffer::allocate(100), large = Buffer::allocate(std::size_t{50} << 20); }
  const std::size_t cached = memory_statistics().bytes_cached;
  EXPECT_GE(cached, std::size_t{50} << 20);
  release_cached_memory();
  EXPECT_LE(memory_statistics().bytes_cached, cached - (std::size_t{50} << 20));
}

TEST(Buffer, OutOfMemoryIsAUserError) {
  const std::size_t before = memory_statistics().bytes_in_use;
  for (std::size_t bytes : {std::size_t{1} << 60, SIZE_MAX, SIZE_MAX - 63}) {
    try {
      Buffer::allocate(bytes);
      ADD_FAILURE() << "no error for " << bytes;
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("out of memory: " + std::to_string(bytes) + " bytes asked for, "), std::string::npos) << text;
      EXPECT_NE(text.find(std::to_string(before) + " in use"), std::string::npos) << text;
    }
  }
  EXPECT_EQ(memory_statistics().bytes_in_use, before);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // They need address space themselves.
/// Ends the process with 7 if all goes as it should.
void run_out_of_address_space() {
  release_cached_memory();
  { Buffer cached = Buffer::allocate(std::size_t{200} << 20); }
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  sizes >> pages;
  const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{150} << 20);
  const rlimit limits{limit, limit};
  setrlimit(RLIMIT_AS, &limits);
  { Buffer fits_without_the_cache = Buffer::allocate(std::size_t{300} << 20); }
  try {
    Buffer::allocate(std::size_t{500} << 20);
  } catch (const UserError&) {
    Buffer::allocate(1000);  // All still works.
    std::exit(7);
  }
}

TEST(Buffer, CachedMemoryIsGivenUpBeforeMemoryRunsOut) {
  EXPECT_EXIT(run_out_of_address_space(), testing::ExitedWithCode(7), "");
}
#endif

TEST(Buffer, ForeignMemoryIsReleasedOnce) {
  int released = 0;
  std::vector<float> memory(10);
  const MemoryStatistics before = memory_statistics();
  {
    Buffer a = Buffer::foreign(
        memory.data(), 40, [](void* context) { ++*static_cast<int*>(context); }, &released);
    EXPECT_EQ(static_cast<void*>(a.data()), memory.data());
    EXPECT_EQ(a.bytes(), 40u);
    Buffer b = a;
    EXPECT_EQ(memory_statistics().bytes_in_use, before.bytes_in_use);
    a = Buffer();
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(memory_statistics().allocations, before.allocations);
  EXPECT_EQ(memory_statistics().cache_hits, before.cache_hits);
  { Buffer unowned = Buffer::foreign(memory.data(), 40, nullptr, nullptr); }
  Buffer after = Buffer::allocate(64);
  EXPECT_NE(static_cast<void*>(after.data()), memory.data());
}

TEST(Buffer, MovesBetweenThreads) {
  const std::size_t before = memory_statistics().bytes_in_use;
  constexpr int rounds = 300, count = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int round = 0; round < rounds / 4; ++round) {
        std::vector<Buffer> made;
        for (int i = 0; i < count; ++i) {
          made.push_back(Buffer::allocate(static_cast<std::size_t>(1 + 977 * i * (t + 1))));
          std::memset(made.back().data(), t, made.back().bytes());
        }
        std::thread([taken = std::move(made), t] {
          for (const Buffer& buffer : taken) ASSERT_EQ(buffer.data()[buffer.bytes() - 1], std::byte(t));
        }).join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory_statistics().bytes_in_use, before);
}

TEST(Buffer, AnEndedThreadLeavesItsCache) {
  const std::size_t bytes = 12'345;
  release_cached_memory();
  std::uintptr_t theirs = 0;
  std::thread([&] { theirs = address(Buffer::allocate(bytes)); }).join();
  EXPECT_EQ(address(Buffer::allocate(bytes)), theirs);
}

TEST(Buffer, MayOutliveAllElseOnItsThread) {
  const std::size_t before = memory_statistics().bytes_in_use;
  std::thread([] {
    thread_local Buffer last;
    last = Buffer::allocate(500);
  }).join();
  EXPECT_EQ(memory_statistics().bytes_in_use, before);
}

#if !defined(__SANITIZE_THREAD__)  // It does not follow threads into a forked child.
TEST(Buffer, WorksInAForkedChild) {
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) Buffer::allocate(std::size_t{1} << 20);
  });
  Buffer mine = Buffer::allocate(1000);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      mine = Buffer::allocate(2000);
      Buffer large = Buffer::allocate(std::size_t{1} << 20);
      std::thread([&] { large = Buffer(); }).join();
      _exit(memory_statistics().bytes_in_use >= 2000 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}
#endif

class Guarded : public testing::Test {
 protected:
  void SetUp() override { set_guard_bytes(true); }
  void TearDown() override { set_guard_bytes(false); }
};

TEST_F(Guarded, CorrectUseIsQuiet) {
  const std::uint64_t before = guard_failures();
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{5000}, std::size_t{3} << 20}) {
    Buffer buffer = Buffer::allocate(bytes);
    EXPECT_EQ(address(buffer) % 64, 0u);
    EXPECT_EQ(buffer.bytes(), bytes);
    if (bytes) {
      EXPECT_EQ(buffer.data()[bytes - 1], std::byte{0xFF});
    }
    std::memset(buffer.data(), 1, bytes);
    set_guard_bytes(false);  // Switching while a block lives is fine.
    Buffer plain = Buffer::allocate(bytes);
    buffer = Buffer();
    set_guard_bytes(true);
  }
  EXPECT_EQ(guard_failures(), before);
}

TEST_F(Guarded, WritesOutsideAreFound) {
  const std::uint64_t before = guard_failures();
  {
    Buffer buffer = Buffer::allocate(10);
    buffer.data()[12] = std::byte{7};
  }
  EXPECT_EQ(guard_failures(), before + 1);
  EXPECT_EQ(last_guard_failure(), "a block of 10 bytes was written at byte 12");
  {
    Buffer buffer = Buffer::allocate(5000);
    buffer.data()[-3] = std::byte{7};
  }
  EXPECT_EQ(guard_failures(), before + 2);
  EXPECT_EQ(last_guard_failure(), "a block of 5000 bytes was written at byte -3");
}

}  // namespace
}  // namespace stet
