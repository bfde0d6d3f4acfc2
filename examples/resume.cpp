// A training that survives kill -9: start it, kill it, start it again, and it ends with the numbers that it would have
// ended with.
//
//   resume train FOLDER     trains, and keeps checkpoints in FOLDER. Kill it as often as you like.
//   resume                  does that by itself: kills it five times, and compares with a training left in peace.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <stet/stet.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

using namespace stet;

namespace {

/// Points on two spirals, and which of the two.
std::pair<Tensor, Tensor> spirals(std::int64_t count) {
  Tensor label = random::randint({count}, 0, 2);
  Tensor along = random::uniform({count, 1}, {.minval = 0.5, .maxval = 3});
  Tensor angle = along * 3 + 3.14159f * reshape(cast(label, f32), {count, 1});
  return {concat({along * cos(angle), along * sin(angle)}, 1) + random::normal({count, 2}, {.stddev = 0.1}), label};
}

/// All bits of all weights, in one number.
std::string fingerprint(const keras::Model& model) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const Tensor& weight : model.get_weights())
    for (const float value : weight.to_vector<float>()) {
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3;
    }
  std::ostringstream out;
  out << std::hex << std::setfill('0') << std::setw(16) << hash;
  return out.str();
}

void train(const std::string& folder) {
  random::seed(5);
  auto [points, labels] = spirals(2000);
  // Shuffled, changed at random, made ahead of time: where all of it stands is in the checkpoint.
  auto batches = data::from_tensor_slices(points, labels)
                     .shuffle(500)
                     .map([](Tensor point, Tensor label) {
                       return std::pair(point + random::normal({2}, {.stddev = 0.05}), label);
                     })
                     .batch(50)
                     .prefetch(2);
  keras::Sequential model{keras::Input({2}), keras::Dense(64, {.activation = "relu"}), keras::Dropout(0.1),
                          keras::Dense(64, {.activation = "relu"}), keras::Dense(2)};
  model.compile({.optimizer = keras::Adam(3e-3),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  keras::BackupAndRestore backup(folder + "/backup", {.save_freq = keras::EverySeconds{0.05}});
  // So that there is time to kill it.
  keras::LambdaCallback slowly({.on_train_batch_end = [](std::int64_t, const keras::BatchLogs&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }});
  keras::History history = model.fit(batches, {.epochs = 20, .verbose = 0, .callbacks = {slowly, backup}});
  std::ofstream(folder + "/result") << std::fixed << std::setprecision(4) << "accuracy " << history["accuracy"].back()
                                    << " after " << history.epochs.size() << " epochs, weights " << fingerprint(model)
                                    << "\n";
}

/// The training as a process of its own; what it says goes to a file.
pid_t start(const std::string& folder) {
  pid_t child = fork();
  if (child == 0) {
    dup2(open((folder + "/said").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666), STDERR_FILENO);
    execl("/proc/self/exe", "resume", "train", folder.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  return child;
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Of those that are complete: ckpt-1, ckpt-2, …
std::string newest_checkpoint(const std::string& folder) {
  std::string newest;
  std::error_code none_yet;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/backup", none_yet))
    if (entry.path().extension() != ".part") newest = std::max(newest, entry.path().filename().string());
  return newest;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "train") {
    train(argv[2]);
    std::cout << read(std::string(argv[2]) + "/result");
    return 0;
  }
  char peace[] = "/tmp/resume-XXXXXX", trouble[] = "/tmp/resume-XXXXXX";
  if (!mkdtemp(peace) || !mkdtemp(trouble)) return 1;

  std::cout << "left in peace:      " << std::flush;
  int status = 0;
  waitpid(start(peace), &status, 0);

  for (int kills = 0; kills < 5; ++kills) {
    const std::string before = newest_checkpoint(trouble);
    pid_t child = start(trouble);
    while (newest_checkpoint(trouble) == before && waitpid(child, &status, WNOHANG) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(17 * kills));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  std::cout << "killed five times:  " << std::flush;
  waitpid(start(trouble), &status, 0);
  const std::string one = read(std::string(peace) + "/result"), other = read(std::string(trouble) + "/result");
  std::cout << (one == other && !one.empty() ? "the same, to the last bit" : "NOT the same") << "\n";
  std::cout << read(std::string(trouble) + "/said");
  for (const char* folder : {peace, trouble}) std::filesystem::remove_all(folder);
  return one == other && !one.empty() ? 0 : 1;
}
