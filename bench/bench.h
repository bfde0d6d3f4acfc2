// What the benchmarks share: clocks, interleaved rounds, statistics of ratios and the rows of one table.
//
// The machine is shared and its clock moves, so no figure stands alone. Ours and the peer's take turns within a round,
// and the figure that counts is the median over rounds of the ratio within a round. Each turn is short and is the best
// of a few tries, which leaves out most of what neighbours do.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace bench {

inline double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The value below which a part (0 to 1) of all values lies.
inline double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  double at = part * static_cast<double>(values.size() - 1);
  auto below = static_cast<std::size_t>(at);
  std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}
inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

/// Nanoseconds of one call: the best of `tries` batches of `calls`.
template <class Body>
double best_time(const Body& body, int calls, int tries) {
  double best = 1e300;
  for (int attempt = 0; attempt < tries; ++attempt) {
    double begin = now_ns();
    for (int call = 0; call < calls; ++call) body();
    best = std::min(best, (now_ns() - begin) / calls);
  }
  return best;
}

/// How many calls make a batch long enough for the clock.
template <class Body>
int calls_for(const Body& body, double batch_ns = 50e3) {
  body();
  double once = best_time(body, 1, 20);
  return std::max(1, static_cast<int>(batch_ns / std::max(once, 1.0)));
}

/// CPU seconds that everybody but this process and the children it has waited for has used since the machine started,
/// what the host took away included.
inline double seconds_of_neighbours() {
  double all = 0;
  if (std::FILE* file = std::fopen("/proc/stat", "r")) {
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft_irq = 0, steal = 0;
    if (std::fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait, &irq, &soft_irq,
                    &steal) == 8)
      all = (user + nice + system + irq + soft_irq + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
    std::fclose(file);
  }
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  for (auto whose : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used;
    getrusage(whose, &used);
    all -= seconds(used.ru_utime) + seconds(used.ru_stime);
  }
  return all;
}

/// One side's turn: measures itself and returns nanoseconds per call.
using Turn = std::function<double()>;

/// Waits until the others leave the cores alone, but not long: they may never.
inline void wait_for_quiet(double at_most_ns = 0.3e9) {
  for (double begin = now_ns(); now_ns() - begin < at_most_ns;) {
    double used = seconds_of_neighbours();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    if (seconds_of_neighbours() - used < 0.005) return;
  }
}

/// Nanoseconds per side and round. Who begins changes from round to round. Between turns a rest lets threads that spin
/// for more work, ours and OpenMP's, give up the cores. A round waits a little for quiet cores, and in the end one
/// round of `keep_one_of` is kept, those in which neighbours used the cores least: choices that do not look at the
/// results.
inline std::vector<std::vector<double>> interleave(const std::vector<Turn>& turns, int rounds, int rest_ms = 0,
                                                   std::size_t keep_one_of = 3) {
  std::vector<std::vector<double>> times;
  std::vector<double> neighbours;
  for (int round = 0; round < rounds; ++round) {
    wait_for_quiet();
    double used = seconds_of_neighbours(), begin = now_ns();
    std::vector<double>& mine = times.emplace_back(turns.size());
    for (std::size_t k = 0; k < turns.size(); ++k) {
      std::size_t turn = (k + static_cast<std::size_t>(round)) % turns.size();
      if (rest_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms));
      mine[turn] = turns[turn]();
    }
    neighbours.push_back((seconds_of_neighbours() - used) / (now_ns() - begin));
  }
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return neighbours[a] < neighbours[b]; });
  std::vector<std::vector<double>> kept(turns.size());
  for (std::size_t i = 0; i < (order.size() + keep_one_of - 1) / keep_one_of; ++i)
    for (std::size_t turn = 0; turn < turns.size(); ++turn) kept[turn].push_back(times[order[i]][turn]);
  return kept;
}

/// Of several ways of the peer, the one with the best median.
inline const std::vector<double>& best_of(const std::vector<std::vector<double>>& times, std::size_t first) {
  std::size_t best = first;
  for (std::size_t side = first + 1; side < times.size(); ++side)
    if (median(times[side]) < median(times[best])) best = side;
  return times[best];
}

inline std::vector<double> per_round(const std::vector<double>& a, const std::vector<double>& b,
                                     double (*combine)(double, double)) {
  std::vector<double> out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(combine(a[i], b[i]));
  return out;
}

// --- the table

inline std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

struct Row {
  std::string name, stet, peer, ratio, spread, of_minima, goal;
  bool met = false;
};

