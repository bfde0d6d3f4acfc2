// A layer called inside another layer's call() trains when that one does; what a call says itself wins.
#include <gtest/gtest.h>

#include "expect_error.h"
#include "explanations.h"
#include "stet/stet.h"

using namespace stet;

namespace {

/// Tells what it was told.
struct Asked : keras::CustomLayer {
  Tensor call(const Tensor& x, const keras::Context& context) override { return x + (context.training ? 1.f : 0.f); }
};
struct Inherits : keras::CustomLayer {
  keras::Layer inner = Asked{};
  STET_MEMBERS(inner)
  Tensor call(const Tensor& x, const keras::Context&) override { return inner(x); }
};
struct Says : keras::CustomLayer {
  bool training;
  keras::Layer inner = Inherits{};
  STET_MEMBERS(inner)
  explicit Says(bool t) : training(t) {}
  Tensor call(const Tensor& x, const keras::Context&) override { return inner(x, {.training = training}); }
};
struct Dropped : keras::CustomLayer {
  keras::Dropout drop{0.5};
  STET_MEMBERS(drop)
  Tensor call(const Tensor& x, const keras::Context&) override { return drop(x); }
};

float asked(const keras::Layer& layer, keras::CallOptions options = {}) {
  return layer(zeros({1}), options).item<float>();
}

class InheritedTraining : public WithExplanations {};

TEST_F(InheritedTraining, GoesDownToInnerLayers) {
  for (bool traced : {false, true}) {
    auto value = [&](const keras::Layer& layer, keras::CallOptions options = {}) {
      Function f = function("f(x)", [=](Tensor x) { return layer(x, options); });
      return traced ? f(zeros({1})).item<float>() : asked(layer, options);
    };
    EXPECT_EQ(value(Inherits{}), 0);
    EXPECT_EQ(value(Inherits{}, {.training = true}), 1);
    EXPECT_EQ(value(Inherits{}, {.training = false}), 0);
    EXPECT_EQ(value(Says(true)), 1);
    EXPECT_EQ(value(Says(true), {.training = false}), 1);
    EXPECT_EQ(value(Says(false), {.training = true}), 0);
    EXPECT_EQ(value(keras::Sequential{Inherits{}, Inherits{}}, {.training = true}), 2);
  }
}

TEST_F(InheritedTraining, ADropoutInsideALayerDropsWhileTraining) {
  random::seed(1);
  keras::Sequential model{Dropped{}};
  Tensor x = ones({1000});
  EXPECT_EQ(sum(model(x) == 1).item<int>(), 1000);
  EXPECT_NEAR(sum(model(x, {.training = true}) == 0).item<int>(), 500, 100);
  // In fit it trains, in predict it does not.
  keras::Sequential net{keras::Input({50}), Dropped{}};
  net.compile({.optimizer = keras::SGD(), .loss = keras::Loss([](Tensor, Tensor p) { return mean(p == 0, -1); })});
  EXPECT_NEAR(net.fit(ones({20, 50}), ones({20, 1}), {.verbose = 0})["loss"][0], 0.5, 0.1);
  EXPECT_EQ(net.evaluate(ones({20, 50}), ones({20, 1}))["loss"], 0);
  EXPECT_EQ(sum(net.predict(ones({20, 50})) == 0).item<int>(), 0);
}

struct Restores : keras::CustomLayer {
  keras::Layer inner = Asked{};
  STET_MEMBERS(inner)
  Tensor call(const Tensor& x, const keras::Context&) override {
    return inner(inner(inner(x), {.training = false}));  // the middle one only
  }
};
TEST_F(InheritedTraining, ComesBackAfterACallThatSaysOtherwise) {
  EXPECT_EQ(asked(Restores{}, {.training = true}), 2);
  EXPECT_EQ(asked(Restores{}), 0);
}

struct Step : keras::CustomModel {
  keras::Layer inner = Inherits{};
  STET_MEMBERS(inner)
  Tensor call(const Tensor& x, const keras::Context&) override { return inner(x); }
  keras::Logs train_step(const keras::Batch& batch) override {
    return {{"says", sum(predict_on(batch.x, {.training = true}))},
            {"silent", sum(predict_on(batch.x))},  // a step is no layer: nothing is inherited, as in Keras
            {"member", sum(inner(batch.x))}};
  }
};
TEST_F(InheritedTraining, AStepSaysItItself) {
  auto model = keras::make<Step>();
  model.compile({.optimizer = keras::SGD()});
  keras::History history = model.fit(zeros({1, 1}), {.verbose = 0});
  EXPECT_EQ(history["says"][0], 1);
  EXPECT_EQ(history["silent"][0], 0);
  EXPECT_EQ(history["member"][0], 0);
}

/// Calls a traced function, which calls a layer that inherits: what holds now must not stay in the trace.
struct Through : keras::CustomLayer {
  keras::Layer inner = Asked{};
  Function<Tensor(Tensor)> traced = function("traced(x)", [inner = inner](Tensor x) { return inner(x); });
  STET_MEMBERS(inner)
  Tensor call(const Tensor& x, const keras::Context&) override { return traced(x); }
};
TEST_F(InheritedTraining, GoesThroughATracedFunction) {
  auto layer = keras::make<Through>();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(asked(layer), 0);
    EXPECT_EQ(asked(layer, {.training = true}), 1);
  }
  EXPECT_EQ(layer->traced.trace_count(), 2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_CONTAINS(events[0].explanation, "training        false -> true   the layer around the call trains");
}

}  // namespace
