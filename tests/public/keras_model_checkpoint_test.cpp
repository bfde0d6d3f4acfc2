// ModelCheckpoint against what Keras's saves and says, and what the files hold.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "expect_error.h"
#include "resumed.h"

namespace stet {
namespace {

using resumed::Folder;

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) out.push_back(field);
  return out;
}

keras::ModelCheckpointOptions options_of(const std::vector<std::string>& fields) {
  keras::ModelCheckpointOptions options;
  for (std::size_t i = 3; i < fields.size(); ++i) {
    const std::string name = fields[i].substr(0, fields[i].find('=')), value = fields[i].substr(name.size() + 1);
    if (name == "save_best_only")
      options.save_best_only = value == "True";
    else if (name == "save_weights_only")
      options.save_weights_only = value == "True";
    else if (name == "verbose")
      options.verbose = std::atoi(value.c_str());
    else if (name == "mode")
      options.mode = value;
    else if (name == "monitor")
      options.monitor = value;
    else if (name == "save_freq")
      options.save_freq = std::atoi(value.c_str());
    else if (name == "initial_value_threshold")
      options.initial_value_threshold = std::atof(value.c_str());
    else
      ADD_FAILURE() << name;
  }
  return options;
}

keras::Model small_model() {
  keras::clear_session();  // names are in files
  keras::Sequential model{keras::Input({2}), keras::Dense(1)};
  model.compile({.optimizer = keras::SGD(0.1), .loss = "mse"});
  return model;
}

TEST(ModelCheckpoint, SavesAndSaysWhatKerasDoes) {
  std::ifstream file("tests/oracle/keras/model_checkpoint.txt");
  ASSERT_TRUE(file);
  const keras::Model model = small_model();
  std::optional<Folder> folder;
  keras::Callback callback;
  std::vector<std::string> said, saved;
  int cases = 0, epoch = 0;
  std::string place;
  auto none_left = [&] {
    EXPECT_EQ(said, std::vector<std::string>()) << place;
    EXPECT_EQ(saved, std::vector<std::string>()) << place;
  };
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields[0] == "says" || fields[0] == "saves") {
      std::vector<std::string>& all = fields[0] == "says" ? said : saved;
      ASSERT_FALSE(all.empty()) << place << ": " << line;
      EXPECT_EQ(all.front(), fields[1]) << place;
      all.erase(all.begin());
      continue;
    }
    none_left();
    place = line;
    if (fields[0] == "case") {
      ++cases;
      epoch = 0;
      folder.emplace();
      callback = keras::ModelCheckpoint(*folder / fields[2], options_of(fields));
      callback.callback_body({}).set_model(model);
      callback.callback_body({}).on_train_begin();
      continue;
    }
    keras::CustomCallback& body = callback.callback_body({});
    for (const std::string& name : resumed::names_in(folder->path())) std::filesystem::remove(*folder / name);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    keras::EpochLogs logs{{"loss", 1.0}, {"val_loss", std::atof(fields[2].c_str())}};
    if (fields[0] == "epoch") {
      body.on_epoch_end(std::atoi(fields[1].c_str()), logs);
      epoch = std::atoi(fields[1].c_str()) + 1;
    } else {
      if (fields[1] == "0") body.on_epoch_begin(epoch, logs);
      body.on_train_batch_end(std::atoi(fields[1].c_str()), {{"loss", tensor(std::atof(fields[2].c_str()))}});
    }
    ::testing::internal::GetCapturedStderr();
    std::istringstream lines(::testing::internal::GetCapturedStdout());
    said.clear();
    for (std::string one; std::getline(lines, one);) {
      if (const std::size_t at = one.find(folder->path()); at != std::string::npos)
        one.erase(at, folder->path().size() + 1);
      if (!one.empty()) said.push_back(one);
    }
    saved = resumed::names_in(folder->path());
  }
  none_left();
  EXPECT_EQ(cases, 8);
}

TEST(ModelCheckpoint, FilesHoldTheModel) {
  Folder folder;
  random::seed(1);
  keras::Model model = small_model();
  const Tensor x = random::normal({20, 2}), y = sum(x, {1}, {.keepdims = true});
  keras::ModelCheckpoint best(folder / "a/b/best.keras", {.save_best_only = true});
  EXPECT_EQ(best.best(), std::nullopt);
  const keras::History history = model.fit(
      x, y,
      {.batch_size = 5,
       .epochs = 3,
       .verbose = 0,
       .callbacks = {best, keras::ModelCheckpoint(folder / "{epoch:02d}.weights.h5", {.save_weights_only = true}),
                     keras::ModelCheckpoint(folder / "{epoch:02d}-{batch}-{loss:.3f}.safetensors",
                                            {.save_weights_only = true, .save_freq = 4})},
       .validation_data = {x, y}});
  EXPECT_EQ(best.best(), history["val_loss"].back());
  const std::vector<Tensor> weights = model.get_weights();
  auto expect_weights = [&](const keras::Model& other) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_EQ(other.get_weights()[i].to_vector<float>(), weights[i].to_vector<float>());
  };
  expect_weights(keras::load_model(folder / "a/b/best.keras"));
  keras::Model other = small_model();
  other.load_weights(folder / "03.weights.h5");
  expect_weights(other);
}

