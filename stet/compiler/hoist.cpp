// What every turn of a loop would compute anew from the same values is computed once, before the loop.
#include <algorithm>
#include <map>

#include "stet/base/dim_inside.h"
#include "stet/compiler/grouping.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rebuild.h"

namespace stet {
namespace {

bool has_loop(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.op->kind == Kind::loop; });
}

/// A loop's body that leaves some of its work to the graph around the loop. What a loop within it leaves to it may go
/// on outwards.
class Hoisting {
 public:
  /// `around`: the graph that will hold the loop, made up to it. `node`: the loop, with its inputs' names there.
  Hoisting(Graph& around, Node node)
      : around_(around),
        node_(std::move(node)),
        loop_(node_.attributes.as<LoopAttributes>()),
        whole_(has_loop(*loop_.body) ? std::make_shared<const Graph>(hoist_from_loops(*loop_.body)) : loop_.body),
        body_(*whole_) {}

  /// The loop as it is now. What it needs has been added to the graph around it.
  Node run() {
    find_unchanging();
    if (unchanging_.empty()) return with_body(whole_);
    Rebuild to(body_);
    for (ValueId id = 0; id < static_cast<ValueId>(body_.nodes.size()); ++id) {
      if (moves(id)) {
        to.set(id, input(to.graph, outside(id)));
        continue;
      }
      Node node = to.renamed(id);
      if (std::optional<ValueId> right = right_outside(id)) {
        ContractAttributes product = node.attributes.as<ContractAttributes>();
        product.transpose_right = false;
        node.attributes = Attributes(view_of(product));
        node.inputs[1] = input(to.graph, *right);
      }
      to.put(id, std::move(node));
    }
    if (inputs_.empty()) return with_body(whole_);
    return with_body(std::make_shared<const Graph>(drop_dead(to.finish())));
  }

 private:
  Node with_body(GraphPointer body) {
    if (body == loop_.body) return std::move(node_);
    LoopAttributes now = loop_;
    now.origin = -1;  // it is not what it was
    now.body = std::move(body);
    if (loop_.condition && !inputs_.empty()) {
      Graph condition = *loop_.condition;
      for (ValueId value : added_) condition.add_input(around_.type(value));
      now.condition = std::make_shared<const Graph>(std::move(condition));
    }
    node_.attributes = Attributes(view_of(now));
    return std::move(node_);
  }

  /// What comes from outside of the loop, and what is made of only that.
  void find_unchanging() {
    if (body_.raises || body_.scope != around_.scope) return;
    bool any = false;
    std::vector<bool> unchanging(body_.nodes.size(), false);
    for (int i = loop_.turn_input() + 1; i < static_cast<int>(body_.inputs.size()); ++i)
      unchanging[static_cast<std::size_t>(body_.inputs[static_cast<std::size_t>(i)])] = any = true;
    if (!any) return;
    for (ValueId id = 0; id < static_cast<ValueId>(body_.nodes.size()); ++id) {
      const Node& node = body_.node(id);
      bool all = node.op != &input_row && is_plain(node) && sizes_are_known(node);
      for (ValueId used : node.inputs) all = all && unchanging[static_cast<std::size_t>(used)];
      if (all) unchanging[static_cast<std::size_t>(id)] = true;
    }
    unchanging_ = std::move(unchanging);
  }

  /// Nothing but a value comes of it, whether or not there is a turn: no effect, no exception, no size.
  static bool is_plain(const Node& node) {
    if (node.op->has_effect || node.results.size() != 1) return false;
    switch (node.op->kind) {
      case Kind::map:
      case Kind::reduce:
      case Kind::layout:
      case Kind::contract:
      case Kind::scan:
        return true;
      case Kind::structure:
        return node.op == &constant_row;
      default:
        return false;
    }
  }

  /// No size is found out in a turn.
  bool sizes_are_known(const Node& node) const {
    bool known = true;
    auto look = [&](const Dim& size) {
      for (int symbol : size.symbols()) known = known && body_.scope->symbol_hint(symbol);
    };
    for (const Dim& size : node.type().shape) look(size);
    if (node.attributes.is_symbolic())
      node.attributes.map_dims([&](const Dim& size) {
        look(size);
        return size;
      });
    return known;
  }

