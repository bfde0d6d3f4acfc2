// What is done between the steps of fit(), evaluate() and predict().
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "expect_error.h"
#include "stet/stet.h"

namespace stet {
namespace {

class Callbacks : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(5);
    keras::clear_session();
    model = keras::Sequential{keras::Input({3}), keras::Dense(1)};
    model.compile({.optimizer = keras::SGD(0.05), .loss = keras::losses::MeanSquaredError()});
    x = random::normal({20, 3});
    y = sum(x, {1}, {.keepdims = true});
  }
  keras::FitOptions options(int epochs, std::vector<keras::Callback> callbacks) const {
    return {.batch_size = 8, .epochs = epochs, .verbose = 0, .callbacks = std::move(callbacks)};
  }
  keras::Sequential model;
  Tensor x, y;
};

/// Notes every hook.
struct Notes : keras::CustomCallback {
  explicit Notes(std::vector<std::string>& all) : notes(all) {}
  std::vector<std::string>& notes;
  void on_train_begin() override { notes.push_back("train"); }
  void on_train_end(keras::EpochLogs&) override { notes.push_back("train end"); }
  void on_epoch_begin(int epoch, keras::EpochLogs&) override { notes.push_back("epoch " + std::to_string(epoch)); }
  void on_epoch_end(int epoch, keras::EpochLogs& logs) override {
    std::string names;
    for (const auto& [name, value] : logs) names += " " + name;
    notes.push_back("epoch end " + std::to_string(epoch) + names);
    logs["extra"] = 7;
  }
  void on_train_batch_begin(std::int64_t batch) override { notes.push_back("batch " + std::to_string(batch)); }
  void on_train_batch_end(std::int64_t batch, const keras::BatchLogs& logs) override {
    EXPECT_TRUE(std::isfinite(logs.at("loss").item<float>()));
    notes.push_back("batch end " + std::to_string(batch));
  }
  void on_test_begin() override { notes.push_back("test"); }
  void on_test_end(keras::EpochLogs&) override { notes.push_back("test end"); }
  void on_test_batch_end(std::int64_t batch, const keras::BatchLogs&) override {
    notes.push_back("test batch end " + std::to_string(batch));
  }
  void on_predict_begin() override { notes.push_back("predict"); }
  void on_predict_batch_end(std::int64_t batch, const keras::BatchLogs& logs) override {
    notes.push_back("predict batch end " + std::to_string(batch) + " " + logs.at("outputs").shape().str());
  }
  void on_predict_end() override { notes.push_back("predict end"); }
};

TEST_F(Callbacks, AreToldInKerasOrder) {
  std::vector<std::string> notes;
  keras::FitOptions two = options(2, {Notes(notes)});
  two.batch_size = 16;
  two.validation_data = {x, y};
  two.validation_batch_size = 20;
  keras::History history = model.fit(x, y, two);
  EXPECT_EQ(notes, (std::vector<std::string>{"train",
                                             "epoch 0",
                                             "batch 0",
                                             "batch end 0",
                                             "batch 1",
                                             "batch end 1",
                                             "test",
                                             "test batch end 0",
                                             "test end",
                                             "epoch end 0 loss val_loss",
                                             "epoch 1",
                                             "batch 0",
                                             "batch end 0",
                                             "batch 1",
                                             "batch end 1",
                                             "test",
                                             "test batch end 0",
                                             "test end",
                                             "epoch end 1 loss val_loss",
                                             "train end"}));
  EXPECT_EQ(history["extra"], (std::vector<double>{7, 7}));
  notes.clear();
  model.evaluate(x, y, {.callbacks = {Notes(notes)}});
  EXPECT_EQ(notes, (std::vector<std::string>{"test", "test batch end 0", "test end"}));
  notes.clear();
  model.predict(x, {.batch_size = 16, .callbacks = {Notes(notes)}});
  EXPECT_EQ(notes, (std::vector<std::string>{"predict", "predict batch end 0 [16,1]", "predict batch end 1 [4,1]",
                                             "predict end"}));
  EXPECT_EQ(model.train_function().trace_count(), 1);
}

/// Values that it is told instead of measured ones.
keras::Callback told(const std::string& name, std::vector<double> values) {
  return keras::LambdaCallback({.on_epoch_end = [=](int epoch, keras::EpochLogs& logs) {
    logs[name] = values[static_cast<std::size_t>(epoch)];
  }});
}

TEST_F(Callbacks, EarlyStoppingStopsAfterItsPatience) {
  keras::EarlyStopping stopping({.monitor = "told", .min_delta = 0.1, .patience = 2});
  keras::History history = model.fit(x, y, options(10, {told("told", {5, 4, 3.95, 3.96, 1, 1, 1, 1, 1, 1}), stopping}));
  EXPECT_EQ(history.epochs.size(), 4u);
  EXPECT_EQ(stopping.stopped_epoch(), 3);
  EXPECT_EQ(stopping.best_epoch(), 1);
  // What is to become large, by its name.
  keras::EarlyStopping largest({.monitor = "val_accuracy"});
  history = model.fit(x, y, options(5, {told("val_accuracy", {.1, .2, .3, .2, .9}), largest}));
  EXPECT_EQ(history.epochs.size(), 4u);
  EXPECT_CONTAINS(error_of([] { keras::EarlyStopping({.mode = "best"}); }), "EarlyStopping: mode is \"best\"");
}

