// What keras::TensorBoard writes while a model is trained.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "event_files.h"
#include "profile_files.h"
#include "resumed.h"
#include "stet/stet.h"

namespace stet {
namespace {

using event_files::EventFile;
using event_files::Value;
using Tags = std::set<std::string>;

class TensorBoardTest : public FilesTest {
 protected:
  void SetUp() override {
    random::seed(5);
    keras::clear_session();
    model = keras::Sequential{keras::Input({3}), keras::Dense(4, {.activation = "relu"}), keras::Dense(1)};
    compile(model);
    x = random::normal({20, 3});
    y = sum(x, {1}, {.keepdims = true});
  }
  static void compile(const keras::Model& model, bool eagerly = false, std::int64_t at_once = 1) {
    model.compile({.optimizer = keras::SGD(0.05),
                   .loss = "mse",
                   .metrics = {"mae"},
                   .run_eagerly = eagerly,
                   .steps_per_execution = at_once});
  }
  /// Three batches an epoch.
  keras::History fit(const keras::Model& trained, keras::TensorBoardOptions options, int epochs = 2,
                     std::vector<keras::Callback> before = {}, bool validated = true) const {
    before.push_back(keras::TensorBoard(folder, std::move(options)));
    return trained.fit(x, y,
                       {.batch_size = 8,
                        .epochs = epochs,
                        .verbose = 0,
                        .callbacks = before,
                        .validation_data = validated ? keras::Data(x, y) : keras::Data()});
  }
  EventFile train() const { return event_files::read_folder(folder + "/train"); }
  EventFile validation() const { return event_files::read_folder(folder + "/validation"); }

  std::vector<std::string> profiles() const { return profile_files::files_below(folder); }
  static std::vector<double> steps_in(const profile_files::Space& space) {
    std::vector<double> out;
    for (const profile_files::Event& step : space.named("step")) out.push_back(step.number("step_num"));
    return out;
  }

  keras::Model model;
  Tensor x, y;
  std::string told;
};

std::vector<std::int64_t> steps_of(const std::vector<Value>& values) {
  std::vector<std::int64_t> out;
  for (const Value& value : values) out.push_back(value.step);
  return out;
}
void expect_values(const std::vector<Value>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i].number(), static_cast<float>(expected[i]));
}
using Steps = std::vector<std::int64_t>;

TEST_F(TensorBoardTest, EpochsAreWrittenByKerasNames) {
  const keras::History history = fit(model, {});
  EXPECT_EQ(train().tags(), (Tags{"keras", "epoch_loss", "epoch_mae", "epoch_learning_rate"}));
  EXPECT_EQ(validation().tags(),
            (Tags{"epoch_loss", "epoch_mae", "evaluation_loss_vs_iterations", "evaluation_mae_vs_iterations"}));
  expect_values(train().of("epoch_loss"), history["loss"]);
  expect_values(train().of("epoch_mae"), history["mae"]);
  expect_values(train().of("epoch_learning_rate"), {0.05, 0.05});
  expect_values(validation().of("epoch_loss"), history["val_loss"]);
  expect_values(validation().of("evaluation_mae_vs_iterations"), history["val_mae"]);
  EXPECT_EQ(steps_of(train().of("epoch_loss")), (Steps{0, 1}));
  EXPECT_EQ(steps_of(validation().of("epoch_loss")), (Steps{0, 1}));
  EXPECT_EQ(steps_of(validation().of("evaluation_loss_vs_iterations")), (Steps{3, 6}));
  EXPECT_EQ(model.train_function().trace_count(), 1);
}

TEST_F(TensorBoardTest, WithoutValidationThereIsNoFolderOfIt) {
  fit(model, {.write_graph = false}, 1, {}, false);
  EXPECT_EQ(train().tags(), (Tags{"epoch_loss", "epoch_mae", "epoch_learning_rate"}));
  EXPECT_TRUE(train().graphs.empty());
  EXPECT_FALSE(std::filesystem::exists(folder + "/validation"));
}

