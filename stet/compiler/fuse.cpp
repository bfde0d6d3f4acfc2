#include <algorithm>
#include <optional>

#include "stet/base/dim_inside.h"
#include "stet/compiler/contraction.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rebuild.h"

namespace stet {
namespace {

constexpr std::size_t most_inputs = 12;  // a kernel has 16 buffers
constexpr int most_nodes = 400;          // of a body: beyond that, registers spill and compile time grows

/// A body over a list of inputs, each with its axes: what map and reduce nodes share.
struct Body {
  Expr expr;
  std::vector<ValueId> inputs;
  std::vector<AxisMap> axes;
  std::vector<ValueId> taken = {};  // the maps that went in
};

AxisMap compose(const AxisMap& consumer, const AxisMap& producer) {
  AxisMap out;
  out.rank = consumer.rank;
  for (std::size_t loop = 0; loop < static_cast<std::size_t>(consumer.rank); ++loop) {
    int axis = consumer.axes[loop];
    out.axes[loop] = axis < 0 ? std::int8_t{-1} : producer.axes[static_cast<std::size_t>(axis)];
  }
  return out;
}

/// Every axis of the producer that has more than one element is walked by exactly one loop of the consumer, and every
/// loop walks the producer: nothing is computed twice.
bool computes_once(const AxisMap& consumer) {
  for (std::size_t loop = 0; loop < static_cast<std::size_t>(consumer.rank); ++loop)
    if (consumer.axes[loop] < 0) return false;
  return true;
}

int add_input(Body& body, ValueId id, const AxisMap& axes) {
  for (std::size_t i = 0; i < body.inputs.size(); ++i)
    if (body.inputs[i] == id && body.axes[i] == axes) return static_cast<int>(i);
  body.inputs.push_back(id);
  body.axes.push_back(axes);
  return static_cast<int>(body.inputs.size()) - 1;
}

/// What fusion asks of a body again and again. `size` counts what is computed, not operands, before the body is
/// simplified: an upper bound.
struct BodyFacts {
  int size = 0;
  bool uses_index = false;
};
BodyFacts facts_of(Expr body) {
  BodyFacts facts;
  for (Expr part : topological(body)) {
    facts.size += !part.is(Primitive::operand);
    facts.uses_index |= part.is(Primitive::index);
  }
  return facts;
}

bool only_user(const std::vector<std::vector<int>>& users, ValueId id, ValueId user) {
  for (int u : users[static_cast<std::size_t>(id)])
    if (u != user) return false;
  return true;
}

/// How many old users a new value has, and that they are all `user`: fusion asks about the old graph.
class Fusion {
 public:
  explicit Fusion(const Graph& old) : old_(old), users_(users(old)), to(old), from_(old.nodes.size(), -1) {}
  void put(ValueId id, Node node) {
    to.put(id, std::move(node));
    remember(id);
  }
  void remember(ValueId id) {
    auto at = static_cast<std::size_t>(to.at(id));
    if (from_.size() <= at) from_.resize(at + 1, -1);
    from_[at] = id;
  }
  /// `value` (new) is used by the old node `user` only.
  bool only(ValueId value, ValueId user) const {
    ValueId old = from_[static_cast<std::size_t>(value)];
    return old >= 0 && only_user(users_, old, user);
  }
  /// Facts about the body of a map (new), worked out once: walking a growing body at every step would make long chains
  /// slow.
  const BodyFacts& facts(ValueId value) {
    auto at = static_cast<std::size_t>(value);
    if (facts_.size() <= at) facts_.resize(at + 1);
    if (!facts_[at]) facts_[at] = facts_of(to.graph.node(value).attributes.as<MapAttributes>().body);
    return *facts_[at];
  }
  void set_facts(ValueId value, const BodyFacts& facts) {
    auto at = static_cast<std::size_t>(value);
    if (facts_.size() <= at) facts_.resize(at + 1);
    facts_[at] = facts;
  }
  /// Why the map that makes a value (new) was not put into what reads it.
  void note_apart(ValueId value, const char* why) { to.graph.nodes[static_cast<std::size_t>(value)].apart = why; }
  /// The node is made of those that went into it (new values), too.
  void note_taken(Node& node, const std::vector<ValueId>& taken) const {
    if (taken.empty()) return;
    std::vector<const char*> ops;
    for (ValueId id : taken)
      for (const char* op : ops_of(to.graph.node(id))) ops.push_back(op);
    for (const char* op : ops_of(node)) ops.push_back(op);
    note_made_of(node, std::move(ops));
  }
  Graph finish() { return drop_dead(to.finish()); }

 private:
  const Graph& old_;
  std::vector<std::vector<int>> users_;

 public:
  Rebuild to;

