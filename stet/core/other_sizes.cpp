// Sizes for the second run of a trace: as different from the first run's as its facts allow.
#include <algorithm>

#include "stet/base/dim_inside.h"
#include "stet/core/symbolic_program.h"
#include "stet/core/traced_run.h"

namespace stet {
namespace {

using Sizes = std::vector<std::int64_t>;

/// All that a graph, its children included, asks of the sizes of arguments. Sizes that are known later are not ours to
/// choose.
void add_conditions(const Graph& graph, int symbols, std::vector<Fact>& out) {
  auto add = [&](const Fact& fact) {
    for (const Dim* side : {&fact.left, &fact.right})
      for (int symbol : side->symbols())
        if (symbol >= symbols) return;
    out.push_back(fact);
  };
  for (const SizeCheck& check : graph.checks) add(check.fact);
  for (const Node& node : graph.nodes)
    for (const GraphPointer& child : children(node)) add_conditions(*child, symbols, out);
}

class Search {
 public:
  explicit Search(const TracedRun& run) : solved_(solve_facts(*run.graph.scope)) {
    const SymbolScope& scope = *run.graph.scope;
    for (int i = 0; i < run.argument_symbols; ++i) given_.push_back(scope.symbol_hint(i).value_or(0));
    sizes_ = given_;
    solved_.resize(given_.size(), Dim(0));
    for (const Fact& fact : scope.facts()) add(fact);
    for (const SizeCheck& check : scope.checks()) add(check.fact);
    std::vector<Fact> checks;
    add_conditions(run.graph, run.argument_symbols, checks);
    for (const Fact& check : checks) add(check);
    // A trace where they are equal takes them to be, and is another one.
    for (const Fact& fact : run.apart) add(fact);
  }

  Sizes run() {
    std::vector<std::size_t> stuck;
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (is_free(i) && !move(i)) stuck.push_back(i);
    // Sizes whose product is fixed move in pairs.
    for (std::size_t i : stuck)
      for (std::size_t j : stuck)
        if (i < j && sizes_[i] == given_[i] && sizes_[j] == given_[j]) move_pair(i, j);
    return sizes_;
  }

 private:
  void add(const Fact& fact) {
    for (const Dim* side : {&fact.left, &fact.right})
      for (int symbol : side->symbols())
        if (static_cast<std::size_t>(symbol) >= given_.size()) return;
    conditions_.push_back(fact);
  }

  /// Not given by others.
  bool is_free(std::size_t i) const { return solved_[i].as_symbol() == static_cast<int>(i); }

  bool is_taken(std::size_t own, std::int64_t size) const {
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (i != own && is_free(i) && sizes_[i] == size) return true;
    return false;
  }

  /// Sets the free sizes and what follows from them; undone if a condition does not hold.
  bool attempt(std::initializer_list<std::pair<std::size_t, std::int64_t>> changes) {
    Sizes next = sizes_;
    for (auto [i, size] : changes) {
      if (size < 2 || is_taken(i, size)) return false;
      next[i] = size;
    }
    try {
      const Bindings free(next);
      for (std::size_t i = 0; i < next.size(); ++i)
        if (!is_free(i)) next[i] = solved_[i].evaluate(free);
      for (std::int64_t size : next)
        if (size < 0) return false;
      const Bindings all(next);
      for (const Fact& condition : conditions_)
        if (!condition.holds(all)) return false;
    } catch (const Error&) {
      return false;  // a size that overflows, or depends on what is not known here
    }
    sizes_ = next;
    return true;
  }

  bool move(std::size_t i) {
    std::int64_t from = given_[i];
    for (std::int64_t step : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64, -1, -2, -3, -4, -8, -16})
      if (attempt({{i, from + step}})) return true;
    for (std::int64_t factor : {2, 3, 5, 7})
      if (attempt({{i, from * factor}}) || (from % factor == 0 && attempt({{i, from / factor}}))) return true;
    return false;
  }

  void move_pair(std::size_t i, std::size_t j) {
    for (std::int64_t factor : {2, 3, 5, 7}) {
      if (given_[j] % factor == 0 && attempt({{i, given_[i] * factor}, {j, given_[j] / factor}})) return;
      if (given_[i] % factor == 0 && attempt({{i, given_[i] / factor}, {j, given_[j] * factor}})) return;
    }
  }

  Sizes given_, sizes_;
  std::vector<Dim> solved_;  // by symbol, in terms of the free ones
  std::vector<Fact> conditions_;
};

}  // namespace

std::vector<std::int64_t> other_sizes(const TracedRun& run) { return Search(run).run(); }

}  // namespace stet
