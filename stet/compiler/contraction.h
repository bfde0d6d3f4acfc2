#pragma once
#include <optional>

#include "stet/ir/graph.h"

namespace stet {

/// `product` (kind contract) with `consumer`'s map, whose input `k` it is, as its epilogue; nothing if the map does not
/// fit behind a matrix product (other shape, an operand that is for a matrix neither scalar, row, column nor matrix).
std::optional<Node> with_epilogue(const Graph& graph, const Node& product, const Node& consumer,
                                  const MapAttributes& map, std::size_t k);

}  // namespace stet
