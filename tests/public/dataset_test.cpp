// Datasets as a user sees them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <ranges>
#include <set>
#include <stdexcept>
#include <thread>

#include "expect_error.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;
using Longs = std::vector<std::int64_t>;

/// 0, 1, …, count - 1 as elements.
data::Dataset<Tensor> numbers(std::int64_t count) { return data::from_tensor_slices(arange(count)); }

template <class D>
Longs values_of(const D& dataset) {
  Longs out;
  for (Tensor x : dataset)
    for (std::int64_t v : x.template to_vector<std::int64_t>()) out.push_back(v);
  return out;
}
template <class D>
std::vector<Longs> batches_of(const D& dataset) {
  std::vector<Longs> out;
  for (Tensor x : dataset) out.push_back(x.template to_vector<std::int64_t>());
  return out;
}
Longs sorted(Longs values) {
  std::sort(values.begin(), values.end());
  return values;
}
Longs counted(std::int64_t first, std::int64_t end) {
  Longs out;
  for (std::int64_t i = first; i < end; ++i) out.push_back(i);
  return out;
}

// --- slices

TEST(Dataset, SlicesHaveTypes) {
  Tensor images = reshape(cast(arange(24), f32), {4, 2, 3}), labels = tensor({10, 11, 12, 13});
  auto dataset = data::from_tensor_slices(images, labels);
  static_assert(std::is_same_v<decltype(dataset), data::Dataset<Tensor, Tensor>>);
  static_assert(std::is_same_v<decltype(dataset)::Element, std::tuple<Tensor, Tensor>>);
  int row = 0;
  for (auto [image, label] : dataset) {
    EXPECT_EQ(image.shape().str(), "[2,3]");
    EXPECT_EQ(label.shape().str(), "[]");
    EXPECT_EQ(image.dtype(), f32);
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(image.to_vector<float>()[static_cast<std::size_t>(i)], static_cast<float>(row * 6 + i));
    EXPECT_EQ(label.item<int>(), 10 + row);
    ++row;
  }
  EXPECT_EQ(row, 4);
  EXPECT_EQ(dataset.cardinality(), 4);

  auto one = data::from_tensor_slices(labels);
  static_assert(std::is_same_v<decltype(one)::Element, Tensor>);
  int sum = 0;
  for (Tensor label : one) sum += label.item<int>();
  EXPECT_EQ(sum, 46);
}

TEST(Dataset, SlicesOfViewsVariablesAndStructures) {
  Tensor x = transpose(reshape(cast(arange(6), f32), {2, 3}));  // [[0 3] [1 4] [2 5]]
  Variable v(tensor({1.f, 2.f, 3.f}));
  auto dataset = data::from_tensor_slices(std::pair{x, v.value()}, v);
  static_assert(std::is_same_v<decltype(dataset), data::Dataset<std::pair<Tensor, Tensor>, Tensor>>);
  v.assign(tensor({0.f, 0.f, 0.f}));  // the dataset keeps what it was given
  Floats seen;
  for (auto [inputs, y] : dataset) {
    EXPECT_EQ(inputs.first.shape().str(), "[2]");
    seen.push_back(inputs.first.item<float>({1}) * 100 + inputs.second.item<float>() * 10 + y.item<float>());
  }
  EXPECT_EQ(seen, (Floats{311, 422, 533}));
  for (auto [inputs, y] : dataset.batch(2).take(1)) {
    EXPECT_EQ(inputs.first.to_vector<float>(), (Floats{0, 3, 1, 4}));
    EXPECT_EQ(y.to_vector<float>(), (Floats{1, 2}));
  }
  int count = 0;
  for (auto [a, b, c, d] : data::from_tensor_slices(x, x, x, v)) count += a.defined() + b.defined() + c.defined();
  EXPECT_EQ(count, 9);
}

TEST(Dataset, WrongSlices) {
  std::string error = error_of([] { data::from_tensor_slices(ones({4, 2}), tensor({1, 2, 3})); });
  EXPECT_CONTAINS(error, "from_tensor_slices: argument 1, i32[3], has 3 slices, argument 0, f32[4,2], has 4");
  EXPECT_CONTAINS(error, "dataset_test.cpp:");
  EXPECT_CONTAINS(error, "fix: all arguments need the same size of axis 0");
  EXPECT_CONTAINS(error_of([] { data::from_tensor_slices(tensor(1.f)); }),
                  "from_tensor_slices: argument 0 is a scalar, f32[]: it has no first axis to slice along");
  EXPECT_CONTAINS(error_of([] { data::from_tensor_slices(ones({2}), Tensor()); }),
                  "from_tensor_slices: argument 1 is an undefined tensor");
  EXPECT_CONTAINS(error_of([] {
                    data::from_tensor_slices(ones({2}), std::tuple{ones({2}), ones({3})});
                  }),
                  "from_tensor_slices: argument 1 (its tensor 1), f32[3], has 3 slices");
}

