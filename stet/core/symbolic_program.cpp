#include "stet/core/symbolic_program.h"

#include <algorithm>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/compiler/pipeline.h"
#include "stet/core/custom_gradient.h"

namespace stet {

std::vector<Dim> solve_facts(const SymbolScope& scope) {
  std::vector<Dim> symbols;
  std::vector<std::vector<int>> users;  // by symbol: whose values mention it
  for (int i = 0; i < scope.symbol_count(); ++i) {
    symbols.push_back(scope.symbol_at(i));
    users.push_back({i});
  }
  std::vector<Dim> out = symbols;
  auto replace = [&](const Dim& symbol, const Dim& by) {
    int number = *symbol.as_symbol();
    std::vector<int> inside = by.symbols();
    if (std::find(inside.begin(), inside.end(), number) != inside.end()) return;
    auto at = static_cast<std::size_t>(number);
    symbols[at] = by;
    for (int user : std::exchange(users[at], {})) {
      Dim& value = out[static_cast<std::size_t>(user)];
      value = value.substitute(symbols);
      for (int other : inside) users[static_cast<std::size_t>(other)].push_back(user);
    }
    symbols[at] = symbol;
  };
  for (const Fact& fact : scope.facts()) {
    if (fact.relation != Relation::equal) continue;
    Dim left = fact.left.substitute(out), right = fact.right.substitute(out);
    if (identical(left, right)) continue;
    // Of two symbols the one that fewer values mention: so many sizes that are all tied take linear time.
    auto mentions = [&](const Dim& symbol) { return users[static_cast<std::size_t>(*symbol.as_symbol())].size(); };
    bool turned = left.as_symbol() && right.as_symbol() && mentions(right) < mentions(left);
    if (left.as_symbol() && !turned)
      replace(left, right);
    else if (right.as_symbol())
      replace(right, left);
  }
  return out;
}

std::shared_ptr<Program> compile_symbolic(const Graph& given, Device& device, CompileReport* report) {
  const Graph graph = without_custom_gradients(without_aliases(given));
  std::vector<ProgramInput> asked;
  for (ValueId id : graph.inputs)
    asked.push_back(
        {graph.type(id).dtype, graph.type(id).shape, graph.node(id).attributes.as<InputAttributes>().strides});
  std::shared_ptr<Program> program = compile(substitute(graph, solve_facts(*graph.scope)), {.device = &device}, report);
  program->inputs = std::move(asked);
  program->facts.assign(graph.scope->facts().begin(), graph.scope->facts().end());
  return program;
}

}  // namespace stet
