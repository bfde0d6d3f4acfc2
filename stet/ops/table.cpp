#include "stet/ops/table.h"

#include "stet/core/gradient.h"
#include "stet/ops/assemble.h"
#include "stet/ops/ops.h"
#include "stet/ops/sum_to.h"

namespace stet {

constinit const CoreOps core_ops{
    .add = add,
    .subtract = subtract,
    .cast = cast,
    .broadcast_to = broadcast_to,
    .reshape = reshape,
    .sum_to = sum_to,
    .assembled = assembled,
    .element = [](const Tensor& x, std::int64_t place) { return x[place]; },
    .stack = [](const std::vector<Tensor>& parts) { return stack(parts); },
    .transpose = [](In x, const std::vector<int>& order) { return transpose(x, order); },
    .arange = [](const Dim& size) { return arange(size); },
    .identity = [](const Dim& size, DType dtype) { return one_hot(arange(size), size, {.dtype = dtype}); }};

std::vector<const OpDef*> all_rows() {
  std::vector<const OpDef*> out;
  for (const OpDef& row : elementwise_rows()) out.push_back(&row);
  for (const OpDef& row : cast_rows()) out.push_back(&row);
#define STET_STRUCTURED(name) out.push_back(&name##_row);
#include "stet/ops/structured.def"
  return out;
}

}  // namespace stet
