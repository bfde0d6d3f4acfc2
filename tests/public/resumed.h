// A training to interrupt, and what it comes to.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stet/stet.h"

namespace resumed {

/// A folder that is gone afterwards.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/stet-resumed-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

inline std::vector<char> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void put(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// The bits of some numbers, told by a hash: NaN is NaN, and -0 is not 0.
inline std::uint64_t bits(const std::vector<double>& values) {
  std::uint64_t out = 0xcbf29ce484222325;
  for (const double value : values) {
    std::uint64_t word;
    std::memcpy(&word, &value, sizeof word);
    out = (out ^ word) * 0x100000001b3;
    out ^= out >> 29;
  }
  return out;
}

/// What a training has come to, by names.
using Result = std::map<std::string, std::uint64_t>;
inline Result result_of(const stet::keras::Model& model, const stet::keras::History& history) {
  Result out;
  int number = 0;
  for (const stet::Tensor& weight : model.get_weights())
    out["weight " + std::to_string(number++)] = bits(weight.to_vector<double>());
  for (const stet::Variable& variable : model.optimizer().variables())
    out["optimizer " + std::to_string(number++)] = bits(variable.read().to_vector<double>());
  for (const auto& [name, values] : history.values) out["history of " + name] = bits(values);
  out["epochs"] = bits({history.epochs.begin(), history.epochs.end()});
  out["next draw"] = bits(stet::random::uniform({4}).to_vector<double>());
  return out;
}
/// Names what differs.
inline void expect_equal(const Result& got, const Result& wanted, const std::string& what = {}) {
  std::string different;
  for (const auto& [name, hash] : wanted)
    if (!got.contains(name) || got.at(name) != hash) different += name + ", ";
  EXPECT_EQ(different, "") << what;
  EXPECT_EQ(got.size(), wanted.size()) << what;
}

/// Ends the training as a kill would, as far as fit() can see.
struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};
struct KillAt : stet::keras::CustomCallback {
  explicit KillAt(std::int64_t step) : left(step) {}
  std::int64_t left;
  void on_train_batch_end(std::int64_t, const stet::keras::BatchLogs&) override {
    if (--left == 0) throw Killed();
  }
};

/// Runs `train` with the callbacks given to it until it ends: killed after the number of steps that `next` gives each
/// time (0: not at all). `train` makes everything anew.
inline Result killed_and_resumed(const std::function<Result(std::vector<stet::keras::Callback>)>& train,
                                 const std::string& folder, stet::keras::BackupAndRestoreOptions options,
                                 const std::function<std::int64_t()>& next) {
  for (int tries = 0; tries < 200; ++tries) {
    std::vector<stet::keras::Callback> callbacks{stet::keras::BackupAndRestore(folder, options)};
    if (const std::int64_t steps = next(); steps > 0) callbacks.push_back(KillAt(steps));
    try {
      return train(callbacks);
    } catch (const Killed&) {
    }
  }
  ADD_FAILURE() << "the training does not come to an end";
  return {};
}

}  // namespace resumed
