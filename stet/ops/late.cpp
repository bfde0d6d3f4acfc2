// Ops whose result's size depends on values: the program counts first, then the size is known, then it fills.
#include "stet/compiler/lower.h"
#include "stet/core/call.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- choosing by position and by value

/// Positions of non-zero elements, i64[count, rank], in row-major order.
/// Names: array_api.nonzero, numpy.argwhere, tf.where, torch.nonzero
/// Example: nonzero(tensor({{0, 7}, {8, 0}}))
STET_API Tensor nonzero(In x);
#endif

namespace {

constexpr const char* operand_names[] = {"x"};

void infer_nonzero(InferCall& call) {
  Dim count = call.late("nonzero", call.shape(0).element_count());
  call.result(DType::i64, {count, call.rank(0)});
}

void lower_nonzero(LowerCall& call) {
  const ValueType& x = call.in(0);
  AxisMap same[] = {identity_axes(x.shape.rank())};
  Place from[] = {call.place(0)};
  DType dtypes[] = {x.dtype};
  Place flags = call.temporary(DType::bool_, x.shape);
  call.map(x.shape, from, dtypes, same, scalar::cast(operand(0, x.dtype), DType::bool_), flags, "nonzero");

  Place count = call.temporary(DType::i64, Shape());
  Kernel sum;
  sum.name = "count";
  sum.combine = Combine::sum;
  sum.loops = {{x.shape.element_count(), true}};
  sum.operands = {{.source = Access::memory,
                   .dtype = DType::bool_,
                   .buffer = flags.buffer,
                   .address = {0, {1}},
                   .guards = {},
                   .indirections = {}}};
  sum.body = scalar::cast(operand(0, DType::bool_), DType::i64);
  sum.result = {.source = Access::memory,
                .dtype = DType::i64,
                .buffer = count.buffer,
                .address = {0, {0}},
                .guards = {},
                .indirections = {}};
  call.kernel(std::move(sum));
  call.bind_late(call.out().shape[0], count);

  call.step(call.target().positions({x.shape, flags.buffer, call.result().buffer}));
}

}  // namespace

constinit const OpDef nonzero_row{
    .name = "nonzero",
    .kind = Kind::late,
    .summary = "Positions of non-zero elements.",
    .operands = operand_names,
    .infer = infer_nonzero,
    .lower = lower_nonzero,
    .samples = [](SampleList& s) {
      for (std::vector<std::int64_t> sizes : {std::vector<std::int64_t>{3, 4}, {37}, {0, 2}, {}})
        s.add({{sizes, -1, Draw::marks}});
    }};

Tensor nonzero(In x) { return call(nonzero_row, {x}); }

}  // namespace stet
