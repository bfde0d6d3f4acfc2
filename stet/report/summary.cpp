#include "stet/report/summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "stet/base/text.h"
#include "stet/report/json_members.h"
#include "stet/report/span_tree.h"

namespace stet::reporting {
namespace {

using recording::Kind;

constexpr double in_seconds = 1e-9;

/// What files say is bounded, so that sums of it are numbers.
double seconds_in(const files::Json& note, std::string_view name) {
  constexpr double most = 1e9;
  return std::clamp(number_in(note, name), 0.0, most);
}
std::int64_t count_in(const files::Json& note, std::string_view name) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  return std::clamp<std::int64_t>(integer_in(note, name), 0, most);
}
int depth_in(const files::Json& stage) {
  constexpr int most = 1000;
  return std::min(small_integer_in(stage, "depth"), most);
}

/// Functions by name, as they are first spoken of.
class Functions {
 public:
  explicit Functions(std::vector<FunctionSummary>& all) : all_(all) {}

  std::size_t place_of(const std::string& name) {
    auto [found, added] = places_.try_emplace(name, all_.size());
    if (added) all_.emplace_back().name = name;
    return found->second;
  }
  FunctionSummary& of(const std::string& name) { return all_[place_of(name)]; }
  bool knows(const std::string& name) const { return places_.contains(name); }

 private:
  std::vector<FunctionSummary>& all_;
  std::unordered_map<std::string, std::size_t> places_;
};

// --- what notes say

class Notes {
 public:
  Notes(const Recorded& recorded, Summary& out, Functions& functions)
      : recorded_(recorded), out_(out), functions_(functions) {}

  void read() {
    for (const files::Json& note : recorded_.notes) {
      const std::string& kind = string_in(note, "note");
      if (kind == "trace") remember_trace(note);
      if (kind == "trace_calls") calls_[integer_in(note, "id")] = count_in(note, "calls");
      if (kind == "evicted") evicted_.insert(integer_in(note, "id"));
      if (kind == "epoch") epoch(note);
      if (kind == "event") event(note);
      if (kind == "stages") stages_of(string_in(note, "name")) = &note;
    }
    for (const files::Json* note : traces_) trace(*note);
    for (FunctionSummary& function : out_.functions) finish(function);
    events();
    stages();
  }

 private:
  /// One that is told twice is told better the second time.
  void remember_trace(const files::Json& note) {
    const std::optional<std::int64_t> id = known_integer_in(note, "id");
    if (id) {
      auto [found, added] = trace_places_.try_emplace(*id, traces_.size());
      if (!added) {
        traces_[found->second] = &note;
        return;
      }
    }
    traces_.push_back(&note);
  }

  void trace(const files::Json& note) {
    TraceSummary trace;
    trace.note = &note;
    trace.number = std::max(small_integer_in(note, "number"), 1);
    trace.begin = recorded_.seconds_at(known_integer_in(note, "begin").value_or(integer_in(note, "time")));
    trace.compiling = seconds_in(note, "compile_seconds");
    trace.seconds = seconds_in(note, "seconds") + trace.compiling;
    const std::int64_t id = known_integer_in(note, "id").value_or(-1);
    if (auto calls = calls_.find(id); calls != calls_.end()) trace.calls = calls->second;
    trace.evicted = evicted_.contains(id);
    FunctionSummary& function = functions_.of(string_in(note, "function"));
    if (function.file.empty()) {
      function.file = string_in(note, "file");
      function.line = small_integer_in(note, "line");
    }
    if (const int most = small_integer_in(note, "max_traces"); most > 0) {
      function.max_traces = most;
      function.on_limit = string_in(note, "on_limit");
    }
    function.traces.push_back(trace);
  }

  static void finish(FunctionSummary& function) {
    std::stable_sort(function.traces.begin(), function.traces.end(),
                     [](const TraceSummary& a, const TraceSummary& b) { return a.begin < b.begin; });
    for (const TraceSummary& trace : function.traces) {
      if (!trace.within()) continue;
      function.trace_seconds += trace.seconds;
      if (!trace.is_retrace()) continue;
      function.lost_seconds += trace.seconds;
      ++function.retraces;
    }
  }

