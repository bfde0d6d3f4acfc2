#include "stet/compiler/lower_contract.h"

#include "stet/base/dim_inside.h"
#include "stet/compiler/contraction.h"

namespace stet {
namespace {

/// An operand as GEMM takes it: rows contiguous, as stored or transposed.
struct MatrixOperand {
  Place place;
  bool transposed = false;
};

MatrixOperand matrix_operand(LowerCall& call, int number, bool transpose, DType computed) {
  const ValueType& type = call.in(number);
  Place place = call.place(number);
  if (type.dtype != computed) {
    // f16 and bf16 multiply in f32.
    Place wide = call.temporary(computed, type.shape);
    Place operands[] = {place};
    DType dtypes[] = {type.dtype};
    AxisMap axes[] = {identity_axes(type.shape.rank())};
    call.map(type.shape, operands, dtypes, axes, scalar::cast(operand(0, type.dtype), computed), wide, "widen");
    return {wide, transpose};
  }
  const std::vector<Dim>& strides = place.layout.strides;
  // GEMM walks memory forwards: a reversed operand is packed.
  for (const Dim& stride : strides)
    if (prove(0, Relation::less_equal, stride) != Proof::yes) return {call.dense(number), transpose};
  const Dim &rows = strides[strides.size() - 2], &columns = strides.back();
  if (columns.is_constant(1) && !rows.is_constant(0)) return {place, transpose};
  if (rows.is_constant(1) && !columns.is_constant(0)) return {place, !transpose};
  return {call.dense(number), transpose};
}

MatrixPlace matrix_place(const Place& place, bool flipped, const AxisMap& batch, const Dim& extent, DType dtype) {
  MatrixPlace out;
  out.buffer = place.buffer;
  out.offset = place.layout.offset;
  const std::vector<Dim>& strides = place.layout.strides;
  out.leading = flipped ? strides.back() : strides[strides.size() - 2];
  for (int axis = 0; axis < batch.rank; ++axis) {
    int from = batch.axes[static_cast<std::size_t>(axis)];
    out.batch_strides.push_back(from < 0 ? Dim(0) : strides[static_cast<std::size_t>(from)]);
  }
  out.extent = extent;
  out.element_bytes = size_of(dtype);
  return out;
}

/// How an epilogue operand of this rank, in dense memory, lies over the matrices of the result; nothing if a product
/// cannot take it along.
std::optional<EpilogueOperand> epilogue_kind(const AxisMap& axes, int operand_rank) {
  auto at = [&](int axis) { return static_cast<int>(axes.axes[static_cast<std::size_t>(axis)]); };
  const int row = at(axes.rank - 2), column = at(axes.rank - 1), last = operand_rank - 1;
  if (row < 0 && column < 0) return EpilogueOperand::scalar;
  if (row < 0) return column == last ? std::optional(EpilogueOperand::per_column) : std::nullopt;
  if (column < 0) return row == last ? std::optional(EpilogueOperand::per_row) : std::nullopt;
  return column == last ? std::optional(EpilogueOperand::full) : std::nullopt;
}

void lower_product(LowerCall& call, const Contraction& shape, const ContractAttributes& attributes) {
  DType computed = compute_type(call.in(0).dtype);
  ContractionSpec spec;
  MatrixOperand left = matrix_operand(call, 0, attributes.transpose_left, computed);
  MatrixOperand right = matrix_operand(call, 1, attributes.transpose_right, computed);
  spec.dtype = computed;
  spec.transpose_left = left.transposed;
  spec.transpose_right = right.transposed;
  spec.m = shape.m;
  spec.n = shape.n;
  spec.k = shape.k;
  for (const Dim& extent : shape.batch) spec.batch.push_back(extent);
  bool left_flipped = left.transposed != attributes.transpose_left;
  bool right_flipped = right.transposed != attributes.transpose_right;
  spec.left = matrix_place(left.place, left_flipped, shape.left_batch, call.elements(left.place), computed);
  spec.right = matrix_place(right.place, right_flipped, shape.right_batch, call.elements(right.place), computed);
  Place to = call.result();
  spec.result = matrix_place(to, false, identity_axes(shape.batch.rank()), call.elements(to), call.out().dtype);

  Expr epilogue = attributes.epilogue;
  if (!epilogue.defined() && call.out().dtype != computed)
    epilogue = scalar::cast(operand(0, computed), call.out().dtype);
  spec.epilogue.expression = epilogue;
  for (std::size_t i = 0; i < attributes.epilogue_axes.size(); ++i) {
    int number = static_cast<int>(i) + 2;
    const AxisMap& axes = attributes.epilogue_axes[i];
    const Shape& of = call.in(number).shape;
    EpilogueOperand kind = *epilogue_kind(axes, of.rank());
    Place place = call.dense(number);
    const std::vector<Dim> strides = dense_strides(of);
    auto stride = [&](int axis) {
      int from = axes.axes[static_cast<std::size_t>(axis)];
      return from < 0 ? Dim(0) : strides[static_cast<std::size_t>(from)];
    };
    MatrixPlace operand;
    operand.buffer = place.buffer;
    operand.offset = place.layout.offset;
    operand.leading = kind == EpilogueOperand::full ? stride(axes.rank - 2) : Dim(0);
    for (int axis = 0; axis < axes.rank - 2; ++axis) operand.batch_strides.push_back(stride(axis));
    operand.extent = call.elements(place);
    operand.element_bytes = size_of(call.in(number).dtype);
    spec.operands.push_back(operand);
    spec.epilogue.operands.push_back(kind);
  }
  call.step(call.target().contraction(std::move(spec)));
}

/// What the target does not multiply (integers): a sum of products, vectorised along n.
void lower_sum_of_products(LowerCall& call, const Contraction& shape, const ContractAttributes& attributes) {
  Kernel kernel;
  kernel.name = call.node().op->name;
  kernel.combine = Combine::sum;
  int batch = shape.batch.rank();
  for (const Dim& extent : shape.batch) kernel.loops.push_back({extent, false});
  kernel.loops.push_back({shape.m, false});
  kernel.loops.push_back({shape.k, true});
  kernel.loops.push_back({shape.n, false});
  int m = batch, k = batch + 1, n = batch + 2;
  auto operand_access = [&](int number, const AxisMap& map, int rows, int columns, bool transpose) {
    std::vector<int> loops(static_cast<std::size_t>(call.in(number).shape.rank()), -1);
    for (int axis = 0; axis < batch; ++axis)
      if (int from = map.axes[static_cast<std::size_t>(axis)]; from >= 0) loops[static_cast<std::size_t>(from)] = axis;
    loops[loops.size() - 2] = transpose ? columns : rows;
    loops[loops.size() - 1] = transpose ? rows : columns;
    return LowerCall::access(call.place(number), call.in(number).dtype, loops, kernel.loops.size());
  };
  kernel.operands = {operand_access(0, shape.left_batch, m, k, attributes.transpose_left),
                     operand_access(1, shape.right_batch, k, n, attributes.transpose_right)};
  DType type = call.out().dtype;
  kernel.body = scalar::cast(operand(0, call.in(0).dtype), type) * scalar::cast(operand(1, call.in(1).dtype), type);
  std::vector<int> loops;
  for (int axis = 0; axis < batch; ++axis) loops.push_back(axis);
  loops.push_back(m);
  loops.push_back(n);
  kernel.result = LowerCall::access(call.result(), type, loops, kernel.loops.size());
  call.kernel(std::move(kernel));
}

}  // namespace

void lower_contract(LowerCall& call) {
  const auto& attributes = call.attributes<ContractAttributes>();
  Contraction shape = contraction_of(call.in(0).shape, attributes.transpose_left, call.in(1).shape,
                                     attributes.transpose_right, call.out().shape);
  if (call.target().contracts(compute_type(call.in(0).dtype)))
    lower_product(call, shape, attributes);
  else
    lower_sum_of_products(call, shape, attributes);
}

std::optional<Node> with_epilogue(const Graph& graph, const Node& product, const Node& consumer,
                                  const MapAttributes& map, std::size_t k) {
  ContractAttributes attributes = product.attributes.as<ContractAttributes>();
  DType type = product.type().dtype;
  int rank = product.type().shape.rank();
  if (attributes.epilogue.defined() || !is_floating(type)) return std::nullopt;
  if (!identical(product.type().shape, consumer.type().shape) || !(map.axes[k] == identity_axes(rank)))
    return std::nullopt;
  for (Expr part : topological(map.body))
    if (part.is(Primitive::index)) return std::nullopt;
  Node fused = product;
  std::vector<Expr> operands;
  int next = 1;
  for (std::size_t i = 0; i < consumer.inputs.size(); ++i) {
    if (i == k) {
      operands.push_back(scalar::cast(operand(0, compute_type(type)), type));
      continue;
    }
    if (consumer.inputs[i] == consumer.inputs[k] ||
        !epilogue_kind(map.axes[i], graph.type(consumer.inputs[i]).shape.rank()))
      return std::nullopt;
    fused.inputs.push_back(consumer.inputs[i]);
    attributes.epilogue_axes.push_back(map.axes[i]);
    operands.push_back(operand(next++, graph.type(consumer.inputs[i]).dtype));
  }
  attributes.epilogue = simplify(substitute(map.body, operands));
  fused.attributes = Attributes(view_of(attributes));
  fused.results = consumer.results;
  fused.label = consumer.label;
  std::vector<const char*> ops = ops_of(product);
  for (const char* op : ops_of(consumer)) ops.push_back(op);
  note_made_of(fused, std::move(ops));
  return fused;
}

}  // namespace stet
