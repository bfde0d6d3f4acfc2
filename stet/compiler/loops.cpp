// Loops as one level of a graph sees them: what is done twice is done once, and what nobody needs is not carried along.
#include <algorithm>
#include <map>
#include <set>

#include "stet/base/dim_inside.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rebuild.h"

namespace stet {
namespace {

bool is_loop(const Node& node) { return node.op->kind == Kind::loop; }

const LoopAttributes& loop_of(const Node& node) { return node.attributes.as<LoopAttributes>(); }

/// What loops have in common that do the same turns.
struct SameTurns {
  int origin;
  std::vector<ValueId> inputs;
  auto operator<=>(const SameTurns&) const = default;
};

}  // namespace

Graph merge_loops(const Graph& old) {
  // A loop and those that stack more of the same turns: the largest stands for all, at the place of the first.
  std::map<SameTurns, std::vector<ValueId>> alike;
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id)
    if (const Node& node = old.node(id); is_loop(node) && loop_of(node).origin >= 0)
      alike[{loop_of(node).origin, node.inputs}].push_back(id);
  std::map<ValueId, ValueId> largest_of;  // by loop
  for (const auto& [turns, loops] : alike) {
    if (loops.size() < 2) continue;
    ValueId largest = *std::max_element(loops.begin(), loops.end(), [&](ValueId a, ValueId b) {
      return old.node(a).results.size() < old.node(b).results.size();
    });
    const std::vector<ValueId>& all = loop_of(old.node(largest)).body->results;
    for (ValueId id : loops) {
      const std::vector<ValueId>& own = loop_of(old.node(id)).body->results;
      // Bodies of one origin are one body with more or fewer results. A number of turns that is known in the end has
      // its own name in every loop that tells it.
      bool tells = static_cast<int>(own.size()) > loop_of(old.node(id)).carried;
      if (own.size() <= all.size() && std::equal(own.begin(), own.end(), all.begin()) &&
          (!tells || identical(loop_of(old.node(id)).turns, loop_of(old.node(largest)).turns)))
        largest_of[id] = largest;
    }
  }
  if (largest_of.empty()) return old;
  Rebuild to(old);
  std::map<ValueId, ValueId> placed;                 // largest loops, where they stand now
  std::map<std::pair<ValueId, int>, ValueId> parts;  // of those
  auto part = [&](ValueId largest, int number) {
    auto [found, added] = parts.try_emplace({largest, number}, -1);
    if (added) {
      PartAttributes attributes{number};
      found->second = to.graph.add_call(part_row, {placed.at(largest)}, Attributes(view_of(attributes)));
    }
    return found->second;
  };
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    const Node& node = old.node(id);
    if (auto found = largest_of.find(id); found != largest_of.end()) {
      ValueId largest = found->second;
      if (!placed.contains(largest)) {
        Node moved = old.node(largest);
        for (ValueId& input : moved.inputs) input = to.at(input);
        placed[largest] = to.graph.add(std::move(moved));
      }
      to.set(id, old.node(largest).results.size() == 1 ? placed.at(largest)
                 : node.results.size() == 1            ? part(largest, 0)
                                                       : placed.at(largest));
      continue;
    }
    if (node.op == &part_row && largest_of.contains(node.inputs[0])) {
      to.set(id, part(largest_of.at(node.inputs[0]), node.attributes.as<PartAttributes>().number));
      continue;
    }
    to.copy(id);
  }
  return to.finish();
}

