#include "stet/core/ledger.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string_view>
#include <utility>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/function_entry.h"
#include "stet/core/ledger_account.h"
#include "stet/core/retrace.h"
#include "stet/runtime/log.h"

namespace stet {
namespace {

constexpr std::size_t most_kinds = 256;  // of traces of one function that are told apart
constexpr const char* other_traces = "others";

struct Accounts {
  Lock guard;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<LedgerAccount>> all;  // by name and line
};
Accounts& accounts() {
  static auto* const one = new Accounts;  // never destroyed: see thread_end.h
  return *one;
}

/// Arguments and facts, without lines, which move as a program is written: "(f32[x_0,3]) x_0 == y_0".
std::string kind_of(const Entry& trace) {
  std::string out = text("(", joined(trace.types, ", "), ")");
  std::vector<std::string> facts;
  for (const Fact& fact : trace.program->facts) facts.push_back(text(fact));
  std::sort(facts.begin(), facts.end());
  facts.erase(std::unique(facts.begin(), facts.end()), facts.end());
  for (std::size_t i = 0; i < facts.size(); ++i) out += text(i == 0 ? " on " : ", ", facts[i]);
  for (char& c : out)
    if (c == '\n') c = ' ';
  return out;
}

}  // namespace

// --- accounts

std::shared_ptr<LedgerAccount> LedgerAccount::of(const std::string& function, Where where) {
  record_traces_at_end();
  const std::string made_at = at_line(where, "");
  std::lock_guard lock(accounts().guard);
  auto& all = accounts().all;
  auto same_name = all.lower_bound({function, ""});
  const bool is_only = same_name == all.end() || same_name->first.first != function;
  std::shared_ptr<LedgerAccount>& place = all[{function, made_at}];
  if (!place)
    place.reset(new LedgerAccount(function, where, made_at, is_only ? function : text(function, at_line(where))));
  return place;
}

std::vector<std::shared_ptr<LedgerAccount>> LedgerAccount::all() {
  std::lock_guard lock(accounts().guard);
  std::vector<std::shared_ptr<LedgerAccount>> out;
  for (const auto& [key, account] : accounts().all) out.push_back(account);
  return out;
}

std::vector<std::shared_ptr<Entry>> LedgerAccount::live() const {
  std::lock_guard lock(guard_);
  std::vector<std::shared_ptr<Entry>> out;
  for (const std::weak_ptr<Entry>& one : live_)
    if (std::shared_ptr<Entry> entry = one.lock()) out.push_back(std::move(entry));
  return out;
}

void LedgerAccount::add(const std::shared_ptr<Entry>& trace, bool first) {
  std::string kind = kind_of(*trace);
  std::lock_guard lock(guard_);
  const double milliseconds = trace->trace_milliseconds + trace->compile_milliseconds;
  if (std::exchange(generation_, fork_generation()) != fork_generation()) at_fork_ = sums_;
  (first ? sums_.first_milliseconds : sums_.lost_milliseconds) += milliseconds;
  sums_.functions += first;
  ++sums_.traces;
  std::erase_if(live_, [](const std::weak_ptr<Entry>& one) { return one.expired(); });
  live_.push_back(trace);
  if (traces_.size() >= most_kinds && !traces_.contains(kind)) kind = other_traces;
  ++traces_[kind];
}

void LedgerAccount::add_cause(const std::string& cause, double milliseconds) {
  std::lock_guard lock(guard_);
  if (causes_.size() < most_kinds || causes_.contains(cause)) causes_[cause] += milliseconds;
}

void LedgerAccount::settle(std::uint64_t calls) {
  std::lock_guard lock(guard_);
  sums_.calls += calls;
}

LedgerLine LedgerAccount::line() const {
  std::vector<std::shared_ptr<const Entry>> held;  // ends after the lock: the last holder settles
  std::lock_guard lock(guard_);
  LedgerLine out = sums_;
  out.function = function_;
  out.made_at = made_at_;
  for (const std::weak_ptr<Entry>& one : live_)
    if (std::shared_ptr<const Entry> entry = one.lock()) {
      out.calls += entry->calls.load(std::memory_order_relaxed);
      held.push_back(std::move(entry));
    }
  double most = -1;
  for (const auto& [cause, milliseconds] : causes_)
    if (milliseconds > most) {
      most = milliseconds;
      out.cause = cause;
    }
  return out;
}

LedgerLine LedgerAccount::line_of_this_process() const {
  LedgerLine out = line();
  std::lock_guard lock(guard_);
  const LedgerLine& before = generation_ == fork_generation() ? at_fork_ : sums_;
  out.functions -= before.functions;
  out.traces -= before.traces;
  out.first_milliseconds -= before.first_milliseconds;
  out.lost_milliseconds -= before.lost_milliseconds;
  return out;
}

std::map<std::string, int> LedgerAccount::traces() const {
  std::lock_guard lock(guard_);
  return traces_;
}

// --- the ledger

std::vector<LedgerLine> ledger() {
  std::vector<LedgerLine> out;
  for (const std::shared_ptr<LedgerAccount>& account : LedgerAccount::all()) {
    out.push_back(account->line());
    if (out.back().traces == 0) out.pop_back();  // the first trace is in the making, or failed
  }
  std::stable_sort(out.begin(), out.end(), [](const LedgerLine& a, const LedgerLine& b) {
    return std::pair(a.lost_milliseconds, a.first_milliseconds) > std::pair(b.lost_milliseconds, b.first_milliseconds);
  });
  return out;
}

std::string ledger_text() {
  std::vector<LedgerLine> lines = ledger();
  double lost = 0;
  int retraces = 0, functions = 0, all = 0;
  for (const LedgerLine& line : lines) {
    lost += line.lost_milliseconds;
    retraces += line.traces - line.functions;
    functions += line.traces > line.functions;
    all += line.traces;
  }
  std::string out = text("stet: ", all, all == 1 ? " trace" : " traces", " of ", lines.size(),
                         lines.size() == 1 ? " function; " : " functions; ", milliseconds_text(lost), " ms lost to ",
                         retraces, retraces == 1 ? " retrace" : " retraces", " of ", functions, "\n");
  if (lines.empty()) return out;
  auto row = [&](const std::string& lost_ms, const std::string& first_ms, const std::string& traces,
                 const std::string& calls, const std::string& name) {
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "  %9s %9s %7s %10s  ", lost_ms.c_str(), first_ms.c_str(), traces.c_str(),
                  calls.c_str());
    out += text(numbers, name, "\n");
  };
  row("lost ms", "first ms", "traces", "calls", "function");
  for (const LedgerLine& line : lines) {
    std::string name = line.function;
    if (!line.made_at.empty() && name.find(line.made_at) == std::string::npos) name += text(" at ", line.made_at);
    if (line.functions > 1) name += text(", made ", line.functions, " times");
    row(milliseconds_text(line.lost_milliseconds), milliseconds_text(line.first_milliseconds), text(line.traces),
        text(line.calls), name);
    if (!line.cause.empty()) out += text(std::string(42, ' '), line.cause, "\n");
  }
  return out;
}