TEST_F(TensorBoardTest, BatchesAreCountedThroughEpochs) {
  fit(model, {.update_freq = "batch"}, 2);
  EXPECT_EQ(steps_of(train().of("batch_loss")), (Steps{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(steps_of(train().of("batch_mae")), (Steps{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(steps_of(train().of("epoch_loss")), (Steps{0, 1}));
}

TEST_F(TensorBoardTest, EverySoManyBatches) {
  fit(model, {.write_steps_per_second = true, .update_freq = 4}, 3);
  EXPECT_EQ(steps_of(train().of("batch_loss")), (Steps{4, 8}));
  EXPECT_EQ(steps_of(train().of("batch_steps_per_second")), (Steps{4, 8}));
  EXPECT_EQ(steps_of(train().of("epoch_steps_per_second")), (Steps{0, 1, 2}));
  for (const char* tag : {"batch_steps_per_second", "epoch_steps_per_second"})
    for (const Value& value : train().of(tag)) EXPECT_GT(value.number(), 0) << tag;
}

TEST_F(TensorBoardTest, SeveralBatchesAtOnceAreAsMany) {
  compile(model, false, 2);
  fit(model, {.update_freq = 3}, 3);  // of 3 batches: told after 2 and 3
  EXPECT_EQ(steps_of(train().of("batch_loss")), (Steps{3, 6, 9}));
}

TEST_F(TensorBoardTest, WeightsAsHistogramsAndImages) {
  fit(model, {.histogram_freq = 2, .write_images = true}, 4);
  const EventFile read = train();
  for (const char* name : {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"}) {
    EXPECT_EQ(steps_of(read.of(std::string(name) + "/histogram")), (Steps{0, 2})) << name;
    EXPECT_EQ(steps_of(read.of(std::string(name) + "/image")), (Steps{0, 2})) << name;
  }
  const std::vector<double> buckets = event_files::numbers<double>(read.of("dense/kernel/histogram").at(1).elements);
  double count = 0;
  for (std::size_t i = 2; i < buckets.size(); i += 3) count += buckets[i];
  EXPECT_EQ(count, 12);
  // The kernel [3,4] as it stands, from its smallest value to its largest.
  const Value image = read.of("dense/kernel/image").at(0);
  EXPECT_EQ(image.strings.at(0), "4");
  EXPECT_EQ(image.strings.at(1), "3");
  const Tensor pixels = data::decode_png(image.strings.at(2));
  EXPECT_EQ(min(pixels).item<int>(), 0);
  EXPECT_EQ(max(pixels).item<int>(), 255);
}

TEST_F(TensorBoardTest, PicturesOfWeightsOfEveryRank) {
  keras::Sequential images{
      keras::Input({6, 6, 2}), keras::Conv2D(3, {3, 3}), keras::BatchNormalization(),
      keras::Reshape({4, 12}), keras::LSTM(2),           keras::Dense(1, {.kernel_initializer = "zeros"})};
  compile(images);
  x = random::normal({20, 6, 6, 2});
  fit(images, {.histogram_freq = 1, .write_images = true}, 1, {}, false);
  const EventFile read = train();
  auto size_of = [&](const std::string& tag) {
    const Value image = read.of(tag + "/image").at(0);
    return image.strings.at(0) + "x" + image.strings.at(1) + "x" + std::to_string(image.strings.size() - 2);
  };
  EXPECT_EQ(size_of("conv2d/kernel"), "3x3x3");  // three of six filters
  EXPECT_EQ(size_of("conv2d/bias"), "3x1x1");
  EXPECT_EQ(size_of("batch_normalization/moving_variance"), "3x1x1");
  EXPECT_EQ(size_of("lstm/lstm_cell/kernel"), "12x8x1");
  EXPECT_EQ(size_of("dense_2/kernel"), "2x1x1");
  std::size_t written = 0;
  for (const std::string& tag : read.tags()) written += tag.ends_with("/image");
  EXPECT_EQ(written, images.weights().size());
}

TEST_F(TensorBoardTest, GraphsHaveLayersAsScopes) {
  fit(model, {}, 1);
  const EventFile read = train();
  const Value layers = read.of("keras").at(0);
  EXPECT_EQ(layers.plugin, "graph_keras_model");
  EXPECT_EQ(layers.content, "1");
  EXPECT_EQ(layers.step, 0);
  EXPECT_CONTAINS(layers.strings.at(0), "\"class_name\": \"Sequential\"");
  EXPECT_CONTAINS(layers.strings.at(0), "\"dense_1\"");
  ASSERT_EQ(read.graphs.size(), 1u);
  const auto nodes = event_files::nodes_of(read.graphs[0]);
  EXPECT_TRUE(nodes.contains("sequential/dense/matmul"));
  EXPECT_TRUE(nodes.contains("sequential/dense/relu"));
  EXPECT_TRUE(nodes.contains("sequential/dense_1/matmul"));
  // Weights are in their layers, also those that gradients read.
  EXPECT_TRUE(nodes.contains("sequential/dense/kernel"));
  EXPECT_TRUE(nodes.contains("sequential/dense_1/kernel"));
  for (const char* part :
       {"compute_loss/loss/", "compute_metrics/mae/", "gradients/sequential/dense/", "sgd/sequential/dense/kernel/"})
    EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(), [&](const auto& one) { return one.first.starts_with(part); }))
        << part;
}

TEST_F(TensorBoardTest, ModelsOfOnesOwn) {
  struct Scale : keras::CustomLayer {
    Tensor call(const Tensor& x, const keras::Context&) override { return x * 2; }
  };
  struct Own : keras::CustomModel {
    keras::Dense inner{1};
    keras::Layer scale{Scale{}};
    STET_MEMBERS(inner, scale)
    Tensor call(const Tensor& x, const keras::Context&) override { return scale(inner(x)); }
  };
  const keras::Model own = keras::make<Own>();
  compile(own);
  fit(own, {}, 1);
  EXPECT_TRUE(train().of("keras").empty());
  const auto nodes = event_files::nodes_of(train().graphs.at(0));
  EXPECT_TRUE(nodes.contains("own/inner/matmul")) << ::testing::PrintToString(nodes.begin()->first);
  EXPECT_TRUE(nodes.contains("own/scale/multiply"));

  // A layer that files cannot have is told of, and all else is written.
  folder += "/second";
  const keras::Sequential with_scale{keras::Input({3}), keras::Dense(1), Scale{}};
  compile(with_scale);
  testing::internal::CaptureStderr();
  fit(with_scale, {}, 1);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(told, "stet: the graph of layers is left out: TensorBoard: ");
  EXPECT_TRUE(train().of("keras").empty());
  EXPECT_EQ(train().graphs.size(), 1u);
}

TEST_F(TensorBoardTest, EagerStepsHaveNoGraph) {
  compile(model, true);
  fit(model, {}, 1);
  EXPECT_EQ(train().of("keras").size(), 1u);
  EXPECT_TRUE(train().graphs.empty());
}

TEST_F(TensorBoardTest, EvaluateWritesByStepsOfTheOptimizer) {
  const keras::TensorBoard callback(folder);
  model.fit(x, y, {.batch_size = 8, .verbose = 0});
  const keras::Results results = model.evaluate(x, y, {.callbacks = {callback}});
  model.evaluate(x, y, {.callbacks = {callback}});
  EXPECT_EQ(steps_of(validation().of("evaluation_loss_vs_iterations")), (Steps{3, 3}));
  EXPECT_EQ(validation().of("evaluation_loss_vs_iterations").at(0).number(), static_cast<float>(results.at("loss")));
  EXPECT_FALSE(std::filesystem::exists(folder + "/train"));
}

TEST_F(TensorBoardTest, WhatOtherCallbacksMeasureAndChange) {
  const keras::Callback more = keras::LambdaCallback({.on_epoch_end = [](int epoch, keras::EpochLogs& logs) {
    logs["extra"] = epoch == 0 ? NAN : 7;
    logs["val_extra"] = 8;
  }});
  fit(model, {}, 2,
      {more, keras::LearningRateScheduler([](int epoch, double rate) { return epoch == 1 ? rate / 2 : rate; })});
  EXPECT_TRUE(std::isnan(train().of("epoch_extra").at(0).number()));
  EXPECT_EQ(train().of("epoch_extra").at(1).number(), 7);
  EXPECT_EQ(validation().of("epoch_extra").at(0).number(), 8);
  expect_values(train().of("epoch_learning_rate"), {0.05, 0.025});
}

TEST_F(TensorBoardTest, AnotherFitIsAnotherFileOfTheRun) {
  const keras::TensorBoard callback(folder, {.update_freq = 1});
  for (int i = 0; i < 2; ++i) model.fit(x, y, {.batch_size = 8, .epochs = 1, .verbose = 0, .callbacks = {callback}});
  const std::vector<std::string> files = event_files::files_in(folder + "/train");
  ASSERT_EQ(files.size(), 2u);
  for (const std::string& file : files) EXPECT_EQ(steps_of(event_files::read(file).of("batch_loss")), (Steps{1, 2, 3}));
}

TEST_F(TensorBoardTest, ATrainingThatGoesOnCountsOn) {
  const resumed::Folder backup;
  auto run = [&](std::int64_t kill_at) {
    keras::clear_session();
    const keras::Sequential again{keras::Input({3}), keras::Dense(1)};
    compile(again);
    again.fit(x, y,
              {.batch_size = 8,
               .epochs = 2,
               .verbose = 0,
               .callbacks = {keras::TensorBoard(folder, {.update_freq = 1}),
                             keras::BackupAndRestore(backup.path(), {.save_freq = 1}), resumed::KillAt(kill_at)}});
  };
  EXPECT_THROW(run(5), resumed::Killed);  // in the middle of the second epoch
  testing::internal::CaptureStderr();
  run(0);
  testing::internal::GetCapturedStderr();
  const std::vector<std::string> files = event_files::files_in(folder + "/train");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(steps_of(event_files::read(files[0]).of("batch_loss")), (Steps{1, 2, 3, 4, 5}));
  EXPECT_EQ(steps_of(event_files::read(files[1]).of("batch_loss")), (Steps{5, 6}));  // the checkpoint was of batch 4
  EXPECT_EQ(steps_of(event_files::read(files[1]).of("epoch_loss")), Steps{1});
}

TEST_F(TensorBoardTest, WrongOptionsAreRefused) {
  auto refused = [](keras::TensorBoardOptions options) {
    return error_of([&] { keras::TensorBoard("logs", std::move(options)); });
  };
  EXPECT_CONTAINS(refused({.histogram_freq = -1}), "TensorBoard: histogram_freq = -1\n");
  EXPECT_CONTAINS(refused({.histogram_freq = -1}), "fix: it is a number of epochs, or 0 for none");
  EXPECT_CONTAINS(refused({.update_freq = "step"}), "TensorBoard: update_freq is \"step\"\n");
  EXPECT_CONTAINS(refused({.update_freq = 0}), "TensorBoard: update_freq is 0\n");
  EXPECT_CONTAINS(refused({.update_freq = -3}), "fix: it is \"epoch\", \"batch\" or a number of batches from 1 on");
  EXPECT_CONTAINS(refused({.embeddings_freq = 1}), "TensorBoard: embeddings_freq = 1\n");
  EXPECT_CONTAINS(refused({.embeddings_freq = 1}), "fix: embeddings are not written for TensorBoard: leave it 0");
}

TEST_F(TensorBoardTest, ProfilesOfTheseBatchesOnly) {
  fit(model, {.profile_batch = {2, 4}}, 3);
  const std::vector<std::string> files = profiles();
  ASSERT_EQ(files.size(), 1u);
  // In the run of training, in a folder with the time for a name.
  const std::filesystem::path file = files[0];
  EXPECT_EQ(file.parent_path().parent_path(), folder + "/train/plugins/profile");
  EXPECT_TRUE(std::regex_match(file.parent_path().filename().string(), std::regex("\\d{4}(_\\d\\d){5}"))) << file;
  const profile_files::Space space = profile_files::read(files[0]);
  EXPECT_EQ(space.hosts.at(0) + ".xplane.pb", file.filename());
  EXPECT_EQ(steps_in(space), (std::vector<double>{2, 3, 4}));
  // The third batch ends an epoch, so there is a validation; what it takes is no step.
  std::map<std::string, int> batches;
  for (const profile_files::Event& batch : space.of_kind("batch")) ++batches[batch.name];
  EXPECT_EQ(batches, (std::map<std::string, int>{{"test_step", 3}, {"train_step", 3}}));
  std::set<std::string> scopes;
  for (const profile_files::Event& step : space.of_kind("step")) scopes.insert(step.text("scope"));
  for (const char* scope :
       {"sequential/dense", "sequential/dense_1", "gradients/sequential/dense", "compute_loss/loss"})
    EXPECT_TRUE(scopes.contains(scope)) << scope << ::testing::PrintToString(scopes);
  for (const profile_files::Event& step : space.of_kind("step"))
    EXPECT_EQ(step.text("tf_op").find(step.text("scope")), 0u);
  EXPECT_EQ(train().tags(), (Tags{"keras", "epoch_loss", "epoch_mae", "epoch_learning_rate"}));
}

TEST_F(TensorBoardTest, ProfilesAsKerasTakesThem) {
  auto profiled = [&](keras::ProfileBatches batches, int epochs = 2) {
    std::filesystem::remove_all(folder + "/train");
    testing::internal::CaptureStderr();
    fit(model, {.profile_batch = std::move(batches)}, epochs, {}, false);
    told = testing::internal::GetCapturedStderr();
    const std::vector<std::string> files = profiles();
    return files.empty() ? std::vector<double>{} : steps_in(profile_files::read(files.at(0)));
  };
  using Numbers = std::vector<double>;
  EXPECT_EQ(profiled(0), Numbers{});
  EXPECT_EQ(profiled({0, 0}), Numbers{});
  EXPECT_EQ(profiled(1), Numbers{1});
  EXPECT_EQ(profiled(5), Numbers{5});
  EXPECT_EQ(profiled({3, 3}), Numbers{3});
  EXPECT_EQ(profiled("4"), Numbers{4});
  EXPECT_EQ(profiled("2, 3"), (Numbers{2, 3}));
  EXPECT_EQ(profiled({5, 100}), (Numbers{5, 6})) << "training ends before";
  EXPECT_EQ(told, "");
  EXPECT_EQ(profiled(7), Numbers{});
  EXPECT_EQ(told,
            "stet: TensorBoard: there is no profile: fit() ended after 6 batches, and profile_batch begins at 7\n");
  EXPECT_EQ(profiled(2, 0), Numbers{});
  // Steps that are run together are profiled together.
  compile(model, false, 2);  // an epoch is two batches and one
  EXPECT_EQ(profiled(2), (Numbers{1, 2}));
  EXPECT_EQ(profiled(3), Numbers{3});
  EXPECT_EQ(profiled({3, 4}), (Numbers{3, 4, 5}));
}

TEST_F(TensorBoardTest, ProfilesSayWhatWasTraced) {
  fit(model, {.profile_batch = {1, 3}}, 1, {}, false);
  const profile_files::Space space = profile_files::read(profiles().at(0));
  std::vector<std::string> calls;
  for (const profile_files::Event& call : space.of_kind("call"))
    if (call.name == "train_step") calls.push_back(call.text("tf_function_call"));
  EXPECT_EQ(calls, (std::vector<std::string>{"traced-nonXla", "notTraced-nonXla", "notTraced-nonXla"}));
}

TEST_F(TensorBoardTest, ATrainingThatGoesOnProfilesWhatItHasNotDone) {
  const resumed::Folder backup;
  auto run = [&](std::int64_t kill_at, keras::ProfileBatches batches) {
    keras::clear_session();
    const keras::Sequential again{keras::Input({3}), keras::Dense(1)};
    compile(again);
    again.fit(x, y,
              {.batch_size = 8,
               .epochs = 2,
               .verbose = 0,
               .callbacks = {keras::TensorBoard(folder, {.profile_batch = std::move(batches)}),
                             keras::BackupAndRestore(backup.path(), {.save_freq = 1}), resumed::KillAt(kill_at)}});
  };
  EXPECT_THROW(run(5, {4, 6}), resumed::Killed);
  EXPECT_TRUE(profiles().empty());
  testing::internal::CaptureStderr();
  run(0, {5, 6});
  testing::internal::GetCapturedStderr();
  ASSERT_EQ(profiles().size(), 1u);
  EXPECT_EQ(steps_in(profile_files::read(profiles()[0])), (std::vector<double>{5, 6}));
}

TEST_F(TensorBoardTest, AProfileThatAnExceptionEndedIsNotWritten) {
  const keras::TensorBoard callback(folder, {.profile_batch = {2, 4}});
  auto run = [&](bool fails) {
    const keras::Callback stop = keras::LambdaCallback({.on_train_batch_end = [&](std::int64_t batch, const auto&) {
      if (fails && batch == 2) throw std::runtime_error("enough");
    }});
    model.fit(x, y, {.batch_size = 8, .epochs = 2, .verbose = 0, .callbacks = {callback, stop}});
  };
  EXPECT_THROW(run(true), std::runtime_error);
  EXPECT_TRUE(profiles().empty());
  run(false);
  ASSERT_EQ(profiles().size(), 1u);
  EXPECT_EQ(steps_in(profile_files::read(profiles()[0])), (std::vector<double>{2, 3, 4}));
}

TEST_F(TensorBoardTest, BatchesThatCannotBeProfiled) {
  auto refused = [](keras::ProfileBatches batches) {
    return error_of([&] { keras::TensorBoard("logs", {.profile_batch = std::move(batches)}); });
  };
  EXPECT_CONTAINS(refused(-1), "TensorBoard: profile_batch = -1\n");
  EXPECT_CONTAINS(refused(-1),
                  "fix: it is a batch, counted from 1 through all epochs, two of them from first to last, {10, 20}, or "
                  "0 for none");
  EXPECT_CONTAINS(refused({5, 2}), "TensorBoard: profile_batch = {5, 2}\n");
  EXPECT_CONTAINS(refused({-3, 5}), "TensorBoard: profile_batch = {-3, 5}\n");
  EXPECT_CONTAINS(refused({0, 5}), "TensorBoard: profile_batch = {0, 5}\n");
  for (const char* words : {"", "x", "1,", ",2", "1,2,3", "3-5", "1.5", "20,10", "99999999999999999999"})
    EXPECT_CONTAINS(refused(words), std::string("TensorBoard: profile_batch = \"") + words + "\"\n");
}

TEST_F(TensorBoardTest, AFolderThatCannotBeIsKnownBeforeTheFirstBatch) {
  write("file", "");
  const keras::TensorBoard callback(path("file"));
  const Tensor before = model.weights()[0].variable;
  EXPECT_CONTAINS(error_of([&] { model.fit(x, y, {.verbose = 0, .callbacks = {callback}}); }),
                  "SummaryWriter: '" + path("file") + "/train': the folder cannot be made: Not a directory");
  expect_same(before, model.weights()[0].variable);
}

}  // namespace
}  // namespace stet
