#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/core/function_entry.h"
#include "stet/core/tensor_node.h"
#include "stet/core/traced_run.h"

namespace stet {
namespace {

/// Thrown where the runs part, and caught in difference_between().
struct Parted {
  RunDifference at;
};

/// Two graphs being compared: the runs' own, or two children that stand in one place.
struct Level {
  const Graph& first;
  const Graph& second;
  std::set<std::pair<ValueId, ValueId>> matched = {};
  // Of children: where they stand.
  Level* outer = nullptr;
  const Node* first_branch = nullptr;
  const Node* second_branch = nullptr;
};

std::string constant_text(const Node& node) {
  const std::string& bytes = node.attributes.as<ConstantAttributes>().bytes;
  Shape shape = node.type().shape;
  auto count = static_cast<std::size_t>(shape.element_count().constant());
  return to_string(creation::copied(node.type().dtype, bytes.data(), count, shape, {}));
}

/// A value as people know it: "multiply", "the constant 0.5".
std::string described(const Graph& graph, ValueId id) {
  const Node& node = graph.node(id);
  if (node.op == &constant_row) return text("the constant ", constant_text(node));
  if (node.op == &input_row) return text("a tensor of ", node.type());
  if (node.op == &size_row) return text("the size ", node.attributes.as<SizeAttributes>().size);
  std::string out = *node.label ? node.label : node.op->name;
  for (ValueId input : node.inputs)
    if (graph.node(input).op == &constant_row && graph.type(input).shape.rank() == 0)
      out += text(" with ", constant_text(graph.node(input)));
  return text(out, " giving ", node.type());
}

/// Errors name the sizes of the call.
std::string without_numbers(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  return text;
}

class Comparison {
 public:
  Comparison(const TracedRun& first, const TracedRun& second) : first_(first), second_(second) {
    for (int i = 0; i < std::min(first.argument_symbols, second.argument_symbols); ++i) bind_symbol(i, i);
  }

  void run() {
    if (first_.argument_symbols != second_.argument_symbols || first_.arguments != second_.arguments)
      part("other arguments", "other arguments", {});
    compare_results();
    Level top{first_.graph, second_.graph};
    compare_graphs(top);
    compare_facts();
  }

 private:
  [[noreturn]] static void part(std::string first, std::string second, Where where) {
    throw Parted{{std::move(first), std::move(second), where}};
  }

  // --- sizes

  void bind_symbol(int first, int second) {
    if (static_cast<std::size_t>(first) >= symbols_.size()) symbols_.resize(static_cast<std::size_t>(first) + 1, -1);
    symbols_[static_cast<std::size_t>(first)] = second;
  }
  bool is_bound(int first) const {
    return static_cast<std::size_t>(first) < symbols_.size() && symbols_[static_cast<std::size_t>(first)] >= 0;
  }
  bool is_used(int second) const { return std::find(symbols_.begin(), symbols_.end(), second) != symbols_.end(); }

  /// A size of the first run in the symbols of the second. Sizes that are known late are numbered as they came: those
  /// that stand in the same place are the same.
  Dim in_second(const Dim& first, const Dim* beside) {
    if (first.is_constant()) return first;
    for (int symbol : first.symbols()) {
      if (is_bound(symbol) || stand_for_first_.contains(symbol)) continue;
      std::vector<int> open;
      if (beside && !beside->is_constant())
        for (int other : beside->symbols())
          if (other >= second_.argument_symbols && !is_used(other)) open.push_back(other);
      if (open.size() != 1) return Dim(-1);
      bind_symbol(symbol, open[0]);
    }
    to_.resize(static_cast<std::size_t>(std::max(first_.graph.scope->symbol_count(), int(symbols_.size()))), Dim(-1));
    for (int symbol : first.symbols()) {
      auto stand_in = stand_for_first_.find(symbol);
      to_[static_cast<std::size_t>(symbol)] =
          stand_in != stand_for_first_.end()
              ? stand_in->second
              : second_.graph.scope->symbol_at(symbols_[static_cast<std::size_t>(symbol)]);
    }
    return first.substitute(to_);
  }

  /// A size of the second run with late sizes replaced that are no late ones in the first.
  Dim in_terms_of_first(const Dim& second) const {
    if (stand_for_second_.empty() || second.is_constant()) return second;
    std::vector<Dim> to;
    for (int i = 0; i < second_.graph.scope->symbol_count(); ++i) to.push_back(second_.graph.scope->symbol_at(i));
    for (const auto& [symbol, size] : stand_for_second_) to[static_cast<std::size_t>(symbol)] = size;
    return second.substitute(to);
  }