  void epoch(const files::Json& note) {
    EpochSummary epoch;
    epoch.epoch = small_integer_in(note, "epoch");
    epoch.epochs = small_integer_in(note, "epochs");
    epoch.begin = recorded_.seconds_at(known_integer_in(note, "begin").value_or(integer_in(note, "time")));
    epoch.seconds = seconds_in(note, "seconds");
    epoch.waited = seconds_in(note, "waited");
    epoch.batches = count_in(note, "batches");
    if (const files::Json* values = note.find("values"); values && values->if_object()) epoch.values = values;
    const std::string& name = string_in(note, "name");
    // Another fit of the same model begins again.
    auto [found, added] = trainings_.try_emplace(name, out_.training.size());
    if (!added && out_.training[found->second].epochs.back().epoch >= epoch.epoch) {
      found->second = out_.training.size();
      added = true;
    }
    if (added) out_.training.push_back({name, {}});
    out_.training[found->second].epochs.push_back(epoch);
  }

  void event(const files::Json& note) {
    out_.events.push_back({recorded_.seconds_at(integer_in(note, "time")), string_in(note, "kind"),
                           string_in(note, "text"), string_in(note, "function")});
  }
  void events() {
    std::stable_sort(out_.events.begin(), out_.events.end(),
                     [](const EventSummary& a, const EventSummary& b) { return a.time < b.time; });
    for (const EventSummary& event : out_.events)
      if (event.kind == "warning" && functions_.knows(event.function))
        functions_.of(event.function).warnings.push_back(event.text);
  }

  const files::Json*& stages_of(const std::string& dataset) {
    for (auto& [name, note] : datasets_)
      if (name == dataset) return note;
    return datasets_.emplace_back(dataset, nullptr).second;
  }
  void stages() {
    for (const auto& [dataset, note] : datasets_) {
      const bool is_one_of_many = datasets_.size() > 1;
      if (is_one_of_many) out_.stages.push_back({dataset, 0, std::nullopt, std::nullopt});
      for (const files::Json& stage : list_in(*note, "stages"))
        out_.stages.push_back({string_in(stage, "name"), depth_in(stage) + (is_one_of_many ? 1 : 0),
                               known_integer_in(stage, "elements"), known_number_in(stage, "seconds")});
    }
  }

  const Recorded& recorded_;
  Summary& out_;
  Functions& functions_;
  std::vector<const files::Json*> traces_;
  std::unordered_map<std::int64_t, std::size_t> trace_places_;
  std::unordered_map<std::int64_t, std::int64_t> calls_;
  std::set<std::int64_t> evicted_;
  std::map<std::string, std::size_t> trainings_;  // the latest of a name
  std::vector<std::pair<std::string, const files::Json*>> datasets_;
};

// --- what spans say

class Spans {
 public:
  Spans(const Recorded& recorded, Summary& out, Functions& functions)
      : recorded_(recorded), out_(out), functions_(functions), tree_(recorded) {}

  void read() {
    function_of_name_.assign(recorded_.names.size(), none);
    nested_steps_.assign(recorded_.spans.size(), 0);
    for (std::size_t i = 0; i < recorded_.spans.size(); ++i) look_at(i);
    kernels();
    regions();
    about_kernels();
    shares();
  }

 private:
  static constexpr std::size_t none = SIZE_MAX;

  std::size_t function_of_call(std::size_t call) {
    const std::uint32_t name = recorded_.spans[call].name;
    if (function_of_name_[name] == none) function_of_name_[name] = functions_.place_of(recorded_.names[name]);
    return function_of_name_[name];
  }

  void look_at(std::size_t i) {
    const RecordedSpan& span = recorded_.spans[i];
    const std::optional<Kind> kind = recorded_.kind_of(span);
    const double seconds = static_cast<double>(span.duration) * in_seconds;
    if (kind == Kind::call) {
      FunctionSummary& function = out_.functions[function_of_call(i)];
      ++function.calls;
      function.self_seconds += seconds;
      if (!tree_.is_in_call_of_its_name(i)) function.seconds += seconds;
      if (const std::size_t outer = tree_.call_around(i); outer != SpanTree::none)
        out_.functions[function_of_call(outer)].self_seconds -= seconds;
    } else if (kind == Kind::step) {
      if (const std::size_t outer = tree_.step_around(i); outer != SpanTree::none)
        nested_steps_[outer] += span.duration;
    } else if (kind == Kind::wait) {
      ++out_.waits;
    } else if (kind == Kind::run) {
      ++out_.eager_runs;
    } else if (kind == Kind::trace) {
      ++out_.trace_spans;
    }
  }

