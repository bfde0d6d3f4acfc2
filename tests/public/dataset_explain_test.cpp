// explain(): a table of stages, and what training waits for.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;
using namespace std::chrono_literals;

namespace {

void busy(std::chrono::microseconds time) { std::this_thread::sleep_for(time); }

template <class D>
void train_on(const D& dataset, std::chrono::microseconds step) {
  for (data::Iteration it = dataset.iterate(); it.next();) busy(step);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out.push_back(line);
  return out;
}
std::string last_line(const std::string& text) { return lines_of(text).back(); }
/// The line of a stage, and its words.
std::string line_of(const std::string& text, const std::string& stage) {
  for (const std::string& line : lines_of(text))
    if (line.rfind(stage, 0) == 0) return line;
  return "no line of " + stage + " in\n" + text;
}

/// What f() says; asked again a few times if that is something else: other programs may have had the CPUs.
template <class F>
std::string expected(const std::string& part, F f) {
  std::string told;
  for (int round = 0; round < 8; ++round)
    if (told = f(); told.find(part) != std::string::npos) return part;
  return told;
}
#define EXPECT_TOLD(told, part) EXPECT_EQ(expected(part, [&] { return told; }), part)

/// Advice counts CPUs: as if there were two.
struct TwoThreads {
  TwoThreads() { set_thread_count(2); }
  ~TwoThreads() { set_thread_count(before); }
  int before = thread_count();
};

auto augment_slowly = [](const Tensor& x) {
  busy(2ms);
  return x;
};

TEST(DatasetExplain, NamesTheStageThatIsTooSlow) {
  TwoThreads two;
  auto dataset = data::range(40).shuffle(40).map_host(augment_slowly, {.name = "augment"}).batch(2).prefetch(2);
  EXPECT_EQ(dataset.explain(),
            "range(from 0, step 1, 40 values) > shuffle(40) > map_host() > batch(2) > prefetch(2)\n"
            "no iteration of this dataset was begun yet\n");
  train_on(dataset, 500us);
  const std::string told = dataset.explain();
  const std::vector<std::string> lines = lines_of(told);
  ASSERT_EQ(lines.size(), 8u) << told;
  EXPECT_EQ(lines[0].rfind("stage", 0), 0u);
  EXPECT_CONTAINS(lines[1], "range(from 0, step 1, 40 values)");
  EXPECT_CONTAINS(lines[1], "dataset_explain_test.cpp:");
  EXPECT_CONTAINS(lines[2], "positions only");
  EXPECT_CONTAINS(lines[3], "map_host 'augment'");
  EXPECT_CONTAINS(lines[3], " 40 ");
  EXPECT_CONTAINS(lines[3], " ms");
  EXPECT_CONTAINS(lines[4], " 20 ");
  EXPECT_CONTAINS(lines[5], " of 2 ready");
  EXPECT_EQ(lines[6].rfind("20 elements; the first came after ", 0), 0u) << told;
  EXPECT_CONTAINS(lines[6], ", of which training waited ");
  EXPECT_CONTAINS(lines[7], "training waited ");
  EXPECT_CONTAINS(lines[7], " % of the time for: map_host 'augment' (");
  EXPECT_CONTAINS(lines[7], " ms an element); it runs on one thread: .num_parallel_calls = 2");
}

TEST(DatasetExplain, SaysWhenTrainingNeverWaited) {
  auto dataset = data::range(60).map([](Tensor x) { return x * 2; }).batch(2).prefetch(3);
  auto told = [&] {
    train_on(dataset, 3ms);
    return last_line(dataset.explain());
  };
  EXPECT_TOLD(told(), "training never waited");
}

TEST(DatasetExplain, BlamesNoStageForHandingElementsOver) {
  auto dataset = data::range(20'000).batch(4);
  auto verdict = [&] {
    for (data::Iteration it = dataset.iterate(); it.next();) {
    }
    return last_line(dataset.explain());
  };
  EXPECT_EQ(expected(" an element, which is what handing one over takes: make batches larger", verdict),
            " an element, which is what handing one over takes: make batches larger");
}

TEST(DatasetExplain, AdvisesByStage) {
  TwoThreads two;
  auto verdict = [](const auto& dataset, std::chrono::microseconds step) {
    train_on(dataset, step);
    return last_line(dataset.explain());
  };
  // Without a prefetch, and with time beside the step: that is enough.
  EXPECT_TOLD(verdict(data::range(30).map_host(augment_slowly), 6ms), "for: map_host (");
  EXPECT_TOLD(verdict(data::range(30).map_host(augment_slowly), 6ms),
              "elements are made when they are asked for: .prefetch(2) at the end");
  EXPECT_TOLD(verdict(data::range(30).map_host(augment_slowly), 100us), "; and .prefetch(2) at the end");
  auto slow_source = data::from_range(std::vector<int>(30, 1), [](int i) {
    busy(2ms);
    return i;
  });
  const std::string source = verdict(slow_source.shuffle(30).batch(2).prefetch(2), 100us);
  EXPECT_CONTAINS(source, "for: from_range(30 values) (");
  EXPECT_CONTAINS(source,
                  "its host code runs on one thread: the threads of a map right behind it make its elements, with "
                  ".num_parallel_calls = 2");
  auto slow_generator = data::from_generator([] {
    return [at = 0]() mutable -> std::optional<int> {
      busy(2ms);
      return ++at > 20 ? std::nullopt : std::optional(at);
    };
  });
  const std::string generator = verdict(slow_generator.prefetch(1), 100us);
  EXPECT_CONTAINS(generator, "for: from_generator (");
  EXPECT_CONTAINS(generator,
                  "its host code runs on one thread: let it give what is cheap, a name or a number, and do the "
                  "work in map_host with .num_parallel_calls = ");
  auto filter = data::range(30).filter_host([](const Tensor&) {
    busy(2ms);
    return true;
  });
  EXPECT_TOLD(verdict(filter.prefetch(1), 100us), "for: filter_host (");
  EXPECT_TOLD(verdict(filter.prefetch(1), 100us), "leave work on elements that stay to a map after it");
  auto files = data::range(10).flat_map([](Tensor) { return data::range(3).map_host(augment_slowly); });
  EXPECT_TOLD(verdict(files.prefetch(1), 100us), "for: flat_map (");
  EXPECT_TOLD(verdict(files.prefetch(1), 100us), "it runs on one thread: interleave with .num_parallel_calls = 2");
  Function slow = function("slow(x)", [](Tensor x) {
    return host_call(
        [](Tensor given) {
          busy(2ms);
          return given;
        },
        {{i64, {}}}, x);
  });
  EXPECT_TOLD(verdict(data::range(20).map(slow, {.name = "decode(x)"}).batch(2).prefetch(1), 100us),
              "for: map 'decode' (");
  EXPECT_CONTAINS(
      verdict(data::range(20).map(slow).batch(2).prefetch(1), 100us),
      "it runs on one thread: .num_parallel_calls = 2, or batch first, where it means the same for a batch");
  auto crowded = data::range(60).map_host(augment_slowly, {.num_parallel_calls = 2}).prefetch(1);
  const std::string all = verdict(crowded, 10us);
  EXPECT_CONTAINS(all, "for: map_host (");
  EXPECT_CONTAINS(all, "every CPU works on it already: do less in it, or cache() its results");
  const std::string row = line_of(crowded.explain(), "map_host {.num_parallel_calls = 2}");
  EXPECT_CONTAINS(row, "2 threads, busy ");
  EXPECT_CONTAINS(row, " of 4 ready");
  auto single = data::range(30).map_host(augment_slowly, {.num_parallel_calls = 1}).prefetch(1);
  EXPECT_TOLD(verdict(single, 10us), "it has 1 thread: .num_parallel_calls = 2");
}

TEST(DatasetExplain, OwnTimesAreWithoutUpstream) {
  auto dataset = data::range(20)
                     .map_host(
                         [](Tensor x) {
                           busy(4ms);
                           return x;
                         },
                         {.name = "slow"})
                     .map_host([](Tensor x) { return x; }, {.name = "quick"})
                     .batch(20);
  train_on(dataset, 0us);
  const std::string told = dataset.explain();
  EXPECT_CONTAINS(line_of(told, "map_host 'slow'"), " ms");
  const std::string slow = line_of(told, "map_host 'slow'");
  EXPECT_TRUE(slow.find("  9") != std::string::npos || slow.find("100 %") != std::string::npos) << slow;
  EXPECT_CONTAINS(line_of(told, "map_host 'quick'"), " 20 ");
  EXPECT_CONTAINS(last_line(told), "too few elements came to tell whether training waits");
}

TEST(DatasetExplain, IsOfTheLastIterationAndCanBeAskedMeanwhile) {
  auto dataset = data::range(1000).map([](Tensor x) { return x + 1; }, {.num_parallel_calls = 2}).prefetch(2);
  train_on(dataset.take(3), 0us);
  data::Iteration it = dataset.iterate();
  EXPECT_CONTAINS(dataset.explain(), "no element has come yet");
  it.next();
  EXPECT_CONTAINS(dataset.explain(), "1 element; the first came after ");
  std::atomic<bool> over = false;
  std::thread asks([&] {
    while (!over) EXPECT_CONTAINS(dataset.explain(), "prefetch(2)");
  });
  for (int i = 0; i < 200; ++i) it.next();
  over = true;
  asks.join();
  EXPECT_CONTAINS(dataset.explain(), "201 elements; the first came after ");
  data::Iteration later = dataset.iterate();
  it.next();
  EXPECT_CONTAINS(dataset.explain(), "no element has come yet");
}

TEST(DatasetExplain, FitIsAnIteration) {
  auto train = data::from_tensor_slices(ones({32, 2}), ones({32, 1}))
                   .map_host([](Tensor x, Tensor y) {
                     busy(1ms);
                     return std::tuple{x, y};
                   })
                   .batch(4);
  keras::Sequential model{keras::Input({2}), keras::Dense(1)};
  model.compile({.optimizer = keras::SGD(0.1), .loss = "mse"});
  model.fit(train, {.epochs = 2, .verbose = 0});
  EXPECT_CONTAINS(train.explain(), "8 elements; the first came after ");
  EXPECT_CONTAINS(last_line(train.explain()), " % of the time for: map_host (");
}

TEST(DatasetExplain, ResumedIterationsCountWhatTheyGive) {
  auto dataset = data::range(100).map([](Tensor x) { return x; }).batch(10);
  data::Iteration it = dataset.iterate();
  for (int i = 0; i < 7; ++i) it.next();
  train_on(dataset.take(0), 0us);
  data::Iteration resumed = dataset.iterate_from(it.position());
  while (resumed.next()) {
  }
  EXPECT_CONTAINS(dataset.explain(), "3 elements; the first came after ");
  EXPECT_CONTAINS(line_of(dataset.explain(), "map "), " 30 ");
}

}  // namespace
