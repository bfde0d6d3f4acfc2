#include "stet/report/xspace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "stet/base/text.h"
#include "stet/files/proto.h"
#include "stet/report/findings.h"
#include "stet/report/json_members.h"
#include "stet/report/kernel_places.h"
#include "stet/report/span_tree.h"
#include "stet/report/summary.h"

// The messages (tsl/profiler/protobuf/xplane.proto of openxla/xla):
//
//   XSpace         { repeated XPlane planes = 1; repeated string warnings = 3, hostnames = 4; }
//   XPlane         { int64 id = 1; string name = 2; repeated XLine lines = 3; map<int64, XEventMetadata> = 4;
//                    map<int64, XStatMetadata> = 5; repeated XStat stats = 6; }
//   XLine          { int64 id = 1; string name = 2; repeated XEvent events = 4; int64 duration_ps = 9; }
//   XEvent         { int64 metadata_id = 1, offset_ps = 2, duration_ps = 3; repeated XStat stats = 4; }
//   XStat          { int64 metadata_id = 1; double = 2 | uint64 = 3 | int64 = 4 | string = 5 | uint64 ref = 7; }
//   XEventMetadata { int64 id = 1; string name = 2; repeated XStat stats = 5; }
//   XStatMetadata  { int64 id = 1; string name = 2; }
//
// Times are ps from the beginning of the recording, as TensorFlow writes them: of the plane "Task Environment" the
// plugin knows when that was. (A line has a timestamp_ns = 3 too; since 1970 no int64 would hold its ps.)
//
// A ref is the id of an XStatMetadata whose name is the value. Names of planes and stats that the plugin gives a
// meaning are those of xla/tsl/profiler/utils/xplane_schema.cc: "/host:CPU", "step_num", "_r" (what lies inside of the
// event belongs to its step), "tf_op" (a row of the op statistics), "_ipl_stage_name" (a wait for data),
// "tf_function_call" and "tracing_count", "bytes_accessed", "flops", "source".

namespace stet::reporting {
namespace {

using files::Json;
using files::Proto;
using recording::Kind;

constexpr std::int64_t ps(std::int64_t ns) { return std::clamp<std::int64_t>(ns, 0, INT64_MAX / 1000) * 1000; }
std::int64_t whole(double amount) {
  constexpr double most = 9e18;
  return static_cast<std::int64_t>(std::min(std::round(amount), most));
}

/// Names of ops have a type behind a colon: lower case letters, digits and lines.
std::string op_type(std::string_view ops) {
  std::string out;
  for (char c : ops) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), is_digit = c >= '0' && c <= '9';
    if (out.empty() && is_digit) out += '_';
    out += is_letter ? static_cast<char>(c | 0x20) : is_digit ? c : '_';
  }
  return out.empty() ? "unnamed" : out;
}
std::string op_name(const KernelPlace& place, std::string_view kernel) {
  constexpr int most_named = 4;  // of the ops of a kernel
  std::string ops = place.ops.empty() ? std::string(kernel.substr(0, kernel.find(' '))) : place.ops;
  std::size_t end = 0;
  for (int named = 0; named < most_named && end != ops.npos; ++named) end = ops.find('+', end + 1);
  if (end != ops.npos) ops = text(ops.substr(0, end), "_", std::count(ops.begin() + end, ops.end(), '+'), "_more");
  const std::string type = op_type(ops);
  std::string scope = place.scope;
  std::replace(scope.begin(), scope.end(), ':', '_');
  return text(scope, scope.empty() ? "" : "/", type, ":", type);
}

/// A plane in the making. Names stand in it once, and have numbers.
class Plane {
 public:
  Plane(std::int64_t id, const char* name) { plane_.integer(1, id).bytes(2, name); }

