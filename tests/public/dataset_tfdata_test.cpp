// Stages whose order has rules of its own, beside what tf.data gives: tests/oracle/data/make_pipelines.py made the
// values.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "stet/stet.h"

using namespace stet;

namespace {

using Numbers = std::vector<std::int64_t>;

std::string shown(const data::Dataset<Tensor>& dataset) {
  std::string out;
  for (Tensor x : dataset) {
    if (!out.empty()) out += "|";
    out += "[" + joined(x.shape().sizes(), ",") + "] " + joined(x.to_vector<std::int64_t>(), " ");
  }
  return out;
}

/// Element i is lengths[i] times the number i.
data::Dataset<Tensor> of_lengths(const Numbers& lengths) {
  return data::from_range(lengths, [](std::int64_t n) { return n; }).enumerate().map_host([](Tensor i, Tensor n) {
    return full({n.item<std::int64_t>()}, i);
  });
}
/// count elements 10 * number, 10 * number + 1, …
data::Dataset<Tensor> tens(std::int64_t number, std::int64_t count) {
  return data::range(10 * number, 10 * number + count);
}

data::Dataset<Tensor> made(const std::string& stage, const std::vector<Numbers>& groups) {
  const Numbers& first = groups[0];
  auto rest = [&](std::ptrdiff_t from) { return Numbers(first.begin() + from, first.end()); };
  if (stage == "interleave")
    return data::from_range(rest(2), [](std::int64_t n) { return n; })
        .enumerate()
        .interleave([](Tensor i, Tensor n) { return tens(i.item<std::int64_t>(), n.item<std::int64_t>()); },
                    {.cycle_length = first[0], .block_length = first[1]});
  if (stage == "window")
    return data::range(first[4]).window(first[0],
                                        {.shift = first[1], .stride = first[2], .drop_remainder = first[3] != 0});
  if (stage == "bucket")
    return of_lengths(groups[3]).bucket_by_sequence_length([](const Tensor& x) { return x.dim(0); },
                                                           {.boundaries = groups[1],
                                                            .batch_sizes = groups[2],
                                                            .padding_values = {-1},
                                                            .pad_to_bucket_boundary = first[0] != 0,
                                                            .drop_remainder = first[1] != 0});
  if (stage == "padded_batch")
    return of_lengths(rest(3)).padded_batch(
        first[0], {.padded_shapes = {{first[1]}}, .padding_values = {9}, .drop_remainder = first[2] != 0});
  if (stage == "shard") return data::range(first[2]).shard(first[0], first[1]);
  if (stage == "choose") {
    std::vector<data::Dataset<Tensor>> datasets;
    for (std::int64_t count : groups[2]) datasets.push_back(tens(static_cast<std::int64_t>(datasets.size()), count));
    return data::choose_from_datasets(datasets, data::from_tensor_slices(tensor(groups[1])),
                                      {.stop_on_empty_dataset = first[0] != 0});
  }
  throw std::runtime_error("no stage " + stage);
}

TEST(DatasetTfData, GivesWhatTfDataGives) {
  std::filesystem::path path = std::filesystem::path(__FILE__).parent_path() / "../oracle/data/pipelines.txt";
  if (!std::filesystem::exists(path)) path = "tests/oracle/data/pipelines.txt";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    SCOPED_TRACE(line);
    const std::size_t equals = line.find(" =");
    std::istringstream words(line.substr(0, equals));
    std::string stage;
    words >> stage;
    std::vector<Numbers> groups(1);
    for (std::string word; words >> word;)
      if (word == ";")
        groups.emplace_back();
      else
        groups.back().push_back(std::stoll(word));
    const std::string expected = line.substr(std::min(equals + 3, line.size()));
    EXPECT_EQ(shown(made(stage, groups)), expected);
  }
  EXPECT_EQ(cases, 36);
}

}  // namespace
