// Matrix products.
#include "stet/core/call.h"
#include "stet/core/gradient.h"
#include "stet/ir/graph.h"
#include "stet/ops/ops.h"
#include "stet/ops/samples.h"
#include "stet/ops/sum_to.h"
#include "stet/ops/table.h"

namespace stet {

#ifdef STET_DECLARATIONS
// --- products

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};
/// Matrix product of the last two axes; leading axes broadcast. A vector on the left is a row, on the right a column.
/// Names: numpy.matmul, array_api.matmul, tf.linalg.matmul, torch.matmul
/// Example: matmul(tensor({{1, 2}, {3, 4}}), tensor({{5, 6}, {7, 8}}))
STET_API Tensor matmul(In a, In b, MatmulOptions options = {});
#endif

namespace {

constexpr const char* operand_names[] = {"a", "b"};

ContractAttributes transposed(bool left, bool right) { return {left, right, {}, {}}; }

void infer_matmul(InferCall& call) {
  const auto& attributes = call.attributes<ContractAttributes>();
  for (int i : {0, 1})
    call.require(call.rank(i) >= 2,
                 text("'", operand_names[i], "' has rank ", call.rank(i), ", a matrix has 2 or more"));
  call.require(call.dtype(0) == call.dtype(1), text("'a' is ", call.dtype(0), " and 'b' is ", call.dtype(1)),
               "cast one of them first");
  call.require(call.dtype(0) != DType::bool_, "matmul does not take bool", "cast to i32 or f32 first");
  Contraction shape = contract(call.shape(0), attributes.transpose_left, call.shape(1), attributes.transpose_right,
                               call.reason("inner sizes"));
  call.result(sum_type(call.dtype(0)), shape.result);
}

Tensor product(const Tensor& a, const Tensor& b, bool left, bool right) {
  return call(matmul_row, {In(a), In(b)}, view_of(transposed(left, right)));
}

/// All rows of all matrices below each other.
Tensor all_rows(const Tensor& x) {
  Dim rows = 1;
  for (int axis = 0; axis < x.rank() - 1; ++axis) rows = rows * x.dim(axis);
  return core_ops.reshape(x, {rows, x.dim(-1)});
}

void gradient_of_matmul(GradientCall& g) {
  const auto& t = g.attributes<ContractAttributes>();
  const Tensor &a = g.in(0), &b = g.in(1), &d = g.d();
  if (g.wants(0)) {
    Tensor da = t.transpose_left ? product(b, d, t.transpose_right, true) : product(d, b, false, !t.transpose_right);
    g.set(0, sum_to(da, a.shape()));
  }
  if (!g.wants(1)) return;
  if (b.rank() == 2 && a.rank() > 2 && !t.transpose_left) {
    // One matrix for all: its gradient is one product over all rows, not the sum of one for each matrix.
    const Tensor rows = all_rows(a), ds = all_rows(d);
    g.set(1, t.transpose_right ? product(ds, rows, true, false) : product(rows, ds, true, false));
  } else {
    Tensor db = t.transpose_right ? product(d, a, true, t.transpose_left) : product(a, d, !t.transpose_left, false);
    g.set(1, sum_to(db, b.shape()));
  }
}

}  // namespace

constinit const OpDef matmul_row{
    .name = "matmul",
    .kind = Kind::contract,
    .summary = "Matrix product of the last two axes.",
    .operands = operand_names,
    .infer = infer_matmul,
    .gradient = gradient_of_matmul,
    .samples =
        [](SampleList& s) {
          s.rounded(Rounding::sums)
              .add({{{3, 4}}, {{4, 5}}}, transposed(false, false))
              .add({{{33, 17}}, {{33, 40}}}, transposed(true, false))
              .add({{{9, 20}}, {{70, 20}}}, transposed(false, true))
              .add({{{6, 5}}, {{7, 6}}}, transposed(true, true))
              .add({{{2, 3, 4}}, {{2, 4, 5}}}, transposed(false, false))
              .add({{{2, 1, 3, 4}}, {{3, 4, 5}}}, transposed(false, false))
              .add({{{5, 3, 4}}, {{4, 2}}}, transposed(false, false))
              .add({{{3, 0}}, {{0, 5}}}, transposed(false, false))
              .add({{{0, 4}}, {{4, 5}}}, transposed(false, false));
        },
    .errors =
        [](ErrorList& e) {
          e.add("inner sizes", {{DType::f32, {2, 3}}, {DType::f32, {4, 5}}}, transposed(false, false))
              .add("'a' has rank 1", {{DType::f32, {3}}, {DType::f32, {3, 5}}}, transposed(false, false))
              .add("'a' is f32 and 'b' is f64", {{DType::f32, {2, 3}}, {DType::f64, {3, 5}}}, transposed(false, false))
              .add("matmul does not take bool", {{DType::bool_, {2, 3}}, {DType::bool_, {3, 5}}},
                   transposed(false, false))
              .add("3", {{DType::f32, {2, 4, 5}}, {DType::f32, {3, 5, 6}}}, transposed(false, false));
        }};

namespace {
DType type_of(const In& x) { return x.tensor().dtype(); }
}  // namespace

Tensor matmul(In a, In b, MatmulOptions options) {
  int left = a.rank(), right = b.rank();
  bool plain = left >= 2 && right >= 2 && type_of(a) == type_of(b);
  if (plain || left < 1 || right < 1)
    return call(matmul_row, {a, b}, view_of(transposed(options.transpose_a, options.transpose_b)));
  Frame frame("matmul", a.where());
  DType type = promote(type_of(a), type_of(b));
  Tensor x = type_of(a) == type ? a.tensor() : cast(a, type), y = type_of(b) == type ? b.tensor() : cast(b, type);
  if (left == 1) x = reshape(x, {1, -1});
  if (right == 1) y = reshape(y, {-1, 1});
  Tensor out = call(matmul_row, {In(x), In(y)},
                    view_of(transposed(left > 1 && options.transpose_a, right > 1 && options.transpose_b)));
  if (left == 1) out = squeeze(out, -2);
  if (right == 1) out = squeeze(out, -1);
  return out;
}

}  // namespace stet