  /// What sides give may have one size in one run and a late one in the other: whether two sizes are known to be equal
  /// when sides are joined depends on what was learned before, on other paths.
  void join_sides(const ValueType& first, const ValueType& second) {
    if (first.shape.rank() != second.shape.rank()) return;
    for (int axis = 0; axis < first.shape.rank(); ++axis) {
      const Dim &a = first.shape[axis], &b = second.shape[axis];
      std::optional<int> late_first = late_symbol(a, first_), late_second = late_symbol(b, second_);
      if (late_first && !late_second && !is_bound(*late_first)) stand_for_first_.emplace(*late_first, b);
      if (late_second && !late_first && !is_used(*late_second))
        stand_for_second_.emplace(*late_second, in_second(a, nullptr));
    }
  }
  static std::optional<int> late_symbol(const Dim& dim, const TracedRun& run) {
    std::optional<int> symbol = dim.as_symbol();
    return symbol && *symbol >= run.argument_symbols ? symbol : std::nullopt;
  }

  bool same_size(const Dim& first, const Dim& given_second) {
    Dim second = in_terms_of_first(given_second);
    Dim mapped = in_second(first, &second);
    return identical(mapped, second) || identical(simplified(mapped), simplified(second)) ||
           prove_equal(mapped, second) == Proof::yes;
  }

  bool same_type(const ValueType& first, const ValueType& second) {
    if (first.dtype != second.dtype || first.shape.rank() != second.shape.rank()) return false;
    for (int axis = 0; axis < first.shape.rank(); ++axis)
      if (!same_size(first.shape[axis], second.shape[axis])) return false;
    return true;
  }

  bool same_attributes(const Attributes& first, const Attributes& second) {
    if (first == second) return true;
    auto plain = [&](const Dim& dim) { return simplified(in_terms_of_first(dim)); };
    // Late sizes inside are bound by the types, which are compared before.
    return first.map_dims([&](const Dim& dim) { return simplified(in_second(dim, nullptr)); }) ==
           second.map_dims(plain);
  }

  // --- graphs

  void compare_graphs(Level& level) {
    if ((level.first.raises != nullptr) != (level.second.raises != nullptr) ||
        without_numbers(level.first.raised_text) != without_numbers(level.second.raised_text))
      part(level.first.raises ? text("an exception: ", level.first.raised_text) : "no exception",
           level.second.raises ? text("an exception: ", level.second.raised_text) : "no exception", {});
    std::vector<ValueId> results = level.second.results;
    if (!level.outer) in_first_order(results);
    if (level.first.results.size() != results.size())
      part(text(level.first.results.size(), " results"), text(results.size(), " results"), {});
    for (std::size_t r = 0; r < results.size(); ++r) match(level, level.first.results[r], results[r], {});
    std::vector<ValueId> first = effects(level.first), second = effects(level.second);
    for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) match(level, first[i], second[i], {});
    if (first.size() != second.size()) part_effects(level, first, second);
  }

  /// One run does something that the other does not.
  [[noreturn]] static void part_effects(const Level& level, const std::vector<ValueId>& first,
                                        const std::vector<ValueId>& second) {
    const std::size_t common = std::min(first.size(), second.size());
    const bool more = first.size() > common;
    const Graph& graph = more ? level.first : level.second;
    const ValueId extra = more ? first[common] : second[common];
    const std::string what = text(described(graph, extra), ", ");
    const std::string in_first = more ? what : "", in_second = more ? "" : what;
    part(text(in_first, first.size(), " effects (branches that may throw, what prints, asserts or calls the host)"),
         text(in_second, second.size(), " effects"), graph.node(extra).where);
  }

  /// The last results are the next values of Variables, in the order in which these were met: it depends on which side
  /// of a decision was run first.
  void in_first_order(std::vector<ValueId>& results) const {
    compare_written();
    std::size_t own = results.size() - second_.written.size();
    std::vector<ValueId> given(results.begin() + static_cast<std::ptrdiff_t>(own), results.end());
    std::unordered_map<std::uint64_t, ValueId> next;  // by Variable
    for (std::size_t i = 0; i < given.size(); ++i) next.emplace(second_.written[i].id(), given[i]);
    for (std::size_t i = 0; i < first_.written.size(); ++i) results[own + i] = next.at(first_.written[i].id());
  }

