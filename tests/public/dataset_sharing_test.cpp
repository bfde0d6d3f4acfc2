// One dataset in several places, and what elements are made of: branches that draw, caches that are shared, datasets
// that were moved from, numbers and callables of unusual types.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<std::int64_t>;

/// `count` numbers that are drawn.
data::Dataset<Tensor> noise(std::int64_t count) {
  return data::range(count).map([](Tensor x) { return cast(x, f32) * 0 + random::uniform({}); });
}
template <class T>
std::vector<T> all_of(const data::Dataset<Tensor>& dataset) {
  std::vector<T> out;
  for (Tensor x : dataset)
    for (T value : x.to_vector<T>()) out.push_back(value);
  return out;
}
bool all_differ(const Floats& values) { return std::set<float>(values.begin(), values.end()).size() == values.size(); }

// --- branches

TEST(DatasetSharing, EveryBranchDrawsItsOwnNumbersHoweverTheyAreJoined) {
  random::seed(1);
  auto two = [] { return noise(2); };
  EXPECT_TRUE(all_differ(all_of<float>(two().concatenate(two()).concatenate(two()))));
  EXPECT_TRUE(all_differ(all_of<float>(two().concatenate(two().concatenate(two())))));
  Floats zipped;
  for (auto [left, right] : data::zip(data::zip(two(), two()), data::zip(two(), two())))
    for (const Tensor& x : {std::get<0>(left), std::get<1>(left), std::get<0>(right), std::get<1>(right)})
      zipped.push_back(x.item<float>());
  EXPECT_EQ(zipped.size(), 8u);
  EXPECT_TRUE(all_differ(zipped));
  const std::vector<data::Dataset<Tensor>> three{two(), two(), two()};
  auto sampled = data::sample_from_datasets(three);
  EXPECT_TRUE(all_differ(all_of<float>(data::sample_from_datasets<Tensor>({sampled, sampled, two()}))));
  auto chosen = data::choose_from_datasets(three, data::range(3));
  EXPECT_TRUE(all_differ(all_of<float>(chosen.concatenate(chosen).concatenate(two()))));
}

TEST(DatasetSharing, ShufflesWithoutASeedHaveOrdersOfTheirOwnInEveryBranch) {
  random::seed(1);
  auto shuffled = [] { return data::range(20).shuffle(20); };
  const Numbers all = all_of<std::int64_t>(shuffled().concatenate(shuffled()).concatenate(shuffled()));
  const std::set<Numbers> orders{Numbers(all.begin(), all.begin() + 20), Numbers(all.begin() + 20, all.begin() + 40),
                                 Numbers(all.begin() + 40, all.end())};
  EXPECT_EQ(orders.size(), 3u);
}

// --- caches

TEST(DatasetSharing, ACacheHasOnePassWhereverItIsUsed) {
  random::seed(2);
  auto same = [](Tensor x) { return x * 1; };
  auto cached = noise(5).cache();
  auto beside = data::zip(cached, cached.map(same), cached.shuffle(1).map(same).map(same));
  for (int pass = 0; pass < 2; ++pass)
    for (auto [a, b, c] : beside) {
      EXPECT_EQ(a.item<float>(), b.item<float>());
      EXPECT_EQ(a.item<float>(), c.item<float>());
    }
  // Nothing is kept of iterations that are given up, by whomever: the next makes the same.
  auto given_up = noise(5).cache();
  const float first = (*given_up.map(same).begin()).item<float>();
  EXPECT_EQ((*given_up.begin()).item<float>(), first);
  EXPECT_EQ(all_of<float>(given_up.prefetch(1))[0], first);
}

TEST(DatasetSharing, WhatIsKeptIsDrawnApartFromWhatComesAfter) {
  random::seed(2);
  auto drawn = [](Tensor x) { return stack({x, random::uniform({})}); };
  EXPECT_TRUE(all_differ(all_of<float>(noise(4).cache().map(drawn))));
  EXPECT_TRUE(all_differ(all_of<float>(noise(4).map(drawn).cache().cache().map([](Tensor x) {
    return concat({x, random::uniform({1})}, 0);
  }))));
}

