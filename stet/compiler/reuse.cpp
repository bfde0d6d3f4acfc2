#include <algorithm>
#include <optional>
#include <unordered_map>

#include "stet/base/dim_inside.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rebuild.h"

namespace stet {
namespace {

/// `body` with every occurrence of the expression `from` replaced.
Expr with_replaced(Expr body, Expr from, Expr to) {
  std::unordered_map<const ExprNode*, Expr> done;
  for (Expr part : topological(body)) {
    Expr next = part;
    if (part == from) {
      next = to;
    } else {
      std::vector<Expr> arguments;
      bool changed = false;
      for (int i = 0; i < part->argument_count; ++i) {
        arguments.push_back(done.at(&*part->arguments[i]));
        changed |= !(arguments.back() == part->arguments[i]);
      }
      if (changed) next = make(part->primitive, arguments, part.dtype());
    }
    done[&*part] = next;
  }
  return done.at(&*body);
}

bool uses_operand(Expr body, int number) {
  std::vector<Expr> parts = topological(body);
  return std::any_of(parts.begin(), parts.end(),
                     [&](Expr part) { return part.is(Primitive::operand) && part->number == number; });
}

/// `body` with f(x) instead of x as its operand `number`, where `function` is f of its operand 0, which x is of type
/// `before`; nothing if the body needs x for something else, or not for that. `operands`: how many the body has.
std::optional<Expr> over_value_of(Expr body, int number, Expr function, DType before, std::size_t operands) {
  Expr replacement[] = {operand(number, before)};
  Expr inside = substitute(function, replacement);
  Expr fresh = operand(static_cast<int>(operands), function.dtype());
  Expr replaced = with_replaced(body, inside, fresh);
  if (replaced == body || uses_operand(replaced, number)) return std::nullopt;
  return with_replaced(replaced, fresh, operand(number, function.dtype()));
}

/// A map of one value, element by element, that depends on nothing else.
bool is_function_of_one(const Graph& graph, ValueId id) {
  const Node& node = graph.node(id);
  const auto& map = node.attributes.as<MapAttributes>();
  if (node.inputs.size() != 1 || !is_identity(map.axes[0]) || map.body.is(Primitive::operand)) return false;
  if (!identical(node.type().shape, graph.type(node.inputs[0]).shape)) return false;
  bool reads = false, index = false;
  for (Expr part : topological(map.body)) {
    reads |= part.is(Primitive::operand);
    index |= part.is(Primitive::index);
  }
  return reads && !index;
}

/// Somebody needs the value in memory: it will not become part of the only map that uses it.
bool is_stored(const Graph& graph, const std::vector<int>& users) {
  return std::any_of(users.begin(), users.end(), [&](int user) {
    return user < 0 || (graph.node(user).op->kind != Kind::map && graph.node(user).op->kind != Kind::reduce);
  });
}

}  // namespace

Graph reuse_values(const Graph& old) {
  std::vector<std::vector<int>> readers = users(old);
  std::unordered_map<ValueId, std::vector<ValueId>> functions;  // of each value: maps of it alone that are stored
  Rebuild to(old);
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    Node node = to.renamed(id);
    if (node.op != &map_row) {
      to.put(id, std::move(node));
      continue;
    }
    MapAttributes map = node.attributes.as<MapAttributes>();
    const std::vector<ValueId>& inputs = old.node(id).inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      for (ValueId function : functions[inputs[k]]) {
        Expr body = old.node(function).attributes.as<MapAttributes>().body;
        std::optional<Expr> over =
            over_value_of(map.body, static_cast<int>(k), body, old.type(inputs[k]).dtype, inputs.size());
        if (!over) continue;
        map.body = *over;
        node.inputs[k] = to.at(function);
        break;
      }
    if (is_function_of_one(old, id) && is_stored(old, readers[static_cast<std::size_t>(id)]))
      functions[inputs[0]].push_back(id);
    node.attributes = Attributes(view_of(map));
    to.put(id, std::move(node));
  }
  return to.finish();
}

}  // namespace stet
