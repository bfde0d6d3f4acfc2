// Recurrent layers: a cell, step after step along a sequence. One program serves all lengths.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stet/keras/cells.h"
#include "stet/keras/functional.h"
#include "stet/keras/layer.h"

namespace stet::keras {

/// What calls of recurrent layers take: those of all layers, and the state before the first step.
struct RecurrentCallOptions {
  std::optional<bool> training = {};
  Tensor mask = {};            // [batch, steps]: false where a step does not count
  Tensors initial_state = {};  // none: zeros; of a stateful layer, that which its last call left
};
struct SymbolicRecurrentCallOptions {
  std::optional<bool> training = {};
  std::vector<KerasTensor> initial_state = {};
};

/// What RNN, LSTM, GRU and their kin have in common: x [batch, steps, features] gives the last output
/// [batch, output_size], or with return_sequences all of them, [batch, steps, output_size].
///
/// A step that the mask leaves out keeps the state as it is, and gives the output of the step before it (or 0, with
/// zero_output_for_mask). go_backwards goes from the last step to the first, and leaves the outputs in the order in
/// which they were made. A stateful layer begins where its last call ended, with batches of one size. Called as a layer
/// on a list, {x, states…} begins with these states; with return_state it gives {output, states…}.
class STET_API RecurrentLayer : public Layer {
 public:
  RecurrentLayer() = default;
  Tensor operator()(const Tensor& x, RecurrentCallOptions options = {}, Where where = Where::here()) const;
  Tensor operator()(const Tensors& inputs, CallOptions options = {}, Where where = Where::here()) const;
  KerasTensor operator()(const KerasTensor& x, SymbolicRecurrentCallOptions options = {},
                         Where where = Where::here()) const;
  KerasTensor operator()(const std::vector<KerasTensor>& inputs, CallOptions options = {},
                         Where where = Where::here()) const;

  /// The state of a stateful layer becomes 0.
  void reset_state(Where where = Where::here()) const;

  STET_HANDLE(RecurrentLayer, Layer)

 protected:
  template <class Body>
  explicit RecurrentLayer(std::shared_ptr<Body> body) : Layer(std::move(body)) {}
  /// The output and the states, whether or not the layer was told to return them.
  Tensors all(const Tensor& x, const RecurrentCallOptions& options, Where where) const;
  std::vector<KerasTensor> all(const KerasTensor& x, const SymbolicRecurrentCallOptions& options, Where where) const;
};

struct RNNOptions {
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool unroll = false;  // taken for Keras's sake: a loop is one op
  bool zero_output_for_mask = false;
  Regularizer activity_regularizer = {};  // of the output, and of states that it gives; divided by the samples
  std::string name = {};
  DTypePolicy dtype = {};
};
/// A layer of any cell: the library's, several of them stacked, or a CustomCell. A list of cells is stacked.
class STET_API RNN : public RecurrentLayer {
 public:
  explicit RNN(RNNCell cell, RNNOptions options = {}, Where where = Where::here());
  explicit RNN(std::vector<RNNCell> cells, RNNOptions options = {}, Where where = Where::here());
  std::pair<Tensor, Tensors> with_state(const Tensor& x, RecurrentCallOptions options = {},
                                        Where where = Where::here()) const;
  std::pair<KerasTensor, std::vector<KerasTensor>> with_state(const KerasTensor& x,
                                                              SymbolicRecurrentCallOptions options = {},
                                                              Where where = Where::here()) const;
  STET_HANDLE(RNN, RecurrentLayer)
};

struct SimpleRNNOptions {
  ActivationFunction activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = {};     // none: "glorot_uniform"
  Initializer recurrent_initializer = {};  // none: "orthogonal"
  Initializer bias_initializer = {};       // none: "zeros"
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the output, and of states that it gives; divided by the samples
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool unroll = false;
  std::optional<std::uint64_t> seed = {};  // of what dropout draws from
  bool zero_output_for_mask = false;
  std::string name = {};
  DTypePolicy dtype = {};
};
/// A layer of SimpleRNNCells. `auto [y, h] = rnn.with_state(x);`
class STET_API SimpleRNN : public RecurrentLayer {
 public:
  explicit SimpleRNN(std::int64_t units, SimpleRNNOptions options = {}, Where where = Where::here());
  std::tuple<Tensor, Tensor> with_state(const Tensor& x, RecurrentCallOptions options = {},
                                        Where where = Where::here()) const;
  std::tuple<KerasTensor, KerasTensor> with_state(const KerasTensor& x, SymbolicRecurrentCallOptions options = {},
                                                  Where where = Where::here()) const;
  STET_HANDLE(SimpleRNN, RecurrentLayer)
};

struct LSTMOptions {
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = {};     // none: "glorot_uniform"
  Initializer recurrent_initializer = {};  // none: "orthogonal"
  Initializer bias_initializer = {};       // none: "zeros"
  bool unit_forget_bias = true;
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the output, and of states that it gives; divided by the samples
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  std::optional<std::uint64_t> seed = {};  // of what dropout draws from
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool unroll = false;
  bool zero_output_for_mask = false;
  std::string name = {};
  DTypePolicy dtype = {};
};
/// A layer of LSTMCells. `auto [y, h, c] = lstm.with_state(x, {.initial_state = {h0, c0}});`
class STET_API LSTM : public RecurrentLayer {
 public:
  explicit LSTM(std::int64_t units, LSTMOptions options = {}, Where where = Where::here());
  std::tuple<Tensor, Tensor, Tensor> with_state(const Tensor& x, RecurrentCallOptions options = {},
                                                Where where = Where::here()) const;
  std::tuple<KerasTensor, KerasTensor, KerasTensor> with_state(const KerasTensor& x,
                                                               SymbolicRecurrentCallOptions options = {},
                                                               Where where = Where::here()) const;
  STET_HANDLE(LSTM, RecurrentLayer)
};

struct GRUOptions {
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = {};     // none: "glorot_uniform"
  Initializer recurrent_initializer = {};  // none: "orthogonal"
  Initializer bias_initializer = {};       // none: "zeros"
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the output, and of states that it gives; divided by the samples
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  std::optional<std::uint64_t> seed = {};  // of what dropout draws from
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool unroll = false;
  bool reset_after = true;
  bool zero_output_for_mask = false;
  std::string name = {};
  DTypePolicy dtype = {};
};
/// A layer of GRUCells. `auto [y, h] = gru.with_state(x);`
class STET_API GRU : public RecurrentLayer {
 public:
  explicit GRU(std::int64_t units, GRUOptions options = {}, Where where = Where::here());
  std::tuple<Tensor, Tensor> with_state(const Tensor& x, RecurrentCallOptions options = {},
                                        Where where = Where::here()) const;
  std::tuple<KerasTensor, KerasTensor> with_state(const KerasTensor& x, SymbolicRecurrentCallOptions options = {},
                                                  Where where = Where::here()) const;
  STET_HANDLE(GRU, RecurrentLayer)
};

}  // namespace stet::keras
