// stet_random_programs: random programs over the public interface, reference = eager = traced.
//
//   stet_random_programs [--seconds n] [--seed n] [--processes n] [--without feature,…] [--with feature,…]
//                        [--program seed] [--print seed]
//
// Without options it reads STET_RANDOM_PROGRAMS_SECONDS (20) and STET_RANDOM_PROGRAMS_SEED (fresh), which steer this
// test only. Every program follows from its own seed, which is printed when it fails: --program tries it again.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <random>
#include <set>

#include "compare.h"

namespace stet::random_programs {
namespace {

/// Programs that failed once, without loops in them.
constexpr std::uint64_t regressions[] = {
    2,
    7134611160154358619u,
    14779109287369959189u,
    17957624262515163977u,
    12978548834978922355u,
    18105566178415619511u,
    14249732241852757271u,
    7544784243361311007u,
    1669485836469994413u,
    15695697087449242853u,
    8346100818921284029u,
    8288105064287199793u,
    16934044424796929713u,
    13566731111258911605u,
    11319972279577420103u,
    3016707224458725919u,
    12831953098414350301u,
    1980228137581506533u,
    9787489183289687755u,
};

/// The program that runs, for one that ends the process.
std::uint64_t running_program = 0;
Way running_way = Way::call;
void tell_of_crash(int signal) {
  char text[160];
  int length = std::snprintf(text, sizeof text, "--- seed %llu (--program %llu), way %d: signal %d\n",
                             static_cast<unsigned long long>(running_program),
                             static_cast<unsigned long long>(running_program), static_cast<int>(running_way), signal);
  [[maybe_unused]] ssize_t written = write(STDOUT_FILENO, text, static_cast<std::size_t>(length));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Options {
  double seconds = 20;
  std::uint64_t seed = 0, program = 0, print = 0;
  int processes = 1;
  Features features;
  std::string ways;
};

std::uint64_t mixed(std::uint64_t x) {  // splitmix64: neighbouring seeds give unrelated programs
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Switch {
  const char* name;
  bool Features::*flag;
};
constexpr Switch switches[] = {
    {"decisions", &Features::decisions}, {"scopes", &Features::scopes},       {"conds", &Features::conds},
    {"layers", &Features::layers},       {"functions", &Features::functions}, {"tapes", &Features::tapes},
    {"variables", &Features::variables}, {"draws", &Features::draws},         {"captures", &Features::captures},
    {"throws", &Features::throws},       {"late", &Features::late},           {"facts", &Features::facts},
    {"updates", &Features::updates},     {"audits", &Features::audits},       {"inferred", &Features::inferred},
    {"loops", &Features::loops}};

class Session {
 public:
  explicit Session(Options options) : options_(std::move(options)) {}

  int run() {
    on_retrace([](const RetraceEvent&) {});
    on_stale([this](const StaleEvent& event) {  // all programs are functions of their arguments
      std::lock_guard lock(guard_);
      if (options_.features.audits) accusation_ = event.explanation;
    });
    for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, tell_of_crash);
    set_thread_count(1);  // small programs, and other tests beside them
    auto start = std::chrono::steady_clock::now();
    auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    if (options_.program) return try_one(generate(options_.program, options_.features), true), failures_ > 0;
    for (std::uint64_t seed : regressions) try_one(generate(seed, {}), false);
    for (std::uint64_t i = 0; passed() < options_.seconds; ++i)
      try_one(generate(mixed(options_.seed + i) | 1, options_.features), false);
    std::cout << "random programs: seed " << options_.seed << ", " << counts_.programs << " programs, " << counts_.calls
              << " calls compared, " << counts_.compared_with_reference << " with the reference, "
              << counts_.errors_on_both_sides << " errors alike, " << counts_.refused << " refused, " << failures_
              << " differences" << std::endl;
    return failures_ > 0;
  }

 private:
  void try_one(const Program& program, bool all) {
    ++counts_.programs;
    for (Way way : all_ways) {
      if (!options_.ways.empty() && options_.ways.find(std::to_string(static_cast<int>(way))) == std::string::npos)
        continue;
      // Every program is called; each of the other ways is tried on a part of them.
      if (!all && way != Way::call && way != Way::tape && (program.seed / 2 + static_cast<std::uint64_t>(way)) % 4 != 0)
        continue;
      std::optional<Difference> found = tried(program, way);
      if (found) return told(program, *found);
    }
  }
  std::optional<Difference> tried(const Program& program, Way way) {
    try {
      accusation_.clear();
      running_program = program.seed;
      running_way = way;
      std::optional<Difference> found = difference(program, way, &counts_);
      std::lock_guard lock(guard_);
      if (!found && !accusation_.empty()) found = Difference{way, "falsely accused: " + accusation_, "accused"};
      return found;
    } catch (const std::exception& error) {
      return Difference{way, std::string("outside of a call: ") + error.what(), "outside"};
    }
  }
  void told(const Program& program, const Difference& found) {
    ++failures_;
    if (!kinds_.insert(found.kind).second && !options_.program) {
      std::cout << "seed " << program.seed << " " << name_of(found.way) << ": " << found.text << "\n" << std::endl;
      return;  // like one that was shown
    }
    Program small = shrunk(program, [&](const Program& smaller) {
      std::optional<Difference> now = tried(smaller, found.way);
      return now && now->kind == found.kind;
    });
    std::optional<Difference> now = tried(small, found.way);
    std::cout << "--- seed " << program.seed << " (--program " << program.seed << "), " << name_of(found.way) << "\n"
              << (now ? now->text : found.text) << "\n"
              << text_of(small) << std::endl;
  }

  Options options_;
  Counts counts_;
  std::set<std::string> kinds_;
  std::mutex guard_;
  std::string accusation_;
  int failures_ = 0;
};

Options read_options(int count, char** words) {
  Options options;
  options.seed = std::random_device{}();
  if (const char* text = std::getenv("STET_RANDOM_PROGRAMS_SECONDS")) options.seconds = std::atof(text);
  if (const char* text = std::getenv("STET_RANDOM_PROGRAMS_SEED")) options.seed = std::strtoull(text, nullptr, 10);
  for (int i = 1; i + 1 < count; i += 2) {
    std::string word = words[i], value = words[i + 1];
    if (word == "--seconds") options.seconds = std::stod(value);
    if (word == "--seed") options.seed = std::stoull(value);
    if (word == "--processes") options.processes = std::stoi(value);
    if (word == "--program") options.program = std::stoull(value);
    if (word == "--print") options.print = std::stoull(value);
    if (word == "--ways") options.ways = value;
    if (word == "--without")
      for (const Switch& one : switches)
        if (value.find(one.name) != std::string::npos) options.features.*one.flag = false;
    if (word == "--with")
      for (const Switch& one : switches)
        if (value.find(one.name) != std::string::npos) options.features.*one.flag = true;
    if (word == "--only")
      for (const Switch& one : switches) options.features.*one.flag = value.find(one.name) != std::string::npos;
  }
  return options;
}

int run(const Options& options) {
  if (options.print) return std::cout << text_of(generate(options.print, options.features)), 0;
  if (options.processes <= 1) return Session(options).run();
  std::vector<pid_t> children;
  for (int i = 0; i < options.processes; ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      Options own = options;
      own.seed = options.seed + static_cast<std::uint64_t>(i) * 1000003;
      int code = Session(own).run();
      std::cout.flush();
      ::_exit(code);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::cout << "a process ended by signal " << WTERMSIG(status) << "\n";
    failed += status != 0;
  }
  std::cout << failed << " of " << options.processes << " processes found differences" << std::endl;
  return failed > 0;
}

}  // namespace
}  // namespace stet::random_programs

int main(int count, char** words) {
  return stet::random_programs::run(stet::random_programs::read_options(count, words));
}
