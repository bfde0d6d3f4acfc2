// compile, fit, evaluate and predict as a user sees them.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <thread>

#include "custom_parts.h"
#include "expect_error.h"
#include "stet/runtime/buffer.h"
#include "stet/stet.h"

using namespace stet;

namespace {

using Floats = std::vector<float>;

struct Samples {
  Tensor x, y;
};
/// Points whose class is the largest of three linear functions: a line can learn it.
Samples samples(std::int64_t count) {
  Tensor x = random::stateless_normal({count, 5}, {1, 2});
  Tensor w = random::stateless_normal({5, 3}, {3, 4});
  return {x, argmax(matmul(x, w), -1)};
}
keras::Sequential small_model() { return {keras::Input({5}), keras::Dense(16, {.activation = relu}), keras::Dense(3)}; }
keras::CompileOptions classification() {
  return {.optimizer = keras::Adam(0.01),
          .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {keras::metrics::SparseCategoricalAccuracy()}};
}

class KerasFit : public ::testing::Test {
 protected:
  void SetUp() override {
    keras::clear_session();
    random::seed(5);
    on_retrace([this](const RetraceEvent& event) { explanations.push_back(event.explanation); });
  }
  void TearDown() override { on_retrace({}); }
  std::vector<std::string> explanations;
};

TEST_F(KerasFit, LearnsInOneTrace) {
  auto [x, y] = samples(300);
  keras::Sequential model = small_model();
  model.compile(classification());
  keras::History history = model.fit(x, y, {.batch_size = 64, .epochs = 20, .verbose = 0});  // 4 * 64 + 44
  EXPECT_EQ(history["loss"].size(), 20u);
  EXPECT_LT(history["loss"].back(), 0.5 * history["loss"].front());
  EXPECT_GT(history["sparse_categorical_accuracy"].back(), 0.9);
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_CONTAINS(model.train_function().explain(), "train_step: 1 trace");
  keras::Results results = model.evaluate(x, y, {.batch_size = 64});
  EXPECT_GT(results["sparse_categorical_accuracy"], 0.9);
  EXPECT_EQ(model.test_function().trace_count(), 1);
  Tensor p = model.predict(x, {.batch_size = 64});
  EXPECT_EQ(p.shape(), Shape({300, 3}));
  EXPECT_EQ(model.predict_function().trace_count(), 1);
  EXPECT_NEAR(mean(argmax(p, -1) == y).item<double>(), results["sparse_categorical_accuracy"], 1e-6);
  // Also afterwards, with other batches.
  model.fit(x, y, {.batch_size = 100, .epochs = 1, .verbose = 0});
  model.evaluate(x, y, {.batch_size = 7});
  model.predict(x, {.batch_size = 300});
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_EQ(model.test_function().trace_count(), 1);
  EXPECT_EQ(model.predict_function().trace_count(), 1);
  EXPECT_TRUE(explanations.empty());
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 20 * 5 + 3);
}

TEST_F(KerasFit, TheLossIsTheMeanOverSamples) {
  auto [x, y] = samples(100);
  keras::Sequential model = small_model();
  keras::CompileOptions options = classification();
  options.optimizer = keras::SGD(0);  // nothing changes
  model.compile(options);
  double whole = options.loss.for_all()(y, model(x)).item<double>();
  keras::History history = model.fit(x, y, {.batch_size = 64, .epochs = 1, .verbose = 0});
  EXPECT_NEAR(history["loss"][0], whole, 1e-5);
  EXPECT_NEAR(model.evaluate(x, y, {.batch_size = 30})["loss"], whole, 1e-5);
  EXPECT_NEAR(model.evaluate({x, y})["loss"], whole, 1e-5);
}