TEST_F(Callbacks, EarlyStoppingRestoresTheBestWeights) {
  std::vector<std::vector<float>> kernels;
  keras::Callback note = keras::LambdaCallback(
      {.on_epoch_end = [&](int, keras::EpochLogs&) { kernels.push_back(model.get_weights()[0].to_vector<float>()); }});
  keras::EarlyStopping stopping({.monitor = "told", .patience = 2, .restore_best_weights = true});
  model.fit(x, y, options(6, {told("told", {5, 1, 2, 3, 4, 5}), note, stopping}));
  EXPECT_EQ(kernels.size(), 4u);
  EXPECT_EQ(model.get_weights()[0].to_vector<float>(), kernels[1]);
  EXPECT_NE(kernels[1], kernels[3]);
}

TEST_F(Callbacks, LearningRatesAreChangedWithoutARetrace) {
  keras::ReduceLROnPlateau plateau({.monitor = "told", .factor = 0.5, .patience = 2, .min_lr = 0.02});
  keras::History history = model.fit(x, y, options(7, {told("told", {1, 1, 1, 1, 1, 1, 1}), plateau}));
  const std::vector<double> expected{0.05, 0.05, 0.05, 0.025, 0.025, 0.02, 0.02};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(history["learning_rate"][i], expected[i], 1e-7) << i;
  history = model.fit(
      x, y,
      options(3, {keras::LearningRateScheduler([](int epoch, double rate) { return epoch == 0 ? 0.1 : rate / 2; })}));
  EXPECT_NEAR(history["learning_rate"][2], 0.025, 1e-7);
  EXPECT_EQ(model.train_function().trace_count(), 1);
  EXPECT_CONTAINS(error_of([] { keras::ReduceLROnPlateau({.factor = 2}); }), "ReduceLROnPlateau: a factor of 2");
}

TEST_F(Callbacks, LogsOfEpochsInAFile) {
  const std::string path = testing::TempDir() + "callbacks_test_" + std::to_string(::getpid()) + ".csv";
  keras::CSVLogger logger(path);
  model.fit(x, y, options(2, {logger}));
  keras::CSVLogger more(path, {.append = true});
  model.fit(x, y, options(1, {more}));
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "epoch,loss");
  EXPECT_TRUE(lines[1].starts_with("0,"));
  EXPECT_TRUE(lines[2].starts_with("1,"));
  EXPECT_TRUE(lines[3].starts_with("0,"));
  std::remove(path.c_str());
  EXPECT_CONTAINS(error_of([&] { model.fit(x, y, options(1, {keras::CSVLogger("/no/such/folder/x.csv")})); }),
                  "CSVLogger: cannot write '/no/such/folder/x.csv'");
}

TEST_F(Callbacks, StopWhenTheLossIsNoNumber) {
  Tensor bad = where(arange(20) < 8, NAN, ones({20}));
  keras::FitOptions one = options(3, {keras::TerminateOnNaN()});
  one.shuffle = false;
  keras::History history = model.fit(x * expand_dims(bad, -1), y, one);
  EXPECT_EQ(history.epochs.size(), 1u);
  EXPECT_TRUE(std::isnan(history["loss"][0]));
}

TEST_F(Callbacks, ControlCStopsAfterTheBatchAndKeepsTheModel) {
  std::signal(SIGINT, SIG_DFL);  // programs that a shell starts in the background ignore it, and fit() leaves it so
  std::int64_t batches = 0;
  keras::Callback interrupts = keras::LambdaCallback({.on_train_batch_end = [&](std::int64_t, const keras::BatchLogs&) {
    if (++batches == 4) std::raise(SIGINT);
  }});
  keras::History history = model.fit(x, y, options(10, {interrupts}));
  EXPECT_EQ(batches, 4);
  EXPECT_EQ(history.epochs.size(), 2u);
  // And again, as if nothing had been.
  history = model.fit(x, y, options(2, {}));
  EXPECT_EQ(history.epochs.size(), 2u);
}

TEST_F(Callbacks, WeightsAreTakenAndGiven) {
  std::vector<Tensor> before = model.get_weights();
  model.fit(x, y, options(1, {}));
  EXPECT_NE(model.get_weights()[0].to_vector<float>(), before[0].to_vector<float>());
  model.set_weights(before);
  EXPECT_EQ(model.get_weights()[0].to_vector<float>(), before[0].to_vector<float>());
  EXPECT_CONTAINS(error_of([&] { model.set_weights({before[0]}); }), "set_weights: 1 tensors for the 2 weights of");
  EXPECT_CONTAINS(error_of([&] {
                    model.set_weights({before[1], before[0]});
                  }),
                  "set_weights: f32[1] for 'sequential/dense/kernel' of f32[3,1]");
}

TEST_F(Callbacks, SayWhatIsMissing) {
  EXPECT_CONTAINS(error_of([&] { model.fit(x, y, options(1, {keras::Callback()})); }), "a callback is undefined");
  testing::internal::CaptureStderr();
  model.fit(x, y, options(2, {keras::EarlyStopping()}));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(text,
                  "EarlyStopping: there is no 'val_loss' to monitor; there is loss; fit() without validation data");
  EXPECT_EQ(text.find("EarlyStopping", text.find("EarlyStopping") + 1), std::string::npos) << "told once";
}

}  // namespace
}  // namespace stet
