#include "stet/core/recorded_function.h"

#include <atomic>
#include <fstream>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/function_entry.h"
#include "stet/core/ledger_account.h"
#include "stet/core/retrace.h"
#include "stet/core/tensor_node.h"
#include "stet/runtime/recorded_steps.h"

namespace stet {
namespace {

using files::Json;

constexpr std::size_t most_nodes = 5000;  // of a graph that is told
constexpr int most_graphs = 4;            // of one function that are told
constexpr int lines_around = 2;
constexpr std::int64_t most_source = 200;  // characters of a line that are told

std::int64_t integer(std::size_t value) { return static_cast<std::int64_t>(value); }

Json file_of(Where where) { return where.known() ? Json(where.file) : Json(); }
Json line_of(Where where) { return where.known() ? Json(where.line) : Json(); }

/// A place in the user's source, with the lines around it where the file is at hand; each once for a recording.
void record_source(Where where) {
  struct Told {
    Lock guard;
    std::uint64_t recording = 0;
    std::set<std::pair<std::string, int>> places;
  };
  static auto* const told = new Told;  // never destroyed: see thread_end.h
  if (!where.known()) return;
  {
    std::lock_guard lock(told->guard);
    if (std::exchange(told->recording, recording::session()) != recording::session()) told->places.clear();
    if (!told->places.emplace(where.file, where.line).second) return;
  }
  std::ifstream file(where.file);
  Json::List lines;
  const int first = std::max(where.line - lines_around, 1);
  std::string line;
  for (int number = 1; number <= where.line + lines_around && std::getline(file, line); ++number)
    if (number >= first) lines.emplace_back(line.substr(0, most_source));
  if (!lines.empty())
    recording::note({{"note", "source"}, {"file", where.file}, {"line", first}, {"lines", std::move(lines)}});
}

Json numbers(const std::vector<int>& values) {
  Json::List out;
  for (int value : values) out.emplace_back(value);
  return out;
}

Json scope_of(const std::shared_ptr<const std::string>& scope) { return scope ? *scope : std::string(); }

/// "20", "[0, 1]": of a small constant what it is.
std::string constant_words(const Node& node) {
  constexpr std::size_t most_values = 4;
  const std::string& bytes = node.attributes.as<ConstantAttributes>().bytes;
  const DType dtype = node.type().dtype;
  const std::size_t count = bytes.size() / size_of(dtype);
  std::string out;
  for (std::size_t i = 0; i < std::min(count, most_values); ++i) {
    double value = 0;
    convert_element(dtype, bytes.data() + i * size_of(dtype), DType::f64, &value);
    const bool is_narrow = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
    out += text(i ? ", " : "", is_narrow ? text(static_cast<float>(value)) : text(value));
  }
  if (count == 1) return out;
  return text("[", out, count > most_values ? ", …]" : "]");
}

/// By node: the part of the program that it is in. What is computed of nothing is where it is first used.
std::vector<std::shared_ptr<const std::string>> scopes_of(const Graph& graph) {
  std::vector<std::shared_ptr<const std::string>> out;
  for (const Node& node : graph.nodes) out.push_back(node.name_scope);
  std::vector<bool> found(graph.nodes.size());
  for (std::size_t user = 0; user < graph.nodes.size(); ++user)
    for (ValueId input : graph.nodes[user].inputs) {
      const auto at = static_cast<std::size_t>(input);
      if (graph.nodes[at].inputs.empty() && !out[at] && !found[at]) out[at] = graph.nodes[user].name_scope;
      found[at] = true;
    }
  return out;
}

/// The graph without aliases, and with constants written where they are used: a number has many users and says nothing
/// alone.
Json graph_told(const Entry& trace) {
  if (trace.graph.nodes.size() > most_nodes) return {};
  const Graph graph = without_aliases(trace.graph);
  const std::size_t arguments = graph.inputs.size() - trace.hidden.size();
  const std::vector<std::shared_ptr<const std::string>> scopes = scopes_of(graph);
  const std::set<ValueId> results(graph.results.begin(), graph.results.end());
  constexpr int nowhere = -1;
  std::vector<int> places;  // by node
  Json::List nodes;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool is_constant = node.op == &constant_row;
    const bool is_told = !is_constant || results.contains(static_cast<ValueId>(i));
    places.push_back(is_told ? static_cast<int>(nodes.size()) : nowhere);
    if (!is_told) continue;
    std::string op = label_of(node), words = joined(node.results, ", ");
    auto scope = scopes[i];
    std::vector<int> in;
    for (ValueId input : node.inputs) {
      const auto at = static_cast<std::size_t>(input);
      if (places[at] != nowhere)
        in.push_back(places[at]);
      else
        words += text(", with ", constant_words(graph.nodes[at]));
    }
    if (is_constant) {
      words = text(constant_words(node), " ", words);
    } else if (node.op == &input_row) {
      const auto number = static_cast<std::size_t>(node.attributes.as<InputAttributes>().number);
      if (number < arguments) {
        scope = nullptr;
      } else if (const Trace::HiddenInput& hidden = trace.hidden[number - arguments]; hidden.captured.defined()) {
        op = "captured";
      } else {
        op = "variable";
        words = text(hidden.variable.name(), " ", words);
      }
    }
    for (const GraphPointer& child : children(node)) words += text(", ", child->nodes.size(), " nodes inside");
    nodes.push_back(Json::Object{{"op", std::move(op)},
                                 {"text", std::move(words)},
                                 {"scope", scope_of(scope)},
                                 {"in", numbers(in)},
                                 {"file", file_of(node.where)},
                                 {"line", line_of(node.where)},
                                 {"made_of", Json::List()}});
  }
  return Json::Object{{"nodes", std::move(nodes)}};
}

/// The steps, each with those whose memory it reads.
Json program_told(const Program& program) {
  if (program.steps.size() > most_nodes) return {};
  std::unordered_map<int, int> written;  // by buffer: the last step that wrote it
  Json::List nodes;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = *program.steps[s];
    std::vector<int> in;
    for (int buffer : step.reads)
      if (auto by = written.find(buffer); by != written.end()) in.push_back(by->second);
    std::sort(in.begin(), in.end());
    in.erase(std::unique(in.begin(), in.end()), in.end());
    for (int buffer : step.writes) written[buffer] = static_cast<int>(s);
    Json::List ops;
    std::string name = "copy";
    if (step.origin) {
      name = joined(step.origin->ops, "+");
      for (const char* op : step.origin->ops) ops.emplace_back(op);
    }
    const std::string words = step.str();
    const Where where = step.origin ? step.origin->where : Where();
    nodes.push_back(Json::Object{{"op", std::move(name)},
                                 {"kernel", recorded_name(step)},
                                 {"text", words.substr(0, words.find('\n'))},
                                 {"scope", step.origin ? scope_of(step.origin->name_scope) : Json("")},
                                 {"in", numbers(in)},
                                 {"file", file_of(where)},
                                 {"line", line_of(where)},
                                 {"made_of", std::move(ops)}});
  }
  return Json::Object{{"nodes", std::move(nodes)}};
}