  static std::vector<ValueId> effects(const Graph& graph) {
    std::vector<ValueId> out;
    for (std::size_t id = 0; id < graph.nodes.size(); ++id)
      if (has_effect(graph.nodes[id])) out.push_back(static_cast<ValueId>(id));
    return out;
  }

  /// The values are the same, and so is all that they are made of. Without recursion over graphs: they may be long.
  void match(Level& level, ValueId first, ValueId second, Where user) {
    struct Open {
      ValueId first, second;
      Where user;
      bool inputs_done = false;
    };
    std::vector<Open> open{{first, second, user}};
    while (!open.empty()) {
      Open next = open.back();
      if (level.matched.contains({next.first, next.second})) {
        open.pop_back();
        continue;
      }
      const Node &a = level.first.node(next.first), &b = level.second.node(next.second);
      Where where = a.where.known() ? a.where : next.user;
      if (!next.inputs_done) {
        if (a.op != b.op || a.inputs.size() != b.inputs.size() || a.results.size() != b.results.size())
          differ(level, next.first, next.second, where);
        open.back().inputs_done = true;
        if (a.op->kind == Kind::branch) {
          open.push_back({a.inputs[0], b.inputs[0], where});  // what the sides use is met inside of them
          continue;
        }
        if (a.op->kind == Kind::loop) {
          const auto &x = a.attributes.as<LoopAttributes>(), &y = b.attributes.as<LoopAttributes>();
          if (x.count != y.count || x.carried != y.carried || x.sequences != y.sequences || x.reverse != y.reverse)
            differ(level, next.first, next.second, where);
          for (int i = x.first_captured(); i-- > 0;)
            open.push_back({a.inputs[static_cast<std::size_t>(i)], b.inputs[static_cast<std::size_t>(i)], where});
          continue;
        }
        for (std::size_t i = a.inputs.size(); i-- > 0;) open.push_back({a.inputs[i], b.inputs[i], where});
        continue;
      }
      open.pop_back();
      compare_nodes(level, next.first, next.second, where);
      level.matched.emplace(next.first, next.second);
    }
  }

  [[noreturn]] static void differ(const Level& level, ValueId first, ValueId second, Where where) {
    part(described(level.first, first), described(level.second, second), where);
  }

  void compare_nodes(Level& level, ValueId first, ValueId second, Where where) {
    const Node &a = level.first.node(first), &b = level.second.node(second);
    auto ensure = [&](bool same) {
      if (!same) differ(level, first, second, where);
    };
    if (a.op == &input_row) return ensure(same_input(level, first, second, where));
    if (!children(a).empty()) {
      compare_children(level, a, b, where);
      for (std::size_t r = 0; r < a.results.size(); ++r) join_sides(a.results[r], b.results[r]);
    }
    for (std::size_t r = 0; r < a.results.size(); ++r) ensure(same_type(a.results[r], b.results[r]));
    if (a.op == &constant_row)
      ensure(a.attributes.as<ConstantAttributes>().bytes == b.attributes.as<ConstantAttributes>().bytes);
    else if (a.op == &size_row)
      ensure(same_size(a.attributes.as<SizeAttributes>().size, b.attributes.as<SizeAttributes>().size));
    else if (a.op->kind == Kind::loop)
      ensure(same_size(a.attributes.as<LoopAttributes>().turns, b.attributes.as<LoopAttributes>().turns));
    else if (a.op->kind != Kind::branch)
      ensure(same_attributes(a.attributes, b.attributes));
  }

  bool same_input(Level& level, ValueId first, ValueId second, Where where) {
    auto number = [](const Graph& graph, ValueId id) {
      return static_cast<std::size_t>(graph.node(id).attributes.as<InputAttributes>().number);
    };
    std::size_t a = number(level.first, first), b = number(level.second, second);
    if (level.outer && level.first_branch->op->kind == Kind::loop)
      return same_input_of_loop(level, static_cast<int>(a), static_cast<int>(b), where);
    if (level.outer) {
      match(*level.outer, level.first_branch->inputs[a + 1], level.second_branch->inputs[b + 1], where);
      return true;
    }
    if (a < first_.arguments || b < second_.arguments) return a == b;
    const Trace::HiddenInput &x = first_.hidden[a - first_.arguments], &y = second_.hidden[b - second_.arguments];
    auto show = [](const Trace::HiddenInput& hidden) {
      if (hidden.variable.defined())
        return text("the Variable ", hidden.variable.name().empty() ? "" : text("'", hidden.variable.name(), "' "),
                    hidden.variable.dtype(), hidden.variable.shape());
      const Tensor& captured = hidden.captured;
      bool small = captured.node()->element_count() <= 8;
      return text("the captured tensor ", captured.dtype(), captured.shape(), small ? " " : "",
                  small ? to_string(captured) : std::string());
    };
    bool same = x.variable.id() == y.variable.id() && x.captured.defined() == y.captured.defined() &&
                (!x.captured.defined() || same_elements(x.captured, y.captured));
    if (!same) part(show(x), show(y), where);
    return true;
  }

