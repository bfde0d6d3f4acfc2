// Functions with gradients of their own: the rows that stand for them on tapes and in graphs. Private to core/.
//
// Eagerly such a function is one record on the tapes, with what to call on the way back. In a trace the way back is
// recorded as well, on placeholders for the gradients that will come in, and becomes a closed child graph: so the trace
// can be replayed under tapes, inside of other traces and of branches. The function's values stay what they are to a
// program. To tapes they are aliases, attached to the results of a node `custom_gradient` that no program has:
//
//   %v  = …                                        a value of the function
//   %c  = custom_gradient (%v, arguments…, residuals…) {child graph: gradients of results, residuals… -> of arguments}
//   %y  = alias attached (%v, %c)                  what the function gives
#pragma once
#include <span>
#include <vector>

#include "stet/core/differentiate.h"
#include "stet/core/tensor.h"
#include "stet/ir/graph.h"

namespace stet {

/// Eagerly: a record of a call. In graphs: a node of one, and what stands for a gradient in the making.
extern const OpDef called_gradient_row, custom_gradient_row, gradient_placeholder_row;

class Trace;

/// The attributes of a node of such a function: its inputs are `values`, then `arguments`, then what the child uses
/// beside the gradients of the values.
struct CustomGradientNode {
  std::size_t values = 0, arguments = 0;
  std::vector<int> gradient_of;  // by result of the child, the argument
  GraphPointer backward;
};

Attributes attributes_of(const CustomGradientNode& node);

/// Records a way back and the node that holds it. Gives what the values are to be attached to.
std::vector<Tensor> record_custom_gradient(Trace& trace, const std::vector<Tensor>& values,
                                           const std::vector<Tensor>& arguments, const inside::Backward& backward,
                                           Where where);
/// What the node gives, told to the tapes: how a graph that has one is replayed. `sized`: its attributes with the sizes
/// that are known there.
std::vector<Tensor> replayed_custom_gradient(const Node& node, const Attributes& sized, std::span<const Tensor> inputs);
/// The node belongs to a way back that went into a child graph, or so does one of its inputs, as `is_void` says.
bool is_void(const Node& node, const std::vector<bool>& is_void_value);
/// For programs: without what only tapes need, in children too.
Graph without_custom_gradients(const Graph& graph);

}  // namespace stet