Json facts_told(const Program& program) {
  Json::List out;
  for (const Fact& fact : program.facts) {
    const bool pins = fact.relation == Relation::equal && (fact.left.is_constant() || fact.right.is_constant());
    record_source(fact.reason.where);
    out.push_back(Json::Object{{"text", text(fact)},
                               {"pin", pins},
                               {"file", file_of(fact.reason.where)},
                               {"line", line_of(fact.reason.where)},
                               {"asked_by", fact.reason.asker}});
  }
  return out;
}

Json constants_told(const Entry& trace) {
  Json::List out;
  for (const Trace::HiddenInput& hidden : trace.hidden)
    if (hidden.captured.defined())
      out.push_back(Json::Object{{"text", text(hidden.captured.dtype(), hidden.captured.shape())},
                                 {"bytes", hidden.captured.node()->element_count() *
                                               static_cast<std::int64_t>(size_of(hidden.captured.dtype()))}});
  return out;
}

Json passes_told(const CompileReport& report) {
  Json::List out;
  std::size_t before = report.nodes;
  for (const CompileReport::Stage& stage : report.stages) {
    out.push_back(Json::Object{{"name", stage.name},
                               {"seconds", stage.milliseconds / 1e3},
                               {"nodes_before", integer(before)},
                               {"nodes_after", integer(stage.nodes)}});
    before = stage.nodes;
  }
  return out;
}

const char* words_of(OnLimit on_limit) {
  switch (on_limit) {
    case OnLimit::eager:
      return "eager";
    case OnLimit::error:
      return "error";
    case OnLimit::evict:
      break;
  }
  return "evict";
}

