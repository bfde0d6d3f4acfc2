// Arguments of functions that are made of parts: what they may be, and how explanations name the part that changed.
#include <array>
#include <optional>

#include "expect_error.h"
#include "explanations.h"

using namespace stet;

namespace {

enum class Mode { train, evaluate };

struct Rates {
  float first = 1;
  std::vector<int> steps;
  STET_FIELDS(first, steps)
};
struct Batch {
  Tensor x;
  Rates rates;
  STET_FIELDS(x, rates)
};

using Arguments = WithExplanations;

TEST_F(Arguments, fields_are_named_by_their_path) {
  Function f = function("f(batch)", [](Batch batch) { return batch.x * batch.rates.first; });
  Batch batch{ones({2}), {2, {1, 2}}};
  f(batch);
  batch.rates.first = 3;
  f(batch);
  EXPECT_CONTAINS(told(), "argument 0 'batch.rates.first' 2 -> 3   the value of a C++ number changed");
  EXPECT_CONTAINS(told(), "declare batch.rates.first as Scalar instead of a C++ number");
  batch.rates.steps[1] = 5;
  f(batch);
  EXPECT_CONTAINS(told(), "argument 0 'batch.rates.steps[1]' 2 -> 5");
  batch.rates.steps.push_back(1);
  f(batch);
  EXPECT_CONTAINS(told(), "argument 0 'batch.rates.steps' 2 elements -> 3 elements   another number of elements");
  batch.x = ones({2}, f64);
  f(batch);
  EXPECT_CONTAINS(told(), "argument 0 'batch.x'");
}

TEST_F(Arguments, parts_of_pairs_and_tuples_are_named) {
  Function f = function("f(p, t)", [](std::pair<Tensor, int> p, std::tuple<Tensor, float> t) {
    return p.first * p.second + std::get<0>(t);
  });
  Tensor x = ones({2});
  f({x, 1}, {x, 1.f});
  f({x, 2}, {x, 1.f});
  EXPECT_CONTAINS(told(), "argument 0 'p.second'");
  f({x, 2}, {x, 2.f});
  EXPECT_CONTAINS(told(), "argument 1 't<1>'");
  Function nameless = function([](std::pair<Tensor, int> p) { return p.first; });
  nameless({x, 1});
  nameless({x, 2});
  EXPECT_CONTAINS(told(), "argument 0 at '.second'");
}

TEST_F(Arguments, undefined_parts_are_none) {
  Function f = function("f(batch)", [](Batch batch) { return batch.x.defined() ? batch.x : zeros({3}); });
  EXPECT_EQ(f({}).shape(), Shape({3}));
  f({ones({2}), {}});
  EXPECT_CONTAINS(told(), "argument 0 'batch.x' none -> f32[2]   a tensor, where there was none");
}

TEST_F(Arguments, enumerators_are_part_of_the_trace) {
  Function f = function("f(x, mode)", [](Tensor x, Mode mode) {
    return mode == Mode::train ? std::pair{x * 2, mode} : std::pair{x, mode};
  });
  EXPECT_EQ(f(ones({1}), Mode::train).first.item<float>(), 2);
  EXPECT_EQ(f(ones({1}), Mode::evaluate).first.item<float>(), 1);
  EXPECT_EQ(f(ones({3}), Mode::train).second, Mode::train);
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(told(), "argument 1 'mode' 0 -> 1");
}

TEST_F(Arguments, types_are_part_of_the_trace) {
  Function f = function("f(x, dtype)", [](Tensor x, DType dtype) { return cast(x, dtype); });
  EXPECT_EQ(f(ones({1}), f64).dtype(), f64);
  EXPECT_EQ(f(ones({1}), bf16).dtype(), bf16);
  EXPECT_CONTAINS(told(), "argument 1 'dtype' f64 -> bf16");
}

TEST_F(Arguments, texts_are_part_of_the_trace) {
  Function f = function("f(x, mode)", [](Tensor x, std::string mode) {
    return std::pair{mode == "double" ? x * 2 : x, mode + "!"};
  });
  EXPECT_EQ(f(ones({1}), "double").first.item<float>(), 2);
  EXPECT_EQ(f(ones({1}), "same").first.item<float>(), 1);
  EXPECT_EQ(f(ones({1}), "double").first.item<float>(), 2);
  EXPECT_EQ(f(ones({1}), "double").second, "double!");
  EXPECT_EQ(f(ones({1}), std::string(100, 'x')).second, std::string(100, 'x') + "!");
  EXPECT_EQ(f.trace_count(), 3);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_CONTAINS(events[0].explanation,
                  "argument 1 'mode' \"double\" -> \"same\"   another text, which is part of the trace");
}

TEST_F(Arguments, optionals_and_arrays_have_parts) {
  Function f = function("f(x, rates)", [](std::optional<Tensor> x, std::array<Scalar, 2> rates) {
    return (x ? *x : zeros({2})) + rates[0] * rates[1].tensor();
  });
  std::array<Scalar, 2> rates{2.0, 3.0};
  EXPECT_EQ(f(ones({2}), rates).to_vector<float>(), (std::vector<float>{7, 7}));
  EXPECT_EQ(f({}, rates).to_vector<float>(), (std::vector<float>{6, 6}));
  rates[1] = 4.0;
  EXPECT_EQ(f({}, rates).to_vector<float>(), (std::vector<float>{8, 8}));
  EXPECT_EQ(f.trace_count(), 2);
  EXPECT_CONTAINS(told(), "argument 0 'x'  1 element -> 0 elements");
}

}  // namespace
