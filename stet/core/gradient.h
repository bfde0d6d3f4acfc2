// GradientCall: what a row's `gradient` is given. It calls ops through the same door as everybody, so a gradient runs
// eagerly or is recorded like any other code.
#pragma once
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "stet/core/in.h"
#include "stet/core/tensor.h"
#include "stet/ir/op.h"

namespace stet {

class Graph;

/// A gradient that is zero but for a block: what a slice gives back. Element i of `d` along an axis belongs to position
/// begin + i * step.
struct GradientBlock {
  std::vector<Dim> begin;
  std::vector<std::int64_t> step;
  Tensor d;
};

class GradientCall {
 public:
  GradientCall(const OpDef& op, std::span<const Tensor> inputs, AttributesView attributes, std::vector<Tensor> outputs,
               std::vector<Tensor> ds, std::vector<bool> wanted)
      : op_(op),
        inputs_(inputs),
        attributes_(attributes),
        outputs_(std::move(outputs)),
        ds_(std::move(ds)),
        wanted_(std::move(wanted)),
        results_(inputs.size()) {}

  const OpDef& op() const { return op_; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  const Tensor& in(int number) const { return inputs_[static_cast<std::size_t>(number)]; }
  const Tensor& out(int number = 0) const { return outputs_[static_cast<std::size_t>(number)]; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  /// The gradient with respect to the result, of the result's shape and type.
  const Tensor& d() const { return ds_[0]; }
  /// Of a row with several results: with respect to one of them; zeros where the target does not depend on it.
  Tensor d_of(int number) const {
    const Tensor& given = ds_[static_cast<std::size_t>(number)];
    return given.defined() ? given : zeros_like(out(number));
  }
  /// With respect to each result; undefined where the target does not depend on it.
  const std::vector<Tensor>& ds() const { return ds_; }
  /// Whether anybody needs the gradient of this operand; integers never do.
  bool wants(int number) const { return wanted_[static_cast<std::size_t>(number)] && is_floating(in(number).dtype()); }
  void set(int number, Tensor gradient) { results_[static_cast<std::size_t>(number)] = std::move(gradient); }
  /// The same for a gradient that is a block of zeros' place: many of them, of one operand, are put together at once.
  void set_block(int number, GradientBlock block) { blocks_.emplace_back(number, std::move(block)); }
  template <class T>
  const T& attributes() const {
    return *static_cast<const T*>(attributes_.data);
  }
  AttributesView attributes_view() const { return attributes_; }
  /// The same size by form: not asked of this call, nor proved by what is known now.
  static bool same_size(const Dim& a, const Dim& b);
  /// One per operand; undefined where it was not wanted, is zero, or was set as a block.
  const std::vector<Tensor>& results() const { return results_; }
  /// What was set as a block, by operand.
  std::vector<std::pair<int, GradientBlock>>& blocks() { return blocks_; }

 private:
  const OpDef& op_;
  std::span<const Tensor> inputs_;
  AttributesView attributes_;
  std::vector<Tensor> outputs_, ds_;
  std::vector<bool> wanted_;
  std::vector<Tensor> results_;
  std::vector<std::pair<int, GradientBlock>> blocks_;
};

/// The few ops that core/ itself needs. It knows no op by name: ops/ hands them up.
struct CoreOps {
  Tensor (*add)(In x, In y);
  Tensor (*subtract)(In x, In y);
  Tensor (*cast)(In x, DType dtype);
  Tensor (*broadcast_to)(In x, const Shape& shape);
  Tensor (*reshape)(In x, const std::vector<Dim>& sizes);
  /// The sum over the axes along which a tensor of this shape would be repeated: the adjoint of broadcasting.
  Tensor (*sum_to)(const Tensor& x, const Shape& shape);
  /// The sum of blocks in zeros of this shape.
  Tensor (*assembled)(const Shape& shape, std::vector<GradientBlock> blocks);
  /// One element along the first axis.
  Tensor (*element)(const Tensor& x, std::int64_t place);
  /// Tensors of one type along a new first axis.
  Tensor (*stack)(const std::vector<Tensor>& parts);
  Tensor (*transpose)(In x, const std::vector<int>& order);
  /// 0, 1, … as i64.
  Tensor (*arange)(const Dim& size);
  /// The unit matrix.
  Tensor (*identity)(const Dim& size, DType dtype);
};
extern const CoreOps core_ops;  // defined in ops/

/// The gradient of a branch: the same choice again, with the chosen child's gradient on either side.
void branch_gradient(GradientCall& call);
/// The gradient of a loop: a loop in the opposite order.
void loop_gradient(GradientCall& call);
/// By input of a child graph: whether a result that is asked for is computed from it, by way of floating values.
std::vector<bool> inputs_reached(const Graph& child, const std::vector<bool>& asked);
/// The same of a loop's body after any number of turns; `asked` learns which carried values that goes by.
std::vector<bool> inputs_reached_by_turns(const struct LoopAttributes& loop, std::vector<bool>& asked);
/// The gradient of any map: the derivative of its body times d, summed over the axes an operand was repeated along.
/// Where d is 0, so is the gradient, even if the derivative is infinite or not a number there: what was not chosen, as
/// in where(x > 0, sqrt(x), 0), has no say.
void map_gradient(GradientCall& call);

/// A map's body and its derivatives, as gradients of either mode use them.
struct MapDerivatives {
  Expr body;
  struct Slope {
    Expr value = {};               // over the operands; operand number `operands` is the result, in the result's type
    bool may_be_infinite = false;  // or not a number, of operands that are finite
    std::vector<bool> reads = {};  // by operand, the result last
    /// The slope times the gradient that comes in, in the operand's type, over some of the operands, the result and
    /// that gradient, which have the numbers that follow.
    Expr gradient = {};
    std::vector<int> gradient_of = {};
  };
  /// By operand; undefined for operands that are not floating, and of a body that is not. With the result instead of
  /// the body where it occurs and an operand is not needed then, as in tanh: tapes need not keep that operand, and
  /// second derivatives go through the result, which is finite where parts of the body may not be.
  std::vector<Slope> slopes;
};
/// Kept for the thread that asked.
std::shared_ptr<const MapDerivatives> map_derivatives(const OpDef& op, std::span<const Tensor> inputs,
                                                      AttributesView attributes);
/// d * slope, in their type: 0 where d is 0.
Expr weighted_slope(Expr d, Expr slope, bool may_be_infinite);
/// An expression of some of the operands, called with those.
Tensor call_map_of(Expr body, std::span<const Tensor> operands);

}  // namespace stet
