// How many elements there are, and what is known of them, where it is easily wrong by one or by a kind.
#include <gtest/gtest.h>

#include <set>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Numbers = std::vector<std::int64_t>;
using Datasets = std::vector<data::Dataset<Tensor>>;

template <class... T>
std::int64_t counted(const data::Dataset<T...>& dataset) {
  std::int64_t count = 0;
  for (data::Iteration iteration = dataset.iterate(); iteration.next();) ++count;
  return count;
}

TEST(DatasetCounts, OfSampledDatasets) {
  const Datasets two{data::range(3), data::range(5)};
  EXPECT_EQ(data::sample_from_datasets(two).cardinality(), 8);
  // One without a weight is never drawn.
  auto one = data::sample_from_datasets(two, {.weights = {0, 1}});
  EXPECT_EQ(one.cardinality(), 5);
  EXPECT_EQ(counted(one), 5);
  const Datasets endless{data::range(3), data::range(5).repeat()};
  EXPECT_EQ(data::sample_from_datasets(endless).cardinality(), data::infinite);
  EXPECT_EQ(data::sample_from_datasets(endless, {.weights = {1, 0}}).cardinality(), 3);
  EXPECT_EQ(data::sample_from_datasets(endless, {.stop_on_empty_dataset = true}).cardinality(), std::nullopt);
  EXPECT_LT(counted(data::sample_from_datasets(endless, {.seed = 1, .stop_on_empty_dataset = true})), 100);
}

TEST(DatasetCounts, RepetitionsOfASampleAreDrawnAnew) {
  const Datasets two{data::range(0, 10), data::range(100, 110)};
  for (const data::SampleOptions& options : {data::SampleOptions{.seed = 3}, data::SampleOptions{}}) {
    std::set<Numbers> orders;
    Numbers order;
    for (Tensor x : data::sample_from_datasets(two, options).repeat(4)) {
      order.push_back(x.item<std::int64_t>());
      if (order.size() == 20) orders.insert(std::exchange(order, {}));
    }
    EXPECT_EQ(orders.size(), 4u);
  }
}

TEST(DatasetCounts, OfChosenDatasets) {
  const Datasets two{data::range(3), data::range(5)};
  auto zeros_only = data::range(4).map([](Tensor x) { return x * 0; });
  // Whether they last for all choices is seen by iterating alone.
  auto chosen = data::choose_from_datasets(two, zeros_only);
  EXPECT_EQ(chosen.cardinality(), std::nullopt);
  EXPECT_EQ(counted(chosen), 3);
  const Datasets endless{data::range(3).repeat(), data::range(5).repeat()};
  EXPECT_EQ(data::choose_from_datasets(endless, zeros_only).cardinality(), 4);
  EXPECT_EQ(counted(data::choose_from_datasets(endless, zeros_only)), 4);
  const std::string error = error_of([&] { counted(data::choose_from_datasets(two, data::range(0, -3, -1))); });
  EXPECT_CONTAINS(error, "choose_from_datasets: choice 1 is -1, there are 2 datasets\n  at ");
}

TEST(DatasetCounts, OfBatchesWithoutRows) {
  auto none = data::from_tensor_slices(zeros({3, 0, 2}));
  EXPECT_EQ(none.unbatch().cardinality(), 0);
  EXPECT_EQ(counted(none.unbatch()), 0);
  EXPECT_EQ(none.repeat().unbatch().cardinality(), 0);
  EXPECT_EQ(counted(none.repeat().unbatch()), 0);  // and it ends
}

TEST(DatasetCounts, OfBuckets) {
  auto bucketed = [](const data::Dataset<Tensor>& dataset) {
    return dataset.batch(1).bucket_by_sequence_length([](const Tensor& x) { return x.dim(0); },
                                                      {.boundaries = {3}, .batch_sizes = {2, 2}});
  };
  EXPECT_EQ(bucketed(data::range(3).repeat()).cardinality(), data::infinite);
  EXPECT_EQ(bucketed(data::range(3)).cardinality(), std::nullopt);
  EXPECT_EQ(bucketed(data::range(0)).cardinality(), 0);
}

TEST(DatasetCounts, RowsOfCollectedBatchesAreKnownWhenAllAreFull) {
  auto rows = [](const auto& dataset) { return dataset.element_spec()[0].shape.dims[0].size; };
  auto seven = data::from_tensor_slices(zeros({7, 2}));
  EXPECT_EQ(rows(seven.padded_batch(3)), std::nullopt);
  EXPECT_EQ(rows(seven.padded_batch(3, {.drop_remainder = true})), 3);
  EXPECT_EQ(rows(seven.padded_batch(7)), 7);
  EXPECT_EQ(rows(seven.repeat().padded_batch(3)), 3);
  auto lengths = [](const auto& dataset) { return dataset.element_spec()[1].shape.dims[0].size; };
  EXPECT_EQ(lengths(seven.ragged_batch(3)), std::nullopt);
  EXPECT_EQ(lengths(seven.ragged_batch(3, {.drop_remainder = true})), 3);
}

TEST(DatasetCounts, AWindowWhoseGapReachesTheEndIsTheLast) {
  auto windows = data::range(5).window(2, {.shift = 5}).repeat(6);
  EXPECT_EQ(windows.cardinality(), 6);
  for (std::int64_t shards : {2, 3, 4, 5}) {
    auto some = windows.shard(shards, 0);
    EXPECT_EQ(counted(some), *some.cardinality()) << shards;
  }
}

}  // namespace