TEST(ModelCheckpoint, SaysWhatIsWrong) {
  auto error = [](const std::string& path, keras::ModelCheckpointOptions options = {}) {
    return error_of([&] { keras::ModelCheckpoint(path, options); });
  };
  EXPECT_CONTAINS(error("m"), "ModelCheckpoint: a model in 'm'");
  EXPECT_CONTAINS(error("m"), "fix: the path of a model ends with \".keras\"");
  EXPECT_CONTAINS(error("m.keras", {.save_weights_only = true}),
                  "fix: the path of weights ends with \".weights.h5\" or \".safetensors\"");
  EXPECT_CONTAINS(error("{epoch.keras"), "ModelCheckpoint: '{epoch.keras': the { at position 0 is not closed");
  EXPECT_CONTAINS(error("m.keras", {.mode = "up"}), "ModelCheckpoint: mode is \"up\"");
  EXPECT_CONTAINS(error("m.keras", {.save_freq = -3}), "ModelCheckpoint: save_freq is -3");
  Folder folder;
  const Tensor x = random::normal({4, 2});
  auto fit = [&](keras::Callback callback) {
    return error_of(
        [&] { small_model().fit(x, sum(x, {1}, {.keepdims = true}), {.verbose = 0, .callbacks = {callback}}); });
  };
  EXPECT_CONTAINS(fit(keras::ModelCheckpoint(folder / "{val_loss:.2f}.keras")), "there is no 'val_loss'\n  at ");
  EXPECT_CONTAINS(fit(keras::ModelCheckpoint("/proc/none/m.keras")), "/proc/none/m.keras");
  // What is not there to be compared is told once, and all models are saved, as Keras does.
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(fit(keras::ModelCheckpoint(folder / "{epoch}.keras", {.save_best_only = true})), "no error");
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(),
                  "stet: ModelCheckpoint: there is no 'val_loss' to monitor; there is loss");
  EXPECT_EQ(resumed::names_in(folder.path()), std::vector<std::string>{"1.keras"});
}

/// With a BackupAndRestore: the same files as without being killed.
TEST(ModelCheckpoint, GoesOn) {
  Folder folder;
  auto train = [&](const std::string& name) {
    return [&folder, name](std::vector<keras::Callback> callbacks) {
      random::seed(3);
      keras::Model model = small_model();
      const Tensor x = random::stateless_normal({20, 2}, {1, 1}), y = sum(x, {1}, {.keepdims = true});
      keras::ModelCheckpoint best(folder / (name + "/best{epoch}-{val_loss:.4f}.safetensors"),
                                  {.save_best_only = true, .save_weights_only = true});
      keras::ModelCheckpoint often(folder / (name + "/{epoch}-{batch}.safetensors"),
                                   {.save_weights_only = true, .save_freq = 3});
      callbacks.insert(callbacks.begin(), {best, often});
      const keras::History history = model.fit(
          x, y, {.batch_size = 5, .epochs = 4, .verbose = 0, .callbacks = callbacks, .validation_data = {x, y}});
      EXPECT_EQ(best.best(), *std::min_element(history["val_loss"].begin(), history["val_loss"].end()));
      return resumed::result_of(model, history);
    };
  };
  const resumed::Result whole = train("whole")({});
  int runs = 0;
  resumed::expect_equal(resumed::killed_and_resumed(train("killed"), folder / "backup", {.save_freq = 1},
                                                    [&]() -> std::int64_t { return runs++ < 5 ? 3 : 0; }),
                        whole);
  const std::vector<std::string> names = resumed::names_in(folder / "whole");
  EXPECT_GT(names.size(), 5U);
  EXPECT_EQ(resumed::names_in(folder / "killed"), names);
  for (const std::string& name : names)
    EXPECT_TRUE(resumed::bytes_of(folder / ("killed/" + name)) == resumed::bytes_of(folder / ("whole/" + name)))
        << name;
}

}  // namespace
}  // namespace stet
