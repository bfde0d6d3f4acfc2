// The first use of an op in a fresh process: with an empty object cache, when LLVM compiles it, and with a filled one.
//
//   first_use            the parent: starts itself again for every sample and prints the table
//   first_use add|sum|matmul   one sample: nanoseconds of the first call, its operands already made
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>

#include "bench/bench.h"
#include "stet/stet.h"

extern char** environ;

namespace {

constexpr int processes = 10;

int sample(const char* op) {
  // Made from memory, not by an op: nothing is compiled before the clock runs.
  std::vector<float> values(64 * 64, 1.f);
  stet::Tensor a = stet::tensor(values, stet::Shape{64, 64}), b = stet::tensor(values, stet::Shape{64, 64});
  double begin = bench::now_ns();
  stet::Tensor result = std::strcmp(op, "add") == 0   ? a + b
                        : std::strcmp(op, "sum") == 0 ? stet::sum(a, {-1})
                                                      : stet::matmul(a, b);
  double end = bench::now_ns();
  std::printf("%.0f\n", end - begin);
  return result.defined() ? 0 : 1;
}

struct Sample {
  double first_call_ns = 0, process_ns = 0;
};

Sample run_process(const char* op, const std::filesystem::path& cache) {
  setenv("STET_CACHE_DIR", cache.c_str(), 1);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  char self[] = "/proc/self/exe";
  char* arguments[] = {self, const_cast<char*>(op), nullptr};
  bench::wait_for_quiet(1.5e9);  // a single call has no second try
  double begin = bench::now_ns();
  pid_t child = 0;
  if (posix_spawn(&child, std::filesystem::read_symlink(self).c_str(), &actions, nullptr, arguments, environ) != 0)
    std::abort();
  int status = 0;
  waitpid(child, &status, 0);
  double end = bench::now_ns();
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char text[64] = {};
  ssize_t length = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  if (status != 0 || length <= 0) {
    std::fprintf(stderr, "bench: the process for %s failed\n", op);
    std::exit(1);
  }
  return {std::atof(text), end - begin};
}

void print_samples(const std::string& name, const std::vector<Sample>& samples, double goal_ms) {
  std::vector<double> calls, whole;
  for (const Sample& one : samples) {
    calls.push_back(one.first_call_ns * 1e-6);
    whole.push_back(one.process_ns * 1e-6);
  }
  // No peer: the whole process stands in its column, for scale, and the spread is of the times.
  bench::print(
      {name, bench::format("%.2f ms", bench::median(calls)), bench::format("all %.0f ms", bench::median(whole)), "",
       bench::format("%.2f", bench::quantile(calls, 0.1)) + " to " + bench::format("%.2f", bench::quantile(calls, 0.9)),
       bench::format("%.2f ms", bench::quantile(calls, 0)), bench::format("<= %.0f ms", goal_ms),
       bench::median(calls) <= goal_ms});
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) return sample(arguments[1]);
  bench::print_head();
  std::string pattern = (std::filesystem::temp_directory_path() / "stet-bench-XXXXXX").string();
  if (!mkdtemp(pattern.data())) std::abort();
  std::filesystem::path folder = pattern;
  struct Goal {
    const char *op, *name;
    double cold_ms, warm_ms;
  };
  for (const Goal& goal :
       {Goal{"add", "add", 15, 2}, Goal{"sum", "sum of rows", 15, 2}, Goal{"matmul", "matmul", 25, 3}}) {
    std::vector<Sample> cold, warm;
    std::filesystem::path filled = folder / (std::string(goal.op) + "-filled");
    run_process(goal.op, filled);
    for (int process = 0; process < processes; ++process) {
      std::filesystem::path empty = folder / (goal.op + std::to_string(process));
      cold.push_back(run_process(goal.op, empty));
      warm.push_back(run_process(goal.op, filled));
    }
    print_samples(std::string("first ") + goal.name + ", empty object cache", cold, goal.cold_ms);
    print_samples(std::string("first ") + goal.name + ", filled object cache", warm, goal.warm_ms);
  }
  std::filesystem::remove_all(folder);
}
