#include "stet/compiler/rows.h"

#include "stet/base/dim_inside.h"
#include "stet/compiler/lower.h"

namespace stet {
namespace {

/// The outer sizes, then nothing or ones.
bool is_one_for_each_row(const Shape& shape, const RowSpace& space) {
  if (shape.rank() != space.outer && shape.rank() != space.shape.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (axis < space.outer ? !identical(shape[axis], space.shape[axis]) : !shape[axis].is_constant(1)) return false;
  return true;
}

/// A view that shows one value for each row, or repeats it along the row.
bool is_view_of_rows(const Graph& graph, const Node& node, const RowSpace& space) {
  if (node.op->kind != Kind::layout || !node.op->view || node.inputs.size() != 1) return false;
  const Shape &from = graph.type(node.inputs[0]).shape, &to = node.type().shape;
  if (!is_one_for_each_row(from, space)) return false;
  if (!is_one_for_each_row(to, space) && !identical(to, space.shape)) return false;
  std::optional<Layout> view = node.op->view({from, dense_layout(from), to, node.attributes.view()});
  if (!view || !view->offset.is_constant(0)) return false;
  std::vector<Dim> dense = dense_strides(from);
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (to[axis].is_constant(1)) continue;
    const Dim& stride = view->strides[static_cast<std::size_t>(axis)];
    if (axis < space.outer ? !identical(stride, dense[static_cast<std::size_t>(axis)]) : !stride.is_constant(0))
      return false;
  }
  return true;
}

}  // namespace

bool identical(const RowSpace& a, const RowSpace& b) { return a.outer == b.outer && identical(a.shape, b.shape); }

std::optional<RowSpace> row_space(const Graph& graph, ValueId id) {
  const Node& node = graph.node(id);
  if (node.op->kind != Kind::reduce) return std::nullopt;
  const auto& reduce = node.attributes.as<ReduceAttributes>();
  RowSpace space{reduce.body.defined() ? reduce.space : graph.type(node.inputs[0]).shape, 0};
  space.outer = space.shape.rank() - static_cast<int>(reduce.axes.size());
  if (reduce.axes.empty() || space.outer == 0) return std::nullopt;
  for (std::size_t i = 0; i < reduce.axes.size(); ++i)
    if (reduce.axes[i] != space.outer + static_cast<int>(i)) return std::nullopt;
  return space;
}

RowRole row_role(const Graph& graph, ValueId id, const RowSpace& space) {
  const Node& node = graph.node(id);
  if (node.op == &map_row) {
    if (identical(node.type().shape, space.shape)) return RowRole::full;
    return is_one_for_each_row(node.type().shape, space) ? RowRole::row : RowRole::none;
  }
  if (node.op->kind == Kind::reduce) {
    std::optional<RowSpace> own = row_space(graph, id);
    return own && identical(*own, space) ? RowRole::row : RowRole::none;
  }
  return is_view_of_rows(graph, node, space) ? RowRole::row : RowRole::none;
}

AxisMap input_axes(const Graph& graph, const Node& node, std::size_t number) {
  if (node.op == &map_row) return node.attributes.as<MapAttributes>().axes[number];
  if (node.op->kind == Kind::reduce) {
    const auto& reduce = node.attributes.as<ReduceAttributes>();
    if (reduce.body.defined()) return reduce.operand_axes[number];
  }
  return identity_axes(graph.type(node.inputs[number]).shape.rank());
}

}  // namespace stet