namespace {

/// What of a loop anybody needs.
struct Needs {
  std::vector<bool> results;  // of the body
  std::vector<bool> inputs;   // of the body
};

Needs needs_of(const Node& node, const std::vector<bool>& used) {
  const LoopAttributes& loop = loop_of(node);
  Needs out{used, std::vector<bool>(loop.body->inputs.size(), false)};
  auto add_inputs = [&](const Graph& child, const std::vector<bool>& needed) {
    for (std::size_t i = 0; i < child.inputs.size(); ++i)
      if (needed[static_cast<std::size_t>(child.inputs[i])]) out.inputs[i] = true;
  };
  if (loop.condition) add_inputs(*loop.condition, needed_nodes(*loop.condition, {true}));
  for (bool more = true; more;) {
    more = false;
    add_inputs(*loop.body, needed_nodes(*loop.body, out.results));
    for (std::size_t i = 0; i < static_cast<std::size_t>(loop.carried); ++i)
      if (out.inputs[i] != out.results[i]) {
        more = more || !out.results[i];
        out.results[i] = out.inputs[i] = true;
      }
  }
  out.inputs[static_cast<std::size_t>(loop.turn_input())] = true;
  return out;
}

Graph with_fewer(const Graph& child, const std::vector<bool>& inputs, const std::vector<bool>& results) {
  Graph out = child;
  out.results.clear();
  for (std::size_t r = 0; r < child.results.size(); ++r)
    if (results[r]) out.results.push_back(child.results[r]);
  out.updates.clear();
  out = trim_loops(drop_dead(out));
  Graph fewer = out;
  fewer.nodes.clear();
  std::vector<int> number_now;  // of inputs, which may stand in another order than they are listed
  int kept = 0;
  for (bool needed : inputs) number_now.push_back(needed ? kept++ : -1);
  fewer.inputs.assign(static_cast<std::size_t>(kept), -1);
  std::vector<ValueId> to;
  for (std::size_t id = 0; id < out.nodes.size(); ++id) {
    Node node = out.nodes[id];
    if (node.op == &input_row) {
      InputAttributes attributes = node.attributes.as<InputAttributes>();
      attributes.number = number_now[static_cast<std::size_t>(attributes.number)];
      if (attributes.number < 0) {
        to.push_back(-1);
        continue;
      }
      node.attributes = Attributes(view_of(attributes));
      fewer.inputs[static_cast<std::size_t>(attributes.number)] = static_cast<ValueId>(fewer.nodes.size());
    }
    for (ValueId& input : node.inputs) input = to[static_cast<std::size_t>(input)];
    to.push_back(fewer.add(std::move(node)));
  }
  for (ValueId& id : fewer.results) id = to[static_cast<std::size_t>(id)];
  return fewer;
}

/// The child with its inputs in another order, of which `order` lists the old places.
Graph with_inputs(Graph child, const std::vector<int>& order) {
  std::vector<ValueId> inputs;
  for (int place : order) inputs.push_back(child.inputs[static_cast<std::size_t>(place)]);
  child.inputs = std::move(inputs);
  for (std::size_t i = 0; i < child.inputs.size(); ++i) {
    Node& node = child.nodes[static_cast<std::size_t>(child.inputs[i])];
    InputAttributes attributes = node.attributes.as<InputAttributes>();
    attributes.number = static_cast<int>(i);
    node.attributes = Attributes(view_of(attributes));
  }
  child.updates.clear();
  return child;
}

/// Carried values that every turn leaves as they are: they are captured, and their results what they began as.
Graph release_unchanged(const Graph& old) {
  Rebuild to(old);
  bool any = false;
  std::map<ValueId, std::vector<ValueId>> result_of;  // by loop and old result, where there is no part() to tell
  std::map<ValueId, std::vector<int>> number_now;
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    const Node& node = old.node(id);
    if (node.op == &part_row && number_now.contains(node.inputs[0])) {
      auto number = static_cast<std::size_t>(node.attributes.as<PartAttributes>().number);
      const int now = number_now.at(node.inputs[0])[number];
      ValueId loop = to.at(node.inputs[0]);
      PartAttributes part{now};
      to.set(id, now < 0 ? result_of.at(node.inputs[0])[number]
                 : to.graph.node(loop).results.size() == 1
                     ? loop
                     : to.graph.add_call(part_row, {loop}, Attributes(view_of(part))));
      continue;
    }
    std::vector<int> unchanged;
    if (is_loop(node) && !loop_of(node).body->raises && node.results.size() > 1) {
      const LoopAttributes& loop = loop_of(node);
      for (int i = 0; i < loop.carried; ++i)
        if (loop.body->results[static_cast<std::size_t>(i)] == loop.body->inputs[static_cast<std::size_t>(i)])
          unchanged.push_back(i);
    }
    if (unchanged.empty() || unchanged.size() == node.results.size()) {
      to.copy(id);
      continue;
    }
    any = true;
    const LoopAttributes& loop = loop_of(node);
    auto is_unchanged = [&](int i) { return std::find(unchanged.begin(), unchanged.end(), i) != unchanged.end(); };
    LoopAttributes now = loop;
    now.carried = loop.carried - static_cast<int>(unchanged.size());
    now.origin = -1;
    std::vector<int> order;
    for (int i = 0; i < static_cast<int>(loop.body->inputs.size()); ++i)
      if (!is_unchanged(i)) order.push_back(i);
    order.insert(order.end(), unchanged.begin(), unchanged.end());
    Graph body = with_inputs(*loop.body, order);
    body.results.clear();
    Node fewer = to.renamed(id);
    const std::vector<ValueId> inputs = fewer.inputs;
    fewer.inputs.clear();
    fewer.results.clear();
    if (loop.count == LoopAttributes::by_value) fewer.inputs.push_back(inputs[0]);
    auto outside = [&](int i) {
      return inputs[static_cast<std::size_t>(
          i < loop.turn_input() ? loop.first_carried() + i : loop.first_captured() + i - loop.turn_input() - 1)];
    };
    for (int i : order)
      if (i != loop.turn_input()) fewer.inputs.push_back(outside(i));
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      const bool dropped = is_unchanged(static_cast<int>(r));
      number_now[id].push_back(dropped ? -1 : static_cast<int>(fewer.results.size()));
      result_of[id].push_back(dropped ? outside(static_cast<int>(r)) : -1);
      if (dropped) continue;
      fewer.results.push_back(node.results[r]);
      body.results.push_back(loop.body->results[r]);
    }
    now.body = std::make_shared<const Graph>(std::move(body));
    if (loop.condition) now.condition = std::make_shared<const Graph>(with_inputs(*loop.condition, order));
    fewer.attributes = Attributes(view_of(now));
    to.put(id, std::move(fewer));
  }
  return any ? to.finish() : old;
}

}  // namespace