  bool is_unchanging(ValueId id) const { return unchanging_[static_cast<std::size_t>(id)]; }

  /// It is worth memory of its own for the length of the loop. Views, single numbers, and maps that make more than they
  /// read cost a turn next to nothing where they are, fused with what uses them.
  bool moves(ValueId id) const {
    const Node& node = body_.node(id);
    if (!is_unchanging(id) || node.op->kind == Kind::structure) return false;
    if (node.op->kind == Kind::layout) return !node.op->view;
    if (node.op->kind != Kind::map) return true;
    if (node.type().shape.rank() == 0) return false;
    for (ValueId used : node.inputs)
      if (identical(body_.type(used).shape, node.type().shape)) return true;
    return false;
  }

  /// Of a product with the same right matrix in every turn, which does not lie row by row as products read it: that
  /// matrix, as the graph around the loop has it in rows.
  std::optional<ValueId> right_outside(ValueId id) {
    const Node& node = body_.node(id);
    if (node.op->kind != Kind::contract || !is_unchanging(node.inputs[1])) return std::nullopt;
    const ValueId right = node.inputs[1];
    const ValueType& type = body_.type(right);
    if (type.shape.rank() != 2) return std::nullopt;
    if (!node.attributes.as<ContractAttributes>().transpose_right)
      return lies_dense(body_, right) ? std::nullopt : std::optional(outside(right));
    auto [found, added] = transposed_.try_emplace(right, -1);
    if (added) {
      AxisMap flipped;
      flipped.rank = 2;
      flipped.axes[0] = 1;
      flipped.axes[1] = 0;
      MapAttributes copy{operand(0, type.dtype), {flipped}};
      found->second = around_.add({.op = &map_row,
                                   .inputs = {outside(right)},
                                   .attributes = Attributes(view_of(copy)),
                                   .results = {{type.dtype, Shape{type.shape[1], type.shape[0]}}},
                                   .label = "transpose",
                                   .where = node.where,
                                   .caller = node.caller,
                                   .name_scope = node.name_scope});
    }
    return found->second;
  }

  /// What stands around the loop for something that does not change in it.
  ValueId outside(ValueId id) {
    if (auto found = outside_.find(id); found != outside_.end()) return found->second;
    Node node = body_.node(id);
    ValueId made = -1;
    if (node.op == &input_row) {
      const int number = node.attributes.as<InputAttributes>().number;
      made = node_.inputs[static_cast<std::size_t>(loop_.first_captured() + number - loop_.turn_input() - 1)];
    } else {
      for (ValueId& used : node.inputs) used = outside(used);
      made = around_.add(std::move(node));
    }
    return outside_[id] = made;
  }

  /// An input of the body for a value around the loop.
  ValueId input(Graph& body, ValueId value) {
    auto [found, added] = inputs_.try_emplace(value, -1);
    if (added) {
      found->second = body.add_input(around_.type(value));
      node_.inputs.push_back(value);
      added_.push_back(value);
    }
    return found->second;
  }

  Graph& around_;
  Node node_;
  const LoopAttributes loop_;
  const GraphPointer whole_;
  const Graph& body_;
  std::vector<bool> unchanging_;           // by node of the body
  std::map<ValueId, ValueId> outside_;     // by node of the body
  std::map<ValueId, ValueId> transposed_;  // the same
  std::map<ValueId, ValueId> inputs_;      // new ones of the body, by value around the loop
  std::vector<ValueId> added_;             // the latter, in the order in which the body has them
};

}  // namespace

Graph hoist_from_loops(const Graph& old) {
  Rebuild to(old);
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    Node node = to.renamed(id);
    to.put(id, node.op->kind == Kind::loop ? Hoisting(to.graph, std::move(node)).run() : std::move(node));
  }
  return to.finish();
}

}  // namespace stet
