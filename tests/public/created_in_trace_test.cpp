// zeros(), full() and arange() in code that is traced: programs compute them, and hold no memory for them.
#include <gtest/gtest.h>
#include <stet/stet.h>

#include <limits>

namespace stet {
namespace {

/// The graph of the only trace, which names what it captured as inputs and constants with their bytes.
std::size_t count_in(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(CreatedInTrace, TensorsOfOneValueAreNoMemoryOfTheProgram) {
  Function f = function("f(x)", [](Tensor x) {
    return x + sum(zeros({4000, 64})) + sum(ones({4000, 64})) + sum(full({50, 2}, 3.f)) + sum(full({70}, 2, i32));
  });
  EXPECT_EQ(f(tensor({1.f, 2.f})).to_vector<float>(), (std::vector<float>{256441.f, 256442.f}));
  EXPECT_EQ(count_in(f.graph(), "= input"), 1u) << f.graph();
  EXPECT_LT(f.traces()[0].bytes, 100'000u) << f.graph();
}

TEST(CreatedInTrace, SoIsCounting) {
  Function f = function("f(x)", [](Tensor x) { return x + cast(arange(1000) + arange(5, 1005), f32); });
  Tensor y = f(full({1000}, 0.5f));
  for (std::int64_t i : {0, 1, 999}) EXPECT_EQ(y.item<float>({i}), 0.5f + 2 * static_cast<float>(i) + 5);
  EXPECT_EQ(count_in(f.graph(), "= input"), 1u) << f.graph();
}

TEST(CreatedInTrace, AnyOtherTensorIsCaptured) {
  std::vector<float> almost(1000, 1.f);
  almost.back() = 2;
  std::vector<std::int64_t> places(1000);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i);
  places.back() = 7;
  Function f = function("f(x)", [=](Tensor x) { return x + tensor(almost) + cast(tensor(places), f32); });
  Tensor y = f(zeros({1000}));
  EXPECT_EQ(y.item<float>({998}), 999.f);
  EXPECT_EQ(y.item<float>({999}), 9.f);
  EXPECT_EQ(count_in(f.graph(), "= input"), 3u) << f.graph();
}

TEST(CreatedInTrace, BitsAreKept) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Function f = function("f(x)", [=](Tensor x) {
    return std::vector<Tensor>{x * full({100}, -0.f), full({100}, nan), full({3000}, -0.f), zeros({3000}, f16),
                               ones({3000}, bool_)};
  });
  std::vector<Tensor> y = f(ones({100}));
  EXPECT_TRUE(std::signbit(y[0].item<float>({99})));
  EXPECT_TRUE(std::isnan(y[1].item<float>({99})));
  EXPECT_TRUE(std::signbit(y[2].item<float>({2999})));
  EXPECT_EQ(y[3].dtype(), f16);
  EXPECT_TRUE(y[4].item<bool>({2999}));
}

TEST(CreatedInTrace, HostCodeReadsThem) {
  Function f = function("f(x)", [](Tensor x) {
    const Tensor large = full({100, 100}, 2.f);
    const Tensor places = arange(50);
    return x * large.item<float>({99, 99}) + static_cast<float>(large.to_vector<float>().size()) +
           static_cast<float>(places.item<std::int64_t>({49}));
  });
  EXPECT_EQ(f(tensor(3.f)).item<float>(), 6 + 10000 + 49);
}

TEST(CreatedInTrace, AVariableBeginsWithThem) {
  Variable kept;
  Function f = function("f(x)", [&kept](Tensor x) {
    if (!kept.defined()) kept = Variable(zeros({60, 60}));
    kept.assign_add(x);
    return sum(kept);
  });
  EXPECT_EQ(f(tensor(1.f)).item<float>(), 3600);
  EXPECT_EQ(f(tensor(2.f)).item<float>(), 3 * 3600);
}

TEST(CreatedInTrace, TapesWatchThem) {
  Function f = function("f(x)", [](Tensor x) {
    GradientTape tape;
    Tensor point = full({2000}, 3.f), other = full({2000}, 3.f);
    tape.watch(point);
    Tensor y = sum(square(point) * other * x);
    return tape.gradient(y, {point})[0];
  });
  Tensor d = f(tensor(2.f));
  EXPECT_EQ(d.shape().sizes(), (std::vector<std::int64_t>{2000}));
  EXPECT_EQ(d.item<float>({1999}), 36) << "the other one is not watched";
}

TEST(CreatedInTrace, OneMadeBeforeADecisionIsUsedOnBothSidesAndAfter) {
  Function f = function("f(x)", [](Tensor x) {
    Tensor large = ones({3000});
    Tensor chosen = cond(
        x > 0, [=] { return large * 2; }, [=] { return large * x; });
    Tensor turned = for_loop(
        3, [=](Tensor state) { return state + large; }, large);
    return sum(chosen + large) + sum(turned);
  });
  EXPECT_EQ(f(tensor(1.f)).item<float>(), 9000 + 12000);
  EXPECT_EQ(f(tensor(-1.f)).item<float>(), 0 + 12000);
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(CreatedInTrace, TheGradientOfAnEmbeddingHoldsNoZeros) {
  Variable table(ones({5000, 64}));
  Function f = function("f(ids)", [=](Tensor ids) {
    GradientTape tape;
    Tensor loss = sum(square(gather(table, ids, 0)));
    return tape.gradient(loss, {table})[0];
  });
  Tensor d = f(tensor({std::int64_t{3}, std::int64_t{3}, std::int64_t{4999}}));
  EXPECT_EQ(d.item<float>({3, 0}), 4);
  EXPECT_EQ(d.item<float>({4999, 63}), 2);
  EXPECT_EQ(d.item<float>({4, 0}), 0);
  EXPECT_EQ(sum(d).item<float>(), 64 * 6);
  EXPECT_LT(f.traces()[0].bytes, 100'000u) << f.graph();
}

}  // namespace
}  // namespace stet
