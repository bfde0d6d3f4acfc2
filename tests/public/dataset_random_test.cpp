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
