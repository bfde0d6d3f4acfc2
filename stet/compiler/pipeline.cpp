#include "stet/compiler/pipeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "stet/compiler/lower.h"
#include "stet/compiler/plan_updates.h"
#include "stet/runtime/recording.h"

namespace stet {
namespace {

std::atomic<bool> verified_default{STET_CHECKED_KERNELS != 0};

constexpr Pass pass_table[] = {
    {"merge_loops", merge_loops},
    {"simplify", simplify_graph},
    {"fold", fold_constants},
    {"hoist", hoist_from_loops},
    {"share", share_common},
    {"dead", drop_dead},
    {"trim_loops", trim_loops},
    {"reuse", reuse_values},
    {"fuse_maps", fuse_maps},
    {"fuse_reductions", fuse_into_reductions},
    {"fuse_epilogues", fuse_epilogues},
    {"fuse_rows", fuse_rows},
    {"merge_maps", merge_maps},
};

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The graph rewritten by `pass`, its branches and loops first: a pass sees one level at a time.
Graph rewritten(const Graph& given, const Pass& pass) {
  auto has_children = [](const Node& node) { return node.op->kind == Kind::branch || node.op->kind == Kind::loop; };
  if (std::none_of(given.nodes.begin(), given.nodes.end(), has_children)) return pass.run(given);
  Graph graph = given;
  for (Node& node : graph.nodes)
    if (has_children(node))
      node = with_children(std::move(node), [&](const Graph& child) { return rewritten(child, pass); });
  return pass.run(graph);
}

std::size_t node_count(const Graph& graph) {
  std::size_t count = graph.nodes.size();
  for (const Node& node : graph.nodes)
    for (const GraphPointer& child : children(node)) count += node_count(*child);
  return count;
}

}  // namespace

bool verified_passes() { return verified_default.load(std::memory_order_relaxed); }
void set_verified_passes(bool verified) { verified_default.store(verified, std::memory_order_relaxed); }

std::span<const Pass> passes() { return pass_table; }

std::shared_ptr<Program> compile(const Graph& given, const CompileOptions& options, CompileReport* report) {
  Graph graph = given;
  if (options.verify) verify(graph, "start");
  if (options.observe) options.observe("start", graph);
  if (report) report->nodes = node_count(graph);
  std::shared_ptr<Program> program;
  auto stage = [&](const char* name, const auto& work) {
    Stopwatch watch;
    {
      recording::Span span(recording::Kind::pass, [&] { return name; });
      work();
    }
    if (!report) return;
    report->stages.push_back({name, watch.milliseconds(), program ? program->steps.size() : node_count(graph)});
  };
  auto wanted = [&](const char* name) {
    return std::find(options.without.begin(), options.without.end(), name) == options.without.end();
  };
  for (const Pass& pass : pass_table) {
    if (!wanted(pass.name)) continue;
    stage(pass.name, [&] { graph = rewritten(graph, pass); });
    if (options.verify) verify(graph, pass.name);
    if (options.observe) options.observe(pass.name, graph);
  }
  stage("lower", [&] { program = lower(graph, *options.device); });
  if (wanted("plan")) stage("plan", [&] { plan_updates(*program, graph.updates); });
  stage("code", [&] { provide_code(*program); });
  return program;
}

}  // namespace stet
