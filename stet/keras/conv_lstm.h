// ConvLSTM1D, ConvLSTM2D and ConvLSTM3D: LSTMs whose products are convolutions, for sequences of signals and images.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stet/keras/recurrent.h"

namespace stet::keras {

struct ConvLSTMOptions {
  std::vector<std::int64_t> strides = {};        // of the input, one for every spatial axis; none: 1
  std::string padding = "valid";                 // of the input; that of the state is "same"
  std::vector<std::int64_t> dilation_rate = {};  // of the input; none: 1
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
  Regularizer activity_regularizer = {};  // of the output, divided by the number of samples
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
  std::string name = {};
  DTypePolicy dtype = {};
};
/// The steps of LSTMCell with convolutions of x [batch, steps, length, channels] and of the state instead of products;
/// gives the last output [batch, length, filters], or with return_sequences all of them. State: h, c.
class STET_API ConvLSTM1D : public RecurrentLayer {
 public:
  ConvLSTM1D(std::int64_t filters, std::int64_t kernel_size, ConvLSTMOptions options = {}, Where where = Where::here());
  std::tuple<Tensor, Tensor, Tensor> with_state(const Tensor& x, RecurrentCallOptions options = {},
                                                Where where = Where::here()) const;
  STET_HANDLE(ConvLSTM1D, RecurrentLayer)
};
/// The same for x [batch, steps, height, width, channels].
class STET_API ConvLSTM2D : public RecurrentLayer {
 public:
  ConvLSTM2D(std::int64_t filters, std::vector<std::int64_t> kernel_size, ConvLSTMOptions options = {},
             Where where = Where::here());
  ConvLSTM2D(std::int64_t filters, std::int64_t kernel_size, ConvLSTMOptions options = {}, Where where = Where::here())
      : ConvLSTM2D(filters, std::vector<std::int64_t>{kernel_size, kernel_size}, std::move(options), where) {}
  std::tuple<Tensor, Tensor, Tensor> with_state(const Tensor& x, RecurrentCallOptions options = {},
                                                Where where = Where::here()) const;
  STET_HANDLE(ConvLSTM2D, RecurrentLayer)
};
/// The same for x [batch, steps, depth, height, width, channels].
class STET_API ConvLSTM3D : public RecurrentLayer {
 public:
  ConvLSTM3D(std::int64_t filters, std::vector<std::int64_t> kernel_size, ConvLSTMOptions options = {},
             Where where = Where::here());
  ConvLSTM3D(std::int64_t filters, std::int64_t kernel_size, ConvLSTMOptions options = {}, Where where = Where::here())
      : ConvLSTM3D(filters, std::vector<std::int64_t>{kernel_size, kernel_size, kernel_size}, std::move(options),
                   where) {}
  std::tuple<Tensor, Tensor, Tensor> with_state(const Tensor& x, RecurrentCallOptions options = {},
                                                Where where = Where::here()) const;
  STET_HANDLE(ConvLSTM3D, RecurrentLayer)
};

}  // namespace stet::keras
