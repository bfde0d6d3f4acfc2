// stet_fuzz_files [--format NAME] [--count N] [--seconds T] [--seed S] [--only I [--save PATH]] [--list]: N files of
// every format, or as many as T seconds give.
#include <malloc.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <stdexcept>

#include "stet/base/error.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

// --- a watch on memory: what C++ code asks for while a file is loaded

namespace {

std::atomic<bool> watching{false}, beyond{false};
std::atomic<std::size_t> in_use{0}, most_in_use{0}, allowed{0};

void* take(std::size_t size, std::size_t alignment) {
  if (watching.load(std::memory_order_relaxed)) {
    if (size > allowed || in_use + size > allowed) {
      beyond = true;
      throw std::bad_alloc();
    }
  }
  void* taken = alignment <= alignof(std::max_align_t)
                    ? std::malloc(size ? size : 1)
                    : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!taken) throw std::bad_alloc();
  std::size_t now = in_use += malloc_usable_size(taken);
  if (now > most_in_use) most_in_use = now;
  return taken;
}
void give(void* taken) noexcept {
  if (!taken) return;
  in_use -= malloc_usable_size(taken);
  std::free(taken);
}

}  // namespace

void* operator new(std::size_t size) { return take(size, 1); }
void* operator new[](std::size_t size) { return take(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return take(size, 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t size, const std::nothrow_t& nothrow) noexcept { return operator new(size, nothrow); }
void operator delete(void* taken) noexcept { give(taken); }
void operator delete[](void* taken) noexcept { give(taken); }
void operator delete(void* taken, std::size_t) noexcept { give(taken); }
void operator delete[](void* taken, std::size_t) noexcept { give(taken); }
void operator delete(void* taken, std::align_val_t) noexcept { give(taken); }
void operator delete[](void* taken, std::align_val_t) noexcept { give(taken); }
void operator delete(void* taken, std::size_t, std::align_val_t) noexcept { give(taken); }
void operator delete[](void* taken, std::size_t, std::align_val_t) noexcept { give(taken); }

// Where the program has a sanitizer, that says when it ends it.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace stet::fuzz {
namespace {

std::map<std::string, FuzzOptions>& formats() {
  static auto& formats = *new std::map<std::string, FuzzOptions>;
  return formats;
}

// --- what is said when the program is ended in the middle of a file

char repeat_with[256];

void say_where() {
  ssize_t ignored = ::write(2, repeat_with, std::strlen(repeat_with));
  (void)ignored;
}
void at_signal(int signal) {
  const bool late = signal == SIGALRM || signal == SIGPROF;
  const char* what = late ? "\nfuzz: not in time\n" : "\nfuzz: crashed\n";
  ssize_t ignored = ::write(2, what, std::strlen(what));
  (void)ignored;
  say_where();
  ::signal(signal, SIG_DFL);
  if (late) ::_exit(1);
  ::raise(signal);
}

/// Time of the processor; and ten times as much on the clock, for those who wait for nothing.
void set_timer(double seconds) {
  auto set = [](decltype(ITIMER_REAL) timer, double after) {
    itimerval value{};
    value.it_value.tv_sec = static_cast<time_t>(after);
    value.it_value.tv_usec = static_cast<suseconds_t>((after - static_cast<double>(value.it_value.tv_sec)) * 1e6);
    ::setitimer(timer, &value, nullptr);
  };
  set(ITIMER_PROF, seconds);
  set(ITIMER_REAL, seconds * 10);
}

// --- one format

/// The first line of an error, without what is different in every file.
std::string reason_of(const std::string& error, const std::string& name) {
  std::string line = error.substr(0, error.find('\n'));
  if (std::size_t at = line.find(name); at != std::string::npos) line.erase(at, name.size());
  std::string reason;
  bool in_quotes = false;
  for (char c : line) {
    if (c == '\'') in_quotes = !in_quotes;
    if (!in_quotes && !(c >= '0' && c <= '9')) reason += c;
  }
  return reason;
}

struct Run {
  std::size_t count = 5000;
  double seconds = 1e9;  // for every format
  std::uint64_t seed = 1;
  std::size_t only = ~std::size_t{0};
  std::string save;
};

std::uint64_t mixed(std::uint64_t seed, const std::string& name, std::size_t index) {
  for (char c : name) seed = Random(seed + static_cast<unsigned char>(c)).next();
  return Random(seed + index).next();
}

/// How many files failed.
std::size_t fuzz(const FuzzOptions& format, const Run& run) {
  std::vector<std::string> seeds = format.seeds();
  if (seeds.empty()) throw std::runtime_error("no seeds");
  std::string path =
      (std::filesystem::temp_directory_path() / ("stet_fuzz_" + std::to_string(::getpid()) + format.ending)).string();
  std::size_t loaded = 0, refused = 0, failed = 0, most_memory = 0;
  double slowest = 0;
  std::map<std::string, std::size_t> reasons;
  const bool single = run.only != ~std::size_t{0};
  const std::size_t begin = single ? run.only : 0, end = single ? run.only + 1 : run.count;
  std::size_t tried = 0;
  const auto begun = std::chrono::steady_clock::now();
  auto seconds_since = [](std::chrono::steady_clock::time_point time) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - time).count();
  };
  for (std::size_t i = begin; i < end && failed < 10 && seconds_since(begun) < run.seconds; ++i, ++tried) {
    Random random(mixed(run.seed, format.name, i));
    // First the seeds as they are, which must load.
    const bool good = i < seeds.size();
    std::string bytes = good ? seeds[i] : mutated(seeds, random);
    if (!good && format.mend && !random.one_in(4)) format.mend(bytes, random);
    if (!run.save.empty())
      std::ofstream(run.save, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::snprintf(repeat_with, sizeof repeat_with,
                  "fuzz: repeat it with --format %s --seed %llu --only %zu --save FILE\n", format.name.c_str(),
                  static_cast<unsigned long long>(run.seed), i);
    std::string problem;
    FuzzFile file(std::move(bytes), path);
    const std::size_t limit = format.memory + format.memory_per_byte * file.bytes().size();
    auto start = std::chrono::steady_clock::now();
    set_timer(format.seconds);
    const std::size_t before = in_use;
    most_in_use = before;
    allowed = before + limit;
    beyond = false;
    try {
      watching = true;
      format.load(file);
      watching = false;
      ++loaded;
    } catch (const UserError& error) {
      watching = false;
      ++refused;
      ++reasons[reason_of(error.what(), file.name())];
      std::string text = error.what();
      if (good) problem = "a good file is refused: " + text;
      if (text.find(file.name()) == std::string::npos) problem = "the error does not name the file: " + text;
      if (single) std::printf("%s\n", text.c_str());
    } catch (const std::exception& error) {
      watching = false;
      problem = std::string("another exception: ") + error.what();
    } catch (...) {
      watching = false;
      problem = "another exception, of no known type";
    }
    set_timer(0);
    most_memory = std::max(most_memory, most_in_use - before);
    slowest = std::max(slowest, seconds_since(start));
    if (beyond)
      problem = "asks for more than " + std::to_string(limit) + " bytes of memory for a file of " +
                std::to_string(file.bytes().size());
    if (!problem.empty()) {
      ++failed;
      std::printf("FAILED: %s: %s\n%s", format.name.c_str(), problem.c_str(), repeat_with);
    }
  }
  std::printf(
      "%s: seed %llu, %zu files: %zu loaded, %zu refused for %zu reasons, %zu failed; at most %zu KiB and %.0f ms\n",
      format.name.c_str(), static_cast<unsigned long long>(run.seed), tried, loaded, refused, reasons.size(), failed,
      most_memory >> 10, slowest * 1e3);
  if (std::getenv("STET_FUZZ_REASONS"))
    for (const auto& [reason, count] : reasons) std::printf("  %6zu %s\n", count, reason.c_str());
  std::fflush(stdout);
  return failed;
}

int run(int argc, char** argv) {
  Run run;
  std::string only_format;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (option == "--list") {
      for (const auto& [name, format] : formats()) std::printf("%s\n", name.c_str());
      return 0;
    }
    if (i + 1 == argc) {
      std::fprintf(
          stderr,
          "stet_fuzz_files: %s needs a value; options: --format --count --seconds --seed --only --save --list\n",
          argv[i]);
      return 2;
    }
    std::string value = argv[++i];
    if (option == "--format")
      only_format = value;
    else if (option == "--count")
      run.count = std::stoull(value);
    else if (option == "--seconds")
      run.seconds = std::stod(value);
    else if (option == "--seed")
      run.seed = std::stoull(value);
    else if (option == "--only")
      run.only = std::stoull(value);
    else if (option == "--save")
      run.save = value;
    else {
      std::fprintf(stderr, "stet_fuzz_files: no option %s\n", option.c_str());
      return 2;
    }
  }
  if (!only_format.empty() && !formats().contains(only_format)) {
    std::fprintf(stderr, "stet_fuzz_files: no format %s; --list has them\n", only_format.c_str());
    return 2;
  }
  ::signal(SIGALRM, at_signal);
  ::signal(SIGPROF, at_signal);
  if (__sanitizer_set_death_callback)
    __sanitizer_set_death_callback(say_where);
  else
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, at_signal);
  std::size_t failed = 0;
  for (const auto& [name, format] : formats())
    if (only_format.empty() || only_format == name) failed += fuzz(format, run);
  return failed == 0 ? 0 : 1;
}

}  // namespace

FuzzFormat::FuzzFormat(FuzzOptions options) { formats().emplace(options.name, std::move(options)); }

const std::string& FuzzFile::path() const {
  if (!written_)
    std::ofstream(path_, std::ios::binary).write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
  written_ = true;
  return path_;
}
FuzzFile::~FuzzFile() {
  if (written_) ::unlink(path_.c_str());
}

std::string stored_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("no file " + path + ": run it in the root of the sources");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace stet::fuzz

int main(int argc, char** argv) {
  try {
    return stet::fuzz::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stet_fuzz_files: %s\n", error.what());
    return 2;
  }
}
