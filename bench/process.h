// Programs that are measured as processes of their own: because the first call counts, or because two thread pools
// must not sit in one process.
#pragma once
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bench/bench.h"

extern char** environ;

namespace bench {

/// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stet-bench-XXXXXX").string();
    if (!mkdtemp(pattern.data())) std::abort();
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct WarmCall {
  double median, least;  // microseconds
};
template <class Body>
WarmCall time_warm_calls(const Body& body) {
  constexpr double warm_ns = 0.2e9, measured_ns = 0.5e9;
  constexpr std::size_t fewest = 5;
  int calls = 0;
  for (double begin = now_ns(); now_ns() - begin < warm_ns || calls < 2; ++calls) body();
  std::vector<double> times;
  for (double start = now_ns(); now_ns() - start < measured_ns || times.size() < fewest;) {
    double begin = now_ns();
    body();
    times.push_back((now_ns() - begin) * 1e-3);
  }
  return {median(times), quantile(times, 0)};
}

struct Output {
  std::vector<double> numbers;  // what it printed
  double process_ns = 0;        // from its start to its end
};

/// Runs a program that lies beside this one. It ends this one if it fails or prints fewer than `count` numbers.
inline Output run_program(const std::vector<std::string>& command, std::size_t count) {
  std::string program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / command[0]).string();
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  Output output;
  double begin = now_ns();
  pid_t child = 0;
  int status = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  if (status == 0) {
    char part[256];
    for (ssize_t length; (length = read(ends[0], part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(length));
    waitpid(child, &status, 0);
  }
  output.process_ns = now_ns() - begin;
  close(ends[0]);
  const char* at = text.c_str();
  for (char* end; std::strtod(at, &end), end != at; at = end) output.numbers.push_back(std::strtod(at, nullptr));
  if (status != 0 || output.numbers.size() < count) {
    std::fprintf(stderr, "bench: %s failed\n", program.c_str());
    std::exit(1);
  }
  return output;
}

/// The same for a program that measures itself for about a second: waits for quiet cores, and starts it again, at most
/// twice, when neighbours used more than a twentieth of a core meanwhile. The quietest run counts, whatever it says.
inline Output run_in_quiet(const std::vector<std::string>& command, std::size_t count) {
  Output best;
  double least = 1e300;
  for (int attempt = 0; attempt < 3 && least > 0.05; ++attempt) {
    wait_for_quiet(1e9);
    double used = seconds_of_neighbours(), begin = now_ns();
    Output output = run_program(command, count);
    double share = (seconds_of_neighbours() - used) / ((now_ns() - begin) * 1e-9);
    if (share >= least) continue;
    least = share;
    best = output;
  }
  static bool told = false;
  if (least > 0.25 && !told) {
    std::fprintf(stderr, "bench: others use the cores; what compares processes with two threads means little now\n");
    told = true;
  }
  return best;
}

/// From here on, programs keep compiled objects in this folder.
inline void use_object_cache(const std::filesystem::path& folder) { setenv("STET_CACHE_DIR", folder.c_str(), 1); }

/// A program that prints the time of its first call, with empty object caches and with a filled one, in turns.
/// `to_ms` makes milliseconds of what it prints.
inline void print_cold_and_warm(const std::string& name, const Folder& folder, const std::vector<std::string>& command,
                                int processes, double to_ms, double cold_goal_ms, double warm_goal_ms) {
  std::vector<double> calls[2], whole[2];
  auto run = [&](const std::filesystem::path& cache) {
    use_object_cache(cache);
    wait_for_quiet(1.5e9);  // a single call has no second try
    return run_program(command, 1);
  };
  std::string key = name;
  std::replace(key.begin(), key.end(), ' ', '-');
  std::filesystem::path filled = folder.path() / (key + "-filled");
  run(filled);
  for (int process = 0; process < processes; ++process)
    for (int warm : {0, 1}) {
      Output output = run(warm ? filled : folder.path() / (key + std::to_string(process)));
      calls[warm].push_back(output.numbers[0] * to_ms);
      whole[warm].push_back(output.process_ns * 1e-6);
    }
  for (int warm : {0, 1}) {
    const std::vector<double>& times = calls[warm];
    double goal_ms = warm ? warm_goal_ms : cold_goal_ms;
    // No peer: the whole process stands in its column, for scale, and the spread is of the times.
    print({name + (warm ? ", filled object cache" : ", empty object cache"), format("%.2f ms", median(times)),
           format("all %.0f ms", median(whole[warm])), "",
           format("%.2f", quantile(times, 0.1)) + " to " + format("%.2f", quantile(times, 0.9)),
           format("%.2f ms", quantile(times, 0)), format("<= %.0f ms", goal_ms), median(times) <= goal_ms});
  }
}

}  // namespace bench