  void kernels() {
    std::unordered_map<std::uint64_t, std::size_t> places;
    for (std::size_t i = 0; i < recorded_.spans.size(); ++i) {
      const RecordedSpan& span = recorded_.spans[i];
      if (recorded_.kind_of(span) != Kind::step) continue;
      const std::size_t call = tree_.call_around(i);
      const std::size_t function = call == SpanTree::none ? none : function_of_call(call);
      auto [found, added] = places.try_emplace(
          (std::uint64_t{span.name} << 32) | static_cast<std::uint32_t>(function + 1), out_.kernels.size());
      if (added) {
        KernelSummary& kernel = out_.kernels.emplace_back();
        kernel.name = recorded_.names[span.name];
        if (function != none) kernel.function = function;
      }
      KernelSummary& kernel = out_.kernels[found->second];
      const double seconds = static_cast<double>(span.duration - nested_steps_[i]) * in_seconds;
      ++kernel.count;
      kernel.seconds += seconds;
      kernel.bytes += span.bytes;
      kernel.flops += span.flops;
      steps_.push_back({span.name, span.begin, span.end(), found->second});
      ++out_.runs;
      if (seconds >= short_run || nested_steps_[i] > 0) continue;
      ++out_.short_runs;
      out_.short_seconds += seconds;
    }
  }

  /// Workers' parts are of the step of their name that runs at that time.
  void regions() {
    const bool any = std::any_of(recorded_.spans.begin(), recorded_.spans.end(),
                                 [&](const RecordedSpan& span) { return recorded_.kind_of(span) == Kind::region; });
    if (!any) return;
    auto earlier = [](const Step& a, const Step& b) { return std::pair(a.name, a.begin) < std::pair(b.name, b.begin); };
    if (!std::is_sorted(steps_.begin(), steps_.end(), earlier)) std::sort(steps_.begin(), steps_.end(), earlier);
    std::set<std::pair<std::size_t, std::uint16_t>> seen;
    for (const RecordedSpan& span : recorded_.spans) {
      if (recorded_.kind_of(span) != Kind::region) continue;
      auto after = std::upper_bound(steps_.begin(), steps_.end(), Step{span.name, span.begin, 0, 0}, earlier);
      if (after == steps_.begin()) continue;
      const Step& step = *std::prev(after);
      if (step.name != span.name || step.end < span.begin) continue;
      if (seen.emplace(step.kernel, span.thread).second) ++out_.kernels[step.kernel].threads;
    }
  }

  static KernelOrigin place_in(const files::Json& note) {
    return {string_in(note, "scope"), string_in(note, "file"), small_integer_in(note, "line")};
  }