TEST(DatasetSharing, AnOrderThatIsKeptIsTheSameBehindOtherShuffles) {
  random::seed(3);
  auto kept = data::range(20).shuffle(20, {.reshuffle_each_iteration = false});
  for (auto [a, b] : data::zip(kept, kept.shuffle(1))) EXPECT_EQ(a.item<std::int64_t>(), b.item<std::int64_t>());
  auto one = data::range(20), other = data::range(100, 120);
  auto drawn = data::sample_from_datasets<Tensor>({one, other}, {.reshuffle_each_iteration = false});
  for (auto [a, b] : data::zip(drawn, drawn.shuffle(1))) EXPECT_EQ(a.item<std::int64_t>(), b.item<std::int64_t>());
  auto another = data::range(20).shuffle(20, {.reshuffle_each_iteration = false});
  EXPECT_NE(all_of<std::int64_t>(kept), all_of<std::int64_t>(another));
}

TEST(DatasetSharing, WhatTheDatasetsOfAnInterleaveKeepGoesOnInAnotherProcess) {
  auto noisy = [](Tensor x) { return cast(x, f32) + random::uniform({}); };
  const std::vector<std::function<data::Dataset<Tensor>()>> keeping{
      [&] { return data::range(4).map(noisy).cache(); },
      [&] { return data::range(4).shuffle(4, {.reshuffle_each_iteration = false}).map(noisy); },
      [&] { return data::range(4).shuffle(4).cache().map(noisy); }};
  for (const auto& kept : keeping)
    for (bool again : {true, false}) {
      auto made = [&] {  // one dataset for all elements, or a new one for each
        auto all = kept();
        return data::range(3).interleave([=](Tensor) { return again ? all : kept(); }, {.cycle_length = 2});
      };
      random::seed(4);
      auto dataset = made();
      all_of<float>(dataset);
      std::vector<data::IterationPosition> positions;
      Floats values;
      for (data::Iteration second = dataset.iterate(); second.next();) {
        values.push_back(second.tensors()[0].item<float>());
        positions.push_back(second.position());
      }
      ASSERT_EQ(values.size(), 12u);
      for (std::size_t at = 0; at < positions.size(); at += 3) {
        random::seed(5);
        auto other = made();
        Floats rest;
        for (data::Iteration on = other.iterate_from(positions[at]); on.next();)
          rest.push_back(on.tensors()[0].item<float>());
        EXPECT_EQ(rest, Floats(values.begin() + static_cast<std::ptrdiff_t>(at) + 1, values.end()));
      }
    }
}

TEST(DatasetSharing, ACacheIsFullWithItsLastElement) {
  std::atomic<int> calls = 0;
  auto cached = data::range(10)
                    .map_host([&](Tensor x) {
                      ++calls;
                      return x;
                    })
                    .cache();
  // Nobody asks the cache for an eleventh: the other side of the zip ends first.
  auto beside = data::zip(data::range(10), cached);
  for (int pass = 0; pass < 3; ++pass)
    for (auto [a, b] : beside) EXPECT_EQ(a.item<std::int64_t>(), b.item<std::int64_t>());
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(all_of<std::int64_t>(cached.take(10)), all_of<std::int64_t>(cached));
  EXPECT_EQ(calls, 10);

  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("stet-sharing-" + std::to_string(getpid()));
  auto in_file = data::range(3).cache(file.string());
  EXPECT_EQ(all_of<std::int64_t>(in_file.take(2)), (Numbers{0, 1}));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(all_of<std::int64_t>(in_file.take(3)), (Numbers{0, 1, 2}));
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(all_of<std::int64_t>(in_file), (Numbers{0, 1, 2}));
  std::filesystem::remove(file);
}

