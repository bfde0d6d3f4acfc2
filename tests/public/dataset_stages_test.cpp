// The stages of a Dataset one by one: types, what they give, and what they say of wrong arguments. Their orders are
// compared with plain loops in dataset_chains_test.cpp and with tf.data in dataset_tfdata_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Longs = std::vector<std::int64_t>;
using Floats = std::vector<float>;

template <class D>
Longs values_of(const D& dataset) {
  Longs out;
  for (Tensor x : dataset)
    for (std::int64_t v : x.template to_vector<std::int64_t>()) out.push_back(v);
  return out;
}
template <class D>
std::string error_while_iterating(const D& dataset) {
  return error_of([&] {
    for (data::Iteration it = dataset.iterate(); it.next();) {
    }
  });
}
template <class D>
std::string spec_of(const D& dataset) {
  std::string out;
  for (const TensorSpec& spec : dataset.element_spec()) out += (out.empty() ? "" : " ") + spec.str();
  return out;
}

struct Example {
  Tensor tokens, label;
  STET_FIELDS(tokens, label)
};

/// Elements (ones of a length, the length).
data::Dataset<Tensor, Tensor> sentences(const Longs& lengths) {
  return data::from_range(lengths, [](std::int64_t n) { return std::tuple{ones({n}) * n, n}; });
}

// --- sources

TEST(DatasetStages, Range) {
  EXPECT_EQ(values_of(data::range(4)), (Longs{0, 1, 2, 3}));
  EXPECT_EQ(values_of(data::range(2, 9, 3)), (Longs{2, 5, 8}));
  EXPECT_EQ(values_of(data::range(2, 8, 3)), (Longs{2, 5}));
  EXPECT_EQ(values_of(data::range(5, 0, -2)), (Longs{5, 3, 1}));
  EXPECT_EQ(values_of(data::range(5, 1, -2)), (Longs{5, 3}));
  EXPECT_EQ(values_of(data::range(3, 3)), Longs{});
  EXPECT_EQ(values_of(data::range(3, 1)), Longs{});
  EXPECT_EQ(values_of(data::range(-2)), Longs{});
  EXPECT_EQ(values_of(data::range(INT64_MIN, INT64_MAX, INT64_MAX)), (Longs{INT64_MIN, -1, INT64_MAX - 1}));
  EXPECT_EQ(values_of(data::range(INT64_MIN, INT64_MAX).take(2)), (Longs{INT64_MIN, INT64_MIN + 1}));
  EXPECT_EQ(data::range(2, 9, 3).cardinality(), 3);
  EXPECT_EQ(spec_of(data::range(3)), "i64[]");
  EXPECT_EQ(spec_of(data::range(3).batch(2)), "i64[?]");
  std::string error = error_of([] { data::range(0, 3, 0); });
  EXPECT_CONTAINS(error, "range: the step is 0\n  at ");
  EXPECT_CONTAINS(error, "dataset_stages_test.cpp:");
}

TEST(DatasetStages, Generators) {
  auto begun = std::make_shared<int>(0);
  auto dataset = data::from_generator([begun] {
    ++*begun;
    return [at = 0]() mutable -> std::optional<std::tuple<Tensor, float>> {
      if (at == 3) return std::nullopt;
      ++at;
      return std::tuple{arange(at), 0.5f * static_cast<float>(at)};
    };
  });
  static_assert(std::is_same_v<decltype(dataset), data::Dataset<Tensor, Tensor>>);
  EXPECT_EQ(*begun, 0);
  for (int round = 0; round < 2; ++round) {
    Floats halves;
    for (auto [x, half] : dataset) halves.push_back(half.item<float>() + static_cast<float>(x.size()));
    EXPECT_EQ(halves, (Floats{1.5, 3, 4.5}));
  }
  EXPECT_EQ(*begun, 2);
  EXPECT_EQ(dataset.cardinality(), std::nullopt);
  EXPECT_EQ(dataset.repeat(3).to_vector().size(), 9u);
  EXPECT_EQ(spec_of(dataset), "i64[1] f32[]");  // of the first element
  auto undefined = data::from_generator([] { return [] { return std::optional<Tensor>{Tensor()}; }; });
  EXPECT_CONTAINS(error_while_iterating(undefined),
                  "from_generator: component 0 of element 0 is an undefined tensor\n  at ");
  auto throwing = data::from_generator([]() -> std::function<std::optional<int>()> { throw std::logic_error("no"); });
  EXPECT_THROW(throwing.iterate(), std::logic_error);
}

TEST(DatasetStages, StringsAreBytes) {
  std::vector<std::string> words{"bee", "", "möve"};
  auto dataset = data::from_range(words, [](const std::string& word) {
    return std::tuple{word, static_cast<std::int64_t>(word.size())};
  });
  static_assert(std::is_same_v<decltype(dataset), data::Dataset<Tensor, Tensor>>);
  std::vector<std::string> seen;
  for (auto [word, size] : dataset) {
    EXPECT_EQ(word.dtype(), u8);
    EXPECT_EQ(word.size(), size.item<std::int64_t>());
    seen.push_back(data::to_string(word));
  }
  EXPECT_EQ(seen, words);
  auto loud = dataset.map_host([](Tensor word, Tensor) { return data::to_string(word) + "!"; });
  seen.clear();
  for (Tensor word : loud) seen.push_back(data::to_string(word));
  EXPECT_EQ(seen, (std::vector<std::string>{"bee!", "!", "möve!"}));
  for (auto [words, sizes] : dataset.padded_batch(3)) EXPECT_EQ(words.shape().str(), "[3,5]");
  EXPECT_EQ(data::to_string(data::from_string(std::string("a\0b", 3))), std::string("a\0b", 3));
  std::string error = error_of([] { data::to_string(tensor({1, 2})); });
  EXPECT_CONTAINS(error, "to_string: a tensor i32[2]\n  at ");
  EXPECT_CONTAINS(error_of([] { data::to_string(Tensor()); }), "to_string");
}

