#include "stet/core/gradient.h"

#include "stet/base/dim_inside.h"
#include "stet/core/call.h"
#include "stet/ir/expr.h"
#include "stet/ir/graph.h"

namespace stet {

bool GradientCall::same_size(const Dim& a, const Dim& b) { return identical(a, b); }

void map_gradient(GradientCall& call) {
  std::vector<DType> types;
  std::vector<In> operands;
  for (int i = 0; i < call.input_count(); ++i) {
    types.push_back(call.in(i).dtype());
    operands.emplace_back(call.in(i), Where{});
  }
  operands.emplace_back(call.d(), Where{});
  Expr body = call.op().body ? instantiate(call.op(), types).body : call.attributes<MapAttributes>().body;
  if (!is_floating(body.dtype())) return;
  for (int i = 0; i < call.input_count(); ++i) {
    if (!call.wants(i)) continue;
    DType computed = compute_type(body.dtype());
    Expr slope = scalar::cast(derivative(body, i), computed);
    Expr d = scalar::cast(operand(call.input_count(), body.dtype()), computed);
    Expr product = scalar::cast(d * slope, call.in(i).dtype());
    call.set(i, core_ops.sum_to(call_map(product, operands), call.in(i).shape()));
  }
}

}  // namespace stet
