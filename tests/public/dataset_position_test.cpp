// An iteration goes on where another was: in this process, and in another that has built the same dataset.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <list>
#include <string>

#include "expect_error.h"
#include "forks.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Rows = std::vector<std::vector<double>>;

std::vector<double> row_of(const data::Iteration& iteration) {
  std::vector<double> out;
  for (const Tensor& tensor : iteration.tensors())
    for (double value : cast(tensor, f64).to_vector<double>()) out.push_back(value);
  return out;
}
Rows rest_of(data::Iteration iteration) {
  Rows out;
  while (iteration.next()) out.push_back(row_of(iteration));
  return out;
}

data::Dataset<Tensor> numbers(std::int64_t count) { return data::from_tensor_slices(arange(count)); }
Tensor noisy(Tensor x) { return cast(x, f32) + random::uniform({2}); }

/// Each begun twice: as this process would go on, and as another that has built the same.
struct Case {
  const char* name;
  std::function<data::Dataset<Tensor>()> make;
};
std::vector<Case> cases() {
  std::list<int> listed{5, 6, 7, 8, 9};
  return {
      {"slices", [] { return numbers(9); }},
      {"shuffle", [] { return numbers(9).shuffle(4); }},
      {"shuffle with a seed", [] { return numbers(9).shuffle(20, {.seed = 5}); }},
      {"one order", [] { return numbers(9).shuffle(5, {.reshuffle_each_iteration = false}).repeat(2); }},
      {"one order of a seed",
       [] { return numbers(9).shuffle(5, {.seed = 5, .reshuffle_each_iteration = false}).repeat(2); }},
      {"batches", [] { return numbers(11).shuffle(11).batch(3); }},
      {"batches without the rest", [] { return numbers(11).shuffle(11).batch(3, {.drop_remainder = true}); }},
      {"repeated", [] { return numbers(4).shuffle(4, {.seed = 2}).repeat(3).take(10).skip(1); }},
      {"repeated batches", [] { return numbers(5).shuffle(3).batch(2).repeat(3); }},
      {"a map that draws", [] { return numbers(7).shuffle(7).map(noisy).repeat(2).batch(3); }},
      {"a shuffle of elements", [] { return numbers(7).map(noisy).shuffle(3).repeat(2); }},
      {"two shuffles of elements", [] { return numbers(9).map(noisy).shuffle(3).shuffle(4).batch(2); }},
      {"a last batch that is smaller, of what ends early",
       [] { return numbers(9).map(noisy).take_while([](Tensor x) { return sum(x) < 11; }).batch(2); }},
      {"the same, padded",
       [] { return numbers(9).map(noisy).take_while([](Tensor x) { return sum(x) < 11; }).padded_batch(2); }},
      {"prefetch", [] { return numbers(9).shuffle(9).map(noisy).batch(2).prefetch(2).prefetch(1); }},
      {"prefetch inside", [] { return numbers(6).map(noisy).prefetch(2).repeat(2).batch(4); }},
      {"a range that draws",
       [] {
         return data::from_range(std::vector<int>{1, 2, 3, 4, 5}, [](int i) { return random::uniform({2}) + i; })
             .shuffle(3)
             .batch(2);
       }},
      {"a list that draws",
       [listed] {
         return data::from_range(listed, [](int i) { return random::uniform({2}) + i; }).batch(2).repeat(2);
       }},
  };
}

TEST(DatasetPosition, GoesOnBitForBit) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    random::seed(11);
    auto dataset = one.make();
    rest_of(dataset.iterate());  // epochs before
    random::seed(12);
    data::Iteration iteration = dataset.iterate();
    std::vector<data::IterationPosition> positions{iteration.position()};
    Rows all;
    while (iteration.next()) {
      all.push_back(row_of(iteration));
      positions.push_back(iteration.position());
    }
    Rows later = rest_of(dataset.iterate());
    ASSERT_GE(all.size(), 3u);
    EXPECT_EQ(iteration.position(), positions.back());
    for (std::size_t at = 0; at < positions.size(); ++at) {
      EXPECT_EQ(positions[at].elements, at);
      EXPECT_EQ(positions[at].iteration, 1u);
      const Rows expected(all.begin() + static_cast<std::ptrdiff_t>(at), all.end());
      random::seed(99 + at);  // not what it follows from
      EXPECT_EQ(rest_of(dataset.iterate_from(positions[at])), expected);
      auto again = one.make();
      EXPECT_EQ(rest_of(again.iterate_from(data::IterationPosition::from_string(positions[at].str()))), expected);
      EXPECT_EQ(again.next_iteration(), 2u);
      random::seed(12);
      dataset.set_next_iteration(1);
      again.set_next_iteration(1);
      rest_of(again.iterate());
      EXPECT_EQ(rest_of(again.iterate()), later);  // epoch 3 is epoch 3
    }
  }
}