 private:
  std::vector<ValueId> from_;  // new value -> old value
  std::vector<std::optional<BodyFacts>> facts_;
};

/// A producer's body over the inputs `inner`; itself where that changes nothing, as along a chain.
Expr over(Expr body, const std::vector<Expr>& inner) {
  for (std::size_t i = 0; i < inner.size(); ++i)
    if (!inner[i].is(Primitive::operand) || inner[i]->number != static_cast<int>(i)) return substitute(body, inner);
  return body;
}

/// Why a map of `inputs` operands does not go into what reads it along `axes`; null where it does. `room` is for so
/// many inputs, and `size` what the body that it would go into is without it.
const char* why_apart(bool only_reader, const AxisMap& axes, const BodyFacts& body, std::size_t inputs,
                      std::size_t inputs_then, int size_then) {
  if (!only_reader) return "several ops read it";
  const bool once = computes_once(axes), cheap = body.size <= 1 && inputs <= 1;
  if (!once && (!cheap || body.uses_index))
    return "its reader repeats it, and would compute it again for every element";
  if (inputs_then > most_inputs) return "its reader would read too many tensors";
  if (size_then > most_nodes) return "its reader would become too large a kernel";
  return nullptr;
}

/// Replaces, in the body of the old node `user`, every input that it alone uses by the map that makes it. The result is
/// not simplified; `facts` are those of the body, before and after.
Body absorb(Fusion& fusion, const Body& consumer, ValueId user, BodyFacts& facts) {
  const Graph& graph = fusion.to.graph;
  Body out;
  std::vector<Expr> replacements;
  std::vector<ValueId>& taken = out.taken;
  for (std::size_t k = 0; k < consumer.inputs.size(); ++k) {
    ValueId id = consumer.inputs[k];
    const AxisMap& axes = consumer.axes[k];
    const Node& producer = graph.node(id);
    bool again = std::find(taken.begin(), taken.end(), id) != taken.end();  // its body is there already
    bool take = producer.op == &map_row;
    BodyFacts body;
    if (take) {
      const bool only_reader = fusion.only(id, user);
      if (only_reader) body = fusion.facts(id);
      const char* why = why_apart(only_reader, axes, body, producer.inputs.size(),
                                  out.inputs.size() + producer.inputs.size() + (consumer.inputs.size() - k),
                                  again ? 0 : facts.size + body.size);
      fusion.note_apart(id, why);
      take = !why;
    }
    if (!take) {
      replacements.push_back(operand(add_input(out, id, axes), graph.type(id).dtype));
      continue;
    }
    const auto& map = producer.attributes.as<MapAttributes>();
    std::vector<Expr> inner;
    for (std::size_t j = 0; j < producer.inputs.size(); ++j) {
      int place = add_input(out, producer.inputs[j], compose(axes, map.axes[j]));
      inner.push_back(operand(place, graph.type(producer.inputs[j]).dtype));
    }
    Expr expr = map.body;
    if (body.uses_index) {
      std::vector<int> loops(static_cast<std::size_t>(producer.type().shape.rank()), 0);
      for (int loop = 0; loop < axes.rank; ++loop)
        loops[static_cast<std::size_t>(axes.axes[static_cast<std::size_t>(loop)])] = loop;
      expr = renumber_loops(expr, loops);
    }
    facts.uses_index |= body.uses_index;
    if (!again) {
      facts.size += body.size;
      taken.push_back(id);
    }
    replacements.push_back(over(expr, inner));
  }
  if (taken.empty() && out.inputs.size() == consumer.inputs.size()) return consumer;
  out.expr = substitute(consumer.expr, replacements);
  return out;
}

}  // namespace

Graph fuse_maps(const Graph& old) {
  Fusion fusion(old);
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    Node node = fusion.to.renamed(id);
    if (node.op != &map_row) {
      fusion.put(id, std::move(node));
      continue;
    }
    const auto& map = node.attributes.as<MapAttributes>();
    BodyFacts facts = facts_of(map.body);
    Body body = absorb(fusion, {map.body, node.inputs, map.axes}, id, facts);
    MapAttributes fused{body.expr, body.axes};
    node.inputs = body.inputs;
    node.attributes = Attributes(view_of(fused));
    fusion.note_taken(node, body.taken);
    fusion.put(id, std::move(node));
    fusion.set_facts(fusion.to.at(id), facts);
  }
  Graph graph = fusion.finish();
  for (Node& node : graph.nodes) {
    if (node.op != &map_row) continue;
    MapAttributes map = node.attributes.as<MapAttributes>();
    map.body = simplify(map.body);
    drop_unused_inputs(map.body, node.inputs, map.axes);
    node.attributes = Attributes(view_of(map));
  }
  return drop_dead(graph);
}

Graph fuse_into_reductions(const Graph& old) {
  Fusion fusion(old);
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    Node node = fusion.to.renamed(id);
    if (node.op->kind == Kind::reduce) {
      ReduceAttributes reduce = node.attributes.as<ReduceAttributes>();
      Body body{reduce.body, node.inputs, reduce.operand_axes};
      if (!body.expr.defined()) {
        const ValueType& first = fusion.to.graph.type(node.inputs[0]);
        body.expr = scalar::cast(operand(0, first.dtype), node.op->accumulator(first.dtype));
        AxisMap same;
        same.rank = first.shape.rank();
        for (int axis = 0; axis < same.rank; ++axis)
          same.axes[static_cast<std::size_t>(axis)] = static_cast<std::int8_t>(axis);
        body.axes = {same};
        reduce.space = first.shape;
      }
      BodyFacts facts = facts_of(body.expr);
      Body fused = absorb(fusion, body, id, facts);
      if (!(fused.expr == body.expr) || fused.inputs != node.inputs) {
        reduce.body = simplify(fused.expr);
        drop_unused_inputs(reduce.body, fused.inputs, fused.axes);
        reduce.operand_axes = fused.axes;
        node.inputs = fused.inputs;
        node.attributes = Attributes(view_of(reduce));
        fusion.note_taken(node, fused.taken);
      }
    }
    fusion.put(id, std::move(node));
  }
  return fusion.finish();
}

Graph fuse_epilogues(const Graph& old) {
  Fusion fusion(old);
  const Graph& graph = fusion.to.graph;
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    Node node = fusion.to.renamed(id);
    if (node.op == &map_row) {
      const auto& map = node.attributes.as<MapAttributes>();
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const Node& product = graph.node(node.inputs[k]);
        if (product.op->kind != Kind::contract || !fusion.only(node.inputs[k], id)) continue;
        std::optional<Node> fused = with_epilogue(graph, product, node, map, k);
        if (!fused) continue;
        node = std::move(*fused);
        break;
      }
    }
    fusion.put(id, std::move(node));
  }
  return fusion.finish();
}

}  // namespace stet