  std::int64_t stat(std::string_view name) {
    auto found = stats_.find(name);
    if (found == stats_.end()) {
      const auto id = static_cast<std::int64_t>(stats_.size()) + 1;
      found = stats_.emplace(name, id).first;
      plane_.message(5, Proto().integer(1, id).message(2, Proto().integer(1, id).bytes(2, name)));
    }
    return found->second;
  }
  Proto integer(std::string_view name, std::int64_t value) { return Proto().integer(1, stat(name)).integer(4, value); }
  Proto unsigned_integer(std::string_view name, std::int64_t value) {
    return Proto().integer(1, stat(name)).integer(3, value);
  }
  Proto real(std::string_view name, double value) { return Proto().integer(1, stat(name)).real(2, value); }
  Proto string(std::string_view name, std::string_view value) { return Proto().integer(1, stat(name)).bytes(5, value); }
  /// One that many events have.
  Proto shared(std::string_view name, std::string_view value) {
    return Proto().integer(1, stat(name)).integer(7, stat(value));
  }

  std::int64_t event(std::string_view name, const std::vector<Proto>& stats = {}) {
    const std::int64_t id = ++events_;
    Proto metadata;
    metadata.integer(1, id).bytes(2, name);
    for (const Proto& one : stats) metadata.message(5, one);
    plane_.message(4, Proto().integer(1, id).message(2, metadata));
    return id;
  }
  void line(const Proto& line) { plane_.message(3, line); }
  void own_stat(const Proto& stat) { plane_.message(6, stat); }
  const Proto& message() const { return plane_; }

 private:
  Proto plane_;
  std::map<std::string, std::int64_t, std::less<>> stats_;
  std::int64_t events_ = 0;
};

/// A batch of fit() with the wait for it.
struct Step {
  std::size_t first;  // the span that it begins with
  std::int64_t end;   // ns
};

/// Those of training; where there is none, those of evaluate() or predict(). By their spans.
std::vector<Step> steps_of(const Recorded& recorded, const SpanTree& tree) {
  auto is_training = [&](const RecordedSpan& span) {
    return recorded.kind_of(span) == Kind::batch && recorded.names[span.name] == "train_step";
  };
  const bool trains = std::any_of(recorded.spans.begin(), recorded.spans.end(), is_training);
  std::vector<Step> out;
  std::size_t wait = SpanTree::none;
  for (std::size_t i = 0; i < recorded.spans.size(); ++i) {
    const RecordedSpan& span = recorded.spans[i];
    const std::optional<Kind> kind = recorded.kind_of(span);
    if (kind == Kind::wait && tree.around(i) == SpanTree::Around::nothing) wait = i;
    if (kind != Kind::batch) continue;
    const bool has_waited =
        wait != SpanTree::none && recorded.spans[wait].thread == span.thread && tree.parent(wait) == tree.parent(i);
    if (!trains || is_training(span)) out.push_back({has_waited ? wait : i, span.end()});
    wait = SpanTree::none;
  }
  return out;
}

class Writer {
 public:
  Writer(const Recorded& recorded, const XSpaceOptions& options)
      : recorded_(recorded),
        options_(options),
        summary_(summarize(recorded)),
        tree_(recorded),
        places_(recorded, tree_),
        steps_(steps_of(recorded, tree_)),
        host_(1, "/host:CPU") {}

  std::string all() {
    host_.own_stat(host_.integer("process_id", static_cast<std::int64_t>(recorded_.process & INT32_MAX)));
    look_at_functions();
    // The main thread is the first line: others wait for it, or work for it.
    if (summary_.main_thread) thread(*summary_.main_thread);
    for (std::size_t other = 0; other < recorded_.threads.size(); ++other)
      if (other != summary_.main_thread) thread(static_cast<std::uint16_t>(other));
    instants();
    counters();

    Plane environment(2, "Task Environment");
    environment.own_stat(environment.unsigned_integer("profile_start_time", began()));
    environment.own_stat(environment.unsigned_integer("profile_stop_time", began() + recorded_.length));
    Proto space;
    space.message(1, host_.message()).message(1, environment.message());
    if (recorded_.lost_spans > 0)
      space.bytes(3, text("The recording was full: the oldest ", recorded_.lost_spans, " spans are not in it."));
    if (!recorded_.complete) space.bytes(3, "The recording was not ended: the program still ran, or was killed.");
    // The overview page has them under the heading of diagnostics.
    for (const Finding& finding : findings_of(recorded_, summary_, std::nullopt)) space.bytes(3, finding.text);
    space.bytes(4, options_.host);
    return std::move(space).str();
  }