TEST_F(KerasFit, TheSameSeedGivesTheSameLosses) {
  auto [x, y] = samples(200);
  auto losses = [&](std::uint64_t seed, bool eagerly) {
    random::seed(seed);
    keras::Sequential model{keras::Input({5}), keras::Dense(16, {.activation = relu}), keras::Dropout(0.1),
                            keras::Dense(3)};
    keras::CompileOptions options = classification();
    options.run_eagerly = eagerly;
    model.compile(options);
    return model.fit(x, y, {.batch_size = 64, .epochs = 3, .verbose = 0})["loss"];
  };
  std::vector<double> traced = losses(8, false), eager = losses(8, true);
  EXPECT_EQ(traced, losses(8, false));
  EXPECT_NE(traced, losses(9, false));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(traced[i], eager[i], 1e-5);
}

TEST_F(KerasFit, ShufflesTensorsBeforeEachEpoch) {
  // A step that reports the first sample it sees.
  struct Peek : keras::CustomModel {
    Variable total{tensor(0.f), {.trainable = false}};
    STET_MEMBERS(total)
    Tensor call(const Tensor& x, const keras::Context&) override { return x; }
    keras::Logs train_step(const keras::Batch& batch) override {
      total.assign_add(sum(batch.x));
      return {{"first", batch.x[{0, 0}] * 1}, {"total", total.read()}};
    }
  };
  Tensor x = reshape(cast(arange(50), f32), {50, 1});
  auto peek = keras::make<Peek>();
  peek.compile({});
  keras::History in_order = peek.fit(x, {.batch_size = 50, .epochs = 3, .verbose = 0, .shuffle = false});
  EXPECT_EQ(in_order["first"], (std::vector<double>{0, 0, 0}));
  keras::History shuffled = peek.fit(x, {.batch_size = 50, .epochs = 3, .verbose = 0});
  EXPECT_NE(shuffled["first"], (std::vector<double>{0, 0, 0}));
  EXPECT_NE(shuffled["first"][0], shuffled["first"][1]);
  EXPECT_EQ(shuffled["total"][2], 6 * 49 * 25);  // every sample once an epoch
}

TEST_F(KerasFit, ValidatesAfterEpochs) {
  auto [x, y] = samples(100);
  keras::Sequential model = small_model();
  model.compile(classification());
  keras::History history = model.fit(x, y, {.epochs = 4, .verbose = 0, .validation_data = {x, y}});
  EXPECT_EQ(history["val_loss"].size(), 4u);
  EXPECT_NEAR(history["val_loss"].back(), model.evaluate(x, y)["loss"], 1e-6);
  history = model.fit(x, y, {.epochs = 4, .verbose = 0, .validation_split = 0.2, .validation_freq = 2});
  EXPECT_EQ(history["loss"].size(), 4u);
  EXPECT_EQ(history["val_loss"].size(), 2u);
  EXPECT_NEAR(history["val_loss"].back(), model.evaluate(x[range(80, 100)], y[range(80, 100)])["loss"], 1e-6);
  EXPECT_EQ(model.test_function().trace_count(), 1);
}

TEST_F(KerasFit, StepsPerEpochGoOnWhereTheLastEnded) {
  auto [x, y] = samples(100);
  keras::Sequential model = small_model();
  model.compile(classification());
  model.fit(x, y, {.batch_size = 10, .epochs = 5, .verbose = 0, .initial_epoch = 2, .steps_per_epoch = 7});
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 21);
  EXPECT_EQ(model.fit(x, y, {.epochs = 0, .verbose = 0}).epochs.size(), 0u);
}