  /// What a turn begins with has its place; what is captured is what was.
  bool same_input_of_loop(Level& level, int first, int second, Where where) {
    const auto& loop = level.first_branch->attributes.as<LoopAttributes>();
    if (first <= loop.turn_input() || second <= loop.turn_input()) return first == second;
    auto outside = [&](const Node& node, int input) {
      return node.inputs[static_cast<std::size_t>(loop.first_captured() + input - loop.turn_input() - 1)];
    };
    match(*level.outer, outside(*level.first_branch, first), outside(*level.second_branch, second), where);
    return true;
  }

  void compare_children(Level& level, const Node& a, const Node& b, Where where) {
    std::vector<GraphPointer> first = children(a), second = children(b);
    for (std::size_t i = 0; i < first.size(); ++i) {
      Level inner{*first[i], *second[i], {}, &level, &a, &b};
      try {
        compare_graphs(inner);
      } catch (Parted& parted) {
        if (!parted.at.where.known()) parted.at.where = where;
        throw;
      }
    }
  }

  // --- the rest

  void compare_results() const {
    const Leaves &a = first_.result_form, &b = second_.result_form;
    if (a.size() != b.size()) part(text(a.size(), " values returned"), text(b.size(), " values returned"), {});
    for (std::size_t i = 0; i < a.size(); ++i) {
      auto show = [](const Leaf& leaf) {
        if (leaf.kind == Leaf::tensor) return std::string(leaf.undefined ? "an undefined tensor" : "a tensor");
        return text(stet::described(leaf), " returned");
      };
      bool same = a[i].kind == b[i].kind && a[i].dtype == b[i].dtype && a[i].bits == b[i].bits &&
                  a[i].undefined == b[i].undefined && a[i].state.id() == b[i].state.id() &&
                  identical(a[i].length, b[i].length);
      if (!same) part(show(a[i]), show(b[i]), {});
    }
  }

  void compare_written() const {
    auto ids = [](const TracedRun& run) {
      std::vector<std::uint64_t> out;
      for (const Variable& variable : run.written) out.push_back(variable.id());
      std::sort(out.begin(), out.end());
      return out;
    };
    if (ids(first_) != ids(second_))
      part(text(first_.written.size(), " Variables written"), text(second_.written.size(), " Variables written"), {});
  }

  /// What one run asked of sizes must be true for the sizes of the other: else they were not asked the same.
  void compare_facts() const {
    for (bool turned : {false, true}) {
      const TracedRun &asked = turned ? first_ : second_, &other = turned ? second_ : first_;
      Bindings sizes;
      for (int i = 0; i < other.argument_symbols; ++i) sizes.bind(i, *other.graph.scope->symbol_hint(i));
      for (const Fact& fact : asked.graph.scope->facts()) {
        bool about_arguments = true;
        for (const Dim* side : {&fact.left, &fact.right})
          for (int symbol : side->symbols()) about_arguments = about_arguments && symbol < other.argument_symbols;
        if (!about_arguments || fact.holds(sizes)) continue;
        std::string with = text("host code relied on ", fact), without = "it did not";
        part(turned ? with : without, turned ? without : with, fact.reason.where);
      }
    }
  }

  const TracedRun& first_;
  const TracedRun& second_;
  std::vector<int> symbols_;  // of the second run, by those of the first; -1 for one not met yet
  std::vector<Dim> to_;       // the same as Dims, filled in where it was asked for
  std::map<int, Dim> stand_for_first_, stand_for_second_;  // late symbols of one run that the other has other sizes for
};

}  // namespace

std::optional<RunDifference> difference_between(const TracedRun& first, const TracedRun& second) {
  try {
    Comparison(first, second).run();
  } catch (const Parted& parted) {
    return parted.at;
  }
  return std::nullopt;
}

}  // namespace stet
