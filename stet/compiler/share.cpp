#include <unordered_map>
#include <unordered_set>

#include "stet/base/dim_inside.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rebuild.h"

namespace stet {
namespace {

std::size_t hash_of(const Node& node) {
  std::size_t h = attribute::mix(reinterpret_cast<std::size_t>(node.op), node.attributes.hash());
  for (ValueId id : node.inputs) h = attribute::mix(h, static_cast<std::size_t>(id));
  return h;
}

bool same(const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.attributes == b.attributes && a.results.size() == b.results.size() &&
         identical(a.type(), b.type());
}

std::vector<int> symbols_of(const Node& node) {
  std::vector<int> out;
  for (const ValueType& type : node.results)
    for (const Dim& dim : type.shape)
      if (!dim.is_constant())
        for (int symbol : dim.symbols()) out.push_back(symbol);
  return out;
}

/// The symbols whose values a node needs to run: of its types, its attributes, and what runs inside of it.
std::vector<int> needed_symbols(const Node& node) {
  std::vector<int> out = symbols_of(node);
  if (node.attributes.is_symbolic())
    node.attributes.map_dims([&](const Dim& dim) {
      if (!dim.is_constant())
        for (int symbol : dim.symbols()) out.push_back(symbol);
      return dim;
    });
  return out;
}

/// A late size is known when its node has run, so whoever has the size needs the node, even if not its value.
bool finds_one(const Node& node, const SymbolScope* scope, const std::unordered_set<int>& sizes) {
  if (node.op->kind != Kind::late && children(node).empty()) return false;
  for (int symbol : symbols_of(node))
    if (sizes.contains(symbol) && !scope->symbol_hint(symbol)) return true;
  return false;
}

}  // namespace

Graph share_common(const Graph& old) {
  Rebuild to(old);
  std::unordered_multimap<std::size_t, ValueId> known;
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    Node node = to.renamed(id);
    // Late sizes are symbols of their own node: two equal nodes have different ones, and stay apart.
    bool sharable =
        node.op != &input_row && node.op->kind != Kind::late && children(node).empty() && !node.op->has_effect;
    std::size_t hash = hash_of(node);
    ValueId found = -1;
    if (sharable) {
      auto [first, last] = known.equal_range(hash);
      for (auto it = first; it != last && found < 0; ++it)
        if (same(to.graph.node(it->second), node)) found = it->second;
    }
    if (found >= 0) {
      to.set(id, found);
    } else {
      to.put(id, std::move(node));
      if (sharable) known.emplace(hash, to.at(id));
    }
  }
  return to.finish();
}

std::vector<bool> needed_nodes(const Graph& old, const std::vector<bool>& asked) {
  std::vector<bool> needed(old.nodes.size(), false);
  for (std::size_t r = 0; r < old.results.size(); ++r)
    if (asked[r]) needed[static_cast<std::size_t>(old.results[r])] = true;
  for (std::size_t id = 0; id < old.nodes.size(); ++id)
    if (has_effect(old.nodes[id])) needed[id] = true;
  std::unordered_set<int> sizes;  // symbols that needed nodes need, and what is checked whether it is used or not
  for (const SizeCheck& check : old.checks)
    for (const Dim* side : {&check.fact.left, &check.fact.right})
      for (int symbol : side->symbols()) sizes.insert(symbol);
  for (std::size_t id = old.nodes.size(); id-- > 0;) {
    const Node& node = old.nodes[id];
    needed[id] = needed[id] || finds_one(node, old.scope.get(), sizes);
    if (!needed[id]) continue;
    for (ValueId input : node.inputs) needed[static_cast<std::size_t>(input)] = true;
    for (int symbol : needed_symbols(node)) sizes.insert(symbol);
  }
  return needed;
}

std::set<ValueId> needed_among(const Graph& graph, std::span<const ValueId> nodes, std::span<const ValueId> results) {
  std::set<ValueId> needed(results.begin(), results.end());
  std::unordered_set<int> sizes;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const Node& node = graph.node(nodes[i]);
    if (!needed.contains(nodes[i]) && node.op != &need_row && !has_effect(node) &&
        !finds_one(node, graph.scope.get(), sizes))
      continue;
    needed.insert(nodes[i]);
    needed.insert(node.inputs.begin(), node.inputs.end());
    for (int symbol : needed_symbols(node)) sizes.insert(symbol);
  }
  return needed;
}

Graph drop_dead(const Graph& old) {
  std::vector<bool> needed = needed_nodes(old, std::vector<bool>(old.results.size(), true));
  for (ValueId id : old.inputs) needed[static_cast<std::size_t>(id)] = true;  // arguments keep their places
  Rebuild to(old);
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id)
    if (needed[static_cast<std::size_t>(id)]) to.copy(id);
  return to.finish();
}

}  // namespace stet
