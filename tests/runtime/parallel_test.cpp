#include "stet/runtime/parallel.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "stet/base/error.h"

namespace stet {
namespace {

class Parallel : public testing::Test {
 protected:
  void SetUp() override { set_thread_count(3); }
  void TearDown() override { set_thread_count(before_); }

 private:
  int before_ = thread_count();
};

TEST_F(Parallel, EveryChunkRunsOnce) {
  for (std::int64_t chunks : {0, 1, 2, 3, 7, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(chunks) + 1);
    auto body = [&](std::int64_t chunk) { ++runs[static_cast<std::size_t>(chunk)]; };
    parallel_for(chunks, body);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) ASSERT_EQ(runs[static_cast<std::size_t>(chunk)], 1);
    ASSERT_EQ(runs.back(), 0);
  }
}

TEST_F(Parallel, WritesOfChunksAreSeenAfterTheRegion) {
  std::vector<std::int64_t> values(64);
  for (std::int64_t round = 0; round < 2000; ++round) {
    auto body = [&](std::int64_t chunk) { values[static_cast<std::size_t>(chunk)] = round + chunk; };
    parallel_for(64, body);
    for (std::int64_t chunk = 0; chunk < 64; ++chunk) ASSERT_EQ(values[static_cast<std::size_t>(chunk)], round + chunk);
  }
}

TEST_F(Parallel, AllThreadsTakePart) {
  std::atomic<int> arrived{0};
  auto meet = [&](std::int64_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();  // Ends only if three threads are here at once.
  };
  parallel_for(3, meet);
  EXPECT_EQ(arrived, 3);
}

TEST_F(Parallel, WorkersWakeFromSleep) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 3));  // Longer than workers spin, and not.
    std::atomic<int> arrived{0};
    auto meet = [&](std::int64_t) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    };
    parallel_for(3, meet);
  }
}

TEST_F(Parallel, ARegionInARegionRunsInlineInOrder) {
  std::atomic<int> wrong{0}, inner_runs{0};
  auto outer = [&](std::int64_t) {
    const std::thread::id self = std::this_thread::get_id();
    std::int64_t expected = 0;
    auto inner = [&](std::int64_t chunk) {
      ++inner_runs;
      if (std::this_thread::get_id() != self || chunk != expected++) ++wrong;
    };
    parallel_for(10, inner);
  };
  parallel_for(20, outer);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(inner_runs, 200);
}

TEST_F(Parallel, ASecondCallerRunsItsOwnChunks) {
  std::atomic<int> foreign_chunks{0};
  auto hold = [&](std::int64_t chunk) {
    if (chunk != 0) return;
    std::thread([&] {  // The pool is ours now: all of this thread's chunks run on it.
      const std::thread::id self = std::this_thread::get_id();
      auto body = [&](std::int64_t) { foreign_chunks += std::this_thread::get_id() == self ? 1 : 100; };
      parallel_for(10, body);
    })
        .join();
  };
  parallel_for(2, hold);
  EXPECT_EQ(foreign_chunks, 10);
}

TEST_F(Parallel, ManyCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> total{0};
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::atomic<std::int64_t> sum{0};
        auto body = [&](std::int64_t chunk) { sum += chunk; };
        parallel_for(16, body);
        total += sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 500 * 120);
}

TEST_F(Parallel, TheThreadCountCanChange) {
  EXPECT_EQ(thread_count(), 3);
  for (int count : {1, 2, 5, 1, 3}) {
    set_thread_count(count);
    EXPECT_EQ(thread_count(), count);
    std::atomic<int> arrived{0};
    auto meet = [&](std::int64_t) {
      ++arrived;
      while (arrived < count) std::this_thread::yield();
    };
    parallel_for(count, meet);
    EXPECT_EQ(arrived, count);
  }
}

TEST_F(Parallel, TheThreadCountCanChangeWhileOthersWork) {
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    while (!stop) {
      std::atomic<std::int64_t> sum{0};
      auto body = [&](std::int64_t chunk) { sum += chunk; };
      parallel_for(8, body);
      ASSERT_EQ(sum, 28);
    }
  });
  for (int round = 0; round < 50; ++round) set_thread_count(1 + round % 4);
  stop = true;
  caller.join();
}

TEST_F(Parallel, WrongThreadCountsAreUserErrors) {
  for (int count : {0, -1, 1'000'000}) EXPECT_THROW(set_thread_count(count), UserError);
  EXPECT_EQ(thread_count(), 3);
  std::atomic<int> errors{0};
  auto body = [&](std::int64_t) {
    try {
      set_thread_count(2);
    } catch (const UserError&) {
      ++errors;
    }
  };
  parallel_for(4, body);
  EXPECT_EQ(errors, 4);
}

std::atomic<int> starts{0};

TEST_F(Parallel, WorkersRunTheirStartFunction) {
  starts = 0;
  set_worker_start([] { ++starts; });
  std::atomic<int> arrived{0};
  auto meet = [&](std::int64_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  };
  parallel_for(3, meet);
  EXPECT_EQ(starts, 2);
  set_worker_start(nullptr);
}

TEST_F(Parallel, WorkersHaveRoomOnTheirStacks) {
  std::atomic<int> arrived{0};
  std::atomic<std::size_t> least{SIZE_MAX};
  auto body = [&](std::int64_t) {
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
    pthread_attr_t attributes;
    std::size_t bytes = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    if (bytes < least) least = bytes;
  };
  parallel_for(3, body);
  EXPECT_GE(least, std::size_t{7} << 20);
}

#if !defined(__SANITIZE_THREAD__)  // It does not follow threads into a forked child.
TEST_F(Parallel, AForkedChildHasAPoolOfItsOwn) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    auto nothing = [](std::int64_t) {};
    while (!stop) parallel_for(4, nothing);
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      std::atomic<int> arrived{0};
      auto meet = [&](std::int64_t) {
        ++arrived;
        while (arrived < 3) std::this_thread::yield();
      };
      parallel_for(3, meet);
      _exit(arrived == 3 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

TEST_F(Parallel, TheProcessEndsWhileWorkersSpinOrSleep) {
  for (int pause : {0, 2}) {
    EXPECT_EXIT(
        {
          auto nothing = [](std::int64_t) {};
          parallel_for(100, nothing);
          std::this_thread::sleep_for(std::chrono::milliseconds(pause));
          std::exit(7);
        },
        testing::ExitedWithCode(7), "");
  }
}
#endif

}  // namespace
}  // namespace stet
