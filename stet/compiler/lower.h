// From nodes to steps. Maps, reductions and views are lowered by kind; other rows bring a `lower` that uses LowerCall.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stet/ir/graph.h"
#include "stet/ir/kernel.h"
#include "stet/runtime/device.h"
#include "stet/runtime/program.h"
#include "stet/runtime/target.h"

namespace stet {

/// The program of a graph for a device, its machine code still missing.
std::shared_ptr<Program> lower(const Graph&, Device&);
/// Fetches or compiles the code of all steps, at once.
void provide_code(Program&);

/// A value in the program: a buffer, and how its elements lie in it.
struct Place {
  int buffer = -1;
  Layout layout;
};

class Lowering;  // lower.cpp

/// What a row's `lower` works with: one node, its operands as places, and steps to add. In the kernels given to it,
/// Access::buffer is a buffer of the program.
class LowerCall {
 public:
  LowerCall(Lowering& lowering, const Graph& graph, ValueId id) : lowering_(lowering), graph_(graph), id_(id) {}

  const Node& node() const { return graph_.node(id_); }
  const ValueType& in(int number) const { return graph_.type(node().inputs[static_cast<std::size_t>(number)]); }
  const ValueType& out() const { return node().type(); }
  template <class T>
  const T& attributes() const {
    return node().attributes.as<T>();
  }

  /// Where an operand lies, perhaps strided.
  const Place& place(int number) const;
  /// Where a dense copy of the operand lies (itself if it is dense).
  Place dense(int number);
  /// The node's result, dense.
  Place result();
  /// Of a tuple: each result, dense; buffer -1 where nobody reads it, so that it need not be computed.
  std::vector<Place> results();
  /// Elements of the buffer that a place is in.
  const Dim& elements(const Place& place) const;
  /// A dense buffer for the time of the program's run.
  Place temporary(DType dtype, const Shape& shape);

  /// An access to `place` whose axis a is walked by loop loops[a] (-1: the axis has one element).
  static Access access(const Place& place, DType dtype, std::span<const int> loops, std::size_t loop_count);
  /// Adds a kernel: loops merged where possible, buffers numbered, verified.
  void kernel(Kernel kernel, std::vector<KernelCheck> checks = {});
  /// body(operands of these places, each of the loops' shape or broadcast by `axes`) into `to`, elementwise.
  void map(const Shape& space, std::span<const Place> operands, std::span<const DType> dtypes,
           std::span<const AxisMap> axes, Expr body, const Place& to, const char* name);
  /// The same for several bodies over one list of operands, each into its own place.
  void maps(const Shape& space, std::span<const Place> operands, std::span<const DType> dtypes,
            std::span<const AxisMap> axes, std::span<const Expr> bodies, std::span<const Place> to, const char* name);
  void step(std::unique_ptr<Step> step);
  /// Who makes steps of what is no kernel.
  const Target& target() const;
  Device& device() const;
  /// A check of operand `operand`'s values against an axis of this size, which names this node and the user's line.
  KernelCheck check(const char* operand, const Dim& extent) const;
  /// After the last step added, the i64 in `place` is the value of `symbol`.
  void bind_late(const Dim& symbol, const Place& place);

 private:
  Lowering& lowering_;
  const Graph& graph_;
  ValueId id_;
};

/// The lines of a dense tensor along an axis.
Lines lines_of(const Shape& shape, int axis);
/// 0, 1, …, rank - 1.
AxisMap identity_axes(int rank);
/// For each axis of an operand, the loop that walks it; -1 for an axis of one element that none walks.
std::vector<int> walking_loops(const AxisMap& axes, int operand_rank);

}  // namespace stet
