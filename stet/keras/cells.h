// Cells: what a recurrent layer does at one step. A CustomCell is what you subclass to write one.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stet/keras/activation.h"
#include "stet/keras/layer.h"
#include "stet/keras/policy.h"

namespace stet::keras {

/// What a step gives.
struct CellStep {
  Tensor output = {};   // [batch, output_size]
  Tensors states = {};  // as many as it was given, of the same types
};

/// What every cell has.
class STET_API Cell {
 public:
  virtual ~Cell();
  /// Sizes of the tensors [batch, size] that the state consists of.
  virtual std::vector<std::int64_t> state_size() const = 0;
  /// One step, from its input [batch, features] and the state before it.
  virtual CellStep step(const Tensor& x, const Tensors& states, const Context& context) = 0;
  /// The state before the first step, whose input has the shape and type of x: zeros.
  virtual Tensors initial_state(const Tensor& x) const;
  /// Which tensor of the state is the output of the step before it: what a step that is masked gives.
  virtual std::size_t output_state() const { return 0; }
  virtual std::int64_t output_size() const { return state_size()[output_state()]; }
};

/// Subclass it to write a cell:
///
///   struct Minimal : keras::CustomCell {
///     Variable kernel, recurrent_kernel;
///     std::vector<std::int64_t> state_size() const override { return {32}; }
///     void build(const Shape& input) override {
///       kernel = add_weight("kernel", {input[-1], 32});
///       recurrent_kernel = add_weight("recurrent_kernel", {32, 32});
///     }
///     keras::CellStep step(const Tensor& x, const keras::Tensors& states, const keras::Context&) override {
///       Tensor h = tanh(matmul(x, kernel) + matmul(states[0], recurrent_kernel));
///       return {h, {h}};
///     }
///   };
///   keras::RNN rnn(Minimal{}, {.return_sequences = true});
///
/// It is a layer: layers that it holds are listed with STET_MEMBERS(…).
class STET_API CustomCell : public CustomLayer, public Cell {
 public:
  using CustomLayer::CustomLayer;
  /// A step: {x, states…} gives {output, states…}.
  Tensors call_many(const Tensors& inputs, const Context& context) final;
};

template <class T>
concept CellBody = LayerBody<T> && std::derived_from<T, Cell>;

/// A cell. Copies share it. Called as a layer it does one step: {x, states…} gives {output, states…}.
class STET_API RNNCell : public Layer {
 public:
  RNNCell() = default;
  template <class T>
  requires(CellBody<std::remove_cvref_t<T>> && !std::is_lvalue_reference_v<T>) RNNCell(T&& body)
      : Layer(std::forward<T>(body)) {}
  template <CellBody T>
  RNNCell(std::shared_ptr<T> body) : Layer(std::move(body)) {}
  template <CellBody T>
  RNNCell(T& body) = delete;  // hold it with keras::make<T>(…), or move it

  /// One step.
  CellStep step(const Tensor& x, const Tensors& states, CallOptions options = {}, Where where = Where::here()) const;
  std::vector<std::int64_t> state_size(Where where = Where::here()) const;
  std::int64_t output_size(Where where = Where::here()) const;

  STET_HANDLE(RNNCell, Layer)
};

struct SimpleRNNCellOptions {
  ActivationFunction activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = {};     // none: "glorot_uniform"
  Initializer recurrent_initializer = {};  // none: "orthogonal"
  Initializer bias_initializer = {};       // none: "zeros"
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;                      // of the input, in training; one draw for all steps of a sequence
  double recurrent_dropout = 0;            // of the state, where it meets the kernel
  std::optional<std::uint64_t> seed = {};  // of what dropout draws from; none: the process's generator
  std::string name = {};
  DTypePolicy dtype = {};
};
/// h = activation(x · kernel + h · recurrent_kernel + bias). State: h.
class STET_API SimpleRNNCell : public RNNCell {
 public:
  explicit SimpleRNNCell(std::int64_t units, SimpleRNNCellOptions options = {}, Where where = Where::here());
  STET_HANDLE(SimpleRNNCell, RNNCell)
};

struct LSTMCellOptions {
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = {};     // none: "glorot_uniform"
  Initializer recurrent_initializer = {};  // none: "orthogonal"
  Initializer bias_initializer = {};       // none: "zeros"
  bool unit_forget_bias = true;            // the forget gate's begins with ones
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;            // with it every gate has draws of its own
  std::optional<std::uint64_t> seed = {};  // of what dropout draws from; none: the process's generator
  std::string name = {};
  DTypePolicy dtype = {};
};
/// i, f, o = recurrent_activation(x · kernel + h · recurrent_kernel + bias), g = activation(the same);
/// c = f c + i g, h = o activation(c). The kernels have the columns of i, f, g, o in this order. State: h, c.
class STET_API LSTMCell : public RNNCell {
 public:
  explicit LSTMCell(std::int64_t units, LSTMCellOptions options = {}, Where where = Where::here());
  STET_HANDLE(LSTMCell, RNNCell)
};

struct GRUCellOptions {
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = {};     // none: "glorot_uniform"
  Initializer recurrent_initializer = {};  // none: "orthogonal"
  Initializer bias_initializer = {};       // none: "zeros"
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  bool reset_after = true;                 // the reset gate acts on the product of the state, otherwise on the state
  std::optional<std::uint64_t> seed = {};  // of what dropout draws from; none: the process's generator
  std::string name = {};
  DTypePolicy dtype = {};
};
/// z, r = recurrent_activation(x · kernel + h · recurrent_kernel + bias), g = activation(x · kernel + r (h ·
/// recurrent_kernel + bias)), h = z h + (1 - z) g. The kernels have the columns of z, r, g in this order; with
/// reset_after the bias is [2, 3 units], of the input and of the state. State: h.
class STET_API GRUCell : public RNNCell {
 public:
  explicit GRUCell(std::int64_t units, GRUCellOptions options = {}, Where where = Where::here());
  STET_HANDLE(GRUCell, RNNCell)
};

struct StackedRNNCellsOptions {
  std::string name = {};
};
/// Cells one after the other: each gets what the one before gives. The state is that of all of them, in their order.
class STET_API StackedRNNCells : public RNNCell {
 public:
  explicit StackedRNNCells(std::vector<RNNCell> cells, StackedRNNCellsOptions options = {},
                           Where where = Where::here());
  STET_HANDLE(StackedRNNCells, RNNCell)
};

}  // namespace stet::keras
