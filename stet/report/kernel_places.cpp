#include "stet/report/kernel_places.h"

#include <algorithm>

#include "stet/base/text.h"
#include "stet/report/json_members.h"

namespace stet::reporting {
namespace {

using files::Json;
using recording::Kind;

std::string ops_in(const Json& note) {
  std::string out;
  for (const Json& op : list_in(note, "made_of"))
    if (op.if_string()) out += text(out.empty() ? "" : "+", *op.if_string());
  return out;
}

}  // namespace

KernelPlaces::KernelPlaces(const Recorded& recorded, const SpanTree& tree)
    : recorded_(recorded), places_(recorded.spans.size()) {
  read_notes();
  find_all(tree);
}

void KernelPlaces::read_notes() {
  for (const Json& note : recorded_.notes)
    if (string_in(note, "note") == "kernel") kernels_[string_in(note, "name")] = &note;
  for (const Json& note : recorded_.notes) {
    if (string_in(note, "note") != "trace") continue;
    const Json* program = note.find("program");
    if (!program) continue;
    Trace trace{recorded_.seconds_at(known_integer_in(note, "begin").value_or(integer_in(note, "time"))), {}};
    for (const Json& node : list_in(*program, "nodes")) {
      const std::string& name = string_in(node, "kernel");
      const auto kernel = kernels_.find(name);
      trace.kernels[name].push_back(all_.size());
      all_.push_back({.scope = string_in(node, "scope"),
                      .ops = ops_in(node),
                      .file = string_in(node, "file"),
                      .line = small_integer_in(node, "line"),
                      .not_fused = kernel == kernels_.end() ? std::string() : string_in(*kernel->second, "not_fused")});
    }
    functions_[string_in(note, "function")].push_back(std::move(trace));
  }
  for (auto& [function, traces] : functions_)
    std::stable_sort(traces.begin(), traces.end(), [](const Trace& a, const Trace& b) { return a.begin < b.begin; });
}

void KernelPlaces::find_all(const SpanTree& tree) {
  struct Run {
    const std::vector<std::size_t>* places;
    std::size_t count = 0;
  };
  struct Call {
    std::size_t span;
    std::unordered_map<std::uint32_t, Run> runs;  // of its kernels so far, by name
  };
  std::vector<Call> calls;  // each inside of the one before
  for (std::size_t i = 0; i < recorded_.spans.size(); ++i) {
    const RecordedSpan& span = recorded_.spans[i];
    if (recorded_.kind_of(span) != Kind::step) continue;
    const std::size_t call = tree.call_around(i), step = tree.step_around(i);
    if (step != SpanTree::none && tree.call_around(step) == call) {
      places_[i] = inside(places_[step], span.name);
    } else if (call == SpanTree::none) {
      places_[i] = by_name(span.name);
    } else {
      auto is_over = [&](const RecordedSpan& other) {
        return other.thread != span.thread || other.end() <= span.begin;
      };
      while (!calls.empty() && calls.back().span != call && is_over(recorded_.spans[calls.back().span]))
        calls.pop_back();
      if (calls.empty() || calls.back().span != call) calls.push_back({call, {}});
      auto [run, added] = calls.back().runs.try_emplace(span.name);
      if (added) run->second.places = in_function(recorded_.names[recorded_.spans[call].name], span);
      const Run& known = run->second;
      places_[i] = known.places ? (*known.places)[known.count % known.places->size()] : by_name(span.name);
      ++run->second.count;
    }
  }
}

const std::vector<std::size_t>* KernelPlaces::in_function(const std::string& function, const RecordedSpan& span) const {
  const auto found = functions_.find(function);
  if (found == functions_.end()) return nullptr;
  const std::vector<std::size_t>* places = nullptr;
  for (const Trace& trace : found->second) {
    if (places && trace.begin > static_cast<double>(span.begin) * 1e-9) break;
    const auto kernel = trace.kernels.find(recorded_.names[span.name]);
    if (kernel != trace.kernels.end()) places = &kernel->second;
  }
  return places;
}

std::size_t KernelPlaces::inside(std::size_t step, std::uint32_t name) {
  const auto [known, added] = inside_.try_emplace({step, name}, 0);
  if (!added) return known->second;
  KernelPlace place = all_[by_name(name)];
  place.scope = all_[step].scope;
  place.file = all_[step].file;
  place.line = all_[step].line;
  known->second = all_.size();
  all_.push_back(std::move(place));
  return known->second;
}

std::size_t KernelPlaces::by_name(std::uint32_t name) {
  const auto [known, added] = named_.try_emplace(name, all_.size());
  if (!added) return known->second;
  const auto kernel = kernels_.find(recorded_.names[name]);
  KernelPlace place;
  if (kernel != kernels_.end()) {
    place.ops = ops_in(*kernel->second);
    place.not_fused = string_in(*kernel->second, "not_fused");
  }
  all_.push_back(std::move(place));
  return known->second;
}

}  // namespace stet::reporting
