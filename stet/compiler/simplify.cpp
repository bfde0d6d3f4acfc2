#include "stet/base/dim_inside.h"
#include "stet/compiler/pipeline.h"
#include "stet/compiler/rebuild.h"

namespace stet {
namespace {

/// A node that only renames its operand: the same elements in the same order in the same shape.
bool changes_nothing(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 1 || node.results.size() != 1) return false;
  if (!identical(node.type(), graph.type(node.inputs[0]))) return false;
  if (node.op == &map_row) {
    const auto& map = node.attributes.as<MapAttributes>();
    if (!map.body.is(Primitive::operand)) return false;
    for (int axis = 0; axis < map.axes[0].rank; ++axis)
      if (map.axes[0].axes[static_cast<std::size_t>(axis)] != axis &&
          !(node.type().shape[axis].is_constant() && node.type().shape[axis].constant() == 1))
        return false;
    return true;
  }
  if (node.op->kind != Kind::layout || !node.op->view) return false;
  // A view of dense memory that is dense memory again, from its start.
  const Shape& shape = graph.type(node.inputs[0]).shape;
  std::optional<Layout> view = node.op->view({shape, dense_layout(shape), node.type().shape, node.attributes.view()});
  if (!view || !identical(view->offset, 0)) return false;
  std::vector<Dim> dense = dense_strides(node.type().shape);
  for (std::size_t i = 0; i < dense.size(); ++i) {
    bool unit =
        node.type().shape[static_cast<int>(i)].is_constant() && node.type().shape[static_cast<int>(i)].constant() == 1;
    if (!unit && !identical(dense[i], view->strides[i])) return false;
  }
  return true;
}

}  // namespace

Graph simplify_graph(const Graph& old) {
  Rebuild to(old);
  for (ValueId id = 0; id < static_cast<ValueId>(old.nodes.size()); ++id) {
    Node node = to.renamed(id);
    if (node.op == &map_row) {
      MapAttributes map = node.attributes.as<MapAttributes>();
      map.body = simplify(map.body);
      drop_unused_inputs(map.body, node.inputs, map.axes);
      node.attributes = Attributes(view_of(map));
    }
    if (changes_nothing(to.graph, node))
      to.set(id, node.inputs[0]);
    else
      to.put(id, std::move(node));
  }
  return to.finish();
}

}  // namespace stet
