// Sizes for the second run of a trace: as different from the first run's as its facts allow.
#include <algorithm>
#include <set>
#include <unordered_map>

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
    values_ = Bindings(given_);
    solved_.resize(given_.size(), Dim(0));
    for (const Fact& fact : scope.facts()) add(fact);
    for (const SizeCheck& check : scope.checks()) add(check.fact);
    std::vector<Fact> checks;
    add_conditions(run.graph, run.argument_symbols, checks);
    for (const Fact& check : checks) add(check);
    // A trace where they are equal takes them to be, and is another one.
    for (const Fact& fact : run.apart) add(fact);
    tie();
  }

  Sizes run() {
    if (!holds()) return given_;
    std::vector<std::size_t> stuck;
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (is_free(i) && !move(i)) stuck.push_back(i);
    // Sizes whose product is fixed move in pairs.
    for (std::size_t i : stuck)
      for (std::size_t j : asked_about_with(i))
        if (i < j && sizes_[i] == given_[i] && sizes_[j] == given_[j] &&
            std::binary_search(stuck.begin(), stuck.end(), j))
          move_pair(i, j);
    return sizes_;
  }

 private:
  /// What is asked about a free size: an attempt looks at no more than that, however many sizes there are.
  struct Ties {
    std::vector<std::size_t> given;       // sizes that follow from it, and perhaps others
    std::vector<std::size_t> conditions;  // by number
  };

  void add(const Fact& fact) {
    for (const Dim* side : {&fact.left, &fact.right})
      for (int symbol : side->symbols())
        if (static_cast<std::size_t>(symbol) >= given_.size()) return;
    conditions_.push_back(fact);
  }

  void tie() {
    for (std::size_t i = 0; i < given_.size(); ++i) is_free_.push_back(solved_[i].as_symbol() == static_cast<int>(i));
    ties_.resize(given_.size());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (is_free(i))
        ++taken_[sizes_[i]];
      else
        for (std::size_t free : free_in(solved_[i])) ties_[free].given.push_back(i);
    }
    for (std::size_t c = 0; c < conditions_.size(); ++c)
      for (std::size_t free : free_in(conditions_[c])) ties_[free].conditions.push_back(c);
  }

  /// The free sizes that it depends on, in order.
  std::vector<std::size_t> free_in(const Dim& size) const {
    std::set<std::size_t> out;
    add_free(size, out);
    return {out.begin(), out.end()};
  }
  std::vector<std::size_t> free_in(const Fact& fact) const {
    std::set<std::size_t> out;
    add_free(fact.left, out);
    add_free(fact.right, out);
    return {out.begin(), out.end()};
  }
  void add_free(const Dim& size, std::set<std::size_t>& out) const {
    for (int symbol : size.symbols()) {
      auto at = static_cast<std::size_t>(symbol);
      if (at >= given_.size()) continue;
      if (is_free(at)) {
        out.insert(at);
        continue;
      }
      for (int other : solved_[at].symbols())
        if (static_cast<std::size_t>(other) < given_.size()) out.insert(static_cast<std::size_t>(other));
    }
  }
  /// The free sizes that something asks about together with size i, in order.
  std::vector<std::size_t> asked_about_with(std::size_t i) const {
    std::set<std::size_t> out;
    for (std::size_t c : ties_[i].conditions)
      for (std::size_t other : free_in(conditions_[c])) out.insert(other);
    for (std::size_t g : ties_[i].given)
      for (std::size_t other : free_in(solved_[g])) out.insert(other);
    return {out.begin(), out.end()};
  }

  /// Not given by others.
  bool is_free(std::size_t i) const { return is_free_[i]; }

  bool is_taken(std::size_t own, std::int64_t size) const {
    auto at = taken_.find(size);
    return at != taken_.end() && at->second > (sizes_[own] == size ? 1 : 0);
  }

  /// All that was asked holds for the sizes that were given.
  bool holds() {
    try {
      for (std::size_t i = 0; i < sizes_.size(); ++i)
        if (!is_free(i)) set(i, solved_[i].evaluate(values_));
      return std::all_of(sizes_.begin(), sizes_.end(), [](std::int64_t size) { return size >= 0; }) &&
             std::all_of(conditions_.begin(), conditions_.end(),
                         [&](const Fact& condition) { return condition.holds(values_); });
    } catch (const Error&) {
      return false;  // a size that overflows, or depends on what is not known here
    }
  }

  void set(std::size_t i, std::int64_t size) {
    sizes_[i] = size;
    values_.bind(static_cast<int>(i), size);
  }

  /// Sets the free sizes and what follows from them; undone if a condition does not hold.
  bool attempt(std::initializer_list<std::pair<std::size_t, std::int64_t>> changes) {
    for (auto [i, size] : changes)
      if (size < 2 || is_taken(i, size)) return false;
    std::vector<std::pair<std::size_t, std::int64_t>> before;
    auto change = [&](std::size_t i, std::int64_t size) {
      before.emplace_back(i, sizes_[i]);
      set(i, size);
    };
    for (auto [i, size] : changes) change(i, size);
    if (!follows(changes, change)) {
      for (std::size_t k = before.size(); k-- > 0;) set(before[k].first, before[k].second);
      return false;
    }
    for (std::size_t k = 0; k < changes.size(); ++k) {
      if (auto old = taken_.find(before[k].second); --old->second == 0) taken_.erase(old);
      ++taken_[sizes_[before[k].first]];
    }
    return true;
  }

  /// Changes what follows from changed sizes; whether all that was asked about them holds.
  template <class Change>
  bool follows(std::initializer_list<std::pair<std::size_t, std::int64_t>> changes, const Change& change) {
    try {
      for (const auto& changed : changes)
        for (std::size_t i : ties_[changed.first].given) {
          std::int64_t size = solved_[i].evaluate(values_);
          if (size < 0) return false;
          change(i, size);
        }
      for (const auto& changed : changes)
        for (std::size_t c : ties_[changed.first].conditions)
          if (!conditions_[c].holds(values_)) return false;
      return true;
    } catch (const Error&) {
      return false;  // a size that overflows, or depends on what is not known here
    }
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
  Bindings values_;          // sizes_
  std::vector<Dim> solved_;  // by symbol, in terms of the free ones
  std::vector<bool> is_free_;
  std::vector<Fact> conditions_;
  std::vector<Ties> ties_;                       // by free size
  std::unordered_map<std::int64_t, int> taken_;  // how many free sizes are this
};

}  // namespace

std::vector<std::int64_t> other_sizes(const TracedRun& run) { return Search(run).run(); }

}  // namespace stet
