#include "stet/core/retrace.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <mutex>

#include "stet/base/text.h"
#include "stet/core/handle.h"
#include "stet/core/tensor_node.h"

namespace stet {

std::string ArgumentNames::of(int number) const {
  auto at = static_cast<std::size_t>(number);
  return at < names.size() ? text("argument ", number, " '", names[at], "'") : text("argument ", number);
}
std::string ArgumentNames::in(int number) const {
  auto at = static_cast<std::size_t>(number);
  return at < names.size() ? names[at] : text("a", number);
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
  return std::size_t{a.dtype != b.dtype} + std::size_t{a.rank != b.rank} + std::size_t{a.bits != b.bits};
}

struct Difference {
  std::string why, fix;
};

/// Why a leaf of this call does not fit a trace's; empty if it does.
Difference difference(const LeafKey& traced, const LeafKey& now, bool scalar, const std::string& name) {
  if (traced == now) return {};
  if (traced.kind != now.kind) return {"another kind of argument", "pass the same kind of value in every call"};
  switch (now.kind) {
    case Leaf::tensor:
      if (traced.dtype != now.dtype && scalar)
        return {"another kind of number", text("pass integers or reals, not both, as ", name)};
      if (traced.dtype != now.dtype)
        return {"dtype changed", text("cast(", name, ", ", traced.dtype, ") before the call")};
      return {"rank changed", text("reshape or expand_dims ", name, " to one rank before the call")};
    case Leaf::variable:
      return {"another Variable", text("pass the same Variable in every call, or its value as a Tensor")};
    case Leaf::number:
      return {"the value of a C++ number changed, and is part of the trace",
              text("declare the parameter as Scalar or Tensor instead of a C++ number: then ", name,
                   " is an input of the program")};
    case Leaf::object:
      if (Body::object_of(traced.bits) == Body::object_of(now.bits))
        return {"it was changed",
                text("change ", name, " before its first call: each change needs a trace of its own")};
      return {"another object", text("make ", name, " once and pass the same one in every call")};
    default:
      return {"another number of elements", text("pass as many in every call, or stack them into one Tensor")};
  }
}

/// The facts about sizes that the call does not obey.
void explain_facts(const MissedCall& call, const Entry& nearest, RetraceCause& out) {
  for (const Fact& fact : nearest.broken_facts(call.tensors)) {
    out.headline += explanation_line("size", text(fact, " does not hold any more; ", fact.reason.asker, " asked for it",
                                                  at_line(fact.reason.where)));
    out.cause += text(fact.reason.asker, at_line(fact.reason.where));
    bool host = std::string_view(fact.reason.asker) == "host code";
    out.fix =
        host ? text("keep the size a Dim in host code", at_line(fact.reason.where), ", or let all calls agree in it")
             : text("let all calls agree in these sizes, or pad to them");
  }
}

/// What host code did when it was traced and what it does now.
std::string stale_lines(const RunDifference& found) {
  return explanation_line("traced", text(found.first, at_line(found.where))) + explanation_line("now", found.second);
}

}  // namespace

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

RetraceCause cause_of(const MissedCall& call, const std::vector<std::shared_ptr<Entry>>& entries, int trace) {
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
  const std::size_t leaves = call.leaves.size(), traced_leaves = out.nearest->types.size();
  for (std::size_t i = 0; i < std::min(leaves, traced_leaves); ++i) {
    Difference found =
        difference(out.nearest->key[i], call.key[i], call.leaves[i].scalar, call.arguments.in(call.owners[i]));
    if (found.why.empty()) continue;
    out.headline += explanation_line(call.arguments.of(call.owners[i]),
                                     text(out.nearest->types[i], " -> ", described(call.leaves[i]), "   ", found.why));
    out.cause += text(call.owners[i], found.why);
    if (out.fix.empty()) out.fix = found.fix;
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
  if (fewest == 0) explain_facts(call, *out.nearest, out);
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
  std::mutex guard;
  std::function<void(const Event&)> call;
};
Listener<RetraceEvent>& listener() {
  static auto* const one = new Listener<RetraceEvent>;
  return *one;
}
Listener<StaleEvent>& stale_listener() {
  static auto* const one = new Listener<StaleEvent>;
  return *one;
}

}  // namespace

void tell_stale(const StaleEvent& event) {
  std::function<void(const StaleEvent&)> call;
  {
    std::lock_guard lock(stale_listener().guard);
    call = stale_listener().call;
  }
  if (call)
    call(event);
  else
    std::cerr << event.explanation;
}

void on_stale(std::function<void(const StaleEvent&)> call) {
  std::lock_guard lock(stale_listener().guard);
  stale_listener().call = std::move(call);
}

bool retraces_forbidden() { return forbidden > 0; }
NoRetrace::NoRetrace() { ++forbidden; }
NoRetrace::~NoRetrace() { --forbidden; }

void tell_retrace(const RetraceEvent& event, bool is_news) {
  std::function<void(const RetraceEvent&)> call;
  {
    std::lock_guard lock(listener().guard);
    call = listener().call;
  }
  if (call)
    call(event);
  else if (is_news)
    std::cerr << event.explanation;
}

void on_retrace(std::function<void(const RetraceEvent&)> call) {
  std::lock_guard lock(listener().guard);
  listener().call = std::move(call);
}

}  // namespace stet
