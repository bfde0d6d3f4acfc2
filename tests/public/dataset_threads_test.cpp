// Stages with threads of their own: the same results for any number of them, errors in their places, and an end.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "expect_error.h"
#include "forks.h"
#include "stet/runtime/buffer.h"
#include "stet/stet.h"

using namespace stet;
using namespace std::chrono_literals;

namespace {

using Floats = std::vector<float>;
using Longs = std::vector<std::int64_t>;

Longs values_of(const data::Dataset<Tensor>& dataset) {
  Longs out;
  for (Tensor x : dataset)
    for (std::int64_t v : x.to_vector<std::int64_t>()) out.push_back(v);
  return out;
}
Longs counted(std::int64_t count) {
  Longs out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(i);
  return out;
}

std::size_t thread_count_of_process() {
  std::size_t count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

Tensor noisy(Tensor x) { return cast(x, f32) + random::uniform({2}); }

TEST(DatasetThreads, ResultsDoNotDependOnThreads) {
  auto run = [](std::int64_t calls, bool host, bool ahead, bool batch_first) {
    random::seed(7);
    auto source = data::range(60).shuffle(30);
    auto draw = [&](const auto& d) {
      const data::MapOptions options{.num_parallel_calls = calls};
      return host ? d.map_host(noisy, options) : d.map(noisy, options);
    };
    auto mapped = draw(draw(source).map([](Tensor x) { return sum(x); }, {.num_parallel_calls = calls}));
    auto batches = batch_first ? mapped.batch(7).map([](Tensor x) { return x * 2; }, {.num_parallel_calls = calls})
                               : mapped.batch(7);
    Floats out;
    auto dataset = ahead ? batches.prefetch(2) : batches;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (Tensor x : dataset)
        for (float v : (x + random::uniform({1})).to_vector<float>()) out.push_back(v);  // draws beside
    return out;
  };
  for (bool batch_first : {false, true}) {
    const Floats expected = run(0, false, false, batch_first);
    for (std::int64_t calls : {0, 1, 2, 8})
      for (bool host : {false, true})
        for (bool ahead : {false, true}) EXPECT_EQ(run(calls, host, ahead, batch_first), expected) << calls;
  }
  EXPECT_EQ(run(data::autotune, true, true, false), run(0, true, false, false));
}

TEST(DatasetThreads, FitGivesTheSameLosses) {
  Tensor x = random::stateless_normal({60, 4}, {1, 2}), y = random::stateless_normal({60, 2}, {3, 4});
  auto losses = [&](std::int64_t calls, std::int64_t ahead) {
    random::seed(9);
    keras::clear_session();
    keras::Sequential model{keras::Input({4}), keras::Dropout(0.2), keras::Dense(2)};
    model.compile({.optimizer = keras::SGD(0.1), .loss = "mse"});
    auto train = data::from_tensor_slices(x, y)
                     .shuffle(60)
                     .map(
                         [](Tensor a, Tensor b) {
                           return std::tuple{a + random::normal({4}), b};
                         },
                         {.num_parallel_calls = calls})
                     .batch(16);
    return model.fit(ahead ? train.prefetch(ahead) : train, {.epochs = 3, .verbose = 0})["loss"];
  };
  const std::vector<double> first = losses(0, 0);
  for (std::int64_t calls : {1, 2, 8})
    for (std::int64_t ahead : {std::int64_t{0}, std::int64_t{2}, data::autotune})
      EXPECT_EQ(losses(calls, ahead), first);
}

TEST(DatasetThreads, ResultsComeInOrderOrAsTheyCome) {
  auto slow_first = [](const Tensor& x) {
    if (x.item<int>() == 0) std::this_thread::sleep_for(100ms);
    return x;
  };
  EXPECT_EQ(values_of(data::range(300).map_host(slow_first, {.num_parallel_calls = 4})), counted(300));
  Longs unordered = values_of(data::range(20).map_host(slow_first, {.num_parallel_calls = 4, .deterministic = false}));
  EXPECT_NE(unordered[0], 0);
  std::sort(unordered.begin(), unordered.end());
  EXPECT_EQ(unordered, counted(20));
  // Quick ones are taken several at a time; all come, once.
  for (bool deterministic : {true, false}) {
    Longs all = values_of(data::range(20'000).map_host([](const Tensor& x) { return x; },
                                                       {.num_parallel_calls = 3, .deterministic = deterministic}));
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, counted(20'000));
  }
}

TEST(DatasetThreads, ThreadsWorkAtTheSameTime) {
  // Each call waits until four are there: it ends only if four threads call at the same time.
  auto inside = std::make_shared<std::atomic<int>>(0);
  auto meet = [inside](const Tensor& x) {
    ++*inside;
    for (int wait = 0; *inside < 4 && wait < 5000; ++wait) std::this_thread::sleep_for(1ms);
    return x;
  };
  EXPECT_EQ(values_of(data::range(4).map_host(meet, {.num_parallel_calls = 4})), counted(4));
  EXPECT_EQ(*inside, 4);
  *inside = 0;
  auto open = [meet](Tensor i) { return data::from_tensor_slices(expand_dims(i, 0)).map_host(meet); };
  EXPECT_EQ(values_of(data::range(4).interleave(open, {.cycle_length = 4, .num_parallel_calls = 4})), counted(4));
}

TEST(DatasetThreads, TheWindowIsBounded) {
  auto made = std::make_shared<std::atomic<int>>(0);
  auto dataset = data::range(100'000).map_host(
      [made](const Tensor& x) {
        ++*made;
        std::this_thread::sleep_for(200us);
        return x;
      },
      {.num_parallel_calls = 2});
  auto it = dataset.begin();
  std::this_thread::sleep_for(100ms);
  EXPECT_LE(*made, 8);  // the window is of four, each of one: they take long
  EXPECT_GE(*made, 3);
}

TEST(DatasetThreads, ErrorsComeInTheirPlaces) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (std::int64_t calls : {1, 2, 8})
    for (bool in_source : {false, true}) {
      auto source = data::from_range(counted(40), [in_source](std::int64_t i) {
        if (in_source && i == 23) throw Mine("twenty-three");
        return i;
      });
      auto dataset = source.map_host(
          [in_source](const Tensor& x) {
            if (!in_source && x.item<int>() == 23) throw Mine("twenty-three");
            if (x.item<int>() % 5 == 0) std::this_thread::sleep_for(1ms);
            return x;
          },
          {.num_parallel_calls = calls});
      for (bool ahead : {false, true}) {
        Longs seen;
        try {
          for (Tensor x : ahead ? dataset.prefetch(3) : dataset) seen.push_back(x.item<std::int64_t>());
          FAIL() << "no error";
        } catch (const Mine& error) {
          EXPECT_STREQ(error.what(), "twenty-three");
        }
        EXPECT_EQ(seen, counted(23));
        dataset.begin();  // an error that nobody asks for
      }
    }
  auto open = [](Tensor i) {
    return data::range(3).map_host([n = i.item<int>()](Tensor x) {
      if (n == 1 && x.item<int>() == 1) throw Mine("inside");
      return x + n * 10;
    });
  };
  for (std::int64_t calls : {0, 2}) {
    Longs seen;
    try {
      for (Tensor x : data::range(3).interleave(open, {.cycle_length = 2, .num_parallel_calls = calls}))
        seen.push_back(x.item<std::int64_t>());
      FAIL() << "no error";
    } catch (const Mine& error) {
    }
    EXPECT_EQ(seen, (Longs{0, 10, 1}));
  }
  auto broken = [](Tensor) -> data::Dataset<Tensor> { throw Mine("cannot be opened"); };
  EXPECT_THROW(data::range(3).interleave(broken, {.num_parallel_calls = 2}).to_vector(), Mine);
  EXPECT_THROW(data::range(3).flat_map(broken).to_vector(), Mine);
}

TEST(DatasetThreads, AbandonedIterationsEndTheirThreads) {
  auto dataset = data::range(1000)
                     .repeat()
                     .map(noisy, {.num_parallel_calls = 3})
                     .map_host([](const Tensor& x) { return x * 2; }, {.num_parallel_calls = 2, .deterministic = false})
                     .batch(3)
                     .prefetch(data::autotune);
  auto files = data::range(1000).interleave(
      [](Tensor) { return data::range(1'000'000).map_host([](Tensor x) { return x; }, {.num_parallel_calls = 2}); },
      {.num_parallel_calls = 3});
  for (const data::Dataset<Tensor>& each : {dataset, files}) each.take(9).to_vector();  // what is made once for all
  const std::size_t before = thread_count_of_process();
  const std::size_t memory = memory_statistics().bytes_in_use;
  for (int i = 0; i < 200; ++i) {
    int taken = 0;
    for (Tensor x : dataset)
      if (++taken > i % 5) break;
    if (i % 5 == 0)
      for (Tensor x : files)
        if (++taken > 10) break;
    if (i % 3 == 0) dataset.iterate();
    if (i % 3 == 1) dataset.begin();
    data::Iteration moved = dataset.iterate();
    moved.next();
    moved = files.iterate();
  }
  for (int wait = 0; thread_count_of_process() > before && wait < 1000; ++wait) std::this_thread::sleep_for(1ms);
  EXPECT_LE(thread_count_of_process(), before);
  EXPECT_LE(memory_statistics().bytes_in_use, memory + 100'000);
}

TEST(DatasetThreads, ThreadsIterateOneDataset) {
  auto dataset =
      data::range(200).map([](Tensor x) { return x * 2; }, {.num_parallel_calls = 2}).cache().batch(8).prefetch(2);
  std::vector<std::thread> threads;
  std::vector<Longs> seen(4);
  for (std::size_t t = 0; t < seen.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 3; ++round) {
        seen[t] = values_of(dataset);
        dataset.explain();
      }
    });
  for (std::thread& thread : threads) thread.join();
  Longs expected = counted(200);
  for (std::int64_t& v : expected) v *= 2;
  for (const Longs& one : seen) EXPECT_EQ(one, expected);
}

TEST(DatasetThreads, TapesAndTracesStayOut) {
  Variable w(tensor(3.f));
  auto dataset =
      data::from_tensor_slices(tensor({1.f, 2.f})).map([=](Tensor x) { return x * w; }, {.num_parallel_calls = 2});
  GradientTape tape;
  Tensor total = tensor(0.f);
  for (Tensor x : dataset) total = total + x * w;
  EXPECT_EQ(tape.gradient(total, w).item<float>(), 9);
  auto inner = data::range(2).map([](Tensor x) { return x; }, {.num_parallel_calls = 2});
  EXPECT_THROW(data::range(2).map([=](Tensor x) { return x + *inner.begin(); }, {.num_parallel_calls = 2}).to_vector(),
               TraceError);
  // A host function may iterate: it is not traced.
  auto sums = data::range(3).map_host(
      [=](Tensor x) {
        for (Tensor y : inner) x = x + y;
        return x;
      },
      {.num_parallel_calls = 2});
  EXPECT_EQ(values_of(sums), (Longs{1, 2, 3}));
}

TEST(DatasetThreads, AChildOfForkHasOthers) {
  SKIP_WITHOUT_FORK_BESIDE_WORK();
  auto dataset = data::range(1000).map([](Tensor x) { return x + 1; }, {.num_parallel_calls = 3}).batch(4).prefetch(3);
  auto files = data::range(10).interleave([](Tensor) { return data::range(100); }, {.num_parallel_calls = 2});
  auto own = data::range(1000).map_host([](Tensor x) { return x; }, {.num_parallel_calls = 3});
  for (int round = 0; round < 20; ++round) {
    std::vector<data::Iteration> begun;
    begun.push_back(dataset.iterate());
    begun.push_back(files.iterate());
    begun.push_back(own.iterate());
    for (data::Iteration& one : begun) one.next();
    pid_t child = fork();
    if (child == 0) {
      int code = 0;
      std::string first = error_of([&] { begun[0].next(); }), second = error_of([&] { begun[1].next(); }),
                  third = error_of([&] { begun[2].next(); });
      if (first.find("prefetch: this iteration was begun before fork(), and its threads are not here") != 0) code |= 1;
      if (first.find("fix: begin another iteration in the child") == std::string::npos) code |= 1;
      if (second.find("interleave: this iteration was begun before fork()") != 0) code |= 2;
      if (third.find("map_host: this iteration was begun before fork()") != 0) code |= 4;
      std::int64_t total = 0;
      for (Tensor x : dataset) total += sum(x).item<std::int64_t>();
      if (total != 1000 * 1001 / 2) code |= 8;
      begun.clear();  // does not wait for threads that are not here
      _exit(code);
    }
    int status = -1;
    for (int tenths = 0; tenths < 600 && waitpid(child, &status, WNOHANG) == 0; ++tenths)
      std::this_thread::sleep_for(100ms);
    ASSERT_EQ(status, 0);
    for (data::Iteration& one : begun) EXPECT_TRUE(one.next());  // here they are
  }
}

TEST(DatasetThreads, AtExit) {
  SKIP_WITHOUT_FORK();
  // An iteration that lives to the end of the process ends with it.
  EXPECT_EXIT(
      {
        static auto dataset = data::range(1000).repeat().map(noisy, {.num_parallel_calls = 2}).batch(2).prefetch(2);
        static data::Iteration iteration = dataset.iterate();
        iteration.next();
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
}

TEST(DatasetThreads, PrefetchChoosesItsBuffer) {
  // Elements come in bursts of 16: what is made while the program works must be kept until it needs them.
  auto made = std::make_shared<std::atomic<int>>(0);
  auto dataset = data::range(20'000).map_host([made](Tensor x) {
    ++*made;
    return x;
  });
  EXPECT_EQ(values_of(dataset.prefetch(data::autotune)), counted(20'000));
  *made = 0;
  auto it = dataset.prefetch(data::autotune).begin();
  int taken = 1, ahead = 0;
  // As often as it takes: on a busy machine it is not always the turn of the thread that makes them.
  for (int burst = 0; burst < 1000 && ahead <= 4; ++burst) {
    for (int i = 0; i < 16; ++i, ++taken) ++it;
    std::this_thread::sleep_for(3ms);
    ahead = *made - taken;
  }
  EXPECT_GT(ahead, 4);
  std::this_thread::sleep_for(20ms);
  EXPECT_LE(*made - taken, 66);
}

}  // namespace
