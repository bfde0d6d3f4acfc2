// The threads of a parallel map make the elements of a source that calls host code.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "stet/stet.h"

namespace stet {
namespace {

std::vector<int> numbers(int count) {
  std::vector<int> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

/// Lets callers go when two of them are inside, or gives up.
class Pair {
 public:
  bool meet() {
    std::unique_lock lock(guard_);
    ++inside_;
    news_.notify_all();
    met_ |= news_.wait_for(lock, std::chrono::seconds(20), [&] { return inside_ >= 2 || met_; });
    return met_;
  }

 private:
  std::mutex guard_;
  std::condition_variable news_;
  int inside_ = 0;
  bool met_ = false;
};

TEST(DatasetParallelSource, TwoThreadsAreInTheSourceAtATime) {
  for (bool shuffled : {false, true}) {
    auto pair = std::make_shared<Pair>();
    auto source = data::from_range(numbers(8), [pair](int value) {
      EXPECT_TRUE(pair->meet());
      return value;
    });
    auto ordered = shuffled ? source.shuffle(8, {.seed = 3}).take(7) : source;
    std::int64_t count = 0;
    for (Tensor value : ordered.map([](Tensor x) { return x + 1; }, {.num_parallel_calls = 2}))
      count += value.defined();
    EXPECT_EQ(count, shuffled ? 7 : 8);
  }
}

TEST(DatasetParallelSource, DrawsAreTheSameForAnyNumberOfThreads) {
  auto run = [](std::int64_t threads, std::int64_t skipped) {
    random::seed(5);
    auto dataset = data::from_range(numbers(100), [](int value) { return random::uniform({3}) + value; })
                       .shuffle(100, {.seed = 1})
                       .repeat(2)
                       .map([](Tensor x) { return x * random::uniform({3}); }, {.num_parallel_calls = threads})
                       .skip(skipped)
                       .batch(7);
    std::vector<float> all;
    for (Tensor x : dataset)
      for (float value : x.to_vector<float>()) all.push_back(value);
    return all;
  };
  const std::vector<float> plain = run(0, 0), later = run(0, 33);
  EXPECT_EQ(plain.size(), 600u);
  for (std::int64_t threads : {1, 2, 5}) {
    EXPECT_EQ(run(threads, 0), plain);
    EXPECT_EQ(run(threads, 33), later);
  }
}

TEST(DatasetParallelSource, GoesOnFromAPosition) {
  auto dataset = data::from_range(numbers(50), [](int value) { return random::uniform({}) + value; })
                     .shuffle(50)
                     .map([](Tensor x) { return x + random::uniform({}); }, {.num_parallel_calls = 2})
                     .batch(4)
                     .prefetch(2);
  for (int stop : {0, 1, 5, 12}) {
    data::Iteration whole = dataset.iterate();
    for (int i = 0; i < stop; ++i) ASSERT_TRUE(whole.next());
    data::Iteration rest = dataset.iterate_from(whole.position());
    while (whole.next()) {
      ASSERT_TRUE(rest.next());
      EXPECT_EQ(rest.tensors()[0].to_vector<float>(), whole.tensors()[0].to_vector<float>());
    }
    EXPECT_FALSE(rest.next());
  }
}

TEST(DatasetParallelSource, AnErrorComesInItsElementsPlace) {
  for (std::int64_t threads : {1, 3}) {
    auto dataset = data::from_range(numbers(40), [](int value) {
                     if (value == 17) throw std::runtime_error("no seventeen");
                     return value;
                   }).map([](Tensor x) { return x * 2; }, {.num_parallel_calls = threads});
    int count = 0;
    try {
      for (Tensor x : dataset) {
        EXPECT_EQ(x.item<int>(), 2 * count);
        ++count;
      }
      FAIL() << "no error came";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "no seventeen");
    }
    EXPECT_EQ(count, 17);
  }
}

TEST(DatasetParallelSource, ExplainTellsWhoMakesTheElements) {
  auto slow = [](int value) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return value;
  };
  auto plain = data::from_range(numbers(30), slow).batch(3);
  for (Tensor x : plain) (void)x;
  EXPECT_NE(plain.explain().find("its host code runs on one thread: the threads of a map right behind it make its "
                                 "elements, with .num_parallel_calls = "),
            std::string::npos)
      << plain.explain();
  auto parallel =
      data::from_range(numbers(30), slow).map([](Tensor x) { return x + 1; }, {.num_parallel_calls = 3}).batch(3);
  for (Tensor x : parallel) (void)x;
  EXPECT_NE(parallel.explain().find("on 3 threads"), std::string::npos) << parallel.explain();
}

}  // namespace
}  // namespace stet
