// What callables of a pipeline draw follows from the seed and the element, not from threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;

Tensor noisy(Tensor x) { return x + random::uniform({2}); }

Floats all_of(const data::Dataset<Tensor>& dataset) {
  Floats out;
  for (Tensor x : dataset)
    for (float value : x.to_vector<float>()) out.push_back(value);
  return out;
}

/// Draws beside the pipeline, as a training step does.
Floats all_with_draws_beside(const data::Dataset<Tensor>& dataset) {
  Floats out;
  for (Tensor x : dataset)
    for (float value : (x + random::uniform({1})).to_vector<float>()) out.push_back(value);
  return out;
}

data::Dataset<Tensor> zeros_twenty() { return data::from_tensor_slices(zeros({20, 2})); }

TEST(DatasetRandom, DrawsInMapFollowFromTheSeedWithAndWithoutPrefetch) {
  auto run = [](bool prefetch, bool traced) {
    auto mapped =
        traced ? zeros_twenty().shuffle(20).map(noisy) : zeros_twenty().shuffle(20).map(function("noisy(x)", noisy));
    auto dataset = prefetch ? mapped.batch(4).prefetch(2) : mapped.batch(4);
    random::seed(9);
    Floats out = all_with_draws_beside(dataset);
    for (float value : all_with_draws_beside(dataset)) out.push_back(value);
    return out;
  };
  Floats first = run(false, true);
  EXPECT_NE(Floats(first.begin(), first.begin() + 40), Floats(first.begin() + 40, first.end()));  // passes differ
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(run(true, true), first);
    EXPECT_EQ(run(false, true), first);
    EXPECT_EQ(run(true, false), first);
  }
}

TEST(DatasetRandom, FitGivesTheSameLossesBehindPrefetch) {
  Tensor x = random::stateless_normal({60, 4}, {1, 2}), y = random::stateless_normal({60, 2}, {3, 4});
  auto losses = [&](bool prefetch) {
    random::seed(9);
    keras::clear_session();
    keras::Sequential model{keras::Input({4}), keras::Dropout(0.2), keras::Dense(2)};
    model.compile({.optimizer = keras::SGD(0.1), .loss = "mse"});
    auto train = data::from_tensor_slices(x, y)
                     .shuffle(60)
                     .map([](Tensor a, Tensor b) {
                       return std::tuple{a + random::normal({4}), b};
                     })
                     .batch(16);
    return model.fit(prefetch ? train.prefetch(2) : train, {.epochs = 3, .verbose = 0})["loss"];
  };
  std::vector<double> first = losses(false);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(losses(true), first);
  EXPECT_EQ(losses(false), first);
}

TEST(DatasetRandom, ElementsRepetitionsAndStagesDrawDifferently) {
  random::seed(9);
  auto one = data::from_tensor_slices(zeros({3})).map([](Tensor x) { return x + random::uniform({}); });
  Floats drawn = all_of(one.repeat(2));
  for (const auto& also : {all_of(one), all_of(one.map([](Tensor x) { return x * 0 + random::uniform({}); }))})
    drawn.insert(drawn.end(), also.begin(), also.end());
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
  EXPECT_EQ(drawn.size(), 12u);
}

TEST(DatasetRandom, HostCodeOfARangeDrawsThereToo) {
  auto list = data::from_range(std::vector<int>{0, 1, 2, 3, 4, 5}, [](int) { return random::uniform({2}); });
  struct Counting {  // has no positions: it is walked
    std::list<int> values{0, 1, 2, 3, 4, 5};
  };
  auto walked = data::from_range(Counting().values, [](int) { return random::uniform({2}); });
  for (const data::Dataset<Tensor>& source : {list, walked}) {
    auto run = [&](const data::Dataset<Tensor>& dataset) {
      random::seed(4);
      return all_with_draws_beside(dataset);
    };
    Floats first = run(source.batch(2));
    EXPECT_EQ(run(source.batch(2)), first);
    EXPECT_EQ(run(source.batch(2).prefetch(2)), first);
    EXPECT_EQ(run(source.prefetch(1).batch(2)), first);
  }
}

