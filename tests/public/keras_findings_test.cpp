// What was found broken in layers, losses, metrics and models by trying: each of these failed once.
#include <gtest/gtest.h>

#include <thread>

#include "expect_error.h"
#include "explanations.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;

std::string here(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }

class KerasFindings : public WithExplanations {
 protected:
  void SetUp() override {
    WithExplanations::SetUp();
    keras::clear_session();
    random::seed(5);
  }
};

// --- labels of one column: asked about, so recorded

TEST_F(KerasFindings, ALossOfOneColumnBesideAVectorIsTheSameTraced) {
  keras::Loss loss = keras::Loss([](Tensor t, Tensor p) { return abs(t - p); });
  Function traced = function("loss(y, p)", [=](Tensor y, Tensor p) { return loss(y, p); });
  Tensor p = tensor({1.f, 2.f, 3.f, 4.f}), column = reshape(p, {4, 1});
  EXPECT_EQ(loss(column, p).item<float>(), 0);
  EXPECT_EQ(traced(column, p).item<float>(), 0);
  EXPECT_EQ(traced(p, column).item<float>(), 0);
  // Traced for one column, and called with more: another trace, not the old answer.
  Tensor wide = ones({4, 4});
  EXPECT_EQ(traced(wide, p).item<float>(), loss(wide, p).item<float>());
  // The other way round.
  Function other = function("loss(y, p)", [=](Tensor y, Tensor p) { return loss(y, p); });
  EXPECT_EQ(other(wide, p).item<float>(), loss(wide, p).item<float>());
  EXPECT_EQ(other(column, p).item<float>(), 0);
  EXPECT_CONTAINS(other.explain(), "for labels and predictions at " + std::string(__FILE__));
}

TEST_F(KerasFindings, AccuracyOfLabelsInAColumnIsTheSameTraced) {
  Tensor labels = tensor({0, 1, 2, 1}), logits = one_hot(labels, 3), column = reshape(labels, {4, 1});
  for (const char* name : {"accuracy", "sparse_categorical_accuracy"}) {
    auto value = [&](const Tensor& y, bool traced) {
      keras::Metric metric(name);
      Function update = function("update(y, p)", [=](Tensor y, Tensor p) { metric.update_state(y, p); });
      if (traced)
        update(y, logits);
      else
        metric.update_state(y, logits);
      return metric.result().item<float>();
    };
    for (const Tensor& y : {labels, column, cast(logits, f32)}) {
      if (y.rank() == 2 && y.dim(1).value() == 3 && std::string(name) != "accuracy") continue;
      EXPECT_EQ(value(y, false), 1) << name;
      EXPECT_EQ(value(y, true), 1) << name;
    }
  }
}

TEST_F(KerasFindings, FitTakesLabelsInAColumnAsRunningEagerlyDoes) {
  Tensor x = random::stateless_normal({30, 4}, {1, 2});
  Tensor y = reshape(argmax(matmul(x, random::stateless_normal({4, 3}, {3, 4})), -1), {30, 1});
  auto trained = [&](bool eagerly) {
    random::seed(3);
    keras::Sequential model{keras::Input({4}), keras::Dense(3)};
    model.compile({.optimizer = keras::SGD(0.1),
                   .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                   .metrics = {"accuracy"},
                   .run_eagerly = eagerly});
    return model.fit(x, y, {.batch_size = 8, .epochs = 3, .verbose = 0});
  };
  keras::History traced = trained(false), eager = trained(true);
  for (const char* name : {"loss", "accuracy"})
    for (std::size_t epoch = 0; epoch < 3; ++epoch)
      EXPECT_NEAR(traced[name][epoch], eager[name][epoch], 1e-5) << name << " " << epoch;
}

TEST_F(KerasFindings, LabelsThatAreNeitherAVectorNorAColumnSaySo) {
  auto crossentropy = [](Tensor y, Tensor p) { return keras::losses::sparse_categorical_crossentropy(y, p); };
  Function traced = function("loss(y, p)", crossentropy);
  std::string expected = "sparse_categorical_crossentropy: labels i32[4,2] do not fit predictions f32[4,3]";
  EXPECT_CONTAINS(error_of([&] { crossentropy(zeros({4, 2}, i32), ones({4, 3})); }), expected);
  EXPECT_CONTAINS(error_of([&] { traced(zeros({4, 2}, i32), ones({4, 3})); }), expected);
}

