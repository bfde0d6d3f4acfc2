#include "stet/core/symbolic_program.h"

#include <algorithm>

#include "stet/compiler/pipeline.h"

namespace stet {

std::vector<Dim> solve_facts(const SymbolScope& scope) {
  std::vector<Dim> symbols;
  for (int i = 0; i < scope.symbol_count(); ++i) symbols.push_back(scope.symbol_at(i));
  std::vector<Dim> out = symbols;
  auto replace = [&](const Dim& symbol, const Dim& by) {
    int number = *symbol.as_symbol();
    std::vector<int> inside = by.symbols();
    if (std::find(inside.begin(), inside.end(), number) != inside.end()) return;
    std::vector<Dim> one = symbols;
    one[static_cast<std::size_t>(number)] = by;
    for (Dim& dim : out) dim = dim.substitute(one);
  };
  for (const Fact& fact : scope.facts()) {
    if (fact.relation != Relation::equal) continue;
    Dim left = fact.left.substitute(out), right = fact.right.substitute(out);
    if (identical(left, right)) continue;
    if (left.as_symbol())
      replace(left, right);
    else if (right.as_symbol())
      replace(right, left);
  }
  return out;
}

std::shared_ptr<Program> compile_symbolic(const Graph& given) {
  const Graph graph = without_aliases(given);
  std::vector<ProgramInput> asked;
  for (ValueId id : graph.inputs)
    asked.push_back(
        {graph.type(id).dtype, graph.type(id).shape, graph.node(id).attributes.as<InputAttributes>().strides});
  std::shared_ptr<Program> program = compile(substitute(graph, solve_facts(*graph.scope)));
  program->inputs = std::move(asked);
  program->facts.assign(graph.scope->facts().begin(), graph.scope->facts().end());
  return program;
}

}  // namespace stet
