// SimpleRNN, LSTM, GRU, RNN and what is around them, compared with Keras's.
#include <gtest/gtest.h>

#include "keras_sequence_cases.h"
#include "stet/stet.h"

namespace stet {
namespace {

using keras::Tensors;

class KerasRecurrent : public ::testing::Test {
 protected:
  void SetUp() override {
    random::seed(3);
    keras::clear_session();
  }
};

const std::vector<std::vector<int>> one_sequence{{1}};

/// Given a sequence, a mask and states.
LayerCall masked(const keras::RecurrentLayer& layer) {
  return [layer](const Tensors& inputs) {
    Tensors given{inputs[0]};
    given.insert(given.end(), inputs.begin() + 2, inputs.end());
    return layer.call_many(given, {.mask = inputs[1]});
  };
}

/// What the three layers share. Options are in the order of Keras's.
template <class Made, class Options>
void check_kind(SequenceCases& cases, const std::string& kind) {
  auto make = [](Options options) { return Made(3, options); };
  const Options every{.return_sequences = true, .return_state = true};
  const SequenceCheck plain{.steps = one_sequence, .model = true};
  cases.check(kind, make({}), plain);
  cases.check(kind + "_sequences", make({.return_sequences = true}), plain);
  cases.check(kind + "_state", make(every), plain);
  cases.check(kind + "_backwards", make({.return_sequences = true, .return_state = true, .go_backwards = true}), plain);
  cases.check(kind + "_unroll", make({.return_state = true, .unroll = true}), plain);
  cases.check(kind + "_no_bias", make({.activation = relu, .use_bias = false}), plain);
  cases.check(kind + "_initial", make(every), plain);
  const std::vector<std::vector<int>> two{{1}, {1}};
  auto with_mask = [&](const std::string& name, const Made& layer) {
    cases.check(kind + name, layer, {.call = masked(layer), .steps = two});
  };
  with_mask("_masked", make(every));
  with_mask("_masked_last", make({}));
  with_mask("_masked_backwards", make({.return_sequences = true, .return_state = true, .go_backwards = true}));
  with_mask("_masked_initial", make(every));
  with_mask("_masked_zero", make({.return_sequences = true, .return_state = true, .zero_output_for_mask = true}));
  with_mask("_masked_zero_last", make({.zero_output_for_mask = true}));
  // Two calls, of which the second begins where the first ended.
  Made stateful = make({.return_sequences = true, .return_state = true, .stateful = true});
  cases.check(kind + "_stateful", stateful,
              {.call =
                   [stateful](const Tensors& inputs) {
                     stateful.reset_state();
                     stateful(inputs[0]);
                     return stateful.call_many(inputs);
                   },
               .steps = one_sequence,
               .any_batch = false});
}

/// Its output is not its state.
struct Minimal : keras::CustomCell {
  Variable kernel, recurrent_kernel;
  std::vector<std::int64_t> state_size() const override { return {3}; }
  void build(const Shape& input) override {
    kernel = add_weight("kernel", {input[-1], 3});
    recurrent_kernel = add_weight("recurrent_kernel", {3, 3});
  }
  keras::CellStep step(const Tensor& x, const Tensors& states, const keras::Context&) override {
    Tensor h = tanh(matmul(x, kernel) + matmul(states[0], recurrent_kernel));
    return {h * 2 + 1, {h}};
  }
};

std::vector<keras::RNNCell> stacked() {
  return {keras::LSTMCell(3, {.name = "a"}), keras::GRUCell(4, {.name = "b"}), keras::SimpleRNNCell(2, {.name = "c"})};
}

/// One file of values, for which the tests below ask.
SequenceCases& cases() {
  static auto* const all = new SequenceCases("recurrent");
  return *all;
}

TEST_F(KerasRecurrent, SimpleRNNIsKerass) {
  check_kind<keras::SimpleRNN, keras::SimpleRNNOptions>(cases(), "simple_rnn");
}
TEST_F(KerasRecurrent, LSTMIsKerass) {
  check_kind<keras::LSTM, keras::LSTMOptions>(cases(), "lstm");
  const SequenceCheck plain{.steps = one_sequence, .model = true};
  cases().check(
      "lstm_activations",
      keras::LSTM(3,
                  {.activation = relu, .recurrent_activation = tanh, .return_sequences = true, .return_state = true}),
      plain);
  cases().check("lstm_long", keras::LSTM(5, {.return_sequences = true}), plain);
  cases().check("lstm_forget_bias", keras::LSTM(3, {.unit_forget_bias = false}), plain);
}
TEST_F(KerasRecurrent, GRUIsKerass) {
  check_kind<keras::GRU, keras::GRUOptions>(cases(), "gru");
  const SequenceCheck plain{.steps = one_sequence, .model = true};
  auto make = [](keras::GRUOptions options) {
    options.return_sequences = options.return_state = true;
    return keras::GRU(3, options);
  };
  cases().check("gru_activations", make({.activation = relu, .recurrent_activation = tanh}), plain);
  cases().check("gru_reset_before", make({.reset_after = false}), plain);
  cases().check("gru_reset_before_no_bias", make({.use_bias = false, .reset_after = false}), plain);
  cases().check("gru_reset_after_no_bias", make({.use_bias = false}), plain);
  keras::GRU before = make({.reset_after = false});
  cases().check("gru_reset_before_masked", before, {.call = masked(before), .steps = {{1}, {1}}});
}

TEST_F(KerasRecurrent, CellsAreKerass) {
  cases().check("simple_rnn_cell", keras::SimpleRNNCell(3), {.model = true});
  cases().check("lstm_cell", keras::LSTMCell(3), {.model = true});
  cases().check("gru_cell", keras::GRUCell(3), {.model = true});
  cases().check("gru_cell_reset_before", keras::GRUCell(3, {.reset_after = false}), {.model = true});
  const keras::RNNOptions every{.return_sequences = true, .return_state = true};
  const SequenceCheck plain{.steps = one_sequence, .model = true};
  cases().check("rnn_stacked", keras::RNN(stacked(), every), plain);
  cases().check("rnn_stacked_last", keras::RNN(keras::StackedRNNCells(stacked())), plain);
  keras::RNN stack(stacked(), every);
  cases().check("rnn_stacked_masked", stack, {.call = masked(stack), .steps = {{1}, {1}}});
  cases().check("rnn_cell", keras::RNN(keras::GRUCell(3, {.name = "cell"}), {.return_sequences = true}), plain);
  cases().check("rnn_custom", keras::RNN(Minimal(), every), plain);
  cases().check("rnn_custom_last", keras::RNN(Minimal()), plain);
  cases().check("rnn_custom_backwards", keras::RNN(Minimal(), {.go_backwards = true}), plain);
  keras::RNN custom(Minimal(), every);
  cases().check("rnn_custom_masked", custom, {.call = masked(custom), .steps = {{1}, {1}}});
}

TEST_F(KerasRecurrent, WrappersAreKerass) {
  const SequenceCheck plain{.steps = one_sequence, .model = true};
  for (const char* mode : {"concat", "sum", "mul", "ave", "none"})
    cases().check(std::string("bidirectional_") + mode,
                  keras::Bidirectional(keras::LSTM(3, {.name = "lstm"}), {.merge_mode = mode}), plain);
  auto both = [](bool return_state, const char* mode = "concat") {
    return keras::Bidirectional(keras::GRU(3, {.return_sequences = true, .return_state = return_state, .name = "gru"}),
                                {.merge_mode = mode});
  };
  cases().check("bidirectional_sequences", both(false), plain);
  cases().check("bidirectional_state", both(true), plain);
  cases().check("bidirectional_initial", both(true), plain);
  cases().check("bidirectional_none_sequences", both(true, "none"), plain);
  keras::Bidirectional with_mask = both(false), last(keras::LSTM(3, {.name = "lstm"}));
  cases().check("bidirectional_masked", with_mask, {.call = masked(with_mask), .steps = {{1}, {1}}});
  cases().check("bidirectional_masked_last", last, {.call = masked(last), .steps = {{1}, {1}}});
  cases().check("bidirectional_backward_layer",
                keras::Bidirectional(keras::LSTM(3, {.return_sequences = true, .name = "lstm"}),
                                     {.backward_layer = keras::GRU(
                                          2, {.return_sequences = true, .go_backwards = true, .name = "back"})}),
                plain);
  cases().check("time_distributed_dense",
                keras::TimeDistributed(keras::Dense(3, {.activation = tanh, .name = "dense"})), plain);
  const keras::LSTMOptions named{.name = "lstm"};
  cases().check("time_distributed_lstm", keras::TimeDistributed(keras::LSTM(3, named)),
                {.steps = {{1, 2}}, .model = true});
  keras::TimeDistributed over_time(keras::LSTM(3, named));
  cases().check("time_distributed_masked", over_time,
                {.call = [over_time](const Tensors& in) { return Tensors{over_time(in[0], {.mask = in[1]})}; },
                 .steps = {{1, 2}, {1, 2}}});
  EXPECT_EQ(cases().left(), std::vector<std::string>());
  cases().report();
}

}  // namespace
}  // namespace stet