// --- what summaries know

TEST_F(KerasFindings, ASummaryShowsWhatTheTraceFixedAndNoMore) {
  // Built by a traced step: Dense fixes the number of values, also for the layers before it; nothing fixes the steps.
  keras::Sequential model{keras::Flatten(), keras::Activation(relu), keras::Dense(3)};
  model.compile({.optimizer = keras::SGD(), .loss = "mse"});
  model.fit(ones({4, 2, 5}), zeros({4, 3}), {.verbose = 0});
  EXPECT_CONTAINS(model.summary_text(), "│ flatten (Flatten)               │ (None, 10)             │");
  EXPECT_CONTAINS(model.summary_text(), "│ activation (Activation)         │ (None, 10)             │");
  EXPECT_CONTAINS(model.summary_text(), "│ dense (Dense)                   │ (None, 3)              │");
  keras::Sequential steps{keras::Activation(relu), keras::Dense(3)};
  steps.predict(ones({4, 7, 5}));
  EXPECT_CONTAINS(steps.summary_text(), "(None, None, 5)");
  EXPECT_CONTAINS(steps.summary_text(), "(None, None, 3)");
}

// --- a model that is changed

TEST_F(KerasFindings, ALayerAddedAfterATraceIsThereAtOnce) {
  keras::Sequential model{keras::Input({3}), keras::Activation([](Tensor x) { return x + 1; })};
  EXPECT_EQ(model.predict(zeros({2, 3})).to_vector<float>(), Floats(6, 1));
  EXPECT_EQ(model.predict(zeros({2, 3})).to_vector<float>(), Floats(6, 1));
  EXPECT_EQ(events.size(), 0u);
  model.add(keras::Activation([](Tensor x) { return x * 10; }, {.name = "tenfold"}));
  EXPECT_EQ(model.predict(zeros({2, 3})).to_vector<float>(), Floats(6, 10));
  EXPECT_EQ(model.predict_function().trace_count(), 2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_CONTAINS(told(), "stet: tracing 'predict_step' again (trace 2), called at " + std::string(__FILE__));
  EXPECT_CONTAINS(told(),
                  "argument 1 'model' Sequential 'sequential' of activation -> "
                  "Sequential 'sequential' of activation, tenfold   it was changed");
  EXPECT_CONTAINS(told(), "fix             change model before its first call: each change needs a trace of its own");
  EXPECT_EQ(model.predict(zeros({5, 3})).to_vector<float>(), Floats(15, 10));
  EXPECT_EQ(events.size(), 1u);
}

TEST_F(KerasFindings, ALayerAddedBetweenFitsIsTrained) {
  Tensor x = random::stateless_normal({40, 3}, {1, 2}), y = random::stateless_normal({40, 2}, {3, 4});
  keras::Sequential model{keras::Input({3}), keras::Dense(2)};
  model.compile({.optimizer = keras::SGD(0.1), .loss = "mse"});
  model.fit(x, y, {.verbose = 0});
  model.add(keras::Dense(2));
  Floats before = model.weights()[2].variable.read().to_vector<float>();
  model.fit(x, y, {.verbose = 0});
  EXPECT_NE(model.weights()[2].variable.read().to_vector<float>(), before);
  EXPECT_EQ(model.train_function().trace_count(), 2);
}

TEST_F(KerasFindings, WhatAHistoryGivesOutlivesIt) {
  keras::Sequential model{keras::Input({3}), keras::Dense(2)};
  model.compile({.optimizer = keras::SGD(0.1), .loss = "mse"});
  int epochs = 0;
  for (double loss : model.fit(ones({4, 3}), full({4, 2}, 5), {.epochs = 3, .verbose = 0})["loss"]) {
    EXPECT_GT(loss, 1e-3);
    ++epochs;
  }
  EXPECT_EQ(epochs, 3);
}

TEST_F(KerasFindings, AFunctionThatTakesAModelSeesWhatWasAddedInsideIt) {
  keras::Sequential inner{keras::Input({3}), keras::Activation([](Tensor x) { return x + 1; })};
  keras::Sequential model{keras::Input({3}), inner};
  Function run = function("run(m, x)", [](keras::Sequential m, Tensor x) { return m(x); });
  EXPECT_EQ(run(model, zeros({1, 3})).to_vector<float>(), Floats(3, 1));
  inner.add(keras::Activation([](Tensor x) { return x * 10; }));
  EXPECT_EQ(run(model, zeros({1, 3})).to_vector<float>(), Floats(3, 10));
}

TEST_F(KerasFindings, AFunctionThatTakesTheModelSeesWhatWasAdded) {
  keras::Sequential model{keras::Input({3}), keras::Activation([](Tensor x) { return x + 1; })};
  Function run = function("run(m, x)", [](keras::Sequential m, Tensor x) { return m(x); });
  EXPECT_EQ(run(model, zeros({1, 3})).to_vector<float>(), Floats(3, 1));
  model.add(keras::Activation([](Tensor x) { return x * 10; }));
  EXPECT_EQ(run(model, zeros({1, 3})).to_vector<float>(), Floats(3, 10));
  EXPECT_CONTAINS(told(), "argument 0 'm'  Sequential 'sequential' -> Sequential 'sequential'   it was changed");
}

struct Swapped : keras::CustomModel {
  keras::Layer inner = keras::Activation([](Tensor x) { return x + 1; });
  STET_MEMBERS(inner)
  Tensor call(const Tensor& x, const keras::Context&) override { return inner(x); }
};

TEST_F(KerasFindings, AReplacedMemberLayerIsUsedAtOnce) {
  auto model = keras::make<Swapped>();
  EXPECT_EQ(model.predict(zeros({1, 2})).to_vector<float>(), Floats(2, 1));
  model->inner = keras::Activation([](Tensor x) { return x + 7; });
  EXPECT_EQ(model.predict(zeros({1, 2})).to_vector<float>(), Floats(2, 7));
  EXPECT_CONTAINS(told(), "Swapped 'swapped' of activation -> Swapped 'swapped' of activation_1   it was changed");
}

struct Growing : keras::CustomModel {
  std::vector<keras::Layer> blocks;
  STET_MEMBERS(blocks)
  void build(const Shape&) override {
    if (blocks.empty()) blocks.push_back(keras::Dense(4));  // made by building: no change
  }
  Tensor call(const Tensor& x, const keras::Context&) override {
    Tensor out = x;
    for (const keras::Layer& block : blocks) out = block(out);
    return out;
  }
};

TEST_F(KerasFindings, WhatBuildingMakesIsNoChangeAndALongerListIs) {
  auto model = keras::make<Growing>();
  for (int i = 0; i < 3; ++i) model.predict(ones({2, 3}));
  model.compile({.optimizer = keras::SGD(), .loss = "mse"});
  for (int i = 0; i < 3; ++i) {
    model.fit(ones({2, 3}), ones({2, 4}), {.verbose = 0});
    model.evaluate(ones({2, 3}), ones({2, 4}));
    model.predict(ones({2, 3}));
  }
  EXPECT_EQ(events.size(), 0u);
  model->blocks.push_back(keras::Dense(6));
  EXPECT_EQ(model.predict(ones({2, 3})).shape(), Shape({2, 6}));
  EXPECT_EQ(events.size(), 1u);
}

TEST_F(KerasFindings, CompilingAgainTakesEffectAtOnce) {
  keras::Sequential model{keras::Input({2}), keras::Dense(1, {.kernel_initializer = "zeros"})};
  model.compile({.optimizer = keras::SGD(0.0), .loss = "mse"});
  EXPECT_EQ(model.evaluate(ones({2, 2}), full({2, 1}, 2))["loss"], 4);
  model.compile({.optimizer = keras::SGD(0.0), .loss = "mae"});
  EXPECT_EQ(model.evaluate(ones({2, 2}), full({2, 1}, 2))["loss"], 2);
}

// --- Variables that nobody lists

struct Unlisted : keras::CustomLayer {
  Variable g{ones({1})};
  int line = 0;
  Tensor call(const Tensor& x, const keras::Context&) override {
    line = __LINE__ + 1;
    return x * g;
  }
};

TEST_F(KerasFindings, AVariableThatTheLayerMadeAndDoesNotListIsAnError) {
  auto layer = keras::make<Unlisted>();
  std::string error = error_of([&] { layer(ones({2, 3})); });
  EXPECT_CONTAINS(error, "Unlisted 'unlisted' uses a Variable of f32[1] that it made and does not list");
  EXPECT_CONTAINS(error, "at " + here(layer->line));
  EXPECT_CONTAINS(error, "fix: name it in STET_MEMBERS(…) of Unlisted, or make it with add_weight()");
  EXPECT_CONTAINS(error, "in layer unlisted");
  Function traced = function("f(x)", [=](Tensor x) { return layer(x); });
  EXPECT_CONTAINS(error_of([&] { traced(ones({2, 3})); }), "uses a Variable of f32[1] that it made and does not list");
  keras::Sequential model{Unlisted{}};
  model.compile({.optimizer = keras::SGD(), .loss = "mse"});
  error = error_of([&] { model.fit(ones({2, 3}), ones({2, 3}), {.verbose = 0}); });
  EXPECT_CONTAINS(error, "Unlisted 'unlisted_1' uses a Variable of f32[1] that it made and does not list");
}

struct MadeInBuild : keras::CustomLayer {
  Variable g;
  void build(const Shape& input) override {
    InitScope outside;
    g = Variable(ones({input[-1].value()}), {.name = "g"});
  }
  Tensor call(const Tensor& x, const keras::Context&) override { return x * g; }
};
struct MadeInCall : keras::CustomLayer {
  Variable g;
  Tensor call(const Tensor& x, const keras::Context&) override {
    if (!g.defined()) {
      InitScope outside;
      g = Variable(ones({1}));
    }
    return x * g;
  }
};
struct AmongMany : keras::CustomLayer {
  std::vector<Variable> gs;
  AmongMany() {
    for (int i = 0; i < 3; ++i) gs.emplace_back(ones({1}));
  }
  Tensor call(const Tensor& x, const keras::Context&) override { return x * gs[1]; }
};

TEST_F(KerasFindings, SoIsOneMadeInBuildOrInCallOrInAList) {
  EXPECT_CONTAINS(error_of([] {
                    keras::Layer(MadeInBuild{})(ones({2, 3}));
                  }),
                  "MadeInBuild 'made_in_build' uses a Variable 'g' of f32[3] that it made and does not list");
  EXPECT_CONTAINS(error_of([] { keras::Layer(MadeInCall{})(ones({2, 3})); }), "that it made and does not list");
  EXPECT_CONTAINS(error_of([] { keras::Layer(AmongMany{})(ones({2, 3})); }), "that it made and does not list");
}

struct Listed : keras::CustomLayer {
  Variable g{ones({1})};
  std::vector<Variable> more{Variable(ones({1})), Variable(ones({1}))};
  Variable counter{tensor(0)};                      // not floating: there is nothing to train
  Variable mean{zeros({1}), {.trainable = false}};  // as the options say
  Variable scale;                                   // from outside
  Variable built = {};
  STET_MEMBERS(g, more)
  explicit Listed(Variable s) : scale(std::move(s)) {}
  void build(const Shape&) override { built = add_weight("built", {1}); }
  Tensor call(const Tensor& x, const keras::Context&) override {
    counter.assign_add(1);
    mean.assign(mean * 0.9f);
    return x * g * more[1] * scale * built + mean + cast(counter, f32);
  }
};
struct Tied : keras::CustomLayer {
  keras::Layer first, second;
  STET_MEMBERS(first, second)
  Tensor call(const Tensor& x, const keras::Context&) override { return second(first(x)); }
};
struct Holder : keras::CustomLayer {
  Variable table{ones({3})};
  STET_MEMBERS(table)
  Tensor call(const Tensor& x, const keras::Context&) override { return x * table; }
};
struct Borrower : keras::CustomLayer {
  Variable table;  // the Holder's, who lists it
  explicit Borrower(Variable t) : table(std::move(t)) {}
  Tensor call(const Tensor& x, const keras::Context&) override { return x * table; }
};

TEST_F(KerasFindings, ListedSharedAndFixedVariablesAreNoError) {
  Variable outside(ones({1}));
  auto layer = keras::make<Listed>(outside);
  layer(ones({2, 3}));
  Function traced = function("f(x)", [=](Tensor x) { return layer(x, {.training = true}); });
  traced(ones({2, 3}));
  keras::Sequential model{keras::Input({3}), Listed(outside)};
  model.compile({.optimizer = keras::SGD(), .loss = "mse"});
  model.fit(ones({2, 3}), ones({2, 3}), {.verbose = 0});
  EXPECT_EQ(model.trainable_variables().size(), 4u);

  auto holder = keras::make<Holder>();
  keras::Layer borrower = keras::make<Borrower>(holder->table);
  borrower(ones({1, 3}));  // alone
  Tied tied;
  tied.first = holder;
  tied.second = borrower;
  keras::Layer both = std::move(tied);
  both(ones({1, 3}));
}

struct OwnStep : keras::CustomModel {
  keras::Dense inner{1};
  Variable temperature{ones({})};  // trained by hand
  STET_MEMBERS(inner)
  Tensor call(const Tensor& x, const keras::Context&) override { return inner(x); }
  keras::Logs train_step(const keras::Batch& batch) override {
    GradientTape tape;
    Tensor loss = mean(square(predict_on(batch.x) * temperature - batch.y));
    temperature.assign_sub(0.1f * tape.gradient(loss, temperature));
    return {{"loss", loss}};
  }
};
TEST_F(KerasFindings, AStepOfItsOwnMayTrainWhatItLikes) {
  auto model = keras::make<OwnStep>();
  model.compile({.optimizer = keras::SGD()});
  model.fit(ones({4, 2}), ones({4, 1}), {.verbose = 0});
  EXPECT_NE(model->temperature.read().item<float>(), 1);
}

// --- messages

struct Embedding : keras::CustomLayer {
  Variable table;
  void build(const Shape&) override { table = add_weight("table", {10, 4}); }
  Tensor call(const Tensor& x, const keras::Context&) override { return gather(table, x); }
};

TEST_F(KerasFindings, AnInputThatMakesTokensFloatsNamesItsType) {
  std::string error = error_of([] { keras::Sequential model{keras::Input({32}), Embedding{}}; });
  EXPECT_CONTAINS(error, "gather: 'indices' are f32, not integers");
  EXPECT_CONTAINS(error, "in layer sequential/embedding");
  EXPECT_CONTAINS(error, "the model's Input gives f32[batch,32]; another type is keras::Input({…}, {.dtype = i64})");
  keras::Sequential model{keras::Input({32}, {.dtype = i64}), Embedding{}};
  EXPECT_EQ(model.predict(zeros({2, 32}, i32)).shape(), Shape({2, 32, 4}));
}

TEST_F(KerasFindings, AMetricsErrorHasTheUsersLineOnly) {
  auto check = [](const std::string& error, int line) {
    EXPECT_CONTAINS(error, "at " + here(line));
    EXPECT_EQ(error.find("stet/keras/"), std::string::npos) << error;
    EXPECT_CONTAINS(error, "in metric ");
  };
  keras::metrics::SparseCategoricalAccuracy sparse;
  check(error_of([&] { sparse.update_state(ones({3}, i32), ones({4, 2})); }), __LINE__);
  keras::metrics::MeanSquaredError squared;
  check(error_of([&] { squared.update_state(ones({3, 2}), ones({4, 2})); }), __LINE__);
  keras::metrics::BinaryAccuracy binary;
  check(error_of([&] { binary.update_state(ones({3, 2}), ones({4, 2})); }), __LINE__);
  keras::metrics::CategoricalAccuracy categorical;
  check(error_of([&] { categorical.update_state(ones({3, 2}), ones({4, 2})); }), __LINE__);
  keras::metrics::Mean average;
  check(error_of([&] { average.update_state(ones({3, 2}), ones({4, 2})); }), __LINE__);
  keras::Sequential model{keras::Input({2}), keras::Dense(2)};
  model.compile({.optimizer = keras::SGD(),
                 .loss = keras::Loss([](Tensor, Tensor p) { return mean(p, -1); }),
                 .metrics = {"mse"}});
  check(error_of([&] { model.fit(ones({4, 2}), ones({4, 3}), {.verbose = 0}); }), __LINE__);
}

TEST_F(KerasFindings, AGradientThatIsNotThereSaysWhatTheLossDoesNotDependOn) {
  Variable used(ones({2}), {.name = "used"}), unused(ones({2}), {.name = "unused"});
  keras::SGD optimizer(0.1);
  auto step = [&](bool any) {
    GradientTape tape;
    Tensor loss = any ? sum(square(used)) : sum(ones({2}));
    std::vector<Variable> variables{used, unused};
    optimizer.apply_gradients(tape.gradient(loss, variables), variables);
  };
  std::string error = error_of([&] { step(false); });
  EXPECT_CONTAINS(
      error, "apply_gradients: none of the variables has a gradient: the loss does not depend on 'used', 'unused'");
  ::testing::internal::CaptureStderr();
  step(true);
  step(true);
  std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(told, "there is no gradient for 'unused', on which the loss does not depend: left unchanged");
  EXPECT_EQ(told.find("there is no gradient"), told.rfind("there is no gradient"));
  EXPECT_EQ(unused.read().to_vector<float>(), Floats(2, 1));
  GradientTape tape;
  Tensor d = tape.gradient(sum(square(used)), unused);
  EXPECT_CONTAINS(error_of([&] { d * 2; }), "it came from gradient(), whose target does not depend on that source");
}

// --- InitScope and state

TEST_F(KerasFindings, ReadingAVariableInAnInitScopeDoesNotFreezeItSilently) {
  Variable v(ones({2}), {.name = "v"});
  auto frozen = [=](Tensor x) {
    Tensor now;
    {
      InitScope outside;
      now = v * 2;
    }
    return x + now;
  };
  Function f = function("f(x)", frozen);
  std::string error = error_of([&] { f(zeros({2})); });
  EXPECT_CONTAINS(
      error,
      "read: the Variable 'v' is used in an InitScope while 'f' is traced: the value it has now would stay in "
      "the trace");
  EXPECT_CONTAINS(error, "fix: use it outside of the InitScope, where it is state of the program");
  EXPECT_EQ(frozen(zeros({2})).to_vector<float>(), Floats(2, 2));  // eagerly there is nothing to freeze

  Function doubled = function("doubled(x)", [=](Tensor x) { return x * v; });
  doubled(ones({2}));
  Function g = function("g(x)", [=](Tensor x) {
    Tensor now;
    {
      InitScope outside;
      now = doubled(ones({2}));
    }
    return x + now;
  });
  EXPECT_CONTAINS(error_of([&] { g(zeros({2})); }), "the Variable 'v' is used in an InitScope while 'g' is traced");
}

TEST_F(KerasFindings, AFirstValueMayFollowFromAnotherVariable) {
  Variable online(full({2}, 3));
  auto target = std::make_shared<Variable>();
  Function f = function("f(x)", [=](Tensor x) {
    if (!target->defined()) {
      InitScope outside;
      *target = Variable(online.read());
    }
    return x * *target;
  });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), Floats(2, 3));
  target->assign(full({2}, 5));
  EXPECT_EQ(f(ones({2})).to_vector<float>(), Floats(2, 5));
}

// --- threads

TEST_F(KerasFindings, ModelsThatShareAnOptimizerAndMetricsAreTracedByManyThreads) {
  keras::Adam optimizer(1e-3);
  keras::Sequential shared{keras::Input({3}), keras::Dense(4, {.activation = relu}), keras::Dense(2)};
  keras::metrics::Mean average;
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      try {
        keras::Sequential own{keras::Dense(3 + t), shared};
        Function step = function("step(x)", [=](Tensor x) {
          GradientTape tape;
          Tensor loss = sum(square(shared(x, {.training = true})));
          std::vector<Variable> variables = shared.trainable_variables();
          optimizer.apply_gradients(tape.gradient(loss, variables), variables);
          average.update_state(loss);
          return loss;
        });
        for (int i = 0; i < 5; ++i) step(ones({2 + t, 3}));
      } catch (const std::exception& error) {
        ++failures;
        std::cerr << error.what() << "\n";
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(optimizer.iterations().read().item<int>(), 20);
  EXPECT_EQ(optimizer.variables().size(), 2u + 2u * 4u);  // no slot was made twice
}

}  // namespace