TEST(DatasetRandom, WhatIsDrawnOutsideGoesOnFromWhereItWas) {
  auto dataset = zeros_twenty().map(noisy).prefetch(3);
  auto draws = [&](bool all) {
    random::seed(2);
    auto it = dataset.begin();
    if (all)
      for (; it != dataset.end(); ++it) *it;
    return random::uniform({4}).to_vector<float>();
  };
  EXPECT_EQ(draws(true), draws(false));  // the elements took nothing from the process's generator
}

// --- generators with a seed

/// What a dataset gives in its first two iterations, made anew by `make`, after this seed of the process.
template <class Make>
std::pair<Floats, Floats> two_iterations(Make make, std::uint64_t seed = 1) {
  random::seed(seed);
  auto dataset = make();
  Floats first = all_of(dataset);
  return {first, all_of(dataset)};
}

TEST(DatasetRandom, GeneratorsWithASeedDrawByElement) {
  auto with_generator = [](std::int64_t threads, bool host) {
    return [=] {
      random::Generator own(3);
      auto noisy = [own](Tensor x) { return x + own.uniform({2}); };
      return host ? zeros_twenty().map_host(noisy, {.num_parallel_calls = threads})
                  : zeros_twenty().map(noisy, {.num_parallel_calls = threads});
    };
  };
  auto with_layer = [](std::int64_t threads, bool host) {
    return [=] {
      keras::GaussianNoise layer(1, {.seed = 3});
      auto noisy = [layer](Tensor x) { return layer(x, {.training = true}); };
      return host ? zeros_twenty().map_host(noisy, {.num_parallel_calls = threads})
                  : zeros_twenty().map(noisy, {.num_parallel_calls = threads});
    };
  };
  auto check = [](auto with) {
    const std::pair<Floats, Floats> expected = two_iterations(with(0, false));
    EXPECT_NE(expected.first, expected.second);
    Floats sorted = expected.first;
    sorted.insert(sorted.end(), expected.second.begin(), expected.second.end());
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());  // all of them differ
    for (int i = 0; i < 5; ++i)
      for (const bool host : {false, true})
        for (const std::int64_t threads : {0, 2}) {
          EXPECT_EQ(two_iterations(with(threads, host)), expected) << threads << host;
          EXPECT_EQ(two_iterations([&] { return with(threads, host)().prefetch(3); }), expected) << threads << host;
        }
    // As with shuffles, what has a seed of its own does not depend on that of the process.
    EXPECT_EQ(two_iterations(with(2, false), 77), expected);
  };
  check(with_generator);
  check(with_layer);
}

TEST(DatasetRandom, GeneratorsWithASeedAreNotMovedByElements) {
  random::Generator own(3), untouched(3);
  auto dataset = zeros_twenty().map([own](Tensor x) { return x + own.uniform({2}); });
  const Floats first = all_of(dataset);
  dataset.element_spec();
  EXPECT_EQ(own.uniform({4}).to_vector<float>(), untouched.uniform({4}).to_vector<float>());
  // Nor does it matter to them where it is.
  auto again = zeros_twenty().map([own](Tensor x) { return x + own.uniform({2}); });
  EXPECT_EQ(all_of(again), first);
  // Another seed gives other numbers.
  random::Generator other(4);
  auto others = zeros_twenty().map([other](Tensor x) { return x + other.uniform({2}); });
  EXPECT_NE(all_of(others), first);
}

