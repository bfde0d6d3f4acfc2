// Layers around others: Bidirectional runs a recurrent layer both ways, TimeDistributed any layer at every step.
#pragma once
#include <string>
#include <vector>

#include "stet/keras/layer.h"
#include "stet/keras/recurrent.h"

namespace stet::keras {

struct BidirectionalOptions {
  std::string merge_mode = "concat";   // "sum", "mul", "ave"; "none": both outputs, one after the other
  RecurrentLayer backward_layer = {};  // none: one like the other, with go_backwards the other way round
  std::string name = {};
};
/// A recurrent layer from the first step to the last, and another one from the last to the first, whose outputs are
/// merged. The layers are copies without weights, "forward_lstm" and "backward_lstm" of "lstm"; an RNN around a cell of
/// your own is used as it is, and needs a backward_layer. A list {x, states…} begins with the states of the forward,
/// then of the backward layer, in which order with_state gives them. With return_sequences masked steps give 0.
class STET_API Bidirectional : public RecurrentLayer {
 public:
  explicit Bidirectional(const RecurrentLayer& layer, BidirectionalOptions options = {}, Where where = Where::here());
  /// The output, and the states; with merge_mode "none" both outputs, and the states.
  Tensors with_state(const Tensor& x, RecurrentCallOptions options = {}, Where where = Where::here()) const;
  std::vector<KerasTensor> with_state(const KerasTensor& x, SymbolicRecurrentCallOptions options = {},
                                      Where where = Where::here()) const;
  STET_HANDLE(Bidirectional, RecurrentLayer)
};

struct TimeDistributedOptions {
  std::string name = {};
};
/// The layer, with its weights, at every step of x: [batch, steps, …] gives [batch, steps, …].
class STET_API TimeDistributed : public Layer {
 public:
  explicit TimeDistributed(const Layer& layer, TimeDistributedOptions options = {}, Where where = Where::here());
  STET_HANDLE(TimeDistributed, Layer)
};

}  // namespace stet::keras
