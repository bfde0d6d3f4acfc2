// What one compiled function does, measured.
#include <algorithm>
#include <cstdio>
#include <map>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/function_state.h"
#include "stet/report/machine_limits.h"
#include "stet/report/numbers.h"
#include "stet/report/profile_state.h"
#include "stet/report/summary.h"

namespace stet {

using namespace reporting;

namespace {

constexpr double measured_seconds = 0.5;
constexpr std::int64_t fewest_calls = 3, most_calls = 100'000;

/// Of the function's traces, the one that has served most since these counts were taken; null where none has.
std::shared_ptr<Entry> busiest(FunctionBase::State& function, const std::map<const Entry*, std::uint64_t>& before) {
  std::shared_ptr<Entry> out;
  std::uint64_t most = 0;
  for (const std::shared_ptr<Entry>& entry : function.cache.known()) {
    auto known = before.find(entry.get());
    const std::uint64_t calls = entry->calls.load() - (known == before.end() ? 0 : known->second);
    if (calls > most) {
      most = calls;
      out = entry;
    }
  }
  return out;
}

/// "12.3 GB/s (45 %)".
std::string rate(double amount, double seconds, double most, const char* unit) {
  if (amount <= 0 || seconds <= 0) return "";
  const double reached = amount / seconds;
  std::string out = text(prefixed(reached), unit);
  if (most > 0) out += text(" (", percent_text(reached / most), ")");
  return out;
}

}  // namespace

namespace inside {

FunctionProfile profiled(const FunctionBase& function, const std::function<void()>& call, Where where) {
  auto state = std::static_pointer_cast<FunctionBase::State>(function.body());
  if (!state)
    throw UserError(error_text("profile: this Function was moved from and holds nothing", where,
                               "use the one that it was moved to, or copy it instead: copies share"));
  call();
  std::map<const Entry*, std::uint64_t> before;
  for (const std::shared_ptr<Entry>& entry : state->cache.known()) before[entry.get()] = entry->calls.load();

  FunctionProfile out{.function = state->name};
  Profile recorder(ProfileOptions{}, where);
  const std::uint64_t begin = recording::now();
  double seconds = 0;
  while (out.calls < most_calls && (out.calls < fewest_calls || seconds < measured_seconds)) {
    call();
    ++out.calls;
    seconds = static_cast<double>(recording::now() - begin) * 1e-9;
  }
  out.seconds = seconds / static_cast<double>(out.calls);
  recorder.stop(where);

  const std::shared_ptr<Entry> trace = busiest(*state, before);
  if (!trace)
    throw UserError(
        error_text(text("profile: the call of '", state->name, "' is not served by a trace"), where,
                   "it ran eagerly, or inside of another trace: profile it outside, and raise .max_traces"));
  out.arguments = text("(", joined(trace->types, ", "), ")");
  for (int input : trace->program->in_place) out.updates_in_place += input >= 0;
  out.updates = static_cast<int>(trace->written.size());
  if (std::shared_ptr<const BoundProgram> bound = trace->latest_bound())
    out.arena_bytes = static_cast<std::int64_t>(bound->arena_bytes());
  const MachineLimits limits = machine_limits();
  out.machine_bytes = limits.bytes;
  out.machine_flops = limits.flops;

  const Recorded recorded = recorder.state_->recorded();
  const Summary summary = summarize(recorded);
  const double calls = static_cast<double>(out.calls);
  for (const KernelSummary& kernel : summary.kernels) {
    if (!kernel.function || summary.functions[*kernel.function].name != state->cache.account()->recorded_as()) continue;
    out.kernels.push_back({.name = kernel.name,
                           .made_of = kernel.made_of,
                           .not_fused = kernel.not_fused,
                           .runs = static_cast<double>(kernel.count) / calls,
                           .seconds = kernel.seconds / calls,
                           .bytes = kernel.bytes / calls,
                           .flops = kernel.flops / calls,
                           .threads = kernel.threads});
  }
  return out;
}

}  // namespace inside

std::string FunctionProfile::str() const {
  std::string out = text(function, arguments, ": ", seconds_text(seconds), " a call (", counted(calls, "call"),
                         " measured), ", counted(static_cast<std::int64_t>(kernels.size()), "kernel"), "\n");
  char line[160];
  if (!kernels.empty()) {
    std::snprintf(line, sizeof line, "  %9s %6s %18s %18s %7s  %s\n", "time", "share", "memory", "arithmetic",
                  "threads", "kernel");
    out += line;
  }
  for (const KernelProfile& kernel : kernels) {
    std::snprintf(line, sizeof line, "  %9s %6s %18s %18s %7d  ", seconds_text(kernel.seconds).c_str(),
                  percent_text(kernel.seconds / std::max(seconds, 1e-12)).c_str(),
                  rate(kernel.bytes, kernel.seconds, machine_bytes, "B/s").c_str(),
                  rate(kernel.flops, kernel.seconds, machine_flops, "F/s").c_str(), kernel.threads);
    out += text(line, kernel.name, "\n");
    if (kernel.made_of.size() > 1) out += text(std::string(69, ' '), "made of ", joined(kernel.made_of, ", "), "\n");
    if (!kernel.not_fused.empty()) out += text(std::string(69, ' '), "ends there: ", kernel.not_fused, "\n");
  }
  out += text("between kernels ", bytes_text(static_cast<double>(arena_bytes)), "; ");
  if (updates > 0) out += text(updates_in_place, " of ", counted(updates, "Variable"), " written in place; ");
  out += text("this machine: ", prefixed(machine_bytes), "B/s, ", prefixed(machine_flops), "F/s at most\n");
  return out;
}

}  // namespace stet
