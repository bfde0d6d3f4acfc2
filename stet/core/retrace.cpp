#include "stet/core/retrace.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/core/handle.h"
#include "stet/core/recorded_function.h"
#include "stet/core/retrace_fix.h"
#include "stet/core/tensor_node.h"
#include "stet/runtime/log.h"

namespace stet {

std::string ArgumentNames::of(int number, const std::string& path) const {
  auto at = static_cast<std::size_t>(number);
  if (at < names.size()) return text("argument ", number, " '", names[at], path, "'");
  return text("argument ", number, path.empty() ? "" : text(" at '", path, "'"));
}
std::string ArgumentNames::in(int number, const std::string& path) const {
  auto at = static_cast<std::size_t>(number);
  return (at < names.size() ? names[at] : text("a", number)) + path;
}

std::string milliseconds_text(double milliseconds) {
  char out[32];
  std::snprintf(out, sizeof out, milliseconds < 10 ? "%.1f" : "%.0f", milliseconds);
  return out;
}

std::string explanation_line(const std::string& label, const std::string& what) {
  return text("  ", label, std::string(label.size() < 16 ? 16 - label.size() : 1, ' '), what, "\n");
}

namespace {

/// In how many ways they differ: what the nearest trace is nearest by.
std::size_t distance(const LeafKey& a, const LeafKey& b) {
  if (a.kind != b.kind) return 4;
  return std::size_t{a.dtype != b.dtype} + std::size_t{a.rank != b.rank} + std::size_t{a.bits != b.bits} +
         std::size_t{a.device != b.device};
}

/// Why a leaf of this call does not fit a trace's; empty if it does.
std::string difference(const LeafKey& traced, const LeafKey& now) {
  if (traced == now) return {};
  if (traced.kind != now.kind) return "another kind of argument";
  switch (now.kind) {
    case Leaf::tensor:
      if (traced.rank == now.rank && now.rank == no_tensor_rank)
        return now.bits ? "a gradient that is not there" : "an undefined tensor, no gradient any more";
      if (traced.rank == no_tensor_rank) return "a tensor, where there was none";
      if (now.rank == no_tensor_rank) return "no tensor any more";
      if (traced.bits != now.bits)
        return now.bits ? "a C++ number, which takes the type of what it meets" : "a tensor, no C++ number any more";
      if (traced.dtype != now.dtype) return now.bits ? "another kind of number" : "dtype changed";
      return traced.rank != now.rank ? "rank changed" : "it lies on another device";
    case Leaf::variable:
      return "another Variable";
    case Leaf::number:
      return "the value of a C++ number changed, and is part of the trace";
    case Leaf::text:
      return "another text, which is part of the trace";
    case Leaf::object:
      return inside::Body::object_of(traced.bits) == inside::Body::object_of(now.bits) ? "it was changed"
                                                                                       : "another object";
    default:
      return "another number of elements";
  }
}

/// "x_0 is 7, y_1 is 3": the sizes of this call that a fact speaks of.
std::string sizes_of(const Fact& fact, const MissedCall& call, const Entry& nearest) {
  std::vector<std::string> out;
  std::vector<int> wanted = fact.left.symbols(), more = fact.right.symbols();
  wanted.insert(wanted.end(), more.begin(), more.end());
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    const Shape& shape = nearest.program->inputs[i].shape;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      std::optional<int> symbol = shape[axis].as_symbol();
      if (!symbol || std::count(wanted.begin(), wanted.end(), *symbol) == 0) continue;
      std::erase(wanted, *symbol);  // once, where it stands for two axes
      out.push_back(text(shape[axis], " is ", call.tensors[i].node()->sizes[axis]));
    }
  }
  return joined(out, ", ");
}

/// What host code did when it was traced and what it does now.
std::string stale_lines(const RunDifference& found) {
  return explanation_line("traced", text(found.first, at_line(found.where))) + explanation_line("now", found.second);
}

}  // namespace

std::string RetraceCause::fix_lines() const {
  std::string out;
  for (std::size_t i = 0; i < fixes.size(); ++i) out += explanation_line(i == 0 ? "fix" : "", fixes[i]);
  return out;
}

