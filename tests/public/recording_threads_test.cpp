// Recordings under threads, as a user makes them; under the thread sanitizer, too.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/public/expect_error.h"

using namespace stet;

namespace {

constexpr int threads = 8;

template <class Body>
void on_threads(const Body& body) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back([&body, t] { body(t); });
  for (std::thread& one : all) one.join();
}

/// "12,345" before the first "calls" of the table's row of a function.
bool has_calls(const std::string& table, const std::string& function, int calls) {
  const std::size_t row = table.find("\n  " + function + " ");
  return row != std::string::npos &&
         table.substr(row, table.find('\n', row + 1) - row).find(" " + std::to_string(calls) + " ") !=
             std::string::npos;
}

TEST(RecordingThreads, AllRecordWhileTheyTraceAndCall) {
  constexpr int calls = 60;
  on_retrace([](const RetraceEvent&) {});
  Function shared = function("shared_by_threads(x, n)", [](Tensor x, int n) { return tanh(x) * n; });
  Profile profile;
  std::atomic<int> wrong = 0;
  on_threads([&](int t) {
    Function own = function("own_of_thread(x)", [](Tensor x) { return sum(x * x); });
    for (int call = 0; call < calls; ++call) {
      ProfileSpan span("turn");
      shared(ones({8 + call % 3}), call % 2);
      const Tensor x = ones({4, t + 1});
      if (own(x).item<float>() != static_cast<float>(4 * (t + 1))) ++wrong;
      static_cast<void>(x + x);
    }
  });
  profile.stop();
  on_retrace({});
  EXPECT_EQ(wrong, 0);
  const std::string table = profile.table();
  EXPECT_TRUE(has_calls(table, "shared_by_threads", threads * calls)) << table;
  EXPECT_TRUE(has_calls(table, "own_of_thread", threads * calls)) << table;
}

TEST(RecordingThreads, ProfilesBeginEndAndAreReadOnAll) {
  Function f = function("profiled_by_threads(x)", [](Tensor x) { return exp(x) + 1; });
  f(ones({16}));
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("stet-recording-threads-" + std::to_string(::getpid()))).string();
  std::filesystem::create_directories(folder);
  std::atomic<int> wrong = 0;
  on_threads([&](int t) {
    for (int round = 0; round < 4; ++round) {
      std::optional<Profile> profile;
      if (t % 2 == 0)
        profile.emplace();
      else
        profile.emplace(folder + "/" + std::to_string(t) + ".stet-profile");
      for (int call = 0; call < 20; ++call) f(ones({16 + t % 2}));
      if (round == t % 4) wrong += profile->table().find("profiled_by_threads") == std::string::npos;
      if (round % 2 == 0) profile->stop();
    }
  });
  EXPECT_EQ(wrong, 0);
  std::filesystem::remove_all(folder);
}

/// A ring that is begun again all the time, and looked at meanwhile.
TEST(RecordingThreads, ALittleRoomForAll) {
  Function f = function("little_room(x)", [](Tensor x) { return x * 2; });
  f(ones({4}));
  Profile profile(ProfileOptions{.max_bytes = 1});
  std::atomic<int> running = threads;
  std::thread reader([&] {
    while (running > 0) static_cast<void>(profile.json());
  });
  on_threads([&](int) {
    const Tensor x = ones({4});
    for (int call = 0; call < 1500; ++call) f(x);
    --running;
  });
  reader.join();
  profile.stop();
  EXPECT_CONTAINS(profile.table(), "The recording had no room for ");
}

TEST(RecordingThreads, TrainingIsRecordedWithItsWorkers) {
  Profile profile;
  on_threads([](int t) {
    keras::Sequential model{keras::Input({4}), keras::Dense(8, {.activation = "relu"}), keras::Dense(1)};
    model.compile({.optimizer = keras::SGD(0.01), .loss = "mse"});
    auto batches = data::from_tensor_slices(ones({24, 4}), ones({24, 1}))
                       .map([](Tensor a, Tensor b) { return std::pair(a * 2, b); }, {.num_parallel_calls = 2})
                       .batch(4 + t)
                       .prefetch(2);
    model.fit(batches, {.epochs = 2, .verbose = 0});
  });
  EXPECT_CONTAINS(profile.table(), "train_step");
}

}  // namespace