TEST(DatasetPosition, MovesOnFromWhereItWasResumed) {
  auto dataset = numbers(10).shuffle(10, {.seed = 1}).batch(2);
  data::Iteration first = dataset.iterate();
  Rows all = rest_of(dataset.iterate_from(first.position()));
  first.next();
  data::Iteration second = dataset.iterate_from(first.position());
  EXPECT_EQ(second.position().elements, 1u);
  EXPECT_CONTAINS(error_of([&] { second.tensors(); }), "Dataset: there is no element here");
  second.next();
  second.next();
  EXPECT_EQ(second.position().elements, 3u);
  EXPECT_EQ(row_of(second), all[2]);
  EXPECT_EQ(rest_of(dataset.iterate_from(second.position())), Rows(all.begin() + 3, all.end()));
}

TEST(DatasetPosition, WhatIsSkippedIsNotMade) {
  auto made = std::make_shared<std::atomic<int>>(0);
  auto make = [&] {
    return data::from_range(std::vector<int>(100, 3), [made](int i) {
      ++*made;
      return i;
    });
  };
  auto count = [&](const auto& dataset, std::uint64_t elements) {
    data::Iteration iteration = dataset.iterate();
    data::IterationPosition position = iteration.position();
    position.elements = elements;
    *made = 0;
    data::Iteration resumed = dataset.iterate_from(position);
    resumed.next();
    return made->load();
  };
  EXPECT_EQ(count(make(), 50), 1);
  EXPECT_EQ(count(make().shuffle(100).batch(5), 10), 5);
  EXPECT_EQ(count(make().map([](Tensor x) { return x * 2; }).batch(5), 10), 5);
  EXPECT_EQ(count(make().map([](Tensor x) { return x * 2; }).shuffle(4), 50), 4);
  EXPECT_EQ(count(make().map([](Tensor x) { return x * 2; }).repeat(), 100'000'000'000'005), 1);
  // A prefetch is only behind by what it makes ahead.
  EXPECT_LE(count(make().batch(5).prefetch(1), 10), 15);
  // And skip() of a pipeline leaves out what it skips.
  *made = 0;
  for (Tensor x : make().map([](Tensor x) { return x * 2; }).skip(90)) (void)x;
  EXPECT_EQ(*made, 10);
}

TEST(DatasetPosition, FromAnotherProcess) {
  SKIP_WITHOUT_FORK();
  auto make = [] { return numbers(20).shuffle(20, {.reshuffle_each_iteration = false}).map(noisy).batch(3); };
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  pid_t child = fork();
  if (child == 0) {
    random::seed(31);
    auto dataset = make();
    rest_of(dataset.iterate());
    data::Iteration iteration = dataset.iterate();
    iteration.next();
    iteration.next();
    std::string told = iteration.position().str() + "\n";
    Rows rest = rest_of(std::move(iteration));
    for (const auto& row : rest)
      for (double value : row) told += std::to_string(value) + " ";
    const bool written = write(channel[1], told.data(), told.size()) == static_cast<ssize_t>(told.size());
    _exit(written ? 0 : 1);
  }
  close(channel[1]);
  std::string told;
  char buffer[4096];
  for (ssize_t got; (got = read(channel[0], buffer, sizeof buffer)) > 0;) told.append(buffer, static_cast<size_t>(got));
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  auto position = data::IterationPosition::from_string(told.substr(0, told.find('\n')));
  std::string here;
  for (const auto& row : rest_of(make().iterate_from(position)))
    for (double value : row) here += std::to_string(value) + " ";
  EXPECT_EQ(here, told.substr(told.find('\n') + 1));
}