Json::Object calls_told(const Entry& trace) {
  return {{"note", "trace_calls"},
          {"id", static_cast<std::int64_t>(trace.story.id)},
          {"calls", static_cast<std::int64_t>(trace.calls.load(std::memory_order_relaxed))}};
}

/// Once for a recording; with the story's lock held.
void tell_trace(Entry& trace) {
  TraceStory& story = trace.story;
  if (std::exchange(story.recording, recording::session()) == recording::session()) return;
  const Where made = trace.account->where();
  record_source(made);
  record_source(story.called);
  Json::List fixes;
  for (const std::string& fix : story.fixes) fixes.emplace_back(fix);
  const bool drawn = story.number <= most_graphs;
  recording::note({{"note", "trace"},
                   {"id", static_cast<std::int64_t>(story.id)},
                   {"function", trace.account->recorded_as()},
                   {"file", file_of(made)},
                   {"line", line_of(made)},
                   {"number", story.number},
                   {"nearest", story.nearest},
                   {"max_traces", story.most},
                   {"on_limit", story.at_most},
                   {"begin", static_cast<std::int64_t>(story.begun)},
                   {"seconds", trace.trace_milliseconds / 1e3},
                   {"compile_seconds", trace.compile_milliseconds / 1e3},
                   {"calls", static_cast<std::int64_t>(trace.calls.load(std::memory_order_relaxed))},
                   {"arguments", text("(", joined(trace.types, ", "), ")")},
                   {"called_with", story.arguments},
                   {"call_file", file_of(story.called)},
                   {"call_line", line_of(story.called)},
                   {"facts", facts_told(*trace.program)},
                   {"cause", story.cause},
                   {"fixes", std::move(fixes)},
                   {"constants", constants_told(trace)},
                   {"passes", passes_told(story.compiled)},
                   {"bytes", integer(trace.bytes())},
                   {"graph", drawn ? graph_told(trace) : Json()},
                   {"program", drawn ? program_told(*trace.program) : Json()}});
}

}  // namespace

std::uint64_t next_trace_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void record_trace(Entry& trace, int number, const RetraceCause* cause, const FunctionOptions& options) {
  int nearest = 0;
  if (cause && cause->nearest) {
    std::lock_guard lock(cause->nearest->story.guard);
    nearest = cause->nearest->story.number;
  }
  std::lock_guard lock(trace.story.guard);
  trace.story.number = number;
  trace.story.nearest = nearest;
  trace.story.most = options.max_traces;
  trace.story.at_most = words_of(options.on_limit);
  if (cause) {
    trace.story.cause = joined(cause->reasons(), "\n");
    trace.story.fixes = cause->fixes;
  }
  if (recording::on()) tell_trace(trace);
}

void record_eviction(const Entry& trace, const std::string& function) {
  if (!recording::on()) return;
  recording::note({{"note", "evicted"}, {"id", static_cast<std::int64_t>(trace.story.id)}});
  const std::uint64_t calls = trace.calls.load(std::memory_order_relaxed);
  record_event(
      "eviction", function,
      text("stet: the trace of '", function, "' for (", joined(trace.types, ", "), ") is forgotten, which served ",
           calls, calls == 1 ? " call" : " calls", ": .max_traces or .max_bytes allow no more\n"));
}

void record_trace_end(Entry& trace) {
  if (!recording::on()) return;
  std::lock_guard lock(trace.story.guard);
  if (trace.story.recording == recording::session()) recording::note(calls_told(trace));
}

void record_event(const char* kind, const std::string& function, const std::string& text) {
  if (recording::on()) recording::note({{"note", "event"}, {"kind", kind}, {"function", function}, {"text", text}});
}

namespace {

std::atomic<std::uint64_t> look_ups{0};

}  // namespace

void count_look_up() { look_ups.fetch_add(1, std::memory_order_relaxed); }

void record_traces_at_end() {
  static const bool asked = [] {
    recording::watch("calls looked up", [] { return look_ups.load(std::memory_order_relaxed); });
    recording::at_end([](recording::Notes& notes) {
      for (const std::shared_ptr<LedgerAccount>& account : LedgerAccount::all())
        for (const std::shared_ptr<Entry>& trace : account->live()) {
          std::lock_guard lock(trace->story.guard);
          if (trace->story.number == 0) continue;
          tell_trace(*trace);
          notes.push_back(calls_told(*trace));
        }
    });
    return true;
  }();
  static_cast<void>(asked);
}

}  // namespace stet