inline void print(const Row& row, const char* met) {
  std::printf("| %-46s | %12s | %12s | %8s | %15s | %9s | %10s | %-3s |\n", row.name.c_str(), row.stet.c_str(),
              row.peer.c_str(), row.ratio.c_str(), row.spread.c_str(), row.of_minima.c_str(), row.goal.c_str(), met);
  std::fflush(stdout);
}
inline void print(const Row& row) { print(row, row.goal.empty() ? "" : row.met ? "yes" : "NO"); }

/// Programs of one run share a table: the one that the runner starts first prints its head.
inline void print_head() {
  if (std::getenv("STET_BENCH_NO_HEAD")) return;
  print({"measurement", "stet", "peer", "ratio", "10 % to 90 %", "of minima", "goal", false}, "met");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  std::fflush(stdout);
}

/// Smaller is better: time of ours over time of the peer. No goal when it is 0. `of_minima` is the ratio of the least
/// times where they are known better than from `ours` and `theirs`.
inline void compare_times(const std::string& name, const std::vector<double>& ours, const std::vector<double>& theirs,
                          double unit_ns, const char* unit, double goal, double of_minima = 0) {
  std::vector<double> ratio = per_round(ours, theirs, [](double a, double b) { return a / b; });
  std::string pattern = std::string("%.1f ") + unit;
  print({name, format(pattern.c_str(), median(ours) / unit_ns), format(pattern.c_str(), median(theirs) / unit_ns),
         format("%.2f", median(ratio)),
         format("%.2f", quantile(ratio, 0.1)) + " to " + format("%.2f", quantile(ratio, 0.9)),
         format("%.2f", of_minima > 0 ? of_minima : quantile(ours, 0) / quantile(theirs, 0)),
         goal > 0 ? format("<= %.2f", goal) : "", median(ratio) <= goal});
}

/// Greater is better: how many times as fast as the peer ours is. The rest is as in compare_times.
inline void compare_quickness(const std::string& name, const std::vector<double>& ours,
                              const std::vector<double>& theirs, double unit_ns, const char* unit, double goal,
                              double of_minima = 0) {
  std::vector<double> ratio = per_round(ours, theirs, [](double a, double b) { return b / a; });
  std::string pattern = std::string("%.1f ") + unit;
  print({name, format(pattern.c_str(), median(ours) / unit_ns), format(pattern.c_str(), median(theirs) / unit_ns),
         format("%.2f", median(ratio)),
         format("%.2f", quantile(ratio, 0.1)) + " to " + format("%.2f", quantile(ratio, 0.9)),
         format("%.2f", of_minima > 0 ? of_minima : quantile(theirs, 0) / quantile(ours, 0)),
         goal > 0 ? format(">= %.2f", goal) : "", median(ratio) >= goal});
}

/// Greater is better: speed of ours over speed of the peer. `amount` is what one call does, so that amount / ns is in
/// `unit`: bytes for GB/s, operations for GFLOP/s.
inline void compare_speeds(const std::string& name, const std::vector<double>& ours, const std::vector<double>& theirs,
                           double amount, const char* unit, double goal) {
  std::vector<double> ratio = per_round(ours, theirs, [](double a, double b) { return b / a; });
  std::string pattern = std::string("%.1f ") + unit;
  print({name, format(pattern.c_str(), amount / median(ours)), format(pattern.c_str(), amount / median(theirs)),
         format("%.2f", median(ratio)),
         format("%.2f", quantile(ratio, 0.1)) + " to " + format("%.2f", quantile(ratio, 0.9)),
         format("%.2f", quantile(theirs, 0) / quantile(ours, 0)), format(">= %.2f", goal), median(ratio) >= goal});
}

/// Smaller is better: nanoseconds of ours beyond the peer's.
inline void compare_excess(const std::string& name, const std::vector<double>& ours, const std::vector<double>& theirs,
                           double goal_ns) {
  std::vector<double> excess = per_round(ours, theirs, [](double a, double b) { return a - b; });
  print({name, format("%.0f ns", median(ours)), format("%.0f ns", median(theirs)), format("%+.0f ns", median(excess)),
         format("%+.0f", quantile(excess, 0.1)) + " to " + format("%+.0f ns", quantile(excess, 0.9)),
         format("%+.0f ns", quantile(ours, 0) - quantile(theirs, 0)), format("<= %+.0f ns", goal_ns),
         median(excess) <= goal_ns});
}

/// Starts this program again with a variable that libraries read before main, unless it is set already.
inline void need_environment(char** arguments, const char* name, const char* value) {
  if (std::getenv(name)) return;
  setenv(name, value, 1);
  execv("/proc/self/exe", arguments);
  std::perror("bench: execv");
  std::exit(1);
}

}  // namespace bench
