// Which nodes work on the rows of one space: what fuse_rows puts together and lowering takes apart again.
#pragma once
#include <optional>

#include "stet/ir/graph.h"

namespace stet {

/// A shape whose last axes, from `outer` on, make a row.
struct RowSpace {
  Shape shape;
  int outer = 0;
};
bool identical(const RowSpace&, const RowSpace&);

/// The space of a reduction along the last axes; nothing for other nodes.
std::optional<RowSpace> row_space(const Graph&, ValueId id);

enum class RowRole : std::uint8_t {
  none,
  full,  // of the space's shape
  row,   // one value for each row
};
/// What a map, a reduction or a view of values for rows is in a space.
RowRole row_role(const Graph&, ValueId id, const RowSpace&);

/// How a map or a reduction reads its input `number`, over the axes of its result or of its space.
AxisMap input_axes(const Graph&, const Node&, std::size_t number);

}  // namespace stet