namespace {

constexpr double lost_share = 0.05, lost_least = 0.5;  // of a run, and seconds: less is not worth a word
constexpr std::size_t most_lines = 4;                  // of functions in that word
constexpr double share_of_lost = 0.05;                 // that each of these has

std::string place_of(const LedgerLine& line) {
  const bool is_known = !line.made_at.empty() && line.function.find(line.made_at) == std::string::npos;
  return text("'", line.function, "'", is_known ? text(" at ", line.made_at) : "");
}

}  // namespace

std::string ledger_warning(const std::vector<LedgerLine>& lines, double run_seconds) {
  double lost = 0;
  int retraces = 0;
  for (const LedgerLine& line : lines) {
    lost += line.lost_milliseconds / 1e3;
    retraces += line.traces - line.functions;
  }
  if (retraces == 0 || lost < lost_least || lost < lost_share * run_seconds) return "";
  std::vector<LedgerLine> order = lines;
  std::stable_sort(order.begin(), order.end(),
                   [](const LedgerLine& a, const LedgerLine& b) { return a.lost_milliseconds > b.lost_milliseconds; });
  const LedgerLine& first = order[0];
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "%.1f s of %.1f s, %.0f %%", lost, run_seconds,
                100 * std::min(lost / run_seconds, 1.0));
  std::string out = text("stet: ", retraces, retraces == 1 ? " retrace" : " retraces", " took ", numbers,
                         " of this run. Most of it was lost by ", place_of(first), ": ", first.traces, " traces\n");
  if (!first.cause.empty()) out += explanation_line("cause", first.cause);
  for (std::size_t i = 1; i < std::min(order.size(), most_lines); ++i) {
    const LedgerLine& line = order[i];
    if (line.lost_milliseconds / 1e3 < share_of_lost * lost) break;
    std::snprintf(numbers, sizeof numbers, "%.1f s", line.lost_milliseconds / 1e3);
    out += explanation_line("also", text(numbers, " by ", place_of(line), ": ", line.traces, " traces",
                                         line.cause.empty() ? "" : text(", ", line.cause)));
  }
  return out + explanation_line("more",
                                "STET_LEDGER=1 prints all functions; STET_PROFILE=folder records every trace "
                                "for `stet report`");
}

// --- traces.lock