// --- elements through functions

TEST(DatasetStages, HostCodeIsCalledForEveryElement) {
  std::map<std::int64_t, std::string> names{{0, "zero"}, {1, "one"}, {2, "two"}};
  auto dataset = data::range(3).map_host([names](const Tensor& i) {
    return std::tuple{names.at(i.item<std::int64_t>()), i.item<float>() / 2, i};
  });
  static_assert(std::is_same_v<decltype(dataset), data::Dataset<Tensor, Tensor, Tensor>>);
  std::string all;
  for (auto [name, half, i] : dataset) all += data::to_string(name) + " " + std::to_string(half.item<float>()) + " ";
  EXPECT_EQ(all, "zero 0.000000 one 0.500000 two 1.000000 ");
  auto undefined = data::range(3).map_host([](Tensor i) { return i.item<int>() == 2 ? Tensor() : i; });
  EXPECT_CONTAINS(error_while_iterating(undefined), "map_host: component 0 of element 2 is an undefined tensor\n  at ");
  EXPECT_CONTAINS(error_while_iterating(undefined), "dataset_stages_test.cpp:");
  EXPECT_THROW(data::range(3).map_host([names](Tensor i) { return names.at(i.item<int>() + 2); }).to_vector(),
               std::out_of_range);
  EXPECT_CONTAINS(error_of([] { data::range(3).map([](Tensor x) { return x; }, {.num_parallel_calls = -2}); }),
                  "map: num_parallel_calls = -2\n  at ");
  std::string error =
      error_of([] { data::range(3).map_host([](Tensor x) { return x; }, {.num_parallel_calls = 1'000'000'000}); });
  EXPECT_CONTAINS(error, "map_host: num_parallel_calls = 1000000000\n  at ");
  EXPECT_CONTAINS(error,
                  "fix: give the number of threads, at most 1024; 0 for none of its own, data::autotune for one");
}

TEST(DatasetStages, Filter) {
  auto dataset = data::from_tensor_slices(arange(10), arange(10) * 2);
  auto even = dataset.filter([](Tensor x, Tensor) { return x % 2 == 0; });
  static_assert(std::is_same_v<decltype(even), data::Dataset<Tensor, Tensor>>);
  EXPECT_EQ(values_of(even.map([](Tensor, Tensor y) { return y; })), (Longs{0, 4, 8, 12, 16}));
  EXPECT_EQ(even.cardinality(), std::nullopt);
  EXPECT_EQ(data::range(0).filter([](Tensor x) { return x > 0; }).cardinality(), 0);
  EXPECT_EQ(spec_of(even), "i64[] i64[]");
  Function<Tensor(Tensor, Tensor)> large = function("large(x, y)", [](Tensor x, Tensor) { return x > 7; });
  EXPECT_EQ(dataset.filter(large).to_vector().size(), 2u);
  EXPECT_EQ(large.trace_count(), 1);
  EXPECT_EQ(dataset.filter_host([](Tensor x, Tensor) { return x.item<int>() == 3; }).to_vector().size(), 1u);
  std::string error = error_while_iterating(dataset.filter([](Tensor x, Tensor) { return x; }));
  EXPECT_CONTAINS(error, "filter: the predicate gives i64[], not one bool\n  at ");
  EXPECT_CONTAINS(error, "dataset_stages_test.cpp:");
  EXPECT_CONTAINS(error, "fix: compare (x > 0), and reduce with all() or any()");
  EXPECT_CONTAINS(error_while_iterating(dataset.batch(2).filter([](Tensor x, Tensor) { return x > 3; })),
                  "filter: the predicate gives bool[2], not one bool");
  EXPECT_CONTAINS(error_while_iterating(dataset.batch(2).take_while([](Tensor x, Tensor) { return x > 3; })),
                  "take_while: the predicate gives bool[2], not one bool");
  EXPECT_EQ(values_of(data::range(9).take_while([](Tensor x) { return x != 4; })), (Longs{0, 1, 2, 3}));
  // An endless one ends with its last element that counts.
  EXPECT_EQ(values_of(data::range(3)
                          .repeat()
                          .enumerate()
                          .take_while([](Tensor i, Tensor) { return i < 4; })
                          .map([](Tensor, Tensor x) { return x; })),
            (Longs{0, 1, 2, 0}));
}

TEST(DatasetStages, Scan) {
  auto dataset = data::from_tensor_slices(tensor({1.f, 2.f, 3.f}));
  auto sums = dataset.scan(tensor(0.f), [](Tensor sum, Tensor x) { return std::pair{sum + x, sum + x}; });
  static_assert(std::is_same_v<decltype(sums), data::Dataset<Tensor>>);
  Floats seen;
  for (int round = 0; round < 2; ++round)
    for (Tensor x : sums) seen.push_back(x.item<float>());
  EXPECT_EQ(seen, (Floats{1, 3, 6, 1, 3, 6}));  // each iteration begins anew
  EXPECT_EQ(sums.cardinality(), 3);
  auto both = dataset.scan(std::pair{0.f, 1.f}, [](std::pair<Tensor, Tensor> state, Tensor x) {
    return std::tuple{std::pair{state.first + x, state.second * x}, std::tuple{state.first, state.second}};
  });
  static_assert(std::is_same_v<decltype(both), data::Dataset<Tensor, Tensor>>);
  seen.clear();
  for (auto [a, b] : both) seen.push_back(a.item<float>() * 10 + b.item<float>());
  EXPECT_EQ(seen, (Floats{1, 11, 32}));
  EXPECT_CONTAINS(error_of([&] { dataset.scan(Tensor(), [](Tensor s, Tensor x) {
                                   return std::pair{s, x};
                                 }); }),
                  "scan: the initial state: component 0 of element 0 is an undefined tensor");
}

// --- batches

TEST(DatasetStages, PaddedBatch) {
  auto dataset = sentences({1, 3, 2});
  auto batches = dataset.padded_batch(2).to_vector();
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(std::get<0>(batches[0]).to_vector<float>(), (Floats{1, 0, 0, 3, 3, 3}));
  EXPECT_EQ(std::get<0>(batches[0]).shape().str(), "[2,3]");
  EXPECT_EQ(std::get<1>(batches[0]).to_vector<std::int64_t>(), (Longs{1, 3}));
  EXPECT_EQ(std::get<0>(batches[1]).shape().str(), "[1,2]");
  EXPECT_EQ(dataset.padded_batch(2).cardinality(), 2);
  EXPECT_EQ(dataset.padded_batch(2, {.drop_remainder = true}).cardinality(), 1);
  // A value and a size for each tensor of an element; a scalar has no sizes.
  auto wide = dataset.padded_batch(3, {.padded_shapes = {{4}, {}}, .padding_values = {-1.5, 0}}).to_vector();
  EXPECT_EQ(std::get<0>(wide[0]).to_vector<float>(), (Floats{1, -1.5, -1.5, -1.5, 3, 3, 3, -1.5, 2, 2, -1.5, -1.5}));
  // Of every dtype, several axes, views that are not dense.
  for (DType dtype : {bool_, u8, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    auto planes = data::range(1, 4).map_host([dtype](Tensor i) {
      const auto n = i.item<std::int64_t>();
      return cast(transpose(ones({n, 4 - n})), dtype);
    });
    for (Tensor x : planes.padded_batch(3, {.padding_values = {1}})) {
      EXPECT_EQ(x.dtype(), dtype);
      EXPECT_EQ(x.shape().str(), "[3,3,3]");
      EXPECT_EQ(cast(x, f32).to_vector<float>(), Floats(27, 1));
    }
    for (Tensor x : planes.padded_batch(3)) EXPECT_EQ(sum(cast(x, f32)).item<float>(), 3 + 4 + 3);
  }
  for (Tensor x : data::range(2).map_host([](Tensor) { return zeros({0, 3}); }).padded_batch(2))
    EXPECT_EQ(x.shape().str(), "[2,0,3]");
}

TEST(DatasetStages, WrongPadding) {
  auto dataset = sentences({1, 3, 2});
  std::string error = error_while_iterating(dataset.padded_batch(3, {.padded_shapes = {{2}, {}}}));
  EXPECT_CONTAINS(error,
                  "padded_batch: component 0 of element 1 is f32[3], longer than its padded size 2 of axis 0\n  at ");
  EXPECT_CONTAINS(error, "dataset_stages_test.cpp:");
  EXPECT_CONTAINS(error, "fix: cut it in map, give a larger padded size, or -1 for the longest of the batch");
  EXPECT_CONTAINS(error_while_iterating(dataset.padded_batch(3, {.padded_shapes = {{4}}})),
                  "padded_batch: padded_shapes has 1 entries, an element has 2 tensors");
  EXPECT_CONTAINS(error_while_iterating(dataset.padded_batch(3, {.padding_values = {1, 2, 3}})),
                  "padded_batch: padding_values has 3 entries, an element has 2 tensors");
  EXPECT_CONTAINS(error_while_iterating(dataset.padded_batch(3, {.padded_shapes = {{4, 4}, {}}})),
                  "padded_batch: component 0 of element 0 is f32[1], its padded shape has 2 sizes");
  EXPECT_CONTAINS(error_while_iterating(dataset.padded_batch(3, {.padding_values = {0.5}})),
                  "padded_batch: the padding value 0.5 of component 1 is none of i64");
  EXPECT_CONTAINS(error_of([&] {
                    dataset.padded_batch(3, {.padded_shapes = {{-2}, {}}});
                  }),
                  "padded_batch: a padded size is -2\n  at ");
  EXPECT_CONTAINS(error_of([&] { dataset.padded_batch(0); }), "padded_batch: the batch size is 0\n  at ");
  EXPECT_CONTAINS(error_while_iterating(dataset.padded_batch(3, {.padded_shapes = {{INT64_MAX / 2}, {}}})),
                  "padded_batch: ");
  auto ranks = data::range(2).map_host([](Tensor i) { return i.item<int>() ? ones({2}) : ones({2, 2}); });
  EXPECT_CONTAINS(error_while_iterating(ranks.padded_batch(2)),
                  "padded_batch: component 0 of element 1 is f32[2], of element 0, the first of the batch, f32[2,2]");
  auto types = data::range(2).map_host([](Tensor i) { return i.item<int>() ? ones({2}) : ones({2}, i32); });
  EXPECT_CONTAINS(error_while_iterating(types.padded_batch(2)), "fix: elements of one batch have one dtype: cast them");
}

TEST(DatasetStages, RaggedBatch) {
  auto dataset = sentences({1, 3, 0, 2});
  auto ragged = dataset.ragged_batch<0>(3);
  static_assert(std::is_same_v<decltype(ragged), data::Dataset<data::Ragged, Tensor>>);
  int batches = 0;
  for (auto [words, lengths] : ragged) {
    EXPECT_EQ(words.row_lengths.to_vector<std::int64_t>(), lengths.to_vector<std::int64_t>());
    if (batches++ == 0) {
      EXPECT_EQ(words.values.to_vector<float>(), (Floats{1, 3, 3, 3}));
      EXPECT_EQ(words.rows(), 3);
      EXPECT_EQ(words.row(1).to_vector<float>(), (Floats{3, 3, 3}));
      EXPECT_EQ(words.row(2).shape().str(), "[0]");
      EXPECT_CONTAINS(error_of([w = words] { w.row(3); }), "Ragged: row 3 of 3\n  at ");
      EXPECT_CONTAINS(error_of([w = words] { w.row(-1); }), "Ragged: row -1 of 3\n  at ");
    } else {
      EXPECT_EQ(words.values.to_vector<float>(), (Floats{2, 2}));
    }
  }
  EXPECT_EQ(batches, 2);
  EXPECT_EQ(spec_of(data::from_tensor_slices(ones({5, 2, 3}), ones({5})).ragged_batch<0>(2)), "f32[?,3] i64[?] f32[?]");
  auto all = data::range(1, 4).map_host([](Tensor n) { return ones({n.item<std::int64_t>(), 2}); }).ragged_batch(3);
  static_assert(std::is_same_v<decltype(all), data::Dataset<data::Ragged>>);
  for (data::Ragged one : all) EXPECT_EQ(one.values.shape().str(), "[6,2]");
  EXPECT_CONTAINS(error_while_iterating(dataset.ragged_batch(2)),
                  "ragged_batch: component 1 of element 0 is i64[], a scalar: it has no length\n  at ");
  auto widths = data::range(1, 3).map_host([](Tensor n) { return ones({2, n.item<std::int64_t>()}); });
  EXPECT_CONTAINS(error_while_iterating(widths.ragged_batch(2)),
                  "ragged_batch: component 0 of element 1 is f32[2,2], of element 0, the first of the batch, f32[2,1]");
  EXPECT_CONTAINS(error_of([&] { dataset.ragged_batch<0>(-1); }), "ragged_batch: the batch size is -1\n  at ");
}

TEST(DatasetStages, Buckets) {
  auto dataset = sentences({1, 5, 2, 6, 9, 3});
  auto length = [](const Tensor& words, const Tensor&) { return words.dim(0); };
  std::vector<std::string> shapes;
  for (auto [words, n] : dataset.bucket_by_sequence_length(length, {.boundaries = {4, 8}, .batch_sizes = {2, 2, 2}}))
    shapes.push_back(words.shape().str() + n.shape().str());
  EXPECT_EQ(shapes, (std::vector<std::string>{"[2,2][2]", "[2,6][2]", "[1,3][1]", "[1,9][1]"}));
  shapes.clear();
  for (auto [words, n] : dataset.bucket_by_sequence_length(length, {.boundaries = {4, 8, 16},
                                                                   .batch_sizes = {2, 2, 2, 2},
                                                                   .padded_shapes = {{-1}, {}},
                                                                   .pad_to_bucket_boundary = true}))
    shapes.push_back(words.shape().str());
  EXPECT_EQ(shapes, (std::vector<std::string>{"[2,3]", "[2,7]", "[1,3]", "[1,15]"}));
  // Features of a fixed size stay: only the axis of the length is padded to the boundary.
  shapes.clear();
  auto frames = dataset.map_host([](Tensor words, Tensor n) {
    return std::tuple{ones({words.dim(0), 20}), n, ones({3})};
  });
  for (auto [x, n, y] : frames.bucket_by_sequence_length(
           [](Tensor x, Tensor, Tensor) { return x.dim(0); },
           {.boundaries = {4, 10}, .batch_sizes = {3, 3, 1}, .pad_to_bucket_boundary = true}))
    shapes.push_back(x.shape().str() + n.shape().str() + y.shape().str());
  EXPECT_EQ(shapes, (std::vector<std::string>{"[3,9,20][3][3,3]", "[3,3,20][3][3,3]"}));
  auto bucketed = [&](data::BucketOptions options) {
    return error_of([&] { dataset.bucket_by_sequence_length(length, std::move(options)).to_vector(); });
  };
  EXPECT_CONTAINS(bucketed({.boundaries = {4, 8}, .batch_sizes = {2, 2, 2}, .pad_to_bucket_boundary = true}),
                  "bucket_by_sequence_length: element 4 has length 9, the last boundary is 8\n  at ");
  EXPECT_CONTAINS(bucketed({.batch_sizes = {2}}), "bucket_by_sequence_length: there are no boundaries\n  at ");
  EXPECT_CONTAINS(bucketed({.boundaries = {4, 4}, .batch_sizes = {2, 2, 2}}),
                  "bucket_by_sequence_length: the boundaries are 4, 4\n  at ");
  EXPECT_CONTAINS(bucketed({.boundaries = {0}, .batch_sizes = {2, 2}}), "the boundaries are 0\n");
  EXPECT_CONTAINS(bucketed({.boundaries = {4}, .batch_sizes = {2}}),
                  "bucket_by_sequence_length: 1 batch sizes for 1 boundaries\n  at ");
  EXPECT_CONTAINS(bucketed({.boundaries = {4}, .batch_sizes = {2, 0}}), "the batch size is 0");
  EXPECT_CONTAINS(
      bucketed({.boundaries = {4}, .batch_sizes = {2, 2}, .pad_to_bucket_boundary = true, .no_padding = true}),
      "bucket_by_sequence_length: no_padding, and a padding too");
  EXPECT_CONTAINS(bucketed({.boundaries = {4}, .batch_sizes = {2, 2}, .no_padding = true}),
                  "bucket_by_sequence_length: component 0 of element 1 is f32[2], of element 0");
  EXPECT_CONTAINS(error_while_iterating(dataset.bucket_by_sequence_length([](Tensor, Tensor) { return -1; },
                                                                          {.boundaries = {4}, .batch_sizes = {2, 2}})),
                  "bucket_by_sequence_length: element 0 has length -1\n  at ");
}

TEST(DatasetStages, Unbatch) {
  auto dataset = data::from_tensor_slices(reshape(arange(12), {6, 2}), arange(6));
  auto again = dataset.shuffle(6, {.seed = 1}).batch(4).unbatch();
  EXPECT_EQ(again.to_vector().size(), 6u);
  for (auto [row, i] : again) EXPECT_EQ(row.to_vector<std::int64_t>()[0], 2 * i.item<std::int64_t>());
  EXPECT_EQ(dataset.batch(3).unbatch().cardinality(), 6);
  EXPECT_EQ(dataset.batch(4).unbatch().cardinality(), std::nullopt);  // the last one differs
  EXPECT_EQ(dataset.repeat().batch(4).unbatch().cardinality(), data::infinite);
  EXPECT_EQ(spec_of(dataset.batch(4).unbatch()), "i64[2] i64[]");
  EXPECT_EQ(dataset.map([](Tensor x, Tensor) {
                     return transpose(reshape(x, {1, 2}));
                   })
                .unbatch()
                .to_vector()
                .size(),
            12u);
  EXPECT_CONTAINS(error_while_iterating(dataset.unbatch()),
                  "unbatch: component 1 of element 0 is i64[], a scalar: it has no first axis\n  at ");
  auto uneven = data::range(1).map([](Tensor) { return std::tuple{ones({2}), ones({3})}; });
  EXPECT_CONTAINS(error_while_iterating(uneven.unbatch()),
                  "unbatch: component 1 of element 0 is f32[3], component 0 f32[2]\n  at ");
}

TEST(DatasetStages, Windows) {
  // A series: windows of slices are views of it, one behind the other.
  Tensor series = cast(arange(6), f32);
  for (Tensor x : data::from_tensor_slices(series).window(3, {.shift = 1, .drop_remainder = true}))
    EXPECT_EQ(x.shape().str(), "[3]");
  EXPECT_EQ(data::from_tensor_slices(series).window(3, {.shift = 1, .drop_remainder = true}).cardinality(), 4);
  EXPECT_EQ(data::range(7).window(3).cardinality(), 3);
  EXPECT_EQ(data::range(7).window(INT64_MAX, {.stride = INT64_MAX}).to_vector().size(), 1u);
  EXPECT_EQ(data::range(7).window(2, {.shift = INT64_MAX, .stride = INT64_MAX}).to_vector().size(), 1u);
  EXPECT_EQ(spec_of(data::range(7).window(3, {.drop_remainder = true})), "i64[3]");
  auto made = std::make_shared<int>(0);
  auto counted = data::from_range(Longs{1, 2, 3, 4, 5}, [made](std::int64_t i) {
    ++*made;
    return i;
  });
  EXPECT_EQ(counted.window(3, {.shift = 1}).to_vector().size(), 5u);
  EXPECT_EQ(*made, 5);  // each is in several windows, and made once
  EXPECT_CONTAINS(error_of([] { data::range(3).window(0); }), "window: the size is 0\n  at ");
  EXPECT_CONTAINS(error_of([] { data::range(3).window(1, {.shift = -1}); }), "window: the shift is -1\n  at ");
  EXPECT_CONTAINS(error_of([] { data::range(3).window(1, {.stride = 0}); }), "window: the stride is 0\n  at ");
  EXPECT_CONTAINS(error_while_iterating(sentences({1, 2}).window(2)),
                  "window: component 0 of element 1 is f32[2], of element 0, the first of the batch, f32[1]");
}

// --- several datasets

TEST(DatasetStages, Zip) {
  auto a = data::from_tensor_slices(arange(4));
  auto b = data::from_tensor_slices(arange(6) * 10, arange(6) * 100);
  auto zipped = data::zip(a, b);
  static_assert(std::is_same_v<decltype(zipped), data::Dataset<Tensor, std::tuple<Tensor, Tensor>>>);
  EXPECT_EQ(zipped.cardinality(), 4);
  std::int64_t total = 0;
  for (auto [x, y] : zipped) total += x.item<int>() + std::get<0>(y).item<int>() + std::get<1>(y).item<int>();
  EXPECT_EQ(total, 6 * 111);
  // Slices side by side are slices: what shuffles them shuffles positions, and keeps them together.
  for (auto [x, y] : zipped.shuffle(4).batch(4))
    EXPECT_EQ((x * 10).to_vector<std::int64_t>(), std::get<0>(y).to_vector<std::int64_t>());
  // Shuffles of one seed go together.
  for (auto [x, y] : data::zip(a.shuffle(4, {.seed = 3}), a.shuffle(4, {.seed = 3})))
    EXPECT_EQ(x.item<int>(), y.item<int>());
  EXPECT_EQ(data::zip(a, a.repeat(), a).to_vector().size(), 4u);
  EXPECT_EQ(data::zip(a.repeat(), a.repeat(), a.repeat(), a.repeat()).cardinality(), data::infinite);
  EXPECT_EQ(data::zip(a, a.filter([](Tensor x) { return x > 1; })).cardinality(), std::nullopt);
  EXPECT_EQ(data::zip(a, a.filter([](Tensor x) { return x > 1; })).to_vector().size(), 2u);
  EXPECT_EQ(data::zip(a.take(0), a.filter([](Tensor x) { return x > 1; })).cardinality(), 0);
  // What is drawn differs between the branches, and repeats with the process's seed.
  auto noise = [](Tensor) { return random::uniform({}); };
  auto draws = [&] {
    random::seed(5);
    Floats out;
    for (auto [x, y] : data::zip(a.map(noise), a.map(noise)).batch(4).prefetch(1))
      for (const Tensor& t : {x, y})
        for (float v : t.to_vector<float>()) out.push_back(v);
    return out;
  };
  Floats drawn = draws();
  EXPECT_EQ(draws(), drawn);
  EXPECT_EQ(std::set<float>(drawn.begin(), drawn.end()).size(), 8u);
}

TEST(DatasetStages, EnumerateAndConcatenate) {
  auto dataset = data::from_tensor_slices(arange(3) * 5, arange(3));
  auto numbered = dataset.enumerate(10);
  static_assert(std::is_same_v<decltype(numbered), data::Dataset<Tensor, Tensor, Tensor>>);
  for (auto [i, x, y] : numbered) EXPECT_EQ(i.item<int>(), 10 + y.item<int>());
  EXPECT_EQ(dataset.repeat().enumerate(7).cardinality(), data::infinite);
  EXPECT_EQ(dataset.enumerate().shuffle(3).batch(2).cardinality(), 2);
  EXPECT_EQ(spec_of(dataset.enumerate()), "i64[] i64[] i64[]");
  auto a = data::range(3), b = data::range(10, 12);
  EXPECT_EQ(values_of(a.concatenate(b)), (Longs{0, 1, 2, 10, 11}));
  EXPECT_EQ(a.concatenate(b).cardinality(), 5);
  EXPECT_EQ(a.repeat().concatenate(b).cardinality(), data::infinite);
  EXPECT_EQ(a.concatenate(b.filter([](Tensor x) { return x > 0; })).cardinality(), std::nullopt);
  EXPECT_EQ(values_of(a.take(2).concatenate(a.skip(2)).concatenate(a)), (Longs{0, 1, 2, 0, 1, 2}));
  // The same again and again does not double the work of asking.
  auto doubled = data::range(1);
  for (int i = 0; i < 62; ++i) doubled = doubled.concatenate(doubled);
  EXPECT_EQ(doubled.cardinality(), std::int64_t{1} << 62);
  EXPECT_EQ(doubled.concatenate(doubled).cardinality(), data::infinite);
  EXPECT_EQ(values_of(doubled.take(3)), (Longs{0, 0, 0}));
  EXPECT_EQ(values_of(doubled.skip((std::int64_t{1} << 62) - 2)), (Longs{0, 0}));
  EXPECT_EQ(spec_of(doubled), "i64[]");
  EXPECT_EQ(spec_of(data::from_tensor_slices(ones({2, 3})).concatenate(data::from_tensor_slices(ones({2, 4})))),
            "f32[?]");
  EXPECT_CONTAINS(error_of([] {
                    auto d = data::range(1);
                    for (;;) d = data::range(1).concatenate(d);
                  }),
                  "concatenate: a pipeline of more than 1000 stages");
}

TEST(DatasetStages, InterleaveAndFlatMap) {
  auto files = data::from_range(std::vector<std::string>{"ab", "cde", ""}, [](const std::string& s) { return s; });
  auto letters = [](const Tensor& name) {
    return data::from_tensor_slices(name).map([](Tensor letter) { return cast(letter, i64); });
  };
  auto flat = files.flat_map(letters);
  static_assert(std::is_same_v<decltype(flat), data::Dataset<Tensor>>);
  EXPECT_EQ(values_of(flat), (Longs{'a', 'b', 'c', 'd', 'e'}));
  EXPECT_EQ(flat.cardinality(), std::nullopt);
  EXPECT_EQ(values_of(files.interleave(letters, {.cycle_length = 2})), (Longs{'a', 'c', 'b', 'd', 'e'}));
  // Inner datasets shuffle and draw by the element that they were made of: each differently, and all again.
  auto noisy = [](Tensor) {
    return data::range(3).shuffle(3).map([](Tensor i) { return cast(i, f32) + random::uniform({}); });
  };
  auto draws = [&](std::int64_t calls) {
    random::seed(5);
    Floats out;
    for (Tensor x : data::range(4).interleave(noisy, {.cycle_length = 3, .num_parallel_calls = calls}))
      out.push_back(x.item<float>());
    return out;
  };
  Floats drawn = draws(0);
  EXPECT_EQ(std::set<float>(drawn.begin(), drawn.end()).size(), 12u);
  for (std::int64_t calls : {0, 1, 2, 3, 8}) EXPECT_EQ(draws(calls), drawn);
  EXPECT_CONTAINS(error_of([&] { files.interleave(letters, {.cycle_length = 0}); }),
                  "interleave: the cycle length is 0\n  at ");
  EXPECT_CONTAINS(error_of([&] { files.interleave(letters, {.cycle_length = INT64_MAX}); }),
                  "fix: so many datasets would be open at a time: it is at most 10000");
  EXPECT_CONTAINS(error_of([&] { files.interleave(letters, {.block_length = -3}); }),
                  "interleave: the block length is -3\n  at ");
  EXPECT_CONTAINS(error_of([&] { files.interleave(letters, {.num_parallel_calls = 5000}); }),
                  "interleave: num_parallel_calls = 5000\n  at ");
}

TEST(DatasetStages, SampleFromDatasets) {
  auto ones = data::range(1).repeat(), tens = data::range(10, 11).repeat();
  data::SampleOptions options{.weights = {3, 1}, .seed = 4};
  std::map<std::int64_t, int> counts;
  for (std::int64_t v : values_of(data::sample_from_datasets(std::vector{ones, tens}, options).take(8000))) ++counts[v];
  EXPECT_NEAR(counts[0], 6000, 4 * std::sqrt(8000 * 0.75 * 0.25));
  EXPECT_EQ(counts[0] + counts[10], 8000);
  auto finite = data::sample_from_datasets(std::vector{data::range(5), data::range(10, 30)}, {.seed = 1});
  Longs all = values_of(finite);
  EXPECT_EQ(all.size(), 25u);
  EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), 25u);
  EXPECT_NE(values_of(finite), all);  // another iteration
  EXPECT_EQ(finite.cardinality(), 25);
  auto stopping = data::sample_from_datasets(std::vector{data::range(5), data::range(10, 30)},
                                             {.seed = 1, .stop_on_empty_dataset = true});
  EXPECT_EQ(stopping.cardinality(), std::nullopt);
  Longs some = values_of(stopping);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  EXPECT_LT(some.size(), 25u);
  auto fixed =
      data::sample_from_datasets(std::vector{data::range(5), data::range(10, 30)}, {.reshuffle_each_iteration = false});
  EXPECT_EQ(values_of(fixed), values_of(fixed));
  EXPECT_EQ(
      values_of(data::sample_from_datasets(std::vector{data::range(5), data::range(10, 30)}, {.weights = {1, 0}})),
      (Longs{0, 1, 2, 3, 4}));
  random::seed(3);
  auto unseeded = data::sample_from_datasets(std::vector{data::range(5), data::range(10, 30)});
  Longs first = values_of(unseeded);
  random::seed(3);
  EXPECT_EQ(values_of(unseeded.prefetch(2)), first);
  using Ds = std::vector<data::Dataset<Tensor>>;
  EXPECT_CONTAINS(error_of([] { data::sample_from_datasets(Ds{}); }),
                  "sample_from_datasets: there are no datasets\n  at ");
  EXPECT_CONTAINS(error_of([&] {
                    data::sample_from_datasets(Ds{ones, tens}, {.weights = {1}});
                  }),
                  "sample_from_datasets: 1 weights for 2 datasets\n  at ");
  EXPECT_CONTAINS(error_of([&] {
                    data::sample_from_datasets(Ds{ones, tens}, {.weights = {1, -1}});
                  }),
                  "sample_from_datasets: a weight is -1");
  EXPECT_CONTAINS(error_of([&] {
                    data::sample_from_datasets(Ds{ones, tens}, {.weights = {0, 0}});
                  }),
                  "sample_from_datasets: the sum of the weights is 0");
  EXPECT_CONTAINS(error_of([&] {
                    data::sample_from_datasets(Ds{ones, tens}, {.weights = {NAN, 1}});
                  }),
                  "sample_from_datasets: a weight is nan");
}

TEST(DatasetStages, ChooseFromDatasets) {
  std::vector<data::Dataset<Tensor>> datasets{data::range(3), data::range(10, 13)};
  auto choose = [&](const Tensor& choices, data::ChooseOptions options = {}) {
    return data::choose_from_datasets(datasets, data::from_tensor_slices(choices), options);
  };
  EXPECT_EQ(values_of(choose(tensor({1, 0, 1}))), (Longs{10, 0, 11}));
  EXPECT_CONTAINS(error_while_iterating(choose(tensor({1, 2}))),
                  "choose_from_datasets: choice 1 is 2, there are 2 datasets\n  at ");
  EXPECT_CONTAINS(error_while_iterating(choose(tensor({1.f}))), "choose_from_datasets: choice 0 is f32[]\n  at ");
  EXPECT_CONTAINS(error_of([] { data::choose_from_datasets(std::vector<data::Dataset<Tensor>>{}, data::range(1)); }),
                  "choose_from_datasets: there are no datasets");
}

TEST(DatasetStages, RejectionResample) {
  // 90 % are of class 0; half are wanted.
  auto dataset = data::range(20'000).map([](Tensor i) { return cast(i % 10 == 0, i64); });
  auto class_of = [](const Tensor& c) { return c.item<std::int64_t>(); };
  for (const std::vector<double>& initial : {std::vector<double>{0.9, 0.1}, std::vector<double>{}}) {
    random::seed(8);
    auto even = dataset.rejection_resample(class_of, {0.5, 0.5}, {.initial_dist = initial});
    Longs classes = values_of(even);
    const auto ones = std::count(classes.begin(), classes.end(), 1);
    EXPECT_NEAR(static_cast<double>(ones) / static_cast<double>(classes.size()), 0.5, 0.04);
    EXPECT_GT(ones, 1900);  // of the rare class nearly all stay
    random::seed(8);
    EXPECT_EQ(values_of(even.prefetch(2)), classes);
    EXPECT_EQ(even.cardinality(), std::nullopt);
  }
  EXPECT_EQ(values_of(dataset.take(30).rejection_resample(class_of, {0, 1})).size(), 3u);
  auto resampled = [&](std::vector<double> target, std::vector<double> initial) {
    return error_of([&] { dataset.rejection_resample(class_of, target, {.initial_dist = initial}).to_vector(); });
  };
  EXPECT_CONTAINS(resampled({1}, {}), "rejection_resample: element 0 is of class 1, target_dist has 1 classes\n  at ");
  EXPECT_CONTAINS(resampled({}, {}), "rejection_resample: target_dist has no share above 0\n  at ");
  EXPECT_CONTAINS(resampled({1, -2}, {}), "rejection_resample: target_dist holds -2");
  EXPECT_CONTAINS(resampled({1, 2}, {1}), "rejection_resample: initial_dist has 1 classes, target_dist 2");
  EXPECT_CONTAINS(resampled({1, 2}, {1, 0}),
                  "rejection_resample: class 1 is wanted, and by initial_dist it never comes");
}

TEST(DatasetStages, Shard) {
  EXPECT_EQ(values_of(data::range(7).shard(3, 1)), (Longs{1, 4}));
  EXPECT_EQ(data::range(7).shard(3, 0).cardinality(), 3);
  EXPECT_EQ(data::range(7).shard(3, 1).cardinality(), 2);
  EXPECT_EQ(data::range(7).repeat().shard(3, 1).cardinality(), data::infinite);
  EXPECT_EQ(values_of(data::range(7).shard(INT64_MAX, 0)), (Longs{0}));
  EXPECT_EQ(values_of(data::range(7).shard(INT64_MAX, INT64_MAX - 1)), Longs{});
  EXPECT_CONTAINS(error_of([] { data::range(3).shard(0, 0); }), "shard: the number of shards is 0\n  at ");
  EXPECT_CONTAINS(error_of([] { data::range(3).shard(2, 2); }), "shard: index 2 of 2 shards\n  at ");
  EXPECT_CONTAINS(error_of([] { data::range(3).shard(2, -1); }), "fix: it is one of 0 to 1");
}

// --- the whole

TEST(DatasetStages, ElementSpec) {
  auto dataset = data::from_tensor_slices(std::pair{ones({6, 4}), ones({6}, i32)}, ones({6, 2, 2}, u8));
  EXPECT_EQ(spec_of(dataset), "f32[4] i32[] u8[2,2]");
  EXPECT_EQ(spec_of(dataset.shuffle(3).batch(4).prefetch(1).repeat(2)), "f32[?,4] i32[?] u8[?,2,2]");
  EXPECT_EQ(spec_of(dataset.batch(3)), "f32[3,4] i32[3] u8[3,2,2]");
  EXPECT_EQ(spec_of(dataset.batch(4, {.drop_remainder = true})), "f32[4,4] i32[4] u8[4,2,2]");
  auto called = std::make_shared<int>(0);
  auto host = data::range(5).map_host([called](Tensor i) {
    ++*called;
    return ones({i.item<std::int64_t>() + 2});
  });
  EXPECT_EQ(spec_of(host), "f32[2]");
  EXPECT_EQ(*called, 1);
  EXPECT_EQ(host.next_iteration(), 0u);
  random::seed(4);
  Floats expected = random::uniform({2}).to_vector<float>();
  random::seed(4);
  EXPECT_EQ(spec_of(host.shuffle(2)), "f32[2]");
  EXPECT_EQ(random::uniform({2}).to_vector<float>(), expected);  // nothing was drawn
  std::string error = error_of([&] { host.take(0).element_spec(); });
  EXPECT_CONTAINS(error, "element_spec: what its elements are is known by making one, and the dataset is empty\n  at ");
}

TEST(DatasetStages, ToVectorAndApply) {
  auto halves = [](const auto& dataset) { return dataset.map([](Tensor x) { return x / 2; }).batch(2); };
  auto all = data::from_tensor_slices(tensor({2.f, 4.f, 6.f})).apply(halves).to_vector();
  static_assert(std::is_same_v<decltype(all), std::vector<Tensor>>);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].to_vector<float>(), (Floats{1, 2}));
  auto examples = sentences({1, 2}).map([](Tensor a, Tensor b) { return Example{a, b}; }).to_vector();
  static_assert(std::is_same_v<decltype(examples), std::vector<Example>>);
  EXPECT_EQ(examples[1].label.item<int>(), 2);
  std::string error = error_of([] { data::range(1).repeat().to_vector(); });
  EXPECT_CONTAINS(error, "to_vector: the dataset never ends\n  at ");
  EXPECT_CONTAINS(error, "dataset_stages_test.cpp:");
}

TEST(DatasetStages, StagesTakeAggregates) {
  auto examples = sentences({1, 2, 3}).map([](Tensor a, Tensor b) { return Example{a, b}; });
  auto some = examples.filter([](Example e) { return e.label > 1; })
                  .map_host([](const Example& e) {
                    return Example{e.tokens * 2, e.label};
                  })
                  .cache()
                  .concatenate(examples.take(1));
  static_assert(std::is_same_v<decltype(some)::Element, Example>);
  std::vector<float> sums;
  for (Example e : some) sums.push_back(sum(e.tokens).item<float>());
  EXPECT_EQ(sums, (std::vector<float>{8, 18, 1}));
}

}  // namespace
