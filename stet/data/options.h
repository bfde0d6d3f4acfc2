// What the stages of a Dataset can be told.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stet::data {

/// The cardinality of a dataset that never ends.
inline constexpr std::int64_t infinite = INT64_MAX;
/// For prefetch and num_parallel_calls: as many as help.
inline constexpr std::int64_t autotune = -1;

struct ShuffleOptions {
  /// Without one, each iteration draws its own from the process's generator (random::seed) when it begins.
  std::optional<std::uint64_t> seed = {};
  /// Another order in each iteration, and in each repetition of repeat().
  bool reshuffle_each_iteration = true;
};

struct MapOptions {
  /// How explanations of retraces call the function: "augment", or with its arguments, "augment(image, label)".
  std::string name = {};
  /// Threads that call the function, each on another element; 0: the thread that asks for the element calls it.
  /// data::autotune: as many as there are CPUs. What the function draws is the same for any number. Right behind a
  /// source that calls host code (from_range, image_folder), or only stages that order it, they make its elements, too.
  std::int64_t num_parallel_calls = 0;
  /// Results come in the order of the elements; false: as they come. Without threads they always do.
  bool deterministic = true;
};

struct FilterOptions {
  std::string name = {};  // how explanations of retraces call the predicate
};

struct BatchOptions {
  bool drop_remainder = false;  // no last batch that is smaller than the others
};

struct PaddedBatchOptions {
  /// For each tensor of an element its padded sizes; -1: that of the longest in the batch. Empty: -1 everywhere.
  std::vector<std::vector<std::int64_t>> padded_shapes = {};
  /// One for each tensor of an element, or one for all. Empty: 0.
  std::vector<double> padding_values = {};
  bool drop_remainder = false;
};

struct BucketOptions {
  /// Elements shorter than the first go to bucket 0, others shorter than the second to bucket 1, …
  std::vector<std::int64_t> boundaries = {};
  /// By bucket: one more than there are boundaries.
  std::vector<std::int64_t> batch_sizes = {};
  std::vector<std::vector<std::int64_t>> padded_shapes = {};  // as in PaddedBatchOptions
  std::vector<double> padding_values = {};                    // as in PaddedBatchOptions
  /// Pads to the longest that fits the bucket (its boundary - 1) instead of the longest in the batch, so that batches
  /// have few shapes: sizes that padded_shapes gives as -1; without padded_shapes, first axes of the length that the
  /// bucket goes by. Then no element may reach the last boundary.
  bool pad_to_bucket_boundary = false;
  bool no_padding = false;  // elements of a batch agree in shape already
  bool drop_remainder = false;
};

struct WindowOptions {
  std::int64_t shift = 0;   // from the begin of a window to that of the next; 0: its size
  std::int64_t stride = 1;  // from an element of a window to the next
  bool drop_remainder = false;
};

struct InterleaveOptions {
  std::int64_t cycle_length = 4;  // datasets that are open at a time
  std::int64_t block_length = 1;  // elements that come of one before the next has its turn
  std::int64_t num_parallel_calls =
      0;                      // threads that make elements of the open ones ahead; data::autotune: one per CPU
  bool deterministic = true;  // false, with threads: elements of any open dataset come when they are made
};

struct SampleOptions {
  std::vector<double> weights = {};        // of the datasets; empty: all the same
  std::optional<std::uint64_t> seed = {};  // as in ShuffleOptions
  bool reshuffle_each_iteration = true;    // as in ShuffleOptions
  bool stop_on_empty_dataset = false;      // the end of one is the end of all
};

struct ChooseOptions {
  bool stop_on_empty_dataset = true;  // false: choices of one that has ended are passed over
};

struct ResampleOptions {
  /// How often each class comes; empty: counted while elements pass.
  std::vector<double> initial_dist = {};
};

}  // namespace stet::data