namespace {

using Locked = std::map<std::string, std::map<std::string, int>>;  // by function its traces, and how many of each kind

constexpr const char* first_line =
    "# What this program traces, written by STET_TRACES_LOCK=update and compared by STET_TRACES_LOCK=check.";

std::string line_of(const std::string& name) {
  std::string out = name;
  for (char& c : out)
    if (c == '\n') c = ' ';
  return out;
}

Locked traced_now() {
  Locked out;
  for (const std::shared_ptr<LedgerAccount>& account : LedgerAccount::all())
    for (const auto& [kind, count] : account->traces()) out[line_of(account->function())][kind] += count;
  return out;
}

/// UserError for a line that is none of ours.
Locked parsed(std::istream& from, const std::string& path, Where where) {
  Locked out;
  std::string line, function;
  for (int number = 1; std::getline(from, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    int count = 0, used = 0;
    if (line.starts_with("function ")) {
      function = line.substr(9);
      out[function];
    } else if (!function.empty() && std::sscanf(line.c_str(), "  %d x %n", &count, &used) == 1 && used > 0) {
      out[function][line.substr(static_cast<std::size_t>(used))] = count;
    } else {
      throw UserError(error_text(text(path, ": line ", number, " is no line of a traces.lock: ", line), where,
                                 "write the file anew: STET_TRACES_LOCK=update, or write_traces_lock(path)"));
    }
  }
  return out;
}

std::string written(const Locked& locked) {
  std::string out = text(first_line, "\n");
  for (const auto& [function, traces] : locked) {
    out += text("function ", function, "\n");
    for (const auto& [kind, count] : traces) out += text("  ", count, " x ", kind, "\n");
  }
  return out;
}

}  // namespace

void write_traces_lock(const std::string& path, Where where) {
  Locked locked;
  if (std::ifstream old(path); old) locked = parsed(old, path, where);
  for (auto& [function, traces] : traced_now()) locked[function] = std::move(traces);
  // Whole or not at all: another process may read it meanwhile.
  const std::string temporary = text(path, ".", getpid());
  std::ofstream file(temporary, std::ios::trunc);
  file << written(locked);
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    throw UserError(error_text(text("write_traces_lock: '", path, "' cannot be written"), where,
                               "check that its folder exists and may be written"));
  }
}

std::vector<std::string> check_traces_lock(const std::string& path, Where where) {
  std::ifstream file(path);
  if (!file)
    throw UserError(error_text(text("check_traces_lock: '", path, "' cannot be read"), where,
                               "write it first: STET_TRACES_LOCK=update, or write_traces_lock(path)"));
  const Locked allowed = parsed(file, path, where);
  std::vector<std::string> out;
  for (const auto& [function, traces] : traced_now()) {
    auto known = allowed.find(function);
    if (known == allowed.end()) {
      out.push_back(text("'", function, "' is not in ", path, ", and was traced"));
      continue;
    }
    for (const auto& [kind, count] : traces) {
      auto same = known->second.find(kind);
      if (same == known->second.end())
        out.push_back(text("'", function, "' was traced for ", kind, ", which is not in ", path));
      else if (count > same->second)
        out.push_back(
            text("'", function, "' was traced ", count, " times for ", kind, "; ", path, " allows ", same->second));
    }
  }
  return out;
}

namespace {

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// True: the process keeps to the file, or nobody asked.
bool check_or_update(const std::string& asked) {
  std::string path = setting("STET_TRACES_LOCK_FILE");
  if (path.empty()) path = "traces.lock";
  try {
    if (asked == "update") {
      write_traces_lock(path, {});
      return true;
    }
    if (asked != "check") {
      report(text("stet: STET_TRACES_LOCK=", asked, " means nothing; it is check or update\n"));
      return false;
    }
    std::vector<std::string> broken = check_traces_lock(path, {});
    if (broken.empty()) return true;
    std::string told = "stet: this run does not keep to its traces.lock\n";
    for (const std::string& one : broken) told += text("  ", one, "\n");
    report(told + "  fix: see why (explain(), on_retrace), or allow it: STET_TRACES_LOCK=update\n");
  } catch (const std::exception& error) {
    report(text("stet: ", error.what(), "\n"));
  }
  return false;
}

std::vector<LedgerLine> ledger_of_this_process() {
  std::vector<LedgerLine> out;
  for (const std::shared_ptr<LedgerAccount>& account : LedgerAccount::all())
    out.push_back(account->line_of_this_process());
  return out;
}

const std::chrono::steady_clock::time_point begin_of_process = std::chrono::steady_clock::now();

/// The library's last word, after all destructors of the program's own.
[[gnu::destructor]] void end_of_process() {
  const std::chrono::duration<double> lived = std::chrono::steady_clock::now() - begin_of_process;
  if (std::string asked = setting("STET_LEDGER"); !asked.empty() && asked != "0")
    report(ledger_text());
  else
    report(ledger_warning(ledger_of_this_process(), lived.count()));
  if (std::string asked = setting("STET_TRACES_LOCK"); !asked.empty() && !check_or_update(asked)) {
    std::fflush(nullptr);
    std::_Exit(1);
  }
}

}  // namespace

}  // namespace stet
