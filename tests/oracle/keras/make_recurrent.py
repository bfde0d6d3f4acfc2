"""SimpleRNN, LSTM, GRU, RNN, Bidirectional and TimeDistributed."""

from sequence_cases import SequenceCases, draw

import jax
import numpy as np
from keras import layers, ops

cases = SequenceCases("recurrent")
x = (3, 4, 2)
mask = np.array([[1, 1, 0, 1], [0, 1, 1, 0], [0, 0, 0, 0]], bool)
masked = lambda layer, x, m: layer(x, mask=m)
begun = lambda layer, x, *states: layer(x, initial_state=list(states))
begun_masked = lambda layer, x, m, *states: layer(x, mask=m, initial_state=list(states))


def twice(layer, x):
    """The second call begins where the first ended; gradients stop there, as at every state that is kept."""
    layer(x)
    for state in layer.states:
        state.assign(jax.lax.stop_gradient(state.value))
    return layer(x)


every = dict(return_sequences=True, return_state=True)

KINDS = {"simple_rnn": (layers.SimpleRNN, 1), "lstm": (layers.LSTM, 2), "gru": (layers.GRU, 1)}
for kind, (make, count) in KINDS.items():
    states = [(3, 3)] * count
    cases.layer(kind, make(3), x)
    cases.layer(f"{kind}_sequences", make(3, return_sequences=True), x)
    cases.layer(f"{kind}_state", make(3, **every), x)
    cases.layer(f"{kind}_backwards", make(3, go_backwards=True, **every), x)
    cases.layer(f"{kind}_unroll", make(3, unroll=True, return_state=True), x)
    cases.layer(f"{kind}_no_bias", make(3, use_bias=False, activation="relu"), x)
    cases.layer(f"{kind}_initial", make(3, **every), x, *states, call=begun)
    cases.layer(f"{kind}_masked", make(3, **every), x, mask, call=masked)
    cases.layer(f"{kind}_masked_last", make(3), x, mask, call=masked)
    cases.layer(f"{kind}_masked_backwards", make(3, go_backwards=True, **every), x, mask, call=masked)
    cases.layer(f"{kind}_masked_initial", make(3, **every), x, mask, *states, call=begun_masked)
    zero = make(3, **every)
    zero.zero_output_for_mask = True
    cases.layer(f"{kind}_masked_zero", zero, x, mask, call=masked)
    zero = make(3)
    zero.zero_output_for_mask = True
    cases.layer(f"{kind}_masked_zero_last", zero, x, mask, call=masked)
    cases.layer(f"{kind}_stateful", make(3, stateful=True, **every), x, call=twice)
for kind in ("lstm", "gru"):
    make = KINDS[kind][0]
    cases.layer(f"{kind}_activations", make(3, activation="relu", recurrent_activation="tanh", **every), x)
cases.layer("gru_reset_before", layers.GRU(3, reset_after=False, **every), x)
cases.layer("gru_reset_before_no_bias", layers.GRU(3, reset_after=False, use_bias=False, **every), x)
cases.layer("gru_reset_before_masked", layers.GRU(3, reset_after=False, **every), x, mask, call=masked)
cases.layer("gru_reset_after_no_bias", layers.GRU(3, use_bias=False, **every), x)
cases.layer("lstm_long", layers.LSTM(5, return_sequences=True), (2, 40, 3))
cases.layer("lstm_forget_bias", layers.LSTM(3, unit_forget_bias=False), x)

step = lambda layer, x, *states: layer(x, list(states))
cases.layer("simple_rnn_cell", layers.SimpleRNNCell(3), (3, 2), (3, 3), call=step)
cases.layer("lstm_cell", layers.LSTMCell(3), (3, 2), (3, 3), (3, 3), call=step)
cases.layer("gru_cell", layers.GRUCell(3), (3, 2), (3, 3), call=step)
cases.layer("gru_cell_reset_before", layers.GRUCell(3, reset_after=False), (3, 2), (3, 3), call=step)

stacked = lambda: [layers.LSTMCell(3, name="a"), layers.GRUCell(4, name="b"), layers.SimpleRNNCell(2, name="c")]
cases.layer("rnn_stacked", layers.RNN(stacked(), **every), x)
cases.layer("rnn_stacked_masked", layers.RNN(stacked(), **every), x, mask, call=masked)
cases.layer("rnn_stacked_last", layers.RNN(layers.StackedRNNCells(stacked())), x)
cases.layer("rnn_cell", layers.RNN(layers.GRUCell(3, name="cell"), return_sequences=True), x)


class Minimal(layers.Layer):
    """Its output is not its state."""

    state_size = 3
    output_size = 3

    def build(self, shape):
        self.kernel = self.add_weight(shape=(shape[-1], 3), name="kernel")
        self.recurrent_kernel = self.add_weight(shape=(3, 3), name="recurrent_kernel")

    def call(self, x, states):
        h = ops.tanh(ops.matmul(x, self.kernel) + ops.matmul(states[0], self.recurrent_kernel))
        return h * 2.0 + 1.0, [h]


cases.layer("rnn_custom", layers.RNN(Minimal(), **every), x)
cases.layer("rnn_custom_last", layers.RNN(Minimal()), x)
cases.layer("rnn_custom_backwards", layers.RNN(Minimal(), go_backwards=True), x)
cases.layer("rnn_custom_masked", layers.RNN(Minimal(), **every), x, mask, call=masked)

for mode in ("concat", "sum", "mul", "ave", None):
    cases.layer(f"bidirectional_{mode or 'none'}", layers.Bidirectional(layers.LSTM(3, name="lstm"), merge_mode=mode), x)
both = lambda **options: layers.Bidirectional(layers.GRU(3, name="gru", return_sequences=True, **options))
cases.layer("bidirectional_sequences", both(), x)
cases.layer("bidirectional_state", both(return_state=True), x)
cases.layer("bidirectional_masked", both(), x, mask, call=masked)
cases.layer("bidirectional_initial", both(return_state=True), x, (3, 3), (3, 3), call=begun)
cases.layer(
    "bidirectional_none_sequences",
    layers.Bidirectional(layers.GRU(3, name="gru", return_sequences=True, return_state=True), merge_mode=None),
    x,
)
cases.layer(
    "bidirectional_backward_layer",
    layers.Bidirectional(
        layers.LSTM(3, name="lstm", return_sequences=True),
        backward_layer=layers.GRU(2, name="back", return_sequences=True, go_backwards=True),
    ),
    x,
)
cases.layer("bidirectional_masked_last", layers.Bidirectional(layers.LSTM(3, name="lstm")), x, mask, call=masked)

cases.layer("time_distributed_dense", layers.TimeDistributed(layers.Dense(3, activation="tanh", name="dense")), x)
cases.layer("time_distributed_lstm", layers.TimeDistributed(layers.LSTM(3, name="lstm")), (2, 3, 4, 2))
cases.layer(
    "time_distributed_masked",
    layers.TimeDistributed(layers.LSTM(3, name="lstm")),
    (2, 3, 4, 2),
    np.array(draw("time_distributed_mask", (2, 3, 4)) > -0.3),
    call=masked,
)
cases.write()