TEST(DatasetPosition, NoneInTheMiddleOfWhatCannotBeRepeated) {
  auto same = [](const Tensor& x) { return x; };
  auto dataset = numbers(6).map_host(same, {.num_parallel_calls = 2, .deterministic = false}).batch(2);
  data::Iteration iteration = dataset.iterate();
  EXPECT_EQ(iteration.position().elements, 0u);
  iteration.next();
  std::string error = error_of([&] { iteration.position(); });
  EXPECT_CONTAINS(error, "Dataset: position() after 1 elements behind map_host with .deterministic = false at ");
  EXPECT_CONTAINS(error, ": nobody can repeat its order\n  at ");
  EXPECT_CONTAINS(error, "fix: leave .deterministic = true, or take positions at the ends of iterations");
  while (iteration.next()) {
  }
  EXPECT_TRUE(rest_of(dataset.iterate_from(iteration.position())).empty());
  auto files =
      numbers(6).interleave([](Tensor) { return numbers(2); }, {.num_parallel_calls = 2, .deterministic = false});
  data::Iteration other = files.iterate();
  other.next();
  EXPECT_CONTAINS(error_of([&] { other.position(); }), "behind interleave with .deterministic = false");
  // Without threads, or with one, the order is one.
  for (std::int64_t calls : {0, 1}) {
    data::Iteration one = numbers(6).map_host(same, {.num_parallel_calls = calls, .deterministic = false}).iterate();
    one.next();
    EXPECT_EQ(one.position().elements, 1u);
  }
}

TEST(DatasetPosition, AsNumbersAndText) {
  data::IterationPosition position{
      .drawn = ~0ull, .iteration = 3, .elements = 17, .pipeline = 1234567890123456789, .kept = {5, 6}};
  EXPECT_EQ(position.str(), "1 18446744073709551615 3 17 1234567890123456789 5 6");
  EXPECT_EQ(data::IterationPosition::from_string(position.str()), position);
  EXPECT_EQ(data::IterationPosition::from_numbers(position.numbers()), position);
  using P = data::IterationPosition;
  EXPECT_CONTAINS(error_of([] { P::from_string(""); }),
                  "IterationPosition: 0 numbers, a position has at least 5\n  at ");
  EXPECT_CONTAINS(error_of([] { P::from_string("1 2 3 4"); }), "fix: give what numbers() or str() of an iteration's");
  EXPECT_CONTAINS(error_of([] { P::from_string("1 2 x 4 5"); }),
                  "IterationPosition: '1 2 x 4 5' is no list of numbers");
  EXPECT_CONTAINS(error_of([] { P::from_string("1 2 -3 4 5"); }), "is no list of numbers");
  EXPECT_CONTAINS(error_of([] { P::from_string("1 2 18446744073709551616 4 5"); }), "is no list of numbers");
  EXPECT_CONTAINS(error_of([] { P::from_string("2 2 3 4 5"); }), "IterationPosition: of version 2, known is 1");
  EXPECT_CONTAINS(error_of([] { P::from_string("1 2 3 9999999999999999999 5"); }),
                  "after 9999999999999999999 elements");
  EXPECT_CONTAINS(error_of([] { P::from_string("1 2 3"); }), "dataset_position_test.cpp:");
}

TEST(DatasetPosition, OfAnotherDatasetIsRefused) {
  auto dataset = numbers(10).shuffle(10).batch(2);
  data::Iteration iteration = dataset.iterate();
  iteration.next();
  data::IterationPosition position = iteration.position();
  std::string error = error_of([&] { numbers(10).shuffle(10).batch(5).iterate_from(position); });
  EXPECT_CONTAINS(error,
                  "iterate_from: the position is one of a dataset of other stages or arguments; this one is "
                  "from_tensor_slices(i64[10]) > shuffle(10) > batch(5)\n  at ");
  EXPECT_CONTAINS(error, "dataset_position_test.cpp:");
  EXPECT_CONTAINS(error, "fix: build the dataset as it was when the position was taken");
  EXPECT_EQ(rest_of(numbers(10).shuffle(10).batch(2).prefetch(4).iterate_from(position)).size(), 4u);
  position.elements = 9;
  EXPECT_CONTAINS(error_of([&] { dataset.iterate_from(position); }),
                  "iterate_from: the position is after 9 elements, and the dataset has 5\n  at ");
  position.elements = 5;
  EXPECT_TRUE(rest_of(dataset.iterate_from(position)).empty());
  position.kept = {1};
  EXPECT_CONTAINS(error_of([&] { dataset.iterate_from(position); }), "of other stages or arguments");
  data::Iteration moved = std::move(iteration);
  EXPECT_CONTAINS(error_of([&] { iteration.position(); }), "Dataset: position() of an iteration that was moved from");
  EXPECT_EQ(moved.position().elements, 1u);
  Function f = function("f(x)", [&](Tensor x) {
    dataset.iterate_from(moved.position());
    return x;
  });
  EXPECT_CONTAINS(error_of([&] { f(tensor(1.f)); }), "iterating a Dataset while 'f' is being traced");
}

}  // namespace