std::vector<std::string> RetraceCause::reasons() const {
  std::vector<std::string> out;
  std::istringstream lines(headline);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::string& reason = out.emplace_back();
    for (char c : line)
      if (c != ' ' || (!reason.empty() && reason.back() != ' ')) reason += c;
  }
  return out;
}

std::string stale_explanation(const MissedCall& call, const RunDifference& found, std::uint64_t number) {
  return text("stet: '", call.function, "' would be traced differently now (call ", number, " of its trace)",
              at_line(call.where, ", called at "), "\n", stale_lines(found),
              explanation_line("why",
                               "host code runs while tracing only: what it captured (a number, a flag, a layer, "
                               "a list) has changed, and calls do not see it"),
              explanation_line("fix",
                               "pass what changes as an argument, keep it in a Variable, or use stet::random; "
                               "or choose {.on_stale = OnStale::retrace}"));
}

RetraceCause cause_of(const MissedCall& call, std::span<const std::shared_ptr<Entry>> entries,
                      std::span<const CallRecord> earlier, int trace) {
  RetraceCause out;
  // The nearest trace: the fewest differences; the latest among equals.
  std::size_t fewest = SIZE_MAX;
  for (const std::shared_ptr<Entry>& entry : entries) {
    std::size_t different = entry->key.size() == call.key.size() ? 0 : 100;
    for (std::size_t i = 0; i < std::min(call.key.size(), entry->key.size()); ++i)
      different += distance(entry->key[i], call.key[i]);
    if (different <= fewest) {
      fewest = different;
      out.nearest = entry;
    }
  }
  out.headline =
      text("stet: tracing '", call.function, "' again (trace ", trace, ")", at_line(call.where, ", called at "), "\n");
  if (call.stale) {
    out.headline += stale_lines(*call.stale);
    out.cause = text("stale", at_line(call.stale->where));
    return out;
  }
  if (!out.nearest) {
    out.headline += explanation_line("traces", "none is left: clear() has forgotten them");
    out.cause = "clear";
    return out;
  }
  std::vector<Fix> fixes;
  const std::size_t leaves = call.leaves.size(), traced_leaves = out.nearest->types.size();
  for (std::size_t i = 0; i < std::min(leaves, traced_leaves); ++i) {
    std::string why = difference(out.nearest->key[i], call.key[i]);
    if (why.empty()) continue;
    out.headline += explanation_line(call.arguments.of(call.owners[i], call.leaves[i].path),
                                     text(out.nearest->types[i], " -> ", described(call.leaves[i]), "   ", why));
    out.cause += text(call.owners[i], call.leaves[i].path, why);
    Fix fix = fix_of_leaf(call, *out.nearest, i, earlier);
    // Elements of one list have one fix.
    auto same = std::find_if(fixes.begin(), fixes.end(), [&](const Fix& other) { return other.text == fix.text; });
    if (same == fixes.end())
      fixes.push_back(std::move(fix));
    else if (same->change && fix.change)
      same->change = [first = same->change, second = fix.change](CallRecord& record) {
        first(record);
        second(record);
      };
    // What follows a vector of another length is other leaves.
    if (call.key[i].kind != out.nearest->key[i].kind || call.key[i].kind == Leaf::count) break;
  }
  // What follows the leaves in a key is the surroundings of the call (core/ambient.h).
  if ((call.key.size() > leaves) != (out.nearest->key.size() > traced_leaves)) {
    out.headline +=
        explanation_line("training", call.key.size() > leaves ? "false -> true   the layer around the call trains"
                                                              : "true -> false   no layer around the call trains");
    out.cause += "training";
  }
  if (fewest == 0) {
    std::vector<Fact> broken = out.nearest->broken_facts(call.tensors);
    for (const Fact& fact : broken) {
      out.headline +=
          explanation_line("size", text(fact, " does not hold any more: ", sizes_of(fact, call, *out.nearest), "; ",
                                        fact.reason.asker, " asked for it", at_line(fact.reason.where)));
      out.cause += text(fact.reason.asker, at_line(fact.reason.where));
    }
    fixes = fixes_of_sizes(call, *out.nearest, broken, earlier);
  }
  out.fixes = tried(fixes, call, earlier);
  return out;
}

