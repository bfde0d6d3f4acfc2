#include "stet/report/report_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

#include "stet/base/text.h"
#include "stet/report/findings.h"
#include "stet/report/json_members.h"
#include "stet/report/numbers.h"
#include "stet/report/source_lines.h"

namespace stet::reporting {
namespace {

using files::Json;

constexpr double in_seconds = 1e-9;
constexpr int report_format = 1;

Json known(double value) { return std::isfinite(value) ? Json(value) : Json(); }
/// 0 is what nobody knows.
Json amount(double value) { return value > 0 ? known(value) : Json(); }
Json text_or_null(const std::string& value) { return value.empty() ? Json() : Json(value); }
Json counted_from_one(int number) { return number > 0 ? Json(number) : Json(); }

Json texts(const std::vector<std::string>& from) { return Json::List(from.begin(), from.end()); }
/// Of a list in a file: its strings.
Json texts_in(const Json& object, std::string_view name) {
  Json::List out;
  for (const Json& one : list_in(object, name))
    if (one.if_string()) out.push_back(one);
  return out;
}
Json number_or_null(const Json& object, std::string_view name) {
  std::optional<double> value = known_number_in(object, name);
  if (!value) return nullptr;
  std::optional<std::int64_t> integer = known_integer_in(object, name);
  return integer ? Json(*integer) : Json(*value);
}

/// The bytes of an array, the lowest of each number first.
template <class T>
class Base64Array {
 public:
  explicit Base64Array(std::size_t count) { bytes_.reserve(count * sizeof(T)); }
  void add(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof bytes);
  }
  std::string str() const {
    constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes_.size() + 2) / 3 * 4);
    for (std::size_t at = 0; at < bytes_.size(); at += 3) {
      const std::size_t count = std::min<std::size_t>(3, bytes_.size() - at);
      std::uint32_t word = 0;
      for (std::size_t i = 0; i < 3; ++i)
        word = word << 8 | (i < count ? static_cast<unsigned char>(bytes_[at + i]) : 0u);
      for (std::size_t i = 0; i < 4; ++i) out += i <= count ? letters[word >> (18 - 6 * i) & 63] : '=';
    }
    return out;
  }

 private:
  std::string bytes_;
};

