#include "stet/core/unrolled.h"

#include <algorithm>
#include <map>
#include <set>

#include "stet/base/lock.h"
#include "stet/base/text.h"
#include "stet/core/retrace.h"

namespace stet {
namespace {

/// Ops by file and line.
using LineCounts = std::map<std::string, std::map<int, std::int64_t>>;

LineCounts count_lines(const Graph& graph, std::map<std::string, const char*>& files) {
  LineCounts out;
  for (const Node& node : graph.nodes) {
    if (!node.where.known() || node.op->kind == Kind::structure) continue;
    files.emplace(node.where.file, node.where.file);
    ++out[node.where.file][node.where.line];
  }
  return out;
}

/// Lines that are chosen, next to each other as one.
template <class Choose>
std::vector<RepeatedLines> chosen_lines(const Graph& graph, const Choose& choose) {
  constexpr int near = 3;
  std::map<std::string, const char*> files;
  std::vector<RepeatedLines> out;
  for (const auto& [file, lines] : count_lines(graph, files)) {
    bool begun = false;
    for (const auto& [line, times] : lines) {
      if (!choose(times)) continue;
      if (!begun || line > out.back().last + near) out.push_back({{files.at(file), line}, line, 0, 0});
      begun = true;
      out.back().last = line;
      out.back().times = std::max(out.back().times, times);
      out.back().ops += times;
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const RepeatedLines& a, const RepeatedLines& b) { return a.ops > b.ops; });
  return out;
}

constexpr std::int64_t many = 3000;

struct ToldLines {
  Lock guard;
  std::set<std::string> lines;
};
ToldLines& told_lines() {
  static auto* const one = new ToldLines;  // never destroyed: see thread_end.h
  return *one;
}

}  // namespace

std::string RepeatedLines::str() const {
  std::string out = at_line(first, "");
  return last == first.line ? out : text(out, "-", last);
}

std::vector<RepeatedLines> repeated_lines(const Graph& graph, std::int64_t times) {
  return chosen_lines(graph, [&](std::int64_t found) { return found >= times; });
}

std::vector<RepeatedLines> lines_of_turns(const Graph& graph, std::int64_t turns) {
  if (turns < 2) return {};
  return chosen_lines(graph, [&](std::int64_t found) { return found >= turns && found % turns == 0; });
}

void note_unrolled(const std::string& function, const Graph& graph) {
  if (static_cast<std::int64_t>(graph.nodes.size()) < many) return;
  std::vector<RepeatedLines> lines = repeated_lines(graph, many);
  if (lines.empty()) return;
  // What belongs to the same loop may record less often.
  for (const RepeatedLines& more : repeated_lines(graph, many / 16))
    if (more.first.file == lines[0].first.file && more.first.line <= lines[0].first.line && more.last >= lines[0].last)
      lines[0] = more;
  const std::string place = lines[0].str();
  {
    std::lock_guard lock(told_lines().guard);
    if (!told_lines().lines.insert(place).second) return;
  }
  tell_retrace({function, 1,
                text("stet: tracing '", function, "' recorded ", lines[0].ops, " ops at ", place, "\n",
                     explanation_line("cause", text("a host loop there runs while the function is traced: each of its "
                                                    "turns is part of the program, of ",
                                                    graph.nodes.size(), " ops in all")),
                     explanation_line("fix",
                                      "loop inside of the program, in which the body is recorded once and the "
                                      "number of turns may change: for_loop(n, body, state), or scan(body, "
                                      "carry, xs) over the elements of xs"))},
               true);
}

}  // namespace stet