TEST_F(KerasFit, TakesDatasets) {
  auto [x, y] = samples(100);
  keras::Sequential model = small_model();
  model.compile(classification());
  auto train = data::from_tensor_slices(x, y)
                   .shuffle(100)
                   .map([](Tensor point, Tensor label) {
                     return std::tuple{point * 2, label};
                   })
                   .batch(32)
                   .prefetch(2);
  keras::History history = model.fit(train, {.epochs = 5, .verbose = 0, .validation_data = train});
  EXPECT_LT(history["loss"].back(), history["loss"].front());
  EXPECT_EQ(history["val_loss"].size(), 5u);
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 20);
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_EQ(model.evaluate(train).size(), 2u);
  EXPECT_EQ(model.predict(data::from_tensor_slices(x).batch(30)).shape(), Shape({100, 3}));
  EXPECT_EQ(model.predict(train).shape(), Shape({100, 3}));
  auto endless = train.repeat();
  model.fit(endless, {.verbose = 0, .steps_per_epoch = 3});
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 23);
  EXPECT_CONTAINS(error_of([&] { model.fit(endless, {.verbose = 0}); }), "the Dataset never ends");
  EXPECT_CONTAINS(error_of([&] { model.fit(train, {.verbose = 0, .validation_split = 0.1}); }),
                  "validation_split = 0.1 of a Dataset");
  EXPECT_CONTAINS(error_of([&] { model.fit(train.take(0), {.verbose = 0}); }), "fit: the data is empty");
}