std::string iso_text(std::int64_t since_1970) {
  const std::time_t seconds = since_1970 / 1'000'000'000;
  std::tm parts;
  char out[64];
  if (since_1970 <= 0 || !gmtime_r(&seconds, &parts) ||
      std::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
    return {};
  return out;
}

/// A graph as a note has it, with nothing that its schema does not say.
Json graph_of(const Json& note, std::string_view name) {
  const Json* graph = note.find(name);
  if (!graph || !graph->if_object()) return nullptr;
  const Json::List& given = list_in(*graph, "nodes");
  const auto count = static_cast<std::int64_t>(given.size());
  Json::List nodes;
  for (const Json& node : given) {
    Json::List operands;
    for (const Json& operand : list_in(node, "in"))
      if (const std::int64_t* at = operand.if_integer(); at && *at >= 0 && *at < count) operands.push_back(operand);
    nodes.push_back(Json::Object{{"op", string_in(node, "op")},
                                 {"text", string_in(node, "text")},
                                 {"scope", string_in(node, "scope")},
                                 {"in", std::move(operands)},
                                 {"file", text_or_null(string_in(node, "file"))},
                                 {"line", counted_from_one(small_integer_in(node, "line"))},
                                 {"made_of", texts_in(node, "made_of")}});
  }
  return Json::Object{{"nodes", std::move(nodes)}};
}

class Writer {
 public:
  Writer(const Recorded& recorded, const Summary& summary, const std::optional<MachineLimits>& limits)
      : recorded_(recorded), summary_(summary), limits_(limits), sources_(recorded) {}

  Json all() {
    Json::Object out{{"format", report_format},
                     {"program", program()},
                     {"limits", limits()},
                     {"verdict", texts(verdict_of(recorded_, summary_))},
                     {"findings", findings()},
                     {"shares", shares()},
                     {"kinds", texts(recorded_.kinds)},
                     {"names", names()},
                     {"threads", texts(recorded_.threads)},
                     {"spans", spans()},
                     {"counters", counters()},
                     {"functions", functions()}};
    Json kernels = this->kernels();
    out.emplace_back("sources", std::move(lines_));  // those that functions and kernels name
    out.emplace_back("kernels", std::move(kernels));
    out.emplace_back("caches", caches());
    out.emplace_back("training", training());
    out.emplace_back("stages", stages());
    out.emplace_back("events", events());
    return out;
  }

 private:
  Json program() {
    return Json::Object{{"name", text_or_null(recorded_.program)},
                        {"stet", text_or_null(recorded_.stet)},
                        {"began", text_or_null(iso_text(recorded_.began_at))},
                        {"cpu", text_or_null(recorded_.cpu)},
                        {"threads", counted_from_one(recorded_.thread_count)},
                        {"seconds", recorded_.seconds()},
                        {"complete", recorded_.complete},
                        {"lost_spans", static_cast<std::int64_t>(recorded_.lost_spans & INT64_MAX)}};
  }

  Json limits() {
    if (!limits_) return nullptr;
    return Json::Object{{"flops", amount(limits_->flops)}, {"bytes", amount(limits_->bytes)}};
  }

  Json findings() {
    Json::List out;
    for (const Finding& finding : findings_of(recorded_, summary_, limits_))
      out.push_back(Json::Object{
          {"weight", finding.weight}, {"text", finding.text}, {"function", text_or_null(finding.function)}});
    return out;
  }

  Json shares() {
    Json::List out;
    for (int share = 0; share < share_count; ++share)
      if (summary_.shares[share] > 0)
        out.push_back(
            Json::Object{{"name", share_name(static_cast<Share>(share))}, {"seconds", summary_.shares[share]}});
    return out;
  }

  /// Those that spans have: others are of what happened before, or say what `kernels` and `counters` say.
  Json names() {
    std::vector<bool> used(recorded_.names.size());
    for (const RecordedSpan& span : recorded_.spans) used[span.name] = true;
    Json::List out;
    places_of_names_.resize(used.size());
    for (std::size_t name = 0; name < used.size(); ++name) {
      if (!used[name]) continue;
      places_of_names_[name] = static_cast<std::uint32_t>(out.size());
      out.emplace_back(recorded_.names[name]);
    }
    return out;
  }

  Json spans() {
    const std::size_t count = recorded_.spans.size();
    Base64Array<std::uint16_t> thread(count);
    Base64Array<std::uint8_t> kind(count);
    Base64Array<std::uint32_t> name(count);
    Base64Array<double> begin(count), duration(count), bytes(count), flops(count);
    for (const RecordedSpan& span : recorded_.spans) {
      thread.add(span.thread);
      kind.add(span.kind);
      name.add(places_of_names_[span.name]);
      begin.add(static_cast<double>(span.begin) * in_seconds);
      duration.add(static_cast<double>(span.duration) * in_seconds);
      bytes.add(span.bytes);
      flops.add(span.flops);
    }
    return Json::Object{{"count", static_cast<std::int64_t>(count)},
                        {"thread", thread.str()},
                        {"kind", kind.str()},
                        {"name", name.str()},
                        {"begin", begin.str()},
                        {"duration", duration.str()},
                        {"bytes", bytes.str()},
                        {"flops", flops.str()}};
  }

  Json counters() {
    Json::List out;
    const std::vector<RecordedCounter>& all = recorded_.counters;
    for (std::size_t first = 0; first < all.size();) {
      std::size_t last = first;
      while (last < all.size() && all[last].name == all[first].name) ++last;
      Base64Array<double> time(last - first), value(last - first);
      for (; first < last; ++first) {
        time.add(static_cast<double>(all[first].time) * in_seconds);
        value.add(all[first].value);
      }
      const std::string& name = recorded_.names[all[last - 1].name];
      const bool is_bytes = name.find("memory") != std::string::npos || name.find("bytes") != std::string::npos;
      out.push_back(Json::Object{
          {"name", name}, {"unit", is_bytes ? "bytes" : ""}, {"time", time.str()}, {"value", value.str()}});
    }
    return out;
  }

  Json caches() {
    Json::List out;
    for (const CacheSummary& cache : summary_.caches)
      out.push_back(Json::Object{{"name", cache.name}, {"found", cache.found}, {"of", cache.of}});
    return out;
  }

  // --- functions

  /// Members of a place, whose lines go along.
  void add_place(Json::Object& to, const char* file_member, const char* line_member, const std::string& file,
                 int line) {
    to.emplace_back(file_member, text_or_null(file));
    to.emplace_back(line_member, counted_from_one(line));
    std::string key = line > 0 ? text(file, ":", line) : file;
    if (lines_.find(key)) return;
    if (std::optional<SourceLines> lines = sources_.around(file, line))
      lines_[key] = Json::Object{{"first", lines->first}, {"lines", texts(lines->lines)}};
  }

  Json functions() {
    Json::List out;
    for (const FunctionSummary& function : summary_.functions) {
      Json::Object one{{"name", function.name}};
      add_place(one, "file", "line", function.file, function.line);
      one.emplace_back("calls", function.calls);
      one.emplace_back("seconds", function.seconds);
      one.emplace_back("trace_seconds", function.trace_seconds);
      one.emplace_back("lost_seconds", function.lost_seconds);
      one.emplace_back("retraces", function.retraces);
      one.emplace_back("max_traces", counted_from_one(function.max_traces));
      one.emplace_back("on_limit", text_or_null(function.on_limit));
      Json::List traces;
      const TraceSummary* before = nullptr;
      for (const TraceSummary& trace : function.traces) {
        traces.push_back(this->trace(trace, before));
        before = &trace;
      }
      one.emplace_back("traces", std::move(traces));
      one.emplace_back("warnings", texts(function.warnings));
      out.push_back(std::move(one));
    }
    return out;
  }

  Json trace(const TraceSummary& trace, const TraceSummary* before) {
    const Json& note = *trace.note;
    Json::Object out{{"number", trace.number},
                     {"begin", known(trace.begin)},
                     {"seconds", trace.seconds},
                     {"compile_seconds", trace.compiling},
                     {"calls", trace.calls ? Json(*trace.calls) : Json()},
                     {"evicted", trace.evicted},
                     {"bytes", number_or_null(note, "bytes")},
                     {"arguments", string_in(note, "arguments")},
                     {"called_with", text_or_null(string_in(note, "called_with"))},
                     {"nearest", counted_from_one(small_integer_in(note, "nearest"))}};
    add_place(out, "call_file", "call_line", string_in(note, "call_file"), small_integer_in(note, "call_line"));
    Json::List facts;
    for (const Json& fact : list_in(note, "facts")) {
      Json::Object one{{"text", string_in(fact, "text")}, {"pin", bool_in(fact, "pin")}};
      add_place(one, "file", "line", string_in(fact, "file"), small_integer_in(fact, "line"));
      one.emplace_back("asked_by", text_or_null(string_in(fact, "asked_by")));
      facts.push_back(std::move(one));
    }
    out.emplace_back("facts", std::move(facts));
    out.emplace_back("cause", string_in(note, "cause"));
    out.emplace_back("fixes", fixes(note, before));
    Json::List constants, passes;
    for (const Json& constant : list_in(note, "constants"))
      constants.push_back(
          Json::Object{{"text", string_in(constant, "text")}, {"bytes", number_or_null(constant, "bytes")}});
    for (const Json& pass : list_in(note, "passes"))
      passes.push_back(Json::Object{{"name", string_in(pass, "name")},
                                    {"seconds", number_or_null(pass, "seconds")},
                                    {"nodes_before", number_or_null(pass, "nodes_before")},
                                    {"nodes_after", number_or_null(pass, "nodes_after")}});
    out.emplace_back("constants", std::move(constants));
    out.emplace_back("passes", std::move(passes));
    out.emplace_back("graph", graph_of(note, "graph"));
    out.emplace_back("program", graph_of(note, "program"));
    return out;
  }

  /// With the line to change: the one that pinned the size which the cause speaks of, otherwise the call's.
  Json fixes(const Json& note, const TraceSummary* before) {
    std::string file = string_in(note, "call_file");
    int line = small_integer_in(note, "call_line");
    const std::string& cause = string_in(note, "cause");
    for (const Json* facts_of : {before ? before->note : nullptr, &note}) {
      if (!facts_of) continue;
      for (const Json& fact : list_in(*facts_of, "facts")) {
        const std::string& fact_file = string_in(fact, "file");
        const int fact_line = small_integer_in(fact, "line");
        if (!bool_in(fact, "pin") || fact_file.empty() || fact_line == 0) continue;
        if (cause.find(place_text(fact_file, fact_line)) == std::string::npos) continue;
        file = fact_file;
        line = fact_line;
      }
    }
    Json::List out;
    for (const Json& fix : list_in(note, "fixes")) {
      if (!fix.if_string() || fix.if_string()->empty()) continue;
      Json::Object one{{"text", *fix.if_string()}};
      add_place(one, "file", "line", file, line);
      out.push_back(std::move(one));
    }
    return out;
  }

  // --- the rest

  Json places(const KernelSummary& kernel) {
    Json::List out;
    for (const KernelOrigin& place : kernel.places) {
      Json::Object one{{"scope", place.scope}};
      add_place(one, "file", "line", place.file, place.line);
      out.push_back(std::move(one));
    }
    return out;
  }

  Json kernels() {
    Json::List out;
    for (const KernelSummary& kernel : summary_.kernels)
      out.push_back(
          Json::Object{{"name", kernel.name},
                       {"function", kernel.function ? Json(summary_.functions[*kernel.function].name) : Json()},
                       {"count", kernel.count},
                       {"seconds", kernel.seconds},
                       {"bytes", amount(kernel.bytes)},
                       {"flops", amount(kernel.flops)},
                       {"threads", kernel.threads},
                       {"made_of", texts(kernel.made_of)},
                       {"not_fused", text_or_null(kernel.not_fused)},
                       {"places", places(kernel)}});
    return out;
  }

  Json training() {
    Json::List out;
    for (const TrainingSummary& training : summary_.training) {
      Json::List epochs;
      for (const EpochSummary& epoch : training.epochs) {
        Json::Object values;
        if (epoch.values)
          for (const auto& [name, value] : *epoch.values->if_object())
            values.emplace_back(name, number_or_null(*epoch.values, name));
        epochs.push_back(Json::Object{{"epoch", epoch.epoch},
                                      {"begin", known(epoch.begin)},
                                      {"seconds", epoch.seconds},
                                      {"waited", epoch.waited},
                                      {"batches", epoch.batches},
                                      {"values", std::move(values)}});
      }
      out.push_back(Json::Object{{"name", training.name}, {"epochs", std::move(epochs)}});
    }
    return out;
  }

  Json stages() {
    Json::List out;
    for (const StageSummary& stage : summary_.stages)
      out.push_back(Json::Object{{"name", stage.name},
                                 {"depth", stage.depth},
                                 {"elements", stage.elements ? Json(*stage.elements) : Json()},
                                 {"seconds", stage.seconds ? Json(*stage.seconds) : Json()}});
    return out;
  }

  Json events() {
    Json::List out;
    for (const EventSummary& event : summary_.events)
      out.push_back(Json::Object{{"time", known(event.time)},
                                 {"kind", event.kind},
                                 {"text", event.text},
                                 {"function", text_or_null(event.function)}});
    return out;
  }

  const Recorded& recorded_;
  const Summary& summary_;
  const std::optional<MachineLimits>& limits_;
  Sources sources_;
  Json lines_ = Json::Object();                 // by place
  std::vector<std::uint32_t> places_of_names_;  // by number of Recorded::names, of those that spans have
};

}  // namespace

Json report_data(const Recorded& recorded, const Summary& summary, const std::optional<MachineLimits>& limits) {
  return Writer(recorded, summary, limits).all();
}

}  // namespace stet::reporting