Graph trim_loops(const Graph& given) {
  const Graph old = release_unchanged(given);
  std::map<ValueId, std::vector<bool>> used;  // by loop: its results
  std::vector<std::vector<int>> readers = users(old);
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    const Node& node = old.node(id);
    if (!is_loop(node) || loop_of(node).body->raises) continue;
    std::vector<bool>& mine = used[id];
    mine.assign(node.results.size(), node.results.size() == 1);
    if (node.results.size() == 1) continue;  // its users read it, not a part of it
    // Stacked results tell how many turns there were.
    if (loop_of(node).count != LoopAttributes::by_size && static_cast<int>(mine.size()) > loop_of(node).carried)
      mine.back() = true;
    for (int user : readers[static_cast<std::size_t>(id)])
      if (user >= 0 && !readers[static_cast<std::size_t>(user)].empty())
        mine[static_cast<std::size_t>(old.node(user).attributes.as<PartAttributes>().number)] = true;
  }
  Rebuild to(old);
  std::map<ValueId, std::vector<int>> number_now;  // by loop, of each old result; -1 for none
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    const Node& node = old.node(id);
    if (node.op == &part_row && number_now.contains(node.inputs[0])) {
      const std::vector<int>& now = number_now.at(node.inputs[0]);
      int number = now[static_cast<std::size_t>(node.attributes.as<PartAttributes>().number)];
      if (number < 0) continue;  // nobody reads it
      ValueId loop = to.at(node.inputs[0]);
      PartAttributes part{number};
      to.set(id, to.graph.node(loop).results.size() == 1
                     ? loop
                     : to.graph.add_call(part_row, {loop}, Attributes(view_of(part))));
      continue;
    }
    auto found = used.find(id);
    Needs needs = found == used.end() ? Needs{} : needs_of(node, found->second);
    auto all = [](const std::vector<bool>& list) { return std::find(list.begin(), list.end(), false) == list.end(); };
    bool none = std::find(needs.results.begin(), needs.results.end(), true) == needs.results.end();
    if (found == used.end() || none || (all(needs.results) && all(needs.inputs))) {
      to.copy(id);
      continue;
    }
    LoopAttributes loop = loop_of(node);
    Node fewer = to.renamed(id);
    fewer.inputs.clear();
    fewer.results.clear();
    if (loop.count == LoopAttributes::by_value) fewer.inputs.push_back(to.at(node.inputs[0]));
    LoopAttributes now = loop;
    now.carried = now.sequences = 0;
    for (int i = 0; i < static_cast<int>(loop.body->inputs.size()); ++i) {
      if (!needs.inputs[static_cast<std::size_t>(i)] || i == loop.turn_input()) continue;
      int outside =
          i < loop.turn_input() ? loop.first_carried() + i : loop.first_captured() + i - loop.turn_input() - 1;
      fewer.inputs.push_back(to.at(node.inputs[static_cast<std::size_t>(outside)]));
      if (i < loop.carried)
        ++now.carried;
      else if (i < loop.turn_input())
        ++now.sequences;
    }
    std::vector<int>& numbers = number_now[id];
    for (std::size_t r = 0; r < node.results.size(); ++r) {
      numbers.push_back(needs.results[r] ? static_cast<int>(fewer.results.size()) : -1);
      if (needs.results[r]) fewer.results.push_back(node.results[r]);
    }
    now.body = std::make_shared<const Graph>(with_fewer(*loop.body, needs.inputs, needs.results));
    if (loop.condition)
      now.condition = std::make_shared<const Graph>(with_fewer(*loop.condition, needs.inputs, {true}));
    now.origin = -1;  // it is not what it was
    fewer.attributes = Attributes(view_of(now));
    to.put(id, std::move(fewer));
  }
  return number_now.empty() ? to.finish() : drop_dead(to.finish());
}

}  // namespace stet
