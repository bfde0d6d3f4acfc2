// Graph -> Program. pipeline.cpp is the table of contents: one line per pass.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "stet/compiler/verified_passes.h"
#include "stet/ir/graph.h"
#include "stet/runtime/device.h"
#include "stet/runtime/program.h"

namespace stet {

/// A pass returns a new graph that computes the same. Its declaration below says why it exists and why it stands where
/// it does.
struct Pass {
  const char* name;
  Graph (*run)(const Graph&);
};
/// The passes in order.
std::span<const Pass> passes();

struct CompileOptions {
  /// Names of passes to leave out. Every pass may be left out, and so may "plan".
  std::vector<std::string> without = {};
  /// Where the program will run.
  Device* device = &Device::host();
  /// Verify the graph after each pass.
  bool verify = verified_passes();
  /// Called with the graph after each pass ("start" before the first).
  std::function<void(const char* pass, const Graph&)> observe = {};
};

struct CompileReport {
  struct Stage {
    std::string name;
    double milliseconds;
    std::size_t nodes;  // after it, those of children too; after "lower" steps of the program
  };
  std::size_t nodes = 0;      // before the first
  std::vector<Stage> stages;  // every pass, then "lower", "plan" and "code"
};

std::shared_ptr<Program> compile(const Graph& graph, const CompileOptions& options = {},
                                 CompileReport* report = nullptr);

// --- the passes

/// Makes loops that do the same turns one: a gradient asks for values of the turns of a loop that is there already.
/// First: bodies of one origin are still recognised.
Graph merge_loops(const Graph&);
/// Removes what changes nothing: simplifies bodies, drops inputs that they do not read, and reshapes, transposes and
/// broadcasts to what is already there. Early, so that later passes see fewer and plainer nodes.
Graph simplify_graph(const Graph&);
/// Computes maps of constants now, with the rounding that generated code has, and puts single numbers into the maps
/// that use them.
Graph fold_constants(const Graph&);
/// Computes before a loop what all of its turns would compute alike, and lays out for them the matrices that they
/// multiply by. After folding, which finds more that does not change; before sharing: the loop of a gradient often
/// wants the same.
Graph hoist_from_loops(const Graph&);
/// Makes equal nodes one. After folding, which makes more nodes equal; before fusion, which would copy them apart.
Graph share_common(const Graph&);
/// Drops nodes that no result needs. Before fusion, so that a dead user does not keep a producer from being fused.
Graph drop_dead(const Graph&);
/// Of these nodes of a graph in the making, in order: those that the results are made of, those that have effects or
/// state checks, those that find sizes which others need, and what all of them use.
std::set<ValueId> needed_among(const Graph& graph, std::span<const ValueId> nodes, std::span<const ValueId> results);
/// Drops what loops carry or stack for nobody, and the inputs that were only for that. After dead, whose work it goes
/// on with.
Graph trim_loops(const Graph&);
/// Where a map computes f(x) of its operand x and f(x) is in memory anyway, lets it read that instead of x: the
/// gradients of relu, tanh and exp follow from their results. Before fusion: x, left with one user fewer, may go into
/// that one and need not be kept.
Graph reuse_values(const Graph&);
/// Puts a map into the map that is its only user: one loop instead of two, and no buffer between.
Graph fuse_maps(const Graph&);
/// Puts a map into the reduction that is its only user. After fuse_maps, so that whole chains move at once.
Graph fuse_into_reductions(const Graph&);
/// Puts a map (bias, activation) behind the matrix product that it alone uses. On what maps remain.
Graph fuse_epilogues(const Graph&);
/// Puts maps and reductions over the rows of one space together, to be done a row at a time. After the other fusions:
/// on what chains and epilogues remain; before merge_maps, which would take the maps.
Graph fuse_rows(const Graph&);
/// Makes maps of one shape that read the same values, or each other, one loop with several results: an optimizer's
/// update reads the gradient once, and what several maps need is computed once. Last, because a map that is part of a
/// tuple can no longer go into a reduction or behind a matrix product.
Graph merge_maps(const Graph&);

}  // namespace stet
