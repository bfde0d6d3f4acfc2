// From a graph with recorded facts to a program that knows which sizes it is for: what eager calls and traces share.
#pragma once
#include <memory>
#include <vector>

#include "stet/base/dim.h"
#include "stet/ir/graph.h"
#include "stet/runtime/program.h"

namespace stet {

struct CompileReport;

/// What the scope's equalities say about single symbols (ties and pins), as one substitution for all of them: for each
/// symbol what stands for it. A graph rewritten with it has fewer symbols, and loops that can be merged.
std::vector<Dim> solve_facts(const SymbolScope& scope);

/// Compiles the graph, with its facts put in, for a device. Calls are matched against the sizes as they come, one
/// symbol per axis, and then against the facts.
std::shared_ptr<Program> compile_symbolic(const Graph& graph, Device& device, CompileReport* report = nullptr);

}  // namespace stet
