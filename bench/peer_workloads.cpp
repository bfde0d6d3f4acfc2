// stet's side of `make bench-peers`: the workloads of bench/peers/workloads.py, one in a process.
//
//   peer_workloads list                                   the names
//   peer_workloads time NAME [FOLDER]                     the least and the median time of a step, the loss, memory
//   peer_workloads steps NAME [FOLDER]                    the steps of its compiled programs, and what each takes
//   peer_workloads run NAME FOLDER THREADS SECONDS STEPS  one line of JSON, as bench/peers/side.py prints it
//
// FOLDER has what `python3 bench/peers/arrays.py FOLDER` wrote (NumPy is all that it needs); build/peers/data unless
// told. Of time and steps, STET_BENCH_THREADS (2) and STET_BENCH_SECONDS (2) tell how.
#include <malloc.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "bench/bench.h"
#include "bench/peers/repeated.h"
#include "stet/base/version.h"

namespace {

using bench::peers::Arrays, bench::peers::Repeated;

struct Workload {
  const char* name;
  Repeated (*make)(const Arrays&);
  const char* arrays = name;  // whose it begins with
};

template <bench::peers::Network (*network)(const Arrays&)>
Repeated trained(const Arrays& arrays) {
  return training(network, arrays);
}
template <bench::peers::Network (*network)(const Arrays&)>
Repeated trained_on_lengths(const Arrays& arrays) {
  return training_on_lengths(network, arrays);
}

namespace peers = bench::peers;
constexpr Workload workloads[] = {{"gelu_norm", peers::gelu_norm},
                                  {"cross_entropy", peers::cross_entropy},
                                  {"cnn", trained<peers::cnn>},
                                  {"transformer", trained<peers::transformer>},
                                  {"lstm", trained_on_lengths<peers::lstm>},
                                  {"lstm_scan", trained_on_lengths<peers::lstm_scan>, "lstm"},  // not in the table
                                  {"adam", peers::adam},
                                  {"mlp_32", trained<peers::mlp>},
                                  {"mlp_128", trained<peers::mlp>},
                                  {"mlp_1024", trained<peers::mlp>},
                                  {"gru", trained_on_lengths<peers::gru>},
                                  {"depthwise", trained<peers::depthwise>},
                                  {"resnet", trained<peers::resnet>},
                                  {"embedding", trained<peers::embedding>},
                                  {"attention_512", trained<peers::attention_512>},
                                  {"mlp_1", trained<peers::mlp>},
                                  {"mlp_3", trained<peers::mlp>},
                                  {"mlp_17", trained<peers::mlp>},
                                  {"mlp_1000", trained<peers::mlp>}};

/// VmRSS: memory that the process has now; VmHWM: the most that it had since it started, or since forget_peak().
double memory_mib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) / 1024;
  return 0;
}
/// What was freed by then is given back first: a malloc may keep it.
void forget_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

struct Measured {
  double first_ms = 0;
  std::vector<double> us = {};  // of warm steps
  std::vector<double> numbers = {};
  double peak_mib = 0, warm_mib = 0;
  int traces = 0;
};

constexpr int restart_after = 100;  // calls; as in side.py

/// Does what measured() of side.py does.
Measured measure(const Repeated& repeated, int steps, double seconds, double base_mib) {
  Measured out;
  double begin = bench::now_ns();
  repeated.call();
  out.first_ms = (bench::now_ns() - begin) * 1e-6;
  int calls = 1;
  begin = bench::now_ns();
  while (calls * repeated.per_call < std::max(steps, 5) || bench::now_ns() - begin < seconds / 3 * 1e9) {
    repeated.call();
    if (++calls % restart_after == 0 && repeated.restart) repeated.restart();
  }
  out.peak_mib = memory_mib("VmHWM");
  forget_peak();
  repeated.call();
  begin = bench::now_ns();
  while (bench::now_ns() - begin < seconds * 1e9 || out.us.size() < 3) {
    if (++calls % restart_after == 0 && repeated.restart) {
      repeated.restart();
      repeated.call();
    }
    double start = bench::now_ns();
    repeated.call();
    out.us.push_back((bench::now_ns() - start) * 1e-3 / repeated.per_call);
  }
  double warm_mib = memory_mib("VmHWM");
  out.peak_mib = std::max(out.peak_mib, warm_mib) - base_mib;
  out.warm_mib = warm_mib - base_mib;
  out.numbers = repeated.numbers(steps);
  out.traces = repeated.traces();
  return out;
}

struct Prepared {
  Repeated repeated;
  double base_mib;
};

/// Notes the memory, then reads the arrays and makes the workload: batches and weights count, what the library makes
/// when it wakes up does not.
Prepared prepare(const Workload& workload, const std::string& folder, int threads) {
  stet::set_thread_count(threads);
  stet::ones({4}) + stet::ones({4});
  double base_mib = memory_mib("VmRSS");
  Repeated repeated = workload.make(Arrays(folder, workload.arrays));
  forget_peak();
  return {std::move(repeated), base_mib};
}