 private:
  std::int64_t began() const { return std::clamp<std::int64_t>(recorded_.began_at, 0, INT64_MAX - recorded_.length); }
  Proto line_of(std::int64_t id, std::string_view name) const {
    return Proto().integer(1, id).bytes(2, name).integer(9, ps(recorded_.length));
  }
  static Proto event_of(std::int64_t metadata, std::int64_t begin, std::int64_t duration) {
    return Proto().integer(1, metadata).integer(2, ps(begin)).integer(3, ps(duration));
  }
  Proto source(const std::string& file, int line) { return host_.string("source", text(file, ":", line)); }

  /// What functions are, and which calls traced them.
  void look_at_functions() {
    for (const FunctionSummary& function : summary_.functions) functions_[function.name] = &function;
    for (std::size_t i = 0; i < recorded_.spans.size(); ++i) {
      if (recorded_.kind_of(recorded_.spans[i]) != Kind::trace) continue;
      const std::size_t call = tree_.call_around(i);
      if (call != SpanTree::none && recorded_.spans[call].name == recorded_.spans[i].name) tracing_calls_.insert(call);
    }
  }

  void thread(std::uint16_t thread) {
    // Lines begin at 1: 0 stands for all of them in some viewers.
    Proto line = line_of(++lines_, recorded_.threads[thread]);
    const auto [first, last] = tree_.of_thread(thread);
    auto next = std::lower_bound(steps_.begin(), steps_.end(), first,
                                 [](const Step& step, std::size_t place) { return step.first < place; });
    for (std::size_t i = first; i < last; ++i) {
      for (; next != steps_.end() && next->first == i; ++next) line.message(4, step(*next, next - steps_.begin()));
      line.message(4, span(i));
    }
    host_.line(line);
  }

  Proto step(const Step& step, std::ptrdiff_t number) {
    if (step_event_ == 0) step_event_ = host_.event("step");
    const std::int64_t begin = recorded_.spans[step.first].begin;
    return event_of(step_event_, begin, step.end - begin)
        .message(4, host_.integer("_r", 1))
        .message(4, host_.integer("step_num", options_.first_step + number));
  }

  Proto span(std::size_t i) {
    const RecordedSpan& span = recorded_.spans[i];
    const std::optional<Kind> kind = recorded_.kind_of(span);
    const bool is_kernel = kind == Kind::step;
    const std::size_t place = is_kernel ? places_.of(i) : no_place;
    Proto out = event_of(event_of_span(span, place), span.begin, span.duration);
    add_amounts(out, span);
    if (is_kernel) out.message(4, host_.shared("tf_op", op_name(places_.all()[place], recorded_.names[span.name])));
    if (kind == Kind::wait) out.message(4, host_.shared("_ipl_stage_name", recorded_.names[span.name]));
    if (kind == Kind::call) add_tracing(out, i);
    return out;
  }

  void add_amounts(Proto& out, const RecordedSpan& span) {
    auto add = [&](const char* name, const char* rate, double amount) {
      if (amount <= 0) return;
      out.message(4, host_.integer(name, whole(amount)));
      if (span.duration > 0) out.message(4, host_.real(rate, amount / static_cast<double>(span.duration)));
    };
    add("bytes_accessed", "GB/s", span.bytes);
    add("flops", "GF/s", span.flops);
  }