// --- batch

TEST(Dataset, BatchesWithAPartialLastOne) {
  EXPECT_EQ(batches_of(numbers(7).batch(3)), (std::vector<Longs>{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(batches_of(numbers(7).batch(3, {.drop_remainder = true})), (std::vector<Longs>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(batches_of(numbers(6).batch(3)), (std::vector<Longs>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(batches_of(numbers(2).batch(INT64_MAX)), (std::vector<Longs>{{0, 1}}));
  EXPECT_EQ(batches_of(numbers(2).batch(3, {.drop_remainder = true})).size(), 0u);
  EXPECT_EQ(batches_of(numbers(5).batch(2).batch(2).take(1)), (std::vector<Longs>{{0, 1, 2, 3}}));
  for (Tensor x : numbers(5).batch(2).take(2).batch(2)) EXPECT_EQ(x.shape().str(), "[2,2]");
}

TEST(Dataset, BatchesOfEveryRowSize) {
  for (DType dtype : {u8, bool_, i16, f32, f64})
    for (std::int64_t columns : {0, 1, 2, 3, 8, 100}) {
      Tensor x = cast(random::randint({50, columns}, 0, 2), dtype), positions = arange(50);
      auto dataset = data::from_tensor_slices(x, positions).shuffle(20, {.seed = 3});
      std::int64_t rows = 0;
      for (auto [batch, at] : dataset.batch(8)) {
        EXPECT_EQ(batch.dtype(), dtype);
        EXPECT_EQ(batch.shape().sizes()[1], columns);
        EXPECT_EQ(cast(batch, f64).to_vector<double>(), cast(gather(x, at), f64).to_vector<double>());
        rows += batch.shape().sizes()[0];
      }
      EXPECT_EQ(rows, 50);
    }
}

TEST(Dataset, AGatheredBatchIsAStackedOne) {
  Tensor x = random::normal({40, 3}), y = random::randint({40}, 0, 9);
  auto shuffled = data::from_tensor_slices(x, y).shuffle(15, {.seed = 5, .reshuffle_each_iteration = false});
  auto same = shuffled.map([](Tensor a, Tensor b) { return std::tuple{a, b}; });  // ends the way of positions
  auto one = shuffled.batch(7).begin(), other = same.batch(7).begin();
  for (; one != std::default_sentinel; ++one, ++other) {
    ASSERT_FALSE(other == std::default_sentinel);
    EXPECT_EQ(std::get<0>(*one).to_vector<float>(), std::get<0>(*other).to_vector<float>());
    EXPECT_EQ(std::get<1>(*one).to_vector<std::int64_t>(), std::get<1>(*other).to_vector<std::int64_t>());
  }
  EXPECT_TRUE(other == std::default_sentinel);
}

TEST(Dataset, ElementsOfABatchAgree) {
  auto ragged = data::from_range(Longs{2, 2, 3, 1}, [](std::int64_t n) { return std::tuple{n, ones({n})}; });
  std::string error = error_of([&] {
    for (auto [n, x] : ragged.batch(3)) (void)n;
  });
  EXPECT_CONTAINS(error,
                  "batch: component 1 of element 2 is f32[3], of element 0, the first of the batch, f32[2]\n  at ");
  EXPECT_CONTAINS(error, "dataset_test.cpp:");
  EXPECT_CONTAINS(error, "fix: elements of one batch have one shape: cut or pad them in map");
  error = error_of([&] {
    for (auto [n, x] : ragged.map([](Tensor n, Tensor x) { return std::tuple{x, n * 2}; }).batch(2)) (void)n;
  });
  EXPECT_CONTAINS(error, "batch: component 0 of element 3 is f32[1], of element 2, the first of the batch, f32[3]");
  auto mixed = data::from_range(Longs{0, 1}, [](std::int64_t n) { return n ? tensor(1.f) : tensor(1); });
  error = error_of([&] {
    for (Tensor x : mixed.batch(2)) (void)x;
  });
  EXPECT_CONTAINS(error, "batch: component 0 of element 1 is f32[], of element 0, the first of the batch, i32[]");
  EXPECT_CONTAINS(error, "fix: elements of one batch have one dtype: cast them before");
  auto deep = data::from_range(Longs{1}, [](std::int64_t) { return ones({1, 1, 1, 1, 1, 1, 1, 2}); });
  error = error_of([&] {
    for (Tensor x : deep.batch(1)) (void)x;
  });
  EXPECT_CONTAINS(error, "batch: an element is f32[1,1,1,1,1,1,1,2], a batch would have 9 axes");
}

TEST(Dataset, StackingGrowsWithWhatComes) {
  std::list<int> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i);
  auto dataset = data::from_range(values, [](int i) { return tensor({std::int64_t{i}, std::int64_t{-i}}); });
  EXPECT_EQ(dataset.cardinality(), 1000);
  int batches = 0;
  for (Tensor x : dataset.map([](Tensor x) { return x * 2; }).repeat().batch(700).take(3)) {
    EXPECT_EQ(x.shape().str(), "[700,2]");
    for (int i : {0, 69, 699}) EXPECT_EQ(x.item<int>({i, 1}), -2 * ((batches * 700 + i) % 1000));
    ++batches;
  }
  EXPECT_EQ(batches, 3);
}

// --- shuffle

TEST(Dataset, ShuffleKeepsEveryElementOnce) {
  for (std::int64_t buffer : {1, 2, 10, 100, 1000}) {
    Longs order = values_of(numbers(100).shuffle(buffer, {.seed = 1}));
    EXPECT_EQ(sorted(order), counted(0, 100));
    EXPECT_EQ(order == counted(0, 100), buffer == 1);
    // Element i comes from a buffer that has seen i + buffer elements.
    for (std::size_t i = 0; i < order.size(); ++i) EXPECT_LT(order[i], static_cast<std::int64_t>(i) + buffer);
  }
  EXPECT_EQ(values_of(numbers(5).shuffle(INT64_MAX)).size(), 5u);
}

TEST(Dataset, TheOrderOfASeedIsTheSameOnEveryMachine) {
  EXPECT_EQ(values_of(numbers(10).shuffle(10, {.seed = 42})), (Longs{2, 3, 0, 4, 1, 9, 6, 7, 5, 8}));
  EXPECT_EQ(values_of(numbers(10).shuffle(3, {.seed = 42, .reshuffle_each_iteration = false})),
            (Longs{2, 3, 4, 5, 1, 6, 8, 9, 0, 7}));
}

TEST(Dataset, AFullShuffleIsUniform) {
  // Each of the 24 orders of 4 elements about equally often.
  std::map<Longs, int> seen;
  auto dataset = numbers(4).shuffle(4, {.seed = 9}).batch(4);
  for (int i = 0; i < 4800; ++i)
    for (Tensor x : dataset) ++seen[x.to_vector<std::int64_t>()];
  EXPECT_EQ(seen.size(), 24u);
  double chi_squared = 0;
  for (const auto& [order, count] : seen) chi_squared += (count - 200.) * (count - 200.) / 200;
  EXPECT_LT(chi_squared, 49.7);  // 23 degrees of freedom, one in a thousand
}

TEST(Dataset, EachIterationHasItsOrder) {
  auto make = [] { return numbers(50).shuffle(50, {.seed = 7}); };
  auto one = make(), other = make();
  Longs first = values_of(one), second = values_of(one);
  EXPECT_NE(first, second);
  auto copy = one;
  EXPECT_NE(values_of(copy), second);  // copies share: the third
  EXPECT_EQ(values_of(other), first);
  EXPECT_EQ(values_of(other), second);
  EXPECT_NE(values_of(numbers(50).shuffle(50, {.seed = 8})), first);

  auto fixed = numbers(50).shuffle(50, {.seed = 7, .reshuffle_each_iteration = false});
  EXPECT_EQ(values_of(fixed), values_of(fixed));
  auto fixed_without_seed = numbers(50).shuffle(50, {.reshuffle_each_iteration = false});
  EXPECT_EQ(values_of(fixed_without_seed), values_of(fixed_without_seed));
  EXPECT_EQ(values_of(fixed_without_seed), values_of(fixed_without_seed.take(50)));
}

TEST(Dataset, WithoutASeedTheProcessDecides) {
  auto dataset = numbers(50).shuffle(50);
  random::seed(7);
  Longs first = values_of(dataset), second = values_of(dataset);
  EXPECT_NE(first, second);
  random::seed(7);
  EXPECT_EQ(values_of(numbers(50).shuffle(50)), first);
  EXPECT_EQ(values_of(dataset.prefetch(1)), second);
  random::seed(7);
  EXPECT_EQ(values_of(numbers(50).shuffle(50).prefetch(2)), first);
  // Without a shuffle that draws, the generator is left alone.
  random::seed(7);
  Floats expected = random::uniform({4}).to_vector<float>();
  random::seed(7);
  values_of(numbers(9).shuffle(3, {.seed = 1}).batch(2).prefetch(1));
  EXPECT_EQ(random::uniform({4}).to_vector<float>(), expected);
}

TEST(Dataset, EachRepetitionHasItsOrder) {
  random::seed(3);
  for (auto dataset : {numbers(30).shuffle(30, {.seed = 2}), numbers(30).shuffle(30)}) {
    Longs order = values_of(dataset.repeat(3));
    ASSERT_EQ(order.size(), 90u);
    Longs a(order.begin(), order.begin() + 30), b(order.begin() + 30, order.begin() + 60),
        c(order.begin() + 60, order.end());
    EXPECT_EQ(sorted(a), counted(0, 30));
    EXPECT_EQ(sorted(b), counted(0, 30));
    EXPECT_EQ(sorted(c), counted(0, 30));
    EXPECT_TRUE(a != b && b != c && a != c);
  }
  auto fixed = numbers(30).shuffle(30, {.seed = 2, .reshuffle_each_iteration = false}).repeat(2);
  Longs order = values_of(fixed);
  EXPECT_TRUE(std::equal(order.begin(), order.begin() + 30, order.begin() + 30));
  // What a background thread has begun does not show: the second iteration is the second, however far the first got.
  auto ahead = numbers(30).shuffle(30, {.seed = 2}).repeat().batch(5).prefetch(20);
  auto plain = numbers(30).shuffle(30, {.seed = 2}).repeat().batch(5);
  for (Tensor x : ahead.take(1)) (void)x;
  for (Tensor x : plain.take(1)) (void)x;
  EXPECT_EQ(batches_of(ahead.take(9)), batches_of(plain.take(9)));
}

TEST(Dataset, TwoShufflesDiffer) {
  random::seed(3);
  EXPECT_EQ(sorted(values_of(numbers(60).shuffle(20).shuffle(20).repeat(2).shuffle(5))).size(), 120u);
  EXPECT_EQ(sorted(values_of(numbers(6).batch(2).shuffle(3, {.seed = 1}))), counted(0, 6));  // of elements
}

// --- repeat, take, skip, cardinality

TEST(Dataset, RepeatTakeSkip) {
  EXPECT_EQ(values_of(numbers(3).repeat(2)), (Longs{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(values_of(numbers(3).repeat().take(7)), (Longs{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(values_of(numbers(3).repeat(0)), Longs{});
  EXPECT_EQ(values_of(numbers(5).skip(3)), (Longs{3, 4}));
  EXPECT_EQ(values_of(numbers(5).skip(9)), Longs{});
  EXPECT_EQ(values_of(numbers(5).take(0)), Longs{});
  EXPECT_EQ(values_of(numbers(5).take(9)), counted(0, 5));
  EXPECT_EQ(values_of(numbers(10).batch(2).skip(1).take(2).repeat(2)), (Longs{2, 3, 4, 5, 2, 3, 4, 5}));
  EXPECT_EQ(batches_of(numbers(3).repeat(2).batch(2)), (std::vector<Longs>{{0, 1}, {2, 0}, {1, 2}}));
}

TEST(Dataset, EmptyOnesEnd) {
  auto empty = data::from_tensor_slices(zeros({0, 3}), zeros({0}, i32));
  EXPECT_EQ(empty.cardinality(), 0);
  int count = 0;
  auto walk = [&](const auto& dataset) {
    for (auto [x, y] : dataset) ++count;
  };
  walk(empty);
  walk(empty.shuffle(10).batch(4).prefetch(2));
  walk(empty.map([](Tensor x, Tensor y) { return std::tuple{x, y}; }).batch(4));
  walk(empty.repeat());  // as tf.data: an empty dataset does not repeat for ever
  walk(empty.repeat().batch(2).repeat());
  walk(data::from_tensor_slices(ones({2}), ones({2})).skip(2).repeat());
  EXPECT_EQ(count, 0);
  EXPECT_EQ(empty.repeat().cardinality(), 0);
}

TEST(Dataset, CardinalityIsKnownBeforehand) {
  EXPECT_EQ(numbers(7).shuffle(3).prefetch(1).cardinality(), 7);
  EXPECT_EQ(numbers(7).batch(3).cardinality(), 3);
  EXPECT_EQ(numbers(7).batch(3, {.drop_remainder = true}).cardinality(), 2);
  EXPECT_EQ(numbers(7).batch(INT64_MAX).cardinality(), 1);
  EXPECT_EQ(numbers(7).map([](Tensor x) { return x; }).repeat(3).cardinality(), 21);
  EXPECT_EQ(numbers(7).repeat().cardinality(), data::infinite);
  EXPECT_EQ(numbers(7).repeat().skip(3).batch(2).cardinality(), data::infinite);
  EXPECT_EQ(numbers(7).repeat().take(5).cardinality(), 5);
  EXPECT_EQ(numbers(7).skip(2).take(100).cardinality(), 5);
  EXPECT_EQ(numbers(7).repeat(INT64_MAX).cardinality(), data::infinite);
  EXPECT_EQ(numbers(7).repeat(0).cardinality(), 0);
}

TEST(Dataset, WrongArguments) {
  auto d = numbers(3);
  EXPECT_CONTAINS(error_of([&] { d.batch(0); }), "batch: the batch size is 0\n  at ");
  EXPECT_CONTAINS(error_of([&] { d.batch(0); }), "dataset_test.cpp:");
  EXPECT_CONTAINS(error_of([&] { d.shuffle(-1); }), "shuffle: the buffer size is -1\n  at ");
  EXPECT_CONTAINS(error_of([&] { d.shuffle(0); }), "as many as the dataset has elements shuffles it completely");
  EXPECT_CONTAINS(error_of([&] { d.prefetch(0); }), "prefetch: the buffer size is 0\n  at ");
  EXPECT_CONTAINS(error_of([&] { d.repeat(-2); }), "repeat: the count is -2\n  at ");
  EXPECT_CONTAINS(error_of([&] { d.take(-1); }), "take: the count is -1\n  at ");
  EXPECT_CONTAINS(error_of([&] { d.skip(-1); }), "skip: the count is -1\n  at ");
  EXPECT_CONTAINS(error_of([&] {
                    for (;;) d = d.skip(0);
                  }),
                  "skip: a pipeline of more than 1000 stages");
  EXPECT_EQ(values_of(d), counted(0, 3));
  auto it = numbers(1).begin();
  EXPECT_EQ((*it).item<int>(), 0);
  ++it;
  ++it;
  EXPECT_TRUE(it == std::default_sentinel);
  EXPECT_CONTAINS(error_of([&] { *it; }), "Dataset: there is no element here");
}

// --- map

struct Example {
  Tensor image, label;
  STET_FIELDS(image, label)
};

std::tuple<Tensor, Tensor> halve(Tensor x, Tensor y) { return {x / 2, y}; }

TEST(Dataset, MapFollowsTypes) {
  auto dataset = data::from_tensor_slices(tensor({2.f, 4.f}), tensor({1, 2}));
  auto two = dataset.map(halve);
  static_assert(std::is_same_v<decltype(two), data::Dataset<Tensor, Tensor>>);
  auto one = two.map([](const Tensor& x, Tensor y) { return x + y; });
  static_assert(std::is_same_v<decltype(one), data::Dataset<Tensor>>);
  auto paired = one.map([](auto x) { return std::pair{x, x * x}; });
  static_assert(std::is_same_v<decltype(paired), data::Dataset<Tensor, Tensor>>);
  auto aggregate = paired.map([](Tensor a, Tensor b) { return Example{a, b}; });
  static_assert(std::is_same_v<decltype(aggregate)::Element, Example>);
  auto nested = aggregate.map([](Example e) { return std::tuple{std::pair{e.image, e.label}, e.label + 1}; });
  static_assert(std::is_same_v<decltype(nested), data::Dataset<std::pair<Tensor, Tensor>, Tensor>>);
  Floats seen;
  for (auto [inputs, y] : nested.batch(2)) {
    for (const Tensor& t : {inputs.first, inputs.second, y})
      for (float v : t.to_vector<float>()) seen.push_back(v);
  }
  EXPECT_EQ(seen, (Floats{2, 4, 4, 16, 5, 17}));
  for (Example e : aggregate.take(1)) EXPECT_EQ(e.label.item<float>(), 4);
  for (Tensor x : data::from_tensor_slices(tensor({-1.f})).map(relu)) EXPECT_EQ(x.item<float>(), 0);  // an op
}

TEST(Dataset, MapIsTracedOnce) {
  std::atomic<int> runs = 0;
  std::vector<std::string> explanations;
  on_retrace([&](const RetraceEvent& event) { explanations.push_back(event.explanation); });
  Longs lengths = counted(0, 40);
  auto dataset = data::from_range(lengths, [](std::int64_t n) {
                   return random::normal({n, 3});
                 }).map([&](Tensor x) {
    runs += tracing_run();
    return sum(x * 2, 0);
  });
  for (int epoch = 0; epoch < 2; ++epoch)
    for (Tensor x : dataset) EXPECT_EQ(x.shape().str(), "[3]");
  EXPECT_EQ(runs, 2);  // one trace; the first one runs twice
  EXPECT_TRUE(explanations.empty());

  // A Function is used as it is, and tells how often it was traced.
  Function double_it = function("double_it(x)", [](Tensor x) { return x * 2; });
  auto sizes = data::from_range(lengths, [](std::int64_t n) { return ones({n}); });
  for (Tensor x : sizes.map(double_it)) (void)x;
  EXPECT_EQ(double_it.trace_count(), 1);

  // Another dtype is another trace, and says so.
  auto mixed = data::from_range(Longs{0, 1}, [](std::int64_t n) { return n ? tensor(1.5) : tensor(1.f); });
  for (Tensor x : mixed.map([](Tensor x) { return x * 2; }, {.name = "scale(pixel)"})) (void)x;
  for (Tensor x : mixed.map([](Tensor x) { return x * 3; })) (void)x;
  on_retrace({});
  ASSERT_EQ(explanations.size(), 2u);
  EXPECT_CONTAINS(explanations[0], "stet: tracing 'scale' again (trace 2), called at ");
  EXPECT_CONTAINS(explanations[0], "argument 0 'pixel' f32[] -> f64[]   dtype changed");
  EXPECT_CONTAINS(explanations[1], "stet: tracing 'map' again (trace 2), called at ");
  EXPECT_CONTAINS(explanations[1], "dataset_test.cpp:");
}

TEST(Dataset, ErrorsInMapComeOutAtTheIteration) {
  // Thrown by host code while tracing.
  auto throwing = numbers(3).map([](Tensor x) -> Tensor {
    if (x.rank() == 0) throw std::out_of_range("mine");
    return x;
  });
  EXPECT_THROW(throwing.begin(), std::out_of_range);
  EXPECT_THROW(values_of(throwing.prefetch(2)), std::out_of_range);
  // Thrown by the program, for the third element: the others come before.
  Tensor table = tensor({10, 20, 30});
  auto dataset = data::from_tensor_slices(tensor({0, 2, 3, 1})).map([=](Tensor i) { return gather(table, i); });
  for (bool ahead : {false, true}) {
    std::vector<int> seen;
    std::string error = error_of([&] {
      for (Tensor x : ahead ? dataset.prefetch(1) : dataset) seen.push_back(x.item<int>());
    });
    EXPECT_EQ(seen, (std::vector<int>{10, 30}));
    EXPECT_CONTAINS(error, "gather: 'indices' holds index 3 at position 0, out of range: allowed are 0 to 2");
    EXPECT_CONTAINS(error, "dataset_test.cpp:");
  }
  // Then the iteration is over, and the next one stands alone.
  auto it = dataset.begin();
  ++it;
  EXPECT_THROW(++it, UserError);
  EXPECT_TRUE(it == std::default_sentinel);
  EXPECT_EQ((*dataset.begin()).item<int>(), 10);
}

TEST(Dataset, VariablesInMapAreState) {
  Variable count(tensor(std::int64_t{0}));
  auto dataset = numbers(4).map([=](Tensor x) { return x * 10 + count.assign_add(1); });
  EXPECT_EQ(values_of(dataset), (Longs{1, 12, 23, 34}));
  EXPECT_EQ(values_of(dataset.prefetch(2)), (Longs{5, 16, 27, 38}));
}

// --- ranges

struct Sentence {
  std::vector<int> tokens;
  int label;
};

TEST(Dataset, RangesOfAnything) {
  std::vector<Sentence> sentences = {{{1, 2, 3}, 0}, {{}, 1}, {{4}, 1}};
  auto dataset = data::from_range(sentences, [](const Sentence& s) { return std::tuple{tensor(s.tokens), s.label}; });
  static_assert(std::is_same_v<decltype(dataset), data::Dataset<Tensor, Tensor>>);
  sentences.clear();  // the dataset has its own
  std::vector<std::size_t> lengths;
  std::vector<int> labels;
  for (auto [tokens, label] : dataset) {
    lengths.push_back(tokens.to_vector<int>().size());
    labels.push_back(label.item<int>());
  }
  EXPECT_EQ(lengths, (std::vector<std::size_t>{3, 0, 1}));
  EXPECT_EQ(labels, (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(dataset.cardinality(), 3);

  auto squares =
      data::from_range(std::views::iota(std::int64_t{0}, std::int64_t{5}), [](std::int64_t i) { return i * i; });
  static_assert(std::is_same_v<decltype(squares), data::Dataset<Tensor>>);
  EXPECT_EQ(batches_of(squares.batch(3)), (std::vector<Longs>{{0, 1, 4}, {9, 16}}));
  EXPECT_EQ(sorted(values_of(squares.shuffle(5))), (Longs{0, 1, 4, 9, 16}));

  std::map<std::string, std::int64_t> named = {{"a", 1}, {"b", 2}, {"c", 3}};
  auto walked = data::from_range(named, [](const auto& entry) { return entry.second; });
  EXPECT_EQ(walked.cardinality(), 3);
  EXPECT_EQ(values_of(walked.repeat(2)), (Longs{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(sorted(values_of(walked.shuffle(2))), (Longs{1, 2, 3}));
}

TEST(Dataset, RangesAreReadWhenNeeded) {
  auto calls = std::make_shared<std::atomic<int>>(0);
  auto dataset = data::from_range(counted(0, 100), [calls](std::int64_t i) {
    ++*calls;
    return i;
  });
  for (Tensor x : dataset.shuffle(100).take(3)) (void)x;
  EXPECT_EQ(*calls, 3);  // the buffer holds positions
  auto undefined = data::from_range(counted(0, 3), [](std::int64_t i) { return i == 2 ? Tensor() : tensor(1); });
  std::string error = error_of([&] {
    for (Tensor x : undefined) (void)x;
  });
  EXPECT_CONTAINS(error, "from_range: component 0 of element 2 is an undefined tensor");
  auto throwing = data::from_range(counted(0, 3), [](std::int64_t i) {
    if (i == 1) throw std::runtime_error("disk full");
    return i;
  });
  EXPECT_THROW(values_of(throwing), std::runtime_error);
  EXPECT_THROW(values_of(throwing.batch(2).prefetch(2)), std::runtime_error);
}

struct Unsized {
  struct iterator {
    std::int64_t at;
    std::int64_t operator*() const { return at; }
    iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator==(const iterator& other) const { return at == other.at; }
  };
  iterator begin() const { return {0}; }
  iterator end() const { return {5}; }
};

TEST(Dataset, RangesWithoutASize) {
  auto dataset = data::from_range(Unsized{}, [](std::int64_t i) { return i; });
  EXPECT_EQ(dataset.cardinality(), std::nullopt);
  EXPECT_EQ(dataset.batch(2).repeat(2).skip(1).take(3).cardinality(), std::nullopt);
  EXPECT_EQ(dataset.repeat().cardinality(), std::nullopt);  // it might be empty
  EXPECT_EQ(dataset.take(0).cardinality(), 0);
  EXPECT_EQ(batches_of(dataset.batch(2)), (std::vector<Longs>{{0, 1}, {2, 3}, {4}}));
}

// --- prefetch

TEST(Dataset, PrefetchChangesNothing) {
  Tensor x = random::normal({100, 5}), y = arange(100);
  auto dataset = data::from_tensor_slices(x, y).shuffle(100, {.seed = 1, .reshuffle_each_iteration = false}).batch(7);
  auto plain = dataset.begin();
  for (auto [a, b] : dataset.prefetch(1).prefetch(3)) {
    EXPECT_EQ(std::get<0>(*plain).to_vector<float>(), a.to_vector<float>());
    EXPECT_EQ(std::get<1>(*plain).to_vector<std::int64_t>(), b.to_vector<std::int64_t>());
    ++plain;
  }
  EXPECT_TRUE(plain == std::default_sentinel);
}

TEST(Dataset, PrefetchRunsAheadButNotFar) {
  auto made = std::make_shared<std::atomic<int>>(0);
  auto dataset = data::from_range(counted(0, 1000), [made](std::int64_t i) {
                   ++*made;
                   return i;
                 }).prefetch(4);
  auto it = dataset.begin();
  for (int wait = 0; *made < 6 && wait < 2000; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(*made, 6);  // one taken, four in the buffer, one in the thread's hands
  EXPECT_EQ((*it).item<int>(), 0);
}

TEST(Dataset, PrefetchCanBeAbandoned) {
  auto dataset = numbers(1000).shuffle(100).batch(2).prefetch(3);
  auto endless = numbers(10).repeat().batch(4).prefetch(2).map([](Tensor x) { return x + 1; }).prefetch(2);
  for (int i = 0; i < 1000; ++i) {
    int taken = 0;
    for (Tensor x : dataset)
      if (++taken > i % 4) break;
    if (i % 10 == 0)
      for (Tensor x : endless) break;
    if (i % 3 == 0) dataset.begin();
  }
  std::int64_t leaked = 0;
  {
    auto it = endless.begin();
    ++it;
    leaked = (*it).item<std::int64_t>({0});
  }
  EXPECT_EQ(leaked, 5);
}

TEST(Dataset, ErrorsTravelThroughPrefetch) {
  struct Mine : std::runtime_error {
    using std::runtime_error::runtime_error;
    int code = 17;
  };
  auto dataset = data::from_range(counted(0, 10), [](std::int64_t i) {
                   if (i == 4) throw Mine("element four");
                   return i;
                 }).prefetch(8);
  for (int round = 0; round < 20; ++round) {
    Longs seen;
    try {
      for (Tensor x : dataset) seen.push_back(x.item<std::int64_t>());
      FAIL() << "no error";
    } catch (const Mine& error) {
      EXPECT_STREQ(error.what(), "element four");
      EXPECT_EQ(error.code, 17);
    }
    EXPECT_EQ(seen, counted(0, 4));
    dataset.begin();  // an error that nobody asks for
  }
}

// --- threads, traces, tapes

TEST(Dataset, ThreadsIterateOneDataset) {
  auto dataset = numbers(200).shuffle(50, {.seed = 3}).map([](Tensor x) { return x * 2; }).batch(8).prefetch(2);
  Longs expected;
  for (std::int64_t i = 0; i < 200; ++i) expected.push_back(2 * i);
  std::vector<std::thread> threads;
  std::vector<Longs> seen(8);
  for (std::size_t t = 0; t < seen.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 3; ++round) seen[t] = values_of(dataset);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Longs& one : seen) EXPECT_EQ(sorted(one), expected);
}

TEST(Dataset, TwoIterationsAreIndependent) {
  auto dataset = numbers(6).batch(2).prefetch(1);
  auto one = dataset.begin(), other = dataset.begin();
  ++one;
  EXPECT_EQ((*one).to_vector<std::int64_t>(), (Longs{2, 3}));
  EXPECT_EQ((*other).to_vector<std::int64_t>(), (Longs{0, 1}));
  Tensor kept = *one;
  ++one;
  ++one;
  EXPECT_TRUE(one == std::default_sentinel);
  EXPECT_EQ(kept.to_vector<std::int64_t>(), (Longs{2, 3}));
}

TEST(Dataset, TracesDoNotPull) {
  auto dataset = numbers(4).batch(2).prefetch(1);
  Function f = function("train(x)", [=](Tensor x) {
    for (Tensor batch : dataset) x = x + sum(batch);
    return x;
  });
  const int line = __LINE__ - 3;
  std::string error = error_of([&] { f(tensor(std::int64_t{1})); });
  EXPECT_CONTAINS(error, "iterating a Dataset while 'train' is being traced: its elements would become constants\n");
  EXPECT_CONTAINS(error, "dataset_test.cpp:" + std::to_string(line));
  EXPECT_CONTAINS(error, "fix: iterate outside, and give the function each element as an argument");
  auto it = dataset.begin();
  Function g = function("g(x)", [&](Tensor x) {
    ++it;
    return x;
  });
  EXPECT_CONTAINS(error_of([&] { g(tensor(1.f)); }), "iterating a Dataset while 'g' is being traced");
  EXPECT_EQ((*it).to_vector<std::int64_t>(), (Longs{0, 1}));  // where it was
  Function h = function("h(x)", [&](Tensor x) {
    data::from_tensor_slices(ones({2}));
    return x;
  });
  EXPECT_CONTAINS(error_of([&] { h(tensor(1.f)); }), "from_tensor_slices: called while 'h' is being traced");
  EXPECT_THROW(values_of(numbers(2).map([=](Tensor x) { return x + *dataset.begin(); })), TraceError);
}

TEST(Dataset, TapesSeeElementsAsGiven) {
  Variable w(tensor(3.f));
  auto dataset = data::from_tensor_slices(tensor({1.f, 2.f})).map([=](Tensor x) { return x * w; });
  for (bool ahead : {false, true}) {
    GradientTape tape;
    Tensor total = tensor(0.f);
    for (Tensor x : ahead ? dataset.prefetch(1) : dataset) total = total + x * w;
    EXPECT_EQ(tape.gradient(total, w).item<float>(), 9);  // the elements are constants
  }
}

TEST(Dataset, WithoutTypes) {
  auto dataset = data::from_tensor_slices(std::pair{arange(3), arange(3)}, arange(3));
  data::Iteration iteration = dataset.iterate();
  EXPECT_CONTAINS(error_of([&] { iteration.tensors(); }), "Dataset: there is no element here");
  int count = 0;
  while (iteration.next()) {
    ASSERT_EQ(iteration.tensors().size(), 3u);
    EXPECT_EQ(iteration.tensors()[2].item<int>(), count++);
  }
  EXPECT_EQ(count, 3);
  EXPECT_FALSE(iteration.next());
  static_assert(std::ranges::input_range<const data::Dataset<Tensor, Tensor>&>);
}

}  // namespace
