// BatchCall: what a row's `batch` is given, a call of the row for many examples at once, as vmap makes it. It calls ops
// through the same door as everybody.
//
// Operands and results are those of one example, but for a new first axis along which the examples lie; an operand that
// all examples share has no such axis.
#pragma once
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "stet/core/in.h"
#include "stet/core/tensor.h"
#include "stet/ir/graph.h"

namespace stet {

/// A tensor that may have an example in every place along its first axis.
struct Batched {
  Tensor value;
  bool has_batch = false;
};

class BatchCall {
 public:
  BatchCall(const OpDef& op, std::vector<Batched> inputs, AttributesView attributes, std::span<const ValueType> results,
            Dim size, Where where)
      : op_(op), inputs_(std::move(inputs)), attributes_(attributes), types_(results), size_(size), where_(where) {}

  const OpDef& op() const { return op_; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  const Tensor& in(int number) const { return inputs_[static_cast<std::size_t>(number)].value; }
  bool has_batch(int number) const { return inputs_[static_cast<std::size_t>(number)].has_batch; }
  /// Of one example.
  int rank(int number) const { return in(number).rank() - (has_batch(number) ? 1 : 0); }
  Shape shape(int number) const;
  const Shape& result_shape(int number = 0) const { return types_[static_cast<std::size_t>(number)].shape; }
  /// How many examples there are.
  const Dim& size() const { return size_; }
  template <class T>
  const T& attributes() const {
    return *static_cast<const T*>(attributes_.data);
  }
  AttributesView attributes_view() const { return attributes_; }

  /// The operand with the examples' axis; repeated along it where it has none.
  Tensor with_batch(int number) const;
  /// The operand if its examples have this many axes: those that it lacks are of size 1, behind the examples' axis. For
  /// rows whose operands are broadcast. What all examples share is left as it is.
  Tensor aligned(int number, int rank) const;
  /// The examples' axis and the first one of every example as one: for rows that take examples along their first axis.
  Tensor folded(int number) const;
  /// The other way round, of a result.
  Tensor unfolded(const Tensor& result, int number = 0) const;
  /// An axis of an example in the whole: counted from the end, it is the same.
  static int shifted(int axis) { return axis < 0 ? axis : axis + 1; }
  static std::vector<int> shifted(std::vector<int> axes);
  /// Sizes with the examples in front.
  std::vector<Dim> sizes_with_batch(const Shape& shape) const;

  /// The row itself, with other operands and attributes. Gives its results.
  std::vector<Tensor> call(const std::vector<Tensor>& operands, AttributesView attributes) const;
  /// The results: of every example, along the first axis.
  void set(std::vector<Tensor> results) { results_ = std::move(results); }
  /// Unset: the row leaves this call alone.
  std::optional<std::vector<Tensor>>& results() { return results_; }

 private:
  const OpDef& op_;
  std::vector<Batched> inputs_;
  AttributesView attributes_;
  std::span<const ValueType> types_;
  Dim size_;
  Where where_;
  std::optional<std::vector<Tensor>> results_;
};

/// One op for all examples, by its row or its kind; nothing if neither knows how.
std::optional<std::vector<Tensor>> batched_op(const Node& node, const Attributes& sized, std::vector<Batched> inputs,
                                              const Dim& size);
/// A tensor of which all `size` examples get the same.
Tensor repeated_for(const Tensor& value, const Dim& size);
/// An axis moved to another place; the others keep their order.
Tensor moved_axis(const Tensor& x, int from, int to);
/// A graph of the open trace for all examples at once: every op that has an example's value among its operands takes
/// all of them; where nobody knows how, the op is a loop over the examples. The graph has no effects (has_effect) and
/// does not raise. Gives its results, all of them with the examples' axis.
std::vector<Tensor> replay_batched(const Graph& graph, std::vector<Batched> inputs, const Dim& size);

}  // namespace stet
