#include <algorithm>
#include <unordered_map>

#include "stet/base/dim_inside.h"
#include "stet/compiler/grouping.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rebuild.h"

namespace stet {
namespace {

constexpr std::size_t most_buffers = 16;  // a kernel has no more
constexpr std::size_t most_results = 8;
constexpr int most_nodes = 120;          // of all bodies: beyond that, registers spill
constexpr std::size_t most_readers = 4;  // of one value that are tried: merging stays linear in the graph's size
constexpr std::int64_t wide_row = 64;    // elements along the last axis that make a loop over rows worth it

bool is_repeated(const AxisMap& axes) {
  return std::all_of(axes.axes.begin(), axes.axes.begin() + axes.rank, [](int axis) { return axis < 0; });
}

class Merging {
 public:
  explicit Merging(const Graph& graph) : graph_(graph), groups_(graph) {
    for (std::size_t id = 0; id < graph.nodes.size(); ++id) facts_.push_back(facts_of(static_cast<ValueId>(id)));
  }

  void run() {
    std::unordered_map<ValueId, std::vector<ValueId>> readers;  // of each value: the maps that walk it whole
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.nodes.size()); ++id) {
      if (!facts(id).mergeable) continue;
      for (std::size_t k = 0; k < graph_.node(id).inputs.size(); ++k) {
        if (!is_identity(map(id).axes[k])) continue;
        ValueId input = graph_.node(id).inputs[k];
        join(id, input);
        std::vector<ValueId>& others = readers[input];
        std::size_t first = others.size() > most_readers ? others.size() - most_readers : 0;
        for (std::size_t i = others.size(); i-- > first;) join(id, others[i]);
        if (others.empty() || others.back() != id) others.push_back(id);
      }
    }
  }

  Graph rebuilt() const {
    Rebuild to(graph_);
    for (std::size_t group : groups_.sorted())
      if (groups_.members(group).size() == 1)
        to.copy(groups_.members(group)[0]);
      else
        put_merged(to, groups_.members(group));
    return to.finish();
  }

 private:
  struct Facts {
    bool mergeable = false;  // a map over memory that is walked forwards
    bool flat = true;        // its operands lie dense, whole or as single elements: one loop over all elements
    int size = 0;            // of its body
  };

  const Facts& facts(ValueId id) const { return facts_[static_cast<std::size_t>(id)]; }
  const MapAttributes& map(ValueId id) const { return graph_.node(id).attributes.as<MapAttributes>(); }
  std::size_t group(ValueId id) const { return groups_.group(id); }