  /// Whether the call traced its function, and how many traces there are by then.
  void add_tracing(Proto& out, std::size_t i) {
    const RecordedSpan& span = recorded_.spans[i];
    out.message(4, host_.shared("tf_function_call", tracing_calls_.contains(i) ? "traced-nonXla" : "notTraced-nonXla"));
    const auto function = functions_.find(recorded_.names[span.name]);
    if (function == functions_.end()) return;
    const std::vector<TraceSummary>& traces = function->second->traces;
    const auto later = std::upper_bound(traces.begin(), traces.end(), static_cast<double>(span.end()) * 1e-9,
                                        [](double time, const TraceSummary& trace) { return time < trace.begin; });
    if (later != traces.begin()) out.message(4, host_.integer("tracing_count", std::prev(later)->number));
  }

  std::int64_t event_of_span(const RecordedSpan& span, std::size_t place) {
    std::int64_t& id = events_[{span.name, span.kind, place}];
    if (id != 0) return id;
    const std::string& name = recorded_.names[span.name];
    std::vector<Proto> stats{host_.shared("kind", recorded_.kinds[span.kind])};
    if (place != no_place) {
      const KernelPlace& from = places_.all()[place];
      auto add = [&](const char* what, const std::string& value) {
        if (!value.empty()) stats.push_back(host_.string(what, value));
      };
      add("scope", from.scope);
      add("made_of", from.ops);
      add("not_fused", from.not_fused);
      if (!from.file.empty()) stats.push_back(source(from.file, from.line));
    } else if (recorded_.kind_of(span) == Kind::call) {
      const auto function = functions_.find(name);
      if (function != functions_.end() && !function->second->file.empty())
        stats.push_back(source(function->second->file, function->second->line));
    }
    return id = host_.event(name, stats);
  }

  void instants() {
    Proto line = line_of(++lines_, "retraces, warnings, audits");
    bool any = false;
    for (const Json& note : recorded_.notes) {
      if (string_in(note, "note") != "event") continue;
      any = true;
      const std::string& function = string_in(note, "function");
      const std::string name = text(string_in(note, "kind"), function.empty() ? "" : " of ", function);
      std::int64_t& id = instants_[name];
      if (id == 0) id = host_.event(name, {host_.shared("kind", "event")});
      // The text of a note's time is of the steady clock, in ns.
      const auto time =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(integer_in(note, "time")) - recorded_.began);
      Proto event = event_of(id, std::clamp<std::int64_t>(time, 0, recorded_.length), 0);
      line.message(4, event.message(4, host_.string("text", string_in(note, "text"))));
    }
    if (any) host_.line(line);
  }

  /// A line of this name is drawn as curves.
  void counters() {
    if (recorded_.counters.empty()) return;
    Proto line = line_of(++lines_, "_counters_");
    std::map<std::uint32_t, std::int64_t> ids;
    for (const RecordedCounter& counter : recorded_.counters) {
      std::int64_t& id = ids[counter.name];
      if (id == 0) id = host_.event(recorded_.names[counter.name]);
      line.message(4, event_of(id, counter.time, 0).message(4, host_.real("value", counter.value)));
    }
    host_.line(line);
  }

  static constexpr std::size_t no_place = SIZE_MAX;

  const Recorded& recorded_;
  const XSpaceOptions& options_;
  const Summary summary_;
  const SpanTree tree_;
  const KernelPlaces places_;
  const std::vector<Step> steps_;
  std::int64_t lines_ = 0, step_event_ = 0;
  Plane host_;
  std::unordered_map<std::string_view, const FunctionSummary*> functions_;
  std::unordered_set<std::size_t> tracing_calls_;
  std::map<std::tuple<std::uint32_t, std::uint8_t, std::size_t>, std::int64_t> events_;
  std::map<std::string, std::int64_t> instants_;
};

}  // namespace

std::string xspace_of(const Recorded& recorded, const XSpaceOptions& options) {
  return Writer(recorded, options).all();
}

}  // namespace stet::reporting
