// BackupAndRestore: a training that is interrupted and goes on ends as one that was not.
#include <gtest/gtest.h>

#include <csignal>

#include "expect_error.h"
#include "resumed.h"

namespace stet {
namespace {

using resumed::expect_equal;
using resumed::Folder;
using resumed::KillAt;
using resumed::killed_and_resumed;
using resumed::Result;
using Callbacks = std::vector<keras::Callback>;
using Train = std::function<Result(Callbacks)>;

/// Kills after 1, 2, …, 7 steps and over again, then not at all.
std::function<std::int64_t()> often(int times) {
  return [=, number = 0]() mutable -> std::int64_t { return number++ < times ? 1 + number % 7 : 0; };
}

Tensor inputs() { return random::stateless_normal({37, 5}, {1, 2}); }
Tensor labels() { return random::stateless_randint({37}, {3, 4}, 0, 3); }

/// Everything that draws, and keeps state: dropout from the process's generator and from one of its own, moving
/// statistics, slots, a schedule of callbacks, metrics.
keras::Model noisy_model() {
  random::seed(7);
  keras::Sequential model{keras::Input({5}),   keras::Dense(8, {.activation = "relu"}), keras::BatchNormalization(),
                          keras::Dropout(0.3), keras::GaussianNoise(0.1, {.seed = 11}), keras::Dense(3)};
  model.compile({.optimizer = keras::Adam(1e-2),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  return model;
}

Train from_tensors(int epochs = 4) {
  return [=](Callbacks callbacks) {
    keras::Model model = noisy_model();
    callbacks.push_back(keras::ReduceLROnPlateau({.monitor = "loss", .patience = 0}));
    callbacks.push_back(
        keras::LearningRateScheduler([](int epoch, double rate) { return epoch == 2 ? rate / 2 : rate; }));
    return resumed::result_of(model, model.fit(inputs(), labels(),
                                               {.batch_size = 8,
                                                .epochs = epochs,
                                                .verbose = 0,
                                                .callbacks = callbacks,
                                                .validation_data = {inputs()[range(0, 10)], labels()[range(0, 10)]}}));
  };
}

TEST(Backup, GoesOnAfterEveryBatch) {
  const Result whole = from_tensors()({});
  for (std::int64_t steps = 1; steps <= 20; ++steps) {
    Folder folder;
    bool killed = false;
    const Result result = killed_and_resumed(from_tensors(), folder / "backup", {.save_freq = 1},
                                             [&] { return std::exchange(killed, true) ? 0 : steps; });
    expect_equal(result, whole, "killed after " + std::to_string(steps));
    EXPECT_FALSE(std::filesystem::exists(folder / "backup"));
  }
}

TEST(Backup, GoesOnAgainAndAgain) {
  const Result whole = from_tensors()({});
  Folder folder;
  expect_equal(killed_and_resumed(from_tensors(), folder / "backup", {.save_freq = 1}, often(12)), whole);
  expect_equal(killed_and_resumed(from_tensors(), folder / "backup", {.save_freq = 2}, often(6)), whole);
  bool killed = false;
  expect_equal(
      killed_and_resumed(from_tensors(), folder / "backup", {}, [&] { return std::exchange(killed, true) ? 0 : 13; }),
      whole);
}

// --- data

/// Shuffled, changed at random, batched, made ahead of time.
data::Dataset<Tensor, Tensor> pipeline(std::optional<std::uint64_t> seed, bool reshuffled = true) {
  return data::from_tensor_slices(inputs(), labels())
      .shuffle(16, {.seed = seed, .reshuffle_each_iteration = reshuffled})
      .map([](Tensor x, Tensor y) { return std::pair(x + random::normal({5}, {.stddev = 0.1}), y); })
      .batch(5)
      .prefetch(2);
}

struct DataCase {
  const char* name;
  std::function<Result(Callbacks)> train;
};

Result trained_on(const keras::Data& data, keras::FitOptions options) {
  keras::Model model = noisy_model();
  options.verbose = 0;
  const keras::History history = model.fit(data, options);
  return resumed::result_of(model, history);
}

std::vector<DataCase> data_cases() {
  return {
      {"shuffled with the process's generator",
       [](Callbacks callbacks) { return trained_on(pipeline({}), {.epochs = 4, .callbacks = callbacks}); }},
      {"shuffled with a seed",
       [](Callbacks callbacks) { return trained_on(pipeline(5), {.epochs = 4, .callbacks = callbacks}); }},
      {"in one order",
       [](Callbacks callbacks) { return trained_on(pipeline({}, false), {.epochs = 4, .callbacks = callbacks}); }},
      {"repeated, cut into epochs",
       [](Callbacks callbacks) {
         return trained_on(pipeline(5).repeat(), {.epochs = 5, .callbacks = callbacks, .steps_per_epoch = 6});
       }},
      {"cut into epochs that begin in the middle",
       [](Callbacks callbacks) {
         return trained_on(pipeline({}), {.epochs = 5, .callbacks = callbacks, .steps_per_epoch = 6});
       }},
      {"validated on data that draws",
       [](Callbacks callbacks) {
         return trained_on(pipeline(3), {.epochs = 4,
                                         .callbacks = callbacks,
                                         .validation_data = pipeline(4),
                                         .validation_steps = 3,
                                         .validation_freq = 2});
       }},
      {"validated on the data that it is trained on",
       [](Callbacks callbacks) {
         auto data = pipeline(8);
         return trained_on(data, {.epochs = 4, .callbacks = callbacks, .validation_data = data});
       }},
      {"changed by layers with a seed, on several threads",
       [](Callbacks callbacks) {
         keras::GaussianNoise noise(0.1, {.seed = 3});
         keras::Dropout dropped(0.2, {.seed = 3});
         auto data = data::from_tensor_slices(inputs(), labels())
                         .map([=](Tensor x, Tensor y) { return std::pair(noise(x, {.training = true}), y); },
                              {.num_parallel_calls = 2})
                         .batch(5)
                         .map_host([=](Tensor x, Tensor y) { return std::pair(dropped(x, {.training = true}), y); })
                         .prefetch(2);
         return trained_on(data, {.epochs = 4, .callbacks = callbacks, .validation_data = data});
       }},
      {"changed at random, and kept",
       [](Callbacks callbacks) {
         keras::GaussianNoise noise(0.1, {.seed = 3});
         return trained_on(data::from_tensor_slices(inputs(), labels())
                               .map([=](Tensor x, Tensor y) {
                                 return std::pair(noise(x, {.training = true}) + random::normal({5}), y);
                               })
                               .cache()
                               .shuffle(20)
                               .batch(5),
                           {.epochs = 4, .callbacks = callbacks});
       }},
      {"tensors in their order, a part of them for validation, classes weighed",
       [](Callbacks callbacks) {
         return trained_on({inputs(), labels()}, {.batch_size = 6,
                                                  .epochs = 4,
                                                  .callbacks = callbacks,
                                                  .validation_split = 0.2,
                                                  .shuffle = false,
                                                  .class_weight = {{0, 2.0}}});
       }},
  };
}

TEST(Backup, GoesOnWhereTheDataWas) {
  for (const DataCase& one : data_cases()) {
    const Result whole = one.train({});
    expect_equal(one.train({}), whole, one.name);  // it is the same twice: what follows says something
    for (const int every : {1, 3}) {
      Folder folder;
      expect_equal(killed_and_resumed(one.train, folder / "backup", {.save_freq = every}, often(9)), whole,
                   std::string(one.name) + ", saved every " + std::to_string(every));
    }
    Folder folder;
    bool killed = false;
    expect_equal(
        killed_and_resumed(one.train, folder / "backup", {}, [&] { return std::exchange(killed, true) ? 0 : 17; }),
        whole, std::string(one.name) + ", saved after epochs");
  }
}

TEST(Backup, IsTheSameOnOneAndOnTwoThreads) {
  const int before = thread_count();
  auto train = [](Callbacks callbacks) { return trained_on(pipeline({}), {.epochs = 3, .callbacks = callbacks}); };
  set_thread_count(1);
  const Result whole = train({});
  int number = 0;
  auto next = [&]() -> std::int64_t {
    set_thread_count(1 + number % 2);
    return number++ < 5 ? 4 : 0;
  };
  Folder folder;
  expect_equal(killed_and_resumed(train, folder / "backup", {.save_freq = 1}, next), whole);
  set_thread_count(before);
}

// --- what a training consists of

/// A model of one's own, built by its first step, that keeps and draws in its own way.
struct Own : keras::CustomModel {
  keras::Dense inner{4}, outer{1};
  Variable seen{zeros({}, i64), {.trainable = false}};
  random::Generator noise{3}, test_noise{4};
  keras::Metric mean = keras::metrics::Mean("own");
  STET_MEMBERS(inner, outer, mean)
  Tensor call(const Tensor& x, const keras::Context& context) override {
    if (!context.training)
      return outer(inner(x)) + noise.normal({1}, {.stddev = 0.01}) + test_noise.normal({1}, {.stddev = 0.01});
    seen.assign_add(1);
    return outer(inner(x) + noise.normal({4}, {.stddev = 0.1})) * (1 + 0.001f * cast(seen, f32));
  }
  keras::Logs train_step(const keras::Batch& batch) override {
    keras::Logs logs = CustomModel::train_step(batch);
    mean.update_state(cast(seen, f32));
    logs["own"] = mean.result();
    return logs;
  }
};

TEST(Backup, KeepsWhatHostCodeOfAStepUses) {
  for (const bool eagerly : {false, true}) {
    auto train = [=](Callbacks callbacks) {
      random::seed(9);
      auto model = keras::make<Own>();
      model.compile({.optimizer = keras::SGD(0.05, {.momentum = 0.9}), .loss = "mse", .run_eagerly = eagerly});
      const Tensor x = random::stateless_normal({20, 3}, {5, 6}), y = sum(x, {1}, {.keepdims = true});
      const keras::History history = model.fit(
          x, y, {.batch_size = 4, .epochs = 3, .verbose = 0, .callbacks = callbacks, .validation_data = {x, y}});
      return resumed::result_of(model, history);
    };
    const Result whole = train({});
    Folder folder;
    expect_equal(killed_and_resumed(train, folder / "backup", {.save_freq = 1}, often(8)), whole,
                 eagerly ? "eagerly" : "traced");
  }
}

TEST(Backup, KeepsOptimizersOfAllKinds) {
  const std::pair<const char*, std::function<keras::Optimizer()>> optimizers[] = {
      {"schedule", [] { return keras::RMSprop(keras::schedules::CosineDecay(0.1, 12)); }},
      {"averages", [] { return keras::Adam(0.01, {.use_ema = true, .ema_momentum = 0.8}); }},
      {"accumulated", [] { return keras::SGD(0.05, {.momentum = 0.5, .gradient_accumulation_steps = 3}); }},
      {"scaled",
       [] { return keras::LossScaleOptimizer(keras::Adam(0.01), {.initial_scale = 64, .dynamic_growth_steps = 3}); }},
      {"from the weights", [] { return keras::ScheduleFreeAdamW(0.02); }},
      {"products", [] { return keras::Nadam(0.01); }}};
  for (const auto& [name, make] : optimizers) {
    auto train = [&](Callbacks callbacks) {
      random::seed(9);
      keras::Sequential model{keras::Input({3}), keras::Dense(4, {.activation = "tanh"}), keras::Dense(1)};
      model.compile({.optimizer = make(), .loss = "mse"});
      if (std::string(name) == "averages") callbacks.push_back(keras::SwapEMAWeights({.swap_on_epoch = true}));
      const Tensor x = random::stateless_normal({20, 3}, {5, 6}), y = sum(x, {1}, {.keepdims = true});
      const keras::History history = model.fit(
          x, y, {.batch_size = 4, .epochs = 3, .verbose = 0, .callbacks = callbacks, .validation_data = {x, y}});
      return resumed::result_of(model, history);
    };
    const Result whole = train({});
    Folder folder;
    expect_equal(killed_and_resumed(train, folder / "backup", {.save_freq = 1}, often(8)), whole, name);
    int runs = 0;
    expect_equal(killed_and_resumed(train, folder / "backup", {}, [&]() -> std::int64_t { return runs++ < 2 ? 7 : 0; }),
                 whole, name);
  }
}

/// Layers that are trained from some epoch on: what the optimizer keeps of them is not there before.
TEST(Backup, KeepsTrainingsThatThawLayers) {
  const std::pair<const char*, std::function<keras::Optimizer()>> optimizers[] = {
      {"slots of zeros", [] { return keras::Adam(0.01); }},
      {"slots from the weights", [] { return keras::ScheduleFreeAdamW(0.02); }},
      {"averages, accumulated",
       [] { return keras::SGD(0.05, {.momentum = 0.5, .use_ema = true, .gradient_accumulation_steps = 2}); }},
      {"scaled", [] { return keras::LossScaleOptimizer(keras::Nadam(0.01)); }}};
  for (const auto& [name, make] : optimizers)
    for (const bool eagerly : {false, true}) {
      auto train = [&](Callbacks callbacks) {
        random::seed(9);
        keras::Dense base(4, {.activation = "tanh"});
        keras::Sequential model{keras::Input({3}), base, keras::Dropout(0.1, {.seed = 1}), keras::Dense(1)};
        model.compile({.optimizer = make(), .loss = "mse", .run_eagerly = eagerly});
        callbacks.push_back(keras::LambdaCallback(
            {.on_epoch_begin = [=](int epoch, keras::EpochLogs&) { base.set_trainable(epoch >= 2); }}));
        const Tensor x = random::stateless_normal({20, 3}, {5, 6}), y = sum(x, {1}, {.keepdims = true});
        const keras::History history =
            model.fit(x, y, {.batch_size = 4, .epochs = 4, .verbose = 0, .callbacks = callbacks});
        return resumed::result_of(model, history);
      };
      const Result whole = train({});
      for (const int every : {0, 1}) {
        Folder folder;
        const keras::BackupAndRestoreOptions options{.save_freq = every == 0 ? keras::SaveFrequency("epoch")
                                                                             : keras::SaveFrequency(every)};
        int runs = 0;
        auto next = [&]() -> std::int64_t { return runs++ < 3 ? 6 : 0; };
        expect_equal(killed_and_resumed(train, folder / "backup", options, next), whole,
                     std::string(name) + (eagerly ? ", eagerly" : "") + ", saved every " + std::to_string(every));
      }
    }
}

/// What on_epoch_begin decides by the model's state, it decides again.
TEST(Backup, CallbacksSeeTheModelWhenAnEpochBegins) {
  auto train = [](Callbacks callbacks) {
    random::seed(9);
    keras::Dense base(4, {.activation = "tanh"});
    keras::Sequential model{keras::Input({3}), base, keras::Dense(1)};
    model.compile({.optimizer = keras::Adam(0.01), .loss = "mse"});
    callbacks.push_back(keras::LambdaCallback({.on_epoch_begin = [=](int, keras::EpochLogs&) {
      base.set_trainable(model.optimizer().iterations().read().item<std::int64_t>() < 10);
    }}));
    const Tensor x = random::stateless_normal({20, 3}, {5, 6}), y = sum(x, {1}, {.keepdims = true});
    const keras::History history =
        model.fit(x, y, {.batch_size = 4, .epochs = 4, .verbose = 0, .callbacks = callbacks});
    return resumed::result_of(model, history);
  };
  const Result whole = train({});
  Folder folder;
  int runs = 0;
  expect_equal(killed_and_resumed(train, folder / "backup", {.save_freq = 1},
                                  [&]() -> std::int64_t { return runs++ < 4 ? 4 : 0; }),
               whole);
}

TEST(Backup, TracesOnceInEveryProcess) {
  Folder folder;
  int traces = 0;
  auto train = [&](Callbacks callbacks) {
    keras::Model model = noisy_model();
    const keras::History history =
        model.fit(pipeline(1), {.epochs = 2, .verbose = 0, .callbacks = callbacks, .validation_data = pipeline(2)});
    traces = model.train_function().trace_count() + model.test_function().trace_count();
    return resumed::result_of(model, history);
  };
  bool killed = false;
  killed_and_resumed(train, folder / "backup", {.save_freq = 1}, [&] { return std::exchange(killed, true) ? 0 : 11; });
  EXPECT_EQ(traces, 2);
}

/// Several inputs and outputs, weights of samples, several steps at once, a loss that a layer adds.
TEST(Backup, KeepsModelsOfSeveralOutputs) {
  auto train = [](Callbacks callbacks) {
    random::seed(2);
    keras::KerasTensor a = keras::Input({3}, {.name = "a"}), b = keras::Input({2}, {.name = "b"});
    keras::KerasTensor both = keras::Concatenate()({a, b});
    keras::KerasTensor hidden = keras::Dropout(0.2)(
        keras::Dense(6, {.activation = "relu", .kernel_regularizer = keras::regularizers::L2(0.01)})(both));
    keras::Model model({a, b}, {keras::Dense(1, {.name = "left"})(hidden), keras::Dense(2, {.name = "right"})(hidden)});
    model.compile({.optimizer = keras::Adam(0.01),
                   .loss = {{"left", "mse"}, {"right", "mae"}},
                   .metrics = {{"left", {"mae"}}, {"right", {"mse"}}},
                   .steps_per_execution = 2});
    const Tensor x = random::stateless_normal({21, 3}, {1, 1}), z = random::stateless_normal({21, 2}, {1, 2});
    const keras::History history = model.fit({x, z}, {sum(x, {1}, {.keepdims = true}), z * 2},
                                             {.batch_size = 4,
                                              .epochs = 3,
                                              .verbose = 0,
                                              .callbacks = callbacks,
                                              .validation_split = 0.2,
                                              .sample_weight = {abs(x[{Range{}, 0}]), abs(x[{Range{}, 1}])}});
    return resumed::result_of(model, history);
  };
  const Result whole = train({});
  Folder folder;
  expect_equal(killed_and_resumed(train, folder / "backup", {.save_freq = 1}, often(6)), whole);
}

/// Where else than after a batch a training may be killed.
struct KillIn : keras::CustomCallback {
  KillIn(std::string hook, int times) : wanted(std::move(hook)), left(times) {}
  std::string wanted;
  int left;
  void told(const std::string& hook) {
    if (hook == wanted && --left == 0) throw resumed::Killed();
  }
  void on_train_begin() override { told("train begin"); }
  void on_epoch_begin(int, keras::EpochLogs&) override { told("epoch begin"); }
  void on_train_batch_begin(std::int64_t) override { told("batch begin"); }
  void on_test_batch_end(std::int64_t, const keras::BatchLogs&) override { told("test batch end"); }
  void on_test_end(keras::EpochLogs&) override { told("test end"); }
  void on_epoch_end(int, keras::EpochLogs&) override { told("epoch end"); }
  void on_train_end(keras::EpochLogs&) override { told("train end"); }
};

TEST(Backup, KilledInAnyHook) {
  const Result whole = from_tensors()({});
  for (const char* hook :
       {"train begin", "epoch begin", "batch begin", "test batch end", "test end", "epoch end", "train end"})
    for (const int every : {0, 1, 4}) {
      Folder folder;
      const keras::BackupAndRestoreOptions options{.save_freq = every == 0 ? keras::SaveFrequency("epoch")
                                                                           : keras::SaveFrequency(every)};
      const int times = std::string(hook).starts_with("train") ? 1 : 2;
      for (int life = 0; life < 3; ++life)
        EXPECT_THROW(from_tensors()({keras::BackupAndRestore(folder / "backup", options), KillIn(hook, times)}),
                     resumed::Killed)
            << hook << life;
      expect_equal(from_tensors()({keras::BackupAndRestore(folder / "backup", options)}), whole,
                   std::string(hook) + ", saved every " + std::to_string(every));
    }
}

TEST(Backup, WhatStopsATrainingStopsItAgain) {
  auto train = [](Callbacks callbacks) {
    random::seed(2);
    keras::Sequential model{keras::Input({3}), keras::Dense(1)};
    model.compile({.optimizer = keras::SGD(1e30), .loss = "mse"});
    callbacks.push_back(keras::TerminateOnNaN());
    const Tensor x = random::stateless_normal({40, 3}, {1, 1});
    const keras::History history = model.fit(x, sum(x, {1}, {.keepdims = true}),
                                             {.batch_size = 4, .epochs = 3, .verbose = 0, .callbacks = callbacks});
    return resumed::result_of(model, history);
  };
  const Result whole = train({});
  Folder folder;
  int runs = 0;
  expect_equal(killed_and_resumed(train, folder / "backup", {.save_freq = 1}, [&] { return runs++ < 2 ? 1 : 0; }),
               whole);
}

// --- callbacks

/// A callback of one's own, that counts.
struct Counts : keras::CustomCallback {
  explicit Counts(std::shared_ptr<std::vector<std::int64_t>> told) : all(std::move(told)) {}
  std::shared_ptr<std::vector<std::int64_t>> all;
  std::int64_t steps = 0;
  void on_train_begin() override { steps = 0; }
  void on_train_batch_end(std::int64_t, const keras::BatchLogs&) override { ++steps; }
  void on_epoch_end(int, keras::EpochLogs& logs) override { logs["steps"] = static_cast<double>(steps); }
  void on_train_end(keras::EpochLogs&) override { all->push_back(steps); }
  void save_state(keras::SavedState& state) const override { state.set("steps", steps); }
  void load_state(const keras::SavedState& state) override { steps = state.integer("steps"); }
};

TEST(Backup, KeepsTheStatesOfCallbacks) {
  Folder folder;
  const std::string table = folder / "table.csv", older = folder / "older.csv";
  const std::vector<char> before{'o', 'l', 'd', '\n'};
  auto counts = std::make_shared<std::vector<std::int64_t>>();
  int stopped = 0, best = 0;
  auto train = [&](Callbacks callbacks) {
    random::seed(9);
    keras::Sequential model{keras::Input({3}), keras::Dense(1)};
    model.compile({.optimizer = keras::SGD(0.3), .loss = "mse"});
    const Tensor x = random::stateless_normal({20, 3}, {5, 6}), y = sum(x, {1}, {.keepdims = true});
    keras::EarlyStopping stopping({.monitor = "loss", .min_delta = 1e-4, .patience = 3, .restore_best_weights = true});
    // In front of the others and behind them: a checkpoint has what all of them did.
    callbacks.insert(callbacks.begin(), Counts(counts));
    callbacks.push_back(stopping);
    callbacks.push_back(keras::ReduceLROnPlateau({.monitor = "loss", .factor = 0.5, .patience = 1, .cooldown = 1}));
    callbacks.push_back(keras::CSVLogger(table));
    callbacks.push_back(keras::CSVLogger(older, {.append = true}));
    // Twice the same class: told apart by their order.
    for (const double factor : {0.99, 0.98})
      callbacks.push_back(keras::LearningRateScheduler([=](int, double rate) { return rate * factor; }));
    const keras::History history =
        model.fit(x, y, {.batch_size = 5, .epochs = 30, .verbose = 0, .callbacks = callbacks});
    stopped = stopping.stopped_epoch();
    best = stopping.best_epoch();
    return resumed::result_of(model, history);
  };
  resumed::put(older, before);
  const Result whole = train({});
  const int whole_stopped = stopped, whole_best = best;
  ASSERT_GT(stopped, 3);
  ASSERT_LT(stopped, 29);
  const std::vector<char> whole_table = resumed::bytes_of(table), whole_older = resumed::bytes_of(older);
  const std::int64_t whole_steps = counts->back();
  for (const int every : {0, 1, 3}) {
    resumed::put(table, {'x'});
    resumed::put(older, before);
    const keras::SaveFrequency frequency = every == 0 ? keras::SaveFrequency("epoch") : keras::SaveFrequency(every);
    int runs = 0;
    auto next = [&]() -> std::int64_t { return runs++ < 12 ? 6 : 0; };
    expect_equal(killed_and_resumed(train, folder / "backup", {.save_freq = frequency}, next), whole);
    EXPECT_EQ(stopped, whole_stopped);
    EXPECT_EQ(best, whole_best);
    EXPECT_EQ(counts->back(), whole_steps);
    EXPECT_EQ(resumed::bytes_of(table), whole_table);
    EXPECT_EQ(resumed::bytes_of(older), whole_older);
  }
}

TEST(Backup, KeepsWhatLambdasSay) {
  Folder folder;
  double last = 0;
  auto train = [&](Callbacks callbacks) {
    auto sum = std::make_shared<double>(0);
    callbacks.push_back(keras::LambdaCallback(
        {.on_train_end = [&last, sum](keras::EpochLogs&) { last = *sum; },
         .on_train_batch_end = [sum](std::int64_t,
                                     const keras::BatchLogs& logs) { *sum += logs.at("loss").item<double>(); },
         .save_state = [sum](keras::SavedState& state) { state.set("sum", *sum); },
         .load_state = [sum](const keras::SavedState& state) { *sum = state.number("sum"); }}));
    return trained_on({inputs(), labels()}, {.epochs = 3, .callbacks = callbacks});
  };
  const Result whole = train({});
  const double wanted = last;
  // What is behind the one that kills is not told of the batch: save before, so that nothing is told twice.
  expect_equal(killed_and_resumed(train, folder / "backup", {.save_freq = 1}, often(2)), whole);
  EXPECT_EQ(last, wanted);
}

// --- what it says and does

/// What is written to stderr.
template <class F>
std::string told_by(F f) {
  ::testing::internal::CaptureStderr();
  f();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Backup, SaysWhereItGoesOn) {
  Folder folder;
  const std::string backup = folder / "backup";
  auto run = [&](std::int64_t steps, keras::BackupAndRestoreOptions options, int epochs) {
    return told_by([&] {
      Callbacks callbacks{keras::BackupAndRestore(backup, options)};
      if (steps > 0) callbacks.push_back(KillAt(steps));
      try {
        from_tensors(epochs)(callbacks);
      } catch (const resumed::Killed&) {
      }
    });
  };
  EXPECT_EQ(run(3, {.save_freq = 1}, 4), "");
  EXPECT_EQ(run(6, {.save_freq = 2}, 4), "stet: fit goes on with batch 3 of epoch 1/4, from '" + backup + "/ckpt-2'\n");
  EXPECT_EQ(run(12, {}, 4), "stet: fit goes on with batch 2 of epoch 2/4, from '" + backup + "/ckpt-4'\n");
  EXPECT_EQ(run(0, {.delete_checkpoint = false}, 4),
            "stet: fit goes on with epoch 4/4, from '" + backup + "/ckpt-6'\n");
  EXPECT_EQ(resumed::names_in(backup), std::vector<std::string>{"ckpt-7"});
  EXPECT_EQ(run(0, {.delete_checkpoint = false}, 4),
            "stet: fit has nothing left to do, from '" + backup + "/ckpt-7'\n");
  expect_equal(from_tensors(4)({keras::BackupAndRestore(backup, {.delete_checkpoint = false})}), from_tensors(4)({}));
  // More epochs than before.
  EXPECT_EQ(run(0, {}, 6), "stet: fit goes on with epoch 5/6, from '" + backup + "/ckpt-7'\n");
  EXPECT_FALSE(std::filesystem::exists(backup));
}

TEST(Backup, OneThatIsDamagedIsSkipped) {
  Folder folder;
  const std::string backup = folder / "backup";
  const Result whole = from_tensors()({});
  for (const bool twice : {true, false}) {
    EXPECT_THROW(
        from_tensors()({keras::BackupAndRestore(backup, {.save_freq = 1, .double_checkpoint = twice}), KillAt(9)}),
        resumed::Killed);
    const std::vector<std::string> names = resumed::names_in(backup);
    EXPECT_EQ(names.size(), twice ? 2U : 1U);
    resumed::put(backup + "/ckpt-8", {'s', 't', 'e', 't'});
    if (twice) {
      Result result;
      const std::string told =
          told_by([&] { result = from_tensors()({keras::BackupAndRestore(backup, {.double_checkpoint = true})}); });
      expect_equal(result, whole);
      EXPECT_EQ(told, "stet: BackupAndRestore: '" + backup + "/ckpt-8': ends in its first bytes, at byte 4; '" +
                          backup + "/ckpt-7' is used instead\nstet: fit goes on with batch 3 of epoch 2/4, from '" +
                          backup + "/ckpt-7'\n");
    } else {
      const std::string error = error_of([&] { from_tensors()({keras::BackupAndRestore(backup)}); });
      EXPECT_CONTAINS(error, "BackupAndRestore: none of the 1 checkpoints in '" + backup + "' is whole");
      EXPECT_CONTAINS(error, "keras_backup_test.cpp");
    }
  }
}

TEST(Backup, RefusesWhatIsOfSomethingElse) {
  Folder folder;
  const std::string backup = folder / "backup";
  EXPECT_THROW(from_tensors()({keras::BackupAndRestore(backup, {.save_freq = 1}), KillAt(3)}), resumed::Killed);
  auto error = [&](keras::Model model, std::int64_t batch_size, const std::string& path) {
    return error_of([&] {
      model.fit(inputs(), labels(),
                {.batch_size = batch_size, .epochs = 2, .verbose = 0, .callbacks = {keras::BackupAndRestore(path)}});
    });
  };
  const std::string shorter = error(noisy_model(), 9, backup);
  EXPECT_CONTAINS(shorter, "iterate_from: the position is one of a dataset of other stages or arguments");
  EXPECT_CONTAINS(shorter, "\n  in BackupAndRestore, which goes on from '" + backup + "/ckpt-2'");
  EXPECT_CONTAINS(error(noisy_model(), 4, backup),
                  "ckpt-2': is of batch 2 of an epoch of 5 batches, and the data has 10 batches\n");
  keras::Sequential other{keras::Input({5}), keras::Dense(3)};
  other.compile({.optimizer = keras::Adam(),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  EXPECT_CONTAINS(error(other, 8, backup), "Variable 0 of 'model' is 'sequential");
  keras::Model sgd = noisy_model();
  sgd.compile({.optimizer = keras::SGD(), .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true})});
  EXPECT_CONTAINS(error(sgd, 8, backup), "it holds Variables of 'metrics/0 loss', 'metrics/1 accuracy', 'model'");
  // A checkpoint of a loop of one's own.
  keras::Checkpoint({.model = other}).save(folder / "own");
  EXPECT_CONTAINS(error(noisy_model(), 8, folder / "own"), "ckpt-1': is a checkpoint, but of no fit()");
  EXPECT_CONTAINS(error_of([&] {
                    from_tensors()({keras::BackupAndRestore(folder / "a"), keras::BackupAndRestore(folder / "b")});
                  }),
                  "fit: there are two BackupAndRestore among the callbacks");
  EXPECT_CONTAINS(error_of([] { keras::BackupAndRestore(""); }), "BackupAndRestore: backup_dir is empty");
  EXPECT_CONTAINS(error_of([] { keras::BackupAndRestore("x", {.save_freq = "batch"}); }),
                  "BackupAndRestore: save_freq is \"batch\"");
  EXPECT_CONTAINS(error_of([] { keras::BackupAndRestore("x", {.save_freq = 0}); }), "BackupAndRestore: save_freq is 0");
  EXPECT_CONTAINS(error_of([] { keras::BackupAndRestore("x", {.save_freq = keras::EverySeconds{-1}}); }),
                  "BackupAndRestore: save_freq is EverySeconds{-1");
}

TEST(Backup, AFolderThatCannotBeWrittenIsAnError) {
  const std::string error = error_of([&] { from_tensors()({keras::BackupAndRestore("/proc/none")}); });
  EXPECT_CONTAINS(error, "BackupAndRestore: the folder '/proc/none' cannot be made: No such file or directory");
  EXPECT_CONTAINS(error, "keras_backup_test.cpp");
}

TEST(Backup, CtrlCKeepsACheckpoint) {
  Folder folder;
  const std::string backup = folder / "backup";
  const Result whole = from_tensors()({});
  auto interrupt =
      keras::LambdaCallback({.on_train_batch_end = [left = 8](std::int64_t, const keras::BatchLogs&) mutable {
        if (--left == 0) ::raise(SIGINT);
      }});
  const std::string told = told_by([&] { from_tensors()({keras::BackupAndRestore(backup), interrupt}); });
  EXPECT_CONTAINS(told, "stet: fit was interrupted");
  EXPECT_TRUE(std::filesystem::exists(backup));
  Result result;
  EXPECT_CONTAINS(told_by([&] { result = from_tensors()({keras::BackupAndRestore(backup)}); }),
                  "stet: fit goes on with batch 4 of epoch 2/4");
  expect_equal(result, whole);
}

/// After the last batch of an epoch there is nothing to cut short: the checkpoint is of the epoch's end.
TEST(Backup, CtrlCInValidationKeepsTheEpoch) {
  const Result whole = from_tensors()({});
  struct Interrupt : keras::CustomCallback {
    explicit Interrupt(bool test) : in_test(test) {}
    bool in_test;
    int validations = 0;
    void on_test_batch_end(std::int64_t, const keras::BatchLogs&) override {
      if (in_test && ++validations == 3) ::raise(SIGINT);  // of 2 in every epoch
    }
    void on_epoch_end(int epoch, keras::EpochLogs&) override {
      if (!in_test && epoch == 1) ::raise(SIGINT);
    }
  };
  for (const bool test : {true, false}) {
    Folder folder;
    const std::string backup = folder / "backup";
    // So rarely that none but Ctrl-C's is written.
    told_by([&] { from_tensors()({keras::BackupAndRestore(backup, {.save_freq = 1000}), Interrupt(test)}); });
    EXPECT_EQ(resumed::names_in(backup), std::vector<std::string>{"ckpt-1"});
    Result result;
    EXPECT_CONTAINS(told_by([&] { result = from_tensors()({keras::BackupAndRestore(backup)}); }),
                    "stet: fit goes on with epoch 3/4");
    expect_equal(result, whole);
  }
}

TEST(Backup, DataInNoCertainOrderIsSavedAfterEpochs) {
  auto train = [](Callbacks callbacks) {
    return trained_on(
        data::from_tensor_slices(inputs(), labels())
            .map([](Tensor x, Tensor y) { return std::pair(x, y); }, {.num_parallel_calls = 2, .deterministic = false})
            .batch(5),
        {.epochs = 2, .callbacks = callbacks});
  };
  Folder folder;
  const std::string backup = folder / "backup";
  const std::string error = error_of([&] { train({keras::BackupAndRestore(backup, {.save_freq = 3})}); });
  EXPECT_CONTAINS(error, "position() after 3 elements behind map with .deterministic = false");
  EXPECT_CONTAINS(
      error,
      "\n  in BackupAndRestore, which saves inside of epochs; with .save_freq = \"epoch\" it saves at their "
      "ends");
  // Ctrl-C is no error: what was saved before is there.
  auto interrupt =
      keras::LambdaCallback({.on_train_batch_end = [left = 10](std::int64_t, const keras::BatchLogs&) mutable {
        if (--left == 0) ::raise(SIGINT);
      }});
  EXPECT_CONTAINS(told_by([&] { train({keras::BackupAndRestore(backup), interrupt}); }), "stet: fit was interrupted");
  EXPECT_EQ(resumed::names_in(backup), std::vector<std::string>{"ckpt-1"});
  EXPECT_CONTAINS(told_by([&] { train({keras::BackupAndRestore(backup)}); }), "stet: fit goes on with epoch 2/2");
}

/// Variables that only test steps use, of which fit() itself makes none: a callback evaluates.
TEST(Backup, KeepsWhatCallbacksEvaluateWith) {
  for (const bool eagerly : {false, true}) {
    auto train = [=](Callbacks callbacks) {
      random::seed(9);
      auto model = keras::make<Own>();
      model.compile({.optimizer = keras::SGD(0.05), .loss = "mse", .run_eagerly = eagerly});
      const Tensor x = random::stateless_normal({20, 3}, {5, 6}), y = sum(x, {1}, {.keepdims = true});
      // Own draws in tests from another generator than any layer has.
      callbacks.insert(callbacks.begin(), keras::LambdaCallback({.on_epoch_end = [=](int, keras::EpochLogs& logs) {
                         logs["evaluated"] = model.evaluate(x, y)["loss"];
                       }}));
      const keras::History history =
          model.fit(x, y, {.batch_size = 4, .epochs = 4, .verbose = 0, .callbacks = callbacks});
      return resumed::result_of(model, history);
    };
    const Result whole = train({});
    Folder folder;
    int runs = 0;
    expect_equal(killed_and_resumed(train, folder / "backup", {.save_freq = 1},
                                    [&]() -> std::int64_t { return runs++ < 3 ? 6 : 0; }),
                 whole, eagerly ? "eagerly" : "traced");
  }
}

TEST(Backup, TheSameModelGoesOnInTheSameProcess) {
  Folder folder;
  const Result whole = from_tensors()({});
  keras::Model model = noisy_model();
  auto fit = [&](Callbacks callbacks) {
    callbacks.push_back(keras::BackupAndRestore(folder / "backup", {.save_freq = 1}));
    callbacks.push_back(keras::ReduceLROnPlateau({.monitor = "loss", .patience = 0}));
    callbacks.push_back(
        keras::LearningRateScheduler([](int epoch, double rate) { return epoch == 2 ? rate / 2 : rate; }));
    return model.fit(inputs(), labels(),
                     {.batch_size = 8,
                      .epochs = 4,
                      .verbose = 0,
                      .callbacks = callbacks,
                      .validation_data = {inputs()[range(0, 10)], labels()[range(0, 10)]}});
  };
  for (const int steps : {2, 3, 4}) EXPECT_THROW(fit({KillAt(steps)}), resumed::Killed);
  const keras::History history = fit({});
  EXPECT_EQ(model.train_function().trace_count(), 1);
  expect_equal(resumed::result_of(model, history), whole);
}

}  // namespace
}  // namespace stet
