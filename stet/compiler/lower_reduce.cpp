#include "stet/compiler/lower_reduce.h"

namespace stet {
namespace {

class ReduceLowering {
 public:
  explicit ReduceLowering(LowerCall& call)
      : call_(call),
        row_(*call.node().op),
        reduce_(call.attributes<ReduceAttributes>()),
        plain_(!reduce_.body.defined()),
        space_(plain_ ? call.in(0).shape : reduce_.space),
        reduced_(static_cast<std::size_t>(space_.rank()), false),
        loop_of_(static_cast<std::size_t>(space_.rank())) {
    for (int axis : reduce_.axes) reduced_[static_cast<std::size_t>(axis)] = true;
  }

  void run() {
    kernel_.name = row_.name;
    kernel_.combine = row_.combine;
    add_loops();
    add_operands();
    add_result();
    if (reduce_.axes.empty()) reduce_nothing();
    call_.kernel(std::move(kernel_));
  }

 private:
  // A fused body of loop indices alone has no inputs.
  std::size_t input_count() const { return call_.node().inputs.size(); }
  AxisMap axes_of(std::size_t input) const {
    return plain_ ? identity_axes(space_.rank()) : reduce_.operand_axes[input];
  }
  bool is_position() const { return row_.combine == Combine::argmax || row_.combine == Combine::argmin; }

  /// Floating sums and products round differently in another order, and the order must follow from sizes alone: a view
  /// is packed, so that its loops merge, and its sum rounds, as those of dense memory.
  bool order_matters() const {
    return is_floating(kernel_.body.dtype()) && (row_.combine == Combine::sum || row_.combine == Combine::product);
  }

  /// Kept loops, then reduced ones; the last axis innermost, where dense memory is contiguous.
  void add_loops() {
    int innermost = space_.rank() - 1;
    std::vector<int> order;
    for (bool want : {false, true})
      for (int axis = 0; axis < innermost; ++axis)
        if (reduced_[static_cast<std::size_t>(axis)] == want) order.push_back(axis);
    if (space_.rank() > 0) order.push_back(innermost);
    for (std::size_t i = 0; i < order.size(); ++i) {
      loop_of_[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
      kernel_.loops.push_back({space_[order[i]], static_cast<bool>(reduced_[static_cast<std::size_t>(order[i])])});
    }
  }

  void add_operands() {
    DType first = plain_ ? call_.in(0).dtype : DType::f32;
    kernel_.body = plain_ ? scalar::cast(operand(0, first), row_.accumulator(first)) : reduce_.body;
    if (!kernel_.loops.empty()) kernel_.body = renumber_loops(kernel_.body, loop_of_);
    for (std::size_t k = 0; k < input_count(); ++k) {
      const ValueType& type = call_.in(static_cast<int>(k));
      std::vector<int> loops = walking_loops(axes_of(k), type.shape.rank());
      for (int& loop : loops)
        if (loop >= 0) loop = loop_of_[static_cast<std::size_t>(loop)];
      int number = static_cast<int>(k);
      Place place = order_matters() ? call_.dense(number) : call_.place(number);
      kernel_.operands.push_back(LowerCall::access(place, type.dtype, loops, kernel_.loops.size()));
    }
  }

  void add_result() {
    Expr accumulated = operand(0, is_position() ? DType::i64 : kernel_.body.dtype());
    Expr stored = accumulated;
    if (row_.divides_by_count) {
      Dim count = 1;
      for (int axis : reduce_.axes) count = count * space_[axis];
      Access number;
      number.source = Access::number;
      number.dtype = accumulated.dtype();
      number.address.offset = count;
      kernel_.epilogue_operands.push_back(number);
      stored = stored / operand(1, accumulated.dtype());
    }
    stored = scalar::cast(stored, call_.out().dtype);
    if (!(stored == accumulated)) kernel_.epilogue = stored;

    std::vector<int> loops;
    for (int axis = 0; axis < space_.rank(); ++axis) {
      bool gone = reduced_[static_cast<std::size_t>(axis)];
      if (gone && reduce_.keepdims) loops.push_back(-1);
      if (!gone) loops.push_back(loop_of_[static_cast<std::size_t>(axis)]);
    }
    kernel_.result = LowerCall::access(call_.result(), call_.out().dtype, loops, kernel_.loops.size());
  }

  /// Over no axes every element is its own sum, mean or extreme, and its position is 0.
  void reduce_nothing() {
    Expr value = is_position() ? constant(std::int64_t{0}, DType::i64) : kernel_.body;
    std::vector<Expr> parts{value, constant(std::int64_t{1}, value.dtype())};
    kernel_.combine = Combine::none;
    kernel_.body = kernel_.epilogue.defined() ? substitute(kernel_.epilogue, parts) : value;
    kernel_.epilogue = Expr();
    kernel_.epilogue_operands.clear();
  }

  LowerCall& call_;
  const OpDef& row_;
  const ReduceAttributes& reduce_;
  const bool plain_;  // nothing was fused into it
  const Shape space_;
  std::vector<bool> reduced_;  // by axis of the space
  std::vector<int> loop_of_;   // by axis of the space
  Kernel kernel_;
};

}  // namespace

void lower_reduce(LowerCall& call) { ReduceLowering(call).run(); }

}  // namespace stet