TEST(DatasetSharing, ACacheOfAnUnknownNumberIsFullAtItsEnd) {
  int calls = 0;
  auto cached = data::from_generator([&calls] {
                  return [&calls, i = 0]() mutable -> std::optional<int> {
                    if (i == 3) return std::nullopt;
                    ++calls;
                    return i++;
                  };
                }).cache();
  EXPECT_EQ(all_of<std::int64_t>(cached.take(3)).size(), 3u);
  EXPECT_EQ(all_of<std::int64_t>(cached.skip(1)), (Numbers{1, 2}));
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(all_of<std::int64_t>(cached), (Numbers{0, 1, 2}));
  EXPECT_EQ(calls, 6);
  EXPECT_TRUE(all_of<std::int64_t>(data::range(0).cache().repeat(2)).empty());
}

// --- what was moved from

TEST(DatasetSharing, ADatasetThatWasMovedFromIsStillOne) {
  auto dataset = data::range(3);
  auto taken = std::move(dataset);
  EXPECT_EQ(all_of<std::int64_t>(dataset.batch(2)), all_of<std::int64_t>(taken));
  auto other = data::range(5);
  dataset = std::move(other);
  EXPECT_EQ(*other.cardinality(), 5);
  EXPECT_EQ(*dataset.cardinality(), 5);
}

// --- arguments that a pipeline is known by

TEST(DatasetSharing, APositionBelongsToTheSharesOfARejectionResample) {
  auto made = [](std::vector<double> initial) {
    return data::range(100).rejection_resample([](const Tensor& x) { return x.item<std::int64_t>() % 2; }, {0.5, 0.5},
                                               {.initial_dist = std::move(initial)});
  };
  auto dataset = made({0.5, 0.5});
  data::Iteration iteration = dataset.iterate();
  iteration.next();
  EXPECT_NO_THROW(made({0.5, 0.5}).iterate_from(iteration.position()));
  EXPECT_CONTAINS(error_of([&] {
                    made({0.2, 0.8}).iterate_from(iteration.position());
                  }),
                  "rejection_resample({0.5, 0.5}, {.initial_dist = {0.2, 0.8}})");
}

// --- numbers and callables of unusual types

TEST(DatasetSharing, NumbersOfTypesWithoutADTypeAreHeldInOne) {
  const std::vector<std::size_t> sizes{3, 1, 2};
  auto same = data::from_range(sizes, [](std::size_t n) { return n; });
  EXPECT_EQ(all_of<std::int64_t>(same.batch(2)), (Numbers{3, 1, 2}));
  EXPECT_EQ(same.element_spec()[0].dtype, i64);
  auto mixed = data::range(1).map_host([](Tensor) {
    return std::tuple{std::size_t{7}, 8u, std::uint16_t{9}, 'c', static_cast<long double>(0.5)};
  });
  const std::vector<DType> dtypes{i64, i64, i32, i32, f64};
  const std::vector<TensorSpec> spec = mixed.element_spec();
  for (std::size_t i = 0; i < dtypes.size(); ++i) EXPECT_EQ(spec[i].dtype, dtypes[i]) << i;
  auto sums = data::range(4).scan(std::size_t{10}, [](Tensor sum, Tensor x) { return std::pair{sum + x, sum + x}; });
  EXPECT_EQ(all_of<std::int64_t>(sums), (Numbers{10, 11, 13, 16}));
  auto generated = data::from_generator(
      [] { return [n = std::size_t{0}]() mutable { return n < 3 ? std::optional(n++) : std::nullopt; }; });
  EXPECT_EQ(all_of<std::int64_t>(generated), (Numbers{0, 1, 2}));
  EXPECT_CONTAINS(error_of([] {
                    for (Tensor x : data::range(1).map_host([](Tensor) { return ~std::size_t{0}; })) (void)x;
                  }),
                  "the number 18446744073709551615 is out of range for i64");
}