std::string joined(const std::vector<double>& values, const char* pattern, const char* separator) {
  std::string out;
  for (double value : values) out += (out.empty() ? "" : separator) + bench::format(pattern, value);
  return out;
}

int run(const Workload& workload, const std::string& folder, int threads, double seconds, int steps) {
  Prepared prepared = prepare(workload, folder, threads);
  Measured measured = measure(prepared.repeated, steps, seconds, prepared.base_mib);
  std::vector<double> quantiles;
  for (int percent = 0; percent <= 100; ++percent) quantiles.push_back(bench::quantile(measured.us, percent / 100.));
  std::printf(
      "{\"first_ms\": %.3f, \"us\": [%s], \"calls\": %zu, \"numbers\": [%s], \"peak_mib\": %.2f, \"warm_mib\": %.2f, "
      "\"traces\": %d, \"version\": \"stet %s\"}\n",
      measured.first_ms, joined(quantiles, "%.6g", ", ").c_str(), measured.us.size(),
      joined(measured.numbers, "%.17g", ", ").c_str(), measured.peak_mib, measured.warm_mib, measured.traces,
      STET_VERSION);
  return 0;
}

double setting(const char* name, double otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::atof(value) : otherwise;
}

int time(const Workload& workload, const std::string& folder, int threads, double seconds) {
  Prepared prepared = prepare(workload, folder, threads);
  Measured measured = measure(prepared.repeated, 2, seconds, prepared.base_mib);
  auto quantile = [&](double part) { return bench::quantile(measured.us, part); };
  std::printf("%s: least %.1f us, median %.1f us, 10 %% to 90 %% %.1f to %.1f us, of %zu calls of %d step%s\n",
              workload.name, quantile(0), quantile(0.5), quantile(0.1), quantile(0.9), measured.us.size(),
              prepared.repeated.per_call, prepared.repeated.per_call == 1 ? "" : "s");
  std::printf("first call %.1f ms, %d trace%s, memory +%.1f MiB warm, +%.1f MiB with compiling, numbers %s\n",
              measured.first_ms, measured.traces, measured.traces == 1 ? "" : "s", measured.warm_mib, measured.peak_mib,
              joined(measured.numbers, "%.9g", " ").c_str());
  return 0;
}

int steps(const Workload& workload, const std::string& folder, int threads, double seconds) {
  Prepared prepared = prepare(workload, folder, threads);
  for (int call = 0; call < 3; ++call) prepared.repeated.call();  // compiled, and audited twice
  stet::Profile profile;
  int calls = 0;
  double begin = bench::now_ns();
  while (bench::now_ns() - begin < seconds * 1e9 || calls < 3) {
    prepared.repeated.call();
    if (++calls % restart_after == 0 && prepared.repeated.restart) prepared.repeated.restart();
  }
  std::printf("%s: %d calls of %d step%s\n%s", workload.name, calls, prepared.repeated.per_call,
              prepared.repeated.per_call == 1 ? "" : "s", profile.table().c_str());
  return 0;
}

int list() {
  for (const Workload& workload : workloads) std::printf("%s\n", workload.name);
  return 0;
}

const Workload* find(const std::string& name) {
  for (const Workload& workload : workloads)
    if (name == workload.name) return &workload;
  std::fprintf(stderr, "peer_workloads: no workload '%s'; peer_workloads list prints their names\n", name.c_str());
  return nullptr;
}

int run_command(const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{"list"}) return list();
  const bool known = !words.empty() && (words[0] == "time" || words[0] == "steps" || words[0] == "run");
  if (!known || words.size() < 2 || (words[0] == "run" ? words.size() != 6 : words.size() > 3)) {
    std::fprintf(stderr, "usage: peer_workloads list | time NAME [FOLDER] | steps NAME [FOLDER]\n");
    return 2;
  }
  const Workload* workload = find(words[1]);
  if (!workload) return 2;
  std::string folder = words.size() > 2 ? words[2] : "build/peers/data";
  struct stat found;
  if (stat((folder + "/" + workload->arrays + ".npz").c_str(), &found) != 0) {
    std::fprintf(stderr, "peer_workloads: %s/%s.npz is not there\n  fix: python3 bench/peers/arrays.py %s\n",
                 folder.c_str(), workload->arrays, folder.c_str());
    return 2;
  }
  if (words[0] == "run") return run(*workload, folder, std::stoi(words[3]), std::stod(words[4]), std::stoi(words[5]));
  int threads = static_cast<int>(setting("STET_BENCH_THREADS", 2));
  double seconds = setting("STET_BENCH_SECONDS", 2);
  return (words[0] == "time" ? time : steps)(*workload, folder, threads, seconds);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run_command(std::vector<std::string>(arguments + 1, arguments + count));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peer_workloads: %s\n", error.what());
    return 1;
  }
}