  Facts facts_of(ValueId id) const {
    const Node& node = graph_.node(id);
    if (node.op != &map_row) return {};
    Facts out{.mergeable = true, .flat = true, .size = map(id).body.size()};
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const AxisMap& axes = map(id).axes[k];
      out.flat &= is_identity(axes) || is_repeated(axes);
      const Lie lie = lie_of(graph_, node.inputs[k]);
      out.flat &= lie == Lie::dense;
      out.mergeable &= lie != Lie::apart;
    }
    for (Expr part : topological(map(id).body)) out.flat &= !part.is(Primitive::index);
    return out;
  }

  void join(ValueId one, ValueId other) {
    if (!facts(other).mergeable) return;
    std::size_t a = group(one), b = group(other);
    if (a == b || !fits(one, other) || !reads_where_written(a, b) || !within_limits(a, b)) return;
    if (!groups_.would_circle(a, b)) groups_.unite(a, b);
  }

  /// One iteration space, and none makes the other's loop slow.
  bool fits(ValueId one, ValueId other) const {
    const Shape& shape = graph_.type(one).shape;
    if (!identical(shape, graph_.type(other).shape)) return false;
    auto flat = [&](ValueId id) {
      const std::vector<ValueId>& members = groups_.members(group(id));
      return std::all_of(members.begin(), members.end(), [&](ValueId member) { return facts(member).flat; });
    };
    return flat(one) == flat(other) || (shape.rank() > 0 && shape[-1].hint().value_or(0) >= wide_row);
  }

  /// What a member takes from another is the element at its own position.
  bool reads_where_written(std::size_t a, std::size_t b) const {
    for (std::size_t from : {a, b})
      for (ValueId id : groups_.members(from))
        for (std::size_t k = 0; k < graph_.node(id).inputs.size(); ++k) {
          std::size_t maker = group(graph_.node(id).inputs[k]);
          if ((maker == a || maker == b) && !is_identity(map(id).axes[k])) return false;
        }
    return true;
  }

  bool within_limits(std::size_t a, std::size_t b) const {
    std::vector<ValueId> inputs;
    std::size_t results = 0;
    int nodes = 0;
    auto inside = [&](ValueId id) { return group(id) == a || group(id) == b; };
    for (std::size_t from : {a, b})
      for (ValueId id : groups_.members(from)) {
        nodes += facts(id).size;
        for (ValueId input : graph_.node(id).inputs)
          if (!inside(input) && std::find(inputs.begin(), inputs.end(), input) == inputs.end()) inputs.push_back(input);
        const std::vector<int>& readers = groups_.users(id);
        results += std::any_of(readers.begin(), readers.end(), [&](int user) { return user < 0 || !inside(user); });
      }
    return results <= most_results && inputs.size() + results <= most_buffers && nodes <= most_nodes;
  }

  void put_merged(Rebuild& to, const std::vector<ValueId>& members) const {
    std::vector<ValueId> inputs;
    MapsAttributes maps;
    auto input = [&](ValueId id, const AxisMap& axes) {
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i] == id && maps.axes[i] == axes) return static_cast<int>(i);
      inputs.push_back(id);
      maps.axes.push_back(axes);
      return static_cast<int>(inputs.size()) - 1;
    };
    std::unordered_map<ValueId, Expr> values;  // of members, over the inputs of all
    std::vector<ValueId> stored;
    for (ValueId id : members) {
      const Node& node = graph_.node(id);
      std::vector<Expr> operands;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        auto inside = values.find(node.inputs[k]);
        operands.push_back(inside != values.end() ? inside->second
                                                  : operand(input(to.at(node.inputs[k]), map(id).axes[k]),
                                                            graph_.type(node.inputs[k]).dtype));
      }
      values[id] = substitute(map(id).body, operands);
      if (!groups_.is_result(id)) continue;
      stored.push_back(id);
      maps.bodies.push_back(simplify(values[id]));
    }
    Node merged = graph_.node(stored.back());
    note_made_of(merged, groups_.ops(group(stored.back())));
    merged.inputs = inputs;
    if (stored.size() == 1) {
      MapAttributes one{maps.bodies[0], maps.axes};
      merged.attributes = Attributes(view_of(one));
      to.put(stored[0], std::move(merged));
      return;
    }
    merged.op = &maps_row;
    merged.attributes = Attributes(view_of(maps));
    merged.results.clear();
    for (ValueId id : stored) merged.results.push_back(graph_.type(id));
    ValueId tuple = to.graph.add(std::move(merged));
    for (std::size_t i = 0; i < stored.size(); ++i) {
      PartAttributes part{static_cast<int>(i)};
      Node node = graph_.node(stored[i]);
      node.op = &part_row;
      node.inputs = {tuple};
      node.attributes = Attributes(view_of(part));
      to.put(stored[i], std::move(node));
    }
  }

  const Graph& graph_;
  Grouping groups_;
  std::vector<Facts> facts_;
};

}  // namespace

Graph merge_maps(const Graph& graph) {
  // The size of a late value is known when its node has run, and whoever uses the size stands after it without reading
  // it: such graphs keep their order.
  for (const Node& node : graph.nodes)
    if (node.op->kind == Kind::late) return graph;
  Merging merging(graph);
  merging.run();
  return merging.rebuilt();
}

}  // namespace stet