TEST_F(KerasFit, SampleWeights) {
  auto [x, y] = samples(64);
  keras::Sequential model = small_model();
  model.compile(classification());
  Tensor first = where(arange(64) < 32, 1.f, 0.f);
  double half = model.evaluate({x, y, first})["loss"];
  EXPECT_NEAR(half, 0.5 * model.evaluate(x[range(0, 32)], y[range(0, 32)])["loss"], 1e-5);
  model.fit({x, y, first}, {.epochs = 2, .verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 1);
}

TEST_F(KerasFit, StringsNameTheUsualParts) {
  auto [x, y] = samples(64);
  keras::Sequential model{keras::Dense(16, {.activation = "relu"}), keras::Dense(3, {.activation = "softmax"})};
  model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
  keras::History history = model.fit(x, y, {.epochs = 3, .verbose = 0});
  EXPECT_LT(history["loss"].back(), history["loss"].front());
  EXPECT_EQ(history["accuracy"].size(), 3u);
  EXPECT_EQ(model.train_function().trace_count(), 1);
}

TEST_F(KerasFit, ARetraceIsExplained) {
  auto [x, y] = samples(64);
  keras::Sequential model = small_model();
  model.compile(classification());
  model.fit(x, y, {.verbose = 0});
  model.fit(x, cast(y, i32), {.verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 2);
  ASSERT_EQ(explanations.size(), 1u);
  EXPECT_CONTAINS(explanations[0], "tracing 'train_step' again (trace 2), called at ");
  EXPECT_CONTAINS(explanations[0], "keras_fit_test.cpp:");
  EXPECT_CONTAINS(explanations[0], "argument 1 'y'");
  model.compile(classification());
  EXPECT_CONTAINS(error_of([&] { model.train_function(); }),
                  "train_step of Sequential 'sequential' has not been traced");
}

// --- custom models

struct Vae : keras::CustomModel {
  keras::Sequential encoder{keras::Dense(64, {.activation = relu}), keras::Dense(4)},
      decoder{keras::Dense(64, {.activation = relu}), keras::Dense(784)};
  keras::metrics::Mean total{"loss"};
  STET_MEMBERS(encoder, decoder, total)
  Tensor call(const Tensor& x, const keras::Context&) override { return decoder(encoder(x)); }
  keras::Logs train_step(const keras::Batch& b) override {
    GradientTape tape;
    Tensor z = encoder(b.x, {.training = true});
    Tensor noise = random::normal({b.x.dim(0), 4});
    Tensor rec = decoder(z + noise);
    Tensor loss = sum(square(rec - b.x)) / b.x.dim(0);
    optimizer().apply_gradients(tape.gradient(loss, trainable_variables()), trainable_variables());
    total.update_state(loss);
    return {{"loss", total.result()}};
  }
};

TEST_F(KerasFit, ACustomStepIsOneProgram) {
  Tensor x = random::uniform({70, 784});
  auto vae = keras::make<Vae>();
  vae.compile({.optimizer = keras::Adam()});
  keras::History history = vae.fit(x, {.epochs = 3, .verbose = 0});
  EXPECT_LT(history["loss"].back(), history["loss"].front());
  EXPECT_EQ(vae.train_function().trace_count(), 1);
  EXPECT_EQ(vae->encoder(x).shape(), Shape({70, 4}));
  EXPECT_EQ(vae.weights()[0].path, "vae/encoder/dense/kernel");
  EXPECT_EQ(vae.weights()[0].variable.name(), "vae/encoder/dense/kernel");
  EXPECT_EQ(vae.predict(x).shape(), Shape({70, 784}));
  EXPECT_CONTAINS(error_of([&] { vae.evaluate(x); }), "Vae 'vae' was compiled without a loss");
}

TEST_F(KerasFit, ALossMayUseALayerOfItsOwn) {
  auto [x, y] = samples(64);
  keras::Sequential judge{keras::Input({3}), keras::Dense(2)}, model = small_model();
  std::vector<float> before = judge.variables()[0].read().to_vector<float>();
  model.compile({.optimizer = keras::SGD(0.1),
                 .loss = [=](Tensor, Tensor p) { return mean(square(judge(p)), -1); },
                 .metrics = {keras::Metric("judged", [=](Tensor, Tensor p) { return mean(abs(judge(p)), -1); })}});
  keras::History history = model.fit(x, y, {.epochs = 5, .verbose = 0});
  EXPECT_LT(history["loss"].back(), history["loss"].front());
  EXPECT_EQ(judge.variables()[0].read().to_vector<float>(), before);  // not trained
  EXPECT_EQ(model.train_function().trace_count(), 1);
}

TEST_F(KerasFit, ThreadsShareAModel) {
  auto [x, y] = samples(64);
  keras::Sequential model{keras::Dense(16, {.activation = relu}), keras::Dense(3)};  // built by one of them
  std::vector<Floats> results(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < results.size(); ++i)
      threads.emplace_back([&, i, x = x] {
        for (int k = 0; k < 5; ++k)
          results[i] = (i % 2 ? model(x) : model.predict(x, {.batch_size = 20})).to_vector<float>();
      });
  }
  EXPECT_EQ(model.count_params(), 147);
  EXPECT_EQ(model.predict_function().trace_count(), 1) << model.predict_function().explain();
  for (const Floats& result : results)
    for (std::size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(result[i], results[0][i], 1e-5);
}

// --- the bar and the table

/// What is printed to std::cout.
template <class F>
std::string printed(F f) {
  testing::internal::CaptureStdout();
  f();
  return testing::internal::GetCapturedStdout();
}

TEST_F(KerasFit, PrintsEpochs) {
  auto [x, y] = samples(100);
  keras::Sequential model = small_model();
  model.compile(classification());
  std::string lines = printed([&] { model.fit(x, y, {.epochs = 2, .verbose = 2, .validation_data = {x, y}}); });
  EXPECT_EQ(lines.substr(0, 18), "Epoch 1/2\n4/4 - 0s") << lines;
  EXPECT_CONTAINS(lines, "s/step - loss: ");
  EXPECT_CONTAINS(lines, " - sparse_categorical_accuracy: ");
  EXPECT_CONTAINS(lines, " - val_loss: ");
  EXPECT_CONTAINS(lines, "\nEpoch 2/2\n4/4 - 0s - ");
  EXPECT_EQ(printed([&] { model.fit(x, y, {.verbose = 0}); }), "");
  model.compile(classification());
  std::string bar = printed([&] { model.fit(x, y, {.verbose = 1}); });
  EXPECT_CONTAINS(bar, "\n1/4 ━━━━━─────────────── ");
  EXPECT_CONTAINS(bar, "(tracing ");
  EXPECT_CONTAINS(bar, "\n4/4 ━━━━━━━━━━━━━━━━━━━━ 0s ");
  EXPECT_EQ(bar.find('\33'), std::string::npos) << "no colours where there is no terminal";
  std::string retraced = printed([&] { model.fit(x, cast(y, i32), {.verbose = 2}); });
  EXPECT_CONTAINS(retraced, " · 2 traces\n");
}

TEST_F(KerasFit, ANaNLossIsVisible) {
  auto [x, y] = samples(32);
  keras::Sequential model = small_model();
  model.compile(classification());
  std::string lines = printed([&] { model.fit(x * NAN, y, {.verbose = 2}); });
  EXPECT_CONTAINS(lines, "loss: nan");
}

TEST_F(KerasFit, SummaryIsKerass) {
  keras::Sequential model{keras::Input({28, 28}), keras::Flatten(), keras::Dense(128, {.activation = relu}),
                          keras::Dropout(0.2), keras::Dense(10)};
  EXPECT_EQ(printed([&] { model.summary(); }), R"(Model: "sequential"
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓
┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩
│ flatten (Flatten)               │ (None, 784)            │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dense (Dense)                   │ (None, 128)            │       100,480 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dropout (Dropout)               │ (None, 128)            │             0 │
├─────────────────────────────────┼────────────────────────┼───────────────┤
│ dense_1 (Dense)                 │ (None, 10)             │         1,290 │
└─────────────────────────────────┴────────────────────────┴───────────────┘
 Total params: 101,770 (397.54 KB)
 Trainable params: 101,770 (397.54 KB)
 Non-trainable params: 0 (0.00 B)
)");
  keras::Sequential steps{keras::Input({dyn, 8}), keras::Dense(3)};
  EXPECT_CONTAINS(steps.summary_text(), "(None, None, 3)");
  keras::Sequential unbuilt{keras::Dense(3)};
  std::string error = error_of([&] { unbuilt.summary(); });
  EXPECT_CONTAINS(error, "summary: Sequential 'sequential_2' is not built, its shapes are not known");
  unbuilt(ones({2, 4}));
  EXPECT_CONTAINS(unbuilt.summary_text(), "(None, 3)");
}

TEST_F(KerasFit, ALayerThatReadsValuesRunsEagerly) {
  struct Reading : keras::CustomLayer {
    Tensor call(const Tensor& x, const keras::Context&) override { return x * sum(x).item<float>(); }
  };
  keras::Sequential model{keras::Input({5}), Reading{}, keras::Dense(2)};
  EXPECT_FALSE(model.built());
  EXPECT_CONTAINS(error_of([&] { model.summary(); }), "is not built");
  Tensor x = random::normal({64, 5}), y = random::normal({64, 2});
  model.compile({.loss = "mse", .run_eagerly = true});
  model.fit(x, y, {.verbose = 0});
  EXPECT_TRUE(model.built());
  EXPECT_CONTAINS(error_of([&] { model.train_function(); }), "unless steps run eagerly");
  model.compile({.loss = "mse"});
  EXPECT_CONTAINS(error_of([&] { model.fit(x, y, {.verbose = 0}); }),
                  "item: the value of f32[] does not exist while 'train_step' is being traced");
}

TEST_F(KerasFit, SummaryCountsTheOptimizer) {
  auto [x, y] = samples(32);
  keras::Sequential model = small_model();
  model.compile(classification());
  model.fit(x, y, {.verbose = 0});
  EXPECT_CONTAINS(model.summary_text(), " Total params: 443 (1.73 KB)\n Trainable params: 147 (588.00 B)\n");
  EXPECT_CONTAINS(model.summary_text(), " Optimizer params: 296 (1.16 KB)\n");
}

// --- errors

TEST_F(KerasFit, ErrorsSayWhatToDo) {
  auto [x, y] = samples(40);
  keras::Sequential model = small_model();
  auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_CONTAINS(error, part);
    EXPECT_CONTAINS(error, "keras_fit_test.cpp:");
  };
  expect(error_of([&] { model.fit(x, y); }), "fit: Sequential 'sequential' is not compiled");
  expect(error_of([&] { model.evaluate(x, y); }), "evaluate: Sequential 'sequential' is not compiled");
  model.compile({.optimizer = keras::Adam()});
  expect(error_of([&] { model.fit(x, y, {.verbose = 0}); }), "was compiled without a loss");
  model.compile(classification());
  expect(error_of([&] { model.fit(x, y[range(0, 39)]); }), "x f32[40,5] has 40 samples, y i64[39] has 39");
  expect(error_of([&] { model.fit(x, y, {.batch_size = 0}); }), "fit: batch_size = 0");
  expect(error_of([&] { model.fit(x, y, {.epochs = -1}); }), "fit: epochs = -1");
  expect(error_of([&] { model.fit(x, y, {.verbose = 7}); }), "fit: verbose = 7");
  expect(error_of([&] { model.fit(x, y, {.validation_split = 1}); }), "fit: validation_split = 1");
  expect(error_of([&] { model.fit(x, y, {.validation_split = -0.5}); }), "fit: validation_split = -0.5");
  expect(error_of([&] { model.fit(x[range(0, 1)], y[range(0, 1)], {.validation_split = 0.5}); }),
         "validation_split = 0.5 of 1 samples leaves none to train on");
  expect(error_of([&] { model.fit(x, y, {.validation_freq = 0}); }), "fit: validation_freq = 0");
  expect(error_of([&] { model.fit(x, y, {.steps_per_epoch = -1}); }), "fit: steps_per_epoch = -1");
  expect(error_of([&] { model.fit(x[range(0, 0)], y[range(0, 0)], {.verbose = 0}); }), "fit: the data is empty");
  expect(error_of([&] { model.fit(keras::Data()); }), "fit: there is no data");
  expect(error_of([&] { model.fit(x, {.verbose = 0}); }), "the data has no labels, which the loss needs");
  expect(error_of([&] { model.fit(Tensor(), y); }), "x is an undefined tensor");
  expect(error_of([&] {
           model.fit(ones({40, 6}), y, {.verbose = 0});
         }),
         "the model takes f32[batch,5] and was given f32[32,6]");
  expect(error_of([&] { model.predict(ones({40, 6})); }), "the model takes f32[batch,5] and was given f32[32,6]");
  expect(error_of([&] { model.predict(x, {.batch_size = -3}); }), "predict: batch_size = -3");
  expect(error_of([&] { model.predict(x[range(0, 0)]); }), "predict: the data is empty");
  expect(error_of([&] { model.predict(x, {.steps = -1}); }), "predict: steps = -1");
  std::string error = error_of([&] { model.fit(x, ones({40, 3}), {.verbose = 0}); });
  expect(error, "labels f32[32,3] do not fit predictions f32[32,3]");
  EXPECT_EQ(model.optimizer().iterations().read().item<std::int64_t>(), 0);
  keras::History history = model.fit(x, y, {.verbose = 0});
  expect(error_of([&] { history["lost"]; }), "the history has no 'lost'");
  EXPECT_CONTAINS(error_of([&] { history["lost"]; }), "it has loss, sparse_categorical_accuracy");
  expect(error_of([&] { model.compile({.metrics = {"mae", "mae"}}); }), "there are two metrics 'mae'");
  expect(error_of([&] { keras::Model().fit(x, y); }), "fit: the layer is undefined");
}

TEST_F(KerasFit, TenThousandPredictionsNeedNoMoreThanAHundred) {
  auto [x, y] = samples(40);
  keras::Sequential model = small_model();
  auto resident = [] {  // pages, of everything that the process has
    std::ifstream file("/proc/self/statm");
    std::int64_t all = 0, here = 0;
    file >> all >> here;
    return here;
  };
  auto predict = [&](int times) {
    for (int i = 0; i < times; ++i) model.predict(x[range(0, 1 + i % 40)], {.batch_size = 16});
  };
  predict(100);
  const std::size_t in_use = memory_statistics().bytes_in_use;
  const std::int64_t before = resident();
  predict(10'000);
  EXPECT_EQ(memory_statistics().bytes_in_use, in_use);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what was freed
  EXPECT_LT(resident() - before, 2048) << "pages more";              // 8 MiB; a kilobyte a call would be more
#else
  (void)before;
#endif
  EXPECT_EQ(model.predict_function().trace_count(), 1);
}

TEST_F(KerasFit, FortyOneLengthsHaveOneTrace) {
  keras::Sequential model{keras::Input({dyn, 3}), keras::LSTM(4), keras::Dense(1)};
  model.compile({.optimizer = keras::SGD(0.01), .loss = "mse", .metrics = {"mae"}});
  std::vector<std::int64_t> lengths(41);
  std::iota(lengths.begin(), lengths.end(), 20);
  auto batches = data::from_range(lengths, [](std::int64_t length) {
    return std::pair(ones({1 + length % 7, length, 3}) / length, zeros({1 + length % 7, 1}));
  });
  model.fit(batches, {.epochs = 2, .verbose = 0});
  model.evaluate(batches);
  model.predict(batches);
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_EQ(model.test_function().trace_count(), 1);
  EXPECT_EQ(model.predict_function().trace_count(), 1);
}

// --- the seeds' examples

struct MyCustomLayer : keras::CustomLayer {
  Tensor call(const Tensor& x, const keras::Context&) override { return mean(x, -1); }
};

TEST_F(KerasFit, SequencesOfAnyLengthShareATrace) {
  keras::Sequential model{keras::Input({dyn, 10}), MyCustomLayer{}};
  model.compile({.optimizer = keras::Adam(), .loss = keras::losses::MeanSquaredError()});
  for (int length : {100, 50, 7, 31})
    model.fit(random::uniform({100, length, 10}), random::uniform({100, length}), {.verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 1);
}

Tensor my_loss(Tensor y_true, Tensor y_pred) { return mean(abs(cast(y_true, f32) - y_pred)); }

TEST_F(KerasFit, LabelsThatDoNotFitTheLoss) {
  keras::Sequential model{keras::Input({5}), keras::Dense(10)};
  model.compile({.optimizer = keras::Adam(), .loss = my_loss});
  std::string error = error_of([&] {
    model.fit(random::uniform({100, 5}), random::randint({100}, 0, 10), {.verbose = 0});
  });
  EXPECT_CONTAINS(error, "subtract: sizes 32 and 10 of axis -1 do not broadcast");
  EXPECT_CONTAINS(error, "keras_fit_test.cpp:");
  EXPECT_CONTAINS(error, "in the loss, of labels i64[32] and predictions f32[32,10]");
  // Labels of the right shape: one trace for integers, one more for floats, explained.
  model.fit(random::uniform({100, 5}), random::randint({100, 10}, 0, 10), {.verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 1);
  model.fit(random::uniform({100, 5}), random::uniform({100, 10}), {.verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 2);
  ASSERT_EQ(explanations.size(), 1u);
  EXPECT_CONTAINS(explanations[0], "dtype changed");
}

Tensor my_activation(Tensor x) {
  if (mean(x) > 0.5f)
    return relu(x);
  else
    return sigmoid(x);
}

TEST_F(KerasFit, AnActivationThatDecides) {
  keras::Sequential model{keras::Input({5}), keras::Dense(10, {.activation = my_activation})};
  EXPECT_CONTAINS(model.summary_text(), "(None, 10)");
  model.compile({.optimizer = keras::Adam(), .loss = keras::losses::MeanSquaredError()});
  model.fit(random::uniform({100, 5}), random::uniform({100, 10}), {.epochs = 2, .verbose = 0});
  EXPECT_EQ(model.train_function().trace_count(), 1);
  // Both ways, in one trace.
  Function f = function("f(x)", [=](Tensor x) { return model(x); });
  model.trainable_variables()[0].assign(ones({5, 10}));
  for (float scale : {1.f, -1.f}) {
    Tensor x = full({3, 5}, scale);
    EXPECT_EQ(f(x).to_vector<float>(), model(x).to_vector<float>());
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_F(KerasFit, CustomPartsTogether) {
  Tensor x = random::normal({100, 10}), y = cast(sum(x, 1, {.keepdims = true}) > 0, f32);
  keras::Sequential m{keras::Input({10}), Scale{2.f}, keras::Dense(1)};
  m.compile(
      {.optimizer = keras::Adam(1e-2),
       .loss = keras::losses::BinaryCrossentropy({.from_logits = true}),
       .metrics = {F1{}, keras::metrics::BinaryAccuracy("accuracy", {.threshold = 0}), keras::Metric("mae", my_loss)}});
  keras::History h = m.fit(x, y, {.epochs = 10, .verbose = 0, .validation_data = {x, y}});
  EXPECT_LT(h["loss"].back(), h["loss"].front());
  EXPECT_GT(h["f1"].back(), h["f1"].front());
  EXPECT_EQ(h["val_mae"].size(), 10u);
  m.fit({x, y}, {.epochs = 1, .verbose = 0});
  EXPECT_EQ(m.train_function().trace_count(), 1);
}

TEST_F(KerasFit, AStepWithHandlesAsArguments) {
  keras::Dense model(10);
  keras::Adam optimizer;
  keras::losses::SparseCategoricalCrossentropy loss_fn({.from_logits = true});
  Function train_step =
      function("train_step(x, y, model, optimizer, loss_fn)",
               [](Tensor x, Tensor y, keras::Layer model, keras::Optimizer optimizer, keras::Loss loss_fn) {
                 GradientTape tape;
                 Tensor logits = model(x);
                 Tensor loss = loss_fn(y, logits);
                 auto gradients = tape.gradient(loss, model.trainable_variables());
                 optimizer.apply_gradients(gradients, model.trainable_variables());
                 return loss;
               });
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int batch_size : {10, 20, 10, 30})
      train_step(random::normal({batch_size, 5}), random::randint({batch_size}, 0, 10), model, optimizer, loss_fn);
  EXPECT_EQ(train_step.trace_count(), 1);
  EXPECT_EQ(optimizer.iterations().read().item<std::int64_t>(), 8);
  train_step(random::normal({32, 5}, {.dtype = f64}), random::randint({32}, 0, 10), model, optimizer, loss_fn);
  EXPECT_EQ(train_step.trace_count(), 2);
  ASSERT_EQ(explanations.size(), 1u);
  EXPECT_CONTAINS(explanations[0], "dtype changed");
}

Tensor problematic_metric(Tensor y_true, Tensor y_pred) {
  Variable v(0, {.dtype = i32});
  v.assign_add(1);
  return mean(abs(y_true - y_pred));
}

Tensor improved_metric(Tensor y_true, Tensor y_pred) {
  Variable v(0, {.dtype = i32});
  cond(
      v == 0, [&] { return v.assign_add(1); }, [&] { return v.value(); });
  return mean(abs(y_true - y_pred));
}
Tensor plain_metric(Tensor y_true, Tensor y_pred) { return mean(abs(y_true - y_pred)); }

TEST_F(KerasFit, AMetricThatMakesAVariableIsAnError) {
  for (auto metric : {problematic_metric, improved_metric, plain_metric}) {
    keras::Dense model(10);
    keras::Adam optimizer;
    keras::Loss loss_function = keras::losses::MeanSquaredError();
    Function training_step = function("training_step",
                                      [=](Tensor x, Tensor y) {
                                        GradientTape tape;
                                        Tensor p = model(x);
                                        Tensor loss = loss_function(y, p);
                                        optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()),
                                                                  model.trainable_variables());
                                        Tensor m = metric(y, p);
                                        return std::tuple{loss, m};
                                      },
                                      {.signature = {{f32, {dyn, 10}}, {f32, {dyn("batch"), 10}}}});
    if (metric != plain_metric) {
      std::string error = error_of([&] { training_step(ones({4, 10}), ones({4, 10})); });
      EXPECT_CONTAINS(error, "Variable");
      EXPECT_CONTAINS(error, "keras_fit_test.cpp:");
      continue;
    }
    for (int batch : {4, 2, 9, 1, 30, 7}) training_step(ones({batch, 10}), ones({batch, 10}));
    EXPECT_EQ(training_step.trace_count(), 1);
  }
}

}  // namespace
