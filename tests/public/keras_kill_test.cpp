// kill -9 at random moments of a training that writes checkpoints all the time: every restart goes on, and the training
// ends as one that nobody disturbed. STET_KILLS=200 in the environment kills that often.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "resumed.h"

namespace stet {
namespace {

/// Tells that training has begun, and that it has made a step; takes its time.
struct Slow : keras::CustomCallback {
  explicit Slow(std::string path) : folder(std::move(path)) {}
  std::string folder;
  bool stepped = false;
  void on_train_begin() override { std::ofstream(folder + "/begun") << "begun"; }
  void on_train_batch_end(std::int64_t, const keras::BatchLogs&) override {
    if (!std::exchange(stepped, true)) std::ofstream(folder + "/stepped") << "stepped";
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
};

/// The training, in a process of its own. Writes what it came to at the end.
void train(const std::string& folder) {
  random::seed(21);
  keras::Sequential model{keras::Input({6}),   keras::Dense(16, {.activation = "relu"}), keras::BatchNormalization(),
                          keras::Dropout(0.2), keras::GaussianNoise(0.05, {.seed = 4}),  keras::Dense(2)};
  model.compile({.optimizer = keras::Adam(1e-2), .loss = "mse", .metrics = {"mae"}});
  const Tensor x = random::stateless_normal({160, 6}, {1, 1}), y = random::stateless_normal({160, 2}, {2, 2});
  auto batches = data::from_tensor_slices(x, y)
                     .shuffle(50)
                     .map([](Tensor a, Tensor b) {
                       return std::pair(a * random::uniform({6}, {.minval = 0.9, .maxval = 1.1}), b);
                     })
                     .batch(8)
                     .prefetch(2);
  const keras::History history = model.fit(
      batches, {.epochs = 15,
                .verbose = 0,
                .callbacks = {keras::EarlyStopping({.monitor = "loss", .patience = 100, .restore_best_weights = true}),
                              Slow(folder),
                              keras::BackupAndRestore(folder + "/backup", {.save_freq = keras::EverySeconds{0.05}})},
                .validation_data = {x, y}});
  std::ofstream result(folder + "/result.part");
  for (const auto& [name, hash] : resumed::result_of(model, history)) result << name << "\t" << hash << "\n";
  result.close();
  std::filesystem::rename(folder + "/result.part", folder + "/result");
}

constexpr const char* folder_variable = "STET_KILL_TEST_FOLDER";

/// Not a test: what the processes that are killed run.
TEST(Kill, DISABLED_Training) {
  const char* folder = std::getenv(folder_variable);
  ASSERT_NE(folder, nullptr) << "this is run by Kill.AtAnyMoment";
  train(folder);
}

pid_t start(const std::string& folder) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setenv(folder_variable, folder.c_str(), 1);
  for (const char* shard : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE"}) ::unsetenv(shard);
  const int told = ::open((folder + "/told").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  ::dup2(told, STDOUT_FILENO);
  ::dup2(told, STDERR_FILENO);
  ::execl("/proc/self/exe", "training", "--gtest_also_run_disabled_tests", "--gtest_filter=Kill.DISABLED_Training",
          static_cast<char*>(nullptr));
  ::_exit(127);
}

/// Whether it has ended by itself within this time; otherwise it is killed.
bool ends_within(pid_t child, std::chrono::microseconds time, int& status) {
  const auto until = std::chrono::steady_clock::now() + time;
  do {
    if (::waitpid(child, &status, WNOHANG) == child) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  } while (std::chrono::steady_clock::now() < until);
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return !WIFSIGNALED(status);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Kill, AtAnyMoment) {
  resumed::Folder whole;
  int status = 0;
  ASSERT_TRUE(ends_within(start(whole.path()), std::chrono::minutes(5), status));
  ASSERT_EQ(status, 0) << text_of(whole / "told");
  const std::string wanted = text_of(whole / "result");
  ASSERT_NE(wanted, "");

  const char* asked = std::getenv("STET_KILLS");
  const int wanted_kills = asked ? std::atoi(asked) : 20;
  std::mt19937 random(12345);
  int kills = 0, trainings = 0, resumes = 0;
  while (kills < wanted_kills) {
    resumed::Folder folder;
    for (;;) {
      for (const char* name : {"begun", "stepped"}) std::filesystem::remove(folder / name);
      const pid_t child = start(folder.path());
      // Before it has begun, while it begins and goes on, or, mostly, while it trains and writes.
      const unsigned kind = random() % 8;
      if (kind > 0)
        for (int wait = 0; wait < 100'000 && !std::filesystem::exists(folder / (kind < 3 ? "begun" : "stepped"));
             ++wait)
          std::this_thread::sleep_for(std::chrono::microseconds(300));
      const bool last = kills >= wanted_kills;
      const auto time =
          last ? std::chrono::microseconds(std::chrono::minutes(5)) : std::chrono::microseconds(random() % 250'000);
      if (ends_within(child, time, status)) break;
      ++kills;
    }
    ASSERT_EQ(status, 0) << text_of(folder / "told");
    EXPECT_EQ(text_of(folder / "result"), wanted) << text_of(folder / "told");
    EXPECT_FALSE(std::filesystem::exists(folder / "backup")) << "all of it is taken away at the end";
    ++trainings;
    const std::string told = text_of(folder / "told");
    for (std::size_t at = 0; (at = told.find("stet: fit goes on", at)) != std::string::npos; ++at) ++resumes;
  }
  EXPECT_GT(resumes, wanted_kills / 4);
  RecordProperty("kills", kills);
  std::printf("%d kills, %d times it went on, %d trainings came to the same end\n", kills, resumes, trainings);
}

}  // namespace
}  // namespace stet