TEST(DatasetSharing, TensorsHoldSuchNumbersAlike) {
  EXPECT_EQ(tensor(std::size_t{3}).dtype(), i64);
  EXPECT_EQ(Tensor(std::size_t{3}).dtype(), i64);
  EXPECT_EQ((ones({2}) * Tensor(std::size_t{3})).dtype(), f32);  // a number still
  EXPECT_EQ(tensor(std::uint16_t{3}).dtype(), i32);
  EXPECT_EQ(tensor(static_cast<long double>(0.5)).item<double>(), 0.5);
  EXPECT_EQ(tensor(std::vector<std::size_t>{3, 4}).to_vector<std::int64_t>(), (Numbers{3, 4}));
  EXPECT_EQ(tensor(std::vector<std::array<unsigned, 2>>{{1, 4'000'000'000u}}).to_vector<std::int64_t>(),
            (Numbers{1, 4'000'000'000}));
  const std::string text = "tensor: the number 18446744073709551615 is out of range for i64";
  EXPECT_CONTAINS(error_of([] { tensor(~std::size_t{0}); }), text + "\n  at ");
  EXPECT_CONTAINS(error_of([] { tensor(std::vector{~std::size_t{0}}); }), text + "\n  at ");
  EXPECT_CONTAINS(error_of([] { Tensor(~std::size_t{0}); }), text);
  EXPECT_EQ(tensor(std::vector<bool>{true, false}).dtype(), bool_);
}

TEST(DatasetSharing, SlicesOfVectorsAndArrays) {
  auto dataset =
      data::from_tensor_slices(std::vector<float>{1, 2, 3}, std::vector<std::array<int, 2>>{{1, 2}, {3, 4}, {5, 6}});
  Numbers all;
  for (auto [x, y] : dataset.batch(2)) {
    EXPECT_EQ(x.dtype(), f32);
    for (std::int64_t value : y.to_vector<std::int64_t>()) all.push_back(value);
  }
  EXPECT_EQ(all, (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_CONTAINS(error_of([] {
                    data::from_tensor_slices(std::vector<std::vector<int>>{{1}, {2, 3}});
                  }),
                  "tensor: the rows of the nested list differ in length\n  at ");
  EXPECT_CONTAINS(error_of([] {
                    data::from_tensor_slices(std::vector<int>{1}, std::vector<int>{1, 2});
                  }),
                  "from_tensor_slices: argument 1, i32[2], has 2 slices, argument 0, i32[1], has 1");
}

TEST(DatasetSharing, CallablesNeedNotBeCopied) {
  auto ten = std::make_unique<std::int64_t>(10);
  auto dataset = data::from_range(Numbers{1, 2}, [ten = std::move(ten)](std::int64_t x) { return *ten * x; });
  EXPECT_EQ(all_of<std::int64_t>(dataset), (Numbers{10, 20}));
  auto end = std::make_unique<std::int64_t>(3);
  auto generated = data::from_generator([end = std::move(end)] {
    return [end = *end, at = std::make_unique<std::int64_t>(0)]() -> std::optional<std::int64_t> {
      return *at < end ? std::optional((*at)++) : std::nullopt;
    };
  });
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(all_of<std::int64_t>(generated), (Numbers{0, 1, 2}));
}

// --- fit

TEST(DatasetSharing, DataThatNeverEndsIsRefusedBeforeTraining) {
  keras::Sequential model{keras::Input({2}), keras::Dense(1)};
  model.compile({.optimizer = keras::SGD(0.1), .loss = "mse"});
  auto batches = data::from_tensor_slices(ones({4, 2}), ones({4, 1})).batch(2);
  auto endless = batches.repeat();
  EXPECT_CONTAINS(error_of([&] { model.fit(endless, {.verbose = 0}); }), "fit: the Dataset never ends\n  at ");
  EXPECT_CONTAINS(error_of([&] { model.fit(endless, {.verbose = 0}); }), ".steps_per_epoch = ");
  EXPECT_CONTAINS(error_of([&] { model.evaluate(endless, {.verbose = 0}); }),
                  "evaluate: the Dataset never ends\n  at ");
  EXPECT_CONTAINS(error_of([&] { model.predict(endless, {.verbose = 0}); }), "predict: the Dataset never ends\n  at ");
  const std::string error = error_of([&] { model.fit(batches, {.verbose = 0, .validation_data = endless}); });
  EXPECT_CONTAINS(error, "fit: the Dataset of validation_data never ends\n  at ");
  EXPECT_CONTAINS(error, ".validation_steps = ");
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 0);  // no step was taken
  model.fit(batches, {.verbose = 0, .validation_data = endless, .validation_steps = 3});
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 2);
}

}  // namespace