  /// By function: the places of the steps of its traces, as far as these were told.
  std::vector<std::set<KernelOrigin>> places_of_functions() const {
    std::vector<std::set<KernelOrigin>> out(out_.functions.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      for (const TraceSummary& trace : out_.functions[i].traces)
        if (const files::Json* program = trace.note->find("program"))
          for (const files::Json& node : list_in(*program, "nodes")) out[i].insert(place_in(node));
    return out;
  }

  /// Functions have kernels of one name: of the places only those of this function are meant, where they are known.
  static void add_place(std::vector<KernelOrigin>& to, const KernelOrigin& place, const std::set<KernelOrigin>& known) {
    constexpr std::size_t most_places = 8;
    const bool says_something = !place.scope.empty() || !place.file.empty();
    if (!says_something || (!known.empty() && !known.contains(place))) return;
    if (to.size() < most_places && std::find(to.begin(), to.end(), place) == to.end()) to.push_back(place);
  }

  void about_kernels() {
    std::unordered_map<std::string_view, std::vector<const files::Json*>> notes;
    for (const files::Json& note : recorded_.notes)
      if (string_in(note, "note") == "kernel") notes[string_in(note, "name")].push_back(&note);
    const std::vector<std::set<KernelOrigin>> places = places_of_functions();
    for (KernelSummary& kernel : out_.kernels) {
      auto told = notes.find(kernel.name);
      if (told == notes.end()) continue;
      const files::Json& last = *told->second.back();
      for (const files::Json& label : list_in(last, "made_of"))
        if (label.if_string()) kernel.made_of.push_back(*label.if_string());
      kernel.not_fused = string_in(last, "not_fused");
      // An op outside of functions is compiled once, for all lines that call it.
      if (kernel.function)
        for (const files::Json* note : told->second)
          add_place(kernel.places, place_in(*note), places[*kernel.function]);
    }
  }

  // --- shares

  /// The one that is busiest with calls; what workers and datasets' threads do, they do for it.
  std::optional<std::uint16_t> main_thread() const {
    std::vector<std::int64_t> calling(recorded_.threads.size()), any(recorded_.threads.size());
    for (std::size_t i = 0; i < recorded_.spans.size(); ++i) {
      if (tree_.parent(i) != SpanTree::none) continue;
      const RecordedSpan& span = recorded_.spans[i];
      const std::optional<Kind> kind = recorded_.kind_of(span);
      any[span.thread] += span.duration + 1;
      if (kind != Kind::region && kind != Kind::stage && kind != Kind::compile)
        calling[span.thread] += span.duration + 1;
    }
    for (const std::vector<std::int64_t>& busy : {calling, any}) {
      auto most = std::max_element(busy.begin(), busy.end());
      if (most != busy.end() && *most > 0) return static_cast<std::uint16_t>(most - busy.begin());
    }
    return std::nullopt;
  }

  Share share_of(std::size_t i) const {
    const std::optional<Kind> kind = recorded_.kind_of(recorded_.spans[i]);
    const bool compiles = kind == Kind::compile || kind == Kind::pass;
    switch (tree_.around(i)) {
      case SpanTree::Around::wait:
        return Share::waiting;
      case SpanTree::Around::audit:
        return compiles ? Share::compiling : Share::audits;
      case SpanTree::Around::trace:
        return compiles ? Share::compiling : Share::tracing;
      case SpanTree::Around::nothing:
        break;
    }
    if (!kind) return Share::host;
    switch (*kind) {
      case Kind::step:
      case Kind::region:
        return Share::kernels;
      case Kind::trace:
        return Share::tracing;
      case Kind::pass:
      case Kind::compile:
        return Share::compiling;
      case Kind::bind:
        return Share::binding;
      case Kind::wait:
        return Share::waiting;
      case Kind::stage:
        return Share::stages;
      case Kind::callback:
        return Share::callbacks;
      case Kind::audit:
        return Share::audits;
      case Kind::run:
        return Share::eager;
      case Kind::call:
        return Share::calls;
      default:
        return Share::host;
    }
  }

  void shares() {
    out_.main_thread = main_thread();
    std::int64_t forgotten = 0;
    if (!out_.main_thread) {
      out_.shares[static_cast<int>(Share::host)] = out_.seconds;
      return;
    }
    const auto [first, last] = tree_.of_thread(*out_.main_thread);
    if (recorded_.lost_spans > 0) {
      // Spans are written when they end, and the oldest are lost: what is kept whole begins with the first that ended.
      const auto& spans = recorded_.spans;
      auto kept = std::min_element(spans.begin() + static_cast<std::ptrdiff_t>(first),
                                   spans.begin() + static_cast<std::ptrdiff_t>(last),
                                   [](const RecordedSpan& a, const RecordedSpan& b) {
                                     return a.end() != b.end() ? a.end() < b.end() : a.begin > b.begin;
                                   });
      forgotten = std::min(kept->begin, recorded_.length);
    }
    std::int64_t sums[share_count] = {};
    for (std::size_t i = first; i < last; ++i) {
      const RecordedSpan& span = recorded_.spans[i];
      const std::int64_t took = span.end() - std::clamp(span.begin, std::min(forgotten, span.end()), span.end());
      sums[static_cast<int>(share_of(i))] += took;
      if (const std::size_t parent = tree_.parent(i); parent != SpanTree::none)
        sums[static_cast<int>(share_of(parent))] -= took;
      else
        sums[static_cast<int>(Share::host)] -= took;
    }
    sums[static_cast<int>(Share::forgotten)] = forgotten;
    sums[static_cast<int>(Share::host)] += recorded_.length - forgotten;
    for (int share = 0; share < share_count; ++share)
      out_.shares[share] = static_cast<double>(sums[share]) * in_seconds;
  }

  struct Step {
    std::uint32_t name;
    std::int64_t begin, end;
    std::size_t kernel;
  };

  const Recorded& recorded_;
  Summary& out_;
  Functions& functions_;
  SpanTree tree_;
  std::vector<std::size_t> function_of_name_;  // by name
  std::vector<std::int64_t> nested_steps_;     // by span, of a step: in the steps inside of it
  std::vector<Step> steps_;
};

// --- caches

/// How far counters went: what was told at the end or, of a program that was killed, the last that there is.
class Counts {
 public:
  explicit Counts(const Recorded& recorded) : recorded_(recorded) {
    for (const files::Json& note : recorded.notes)
      if (string_in(note, "note") == "counts") told_ = &note;
  }
  /// None where nobody counted.
  std::optional<std::int64_t> of(const char* name) const {
    if (told_ && known_integer_in(*told_, name)) return count_in(*told_, name);
    std::optional<std::int64_t> out;
    constexpr double most = 1e12;
    for (const RecordedCounter& counter : recorded_.counters)
      if (recorded_.names[counter.name] == name) out = static_cast<std::int64_t>(std::clamp(counter.value, 0.0, most));
    return out;
  }