std::string cost_line(const Entry& made, const Entry& nearest) {
  std::uint64_t calls = nearest.calls.load();
  return explanation_line("cost", text(milliseconds_text(made.trace_milliseconds + made.compile_milliseconds),
                                       " ms to trace and compile; the nearest trace took ",
                                       milliseconds_text(nearest.trace_milliseconds + nearest.compile_milliseconds),
                                       " ms and has served ", calls, calls == 1 ? " call" : " calls"));
}

namespace {

thread_local int forbidden = 0;

template <class Event>
struct Listener {
  using Call = std::function<void(const Event&)>;
  Lock guard;
  std::shared_ptr<const Call> call;

  void set(Call next) {
    auto replaced = next ? std::make_shared<const Call>(std::move(next)) : nullptr;
    std::lock_guard lock(guard);
    std::swap(call, replaced);  // the old one ends after the lock
  }
  /// To the listener, or where there is none and `is_news` to stderr. What a listener throws goes there too: the call
  /// that is told of is served, and an exception would lose its results.
  void tell(const Event& event, bool is_news, const char* name) {
    std::shared_ptr<const Call> listener;
    {
      std::lock_guard lock(guard);
      listener = call;
    }
    if (!listener) {
      if (is_news) report(event.explanation);
      return;
    }
    std::string problem = "something that is no std::exception";
    try {
      return (*listener)(event);
    } catch (const std::exception& error) {
      problem = error.what();
    } catch (...) {
    }
    report(text("stet: the listener of ", name, " threw: ", problem, "\n", event.explanation));
  }
};
Listener<RetraceEvent>& retrace_listener() {
  static auto* const one = new Listener<RetraceEvent>;  // never destroyed: see thread_end.h
  return *one;
}
Listener<StaleEvent>& stale_listener() {
  static auto* const one = new Listener<StaleEvent>;  // never destroyed: see thread_end.h
  return *one;
}

/// Functions by the line that made them.
struct FunctionLines {
  struct Line {
    int ended = 0;
    bool told = false;
  };
  Lock guard;
  std::map<std::string, Line> lines;
};
FunctionLines& function_lines() {
  static FunctionLines* const one = new FunctionLines;  // never destroyed: see thread_end.h
  return *one;
}
constexpr int most_ended = 16;

}  // namespace

void tell_stale(const StaleEvent& event) {
  record_event("audit", event.function, event.explanation);
  stale_listener().tell(event, log_wants(LogLevel::warning, "audit"), "on_stale");
}
void on_stale(std::function<void(const StaleEvent&)> call) { stale_listener().set(std::move(call)); }
void tell_retrace(const RetraceEvent& event, bool is_news) {
  record_event(event.trace > 1 ? "retrace" : "warning", event.function, event.explanation);
  retrace_listener().tell(event, log_wants(is_news ? LogLevel::warning : LogLevel::info, "retrace"), "on_retrace");
}
void on_retrace(std::function<void(const RetraceEvent&)> call) { retrace_listener().set(std::move(call)); }

bool retraces_forbidden() { return forbidden > 0; }
NoRetrace::NoRetrace() { ++forbidden; }
NoRetrace::~NoRetrace() { --forbidden; }

void note_function_ended(Where where) {
  if (!where.known()) return;
  std::lock_guard lock(function_lines().guard);
  ++function_lines().lines[at_line(where, "")].ended;
}

void note_function_traced(const std::string& name, Where where) {
  if (!where.known()) return;
  {
    std::lock_guard lock(function_lines().guard);
    auto found = function_lines().lines.find(at_line(where, ""));
    if (found == function_lines().lines.end() || found->second.ended < most_ended || found->second.told) return;
    found->second.told = true;
  }
  tell_retrace({name, 1,
                text("stet: tracing '", name, "' for another function made", at_line(where), "\n",
                     explanation_line("functions", text(most_ended,
                                                        " that were made there have been traced, and have "
                                                        "ended: each traces anew")),
                     explanation_line("fix", "make the function once, outside of the loop, and call that one"))},
               true);
}

}  // namespace stet