TEST(DatasetRandom, GeneratorsWithASeedGoOnWhereTheyWere) {
  auto check = [](auto make) {
    random::seed(1);
    auto dataset = make();
    all_of(dataset);
    data::Iteration iteration = dataset.iterate();
    for (int i = 0; i < 7; ++i) iteration.next();
    const data::IterationPosition position = iteration.position();
    Floats expected, found;
    while (iteration.next()) expected.push_back(iteration.tensors()[0].template item<float>({0}));
    random::seed(2);
    auto other = make();
    data::Iteration resumed = other.iterate_from(position);
    while (resumed.next()) found.push_back(resumed.tensors()[0].template item<float>({0}));
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(found, expected);
  };
  auto noisy = [](int seed) {
    return [own = random::Generator(static_cast<std::uint64_t>(seed))](Tensor x) { return x + own.uniform({2}); };
  };
  check([&] { return zeros_twenty().map(noisy(1)).prefetch(2); });
  check([&] { return zeros_twenty().map(noisy(1), {.num_parallel_calls = 2}).repeat(2).map(noisy(1)); });
  check([&] { return zeros_twenty().map(noisy(1)).cache().map(noisy(2)); });
  check([&] { return zeros_twenty().map(noisy(1)).concatenate(zeros_twenty().map(noisy(1))); });
  check([&] {
    return data::range(5).flat_map([f = noisy(1)](Tensor) { return data::from_tensor_slices(zeros({4, 2})).map(f); });
  });
  check([&] {
    random::Generator own(5);
    return data::from_range(std::vector<int>(20), [own](int) { return own.uniform({2}); }).shuffle(20);
  });
  check([&] {
    random::Generator own(5);
    return data::from_generator([own] {
      return [own, left = 20]() mutable -> std::optional<Tensor> {
        return left-- > 0 ? std::optional(own.uniform({2})) : std::nullopt;
      };
    });
  });
}

TEST(DatasetRandom, BranchesRepetitionsAndStagesDrawDifferentlyFromOneSeed) {
  random::Generator own(3);
  auto one = data::from_tensor_slices(zeros({3})).map([own](Tensor x) { return x * 0 + own.uniform({}); });
  auto other = data::from_tensor_slices(zeros({3})).map([own](Tensor x) { return x * 0 + own.uniform({}); });
  Floats drawn = all_of(one.repeat(2).concatenate(other));
  for (float value : all_of(one.map([own](Tensor x) { return x * 0 + own.uniform({}); }))) drawn.push_back(value);
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::unique(drawn.begin(), drawn.end()) - drawn.begin(), 12);
}

TEST(DatasetRandom, GeneratorsThatFunctionsMakeAreTheirOwn) {
  // By the element: a number of the user's that must not change.
  auto by_number = data::range(6).map_host(
      [](Tensor x) { return random::Generator(static_cast<std::uint64_t>(x.item<std::int64_t>())).uniform({2}); });
  Floats expected;
  for (std::uint64_t i = 0; i < 6; ++i)
    for (float value : random::Generator(i).uniform({2}).to_vector<float>()) expected.push_back(value);
  EXPECT_EQ(all_of(by_number), expected);
  EXPECT_EQ(all_of(by_number.shuffle(1).prefetch(2)), expected);
  // By the iteration: the same numbers each time.
  auto walk = data::from_generator([] {
    return [own = random::Generator(8), left = 6]() mutable -> std::optional<Tensor> {
      return left-- > 0 ? std::optional(own.uniform({2})) : std::nullopt;
    };
  });
  random::Generator same(8);
  expected.clear();
  for (int i = 0; i < 6; ++i)
    for (float value : same.uniform({2}).to_vector<float>()) expected.push_back(value);
  EXPECT_EQ(all_of(walk), expected);
  EXPECT_EQ(all_of(walk), expected);
}

TEST(DatasetRandom, ThreadsThatIterateDoNotDisturbEachOther) {
  auto dataset = zeros_twenty().map(noisy).batch(5);
  random::seed(6);
  std::vector<Floats> expected;
  for (int i = 0; i < 4; ++i) expected.push_back(all_of(dataset));
  random::seed(6);
  std::vector<std::decay_t<decltype(dataset.begin())>> begun;
  for (int i = 0; i < 4; ++i) begun.push_back(dataset.begin());
  std::vector<Floats> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (auto& it = begun[i]; it != std::default_sentinel; ++it)
        for (float value : (*it).to_vector<float>()) found[i].push_back(value);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, expected);
}

}  // namespace
