#include "stet/runtime/step_times.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "stet/base/text.h"
#include "stet/runtime/program.h"
#include "stet/runtime/step_cost.h"

namespace stet::step_times {
namespace {

bool asked_by_environment() {
  const char* value = std::getenv("STET_STEP_TIMES");
  return value && *value && std::string_view(value) != "0";
}

std::atomic<bool>& wanted() {
  static std::atomic<bool> wanted = asked_by_environment();
  return wanted;
}

/// One step of a program, whatever sizes it was bound to. Threads may run it at the same time.
struct Record {
  std::string title;  // of the sizes that were bound first
  std::mutex mutex;
  std::int64_t calls = 0, total_ns = 0, least_ns = INT64_MAX, bytes = 0, flops = 0;

  void add(std::int64_t ns, std::int64_t more_bytes, std::int64_t more_flops) {
    std::lock_guard lock(mutex);
    ++calls;
    total_ns += ns;
    least_ns = std::min(least_ns, ns);
    bytes += more_bytes;
    flops += more_flops;
  }
  void forget() {
    std::lock_guard lock(mutex);
    calls = total_ns = bytes = flops = 0;
    least_ns = INT64_MAX;
  }
};

/// A program and the records of its steps. It is kept: its address is its name.
struct Known {
  std::shared_ptr<const Program> program;
  std::vector<std::shared_ptr<Record>> steps;
};

struct Registry {
  std::mutex mutex;
  std::vector<Known> programs;  // in the order in which they were bound first
  std::map<const Program*, std::size_t> numbers;

  std::shared_ptr<Record> record(const Program& program, std::size_t step, const Bindings& bindings) {
    std::lock_guard lock(mutex);
    auto [found, is_new] = numbers.try_emplace(&program, programs.size());
    if (is_new) {
      programs.push_back({program.shared_from_this(), {}});
      programs.back().steps.resize(program.steps.size());
    }
    std::shared_ptr<Record>& record = programs[found->second].steps[step];
    if (!record) {
      record = std::make_shared<Record>();
      record->title = program.steps[step]->title(bindings);
    }
    return record;
  }
};

Registry& registry() {
  static Registry& registry = *new Registry;  // it does not end: the report is made after statics have
  return registry;
}

class TimedStep : public BoundStep {
 public:
  TimedStep(std::unique_ptr<BoundStep> bound, std::shared_ptr<Record> record, std::int64_t bytes, std::int64_t flops)
      : bound_(std::move(bound)), record_(std::move(record)), bytes_(bytes), flops_(flops) {}

  void run(void* const* buffers) const override {
    timed([&] { bound_->run(buffers); });
  }
  void run_bringing(void* const* buffers, std::span<Buffer> brought) const override {
    timed([&] { bound_->run_bringing(buffers, brought); });
  }

 private:
  template <class Body>
  void timed(const Body& body) const {
    auto begin = std::chrono::steady_clock::now();
    body();
    std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - begin;
    record_->add(passed.count(), bytes_, flops_);
  }

  std::unique_ptr<BoundStep> bound_;
  std::shared_ptr<Record> record_;
  std::int64_t bytes_, flops_;
};

/// The lines of programs, for people.
class Report {
 public:
  explicit Report(const Registry& registry) : registry_(registry) {
    for (const Known& known : registry.programs)
      for (const std::unique_ptr<Step>& step : known.program->steps)
        for (const Program* child : step->children()) children_.insert(child);
  }

  std::string str() {
    for (const Known& known : registry_.programs)
      if (!children_.contains(known.program.get())) program(known);
    return out_.empty() ? "no step was timed\n" : out_;
  }

 private:
  void program(const Known& known) {
    std::int64_t total = 0, runs = 0;
    for (const std::shared_ptr<Record>& step : known.steps)
      if (step) {
        total += step->total_ns;
        runs = std::max(runs, step->calls);
      }
    if (runs == 0) return;
    total_ns_ = total;
    std::size_t number = static_cast<std::size_t>(&known - registry_.programs.data());
    line("program %zu: %lld runs, %.1f us in steps, %.1f us a run\n", number, static_cast<long long>(runs), us(total),
         us(total) / static_cast<double>(runs));
    line("%7s %8s %12s %10s %10s %10s %8s %8s  %s\n", "share", "calls", "total us", "us a call", "least us",
         "KB a call", "GB/s", "GF/s", "step");
    steps(known, 0);
  }

  void steps(const Known& known, int depth) {
    for (std::size_t at = 0; at < known.steps.size(); ++at) {
      const std::shared_ptr<Record>& record = known.steps[at];
      if (!record || record->calls == 0) continue;
      const Step& step = *known.program->steps[at];
      std::vector<Program*> children = step.children();
      const auto calls = static_cast<double>(record->calls),
                 ns = static_cast<double>(std::max<std::int64_t>(record->total_ns, 1));
      line("%6.1f%% %8lld %12.1f %10.2f %10.2f", 100 * ns / static_cast<double>(std::max<std::int64_t>(total_ns_, 1)),
           static_cast<long long>(record->calls), us(record->total_ns), us(record->total_ns) / calls,
           us(record->least_ns));
      // What a loop's own buffers have says nothing of what its turns move.
      if (children.empty())
        line(" %10.1f %8.2f %8.2f", static_cast<double>(record->bytes) * 1e-3 / calls,
             static_cast<double>(record->bytes) / ns, static_cast<double>(record->flops) / ns);
      else
        line(" %10s %8s %8s", "", "", "");
      out_ += text("  ", std::string(static_cast<std::size_t>(2 * depth), ' '), at, " ", record->title, "\n");
      for (const Program* child : children)
        if (auto found = registry_.numbers.find(child); found != registry_.numbers.end())
          steps(registry_.programs[found->second], depth + 1);
    }
  }

  template <class... Values>
  void line(const char* pattern, Values... values) {
    char written[256];
    std::snprintf(written, sizeof written, pattern, values...);
    out_ += written;
  }
  static double us(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

  const Registry& registry_;
  std::set<const Program*> children_;  // programs that steps of others run
  std::int64_t total_ns_ = 0;
  std::string out_;
};

[[gnu::destructor]] void end_of_process() {
  if (asked_by_environment()) std::fprintf(stderr, "stet: what steps took (STET_STEP_TIMES)\n%s", report().c_str());
}

}  // namespace

void begin() { wanted() = true; }

void end() {
  wanted() = false;
  Registry& all = registry();
  std::vector<Known> gone;  // without the lock: the last reference to a program may be here
  std::lock_guard lock(all.mutex);
  gone.swap(all.programs);
  all.numbers.clear();
}

void forget() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  for (const Known& known : all.programs)
    for (const std::shared_ptr<Record>& step : known.steps)
      if (step) step->forget();
}

std::string report() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  return Report(all).str();
}

std::unique_ptr<BoundStep> timed(std::unique_ptr<BoundStep> bound, const Program& program, std::size_t number,
                                 const Bindings& bindings) {
  if (!wanted()) return bound;
  const Step& step = *program.steps[number];
  return std::make_unique<TimedStep>(std::move(bound), registry().record(program, number, bindings),
                                     touched_bytes(program, step, bindings), known_size(step.flops(), bindings));
}

}  // namespace stet::step_times
