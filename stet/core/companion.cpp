#include "stet/core/companion.h"

#include "stet/core/tape.h"
#include "stet/core/tensor_node.h"

namespace stet {

Tensor with_companion(const Tensor& tensor, const Tensor& companion) {
  Tensor own = same_value(tensor);
  const_cast<TensorNode&>(*own.node()).companion = companion;  // a new tensor: nobody else has it yet
  return own;
}

Tensor companion_of(const Tensor& tensor) { return tensor.defined() ? tensor.node()->companion : Tensor(); }

}  // namespace stet