 private:
  const Recorded& recorded_;
  const files::Json* told_ = nullptr;
};

void caches(const Recorded& recorded, Summary& out) {
  const Counts counts(recorded);
  auto add = [&](const char* name, std::optional<std::int64_t> missed, std::int64_t of) {
    if (missed && of > 0) out.caches.push_back({name, std::clamp<std::int64_t>(of - *missed, 0, of), of});
  };
  std::int64_t calls = 0;
  for (const FunctionSummary& function : out.functions) calls += function.calls;
  add("calls, served at once", counts.of("calls looked up"), calls);
  add("eager ops, served at once", counts.of("eager ops looked up"), out.eager_runs);
  const std::optional<std::int64_t> compiled = counts.of("kernels compiled");
  add("kernels, from the object cache", compiled,
      compiled.value_or(0) + counts.of("kernels from the object cache").value_or(0));
  add("allocations, without the system", counts.of("allocations from the system"),
      counts.of("allocations").value_or(0));
}

/// By what they cost, and kernels know their functions' new places.
void sort(Summary& out) {
  std::vector<std::size_t> order(out.functions.size()), places(out.functions.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  auto cost = [&](std::size_t i) { return std::max(out.functions[i].seconds, out.functions[i].trace_seconds); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cost(a) > cost(b); });
  std::vector<FunctionSummary> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    places[order[i]] = i;
    sorted.push_back(std::move(out.functions[order[i]]));
  }
  out.functions = std::move(sorted);
  for (KernelSummary& kernel : out.kernels)
    if (kernel.function) kernel.function = places[*kernel.function];
  std::stable_sort(out.kernels.begin(), out.kernels.end(),
                   [](const KernelSummary& a, const KernelSummary& b) { return a.seconds > b.seconds; });
}

}  // namespace

const char* share_name(Share share) {
  constexpr const char* names[share_count] = {
      "kernels",   "tracing", "compiling", "binding sizes",      "waiting for data", "data functions",
      "callbacks", "audits",  "eager ops", "calls of functions", "host code",        "no longer recorded"};
  return names[static_cast<int>(share)];
}

int FunctionSummary::traces_within() const {
  return static_cast<int>(
      std::count_if(traces.begin(), traces.end(), [](const TraceSummary& trace) { return trace.within(); }));
}

int Summary::traces() const {
  int count = 0;
  for (const FunctionSummary& function : functions) count += function.traces_within();
  return count;
}
int Summary::traced_functions() const {
  return static_cast<int>(std::count_if(functions.begin(), functions.end(),
                                        [](const FunctionSummary& function) { return function.traces_within() > 0; }));
}
int Summary::retraces() const {
  int count = 0;
  for (const FunctionSummary& function : functions) count += function.retraces;
  return count;
}
double Summary::lost_seconds() const {
  double sum = 0;
  for (const FunctionSummary& function : functions) sum += function.lost_seconds;
  return sum;
}

Summary summarize(const Recorded& recorded) {
  Summary out;
  out.seconds = recorded.seconds();
  Functions functions(out.functions);
  Notes(recorded, out, functions).read();
  Spans(recorded, out, functions).read();
  for (FunctionSummary& function : out.functions) {
    if (recorded.lost_spans == 0) continue;
    // Spans of calls may be lost; what traces have served is not.
    std::int64_t served = 0;
    for (const TraceSummary& trace : function.traces)
      if (trace.within()) served += trace.calls.value_or(0);
    function.calls = std::max(function.calls, served);
  }
  caches(recorded, out);
  sort(out);
  return out;
}

}  // namespace stet::reporting
